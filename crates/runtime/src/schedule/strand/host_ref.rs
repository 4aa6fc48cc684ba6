//! The reference of a `Behavior` to the host that holds it.

use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;

/// A reference to the host of a `Behavior`, for as long as the `Behavior` exists. The strand keeps
/// its host until the `Behavior` is gone (rule 3), so this reference is not counted. A `Behavior`
/// never passes it on.
pub(crate) struct HostRef<C>(NonNull<C>);

// SAFETY: it is a reference to a host.
unsafe impl<C: Send + Sync> Send for HostRef<C> {}
// SAFETY: as above.
unsafe impl<C: Send + Sync> Sync for HostRef<C> {}

impl<C> HostRef<C> {
    /// For the `Behavior` that `start` is about to put in.
    pub(super) fn new(host: &Arc<C>) -> Self {
        Self(NonNull::new(Arc::as_ptr(host).cast_mut()).expect("made from a reference"))
    }

    /// Returns a counted reference, which may go anywhere.
    pub(crate) fn share(&self) -> Arc<C> {
        // SAFETY: the pointer is from an `Arc`, of which the strand holds one.
        unsafe { Arc::increment_strong_count(self.0.as_ptr()) };
        // SAFETY: the reference that was just counted is this one.
        unsafe { Arc::from_raw(self.0.as_ptr().cast_const()) }
    }
}

impl<C> Deref for HostRef<C> {
    type Target = C;

    #[inline(always)]
    fn deref(&self) -> &C {
        // SAFETY: the strand keeps the host until the `Behavior` is gone, and the `Behavior` has
        // this.
        unsafe { self.0.as_ref() }
    }
}
