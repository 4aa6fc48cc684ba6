//! The history of the counters, as the lines of the workload tell it.
//!
//! A counter is linearizable if its increments have an order in which each answer is the number of
//! increments so far, and which keeps an increment that was answered before another one was sent in
//! front of it. Each answer is different, so it is its place in the order; what is left to check is
//! that no place is taken twice, none is beyond the increments that were sent, and none is before
//! the answers that the sender could know.

use std::collections::BTreeMap;

use super::{CLIENTS, ENTITIES};

/// An increment: its client and its number there.
type IncrementId = (usize, u64);

/// The increments that were sent and the answers to them, over all runs with one store.
#[derive(Debug, Clone)]
pub(crate) struct WorkloadHistory {
    entities: Vec<EntityHistory>,
    /// Number of answers, without repeated ones.
    pub(crate) acknowledged: u64,
    /// Number of answers that were given again.
    pub(crate) repeated: u64,
    /// `true` if the current run has opened the store.
    pub(crate) is_open: bool,
    /// `true` if the current run has closed the store after its last opening.
    pub(crate) is_closed: bool,
    /// `true` if the current run has ended without closing the store, after all of its increments.
    pub(crate) has_left: bool,
    /// The error of a store that did not open.
    pub(crate) refused: Option<String>,
    /// Answers that are missing, by what was read.
    pub(crate) forgotten: u64,
    /// `true` if counters may have lost their last increments, once.
    accepts_loss: bool,
}

#[derive(Debug, Clone, Default)]
struct EntityHistory {
    /// The answers, by increment.
    answers: BTreeMap<IncrementId, u64>,
    /// The same, by answer.
    by_value: BTreeMap<u64, IncrementId>,
    /// The increments that were sent and not answered, with the highest value known at that time.
    pending: BTreeMap<IncrementId, u64>,
    /// The highest value that was answered or read.
    known: u64,
    /// `true` if it was read in this run.
    has_been_read: bool,
}

/// A promise that was not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Violation {
    /// An acknowledged increment is missing.
    Lost(String),
    /// An increment took effect twice.
    Doubled(String),
    /// An entity is damaged, or the workload failed otherwise.
    Failed(String),
}

impl Violation {
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Lost(detail) => format!("lost: {detail}"),
            Self::Doubled(detail) => format!("doubled: {detail}"),
            Self::Failed(detail) => detail.clone(),
        }
    }
}

impl Default for WorkloadHistory {
    fn default() -> Self {
        Self {
            entities: vec![EntityHistory::default(); ENTITIES],
            acknowledged: 0,
            repeated: 0,
            is_open: false,
            is_closed: false,
            has_left: false,
            refused: None,
            forgotten: 0,
            accepts_loss: false,
        }
    }
}

impl WorkloadHistory {
    /// Begins another run: its clients repeat what was not answered.
    pub(crate) fn restart(&mut self) {
        self.is_open = false;
        self.is_closed = false;
        self.has_left = false;
        self.refused = None;
        for entity in &mut self.entities {
            entity.has_been_read = false;
        }
    }

    /// Lets the first read of each counter in the next run find an earlier value than the last one
    /// that was acknowledged. The increments behind it are forgotten.
    pub(crate) fn accept_loss(&mut self) {
        self.accepts_loss = true;
    }

    /// Returns the first increment of each client that was not answered, or with `repeat` the one
    /// before.
    pub(crate) fn next(&self, mut repeat: impl FnMut() -> bool) -> Vec<u64> {
        let clients = (0..ENTITIES * CLIENTS).map(|at| (at / CLIENTS, at % CLIENTS));
        let next = clients.map(|(entity, client)| {
            let answers = &self.entities[entity].answers;
            let last = answers.range((client, 0)..=(client, u64::MAX)).next_back();
            let last = last.map_or(0, |((_, number), _)| *number);
            match repeat() && last > 0 {
                true => last,
                false => last + 1,
            }
        });
        next.collect()
    }

    /// Adds a line of the output of the workload; other lines are ignored.
    pub(crate) fn add(&mut self, line: &str) -> Result<(), Violation> {
        let Some(line) = line.split('@').nth(1) else {
            return Ok(());
        };
        let (event, rest) = line.split_once(' ').unwrap_or((line, ""));
        let malformed = || Violation::Failed(format!("the workload wrote {line:?}"));
        let numbers = || {
            let numbers = rest.split(' ').map_while(|word| word.parse::<u64>().ok());
            numbers.collect::<Vec<_>>()
        };
        match event {
            "" => {}
            "opened" => {
                self.is_open = true;
                self.is_closed = false;
            }
            "closed" => self.is_closed = true,
            "left" => self.has_left = true,
            "refused" => self.refused = Some(rest.to_owned()),
            "value" => {
                let [entity, value] = numbers()[..] else {
                    return Err(malformed());
                };
                self.read(index(entity)?, value)?;
            }
            "sent" => {
                let [entity, client, number] = numbers()[..] else {
                    return Err(malformed());
                };
                let entity = &mut self.entities[index(entity)?];
                let id = (usize::try_from(client).unwrap_or(usize::MAX), number);
                if !entity.answers.contains_key(&id) {
                    let known = entity.known;
                    entity.pending.entry(id).or_insert(known);
                }
            }
            "answered" => {
                let [entity, client, number, value] = numbers()[..] else {
                    return Err(malformed());
                };
                let id = (usize::try_from(client).unwrap_or(usize::MAX), number);
                self.answer(index(entity)?, id, value)?;
            }
            _ => return Err(Violation::Failed(line.to_owned())),
        }
        Ok(())
    }

    /// Adds the output of a run.
    pub(crate) fn add_lines(&mut self, lines: &str) -> Result<(), Violation> {
        lines.lines().try_for_each(|line| self.add(line))
    }

    fn read(&mut self, at: usize, value: u64) -> Result<(), Violation> {
        let entity = &mut self.entities[at];
        let may_be_less = self.accepts_loss && !entity.has_been_read;
        if may_be_less && value < entity.known {
            let forgotten = entity.by_value.split_off(&(value + 1));
            self.forgotten += forgotten.len() as u64;
            for (client, number) in forgotten.values() {
                entity.answers.remove(&(*client, *number));
                // Its client had sent the next one later.
                let is_later = |id: &IncrementId| id.0 == *client && id.1 > *number;
                entity.pending.retain(|id, _| !is_later(id));
            }
            for known in entity.pending.values_mut() {
                *known = value.min(*known);
            }
            entity.known = value;
        }
        entity.has_been_read = true;
        if value < entity.known {
            let known = entity.known;
            return Err(Violation::Lost(format!(
                "counter {at} has {value}, and had acknowledged {known}"
            )));
        }
        entity.known = value;
        entity.check_count(at, value)
    }

    fn answer(&mut self, at: usize, id: IncrementId, value: u64) -> Result<(), Violation> {
        let entity = &mut self.entities[at];
        if let Some(earlier) = entity.answers.get(&id) {
            self.repeated += 1;
            return match *earlier == value {
                true => Ok(()),
                false => Err(Violation::Doubled(format!(
                    "increment {id:?} of counter {at} was answered {earlier}, then {value}"
                ))),
            };
        }
        let Some(known) = entity.pending.remove(&id) else {
            return Err(Violation::Failed(format!(
                "increment {id:?} of counter {at} was answered, and not sent"
            )));
        };
        self.acknowledged += 1;
        if let Some(other) = entity.by_value.insert(value, id) {
            return Err(Violation::Lost(format!(
                "increments {other:?} and {id:?} of counter {at} were both answered {value}"
            )));
        }
        entity.answers.insert(id, value);
        // An increment whose first sender was killed may have taken effect at any time since.
        if value <= known {
            return Err(Violation::Lost(format!(
                "increment {id:?} of counter {at} was answered {value}, sent when it had {known}"
            )));
        }
        entity.known = entity.known.max(value);
        entity.check_count(at, value)
    }
}

impl EntityHistory {
    /// Checks that a value is not above the number of increments that were sent. If all are
    /// answered, it has to be that number when it is read.
    fn check_count(&self, at: usize, value: u64) -> Result<(), Violation> {
        let sent = (self.answers.len() + self.pending.len()) as u64;
        if value > sent {
            return Err(Violation::Doubled(format!(
                "counter {at} has {value}, and was sent {sent} increments"
            )));
        }
        Ok(())
    }
}

fn index(entity: u64) -> Result<usize, Violation> {
    let at = usize::try_from(entity).unwrap_or(usize::MAX);
    match at < ENTITIES {
        true => Ok(at),
        false => Err(Violation::Failed(format!("there is no counter {entity}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(lines: &[&str]) -> Result<WorkloadHistory, Violation> {
        let mut history = WorkloadHistory::default();
        for line in lines {
            if *line == "restart" {
                history.restart();
            }
            history.add(line)?;
        }
        Ok(history)
    }

    #[test]
    fn repeated_increments_keep_their_answer() {
        let told = [
            "test workload::workload_child ... @",
            "@opened",
            "@value 0 0",
            "@sent 0 0 1",
            "@sent 0 1 1",
            "@answered 0 1 1 1",
            "restart",
            "@value 0 2",
            "@sent 0 0 1",
            "@sent 0 1 1",
            "@answered 0 0 1 2",
            "@answered 0 1 1 1",
            "@closed",
        ];
        let history = history(&told).expect("it is linearizable");
        assert_eq!((history.acknowledged, history.repeated), (2, 1));
        assert_eq!(history.next(|| false)[..3], [2, 2, 1]);
        assert_eq!(history.next(|| true)[..3], [1, 1, 1]);
    }

    #[test]
    fn lost_and_doubled_increments_are_found() {
        let begin = ["@sent 0 0 1", "@answered 0 0 1 1"];
        for (more, expected) in [
            (&["@value 0 0"][..], "lost"),
            (&["@value 0 2"], "doubled"),
            (&["@sent 0 0 1", "@answered 0 0 1 2"], "doubled"),
            (&["@sent 0 0 2", "@answered 0 0 2 1"], "lost"),
            (&["@sent 0 0 2", "@answered 0 0 2 3"], "doubled"),
            (
                &[
                    "@sent 0 1 1",
                    "@value 0 2",
                    "@sent 0 0 2",
                    "@answered 0 0 2 2",
                ],
                "lost",
            ),
            (&["@damaged 0 digest"], "damaged"),
            (&["@answered 0 0 2 2"], "not sent"),
        ] {
            let found = history(&[&begin[..], more].concat());
            let found = found.expect_err(expected).text();
            assert!(found.contains(expected), "{more:?}: {found}");
        }
    }

    #[test]
    fn accepted_loss_forgets_only_the_last_increments() {
        let mut history = history(&[
            "@sent 0 0 1",
            "@answered 0 0 1 1",
            "@sent 0 0 2",
            "@answered 0 0 2 2",
        ])
        .expect("it is linearizable");
        history.accept_loss();
        history.restart();
        history.add("@value 0 1").expect("the loss is accepted");
        assert_eq!(history.forgotten, 1);
        history.add("@sent 0 0 1").expect("a repetition");
        let doubled = history.clone().add("@answered 0 0 1 2");
        assert!(matches!(doubled, Err(Violation::Doubled(_))));
        history.add("@answered 0 0 1 1").expect("it is kept");
        assert!(history.add("@value 0 0").is_err(), "a second loss");
    }
}
