//! Marks of an actor that others set while it runs.

use crate::sync::{AtomicU8, Ordering};

/// A set of marks.
///
/// Each is set and cleared by a read-modify-write, so that none is lost to another. Nothing is
/// handed over with a mark: what belongs to one is behind the lock of the life. So whoever reads
/// the marks needs no more than to see them soon.
#[derive(Default)]
pub(super) struct Marks(AtomicU8);

impl Marks {
    /// Returns `true` if one of these is set.
    #[inline(always)]
    pub(super) fn has(&self, marks: u8) -> bool {
        self.0.load(Ordering::Acquire) & marks != 0
    }

    pub(super) fn set(&self, mark: u8) {
        self.0.fetch_or(mark, Ordering::Release);
    }

    pub(super) fn clear(&self, mark: u8) {
        self.0.fetch_and(!mark, Ordering::Release);
    }
}
