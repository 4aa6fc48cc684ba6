//! Actors whose state is stored.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use strowger::{Actor, BoxError, Context, Exit, MailboxSpec, Signal};
use tokio::sync::Notify;

use crate::answers::AnswerWindow;
use crate::entity::Hosted;
use crate::event_sourced::StoredPart;
use crate::gate::{DurableContext, Outputs};
use crate::journal::{Journal, StateForm};
use crate::outbox::{Delivery, InboxWindow, Outbox, OutboxLimits};
use crate::reminder::Reminder;
use crate::seeded_bug::{Bug, seeded};
use crate::store::{EntityId, Sequence, Store, StoreError, TooLongForEntityId};

/// An actor whose state outlives the process.
///
/// The state is read before [`pre_start`](Self::pre_start) and written after each message that
/// changes it. Replies, messages to others and timers leave through the [`DurableContext`], and
/// only after that write is durable. Further messages wait meanwhile.
///
/// A hook that fails or panics, and a write that fails, end the incarnation; its changes since the
/// last write are forgotten, and its outputs dropped. A supervisor restarts it from the store.
pub trait DurableActor: Sized + Send + 'static {
    /// The name of this kind of entity in the store. It must not change while entities of this kind
    /// are stored.
    const KIND: &'static str;

    /// The stored state. An entity starts with the default, and is stored once it differs from it.
    ///
    /// It is stored with the names of its fields, so fields can be removed, and fields with
    /// `#[serde(default)]` can be added.
    type State: Serialize + DeserializeOwned + Default + Send + Sync + 'static;
    /// The type of message that the actor takes; see [`Actor::Msg`].
    type Msg: Send + 'static;
    /// The arguments from which every incarnation is built, besides its state.
    type Args: Clone + Send + Sync + 'static;
    /// The error that the actor's hooks return.
    type Error: Into<BoxError> + Send + 'static;

    /// Capacity of the mailbox and the behavior beyond it.
    const MAILBOX: MailboxSpec = MailboxSpec::DEFAULT;

    /// The answers that are kept for repeated requests; see [`DurableContext::reply_once`].
    const ANSWERS: AnswerWindow = AnswerWindow::DEFAULT;

    /// The time without messages after which an [entity](crate::Entities) is put to sleep.
    const IDLE: Duration = Duration::from_secs(60);

    /// Maximum number of [entities](crate::Entities) of this kind that are awake, at least one.
    /// Beyond it, the one that has been idle for longest is put to sleep; if all are in use,
    /// messages to others wait.
    const MAX_AWAKE: usize = 10_000;

    /// Maximum number of durable timers of an entity.
    const MAX_REMINDERS: usize = 1000;

    /// The rows from which the actor has its state; not to be set.
    #[doc(hidden)]
    const FORM: StateForm = StateForm::Saved;

    /// The limits of messages to other entities that are not delivered yet; see
    /// [`DurableContext::send_durable`].
    const OUTBOX: OutboxLimits = OutboxLimits::DEFAULT;

    /// The senders whose messages are recognized when they arrive again; see
    /// [`receive`](Self::receive).
    const INBOX: InboxWindow = InboxWindow::DEFAULT;

    /// Builds the value of an incarnation. It may change the state, and its outputs go through the
    /// gate, as those of [`handle`](Self::handle) do.
    fn pre_start(
        args: Self::Args,
        state: &mut Self::State,
        cx: &mut DurableContext<'_, Self>,
    ) -> impl Future<Output = Result<Self, Self::Error>> + Send;

    /// Handles one message.
    fn handle(
        &mut self,
        message: Self::Msg,
        state: &mut Self::State,
        cx: &mut DurableContext<'_, Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Handles a durable timer that has fired; see [`DurableContext::set_reminder`]. It overtakes
    /// messages: one whose time passed before the actor started comes before the first message.
    ///
    /// The timer is removed in the same write as the changes made here, so they take effect once.
    /// If this fails, the next incarnation is reminded again.
    fn remind(
        &mut self,
        reminder: Reminder,
        state: &mut Self::State,
        cx: &mut DurableContext<'_, Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = state;
        let (entity, name) = (cx.entity(), reminder.name());
        tracing::error!(%entity, %name, "actor has reminders and no `remind`");
        std::future::ready(Ok(()))
    }

    /// Handles a message that another entity has sent with [`DurableContext::send_durable`]. It
    /// overtakes other messages. Without this method, such messages stay with their senders.
    ///
    /// The number of the message is stored in the same write as the changes made here, so they
    /// take effect once, as long as the sender is in the [window](Self::INBOX). If this fails, the
    /// activation ends, and the sender sends the message again. A message that can never be handled
    /// therefore stays with its sender, and holds up the later ones from there; return `Ok` to take
    /// it out of the way.
    fn receive(
        &mut self,
        delivery: Delivery,
        state: &mut Self::State,
        cx: &mut DurableContext<'_, Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = (delivery, state);
        cx.journal.refuse_inbound();
        std::future::ready(Ok(()))
    }
}

/// The actor that runs a [`DurableActor`]: it is spawned and supervised like any other, and its
/// address takes the messages of `A`.
///
/// A second activation of an entity takes it over: the next write of the first one is refused, and
/// ends it with [`DurableError::NotSaved`].
pub struct Durable<A: DurableActor> {
    actor: A,
    state: A::State,
    journal: Journal,
    alarm: Option<Alarm>,
}

/// The task that ends when a reminder or an attempt to deliver may be due. Its end is a signal, and
/// so reaches an actor whose messages are all of its own type.
#[derive(Debug)]
struct Alarm {
    /// The time that the running task waits for.
    set_for: Option<Duration>,
    /// Ends the running task.
    end: Arc<Notify>,
}

impl Alarm {
    const TASK: &str = "alarm";
    /// Maximum time until the wall clock is read again, which may have been set.
    const MAX_WAIT: Duration = Duration::from_secs(60);

    fn update<A: DurableActor>(
        alarm: &mut Option<Self>,
        journal: &Journal,
        cx: &mut Context<Durable<A>>,
    ) {
        let next = journal.next_due();
        if let Some(alarm) = alarm {
            if next != alarm.set_for {
                // The end of the task leads back to here.
                alarm.end.notify_one();
            }
            return;
        }
        let Some(wait) = journal.until_next_due() else {
            return;
        };
        let end = Arc::<Notify>::default();
        *alarm = Some(Self {
            set_for: next,
            end: Arc::clone(&end),
        });
        cx.task(Self::TASK, async move {
            let wait = wait.min(Self::MAX_WAIT);
            let _ = tokio::time::timeout(wait, end.notified()).await;
        });
    }
}

/// The arguments of a [`Durable`] actor.
pub struct DurableArgs<A: DurableActor> {
    store: Arc<dyn Store>,
    entity: EntityId,
    args: A::Args,
    hosted: Option<Hosted>,
}

impl<A: DurableActor> DurableArgs<A> {
    /// Creates the arguments for the entity with this key.
    ///
    /// # Errors
    /// Fails if the key is longer than [`EntityId::MAX_LEN`].
    pub fn new(
        store: Arc<dyn Store>,
        key: impl Into<Arc<str>>,
        args: A::Args,
    ) -> Result<Self, TooLongForEntityId> {
        let entity = EntityId::new(A::KIND, key)?;
        Ok(Self {
            store,
            entity,
            args,
            hosted: None,
        })
    }

    /// Creates the arguments of an activation that has a host.
    pub(crate) fn hosted(
        store: Arc<dyn Store>,
        entity: EntityId,
        args: A::Args,
        hosted: Hosted,
    ) -> Self {
        Self {
            store,
            entity,
            args,
            hosted: Some(hosted),
        }
    }
}

impl<A: DurableActor> Clone for DurableArgs<A> {
    fn clone(&self) -> Self {
        Self {
            store: Arc::clone(&self.store),
            entity: self.entity.clone(),
            args: self.args.clone(),
            hosted: self.hosted.clone(),
        }
    }
}

impl<A: DurableActor> Actor for Durable<A> {
    type Msg = A::Msg;
    type Args = DurableArgs<A>;
    type Error = DurableError;

    const MAILBOX: MailboxSpec = A::MAILBOX;

    async fn pre_start(args: DurableArgs<A>, cx: &mut Context<Self>) -> Result<Self, DurableError> {
        let windows = (A::ANSWERS, A::INBOX);
        let opened = Journal::open(args.store, args.entity, windows, A::FORM, args.hosted);
        let (mut journal, mut state) = opened.await?;
        let mut outputs = Outputs::new();
        let mut durable = DurableContext {
            context: cx,
            outputs: &mut outputs,
            journal: &mut journal,
        };
        let started = A::pre_start(args.args, &mut state, &mut durable).await;
        let actor = started.map_err(DurableError::hook)?;
        outputs.leave_after(&mut journal, &state, cx).await?;
        let mut durable = Self {
            actor,
            state,
            journal,
            alarm: None,
        };
        durable.after_write(cx);
        if durable.journal.is_reminder_due() {
            // The alarm would come after messages that are waiting already.
            cx.notifier().notify();
        }
        if let Some(hosted) = durable.journal.hosted() {
            hosted.inbound().start(cx.notifier());
            hosted.started(&cx.actor_ref());
        }
        Ok(durable)
    }

    async fn handle(&mut self, message: A::Msg, cx: &mut Context<Self>) -> Result<(), Self::Error> {
        let mut outputs = Outputs::new();
        let mut durable = DurableContext {
            context: cx,
            outputs: &mut outputs,
            journal: &mut self.journal,
        };
        let handled = self.actor.handle(message, &mut self.state, &mut durable);
        handled.await.map_err(DurableError::hook)?;
        let (journal, state) = (&mut self.journal, &self.state);
        outputs.leave_after(journal, state, cx).await?;
        self.after_write(cx);
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), Self::Error> {
        match signal {
            // Another entity has sent a message, or a reminder was due at the start.
            Signal::Notified => {}
            Signal::TaskEnded { name } if &*name == Alarm::TASK => self.alarm = None,
            Signal::TaskEnded { name } if &*name == Outbox::TASK => {
                self.journal.settle_outbox(|| cx.next_seed());
            }
            _ => return Ok(()),
        }
        while let Some(reminder) = self.journal.take_due_reminder() {
            let mut outputs = Outputs::new();
            let mut durable = DurableContext {
                context: cx,
                outputs: &mut outputs,
                journal: &mut self.journal,
            };
            let reminded = self.actor.remind(reminder, &mut self.state, &mut durable);
            reminded.await.map_err(DurableError::hook)?;
            let (journal, state) = (&mut self.journal, &self.state);
            outputs.leave_after(journal, state, cx).await?;
        }
        self.receive_inbound(cx).await?;
        if self.journal.has_changes() {
            let (journal, state) = (&mut self.journal, &self.state);
            let outputs = Outputs::new();
            outputs.leave_after(journal, state, cx).await?;
        }
        self.after_write(cx);
        Ok(())
    }

    async fn post_stop(mut self, exit: &Exit, cx: &mut Context<Self>) {
        if exit.is_orderly() {
            self.journal.save_outbox(|| cx.next_seed()).await;
        }
    }
}

impl<A: DurableActor> Durable<A> {
    /// Maximum number of messages of other entities that are handled before other messages are.
    const INBOUND_TURN: usize = 16;

    /// Starts what the last write makes due.
    fn after_write(&mut self, cx: &mut Context<Self>) {
        self.journal.deliver_outbox(cx);
        Alarm::update(&mut self.alarm, &self.journal, cx);
        self.journal.publish_wake();
    }

    /// Handles messages of other entities, and acknowledges each after its write.
    async fn receive_inbound(&mut self, cx: &mut Context<Self>) -> Result<(), DurableError> {
        for _ in 0..Self::INBOUND_TURN {
            let Some(message) = self.journal.next_inbound() else {
                return Ok(());
            };
            let mut outputs = Outputs::new();
            let mut durable = DurableContext {
                context: cx,
                outputs: &mut outputs,
                journal: &mut self.journal,
            };
            let delivery = message.delivery();
            let received = self.actor.receive(delivery, &mut self.state, &mut durable);
            received.await.map_err(DurableError::hook)?;
            let is_taken = self.journal.take_inbound(&message);
            let message = match is_taken && seeded(Bug::DeliveryAcknowledgedEarly) {
                true => {
                    message.acknowledge();
                    None
                }
                false => Some(message),
            };
            let (journal, state) = (&mut self.journal, &self.state);
            outputs.leave_after(journal, state, cx).await?;
            match message {
                Some(message) if is_taken => message.acknowledge(),
                Some(message) => message.refuse(),
                None => {}
            }
        }
        cx.notifier().notify();
        Ok(())
    }
}

impl<A: DurableActor> fmt::Debug for Durable<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Durable({})", self.journal.entity())
    }
}

impl<A: DurableActor> fmt::Debug for DurableArgs<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DurableArgs({})", self.entity)
    }
}

/// The reason why an incarnation of a durable actor ended with
/// [`Exit::Failed`](strowger::Exit::Failed), whose error can be downcast to this.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DurableError {
    /// The store did not give out the entity.
    #[error("entity {entity} not loaded: {source}")]
    NotLoaded {
        /// The entity of the actor.
        entity: EntityId,
        /// The error of the store.
        source: StoreError,
    },
    /// The stored rows are not a state of this type.
    #[error(
        "entity {entity} not decoded at sequence {sequence}: {detail}; use the version that wrote \
         it, or restore the store from a backup"
    )]
    Unreadable {
        /// The entity of the actor.
        entity: EntityId,
        /// The sequence of its last batch.
        sequence: Sequence,
        /// The error of the decoder.
        detail: String,
    },
    /// The changes of a message were not written. Its replies and messages were dropped.
    #[error("changes of entity {entity} not saved as sequence {sequence}: {source}")]
    NotSaved {
        /// The entity of the actor.
        entity: EntityId,
        /// The sequence that the batch would have had.
        sequence: Sequence,
        /// The error of the store.
        source: StoreError,
    },
    /// An event or a snapshot was stored by a later version of the program.
    #[error(
        "{part} of entity {entity} has version {version} at sequence {sequence}, this program \
         reads up to version {known}; run the program that wrote it, or a later one"
    )]
    UnknownVersion {
        /// The entity of the actor.
        entity: EntityId,
        /// The sequence of its last batch.
        sequence: Sequence,
        /// The event or the snapshot.
        part: StoredPart,
        /// The version that is stored with it.
        version: u32,
        /// The version that this program writes.
        known: u32,
    },
    /// An event or a snapshot is not what it should be, or cannot be converted to it.
    #[error(
        "{part} of entity {entity} with version {version} not decoded at sequence {sequence}: \
         {detail}; correct the upcaster from this version, or restore the store from a backup"
    )]
    NotDecoded {
        /// The entity of the actor.
        entity: EntityId,
        /// The sequence of its last batch.
        sequence: Sequence,
        /// The event or the snapshot.
        part: StoredPart,
        /// The version that is stored with it.
        version: u32,
        /// The error of the decoder or of the upcaster.
        detail: String,
    },
    /// The state, an event or an answer cannot be encoded.
    #[error("state, event or answer of entity {entity} not encoded: {detail}")]
    NotEncoded {
        /// The entity of the actor.
        entity: EntityId,
        /// The error of the encoder.
        detail: String,
    },
    /// A hook of the actor returned an error.
    #[error("{0}")]
    Hook(BoxError),
}

impl DurableError {
    fn hook(error: impl Into<BoxError>) -> Self {
        // An adapter of this crate between the actor and its hooks returns errors of its own.
        match error.into().downcast() {
            Ok(own) => *own,
            Err(error) => Self::Hook(error),
        }
    }
}
