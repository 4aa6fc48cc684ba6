//! What single actors do, written down for somebody who watches.
//!
//! An actor that nobody traces pays one relaxed load for each message. One that is traced writes
//! records into a queue of bounded length and never waits for it: what finds no room there, or
//! meets the reader in it, is counted and lost. A trace is over after so many records, octets or
//! so much time, whoever reads it.

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
use crate::budget::charged;
use crate::cell::{AnyCell, Cell, Node};
use crate::clock;
use crate::event::{Event, Events};
use crate::monitor::Signal;
use crate::path::{Path, PathPattern};
use crate::sync::{AtomicBool, AtomicU64, Ordering};

/// After how much a trace is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TraceLimits {
    /// So many records.
    pub records: u64,
    /// So many octets of paths and names, with 64 for each record.
    pub octets: usize,
    /// So much time.
    pub within: Duration,
}

impl Default for TraceLimits {
    fn default() -> Self {
        Self {
            records: 1000,
            octets: 1024 * 1024,
            within: Duration::from_secs(60),
        }
    }
}

/// Why a trace is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceEnd {
    /// It has its records.
    Records,
    /// It has its octets.
    Octets,
    /// Its time has passed.
    Time,
    /// The system has shut down.
    Closed,
}

/// Something that an actor did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TraceRecord {
    /// When, counted from the beginning of the trace.
    pub at: Duration,
    /// The actor.
    pub path: Path,
    /// What it did.
    pub step: TraceStep,
}

/// What an actor did.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum TraceStep {
    /// It began to handle a message.
    Message {
        /// What [`Actor::describe`] says of the message.
        name: Cow<'static, str>,
        /// How many messages wait behind it.
        waiting: usize,
    },
    /// It handled the message that it began last.
    Handled {
        /// How long that took, with what it waited for.
        took: Duration,
        /// Whether it returned an error.
        failed: bool,
    },
    /// It was told about another actor or about a task of its own.
    Signal {
        /// `down`, `child-ended` or `task-ended`.
        name: &'static str,
    },
    /// A turn in its life.
    Event(Event),
}

impl fmt::Display for TraceStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Message { name, waiting: 0 } => write!(f, "takes {name}"),
            Self::Message { name, waiting } => write!(f, "takes {name}, {waiting} wait"),
            Self::Handled { took, failed } => {
                let how = if *failed { "failed" } else { "done" };
                write!(f, "{how} after {took:?}")
            }
            Self::Signal { name } => write!(f, "is told {name}"),
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

/// So many records wait for a reader; what comes then is lost.
const WAITING: usize = 1024;

/// The longest name of a message, in octets.
const NAME: usize = 256;

/// What a record takes besides its texts.
const RECORD: usize = 64;

/// How often a record tries to get into the queue before it is lost.
const TRIES: usize = 64;

/// The place where records of one trace wait.
struct Tap {
    pattern: PathPattern,
    limits: TraceLimits,
    began: Instant,
    until: Instant,
    queue: Mutex<Queue>,
    /// Only counted.
    lost: AtomicU64,
    /// A hint that saves the way to the queue, whose lock decides.
    over: AtomicBool,
}

#[derive(Default)]
struct Queue {
    records: VecDeque<TraceRecord>,
    taken: u64,
    octets: usize,
    end: Option<TraceEnd>,
    waker: Option<Waker>,
}

impl Tap {
    fn wants(&self, path: &Path) -> bool {
        !self.over.load(Ordering::Relaxed) && self.pattern.matches(path)
    }

    /// The queue, unless somebody else is in it for long.
    fn queue_soon(&self) -> Option<MutexGuard<'_, Queue>> {
        for _ in 0..TRIES {
            if let Some(queue) = self.queue.try_lock() {
                return Some(queue);
            }
            std::hint::spin_loop();
        }
        None
    }

    fn push(&self, now: Instant, path: &Path, step: TraceStep) {
        let Some(mut queue) = self.queue_soon() else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        if queue.end.is_some() {
            return;
        }
        let octets = queue.octets + RECORD + path.as_str().len() + step.octets();
        if now >= self.until {
            self.finish(queue, TraceEnd::Time);
        } else if octets > self.limits.octets {
            self.finish(queue, TraceEnd::Octets);
        } else if queue.records.len() >= WAITING {
            drop(queue);
            self.lost.fetch_add(1, Ordering::Relaxed);
        } else {
            queue.records.push_back(TraceRecord {
                at: now.saturating_duration_since(self.began),
                path: path.clone(),
                step,
            });
            queue.octets = octets;
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

    fn finish(&self, mut queue: MutexGuard<'_, Queue>, end: TraceEnd) {
        queue.end.get_or_insert(end);
        self.over.store(true, Ordering::Relaxed);
        let waker = queue.waker.take();
        drop(queue);
        waker.into_iter().for_each(Waker::wake);
    }
}

impl TraceStep {
    fn octets(&self) -> usize {
        match self {
            Self::Message { name, .. } => name.len(),
            Self::Handled { .. } | Self::Signal { .. } | Self::Event(_) => 0,
        }
    }
}

/// All traces of a system.
#[derive(Default)]
pub(crate) struct Taps {
    /// Read before a new actor is looked at, so that actors start as fast as without traces. A
    /// hint: the list is behind a lock, under which this is written, and an actor that started
    /// before the trace was in the list is marked by whoever puts it there.
    any: AtomicBool,
    list: RwLock<Vec<Arc<Tap>>>,
}

impl Taps {
    /// Whether a trace wants the actor of a new cell.
    pub(crate) fn want(&self, path: impl FnOnce() -> Path) -> bool {
        if !self.any.load(Ordering::Relaxed) {
            return false;
        }
        let path = path();
        self.list.read().iter().any(|tap| tap.wants(&path))
    }

    /// Writes a step of an actor for all who want it; takes its mark away if nobody does.
    #[cold]
    fn note(&self, node: &Node, step: impl FnOnce() -> TraceStep) {
        let path = node.path();
        let list = self.list.read();
        if !list.iter().any(|tap| tap.wants(&path)) {
            // Under the lock: a trace that begins now marks the actor after this.
            node.set_traced(false);
            return;
        }
        let taps = list.clone();
        drop(list);
        let (now, step) = (node.shared.now(), step());
        for tap in taps.iter().filter(|tap| tap.wants(&path)) {
            tap.push(now, &path, step.clone());
        }
    }

    /// Writes an event for all who want it.
    pub(crate) fn event(&self, event: &Event) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        let now = clock::now();
        let taps = self.list.read().clone();
        for tap in taps.iter().filter(|tap| tap.wants(event.path())) {
            tap.push(now, event.path(), TraceStep::Event(event.clone()));
        }
    }

    /// Ends all traces.
    pub(crate) fn close(&self) {
        let taps = mem::take(&mut *self.list.write());
        for tap in taps {
            tap.finish(tap.queue.lock(), TraceEnd::Closed);
        }
    }

    fn add(&self, tap: Arc<Tap>) {
        let mut list = self.list.write();
        list.push(tap);
        self.any.store(true, Ordering::Relaxed);
    }

    fn remove(&self, tap: &Arc<Tap>) {
        let mut list = self.list.write();
        list.retain(|one| !Arc::ptr_eq(one, tap));
        self.any.store(!list.is_empty(), Ordering::Relaxed);
    }
}

/// Writes that a traced actor takes a message; returns when it did.
#[cold]
pub(crate) fn begin<A: Actor>(cell: &Cell<A::Msg>, message: &A::Msg) -> Option<Box<Instant>> {
    let node = &cell.node;
    node.shared.events.taps().note(node, || {
        // What an actor says of its messages must not be what ends it.
        let name = catch_unwind(AssertUnwindSafe(|| A::describe(message)));
        let mut name = name.unwrap_or(Cow::Borrowed("a message that panics when described"));
        if name.len() > NAME {
            let end = (0..=NAME).rev().find(|at| name.is_char_boundary(*at));
            name.to_mut().truncate(end.unwrap_or(0));
        }
        TraceStep::Message {
            name,
            waiting: cell.figures().depth,
        }
    });
    Some(Box::new(node.shared.now()))
}

/// Writes that a traced actor has handled the message that it began then.
#[cold]
pub(crate) fn end(node: &Node, began: Instant, failed: bool) {
    node.shared.events.taps().note(node, || TraceStep::Handled {
        took: node.shared.now().saturating_duration_since(began),
        failed,
    });
}

/// Writes that a traced actor is told something.
#[cold]
pub(crate) fn signal(node: &Node, signal: &Signal) {
    let name = match signal {
        Signal::Down { .. } => "down",
        Signal::ChildEnded { .. } => "child-ended",
        Signal::TaskEnded { .. } => "task-ended",
        Signal::PipePanicked { .. } => "pipe-panicked",
    };
    let step = || TraceStep::Signal { name };
    node.shared.events.taps().note(node, step);
}

/// Reads what actors do that match a pattern, from
/// [`ActorSystem::trace`](crate::ActorSystem::trace). Dropping it ends the trace.
pub struct Tracer {
    tap: Arc<Tap>,
    hub: Arc<Events>,
    timer: Option<Pin<Box<Sleep>>>,
    /// Taken out of the queue all at once, so that actors seldom meet the reader in it.
    ready: VecDeque<TraceRecord>,
}

impl Tracer {
    pub(crate) fn attach(
        hub: &Arc<Events>,
        pattern: PathPattern,
        limits: TraceLimits,
        now: Instant,
    ) -> Self {
        let tap = Arc::new(Tap {
            pattern,
            limits,
            began: now,
            until: clock::later(now, limits.within),
            queue: Mutex::default(),
            lost: AtomicU64::new(0),
            over: AtomicBool::new(false),
        });
        hub.taps().add(Arc::clone(&tap));
        hub.wanted();
        Self {
            tap,
            hub: Arc::clone(hub),
            timer: None,
            ready: VecDeque::new(),
        }
    }

    /// Marks actors that were there before.
    pub(crate) fn mark(&self, node: &Node) {
        if self.tap.pattern.matches(&node.path()) {
            node.set_traced(true);
        }
    }

    /// Waits for the next record; `None` when the trace is over and all was read.
    pub async fn next(&mut self) -> Option<TraceRecord> {
        poll_fn(|cx| charged(cx, |cx| self.poll_next(cx))).await
    }

    /// The same for those who poll: ready with the next record, or with `None` when it is over.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<TraceRecord>> {
        if let Some(record) = self.ready.pop_front() {
            return Poll::Ready(Some(record));
        }
        let until = self.tap.until;
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        let late = timer.as_mut().poll(cx).is_ready();
        let mut queue = self.tap.queue.lock();
        mem::swap(&mut queue.records, &mut self.ready);
        if let Some(record) = self.ready.pop_front() {
            return Poll::Ready(Some(record));
        }
        if late && queue.end.is_none() {
            self.tap.finish(queue, TraceEnd::Time);
            return Poll::Ready(None);
        }
        if queue.end.is_some() {
            return Poll::Ready(None);
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// How many records were lost because they were not read in time.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.tap.lost.load(Ordering::Relaxed)
    }

    /// Why it is over, if it is; records may still wait to be read.
    #[must_use]
    pub fn ended(&self) -> Option<TraceEnd> {
        self.tap.queue.lock().end
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        self.tap.over.store(true, Ordering::Relaxed);
        self.hub.taps().remove(&self.tap);
        self.hub.unwanted();
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer")
            .field("pattern", &self.tap.pattern)
            .field("lost", &self.lost())
            .finish_non_exhaustive()
    }
}
