//! How one message goes to those who subscribe.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::Published;
use super::broker::{Broker, Filter};
use crate::address::SendError;
use crate::cell::ActorId;
use crate::choice::{round, weight};
use crate::event::Event;
use crate::exit::{discard, discard_one, panic_text};
use crate::metric::Count;
use crate::recipient::Recipient;

/// One subscription, as publishers see it.
pub(super) struct Stop<T> {
    /// Counts subscriptions: an older one has a lower number.
    pub(super) number: u64,
    pub(super) actor: ActorId,
    /// Whether its pattern has wildcards.
    pub(super) wild: bool,
    pub(super) recipient: Recipient<Arc<T>>,
    pub(super) filter: Option<Filter<T>>,
}

impl<T> Clone for Stop<T> {
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

/// Who gets a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    All,
    InTurn,
    ByKey(u64),
}

/// What came of one delivery.
#[derive(Clone, Copy)]
enum Offer {
    Taken,
    Filtered,
    Full,
    /// The subscriber has ended.
    Gone,
    Panicked,
}

/// The subscribers of one topic, kept until a subscription changes.
pub(super) struct Route<T> {
    stops: Vec<Stop<T>>,
    version: u64,
    /// Whether any of them subscribes with wildcards.
    wide: bool,
    /// Who had the last turn.
    last: u64,
}

impl<T: Send + Sync + 'static> Route<T> {
    pub(super) const fn new() -> Self {
        Self {
            stops: Vec::new(),
            version: 0,
            wide: false,
            last: 0,
        }
    }

    pub(super) fn forget(&mut self) -> Vec<Stop<T>> {
        self.version = 0;
        std::mem::take(&mut self.stops)
    }

    #[cold]
    fn refresh(&mut self, topic: &str, broker: &Broker<T>) {
        // Read before the table: what changes in between is seen the next time.
        self.version = broker.version();
        let old = std::mem::replace(&mut self.stops, broker.route(topic));
        self.wide = self.stops.iter().any(|stop| stop.wild);
        discard(old);
    }

    pub(super) fn deliver(
        &mut self,
        topic: &str,
        broker: &Broker<T>,
        message: &Arc<T>,
        rule: Rule,
    ) -> Published {
        if self.version != broker.version() {
            self.refresh(topic, broker);
        }
        let _one_order = self.wide.then(|| broker.wide.lock());
        let mut published = Published::default();
        match rule {
            Rule::All => {
                for stop in &self.stops {
                    let offer = stop.offer(topic, message);
                    published.note(stop, offer);
                }
            }
            Rule::InTurn => {
                for stop in round(&self.stops, self.last, |stop| stop.number) {
                    let offer = stop.offer(topic, message);
                    let taken = matches!(offer, Offer::Taken);
                    published.note(stop, offer);
                    if taken {
                        self.last = stop.number;
                        break;
                    }
                }
            }
            Rule::ByKey(key) => {
                if let Some(stop) = self.owner(topic, key, message, &mut published) {
                    let offer = stop.tell(topic, message);
                    published.note(stop, offer);
                }
            }
        }
        for actor in &published.full {
            broker.events.emit(Count::Overflow(1), || Event::Overflow {
                path: actor.path(),
                count: 1,
            });
        }
        published
    }

    /// Of those who live and want the message, the one to whom its key belongs.
    fn owner(
        &self,
        topic: &str,
        key: u64,
        message: &Arc<T>,
        published: &mut Published,
    ) -> Option<&Stop<T>> {
        let mut best: Option<(u64, &Stop<T>)> = None;
        for stop in &self.stops {
            let weight = weight(key, stop.number);
            if best.is_some_and(|(best, _)| best >= weight) || !stop.recipient.actor().is_alive() {
                continue;
            }
            match guarded(topic, &stop.recipient, || stop.wants(message)) {
                Some(true) => best = Some((weight, stop)),
                Some(false) => published.note(stop, Offer::Filtered),
                None => published.note(stop, Offer::Panicked),
            }
        }
        best.map(|(_, stop)| stop)
    }
}

impl<T: Send + Sync + 'static> Stop<T> {
    fn wants(&self, message: &T) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter(message))
    }

    #[inline]
    fn offer(&self, topic: &str, message: &Arc<T>) -> Offer {
        guarded(topic, &self.recipient, || {
            if self.wants(message) {
                self.send(message)
            } else {
                Offer::Filtered
            }
        })
        .unwrap_or(Offer::Panicked)
    }

    fn tell(&self, topic: &str, message: &Arc<T>) -> Offer {
        guarded(topic, &self.recipient, || self.send(message)).unwrap_or(Offer::Panicked)
    }

    fn send(&self, message: &Arc<T>) -> Offer {
        match self.recipient.try_tell(Arc::clone(message)) {
            Ok(()) => Offer::Taken,
            // One that is drained may come back, as one that is full may.
            Err(SendError::Full(_) | SendError::Draining(_)) => Offer::Full,
            Err(SendError::Closed(_) | SendError::Expired(_)) => Offer::Gone,
        }
    }
}

/// Runs what a subscriber brought along: its panic costs this subscriber the message, and
/// neither the publisher nor the others anything.
#[inline]
fn guarded<T: Send + Sync + 'static, R>(
    topic: &str,
    recipient: &Recipient<Arc<T>>,
    foreign: impl FnOnce() -> R,
) -> Option<R> {
    match catch_unwind(AssertUnwindSafe(foreign)) {
        Ok(done) => Some(done),
        Err(payload) => {
            let panic = panic_text(payload.as_ref());
            let path = recipient.actor().path();
            tracing::error!(%topic, %path, %panic, "panic in a filter or a conversion");
            discard_one(payload);
            None
        }
    }
}

impl Published {
    #[inline]
    fn note<T: Send + Sync + 'static>(&mut self, stop: &Stop<T>, offer: Offer) {
        match offer {
            Offer::Taken => self.delivered += 1,
            Offer::Filtered => self.filtered += 1,
            Offer::Full => self.full.push(stop.recipient.actor()),
            Offer::Gone => {}
            Offer::Panicked => self.panicked += 1,
        }
    }

    /// How many were to get it and did not.
    pub(super) fn missed(&self, rule: Rule) -> usize {
        let missed = self.full.len() + self.panicked;
        match rule {
            Rule::All => missed,
            // Where one is enough, the others missed nothing.
            Rule::InTurn | Rule::ByKey(_) => missed.min(1) * usize::from(self.delivered == 0),
        }
    }
}
