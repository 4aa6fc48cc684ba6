//! Where the calls of a component run: on the workers of the node, or on guest threads.
//!
//! A component is on the workers until one of its calls passes a slice, or its calls are long on
//! average while it computes a good part of the time. It comes back after many quick calls in a row
//! and some patience, which doubles each time that it has to go again soon: alternating does not
//! pay.

use std::time::Duration;

use tokio::time::Instant;

/// The processor time of a call on a worker after which its component is heavy.
pub(crate) const SLICE: Duration = Duration::from_millis(1);
/// The processor time after which the calls on a worker are averaged.
const SAMPLE: Duration = Duration::from_millis(4);
/// A component that needs longer than this for a sample computes a small part of the time.
const DENSE: Duration = Duration::from_millis(40);
/// The longest call, on average, of a component that computes much.
const LONG: Duration = Duration::from_micros(50);
/// The calls of a row after which a heavy component may come back.
const ROW: u32 = 64;
/// So many of them may see a tick: then they take about as long as those that a worker bears.
/// Without optimization the host's own part of a call takes longer than that. One whose calls are
/// still too long for a worker is sent away again by the sample, for twice as long.
const TICKED: u32 = if cfg!(debug_assertions) { 32 } else { 12 };
/// How long a component is heavy at least, the first time and at most.
const PATIENCE: Duration = Duration::from_secs(1);
const PATIENCE_MAX: Duration = Duration::from_secs(1024);

/// Where the calls of a component run, decided from what they take.
#[derive(Debug)]
pub(super) struct Placement {
    /// The sample under way: since when, what it took so far, and the calls before it.
    since: Instant,
    sampled: Duration,
    calls: u64,
    /// How long it has to be heavy, the next time or this time.
    patience: Duration,
    /// When it became heavy, had its latest long call, or came back.
    changed: Instant,
    heavy: bool,
    /// The row under way on guest threads: its calls, and those of them that saw a tick.
    row: u32,
    ticked: u32,
}

impl Placement {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            since: now,
            sampled: Duration::ZERO,
            calls: 0,
            patience: PATIENCE,
            changed: now,
            heavy: false,
            row: 0,
            ticked: 0,
        }
    }

    /// Counts processor time on a worker; returns `true` if its calls are too long for one.
    pub(super) fn sample(&mut self, now: Instant, cpu: Duration, calls: u64) -> bool {
        self.sampled += cpu;
        if self.sampled < SAMPLE {
            return false;
        }
        // Another life counts from none.
        let count = match calls.checked_sub(self.calls) {
            None | Some(0) => calls.max(1),
            Some(more) => more,
        };
        let average = self.sampled.as_nanos() / u128::from(count);
        let dense = now.saturating_duration_since(self.since) <= DENSE;
        (self.since, self.sampled, self.calls) = (now, Duration::ZERO, calls);
        !self.heavy && dense && average > LONG.as_nanos()
    }

    /// It is heavy from now on; for how long at least.
    pub(super) fn demote(&mut self, now: Instant) -> Duration {
        if !self.heavy {
            let stayed = now.saturating_duration_since(self.changed);
            self.patience = if stayed > self.patience * 10 {
                PATIENCE
            } else {
                (self.patience * 2).min(PATIENCE_MAX)
            };
        }
        (self.heavy, self.changed) = (true, now);
        (self.row, self.ticked) = (0, 0);
        self.patience
    }

    /// A call on a guest thread is over, and saw a tick or not; returns `true` if its component
    /// comes back to the workers. What the call took would say less: half of it may be the host's.
    pub(super) fn called(&mut self, now: Instant, ticked: bool) -> bool {
        self.row += 1;
        self.ticked += u32::from(ticked);
        if self.ticked > TICKED {
            (self.changed, self.row, self.ticked) = (now, 0, 0);
            return false;
        }
        if self.row < ROW {
            return false;
        }
        (self.row, self.ticked) = (0, 0);
        let waited = now.saturating_duration_since(self.changed) >= self.patience;
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

    #[test]
    fn many_calls_of_a_fraction_of_a_slice_are_heavy_and_quick_ones_are_not() {
        let start = Instant::now();
        let ticks = |each: u64| {
            let mut placement = Placement::new(start);
            (1..=100).any(|tick: u32| {
                let calls = u64::from(tick) * 250 / each;
                placement.sample(start + US * 300 * tick, US * 250, calls)
            })
        };
        assert!(ticks(200));
        assert!(!ticks(1));
        let mut rare = Placement::new(start);
        let any = (1..=100)
            .any(|tick: u32| rare.sample(start + US * 5000 * tick, US * 250, u64::from(tick)));
        assert!(!any, "it computes a twentieth of the time");
    }

    #[test]
    fn quick_calls_bring_it_back_and_alternating_takes_longer_each_time() {
        let start = Instant::now();
        let mut placement = Placement::new(start);
        let mut now = start;
        let mut heavy_for = Vec::new();
        for _ in 0..4 {
            let gone = now;
            placement.demote(now);
            while !placement.called(now, false) {
                now += US * 1000;
            }
            heavy_for.push((now - gone).as_secs());
        }
        assert_eq!(heavy_for, [2, 4, 8, 16]);
        now += S * 1000;
        assert_eq!(placement.demote(now), PATIENCE);
    }

    #[test]
    fn calls_that_see_ticks_keep_it_heavy_and_one_now_and_then_does_not() {
        let start = Instant::now();
        for (each, comes_back) in [(1, false), (10, true), (1000, true)] {
            let mut placement = Placement::new(start);
            placement.demote(start);
            let mut back = false;
            for call in 0..10_000 {
                let now = start + US * 1000 * call;
                back |= placement.called(now, call % each == 0);
            }
            assert_eq!(back, comes_back, "one of {each}");
        }
    }
}
