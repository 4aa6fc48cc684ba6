//! The processor time of a component over all its incarnations, and the rules that depend on it.
//!
//! ```text
//!  quick: runs on the worker that has its message ──────────────┐ promotion: quick for long enough
//!     │ a call passes a slice, or calls are long on average     │
//!     ▼                                                         │
//!  heavy: runs on guest threads, by virtual time = CPU / weight ┘
//! ```
//!
//! A component that exceeds its share of a processor is throttled: its next call begins when its
//! budget is no longer negative. Where the node says so, a component that keeps exceeding its share
//! is quarantined.

mod budget;
mod placement;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use self::budget::CpuBudget;
use self::placement::CallPlacement;
pub(crate) use self::placement::{WORKER_SLICE, WorkerTime};
use crate::engine::{HostLimits, OverBudgetAction};
use crate::log_limit::LogLimits;
use crate::manifest::ComponentLimits;
use crate::metric;
use crate::seeded_bug::{Bug, seeded};

/// The processor usage of one component, and the rate limiters of its log lines. All its
/// incarnations and versions share it.
#[derive(Debug)]
pub(crate) struct ComponentUsage {
    name: Box<str>,
    /// The flags [`HEAVY`] and [`OVER`]; 0 for a component whose calls run on workers without
    /// delay.
    state: AtomicU8,
    /// Nanoseconds of processor time.
    cpu: AtomicU64,
    /// Number of calls of the incarnations that have ended.
    ended_calls: AtomicU64,
    /// Nanoseconds of processor time divided by weight, relative to the start of the run queue.
    virtual_time: AtomicU64,
    weight: AtomicU32,
    throttled: AtomicU64,
    /// Total delay of its calls in nanoseconds.
    delayed: AtomicU64,
    banned: AtomicBool,
    log: LogLimits,
    rules: Mutex<UsageState>,
}

#[derive(Debug)]
struct UsageState {
    budget: Option<CpuBudget>,
    placement: CallPlacement,
    excess: OverBudgetAction,
    patience: Duration,
    /// Time of the latest log line about its throttling.
    last_logged: Option<Instant>,
}

/// Calls run on guest threads.
const HEAVY: u8 = 1;
/// The component has exceeded its share.
const OVER: u8 = 2;

/// The weight at which virtual time equals processor time.
pub(crate) const DEFAULT_WEIGHT: u32 = 100;
/// Minimum interval of log lines about the throttling of one component.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The decision whether a call may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Now,
    After(Duration),
    /// Never: it exceeded its share for longer than the node allows.
    Quarantine,
}

impl ComponentUsage {
    pub(crate) fn new(name: &str, limits: &ComponentLimits, host: &HostLimits) -> Self {
        let now = Instant::now();
        let usage = Self {
            name: Box::from(name),
            state: AtomicU8::new(0),
            cpu: AtomicU64::new(0),
            ended_calls: AtomicU64::new(0),
            virtual_time: AtomicU64::new(0),
            weight: AtomicU32::new(DEFAULT_WEIGHT),
            throttled: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            banned: AtomicBool::new(false),
            log: LogLimits::new(name, limits.log_rate),
            rules: Mutex::new(UsageState {
                budget: None,
                placement: CallPlacement::new(now),
                excess: host.excess,
                patience: host.patience,
                last_logged: None,
            }),
        };
        usage.set_limits(limits, host);
        usage
    }

    /// Takes over the limits of a version, within the caps of the node.
    pub(crate) fn set_limits(&self, limits: &ComponentLimits, host: &HostLimits) {
        self.log.set_own_rate(limits.log_rate);
        let caps = &host.caps;
        let weight = caps.weight_of(limits);
        self.weight.store(weight.max(1), Ordering::Relaxed);
        let share = caps.cpu_of(limits);
        let mut rules = self.rules.lock();
        let budget = rules.budget.take();
        // A new version does not start with a full budget.
        rules.budget = (!share.is_whole()).then(|| match budget {
            Some(budget) => budget.with_share(share),
            None => CpuBudget::new(share, Instant::now()),
        });
        if rules.budget.is_none() {
            self.state.fetch_and(!OVER, Ordering::Relaxed);
        }
    }

    /// Returns the rate limiters of log lines caused by the component.
    pub(crate) const fn log_limits(&self) -> &LogLimits {
        &self.log
    }

    /// Returns `true` if its calls are neither delayed nor moved to guest threads.
    #[inline]
    pub(crate) fn is_unrestricted(&self) -> bool {
        self.state.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn is_heavy(&self) -> bool {
        self.state.load(Ordering::Relaxed) & HEAVY != 0
    }

    pub(crate) fn is_banned(&self) -> bool {
        self.banned.load(Ordering::Relaxed)
    }

    pub(crate) fn cpu(&self) -> Duration {
        Duration::from_nanos(self.cpu.load(Ordering::Relaxed))
    }

    /// Returns the number of delayed calls, and their total delay.
    pub(crate) fn throttled(&self) -> (u64, Duration) {
        let delayed = Duration::from_nanos(self.delayed.load(Ordering::Relaxed));
        (self.throttled.load(Ordering::Relaxed), delayed)
    }

    /// Advances its virtual time to at least `least` and returns it, so that a long idle time does
    /// not give unlimited credit in the run queue.
    pub(crate) fn advance_virtual_time(&self, least: u64) -> u64 {
        let before = self.virtual_time.fetch_max(least, Ordering::Relaxed);
        before.max(least)
    }

    /// Counts processor time that was measured on a guest thread.
    pub(crate) fn charge_measured(&self, cpu: Duration) {
        let nanos = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
        let weight = match seeded(Bug::WeightIgnored) {
            true => u64::from(DEFAULT_WEIGHT),
            false => u64::from(self.weight.load(Ordering::Relaxed)),
        };
        let by_weight = nanos.saturating_mul(u64::from(DEFAULT_WEIGHT)) / weight;
        self.virtual_time.fetch_add(by_weight, Ordering::Relaxed);
        self.spend(cpu);
    }

    /// Counts processor time on a worker, where a call saw a tick: it stands for the calls that saw
    /// none. `calls` is the number of calls of this incarnation, and `all` the time of all
    /// components, including this one.
    pub(crate) fn charge_sampled(&self, cpu: Duration, calls: u64, all: WorkerTime) {
        let now = Instant::now();
        self.spend(cpu);
        let calls = self.ended_calls.load(Ordering::Relaxed) + calls;
        if self.rules.lock().placement.sample(now, cpu, calls, all) {
            self.demote(now);
        }
    }

    /// Counts the calls of an incarnation that has ended. Otherwise each of many short incarnations
    /// would seem to be the only one in its sample, with a single long call.
    pub(crate) fn count_ended_calls(&self, calls: u64) {
        self.ended_calls.fetch_add(calls, Ordering::Relaxed);
    }

    fn spend(&self, cpu: Duration) {
        let nanos = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
        self.cpu.fetch_add(nanos, Ordering::Relaxed);
        let mut rules = self.rules.lock();
        if let Some(budget) = &mut rules.budget
            && budget.spend(Instant::now(), cpu)
        {
            self.state.fetch_or(OVER, Ordering::Relaxed);
        }
    }

    /// Records that a call exceeded its slice on a worker: later calls run on guest threads.
    pub(crate) fn record_slice_exceeded(&self) {
        if !self.is_heavy() {
            self.demote(Instant::now());
        }
    }

    fn demote(&self, now: Instant) {
        if seeded(Bug::HeavyStaysOnWorker) {
            return;
        }
        let patience = self.rules.lock().placement.demote(now);
        self.state.fetch_or(HEAVY, Ordering::Relaxed);
        let component = &*self.name;
        tracing::debug!(component, ?patience, "moved to guest threads");
    }

    /// Records that a call of a heavy component ended, and whether it saw a tick.
    pub(crate) fn record_call(&self, ticked: bool) {
        if self.is_heavy()
            && self
                .rules
                .lock()
                .placement
                .record_call(Instant::now(), ticked)
        {
            self.state.fetch_and(!HEAVY, Ordering::Relaxed);
            let component = &*self.name;
            tracing::debug!(component, "moved back to workers");
        }
    }

    /// Decides whether the next call may begin.
    pub(crate) fn admission(&self) -> Admission {
        if self.is_banned() {
            return Admission::Quarantine;
        }
        if self.state.load(Ordering::Relaxed) & OVER == 0 || seeded(Bug::ShareIgnored) {
            return Admission::Now;
        }
        let now = Instant::now();
        let mut rules = self.rules.lock();
        let (excess, patience) = (rules.excess, rules.patience);
        let Some(budget) = &mut rules.budget else {
            return Admission::Now;
        };
        let (delay, over) = budget.delay(now);
        let is_banned = excess == OverBudgetAction::Quarantine && over >= patience;
        if is_banned && !seeded(Bug::QuarantineIgnored) {
            self.banned.store(true, Ordering::Relaxed);
            metric::quarantined(&self.name);
            return Admission::Quarantine;
        }
        if delay.is_zero() {
            self.state.fetch_and(!OVER, Ordering::Relaxed);
            return Admission::Now;
        }
        let share = budget.share();
        let silent = rules
            .last_logged
            .is_some_and(|last_logged| now < last_logged + LOG_INTERVAL);
        if !silent {
            rules.last_logged = Some(now);
        }
        drop(rules);
        self.throttled.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.delayed.fetch_add(nanos, Ordering::Relaxed);
        if !silent {
            let component = &*self.name;
            tracing::warn!(component, %share, ?delay, "throttled: exceeded its CPU share");
        }
        Admission::After(delay)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `true` if a component becomes heavy that lives a thousand times, for one call each.
    /// Every `per_tick`th call sees a tick, which stands for 250 microseconds.
    fn becomes_heavy(per_tick: u32) -> bool {
        let (limits, host) = (ComponentLimits::default(), HostLimits::default());
        let usage = ComponentUsage::new("short", &limits, &host);
        let tick = Duration::from_micros(250);
        for life in 0..1000 {
            if life % per_tick == 0 {
                let total = tick * (life / per_tick + 1);
                usage.charge_sampled(tick, 1, WorkerTime { total, workers: 2 });
            }
            usage.count_ended_calls(1);
        }
        usage.is_heavy()
    }

    #[test]
    fn quick_calls_of_many_short_incarnations_are_counted_together() {
        assert!(!becomes_heavy(25), "10 us for each call");
        assert!(becomes_heavy(1), "250 us for each call");
    }
}
