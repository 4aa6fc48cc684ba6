//! The processor time of the current call.
//!
//! The limits of a call count the processor time of the guest itself: on a busy system, elapsed
//! time says little about the work of a call. The clock is only a second, generous bound.
//!
//! Most calls end before the first tick, and read no clock at all. The time of a call begins at its
//! first tick. It is checked again when it may have used up its slice or its limit.

use std::time::{Duration, Instant};

/// The processor-time meter of the current call.
#[derive(Debug)]
pub(crate) struct CpuMeter {
    limits: CpuLimits,
    /// Time used before `since`.
    used: Elapsed,
    /// The moment from which time is counted.
    since: Option<ThreadInstant>,
    /// The time at which a call that may wait began or resumed.
    begun: Option<Instant>,
}

/// The bounds of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuLimits {
    /// Bound of processor time.
    pub(crate) cpu: Duration,
    /// Bound on the clock, while the call computes or is ready to.
    pub(crate) wall: Duration,
}

/// The time that a call has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Elapsed {
    /// Processor time, without waiting.
    pub(crate) cpu: Duration,
    /// Time on the clock.
    pub(crate) wall: Duration,
}

/// The remaining time of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLeft {
    /// Processor time until the limit is reached.
    Cpu(Duration),
    /// None: the limit of processor time is reached.
    CpuExhausted,
    /// None: the bound on the clock is reached before the limit of processor time.
    Overdue,
}

impl Elapsed {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            cpu: self.cpu + other.cpu,
            wall: self.wall + other.wall,
        }
    }

    /// Returns what remains of a call that has used this time.
    pub(crate) fn remaining_of(self, limits: CpuLimits) -> TimeLeft {
        let left = limits.cpu.saturating_sub(self.cpu);
        if left.is_zero() {
            TimeLeft::CpuExhausted
        } else if self.wall >= limits.wall {
            TimeLeft::Overdue
        } else {
            TimeLeft::Cpu(left)
        }
    }
}

impl CpuMeter {
    pub(super) const fn new() -> Self {
        Self {
            limits: CpuLimits {
                cpu: Duration::ZERO,
                wall: Duration::ZERO,
            },
            used: Elapsed {
                cpu: Duration::ZERO,
                wall: Duration::ZERO,
            },
            since: None,
            begun: None,
        }
    }

    /// Starts a call.
    pub(super) fn begin(&mut self, limits: CpuLimits, waits: bool) {
        *self = Self {
            limits,
            begun: waits.then(Instant::now),
            ..Self::new()
        };
    }

    pub(super) const fn limits(&self) -> CpuLimits {
        self.limits
    }

    /// Returns the time used before the last pause.
    pub(super) const fn elapsed_before(&self) -> Elapsed {
        self.used
    }

    /// Returns the time used on this thread and before, at a tick.
    pub(super) fn elapsed_at(&mut self, now: ThreadInstant) -> Elapsed {
        let since = *self.since.get_or_insert(now);
        self.used.plus(now.since(since))
    }

    /// Pauses the meter: the call waits for another actor. `tick` is the interval of ticks; a
    /// call that saw no tick took no longer than that.
    pub(super) fn pause(&mut self, now: impl FnOnce() -> ThreadInstant, tick: Duration) {
        let more = match (self.since.take(), self.begun.take()) {
            (Some(since), _) => now().since(since),
            (None, Some(begun)) => {
                let short = begun.elapsed().min(tick);
                Elapsed {
                    cpu: short,
                    wall: short,
                }
            }
            (None, None) => Elapsed::default(),
        };
        self.used = self.used.plus(more);
    }

    /// Resumes after a wait, possibly on another thread.
    pub(super) fn resume(&mut self) {
        self.begun = Some(Instant::now());
    }
}

/// A moment on one thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThreadInstant {
    clock: Instant,
    /// The processor time of the thread.
    cpu: Duration,
}

impl ThreadInstant {
    /// Returns this moment of the current thread.
    pub(crate) fn now() -> Self {
        let clock = Instant::now();
        Self {
            clock,
            cpu: thread_cpu_time(),
        }
    }

    /// Moves the moment later on the clock.
    pub(crate) fn skip(&mut self, wall: Duration) {
        self.clock += wall;
    }

    /// Returns the time since an earlier moment of the same thread.
    pub(crate) fn since(self, earlier: Self) -> Elapsed {
        Elapsed {
            cpu: self.cpu.saturating_sub(earlier.cpu),
            wall: self.clock.saturating_duration_since(earlier.clock),
        }
    }
}

/// Returns the processor time of this thread.
#[cfg(unix)]
fn thread_cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}

/// On other systems, returns elapsed time instead.
#[cfg(not(unix))]
fn thread_cpu_time() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    START.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn cpu_meter(limit: Duration) -> CpuMeter {
        let mut cpu_meter = CpuMeter::new();
        let limits = CpuLimits {
            cpu: limit,
            wall: limit * 20,
        };
        cpu_meter.begin(limits, false);
        cpu_meter
    }

    fn remaining(cpu_meter: &mut CpuMeter, now: ThreadInstant) -> TimeLeft {
        let limits = cpu_meter.limits();
        cpu_meter.elapsed_at(now).remaining_of(limits)
    }

    #[test]
    fn time_off_cpu_does_not_count() {
        let start = Instant::now();
        let at = |passed: u32, used: u32| ThreadInstant {
            clock: start + MS * passed,
            cpu: MS * (100 + used),
        };
        let mut call = cpu_meter(MS * 10);
        assert_eq!(remaining(&mut call, at(0, 0)), TimeLeft::Cpu(MS * 10));
        assert_eq!(remaining(&mut call, at(4, 4)), TimeLeft::Cpu(MS * 6));
        assert_eq!(remaining(&mut call, at(50, 7)), TimeLeft::Cpu(MS * 3));
        assert_eq!(remaining(&mut call, at(60, 10)), TimeLeft::CpuExhausted);
    }

    #[test]
    fn wall_clock_is_a_second_limit() {
        let start = Instant::now();
        let at = |passed: u32| ThreadInstant {
            clock: start + MS * passed,
            cpu: MS,
        };
        let mut call = cpu_meter(MS * 10);
        assert_eq!(remaining(&mut call, at(0)), TimeLeft::Cpu(MS * 10));
        assert_eq!(remaining(&mut call, at(199)), TimeLeft::Cpu(MS * 10));
        assert_eq!(remaining(&mut call, at(200)), TimeLeft::Overdue);
    }

    #[test]
    fn waits_do_not_count_but_time_between_them_does() {
        let start = Instant::now();
        let at = |passed: u32| ThreadInstant {
            clock: start + MS * passed,
            cpu: MS * passed,
        };
        let mut call = cpu_meter(MS * 10);
        assert_eq!(remaining(&mut call, at(0)), TimeLeft::Cpu(MS * 10));
        call.pause(|| at(4), MS);
        call.resume();
        assert_eq!(remaining(&mut call, at(1000)), TimeLeft::Cpu(MS * 6));
        call.pause(|| at(1006), MS);
        call.resume();
        assert_eq!(remaining(&mut call, at(2000)), TimeLeft::CpuExhausted);
    }

    #[test]
    fn time_before_the_first_wait_counts() {
        let nanosecond = Duration::from_nanos(1);
        for (waits, expected) in [
            (true, TimeLeft::CpuExhausted),
            (false, TimeLeft::Cpu(nanosecond)),
        ] {
            let mut call = cpu_meter(nanosecond);
            call.begin(call.limits(), waits);
            let begun = Instant::now();
            while begun.elapsed() < nanosecond * 2 {}
            call.pause(ThreadInstant::now, MS);
            assert_eq!(remaining(&mut call, ThreadInstant::now()), expected);
        }
    }

    #[test]
    fn sleeping_thread_uses_no_cpu() {
        let before = ThreadInstant::now();
        std::thread::sleep(MS * 20);
        let spent = ThreadInstant::now().since(before);
        assert!(spent.wall >= MS * 20, "{spent:?}");
        assert!(spent.cpu < MS * 20, "{spent:?}");
    }

    #[test]
    fn short_calls_between_waits_add_up() {
        let mut call = cpu_meter(MS);
        let tick = Duration::from_micros(1);
        for _ in 0..1000 {
            call.begun = Some(Instant::now() - MS);
            call.pause(ThreadInstant::now, tick);
        }
        assert_eq!(
            remaining(&mut call, ThreadInstant::now()),
            TimeLeft::CpuExhausted
        );
    }
}
