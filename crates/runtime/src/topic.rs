//! Publish and subscribe by type and name.
//!
//! A topic is a table of recipients, not an actor: publishing delivers in the publisher's own
//! turn, with `try_tell`, so that a slow subscriber costs what its mailbox's rule says and never
//! a wait.
//!
//! ```text
//! Exchange<T>                 one for each type of message
//! ├─ topics by name           each keeps a route: who gets what is published to it
//! └─ Broker<T>                the subscriptions, in a tree of patterns
//! ```
//!
//! - **A route is a copy.** A change of subscriptions raises a version; a publisher that finds
//!   its route older matches the name again. So matching is no part of publishing.
//! - **One order.** A topic's lock is held while a message is delivered. Where a wildcard takes
//!   part, a second lock makes one order over all topics that wildcards reach.
//! - **No nesting.** What foreign code publishes inside a delivery is delivered after it.

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
use crate::choice;
use crate::exit::{discard, discard_one};
use crate::recipient::Recipient;
use crate::sync::{AtomicU64, Ordering};
use broker::Broker;
use route::{Route, Rule};
use turn::Turn;

pub use broker::Subscription;
pub(crate) use broker::{Exchange, Exchanges};
pub use name::{TopicError, TopicLimits};

/// A typed topic: what is published to it goes to those who subscribe to its name.
///
/// A clone is the same topic. Get one from [`ActorSystem::topic`](crate::ActorSystem::topic).
///
/// # Names
/// A name has segments, which slashes separate: `n4/smf-1/load`. A subscription may be to a
/// pattern of names ([`ActorSystem::subscribe`](crate::ActorSystem::subscribe)): the segment `*`
/// stands for one segment, `**` for any number of them, also none. Names and patterns have limits
/// ([`TopicLimits`]).
///
/// # Delivery
/// - Each subscriber gets a clone of one [`Arc`], not of the payload.
/// - All subscribers of a topic see what is published to it in one order, whoever publishes. Over
///   several topics that holds for those whom wildcards reach; and for all, as far as one
///   publisher goes.
/// - An actor has one subscription for each name or pattern: a second takes the place of the
///   first, so that `pre_start` may subscribe for every incarnation. One that matches with two of
///   its patterns gets two copies, each by the filter and conversion of its own.
/// - A subscription survives restarts of its actor and ends with it.
/// - Nobody waits. Where a mailbox is full, its own overflow rule holds; where the rule is to wait
///   or to fail, the message is dropped for that subscriber, counted in [`TopicInfo::dropped`],
///   named in [`Published::full`], and reported as [`Event::Overflow`](crate::Event::Overflow).
/// - A filter or a conversion that panics costs its own subscriber the message, and nobody else.
/// - What filters, conversions and destructors publish is delivered after what is being delivered.
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
///         cx.system().subscribe("node/*/load", cx.me().recipient::<Arc<u32>>())?;
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
pub struct Topic<T>(Arc<Inner<T>>);

struct Inner<T> {
    name: Arc<str>,
    broker: Arc<Broker<T>>,
    exchange: Weak<Exchange<T>>,
    route: Mutex<Route<T>>,
    counts: Counts,
}

/// Written under the lock of the route, read without: each is right by itself, and nothing else is
/// read on the strength of it.
#[derive(Default)]
struct Counts {
    published: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
    filtered: AtomicU64,
}

/// What came of a publication.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Published {
    /// How many subscribers' mailboxes took it, by their own overflow rule.
    pub delivered: usize,
    /// How many subscribers' filters refused it.
    pub filtered: usize,
    /// How many subscribers missed it because their filter or conversion panicked.
    pub panicked: usize,
    /// The subscribers that had no room, and whose rule is to wait or to fail.
    pub full: Vec<AnyRef>,
    /// It was published inside a delivery, and is delivered after it; nothing is known yet.
    pub deferred: bool,
}

/// The figures of a topic at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicInfo {
    /// Its name.
    pub name: Arc<str>,
    /// The name of its messages' Rust type.
    pub kind: &'static str,
    /// How many subscriptions match it.
    pub subscribers: usize,
    /// How many messages were published.
    pub published: u64,
    /// How many deliveries a mailbox took.
    pub delivered: u64,
    /// How many deliveries found no room, or ended in a panic of the subscriber's filter or
    /// conversion.
    pub dropped: u64,
    /// How many deliveries a filter refused.
    pub filtered: u64,
}

impl<T: Send + Sync + 'static> Topic<T> {
    fn new(name: Arc<str>, broker: Arc<Broker<T>>, exchange: Weak<Exchange<T>>) -> Self {
        Self(Arc::new(Inner {
            name,
            broker,
            exchange,
            route: Mutex::new(Route::new()),
            counts: Counts::default(),
        }))
    }

    /// The topic's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Adds a subscriber, which gets what is published from now on.
    ///
    /// # Errors
    /// When the actor has ended, or there are as many subscriptions as there may be.
    pub fn subscribe(&self, recipient: Recipient<Arc<T>>) -> Result<Subscription, TopicError> {
        self.exchange(&recipient)?
            .subscribe(self.name(), recipient, None)
    }

    /// Adds a subscriber for messages that a filter accepts.
    ///
    /// The filter runs in the publisher's turn: let it read the message and do nothing else.
    ///
    /// # Errors
    /// When the actor has ended, or there are as many subscriptions as there may be.
    pub fn subscribe_where(
        &self,
        recipient: Recipient<Arc<T>>,
        filter: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Result<Subscription, TopicError> {
        self.exchange(&recipient)?
            .subscribe(self.name(), recipient, Some(Arc::new(filter)))
    }

    fn exchange(&self, recipient: &Recipient<Arc<T>>) -> Result<Arc<Exchange<T>>, TopicError> {
        // Without its system there is no actor either.
        self.0.exchange.upgrade().ok_or_else(|| TopicError::Ended {
            path: recipient.actor().path(),
        })
    }

    /// Ends an actor's subscription to this very name; false when it has none.
    pub fn unsubscribe(&self, actor: impl Into<AnyRef>) -> bool {
        let actor = actor.into().id();
        self.0.broker.remove(actor, self.name())
    }

    /// Delivers a message to all who subscribe.
    pub fn publish(&self, message: impl Into<Arc<T>>) -> Published {
        self.deliver(message.into(), Rule::All)
    }

    /// Delivers a message to one subscriber: to the next in turn that wants it and has room.
    pub fn publish_in_turn(&self, message: impl Into<Arc<T>>) -> Published {
        self.deliver(message.into(), Rule::InTurn)
    }

    /// Delivers a message to one subscriber: to the one to whom its key belongs, of those whose
    /// filters accept the message.
    ///
    /// The same key goes to the same subscriber for as long as it subscribes. When it goes, its
    /// keys are spread over the others, and no other key moves; when one comes, it takes its share
    /// of keys from all. A subscriber without room misses the message: no other gets it instead.
    pub fn publish_by_key(&self, key: impl Hash, message: impl Into<Arc<T>>) -> Published {
        self.deliver(message.into(), Rule::ByKey(choice::digest(key)))
    }

    fn deliver(&self, message: Arc<T>, rule: Rule) -> Published {
        let Some(turn) = Turn::take() else {
            let topic = self.clone();
            Turn::later(move || drop(topic.deliver_now(&message, rule)));
            return Published {
                deferred: true,
                ..Published::default()
            };
        };
        let published = self.deliver_now(&message, rule);
        // Foreign code when this was the last: still inside the turn.
        discard_one(message);
        turn.finish();
        published
    }

    fn deliver_now(&self, message: &Arc<T>, rule: Rule) -> Published {
        let inner = &*self.0;
        let mut route = inner.route.lock();
        let published = route.deliver(&inner.name, &inner.broker, message, rule);
        // Nobody else writes while the lock is held.
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

    /// The topic's figures at this moment.
    #[must_use]
    pub fn info(&self) -> TopicInfo {
        let Inner {
            name,
            broker,
            counts,
            ..
        } = &*self.0;
        TopicInfo {
            name: Arc::clone(name),
            kind: std::any::type_name::<T>(),
            subscribers: broker.count(name),
            published: counts.published.load(Ordering::Relaxed),
            delivered: counts.delivered.load(Ordering::Relaxed),
            dropped: counts.dropped.load(Ordering::Relaxed),
            filtered: counts.filtered.load(Ordering::Relaxed),
        }
    }

    /// Lets go of the subscribers that were copied for publishing.
    fn forget_route(&self) {
        // Somebody who delivers right now will look at the subscriptions again the next time.
        let forgotten = self.0.route.try_lock().map(|mut route| route.forget());
        discard(forgotten);
    }

    /// Whether nobody but the system holds it.
    fn is_unheld(&self) -> bool {
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
