//! Traces: a record of what single actors do, for an observer.
//!
//! An actor that is not traced pays one relaxed load per message. A traced actor writes records
//! into a queue of bounded length and never waits for it: a record that finds no room, or meets the
//! reader holding the lock, is counted as lost. A trace ends after a number of records, a number of
//! bytes or a time, even if nobody reads it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock};
use tokio::time::{Instant, Sleep};

use crate::actor::Actor;
use crate::budget::charge_poll;
use crate::cell::{ActorCell, ActorCore, ErasedCell};
use crate::clock;
use crate::event::{Event, EventBus};
use crate::monitor::Signal;
use crate::path::{ActorPath, PathPattern};
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// The limits after which a trace ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceLimits {
    /// Number of records.
    pub records: u64,
    /// Number of bytes: those of paths and names, and 64 per record.
    pub bytes: usize,
    /// Time since the start of the trace.
    pub duration: Duration,
}

impl Default for TraceLimits {
    fn default() -> Self {
        Self {
            records: 1000,
            bytes: 1024 * 1024,
            duration: Duration::from_secs(60),
        }
    }
}

/// The reason why a trace ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceEnd {
    /// The limit on records was reached.
    Records,
    /// The limit on bytes was reached.
    Bytes,
    /// The time limit was reached.
    Time,
    /// The system has shut down.
    Closed,
}

/// One step of an actor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TraceRecord {
    /// The time of the step, counted from the start of the trace.
    pub at: Duration,
    /// The path of the actor.
    pub path: ActorPath,
    /// The step that the message took.
    pub step: TraceStep,
}

/// A step that an actor took.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TraceStep {
    /// The actor began to handle a message.
    Message {
        /// The name that [`Actor::describe`] returns for the message.
        name: Cow<'static, str>,
        /// Number of messages queued behind it.
        waiting: usize,
    },
    /// The actor finished the message that it began last.
    Handled {
        /// The time it took, including waits.
        took: Duration,
        /// `true` if the handler returned an error.
        failed: bool,
    },
    /// The actor received a signal.
    Signal {
        /// `down`, `child-ended`, `task-ended` or `pipe-panicked`.
        name: &'static str,
    },
    /// A lifecycle event of the actor.
    Event(Event),
}

impl fmt::Display for TraceStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { name, waiting: 0 } => write!(f, "handles {name}"),
            Self::Message { name, waiting } => write!(f, "handles {name}, {waiting} queued"),
            Self::Handled { took, failed } => {
                let how = if *failed { "failed" } else { "done" };
                write!(f, "{how} after {took:?}")
            }
            Self::Signal { name } => write!(f, "receives signal {name}"),
            Self::Event(event) => write!(f, "{event}"),
        }
    }
}

impl fmt::Display for TraceRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.as_secs_f64();
        write!(f, "{seconds:>12.6} {} {}", self.path, self.step)
    }
}

/// Number of records that are queued for the reader; further ones are lost.
const TRACE_QUEUE_LEN: usize = 1024;

/// The maximum length of a message name, in bytes.
const MAX_NAME_LEN: usize = 256;

/// The size that a record counts in addition to its texts, in bytes.
const RECORD_OVERHEAD: usize = 64;

/// Number of attempts to lock the queue before a record is dropped as lost.
const MAX_LOCK_TRIES: usize = 64;

/// The queue of records of one trace.
struct TraceQueue {
    pattern: PathPattern,
    limits: TraceLimits,
    began: Instant,
    until: Instant,
    queue: Mutex<RecordQueue>,
    /// A plain counter; nothing else depends on it.
    lost: AtomicU64,
    /// A hint that saves locking the queue; the state under the lock decides.
    over: AtomicBool,
}

#[derive(Default)]
struct RecordQueue {
    records: VecDeque<TraceRecord>,
    taken: u64,
    bytes: usize,
    end: Option<TraceEnd>,
    waker: Option<Waker>,
}

impl TraceQueue {
    fn matches(&self, path: &ActorPath) -> bool {
        !self.over.load(Ordering::Relaxed) && self.pattern.matches(path)
    }

    /// Locks the queue, unless another thread holds the lock for long.
    fn try_lock_queue(&self) -> Option<MutexGuard<'_, RecordQueue>> {
        for _ in 0..MAX_LOCK_TRIES {
            if let Some(queue) = self.queue.try_lock() {
                return Some(queue);
            }
            std::hint::spin_loop();
        }
        None
    }

    fn push(&self, now: Instant, path: &ActorPath, step: TraceStep) {
        let Some(mut queue) = self.try_lock_queue() else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if queue.end.is_some() {
            return;
        }
        let bytes = queue.bytes + RECORD_OVERHEAD + path.as_str().len() + step.bytes();
        if now >= self.until {
            self.finish(queue, TraceEnd::Time);
        } else if bytes > self.limits.bytes {
            self.finish(queue, TraceEnd::Bytes);
        } else if queue.records.len() >= TRACE_QUEUE_LEN {
            drop(queue);
            self.lost.fetch_add(1, Ordering::Relaxed);
        } else {
            queue.records.push_back(TraceRecord {
                at: now.saturating_duration_since(self.began),
                path: path.clone(),
                step,
            });
            queue.bytes = bytes;
            queue.taken += 1;
            if queue.taken >= self.limits.records {
                self.finish(queue, TraceEnd::Records);
            } else {
                let waker = queue.waker.take();
                drop(queue);
                waker.into_iter().for_each(Waker::wake);
            }
        }
    }

    fn finish(&self, mut queue: MutexGuard<'_, RecordQueue>, end: TraceEnd) {
        queue.end.get_or_insert(end);
        self.over.store(true, Ordering::Relaxed);
        let waker = queue.waker.take();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl TraceStep {
    fn bytes(&self) -> usize {
        match self {
            Self::Message { name, .. } => name.len(),
            Self::Handled { .. } | Self::Signal { .. } | Self::Event(_) => 0,
        }
    }
}

/// All traces of a system.
#[derive(Default)]
pub(crate) struct TraceRegistry {
    /// Checked before a new actor is matched, so that actors start as fast as without traces. This
    /// is a hint, written under the lock of the list: an actor that started before a trace was
    /// added to the list is marked by the thread that adds it.
    any: AtomicBool,
    list: RwLock<Vec<Arc<TraceQueue>>>,
}

impl TraceRegistry {
    /// Returns `true` if a trace matches the actor of a new cell.
    pub(crate) fn any_matches(&self, path: impl FnOnce() -> ActorPath) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let path = path();
        self.list.read().iter().any(|trace| trace.matches(&path))
    }

    /// Records a step of an actor in all matching traces. Clears the actor's mark if there are
    /// none.
    #[cold]
    fn record(&self, node: &ActorCore, step: impl FnOnce() -> TraceStep) {
        let path = node.path();
        let list = self.list.read();
        if !list.iter().any(|trace| trace.matches(&path)) {
            // Done under the lock of the list: a trace that begins now is added later, and then
            // marks the actor again.
            node.set_traced(false);
            return;
        }
        let traces = list.clone();
        drop(list);
        let (now, step) = (node.shared.now(), step());
        for trace in traces.iter().filter(|trace| trace.matches(&path)) {
            trace.push(now, &path, step.clone());
        }
    }

    /// Records an event in all matching traces.
    pub(crate) fn event(&self, event: &Event) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let now = clock::now();
        let traces = self.list.read().clone();
        for trace in traces.iter().filter(|trace| trace.matches(event.path())) {
            trace.push(now, event.path(), TraceStep::Event(event.clone()));
        }
    }

    /// Ends all traces.
    pub(crate) fn close(&self) {
        let traces = mem::take(&mut *self.list.write());
        for trace in traces {
            trace.finish(trace.queue.lock(), TraceEnd::Closed);
        }
    }

    fn add(&self, trace: Arc<TraceQueue>) {
        let mut list = self.list.write();
        list.push(trace);
        self.any.store(true, Ordering::Relaxed);
    }

    fn remove(&self, trace: &Arc<TraceQueue>) {
        let mut list = self.list.write();
        list.retain(|one| !Arc::ptr_eq(one, trace));
        self.any.store(!list.is_empty(), Ordering::Relaxed);
    }
}

/// Records that a traced actor takes a message, and returns the time.
#[cold]
pub(crate) fn begin<A: Actor>(cell: &ActorCell<A::Msg>, message: &A::Msg) -> Option<Box<Instant>> {
    let node = &cell.core;
    node.shared.events.traces().record(node, || {
        // Describing a message runs user code, which must not be able to end the actor.
        let name = catch_unwind(AssertUnwindSafe(|| A::describe(message)));
        let mut name = name.unwrap_or(Cow::Borrowed("<panic in `Debug`>"));
        if name.len() > MAX_NAME_LEN {
            let end = (0..=MAX_NAME_LEN)
                .rev()
                .find(|at| name.is_char_boundary(*at));
            name.to_mut().truncate(end.unwrap_or(0));
        }
        TraceStep::Message {
            name,
            waiting: cell.stats().depth,
        }
    });
    Some(Box::new(node.shared.now()))
}

/// Records that a traced actor has handled the message that it began at `began`.
#[cold]
pub(crate) fn end(node: &ActorCore, began: Instant, failed: bool) {
    node.shared
        .events
        .traces()
        .record(node, || TraceStep::Handled {
            took: node.shared.now().saturating_duration_since(began),
            failed,
        });
}

/// Records that a traced actor receives a signal.
#[cold]
pub(crate) fn signal(node: &ActorCore, signal: &Signal) {
    let name = match signal {
        Signal::Down { .. } => "down",
        Signal::ChildEnded { .. } => "child-ended",
        Signal::TaskEnded { .. } => "task-ended",
        Signal::PipePanicked { .. } => "pipe-panicked",
        Signal::Notified => "notified",
    };
    let step = || TraceStep::Signal { name };
    node.shared.events.traces().record(node, step);
}

/// Reads the records of a trace, created by [`ActorSystem::trace`](crate::ActorSystem::trace).
/// Dropping it ends the trace.
pub struct TraceReader {
    trace: Arc<TraceQueue>,
    events: Arc<EventBus>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Records taken out of the queue, all at once, so that actors rarely find the reader holding
    /// the lock.
    ready: VecDeque<TraceRecord>,
}

impl TraceReader {
    pub(crate) fn attach(
        events: &Arc<EventBus>,
        pattern: PathPattern,
        limits: TraceLimits,
        now: Instant,
    ) -> Self {
        let trace = Arc::new(TraceQueue {
            pattern,
            limits,
            began: now,
            until: clock::saturating_add(now, limits.duration),
            queue: Mutex::default(),
            lost: AtomicU64::new(0),
            over: AtomicBool::new(false),
        });
        events.traces().add(Arc::clone(&trace));
        events.add_subscriber();
        Self {
            trace,
            events: Arc::clone(events),
            timer: None,
            ready: VecDeque::new(),
        }
    }

    /// Marks an actor that existed before the trace, if its path matches.
    pub(crate) fn mark(&self, node: &ActorCore) {
        if self.trace.pattern.matches(&node.path()) {
            node.set_traced(true);
        }
    }

    /// Waits for the next record. Returns `None` when the trace has ended and all records were
    /// read.
    pub async fn next(&mut self) -> Option<TraceRecord> {
        poll_fn(|cx| charge_poll(cx, |cx| self.poll_next(cx))).await
    }

    /// Polls for the next record. Returns `None` when the trace has ended and all records were
    /// read.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<TraceRecord>> {
        if let Some(record) = self.ready.pop_front() {
            return Poll::Ready(Some(record));
        }
        let until = self.trace.until;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        let late = timer.as_mut().poll(cx).is_ready();
        let mut queue = self.trace.queue.lock();
        mem::swap(&mut queue.records, &mut self.ready);
        if let Some(record) = self.ready.pop_front() {
            return Poll::Ready(Some(record));
        }
        if late && queue.end.is_none() {
            self.trace.finish(queue, TraceEnd::Time);
            return Poll::Ready(None);
        }
        if queue.end.is_some() {
            return Poll::Ready(None);
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Returns the number of lost records: those that found the queue full or locked.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.trace.lost.load(Ordering::Relaxed)
    }

    /// Returns the reason why the trace has ended, if it has. There may be unread records left.
    #[must_use]
    pub fn end_reason(&self) -> Option<TraceEnd> {
        self.trace.queue.lock().end
    }
}

impl Drop for TraceReader {
    fn drop(&mut self) {
        self.trace.over.store(true, Ordering::Relaxed);
        self.events.traces().remove(&self.trace);
        self.events.remove_subscriber();
    }
}

impl fmt::Debug for TraceReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer")
            .field("pattern", &self.trace.pattern)
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}
