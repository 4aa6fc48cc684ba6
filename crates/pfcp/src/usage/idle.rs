//! Sessions without packets, TS 29.244 §5.11.3.

use std::time::{Duration, Instant};

use crate::ie::IeType;
use crate::session::RuleSet;

/// Whether the whole session is without packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Idle {
    pub(super) after: Duration,
    pub(super) since: Instant,
    pub(super) told: bool,
}

impl Idle {
    pub(super) fn of(now: Instant, rules: &RuleSet, before: Option<Self>) -> Option<Self> {
        let after = idle_after(rules)?;
        let fresh = Self {
            after,
            since: now,
            told: false,
        };
        Some(
            before
                .filter(|before| before.after == after)
                .unwrap_or(fresh),
        )
    }
}

/// How long a session may be without packets.
pub(super) fn idle_after(rules: &RuleSet) -> Option<Duration> {
    let timer = rules
        .session_elements()
        .find(|tlv| tlv.ie == IeType::USER_PLANE_INACTIVITY_TIMER)?;
    let seconds = u32::from_be_bytes(*timer.value.first_chunk()?);
    (seconds > 0).then(|| Duration::from_secs(seconds.into()))
}
