//! Dispatchers: one tokio task for each worker of the runtime, each with a queue of actors.
//!
//! An actor that is woken by another goes to the queue of the dispatcher that runs the other, so
//! that what belongs together stays on one thread. Woken from elsewhere, it goes to a dispatcher
//! of its own. A dispatcher that is held by a handler, or has more than it can do, is robbed: the
//! monitor sends another one to it. There are as many dispatchers in reserve as workers, because
//! the task of one that is called may itself sit in the queue of a worker that is held.

#[cfg(all(test, strowger_loom))]
mod loom;
mod monitor;
mod near;
mod seat;
mod solo;
mod watch;

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::{Handle, Id, RuntimeFlavor};

use super::strand::Ready;
use crate::path::Path;
use crate::reply::Answer;
use crate::schedule::eager;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use seat::{Dispatcher, Seat};
use solo::Solos;

/// All that live in a system, as its dispatchers and the monitor see them.
pub(crate) trait Residents: Send + Sync {
    /// Ends every incarnation that waits.
    fn abandon(&self);
    /// How long a hook may hold its worker.
    fn handler_limit(&self) -> Duration;
    /// A number that changes with every message that an actor takes.
    fn progress(&self, actor: u64) -> Option<u64>;
    /// Reports a hook that holds its worker.
    fn held(&self, actor: u64, held: Duration);
}

/// The dispatchers of one system.
pub(crate) struct Pool {
    handle: Handle,
    seats: Box<[Seat]>,
    /// The runtime, if a thread that dispatches for it does nothing else.
    runtime: Option<Id>,
    /// How many of the seats are not in reserve.
    workers: usize,
    /// Where the next actor goes that no dispatcher starts.
    next: AtomicUsize,
    /// How many incarnations there are.
    live: AtomicUsize,
    /// How many dispatchers there are.
    seated: AtomicUsize,
    /// Dispatchers leave once nothing lives.
    closed: AtomicBool,
    /// All dispatchers have left: nobody runs anything.
    down: AtomicBool,
    /// Another runtime asked, and may soon ask more.
    asked: AtomicBool,
    /// The monitor calls those that wait for long.
    is_watched: AtomicBool,
    residents: OnceLock<Weak<dyn Residents>>,
    /// The threads of those that have one of their own.
    solos: Mutex<Solos>,
}

impl Pool {
    pub(crate) fn new(handle: Handle) -> Arc<Self> {
        let workers = handle.metrics().num_workers();
        let many = handle.runtime_flavor() == RuntimeFlavor::MultiThread;
        Arc::new(Self {
            runtime: many.then(|| handle.id()),
            handle,
            seats: (0..2 * workers).map(Seat::new).collect(),
            workers,
            next: AtomicUsize::new(0),
            live: AtomicUsize::new(0),
            seated: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            down: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            is_watched: AtomicBool::new(false),
            residents: OnceLock::new(),
            solos: Mutex::default(),
        })
    }

    /// Seats the dispatchers.
    pub(crate) fn open(self: &Arc<Self>, residents: Weak<dyn Residents>) {
        let first = self.residents.set(residents).is_ok();
        debug_assert!(first, "a system opens its pool once");
        for number in 0..self.seats.len() {
            let dispatcher = Dispatcher::new(Arc::clone(self), number);
            // Its owner is the pool: it leaves when the pool closes.
            drop(self.handle.spawn(dispatcher));
        }
        monitor::watch(self);
    }

    /// Lists a question that begins to wait, so that it is called if it waits for long; returns
    /// whether it will be. On a runtime of one thread time may stand still, and jump while nobody
    /// is called.
    #[inline]
    pub(crate) fn list<T>(&self, answer: &mut Answer<T>) -> bool {
        let calls = self.runtime.is_some() && self.is_watched.load(Ordering::Relaxed);
        if calls {
            monitor::list(answer);
        }
        calls
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// A place for a new incarnation: with the dispatcher that starts it, else with each in turn.
    pub(crate) fn admit(&self) -> u32 {
        self.live.fetch_add(1, Ordering::Relaxed);
        let here = seat::here(self, |here| here.map(|here| here.seat().number()));
        let number = here.unwrap_or_else(|| {
            // One more or less in a row does not matter.
            let next = self.next.load(Ordering::Relaxed);
            self.next.store(next.wrapping_add(1), Ordering::Relaxed);
            next
        });
        place_of(number % self.workers)
    }

    /// Takes note of a new incarnation at the place of the last one.
    pub(crate) fn admit_again(&self, place: u32) -> u32 {
        self.live.fetch_add(1, Ordering::Relaxed);
        place
    }

    /// A place for an incarnation on a thread of its own, or among the others if there is none.
    pub(crate) fn admit_blocking(&self, path: &Path) -> u32 {
        let place = self.solos.lock().start(path, &self.handle);
        match place {
            Ok(place) => {
                self.live.fetch_add(1, Ordering::Relaxed);
                place
            }
            Err(error) => {
                tracing::error!(%path, %error, "no thread for a blocking actor");
                self.admit()
            }
        }
    }

    /// Looks for the answer to a question that was just sent, where it is worth it: who asks is not
    /// of this runtime, which has threads of its own.
    #[inline]
    pub(crate) fn look_for_answer(&self, is_there: impl Fn() -> bool) {
        if self.runtime.is_some() && near::seat(self.runtime).is_none() && !self.is_task_here() {
            self.asked.store(true, Ordering::Relaxed);
            eager::look_for_answer(is_there);
        }
    }

    /// Returns `true` if another runtime asked since that was last taken.
    fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Takes that another runtime asked; false if another dispatcher did before.
    fn take_asked(&self) -> bool {
        self.asked.swap(false, Ordering::Relaxed)
    }

    /// Whether this thread runs a task of the runtime, though it never dispatched.
    #[cold]
    fn is_task_here(&self) -> bool {
        let within = || Handle::try_current().ok().map(|handle| handle.id());
        tokio::task::try_id().is_some() && within() == self.runtime
    }

    /// An incarnation is over.
    pub(crate) fn release(&self, place: u32) {
        if solo::is_solo(place) {
            self.solos.lock().end(place);
        }
        // This and `close` both change the number, so one of them comes second, and sees what the
        // other did before: this that the pool is closed, or that one that nothing lives.
        if self.live.fetch_sub(1, Ordering::AcqRel) == 1 && self.closed.load(Ordering::Relaxed) {
            self.call_all();
        }
    }

    /// Lets the dispatchers leave when nothing lives any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        if self.live.fetch_add(0, Ordering::AcqRel) == 0 {
            self.call_all();
        }
    }

    fn call_all(&self) {
        self.seats.iter().for_each(Seat::call);
    }

    fn is_done(&self) -> bool {
        self.closed.load(Ordering::Relaxed) && self.live.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// Queues an actor: here, if this thread dispatches for the pool, else at its own dispatcher.
    #[inline]
    pub(crate) fn push(&self, ready: Ready, home: u32) {
        if solo::is_solo(home) {
            return self.push_solo(ready, home);
        }
        let home = home as usize;
        let left = seat::here(self, |here| match here {
            Some(here) => here.push(ready, home),
            None => Some(ready),
        });
        if let Some(ready) = left {
            self.push_far(ready, home);
        }
    }

    /// Queues an actor that has little to do, and that a task of the runtime is likely to wait for:
    /// at the dispatcher of this very thread. One of another would be woken for it, and would find
    /// nothing more to do.
    pub(crate) fn push_near(&self, ready: Ready, home: u32) {
        let near = self.near().filter(|_| !solo::is_solo(home));
        match near {
            Some(near) => self.push(ready, place_of(near.number())),
            None => self.push(ready, home),
        }
    }

    /// The seat at which this thread dispatched last.
    fn near(&self) -> Option<&Seat> {
        let known = near::seat(self.runtime);
        // Any will do, if it is always the same one.
        let near = known.or_else(|| (self.runtime.is_some() && self.is_task_here()).then_some(0));
        self.seats.get(near?)
    }

    #[cold]
    fn push_far(&self, ready: Ready, home: usize) {
        let mut seat = &self.seats[home];
        if seat.is_stuck() {
            let free = self.seats.iter().find(|seat| !seat.is_stuck());
            seat = free.unwrap_or(seat);
        }
        seat.push(ready);
        // All have left: what was queued now is nobody's.
        if self.down.load(Ordering::SeqCst) {
            seat.clear();
        }
    }

    #[cold]
    fn push_solo(&self, ready: Ready, place: u32) {
        let solo = self.solos.lock().get(place);
        // Without its thread nobody runs it: dropped, it ends.
        if let Some(solo) = solo {
            solo.push(ready);
        }
    }

    fn leave(&self) {
        if self.seated.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        self.down.store(true, Ordering::SeqCst);
        self.seats.iter().for_each(Seat::clear);
        let solos = self.solos.lock().end_all();
        drop(solos);
        if let Some(residents) = self.residents.get().and_then(Weak::upgrade) {
            residents.abandon();
        }
    }
}

/// The place of a seat; there are as many seats as workers, and as many again.
fn place_of(seat: usize) -> u32 {
    u32::try_from(seat).unwrap_or(0)
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("workers", &self.workers)
            .field("live", &self.live)
            .finish_non_exhaustive()
    }
}
