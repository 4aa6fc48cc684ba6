//! Looking again instead of sleeping, where another runtime is about to answer or to ask.
//!
//! A thread that sleeps is woken through the kernel, which takes longer than most answers. So one
//! that waits for another runtime first looks again a few times, and lets all other tasks of its
//! thread run between two looks. That lasts about as long as waking a thread does. Where it was in
//! vain, the next waits sleep at once, twice as many each time. Nobody looks again who was not just
//! told by another runtime, or asked one: an idle system sleeps.

use std::cell::Cell;

use super::Scheduler;

/// The looks of one wait: some tens of microseconds on a thread that has nothing else to do.
const LOOKS: u32 = 1024;

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

    /// Begins a wait, with so many looks.
    pub(super) const fn looks(&mut self) -> u32 {
        if self.asleep == 0 {
            return LOOKS;
        }
        self.asleep -= 1;
        0
    }

    /// Notes that the looks of a wait were in vain.
    pub(super) const fn in_vain(&mut self) {
        self.asleep = 1 << self.vain;
        if self.vain < DOUBLINGS {
            self.vain += 1;
        }
    }

    /// Notes that one of the looks of a wait was the last.
    pub(super) const fn good(&mut self) {
        self.vain = 0;
    }
}

thread_local! {
    /// The luck of those who asked on this thread.
    static LUCK: Cell<Luck> = const { Cell::new(Luck::new()) };
}

/// Changes the luck of this thread; one on its way out has none.
fn luck<R: Default>(change: impl FnOnce(&mut Luck) -> R) -> R {
    let changed = LUCK.try_with(|cell| {
        let mut luck = cell.get();
        let result = change(&mut luck);
        cell.set(luck);
        result
    });
    changed.unwrap_or_default()
}

/// The wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Looks {
    /// The looks that are left, once it began to wait.
    left: Option<u32>,
}

impl Looks {
    /// Returns `true` if the one who waits for an actor there looks again before it sleeps.
    #[inline]
    pub(crate) fn again(&mut self, scheduler: &Scheduler) -> bool {
        let begin = || match scheduler.is_elsewhere() {
            true => luck(Luck::looks),
            false => 0,
        };
        let left = self.left.get_or_insert_with(begin);
        if *left == 0 {
            return false;
        }
        *left -= 1;
        if *left == 0 {
            luck(Luck::in_vain);
        }
        *left > 0
    }

    /// Notes that the answer came.
    #[inline]
    pub(crate) fn end(&self) {
        if self.left > Some(0) {
            luck(Luck::good);
        }
    }
}
