//! Lifecycle events of actors, for observers.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use crate::budget::charge_poll;
use crate::exit::Exit;
use crate::metric::{self, MetricEvent};
use crate::path::ActorPath;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::trace::TraceRegistry;

/// An event in the life of an actor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// An actor started for the first time.
    Started {
        /// The path of the actor.
        path: ActorPath,
    },
    /// An actor ended for good.
    Stopped {
        /// The path of the actor.
        path: ActorPath,
        /// The exit of the actor.
        exit: Exit,
    },
    /// An actor is restarted.
    Restarted {
        /// The path of the actor.
        path: ActorPath,
        /// The exit of the last incarnation.
        exit: Exit,
    },
    /// A supervisor gave up: too many of its children failed.
    Escalated {
        /// The path of the supervisor.
        path: ActorPath,
        /// The exit of the child.
        exit: Exit,
    },
    /// Messages were lost when their actor ended: the one being handled, or all in the mailbox.
    DeadLetter {
        /// The path of the actor.
        path: ActorPath,
        /// Number of messages.
        count: u64,
        /// The exit of the actor.
        exit: Exit,
    },
    /// Messages were dropped instead of being handled, because their time to live had passed or
    /// their askers had stopped waiting.
    Expired {
        /// The path of the actor.
        path: ActorPath,
        /// Number of messages.
        count: u64,
    },
    /// A hook is holding its worker, so other actors have to wait. Emitted once for each such
    /// period, while it lasts.
    LongHandler {
        /// The path of the actor.
        path: ActorPath,
        /// The time that the hook had held its worker when this was noticed.
        held: Duration,
    },
    /// Messages were dropped because a mailbox was full.
    Overflow {
        /// The path of the actor.
        path: ActorPath,
        /// Number of messages.
        count: u64,
    },
}

impl Event {
    /// Returns the path of the actor that the event is about.
    #[must_use]
    pub const fn path(&self) -> &ActorPath {
        match self {
            Self::Started { path }
            | Self::Stopped { path, .. }
            | Self::Restarted { path, .. }
            | Self::Escalated { path, .. }
            | Self::DeadLetter { path, .. }
            | Self::Expired { path, .. }
            | Self::LongHandler { path, .. }
            | Self::Overflow { path, .. } => path,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Started { .. } => f.write_str("started"),
            Self::Stopped { exit, .. } => write!(f, "stopped: {exit}"),
            Self::Restarted { exit, .. } => write!(f, "restarted: {exit}"),
            Self::Escalated { exit, .. } => write!(f, "escalated: {exit}"),
            Self::DeadLetter { count, exit, .. } => write!(f, "{count} dead letters: {exit}"),
            Self::Expired { count, .. } => write!(f, "{count} expired"),
            Self::LongHandler { held, .. } => write!(f, "has blocked its worker for {held:?}"),
            Self::Overflow { count, .. } => write!(f, "mailbox overflow: {count} dropped"),
        }
    }
}

/// Number of events that are queued for each subscriber.
const EVENT_QUEUE_LEN: usize = 1024;

#[derive(Default)]
pub(crate) struct EventBus {
    /// Checked before an event is built, so that an event without subscribers costs one load. This
    /// is a hint: a subscriber added at the same moment may miss the event. The queues themselves
    /// are behind a lock.
    subscribers: AtomicUsize,
    queues: Mutex<Vec<Arc<Mutex<EventQueue>>>>,
    traces: TraceRegistry,
    /// Written before `queues` is locked to close them, and read after `queues` was locked to add
    /// one. So either closing finds the new queue in the list, or the lock makes this flag visible
    /// to the new subscriber.
    closed: AtomicBool,
}

#[derive(Default)]
struct EventQueue {
    events: VecDeque<Event>,
    lost: u64,
    waker: Option<Waker>,
    closed: bool,
}

impl EventBus {
    /// Counts an occurrence and sends its event to all subscribers.
    pub(crate) fn emit(&self, turn: MetricEvent<'_>, make: impl FnOnce() -> Event) {
        metric::count(turn);
        if self.subscribers.load(Ordering::Relaxed) == 0 {
            return;
        }
        let event = make();
        self.traces.event(&event);
        let queues = self.queues.lock().clone();
        for queue in queues {
            let mut queue = queue.lock();
            let full = queue.events.len() == EVENT_QUEUE_LEN;
            let oldest = if full { queue.events.pop_front() } else { None };
            queue.lost += u64::from(full);
            queue.events.push_back(event.clone());
            let waker = queue.waker.take();
            drop(queue);
            drop(oldest);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }

    /// Returns all traces, which receive events too.
    pub(crate) const fn traces(&self) -> &TraceRegistry {
        &self.traces
    }

    /// Records that there is one more subscriber.
    pub(crate) fn add_subscriber(&self) {
        self.subscribers.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that there is one subscriber less.
    pub(crate) fn remove_subscriber(&self) {
        self.subscribers.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn subscribe(self: &Arc<Self>) -> EventStream {
        let queue = Arc::new(Mutex::new(EventQueue::default()));
        self.queues.lock().push(Arc::clone(&queue));
        // Read after the queue was added to the list, so that a concurrent close is not missed:
        // whichever of the two locks the list second sees what the other one did.
        if self.closed.load(Ordering::Relaxed) {
            queue.lock().closed = true;
        }
        self.add_subscriber();
        EventStream {
            queue,
            events: Arc::clone(self),
        }
    }

    /// Ends all streams after the events that are still queued.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.traces.close();
        let queues = self.queues.lock().clone();
        for queue in queues {
            let mut queue = queue.lock();
            queue.closed = true;
            let waker = queue.waker.take();
            drop(queue);
            if let Some(waker) = waker {
                waker.wake();
            }
        }
    }
}

/// A subscription to events.
///
/// It buffers the last 1024 unread events; older ones are dropped and counted as lost.
pub struct EventStream {
    queue: Arc<Mutex<EventQueue>>,
    events: Arc<EventBus>,
}

impl EventStream {
    /// Waits for the next event. Returns `None` once the system has shut down.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| charge_poll(cx, |cx| self.poll_next(cx))).await
    }

    fn poll_next(&self, cx: &Context<'_>) -> Poll<Option<Event>> {
        let mut queue = self.queue.lock();
        if let Some(event) = queue.events.pop_front() {
            return Poll::Ready(Some(event));
        }
        if queue.closed {
            return Poll::Ready(None);
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns the next event if one is queued.
    pub fn try_next(&mut self) -> Option<Event> {
        self.queue.lock().events.pop_front()
    }

    /// Returns the number of events that were lost because they were not read in time.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.queue.lock().lost
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.events
            .queues
            .lock()
            .retain(|queue| !Arc::ptr_eq(queue, &self.queue));
        self.events.remove_subscriber();
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}
