//! A value that is reached through its owner only.

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
