//! The placement of a component's calls: on the workers of the node, or on guest threads.
//!
//! A component runs on the workers until one of its calls exceeds a slice, or its calls are long on
//! average while it, or all components together, compute a considerable part of the time; then it
//! is *heavy*, and runs on guest threads. All together count because twenty components with long
//! calls occupy the workers although each of them computes only a twentieth of the time. A heavy
//! component returns to the workers after many quick calls in a row and a minimum time, which
//! doubles each time that the component becomes heavy again soon, so that alternating does not pay.

use std::time::Duration;

use tokio::time::Instant;

/// Processor time of a call on a worker after which its component is heavy.
pub(crate) const WORKER_SLICE: Duration = Duration::from_millis(1);
/// Processor time after which the calls on a worker are averaged.
const SAMPLE_TIME: Duration = Duration::from_millis(4);
/// Maximum span of a sample; a component that takes longer for it computes only a small part of the
/// time.
const MAX_SAMPLE_SPAN: Duration = Duration::from_millis(40);
/// One part in this many of the workers' time: if all components together compute for longer during
/// a sample, its span does not matter.
const MAX_WORKER_SHARE: u32 = 4;
/// Maximum average length of the calls of a component that computes much.
const MAX_AVERAGE_CALL: Duration = Duration::from_micros(50);
/// Number of calls in a row after which a heavy component may return.
const QUICK_CALLS: u32 = 64;
/// Maximum number of calls in a row that see a tick. Up to this number, the calls are about as
/// short as a worker allows. Without optimization the host's own part of a call takes longer than
/// that. If the calls are still too long for a worker, the sample moves the component back to guest
/// threads, for twice as long.
const MAX_TICKED_CALLS: u32 = if cfg!(debug_assertions) { 32 } else { 12 };
/// Minimum time for which a component is heavy: the initial value, and the maximum after doubling.
const MIN_HEAVY_TIME: Duration = Duration::from_secs(1);
const MIN_HEAVY_TIME_MAX: Duration = Duration::from_secs(1024);

/// The processor time of all components of a host on workers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkerTime {
    /// The total since the host was created.
    pub(crate) total: Duration,
    /// Number of workers of the runtime.
    pub(crate) workers: u32,
}

/// The placement of a component's calls, decided from their processor time.
#[derive(Debug, Clone)]
pub(super) struct CallPlacement {
    /// The current sample: its start, its processor time so far, and the calls and the time of all
    /// components before it.
    since: Instant,
    sampled: Duration,
    calls: u64,
    total: Duration,
    /// Minimum time for which it stays heavy, this time or the next time.
    min_heavy_time: Duration,
    /// Time at which it became heavy, made its latest long call, or returned to the workers.
    changed: Instant,
    heavy: bool,
    /// The current row of calls on guest threads: all calls, and those that saw a tick.
    row: u32,
    ticked: u32,
}

impl CallPlacement {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            sampled: Duration::ZERO,
            calls: 0,
            total: Duration::ZERO,
            min_heavy_time: MIN_HEAVY_TIME,
            changed: now,
            heavy: false,
            row: 0,
            ticked: 0,
        }
    }

    /// Counts processor time on a worker; returns `true` if its calls are too long for a worker.
    pub(super) fn sample(
        &mut self,
        now: Instant,
        cpu: Duration,
        calls: u64,
        all: WorkerTime,
    ) -> bool {
        if self.sampled.is_zero() {
            self.total = all.total.saturating_sub(cpu);
        }
        self.sampled += cpu;
        if self.sampled < SAMPLE_TIME {
            return false;
        }
        // An incarnation may have ended whose calls are not counted yet.
        let count = match calls.checked_sub(self.calls) {
            None | Some(0) => calls.max(1),
            Some(more) => more,
        };
        let average = self.sampled.as_nanos() / u128::from(count);
        let span = now.saturating_duration_since(self.since);
        let occupied = all.total.saturating_sub(self.total);
        let dense =
            span <= MAX_SAMPLE_SPAN || occupied * MAX_WORKER_SHARE > span * all.workers.max(1);
        (self.since, self.sampled, self.calls) = (now, Duration::ZERO, calls);
        !self.heavy && dense && average > MAX_AVERAGE_CALL.as_nanos()
    }

    /// Makes the component heavy; returns the minimum time for which it stays heavy.
    pub(super) fn demote(&mut self, now: Instant) -> Duration {
        if !self.heavy {
            let stayed = now.saturating_duration_since(self.changed);
            self.min_heavy_time = if stayed > self.min_heavy_time * 10 {
                MIN_HEAVY_TIME
            } else {
                (self.min_heavy_time * 2).min(MIN_HEAVY_TIME_MAX)
            };
        }
        (self.heavy, self.changed) = (true, now);
        (self.row, self.ticked) = (0, 0);
        self.min_heavy_time
    }

    /// Records that a call on a guest thread ended, and whether it saw a tick; returns `true` if
    /// its component returns to the workers. The processor time of the call would say less: half of
    /// it may be the host's.
    pub(super) fn record_call(&mut self, now: Instant, ticked: bool) -> bool {
        self.row += 1;
        self.ticked += u32::from(ticked);
        if self.ticked > MAX_TICKED_CALLS {
            (self.changed, self.row, self.ticked) = (now, 0, 0);
            return false;
        }
        if self.row < QUICK_CALLS {
            return false;
        }
        (self.row, self.ticked) = (0, 0);
        let waited = now.saturating_duration_since(self.changed) >= self.min_heavy_time;
        if !self.heavy || !waited {
            return false;
        }
        (self.heavy, self.changed) = (false, now);
        (self.since, self.sampled) = (now, Duration::ZERO);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);
    const S: Duration = Duration::from_secs(1);

    /// The time of all components on two workers.
    fn all(total: Duration) -> WorkerTime {
        WorkerTime { total, workers: 2 }
    }

    #[test]
    fn dense_long_calls_are_heavy_and_quick_ones_are_not() {
        let start = Instant::now();
        let ticks = |each: u64| {
            let mut placement = CallPlacement::new(start);
            (1..=100).any(|tick: u32| {
                let calls = u64::from(tick) * 250 / each;
                let now = start + US * 300 * tick;
                placement.sample(now, US * 250, calls, all(US * 250 * tick))
            })
        };
        assert!(ticks(200));
        assert!(!ticks(1));
    }

    #[test]
    fn long_calls_of_many_components_count_together() {
        let start = Instant::now();
        // In turn, each component computes for 250 us in each 5 ms.
        let any_moves = |components: u32, calls: u64| {
            let mut placements = vec![CallPlacement::new(start); components as usize];
            (0..40 * components).any(|slot| {
                let (round, number) = (slot / components, slot % components);
                let now = start + US * (5000 * round + 125 * number);
                let calls = u64::from(round + 1) * calls;
                let placement = &mut placements[number as usize];
                placement.sample(now, US * 250, calls, all(US * 250 * (slot + 1)))
            })
        };
        assert!(!any_moves(1, 1), "it computes a twentieth of the time");
        assert!(!any_moves(8, 1), "a fifth of the workers' time");
        assert!(any_moves(40, 1), "all of the workers' time");
        assert!(!any_moves(40, 10), "the calls are quick");
    }

    #[test]
    fn quick_calls_return_it_and_alternating_doubles_the_time() {
        let start = Instant::now();
        let mut placement = CallPlacement::new(start);
        let mut now = start;
        let mut heavy_for = Vec::new();
        for _ in 0..4 {
            let gone = now;
            placement.demote(now);
            while !placement.record_call(now, false) {
                now += US * 1000;
            }
            heavy_for.push((now - gone).as_secs());
        }
        assert_eq!(heavy_for, [2, 4, 8, 16]);
        now += S * 1000;
        assert_eq!(placement.demote(now), MIN_HEAVY_TIME);
    }

    #[test]
    fn frequent_ticked_calls_keep_it_heavy() {
        let start = Instant::now();
        for (each, comes_back) in [(1, false), (10, true), (1000, true)] {
            let mut placement = CallPlacement::new(start);
            placement.demote(start);
            let mut back = false;
            for call in 0..10_000 {
                let now = start + US * 1000 * call;
                back |= placement.record_call(now, call % each == 0);
            }
            assert_eq!(back, comes_back, "one of {each}");
        }
    }
}
