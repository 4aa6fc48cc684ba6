//! The flow control of a stream: how many items may be sent. Pure values, without a queue, a waker
//! or a clock.

/// A violation of the flow control by the other side of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// The reader granted more credit than its window allows.
    #[error("credit {credit} exceeds the limit of {limit}")]
    TooMuchCredit {
        /// The credit that the reader would have had.
        credit: u32,
        /// The maximum credit.
        limit: u32,
    },
    /// The source sent an item without credit.
    #[error("item received without credit")]
    NoCredit,
}

/// The rule for a reader that has granted no credit when an item is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SlowReader {
    /// The source waits for the slowest reader.
    #[default]
    Wait,
    /// The reader misses the item. It is told how many items it missed, at the point in the stream
    /// where they were.
    Miss,
    /// The reader is disconnected.
    Disconnect,
}

/// The decision of a source about an item for one reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendDecision {
    /// Send the item, preceded by the number of items missed before it.
    Send {
        /// Number of items the reader has missed since the last one it was sent.
        missed: u64,
    },
    /// Wait for credit before sending the item.
    Wait,
    /// Drop the item; the reader misses it.
    Miss,
    /// Disconnect the reader, which is too slow: send it the end of the stream and drop it.
    Disconnect,
}

/// The source's half of the flow control for one reader.
///
/// Together with a [`ReceiverCredit`] on the other side, this is the whole protocol: grants go one
/// way, items the other. Both halves are pure values, so they may live in one process or at the two
/// ends of a socket.
///
/// ```
/// use strowger::{ReceiverCredit, SlowReader, SendDecision, SenderCredit};
///
/// # fn main() -> Result<(), strowger::FlowError> {
/// let mut sender = SenderCredit::new(SlowReader::Miss, 4);
/// let mut receiver = ReceiverCredit::new(2);
/// sender.grant(receiver.take_grant())?;
/// for _ in 0..2 {
///     assert_eq!(sender.decide(), SendDecision::Send { missed: 0 });
///     receiver.on_item()?;
/// }
/// assert_eq!(sender.decide(), SendDecision::Miss);
/// receiver.on_taken();
/// sender.grant(receiver.take_grant())?;
/// assert_eq!(sender.decide(), SendDecision::Send { missed: 1 });
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct SenderCredit {
    lag: SlowReader,
    limit: u32,
    credit: u32,
    unreported: u64,
    missed: u64,
}

impl SenderCredit {
    /// Creates the state for a reader that has granted no credit yet and may grant up to `limit`.
    #[must_use]
    pub const fn new(lag: SlowReader, limit: u32) -> Self {
        Self {
            lag,
            limit,
            credit: 0,
            unreported: 0,
            missed: 0,
        }
    }

    /// Adds credit that the reader has granted.
    ///
    /// # Errors
    /// Returns an error if the credit would exceed the limit; the credit is then unchanged.
    pub const fn grant(&mut self, credit: u32) -> Result<(), FlowError> {
        let sum = self.credit.saturating_add(credit);
        if sum > self.limit {
            return Err(FlowError::TooMuchCredit {
                credit: sum,
                limit: self.limit,
            });
        }
        self.credit = sum;
        Ok(())
    }

    /// Decides what to do with one item, and records the decision.
    pub const fn decide(&mut self) -> SendDecision {
        if self.credit > 0 {
            self.credit -= 1;
            return SendDecision::Send {
                missed: self.take_missed(),
            };
        }
        match self.lag {
            SlowReader::Wait => SendDecision::Wait,
            SlowReader::Disconnect => SendDecision::Disconnect,
            SlowReader::Miss => {
                self.missed += 1;
                self.unreported += 1;
                SendDecision::Miss
            }
        }
    }

    /// Returns the number of missed items that the reader has not been told of, which is to be sent
    /// before the next item or the end, and resets it.
    pub const fn take_missed(&mut self) -> u64 {
        std::mem::replace(&mut self.unreported, 0)
    }

    /// Returns the number of items that may be sent.
    #[must_use]
    pub const fn credit(&self) -> u32 {
        self.credit
    }

    /// Returns the total number of items that the reader missed.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }
}

/// The reader's half of the flow control.
///
/// Items that were granted and have not arrived, and items that have arrived and have not been
/// taken, never exceed the window together. More credit is granted once they fill at most half of
/// it.
#[derive(Debug, Clone)]
pub struct ReceiverCredit {
    window: u32,
    granted: u32,
    queued: u32,
}

impl ReceiverCredit {
    /// Creates the state of a reader that has granted no credit yet. The window is at least one.
    #[must_use]
    pub const fn new(window: u32) -> Self {
        Self {
            window: at_least_one(window),
            granted: 0,
            queued: 0,
        }
    }

    /// Changes the window. Credit is not revoked if it shrinks: no more is granted until it fits.
    pub const fn resize(&mut self, window: u32) {
        self.window = at_least_one(window);
    }

    /// Returns the window.
    #[must_use]
    pub const fn window(&self) -> u32 {
        self.window
    }

    /// Records an item that has arrived.
    ///
    /// # Errors
    /// Returns an error if the item was sent without credit. The caller must not keep it then.
    pub const fn on_item(&mut self) -> Result<(), FlowError> {
        if self.granted == 0 {
            return Err(FlowError::NoCredit);
        }
        self.granted -= 1;
        self.queued += 1;
        Ok(())
    }

    /// Records that an item was taken out of the queue.
    pub const fn on_taken(&mut self) {
        self.queued = self.queued.saturating_sub(1);
    }

    /// Returns the credit to grant now: zero, or enough to fill the window.
    #[must_use]
    pub const fn take_grant(&mut self) -> u32 {
        let used = self.granted + self.queued;
        if used > self.window / 2 {
            return 0;
        }
        let credit = self.window - used;
        self.granted += credit;
        credit
    }
}

const fn at_least_one(window: u32) -> u32 {
    if window == 0 { 1 } else { window }
}

#[cfg(test)]
mod tests;
