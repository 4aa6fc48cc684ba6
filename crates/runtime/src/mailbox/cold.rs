//! State that most mailboxes never need.

use std::collections::VecDeque;
use std::sync::Arc;

use super::expiry::Expiries;
use super::{CompletedItem, Drain, MailboxState, SenderQueue, SystemMessage};

/// The system and completion lanes, a queue of senders, expiry times, a drain, and counts of rare
/// events: allocated on first use.
pub(super) struct ColdMailboxState<M> {
    pub(super) system: VecDeque<SystemMessage>,
    /// Set while a notification is in the system lane.
    pub(super) is_notified: bool,
    pub(super) completions: VecDeque<CompletedItem<M>>,
    pub(super) senders: Option<SenderQueue>,
    pub(super) expiries: Expiries,
    pub(super) drain: Option<Arc<Drain<M>>>,
    pub(super) dropped: u64,
    pub(super) expired: u64,
    /// Number of messages that left the queue without being taken out, apart from the expired ones.
    pub(super) removed_unhandled: u64,
    /// Number of messages taken out that were never in the queue.
    pub(super) taken_outside_queue: u64,
}

impl<M> Default for ColdMailboxState<M> {
    fn default() -> Self {
        Self {
            system: VecDeque::new(),
            is_notified: false,
            completions: VecDeque::new(),
            senders: None,
            expiries: Expiries::new(),
            drain: None,
            dropped: 0,
            expired: 0,
            removed_unhandled: 0,
            taken_outside_queue: 0,
        }
    }
}

impl<M> MailboxState<M> {
    /// Takes the next answer or output of a pipe.
    pub(super) fn pop_completed(&mut self) -> Option<CompletedItem<M>> {
        self.cold.as_mut()?.completions.pop_front()
    }

    #[cold]
    pub(super) fn cold_mut(&mut self) -> &mut ColdMailboxState<M> {
        self.cold.get_or_insert_default()
    }

    /// Returns `true` if something waits in the system or completion lane.
    #[inline(always)]
    pub(super) fn has_control_items(&self) -> bool {
        self.cold
            .as_ref()
            .is_some_and(|cold| !(cold.system.is_empty() && cold.completions.is_empty()))
    }

    /// Returns the number of items in the system lane, and of those in the completion lane.
    pub(super) fn control_lens(&self) -> (usize, usize) {
        self.cold
            .as_ref()
            .map_or((0, 0), |cold| (cold.system.len(), cold.completions.len()))
    }

    pub(super) fn waiting(&self) -> Option<&SenderQueue> {
        self.cold.as_ref()?.senders.as_ref()
    }

    pub(super) fn waiting_mut(&mut self) -> Option<&mut SenderQueue> {
        self.cold.as_mut()?.senders.as_mut()
    }

    /// Takes out the queue of senders, if there is one.
    pub(super) fn take_waiting(&mut self) -> Option<SenderQueue> {
        self.cold.as_mut()?.senders.take()
    }

    /// Returns `true` if some of the waiting messages may expire.
    #[inline(always)]
    pub(super) fn has_expiries(&self) -> bool {
        self.cold
            .as_ref()
            .is_some_and(|cold| !cold.expiries.is_empty())
    }

    /// Records that this number of messages left the queue without being taken out.
    pub(super) fn add_removed_unhandled(&mut self, count: u64) {
        if count > 0 {
            self.cold_mut().removed_unhandled += count;
        }
    }
}
