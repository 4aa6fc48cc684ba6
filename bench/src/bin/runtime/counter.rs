//! The actor that every subject runs: it counts, passes on, and fails when it is told to.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{Notify, oneshot};

/// What a counter is told before the work begins.
pub struct Wiring<R> {
    /// Where tokens and numbers are passed on to.
    pub peers: Vec<R>,
    /// After how many numbers the sum is reported.
    pub expected: u64,
    /// Where the result is reported to.
    pub report: Option<oneshot::Sender<u64>>,
    /// What many report to together, each time that so many numbers are seen.
    pub finish: Option<Arc<Finish>>,
}

/// A line that many actors cross, each with its sum.
#[derive(Debug, Default)]
pub struct Finish {
    left: AtomicU64,
    sum: AtomicU64,
    open: Notify,
}

impl Finish {
    /// Says how many have to cross it.
    pub fn expect(&self, actors: u64) {
        self.sum.store(0, Ordering::Relaxed);
        self.left.store(actors, Ordering::Release);
    }

    fn cross(&self, sum: u64) {
        self.sum.fetch_add(sum, Ordering::Relaxed);
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.open.notify_one();
        }
    }

    /// Waits until all have crossed it, and returns the sum of their sums.
    pub async fn sum(&self) -> u64 {
        self.open.notified().await;
        self.sum.load(Ordering::Acquire)
    }
}

impl<R> Default for Wiring<R> {
    fn default() -> Self {
        Self {
            peers: Vec::new(),
            expected: u64::MAX,
            report: None,
            finish: None,
        }
    }
}

/// The state of the actor.
pub struct Counter<R> {
    sum: u64,
    seen: u64,
    wiring: Wiring<R>,
}

impl<R> Default for Counter<R> {
    fn default() -> Self {
        Self {
            sum: 0,
            seen: 0,
            wiring: Wiring::default(),
        }
    }
}

impl<R> Counter<R> {
    /// Adds a number, and reports the sum with the last one expected.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.sum = self.sum.wrapping_add(value);
        self.seen += 1;
        if self.seen == self.wiring.expected {
            self.report(self.sum);
        }
    }

    /// Adds a number and returns the sum.
    #[inline]
    pub fn add_and_get(&mut self, value: u64) -> u64 {
        self.sum = self.sum.wrapping_add(value);
        self.sum
    }

    /// Takes a token: returns where it goes with one hop less, or reports that it arrived.
    #[inline]
    pub fn take(&mut self, token: Token) -> Option<(&R, Token)> {
        let token = Token {
            left: token.left - 1,
            hops: token.hops + 1,
        };
        if token.left == 0 {
            self.report(token.hops);
            return None;
        }
        self.wiring.peers.first().map(|next| (next, token))
    }

    /// Where numbers are passed on to.
    #[inline]
    pub fn peers(&self) -> &[R] {
        &self.wiring.peers
    }

    /// Begins anew.
    pub fn wire(&mut self, wiring: Wiring<R>) {
        *self = Self {
            sum: 0,
            seen: 0,
            wiring,
        };
    }

    #[cold]
    fn report(&mut self, result: u64) {
        if let Some(finish) = &self.wiring.finish {
            (self.sum, self.seen) = (0, 0);
            finish.cross(result);
        }
        if let Some(report) = self.wiring.report.take() {
            // A driver that gave up says so itself.
            let _ = report.send(result);
        }
    }
}

/// A token that is passed from actor to actor.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    /// Hops still to do.
    pub left: u64,
    /// Hops done.
    pub hops: u64,
}

/// How a counter is made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Its handler returns an error.
    Error,
    /// Its handler panics.
    Panic,
}

/// The error that a handler returns when it is told to.
#[derive(Debug, Clone, Copy)]
pub struct Planted;

impl Planted {
    /// What a planted panic says; the hook of this program is silent about it.
    pub const PANIC: &'static str = "planted";
}

impl fmt::Display for Planted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PANIC)
    }
}

impl std::error::Error for Planted {}

impl Failure {
    /// Fails.
    pub fn strike(self) -> Planted {
        match self {
            Self::Error => Planted,
            Self::Panic => panic!("{}", Planted::PANIC),
        }
    }
}
