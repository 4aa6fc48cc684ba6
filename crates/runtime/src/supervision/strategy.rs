//! What a supervisor does when a child has ended.
//!
//! Functions of the children, the exit and the time; a supervisor carries the decision out. It
//! handles one exit after the other: an exit that comes while it stops or starts children is
//! decided upon when it has finished, with the children as they are then. A start that fails is
//! an exit like any other, so a child that cannot start is tried again until the intensity ends it.

use std::time::Duration;

use tokio::time::Instant;

use super::backoff::{Backoff, Row};
use super::intensity::Intensity;
use super::spec::{Restart, Strategy};
use crate::exit::Exit;

/// What the decision needs to know of a child.
#[derive(Debug, Clone)]
pub(crate) struct Child {
    pub(crate) restart: Restart,
    /// Whether it has an incarnation that must be stopped before it can be started.
    pub(crate) running: bool,
    /// Absent until the first restart that might have waited.
    pub(crate) row: Option<Box<Row>>,
}

impl Child {
    pub(crate) fn new(restart: Restart) -> Self {
        Self {
            restart,
            running: false,
            row: None,
        }
    }
}

/// What to do with the child that ended, before its siblings are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It stays stopped and keeps its place. An orderly exit, or a start that was ignored.
    Nothing,
    /// It gives up its place.
    Remove,
    /// It is started again after this time.
    Restart { after: Duration },
    /// It was one restart too many.
    Escalate,
}

/// What to do after an exit. Numbers are places in the list of children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The child stays stopped and keeps its place.
    Nothing,
    /// The child gives up its place.
    Remove,
    /// In this order: stop and wait for the end of each, give up places, wait, start.
    Restart {
        /// The latest started first.
        stop: Vec<usize>,
        /// Temporary children among those that were stopped.
        remove: Vec<usize>,
        /// In start order. Takes the place of a restart for which one of these still waits.
        start: Vec<usize>,
        after: Duration,
    },
    /// Stop all that run, the latest started first, and end with the child's exit as the reason.
    Escalate { stop: Vec<usize> },
}

/// How a supervisor answers to exits.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) strategy: Strategy,
    pub(crate) intensity: Intensity,
    pub(crate) backoff: Backoff,
}

impl Policy {
    /// Whether a restart may have to wait.
    pub(crate) fn pauses(&self) -> bool {
        self.backoff.pauses()
    }

    /// Decides about a child alone: all there is to do where children do not share their fate.
    /// The time is asked for if the decision depends on it.
    pub(crate) fn judge(
        &mut self,
        child: &mut Child,
        exit: &Exit,
        now: impl FnOnce() -> Instant,
        seed: u64,
    ) -> Verdict {
        child.running = false;
        match child.restart {
            Restart::Temporary => Verdict::Remove,
            Restart::Transient if exit.is_orderly() => Verdict::Nothing,
            // It would choose the same again.
            Restart::Permanent if matches!(exit, Exit::Ignored) => Verdict::Nothing,
            Restart::Transient | Restart::Permanent => {
                if !self.intensity.counts() && !self.pauses() {
                    let after = Duration::ZERO;
                    return Verdict::Restart { after };
                }
                let now = now();
                if !self.intensity.allows(now) {
                    return Verdict::Escalate;
                }
                let after = match self.pauses() {
                    true => {
                        let row = child.row.get_or_insert_default();
                        row.extend(&self.backoff, now, seed)
                    }
                    false => Duration::ZERO,
                };
                Verdict::Restart { after }
            }
        }
    }

    /// Decides what to do after the exit of the child in place `failed`.
    pub(crate) fn on_exit(
        &mut self,
        children: &mut [Child],
        failed: usize,
        exit: &Exit,
        now: Instant,
        seed: u64,
    ) -> Decision {
        match self.judge(&mut children[failed], exit, || now, seed) {
            Verdict::Nothing => Decision::Nothing,
            Verdict::Remove => Decision::Remove,
            Verdict::Escalate => Decision::Escalate {
                stop: running_reversed(children, 0),
            },
            Verdict::Restart { after } => {
                let first = match self.strategy {
                    Strategy::OneForOne => {
                        let (stop, remove) = (Vec::new(), Vec::new());
                        return Decision::Restart {
                            stop,
                            remove,
                            start: vec![failed],
                            after,
                        };
                    }
                    Strategy::OneForAll => 0,
                    Strategy::RestForOne => failed,
                };
                let stop = running_reversed(children, first);
                let (remove, start) = (first..children.len())
                    .partition(|&place| children[place].restart == Restart::Temporary);
                Decision::Restart {
                    stop,
                    remove,
                    start,
                    after,
                }
            }
        }
    }
}

fn running_reversed(children: &[Child], first: usize) -> Vec<usize> {
    (first..children.len())
        .rev()
        .filter(|&place| children[place].running)
        .collect()
}

#[cfg(test)]
mod tests;
