//! The beat by which turns are bounded in time.
//!
//! While any dispatcher works, the monitor advances one counter every half millisecond. A turn
//! compares it before each message with what it was when the turn began, which costs two loads; the
//! clock is not read. So a turn ends with the first message that is done after the beat, however
//! many wait and however long each takes.

// No model: the counter orders nothing, and a turn that reads an old value ends one message later.
use std::sync::atomic::{AtomicU32, Ordering};

static PULSE: AtomicU32 = AtomicU32::new(0);

/// The number of the current beat.
#[inline(always)]
pub(crate) fn now() -> u32 {
    PULSE.load(Ordering::Relaxed)
}

/// Begins the next beat.
pub(super) fn advance() {
    PULSE.fetch_add(1, Ordering::Relaxed);
}
