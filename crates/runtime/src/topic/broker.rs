//! The subscriptions of a system and its topics by name, in one table per message type.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::name::{self, TopicError, TopicLimits};
use super::route::CachedSubscription;
use super::trie::Trie;
use super::{Topic, TopicInfo};
use crate::cell::ActorId;
use crate::event::EventBus;
use crate::exit::drop_all_caught;
use crate::membership::{Membership, WeakMembership};
use crate::recipient::Recipient;
use crate::sync::{AtomicU64, Ordering};

/// A predicate that returns `true` if the subscriber wants a message.
pub(crate) type Filter<T> = Arc<dyn Fn(&T) -> bool + Send + Sync>;

/// The subscriptions for messages of one type.
pub(super) struct Broker<T> {
    pub(super) events: Arc<EventBus>,
    /// Counts the changes of the table. A route with an older version is rebuilt.
    ///
    /// A publisher reads the version before it locks the table to build a route, and a subscriber
    /// increments it after it has changed and unlocked the table. A publisher that reads the new
    /// version therefore also finds the change: had it locked the table before the change, it would
    /// have read the version before the increment too.
    version: AtomicU64,
    table: Mutex<SubscriptionTable<T>>,
    /// Held while a message is delivered to a subscriber with a wildcard, so that subscribers of
    /// many topics see the messages of all of them in one order.
    pub(super) wildcard_order: Mutex<()>,
}

struct SubscriptionTable<T> {
    trie: Trie<CachedSubscription<T>>,
    /// The patterns of each actor, with the numbers of the subscriptions.
    by_actor: FxHashMap<ActorId, FxHashMap<Arc<str>, u64>>,
    subscriptions: usize,
    last: u64,
}

impl<T: Send + Sync + 'static> Broker<T> {
    fn new(events: Arc<EventBus>) -> Self {
        Self {
            events,
            version: AtomicU64::new(1),
            table: Mutex::new(SubscriptionTable {
                trie: Trie::new(),
                by_actor: FxHashMap::default(),
                subscriptions: 0,
                last: 0,
            }),
            wildcard_order: Mutex::new(()),
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn bump_version(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns the subscriptions that match a name, the oldest first.
    pub(super) fn route(&self, name: &str) -> Vec<CachedSubscription<T>> {
        let mut subscribers = Vec::new();
        let mut table = self.table.lock();
        table
            .trie
            .matches(name, |subscriber| subscribers.push(subscriber.clone()));
        drop(table);
        subscribers.sort_unstable_by_key(|subscriber| subscriber.number);
        subscribers
    }

    pub(super) fn count(&self, name: &str) -> usize {
        let mut count = 0;
        self.table.lock().trie.matches(name, |_| count += 1);
        count
    }

    /// Ends the subscription of an actor to a pattern. Returns `false` if there is none.
    pub(super) fn remove(&self, actor: ActorId, pattern: &str) -> bool {
        let mut table = self.table.lock();
        let Some(patterns) = table.by_actor.get_mut(&actor) else {
            return false;
        };
        let Some(number) = patterns.remove(pattern) else {
            return false;
        };
        if patterns.is_empty() {
            table.by_actor.remove(&actor);
        }
        table.subscriptions -= 1;
        let removed = table.trie.remove(pattern, number);
        drop(table);
        self.bump_version();
        drop_all_caught(removed);
        true
    }

    /// Ends all subscriptions of an actor. Returns `true` if other actors still have subscriptions.
    fn remove_actor(&self, actor: ActorId) -> bool {
        let mut table = self.table.lock();
        let patterns = table.by_actor.remove(&actor).unwrap_or_default();
        let mut removed = Vec::with_capacity(patterns.len());
        for (pattern, number) in &patterns {
            removed.extend(table.trie.remove(pattern, *number));
        }
        table.subscriptions -= removed.len();
        let left = table.subscriptions > 0;
        drop(table);
        if !removed.is_empty() {
            self.bump_version();
        }
        drop_all_caught(removed);
        left
    }
}

/// The topics and subscriptions for messages of one type.
pub(crate) struct Exchange<T> {
    limits: TopicLimits,
    broker: Arc<Broker<T>>,
    topics: Mutex<TopicTable<T>>,
}

struct TopicTable<T> {
    topics: FxHashMap<Arc<str>, Topic<T>>,
    /// The number of topics at which unused ones are next looked for and dropped.
    sweep_at: usize,
}

const MIN_SWEEP_LEN: usize = 64;

impl<T: Send + Sync + 'static> Exchange<T> {
    fn new(events: Arc<EventBus>, limits: TopicLimits) -> Self {
        Self {
            limits,
            broker: Arc::new(Broker::new(events)),
            topics: Mutex::new(TopicTable {
                topics: FxHashMap::default(),
                sweep_at: MIN_SWEEP_LEN,
            }),
        }
    }

    pub(crate) fn open(self: &Arc<Self>, name: &str) -> Result<Topic<T>, TopicError> {
        let mut by_name = self.topics.lock();
        if let Some(topic) = by_name.topics.get(name) {
            return Ok(topic.clone());
        }
        name::check_name(name, &self.limits)?;
        let limit = self.limits.topics;
        let mut unused = Vec::new();
        if by_name.topics.len() >= by_name.sweep_at.min(limit) {
            let idle = |name: &str, topic: &mut Topic<T>| {
                topic.is_unused() && self.broker.count(name) == 0
            };
            unused.extend(by_name.topics.extract_if(|name, topic| idle(name, topic)));
            by_name.sweep_at = MIN_SWEEP_LEN.max(by_name.topics.len() * 2);
        }
        let opened = if by_name.topics.len() < limit {
            let name: Arc<str> = name.into();
            let exchange = Arc::downgrade(self);
            let topic = Topic::new(Arc::clone(&name), Arc::clone(&self.broker), exchange);
            by_name.topics.insert(name, topic.clone());
            Ok(topic)
        } else {
            let kind = type_name::<T>();
            Err(TopicError::TooManyTopics { kind, limit })
        };
        drop(by_name);
        drop(unused);
        opened
    }

    /// Adds a subscription, replacing one of the same actor with the same pattern.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        pattern: &str,
        recipient: Recipient<Arc<T>>,
        filter: Option<Filter<T>>,
    ) -> Result<Subscription, TopicError> {
        let wild = name::check_pattern(pattern, &self.limits)?;
        let to = recipient.actor();
        let actor = to.id();
        let mut table = self.broker.table.lock();
        let patterns = table.by_actor.get(&actor);
        let known = patterns.and_then(|all| all.get_key_value(pattern));
        let known = known.map(|(pattern, number)| (Arc::clone(pattern), *number));
        let limit = self.limits.subscriptions;
        if known.is_none() && table.subscriptions >= limit {
            let kind = type_name::<T>();
            return Err(TopicError::TooManySubscriptions { kind, limit });
        }
        let (pattern, number) = known.unwrap_or_else(|| {
            table.last += 1;
            (pattern.into(), table.last)
        });
        let subscriber = CachedSubscription {
            number,
            actor,
            wild,
            recipient,
            filter,
        };
        let old = table.trie.insert(&pattern, number, subscriber);
        if old.is_none() {
            table.subscriptions += 1;
            let patterns = table.by_actor.entry(actor).or_default();
            patterns.insert(Arc::clone(&pattern), number);
        }
        drop(table);
        self.broker.bump_version();
        drop_all_caught(old);
        // An ending actor first marks itself as ended and then leaves its topics, so either this
        // call fails or the actor's end removes the subscription.
        let membership: WeakMembership = Arc::<Self>::downgrade(self);
        if !to.0.core().add_membership(membership) {
            self.leave_all(actor);
            return Err(TopicError::Ended { path: to.path() });
        }
        let broker: Arc<dyn Unsubscribe> = Arc::<Broker<T>>::clone(&self.broker);
        Ok(Subscription {
            broker: Arc::downgrade(&broker),
            actor,
            pattern,
        })
    }

    fn leave_all(&self, actor: ActorId) {
        if self.broker.remove_actor(actor) {
            return;
        }
        // There are no subscribers left, and cached routes must not keep the former ones alive.
        let topics: Vec<_> = self.topics.lock().topics.values().cloned().collect();
        topics.iter().for_each(Topic::forget_route);
    }
}

impl<T: Send + Sync + 'static> Membership for Exchange<T> {
    fn on_exit(&self, actor: ActorId) {
        self.leave_all(actor);
    }
}

/// A handle to an actor's subscription to a name or pattern, for ending it explicitly.
///
/// The subscription ends by itself with its actor. Dropping the handle does not end it.
#[derive(Clone)]
pub struct Subscription {
    broker: Weak<dyn Unsubscribe>,
    actor: ActorId,
    pattern: Arc<str>,
}

impl Subscription {
    /// Returns the name of the topic or the pattern that is subscribed to.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Ends the subscription. Returns `false` if it had ended before.
    ///
    /// Messages published after this call are not delivered to the subscriber. Messages delivered
    /// before stay in its mailbox.
    #[expect(
        clippy::must_use_candidate,
        reason = "to end what has ended is no mistake"
    )]
    pub fn unsubscribe(&self) -> bool {
        self.broker
            .upgrade()
            .is_some_and(|broker| broker.unsubscribe(self))
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscription({:?} of {})", self.pattern, self.actor)
    }
}

trait Unsubscribe: Send + Sync {
    fn unsubscribe(&self, subscription: &Subscription) -> bool;
}

impl<T: Send + Sync + 'static> Unsubscribe for Broker<T> {
    fn unsubscribe(&self, subscription: &Subscription) -> bool {
        self.remove(subscription.actor, &subscription.pattern)
    }
}

/// The exchanges of a system, by the type of their messages.
#[derive(Default)]
pub(crate) struct Exchanges(Mutex<FxHashMap<TypeId, Arc<dyn AnyExchange>>>);

trait AnyExchange: Send + Sync {
    fn infos(&self) -> Vec<TopicInfo>;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<T: Send + Sync + 'static> AnyExchange for Exchange<T> {
    fn infos(&self) -> Vec<TopicInfo> {
        let topics: Vec<_> = self.topics.lock().topics.values().cloned().collect();
        topics.iter().map(Topic::info).collect()
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl Exchanges {
    pub(crate) fn exchange_for<T: Send + Sync + 'static>(
        &self,
        events: &Arc<EventBus>,
        limits: TopicLimits,
    ) -> Arc<Exchange<T>> {
        let mut exchanges = self.0.lock();
        let exchange = exchanges
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(Exchange::<T>::new(Arc::clone(events), limits)));
        let any = Arc::clone(exchange).into_any();
        any.downcast().expect("stored under its own type")
    }

    /// Returns the stats of all topics, sorted by name and type.
    pub(crate) fn infos(&self) -> Vec<TopicInfo> {
        let exchanges: Vec<_> = self.0.lock().values().cloned().collect();
        let mut infos: Vec<_> = exchanges.iter().flat_map(|one| one.infos()).collect();
        infos.sort_unstable_by(|a, b| (&a.name, a.message_type).cmp(&(&b.name, b.message_type)));
        infos
    }
}
