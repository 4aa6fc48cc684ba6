//! How much may wait, and what happens beyond it.

/// What happens to a message for which there is no room.
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
    /// All that waits is dropped in favour of the new message.
    KeepLatest,
}

/// How much may wait for an actor, and what happens beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MailboxSpec {
    pub(super) capacity: usize,
    pub(super) overflow: Overflow,
}

impl MailboxSpec {
    /// Room for 1024 messages, then senders wait.
    pub const DEFAULT: Self = Self::bounded(1024);

    /// Room for `capacity` messages, at least one.
    #[must_use]
    pub const fn bounded(capacity: usize) -> Self {
        let capacity = if capacity == 0 { 1 } else { capacity };
        Self {
            capacity,
            overflow: Overflow::Wait,
        }
    }

    /// No bound: memory is the limit. Only for senders that something else bounds.
    #[must_use]
    pub const fn unbounded() -> Self {
        Self {
            capacity: usize::MAX,
            overflow: Overflow::Wait,
        }
    }

    /// Says what happens to a message for which there is no room.
    #[must_use]
    pub const fn overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = overflow;
        self
    }

    /// The number of messages that may wait; `None` without a bound.
    #[must_use]
    pub const fn capacity(&self) -> Option<usize> {
        if self.capacity == usize::MAX {
            None
        } else {
            Some(self.capacity)
        }
    }

    /// Rules that drop what waits must reach all of it, so nothing may be taken out ahead.
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
