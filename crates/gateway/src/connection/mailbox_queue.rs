//! Messages that wait for room in the mailboxes of actors, in one queue per actor.
//!
//! Only the first message of a queue waits at the mailbox, so the messages of a client arrive in
//! the order in which they were sent, whichever thread finds that there is room.

use std::collections::{HashMap, VecDeque};

use strowger::{DeliveryOrder, Fault, FaultCode, Payload, RemoteEntry};

use crate::frame::FrameKind;

/// A message that is not in its mailbox yet.
pub(super) struct QueuedMessage {
    pub(super) id: u32,
    pub(super) kind: FrameKind,
    pub(super) entry: RemoteEntry,
    pub(super) payload: Payload,
}

pub(super) struct MailboxQueues {
    by_actor: HashMap<DeliveryOrder, MailboxQueue>,
    /// Number of bytes that wait behind the first messages.
    bytes: usize,
    limit: usize,
}

struct MailboxQueue {
    first: u32,
    behind: VecDeque<QueuedMessage>,
}

impl MailboxQueues {
    /// Creates queues in which at most `limit` bytes may wait.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            by_actor: HashMap::new(),
            bytes: 0,
            limit,
        }
    }

    /// Queues a message behind others for the same actor. Returns the message if no other waits.
    pub(super) fn enqueue(
        &mut self,
        message: QueuedMessage,
    ) -> Result<Option<QueuedMessage>, Fault> {
        if self.by_actor.is_empty() {
            return Ok(Some(message));
        }
        let Some(queue) = self.by_actor.get_mut(&message.entry.order()) else {
            return Ok(Some(message));
        };
        let bytes = self.bytes + message.payload.bytes.len();
        if bytes > self.limit {
            let text = format!(
                "{} bytes wait for space in mailboxes, limit is {}",
                self.bytes, self.limit
            );
            return Err(Fault::new(FaultCode::Full, text));
        }
        self.bytes = bytes;
        queue.behind.push_back(message);
        Ok(None)
    }

    /// Records that this message waits at the mailbox of an actor.
    pub(super) fn set_first(&mut self, actor: DeliveryOrder, id: u32) {
        let queue = self.by_actor.entry(actor).or_insert_with(|| MailboxQueue {
            first: id,
            behind: VecDeque::new(),
        });
        queue.first = id;
    }

    /// Returns the actor at whose mailbox a message waits.
    pub(super) fn waits_at(&self, id: u32) -> Option<DeliveryOrder> {
        let mut queues = self.by_actor.iter();
        let queue = queues.find(|(_, queue)| queue.first == id);
        queue.map(|(actor, _)| actor.clone())
    }

    /// Takes the next message of a queue, once the first one does not wait any more. An empty queue
    /// is removed.
    pub(super) fn next(&mut self, actor: &DeliveryOrder) -> Option<QueuedMessage> {
        let queue = self.by_actor.get_mut(actor)?;
        let Some(next) = queue.behind.pop_front() else {
            self.by_actor.remove(actor);
            return None;
        };
        self.bytes -= next.payload.bytes.len();
        Some(next)
    }
}
