//! Backoff: the delay before a child that keeps failing is restarted.

use std::time::Duration;

use tokio::time::Instant;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

/// The delay before a restart, which grows while a child keeps failing.
///
/// The first restart is never delayed, because most faults disappear with the state that caused
/// them. The second restart waits for `initial`, and each further one `factor` times longer than
/// the one before, up to `max`. A child that has run for longer than `max`, and for more than a
/// second, counts as recovered: its next restart is the first again.
///
/// ```
/// use std::time::Duration;
/// use strowger::Backoff;
///
/// let backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(10)).jitter(0.2);
/// # let _ = backoff;
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
    factor: f64,
    jitter: f64,
}

impl Backoff {
    /// No delay at all.
    pub const NONE: Self = Self {
        initial: Duration::ZERO,
        max: Duration::ZERO,
        factor: 1.0,
        jitter: 0.0,
    };

    /// Waits for `initial` before the second restart and doubles the delay each time, up to `max`.
    /// If either is zero, there is no delay.
    #[must_use]
    pub const fn new(initial: Duration, max: Duration) -> Self {
        Self {
            initial,
            max,
            factor: 2.0,
            jitter: 0.0,
        }
    }

    /// Sets the factor by which each delay is longer than the one before. Values below one, and
    /// NaN, count as one.
    #[must_use]
    pub const fn factor(mut self, factor: f64) -> Self {
        self.factor = if factor > 1.0 { factor } else { 1.0 };
        self
    }

    /// Shortens each delay by a random part of it, at most this fraction, so that children that
    /// failed together do not all come back at the same moment. Clamped to the range from zero to
    /// one.
    #[must_use]
    pub const fn jitter(mut self, jitter: f64) -> Self {
        self.jitter = if jitter > 1.0 {
            1.0
        } else if jitter > 0.0 {
            jitter
        } else {
            0.0
        };
        self
    }

    /// Returns `true` if a restart may be delayed.
    pub(crate) const fn is_enabled(&self) -> bool {
        !(self.initial.is_zero() || self.max.is_zero())
    }

    /// Returns the delay before the restart that follows `earlier` restarts in a row.
    pub(crate) fn delay(&self, earlier: u32, seed: u64) -> Duration {
        if earlier == 0 || !self.is_enabled() {
            return Duration::ZERO;
        }
        let exponent = i32::try_from(earlier - 1).unwrap_or(i32::MAX);
        let seconds = self.initial.as_secs_f64() * self.factor.powi(exponent);
        let whole = Duration::try_from_secs_f64(seconds).map_or(self.max, |d| d.min(self.max));
        let seed = seed ^ u64::from(earlier).rotate_left(32);
        let drawn = SplitMix64::seed_from_u64(seed).next_u64() >> 32;
        whole.mul_f64(1.0 - self.jitter * drawn as f64 / 2_f64.powi(32))
    }

    fn recovery_time(&self) -> Duration {
        self.max.max(Duration::from_secs(1))
    }
}

impl Default for Backoff {
    /// Returns [`Backoff::NONE`], as in OTP: only the intensity limits restarts.
    fn default() -> Self {
        Self::NONE
    }
}

/// The consecutive restarts of one child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RestartStreak {
    restarts: u32,
    /// The time at which the latest of these restarts was due.
    since: Option<Instant>,
}

impl RestartStreak {
    /// Adds a restart and returns the delay before it.
    pub(crate) fn next_delay(&mut self, backoff: &Backoff, now: Instant, seed: u64) -> Duration {
        if self
            .since
            .is_some_and(|since| now.duration_since(since) > backoff.recovery_time())
        {
            self.restarts = 0;
        }
        let pause = backoff.delay(self.restarts, seed);
        self.restarts = self.restarts.saturating_add(1);
        self.since = Some(now + pause);
        pause
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
    fn first_restart_is_immediate_then_delay_doubles_to_max() {
        let backoff = Backoff::new(ms(50), ms(300));
        let pauses: Vec<_> = (0..6).map(|earlier| backoff.delay(earlier, 1)).collect();
        assert_eq!(pauses, [ms(0), ms(50), ms(100), ms(200), ms(300), ms(300)]);
    }

    #[test]
    fn a_child_that_ran_longer_than_the_maximum_is_restarted_at_once() {
        let backoff = Backoff::new(ms(50), ms(3000));
        let mut restart_run = RestartStreak::default();
        let start = Instant::now();
        assert_eq!(restart_run.next_delay(&backoff, start, 0), ms(0));
        assert_eq!(restart_run.next_delay(&backoff, start + ms(10), 0), ms(50));
        // The child came back at 60 ms. At 3060 ms it has run for exactly the maximum, which does
        // not count as recovered yet.
        assert_eq!(
            restart_run.next_delay(&backoff, start + ms(3060), 0),
            ms(100)
        );
        assert_eq!(restart_run.next_delay(&backoff, start + ms(6161), 0), ms(0));
        assert_eq!(
            restart_run.next_delay(&backoff, start + ms(6170), 0),
            ms(50)
        );
    }

    #[test]
    fn delay_grows_by_the_factor() {
        let backoff = Backoff::new(ms(10), ms(1000)).factor(3.0);
        let pauses: Vec<_> = (0..5).map(|earlier| backoff.delay(earlier, 1)).collect();
        assert_eq!(pauses, [ms(0), ms(10), ms(30), ms(90), ms(270)]);
    }

    #[test]
    fn recovery_takes_at_least_a_second() {
        let backoff = Backoff::new(ms(10), ms(20));
        let mut restart_run = RestartStreak::default();
        let start = Instant::now();
        assert_eq!(restart_run.next_delay(&backoff, start, 0), ms(0));
        assert_eq!(restart_run.next_delay(&backoff, start + ms(900), 0), ms(10));
        assert_eq!(restart_run.next_delay(&backoff, start + ms(1911), 0), ms(0));
    }

    #[test]
    fn no_backoff_means_no_delay() {
        assert!((0..100).all(|earlier| Backoff::NONE.delay(earlier, 7).is_zero()));
    }

    #[test]
    fn zero_initial_delay_never_delays() {
        let backoff = Backoff::new(ms(0), ms(300));
        assert!(!backoff.is_enabled() && Backoff::new(ms(1), ms(300)).is_enabled());
        let counts = [0, 1, 2, 2000, u32::MAX];
        assert!(counts.iter().all(|n| backoff.delay(*n, 7).is_zero()));
    }

    #[test]
    fn jitter_is_independent_per_restart() {
        let second = Duration::from_secs(1);
        let backoff = Backoff::new(second, second).jitter(1.0);
        let seeds = [0, 1, 2, u64::MAX];
        let pauses = seeds.map(|seed| (1..9).map(move |earlier| backoff.delay(earlier, seed)));
        let mut pauses: Vec<_> = pauses.into_iter().flatten().collect();
        pauses.sort_unstable();
        pauses.dedup();
        assert_eq!(pauses.len(), 32);
    }

    #[test]
    fn factor_and_jitter_are_clamped() {
        let odd = [f64::NAN, -1.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1e300];
        for factor in odd {
            for jitter in odd {
                let backoff = Backoff::new(ms(1), ms(9)).factor(factor).jitter(jitter);
                assert!(
                    [0, 1, 2, u32::MAX]
                        .iter()
                        .all(|n| backoff.delay(*n, 3) <= ms(9))
                );
            }
        }
    }

    proptest! {
        #[test]
        fn delays_stay_within_jitter_and_max(
            initial in 0u64..10_000, max in 0u64..100_000, factor in 1.0f64..5.0,
            jitter in 0.0f64..=1.0, earlier in any::<u32>(), seed in any::<u64>(),
        ) {
            let plain = Backoff::new(ms(initial), ms(max)).factor(factor);
            let shaken = plain.jitter(jitter);
            let (whole, pause) = (plain.delay(earlier, seed), shaken.delay(earlier, seed));
            prop_assert!(whole <= ms(max));
            prop_assert!(pause <= whole);
            prop_assert!(pause + Duration::from_nanos(2) >= whole.mul_f64(1.0 - jitter));
            prop_assert_eq!(pause, shaken.delay(earlier, seed));
        }

        #[test]
        fn delays_never_shrink_without_jitter(
            initial in 0u64..1000, max in 0u64..10_000, factor in 1.0f64..4.0, earlier in 0u32..99,
        ) {
            let backoff = Backoff::new(ms(initial), ms(max)).factor(factor);
            prop_assert!(backoff.delay(earlier, 0) <= backoff.delay(earlier + 1, 0));
        }
    }
}
