//! How long a call has computed.
//!
//! A call has a limit of time, and on a busy machine a clock says little about what it did with it:
//! its thread may have waited for a processor. So the time in which the thread did is taken off, as
//! far as the system tells it; what the host waits for on behalf of a call stays in it.
//!
//! Most calls end before a tick comes, and read no clock at all. The first tick that a call sees is
//! where its time begins; it is looked at again when it may have used that time up.

use std::time::{Duration, Instant};

/// The time of the call under way.
#[derive(Debug)]
pub(crate) struct Watch {
    limit: Duration,
    /// What was used before `since`.
    used: Duration,
    /// The moment from which on time is counted.
    since: Option<Moment>,
    /// When a call began that may wait, or went on after it did.
    begun: Option<Instant>,
}

impl Watch {
    pub(super) const fn new() -> Self {
        Self {
            limit: Duration::ZERO,
            used: Duration::ZERO,
            since: None,
            begun: None,
        }
    }

    /// A call begins.
    pub(super) fn begin(&mut self, limit: Duration, waits: bool) {
        *self = Self {
            limit,
            begun: waits.then(Instant::now),
            ..Self::new()
        };
    }

    /// Looks at the call when a tick came: how much longer it may compute, if it may.
    pub(crate) fn look(&mut self, now: Moment) -> Option<Duration> {
        let since = *self.since.get_or_insert(now);
        let used = self.used + now.since(since);
        Some(self.limit.saturating_sub(used)).filter(|left| !left.is_zero())
    }

    /// The call waits for somebody else from now on. Ticks come this far apart: a call that saw
    /// none was not longer.
    pub(crate) fn pause(&mut self, now: impl FnOnce() -> Moment, tick: Duration) {
        self.used += match (self.since.take(), self.begun.take()) {
            (Some(since), _) => now().since(since),
            (None, Some(begun)) => begun.elapsed().min(tick),
            (None, None) => Duration::ZERO,
        };
    }

    /// It has waited; the thread may be another one.
    pub(crate) fn resume(&mut self) {
        self.begun = Some(Instant::now());
    }
}

/// A moment of a thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    clock: Instant,
    /// How long the thread has waited for a processor in its life.
    waited: Duration,
}

impl Moment {
    /// This moment of this thread.
    pub(crate) fn now() -> Self {
        Self::between(waited)
    }

    /// A moment of the clock between two readings that say the same: while the clock was read the
    /// thread did not wait.
    fn between(mut read: impl FnMut() -> Duration) -> Self {
        let mut waited = read();
        loop {
            let clock = Instant::now();
            let again = read();
            if again == waited {
                return Self { clock, waited };
            }
            waited = again;
        }
    }

    /// The time from an earlier moment of the same thread in which it did not wait for a processor.
    fn since(self, earlier: Self) -> Duration {
        let passed = self.clock.saturating_duration_since(earlier.clock);
        passed.saturating_sub(self.waited.saturating_sub(earlier.waited))
    }
}

/// How long this thread has waited for a processor, as far as the system tells it.
#[cfg(target_os = "linux")]
fn waited() -> Duration {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    thread_local! {
        static SCHEDULED: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }

    let read = |file: &Option<File>| {
        let mut text = [0; 64];
        let length = file.as_ref()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        // Nanoseconds on a processor, nanoseconds in a queue for one, and how often.
        text.split_whitespace().nth(1)?.parse().ok()
    };
    let nanos = SCHEDULED.try_with(read).ok().flatten();
    Duration::from_nanos(nanos.unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
const fn waited() -> Duration {
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn watch(limit: Duration) -> Watch {
        let mut watch = Watch::new();
        watch.begin(limit, false);
        watch
    }

    #[test]
    fn time_without_a_processor_does_not_count() {
        let start = Instant::now();
        let at = |passed: u32, waited: u32| Moment {
            clock: start + MS * passed,
            waited: MS * (100 + waited),
        };
        let mut call = watch(MS * 10);
        assert_eq!(call.look(at(0, 0)), Some(MS * 10));
        assert_eq!(call.look(at(4, 0)), Some(MS * 6));
        assert_eq!(call.look(at(50, 43)), Some(MS * 3));
        assert_eq!(call.look(at(60, 50)), None);
    }

    #[test]
    fn time_of_waits_does_not_count_and_that_between_them_does() {
        let start = Instant::now();
        let at = |passed: u32| Moment {
            clock: start + MS * passed,
            waited: Duration::ZERO,
        };
        let mut call = watch(MS * 10);
        assert_eq!(call.look(at(0)), Some(MS * 10));
        call.pause(|| at(4), MS);
        call.resume();
        assert_eq!(call.look(at(1000)), Some(MS * 6));
        call.pause(|| at(1006), MS);
        call.resume();
        assert_eq!(call.look(at(2000)), None);
    }

    #[test]
    fn what_a_call_does_before_its_first_wait_counts() {
        let nanosecond = Duration::from_nanos(1);
        for (waits, left) in [(true, None), (false, Some(nanosecond))] {
            let mut call = Watch::new();
            call.begin(nanosecond, waits);
            let begun = Instant::now();
            while begun.elapsed() < nanosecond * 2 {}
            call.pause(Moment::now, MS);
            assert_eq!(call.look(Moment::now()), left);
        }
    }

    #[test]
    fn a_moment_is_one_in_which_the_thread_did_not_wait() {
        let mut readings = [1, 2, 4, 4, 5].map(|ms| MS * ms).into_iter();
        let moment = Moment::between(|| readings.next().expect("enough of them"));
        assert_eq!(moment.waited, MS * 4);
        assert_eq!(readings.next(), Some(MS * 5));
    }

    #[test]
    fn short_calls_between_waits_add_up() {
        let mut call = watch(MS);
        let tick = Duration::from_micros(1);
        for _ in 0..1000 {
            call.begun = Some(Instant::now() - MS);
            call.pause(Moment::now, tick);
        }
        assert_eq!(call.look(Moment::now()), None);
    }

    /// More threads than processors, so that some of them wait.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells_how_long_a_thread_waited() {
        use std::sync::atomic::{AtomicBool, Ordering};

        if !std::path::Path::new("/proc/thread-self/schedstat").exists() {
            return;
        }
        let done = AtomicBool::new(false);
        let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from) + 1;
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let start = Moment::now();
                    while !done.load(Ordering::Relaxed) {
                        if Moment::now().waited > start.waited {
                            done.store(true, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
    }
}
