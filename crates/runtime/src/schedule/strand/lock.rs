//! A spin lock for short critical sections: one atomic step to take it, a store to release it.
//!
//! While it is held, nothing is waited for and nothing takes long. A thread that finds it taken
//! therefore spins, and yields to the holder after a while.

use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicBool, MutPtr, Ordering, UnsafeCell, Weakening, spin_or_yield, weaken};

/// A value behind a lock. The order of the fields matters: a thread that takes the lock would
/// otherwise move a cache line for the flag alone.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, by one thread at a time.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// Like `new`, for a static.
    #[cfg(not(strowger_loom))]
    pub(crate) const fn new_const(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline(always)]
    pub(crate) fn new(value: T) -> Self {
        Self {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    #[inline(always)]
    pub(crate) fn lock(&self) -> SpinLockGuard<'_, T> {
        let acquire = weaken(Weakening::LockAcquire, Ordering::Acquire);
        let free = self
            .taken
            .compare_exchange(false, true, acquire, Ordering::Relaxed);
        if free.is_err() {
            self.lock_slowly();
        }
        SpinLockGuard {
            lock: self,
            value: self.value.get_mut(),
        }
    }

    #[cold]
    fn lock_slowly(&self) {
        let acquire = weaken(Weakening::ContendedLockAcquire, Ordering::Acquire);
        let mut round = 0;
        loop {
            spin_or_yield(round);
            round = round.saturating_add(1);
            // A load before the attempt leaves the cache line with the thread that holds the lock.
            if !self.taken.load(Ordering::Relaxed)
                && self
                    .taken
                    .compare_exchange(false, true, acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return;
            }
        }
    }
}

/// Exclusive access to the value; the lock is released when this is dropped.
#[derive(Debug)]
pub(crate) struct SpinLockGuard<'a, T> {
    lock: &'a SpinLock<T>,
    value: MutPtr<T>,
}

impl<T> Deref for SpinLockGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the lock is taken, and by this guard.
        self.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for SpinLockGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is taken by this guard, which is borrowed for as long as the value is.
        self.value.with(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for SpinLockGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let release = weaken(Weakening::LockRelease, Ordering::Release);
        self.lock.taken.store(false, release);
    }
}
