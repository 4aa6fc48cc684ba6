//! Looking again instead of sleeping, where another runtime is about to answer or to ask.
//!
//! A thread that sleeps is woken through the kernel, which takes longer than most answers. So a
//! dispatcher that was just asked by another runtime looks for more for about as long as a wake-up
//! takes, and one who asks an actor of another runtime looks for the answer for a moment. Where
//! that is in vain, the next waits sleep at once, twice as many each time. Nobody else looks: an
//! idle system sleeps, and one that is only told does not keep its runtime from its sockets.

use std::cell::Cell;
use std::hint;
use std::time::{Duration, Instant};

/// The time for which a dispatcher looks: the one who is answered may have to be woken first.
const ANSWERED: Duration = Duration::from_micros(80);

/// The time for which one who asks looks, as one who is awake needs for an answer. What else runs
/// in the same task waits meanwhile, other questions among it.
const ASKED: Duration = Duration::from_micros(4);

/// Between two looks at the clock.
const STRIDE: u32 = 32;

/// After as many waits in vain as this, the number of those that sleep grows no more.
const DOUBLINGS: u32 = 8;

/// The luck of the waits so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Luck {
    /// The number of the next waits that sleep at once.
    asleep: u32,
    /// The number of the last waits that were in vain.
    vain: u32,
}

impl Luck {
    const fn new() -> Self {
        Self { asleep: 0, vain: 0 }
    }

    /// Begins a wait; returns `true` if it is worth looking.
    pub(super) const fn begin(&mut self) -> bool {
        if self.asleep == 0 {
            return true;
        }
        self.asleep -= 1;
        false
    }

    /// Ends the looks of a wait.
    pub(super) const fn end(&mut self, found: bool) {
        if found {
            self.vain = 0;
            return;
        }
        self.asleep = 1 << self.vain;
        if self.vain < DOUBLINGS {
            self.vain += 1;
        }
    }
}

/// Looks until something is there, for this time at most; returns `true` if it is.
fn look(limit: Duration, is_there: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    loop {
        for _ in 0..STRIDE {
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

/// Looks for something to do, which another runtime may ask.
#[cold]
pub(super) fn look_for_work(is_there: impl Fn() -> bool) -> bool {
    look(ANSWERED, is_there)
}

thread_local! {
    /// The luck of those who asked on this thread.
    static LUCK: Cell<Luck> = const { Cell::new(Luck::new()) };
}

/// Looks for an answer of another runtime, if that is of use.
#[cold]
pub(super) fn look_for_answer(is_there: impl Fn() -> bool) {
    let look = |cell: &Cell<Luck>| {
        let mut luck = cell.get();
        if luck.begin() {
            luck.end(look(ASKED, is_there));
        }
        cell.set(luck);
    };
    // A thread on its way out has no luck, and sleeps.
    let _ended = LUCK.try_with(look);
}
