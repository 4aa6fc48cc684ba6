//! Atomics of the standard library, replaced by loom's in models.
//!
//! A file that imports its atomics from here has loom models. It must use nothing else of this
//! crate: the models are built as part of the crate `strowger`, without wasmtime.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// An ordering or a step that a model can take away. `strowger`, as part of which the models are
/// built, has the same names with their descriptions; here all of them are compiled out.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Weakening {
    RepeatedCallWakeWritten,
    CallWakeDuringTurnNoted,
    CallTurnAcquire,
    CallRequeuedAtomically,
    CallBeginAcquire,
    CallEndRelease,
    TickerParkRelease,
    TickerParkChecksCalls,
}

/// Returns `false`: nothing is weakened.
#[inline(always)]
pub(crate) const fn weakened(_: Weakening) -> bool {
    false
}

/// Returns the ordering that the code depends on.
#[inline(always)]
pub(crate) const fn weaken(_: Weakening, ordering: Ordering) -> Ordering {
    ordering
}

/// Returns the ordering that the code depends on.
#[inline(always)]
pub(crate) const fn weaken_or(_: Weakening, ordering: Ordering, _: Ordering) -> Ordering {
    ordering
}
