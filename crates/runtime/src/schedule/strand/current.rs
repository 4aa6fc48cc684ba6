//! The value that the current thread works for.

use std::cell::Cell;
use std::ptr;
use std::thread::LocalKey;

/// A thread-local place for the value that the thread works for.
pub(crate) struct CurrentRef<T>(Cell<*const T>);

impl<T> CurrentRef<T> {
    pub(crate) const fn new() -> Self {
        Self(Cell::new(ptr::null()))
    }

    /// Runs `work` on behalf of a value.
    #[inline(always)]
    pub(crate) fn enter<R>(
        place: &'static LocalKey<Self>,
        value: &T,
        work: impl FnOnce() -> R,
    ) -> R {
        let _restore = RestoreCurrent(place, place.with(|current| current.0.replace(value)));
        work()
    }

    /// Passes the value that the thread works for to `look`.
    #[inline(always)]
    pub(crate) fn with<R>(place: &'static LocalKey<Self>, look: impl FnOnce(Option<&T>) -> R) -> R {
        // A thread that is ending works for nothing.
        let value = place.try_with(|current| current.0.get());
        let value = value.unwrap_or(ptr::null());
        // SAFETY: the pointer is there only while `enter` borrows the value, on this thread.
        look(unsafe { value.as_ref() })
    }
}

struct RestoreCurrent<T: 'static>(&'static LocalKey<CurrentRef<T>>, *const T);

impl<T> Drop for RestoreCurrent<T> {
    fn drop(&mut self) {
        self.0.with(|current| current.0.set(self.1));
    }
}
