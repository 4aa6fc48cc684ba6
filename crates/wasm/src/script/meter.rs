//! The time that a run computes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::host::Host;

/// How long a run has computed: the spans in which it was polled. What it waits for in between
/// does not count, and neither does a machine that lets it wait.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// Nanoseconds of the spans that are over.
    spent: AtomicU64,
    /// When the span under way began, in nanoseconds since `START`, or 0.
    since: AtomicU64,
}

/// What instants are told from.
static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);

fn now() -> u64 {
    // One more, so that none is 0.
    u64::try_from(START.elapsed().as_nanos())
        .unwrap_or(u64::MAX)
        .saturating_add(1)
}

impl Clock {
    /// Begins a run.
    pub(super) fn begin(&self) {
        self.spent.store(0, Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
    }

    fn resume(&self) {
        self.since.store(now(), Ordering::Relaxed);
    }

    fn pause(&self) {
        let spent = self.spent();
        self.spent.store(nanos(spent), Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
    }

    /// How long it has computed by now.
    pub(super) fn spent(&self) -> Duration {
        let since = self.since.load(Ordering::Relaxed);
        let span = match since {
            0 => 0,
            since => now().saturating_sub(since),
        };
        Duration::from_nanos(self.spent.load(Ordering::Relaxed).saturating_add(span))
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A run whose time is taken, and during which the epochs move on.
pub(super) struct Metered<F> {
    run: Pin<Box<F>>,
    clock: Arc<Clock>,
    host: Host,
}

impl<F> Metered<F> {
    pub(super) const fn new(run: Pin<Box<F>>, clock: Arc<Clock>, host: Host) -> Self {
        Self { run, clock, host }
    }
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { run, clock, host } = &mut *self;
        let _busy = host.ticks().busy();
        clock.resume();
        let polled = run.as_mut().poll(cx);
        clock.pause();
        polled
    }
}
