//! How actors are run: the only door to an executor.
//!
//! An actor is a [strand](strand), not a task. On tokio, dispatchers run strands ([`pool`]); under
//! the test kit a run queue does whose order follows from a seed (`seeded`). Futures beside actors
//! are tokio's own tasks, or entries in that same queue.

mod eager;
pub(crate) mod pool;
pub(crate) mod pulse;
#[cfg(feature = "testing")]
pub(crate) mod seeded;
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
use crate::path::Path;
use crate::reply::Answer;
use pool::{Pool, Residents};
#[cfg(feature = "testing")]
use seeded::{RunQueue, Task};
use strand::Ready;

/// Runs actors, and futures beside them.
#[derive(Debug, Clone)]
pub(crate) enum Scheduler {
    Pool(Arc<Pool>),
    #[cfg(feature = "testing")]
    Seeded(Arc<RunQueue>),
}

impl Scheduler {
    /// Runs actors on the tokio runtime that the caller is in.
    pub(crate) fn current() -> Option<Self> {
        Handle::try_current().ok().map(Pool::new).map(Self::Pool)
    }

    /// The time, for all that runs here.
    #[inline]
    pub(crate) fn now(&self) -> Instant {
        match self {
            Self::Pool(_) => clock::now(),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.now(),
        }
    }

    /// Begins to run those who live here.
    pub(crate) fn open(&self, residents: Weak<dyn Residents>) {
        match self {
            Self::Pool(pool) => pool.open(residents),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.open(residents),
        }
    }

    /// Ends when nothing lives any more.
    pub(crate) fn close(&self) {
        match self {
            Self::Pool(pool) => pool.close(),
            #[cfg(feature = "testing")]
            Self::Seeded(_) => {}
        }
    }

    /// Takes note of a new incarnation, and gives it a place.
    pub(crate) fn admit(&self) -> u32 {
        match self {
            Self::Pool(pool) => pool.admit(),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.admit(),
        }
    }

    /// As `admit`, for an incarnation that follows one at this place. It stays there: another
    /// worker would be woken, and would not know it.
    pub(crate) fn admit_again(&self, place: u32) -> u32 {
        match self {
            Self::Pool(pool) => pool.admit_again(place),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.admit(),
        }
    }

    /// As `admit`, for an incarnation that gets a thread of its own.
    pub(crate) fn admit_blocking(&self, path: impl FnOnce() -> Path) -> u32 {
        match self {
            Self::Pool(pool) => pool.admit_blocking(&path()),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.admit(),
        }
    }

    /// Lists a question that begins to wait, so that it is called if it waits for long; returns
    /// whether it will be.
    #[inline]
    pub(crate) fn list<T>(&self, answer: &mut Answer<T>) -> bool {
        match self {
            Self::Pool(pool) => pool.list(answer),
            #[cfg(feature = "testing")]
            Self::Seeded(_) => false,
        }
    }

    /// Looks for the answer to a question that was just sent, where it is worth it.
    #[inline]
    pub(crate) fn look_for_answer(&self, is_there: impl Fn() -> bool) {
        match self {
            Self::Pool(pool) => pool.look_for_answer(is_there),
            #[cfg(feature = "testing")]
            Self::Seeded(_) => {}
        }
    }

    /// Returns `true` if turns are bounded in time. Under the test kit handlers take none.
    pub(crate) const fn is_timed(&self) -> bool {
        match self {
            Self::Pool(_) => true,
            #[cfg(feature = "testing")]
            Self::Seeded(_) => false,
        }
    }

    /// Returns `true` if an actor whose restart follows at once may begin anew in the same turn.
    /// Under the test kit that is drawn.
    #[inline]
    pub(crate) fn may_renew(&self) -> bool {
        match self {
            Self::Pool(_) => true,
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.may_renew(),
        }
    }

    /// Takes note that an incarnation is over.
    pub(crate) fn release(&self, place: u32) {
        match self {
            Self::Pool(pool) => pool.release(place),
            #[cfg(feature = "testing")]
            Self::Seeded(_) => {}
        }
    }

    /// Queues an actor that has something to do.
    #[inline]
    pub(crate) fn push(&self, ready: Ready, place: u32) {
        match self {
            Self::Pool(pool) => pool.push(ready, place),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.push(ready, place),
        }
    }

    /// Queues an actor that has little to do, near the caller.
    pub(crate) fn push_near(&self, ready: Ready, place: u32) {
        match self {
            Self::Pool(pool) => pool.push_near(ready, place),
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => queue.push(ready, place),
        }
    }

    /// Whether nothing runs any more.
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
        path: impl FnOnce() -> Path,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> TaskHandle {
        match self {
            Self::Pool(pool) => {
                // Only traces name tasks.
                drop(path);
                TaskHandle(Inner::Tokio(pool.handle().spawn(future)))
            }
            #[cfg(feature = "testing")]
            Self::Seeded(queue) => TaskHandle(Inner::Seeded(queue.spawn(path(), future))),
        }
    }
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    Finished,
    Aborted,
    /// It panicked, with this message.
    Panicked(Arc<str>),
}

/// A task; ready when it has ended, however it did. Dropping the handle does not end the task.
#[derive(Debug)]
pub(crate) struct TaskHandle(Inner);

#[derive(Debug)]
enum Inner {
    Tokio(JoinHandle<()>),
    #[cfg(feature = "testing")]
    Seeded(Arc<Task>),
}

impl TaskHandle {
    /// Ends the task at its next turn: its future is dropped, not driven on.
    pub(crate) fn abort(&self) {
        match &self.0 {
            Inner::Tokio(handle) => handle.abort(),
            #[cfg(feature = "testing")]
            Inner::Seeded(task) => task.abort(),
        }
    }
}

impl Future for TaskHandle {
    type Output = Ended;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Ended> {
        match &mut self.0 {
            Inner::Tokio(handle) => Pin::new(handle).poll(cx).map(|joined| match joined {
                Ok(()) => Ended::Finished,
                Err(error) => error.try_into_panic().map_or(Ended::Aborted, |payload| {
                    Ended::Panicked(crate::exit::panic_text(payload.as_ref()))
                }),
            }),
            #[cfg(feature = "testing")]
            Inner::Seeded(task) => task.poll_ended(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_kind_of_end_is_seen_by_the_owner() {
        let scheduler = Scheduler::current().expect("the test runs in tokio");
        assert_eq!(scheduler.spawn(Path::root, async {}).await, Ended::Finished);
        let stuck = scheduler.spawn(Path::root, std::future::pending());
        stuck.abort();
        assert_eq!(stuck.await, Ended::Aborted);
        let task = scheduler.spawn(Path::root, async {
            std::panic::resume_unwind(Box::new("boom"));
        });
        assert_eq!(task.await, Ended::Panicked("boom".into()));
    }

    #[test]
    fn outside_tokio_there_is_nothing_to_run_on() {
        assert!(Scheduler::current().is_none());
    }
}
