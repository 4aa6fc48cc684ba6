//! The run queue of guest threads, in the order of virtual time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::job::Job;

/// Calls that wait for a guest thread.
#[derive(Debug, Default)]
pub(super) struct RunQueue {
    line: Mutex<Line>,
    /// Told of each call, and of the end.
    news: Condvar,
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Line {
    /// By virtual time, and then in the order in which they came.
    calls: BTreeMap<(u64, u64), Arc<Job>>,
    came: u64,
    /// The virtual time of the call that was taken out last: where all that compute are, about.
    now: u64,
    /// The threads that wait for a call.
    idle: usize,
    closed: bool,
}

/// How far behind the others a component may be that was away for a moment: what it has between
/// two calls is not lost to it, and what it did not use in an hour is.
const CREDIT: Duration = Duration::from_millis(50);

impl RunQueue {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns `true` if a thread waits for a call.
    pub(super) fn has_idle(&self) -> bool {
        let line = self.line.lock();
        line.idle > line.calls.len()
    }

    pub(super) fn push(&self, job: Arc<Job>) {
        let mut line = self.line.lock();
        if line.closed {
            drop(line);
            return job.discard();
        }
        let credit = u64::try_from(CREDIT.as_nanos()).unwrap_or(u64::MAX);
        let stand = job.stand(line.now.saturating_sub(credit));
        line.came += 1;
        let place = (stand, line.came);
        line.calls.insert(place, job);
        self.waiting.store(line.calls.len(), Ordering::Relaxed);
        drop(line);
        self.news.notify_one();
    }

    /// Waits for the call that comes next; `None` at the end.
    pub(super) fn next(&self) -> Option<Arc<Job>> {
        let mut line = self.line.lock();
        loop {
            if let Some(((stand, _), job)) = line.calls.pop_first() {
                line.now = line.now.max(stand);
                self.waiting.store(line.calls.len(), Ordering::Relaxed);
                return Some(job);
            }
            if line.closed {
                return None;
            }
            line.idle += 1;
            self.news.wait(&mut line);
            line.idle -= 1;
        }
    }

    /// Ends the threads, once they have taken out what is there.
    pub(super) fn close(&self) {
        let mut line = self.line.lock();
        line.closed = true;
        let left = std::mem::take(&mut line.calls);
        self.waiting.store(0, Ordering::Relaxed);
        drop(line);
        self.news.notify_all();
        for job in left.into_values() {
            job.discard();
        }
    }
}
