//! Busy polling instead of sleeping, where another runtime is about to answer or to ask.
//!
//! To wake a sleeping thread takes a call to the kernel, which takes longer than most answers. A
//! dispatcher that was just asked by another runtime therefore polls for more for about as long as
//! a wake-up takes, and a thread that asks an actor of another runtime polls for the answer for a
//! moment. If that is in vain, the next waits sleep at once, twice as many each time. No other
//! thread polls: an idle system sleeps, and a system that only receives tells does not keep its
//! runtime from its sockets.

use std::cell::Cell;
use std::hint;
use std::time::{Duration, Instant};

/// The time for which a dispatcher polls: the asker that it answered may have to be woken first.
const WORK_SPIN_LIMIT: Duration = Duration::from_micros(80);

/// The time for which an asker polls, about what a dispatcher that is awake needs for an answer.
/// Whatever else runs in the same task waits meanwhile, other asks included.
const ANSWER_SPIN_LIMIT: Duration = Duration::from_micros(4);

/// Number of polls between two looks at the clock.
const POLLS_PER_CLOCK_READ: u32 = 32;

/// After this many waits in vain, the number of waits that sleep at once grows no further.
const MAX_DOUBLINGS: u32 = 8;

/// The success of the waits so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SpinBackoff {
    /// Number of the next waits that sleep at once.
    skips: u32,
    /// Number of the last waits that were in vain.
    misses: u32,
}

impl SpinBackoff {
    const fn new() -> Self {
        Self {
            skips: 0,
            misses: 0,
        }
    }

    /// Begins a wait; returns `true` if polling is worthwhile.
    pub(super) const fn begin(&mut self) -> bool {
        if self.skips == 0 {
            return true;
        }
        self.skips -= 1;
        false
    }

    /// Ends the polling of a wait.
    pub(super) const fn end(&mut self, found: bool) {
        if found {
            self.misses = 0;
            return;
        }
        self.skips = 1 << self.misses;
        if self.misses < MAX_DOUBLINGS {
            self.misses += 1;
        }
    }
}

/// Polls until the condition holds, for this time at most; returns `true` if it does.
fn spin(limit: Duration, is_there: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        for _ in 0..POLLS_PER_CLOCK_READ {
            if is_there() {
                return true;
            }
            hint::spin_loop();
        }
        if begun.elapsed() >= limit {
            return false;
        }
    }
}

/// Polls for work that another runtime may send.
#[cold]
pub(super) fn spin_for_work(is_there: impl Fn() -> bool) -> bool {
    spin(WORK_SPIN_LIMIT, is_there)
}

thread_local! {
    /// The success of the asks of this thread.
    static ASK_BACKOFF: Cell<SpinBackoff> = const { Cell::new(SpinBackoff::new()) };
}

/// Polls for an answer of another runtime, if that is of use.
#[cold]
pub(super) fn spin_for_answer(is_there: impl Fn() -> bool) {
    let look = |cell: &Cell<SpinBackoff>| {
        let mut backoff = cell.get();
        if backoff.begin() {
            backoff.end(spin(ANSWER_SPIN_LIMIT, is_there));
        }
        cell.set(backoff);
    };
    // A thread that is ending has no record, and sleeps.
    let _ended = ASK_BACKOFF.try_with(look);
}
