//! Messages that are only wanted for a while.
//!
//! The messages of the user lane have numbers, in the order in which they were put in; the number
//! of the first that waits follows from how many were put in and how many wait. So a message
//! carries nothing: the few that have a term are in a table by number, and the receiver compares
//! the number that it takes with the first in the table.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::{Lanes, Mailbox};
use crate::clock;
use crate::sync::Ordering;

/// Until when a message is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Term {
    Until(Instant),
    /// Not any more.
    Gone,
}

pub(super) type Terms = BTreeMap<u64, Term>;

impl<M> Lanes<M> {
    /// The number of the first message that waits.
    pub(super) fn front(&self, batched: usize) -> u64 {
        self.pushed - (self.user.len() + batched) as u64
    }

    pub(super) fn set_term(&mut self, number: u64, term: Term) {
        self.rare().terms.insert(number, term);
    }

    /// Forgets the terms of messages that do not wait any more.
    pub(super) fn forget_terms(&mut self, front: u64) {
        let Some(rare) = &mut self.rare else { return };
        while rare
            .terms
            .first_key_value()
            .is_some_and(|(number, _)| *number < front)
        {
            rare.terms.pop_first();
        }
    }

    /// Whether the message of this number, the first that waits, is not wanted any more.
    pub(super) fn is_stale(&mut self, front: u64) -> bool {
        self.forget_terms(front);
        match self.rare.as_ref().and_then(|rare| rare.terms.get(&front)) {
            Some(Term::Gone) => true,
            Some(Term::Until(until)) => clock::now() > *until,
            None => false,
        }
    }

    /// How many messages come before the first that has a term.
    pub(super) fn free(&mut self, batched: usize) -> u64 {
        if !self.has_terms() {
            return u64::MAX;
        }
        let front = self.front(batched);
        self.forget_terms(front);
        let rare = self.rare.as_ref();
        let first = rare.and_then(|rare| rare.terms.first_key_value());
        first.map_or(u64::MAX, |(number, _)| *number - front)
    }
}

impl<M> Mailbox<M> {
    /// Takes note that nobody wants a message any more; without effect once it was taken out.
    pub(crate) fn abandon(&self, number: u64) {
        let mut lanes = self.lanes.lock();
        if number >= lanes.front(self.batched()) {
            lanes.set_term(number, Term::Gone);
            // Has the receiver look at the table again.
            self.attention.store(true, Ordering::Relaxed);
        }
    }

    /// The number of the first message that the actor owes an answer to: of the one that it is
    /// at, or else of the first that waits. `None` while it waits for messages itself.
    pub(crate) fn floor(&self) -> Option<u64> {
        let lanes = self.lanes.lock();
        let front = lanes.front(self.batched());
        if lanes.receiving {
            None
        } else {
            Some(front - u64::from(!lanes.aside))
        }
    }

    /// Takes note that the actor is at something else than a message of the user lane.
    pub(crate) fn step_aside(&self) {
        let mut lanes = self.lanes.lock();
        lanes.aside = true;
        lanes.receiving = false;
        drop(lanes);
        self.attention.store(true, Ordering::Relaxed);
    }
}
