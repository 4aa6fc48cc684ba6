//! The value that this thread works for, while it does.

use std::cell::Cell;
use std::ptr;
use std::thread::LocalKey;

/// A place in each thread for the value that it works for.
pub(crate) struct Current<T>(Cell<*const T>);

impl<T> Current<T> {
    pub(crate) const fn none() -> Self {
        Self(Cell::new(ptr::null()))
    }

    /// Does something for a value.
    #[inline(always)]
    pub(crate) fn enter<R>(
        place: &'static LocalKey<Self>,
        value: &T,
        work: impl FnOnce() -> R,
    ) -> R {
        let _leave = Leave(place, place.with(|current| current.0.replace(value)));
        work()
    }

    /// Looks at the value that the thread works for.
    #[inline(always)]
    pub(crate) fn with<R>(place: &'static LocalKey<Self>, look: impl FnOnce(Option<&T>) -> R) -> R {
        // A thread on its way out works for nobody.
        let value = place.try_with(|current| current.0.get());
        let value = value.unwrap_or(ptr::null());
        // SAFETY: the pointer is there only while `enter` borrows the value, on this thread.
        look(unsafe { value.as_ref() })
    }
}

struct Leave<T: 'static>(&'static LocalKey<Current<T>>, *const T);

impl<T> Drop for Leave<T> {
    fn drop(&mut self) {
        self.0.with(|current| current.0.set(self.1));
    }
}
