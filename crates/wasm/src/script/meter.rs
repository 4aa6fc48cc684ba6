//! The computing time of a run.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use crate::host::Host;

/// The computing time of a run: the spans in which it was polled. The waits in between do not
/// count, nor does the time in which its task is not scheduled.
#[derive(Debug, Default)]
pub(super) struct ScriptClock {
    /// Nanoseconds of completed spans.
    spent: AtomicU64,
    /// Start of the current span, in nanoseconds since `START`, or 0.
    since: AtomicU64,
}

/// The origin of all instants.
static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);

fn now() -> u64 {
    // Add 1, so that no instant is 0.
    u64::try_from(START.elapsed().as_nanos())
        .unwrap_or(u64::MAX)
        .saturating_add(1)
}

impl ScriptClock {
    /// Resets the clock for a new run.
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

    /// Returns the computing time so far.
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

/// A run whose time is measured; it counts as a call in progress, so that the epochs advance.
pub(super) struct MeteredRun<F> {
    run: Pin<Box<F>>,
    clock: Arc<ScriptClock>,
    host: Host,
}

impl<F> MeteredRun<F> {
    pub(super) const fn new(run: Pin<Box<F>>, clock: Arc<ScriptClock>, host: Host) -> Self {
        Self { run, clock, host }
    }
}

impl<F: Future> Future for MeteredRun<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let Self { run, clock, host } = &mut *self;
        let _busy = host.ticks().begin_call();
        clock.resume();
        let polled = run.as_mut().poll(cx);
        clock.pause();
        polled
    }
}
