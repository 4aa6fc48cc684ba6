//! The capacity of a mailbox and the behavior beyond it.

/// The rule for a message for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Overflow {
    /// `tell` waits for room, in turn; `try_tell` fails.
    #[default]
    Wait,
    /// Both fail and hand the message back.
    Fail,
    /// The new message is dropped.
    DropNewest,
    /// The message that has waited longest is dropped.
    DropOldest,
    /// All messages that wait are dropped in favor of the new one.
    KeepLatest,
}

/// The capacity of a mailbox and the behavior beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailboxSpec {
    pub(super) capacity: usize,
    pub(super) overflow: Overflow,
}

impl MailboxSpec {
    /// Room for 1024 messages; beyond that, senders wait.
    pub const DEFAULT: Self = Self::bounded(1024);

    /// Creates a specification with room for `capacity` messages, at least one.
    #[must_use]
    pub const fn bounded(capacity: usize) -> Self {
        let capacity = if capacity == 0 { 1 } else { capacity };
        Self {
            capacity,
            overflow: Overflow::Wait,
        }
    }

    /// Creates a specification without a bound: memory is the limit. Use it only if something else
    /// bounds the senders.
    #[must_use]
    pub const fn unbounded() -> Self {
        Self {
            capacity: usize::MAX,
            overflow: Overflow::Wait,
        }
    }

    /// Sets the rule for a message for which there is no room.
    #[must_use]
    pub const fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// Returns the number of messages that may wait; `None` if there is no bound.
    #[must_use]
    pub const fn capacity(&self) -> Option<usize> {
        if self.capacity == usize::MAX {
            None
        } else {
            Some(self.capacity)
        }
    }

    /// Returns `true` if the receiver may take messages out in batches. Rules that drop waiting
    /// messages must reach all of them, so nothing may be taken out ahead.
    pub(super) const fn batches(self) -> bool {
        matches!(self.overflow, Overflow::Wait | Overflow::Fail)
    }

    pub(crate) const fn waits(self) -> bool {
        matches!(self.overflow, Overflow::Wait)
    }
}

impl Default for MailboxSpec {
    fn default() -> Self {
        Self::DEFAULT
    }
}
