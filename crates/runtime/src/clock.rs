//! The one clock that all actors read.

use std::time::Duration;

use tokio::time::Instant;

/// The time. Under the test kit it stands still until it is moved.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The time `after` from `now`; for what lies beyond the clock, a time that nobody lives to see.
pub(crate) fn later(now: Instant, after: Duration) -> Instant {
    now.checked_add(after).unwrap_or_else(|| now + FAR)
}

/// Thirty years.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);
