//! A value that can be closed while other threads may be adding to it.

use super::{CLOSED, NON_EMPTY_ONCE, SHARED, STOP_TOGETHER};
use crate::sync::{AtomicU8, Mutex, MutexGuard, Ordering, Weakening, weakened};

/// A value behind a lock, with a flag that tells if more may be added to it.
///
/// Most nodes never have a child, so a mutex that was never entered is closed without the lock. A
/// thread that enters sets `NON_EMPTY_ONCE` under the lock and learns from the same operation if
/// the mutex was closed before. A thread that closes an unused mutex learns from its own operation
/// if somebody has entered. Both are read-modify-writes of one word, so one of them comes second
/// and sees the other, whatever their memory orderings. Where nobody but the owner can enter, a
/// plain load and store is enough. Once `NON_EMPTY_ONCE` is set, both sides take the lock, which
/// also protects the value itself.
#[derive(Default)]
pub(super) struct ClosableMutex<T> {
    /// The bits `NON_EMPTY_ONCE`, `CLOSED`, `STOP_TOGETHER` and `SHARED`. Changed under the lock,
    /// unless the mutex has never been entered.
    state: AtomicU8,
    value: Mutex<T>,
}

impl<T> ClosableMutex<T> {
    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock()
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.state.load(Ordering::Acquire) & flag != 0
    }

    /// Takes the lock in order to add something. Returns `None` if the mutex is closed.
    pub(super) fn lock_if_open(&self) -> Option<MutexGuard<'_, T>> {
        let value = self.value.lock();
        let flags = match self.state.load(Ordering::Acquire) {
            flags if flags & NON_EMPTY_ONCE == 0 => {
                let before = self.state.fetch_or(NON_EMPTY_ONCE, Ordering::AcqRel);
                if weakened(Weakening::EntrySeesClose) {
                    flags
                } else {
                    before
                }
            }
            flags => flags,
        };
        (flags & CLOSED == 0).then_some(value)
    }

    /// Closes the mutex if it is empty, and returns `true` if it did. Only called by the owner.
    pub(super) fn close_if(&self, is_empty: impl FnOnce(&T) -> bool) -> bool {
        let flags = self.state.load(Ordering::Relaxed);
        if flags & (NON_EMPTY_ONCE | SHARED) == 0 {
            // No other thread can enter, so the load and the store need not be one operation.
            self.state.store(flags | CLOSED, Ordering::Release);
            return true;
        }
        let close = || {
            let (ok, failed) = (Ordering::AcqRel, Ordering::Relaxed);
            self.state
                .compare_exchange(flags, flags | CLOSED, ok, failed)
        };
        let close = || close().is_ok() || weakened(Weakening::CloseSeesEntry);
        if flags & NON_EMPTY_ONCE == 0 && close() {
            return true;
        }
        let value = self.value.lock();
        let none = is_empty(&value);
        if none {
            self.state.fetch_or(CLOSED, Ordering::AcqRel);
        }
        none
    }

    /// Closes the mutex: later attempts to enter it fail.
    pub(super) fn close(&self) {
        let value = self.value.lock();
        self.state.fetch_or(CLOSED, Ordering::AcqRel);
        drop(value);
    }

    /// Opens the mutex again. Only called by the owner.
    pub(super) fn open(&self) {
        let flags = self.state.load(Ordering::Acquire);
        if flags & CLOSED == 0 {
            return;
        }
        if flags & (NON_EMPTY_ONCE | SHARED) == 0 {
            self.state.store(flags & !CLOSED, Ordering::Release);
        } else {
            self.state.fetch_and(!CLOSED, Ordering::AcqRel);
        }
    }

    pub(super) fn set_stop_together(&self) {
        self.state.fetch_or(STOP_TOGETHER, Ordering::AcqRel);
    }

    /// Records that other threads than the owner will enter. Must be called before any of them can.
    pub(super) fn set_shared(&self) {
        self.state.fetch_or(SHARED, Ordering::AcqRel);
    }
}
