//! The books of a stream: who may send how much. Pure: no queue, no waker, no clock.

/// Why the other side of a stream is not to be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FlowError {
    /// The reader granted more than one that keeps to its window may.
    #[error("credit of {credit} is more than the {limit} that a reader may grant")]
    TooMuchCredit {
        /// What the reader's credit would have come to.
        credit: u32,
        /// What it may come to.
        limit: u32,
    },
    /// The source sent an item for which it had no credit.
    #[error("an item came without credit")]
    NoCredit,
}

/// What happens to a reader that grants no credit while there is something to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Lag {
    /// The source waits for the slowest.
    #[default]
    Wait,
    /// The reader misses the item. It is told how many it missed, at the place where they were.
    Miss,
    /// The reader is disconnected.
    Disconnect,
}

/// What a source may do with an item for one reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Offer {
    /// Send it, after the news that so many were missed before it.
    Send {
        /// How many the reader missed since the last item that it was sent.
        missed: u64,
    },
    /// Not now: the source waits for credit.
    Wait,
    /// The reader misses it.
    Miss,
    /// The reader is too slow: send it its end and forget it.
    Disconnect,
}

/// The source's half of the books of one reader.
///
/// With [`Inlet`] on the other side it is the whole protocol: grants go one way, items the other.
/// Both are pure, so that the two halves may sit in one process or at the ends of a socket.
///
/// ```
/// use strowger::{Inlet, Lag, Offer, Outlet};
///
/// # fn main() -> Result<(), strowger::FlowError> {
/// let mut outlet = Outlet::new(Lag::Miss, 4);
/// let mut inlet = Inlet::new(2);
/// outlet.grant(inlet.refill())?;
/// for _ in 0..2 {
///     assert_eq!(outlet.offer(), Offer::Send { missed: 0 });
///     inlet.arrived()?;
/// }
/// assert_eq!(outlet.offer(), Offer::Miss);
/// inlet.taken();
/// outlet.grant(inlet.refill())?;
/// assert_eq!(outlet.offer(), Offer::Send { missed: 1 });
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Outlet {
    lag: Lag,
    limit: u32,
    credit: u32,
    unreported: u64,
    missed: u64,
}

impl Outlet {
    /// Books of a reader that has granted nothing yet, and that may grant up to `limit`.
    #[must_use]
    pub const fn new(lag: Lag, limit: u32) -> Self {
        Self {
            lag,
            limit,
            credit: 0,
            unreported: 0,
            missed: 0,
        }
    }

    /// Takes credit that the reader grants.
    ///
    /// # Errors
    /// When there would be more than the limit; then nothing is taken.
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

    /// Decides about one item, and writes it down.
    pub const fn offer(&mut self) -> Offer {
        if self.credit > 0 {
            self.credit -= 1;
            return Offer::Send {
                missed: self.report(),
            };
        }
        match self.lag {
            Lag::Wait => Offer::Wait,
            Lag::Disconnect => Offer::Disconnect,
            Lag::Miss => {
                self.missed += 1;
                self.unreported += 1;
                Offer::Miss
            }
        }
    }

    /// How many the reader missed of which it was not told, to be told before the next item or
    /// the end.
    pub const fn report(&mut self) -> u64 {
        std::mem::replace(&mut self.unreported, 0)
    }

    /// How many items may be sent.
    #[must_use]
    pub const fn credit(&self) -> u32 {
        self.credit
    }

    /// How many items the reader missed.
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }
}

/// The reader's half of the books.
///
/// What was granted and has not come, and what has come and is not taken, are together never
/// more than the window. They are filled up again once they are at most half of it.
#[derive(Debug, Clone)]
pub struct Inlet {
    window: u32,
    granted: u32,
    waiting: u32,
}

impl Inlet {
    /// Books of a reader with a window of at least one, which has granted nothing yet.
    #[must_use]
    pub const fn new(window: u32) -> Self {
        Self {
            window: at_least_one(window),
            granted: 0,
            waiting: 0,
        }
    }

    /// Changes the window. A smaller one takes nothing back: less is granted until it fits.
    pub const fn resize(&mut self, window: u32) {
        self.window = at_least_one(window);
    }

    /// The window.
    #[must_use]
    pub const fn window(&self) -> u32 {
        self.window
    }

    /// Notes an item that came.
    ///
    /// # Errors
    /// When it came without credit; then it must not be kept.
    pub const fn arrived(&mut self) -> Result<(), FlowError> {
        if self.granted == 0 {
            return Err(FlowError::NoCredit);
        }
        self.granted -= 1;
        self.waiting += 1;
        Ok(())
    }

    /// Notes that an item which came was taken.
    pub const fn taken(&mut self) {
        self.waiting = self.waiting.saturating_sub(1);
    }

    /// The credit to grant now: nothing, or what fills the window up.
    #[must_use]
    pub const fn refill(&mut self) -> u32 {
        let used = self.granted + self.waiting;
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
