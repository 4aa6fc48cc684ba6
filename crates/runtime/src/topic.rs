//! Publish and subscribe by type and name.
//!
//! A topic is a table of recipients, not an actor: publishing delivers in the publisher's own
//! turn, with `try_tell`, so that a slow subscriber costs what its mailbox's rule says and never
//! a wait. Publications of a topic do not overlap, and so every subscriber sees them in the same
//! order.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::Arc;

use parking_lot::{Mutex, ReentrantMutex};
use rustc_hash::FxHashMap;

use crate::address::{AnyRef, SendError};
use crate::cell::ActorId;
use crate::event::{Event, Events};
use crate::metric::Count;
use crate::recipient::Recipient;

/// A typed topic: what is published to it goes to all who subscribed.
///
/// A clone is the same topic. Get one from [`ActorSystem::topic`](crate::ActorSystem::topic).
///
/// Each subscriber gets a clone of one [`Arc`], not of the payload, in the order of publication.
/// Where a mailbox is full, its own overflow rule holds, except that nobody waits: where the rule
/// is to wait or to fail, the message is dropped for that subscriber, counted in
/// [`TopicInfo::dropped`], and reported as [`Event::Overflow`]. A subscription survives restarts
/// of its actor and ends with it.
///
/// ```
/// use std::convert::Infallible;
/// use std::sync::Arc;
///
/// use strowger::{Actor, Context, Topic};
///
/// /// Follows the load of a node.
/// struct Gauge;
///
/// impl Actor for Gauge {
///     type Msg = Arc<u32>;
///     type Args = Topic<u32>;
///     type Error = Infallible;
///
///     async fn pre_start(load: Topic<u32>, cx: &mut Context<Self>) -> Result<Self, Infallible> {
///         load.subscribe(cx.me().recipient());
///         Ok(Self)
///     }
///
///     async fn handle(
///         &mut self,
///         load: Arc<u32>,
///         cx: &mut Context<Self>,
///     ) -> Result<(), Infallible> {
///         if *load == 100 {
///             cx.stop();
///         }
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = strowger::ActorSystem::new("node")?;
/// let load = system.topic::<u32>("load");
/// let gauge = system.spawn::<Gauge>("gauge", load.clone())?;
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
    events: Arc<Events>,
    /// Reentrant because conversions and destructors are foreign code, which may publish again.
    table: ReentrantMutex<RefCell<Table<T>>>,
}

struct Table<T> {
    subscribers: Arc<Vec<Subscriber<T>>>,
    published: u64,
    dropped: u64,
    /// What was published from inside a delivery, to be delivered after it.
    pending: VecDeque<Arc<T>>,
    delivering: bool,
}

struct Subscriber<T> {
    actor: ActorId,
    recipient: Recipient<Arc<T>>,
}

impl<T> Clone for Subscriber<T> {
    fn clone(&self) -> Self {
        Self {
            actor: self.actor,
            recipient: self.recipient.clone(),
        }
    }
}

/// The figures of a topic at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopicInfo {
    /// How many subscriptions it has.
    pub subscribers: usize,
    /// How many messages were published.
    pub published: u64,
    /// How many deliveries found no room.
    pub dropped: u64,
}

impl<T: Send + Sync + 'static> Topic<T> {
    fn new(name: Arc<str>, events: Arc<Events>) -> Self {
        let table = Table {
            subscribers: Arc::default(),
            published: 0,
            dropped: 0,
            pending: VecDeque::new(),
            delivering: false,
        };
        Self(Arc::new(Inner {
            name,
            events,
            table: ReentrantMutex::new(RefCell::new(table)),
        }))
    }

    /// The topic's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Adds a subscriber, which gets what is published from now on.
    ///
    /// An actor has one subscription of a topic: a second takes the place of the first, so that
    /// `pre_start` may subscribe for every incarnation.
    pub fn subscribe(&self, recipient: Recipient<Arc<T>>) {
        let actor = recipient.actor().id();
        let mut new = Some(Subscriber { actor, recipient });
        self.change(|subscriber| {
            if subscriber.actor == actor {
                new.take()
            } else {
                Some(subscriber.clone())
            }
        });
        if let Some(new) = new {
            let guard = self.0.table.lock();
            Arc::make_mut(&mut guard.borrow_mut().subscribers).push(new);
        }
    }

    /// Ends the subscription of an actor, if it has one.
    pub fn unsubscribe(&self, actor: impl Into<AnyRef>) {
        let actor = actor.into().id();
        self.change(|subscriber| (subscriber.actor != actor).then(|| subscriber.clone()));
    }

    /// Makes another table of those who have not ended.
    fn change(&self, keep: impl FnMut(&Subscriber<T>) -> Option<Subscriber<T>>) {
        let guard = self.0.table.lock();
        let before = Arc::clone(&guard.borrow().subscribers);
        let alive = before.iter().filter(|one| one.recipient.actor().is_alive());
        let after: Vec<_> = alive.filter_map(keep).collect();
        // Recipients hold conversions, whose destructors are foreign code: not under a borrow.
        let old = mem::replace(&mut guard.borrow_mut().subscribers, Arc::new(after));
        drop((before, old));
    }

    /// Delivers a message to all who are subscribed. Never waits for a subscriber.
    ///
    /// Published from inside a delivery of the same topic (a conversion may do so), the message
    /// is delivered after the one that is under way.
    pub fn publish(&self, message: impl Into<Arc<T>>) {
        let guard = self.0.table.lock();
        let mut table = guard.borrow_mut();
        table.published += 1;
        table.pending.push_back(message.into());
        if table.delivering {
            return;
        }
        table.delivering = true;
        drop(table);
        // Also when foreign code panics, the topic must not stay silent for ever.
        let _delivering = Delivering(&guard);
        loop {
            let mut table = guard.borrow_mut();
            let Some(message) = table.pending.pop_front() else {
                break;
            };
            let subscribers = Arc::clone(&table.subscribers);
            drop(table);
            self.deliver(&guard, &subscribers, &message);
        }
    }

    fn deliver(&self, table: &RefCell<Table<T>>, subscribers: &[Subscriber<T>], message: &Arc<T>) {
        let mut gone = false;
        for Subscriber { recipient, .. } in subscribers {
            match recipient.try_tell(Arc::clone(message)) {
                Ok(()) => {}
                Err(SendError::Full(_)) => {
                    table.borrow_mut().dropped += 1;
                    let path = || recipient.actor().path();
                    self.0.events.emit(Count::Overflow(1), || Event::Overflow {
                        path: path(),
                        count: 1,
                    });
                }
                Err(SendError::Closed(_)) => gone = true,
            }
        }
        if gone {
            self.change(|subscriber| Some(subscriber.clone()));
        }
    }

    /// The topic's figures at this moment.
    #[must_use]
    pub fn info(&self) -> TopicInfo {
        let guard = self.0.table.lock();
        let table = guard.borrow();
        TopicInfo {
            subscribers: table.subscribers.len(),
            published: table.published,
            dropped: table.dropped,
        }
    }
}

/// Ends a delivery, however it ends.
struct Delivering<'a, T>(&'a RefCell<Table<T>>);

impl<T> Drop for Delivering<'_, T> {
    fn drop(&mut self) {
        self.0.borrow_mut().delivering = false;
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

/// The topics of a system, by type and name.
#[derive(Default)]
pub(crate) struct Topics(Mutex<FxHashMap<TypeId, ByName>>);

type ByName = FxHashMap<Arc<str>, Box<dyn Any + Send + Sync>>;

impl Topics {
    pub(crate) fn open<T: Send + Sync + 'static>(
        &self,
        name: &str,
        events: &Arc<Events>,
    ) -> Topic<T> {
        let mut topics = self.0.lock();
        let of_type = topics.entry(TypeId::of::<T>()).or_default();
        if let Some(topic) = of_type.get(name) {
            let topic: &Topic<T> = topic.downcast_ref().expect("stored under its own type");
            return topic.clone();
        }
        let name: Arc<str> = name.into();
        let topic = Topic::<T>::new(Arc::clone(&name), Arc::clone(events));
        of_type.insert(name, Box::new(topic.clone()));
        topic
    }
}
