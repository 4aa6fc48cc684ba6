//! The receiving side: what waits for an activation, and what its entity has taken.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::Notifier;
use tokio::sync::oneshot;

use super::{Delivery, DeliveryFailure, millis, push_entity, split_entity, whole_millis};
use crate::journal::Journal;
use crate::seeded_bug::{Bug, seeded};
use crate::store::{Batch, EntityId, Row, Table};

/// The senders whose last number an entity keeps. A message that arrives again after its sender has
/// left the window takes effect again.
///
/// A message arrives again if its acknowledgement is lost, because the process or the sender ends
/// at that moment. It then arrives once the sender is awake again. So the window has to outlast the
/// downtime of a process, and has to hold the senders that are active meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxWindow {
    /// Maximum number of senders; beyond it, the one whose last message is oldest is forgotten.
    pub senders: usize,
    /// Maximum age of the last message of a sender, by the wall clock of the store. Older senders
    /// are forgotten when the next message is taken.
    pub age: Duration,
}

impl InboxWindow {
    /// 10 000 senders whose last message is at most 30 days old.
    pub const DEFAULT: Self = Self {
        senders: 10_000,
        age: Duration::from_secs(30 * 24 * 3600),
    };
}

/// The last number of each sender, in memory.
#[derive(Debug)]
pub(crate) struct Inbox {
    window: InboxWindow,
    senders: BTreeMap<EntityId, InboxSender>,
    /// The senders, the one whose last message is oldest first.
    order: BTreeMap<(Duration, u64), EntityId>,
    next_slot: u64,
}

#[derive(Debug, Clone, Copy)]
struct InboxSender {
    /// The key of the row: the name of a sender may be longer than the key of a row.
    slot: u64,
    last: u64,
    /// The time at which the last message was taken.
    at: Duration,
}

impl Inbox {
    pub(crate) fn new(window: InboxWindow) -> Self {
        Self {
            window,
            senders: BTreeMap::new(),
            order: BTreeMap::new(),
            next_slot: 0,
        }
    }

    /// Adds a row that was stored. Returns `None` if it is malformed.
    pub(crate) fn load(&mut self, row: &Row) -> Option<()> {
        let slot = u64::from_be_bytes(row.key.as_slice().try_into().ok()?);
        let (at, rest) = row.value.split_first_chunk()?;
        let (last, rest) = rest.split_first_chunk()?;
        let (sender, _) = split_entity(rest)?;
        let entry = InboxSender {
            slot,
            last: u64::from_be_bytes(*last),
            at: Duration::from_millis(u64::from_be_bytes(*at)),
        };
        self.next_slot = self.next_slot.max(slot + 1);
        self.order.insert((entry.at, slot), sender.clone());
        self.senders.insert(sender, entry);
        Some(())
    }

    /// Returns `true` if the entity has taken the message before.
    fn has_taken(&self, delivery: &Delivery) -> bool {
        let sender = self.senders.get(&delivery.sender);
        sender.is_some_and(|sender| delivery.number <= sender.last)
    }

    /// Keeps the number of a message, and forgets the senders that leave the window.
    fn take(&mut self, delivery: &Delivery, now: Duration, batch: &mut Batch) {
        // Not before those that are there: the wall clock may have been set back, and the sender
        // would be the first to be forgotten.
        let latest = self.order.last_key_value().map(|((at, _), _)| *at);
        let at = whole_millis(now).max(latest.unwrap_or_default());
        let sender = &delivery.sender;
        let earlier = self.senders.remove(sender);
        if let Some(earlier) = earlier {
            self.order.remove(&(earlier.at, earlier.slot));
        }
        let slot = earlier.map_or(self.next_slot, |earlier| earlier.slot);
        self.next_slot = self.next_slot.max(slot + 1);
        let last = delivery.number;
        let mut value = millis(at).to_vec();
        value.extend(last.to_be_bytes());
        push_entity(&mut value, sender);
        if !seeded(Bug::InboxNumberNotStored) {
            batch.put(Table::Inbox, slot.to_be_bytes(), value);
        }
        self.order.insert((at, slot), sender.clone());
        let entry = InboxSender { slot, last, at };
        self.senders.insert(sender.clone(), entry);
        while let Some(first) = self.order.first_entry() {
            let (oldest, slot) = *first.key();
            let is_in_window = now.saturating_sub(oldest) <= self.window.age;
            if is_in_window && self.senders.len() <= self.window.senders.max(1) {
                break;
            }
            batch.remove(Table::Inbox, slot.to_be_bytes());
            self.senders.remove(&first.remove());
        }
    }
}

/// A message on its way to an activation.
pub(crate) struct InboundMessage {
    delivery: Delivery,
    done: oneshot::Sender<Result<(), DeliveryFailure>>,
}

impl InboundMessage {
    pub(super) const fn new(
        delivery: Delivery,
        done: oneshot::Sender<Result<(), DeliveryFailure>>,
    ) -> Self {
        Self { delivery, done }
    }

    pub(crate) fn delivery(&self) -> Delivery {
        self.delivery.clone()
    }

    /// Tells the sender that the message is stored.
    pub(crate) fn acknowledge(self) {
        let _ = self.done.send(Ok(()));
    }

    /// Tells the sender that the message was not taken.
    pub(crate) fn refuse(self) {
        let _ = self.done.send(Err(DeliveryFailure::NotReceived));
    }
}

/// The messages that wait for an activation. Senders that are dropped, or replaced, learn that
/// there is no acknowledgement.
pub(crate) struct InboundQueue {
    waiting: Mutex<Option<VecDeque<InboundMessage>>>,
    /// Notifies the activation, once it has started.
    notifier: OnceLock<Notifier>,
}

impl InboundQueue {
    /// Maximum number of messages, of which there is one from each sender.
    const LIMIT: usize = 1000;

    pub(crate) fn new() -> Self {
        Self {
            waiting: Mutex::new(Some(VecDeque::new())),
            notifier: OnceLock::new(),
        }
    }

    /// Sets the activation that takes the messages.
    pub(crate) fn start(&self, notifier: Notifier) {
        let _ = self.notifier.set(notifier);
    }

    /// Adds a message. It replaces an earlier one of its sender, which has given up on that.
    pub(crate) fn push(&self, message: InboundMessage) -> Result<(), DeliveryFailure> {
        let mut locked = self.waiting.lock();
        let waiting = locked.as_mut().ok_or(DeliveryFailure::ReceiverEnded)?;
        let sender = &message.delivery.sender;
        let earlier = waiting
            .iter()
            .position(|one| one.delivery.sender == *sender);
        match earlier {
            Some(earlier) => waiting[earlier] = message,
            None if waiting.len() >= Self::LIMIT => {
                return Err(DeliveryFailure::TooManyWait { limit: Self::LIMIT });
            }
            None => waiting.push_back(message),
        }
        drop(locked);
        if let Some(notifier) = self.notifier.get() {
            notifier.notify();
        }
        Ok(())
    }

    fn pop(&self) -> Option<InboundMessage> {
        self.waiting.lock().as_mut()?.pop_front()
    }

    /// Refuses what waits and what comes: the activation has ended.
    pub(crate) fn close(&self) {
        self.waiting.lock().take();
    }
}

impl Journal {
    /// Returns the next message that another entity has sent and that this one has not taken.
    pub(crate) fn next_inbound(&self) -> Option<InboundMessage> {
        let inbound = self.hosted()?.inbound();
        loop {
            let message = inbound.pop()?;
            if !self.inbox.has_taken(&message.delivery) {
                return Some(message);
            }
            // Its effect is stored, and the acknowledgement was lost.
            message.acknowledge();
        }
    }

    /// Keeps the number of a message with the next write. Returns `false` if the actor refused it.
    pub(crate) fn take_inbound(&mut self, message: &InboundMessage) -> bool {
        if std::mem::take(&mut self.has_refused) {
            return false;
        }
        let now = self.store.wall_clock();
        self.inbox.take(&message.delivery, now, &mut self.batch);
        true
    }

    /// Leaves the message that is being handled to its sender.
    pub(crate) const fn refuse_inbound(&mut self) {
        self.has_refused = true;
    }
}

impl fmt::Debug for InboundQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InboundQueue")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn delivery(sender: &str, number: u64) -> Delivery {
        Delivery {
            sender: EntityId::new("test", sender).expect("a short key"),
            number,
            payload: std::sync::Arc::new([]),
        }
    }

    fn known(inbox: &Inbox) -> Vec<&str> {
        let all = ["a", "b", "c", "d"].into_iter();
        all.filter(|sender| inbox.has_taken(&delivery(sender, 0)))
            .collect()
    }

    #[test]
    fn senders_leave_the_window_by_count_and_age() {
        let window = InboxWindow {
            senders: 3,
            age: 10 * SECOND,
        };
        let mut inbox = Inbox::new(window);
        // The second message of `a` makes `b` the oldest.
        for (sender, number, at) in [("a", 1, 0), ("b", 1, 1), ("c", 1, 2), ("a", 2, 3)] {
            inbox.take(&delivery(sender, number), at * SECOND, &mut Batch::new());
        }
        assert!(inbox.has_taken(&delivery("a", 2)) && !inbox.has_taken(&delivery("a", 3)));
        inbox.take(&delivery("d", 1), 4 * SECOND, &mut Batch::new());
        assert_eq!(known(&inbox), ["a", "c", "d"]);
        inbox.take(&delivery("d", 2), 13 * SECOND, &mut Batch::new());
        assert_eq!(known(&inbox), ["a", "d"]);
    }

    #[test]
    fn latest_sender_is_kept_if_the_clock_is_set_back() {
        let window = InboxWindow {
            senders: 1,
            ..InboxWindow::DEFAULT
        };
        let mut inbox = Inbox::new(window);
        inbox.take(&delivery("a", 1), 100 * SECOND, &mut Batch::new());
        inbox.take(&delivery("b", 1), SECOND, &mut Batch::new());
        assert_eq!(known(&inbox), ["b"]);
    }

    #[test]
    fn queue_is_bounded_and_has_one_message_of_a_sender() {
        let queue = InboundQueue::new();
        let push = |sender: &str, number| {
            let (done, acknowledged) = oneshot::channel();
            let message = InboundMessage::new(delivery(sender, number), done);
            queue.push(message).map(|()| acknowledged)
        };
        let mut replaced = push("a", 1).expect("there is room");
        push("a", 2).expect("there is room");
        assert!(
            replaced
                .try_recv()
                .is_err_and(|error| error == oneshot::error::TryRecvError::Closed)
        );
        for number in 1..InboundQueue::LIMIT {
            push(&number.to_string(), 1).expect("there is room");
        }
        let refused = push("b", 1).expect_err("it is full").to_string();
        assert!(refused.contains("1000"), "{refused}");
        push("a", 3).expect("it replaces an earlier one");
        assert_eq!(queue.pop().map(|first| first.delivery.number), Some(3));
        queue.close();
        let refused = push("a", 4).expect_err("it is closed");
        assert!(matches!(refused, DeliveryFailure::ReceiverEnded));
        assert!(queue.pop().is_none());
    }
}
