//! Something that is shut while others may come in.

use super::{OTHERS, SHUT, TOGETHER, USED};
use crate::sync::{AtomicU8, Mutex, MutexGuard, Ordering};

/// A value behind a lock, and whether more may come into it.
///
/// Most nodes never have a child, so what never had one is shut without the lock. Whoever comes in
/// notes that under the lock, and sees by the same step whether it was shut before; who shuts sees
/// by its step whether somebody came in before. The steps are read-modify-writes of one word, so
/// one of the two comes second, whatever their orderings; the value itself is behind the lock.
#[derive(Default)]
pub(super) struct Latch<T> {
    /// `USED`, `SHUT`, `TOGETHER`, `OTHERS`. Changes under the lock, but where nobody ever came in.
    state: AtomicU8,
    value: Mutex<T>,
}

impl<T> Latch<T> {
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock()
    }

    pub(super) fn has(&self, mark: u8) -> bool {
        self.state.load(Ordering::Acquire) & mark != 0
    }

    /// Takes the lock for one who comes in; none if it is shut.
    pub(super) fn enter(&self) -> Option<MutexGuard<'_, T>> {
        let value = self.value.lock();
        let marks = match self.state.load(Ordering::Acquire) {
            marks if marks & USED == 0 => self.state.fetch_or(USED, Ordering::AcqRel),
            marks => marks,
        };
        (marks & SHUT == 0).then_some(value)
    }

    /// Shuts it if nobody is in; returns `true` if so. Only its owner asks.
    pub(super) fn shut_if(&self, is_empty: impl FnOnce(&T) -> bool) -> bool {
        let marks = self.state.load(Ordering::Relaxed);
        if marks & (USED | OTHERS) == 0 {
            // Nobody but the owner could come in.
            self.state.store(marks | SHUT, Ordering::Release);
            return true;
        }
        let shut = || {
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            self.state.compare_exchange(marks, marks | SHUT, ok, failed)
        };
        if marks & USED == 0 && shut().is_ok() {
            return true;
        }
        let value = self.value.lock();
        let none = is_empty(&value);
        if none {
            self.state.fetch_or(SHUT, Ordering::AcqRel);
        }
        none
    }

    /// Shuts it: whoever comes in later is refused.
    pub(super) fn shut(&self) {
        let value = self.value.lock();
        self.state.fetch_or(SHUT, Ordering::AcqRel);
        drop(value);
    }

    /// Opens it again. Only its owner does.
    pub(super) fn open(&self) {
        let marks = self.state.load(Ordering::Acquire);
        if marks & SHUT == 0 {
            return;
        }
        if marks & (USED | OTHERS) == 0 {
            self.state.store(marks & !SHUT, Ordering::Release);
        } else {
            self.state.fetch_and(!SHUT, Ordering::AcqRel);
        }
    }

    pub(super) fn mark_together(&self) {
        self.state.fetch_or(TOGETHER, Ordering::AcqRel);
    }

    /// Notes that not only the owner lets somebody in, before anybody else can.
    pub(super) fn mark_others(&self) {
        self.state.fetch_or(OTHERS, Ordering::AcqRel);
    }
}
