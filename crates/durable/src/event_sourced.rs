//! Actors whose state is made from stored events.

mod log;
mod value;

use std::fmt;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use strowger::{BoxError, MailboxSpec, Reply};

use self::log::EventLog;
pub use self::value::{StoredValue, ValueError};
use crate::actor::DurableActor;
use crate::answers::{AnswerWindow, IdempotencyKey};
use crate::gate::DurableContext;
use crate::journal::StateForm;
use crate::outbox::{Delivery, InboxWindow, OutboxLimits};
use crate::reminder::Reminder;
use crate::store::EventNumber;

/// An actor whose state is made from events, which are stored instead of the state.
///
/// A message is decided into events with [`EventContext::emit`]. The events of a message are stored
/// in one write, and its replies, messages to others and timers leave only after that, as those of
/// a [`DurableActor`] do. The state changes in [`apply`](Self::apply) alone, so the state of a
/// running actor is the one that its events lead to.
///
/// [`Sourced<A>`](Sourced) is the [`DurableActor`] of an `EventSourced` actor `A`. It is spawned as
/// `Durable<Sourced<A>>`, and hosted with
/// [`Entities::start::<Sourced<A>>`](crate::Entities::start).
///
/// # Versions
///
/// An event is stored with the version of its type, and with the names of its fields. A change that
/// serde can read, such as a field with `#[serde(default)]`, needs no new version. For any other
/// change, raise [`VERSION`](Self::VERSION), and convert older events in
/// [`upcast_event`](Self::upcast_event). Stored events are not rewritten.
///
/// An event or a snapshot that cannot be read ends the activation of its entity with a
/// [`DurableError`](crate::DurableError) that names it; other entities are not affected.
///
/// ```
/// # use std::sync::Arc;
/// # use serde::{Deserialize, Serialize};
/// # use strowger::{ActorSystem, Ask, BoxError, Request};
/// # use strowger_durable::store::MemoryStore;
/// # use strowger_durable::{Durable, DurableArgs, EventContext, EventSourced, Sourced};
/// # struct Withdraw(i64);
/// # impl Request for Withdraw { type Reply = bool; }
/// # type Cx<'a> = EventContext<'a, Account>;
/// #[derive(Serialize, Deserialize)]
/// enum Event { Opened { deposit: i64 }, Withdrawn(i64) }
/// struct Account;
///
/// impl EventSourced for Account {
///     const KIND: &'static str = "account";
///     type State = i64;
///     type Event = Event;
/// #   type Msg = Ask<Withdraw>;
/// #   type Args = ();
/// #   type Error = BoxError;
///
///     fn apply(balance: &mut i64, event: Event) {
///         match event {
///             Event::Opened { deposit } => *balance = deposit,
///             Event::Withdrawn(amount) => *balance -= amount,
///         }
///     }
///
///     async fn pre_start(_: (), cx: &mut Cx<'_>) -> Result<Self, BoxError> {
///         if cx.last_event().0 == 0 {
///             cx.emit(&Event::Opened { deposit: 100 });
///         }
///         Ok(Self)
///     }
///
///     async fn handle(&mut self, ask: Ask<Withdraw>, cx: &mut Cx<'_>) -> Result<(), BoxError> {
///         let is_enough = *cx.state() >= ask.request.0;
///         if is_enough {
///             cx.emit(&Event::Withdrawn(ask.request.0));
///         }
///         cx.reply(ask.reply, is_enough);
///         Ok(())
///     }
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let (store, system) = (MemoryStore::new(), ActorSystem::new("bank")?);
///
/// let args = DurableArgs::new(Arc::new(store), "acc-42", ())?;
/// let account = system.spawn::<Durable<Sourced<Account>>>("acc-42", args)?;
/// assert!(account.ask(Withdraw(70)).await?);
/// assert!(!account.ask(Withdraw(70)).await?);
/// # Ok(())
/// # }
/// ```
pub trait EventSourced: Sized + Send + 'static {
    /// The name of this kind of entity in the store. It must not change while entities of this kind
    /// are stored.
    const KIND: &'static str;

    /// The version of [`Self::Event`].
    const VERSION: u32 = 1;

    /// The version of [`Self::State`] in snapshots.
    const SNAPSHOT_VERSION: u32 = 1;

    /// Number of events after which the state is stored too, in the same write as the last of them.
    /// A start reads the events since then. 0 counts as 1.
    const SNAPSHOT_EVERY: u64 = 100;

    /// The events that stay stored.
    const RETENTION: EventRetention = EventRetention::All;

    /// The state that the events lead to. An entity starts with the default.
    type State: Serialize + DeserializeOwned + Default + Send + Sync + 'static;
    /// A change of the state that has happened, such as `Deposited`.
    type Event: Serialize + DeserializeOwned + Send;
    /// The type of message that the actor takes; see [`Actor::Msg`](strowger::Actor::Msg).
    type Msg: Send + 'static;
    /// The arguments from which every incarnation is built, besides its state.
    type Args: Clone + Send + Sync + 'static;
    /// The error that the actor's hooks return.
    type Error: Into<BoxError> + Send + 'static;

    /// Capacity of the mailbox and the behavior beyond it.
    const MAILBOX: MailboxSpec = MailboxSpec::DEFAULT;

    /// The answers that are kept for repeated requests; see [`EventContext::reply_once`].
    const ANSWERS: AnswerWindow = AnswerWindow::DEFAULT;

    /// The time without messages after which an [entity](crate::Entities) is put to sleep.
    const IDLE: Duration = Duration::from_secs(60);

    /// Maximum number of [entities](crate::Entities) of this kind that are awake; see
    /// [`DurableActor::MAX_AWAKE`].
    const MAX_AWAKE: usize = 10_000;

    /// Maximum number of durable timers of an entity.
    const MAX_REMINDERS: usize = 1000;

    /// The limits of messages to other entities that are not delivered yet.
    const OUTBOX: OutboxLimits = OutboxLimits::DEFAULT;

    /// The senders whose messages are recognized when they arrive again.
    const INBOX: InboxWindow = InboxWindow::DEFAULT;

    /// Changes the state by an event, both when it is emitted and when it is replayed.
    ///
    /// The result must depend on the two arguments alone. An event that was stored must lead to the
    /// same state in later versions of the program.
    fn apply(state: &mut Self::State, event: Self::Event);

    /// Builds the value of an incarnation, after its state was made from stored events. It may emit
    /// events.
    fn pre_start(
        args: Self::Args,
        cx: &mut EventContext<'_, Self>,
    ) -> impl Future<Output = Result<Self, Self::Error>> + Send;

    /// Decides a message: reads [`EventContext::state`], emits events and replies.
    ///
    /// If this fails, the events are dropped with the other outputs.
    fn handle(
        &mut self,
        message: Self::Msg,
        cx: &mut EventContext<'_, Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Handles a durable timer that has fired; see [`DurableActor::remind`]. The timer is removed
    /// in the same write that has the events emitted here.
    fn remind(
        &mut self,
        reminder: Reminder,
        cx: &mut EventContext<'_, Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let (entity, name) = (cx.entity(), reminder.name());
        tracing::error!(%entity, %name, "actor has reminders and no `remind`");
        std::future::ready(Ok(()))
    }

    /// Handles a message of another entity, which was sent with
    /// [`DurableContext::send_durable`]; see [`DurableActor::receive`]. The message is noted as
    /// taken in the same write that has the events emitted here. The default leaves it with its
    /// sender.
    fn receive(
        &mut self,
        delivery: Delivery,
        cx: &mut EventContext<'_, Self>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = delivery;
        cx.journal.refuse_inbound();
        std::future::ready(Ok(()))
    }

    /// Converts an event of a version to one of the next version. It is called for each version
    /// from that of the event on.
    ///
    /// # Errors
    /// The entity does not start. The default has no conversions.
    fn upcast_event(version: u32, event: StoredValue) -> Result<StoredValue, BoxError> {
        let _ = event;
        Err(format!("`upcast_event` has no conversion from version {version}").into())
    }

    /// Converts a snapshot of a version to one of the next version, or returns `None` to make the
    /// state from all events instead, as the default does. That needs
    /// [`EventRetention::All`]; without all events, the entity does not start. They are read into
    /// memory at once.
    ///
    /// # Errors
    /// The entity does not start.
    fn upcast_snapshot(
        version: u32,
        snapshot: StoredValue,
    ) -> Result<Option<StoredValue>, BoxError> {
        let _ = (version, snapshot);
        Ok(None)
    }
}

/// The events that stay stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRetention {
    /// All events. An entity grows with each; a start reads those after the snapshot.
    All,
    /// The events since the last snapshot, which bounds the size of an entity. An event is removed
    /// in the write that has a snapshot of the state after it.
    SinceSnapshot,
}

/// A part of the stored form of an [`EventSourced`] actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredPart {
    /// The event with a number.
    Event(EventNumber),
    /// The snapshot of the state after the event with a number.
    Snapshot(EventNumber),
}

impl fmt::Display for StoredPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(number) => write!(f, "event {number}"),
            Self::Snapshot(number) => write!(f, "snapshot after event {number}"),
        }
    }
}

/// The context of an [`EventSourced`] actor: a [`DurableContext`] with the state and its events.
pub struct EventContext<'a, A: EventSourced> {
    durable: DurableContext<'a, Sourced<A>>,
    log: &'a mut EventLog<A>,
}

impl<'a, A: EventSourced> EventContext<'a, A> {
    fn new(durable: &'a mut DurableContext<'_, Sourced<A>>, log: &'a mut EventLog<A>) -> Self {
        let durable = durable.reborrow();
        Self { durable, log }
    }

    /// Returns the state after all events, those of the current message included.
    #[must_use]
    pub const fn state(&self) -> &A::State {
        self.log.state()
    }

    /// Returns the number of the last event; 0 if there was none.
    #[must_use]
    pub const fn last_event(&self) -> EventNumber {
        self.log.last()
    }

    /// Adds an event to those of the current message, and applies it to the state. It is stored
    /// once the handler has returned, before any output leaves.
    ///
    /// An event that cannot be encoded, or cannot be decoded again, is not applied: it ends the
    /// incarnation after the handler, with [`DurableError::NotEncoded`](crate::DurableError), and
    /// nothing of the message is stored.
    pub fn emit(&mut self, event: &A::Event) {
        self.log.emit(event, self.durable.journal);
    }

    /// Answers a request that may be repeated. The first time, `effect` emits events and returns
    /// the answer, which is kept with them; after that, the kept answer is given, and `effect` does
    /// not run.
    pub fn reply_once<T>(
        &mut self,
        key: &IdempotencyKey,
        reply: Reply<T>,
        effect: impl FnOnce(&mut Self) -> T,
    ) where
        T: Serialize + DeserializeOwned + Send + 'static,
    {
        if let Some(reply) = self.durable.reply_again(key, reply) {
            let answer = effect(self);
            self.durable.keep_and_reply(key, reply, answer);
        }
    }
}

impl<'a, A: EventSourced> Deref for EventContext<'a, A> {
    type Target = DurableContext<'a, Sourced<A>>;

    fn deref(&self) -> &Self::Target {
        &self.durable
    }
}

impl<A: EventSourced> DerefMut for EventContext<'_, A> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.durable
    }
}

impl<A: EventSourced> fmt::Debug for EventContext<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventContext({})", self.entity())
    }
}

/// The [`DurableActor`] that runs an [`EventSourced`] actor. Its saved state is empty: the state is
/// made from the events.
pub struct Sourced<A: EventSourced> {
    actor: A,
    log: EventLog<A>,
}

impl<A: EventSourced> DurableActor for Sourced<A> {
    const KIND: &'static str = A::KIND;
    const MAILBOX: MailboxSpec = A::MAILBOX;
    const ANSWERS: AnswerWindow = A::ANSWERS;
    const IDLE: Duration = A::IDLE;
    const MAX_AWAKE: usize = A::MAX_AWAKE;
    const MAX_REMINDERS: usize = A::MAX_REMINDERS;
    const OUTBOX: OutboxLimits = A::OUTBOX;
    const INBOX: InboxWindow = A::INBOX;
    const FORM: StateForm = StateForm::Events;

    type State = ();
    type Msg = A::Msg;
    type Args = A::Args;
    type Error = BoxError;

    async fn pre_start(
        args: A::Args,
        (): &mut (),
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        let mut log = EventLog::load(cx.journal).await?;
        let started = A::pre_start(args, &mut EventContext::new(cx, &mut log)).await;
        let actor = started.map_err(Into::into)?;
        log.add_to_write(cx.journal).await?;
        Ok(Self { actor, log })
    }

    async fn handle(
        &mut self,
        message: A::Msg,
        (): &mut (),
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let mut events = EventContext::new(cx, &mut self.log);
        let handled = self.actor.handle(message, &mut events).await;
        handled.map_err(Into::into)?;
        Ok(self.log.add_to_write(cx.journal).await?)
    }

    async fn remind(
        &mut self,
        reminder: Reminder,
        (): &mut (),
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let mut events = EventContext::new(cx, &mut self.log);
        let reminded = self.actor.remind(reminder, &mut events).await;
        reminded.map_err(Into::into)?;
        Ok(self.log.add_to_write(cx.journal).await?)
    }

    async fn receive(
        &mut self,
        delivery: Delivery,
        (): &mut (),
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let mut events = EventContext::new(cx, &mut self.log);
        let received = self.actor.receive(delivery, &mut events).await;
        received.map_err(Into::into)?;
        Ok(self.log.add_to_write(cx.journal).await?)
    }
}

impl<A: EventSourced> fmt::Debug for Sourced<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sourced({} after event {})", A::KIND, self.log.last())
    }
}
