//! Scheduling of actors: the only interface to an executor.
//!
//! An actor is a [strand](strand), not a task. On tokio, dispatchers run strands ([`pool`]); under
//! the test kit, a run queue whose order follows from a seed runs them (`seeded`). Futures beside
//! actors are tokio tasks, or entries in the same run queue.
//!
//! In which order and how often everything is served, from the outside in; the reasons are in
//! `docs/internals/turns.md`:
//!
//! | level | order | how often |
//! |---|---|---|
//! | tokio worker | its tasks, one of them the dispatcher | once in a beat or sooner |
//! | dispatcher | LIFO slot, run queue, low-priority queue | one turn each |
//! | turn | one item after another, in rounds | 256 items or one beat |
//! | round | orders before all else | at once |
//! | | signals, then completions | those that wait, at most a share |
//! | | a timer that is due | one |
//! | | a message | one, which ends the round |

pub(crate) mod beat;
pub(crate) mod pool;
#[cfg(feature = "testing")]
pub(crate) mod seeded;
mod spin;
pub(crate) mod strand;
pub(crate) mod wake;

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::clock;
use crate::path::ActorPath;
use crate::reply::PendingReply;
use pool::{Pool, SchedulerHost};
#[cfg(feature = "testing")]
use seeded::{SeededScheduler, SeededTask};
use strand::Runnable;

/// The scheduler of a system: runs actors, and futures beside them.
#[derive(Debug, Clone)]
pub(crate) enum Scheduler {
    Pool(Arc<Pool>),
    #[cfg(feature = "testing")]
    Seeded(Arc<SeededScheduler>),
}

impl Scheduler {
    /// Creates a scheduler on the tokio runtime of the caller; `None` outside of one.
    pub(crate) fn current() -> Option<Self> {
        Handle::try_current().ok().map(Pool::new).map(Self::Pool)
    }

    /// Returns the current time for everything that runs here.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::Pool(_) => clock::now(),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.now(),
        }
    }

    /// Begins to run the actors of a system.
    pub(crate) fn open(&self, owner: Weak<dyn SchedulerHost>) {
        match self {
            Self::Pool(pool) => pool.open(owner),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.open(owner),
        }
    }

    /// Lets the scheduler end once no incarnation is left.
    pub(crate) fn close(&self) {
        match self {
            Self::Pool(pool) => pool.close(),
            #[cfg(feature = "testing")]
            Self::Seeded(_) => {}
        }
    }

    /// Records a new incarnation, and assigns it a place.
    pub(crate) fn add_incarnation(&self) -> u32 {
        match self {
            Self::Pool(pool) => pool.admit(),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.admit(),
        }
    }

    /// Like `add_incarnation`, for an incarnation that follows another one at this place. It stays
    /// there: another worker would have to be woken, and would have nothing of it in its caches.
    pub(crate) fn readd_incarnation(&self, place: u32) -> u32 {
        match self {
            Self::Pool(pool) => pool.admit_again(place),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.admit(),
        }
    }

    /// Like `add_incarnation`, for an incarnation that gets a thread of its own.
    pub(crate) fn add_blocking_incarnation(&self, path: impl FnOnce() -> ActorPath) -> u32 {
        match self {
            Self::Pool(pool) => pool.admit_blocking(&path()),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.admit(),
        }
    }

    /// Lists an ask that begins to wait, so that its asker is called if it waits for long. Returns
    /// `true` if the asker will be called.
    #[inline]
    pub(crate) fn register_ask<T>(&self, answer: &mut PendingReply<T>) -> bool {
        match self {
            Self::Pool(pool) => pool.list(answer),
            #[cfg(feature = "testing")]
            Self::Seeded(_) => false,
        }
    }

    /// Announces an ask. Returns `true` if polling for its answer pays off.
    #[inline]
    pub(crate) fn announce_ask(&self) -> bool {
        match self {
            Self::Pool(pool) => pool.announce_ask(),
            #[cfg(feature = "testing")]
            Self::Seeded(_) => false,
        }
    }

    /// Polls for the answer to an ask that was announced, and has been sent since.
    pub(crate) fn spin_for_answer(&self, is_there: impl Fn() -> bool) {
        match self {
            Self::Pool(pool) => pool.look_for_answer(is_there),
            #[cfg(feature = "testing")]
            Self::Seeded(_) => {}
        }
    }

    /// Returns `true` if turns are bounded in time. Under the test kit, handlers take no time.
    pub(crate) const fn has_beat(&self) -> bool {
        match self {
            Self::Pool(_) => true,
            #[cfg(feature = "testing")]
            Self::Seeded(_) => false,
        }
    }

    /// Returns `true` if an actor that is restarted at once may begin its next incarnation in the
    /// same turn. Under the test kit, this is drawn from the seed.
    #[inline]
    pub(crate) fn may_restart_in_place(&self) -> bool {
        match self {
            Self::Pool(_) => true,
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.may_renew(),
        }
    }

    /// Records that an incarnation is over.
    pub(crate) fn remove_incarnation(&self, place: u32) {
        match self {
            Self::Pool(pool) => pool.release(place),
            #[cfg(feature = "testing")]
            Self::Seeded(_) => {}
        }
    }

    /// Queues an actor that has something to do.
    #[inline]
    pub(crate) fn push(&self, ready: Runnable, place: u32) {
        match self {
            Self::Pool(pool) => pool.push(ready, place),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.push(ready, place),
        }
    }

    /// Queues an actor that has little to do, near the caller.
    pub(crate) fn push_local(&self, ready: Runnable, place: u32) {
        match self {
            Self::Pool(pool) => pool.push_local(ready, place),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.push(ready, place),
        }
    }

    /// Returns `true` if nothing runs any more.
    pub(crate) fn is_down(&self) -> bool {
        match self {
            Self::Pool(pool) => pool.is_down(),
            #[cfg(feature = "testing")]
            Self::Seeded(_) => false,
        }
    }

    /// Starts a task. The path of the actor that it belongs to is read for traces only.
    pub(crate) fn spawn(
        &self,
        path: impl FnOnce() -> ActorPath,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> TaskHandle {
        match self {
            Self::Pool(pool) => {
                // Only traces show the path of a task.
                drop(path);
                TaskHandle(TaskInner::Tokio(pool.handle().spawn(future)))
            }
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => TaskHandle(TaskInner::Seeded(queue.spawn(path(), future))),
        }
    }
}

/// The way in which a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TaskEnd {
    Finished,
    Aborted,
    /// It panicked, with this message.
    Panicked(Arc<str>),
}

/// A task, which is ready when it has ended in any way. Dropping the handle does not end the task.
#[derive(Debug)]
pub(crate) struct TaskHandle(TaskInner);

#[derive(Debug)]
enum TaskInner {
    Tokio(JoinHandle<()>),
    #[cfg(feature = "testing")]
    Seeded(Arc<SeededTask>),
}

impl TaskHandle {
    /// Ends the task at its next turn: its future is dropped instead of polled.
    pub(crate) fn abort(&self) {
        match &self.0 {
            TaskInner::Tokio(handle) => handle.abort(),
            #[cfg(feature = "testing")]
            TaskInner::Seeded(task) => task.abort(),
        }
    }
}

impl Future for TaskHandle {
    type Output = TaskEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<TaskEnd> {
        match &mut self.0 {
            TaskInner::Tokio(handle) => Pin::new(handle).poll(cx).map(|joined| match joined {
                Ok(()) => TaskEnd::Finished,
                Err(error) => error.try_into_panic().map_or(TaskEnd::Aborted, |payload| {
                    TaskEnd::Panicked(crate::exit::panic_message(payload.as_ref()))
                }),
            }),
            #[cfg(feature = "testing")]
            TaskInner::Seeded(task) => task.poll_ended(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn owner_sees_every_kind_of_task_end() {
        let scheduler = Scheduler::current().expect("the test runs in tokio");
        assert_eq!(
            scheduler.spawn(ActorPath::root, async {}).await,
            TaskEnd::Finished
        );
        let stuck = scheduler.spawn(ActorPath::root, std::future::pending());
        stuck.abort();
        assert_eq!(stuck.await, TaskEnd::Aborted);
        let task = scheduler.spawn(ActorPath::root, async {
            std::panic::resume_unwind(Box::new("boom"));
        });
        assert_eq!(task.await, TaskEnd::Panicked("boom".into()));
    }

    #[test]
    fn current_is_none_outside_tokio() {
        assert!(Scheduler::current().is_none());
    }
}
