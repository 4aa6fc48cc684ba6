//! The beat that bounds turns in time.
//!
//! While any dispatcher works, the monitor advances one counter every half millisecond. Before each
//! message, a turn compares the counter with its value at the beginning of the turn. That costs two
//! loads, and the clock is not read. A turn thus ends with the first message that is handled after
//! the beat, no matter how many messages wait and how long each takes.

// There is no model: the counter orders nothing, and a turn that reads a stale value ends one
// message later.
use std::sync::atomic::{AtomicU32, Ordering};

static CURRENT_BEAT: AtomicU32 = AtomicU32::new(0);

/// Returns the number of the current beat.
#[inline(always)]
pub(crate) fn current() -> u32 {
    CURRENT_BEAT.load(Ordering::Relaxed)
}

/// Begins the next beat.
pub(super) fn advance() {
    CURRENT_BEAT.fetch_add(1, Ordering::Relaxed);
}
