//! Small pointer types with which a strand and its owner hand values over.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread::LocalKey;

/// A value to which a shared reference gives no access, so that it is `Sync` even if the value is
/// not.
pub(crate) struct Exclusive<T>(T);

// SAFETY: a shared reference to it gives no access.
unsafe impl<T: Send> Sync for Exclusive<T> {}

impl<T> Exclusive<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(value)
    }

    #[inline(always)]
    pub(crate) const fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }

    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

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
