//! The output gate: nothing that depends on a write leaves the actor before the write is durable.
//!
//! # The model
//!
//! ```text
//!               S stored state    M state in memory    O outputs of the current message
//!
//!            ┌───────────────────────────── next message ◀──────────────────────────────┐
//!            ▼                                                                          │
//!  M = S, O = ∅ ──▶ handle: M', O ──▶ append M' and kept answers ──▶ S' = M' ──▶ O leaves, O = ∅
//!                      │                          │
//!                      │ error, panic, kill       │ error, kill
//!                      ▼                          ▼
//!             O is dropped, M' is forgotten; the next incarnation begins with M = S or M = S'
//! ```
//!
//! 1. Between two messages, `M = S` and `O` is empty. A start establishes this, because it reads
//!    `M` from the store; an append that succeeds restores it.
//! 2. A handler reads `M`, its message and nothing else of the entity. So what is in `O` depends on
//!    `S` and on `M'` alone, and `O` leaves only after `S' = M'`.
//! 3. No other message is handled between `handle` and the end of the append. Without this rule, a
//!    second message could read `M'` and answer from it while the write of `M'` may still fail;
//!    every answer would have to wait for all writes before it, and the failure of one would take
//!    back the others. An actor of many entities gets its throughput from the store, which commits
//!    the writes of different entities as a group.
//! 4. If the append fails, or if the incarnation ends before it is known to have succeeded, `O` is
//!    dropped. Its askers learn that there is no answer, not that there is no effect: `S'` may be
//!    `M'`. A sender that must know repeats its request with the same [`IdempotencyKey`]; the kept
//!    answer is in the same append as the effect, so there are both or neither.
//! 5. A message that leaves `M' = M` and keeps no answer needs no append: by 1, what it read is
//!    stored.
//!
//! An [`EventSourced`](crate::EventSourced) actor follows the same model: `M'` is `M` after the
//! events of the message, and the append has these events, and now and then `M'` as a snapshot. The
//! events are applied in memory before they are stored, so an event that cannot be applied is never
//! stored; by 3 and 4, nothing else can see `M'` until it is stored.
//!
//! Effects that a handler causes without its [`DurableContext`] do not go through the gate: an ask
//! of its own, a file, a send to an address that it holds. They happen even if the append fails.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use strowger::{Accepts, ActorPath, ActorRef, Context, Recipient, Reply};

use crate::actor::{Durable, DurableActor, DurableError};
use crate::answers::IdempotencyKey;
use crate::journal::Journal;
use crate::outbox::OutboxError;
use crate::reminder::ReminderError;
use crate::seeded_bug::{Bug, seeded};
use crate::store::EntityId;

/// The context of a durable actor. What leaves through it goes through the [output gate](self).
pub struct DurableContext<'a, A: DurableActor> {
    pub(crate) context: &'a mut Context<Durable<A>>,
    pub(crate) outputs: &'a mut Outputs<A::Msg>,
    pub(crate) journal: &'a mut Journal,
}

impl<A: DurableActor> DurableContext<'_, A> {
    /// Answers a request, once the current message's changes are durable.
    pub fn reply<T: Send + 'static>(&mut self, reply: Reply<T>, answer: T) {
        self.outputs
            .add(Output::Reply(Box::new(|| reply.send(answer))));
    }

    /// Answers a request that may be repeated. The first time, `effect` changes the state and
    /// returns the answer, which is kept with the state; after that, the kept answer is given, and
    /// `effect` does not run.
    pub fn reply_once<T>(
        &mut self,
        key: &IdempotencyKey,
        reply: Reply<T>,
        effect: impl FnOnce() -> T,
    ) where
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        if let Some(reply) = self.reply_again(key, reply) {
            self.keep_and_reply(key, reply, effect());
        }
    }

    /// Answers a request with the answer that was kept for its key. Returns the reply if there is
    /// none.
    pub(crate) fn reply_again<T>(
        &mut self,
        key: &IdempotencyKey,
        reply: Reply<T>,
    ) -> Option<Reply<T>>
    where
        T: DeserializeOwned + Send + 'static,
    {
        match self.journal.kept_answer(key) {
            Some(Ok(answer)) => self.reply(reply, answer),
            Some(Err(error)) => {
                tracing::error!(entity = %self.entity(), %key, %error, "kept answer not decoded");
                drop(reply);
            }
            None => return Some(reply),
        }
        None
    }

    /// Answers a request, and keeps the answer.
    pub(crate) fn keep_and_reply<T>(&mut self, key: &IdempotencyKey, reply: Reply<T>, answer: T)
    where
        T: Serialize + Send + 'static,
    {
        self.journal.keep_answer(key, &answer);
        self.reply(reply, answer);
    }

    /// Lends the context.
    pub(crate) fn reborrow(&mut self) -> DurableContext<'_, A> {
        DurableContext {
            context: &mut *self.context,
            outputs: &mut *self.outputs,
            journal: &mut *self.journal,
        }
    }

    /// Sends a message to another actor, once the current message's changes are durable. If its
    /// mailbox is full, the next message of this actor waits for room there. A message that is
    /// refused is logged and dropped.
    pub fn tell<T: Send + 'static>(&mut self, to: Recipient<T>, message: T) {
        let send = async move {
            if let Err(error) = to.tell(message).await {
                let to = to.actor().path();
                tracing::warn!(%to, %error, "message of a durable actor dropped");
            }
        };
        self.outputs.add(Output::Tell(Box::pin(send)));
    }

    /// Sends a message to an entity, which takes it once, in its
    /// [`receive`](DurableActor::receive): it is stored with the changes of the current message,
    /// and delivered again until the receiver has stored its effect. The messages of one sender to
    /// one receiver arrive in order. The receiver may sleep, and may be of the sender's own kind; a
    /// host of its kind has to run, started with the same [`Entities`](crate::Entities).
    ///
    /// A receiver that fails, or that cannot be activated, gets the message again after a time that
    /// doubles from a tenth of a second to half a minute. Its other messages from this sender wait
    /// meanwhile; other receivers do not.
    ///
    /// # Errors
    /// Fails if the outbox has reached one of its [limits](DurableActor::OUTBOX), or if this actor
    /// is not an entity of a host. A handler that returns the error takes its changes back.
    pub fn send_durable<T: Serialize>(
        &mut self,
        receiver: &EntityId,
        message: &T,
    ) -> Result<(), OutboxError> {
        self.journal.send_durable(receiver, message, A::OUTBOX)
    }

    /// Returns the number of messages sent with [`Self::send_durable`] that are not known to be
    /// delivered.
    #[must_use]
    pub const fn undelivered(&self) -> usize {
        self.journal.outbox.len()
    }

    /// Sends a message to this incarnation after a delay, which begins once the current message's
    /// changes are durable. The timer is not durable itself: it ends with the incarnation. See
    /// [`Self::set_reminder`].
    pub fn send_after<T>(&mut self, delay: Duration, message: T)
    where
        A::Msg: Accepts<T>,
    {
        let message = A::Msg::wrap(message);
        self.outputs.add(Output::Timer(delay, message));
    }

    /// Sets a durable timer, which is stored with the changes of the current message and calls
    /// [`DurableActor::remind`] at its time, by the wall clock of the store. It replaces one with
    /// the same name.
    ///
    /// It is found again after a restart, and activates an [entity](crate::Entities) that sleeps.
    /// One whose time passed while no process ran fires once, [late](crate::Reminder::is_late).
    ///
    /// # Errors
    /// Fails if the entity has [`DurableActor::MAX_REMINDERS`], or if the name is longer than
    /// [`Reminder::MAX_NAME`](crate::Reminder::MAX_NAME).
    pub fn set_reminder<T: Serialize>(
        &mut self,
        name: &str,
        after: Duration,
        payload: &T,
    ) -> Result<(), ReminderError> {
        let limit = A::MAX_REMINDERS;
        self.journal.set_reminder(name, after, payload, limit)
    }

    /// Cancels a durable timer. Returns `false` if there is none with this name.
    pub fn cancel_reminder(&mut self, name: &str) -> bool {
        self.journal.cancel_reminder(name)
    }

    /// Returns the names of the durable timers, sorted.
    #[must_use]
    pub fn reminders(&self) -> Vec<Arc<str>> {
        self.journal.reminders().names()
    }

    /// Ends the actor after the current message, once its changes are durable. An
    /// [entity](crate::Entities) first handles the messages that were sent to it.
    pub fn stop(&mut self) {
        match self.journal.hosted() {
            Some(hosted) => hosted.passivate(),
            None => self.context.stop(),
        }
    }

    /// Returns the entity whose state this is.
    #[must_use]
    pub fn entity(&self) -> &EntityId {
        self.journal.entity()
    }

    /// Returns the actor's own address.
    #[must_use]
    pub fn actor_ref(&self) -> ActorRef<A::Msg> {
        self.context.actor_ref()
    }

    /// Returns the actor's path in the tree.
    #[must_use]
    pub fn path(&self) -> ActorPath {
        self.context.path()
    }
}

impl<A: DurableActor> std::fmt::Debug for DurableContext<'_, A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "DurableContext({})", self.entity())
    }
}

/// The outputs of one message, in the order in which the handler made them.
pub(crate) struct Outputs<M>(Vec<Output<M>>);

enum Output<M> {
    Reply(Box<dyn FnOnce() + Send>),
    Tell(Pin<Box<dyn Future<Output = ()> + Send>>),
    Timer(Duration, M),
}

impl<M: Send + 'static> Outputs<M> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    fn add(&mut self, output: Output<M>) {
        self.0.push(output);
    }

    /// Makes the state durable, then lets the outputs leave. If that fails, they are dropped.
    pub(crate) async fn leave_after<A: DurableActor<Msg = M>>(
        mut self,
        journal: &mut Journal,
        state: &A::State,
        context: &mut Context<Durable<A>>,
    ) -> Result<(), DurableError> {
        if seeded(Bug::OutputsLeaveBeforeAppend) {
            self.leave(context).await;
        }
        let saved = journal.save(state).await;
        if saved.is_ok() || seeded(Bug::OutputsLeaveAfterFailedAppend) {
            self.leave(context).await;
        }
        saved
    }

    async fn leave<A: DurableActor<Msg = M>>(&mut self, context: &mut Context<Durable<A>>) {
        for output in self.0.drain(..) {
            match output {
                Output::Reply(send) => send(),
                Output::Tell(send) => send.await,
                Output::Timer(delay, message) => _ = context.send_after(delay, message),
            }
        }
    }
}
