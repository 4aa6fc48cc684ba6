//! What a mailbox says about itself.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Lanes, Mailbox};
use crate::info::COUNTED;
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
        self.lanes.lock().handled(self.batched())
    }

    pub(crate) fn figures(&self) -> Figures {
        let lanes = self.lanes.lock();
        let batched = self.batched();
        let octets = octets(&lanes.user)
            + lanes.completions.octets()
            + lanes.system.octets()
            + batched * size_of::<M>();
        let waiting = lanes.user.len() + batched;
        let high_water = if COUNTED {
            lanes.high_water.max(waiting)
        } else {
            0
        };
        Figures {
            depth: waiting + lanes.completions.len(),
            high_water,
            dropped: lanes.dropped,
            expired: lanes.expired,
            octets,
            handled: lanes.handled(batched),
            busy: Duration::from_nanos(self.busy.load(Ordering::Relaxed)),
            waited: Duration::from_nanos(self.waited.load(Ordering::Relaxed)),
        }
    }
}

impl<M> Lanes<M> {
    /// How many messages were taken out to be handled: all but those that wait, and those that
    /// left in another way.
    fn handled(&self, batched: usize) -> u64 {
        self.front(batched) + self.beside - self.gone - self.expired
    }
}

/// What a lane takes, by capacity. That of values without size is no number to count with.
pub(super) fn octets<T>(lane: &VecDeque<T>) -> usize {
    lane.capacity().saturating_mul(size_of::<T>())
}
