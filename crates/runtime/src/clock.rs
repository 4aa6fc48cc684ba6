//! The one clock that all actors read.

use std::time::Duration;

use tokio::time::Instant;

/// Returns the current time. Under the test kit it stands still until it is moved.
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Returns the time `after` from `now`; a time in the far future if that is beyond the clock.
pub(crate) fn saturating_add(now: Instant, after: Duration) -> Instant {
    now.checked_add(after).unwrap_or_else(|| now + FAR_FUTURE)
}

/// Thirty years, which no process lasts.
const FAR_FUTURE: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

/// Returns the time that remains until `until`.
pub(crate) fn remaining(until: Instant) -> Duration {
    until.saturating_duration_since(now())
}
