//! One thread that watches the dispatchers of all systems.
//!
//! While any of them works, it gives the [beat](pulse) that bounds turns, and looks every
//! millisecond: a dispatcher with work that made no step
//! since the last look is held by a handler, and all that it has is given to one that is parked;
//! one that has had several actors waiting at two looks shares half. A hook that holds any thread
//! of a system over the limit of that system is reported. When nothing works for a while the
//! monitor sleeps until something does, and when no pool is left it ends.

use std::hash::BuildHasher;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::FxBuildHasher;

use super::Pool;
use super::seat::Look;
use super::watch::{self, Glance};
use crate::planted::{Bug, planted};
use crate::reply::Answer;
use crate::schedule::pulse;
use crate::schedule::strand::Fresh;
use crate::sync::{AtomicBool, Ordering};

/// How often turns are bounded.
const BEAT: Duration = Duration::from_micros(500);

/// Dispatchers are looked at with every other beat.
const LOOK: u32 = 2;

/// After so many looks that saw no work, the monitor sleeps.
const QUIET: u32 = 50;

/// While it sleeps, it still sees to it after this time that the pools are there.
const DEEP: Duration = Duration::from_secs(1);

#[cfg(not(strowger_loom))]
static SLEEP: Sleep = Sleep(AtomicBool::new(false));
// No model touches it, as it would outlive them: each has its own.
#[cfg(strowger_loom)]
static SLEEP: std::sync::LazyLock<Sleep> = std::sync::LazyLock::new(Sleep::new);

static MONITOR: Mutex<Monitor> = Mutex::new(Monitor {
    pools: Vec::new(),
    thread: None,
});

/// The questions that were asked a moment ago, each in one of the lists.
#[cfg(not(strowger_loom))]
static FRESH: [Fresh; LISTS] = [const { Fresh::new() }; LISTS];
#[cfg(strowger_loom)]
static FRESH: std::sync::LazyLock<[Fresh; LISTS]> =
    std::sync::LazyLock::new(|| [const { () }; LISTS].map(|()| Fresh::new()));

/// Threads beyond this number share a list.
const LISTS: usize = 32;

struct Monitor {
    /// Pools that the thread has not seen yet.
    pools: Vec<Weak<Pool>>,
    thread: Option<Thread>,
}

/// Whether the monitor sleeps.
pub(super) struct Sleep(AtomicBool);

impl Sleep {
    #[cfg(strowger_loom)]
    pub(super) fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Notes that a dispatcher works; whether the caller has to wake the monitor.
    pub(super) fn begin(&self, busy: &AtomicBool) -> bool {
        // This and the look of `rest` both change the word, so one of them comes second, and sees
        // what the other did before: the monitor this, or this that the monitor sleeps.
        busy.swap(true, Ordering::AcqRel);
        self.0.load(Ordering::Relaxed) && self.end()
    }

    /// Ends the sleep, if there is one: whether it is for the caller to wake the monitor.
    fn end(&self) -> bool {
        self.0.swap(false, Ordering::AcqRel)
    }

    /// Sleeps, unless somebody works who may not know it.
    pub(super) fn rest(&self, works: impl FnOnce() -> bool, park: impl FnOnce()) {
        self.0.store(true, Ordering::Relaxed);
        if !works() {
            park();
        }
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Puts a question, which waits, where the monitor calls it if it still waits after a look.
#[inline]
pub(super) fn list<T>(answer: &mut Answer<T>) {
    thread_local! {
        static LIST: &'static Fresh = {
            let thread = FxBuildHasher.hash_one(thread::current().id());
            let number = usize::try_from(thread >> 32).unwrap_or(0);
            &FRESH[number % LISTS]
        };
    }
    let list = LIST.try_with(|list| *list).unwrap_or(&FRESH[0]);
    answer.list(list);
    // As of a dispatcher, the monitor has to know of it before it sleeps.
    if !list.wanted.load(Ordering::Relaxed) && SLEEP.begin(&list.wanted) {
        wake();
    }
}

/// Calls those that asked a moment ago and still wait; returns `true` if there were some.
fn call_fresh() -> bool {
    let mut found = false;
    if planted(Bug::WaitingIsNotCalled) {
        return found;
    }
    let mut wakers = Vec::new();
    for list in FRESH.iter() {
        // Before the list is looked at: who puts something in after that sets it again.
        if !list.wanted.load(Ordering::Relaxed) || !list.wanted.swap(false, Ordering::AcqRel) {
            continue;
        }
        found = true;
        loop {
            let more = list.take(&mut wakers);
            wakers.drain(..).for_each(Waker::wake);
            if !more {
                break;
            }
        }
    }
    found
}

/// Whether a dispatcher works; one that begins to after this knows who sleeps.
pub(super) fn is_busy(busy: &AtomicBool) -> bool {
    busy.fetch_or(false, Ordering::AcqRel)
}

/// Watches a pool for as long as it exists.
pub(super) fn watch(pool: &Arc<Pool>) {
    let mut monitor = MONITOR.lock();
    monitor.pools.push(Arc::downgrade(pool));
    if monitor.thread.is_some() {
        pool.is_watched.store(true, Ordering::Relaxed);
    } else {
        let thread = thread::Builder::new()
            .name("strowger-monitor".to_owned())
            .spawn(run);
        match thread {
            Ok(thread) => {
                monitor.thread = Some(thread.thread().clone());
                pool.is_watched.store(true, Ordering::Relaxed);
            }
            Err(error) => tracing::error!(%error, "no thread to watch dispatchers"),
        }
    }
    drop(monitor);
    if SLEEP.end() {
        wake();
    }
}

/// Notes that a dispatcher works.
pub(super) fn begin(busy: &AtomicBool) {
    if SLEEP.begin(busy) {
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
    let mut watched: Vec<(Weak<Pool>, Vec<Look>)> = Vec::new();
    let mut held = Vec::new();
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
        let mut working = call_fresh();
        for (pool, before) in &mut watched {
            if let Some(pool) = pool.upgrade() {
                working |= inspect(&pool, before);
            }
        }
        working |= inspect_threads(&watched, &mut held);
        quiet = if working { 0 } else { quiet + 1 };
        if quiet < QUIET {
            for _ in 0..LOOK {
                thread::sleep(BEAT);
                pulse::advance();
            }
            continue;
        }
        quiet = 0;
        SLEEP.rest(|| somebody_works(&watched), || thread::park_timeout(DEEP));
    }
}

/// Whether a dispatcher works, or may soon in a pool that was not seen yet.
fn somebody_works(watched: &[(Weak<Pool>, Vec<Look>)]) -> bool {
    let works = |pool: Arc<Pool>| pool.seats.iter().any(|seat| is_busy(&seat.busy));
    let mut pools = watched.iter().filter_map(|(pool, _)| pool.upgrade());
    pools.any(works)
        || FRESH.iter().any(|list| is_busy(&list.wanted))
        || !MONITOR.lock().pools.is_empty()
}

/// Looks at all dispatchers of a pool; whether any of them works.
fn inspect(pool: &Pool, before: &mut Vec<Look>) -> bool {
    before.resize(pool.seats.len(), Look::default());
    let looks: Vec<Look> = pool.seats.iter().map(|seat| seat.look()).collect();
    let mut free: Vec<usize> = (0..looks.len()).filter(|&n| looks[n].parked).collect();
    free.reverse();
    let mut working = false;
    for (number, (look, before)) in looks.iter().zip(before.iter()).enumerate() {
        let late = look.turns == before.turns;
        working |= look.busy || look.waiting > 0 || !late;
        if planted(Bug::HeldIsNotRelieved) && late {
            continue;
        }
        if late && look.busy && before.busy && !pool.seats[number].set_stuck() {
            // The thread that is held may be the one that waited for sockets and timers: another
            // that is called has nothing to do, and then waits for these in its stead.
            if let Some(&relief) = free.last() {
                pool.seats[relief].call();
            }
        }
        if look.waiting == 0 || before.waiting == 0 {
            continue;
        }
        let crowded = look.waiting >= 2 && before.waiting >= 2;
        // One in reserve helps only where a worker is held: there are no more threads than that.
        let helper = free
            .iter()
            .rposition(|&helper| late || helper < pool.workers)
            .filter(|_| late || crowded);
        if let Some(helper) = helper {
            pool.seats[free.remove(helper)].send_to(number, late);
        }
    }
    *before = looks;
    working
}

/// What one thread was last seen at.
#[derive(Debug, Default)]
struct Hold {
    glance: Glance,
    progress: u64,
    since: Option<Instant>,
    reported: bool,
}

/// Looks at what all threads run; whether any of them runs an actor.
fn inspect_threads(watched: &[(Weak<Pool>, Vec<Look>)], holds: &mut Vec<Hold>) -> bool {
    let mut working = false;
    for (number, glance) in watch::glances().enumerate() {
        if holds.len() == number {
            holds.push(Hold::default());
        }
        let hold = &mut holds[number];
        working |= glance != hold.glance;
        if glance.mark.system == 0 || glance != hold.glance {
            *hold = Hold {
                glance,
                ..Hold::default()
            };
            continue;
        }
        working = true;
        let systems = watched.iter().filter_map(|(pool, _)| pool.upgrade());
        let mut systems = systems.filter_map(|pool| pool.residents.get()?.upgrade());
        let system = systems.find(|system| Arc::as_ptr(system).addr() == glance.mark.system);
        let Some(system) = system else { continue };
        let progress = system.progress(glance.mark.actor).unwrap_or_default();
        let now = Instant::now();
        let since = *hold.since.get_or_insert(now);
        if progress != hold.progress {
            (hold.progress, hold.since, hold.reported) = (progress, Some(now), false);
        } else if !hold.reported && now - since >= system.handler_limit() {
            hold.reported = true;
            system.held(glance.mark.actor, now - since);
        }
    }
    working
}
