//! A rate limiter.

use std::time::Duration;

use tokio::time::Instant;

/// A token bucket: at most `rate` per second, and as many at once after a second of silence.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// Time that one token costs; `None` if the rate is 0.
    each: Option<Duration>,
    /// Time until which all tokens are spent.
    spent: Option<Instant>,
}

const SECOND: Duration = Duration::from_secs(1);

impl Bucket {
    pub(crate) fn new(rate: u32) -> Self {
        Self {
            each: SECOND.checked_div(rate),
            spent: None,
        }
    }

    /// Takes one token; returns `false` if none is left.
    pub(crate) fn take(&mut self, now: Instant) -> bool {
        let Some(each) = self.each else { return false };
        let spent = self.spent.map_or(now, |spent| spent.max(now)) + each;
        let left = spent.duration_since(now) <= SECOND;
        if left {
            self.spent = Some(spent);
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_the_rate_at_once_and_then_one_by_one() {
        let mut bucket = Bucket::new(4);
        let start = Instant::now();
        let taken = |bucket: &mut Bucket, at| (0..10).filter(|_| bucket.take(start + at)).count();
        assert_eq!(taken(&mut bucket, Duration::ZERO), 4);
        assert_eq!(taken(&mut bucket, SECOND / 4), 1);
        assert_eq!(taken(&mut bucket, SECOND * 3), 4);
    }

    #[test]
    fn a_rate_of_nothing_gives_nothing() {
        assert!(!Bucket::new(0).take(Instant::now()));
    }
}
