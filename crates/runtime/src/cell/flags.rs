//! Flags of an actor that other threads set while it runs.

use crate::sync::{AtomicU8, Ordering, Weakening, weakened};

/// A set of flags.
///
/// Each flag is set and cleared by a read-modify-write operation, so that none is lost to another.
/// No data is published by a flag: what belongs to a flag is behind the lock of the `NodeState`. A
/// reader of the flags therefore only has to see them soon.
#[derive(Default)]
pub(super) struct AtomicFlags(AtomicU8);

impl AtomicFlags {
    /// Returns `true` if any of these flags is set.
    #[inline(always)]
    pub(super) fn intersects(&self, flags: u8) -> bool {
        self.0.load(Ordering::Acquire) & flags != 0
    }

    pub(super) fn set(&self, flag: u8) {
        if weakened(Weakening::FlagSetAtomically) {
            let flags = self.0.load(Ordering::Acquire);
            return self.0.store(flags | flag, Ordering::Release);
        }
        self.0.fetch_or(flag, Ordering::Release);
    }

    pub(super) fn clear(&self, flag: u8) {
        if weakened(Weakening::FlagClearedAtomically) {
            let flags = self.0.load(Ordering::Acquire);
            return self.0.store(flags & !flag, Ordering::Release);
        }
        self.0.fetch_and(!flag, Ordering::Release);
    }
}
