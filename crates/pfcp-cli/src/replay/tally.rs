//! Counts of the outcomes of a replay.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use strowger_pfcp::MessageType;
use strowger_pfcp::ie::Cause;

use super::answer;
use super::difference::{Difference, Reason};
use super::peers::PeerAnswer;
use super::plan::PlannedRequest;
use crate::exit::{CliResult, Failure};
use crate::latency::Latency;
use crate::output::Table;

/// The outcome of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestOutcome {
    /// Time until the answer arrived; `None` without an answer.
    pub(super) took: Option<Duration>,
    cause: Option<Cause>,
    pub(super) difference: Option<Difference>,
}

impl RequestOutcome {
    pub(super) fn of(step: &PlannedRequest, answer: Option<&PeerAnswer>) -> Self {
        let Some(answer) = answer else {
            return Self {
                took: None,
                cause: None,
                difference: None,
            };
        };
        let cause = answer::cause(&answer.body);
        let captured = step.captured;
        let difference = captured.and_then(|answer| Difference::of(step, answer.cause, cause));
        Self {
            took: Some(answer.took),
            cause,
            difference,
        }
    }

    /// Returns `true` if the request was accepted. The answer to a heartbeat has no cause and
    /// counts as acceptance.
    fn is_accepted(&self) -> bool {
        self.took.is_some() && self.cause.is_none_or(Cause::is_acceptance)
    }
}

/// The outcomes of all requests of a replay.
#[derive(Debug, Default)]
pub(super) struct ReplayTally {
    kinds: BTreeMap<MessageType, RequestCounts>,
    causes: BTreeMap<u8, u64>,
    latency: Latency,
    pub(super) differences: Vec<Difference>,
    pub(super) left_out: usize,
    pub(super) took: Duration,
}

/// Counts for the requests of one type.
#[derive(Clone, Copy, Debug, Default)]
struct RequestCounts {
    sent: u64,
    answered: u64,
    accepted: u64,
    /// Answers that agree with the captured ones.
    agreed: u64,
    /// Requests without a captured answer.
    unanswered_in_capture: u64,
}

impl ReplayTally {
    pub(super) fn add(&mut self, step: &PlannedRequest, outcome: RequestOutcome) {
        let kind = self.kinds.entry(step.header.message_type).or_default();
        kind.sent += 1;
        kind.accepted += u64::from(outcome.is_accepted());
        if let Some(took) = outcome.took {
            kind.answered += 1;
            kind.unanswered_in_capture += u64::from(step.captured.is_none());
            let agreed = step.captured.is_some() && outcome.difference.is_none();
            kind.agreed += u64::from(agreed);
            self.latency.record(took);
        }
        if let Some(cause) = outcome.cause {
            *self.causes.entry(cause.0).or_default() += 1;
        }
        self.differences.extend(outcome.difference);
    }

    fn total(&self, of: impl Fn(&RequestCounts) -> u64) -> u64 {
        self.kinds.values().map(of).sum()
    }

    fn lost(&self) -> u64 {
        self.total(|kind| kind.sent - kind.answered)
    }

    fn unexplained(&self) -> usize {
        self.differences
            .iter()
            .filter(|difference| difference.reason.is_none())
            .count()
    }

    /// Counts the differences by the reason that excuses them.
    pub(super) fn count_excused(&self) -> Vec<(Reason, u64)> {
        let mut counted: Vec<(Reason, u64)> = Vec::new();
        for reason in self
            .differences
            .iter()
            .filter_map(|difference| difference.reason)
        {
            match counted.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, count)) => *count += 1,
                None => counted.push((reason, 1)),
            }
        }
        counted
    }

    pub(super) fn table(&self) -> Table {
        let headings = [
            "request",
            "sent",
            "answered",
            "accepted",
            "as captured",
            "unanswered in capture",
        ];
        let mut table = Table::new(headings);
        for (message, kind) in &self.kinds {
            let counts = [
                kind.sent,
                kind.answered,
                kind.accepted,
                kind.agreed,
                kind.unanswered_in_capture,
            ];
            let counts = counts.into_iter().map(|count| count.to_string());
            table.row(std::iter::once(message.to_string()).chain(counts));
        }
        table
    }

    pub(super) fn summary(&self) -> String {
        let (sent, answered) = (
            self.total(|kind| kind.sent),
            self.total(|kind| kind.answered),
        );
        let excused = self.differences.len() - self.unexplained();
        let mut text = format!(
            "{answered} of {sent} requests answered in {:.2} s; p50 {}, p99 {}",
            self.took.as_secs_f64(),
            self.latency.text(0.5),
            self.latency.text(0.99)
        );
        if excused > 0 {
            text.push_str(&format!(
                "; {excused} differ from the capture for known reasons"
            ));
        }
        if self.unexplained() > 0 {
            text.push_str(&format!("; {} differ from the capture", self.unexplained()));
        }
        text
    }

    pub(super) fn to_json(&self) -> Value {
        let sent = self.total(|kind| kind.sent);
        let causes = self
            .causes
            .iter()
            .map(|(cause, count)| (cause.to_string(), json!(count)));
        let rate = sent as f64 / self.took.as_secs_f64().max(f64::EPSILON);
        json!({
            "sent": sent,
            "answered": self.total(|kind| kind.answered),
            "accepted": self.total(|kind| kind.accepted),
            "lost": self.lost(),
            "agreed": self.total(|kind| kind.agreed),
            "unanswered_there": self.total(|kind| kind.unanswered_in_capture),
            "excused": self.differences.len() - self.unexplained(),
            "different": self.unexplained(),
            "left_out": self.left_out,
            "p50_us": self.latency.micros(0.5),
            "p99_us": self.latency.micros(0.99),
            "p999_us": self.latency.micros(0.999),
            "rate": rate.round(),
            "causes": causes.collect::<serde_json::Map<_, _>>(),
        })
    }

    /// Returns an error unless every request was answered as in the capture or for a known reason.
    pub(super) fn verdict(&self) -> CliResult {
        match (self.lost(), self.unexplained()) {
            (0, 0) => Ok(()),
            (0, different) => Err(Failure::check(format!(
                "{different} responses differ from the capture without a known reason"
            ))),
            (lost, _) => Err(Failure::check(format!("{lost} requests were not answered"))
                .hint("wait longer with --wait, or retransmit more often with --tries")),
        }
    }
}
