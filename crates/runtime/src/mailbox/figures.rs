//! What a mailbox says about itself.

use std::collections::VecDeque;
use std::time::Duration;

use super::Mailbox;
use crate::sync::Ordering;

/// Figures of a mailbox at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) depth: usize,
    pub(crate) high_water: usize,
    pub(crate) dropped: u64,
    pub(crate) expired: u64,
    /// What the lanes take, by capacity.
    pub(crate) octets: usize,
    pub(crate) handled: u64,
    pub(crate) busy: Duration,
    pub(crate) waited: Duration,
}

impl<M> Mailbox<M> {
    /// Notes how long the actor was at work, and how long the first of its next messages waited.
    pub(super) fn note(&self, busy: u64, waited: u64) {
        self.busy.fetch_add(busy, Ordering::Relaxed);
        self.waited.store(waited, Ordering::Relaxed);
    }

    /// A number that changes with every message that is taken.
    pub(crate) fn progress(&self) -> u64 {
        let batched = self.batched() as u64;
        self.handled.load(Ordering::Relaxed) ^ batched.rotate_right(16)
    }

    pub(crate) fn figures(&self) -> Figures {
        let lanes = self.lanes.lock();
        let octets = octets(&lanes.user)
            + lanes.completions.octets()
            + lanes.system.octets()
            + self.batched() * size_of::<M>();
        Figures {
            depth: lanes.user.len() + lanes.completions.len() + self.batched(),
            high_water: lanes.high_water,
            dropped: lanes.dropped,
            expired: lanes.expired,
            octets,
            handled: self.handled.load(Ordering::Relaxed),
            busy: Duration::from_nanos(self.busy.load(Ordering::Relaxed)),
            waited: Duration::from_nanos(self.waited.load(Ordering::Relaxed)),
        }
    }
}

/// What a lane takes, by capacity. That of values without size is no number to count with.
pub(super) fn octets<T>(lane: &VecDeque<T>) -> usize {
    lane.capacity().saturating_mul(size_of::<T>())
}
