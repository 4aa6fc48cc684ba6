//! One call on guest threads: a future that is polled in turns.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

use super::Party;
use super::queue::RunQueue;

/// A call, with whose it is.
pub(super) struct Job {
    party: Party,
    state: AtomicU8,
    call: Mutex<Option<Call>>,
    queue: Arc<RunQueue>,
}

type Call = Pin<Box<dyn Future<Output = Deliver> + Send>>;

/// Gives the outcome of a call to whoever waits. The turn is over by then: whoever has the outcome
/// may begin the next call of the same life, whose time is taken by the same clock.
pub(super) type Deliver = Box<dyn FnOnce() + Send>;

/// It waits for something else than a thread.
const IDLE: u8 = 0;
/// It is in the run queue.
const QUEUED: u8 = 1;
/// A thread polls it.
const RUNNING: u8 = 2;
/// A thread polls it, and it was woken meanwhile.
const WOKEN: u8 = 3;
/// It is over.
const DONE: u8 = 4;

impl Job {
    pub(super) fn new(party: Party, call: Call, queue: &Arc<RunQueue>) -> Arc<Self> {
        Arc::new(Self {
            party,
            state: AtomicU8::new(IDLE),
            call: Mutex::new(Some(call)),
            queue: Arc::clone(queue),
        })
    }

    /// Puts it into the run queue for the first time.
    pub(super) fn start(self: &Arc<Self>) {
        self.wake_by_ref();
    }

    /// Nobody waits for it any more: a thread that runs it interrupts it, and one that finds it in
    /// the queue drops it.
    pub(super) fn abandon(self: &Arc<Self>) {
        if self.state.load(Ordering::Acquire) != DONE {
            self.party.clock.abandon();
            self.wake_by_ref();
        }
    }

    /// Drops what is left of it.
    pub(super) fn discard(&self) {
        self.state.store(DONE, Ordering::Release);
        let call = self.call.lock().take();
        drop(call);
    }

    /// Where it stands in the run queue, no better than one that has been there all the time.
    pub(super) fn stand(&self, least: u64) -> u64 {
        self.party.usage.no_earlier_than(least)
    }

    /// Polls it on this thread, for one turn.
    pub(super) fn run(self: &Arc<Self>) {
        self.state.store(RUNNING, Ordering::Release);
        let Some(mut call) = self.call.lock().take() else {
            return self.state.store(DONE, Ordering::Release);
        };
        let Party {
            host,
            usage,
            clock,
            runtime,
        } = &self.party;
        if clock.is_abandoned() {
            self.state.store(DONE, Ordering::Release);
            return drop(call);
        }
        let waker = Waker::from(Arc::clone(self));
        let polled = {
            let _runtime = runtime.as_ref().map(|runtime| runtime.enter());
            let _busy = host.ticks().busy();
            clock.start();
            let polled = call.as_mut().poll(&mut Context::from_waker(&waker));
            usage.measured(clock.stop().cpu);
            polled
        };
        if let Poll::Ready(deliver) = polled {
            self.state.store(DONE, Ordering::Release);
            // What is left of the call is not part of its time either.
            drop(call);
            return deliver();
        }
        *self.call.lock() = Some(call);
        let idle = self
            .state
            .compare_exchange(RUNNING, IDLE, Ordering::AcqRel, Ordering::Acquire);
        if idle.is_err() {
            self.state.store(QUEUED, Ordering::Release);
            self.queue.push(Arc::clone(self));
        }
    }
}

impl Wake for Job {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let next = |state| match state {
            IDLE => Some(QUEUED),
            RUNNING => Some(WOKEN),
            _ => None,
        };
        let before = self
            .state
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        if before == Ok(IDLE) {
            self.queue.push(Arc::clone(self));
        }
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Job")
    }
}
