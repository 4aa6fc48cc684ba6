//! Resources that the process has used: sleeps, preemptions and processor time.

use std::ops::{AddAssign, Sub};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::{Value, json};

/// Resources of the machine that this process has used.
///
/// They explain a row about messages between threads: whether a receiver sleeps and has to be
/// woken, and whether the work runs on one processor or on two.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Usage {
    /// Number of times that a thread went to sleep.
    sleeps: i64,
    /// Number of times that a thread was preempted.
    preemptions: i64,
    /// Processor time of all threads.
    processor: Duration,
    /// Wall-clock time since an arbitrary moment.
    clock: Duration,
}

impl Usage {
    pub(crate) fn now() -> Self {
        thread_local! {
            static EPOCH: Instant = Instant::now();
        }
        let clock = EPOCH.with(Instant::elapsed);
        let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
            return Self {
                clock,
                ..Self::default()
            };
        };
        let microseconds = (usage.user_time() + usage.system_time()).num_microseconds();
        Self {
            sleeps: usage.voluntary_context_switches(),
            preemptions: usage.involuntary_context_switches(),
            processor: Duration::from_micros(microseconds.try_into().unwrap_or(0)),
            clock,
        }
    }

    /// The notes of a row about these resources, per operation.
    pub(crate) fn notes(&self, operations: u64) -> [(&'static str, Value); 3] {
        let each = |count: i64| {
            let each = count as f64 / operations.max(1) as f64;
            json!((each * 1e5).round() / 1e5)
        };
        let processors = self.processor.as_secs_f64() / self.clock.as_secs_f64().max(1e-9);
        [
            ("sleeps", each(self.sleeps)),
            ("preemptions", each(self.preemptions)),
            ("processors", json!((processors * 100.0).round() / 100.0)),
        ]
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            sleeps: self.sleeps - before.sleeps,
            preemptions: self.preemptions - before.preemptions,
            processor: self.processor.saturating_sub(before.processor),
            clock: self.clock.saturating_sub(before.clock),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, more: Self) {
        self.sleeps += more.sleeps;
        self.preemptions += more.preemptions;
        self.processor += more.processor;
        self.clock += more.clock;
    }
}
