//! Whether a task is in the run queue.

use crate::sync::{AtomicBool, Ordering};

/// Set by whoever wakes the task, and taken back before its turn.
#[derive(Debug)]
pub(super) struct Queued(AtomicBool);

impl Queued {
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Notes that the task is queued; returns `true` if it was not.
    pub(super) fn enter(&self) -> bool {
        let before = self.0.swap(true, Ordering::AcqRel);
        !before
    }

    /// Notes that its turn begins: who wakes it from now on queues it again. What those did who
    /// found it queued is seen in the turn, so that none of them is forgotten.
    pub(super) fn leave(&self) {
        self.0.swap(false, Ordering::AcqRel);
    }
}
