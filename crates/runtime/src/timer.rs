//! Timers of an actor.
//!
//! A timer is an entry in the heap of its actor. The receive loop of the actor waits for the
//! earliest timer with a single entry in the timer wheel of the system ([`Alarms`]). Timers
//! therefore end with the incarnation that set them: there is neither a task nor a message under
//! way that could reach the next incarnation.
//!
//! Timers have a resolution of one millisecond: a timer fires in the millisecond after its time,
//! later if the machine is busy, and never earlier. The timers of one actor fire in the order of
//! their times, and in the order in which they were set if their times are equal.

mod alarm;
mod earliest;
mod wheel;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::clock;
use crate::exit::drop_all_caught;
use crate::seeded_bug::{Bug, seeded};

use alarm::Alarm;
pub(crate) use alarm::Alarms;
pub use earliest::EarliestTimer;

/// Identifies a timer of one incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey(u64);

enum TimerKind<M> {
    Once(M),
    Every(Duration, Box<dyn FnMut() -> M + Send>),
}

#[derive(PartialEq, Eq)]
struct HeapEntry {
    at: Instant,
    key: u64,
}

impl Ord for HeapEntry {
    /// Orders the earliest timer as the greatest, and of two at the same instant the one that was
    /// set first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at).then(other.key.cmp(&self.key))
    }
}

impl PartialOrd for HeapEntry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub(crate) struct Timers<M> {
    heap: BinaryHeap<HeapEntry>,
    live: FxHashMap<u64, TimerKind<M>>,
    next_key: u64,
    alarm: Option<Alarm>,
}

impl<M> Timers<M> {
    pub(crate) fn new() -> Self {
        Self {
            heap: BinaryHeap::new(),
            live: FxHashMap::default(),
            next_key: 0,
            alarm: None,
        }
    }

    pub(crate) fn once(&mut self, at: Instant, message: M) -> TimerKey {
        self.insert(at, TimerKind::Once(message))
    }

    pub(crate) fn every(
        &mut self,
        first: Instant,
        period: Duration,
        make: Box<dyn FnMut() -> M + Send>,
    ) -> TimerKey {
        // A period of zero would keep the actor from doing anything else.
        self.insert(
            first,
            TimerKind::Every(period.max(Duration::from_millis(1)), make),
        )
    }

    fn insert(&mut self, at: Instant, kind: TimerKind<M>) -> TimerKey {
        let key = self.next_key;
        self.next_key += 1;
        self.heap.push(HeapEntry { at, key });
        self.live.insert(key, kind);
        TimerKey(key)
    }

    /// Cancels a timer. Returns `true` if it had not fired yet.
    pub(crate) fn cancel(&mut self, key: TimerKey) -> bool {
        if seeded(Bug::CancelledTimerFires) {
            return self.live.contains_key(&key.0);
        }
        let cancelled = self.live.remove(&key.0).is_some();
        // The heap entries of cancelled timers are removed when they are due, or here if they
        // outnumber the others.
        if self.heap.len() > 64 && self.heap.len() > 2 * self.live.len() {
            let live = &self.live;
            self.heap.retain(|due| live.contains_key(&due.key));
        }
        cancelled
    }

    /// Drops all timers and their messages.
    pub(crate) fn discard(self) {
        drop(self.alarm);
        drop_all_caught(self.live.into_values());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Returns `true` if a timer is due at `now`.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        self.next_time().is_some_and(|at| at <= now)
    }

    /// Waits for the earliest timer: returns the time at which to fire it if it is due, or
    /// registers the waker for it.
    pub(crate) fn poll_due(
        &mut self,
        now: Instant,
        alarms: &Arc<Alarms>,
        cx: &Context<'_>,
    ) -> Poll<Instant> {
        match self.next_time() {
            Some(at) if at <= now => Poll::Ready(now),
            Some(at) => alarms.poll_at(&mut self.alarm, at, cx).map(|()| at),
            None => Poll::Pending,
        }
    }

    /// Returns the time of the earliest timer.
    fn next_time(&mut self) -> Option<Instant> {
        while let Some(due) = self.heap.peek() {
            if self.live.contains_key(&due.key) {
                return Some(due.at);
            }
            self.heap.pop();
        }
        None
    }

    /// Returns the message of the earliest timer, which is due at `now`.
    pub(crate) fn fire(&mut self, now: Instant) -> M {
        let due = self.heap.pop().expect("the caller looked at it");
        let kind = self
            .live
            .remove(&due.key)
            .expect("the caller checked that it lives");
        match kind {
            TimerKind::Once(message) => message,
            TimerKind::Every(period, mut make) => {
                let message = make();
                // Missed ticks are skipped, and the phase is kept.
                let late = now.saturating_duration_since(due.at).as_nanos() / period.as_nanos();
                let skipped = u32::try_from(late).unwrap_or(u32::MAX).saturating_add(1);
                let at = clock::saturating_add(due.at, period.saturating_mul(skipped));
                self.heap.push(HeapEntry { at, key: due.key });
                self.live.insert(due.key, TimerKind::Every(period, make));
                message
            }
        }
    }
}

impl<M> fmt::Debug for Timers<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timers")
            .field("live", &self.live.len())
            .finish_non_exhaustive()
    }
}
