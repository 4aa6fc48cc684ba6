//! What happens to actors, for those who want to know.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;

use crate::budget::charged;
use crate::exit::Exit;
use crate::metric::{self, Count};
use crate::path::Path;
use crate::sync::{AtomicBool, AtomicUsize, Ordering};
use crate::trace::Taps;

/// Something that happened to an actor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// An actor started for the first time.
    Started {
        /// The actor.
        path: Path,
    },
    /// An actor ended for good.
    Stopped {
        /// The actor.
        path: Path,
        /// Why it ended.
        exit: Exit,
    },
    /// An actor is started again.
    Restarted {
        /// The actor.
        path: Path,
        /// Why its last incarnation ended.
        exit: Exit,
    },
    /// A supervisor gave up.
    Escalated {
        /// The supervisor.
        path: Path,
        /// Why its child ended.
        exit: Exit,
    },
    /// Messages were lost with their actor: the one that it was handling, or all that waited.
    DeadLetter {
        /// The actor.
        path: Path,
        /// How many messages.
        count: u64,
        /// Why the actor ended.
        exit: Exit,
    },
    /// Messages were dropped instead of being handled, because their time to live had passed or
    /// those who asked had stopped waiting.
    Expired {
        /// The actor.
        path: Path,
        /// How many messages.
        count: u64,
    },
    /// A hook holds its worker: others wait for it. Told once for each time, while it lasts.
    LongHandler {
        /// The actor.
        path: Path,
        /// How long it had held its worker when that was seen.
        held: Duration,
    },
    /// Messages were dropped because there was no room.
    Overflow {
        /// The actor.
        path: Path,
        /// How many messages.
        count: u64,
    },
}

impl Event {
    /// The actor that the event is about.
    #[must_use]
    pub const fn path(&self) -> &Path {
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
            Self::DeadLetter { count, exit, .. } => write!(f, "dead letters, {count}: {exit}"),
            Self::Expired { count, .. } => write!(f, "{count} expired"),
            Self::LongHandler { held, .. } => write!(f, "holds its worker for {held:?}"),
            Self::Overflow { count, .. } => write!(f, "overflow, {count} dropped"),
        }
    }
}

/// How many events may wait for one subscriber.
const CAPACITY: usize = 1024;

#[derive(Default)]
pub(crate) struct Events {
    /// Read before an event is made, so that events nobody wants cost one load. A hint: whoever
    /// subscribes while an event is made may miss that one, and the queues are behind a lock.
    subscribers: AtomicUsize,
    queues: Mutex<Vec<Arc<Mutex<Queue>>>>,
    taps: Taps,
    /// Written before the list is locked to close the queues, read after it was locked to add one.
    /// So either the close finds the queue in the list, or the lock shows that it came first.
    closed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    lost: u64,
    waker: Option<Waker>,
    closed: bool,
}

impl Events {
    /// Counts a turn, and tells it to those who want events.
    pub(crate) fn emit(&self, turn: Count<'_>, make: impl FnOnce() -> Event) {
        metric::count(turn);
        if self.subscribers.load(Ordering::Relaxed) == 0 {
            return;
        }
        let event = make();
        self.taps.event(&event);
        let queues = self.queues.lock().clone();
        for queue in queues {
            let mut queue = queue.lock();
            let full = queue.events.len() == CAPACITY;
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

    /// All traces, which want events as well.
    pub(crate) const fn taps(&self) -> &Taps {
        &self.taps
    }

    /// Notes that one more wants events.
    pub(crate) fn wanted(&self) {
        self.subscribers.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that one of them does not any more.
    pub(crate) fn unwanted(&self) {
        self.subscribers.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn subscribe(self: &Arc<Self>) -> EventStream {
        let queue = Arc::new(Mutex::new(Queue::default()));
        self.queues.lock().push(Arc::clone(&queue));
        // Read after it is in the list, so that a close in this moment is not missed: whoever comes
        // second at the lock of the list sees what the first one did.
        if self.closed.load(Ordering::Relaxed) {
            queue.lock().closed = true;
        }
        self.wanted();
        EventStream {
            queue,
            hub: Arc::clone(self),
        }
    }

    /// Ends all streams once they are read out.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        self.taps.close();
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

/// A subscription to events. Holds the last 1024 that were not read; older ones are lost, and
/// counted.
pub struct EventStream {
    queue: Arc<Mutex<Queue>>,
    hub: Arc<Events>,
}

impl EventStream {
    /// Waits for the next event; `None` when the system has shut down.
    pub async fn next(&mut self) -> Option<Event> {
        poll_fn(|cx| charged(cx, |cx| self.poll_next(cx))).await
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

    /// The next event, if one waits.
    pub fn try_next(&mut self) -> Option<Event> {
        self.queue.lock().events.pop_front()
    }

    /// How many events were lost because they were not read in time.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.queue.lock().lost
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.hub
            .queues
            .lock()
            .retain(|queue| !Arc::ptr_eq(queue, &self.queue));
        self.hub.unwanted();
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream")
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}
