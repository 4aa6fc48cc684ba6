//! A run queue whose order follows from a seed.
//!
//! All tasks of a system under test run on one thread. The next task to run is drawn from the seed
//! among the runnable ones, so one seed gives one interleaving and many seeds explore many. It is
//! also drawn whether an actor that is restarted at once begins its next incarnation in the same
//! turn. Nothing else is chosen: wake-ups from timers arrive in the order of virtual time.

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
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use tokio::runtime::Handle;
use tokio::time::Instant;

use self::queued::QueuedFlag;
use super::TaskEnd;
use super::pool::SchedulerHost;
use super::strand::Runnable;
use crate::path::ActorPath;
use crate::sync::{AtomicBool, Ordering};

/// One turn of a task.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ScheduleStep {
    /// Virtual time since the start of the system.
    pub at: Duration,
    /// Number of the task, in the order in which tasks were started.
    pub task: u64,
    /// The path of the actor that the task belongs to.
    pub path: ActorPath,
}

impl fmt::Display for ScheduleStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} #{} {}", self.at, self.task, self.path)
    }
}

/// The order in which tasks ran. Equal traces mean that the runs were the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleTrace {
    seed: u64,
    turns: u64,
    digest: u64,
    first: Vec<ScheduleStep>,
}

impl ScheduleTrace {
    /// Number of steps that a trace keeps; further steps only enter the digest.
    const MAX_STEPS: usize = 65_536;

    /// Returns the seed of the run.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of turns.
    #[must_use]
    pub const fn turns(&self) -> u64 {
        self.turns
    }

    /// Returns the first steps, up to 65536.
    #[must_use]
    pub fn steps(&self) -> &[ScheduleStep] {
        &self.first
    }

    /// Returns a hash of all steps, including those that are not kept.
    #[must_use]
    pub const fn digest(&self) -> u64 {
        self.digest
    }

    fn record(&mut self, step: ScheduleStep) {
        // FNV-1a: the digest must not depend on the version of a hasher.
        let at = step.at.as_nanos().to_le_bytes();
        let task = step.task.to_le_bytes();
        for byte in at.iter().chain(&task).chain(step.path.as_str().as_bytes()) {
            self.digest = (self.digest ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        self.turns += 1;
        if self.first.len() < Self::MAX_STEPS {
            self.first.push(step);
        }
    }
}

impl fmt::Display for ScheduleTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}, {} turns, digest {:016x}",
            self.seed, self.turns, self.digest
        )?;
        self.first.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

/// The run queue of the actors and tasks of one system under test.
pub(crate) struct SeededScheduler(Mutex<SeededState>);

/// A runnable task or actor.
enum QueuedWork {
    Task(Arc<SeededTask>),
    Actor(Runnable, u32),
}

struct SeededState {
    /// The order follows from what was added and taken, and has no meaning.
    ready: Vec<QueuedWork>,
    /// Every task that has not ended, so that a task that nothing can wake is not leaked.
    live: BTreeMap<u64, Arc<SeededTask>>,
    numbers: SplitMix64,
    next_id: u64,
    start: Instant,
    trace: ScheduleTrace,
    clock: Option<Handle>,
    /// Wakes the driver, which runs in tokio.
    driver: Option<Waker>,
    owner: Option<Weak<dyn SchedulerHost>>,
}

impl SeededState {
    fn record(&mut self, task: u64, path: ActorPath) {
        let at = self.start.elapsed();
        self.trace.record(ScheduleStep { at, task, path });
    }
}

impl SeededScheduler {
    pub(crate) fn new(seed: u64, start: Instant) -> Arc<Self> {
        Arc::new(Self(Mutex::new(SeededState {
            ready: Vec::new(),
            live: BTreeMap::new(),
            numbers: SplitMix64::seed_from_u64(seed),
            next_id: 0,
            start,
            trace: ScheduleTrace {
                seed,
                turns: 0,
                digest: 0xcbf2_9ce4_8422_2325,
                first: Vec::new(),
            },
            driver: None,
            clock: None,
            owner: None,
        })))
    }

    /// Sets the runtime whose clock is used, for calls from outside of that runtime too.
    pub(crate) fn set_clock(&self, clock: Handle) {
        self.0.lock().clock = Some(clock);
    }

    pub(crate) fn now(&self) -> Instant {
        let clock = self.0.lock().clock.clone();
        let _inside = clock.as_ref().map(Handle::enter);
        Instant::now()
    }

    pub(crate) fn open(&self, owner: Weak<dyn SchedulerHost>) {
        self.0.lock().owner = Some(owner);
    }

    pub(crate) fn admit(&self) -> u32 {
        let mut queue = self.0.lock();
        let id = queue.next_id;
        queue.next_id += 1;
        // No run has enough incarnations for this to matter.
        u32::try_from(id).unwrap_or(u32::MAX)
    }

    pub(crate) fn push(&self, ready: Runnable, number: u32) {
        self.push_work(QueuedWork::Actor(ready, number));
    }

    /// Draws whether an actor that is restarted at once begins its next incarnation in the same
    /// turn.
    pub(crate) fn may_renew(&self) -> bool {
        self.0.lock().numbers.next_u64().is_multiple_of(2)
    }

    fn push_work(&self, entry: QueuedWork) {
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
        path: ActorPath,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Arc<SeededTask> {
        let mut queue = self.0.lock();
        let id = queue.next_id;
        queue.next_id += 1;
        let task = Arc::new(SeededTask {
            id,
            path,
            queue: Arc::downgrade(self),
            queued: QueuedFlag::new(),
            state: Mutex::new(TaskState::Idle(Box::pin(future))),
            aborted: AtomicBool::new(false),
            owner: Mutex::new(None),
        });
        queue.live.insert(id, Arc::clone(&task));
        drop(queue);
        task.schedule();
        task
    }

    /// Runs one of the runnable tasks; returns `false` if there is none. `driver` is woken when
    /// there is work again.
    pub(crate) fn run_one(&self, driver: &Waker) -> bool {
        let mut queue = self.0.lock();
        if queue.ready.is_empty() {
            queue.driver = Some(driver.clone());
            return false;
        }
        let ready = queue.ready.len() as u64;
        let drawn = queue.numbers.next_u64() % ready;
        let drawn = usize::try_from(drawn).expect("below a length");
        // The last entry takes the place of the drawn one: moving all entries behind it would cost
        // a step for each.
        let entry = queue.ready.swap_remove(drawn);
        match &entry {
            QueuedWork::Task(task) => queue.record(task.id, task.path.clone()),
            QueuedWork::Actor(ready, number) => queue.record((*number).into(), ready.path()),
        }
        drop(queue);
        match entry {
            QueuedWork::Task(task) => {
                if task.run_turn() {
                    let ended = self.0.lock().live.remove(&task.id);
                    drop(ended);
                }
            }
            QueuedWork::Actor(ready, number) => {
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

    pub(crate) fn trace(&self) -> ScheduleTrace {
        self.0.lock().trace.clone()
    }

    /// Drops everything that has not ended.
    pub(crate) fn clear(&self) {
        let owner = self.0.lock().owner.take();
        loop {
            let ready = std::mem::take(&mut self.0.lock().ready);
            drop(ready);
            if let Some(owner) = owner.as_ref().and_then(Weak::upgrade) {
                owner.end_parked_actors();
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
            task.run_turn();
        }
    }
}

impl fmt::Debug for SeededScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.0.lock();
        f.debug_struct("RunQueue")
            .field("ready", &queue.ready.len())
            .field("live", &queue.live.len())
            .finish_non_exhaustive()
    }
}

/// A future with its place in a run queue.
pub(crate) struct SeededTask {
    id: u64,
    path: ActorPath,
    queue: Weak<SeededScheduler>,
    queued: QueuedFlag,
    state: Mutex<TaskState>,
    /// There is no model: the flag is set before the task is queued, and if the task was queued
    /// already, its turn sees the flag.
    aborted: AtomicBool,
    owner: Mutex<Option<Waker>>,
}

enum TaskState {
    Idle(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// On the stack of the driver.
    Running,
    Ended(TaskEnd),
}

impl SeededTask {
    fn schedule(self: &Arc<Self>) {
        if self.queued.set()
            && let Some(queue) = self.queue.upgrade()
        {
            queue.push_work(QueuedWork::Task(Arc::clone(self)));
        }
    }

    /// Gives the task a turn; returns `true` if it has ended.
    fn run_turn(self: &Arc<Self>) -> bool {
        self.queued.clear();
        let mut state = self.state.lock();
        match std::mem::replace(&mut *state, TaskState::Running) {
            TaskState::Idle(mut future) => {
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
                        *self.state.lock() = TaskState::Idle(future);
                        return false;
                    }
                    Ok(Some(Poll::Ready(()))) => TaskEnd::Finished,
                    Ok(None) => TaskEnd::Aborted,
                    Err(payload) => TaskEnd::Panicked(crate::exit::panic_message(payload.as_ref())),
                };
                self.end(future, ended);
            }
            before @ (TaskState::Running | TaskState::Ended(_)) => {
                *state = before;
            }
        }
        true
    }

    fn end(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>, mut ended: TaskEnd) {
        // Dropping what the future held runs foreign code.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(future)))
            && ended != TaskEnd::Aborted
        {
            ended = TaskEnd::Panicked(crate::exit::panic_message(payload.as_ref()));
        }
        *self.state.lock() = TaskState::Ended(ended);
        let owner = self.owner.lock().take();
        if let Some(owner) = owner {
            owner.wake();
        }
    }

    pub(crate) fn abort(self: &Arc<Self>) {
        self.aborted.store(true, Ordering::Release);
        self.schedule();
    }

    pub(crate) fn poll_ended(&self, cx: &Context<'_>) -> Poll<TaskEnd> {
        *self.owner.lock() = Some(cx.waker().clone());
        match &*self.state.lock() {
            TaskState::Ended(ended) => Poll::Ready(ended.clone()),
            TaskState::Idle(_) | TaskState::Running => Poll::Pending,
        }
    }
}

impl Wake for SeededTask {
    fn wake(self: Arc<Self>) {
        self.schedule();
    }
}

impl fmt::Debug for SeededTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Task(#{} {})", self.id, self.path)
    }
}

#[cfg(test)]
mod tests;
