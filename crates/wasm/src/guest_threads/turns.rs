//! The scheduling state of a call: idle, queued or running.
//!
//! ```text
//!          wake           begin            pause
//!   Idle --------> Queued -----> Running ---------> Idle
//!                    ^              | wake
//!                    |   pause      v
//!                    +----------- Woken
//! ```
//!
//! The thread that changes the state to `Queued` pushes the call to the run queue, so that it is
//! queued only once. The thread that takes it from the queue has its turn alone.

use crate::sync::{AtomicU8, Ordering, Weakening, weaken_or, weakened};

/// Waits for something other than a thread.
const IDLE: u8 = 0;
/// In the run queue.
const QUEUED: u8 = 1;
/// A thread polls it.
const RUNNING: u8 = 2;
/// A thread polls it, and it was woken meanwhile.
const WOKEN: u8 = 3;
/// The call has finished.
const DONE: u8 = 4;

/// The scheduling state of one call.
pub(super) struct TurnState(AtomicU8);

impl TurnState {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(IDLE))
    }

    /// Wakes the call; returns `true` if the caller has to queue it.
    pub(super) fn wake(&self) -> bool {
        let next = |state| match state {
            IDLE => QUEUED,
            RUNNING if !weakened(Weakening::CallWakeDuringTurnNoted) => WOKEN,
            // Written even if unchanged: the next turn reads this value, and so sees what was done
            // before the wake.
            as_it_is => as_it_is,
        };
        let next = |state| {
            let to = next(state);
            (to != state || !weakened(Weakening::RepeatedCallWakeWritten)).then_some(to)
        };
        self.0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            == Ok(IDLE)
    }

    /// Begins a turn, which sees everything done before the wakes that found the call queued.
    pub(super) fn begin(&self) {
        let acq_rel = weaken_or(
            Weakening::CallTurnAcquire,
            Ordering::AcqRel,
            Ordering::Release,
        );
        self.0.swap(RUNNING, acq_rel);
    }

    /// Ends a turn in which the call did not finish. Returns `true` if it was woken meanwhile; then
    /// the caller has to queue it.
    pub(super) fn pause(&self) -> bool {
        let idle = self
            .0
            .compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire);
        if idle.is_err() {
            // Not a plain store: another wake may have found it `WOKEN` in between, and the next
            // turn has to see what was done before that wake.
            if weakened(Weakening::CallRequeuedAtomically) {
                self.0.store(QUEUED, Ordering::Release);
            } else {
                self.0.swap(QUEUED, Ordering::AcqRel);
            }
        }
        idle.is_err()
    }

    /// Records that the call has finished.
    pub(super) fn end(&self) {
        self.0.swap(DONE, Ordering::AcqRel);
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) == DONE
    }
}

#[cfg(all(test, strowger_loom))]
mod loom {
    use std::sync::Arc;

    use ::loom::model;
    use ::loom::sync::Mutex;
    use ::loom::sync::atomic::{AtomicU32, Ordering};
    use ::loom::thread;

    use super::TurnState;

    /// A call that ends when it has seen the last news.
    struct Call {
        turns: TurnState,
        last: u32,
        news: AtomicU32,
        /// The news seen by its turns; `None` while a thread runs it.
        seen: Mutex<Option<u32>>,
        queue: Mutex<u32>,
    }

    impl Call {
        fn new(last: u32) -> Arc<Self> {
            Arc::new(Self {
                turns: TurnState::new(),
                last,
                news: AtomicU32::new(0),
                seen: Mutex::new(Some(0)),
                queue: Mutex::new(0),
            })
        }

        fn wake(&self) {
            if self.turns.wake() {
                self.push();
            }
        }

        fn push(&self) {
            let mut queue = self.queue.lock().expect("no panic while locked");
            assert_eq!(*queue, 0, "it is queued once");
            *queue = 1;
        }

        fn tell(&self, news: u32) {
            // Relaxed is enough: the wake orders it before the next turn.
            self.news.store(news, Ordering::Relaxed);
            self.wake();
        }

        /// Runs the call until it is not queued.
        fn run(&self) {
            while std::mem::take(&mut *self.queue.lock().expect("no panic while locked")) == 1 {
                self.turns.begin();
                let mut seen = self.seen.lock().expect("no panic while locked");
                let before = seen.take().expect("one thread has it");
                drop(seen);
                let now = before.max(self.news.load(Ordering::Relaxed));
                if now == self.last {
                    return self.turns.end();
                }
                *self.seen.lock().expect("no panic while locked") = Some(now);
                if self.turns.pause() {
                    self.push();
                }
            }
        }
    }

    #[test]
    fn call_gets_a_turn_after_each_wake() {
        model(|| {
            let call = Call::new(2);
            call.wake();
            let other = Arc::clone(&call);
            let other = thread::spawn(move || {
                other.tell(1);
                other.tell(2);
            });
            call.run();
            other.join().expect("no panic");
            call.run();
            assert!(call.turns.is_over(), "the last news wait for ever");
        });
    }

    #[test]
    fn call_runs_on_one_thread_at_a_time() {
        model(|| {
            let call = Call::new(1);
            let other = Arc::clone(&call);
            let other = thread::spawn(move || {
                other.tell(1);
                other.run();
            });
            call.wake();
            call.run();
            other.join().expect("no panic");
            call.run();
            assert!(call.turns.is_over(), "the news wait for ever");
        });
    }
}
