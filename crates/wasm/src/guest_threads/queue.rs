//! The run queue of guest threads, in order of virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::job::Job;

/// The calls that wait for a guest thread.
#[derive(Debug, Default)]
pub(super) struct RunQueue {
    state: Mutex<QueueState>,
    /// Notified of each call, and when the queue is closed.
    changed: Condvar,
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct QueueState {
    /// By virtual time, then in order of arrival.
    calls: BTreeMap<(u64, u64), Arc<Job>>,
    arrivals: u64,
    /// Virtual time of the call that was taken last: approximately that of all running components.
    now: u64,
    /// Number of threads that wait for a call.
    idle: usize,
    closed: bool,
}

/// Maximum virtual time by which a component may trail the others when it returns. A short pause
/// between two calls costs it nothing, and an hour of idleness gains it no more than this.
const CREDIT: Duration = Duration::from_millis(50);

impl RunQueue {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns `true` if more threads wait than there are calls.
    pub(super) fn has_idle(&self) -> bool {
        let state = self.state.lock();
        state.idle > state.calls.len()
    }

    pub(super) fn push(&self, job: Arc<Job>) {
        let mut state = self.state.lock();
        if state.closed {
            drop(state);
            return job.discard();
        }
        let credit = u64::try_from(CREDIT.as_nanos()).unwrap_or(u64::MAX);
        let virtual_time = job.virtual_time(state.now.saturating_sub(credit));
        state.arrivals += 1;
        let place = (virtual_time, state.arrivals);
        state.calls.insert(place, job);
        self.waiting.store(state.calls.len(), Ordering::Relaxed);
        drop(state);
        self.changed.notify_one();
    }

    /// Waits for the next call; returns `None` once the queue is closed.
    pub(super) fn next(&self) -> Option<Arc<Job>> {
        let mut state = self.state.lock();
        loop {
            if let Some(((virtual_time, _), job)) = state.calls.pop_first() {
                state.now = state.now.max(virtual_time);
                self.waiting.store(state.calls.len(), Ordering::Relaxed);
                return Some(job);
            }
            if state.closed {
                return None;
            }
            state.idle += 1;
            self.changed.wait(&mut state);
            state.idle -= 1;
        }
    }

    /// Closes the queue and discards the waiting calls, so that the threads end.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let left = std::mem::take(&mut state.calls);
        self.waiting.store(0, Ordering::Relaxed);
        drop(state);
        self.changed.notify_all();
        for job in left.into_values() {
            job.discard();
        }
    }
}
