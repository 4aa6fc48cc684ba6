//! The budget of processor time that a component's share allows over a window.

use std::time::Duration;

use tokio::time::Instant;

use crate::manifest::CpuShare;

/// A token bucket of processor time, which refills with the clock.
#[derive(Debug)]
pub(super) struct CpuBudget {
    share: CpuShare,
    /// Remaining nanoseconds; negative after a call that took more.
    level: i128,
    at: Instant,
    /// Start of the period in which it has exceeded its share without a notable pause.
    over_since: Option<Instant>,
}

/// The window over which a share counts: an idle component may use a whole processor at once for
/// this time multiplied by its share.
const WINDOW: Duration = Duration::from_secs(1);

impl CpuBudget {
    pub(super) fn new(share: CpuShare, now: Instant) -> Self {
        Self {
            share,
            level: Self::capacity(share),
            at: now,
            over_since: None,
        }
    }

    /// Replaces the share; time that was used stays used.
    pub(super) fn with_share(self, share: CpuShare) -> Self {
        let level = self.level.min(Self::capacity(share));
        Self {
            share,
            level,
            ..self
        }
    }

    pub(super) const fn share(&self) -> CpuShare {
        self.share
    }

    fn capacity(share: CpuShare) -> i128 {
        share.cpu_in(WINDOW).as_nanos().cast_signed()
    }

    fn refill(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.at);
        let more = self.share.cpu_in(passed).as_nanos().cast_signed();
        self.level = (self.level + more).min(Self::capacity(self.share));
        self.at = now;
        // A component that is throttled all the time returns to 0 again and again, but not to half.
        if self.level >= Self::capacity(self.share) / 2 {
            self.over_since = None;
        }
    }

    /// Uses processor time; returns `true` if more was used than the budget had.
    pub(super) fn spend(&mut self, now: Instant, cpu: Duration) -> bool {
        self.refill(now);
        self.level -= cpu.as_nanos().cast_signed();
        if self.level < 0 {
            self.over_since.get_or_insert(now);
        }
        self.level < 0
    }

    /// Returns the time until the budget is no longer negative, and the time for which the
    /// component has exceeded its share.
    pub(super) fn delay(&mut self, now: Instant) -> (Duration, Duration) {
        self.refill(now);
        let owed = u64::try_from(-self.level.min(0)).unwrap_or(u64::MAX);
        let over = self.over_since.map_or(Duration::ZERO, |over| now - over);
        (self.share.time_for_cpu(Duration::from_nanos(owed)), over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn overuse_is_waited_for() {
        let start = Instant::now();
        let share = CpuShare::from_percent(25).expect("it is a share");
        let mut budget = CpuBudget::new(share, start);
        assert!(!budget.spend(start, MS * 250), "its window");
        assert!(budget.spend(start, MS * 10));
        assert_eq!(budget.delay(start).0, MS * 40);
        assert_eq!(budget.delay(start + MS * 20).0, MS * 20);
        assert_eq!(budget.delay(start + MS * 40), (Duration::ZERO, MS * 40));
        assert!(
            !budget.spend(start + MS * 5000, MS * 250),
            "no more than a window"
        );
        assert!(budget.spend(start + MS * 5000, MS));
    }

    #[test]
    fn throttled_component_stays_over_share_until_it_rests() {
        let start = Instant::now();
        let share = CpuShare::from_percent(50).expect("it is a share");
        let mut budget = CpuBudget::new(share, start);
        let mut now = start;
        budget.spend(now, MS * 501);
        for _ in 0..100 {
            let (delay, over) = budget.delay(now);
            assert_eq!(over, now - start);
            now += delay;
            budget.spend(now, MS * 10);
        }
        now += MS * 600;
        assert_eq!(budget.delay(now), (Duration::ZERO, Duration::ZERO));
    }
}
