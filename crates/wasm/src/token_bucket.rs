//! A rate limiter.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: at most `rate` per second, and as many at once after a second of silence.
#[derive(Debug)]
pub(crate) struct TokenBucket {
    /// Time that one token costs; `None` if the rate is 0.
    interval: Option<Duration>,
    /// Time until which all tokens are spent.
    empty_until: Option<Instant>,
}

const BURST_WINDOW: Duration = Duration::from_secs(1);

impl TokenBucket {
    pub(crate) fn new(rate: u32) -> Self {
        Self {
            interval: BURST_WINDOW.checked_div(rate),
            empty_until: None,
        }
    }

    /// Takes one token; returns `false` if none is left.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let Some(interval) = self.interval else {
            return false;
        };
        let empty_until = self
            .empty_until
            .map_or(now, |empty_until| empty_until.max(now))
            + interval;
        let left = empty_until.duration_since(now) <= BURST_WINDOW;
        if left {
            self.empty_until = Some(empty_until);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_of_the_rate_then_one_by_one() {
        let mut bucket = TokenBucket::new(4);
        let start = Instant::now();
        let taken =
            |bucket: &mut TokenBucket, at| (0..10).filter(|_| bucket.take(start + at)).count();
        assert_eq!(taken(&mut bucket, Duration::ZERO), 4);
        assert_eq!(taken(&mut bucket, BURST_WINDOW / 4), 1);
        assert_eq!(taken(&mut bucket, BURST_WINDOW * 3), 4);
    }

    #[test]
    fn zero_rate_allows_nothing() {
        assert!(!TokenBucket::new(0).take(Instant::now()));
    }
}
