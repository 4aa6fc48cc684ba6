//! Timers of an actor.
//!
//! A timer is an entry in its actor's own heap; the actor's receive loop waits for the earliest,
//! with one entry in the wheel of the system ([`Alarms`]). So timers end with the incarnation that
//! set them: there is no task and no message on its way that could reach the next one.
//!
//! Timers count in milliseconds: one goes off in the millisecond after its time, or later if the
//! machine is busy, and never before. Those of one actor go off in the order of their times, and
//! at equal times as they were set.

mod alarm;
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
use crate::exit::discard;
use crate::planted::{Bug, planted};

use alarm::Alarm;
pub(crate) use alarm::Alarms;

/// Names a timer of one incarnation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimerKey(u64);

enum Kind<M> {
    Once(M),
    Every(Duration, Box<dyn FnMut() -> M + Send>),
}

#[derive(PartialEq, Eq)]
struct Due {
    at: Instant,
    key: u64,
}

impl Ord for Due {
    /// The earliest is the greatest, and of two at the same instant the one that was set first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.cmp(&self.at).then(other.key.cmp(&self.key))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

pub(crate) struct Timers<M> {
    heap: BinaryHeap<Due>,
    live: FxHashMap<u64, Kind<M>>,
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
        self.insert(at, Kind::Once(message))
    }

    pub(crate) fn every(
        &mut self,
        first: Instant,
        period: Duration,
        make: Box<dyn FnMut() -> M + Send>,
    ) -> TimerKey {
        // A period of nothing would never let the actor do anything else.
        self.insert(
            first,
            Kind::Every(period.max(Duration::from_millis(1)), make),
        )
    }

    fn insert(&mut self, at: Instant, kind: Kind<M>) -> TimerKey {
        let key = self.next_key;
        self.next_key += 1;
        self.heap.push(Due { at, key });
        self.live.insert(key, kind);
        TimerKey(key)
    }

    /// Removes a timer; whether it was still to come.
    pub(crate) fn cancel(&mut self, key: TimerKey) -> bool {
        if planted(Bug::CancelledTimerComes) {
            return self.live.contains_key(&key.0);
        }
        let cancelled = self.live.remove(&key.0).is_some();
        // Entries of cancelled timers leave the heap when due, or here when they outnumber.
        if self.heap.len() > 64 && self.heap.len() > 2 * self.live.len() {
            let live = &self.live;
            self.heap.retain(|due| live.contains_key(&due.key));
        }
        cancelled
    }

    /// Drops all timers, with what they would have sent.
    pub(crate) fn end(self) {
        drop(self.alarm);
        discard(self.live.into_values());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// The next message that is due, or pending with the waker set for the earliest timer.
    pub(crate) fn poll_due(
        &mut self,
        now: Instant,
        alarms: &Arc<Alarms>,
        cx: &Context<'_>,
    ) -> Poll<M> {
        loop {
            let Some(due) = self.heap.peek() else {
                return Poll::Pending;
            };
            if !self.live.contains_key(&due.key) {
                self.heap.pop();
            } else if due.at <= now {
                return Poll::Ready(self.fire(now));
            } else {
                let at = due.at;
                if alarms.poll_at(&mut self.alarm, at, cx).is_pending() {
                    return Poll::Pending;
                }
                return Poll::Ready(self.fire(at));
            }
        }
    }

    fn fire(&mut self, now: Instant) -> M {
        let due = self.heap.pop().expect("the caller looked at it");
        let kind = self
            .live
            .remove(&due.key)
            .expect("the caller checked that it lives");
        match kind {
            Kind::Once(message) => message,
            Kind::Every(period, mut make) => {
                let message = make();
                // Ticks that were missed are skipped, and the phase is kept.
                let late = now.saturating_duration_since(due.at).as_nanos() / period.as_nanos();
                let skipped = u32::try_from(late).unwrap_or(u32::MAX).saturating_add(1);
                let at = clock::later(due.at, period.saturating_mul(skipped));
                self.heap.push(Due { at, key: due.key });
                self.live.insert(due.key, Kind::Every(period, make));
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
