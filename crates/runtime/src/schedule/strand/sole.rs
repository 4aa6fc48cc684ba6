//! A value that is reached through its owner alone.

/// A value of which a shared reference is of no use: so it may be shared, though it could not be.
pub(crate) struct Sole<T>(T);

// SAFETY: nothing can be done with a reference to it.
unsafe impl<T: Send> Sync for Sole<T> {}

impl<T> Sole<T> {
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
