//! What most mailboxes never have.

use std::collections::VecDeque;
use std::sync::Arc;

use super::term::Terms;
use super::{Completed, Drain, Lanes, System, Waiting};

/// The lanes beside that of messages, a line of senders, terms, a drain, and counts of what rarely
/// happens: made when first needed.
pub(super) struct Rare<M> {
    pub(super) system: VecDeque<System>,
    pub(super) completions: VecDeque<Completed<M>>,
    pub(super) waiting: Option<Waiting>,
    pub(super) terms: Terms,
    pub(super) drain: Option<Arc<Drain<M>>>,
    pub(super) dropped: u64,
    pub(super) expired: u64,
    /// How many messages left the line without having been taken out, the expired aside.
    pub(super) gone: u64,
    /// How many were taken out that never were in the line.
    pub(super) beside: u64,
}

impl<M> Default for Rare<M> {
    fn default() -> Self {
        Self {
            system: VecDeque::new(),
            completions: VecDeque::new(),
            waiting: None,
            terms: Terms::new(),
            drain: None,
            dropped: 0,
            expired: 0,
            gone: 0,
            beside: 0,
        }
    }
}

impl<M> Lanes<M> {
    /// Takes the next answer, or what a pipe came to.
    pub(super) fn pop_completed(&mut self) -> Option<Completed<M>> {
        self.rare.as_mut()?.completions.pop_front()
    }

    #[cold]
    pub(super) fn rare(&mut self) -> &mut Rare<M> {
        self.rare.get_or_insert_default()
    }

    /// Whether something waits in the lanes beside that of messages.
    #[inline(always)]
    pub(super) fn has_aside(&self) -> bool {
        self.rare
            .as_ref()
            .is_some_and(|rare| !(rare.system.is_empty() && rare.completions.is_empty()))
    }

    pub(super) fn waiting(&self) -> Option<&Waiting> {
        self.rare.as_ref()?.waiting.as_ref()
    }

    pub(super) fn waiting_mut(&mut self) -> Option<&mut Waiting> {
        self.rare.as_mut()?.waiting.as_mut()
    }

    /// Takes the line away, if there is one.
    pub(super) fn take_waiting(&mut self) -> Option<Waiting> {
        self.rare.as_mut()?.waiting.take()
    }

    /// Whether some of the messages that wait are only wanted for a while.
    #[inline(always)]
    pub(super) fn has_terms(&self) -> bool {
        self.rare
            .as_ref()
            .is_some_and(|rare| !rare.terms.is_empty())
    }

    /// Notes that so many messages left the line without having been taken out.
    pub(super) fn note_gone(&mut self, count: u64) {
        if count > 0 {
            self.rare().gone += count;
        }
    }
}
