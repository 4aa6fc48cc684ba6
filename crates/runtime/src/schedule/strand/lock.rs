//! A lock for moments: one atomic step to take it, a store to give it back.
//!
//! Nothing is waited for and nothing long is done while it is held, so a thread that finds it taken
//! turns, and after a while gives way to the one that has it.

use std::ops::{Deref, DerefMut};

use crate::sync::{AtomicBool, MutPtr, Ordering, UnsafeCell, relax};

/// A value behind a lock. In this order, or who takes the lock moves a line for it alone.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard only, by one thread at a time.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    /// As `new`, for a static.
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
    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let free = self
            .taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        if free.is_err() {
            self.lock_slowly();
        }
        Guard {
            lock: self,
            value: self.value.get_mut(),
        }
    }

    #[cold]
    fn lock_slowly(&self) {
        let mut round = 0;
        loop {
            relax(round);
            round = round.saturating_add(1);
            // A look before the attempt leaves the line with the thread that has the lock.
            if !self.taken.load(Ordering::Relaxed)
                && self
                    .taken
                    .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return;
            }
        }
    }
}

/// The right to a value; given back when dropped.
#[derive(Debug)]
pub(crate) struct Guard<'a, T> {
    lock: &'a Lock<T>,
    value: MutPtr<T>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the lock is taken, and by this guard.
        self.value.with(|value| unsafe { &*value })
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is taken by this guard, which is borrowed for as long as the value is.
        self.value.with(|value| unsafe { &mut *value })
    }
}

impl<T> Drop for Guard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.taken.store(false, Ordering::Release);
    }
}
