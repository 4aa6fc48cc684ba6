//! User plane inactivity detection of sessions, TS 29.244 §5.11.3.

use std::time::{Duration, Instant};

use crate::ie::IeType;
use crate::session::RuleSet;

/// The inactivity timer of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InactivityTimer {
    pub(super) after: Duration,
    pub(super) since: Instant,
    pub(super) reported: bool,
}

impl InactivityTimer {
    pub(super) fn of(now: Instant, rules: &RuleSet, before: Option<Self>) -> Option<Self> {
        let after = inactivity_after(rules)?;
        let fresh = Self {
            after,
            since: now,
            reported: false,
        };
        Some(
            before
                // A modification that does not change the timer does not restart it: it is no
                // activity.
                .filter(|before| before.after == after)
                .unwrap_or(fresh),
        )
    }
}

/// Returns the time without packets after which a session counts as inactive.
pub(super) fn inactivity_after(rules: &RuleSet) -> Option<Duration> {
    let timer = rules
        .session_elements()
        .find(|tlv| tlv.ie == IeType::USER_PLANE_INACTIVITY_TIMER)?;
    let seconds = u32::from_be_bytes(*timer.value.first_chunk()?);
    // Zero would report at once; it counts as no timer.
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}
