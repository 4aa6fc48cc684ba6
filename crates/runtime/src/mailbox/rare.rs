//! State that most mailboxes never need.

use std::collections::VecDeque;
use std::sync::Arc;

use super::expiry::Expiries;
use super::{CompletedItem, Drain, MailboxState, SenderQueue, System};

/// The system and completion lanes, a queue of senders, expiry times, a drain, and counts of rare
/// events: allocated on first use.
pub(super) struct RareMailboxState<M> {
    pub(super) system: VecDeque<System>,
    pub(super) completions: VecDeque<CompletedItem<M>>,
    pub(super) waiting: Option<SenderQueue>,
    pub(super) expiries: Expiries,
    pub(super) drain: Option<Arc<Drain<M>>>,
    pub(super) dropped: u64,
    pub(super) expired: u64,
    /// Number of messages that left the queue without being taken out, apart from the expired ones.
    pub(super) gone: u64,
    /// Number of messages taken out that were never in the queue.
    pub(super) beside: u64,
}

impl<M> Default for RareMailboxState<M> {
    fn default() -> Self {
        Self {
            system: VecDeque::new(),
            completions: VecDeque::new(),
            waiting: None,
            expiries: Expiries::new(),
            drain: None,
            dropped: 0,
            expired: 0,
            gone: 0,
            beside: 0,
        }
    }
}

impl<M> MailboxState<M> {
    /// Takes the next answer or output of a pipe.
    pub(super) fn pop_completed(&mut self) -> Option<CompletedItem<M>> {
        self.rare.as_mut()?.completions.pop_front()
    }

    #[cold]
    pub(super) fn rare(&mut self) -> &mut RareMailboxState<M> {
        self.rare.get_or_insert_default()
    }

    /// Returns `true` if something waits in the system or completion lane.
    #[inline(always)]
    pub(super) fn has_other_work(&self) -> bool {
        self.rare
            .as_ref()
            .is_some_and(|rare| !(rare.system.is_empty() && rare.completions.is_empty()))
    }

    /// Returns the number of items in the system lane, and of those in the completion lane.
    pub(super) fn other_work_len(&self) -> (usize, usize) {
        self.rare
            .as_ref()
            .map_or((0, 0), |rare| (rare.system.len(), rare.completions.len()))
    }

    pub(super) fn waiting(&self) -> Option<&SenderQueue> {
        self.rare.as_ref()?.waiting.as_ref()
    }

    pub(super) fn waiting_mut(&mut self) -> Option<&mut SenderQueue> {
        self.rare.as_mut()?.waiting.as_mut()
    }

    /// Takes out the queue of senders, if there is one.
    pub(super) fn take_waiting(&mut self) -> Option<SenderQueue> {
        self.rare.as_mut()?.waiting.take()
    }

    /// Returns `true` if some of the waiting messages may expire.
    #[inline(always)]
    pub(super) fn has_expiries(&self) -> bool {
        self.rare
            .as_ref()
            .is_some_and(|rare| !rare.expiries.is_empty())
    }

    /// Records that this number of messages left the queue without being taken out.
    pub(super) fn note_gone(&mut self, count: u64) {
        if count > 0 {
            self.rare().gone += count;
        }
    }
}
