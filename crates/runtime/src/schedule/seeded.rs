//! A run queue whose order follows from a seed.
//!
//! All tasks of a system under test run on one thread. Whichever of the tasks that are ready runs
//! next is drawn from the seed, so one seed gives one interleaving and many seeds explore many.
//! So is whether an actor that is restarted at once begins anew in the same turn. Nothing else
//! chooses: wake-ups that come from timers arrive in the order of virtual time.

#[cfg(all(test, strowger_loom))]
mod loom;
mod queued;

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::time::Instant;

use self::queued::Queued;
use super::Ended;
use super::pool::Residents;
use super::strand::Ready;
use crate::path::Path;
use crate::splitmix::SplitMix64;
use crate::sync::{AtomicBool, Ordering};

/// One turn of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Step {
    /// Virtual time since the start of the system.
    pub at: Duration,
    /// The number of the task, in the order in which tasks were started.
    pub task: u64,
    /// The actor that the task belongs to.
    pub path: Path,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} #{} {}", self.at, self.task, self.path)
    }
}

/// Which task ran when. Equal traces mean that the same happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    seed: u64,
    turns: u64,
    digest: u64,
    first: Vec<Step>,
}

impl Trace {
    /// How many steps a trace keeps; of those that follow it keeps the digest.
    const KEPT: usize = 65_536;

    /// The seed of the run.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// How many turns tasks had.
    #[must_use]
    pub const fn turns(&self) -> u64 {
        self.turns
    }

    /// The first steps, up to 65536.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.first
    }

    /// A number that stands for all steps, also those that are not kept.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    fn record(&mut self, step: Step) {
        // FNV-1a: the digest must not depend on the release of a hasher.
        let at = step.at.as_nanos().to_le_bytes();
        let task = step.task.to_le_bytes();
        for octet in at.iter().chain(&task).chain(step.path.as_str().as_bytes()) {
            self.digest = (self.digest ^ u64::from(*octet)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.turns += 1;
        if self.first.len() < Self::KEPT {
            self.first.push(step);
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}, {} turns, digest {:016x}",
            self.seed, self.turns, self.digest
        )?;
        self.first.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

/// The actors and tasks of one system under test.
pub(crate) struct RunQueue(Mutex<Queue>);

/// Something that can run.
enum Entry {
    Task(Arc<Task>),
    Actor(Ready, u32),
}

struct Queue {
    /// In an order that follows from what came and what was taken, and means nothing.
    ready: Vec<Entry>,
    /// Every task that has not ended, so that a task that nothing can wake is not leaked.
    live: BTreeMap<u64, Arc<Task>>,
    numbers: SplitMix64,
    next_id: u64,
    start: Instant,
    trace: Trace,
    clock: Option<Handle>,
    /// Wakes the driver, which runs in tokio.
    driver: Option<Waker>,
    residents: Option<Weak<dyn Residents>>,
}

impl Queue {
    fn record(&mut self, task: u64, path: Path) {
        let at = self.start.elapsed();
        self.trace.record(Step { at, task, path });
    }
}

impl RunQueue {
    pub(crate) fn new(seed: u64, start: Instant) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Queue {
            ready: Vec::new(),
            live: BTreeMap::new(),
            numbers: SplitMix64::new(seed),
            next_id: 0,
            start,
            trace: Trace {
                seed,
                turns: 0,
                digest: 0xcbf2_9ce4_8422_2325,
                first: Vec::new(),
            },
            driver: None,
            clock: None,
            residents: None,
        })))
    }

    /// Says whose time it is, also for calls from outside of that runtime.
    pub(crate) fn keep_time_of(&self, clock: Handle) {
        self.0.lock().clock = Some(clock);
    }

    pub(crate) fn now(&self) -> Instant {
        let clock = self.0.lock().clock.clone();
        let _inside = clock.as_ref().map(Handle::enter);
        Instant::now()
    }

    pub(crate) fn open(&self, residents: Weak<dyn Residents>) {
        self.0.lock().residents = Some(residents);
    }

    pub(crate) fn admit(&self) -> u32 {
        let mut queue = self.0.lock();
        let id = queue.next_id;
        queue.next_id += 1;
        // No run has so many lives that this matters.
        u32::try_from(id).unwrap_or(u32::MAX)
    }

    pub(crate) fn push(&self, ready: Ready, number: u32) {
        self.enter(Entry::Actor(ready, number));
    }

    /// Draws whether an actor whose restart follows at once begins anew in the same turn.
    pub(crate) fn may_renew(&self) -> bool {
        self.0.lock().numbers.below(2) == 0
    }

    fn enter(&self, entry: Entry) {
        let mut queue = self.0.lock();
        queue.ready.push(entry);
        let driver = queue.driver.take();
        drop(queue);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    pub(crate) fn spawn(
        self: &Arc<Self>,
        path: Path,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Arc<Task> {
        let mut queue = self.0.lock();
        let id = queue.next_id;
        queue.next_id += 1;
        let task = Arc::new(Task {
            id,
            path,
            queue: Arc::downgrade(self),
            queued: Queued::new(),
            state: Mutex::new(State::Idle(Box::pin(future))),
            aborted: AtomicBool::new(false),
            owner: Mutex::new(None),
        });
        queue.live.insert(id, Arc::clone(&task));
        drop(queue);
        task.schedule();
        task
    }

    /// Runs one of the tasks that are ready; `false` when none is. `driver` is woken when there
    /// is work again.
    pub(crate) fn run_one(&self, driver: &Waker) -> bool {
        let mut queue = self.0.lock();
        if queue.ready.is_empty() {
            queue.driver = Some(driver.clone());
            return false;
        }
        let ready = queue.ready.len();
        let drawn = queue.numbers.below(ready);
        // The last one takes the place: to move all that come after would cost a step for each.
        let entry = queue.ready.swap_remove(drawn);
        match &entry {
            Entry::Task(task) => queue.record(task.id, task.path.clone()),
            Entry::Actor(ready, number) => queue.record((*number).into(), ready.path()),
        }
        drop(queue);
        match entry {
            Entry::Task(task) => {
                if task.run() {
                    let ended = self.0.lock().live.remove(&task.id);
                    drop(ended);
                }
            }
            Entry::Actor(ready, number) => {
                if let Some(again) = ready.run() {
                    self.push(again, number);
                }
            }
        }
        true
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.0.lock().ready.is_empty()
    }

    pub(crate) fn trace(&self) -> Trace {
        self.0.lock().trace.clone()
    }

    /// Drops all that has not ended.
    pub(crate) fn clear(&self) {
        let residents = self.0.lock().residents.take();
        loop {
            let ready = std::mem::take(&mut self.0.lock().ready);
            drop(ready);
            if let Some(residents) = residents.as_ref().and_then(Weak::upgrade) {
                residents.abandon();
            }
            let mut queue = self.0.lock();
            let Some((_, task)) = queue.live.pop_first() else {
                if queue.ready.is_empty() {
                    break;
                }
                continue;
            };
            drop(queue);
            task.abort();
            task.run();
        }
    }
}

impl fmt::Debug for RunQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.0.lock();
        f.debug_struct("RunQueue")
            .field("ready", &queue.ready.len())
            .field("live", &queue.live.len())
            .finish_non_exhaustive()
    }
}

/// A future with its place in a run queue.
pub(crate) struct Task {
    id: u64,
    path: Path,
    queue: Weak<RunQueue>,
    queued: Queued,
    state: Mutex<State>,
    /// Has no model: whoever sets it queues the task after that, and who finds it queued is seen in
    /// the turn.
    aborted: AtomicBool,
    owner: Mutex<Option<Waker>>,
}

enum State {
    Idle(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// On the stack of the driver.
    Running,
    Ended(Ended),
}

impl Task {
    fn schedule(self: &Arc<Self>) {
        if self.queued.enter()
            && let Some(queue) = self.queue.upgrade()
        {
            queue.enter(Entry::Task(Arc::clone(self)));
        }
    }

    /// Gives the task a turn; whether it has ended.
    fn run(self: &Arc<Self>) -> bool {
        self.queued.leave();
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, State::Running) {
            State::Idle(mut future) => {
                drop(state);
                let aborted = self.aborted.load(Ordering::Acquire);
                let waker = Waker::from(Arc::clone(self));
                let turn = catch_unwind(AssertUnwindSafe(|| {
                    if aborted {
                        None
                    } else {
                        Some(future.as_mut().poll(&mut Context::from_waker(&waker)))
                    }
                }));
                let ended = match turn {
                    Ok(Some(Poll::Pending)) => {
                        *self.state.lock() = State::Idle(future);
                        return false;
                    }
                    Ok(Some(Poll::Ready(()))) => Ended::Finished,
                    Ok(None) => Ended::Aborted,
                    Err(payload) => Ended::Panicked(crate::exit::panic_text(payload.as_ref())),
                };
                self.end(future, ended);
            }
            before @ (State::Running | State::Ended(_)) => {
                *state = before;
            }
        }
        true
    }

    fn end(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>, mut ended: Ended) {
        // What the future held is foreign code's to drop.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(future)))
            && ended != Ended::Aborted
        {
            ended = Ended::Panicked(crate::exit::panic_text(payload.as_ref()));
        }
        *self.state.lock() = State::Ended(ended);
        let owner = self.owner.lock().take();
        if let Some(owner) = owner {
            owner.wake();
        }
    }

    pub(crate) fn abort(self: &Arc<Self>) {
        self.aborted.store(true, Ordering::Release);
        self.schedule();
    }

    pub(crate) fn poll_ended(&self, cx: &Context<'_>) -> Poll<Ended> {
        *self.owner.lock() = Some(cx.waker().clone());
        match &*self.state.lock() {
            State::Ended(ended) => Poll::Ready(ended.clone()),
            State::Idle(_) | State::Running => Poll::Pending,
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.schedule();
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task(#{} {})", self.id, self.path)
    }
}

#[cfg(test)]
mod tests;
