//! A counted allocation with one owner, made before the value that is put into it.

use std::mem::MaybeUninit;
use std::sync::Arc;

/// A place on the heap in which a value is written, instead of being made elsewhere and copied.
pub(crate) struct UniqueArc<T>(Arc<MaybeUninit<T>>);

impl<T> UniqueArc<T> {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self(Arc::new_uninit())
    }

    #[inline(always)]
    pub(crate) fn fill(self, make: impl FnOnce() -> T) -> Arc<T> {
        let place = Arc::as_ptr(&self.0).cast::<T>().cast_mut();
        // SAFETY: nothing else has the place, and no reference to it is in use.
        unsafe { place.write(make()) };
        // SAFETY: the value was just written.
        unsafe { self.0.assume_init() }
    }
}
