//! The monitor: one thread that watches the dispatchers of all systems.
//!
//! While any of them works, the monitor gives the [beat] that bounds turns, and looks every
//! millisecond. A dispatcher that has work but made no progress since the last look is blocked by a
//! handler, and all of its actors are given to a dispatcher that is parked. A dispatcher with
//! several waiting actors at two looks in a row shares half of them. A hook that blocks any thread
//! of a system for longer than the limit of that system is reported. If nothing works for a while,
//! the monitor sleeps until something does; when no pool is left, it ends.

use std::hash::BuildHasher;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;

use super::Pool;
use super::dispatcher::DispatcherSample;
use super::watch::{self, WatchSample};
use crate::reply::PendingReply;
use crate::schedule::beat;
use crate::schedule::strand::RecentAsks;
use crate::seeded_bug::{Bug, seeded};
use crate::sync::{AtomicBool, Ordering, Weakening, weaken_or, weakened};

/// The period of the beat that bounds turns.
const BEAT_PERIOD: Duration = Duration::from_micros(500);

/// Dispatchers are checked with every other beat.
const BEATS_PER_INSPECTION: u32 = 2;

/// Number of looks without work after which the monitor sleeps.
const IDLE_INSPECTIONS_BEFORE_SLEEP: u32 = 50;

/// While it sleeps, the monitor still checks at this interval that the pools exist.
const SLEEP_CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[cfg(not(strowger_loom))]
static MONITOR_SLEEP: MonitorSleep = MonitorSleep(AtomicBool::new(false));
// No model touches it, as it would outlive the model: each has its own.
#[cfg(strowger_loom)]
static MONITOR_SLEEP: std::sync::LazyLock<MonitorSleep> =
    std::sync::LazyLock::new(MonitorSleep::new);

static MONITOR: Mutex<Monitor> = Mutex::new(Monitor {
    pools: Vec::new(),
    thread: None,
});

/// The lists of recent asks.
#[cfg(not(strowger_loom))]
static RECENT_ASKS: [RecentAsks; RECENT_ASK_LISTS] =
    [const { RecentAsks::new() }; RECENT_ASK_LISTS];
#[cfg(strowger_loom)]
static RECENT_ASKS: std::sync::LazyLock<[RecentAsks; RECENT_ASK_LISTS]> =
    std::sync::LazyLock::new(|| [const { () }; RECENT_ASK_LISTS].map(|()| RecentAsks::new()));

/// Number of lists; further threads share one.
const RECENT_ASK_LISTS: usize = 32;

struct Monitor {
    /// Pools that the thread has not seen yet.
    pools: Vec<Weak<Pool>>,
    thread: Option<Thread>,
}

/// A flag that is set while the monitor sleeps.
pub(super) struct MonitorSleep(AtomicBool);

impl MonitorSleep {
    #[cfg(strowger_loom)]
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Records that a dispatcher works; returns `true` if the caller has to wake the monitor.
    pub(super) fn mark_busy(&self, busy: &AtomicBool) -> bool {
        let acq_rel = weaken_or(Weakening::BusyAcquire, Ordering::AcqRel, Ordering::Release);
        self.set(busy, acq_rel)
    }

    /// Sets a flag that the monitor checks before it sleeps; returns `true` if the caller has to
    /// wake it.
    #[inline(always)]
    fn set(&self, flag: &AtomicBool, acq_rel: Ordering) -> bool {
        // This and the check in `sleep_unless` both modify the flag, so one of them comes second
        // and sees what the other one did before: the monitor sees that the flag is set, or this
        // thread sees that the monitor sleeps.
        flag.swap(true, acq_rel);
        self.0.load(Ordering::Relaxed) && self.end()
    }

    /// Records that an entry was added to a list; returns `true` if the caller has to wake the
    /// monitor.
    ///
    /// The monitor has to know of it before it sleeps, as it has to know of a dispatcher that
    /// works. If the list is wanted already, no atomic step is needed: the lock of the list, which
    /// the caller held before or after the monitor, makes the one visible to the other.
    #[inline]
    pub(super) fn mark_wanted(&self, list: &RecentAsks) -> bool {
        let acq_rel = weaken_or(
            Weakening::WantedAcquire,
            Ordering::AcqRel,
            Ordering::Release,
        );
        !list.needs_check.load(Ordering::Relaxed) && self.set(&list.needs_check, acq_rel)
    }

    /// Ends the sleep, if there is one. Returns `true` if the caller has to wake the monitor.
    fn end(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }

    /// Sleeps, unless there is work of which the monitor might not be told.
    pub(super) fn sleep_unless(&self, works: impl FnOnce() -> bool, park: impl FnOnce()) {
        // Swapped as everywhere else, so that all changes of the flag are in one order.
        self.0.swap(true, Ordering::Relaxed);
        if !works() || weakened(Weakening::SleepChecksForWork) {
            park();
        }
        self.0.swap(false, Ordering::Relaxed);
    }
}

/// Puts an ask that waits where the monitor calls it, if it still waits after a look.
#[inline]
pub(super) fn register_ask<T>(answer: &mut PendingReply<T>) {
    thread_local! {
        static THREAD_LIST: &'static RecentAsks = {
            let thread = FxBuildHasher.hash_one(thread::current().id());
            let number = usize::try_from(thread >> 32).unwrap_or(0);
            &RECENT_ASKS[number % RECENT_ASK_LISTS]
        };
    }
    let list = THREAD_LIST
        .try_with(|list| *list)
        .unwrap_or(&RECENT_ASKS[0]);
    answer.add_to_recent(list);
    if MONITOR_SLEEP.mark_wanted(list) {
        wake();
    }
}

/// Calls the recent asks that still wait; returns `true` if there were any.
fn wake_recent_asks() -> bool {
    let mut found = false;
    if seeded(Bug::StalledAskNotWoken) {
        return found;
    }
    let mut wakers = Vec::new();
    for list in RECENT_ASKS.iter() {
        found |= wake_listed(list, &mut wakers);
    }
    found
}

/// Calls the asks in a list; returns `true` if the list was wanted.
pub(super) fn wake_listed(list: &RecentAsks, wakers: &mut Vec<Waker>) -> bool {
    // Cleared before the list is checked: a thread that adds an entry after that sets it again.
    let wanted =
        list.needs_check.load(Ordering::Relaxed) && list.needs_check.swap(false, Ordering::AcqRel);
    let mut more = wanted;
    while more {
        more = list.take(wakers);
        wakers.drain(..).for_each(Waker::wake);
    }
    if weakened(Weakening::WantedClearedFirst) {
        list.needs_check.store(false, Ordering::Release);
    }
    wanted
}

/// Returns `true` if a dispatcher works; one that begins to work after this sees whether the
/// monitor sleeps.
pub(super) fn is_busy(busy: &AtomicBool) -> bool {
    let acq_rel = weaken_or(
        Weakening::BusyCheckRelease,
        Ordering::AcqRel,
        Ordering::Acquire,
    );
    busy.fetch_or(false, acq_rel)
}

/// Watches a pool for as long as it exists.
pub(super) fn add_pool(pool: &Arc<Pool>) {
    let mut monitor = MONITOR.lock();
    monitor.pools.push(Arc::downgrade(pool));
    if monitor.thread.is_some() {
        pool.has_monitor.store(true, Ordering::Relaxed);
    } else {
        let thread = thread::Builder::new()
            .name("strowger-monitor".to_owned())
            .spawn(run);
        match thread {
            Ok(thread) => {
                monitor.thread = Some(thread.thread().clone());
                pool.has_monitor.store(true, Ordering::Relaxed);
            }
            Err(error) => {
                tracing::error!(%error, "cannot start the thread that monitors dispatchers")
            }
        }
    }
    drop(monitor);
    if MONITOR_SLEEP.end() {
        wake();
    }
}

/// Records that a dispatcher works.
pub(super) fn mark_busy(busy: &AtomicBool) {
    if MONITOR_SLEEP.mark_busy(busy) {
        wake();
    }
}

#[cold]
fn wake() {
    if let Some(thread) = &MONITOR.lock().thread {
        thread.unpark();
    }
}

fn run() {
    let mut watched: Vec<(Weak<Pool>, Vec<DispatcherSample>)> = Vec::new();
    let mut observations = Vec::new();
    let mut quiet = 0;
    loop {
        let mut monitor = MONITOR.lock();
        let new = monitor.pools.drain(..).map(|pool| (pool, Vec::new()));
        watched.extend(new);
        watched.retain(|(pool, _)| pool.strong_count() > 0);
        if watched.is_empty() {
            monitor.thread = None;
            return;
        }
        drop(monitor);
        let mut working = wake_recent_asks();
        for (pool, before) in &mut watched {
            if let Some(pool) = pool.upgrade() {
                working |= inspect_pool(&pool, before);
            }
        }
        working |= inspect_threads(&watched, &mut observations);
        quiet = if working { 0 } else { quiet + 1 };
        if quiet < IDLE_INSPECTIONS_BEFORE_SLEEP || seeded(Bug::MonitorNeverSleeps) {
            for _ in 0..BEATS_PER_INSPECTION {
                thread::sleep(BEAT_PERIOD);
                beat::advance();
            }
            continue;
        }
        quiet = 0;
        MONITOR_SLEEP.sleep_unless(
            || any_dispatcher_busy(&watched),
            || thread::park_timeout(SLEEP_CHECK_INTERVAL),
        );
    }
}

/// Returns `true` if a dispatcher works, or may soon do so in a pool that was not seen yet.
fn any_dispatcher_busy(watched: &[(Weak<Pool>, Vec<DispatcherSample>)]) -> bool {
    let works = |pool: Arc<Pool>| {
        pool.dispatchers
            .iter()
            .any(|dispatcher| is_busy(&dispatcher.busy))
    };
    let mut pools = watched.iter().filter_map(|(pool, _)| pool.upgrade());
    pools.any(works)
        || RECENT_ASKS.iter().any(|list| is_busy(&list.needs_check))
        || !MONITOR.lock().pools.is_empty()
}

/// Checks all dispatchers of a pool; returns `true` if any of them works.
fn inspect_pool(pool: &Pool, before: &mut Vec<DispatcherSample>) -> bool {
    before.resize(pool.dispatchers.len(), DispatcherSample::default());
    let samples: Vec<DispatcherSample> = pool
        .dispatchers
        .iter()
        .map(|dispatcher| dispatcher.sample())
        .collect();
    // A dispatcher that was woken, and has not begun, helps no other.
    let is_called = |sample: &DispatcherSample| {
        sample.waiting > 0 && !seeded(Bug::WokenDispatcherRelievesItself)
    };
    let is_free = |&number: &usize| samples[number].parked && !is_called(&samples[number]);
    let mut free: Vec<usize> = (0..samples.len()).filter(is_free).collect();
    free.reverse();
    let mut working = false;
    for (number, (sample, before)) in samples.iter().zip(before.iter()).enumerate() {
        let late = sample.turns == before.turns;
        working |= sample.busy || sample.waiting > 0 || !late;
        if seeded(Bug::BlockedDispatcherNotRelieved) && late {
            continue;
        }
        if late && sample.busy && before.busy && !pool.dispatchers[number].swap_blocked() {
            // The blocked thread may be the one that waited for sockets and timers: another
            // dispatcher that is called has nothing to do, and then waits for these in its stead.
            if let Some(&relief) = free.last() {
                pool.dispatchers[relief].unpark();
            }
        }
        if sample.waiting == 0 || before.waiting == 0 {
            continue;
        }
        let crowded = sample.waiting >= 2 && before.waiting >= 2;
        // A dispatcher in reserve helps only if a worker is blocked, because there are no more
        // threads than workers.
        let helper = free
            .iter()
            .rposition(|&helper| late || helper < pool.workers)
            .filter(|_| late || crowded);
        if let Some(helper) = helper {
            pool.dispatchers[free.remove(helper)].request_steal(number, late);
        }
    }
    *before = samples;
    working
}

/// The last observation of one thread.
#[derive(Debug, Default)]
struct ThreadObservation {
    sample: WatchSample,
    progress: u64,
    since: Option<Instant>,
    reported: bool,
}

/// Checks what all threads run; returns `true` if any of them runs an actor.
fn inspect_threads(
    watched: &[(Weak<Pool>, Vec<DispatcherSample>)],
    observations: &mut Vec<ThreadObservation>,
) -> bool {
    let mut working = false;
    for (number, sample) in watch::samples().enumerate() {
        if observations.len() == number {
            observations.push(ThreadObservation::default());
        }
        let observation = &mut observations[number];
        working |= sample != observation.sample;
        if sample.mark.system == 0 || sample != observation.sample {
            *observation = ThreadObservation {
                sample,
                ..ThreadObservation::default()
            };
            continue;
        }
        working = true;
        let systems = watched.iter().filter_map(|(pool, _)| pool.upgrade());
        let mut systems = systems.filter_map(|pool| pool.owner.get()?.upgrade());
        let system = systems.find(|system| Arc::as_ptr(system).addr() == sample.mark.system);
        let Some(system) = system else { continue };
        let progress = system.progress(sample.mark.actor).unwrap_or_default();
        let now = Instant::now();
        let since = *observation.since.get_or_insert(now);
        if progress != observation.progress {
            (
                observation.progress,
                observation.since,
                observation.reported,
            ) = (progress, Some(now), false);
        } else if !observation.reported && now - since >= system.handler_limit() {
            observation.reported = true;
            system.report_blocked(sample.mark.actor, now - since);
        }
    }
    working
}
