//! The busiest actors of a system, and what all of them come to.
//!
//! A reading goes through the table of actors page by page and lets others run between two pages.
//! It stops no actor: of each it takes what senders also take for the time of a send. Paths and
//! exits are made for the rows that are shown, not for all.

use std::cmp::Reverse;
use std::fmt;
use std::future::poll_fn;
use std::mem;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::Instant;

use crate::cell::{ActorId, AnyCell};
use crate::info::ActorInfo;
use crate::mailbox::Figures;
use crate::path::PathPattern;
use crate::system::Shared;

/// What actors are ranked by, the greatest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Rank {
    /// How many messages wait.
    #[default]
    Depth,
    /// Messages a second since the last reading.
    Rate,
    /// Time at work since the last reading.
    Busy,
    /// The memory estimate.
    Memory,
    /// How often it was restarted.
    Restarts,
}

/// What a reading shows.
#[derive(Debug, Clone, Default)]
#[must_use = "a query does nothing until it is given to an observer"]
pub struct TopQuery {
    rank: Rank,
    rows: usize,
    within: Option<PathPattern>,
}

impl TopQuery {
    /// The first twenty by this rank.
    pub const fn new(rank: Rank) -> Self {
        Self {
            rank,
            rows: 20,
            within: None,
        }
    }

    /// Shows so many actors, at most [`TopQuery::MOST`].
    pub const fn rows(mut self, rows: usize) -> Self {
        self.rows = if rows > Self::MOST { Self::MOST } else { rows };
        self
    }

    /// Reads only actors whose path matches.
    pub fn matching(mut self, pattern: PathPattern) -> Self {
        self.within = Some(pattern);
        self
    }

    /// The most rows of a reading.
    pub const MOST: usize = 1024;
}

/// One actor in a reading.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ranked {
    /// Its figures.
    pub info: ActorInfo,
    /// Messages a second since the last reading.
    pub rate: f64,
    /// The share of the time since the last reading that it was at work; from 0 to about 1.
    pub load: f64,
}

/// The sums over all actors of a reading.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Totals {
    /// How many actors there are.
    pub actors: usize,
    /// How many messages wait.
    pub depth: usize,
    /// How many mailboxes are filled to at least 85 % of their capacity.
    pub nearly_full: usize,
    /// How many messages the actors took out that live now.
    pub handled: u64,
    /// How many messages were dropped by the overflow rules of actors that live now.
    pub dropped: u64,
    /// How often actors were restarted that live now.
    pub restarts: u64,
    /// The memory estimates.
    pub memory: usize,
    /// Messages a second since the last reading.
    pub rate: f64,
    /// How many threads were at work since the last reading, on average.
    pub load: f64,
}

/// A reading.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Top {
    /// The first actors by the rank that was asked for.
    pub rows: Vec<Ranked>,
    /// The sums over all actors that match.
    pub totals: Totals,
    /// The time since the reading that rates were counted from; zero without one, and then all
    /// rates are zero.
    pub span: Duration,
    /// How long the reading held its thread.
    pub took: Duration,
}

/// Reads a system again and again; rates are counted between two readings.
///
/// It keeps 24 octets for each actor from one reading to the next.
///
/// ```
/// use strowger::{ActorSystem, Rank, TopQuery};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), strowger::BoxError> {
/// let system = ActorSystem::new("office")?;
/// let mut observer = system.observer();
/// let top = observer.top(&TopQuery::new(Rank::Depth).rows(10)).await;
/// assert_eq!(top.totals.actors, 0);
/// # Ok(())
/// # }
/// ```
pub struct Observer {
    shared: Arc<Shared>,
    past: Option<Past>,
}

/// The counters of a reading, by slot.
#[derive(Debug)]
struct Past {
    at: Instant,
    marks: Vec<Mark>,
}

/// A slot that was empty has a mark that fits no actor, or one that has done nothing.
#[derive(Debug, Clone, Copy)]
struct Mark {
    generation: u32,
    handled: u64,
    busy: u64,
}

/// A reading this young is not replaced as the one that rates are counted from, so that several
/// who ask in turns do not cut the time between two into pieces too short to count in.
const YOUNG: Duration = Duration::from_millis(500);

/// An actor in the course of a reading.
struct Seen {
    cell: Arc<dyn AnyCell>,
    figures: Figures,
    memory: usize,
    /// What it did since the reading before.
    handled: u64,
    busy: u64,
}

impl Observer {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, past: None }
    }

    /// Reads the system. Lets other tasks run now and then, so it takes as long as they take; a
    /// reading that is dropped half way is as if it had not begun.
    pub async fn top(&mut self, query: &TopQuery) -> Top {
        let at = self.shared.now();
        let span = self
            .past
            .as_ref()
            .map_or(Duration::ZERO, |past| at - past.at);
        let mut reading = Reading::new(query, self.past.as_ref(), span);
        let mut page = Vec::new();
        let mut slot = Some(0);
        while let Some(from) = slot {
            let began = self.shared.now();
            slot = self.shared.page(from, &mut page);
            page.drain(..).for_each(|cell| reading.see(cell));
            reading.top.took += self.shared.now() - began;
            pass_on().await;
        }
        let (top, marks) = reading.finish();
        if self.past.is_none() || span >= YOUNG {
            self.past = Some(Past { at, marks });
        }
        top
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

/// Lets others run.
pub(crate) async fn pass_on() {
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

struct Reading<'a> {
    query: &'a TopQuery,
    past: Option<&'a Past>,
    marks: Vec<Mark>,
    seen: Vec<((u64, u64), Seen)>,
    handled: u64,
    busy: u64,
    top: Top,
}

impl<'a> Reading<'a> {
    fn new(query: &'a TopQuery, past: Option<&'a Past>, span: Duration) -> Self {
        Self {
            query,
            past,
            marks: Vec::with_capacity(past.map_or(0, |past| past.marks.len())),
            seen: Vec::new(),
            handled: 0,
            busy: 0,
            top: Top {
                span,
                ..Top::default()
            },
        }
    }

    fn see(&mut self, cell: Arc<dyn AnyCell>) {
        let figures = cell.figures();
        let ActorId { slot, generation } = cell.node().id;
        let busy = nanos(figures.busy);
        let mark = Mark {
            generation,
            handled: figures.handled,
            busy,
        };
        let slot = slot as usize;
        if self.marks.len() <= slot {
            self.marks.resize(slot + 1, EMPTY);
        }
        self.marks[slot] = mark;
        if let Some(pattern) = &self.query.within
            && !pattern.matches(&cell.node().path())
        {
            return;
        }
        let before = self.past.map(|past| past.marks.get(slot).unwrap_or(&EMPTY));
        // An actor that was not there before has done all of it since.
        let (handled, busy) = match before {
            None => (0, 0),
            Some(before) if before.generation == generation => (
                mark.handled.saturating_sub(before.handled),
                busy.saturating_sub(before.busy),
            ),
            Some(_) => (mark.handled, busy),
        };
        let memory = cell.memory(&figures);
        let restarts = cell.node().restarts();
        self.add(&cell, &figures, memory, restarts);
        self.handled += handled;
        self.busy += busy;
        let key = match self.query.rank {
            Rank::Depth => (figures.depth as u64, figures.high_water as u64),
            Rank::Rate => (handled, figures.handled),
            Rank::Busy => (busy, mark.busy),
            Rank::Memory => (memory as u64, figures.depth as u64),
            Rank::Restarts => (restarts.into(), figures.handled),
        };
        let seen = Seen {
            cell,
            figures,
            memory,
            handled,
            busy,
        };
        self.seen.push((key, seen));
        if self.seen.len() >= 2 * self.query.rows + PILE {
            self.cut();
        }
    }

    fn add(&mut self, cell: &Arc<dyn AnyCell>, figures: &Figures, memory: usize, restarts: u32) {
        let totals = &mut self.top.totals;
        totals.actors += 1;
        totals.depth += figures.depth;
        totals.handled += figures.handled;
        totals.dropped += figures.dropped;
        totals.memory += memory;
        totals.restarts += u64::from(restarts);
        let capacity = cell.spec().capacity();
        let nearly = capacity.is_some_and(|room| figures.depth * 100 >= room * NEARLY);
        totals.nearly_full += usize::from(nearly);
    }

    /// Keeps the first rows, in no order.
    fn cut(&mut self) {
        let rows = self.query.rows;
        if self.seen.len() > rows {
            self.seen
                .select_nth_unstable_by_key(rows, |(key, seen)| place(*key, seen));
            self.seen.truncate(rows);
        }
    }

    fn finish(mut self) -> (Top, Vec<Mark>) {
        self.cut();
        self.seen.sort_by_key(|(key, seen)| place(*key, seen));
        let seconds = self.top.span.as_secs_f64();
        let a_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
        let rows = self.seen.drain(..).map(|(_, seen)| Ranked {
            rate: a_second(seen.handled as f64),
            load: a_second(seen.busy as f64 / 1e9),
            info: seen.info(),
        });
        self.top.rows = rows.collect();
        self.top.totals.rate = a_second(self.handled as f64);
        self.top.totals.load = a_second(self.busy as f64 / 1e9);
        (self.top, self.marks)
    }
}

impl Seen {
    fn info(self) -> ActorInfo {
        let spec = self.cell.spec();
        self.cell.node().info(self.figures, spec, self.memory)
    }
}

/// The greatest first; among equals the one that has been there longer.
fn place(key: (u64, u64), seen: &Seen) -> (Reverse<(u64, u64)>, u32) {
    (Reverse(key), seen.cell.node().id.slot)
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// A mailbox is nearly full from this part of its capacity on, in percent.
const NEARLY: usize = 85;

/// So many more than twice the rows are kept before they are cut.
const PILE: usize = 64;

const EMPTY: Mark = Mark {
    generation: u32::MAX,
    handled: 0,
    busy: 0,
};
