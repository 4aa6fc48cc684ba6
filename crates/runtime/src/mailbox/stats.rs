//! Stats of a mailbox.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Mailbox, MailboxState};
use crate::info::STATS_ENABLED;
use crate::sync::Ordering;

/// Stats of a mailbox at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MailboxStats {
    pub(crate) depth: usize,
    pub(crate) high_water: usize,
    pub(crate) dropped: u64,
    pub(crate) expired: u64,
    /// Bytes that the lanes take, by capacity.
    pub(crate) bytes: usize,
    pub(crate) handled: u64,
    pub(crate) busy: Duration,
    pub(crate) waited: Duration,
}

impl<M> Mailbox<M> {
    /// Records how long the actor was at work, and how long the first of its next messages waited.
    ///
    /// There is no loom model of this, because no order depends on it. Only the receiver calls it,
    /// and receivers follow one another through the lock of the strand, so nothing is added to a
    /// stale sum. The two values are read independently, at any moment: one of them may be from the
    /// batch before.
    pub(super) fn record_timing(&self, busy: u64, waited: u64) {
        self.busy.fetch_add(busy, Ordering::Relaxed);
        self.waited.store(waited, Ordering::Relaxed);
    }

    /// Returns a number that changes with every message that is taken.
    pub(crate) fn progress(&self) -> u64 {
        self.strand.lock().handled_count(self.batch_len())
    }

    /// Returns `true` if something waits, as the receiver sees it.
    pub(crate) fn has_more(&self) -> bool {
        let has_batch = self.batch_len() > 0;
        has_batch || self.stats().depth > 0
    }

    pub(crate) fn stats(&self) -> MailboxStats {
        let state = self.strand.lock();
        let batch_len = self.batch_len();
        let cold = state.cold.as_ref();
        let beside = cold.map_or(0, |cold| {
            size_of_val(&**cold) + capacity_bytes(&cold.completions) + capacity_bytes(&cold.system)
        });
        let bytes = state.messages.bytes() + beside + batch_len * size_of::<M>();
        let waiting = state.messages.len() + batch_len;
        let high_water = if STATS_ENABLED {
            (state.high_water as usize).max(waiting)
        } else {
            0
        };
        MailboxStats {
            depth: waiting + cold.map_or(0, |cold| cold.completions.len()),
            high_water,
            dropped: cold.map_or(0, |cold| cold.dropped),
            expired: cold.map_or(0, |cold| cold.expired),
            bytes,
            handled: state.handled_count(batch_len),
            busy: Duration::from_nanos(self.busy.load(Ordering::Relaxed)),
            waited: Duration::from_nanos(self.waited.load(Ordering::Relaxed)),
        }
    }
}

impl<M> MailboxState<M> {
    /// Returns the number of messages of the queue that were taken out, expired ones included.
    pub(super) fn taken_count(&self, batch_len: usize) -> u64 {
        let gone = self.cold.as_ref().map_or(0, |cold| cold.removed_unhandled);
        self.front_number(batch_len) - gone
    }

    /// Returns the number of messages that were taken out to be handled: all except those that
    /// wait, and those that left in another way.
    fn handled_count(&self, batch_len: usize) -> u64 {
        let cold = self.cold.as_ref();
        let (beside, gone) = cold.map_or((0, 0), |cold| {
            (
                cold.taken_outside_queue,
                cold.removed_unhandled + cold.expired,
            )
        });
        self.front_number(batch_len) + beside - gone
    }
}

/// Returns the bytes that a lane takes, by capacity. The capacity for zero-sized values is no real
/// count.
pub(super) fn capacity_bytes<T>(lane: &VecDeque<T>) -> usize {
    lane.capacity().saturating_mul(size_of::<T>())
}
