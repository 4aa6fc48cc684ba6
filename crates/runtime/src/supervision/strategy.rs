//! Decides what a supervisor does when a child has ended.
//!
//! These are pure functions of the children, the exit and the time; the supervisor carries the
//! decision out. It handles one exit after the other: an exit that arrives while it stops or starts
//! children is decided when that is finished, with the children as they are then. A failed start is
//! an exit like any other, so a child that cannot start is tried again until the intensity is
//! exceeded.

use std::time::Duration;

use tokio::time::Instant;

use super::backoff::{Backoff, RestartStreak};
use super::intensity::RestartIntensity;
use super::spec::{Restart, Strategy};
use crate::exit::Exit;

/// The properties of a child that decisions depend on.
#[derive(Debug, Clone)]
pub(crate) struct ChildState {
    pub(crate) restart: Restart,
    /// `true` if the child has an incarnation that must be stopped before the child can be started.
    pub(crate) running: bool,
    /// `None` until the first restart for which a backoff is configured.
    pub(crate) restart_run: Option<Box<RestartStreak>>,
}

impl ChildState {
    pub(crate) fn new(restart: Restart) -> Self {
        Self {
            restart,
            running: false,
            restart_run: None,
        }
    }
}

/// The decision about the child that ended, before its siblings are considered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildVerdict {
    /// The child stays stopped and keeps its place, after an orderly or an ignored exit.
    LeaveStopped,
    /// The child is removed from the child table.
    Remove,
    /// The child is restarted after this delay.
    Restart { after: Duration },
    /// The intensity is exceeded, and the supervisor gives up.
    Escalate,
}

/// The decision after an exit. The numbers are indices into the list of children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GroupDecision {
    /// The child stays stopped and keeps its place.
    Nothing,
    /// The child is removed from the child table.
    Remove,
    /// In this order: stop the children in `stop` and wait for each to end, remove those in
    /// `remove`, wait for `after`, start those in `start`.
    Restart {
        /// Latest started first.
        stop: Vec<usize>,
        /// The temporary children in the scope of the restart.
        remove: Vec<usize>,
        /// In start order. Replaces any delayed restart that one of these children still waits for.
        start: Vec<usize>,
        after: Duration,
    },
    /// Stop all running children, the latest started first, and end with the child's exit as the
    /// reason.
    Escalate { stop: Vec<usize> },
}

/// The rules by which a supervisor answers the exits of its children.
#[derive(Debug, Clone)]
pub(crate) struct SupervisionPolicy {
    pub(crate) strategy: Strategy,
    pub(crate) intensity: RestartIntensity,
    pub(crate) backoff: Backoff,
}

impl SupervisionPolicy {
    /// Returns `true` if a restart may be delayed.
    pub(crate) fn has_backoff(&self) -> bool {
        self.backoff.is_enabled()
    }

    /// Decides about one child without regard to its siblings, which is all there is to do with the
    /// one-for-one strategy. `now` is called only if the decision depends on the time.
    pub(crate) fn decide_child(
        &mut self,
        child: &mut ChildState,
        exit: &Exit,
        now: impl FnOnce() -> Instant,
        seed: u64,
    ) -> ChildVerdict {
        child.running = false;
        match child.restart {
            Restart::Temporary => ChildVerdict::Remove,
            Restart::Transient if exit.is_orderly() => ChildVerdict::LeaveStopped,
            // The child would choose not to run again.
            Restart::Permanent if matches!(exit, Exit::Ignored) => ChildVerdict::LeaveStopped,
            Restart::Transient | Restart::Permanent => {
                if !self.intensity.is_limited() && !self.has_backoff() {
                    let after = Duration::ZERO;
                    return ChildVerdict::Restart { after };
                }
                let now = now();
                if !self.intensity.try_restart(now) {
                    return ChildVerdict::Escalate;
                }
                let after = match self.has_backoff() {
                    true => {
                        let restart_run = child.restart_run.get_or_insert_default();
                        restart_run.next_delay(&self.backoff, now, seed)
                    }
                    false => Duration::ZERO,
                };
                ChildVerdict::Restart { after }
            }
        }
    }

    /// Decides what to do after the exit of the child with index `failed`.
    pub(crate) fn decide(
        &mut self,
        children: &mut [ChildState],
        failed: usize,
        exit: &Exit,
        now: Instant,
        seed: u64,
    ) -> GroupDecision {
        match self.decide_child(&mut children[failed], exit, || now, seed) {
            ChildVerdict::LeaveStopped => GroupDecision::Nothing,
            ChildVerdict::Remove => GroupDecision::Remove,
            ChildVerdict::Escalate => GroupDecision::Escalate {
                stop: running_reversed(children, 0),
            },
            ChildVerdict::Restart { after } => {
                let first = match self.strategy {
                    Strategy::OneForOne => {
                        let (stop, remove) = (Vec::new(), Vec::new());
                        return GroupDecision::Restart {
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
                GroupDecision::Restart {
                    stop,
                    remove,
                    start,
                    after,
                }
            }
        }
    }
}

fn running_reversed(children: &[ChildState], first: usize) -> Vec<usize> {
    (first..children.len())
        .rev()
        .filter(|&place| children[place].running)
        .collect()
}

#[cfg(test)]
mod tests;
