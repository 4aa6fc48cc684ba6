//! One thread that watches the dispatchers of all systems.
//!
//! While any of them works, it looks every millisecond: a dispatcher with work that made no step
//! since the last look is held by a handler, and all that it has is given to one that is parked;
//! one that has had several actors waiting at two looks shares half. A hook that holds any thread
//! of a system over the limit of that system is reported. When nothing works for a while the
//! monitor sleeps until something does, and when no pool is left it ends.

use std::sync::atomic::AtomicBool as Flag;
use std::sync::{Arc, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Pool;
use super::seat::Look;
use super::watch::{self, Glance};
use crate::sync::{AtomicBool, Ordering};

const PERIOD: Duration = Duration::from_millis(1);

/// After so many looks that saw no work, the monitor sleeps.
const QUIET: u32 = 50;

/// While it sleeps, it still sees to it after this time that the pools are there.
const DEEP: Duration = Duration::from_secs(1);

// Not that of `crate::sync`: a static outlives every model.
static ASLEEP: Flag = Flag::new(false);
static MONITOR: Mutex<Monitor> = Mutex::new(Monitor {
    pools: Vec::new(),
    thread: None,
});

struct Monitor {
    /// Pools that the thread has not seen yet.
    pools: Vec<Weak<Pool>>,
    thread: Option<Thread>,
}

/// Watches a pool for as long as it exists.
pub(super) fn watch(pool: &Arc<Pool>) {
    let mut monitor = MONITOR.lock();
    monitor.pools.push(Arc::downgrade(pool));
    if monitor.thread.is_none() {
        let thread = thread::Builder::new()
            .name("strowger-monitor".to_owned())
            .spawn(run);
        match thread {
            Ok(thread) => monitor.thread = Some(thread.thread().clone()),
            Err(error) => tracing::error!(%error, "no thread to watch dispatchers"),
        }
    }
    drop(monitor);
    wake();
}

/// Notes that a dispatcher works.
pub(super) fn begin(busy: &AtomicBool) {
    // Either the monitor sees this, or this sees that the monitor sleeps.
    busy.swap(true, Ordering::SeqCst);
    if ASLEEP.load(Ordering::SeqCst) {
        wake();
    }
}

#[cold]
fn wake() {
    if ASLEEP.swap(false, Ordering::SeqCst)
        && let Some(thread) = &MONITOR.lock().thread
    {
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
        let mut working = false;
        for (pool, before) in &mut watched {
            if let Some(pool) = pool.upgrade() {
                working |= inspect(&pool, before);
            }
        }
        working |= inspect_threads(&watched, &mut held);
        quiet = if working { 0 } else { quiet + 1 };
        if quiet < QUIET {
            thread::sleep(PERIOD);
            continue;
        }
        quiet = 0;
        ASLEEP.store(true, Ordering::SeqCst);
        let idle = |pool: Arc<Pool>| pool.seats.iter().all(|s| !s.busy.load(Ordering::SeqCst));
        if watched
            .iter()
            .all(|(pool, _)| pool.upgrade().is_none_or(idle))
        {
            thread::park_timeout(DEEP);
        }
        ASLEEP.store(false, Ordering::SeqCst);
    }
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
        if late && look.busy && before.busy {
            pool.seats[number].set_stuck();
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
