//! One call on guest threads: a future that is polled in turns.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

use super::JobContext;
use super::queue::RunQueue;
use super::turns::TurnState;

/// A call and its component.
pub(super) struct Job {
    context: JobContext,
    turns: TurnState,
    call: Mutex<Option<CallFuture>>,
    queue: Arc<RunQueue>,
}

type CallFuture = Pin<Box<dyn Future<Output = DeliverOutcome> + Send>>;

/// Delivers the outcome of a call. It is called after the turn has ended: the receiver may start
/// the next call of the same incarnation, which uses the same clock.
pub(super) type DeliverOutcome = Box<dyn FnOnce() + Send>;

impl Job {
    pub(super) fn new(context: JobContext, call: CallFuture, queue: &Arc<RunQueue>) -> Arc<Self> {
        Arc::new(Self {
            context,
            turns: TurnState::new(),
            call: Mutex::new(Some(call)),
            queue: Arc::clone(queue),
        })
    }

    /// Pushes it to the run queue for the first time.
    pub(super) fn start(self: &Arc<Self>) {
        self.wake_by_ref();
    }

    /// Abandons the call: a thread that runs it interrupts it, and a thread that takes it from the
    /// queue drops it.
    pub(super) fn abandon(self: &Arc<Self>) {
        if !self.turns.is_over() {
            self.context.clock.abandon();
            self.wake_by_ref();
        }
    }

    /// Drops the call.
    pub(super) fn discard(&self) {
        self.turns.end();
        let call = self.call.lock().take();
        drop(call);
    }

    /// Returns its virtual time, which is at least `least`.
    pub(super) fn virtual_time(&self, least: u64) -> u64 {
        self.context.usage.advance_virtual_time(least)
    }

    /// Polls it on this thread, for one turn.
    pub(super) fn run(self: &Arc<Self>) {
        self.turns.begin();
        let Some(mut call) = self.call.lock().take() else {
            return self.turns.end();
        };
        let JobContext {
            host,
            usage,
            clock,
            runtime,
        } = &self.context;
        if clock.is_abandoned() {
            self.turns.end();
            return drop(call);
        }
        let waker = Waker::from(Arc::clone(self));
        let polled = {
            let _runtime = runtime.as_ref().map(|runtime| runtime.enter());
            let _busy = host.ticks().begin_call();
            clock.start();
            let polled = call.as_mut().poll(&mut Context::from_waker(&waker));
            usage.charge_measured(clock.stop());
            polled
        };
        if let Poll::Ready(deliver) = polled {
            self.turns.end();
            // Dropping the call is not part of its time either.
            drop(call);
            return deliver();
        }
        *self.call.lock() = Some(call);
        if self.turns.pause() {
            self.queue.push(Arc::clone(self));
        }
    }
}

impl Wake for Job {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.turns.wake() {
            self.queue.push(Arc::clone(self));
        }
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}
