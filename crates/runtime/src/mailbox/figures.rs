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

    /// Whether something waits, as its receiver sees it.
    pub(crate) fn has_more(&self) -> bool {
        let batched = self.batched() > 0;
        batched || self.figures().depth > 0
    }

    pub(crate) fn figures(&self) -> Figures {
        let lanes = self.lanes.lock();
        let batched = self.batched();
        let rare = lanes.rare.as_ref();
        let beside = rare.map_or(0, |rare| {
            size_of_val(&**rare) + octets(&rare.completions) + octets(&rare.system)
        });
        let octets = lanes.user.octets() + beside + batched * size_of::<M>();
        let waiting = lanes.user.len() + batched;
        let high_water = if COUNTED {
            (lanes.high_water as usize).max(waiting)
        } else {
            0
        };
        Figures {
            depth: waiting + rare.map_or(0, |rare| rare.completions.len()),
            high_water,
            dropped: rare.map_or(0, |rare| rare.dropped),
            expired: rare.map_or(0, |rare| rare.expired),
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
        let rare = self.rare.as_ref();
        let (beside, gone) = rare.map_or((0, 0), |rare| (rare.beside, rare.gone + rare.expired));
        self.front(batched) + beside - gone
    }
}

/// What a lane takes, by capacity. That of values without size is no number to count with.
pub(super) fn octets<T>(lane: &VecDeque<T>) -> usize {
    lane.capacity().saturating_mul(size_of::<T>())
}
