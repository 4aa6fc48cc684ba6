//! The reference that a life has to the host that holds it.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A reference to the host of a life, for the time of that life: the strand keeps its owner until
/// the life is gone (rule 3), so this counts for nothing. A life gives it to nobody.
pub(crate) struct Kept<C>(NonNull<C>);

// SAFETY: it is a reference to a host.
unsafe impl<C: Send + Sync> Send for Kept<C> {}
// SAFETY: as above.
unsafe impl<C: Send + Sync> Sync for Kept<C> {}

impl<C> Kept<C> {
    /// For the life that `start` is about to put in.
    pub(super) fn new(host: &Arc<C>) -> Self {
        Self(NonNull::new(Arc::as_ptr(host).cast_mut()).expect("made from a reference"))
    }

    /// A reference of its own, which may go anywhere.
    pub(crate) fn share(&self) -> Arc<C> {
        // SAFETY: the pointer is from an `Arc`, of which the strand holds one.
        unsafe { Arc::increment_strong_count(self.0.as_ptr()) };
        // SAFETY: the reference that was just counted is this one.
        unsafe { Arc::from_raw(self.0.as_ptr().cast_const()) }
    }
}

impl<C> Deref for Kept<C> {
    type Target = C;

    #[inline(always)]
    fn deref(&self) -> &C {
        // SAFETY: the strand keeps the host until the life is gone, and the life has this.
        unsafe { self.0.as_ref() }
    }
}
