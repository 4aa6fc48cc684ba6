//! The counters of calls in progress, and the sleep of the ticker thread.

use crate::sync::{AtomicBool, AtomicU64, Ordering, Weakening, weaken, weaken_or, weakened};

/// Counters of calls that have begun and of calls that have ended, in several lanes. Concurrent
/// callers count in different lanes, so that they do not contend for a cache line.
#[derive(Debug)]
pub(super) struct CallCounters<const LANES: usize> {
    lanes: [Lane; LANES],
    parked: AtomicBool,
}

#[derive(Debug)]
#[repr(align(128))]
struct Lane {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Lane {
    fn new() -> Self {
        Self {
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
        }
    }
}

impl<const LANES: usize> CallCounters<LANES> {
    pub(super) fn new() -> Self {
        Self {
            lanes: std::array::from_fn(|_| Lane::new()),
            parked: AtomicBool::new(false),
        }
    }

    /// Counts the beginning of a call; returns `true` if the caller has to wake the ticker thread.
    pub(super) fn begin(&self, lane: usize) -> bool {
        // This and the `fetch_add` of 0 in `park_until_call` both modify the counter, so one of
        // them comes second and sees what the other did before: either the thread sees this call,
        // or this call sees that the thread is parked.
        let acq_rel = weaken_or(
            Weakening::CallBeginAcquire,
            Ordering::AcqRel,
            Ordering::Release,
        );
        self.lanes[lane].begun.fetch_add(1, acq_rel);
        self.parked.load(Ordering::Relaxed)
    }

    /// Counts the end of a call.
    pub(super) fn end(&self, lane: usize) {
        let release = weaken(Weakening::CallEndRelease, Ordering::Release);
        self.lanes[lane].ended.fetch_add(1, release);
    }

    /// Returns the number of calls that have begun, and `true` if one of them is in progress.
    pub(super) fn count(&self) -> (u64, bool) {
        self.count_by(|begun| begun.load(Ordering::Acquire))
    }

    /// Parks until more than `before` calls have begun, one is in progress, or `is_over` returns
    /// `true`.
    pub(super) fn park_until_call(&self, before: u64, is_over: impl Fn() -> bool, park: impl Fn()) {
        self.parked.store(true, Ordering::Relaxed);
        // A read-modify-write, not a load: it orders this against `begin`.
        let acq_rel = weaken_or(
            Weakening::TickerParkRelease,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        let look = |begun: &AtomicU64| begun.fetch_add(0, acq_rel);
        let is_idle =
            || self.count_by(look) == (before, false) || weakened(Weakening::TickerParkChecksCalls);
        while is_idle() && !is_over() {
            park();
        }
        self.parked.store(false, Ordering::Relaxed);
    }

    fn count_by(&self, begun: impl Fn(&AtomicU64) -> u64) -> (u64, bool) {
        let sum =
            |read: &dyn Fn(&Lane) -> u64| self.lanes.iter().map(read).fold(0, u64::wrapping_add);
        // Read `ended` first: the end of a call is never counted without its beginning.
        let ended = sum(&|lane| lane.ended.load(Ordering::Acquire));
        let begun = sum(&|lane| begun(&lane.begun));
        (begun, begun != ended)
    }
}

#[cfg(all(test, strowger_loom))]
mod loom {
    use std::sync::Arc;

    use ::loom::model;
    use ::loom::sync::{Condvar, Mutex};
    use ::loom::thread;

    use super::CallCounters;

    /// The ticker thread.
    struct Ticker {
        calls: CallCounters<2>,
        called: Mutex<bool>,
        bell: Condvar,
    }

    impl Ticker {
        fn new() -> Arc<Self> {
            Arc::new(Self {
                calls: CallCounters::new(),
                called: Mutex::new(false),
                bell: Condvar::new(),
            })
        }

        fn begin(&self, lane: usize) {
            if self.calls.begin(lane) {
                *self.called.lock().expect("no panic before") = true;
                self.bell.notify_one();
            }
        }

        fn park(&self) {
            let mut called = self.called.lock().expect("no panic before");
            while !*called {
                called = self.bell.wait(called).expect("no panic before");
            }
            *called = false;
        }
    }

    #[test]
    fn ticker_does_not_park_during_a_call() {
        model(|| {
            let ticker = Ticker::new();
            let caller = Arc::clone(&ticker);
            let caller = thread::spawn(move || {
                caller.begin(0);
                caller.calls.end(0);
                caller.begin(1);
            });
            let mut before = (0, false);
            // If it stayed parked forever, loom would report a deadlock.
            while before.0 < 2 {
                if before.1 {
                    thread::yield_now();
                } else {
                    ticker
                        .calls
                        .park_until_call(before.0, || false, || ticker.park());
                }
                before = ticker.calls.count();
            }
            caller.join().expect("no panic");
            assert_eq!(ticker.calls.count(), (2, true));
        });
    }

    #[test]
    fn call_end_is_never_counted_before_its_begin() {
        model(|| {
            let ticker = Ticker::new();
            let caller = Arc::clone(&ticker);
            let caller = thread::spawn(move || {
                caller.calls.begin(0);
                caller.calls.end(0);
            });
            let seen = ticker.calls.count();
            assert!(
                [(0, false), (1, true), (1, false)].contains(&seen),
                "{seen:?}"
            );
            caller.join().expect("no panic");
        });
    }
}
