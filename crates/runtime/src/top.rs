//! The busiest actors of a system, and totals over all actors.
//!
//! A reading walks the table of actors page by page and lets other tasks run between pages. It
//! stops no actor; the locks it takes are those that senders take too, for about as long as a send.
//! Paths and exits are only built for the rows that are shown.

use std::cmp::Reverse;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use crate::cell::{ActorId, ErasedCell};
use crate::info::ActorInfo;
use crate::mailbox::MailboxStats;
use crate::path::PathPattern;
use crate::system::SystemState;

/// The property by which actors are ranked, greatest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TopRank {
    /// Number of queued messages.
    #[default]
    Depth,
    /// Messages per second since the last reading.
    Rate,
    /// Time spent working since the last reading.
    Busy,
    /// The memory estimate.
    Memory,
    /// Number of restarts.
    Restarts,
}

/// Selects what a reading shows.
#[derive(Debug, Clone, Default)]
#[must_use = "a query does nothing until it is given to an observer"]
pub struct TopQuery {
    rank: TopRank,
    rows: usize,
    within: Option<PathPattern>,
}

impl TopQuery {
    /// Shows the first twenty actors by this rank.
    pub const fn new(rank: TopRank) -> Self {
        Self {
            rank,
            rows: 20,
            within: None,
        }
    }

    /// Sets the number of actors to show, at most [`TopQuery::MAX_ROWS`].
    pub const fn rows(mut self, rows: usize) -> Self {
        self.rows = if rows > Self::MAX_ROWS {
            Self::MAX_ROWS
        } else {
            rows
        };
        self
    }

    /// Restricts the reading to actors whose path matches.
    pub fn within_pattern(mut self, pattern: PathPattern) -> Self {
        self.within = Some(pattern);
        self
    }

    /// The maximum number of rows in a reading.
    pub const MAX_ROWS: usize = 1024;
}

/// One actor in a reading.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TopRow {
    /// Information about the actor.
    pub info: ActorInfo,
    /// Messages per second since the last reading.
    pub rate: f64,
    /// The fraction of the time since the last reading that the actor spent working, from 0 to
    /// about 1.
    pub load: f64,
}

/// Totals over all actors of a reading.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TopTotals {
    /// Number of actors.
    pub actors: usize,
    /// Number of queued messages.
    pub depth: usize,
    /// Number of mailboxes that are filled to at least 85 % of their capacity.
    pub nearly_full: usize,
    /// Number of messages taken out by the actors that are alive now.
    pub handled: u64,
    /// Number of messages dropped by the overflow rules of the actors that are alive now.
    pub dropped: u64,
    /// Number of restarts of the actors that are alive now.
    pub restarts: u64,
    /// Sum of the memory estimates.
    pub memory: usize,
    /// Messages per second since the last reading.
    pub rate: f64,
    /// Average number of threads that were working since the last reading.
    pub load: f64,
}

/// The result of one reading of a system.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct TopReport {
    /// The first actors by the requested rank.
    pub rows: Vec<TopRow>,
    /// Totals over all matching actors.
    pub totals: TopTotals,
    /// The time since the reading that rates are computed from. Zero for the first reading, whose
    /// rates are all zero.
    pub span: Duration,
    /// The time for which the reading held its thread.
    pub duration: Duration,
}

/// Reads the state of a system repeatedly, and computes rates between readings.
///
/// It keeps 24 bytes per actor from one reading to the next.
///
/// ```
/// use strowger::{ActorSystem, TopRank, TopQuery};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), strowger::BoxError> {
/// let system = ActorSystem::new("office")?;
/// let mut observer = system.observer();
/// let top = observer.top(&TopQuery::new(TopRank::Depth).rows(10)).await;
/// assert_eq!(top.totals.actors, 0);
/// # Ok(())
/// # }
/// ```
pub struct SystemObserver {
    shared: Arc<SystemState>,
    past: Option<PreviousReading>,
}

/// The counters of a reading, by slot.
#[derive(Debug)]
struct PreviousReading {
    at: Instant,
    counters: Vec<SlotCounters>,
}

/// The counters of one slot. The counters of an empty slot have a generation that matches no actor,
/// or one whose actor has done nothing yet.
#[derive(Debug, Clone, Copy)]
struct SlotCounters {
    generation: u32,
    handled: u64,
    busy: u64,
}

/// The minimum age at which a reading is replaced as the base of rates. Otherwise several callers
/// that read in turn would make the intervals too short for meaningful rates.
const MIN_RATE_INTERVAL: Duration = Duration::from_millis(500);

/// An actor in the course of a reading.
struct SeenActor {
    cell: Arc<dyn ErasedCell>,
    stats: MailboxStats,
    memory: usize,
    /// Number of messages handled since the previous reading.
    handled: u64,
    busy: u64,
}

impl SystemObserver {
    pub(crate) const fn new(shared: Arc<SystemState>) -> Self {
        Self { shared, past: None }
    }

    /// Reads the system.
    ///
    /// Other tasks run between pages, so the call takes as long as they do. Dropping the future
    /// half way leaves the observer unchanged.
    pub async fn top(&mut self, query: &TopQuery) -> TopReport {
        let at = self.shared.now();
        let span = self
            .past
            .as_ref()
            .map_or(Duration::ZERO, |past| at - past.at);
        let mut reading = ReadingBuilder::new(query, self.past.as_ref(), span);
        let mut page = Vec::new();
        let mut slot = Some(0);
        while let Some(from) = slot {
            let began = self.shared.now();
            slot = self.shared.page(from, &mut page);
            page.drain(..).for_each(|cell| reading.add_actor(cell));
            reading.top.duration += self.shared.now() - began;
            yield_now().await;
        }
        let (top, counters) = reading.finish();
        if self.past.is_none() || span >= MIN_RATE_INTERVAL {
            self.past = Some(PreviousReading { at, counters });
        }
        top
    }
}

impl fmt::Debug for SystemObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

/// Yields to other tasks.
pub(crate) async fn yield_now() {
    let mut passed = false;
    poll_fn(|cx| {
        if mem::replace(&mut passed, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

struct ReadingBuilder<'a> {
    query: &'a TopQuery,
    past: Option<&'a PreviousReading>,
    counters: Vec<SlotCounters>,
    seen: Vec<((u64, u64), SeenActor)>,
    handled: u64,
    busy: u64,
    top: TopReport,
}

impl<'a> ReadingBuilder<'a> {
    fn new(query: &'a TopQuery, past: Option<&'a PreviousReading>, span: Duration) -> Self {
        Self {
            query,
            past,
            counters: Vec::with_capacity(past.map_or(0, |past| past.counters.len())),
            seen: Vec::new(),
            handled: 0,
            busy: 0,
            top: TopReport {
                span,
                ..TopReport::default()
            },
        }
    }

    fn add_actor(&mut self, cell: Arc<dyn ErasedCell>) {
        let stats = cell.stats();
        let ActorId { slot, generation } = cell.core().id;
        let busy = nanos(stats.busy);
        let counter = SlotCounters {
            generation,
            handled: stats.handled,
            busy,
        };
        let slot = slot as usize;
        if self.counters.len() <= slot {
            self.counters.resize(slot + 1, EMPTY_SLOT);
        }
        self.counters[slot] = counter;
        if let Some(pattern) = &self.query.within
            && !pattern.matches(&cell.core().path())
        {
            return;
        }
        let before = self
            .past
            .map(|past| past.counters.get(slot).unwrap_or(&EMPTY_SLOT));
        // An actor that is new since then has done all its work in between.
        let (handled, busy) = match before {
            None => (0, 0),
            Some(before) if before.generation == generation => (
                counter.handled.saturating_sub(before.handled),
                busy.saturating_sub(before.busy),
            ),
            Some(_) => (counter.handled, busy),
        };
        let memory = cell.memory(&stats);
        let restarts = cell.core().restarts();
        self.add(&cell, &stats, memory, restarts);
        self.handled += handled;
        self.busy += busy;
        let key = match self.query.rank {
            TopRank::Depth => (stats.depth as u64, stats.high_water as u64),
            TopRank::Rate => (handled, stats.handled),
            TopRank::Busy => (busy, counter.busy),
            TopRank::Memory => (memory as u64, stats.depth as u64),
            TopRank::Restarts => (restarts.into(), stats.handled),
        };
        let seen = SeenActor {
            cell,
            stats,
            memory,
            handled,
            busy,
        };
        self.seen.push((key, seen));
        if self.seen.len() >= 2 * self.query.rows + TRUNCATE_SLACK {
            self.truncate();
        }
    }

    fn add(
        &mut self,
        cell: &Arc<dyn ErasedCell>,
        stats: &MailboxStats,
        memory: usize,
        restarts: u32,
    ) {
        let totals = &mut self.top.totals;
        totals.actors += 1;
        totals.depth += stats.depth;
        totals.handled += stats.handled;
        totals.dropped += stats.dropped;
        totals.memory += memory;
        totals.restarts += u64::from(restarts);
        let capacity = cell.spec().capacity();
        let nearly = capacity.is_some_and(|room| stats.depth * 100 >= room * NEARLY_FULL_PERCENT);
        totals.nearly_full += usize::from(nearly);
    }

    /// Keeps the first rows, in no particular order.
    fn truncate(&mut self) {
        let rows = self.query.rows;
        if self.seen.len() > rows {
            self.seen
                .select_nth_unstable_by_key(rows, |(key, seen)| place(*key, seen));
            self.seen.truncate(rows);
        }
    }

    fn finish(mut self) -> (TopReport, Vec<SlotCounters>) {
        self.truncate();
        self.seen.sort_by_key(|(key, seen)| place(*key, seen));
        let seconds = self.top.span.as_secs_f64();
        let a_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let rows = self.seen.drain(..).map(|(_, seen)| TopRow {
            rate: a_second(seen.handled as f64),
            load: a_second(seen.busy as f64 / 1e9),
            info: seen.info(),
        });
        self.top.rows = rows.collect();
        self.top.totals.rate = a_second(self.handled as f64);
        self.top.totals.load = a_second(self.busy as f64 / 1e9);
        (self.top, self.counters)
    }
}

impl SeenActor {
    fn info(self) -> ActorInfo {
        let spec = self.cell.spec();
        self.cell.core().info(self.stats, spec, self.memory)
    }
}

/// Sorts the greatest first, and among equals the one with the lower slot.
fn place(key: (u64, u64), seen: &SeenActor) -> (Reverse<(u64, u64)>, u32) {
    (Reverse(key), seen.cell.core().id.slot)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// The fill level from which a mailbox counts as nearly full, in percent of its capacity.
const NEARLY_FULL_PERCENT: usize = 85;

/// Number of actors that are collected beyond twice the rows before the list is cut.
const TRUNCATE_SLACK: usize = 64;

const EMPTY_SLOT: SlotCounters = SlotCounters {
    generation: u32::MAX,
    handled: 0,
    busy: 0,
};
