//! Dispatchers: one tokio task for each worker of the runtime, each with a run queue of actors.
//!
//! An actor that another actor wakes goes to the queue of the dispatcher that runs the other one,
//! so that actors that work together stay on one thread. An actor that a task wakes goes to the
//! dispatcher that the thread of the task ran last, if that has nothing to do; otherwise, and if it
//! is woken from elsewhere, it goes to a dispatcher of its own. If a dispatcher is blocked by a
//! handler, or has more work than it can do, the monitor sends another dispatcher to steal from it.
//! There are as many dispatchers in reserve as workers, because the task of a dispatcher that is
//! called may itself be in the queue of a worker that is blocked.

mod affinity;
mod blocking;
mod dispatcher;
#[cfg(all(test, strowger_loom))]
mod loom;
mod monitor;
mod watch;

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Handle, Id, RuntimeFlavor};

use super::strand::Runnable;
use crate::path::ActorPath;
use crate::reply::PendingReply;
use crate::schedule::spin;
use crate::seeded_bug::{Bug, seeded};
use crate::sync::{AtomicBool, AtomicUsize, Ordering, Weakening, weaken_or, weakened};
use blocking::BlockingThreads;
use dispatcher::{Dispatcher, DispatcherState};

/// The owner of a pool, a system: its actors as the dispatchers and the monitor see them.
pub(crate) trait SchedulerHost: Send + Sync {
    /// Ends every incarnation that waits.
    fn end_parked_actors(&self);
    /// Returns how long a hook may block its worker.
    fn handler_limit(&self) -> Duration;
    /// Returns a number that changes with every message that an actor takes.
    fn progress(&self, actor: u64) -> Option<u64>;
    /// Reports a hook that blocks its worker.
    fn report_blocked(&self, actor: u64, held: Duration);
}

/// The dispatchers of one system.
pub(crate) struct Pool {
    handle: Handle,
    dispatchers: Box<[DispatcherState]>,
    /// The runtime, if it is multi-threaded: a thread that dispatches for it does nothing else.
    runtime: Option<Id>,
    /// Number of dispatchers that are not in reserve.
    workers: usize,
    /// The dispatcher of the next actor that is not started by a dispatcher.
    next_home: AtomicUsize,
    /// Number of incarnations.
    incarnations: AtomicUsize,
    /// Number of dispatchers.
    running_dispatchers: AtomicUsize,
    /// Set when dispatchers are to leave once no incarnation is left.
    closed: AtomicBool,
    /// Set when all dispatchers have left: nothing runs any more.
    down: AtomicBool,
    /// Set when another runtime asked, and may soon ask more.
    external_ask_seen: AtomicBool,
    /// Set if the monitor calls the asks that wait for long.
    has_monitor: AtomicBool,
    owner: OnceLock<Weak<dyn SchedulerHost>>,
    /// The threads of actors that have one of their own.
    blocking_threads: Mutex<BlockingThreads>,
}

impl Pool {
    pub(crate) fn new(handle: Handle) -> Arc<Self> {
        let workers = handle.metrics().num_workers();
        let many = handle.runtime_flavor() == RuntimeFlavor::MultiThread;
        Arc::new(Self {
            runtime: many.then(|| handle.id()),
            handle,
            dispatchers: (0..2 * workers).map(DispatcherState::new).collect(),
            workers,
            next_home: AtomicUsize::new(0),
            incarnations: AtomicUsize::new(0),
            running_dispatchers: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            down: AtomicBool::new(false),
            external_ask_seen: AtomicBool::new(false),
            has_monitor: AtomicBool::new(false),
            owner: OnceLock::new(),
            blocking_threads: Mutex::default(),
        })
    }

    /// Starts the dispatchers.
    pub(crate) fn open(self: &Arc<Self>, owner: Weak<dyn SchedulerHost>) {
        let first = self.owner.set(owner).is_ok();
        debug_assert!(first, "a system opens its pool once");
        for number in 0..self.dispatchers.len() {
            let dispatcher = Dispatcher::new(Arc::clone(self), number);
            // The pool owns it: it leaves when the pool closes.
            drop(self.handle.spawn(dispatcher));
        }
        monitor::add_pool(self);
    }

    /// Lists an ask that begins to wait, so that its asker is called if it waits for long; returns
    /// `true` if it will be. On a runtime of one thread, time may stand still, and jump while no
    /// asker is called.
    #[inline]
    pub(crate) fn list<T>(&self, answer: &mut PendingReply<T>) -> bool {
        let calls = self.runtime.is_some() && self.has_monitor.load(Ordering::Relaxed);
        if calls {
            monitor::register_ask(answer);
        }
        calls
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Assigns a place to a new incarnation: with the dispatcher that starts it, otherwise with
    /// each dispatcher in turn.
    pub(crate) fn admit(&self) -> u32 {
        self.incarnations.fetch_add(1, Ordering::Relaxed);
        let here = dispatcher::with_current(self, |here| here.map(|here| here.state().number()));
        let number = here.unwrap_or_else(|| {
            // A lost update does not matter: two actors in a row may get the same place.
            let next = self.next_home.load(Ordering::Relaxed);
            self.next_home
                .store(next.wrapping_add(1), Ordering::Relaxed);
            next
        });
        home_of(number % self.workers)
    }

    /// Records a new incarnation at the place of the last one.
    pub(crate) fn admit_again(&self, place: u32) -> u32 {
        self.incarnations.fetch_add(1, Ordering::Relaxed);
        place
    }

    /// Assigns a place on a thread of its own, or among the other actors if no thread can be
    /// started.
    pub(crate) fn admit_blocking(&self, path: &ActorPath) -> u32 {
        let place = self.blocking_threads.lock().start(path, &self.handle);
        match place {
            Ok(place) => {
                self.incarnations.fetch_add(1, Ordering::Relaxed);
                place
            }
            Err(error) => {
                tracing::error!(%path, %error, "cannot start a thread for a blocking actor");
                self.admit()
            }
        }
    }

    /// Announces an ask. Returns `true` if polling for its answer pays off: if the asker does not
    /// belong to this runtime, which has threads of its own.
    #[inline]
    pub(crate) fn announce_ask(&self) -> bool {
        let elsewhere = self.runtime.is_some()
            && affinity::dispatcher(self.runtime).is_none()
            && !self.is_runtime_thread();
        if elsewhere {
            self.mark_external_ask();
        }
        elsewhere
    }

    /// Polls for the answer to an ask that was announced, and has been sent since.
    #[cold]
    pub(crate) fn look_for_answer(&self, is_there: impl Fn() -> bool) {
        // A dispatcher may have taken the first note, and polled in vain, before the ask was sent.
        self.mark_external_ask();
        spin::spin_for_answer(is_there);
    }

    /// Notes for the dispatchers that another runtime asks, and may soon ask more.
    fn mark_external_ask(&self) {
        self.external_ask_seen.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if another runtime asked since the last `take_external_ask`.
    fn saw_external_ask(&self) -> bool {
        self.external_ask_seen.load(Ordering::Relaxed)
    }

    /// Takes the note that another runtime asked; returns `false` if another dispatcher took it
    /// before.
    fn take_external_ask(&self) -> bool {
        self.external_ask_seen.swap(false, Ordering::Relaxed)
    }

    /// Returns `true` if this thread runs a task of the runtime, though it has never dispatched.
    #[cold]
    fn is_runtime_thread(&self) -> bool {
        let within = || Handle::try_current().ok().map(|handle| handle.id());
        tokio::task::try_id().is_some() && within() == self.runtime
    }

    /// Records that an incarnation is over.
    pub(crate) fn release(&self, place: u32) {
        if blocking::is_blocking(place) {
            self.blocking_threads.lock().end(place);
        }
        // This and `close` both modify `incarnations`, so one of them comes second and sees what
        // the other one did before: `release` sees that the pool is closed, or `close` sees that no
        // incarnation is left.
        let acq_rel = weaken_or(
            Weakening::LastExitAcquire,
            Ordering::AcqRel,
            Ordering::Release,
        );
        if self.incarnations.fetch_sub(1, acq_rel) == 1 && self.closed.load(Ordering::Relaxed) {
            self.unpark_all();
        }
    }

    /// Lets the dispatchers leave once no incarnation is left.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let acq_rel = weaken_or(
            Weakening::PoolCloseRelease,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if self.incarnations.fetch_add(0, acq_rel) == 0 {
            self.unpark_all();
        }
    }

    fn unpark_all(&self) {
        self.dispatchers.iter().for_each(DispatcherState::unpark);
    }

    fn is_done(&self) -> bool {
        self.closed.load(Ordering::Relaxed) && self.incarnations.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// Queues an actor: on this thread, if it dispatches for the pool or is about to; otherwise
    /// with the actor's own dispatcher.
    #[inline]
    pub(crate) fn push(&self, ready: Runnable, home: u32) {
        if blocking::is_blocking(home) {
            return self.push_blocking(ready, home);
        }
        let home = home as usize;
        let Some(ready) = run_inline_if_seeded(Bug::TellRunsInline, ready) else {
            return;
        };
        let left = dispatcher::with_current(self, |here| match here {
            Some(here) => here.push(ready, home).map(|ready| (ready, home)),
            None => Some((ready, self.choose_near(home))),
        });
        if let Some((ready, place)) = left {
            self.push_remote(ready, place);
        }
    }

    /// Returns the dispatcher for an actor that was woken outside of turns: the one that this
    /// thread ran last, if it has nothing to do; otherwise the actor's own.
    ///
    /// A dispatcher that is woken comes next on the thread that wakes it, in the LIFO slot of
    /// tokio's worker. If that thread wakes another one, the first goes from the slot to the end of
    /// the thread's queue.
    #[inline]
    fn choose_near(&self, home: usize) -> usize {
        let Some(near) = affinity::dispatcher(self.runtime).filter(|near| *near < self.workers)
        else {
            return home;
        };
        if self.dispatchers[near].is_idle() {
            return near;
        }
        if home != near {
            return home;
        }
        // What keeps this dispatcher busy may belong to another one, which has nothing to do then.
        let idle = self.dispatchers[..self.workers]
            .iter()
            .find(|dispatcher| dispatcher.is_idle());
        idle.map_or(home, DispatcherState::number)
    }

    /// Queues an actor that has little to do, and that a task of the runtime is likely to wait for,
    /// with the dispatcher of this very thread. Another dispatcher would have to be woken for it,
    /// and would find nothing more to do.
    pub(crate) fn push_local(&self, ready: Runnable, home: u32) {
        let Some(ready) = run_inline_if_seeded(Bug::SpawnRunsInline, ready) else {
            return;
        };
        let local = self.local().filter(|_| !blocking::is_blocking(home));
        match local {
            Some(local) => self.push(ready, home_of(local.number())),
            None => self.push(ready, home),
        }
    }

    /// Returns the dispatcher that this thread ran last.
    fn local(&self) -> Option<&DispatcherState> {
        let known = affinity::dispatcher(self.runtime);
        // Any dispatcher will do, as long as it is always the same one.
        let local =
            known.or_else(|| (self.runtime.is_some() && self.is_runtime_thread()).then_some(0));
        self.dispatchers.get(local?)
    }

    #[cold]
    fn push_remote(&self, ready: Runnable, home: usize) {
        let mut dispatcher = &self.dispatchers[home];
        if dispatcher.is_blocked() {
            let free = self
                .dispatchers
                .iter()
                .find(|dispatcher| !dispatcher.is_blocked());
            dispatcher = free.unwrap_or(dispatcher);
        }
        dispatcher.push(ready);
        // All dispatchers have left: none would run what was queued now.
        if self.down.load(Ordering::SeqCst) && !weakened(Weakening::PoolDownEndsQueuedActor) {
            dispatcher.clear();
        }
    }

    #[cold]
    fn push_blocking(&self, ready: Runnable, place: u32) {
        let blocking = self.blocking_threads.lock().get(place);
        // Without its thread, nothing runs the actor; dropping the `Runnable` ends it.
        if let Some(blocking) = blocking {
            blocking.push(ready);
        }
    }

    fn remove_dispatcher(&self) {
        if self.running_dispatchers.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        self.down.store(true, Ordering::SeqCst);
        self.dispatchers.iter().for_each(DispatcherState::clear);
        let blocking_threads = self.blocking_threads.lock().end_all();
        drop(blocking_threads);
        if let Some(owner) = self.owner.get().and_then(Weak::upgrade)
            && !weakened(Weakening::PoolDownEndsParkedActors)
        {
            owner.end_parked_actors();
        }
    }
}

/// Runs an actor on the stack of the code that queues it, if that bug is seeded; returns the actor
/// if it has more to do.
#[inline(always)]
fn run_inline_if_seeded(bug: Bug, ready: Runnable) -> Option<Runnable> {
    match seeded(bug) {
        true => ready.run(),
        false => Some(ready),
    }
}

/// Returns the place of a dispatcher; there are twice as many dispatchers as workers.
fn home_of(dispatcher: usize) -> u32 {
    u32::try_from(dispatcher).unwrap_or(0)
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("workers", &self.workers)
            .field("live", &self.incarnations)
            .finish_non_exhaustive()
    }
}
