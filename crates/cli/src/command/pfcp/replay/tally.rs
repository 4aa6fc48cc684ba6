//! What came of a replay, counted.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use strowger_pfcp::MessageType;
use strowger_pfcp::ie::Cause;

use super::answer;
use super::difference::{Difference, Reason};
use super::peers::Answer;
use super::plan::Step;
use crate::command::latency::Latency;
use crate::exit::{Done, Failure};
use crate::output::Table;

/// What came of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// How long the answer took; absent when there was none.
    pub(super) took: Option<Duration>,
    cause: Option<Cause>,
    pub(super) difference: Option<Difference>,
}

impl Outcome {
    pub(super) fn of(step: &Step, answer: Option<&Answer>) -> Self {
        let Some(answer) = answer else {
            return Self {
                took: None,
                cause: None,
                difference: None,
            };
        };
        let cause = answer::cause(&answer.body);
        let captured = step.captured;
        let difference = captured.and_then(|there| Difference::of(step, there.cause, cause));
        Self {
            took: Some(answer.took),
            cause,
            difference,
        }
    }

    /// A heartbeat's answer has no cause, and is none the worse for it.
    fn is_accepted(&self) -> bool {
        self.took.is_some() && self.cause.is_none_or(Cause::is_acceptance)
    }
}

/// All requests of a replay.
#[derive(Debug, Default)]
pub(super) struct Tally {
    kinds: BTreeMap<MessageType, Kind>,
    causes: BTreeMap<u8, u64>,
    latency: Latency,
    pub(super) differences: Vec<Difference>,
    pub(super) left_out: usize,
    pub(super) took: Duration,
}

/// The requests of one type.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    sent: u64,
    answered: u64,
    accepted: u64,
    /// Answers that the capture has as well, and that agree with it.
    agreed: u64,
    /// Requests that the capture has no answer to.
    unanswered_there: u64,
}

impl Tally {
    pub(super) fn add(&mut self, step: &Step, outcome: Outcome) {
        let kind = self.kinds.entry(step.header.message_type).or_default();
        kind.sent += 1;
        kind.accepted += u64::from(outcome.is_accepted());
        if let Some(took) = outcome.took {
            kind.answered += 1;
            kind.unanswered_there += u64::from(step.captured.is_none());
            let agreed = step.captured.is_some() && outcome.difference.is_none();
            kind.agreed += u64::from(agreed);
            self.latency.record(took);
        }
        if let Some(cause) = outcome.cause {
            *self.causes.entry(cause.0).or_default() += 1;
        }
        self.differences.extend(outcome.difference);
    }

    fn total(&self, of: impl Fn(&Kind) -> u64) -> u64 {
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
    pub(super) fn excused(&self) -> Vec<(Reason, u64)> {
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
            "no answer there",
        ];
        let mut table = Table::new(headings);
        for (message, kind) in &self.kinds {
            let counts = [
                kind.sent,
                kind.answered,
                kind.accepted,
                kind.agreed,
                kind.unanswered_there,
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
            "unanswered_there": self.total(|kind| kind.unanswered_there),
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

    /// Says whether every request was answered as in the capture or for a known reason.
    pub(super) fn verdict(&self) -> Done {
        match (self.lost(), self.unexplained()) {
            (0, 0) => Ok(()),
            (0, different) => Err(Failure::found(format!(
                "{different} answers differ from the capture for no known reason"
            ))),
            (lost, _) => Err(Failure::found(format!("{lost} requests were not answered"))
                .hint("`--wait` and `--tries` say how long to wait and how often to ask")),
        }
    }
}
