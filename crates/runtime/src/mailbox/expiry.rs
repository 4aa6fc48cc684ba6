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
    Cancelled,
}

pub(super) type Expiries = BTreeMap<u64, Expiry>;

impl<M> MailboxState<M> {
    /// Returns the number of the first message that waits.
    pub(super) fn front_number(&self, batch_len: usize) -> u64 {
        self.push_count - (self.messages.len() + batch_len) as u64
    }

    pub(super) fn set_expiry(&mut self, number: u64, expiry: Expiry) {
        self.cold_mut().expiries.insert(number, expiry);
    }

    /// Forgets the expiry of messages that do not wait any more.
    pub(super) fn forget_expiries(&mut self, front: u64) {
        let Some(cold) = &mut self.cold else { return };
        // The table is ordered by number, so what has left the queue is at its front.
        while cold
            .expiries
            .first_key_value()
            .is_some_and(|(number, _)| *number < front)
        {
            cold.expiries.pop_first();
        }
    }

    /// Returns `true` if the message with this number, the first that waits, is not wanted any
    /// more.
    pub(super) fn is_expired(&mut self, front: u64) -> bool {
        self.forget_expiries(front);
        match self
            .cold
            .as_ref()
            .and_then(|cold| cold.expiries.get(&front))
        {
            Some(Expiry::Cancelled) => true,
            // The clock is read only for messages that can expire.
            Some(Expiry::Until(until)) => clock::now() > *until,
            None => false,
        }
    }

    /// Returns the number of messages ahead of the first one that may expire.
    pub(super) fn len_before_expiring(&mut self, batch_len: usize) -> u64 {
        if !self.has_expiries() {
            return u64::MAX;
        }
        let front = self.front_number(batch_len);
        self.forget_expiries(front);
        let cold = self.cold.as_ref();
        let first = cold.and_then(|cold| cold.expiries.first_key_value());
        first.map_or(u64::MAX, |(number, _)| *number - front)
    }
}

impl<M> Mailbox<M> {
    /// Records that nobody wants a message any more; has no effect once it was taken out.
    pub(crate) fn cancel_message(&self, number: u64) {
        let mut state = self.strand.lock();
        // A message below the front has been taken out: its handler runs, and nothing is left to
        // cancel.
        if number >= state.front_number(self.batch_len()) {
            state.set_expiry(number, Expiry::Cancelled);
            // Makes the receiver check the table again.
            self.lock_needed.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the number of the first message that the actor owes an answer to: of the one that it
    /// is handling, or else of the first that waits. `None` while the actor itself waits for
    /// messages.
    pub(crate) fn first_unanswered(&self) -> Option<u64> {
        let state = self.strand.lock();
        let front = state.front_number(self.batch_len());
        // A parked actor owes no answer to a message that it has handled.
        if state.receiving && !state.hook_waits_for_stop {
            None
        } else {
            // The message that is handled was the one before the front, unless the actor is busy
            // with something other than a message.
            Some(front - u64::from(!state.last_was_control))
        }
    }

    /// Records that the actor is busy with something other than a message of the user lane.
    pub(crate) fn mark_control_work(&self) {
        let mut state = self.strand.lock();
        state.last_was_control = true;
        state.receiving = false;
        drop(state);
        self.lock_needed.store(true, Ordering::Relaxed);
    }
}
