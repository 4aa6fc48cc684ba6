//! Atomics and cells, from the standard library or as loom checks them.

mod weakening;

pub(crate) use weakening::{Weakening, weaken, weaken_or, weakened};

#[cfg(not(strowger_loom))]
pub(crate) use plain::*;

#[cfg(strowger_loom)]
pub(crate) use checked::*;

#[cfg(not(strowger_loom))]
mod plain {
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };

    pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard};

    /// Releases a lock until the bell rings.
    pub(crate) fn wait<'a, T>(bell: &Condvar, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        bell.wait(&mut guard);
        guard
    }

    /// Spins, or yields to other threads, in a loop that waits for one of them.
    pub(crate) fn spin_or_yield(round: u32) {
        if round < 8 {
            for _ in 0..16 << round.min(4) {
                std::hint::spin_loop();
            }
        } else {
            std::thread::yield_now();
        }
    }

    /// The cell of the standard library behind loom's interface.
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(std::cell::UnsafeCell::new(value))
        }

        #[inline(always)]
        pub(crate) const fn get_mut(&self) -> MutPtr<T> {
            MutPtr(self.0.get())
        }
    }

    /// A pointer into a cell; loom's own records how long it lives.
    #[derive(Debug)]
    pub(crate) struct MutPtr<T>(*mut T);

    impl<T> MutPtr<T> {
        #[inline(always)]
        pub(crate) fn with<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0)
        }
    }
}

#[cfg(strowger_loom)]
mod checked {
    use std::ops::Deref;

    pub(crate) use loom::cell::{MutPtr, UnsafeCell};
    pub(crate) use loom::sync::atomic::Ordering;
    pub(crate) use loom::sync::{Condvar, MutexGuard};

    /// Loom's atomic. Dropping it is an access that requires exclusive access: the thread that
    /// frees it must have seen the end of every other access, loads included, which loom does not
    /// check by itself.
    macro_rules! atomic {
        ($($name:ident: $value:ty),+) => {$(
            #[derive(Debug, Default)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            impl $name {
                pub(crate) fn new(value: $value) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }
            }

            impl Deref for $name {
                type Target = loom::sync::atomic::$name;

                fn deref(&self) -> &Self::Target {
                    &self.0
                }
            }

            impl Drop for $name {
                fn drop(&mut self) {
                    // A model that failed is over; a second panic would hide the reason.
                    if !std::thread::panicking() {
                        self.0.with_mut(|_| ());
                    }
                }
            }
        )+};
    }

    atomic!(AtomicU8: u8, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);

    /// Loom's own does not notice either when it is dropped too early, nor can it be made to.
    #[derive(Debug, Default)]
    pub(crate) struct AtomicBool(AtomicU8);

    impl AtomicBool {
        pub(crate) fn new(value: bool) -> Self {
            Self(AtomicU8::new(value.into()))
        }

        #[track_caller]
        pub(crate) fn load(&self, order: Ordering) -> bool {
            self.0.load(order) != 0
        }

        #[track_caller]
        pub(crate) fn store(&self, value: bool, order: Ordering) {
            self.0.store(value.into(), order);
        }

        #[track_caller]
        pub(crate) fn swap(&self, value: bool, order: Ordering) -> bool {
            self.0.swap(value.into(), order) != 0
        }

        #[track_caller]
        pub(crate) fn fetch_or(&self, value: bool, order: Ordering) -> bool {
            self.0.fetch_or(value.into(), order) != 0
        }

        #[track_caller]
        pub(crate) fn compare_exchange(
            &self,
            now: bool,
            next: bool,
            success: Ordering,
            failure: Ordering,
        ) -> Result<bool, bool> {
            let before = self
                .0
                .compare_exchange(now.into(), next.into(), success, failure);
            before.map(|bit| bit != 0).map_err(|bit| bit != 0)
        }
    }

    /// Loom's lock behind the interface of `parking_lot`.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("a model ends with its first panic")
        }
    }

    pub(crate) fn wait<'a, T>(bell: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let guard = bell.wait(guard);
        guard.expect("a model ends with its first panic")
    }

    pub(crate) fn spin_or_yield(_round: u32) {
        loom::thread::yield_now();
    }
}
