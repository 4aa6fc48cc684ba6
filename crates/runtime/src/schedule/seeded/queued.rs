//! A flag that is set while a task is in the run queue.

use crate::sync::{AtomicBool, Ordering, Weakening, weaken_or};

/// Set by the code that wakes the task, and cleared before its turn.
#[derive(Debug)]
pub(super) struct QueuedFlag(AtomicBool);

impl QueuedFlag {
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Records that the task is queued; returns `true` if it was not.
    pub(super) fn set(&self) -> bool {
        let before = self.0.swap(true, Ordering::AcqRel);
        !before
    }

    /// Records that the turn of the task begins: a wake from now on queues it again. The turn sees
    /// everything that was done before a wake that found the task queued, so no wake is lost.
    pub(super) fn clear(&self) {
        let acq_rel = weaken_or(
            Weakening::QueuedAcquire,
            Ordering::AcqRel,
            Ordering::Release,
        );
        self.0.swap(false, acq_rel);
    }
}
