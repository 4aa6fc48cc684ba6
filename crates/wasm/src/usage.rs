//! The processor time of a component over all its lives, and what follows from it.
//!
//! ```text
//!  quick: runs on the worker that has its message ──────────────┐ promotion: quick for long enough
//!     │ a call passes a slice, or calls are long on average     │
//!     ▼                                                         │
//!  heavy: runs on guest threads, by virtual time = CPU / weight ┘
//! ```
//!
//! Beyond its share of a processor it is throttled: its next call begins when its budget is level
//! again. Where the node says so, one that stays beyond its share is put into quarantine.

mod budget;
mod placement;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use self::budget::Budget;
use self::placement::Placement;
pub(crate) use self::placement::SLICE;
use crate::engine::{Excess, HostLimits};
use crate::manifest::Limits;
use crate::metric;
use crate::planted::{Bug, planted};

/// The processor time of one component. Its lives share it, and so do its versions.
#[derive(Debug)]
pub(crate) struct Usage {
    name: Box<str>,
    /// [`HEAVY`] and [`OVER`]: 0 for a component that may run where its messages are.
    state: AtomicU8,
    /// Nanoseconds of processor time.
    cpu: AtomicU64,
    /// Nanoseconds of processor time by weight, from where the run queue began.
    virtual_time: AtomicU64,
    weight: AtomicU32,
    throttled: AtomicU64,
    /// Nanoseconds that its calls were delayed.
    delayed: AtomicU64,
    banned: AtomicBool,
    rules: Mutex<Rules>,
}

#[derive(Debug)]
struct Rules {
    budget: Option<Budget>,
    placement: Placement,
    excess: Excess,
    patience: Duration,
    /// When it was last said that it is throttled.
    told: Option<Instant>,
}

/// Its calls run on guest threads.
const HEAVY: u8 = 1;
/// It has used more than its share.
const OVER: u8 = 2;

/// The weight that counts processor time as it is.
pub(crate) const WEIGHT: u32 = 100;
/// How far apart two lines in the log about the same component's throttling are at least.
const TELL: Duration = Duration::from_secs(10);

/// Whether a call may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    Now,
    After(Duration),
    /// Never: it was beyond its share for longer than the node bears.
    Quarantine,
}

impl Usage {
    pub(crate) fn new(name: &str, limits: &Limits, host: &HostLimits) -> Self {
        let now = Instant::now();
        let usage = Self {
            name: Box::from(name),
            state: AtomicU8::new(0),
            cpu: AtomicU64::new(0),
            virtual_time: AtomicU64::new(0),
            weight: AtomicU32::new(WEIGHT),
            throttled: AtomicU64::new(0),
            delayed: AtomicU64::new(0),
            banned: AtomicBool::new(false),
            rules: Mutex::new(Rules {
                budget: None,
                placement: Placement::new(now),
                excess: host.excess,
                patience: host.patience,
                told: None,
            }),
        };
        usage.limit(limits, host);
        usage
    }

    /// Takes over what the manifest of a version says, within what the node allows.
    pub(crate) fn limit(&self, limits: &Limits, host: &HostLimits) {
        let caps = &host.caps;
        let weight = limits.weight.unwrap_or_else(|| WEIGHT.min(caps.weight));
        self.weight.store(weight.max(1), Ordering::Relaxed);
        let share = limits.cpu.unwrap_or(caps.cpu);
        let mut rules = self.rules.lock();
        let budget = rules.budget.take();
        // A new version does not begin with a full budget.
        rules.budget = (!share.is_whole()).then(|| match budget {
            Some(budget) => budget.with(share),
            None => Budget::new(share, Instant::now()),
        });
        if rules.budget.is_none() {
            self.state.fetch_and(!OVER, Ordering::Relaxed);
        }
    }

    /// Returns `true` if its calls are neither delayed nor moved to guest threads.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
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

    /// How often a call was delayed, and for how long altogether.
    pub(crate) fn throttled(&self) -> (u64, Duration) {
        let delayed = Duration::from_nanos(self.delayed.load(Ordering::Relaxed));
        (self.throttled.load(Ordering::Relaxed), delayed)
    }

    /// Takes its place in the run queue: one that was away for long does not come back with credit.
    pub(crate) fn no_earlier_than(&self, least: u64) -> u64 {
        let before = self.virtual_time.fetch_max(least, Ordering::Relaxed);
        before.max(least)
    }

    /// Counts processor time that was measured on a guest thread.
    pub(crate) fn measured(&self, cpu: Duration) {
        let nanos = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
        let weight = match planted(Bug::WeightIgnored) {
            true => u64::from(WEIGHT),
            false => u64::from(self.weight.load(Ordering::Relaxed)),
        };
        let by_weight = nanos.saturating_mul(u64::from(WEIGHT)) / weight;
        self.virtual_time.fetch_add(by_weight, Ordering::Relaxed);
        self.spend(cpu);
    }

    /// Counts processor time on a worker, where a call saw a tick: it stands for the calls that
    /// saw none. `calls` is the number of calls of this life.
    pub(crate) fn sampled(&self, cpu: Duration, calls: u64) {
        let now = Instant::now();
        self.spend(cpu);
        if self.rules.lock().placement.sample(now, cpu, calls) {
            self.demote(now);
        }
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

    /// A call passed its slice on a worker: from now on calls run on guest threads.
    pub(crate) fn passed_slice(&self) {
        if !self.is_heavy() {
            self.demote(Instant::now());
        }
    }

    fn demote(&self, now: Instant) {
        if planted(Bug::HogStaysOnWorker) {
            return;
        }
        let patience = self.rules.lock().placement.demote(now);
        self.state.fetch_or(HEAVY, Ordering::Relaxed);
        let component = &*self.name;
        tracing::debug!(
            component,
            ?patience,
            "computes on guest threads from now on"
        );
    }

    /// A call of a heavy component ended, and saw a tick or not.
    pub(crate) fn called(&self, ticked: bool) {
        if self.is_heavy() && self.rules.lock().placement.called(Instant::now(), ticked) {
            self.state.fetch_and(!HEAVY, Ordering::Relaxed);
            let component = &*self.name;
            tracing::debug!(component, "computes on workers again");
        }
    }

    /// Asks whether its next call may begin.
    pub(crate) fn admission(&self) -> Admission {
        if self.is_banned() {
            return Admission::Quarantine;
        }
        if self.state.load(Ordering::Relaxed) & OVER == 0 || planted(Bug::ShareIgnored) {
            return Admission::Now;
        }
        let now = Instant::now();
        let mut rules = self.rules.lock();
        let (excess, patience) = (rules.excess, rules.patience);
        let Some(budget) = &mut rules.budget else {
            return Admission::Now;
        };
        let (delay, over) = budget.delay(now);
        if excess == Excess::Quarantine && over >= patience {
            self.banned.store(true, Ordering::Relaxed);
            metric::starved(&self.name);
            return Admission::Quarantine;
        }
        if delay.is_zero() {
            self.state.fetch_and(!OVER, Ordering::Relaxed);
            return Admission::Now;
        }
        let share = budget.share();
        let silent = rules.told.is_some_and(|told| now < told + TELL);
        if !silent {
            rules.told = Some(now);
        }
        drop(rules);
        self.throttled.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.delayed.fetch_add(nanos, Ordering::Relaxed);
        if !silent {
            let component = &*self.name;
            tracing::warn!(component, %share, ?delay, "throttled: used more than its share");
        }
        Admission::After(delay)
    }
}
