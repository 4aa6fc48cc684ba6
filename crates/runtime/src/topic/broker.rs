//! The subscriptions of a system, and its topics by name: one table for each type of message.

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use super::name::{self, TopicError, TopicLimits};
use super::route::Stop;
use super::trie::Trie;
use super::{Topic, TopicInfo};
use crate::cell::ActorId;
use crate::event::Events;
use crate::exit::discard;
use crate::recipient::Recipient;
use crate::sync::{AtomicU64, Ordering};
use crate::tie::{Leave, Tie};

/// What says whether a subscriber wants a message.
pub(crate) type Filter<T> = Arc<dyn Fn(&T) -> bool + Send + Sync>;

/// The subscriptions for messages of one type.
pub(super) struct Broker<T> {
    pub(super) events: Arc<Events>,
    /// Counts the changes of the table: a route that is older is made anew.
    ///
    /// It is read before the table is locked to make a route, and counted up after the table was
    /// unlocked by the one who changed it. Whoever reads the new number therefore finds the change:
    /// had it locked the table first, its read would have come before the count that it saw.
    version: AtomicU64,
    table: Mutex<Table<T>>,
    /// Held while a message is delivered to a wildcard, so that those who subscribe to many
    /// topics see these in one order.
    pub(super) wide: Mutex<()>,
}

struct Table<T> {
    trie: Trie<Stop<T>>,
    /// The patterns of each actor, each with the number of its subscription.
    by_actor: FxHashMap<ActorId, FxHashMap<Arc<str>, u64>>,
    subscriptions: usize,
    last: u64,
}

impl<T: Send + Sync + 'static> Broker<T> {
    fn new(events: Arc<Events>) -> Self {
        Self {
            events,
            version: AtomicU64::new(1),
            table: Mutex::new(Table {
                trie: Trie::new(),
                by_actor: FxHashMap::default(),
                subscriptions: 0,
                last: 0,
            }),
            wide: Mutex::new(()),
        }
    }

    pub(super) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Who gets what is published under a name, the longest subscribed first.
    pub(super) fn route(&self, name: &str) -> Vec<Stop<T>> {
        let mut stops = Vec::new();
        let mut table = self.table.lock();
        table.trie.matches(name, |stop| stops.push(stop.clone()));
        drop(table);
        stops.sort_unstable_by_key(|stop| stop.number);
        stops
    }

    pub(super) fn count(&self, name: &str) -> usize {
        let mut count = 0;
        self.table.lock().trie.matches(name, |_| count += 1);
        count
    }

    /// Ends the subscription of an actor to a pattern; false when there is none.
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
        self.changed();
        discard(removed);
        true
    }

    /// Ends all subscriptions of an actor; whether any are left of others.
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
            self.changed();
        }
        discard(removed);
        left
    }
}

/// The topics and subscriptions for messages of one type.
pub(crate) struct Exchange<T> {
    limits: TopicLimits,
    broker: Arc<Broker<T>>,
    topics: Mutex<ByName<T>>,
}

struct ByName<T> {
    topics: FxHashMap<Arc<str>, Topic<T>>,
    /// When there are so many, those that nobody uses are looked for.
    sweep_at: usize,
}

const FIRST_SWEEP: usize = 64;

impl<T: Send + Sync + 'static> Exchange<T> {
    fn new(events: Arc<Events>, limits: TopicLimits) -> Self {
        Self {
            limits,
            broker: Arc::new(Broker::new(events)),
            topics: Mutex::new(ByName {
                topics: FxHashMap::default(),
                sweep_at: FIRST_SWEEP,
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
                topic.is_unheld() && self.broker.count(name) == 0
            };
            unused.extend(by_name.topics.extract_if(|name, topic| idle(name, topic)));
            by_name.sweep_at = FIRST_SWEEP.max(by_name.topics.len() * 2);
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

    /// Adds a subscription, in the place of one of the same actor with the same pattern.
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
        let stop = Stop {
            number,
            actor,
            wild,
            recipient,
            filter,
        };
        let old = table.trie.insert(&pattern, number, stop);
        if old.is_none() {
            table.subscriptions += 1;
            let patterns = table.by_actor.entry(actor).or_default();
            patterns.insert(Arc::clone(&pattern), number);
        }
        drop(table);
        self.broker.changed();
        discard(old);
        // An actor ends by noting so first and leaving then, so no subscription is left behind.
        let tie: Tie = Arc::<Self>::downgrade(self);
        if !to.0.node().tie(tie) {
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
        // Nobody subscribes: routes that are kept must not keep those alive who did.
        let topics: Vec<_> = self.topics.lock().topics.values().cloned().collect();
        topics.iter().for_each(Topic::forget_route);
    }
}

impl<T: Send + Sync + 'static> Leave for Exchange<T> {
    fn leave(&self, actor: ActorId) {
        self.leave_all(actor);
    }
}

/// The subscription of an actor to a name or a pattern, to end it by hand. It ends by itself with
/// its actor; dropping this ends nothing.
#[derive(Clone)]
pub struct Subscription {
    broker: Weak<dyn Unsubscribe>,
    actor: ActorId,
    pattern: Arc<str>,
}

impl Subscription {
    /// What is subscribed to: the name of a topic, or a pattern.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Ends the subscription; false when it has ended before. What is published after this call
    /// is not delivered to it; what was is in the mailbox and stays there.
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
    pub(crate) fn of<T: Send + Sync + 'static>(
        &self,
        events: &Arc<Events>,
        limits: TopicLimits,
    ) -> Arc<Exchange<T>> {
        let mut exchanges = self.0.lock();
        let exchange = exchanges
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(Exchange::<T>::new(Arc::clone(events), limits)));
        let any = Arc::clone(exchange).into_any();
        any.downcast().expect("stored under its own type")
    }

    /// The figures of all topics, by name and type.
    pub(crate) fn infos(&self) -> Vec<TopicInfo> {
        let exchanges: Vec<_> = self.0.lock().values().cloned().collect();
        let mut infos: Vec<_> = exchanges.iter().flat_map(|one| one.infos()).collect();
        infos.sort_unstable_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
        infos
    }
}
