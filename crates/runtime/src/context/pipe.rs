//! Long work that does not block the actor.
//!
//! A pipe is a future that runs beside the actor, as a task of the incarnation. Its output arrives
//! as a message. From its start until that message is taken, the pipe is *in flight*.
//! [`Actor::PIPES`] limits the pipes in flight, and with them the number of messages that may wait
//! beyond the capacity of the mailbox.

use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use super::Context;
use crate::actor::Actor;
use crate::address::Accepts;
use crate::mailbox::{ReceivedItem, SystemMessage};
use crate::monitor::Signal;
use crate::run;
use crate::schedule::TaskHandle;

/// The identifier of a pipe of one incarnation; see [`Context::pipe`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PipeId(u64);

/// The error returned when [`Actor::PIPES`] pipes are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the limit of {limit} pipes in flight (`Actor::PIPES`) is reached")]
pub struct TooManyPipes {
    /// Maximum number of pipes in flight.
    pub limit: usize,
}

/// The pipes in flight, by number.
pub(super) type Pipes = BTreeMap<u64, TaskHandle>;

impl<A: Actor> Context<A> {
    /// Runs a future beside the actor, which continues with its messages; the output of the future
    /// arrives as a message.
    ///
    /// The message is queued with the answers of [`lanes`](Context::lane): ahead of the messages in
    /// the mailbox, and beyond its capacity. Pipes that start each other without end leave every
    /// second turn to the mailbox. A panic of the future, or of `into`, arrives as
    /// [`Signal::PipePanicked`]. The pipe ends with the incarnation: its output never reaches the
    /// next one.
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use std::time::Duration;
    ///
    /// use strowger::testing::TestSystem;
    /// use strowger::{Actor, BoxError, Context, Recipient};
    ///
    /// enum Msg {
    ///     Lookup(u32),
    ///     Found(u32, String),
    /// }
    ///
    /// struct Directory(Recipient<String>);
    ///
    /// impl Actor for Directory {
    ///     type Msg = Msg;
    ///     type Args = Recipient<String>;
    ///     type Error = BoxError;
    ///
    ///     async fn pre_start(to: Self::Args, _: &mut Context<Self>) -> Result<Self, BoxError> {
    ///         Ok(Self(to))
    ///     }
    ///
    ///     async fn handle(&mut self, msg: Msg, cx: &mut Context<Self>) -> Result<(), BoxError> {
    ///         match msg {
    ///             Msg::Lookup(number) => {
    ///                 let lookup = async move {
    ///                     tokio::time::sleep(Duration::from_secs(2)).await;
    ///                     format!("subscriber {number}")
    ///                 };
    ///                 cx.pipe(lookup, move |name| Msg::Found(number, name))?;
    ///             }
    ///             Msg::Found(_, name) => self.0.try_tell(name)?,
    ///         }
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let system = TestSystem::new(1);
    /// let probe = system.probe::<String>();
    /// let directory = system.spawn::<Directory>("directory", probe.recipient());
    /// directory.try_tell(Msg::Lookup(1)).expect("there is room");
    /// directory.try_tell(Msg::Lookup(2)).expect("there is room");
    /// // Both are looked up at the same time.
    /// system.advance(Duration::from_secs(2));
    /// assert_eq!(probe.drain().len(), 2);
    /// ```
    ///
    /// # Errors
    /// Fails if [`Actor::PIPES`] pipes are in flight; the future is dropped.
    pub fn pipe<F, T>(
        &mut self,
        future: F,
        into: impl FnOnce(F::Output) -> T + Send + 'static,
    ) -> Result<PipeId, TooManyPipes>
    where
        F: Future + Send + 'static,
        A::Msg: Accepts<T>,
    {
        if self.pipes() >= A::PIPES {
            return Err(TooManyPipes { limit: A::PIPES });
        }
        let number = self.next_task_number();
        let cell = Arc::downgrade(&self.cell());
        let incarnation = self.incarnation;
        let place = || self.cell.core.path();
        let handle = self.cell.core.shared.scheduler.spawn(place, async move {
            let outcome =
                run::catch_panic(AssertUnwindSafe(async { A::Msg::wrap(into(future.await)) }))
                    .await;
            let Some(cell) = cell.upgrade() else { return };
            match outcome {
                Ok(message) => cell
                    .mailbox
                    .push_completion(incarnation, message, Some(number)),
                Err(panic) => cell.mailbox.push_system(
                    SystemMessage::PipePanicked(number, panic),
                    Some(incarnation),
                ),
            };
        });
        self.state().pipes.insert(number, handle);
        Ok(PipeId(number))
    }

    /// Ends a pipe, even if its message already waits. Returns `true` if the pipe was in flight.
    ///
    /// Its future is dropped at its next await.
    pub fn cancel_pipe(&mut self, pipe: PipeId) -> bool {
        let handle = self.state().pipes.remove(&pipe.0);
        if let Some(handle) = &handle {
            handle.abort();
        }
        handle.is_some()
    }

    /// Returns the number of pipes in flight.
    #[must_use]
    pub fn pipes(&self) -> usize {
        self.state.as_ref().map_or(0, |state| state.pipes.len())
    }

    /// Returns the output of a pipe, unless the pipe was cancelled.
    pub(super) fn accept_pipe_output(
        &mut self,
        number: u64,
        message: A::Msg,
    ) -> Option<ReceivedItem<A::Msg>> {
        self.state.as_mut()?.pipes.remove(&number)?;
        Some(ReceivedItem::Message(message))
    }

    /// Forgets a pipe that panicked. Returns the signal for the actor, unless the pipe was
    /// cancelled.
    pub(super) fn pipe_panicked(&mut self, number: u64, panic: Arc<str>) -> Option<Signal> {
        self.state.as_mut()?.pipes.remove(&number)?;
        tracing::warn!(path = %self.cell.core.path(), %panic, "panic in a pipe");
        let pipe = PipeId(number);
        Some(Signal::PipePanicked { pipe, panic })
    }
}
