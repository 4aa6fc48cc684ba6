//! Restart intensity: how many restarts a supervisor carries out before it gives up.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crate::clock;
use crate::seeded_bug::{Bug, seeded};

/// The default number of restarts within a period, and the period.
///
/// OTP's default of one restart ends a supervisor whose children fail together by chance.
pub(crate) const DEFAULT_INTENSITY: (u32, Duration) = (3, Duration::from_secs(5));

/// The recent restarts of a supervisor.
///
/// OTP: "If more than `MaxR` number of restarts occur within the last `MaxT` seconds, the
/// supervisor terminates all the child processes and then itself." A restart that is exactly as old
/// as the period still counts.
#[derive(Debug, Clone)]
pub(crate) struct RestartIntensity {
    max_restarts: u32,
    period: Duration,
    /// The time until which each restart counts, oldest first; never more than `max_restarts`.
    recent: VecDeque<Instant>,
}

impl RestartIntensity {
    pub(crate) const fn new((max_restarts, period): (u32, Duration)) -> Self {
        Self {
            max_restarts,
            period,
            recent: VecDeque::new(),
        }
    }

    /// Returns `true` if restarts are limited at all; [`u32::MAX`] means no limit.
    pub(crate) const fn is_limited(&self) -> bool {
        self.max_restarts < u32::MAX
    }

    /// Counts a restart. Returns `false` if it exceeds the limit and must not take place.
    pub(crate) fn try_restart(&mut self, now: Instant) -> bool {
        if !self.is_limited() {
            return true;
        }
        while self.recent.front().is_some_and(|until| now > *until) {
            self.recent.pop_front();
        }
        let more = usize::from(seeded(Bug::IntensityOffByOne));
        if self.recent.len() >= (self.max_restarts as usize).saturating_add(more) {
            return false;
        }
        self.recent
            .push_back(clock::saturating_add(now, self.period));
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn restart_beyond_max_within_period_is_refused() {
        let start = Instant::now();
        let mut intensity = RestartIntensity::new((3, ms(5000)));
        assert!(intensity.try_restart(start));
        assert!(intensity.try_restart(start + ms(10)));
        assert!(intensity.try_restart(start + ms(20)));
        assert!(!intensity.try_restart(start + ms(30)));
    }

    #[test]
    fn restart_exactly_one_period_old_still_counts() {
        let start = Instant::now();
        let mut intensity = RestartIntensity::new((1, ms(5000)));
        assert!(intensity.try_restart(start));
        assert!(!intensity.clone().try_restart(start + ms(5000)));
        assert!(intensity.try_restart(start + ms(5001)));
    }

    #[test]
    fn an_intensity_of_zero_allows_no_restart() {
        assert!(!RestartIntensity::new((0, ms(5000))).try_restart(Instant::now()));
    }

    #[test]
    fn unlimited_intensity_stores_nothing() {
        let start = Instant::now();
        let mut intensity = RestartIntensity::new((u32::MAX, ms(5000)));
        assert!(
            !intensity.is_limited() && RestartIntensity::new((u32::MAX - 1, ms(5000))).is_limited()
        );
        assert!((0..100).all(|_| intensity.try_restart(start)));
        assert!(intensity.recent.is_empty());
    }

    #[test]
    fn default_allows_three_restarts_in_five_seconds() {
        let start = Instant::now();
        let mut intensity = RestartIntensity::new(DEFAULT_INTENSITY);
        assert!((0..3).all(|_| intensity.try_restart(start)));
        assert!(!intensity.clone().try_restart(start + ms(5000)));
        assert!(intensity.try_restart(start + ms(5001)));
    }

    proptest! {
        #[test]
        fn agrees_with_naive_history_count(
            max_restarts in 0u32..6, period in 0u64..50,
            gaps in prop::collection::vec(0u64..30, 0..60),
        ) {
            let mut intensity = RestartIntensity::new((max_restarts, ms(period)));
            let mut now = Instant::now();
            let mut allowed: Vec<Instant> = Vec::new();
            for gap in gaps {
                now += ms(gap);
                let in_period =
                    allowed.iter().filter(|at| now.duration_since(**at) <= ms(period)).count() + 1;
                let expected = in_period <= max_restarts as usize;
                prop_assert_eq!(intensity.try_restart(now), expected);
                if expected {
                    allowed.push(now);
                }
                prop_assert!(intensity.recent.len() <= max_restarts as usize);
            }
        }
    }
}
