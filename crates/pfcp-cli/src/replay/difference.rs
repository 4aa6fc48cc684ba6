//! Answers that differ from the capture, and the reasons that excuse them.

use std::fmt;

use serde_json::{Value, json};
use strowger_pfcp::MessageType;
use strowger_pfcp::ie::Cause;

use super::plan::PlannedRequest;

/// The reasons, one a line; `#` starts a comment.
const REASONS: &str = include_str!("differences.tsv");

/// A request that was accepted although the capture has a refusal, or the other way round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) frame: u64,
    pub(super) message: MessageType,
    pub(super) captured: Option<Cause>,
    pub(super) answered: Option<Cause>,
    /// The known reason why this is right, if any.
    pub(super) reason: Option<Reason>,
}

/// A reason for which a node may answer otherwise than the captured node did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    message: MessageType,
    captured: Cause,
    answered: Cause,
    when: DifferenceContext,
    pub(super) why: &'static str,
}

/// An additional condition of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DifferenceContext {
    Always,
    /// The peer restarted after it had established the session.
    Restarted,
}

impl Difference {
    /// Compares the captured cause of a request with the one that it got here. Returns `None` if
    /// both accept or both refuse.
    pub(super) fn of(
        step: &PlannedRequest,
        captured: Option<Cause>,
        answered: Option<Cause>,
    ) -> Option<Self> {
        let accepts = |cause: Option<Cause>| cause.is_none_or(Cause::is_acceptance);
        if accepts(captured) == accepts(answered) {
            return None;
        }
        let message = step.header.message_type;
        let fits = |reason: &Reason| {
            reason.message == message
                && Some(reason.captured) == captured
                && Some(reason.answered) == answered
                && (reason.when == DifferenceContext::Always || step.restarted)
        };
        let reason = reasons().find(fits);
        Some(Self {
            frame: step.frame,
            message,
            captured,
            answered,
            reason,
        })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "frame": self.frame,
            "type": self.message.0,
            "name": self.message.to_string(),
            "captured": self.captured.map(|cause| cause.0),
            "answered": self.answered.map(|cause| cause.0),
            "reason": self.reason.map(|reason| reason.why),
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            message,
            captured,
            answered,
            why,
            ..
        } = self;
        write!(
            f,
            "{message}: cause {} instead of {}: {why}",
            answered.0, captured.0
        )
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            frame,
            message,
            captured,
            answered,
            reason,
        } = self;
        write!(f, "frame {frame}: {message}: ")?;
        match answered {
            Some(cause) => write!(f, "{cause}")?,
            None => f.write_str("no cause")?,
        }
        match captured {
            Some(cause) => write!(f, " (captured: {cause})")?,
            None => f.write_str(" (captured: no cause)")?,
        }
        match reason {
            Some(reason) => write!(f, ": {}", reason.why),
            None => Ok(()),
        }
    }
}

fn reasons() -> impl Iterator<Item = Reason> {
    let rows = REASONS
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    rows.filter_map(|row| {
        let mut cells = row.split('\t');
        let mut number = || cells.next()?.parse().ok();
        Some(Reason {
            message: MessageType(number()?),
            captured: Cause(number()?),
            answered: Cause(number()?),
            when: match cells.next()? {
                "always" => DifferenceContext::Always,
                "restarted" => DifferenceContext::Restarted,
                _ => return None,
            },
            why: cells.next()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_parses_as_a_reason() {
        let rows = REASONS
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        assert_eq!(rows.count(), reasons().count());
        assert!(reasons().count() <= 5);
    }

    #[test]
    fn other_cause_of_the_same_class_is_no_difference() {
        let step = PlannedRequest::sample(MessageType::SESSION_DELETION_REQUEST);
        let between = |a, b| Difference::of(&step, Some(Cause(a)), Some(Cause(b)));
        assert_eq!(between(65, 72), None);
        assert_eq!(between(1, 1), None);
        assert!(between(1, 65).is_some());
    }

    #[test]
    fn restart_excuses_only_sessions_from_before_it() {
        let mut step = PlannedRequest::sample(MessageType::SESSION_MODIFICATION_REQUEST);
        let reason = |step: &PlannedRequest| {
            let difference = Difference::of(step, Some(Cause(1)), Some(Cause(65)));
            difference.expect("acceptance and refusal differ").reason
        };
        assert_eq!(reason(&step), None);
        step.restarted = true;
        assert!(reason(&step).is_some());
    }
}
