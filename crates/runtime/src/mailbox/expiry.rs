//! Messages that expire.
//!
//! The messages of the user lane are numbered in the order in which they were pushed. The number of
//! the first message that waits follows from how many were pushed and how many wait, so a message
//! does not carry its number: the few messages that expire are in a table by number, and the
//! receiver compares the number of the message that it takes with the first in the table.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::{Mailbox, MailboxState};
use crate::clock;
use crate::sync::Ordering;

/// The expiry of a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expiry {
    Until(Instant),
    /// Nobody wants the message any more.
    Gone,
}

pub(super) type Expiries = BTreeMap<u64, Expiry>;

impl<M> MailboxState<M> {
    /// Returns the number of the first message that waits.
    pub(super) fn front(&self, batch_len: usize) -> u64 {
        self.push_count - (self.user.len() + batch_len) as u64
    }

    pub(super) fn set_expiry(&mut self, number: u64, expiry: Expiry) {
        self.rare().expiries.insert(number, expiry);
    }

    /// Forgets the expiry of messages that do not wait any more.
    pub(super) fn forget_expiries(&mut self, front: u64) {
        let Some(rare) = &mut self.rare else { return };
        while rare
            .expiries
            .first_key_value()
            .is_some_and(|(number, _)| *number < front)
        {
            rare.expiries.pop_first();
        }
    }

    /// Returns `true` if the message with this number, the first that waits, is not wanted any
    /// more.
    pub(super) fn is_stale(&mut self, front: u64) -> bool {
        self.forget_expiries(front);
        match self
            .rare
            .as_ref()
            .and_then(|rare| rare.expiries.get(&front))
        {
            Some(Expiry::Gone) => true,
            Some(Expiry::Until(until)) => clock::now() > *until,
            None => false,
        }
    }

    /// Returns the number of messages ahead of the first one that may expire.
    pub(super) fn free(&mut self, batch_len: usize) -> u64 {
        if !self.has_expiries() {
            return u64::MAX;
        }
        let front = self.front(batch_len);
        self.forget_expiries(front);
        let rare = self.rare.as_ref();
        let first = rare.and_then(|rare| rare.expiries.first_key_value());
        first.map_or(u64::MAX, |(number, _)| *number - front)
    }
}

impl<M> Mailbox<M> {
    /// Records that nobody wants a message any more; has no effect once it was taken out.
    pub(crate) fn abandon_message(&self, number: u64) {
        let mut lanes = self.lanes.lock();
        if number >= lanes.front(self.batch_len()) {
            lanes.set_expiry(number, Expiry::Gone);
            // Makes the receiver check the table again.
            self.lock_needed.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the number of the first message that the actor owes an answer to: of the one that it
    /// is handling, or else of the first that waits. `None` while the actor itself waits for
    /// messages.
    pub(crate) fn first_unanswered(&self) -> Option<u64> {
        let lanes = self.lanes.lock();
        let front = lanes.front(self.batch_len());
        if lanes.receiving {
            None
        } else {
            Some(front - u64::from(!lanes.other_work))
        }
    }
}
