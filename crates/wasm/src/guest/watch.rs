//! The processor time of the call under way.
//!
//! The limits of a call count the processor time of the guest itself: on a busy machine a clock
//! says little about what a call did with its time. The clock is only a second, generous bound.
//!
//! Most calls end before a tick comes, and read no clock at all. The first tick that a call sees is
//! where its time begins; it is looked at again when it may have used up its slice or its limit.

use std::time::{Duration, Instant};

/// The processor time of the call under way.
#[derive(Debug)]
pub(crate) struct Watch {
    bounds: Bounds,
    /// What was used before `since`.
    used: Spent,
    /// The moment from which on time is counted.
    since: Option<Moment>,
    /// When a call began that may wait, or went on after it did.
    begun: Option<Instant>,
}

/// How long a call may compute.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// Of processor time.
    pub(crate) cpu: Duration,
    /// On the clock, while it computes or wants to.
    pub(crate) wall: Duration,
}

/// How long a call has computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spent {
    /// Of processor time.
    pub(crate) cpu: Duration,
    /// On the clock.
    pub(crate) wall: Duration,
}

/// What is left of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// Processor time until it has used up its limit.
    Cpu(Duration),
    /// Nothing: it used up its limit of processor time.
    Spent,
    /// Nothing: the clock ran out, and it had not used up its processor time.
    Late,
}

impl Spent {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            wall: self.wall + other.wall,
        }
    }

    /// What is left of a call that has computed this long.
    pub(crate) fn left_of(self, bounds: Bounds) -> Left {
        let left = bounds.cpu.saturating_sub(self.cpu);
        if left.is_zero() {
            Left::Spent
        } else if self.wall >= bounds.wall {
            Left::Late
        } else {
            Left::Cpu(left)
        }
    }
}

impl Watch {
    pub(super) const fn new() -> Self {
        Self {
            bounds: Bounds {
                cpu: Duration::ZERO,
                wall: Duration::ZERO,
            },
            used: Spent {
                cpu: Duration::ZERO,
                wall: Duration::ZERO,
            },
            since: None,
            begun: None,
        }
    }

    /// A call begins.
    pub(super) fn begin(&mut self, bounds: Bounds, waits: bool) {
        *self = Self {
            bounds,
            begun: waits.then(Instant::now),
            ..Self::new()
        };
    }

    pub(super) const fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// What it used before it paused.
    pub(super) const fn before(&self) -> Spent {
        self.used
    }

    /// Looks at the call when a tick came: how long it has computed on this thread, and before.
    pub(super) fn look(&mut self, now: Moment) -> Spent {
        let since = *self.since.get_or_insert(now);
        self.used.plus(now.since(since))
    }

    /// The call waits for somebody else from now on. Ticks come this far apart: a call that saw
    /// none was not longer.
    pub(super) fn pause(&mut self, now: impl FnOnce() -> Moment, tick: Duration) {
        let more = match (self.since.take(), self.begun.take()) {
            (Some(since), _) => now().since(since),
            (None, Some(begun)) => {
                let short = begun.elapsed().min(tick);
                Spent {
                    cpu: short,
                    wall: short,
                }
            }
            (None, None) => Spent::default(),
        };
        self.used = self.used.plus(more);
    }

    /// It has waited; the thread may be another one.
    pub(super) fn resume(&mut self) {
        self.begun = Some(Instant::now());
    }
}

/// A moment of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    clock: Instant,
    /// The processor time of the thread.
    cpu: Duration,
}

impl Moment {
    /// This moment of this thread.
    pub(crate) fn now() -> Self {
        let clock = Instant::now();
        Self { clock, cpu: cpu() }
    }

    /// The time since an earlier moment of the same thread.
    pub(crate) fn since(self, earlier: Self) -> Spent {
        Spent {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            wall: self.clock.saturating_duration_since(earlier.clock),
        }
    }
}

/// The processor time of this thread.
#[cfg(unix)]
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

/// Elsewhere the clock stands for it.
#[cfg(not(unix))]
fn cpu() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn watch(limit: Duration) -> Watch {
        let mut watch = Watch::new();
        let bounds = Bounds {
            cpu: limit,
            wall: limit * 20,
        };
        watch.begin(bounds, false);
        watch
    }

    fn left(watch: &mut Watch, now: Moment) -> Left {
        let bounds = watch.bounds();
        watch.look(now).left_of(bounds)
    }

    #[test]
    fn time_without_a_processor_does_not_count() {
        let start = Instant::now();
        let at = |passed: u32, used: u32| Moment {
            clock: start + MS * passed,
            cpu: MS * (100 + used),
        };
        let mut call = watch(MS * 10);
        assert_eq!(left(&mut call, at(0, 0)), Left::Cpu(MS * 10));
        assert_eq!(left(&mut call, at(4, 4)), Left::Cpu(MS * 6));
        assert_eq!(left(&mut call, at(50, 7)), Left::Cpu(MS * 3));
        assert_eq!(left(&mut call, at(60, 10)), Left::Spent);
    }

    #[test]
    fn the_clock_is_a_second_bound() {
        let start = Instant::now();
        let at = |passed: u32| Moment {
            clock: start + MS * passed,
            cpu: MS,
        };
        let mut call = watch(MS * 10);
        assert_eq!(left(&mut call, at(0)), Left::Cpu(MS * 10));
        assert_eq!(left(&mut call, at(199)), Left::Cpu(MS * 10));
        assert_eq!(left(&mut call, at(200)), Left::Late);
    }

    #[test]
    fn time_of_waits_does_not_count_and_that_between_them_does() {
        let start = Instant::now();
        let at = |passed: u32| Moment {
            clock: start + MS * passed,
            cpu: MS * passed,
        };
        let mut call = watch(MS * 10);
        assert_eq!(left(&mut call, at(0)), Left::Cpu(MS * 10));
        call.pause(|| at(4), MS);
        call.resume();
        assert_eq!(left(&mut call, at(1000)), Left::Cpu(MS * 6));
        call.pause(|| at(1006), MS);
        call.resume();
        assert_eq!(left(&mut call, at(2000)), Left::Spent);
    }

    #[test]
    fn what_a_call_does_before_its_first_wait_counts() {
        let nanosecond = Duration::from_nanos(1);
        for (waits, expected) in [(true, Left::Spent), (false, Left::Cpu(nanosecond))] {
            let mut call = watch(nanosecond);
            call.begin(call.bounds(), waits);
            let begun = Instant::now();
            while begun.elapsed() < nanosecond * 2 {}
            call.pause(Moment::now, MS);
            assert_eq!(left(&mut call, Moment::now()), expected);
        }
    }

    #[test]
    fn a_thread_that_sleeps_uses_no_processor() {
        let before = Moment::now();
        std::thread::sleep(MS * 20);
        let spent = Moment::now().since(before);
        assert!(spent.wall >= MS * 20, "{spent:?}");
        assert!(spent.cpu < MS * 20, "{spent:?}");
    }

    #[test]
    fn short_calls_between_waits_add_up() {
        let mut call = watch(MS);
        let tick = Duration::from_micros(1);
        for _ in 0..1000 {
            call.begun = Some(Instant::now() - MS);
            call.pause(Moment::now, tick);
        }
        assert_eq!(left(&mut call, Moment::now()), Left::Spent);
    }
}
