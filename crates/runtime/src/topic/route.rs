//! Delivery of one message to the subscribers of a topic.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::PublishOutcome;
use super::broker::{Broker, Filter};
use crate::address::SendError;
use crate::cell::ActorId;
use crate::event::Event;
use crate::exit::{drop_all_caught, drop_caught, panic_message};
use crate::metric::MetricEvent;
use crate::recipient::Recipient;
use crate::rendezvous::{rendezvous_weight, round_robin};

/// A subscription, as cached for publishers.
pub(super) struct CachedSubscription<T> {
    /// The number of the subscription; older ones have lower numbers.
    pub(super) number: u64,
    pub(super) actor: ActorId,
    /// `true` if the pattern has wildcards.
    pub(super) wild: bool,
    pub(super) recipient: Recipient<Arc<T>>,
    pub(super) filter: Option<Filter<T>>,
}

impl<T> Clone for CachedSubscription<T> {
    fn clone(&self) -> Self {
        Self {
            number: self.number,
            actor: self.actor,
            wild: self.wild,
            recipient: self.recipient.clone(),
            filter: self.filter.clone(),
        }
    }
}

/// The choice of the subscribers that get a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum DeliveryRule {
    All,
    RoundRobin,
    ByKey(u64),
}

/// The outcome of one delivery.
#[derive(Clone, Copy)]
enum DeliveryOutcome {
    Delivered,
    Filtered,
    Full,
    /// The subscriber has ended.
    Ended,
    Panicked,
}

/// The subscribers of one topic, cached until a subscription changes.
pub(super) struct Route<T> {
    subscribers: Vec<CachedSubscription<T>>,
    version: u64,
    /// `true` if any of the subscriptions has wildcards.
    wide: bool,
    /// The number of the subscription that had the last turn.
    last: u64,
}

impl<T: Send + Sync + 'static> Route<T> {
    pub(super) const fn new() -> Self {
        Self {
            subscribers: Vec::new(),
            version: 0,
            wide: false,
            last: 0,
        }
    }

    pub(super) fn clear(&mut self) -> Vec<CachedSubscription<T>> {
        self.version = 0;
        std::mem::take(&mut self.subscribers)
    }

    #[cold]
    fn refresh(&mut self, topic: &str, broker: &Broker<T>) {
        // Read before the table is locked: a change in between is noticed by the next delivery.
        self.version = broker.version();
        let old = std::mem::replace(&mut self.subscribers, broker.route(topic));
        self.wide = self.subscribers.iter().any(|subscriber| subscriber.wild);
        drop_all_caught(old);
    }

    pub(super) fn deliver(
        &mut self,
        topic: &str,
        broker: &Broker<T>,
        message: &Arc<T>,
        rule: DeliveryRule,
    ) -> PublishOutcome {
        if self.version != broker.version() {
            self.refresh(topic, broker);
        }
        let _one_order = self.wide.then(|| broker.wildcard_order.lock());
        let mut published = PublishOutcome::default();
        match rule {
            DeliveryRule::All => {
                for subscriber in &self.subscribers {
                    let offer = subscriber.filter_and_tell(topic, message);
                    published.count(subscriber, offer);
                }
            }
            DeliveryRule::RoundRobin => {
                for subscriber in
                    round_robin(&self.subscribers, self.last, |subscriber| subscriber.number)
                {
                    let offer = subscriber.filter_and_tell(topic, message);
                    let taken = matches!(offer, DeliveryOutcome::Delivered);
                    published.count(subscriber, offer);
                    if taken {
                        self.last = subscriber.number;
                        break;
                    }
                }
            }
            DeliveryRule::ByKey(key) => {
                if let Some(subscriber) = self.owner(topic, key, message, &mut published) {
                    let offer = subscriber.tell(topic, message);
                    published.count(subscriber, offer);
                }
            }
        }
        for actor in &published.full {
            broker
                .events
                .emit(MetricEvent::Overflow(1), || Event::Overflow {
                    path: actor.path(),
                    count: 1,
                });
        }
        published
    }

    /// Returns the owner of the key among the subscribers that are alive and want the message.
    fn owner(
        &self,
        topic: &str,
        key: u64,
        message: &Arc<T>,
        published: &mut PublishOutcome,
    ) -> Option<&CachedSubscription<T>> {
        let mut best: Option<(u64, &CachedSubscription<T>)> = None;
        for subscriber in &self.subscribers {
            let weight = rendezvous_weight(key, subscriber.number);
            if best.is_some_and(|(best, _)| best >= weight)
                || !subscriber.recipient.actor().is_alive()
            {
                continue;
            }
            match catch_subscriber_panic(topic, &subscriber.recipient, || subscriber.wants(message))
            {
                Some(true) => best = Some((weight, subscriber)),
                Some(false) => published.count(subscriber, DeliveryOutcome::Filtered),
                None => published.count(subscriber, DeliveryOutcome::Panicked),
            }
        }
        best.map(|(_, subscriber)| subscriber)
    }
}

impl<T: Send + Sync + 'static> CachedSubscription<T> {
    fn wants(&self, message: &T) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter(message))
    }

    #[inline]
    fn filter_and_tell(&self, topic: &str, message: &Arc<T>) -> DeliveryOutcome {
        catch_subscriber_panic(topic, &self.recipient, || {
            if self.wants(message) {
                self.send(message)
            } else {
                DeliveryOutcome::Filtered
            }
        })
        .unwrap_or(DeliveryOutcome::Panicked)
    }

    fn tell(&self, topic: &str, message: &Arc<T>) -> DeliveryOutcome {
        catch_subscriber_panic(topic, &self.recipient, || self.send(message))
            .unwrap_or(DeliveryOutcome::Panicked)
    }

    fn send(&self, message: &Arc<T>) -> DeliveryOutcome {
        match self.recipient.try_tell(Arc::clone(message)) {
            Ok(()) => DeliveryOutcome::Delivered,
            // A draining actor may come back, just as a full mailbox may get room.
            Err(SendError::Full(_) | SendError::Draining(_)) => DeliveryOutcome::Full,
            Err(SendError::Closed(_) | SendError::Expired(_)) => DeliveryOutcome::Ended,
        }
    }
}

/// Runs the code of a subscriber. If it panics, only this subscriber misses the message; the
/// publisher and the other subscribers are not affected.
#[inline]
fn catch_subscriber_panic<T: Send + Sync + 'static, R>(
    topic: &str,
    recipient: &Recipient<Arc<T>>,
    foreign: impl FnOnce() -> R,
) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(foreign)) {
        Ok(done) => Some(done),
        Err(payload) => {
            let panic = panic_message(payload.as_ref());
            let path = recipient.actor().path();
            tracing::error!(%topic, %path, %panic, "panic in a filter or a conversion");
            drop_caught(payload);
            None
        }
    }
}

impl PublishOutcome {
    #[inline]
    fn count<T: Send + Sync + 'static>(
        &mut self,
        subscriber: &CachedSubscription<T>,
        offer: DeliveryOutcome,
    ) {
        match offer {
            DeliveryOutcome::Delivered => self.delivered += 1,
            DeliveryOutcome::Filtered => self.filtered += 1,
            DeliveryOutcome::Full => self.full.push(subscriber.recipient.actor()),
            DeliveryOutcome::Ended => {}
            DeliveryOutcome::Panicked => self.panicked += 1,
        }
    }

    /// Returns the number of deliveries that were due but failed.
    pub(super) fn missed(&self, rule: DeliveryRule) -> usize {
        let missed = self.full.len() + self.panicked;
        match rule {
            DeliveryRule::All => missed,
            // One subscriber is enough here: if one got the message, none of the others missed it.
            DeliveryRule::RoundRobin | DeliveryRule::ByKey(_) => {
                missed.min(1) * usize::from(self.delivered == 0)
            }
        }
    }
}
