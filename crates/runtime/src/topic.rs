//! Publish and subscribe, by message type and name.
//!
//! A topic is a table of recipients, not an actor. Publishing delivers in the publisher's own turn,
//! with `try_tell`, so a slow subscriber is handled by the overflow rule of its mailbox and never
//! makes the publisher wait.
//!
//! ```text
//! Exchange<T>                 one for each message type
//! ├─ topics by name           each caches a route: the subscribers of that topic
//! └─ Broker<T>                the subscriptions, in a trie of patterns
//! ```
//!
//! - **A route is a cache.** Each change of the subscriptions increments a version. A publisher
//!   whose route has an older version matches the name again, so most publications do no matching
//!   at all.
//! - **One order.** The topic is locked while a message is delivered. If a subscriber with a
//!   wildcard takes part, a second lock establishes one order over all topics that wildcards reach.
//! - **No nesting.** A message published by user code inside a delivery is delivered after it.

mod broker;
mod name;
mod route;
mod trie;
mod turn;

use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::address::AnyRef;
use crate::exit::{drop_all_caught, drop_caught};
use crate::recipient::Recipient;
use crate::rendezvous;
use crate::sync::{AtomicU64, Ordering};
use broker::Broker;
use route::{DeliveryRule, Route};
use turn::DeliveryGuard;

pub use broker::Subscription;
pub(crate) use broker::{Exchange, Exchanges};
pub use name::{TopicError, TopicLimits};

/// A typed topic: messages published to it go to all subscribers of its name.
///
/// Clones refer to the same topic. Topics are obtained from
/// [`ActorSystem::topic`](crate::ActorSystem::topic).
///
/// # Names
/// A name consists of segments separated by slashes: `n4/smf-1/load`. A subscription may use a
/// pattern of names ([`ActorSystem::subscribe`](crate::ActorSystem::subscribe)), in which the
/// segment `*` matches one segment and `**` any number of segments, including none. Names and
/// patterns are limited in length and depth ([`TopicLimits`]).
///
/// # Delivery
/// - Each subscriber gets a clone of one [`Arc`], not of the payload.
/// - All subscribers of a topic see its messages in the same order, whoever publishes them. Across
///   several topics the same holds for subscribers with wildcards, and for all subscribers as far
///   as the messages of one publisher are concerned.
/// - An actor has one subscription for each name or pattern. Subscribing again replaces the earlier
///   subscription, so `pre_start` may subscribe in each incarnation. An actor with two patterns
///   that match gets two copies, each according to the filter and conversion of its own
///   subscription.
/// - A subscription survives restarts of its actor and ends with the actor.
/// - The publisher never waits. If a mailbox is full, its own overflow rule applies. If that rule
///   is to wait or to fail, the message is dropped for this subscriber, counted in
///   [`TopicInfo::dropped`], named in [`PublishOutcome::full`], and reported as
///   [`Event::Overflow`](crate::Event::Overflow).
/// - If a filter or a conversion panics, only its own subscriber misses the message.
/// - Messages that filters, conversions or destructors publish are delivered after the current one.
///
/// ```
/// use std::convert::Infallible;
/// use std::sync::Arc;
///
/// use strowger::{Actor, BoxError, Context};
///
/// /// Follows the load of all nodes.
/// struct Gauge;
///
/// impl Actor for Gauge {
///     type Msg = Arc<u32>;
///     type Args = ();
///     type Error = BoxError;
///
///     async fn pre_start(_: (), cx: &mut Context<Self>) -> Result<Self, BoxError> {
///         cx.system().subscribe("node/*/load", cx.actor_ref().recipient::<Arc<u32>>())?;
///         Ok(Self)
///     }
///
///     async fn handle(&mut self, load: Arc<u32>, cx: &mut Context<Self>) -> Result<(), BoxError> {
///         if *load == 100 {
///             cx.stop();
///         }
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// let system = strowger::ActorSystem::new("node")?;
/// let gauge = system.spawn::<Gauge>("gauge", ())?;
/// let load = system.topic::<u32>("node/7/load")?;
/// while gauge.is_alive() {
///     load.publish(100);
///     tokio::task::yield_now().await;
/// }
/// # Ok(())
/// # }
/// ```
pub struct Topic<T>(Arc<TopicInner<T>>);

struct TopicInner<T> {
    name: Arc<str>,
    broker: Arc<Broker<T>>,
    exchange: Weak<Exchange<T>>,
    route: Mutex<Route<T>>,
    counts: TopicCounters,
}

/// Written under the lock of the route and read without it. Each counter is correct by itself;
/// nothing else depends on the values read.
#[derive(Default)]
struct TopicCounters {
    published: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
    filtered: AtomicU64,
}

/// The outcome of a publication.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PublishOutcome {
    /// Number of subscribers whose mailboxes took the message, by their own overflow rule.
    pub delivered: usize,
    /// Number of subscribers whose filters rejected the message.
    pub filtered: usize,
    /// Number of subscribers that missed the message because their filter or conversion panicked.
    pub panicked: usize,
    /// The subscribers whose mailboxes were full, and whose rule is to wait or to fail.
    pub full: Vec<AnyRef>,
    /// `true` if the message was published inside a delivery and will be delivered after it; the
    /// other fields are empty then.
    pub deferred: bool,
}

/// The stats of a topic at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicInfo {
    /// The name of the topic.
    pub name: Arc<str>,
    /// The name of the Rust type of its messages.
    pub message_type: &'static str,
    /// Number of subscriptions that match the topic.
    pub subscribers: usize,
    /// Number of messages published.
    pub published: u64,
    /// Number of deliveries that a mailbox took.
    pub delivered: u64,
    /// Number of deliveries that found a full mailbox, or in which the subscriber's filter or
    /// conversion panicked.
    pub dropped: u64,
    /// Number of deliveries that a filter rejected.
    pub filtered: u64,
}

impl<T: Send + Sync + 'static> Topic<T> {
    fn new(name: Arc<str>, broker: Arc<Broker<T>>, exchange: Weak<Exchange<T>>) -> Self {
        Self(Arc::new(TopicInner {
            name,
            broker,
            exchange,
            route: Mutex::new(Route::new()),
            counts: TopicCounters::default(),
        }))
    }

    /// Returns the name of the topic.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Adds a subscriber, which gets the messages published from now on.
    ///
    /// # Errors
    /// Returns an error if the actor has ended or the limit on subscriptions is reached.
    pub fn subscribe(&self, recipient: Recipient<Arc<T>>) -> Result<Subscription, TopicError> {
        self.exchange_for(&recipient)?
            .subscribe(self.name(), recipient, None)
    }

    /// Adds a subscriber for the messages that a filter accepts.
    ///
    /// The filter runs in the publisher's turn: it should read the message and do nothing else.
    ///
    /// # Errors
    /// Returns an error if the actor has ended or the limit on subscriptions is reached.
    pub fn subscribe_where(
        &self,
        recipient: Recipient<Arc<T>>,
        filter: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Result<Subscription, TopicError> {
        self.exchange_for(&recipient)?
            .subscribe(self.name(), recipient, Some(Arc::new(filter)))
    }

    fn exchange_for(&self, recipient: &Recipient<Arc<T>>) -> Result<Arc<Exchange<T>>, TopicError> {
        // If the system is gone, the actor has ended too.
        self.0.exchange.upgrade().ok_or_else(|| TopicError::Ended {
            path: recipient.actor().path(),
        })
    }

    /// Ends an actor's subscription to exactly this name. Returns `false` if it has none.
    pub fn unsubscribe(&self, actor: impl Into<AnyRef>) -> bool {
        let actor = actor.into().id();
        self.0.broker.remove(actor, self.name())
    }

    /// Delivers a message to all subscribers.
    pub fn publish(&self, message: impl Into<Arc<T>>) -> PublishOutcome {
        self.deliver(message.into(), DeliveryRule::All)
    }

    /// Delivers a message to one subscriber, in turn: the next one that accepts it and has room.
    pub fn publish_round_robin(&self, message: impl Into<Arc<T>>) -> PublishOutcome {
        self.deliver(message.into(), DeliveryRule::RoundRobin)
    }

    /// Delivers a message to one subscriber: the owner of the key among the subscribers whose
    /// filters accept the message.
    ///
    /// Messages with the same key go to the same subscriber for as long as it is subscribed. When a
    /// subscriber leaves, its keys are spread over the others and no other key moves; when one
    /// joins, it takes over its share of the keys of all others. If the owner's mailbox is full, it
    /// misses the message, and no other subscriber gets it instead.
    pub fn publish_by_key(&self, key: impl Hash, message: impl Into<Arc<T>>) -> PublishOutcome {
        self.deliver(
            message.into(),
            DeliveryRule::ByKey(rendezvous::hash_key(key)),
        )
    }

    fn deliver(&self, message: Arc<T>, rule: DeliveryRule) -> PublishOutcome {
        let Some(turn) = DeliveryGuard::try_enter() else {
            let topic = self.clone();
            DeliveryGuard::defer(move || drop(topic.deliver_now(&message, rule)));
            return PublishOutcome {
                deferred: true,
                ..PublishOutcome::default()
            };
        };
        let published = self.deliver_now(&message, rule);
        // If this is the last reference, dropping the message runs user code, which must still
        // happen inside the turn.
        drop_caught(message);
        turn.finish();
        published
    }

    fn deliver_now(&self, message: &Arc<T>, rule: DeliveryRule) -> PublishOutcome {
        let inner = &*self.0;
        let mut route = inner.route.lock();
        let published = route.deliver(&inner.name, &inner.broker, message, rule);
        // There are no other writers while the lock is held.
        let add = |counter: &AtomicU64, more: usize| {
            let sum = counter.load(Ordering::Relaxed) + more as u64;
            counter.store(sum, Ordering::Relaxed);
        };
        add(&inner.counts.published, 1);
        add(&inner.counts.delivered, published.delivered);
        add(&inner.counts.filtered, published.filtered);
        add(&inner.counts.dropped, published.missed(rule));
        published
    }

    /// Returns the stats of the topic at this moment.
    #[must_use]
    pub fn info(&self) -> TopicInfo {
        let TopicInner {
            name,
            broker,
            counts,
            ..
        } = &*self.0;
        TopicInfo {
            name: Arc::clone(name),
            message_type: std::any::type_name::<T>(),
            subscribers: broker.count(name),
            published: counts.published.load(Ordering::Relaxed),
            delivered: counts.delivered.load(Ordering::Relaxed),
            dropped: counts.dropped.load(Ordering::Relaxed),
            filtered: counts.filtered.load(Ordering::Relaxed),
        }
    }

    /// Drops the subscribers cached for publishing.
    fn forget_route(&self) {
        // If the route is locked, a delivery is under way; the next one refreshes the route anyway.
        let forgotten = self.0.route.try_lock().map(|mut route| route.clear());
        drop_all_caught(forgotten);
    }

    /// Returns `true` if only the system holds the topic.
    fn is_unused(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Topic({})", self.0.name)
    }
}
