//! The actor that every subject runs: it counts, passes messages on, and fails on request.

use std::fmt;
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

/// Settings that a counter receives before the work begins.
pub struct Wiring<R> {
    /// The peers that tokens and numbers are passed on to.
    pub peers: Vec<R>,
    /// Number of additions after which the counter reports its sum.
    pub expected: u64,
    /// The receiver of the result.
    pub report: Option<oneshot::Sender<u64>>,
    /// The rendezvous that many counters report to, each after every `expected` additions.
    pub finish: Option<Arc<FinishLine>>,
    /// The time at which a counter that keeps itself busy stops.
    pub until: Option<Instant>,
}

/// A rendezvous of many actors that adds up their sums.
#[derive(Debug, Default)]
pub struct FinishLine {
    left: AtomicU64,
    sum: AtomicU64,
    open: Notify,
}

impl FinishLine {
    /// Sets the number of actors that have to arrive.
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

    /// Waits until all actors have arrived, and returns the sum of their sums.
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
            until: None,
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
    /// Adds a number, and reports the sum when it was the last one expected.
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

    /// Takes a token. Returns the next peer and the token with one hop less, or reports the number
    /// of hops if this was the last one.
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

    /// Computes, and returns the peer to send the next computation to (the actor itself), or `None`
    /// once time is up or the counter has no peers.
    pub fn churn(&mut self, computation: Computation) -> Option<&R> {
        self.add(1);
        computation.compute();
        let over = self
            .wiring
            .until
            .is_some_and(|until| until <= Instant::now());
        self.wiring.peers.first().filter(|_| !over)
    }

    /// Returns the peers that numbers are passed on to.
    #[inline]
    pub fn peers(&self) -> &[R] {
        &self.wiring.peers
    }

    /// Resets the counter and sets its wiring.
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
            // A driver that gave up has reported that itself.
            let _ = report.send(result);
        }
    }
}

/// A token that is passed from actor to actor.
#[derive(Debug, Clone, Copy)]
pub struct Token {
    /// Number of hops left.
    pub left: u64,
    /// Number of hops done.
    pub hops: u64,
}

/// Work that keeps a processor busy for some time. It is pure arithmetic, so nothing else makes
/// progress on that processor.
#[derive(Debug, Clone, Copy)]
pub struct Computation {
    steps: u64,
}

impl Computation {
    /// Returns the work that takes this time on an otherwise idle processor of this machine.
    pub fn lasting(time: Duration) -> Self {
        static STEPS_IN_A_MILLISECOND: OnceLock<f64> = OnceLock::new();
        let speed = STEPS_IN_A_MILLISECOND.get_or_init(|| {
            const STEPS: u64 = 200_000;
            let tries = (0..50).map(|_| {
                let start = Instant::now();
                black_box(Self { steps: STEPS }.compute());
                start.elapsed()
            });
            let least = tries.min().unwrap_or_default();
            STEPS as f64 / least.as_secs_f64() / 1000.0
        });
        Self {
            steps: (speed * time.as_secs_f64() * 1000.0) as u64,
        }
    }

    /// Does the work; the result is the same each time.
    pub fn compute(self) -> u64 {
        let step = |x: u64, _| {
            x.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407)
        };
        (0..black_box(self.steps)).fold(1, |x, at| black_box(step(x, at)))
    }
}

/// The way a counter is made to fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The handler returns an error.
    Error,
    /// The handler panics.
    Panic,
}

/// The error that a handler returns on request.
#[derive(Debug, Clone, Copy)]
pub struct InjectedFailure;

impl InjectedFailure {
    /// The message of a seeded panic; the panic hook of this program does not print it.
    pub const PANIC: &'static str = "planted";
}

impl fmt::Display for InjectedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::PANIC)
    }
}

impl std::error::Error for InjectedFailure {}

impl Failure {
    /// Fails: returns the error, or panics.
    pub fn fail(self) -> InjectedFailure {
        match self {
            Self::Error => InjectedFailure,
            Self::Panic => panic!("{}", InjectedFailure::PANIC),
        }
    }
}
