//! Entities by key: activated by their first message, put to sleep when idle.
//!
//! ```text
//!            first message             started                idle, or room is needed
//!  asleep ────────────────▶ starting ──────────▶ awake ─────────────────────────────▶ passivating
//!    ▲                         │ fails: its senders learn why        │ fails              │
//!    └─────────────────────────┴─────────────────────────────────────┴────────────────────┘
//! ```
//!
//! The table of a kind has the entities that are not asleep. A sender holds a *permit* from before
//! its message enters the mailbox until it is in it, or until an ask is answered. An entity is
//! passivated only while there are no permits; from then on, senders wait for the next activation,
//! and the messages that are in the mailbox are handled before the activation ends. So no message
//! is lost, and at most one activation of an entity runs.
//!
//! An entity with reminders, or with messages in its outbox, has a *wake-up time*, which the store
//! lists by time. The host looks there when it starts, and again when the earliest one has come; it
//! activates the entities that are due. An entity whose wake-up time has come is not passivated
//! before it has done its work.

mod export;
mod host;
mod table;

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{Accepts, ActorRef, ActorSystem, Ask, AskError, ChildSpec, Exit, Key};
use strowger::{Request, SendError, StartError};
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

use crate::actor::DurableActor;
use crate::outbox::{DeliveryFailure, DeliveryFuture, ENTER_LIMIT, InboundMessage, InboundQueue};
use crate::store::{EntityId, Store, StoreError, TooLongForEntityId};
use host::EntityHost;
use table::{AwakeTable, Entered};

/// The entities of one store, by kind and key. Entities of its kinds can send each other messages
/// that survive the process: [`DurableContext::send_durable`](crate::DurableContext::send_durable).
///
/// ```
/// # use std::sync::Arc;
/// # use strowger::{ActorSystem, Ask, BoxError, Request};
/// # use strowger_durable::store::MemoryStore;
/// # use strowger_durable::{DurableActor, DurableContext, Entities};
/// # struct Deposit(i64);
/// # impl Request for Deposit { type Reply = i64; }
/// # struct Account;
/// # impl DurableActor for Account {
/// #     const KIND: &'static str = "account";
/// #     type State = i64;
/// #     type Msg = Ask<Deposit>;
/// #     type Args = ();
/// #     type Error = BoxError;
/// #     async fn pre_start(
/// #         _: (), _: &mut i64, _: &mut DurableContext<'_, Self>,
/// #     ) -> Result<Self, BoxError> {
/// #         Ok(Self)
/// #     }
/// #     async fn handle(
/// #         &mut self, ask: Ask<Deposit>, state: &mut i64, cx: &mut DurableContext<'_, Self>,
/// #     ) -> Result<(), BoxError> {
/// #         *state += ask.request.0;
/// #         cx.reply(ask.reply, *state);
/// #         Ok(())
/// #     }
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let store = MemoryStore::new();
/// # let system = ActorSystem::new("bank")?;
/// let entities = Entities::new(Arc::new(store));
/// let accounts = entities.start::<Account>(&system, "accounts", ())?;
/// assert_eq!(accounts.get("acc-42")?.ask(Deposit(50)).await?, 50);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Entities(Arc<EntitiesState>);

struct EntitiesState {
    store: Arc<dyn Store>,
    kinds: Mutex<HashMap<&'static str, Weak<dyn HostedKind>>>,
    /// The time at which the first host started, by the wall clock of the store.
    began: OnceLock<Duration>,
}

impl Entities {
    /// Creates access to the entities of a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(Arc::new(EntitiesState {
            store,
            kinds: Mutex::default(),
            began: OnceLock::new(),
        }))
    }

    /// Starts the host of a kind at the top of a system; activations are its children. It is not
    /// restarted; see [`Self::supervised`].
    ///
    /// # Errors
    /// Fails if the key of the host is invalid or taken, or if the system is shutting down.
    pub fn start<A: DurableActor>(
        &self,
        system: &ActorSystem,
        key: impl Into<Key>,
        args: A::Args,
    ) -> Result<EntityKind<A>, StartError> {
        let kind = self.kind::<A>(args);
        system.spawn::<EntityHost<A>>(key, Arc::clone(&kind.0))?;
        Ok(kind)
    }

    /// Returns the specification of a host of a kind, for a supervisor, and access to the kind.
    /// Messages wait until the host has started.
    pub fn supervised<A: DurableActor>(
        &self,
        key: impl Into<Arc<str>>,
        args: A::Args,
    ) -> (ChildSpec, EntityKind<A>) {
        let kind = self.kind::<A>(args);
        let host = ChildSpec::new::<EntityHost<A>>(key, Arc::clone(&kind.0));
        (host, kind)
    }

    fn kind<A: DurableActor>(&self, args: A::Args) -> EntityKind<A> {
        let state = Arc::new(KindState::<A> {
            name: A::KIND.into(),
            entities: self.clone(),
            args,
            table: Mutex::new(AwakeTable::new()),
            changed: Notify::new(),
        });
        let weak: Weak<dyn HostedKind> = Arc::<KindState<A>>::downgrade(&state);
        self.0.kinds.lock().insert(A::KIND, weak);
        EntityKind(state)
    }
}

impl fmt::Debug for Entities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entities").field(&self.0.store).finish()
    }
}

/// The entities of one kind, whose activations are the children of a host.
pub struct EntityKind<A: DurableActor>(Arc<KindState<A>>);

impl<A: DurableActor> EntityKind<A> {
    /// Returns the address of the entity with a key, whether it is stored or not. It stays valid
    /// over activations and restarts.
    ///
    /// # Errors
    /// Fails if the key is longer than [`EntityId::MAX_LEN`].
    pub fn get(&self, key: impl Into<Arc<str>>) -> Result<EntityRef<A>, TooLongForEntityId> {
        Ok(EntityRef {
            id: EntityId::new(Arc::clone(&self.0.name), key)?,
            kind: Arc::clone(&self.0),
        })
    }

    /// Lists at most `limit` keys of stored entities, in an order of the store's own. A page begins
    /// behind the last key of the previous one. An entity that still has its first state is not
    /// stored.
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn stored(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<Arc<str>>, StoreError> {
        let store = &self.0.entities.0.store;
        store.list(A::KIND, after, limit).await
    }

    /// Returns the keys of the entities that are not asleep, sorted.
    #[must_use]
    pub fn awake(&self) -> Vec<Arc<str>> {
        self.0.table.lock().keys()
    }
}

impl<A: DurableActor> Clone for EntityKind<A> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<A: DurableActor> fmt::Debug for EntityKind<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntityKind({})", A::KIND)
    }
}

/// The address of an entity. A message to an entity that is asleep activates it.
pub struct EntityRef<A: DurableActor> {
    id: EntityId,
    kind: Arc<KindState<A>>,
}

impl<A: DurableActor> EntityRef<A> {
    /// The time that [`Self::ask`] waits for an answer.
    pub const ASK_DEADLINE: Duration = Duration::from_secs(5);

    /// Returns the name of the entity.
    #[must_use]
    pub const fn id(&self) -> &EntityId {
        &self.id
    }

    /// Sends a message. Waits for the activation of the entity, and for room in its mailbox.
    ///
    /// # Errors
    /// Fails if the entity is not activated; see [`EntityError`].
    pub async fn tell<T>(&self, message: T) -> Result<(), EntityError>
    where
        A::Msg: Accepts<T>,
    {
        let mut message = message;
        loop {
            let permit = self.kind.enter(&self.id).await?;
            match permit.actor.tell(message).await {
                Ok(()) => return Ok(()),
                Err(SendError::Full(_)) => return Err(self.ask_failed(AskError::Full)),
                // The activation has failed meanwhile; its host will know.
                Err(refused) => message = refused.into_message(),
            }
        }
    }

    /// Sends a request and waits for its answer, for up to [`Self::ASK_DEADLINE`].
    ///
    /// # Errors
    /// See [`EntityError`]. The request may have been handled.
    pub async fn ask<R: Request>(&self, request: R) -> Result<R::Reply, EntityError>
    where
        A::Msg: Accepts<Ask<R>>,
    {
        self.ask_within(request, Self::ASK_DEADLINE).await
    }

    /// Sends a request and waits for its answer, up to a deadline that includes the activation of
    /// the entity.
    ///
    /// # Errors
    /// See [`EntityError`]. The request may have been handled.
    pub async fn ask_within<R: Request>(
        &self,
        request: R,
        within: Duration,
    ) -> Result<R::Reply, EntityError>
    where
        A::Msg: Accepts<Ask<R>>,
    {
        let begun = Instant::now();
        let Ok(entered) = tokio::time::timeout(within, self.kind.enter(&self.id)).await else {
            let entity = self.id.clone();
            return Err(match self.kind.table.lock().is_busy(A::MAX_AWAKE) {
                true => EntityError::TooManyAwake {
                    entity,
                    limit: A::MAX_AWAKE,
                },
                false => self.ask_failed(AskError::TimedOut),
            });
        };
        let permit = entered?;
        let left = within.saturating_sub(begun.elapsed());
        let answered = permit.actor.ask_within(request, left).await;
        answered.map_err(|error| self.ask_failed(error))
    }

    fn ask_failed(&self, source: AskError) -> EntityError {
        let entity = self.id.clone();
        EntityError::Unanswered { entity, source }
    }
}

impl<A: DurableActor> Clone for EntityRef<A> {
    fn clone(&self) -> Self {
        Self {
            id: self.id.clone(),
            kind: Arc::clone(&self.kind),
        }
    }
}

impl<A: DurableActor> fmt::Debug for EntityRef<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntityRef({})", self.id)
    }
}

/// The reason why a message was not delivered to an entity, or a request not answered.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum EntityError {
    /// The activation ended while it started, for example because the entity is damaged. Other
    /// entities are not affected; the next message tries again.
    #[error("activation of {entity} {exit}")]
    NotActivated {
        /// The entity that the message was for.
        entity: EntityId,
        /// The exit of the activation.
        exit: Exit,
    },
    /// As many entities of this kind are awake as may be, and all of them are in use.
    #[error(
        "{entity} not activated: {limit} entities of its kind are awake and in use, the limit; \
         repeat the request later, or raise `MAX_AWAKE`"
    )]
    TooManyAwake {
        /// The entity that the message was for.
        entity: EntityId,
        /// Maximum number of entities of this kind that are awake.
        limit: usize,
    },
    /// The host of the kind has ended.
    #[error("{entity} not activated: the host of its kind has ended")]
    Closed {
        /// The entity that the message was for.
        entity: EntityId,
    },
    /// The activation did not answer.
    #[error("{entity}: {source}")]
    Unanswered {
        /// The entity that the message was for.
        entity: EntityId,
        /// The reason why there is no answer.
        source: AskError,
    },
}

/// A kind of entities, as seen by activations.
pub(crate) trait HostedKind: Send + Sync {
    /// Marks an entity as awake. Its activation has this address, of the type of its kind.
    fn started(&self, key: &Arc<str>, actor: &dyn Any);

    /// Puts an entity to sleep as soon as no sender uses it.
    fn passivate(&self, key: &Arc<str>);

    /// Returns the kind with this name among those of the same `Entities`.
    fn kind(&self, name: &str) -> Option<Arc<dyn HostedKind>>;

    /// Returns the time at which the kinds of this process began.
    fn began(&self) -> Duration;

    /// Passes a message of another entity to an activation, which stays awake until the message is
    /// acknowledged.
    fn deliver(
        self: Arc<Self>,
        receiver: EntityId,
        message: InboundMessage,
        acknowledged: oneshot::Receiver<Result<(), DeliveryFailure>>,
    ) -> DeliveryFuture;
}

/// The place of an activation among the entities of its kind.
#[derive(Clone)]
pub(crate) struct Hosted {
    kind: Weak<dyn HostedKind>,
    key: Arc<str>,
    link: Arc<ActivationLink>,
}

/// Shared by an activation and its entry in the table of its kind.
pub(crate) struct ActivationLink {
    wake: WakeTime,
    /// Messages of other entities.
    inbound: InboundQueue,
}

impl ActivationLink {
    fn new() -> Self {
        Self {
            wake: WakeTime::new(),
            inbound: InboundQueue::new(),
        }
    }
}

/// The time at which an entity has to be awake.
#[derive(Debug)]
pub(crate) struct WakeTime(AtomicU64);

impl WakeTime {
    const fn new() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }

    fn get(&self) -> Option<Duration> {
        let millis = self.0.load(Ordering::Acquire);
        (millis != u64::MAX).then(|| Duration::from_millis(millis))
    }
}

impl Hosted {
    /// Tells the host when the entity has to be awake.
    pub(crate) fn set_wake(&self, at: Option<Duration>) {
        let millis = at.map(|at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        let wake = &self.link.wake.0;
        wake.store(millis.unwrap_or(u64::MAX), Ordering::Release);
    }

    /// Returns the queue of messages of other entities.
    pub(crate) fn inbound(&self) -> &InboundQueue {
        &self.link.inbound
    }

    /// Returns the time at which the entities of this process began.
    pub(crate) fn began(&self) -> Duration {
        let kind = self.kind.upgrade();
        kind.map(|kind| kind.began()).unwrap_or_default()
    }

    /// Delivers a message to an entity of any kind, and waits for its acknowledgement.
    pub(crate) async fn deliver(
        &self,
        receiver: &EntityId,
        message: InboundMessage,
        acknowledged: oneshot::Receiver<Result<(), DeliveryFailure>>,
    ) -> Result<(), DeliveryFailure> {
        let own = self.kind.upgrade();
        let Some(kind) = own.and_then(|own| own.kind(receiver.kind())) else {
            let kind = receiver.kind().to_owned();
            return Err(DeliveryFailure::NoHost { kind });
        };
        kind.deliver(receiver.clone(), message, acknowledged).await
    }

    /// Tells senders that the entity is awake, at this address.
    pub(crate) fn started<M: Send + 'static>(&self, actor: &ActorRef<M>) {
        if let Some(kind) = self.kind.upgrade() {
            kind.started(&self.key, actor);
        }
    }

    pub(crate) fn passivate(&self) {
        if let Some(kind) = self.kind.upgrade() {
            kind.passivate(&self.key);
        }
    }
}

/// The state that a host shares with the addresses of its entities.
pub(crate) struct KindState<A: DurableActor> {
    /// The name of the kind, which the names of all its entities share.
    name: Arc<str>,
    entities: Entities,
    args: A::Args,
    table: Mutex<AwakeTable<A::Msg>>,
    /// Notified when there may be room for a further activation.
    changed: Notify,
}

impl<A: DurableActor> KindState<A> {
    /// Waits until an entity is awake, and keeps it awake.
    async fn enter(self: &Arc<Self>, id: &EntityId) -> Result<Permit<A>, EntityError> {
        let entity = || id.clone();
        loop {
            let mut entered = self.table.lock().enter(id.shared_key(), A::MAX_AWAKE);
            let mut changed = pin!(self.changed.notified());
            if matches!(entered, Entered::NoRoom) {
                // Enabled before the table is read again, so that no change is missed.
                changed.as_mut().enable();
                entered = self.table.lock().enter(id.shared_key(), A::MAX_AWAKE);
            }
            match entered {
                Entered::Awake(actor) => {
                    return Ok(Permit {
                        kind: Arc::clone(self),
                        key: Arc::clone(id.shared_key()),
                        actor,
                    });
                }
                Entered::Wait(mut outcome) => {
                    let settled = outcome.wait_for(Option::is_some).await;
                    if let Ok(Some(Some(exit))) = settled.as_deref() {
                        let exit = exit.clone();
                        let entity = entity();
                        return Err(EntityError::NotActivated { entity, exit });
                    }
                }
                Entered::NoRoom => {
                    self.make_room();
                    changed.await;
                }
                Entered::Closed => return Err(EntityError::Closed { entity: entity() }),
            }
        }
    }
}

impl<A: DurableActor> KindState<A> {
    /// Passivates the entity that has been idle for longest.
    fn make_room(&self) {
        let now = self.entities.0.store.wall_clock();
        self.table.lock().make_room(now);
    }
}

impl<A: DurableActor> HostedKind for KindState<A> {
    fn started(&self, key: &Arc<str>, actor: &dyn Any) {
        if let Some(actor) = actor.downcast_ref::<ActorRef<A::Msg>>() {
            let mut table = self.table.lock();
            table.started(key, actor.clone(), Instant::now());
            self.changed.notify_waiters();
        }
    }

    fn passivate(&self, key: &Arc<str>) {
        self.table.lock().passivate_unused(key);
    }

    fn kind(&self, name: &str) -> Option<Arc<dyn HostedKind>> {
        self.entities.0.kinds.lock().get(name)?.upgrade()
    }

    fn began(&self) -> Duration {
        let entities = &self.entities.0;
        *entities.began.get_or_init(|| entities.store.wall_clock())
    }

    fn deliver(
        self: Arc<Self>,
        receiver: EntityId,
        message: InboundMessage,
        acknowledged: oneshot::Receiver<Result<(), DeliveryFailure>>,
    ) -> DeliveryFuture {
        Box::pin(async move {
            let entered = tokio::time::timeout(ENTER_LIMIT, self.enter(&receiver)).await;
            let entered = entered.map_err(|_| DeliveryFailure::StillNotActive)?;
            let permit = entered.map_err(DeliveryFailure::NotActivated)?;
            let link = self.table.lock().link(&permit.key);
            link.inbound.push(message)?;
            let acknowledged = acknowledged.await;
            acknowledged.unwrap_or(Err(DeliveryFailure::ReceiverEnded))
        })
    }
}

/// The right to send to an activation, which is not passivated meanwhile.
struct Permit<A: DurableActor> {
    kind: Arc<KindState<A>>,
    key: Arc<str>,
    actor: ActorRef<A::Msg>,
}

impl<A: DurableActor> Drop for Permit<A> {
    fn drop(&mut self) {
        let mut table = self.kind.table.lock();
        if table.leave(&self.key, self.actor.id(), Instant::now(), A::MAX_AWAKE) {
            self.kind.changed.notify_waiters();
        }
    }
}

impl fmt::Debug for Hosted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hosted({})", self.key)
    }
}
