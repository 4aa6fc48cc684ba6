//! What each thread runs at this moment, for the monitor.

use std::cell::Cell;
use std::sync::atomic::AtomicUsize as Plain;

use crate::schedule::strand::Mark;
use crate::sync::Ordering;

/// Threads beyond this number are not watched.
const THREADS: usize = 512;

/// One thread. Aligned so that two do not share a line.
#[repr(align(64))]
struct Watch {
    taken: Plain,
    turns: Plain,
    system: Plain,
    actor: std::sync::atomic::AtomicU64,
}

static WATCHES: [Watch; THREADS] = [const {
    Watch {
        taken: Plain::new(0),
        turns: Plain::new(0),
        system: Plain::new(0),
        actor: std::sync::atomic::AtomicU64::new(0),
    }
}; THREADS];

/// How many of them were ever taken.
static USED: Plain = Plain::new(0);

/// The number of this thread's watch; given back with the thread.
struct Own(Cell<usize>);

/// Not asked for yet.
const UNKNOWN: usize = usize::MAX;

impl Own {
    #[cold]
    fn claim(&self) -> usize {
        let free = (0..THREADS).find(|&number| {
            let taken = &WATCHES[number].taken;
            taken
                .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        let number = free.unwrap_or(THREADS);
        USED.fetch_max((number + 1).min(THREADS), Ordering::Relaxed);
        self.0.set(number);
        number
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Some(watch) = WATCHES.get(self.0.get()) {
            watch.taken.store(0, Ordering::Release);
        }
    }
}

thread_local! {
    static OWN: Own = const { Own(Cell::new(UNKNOWN)) };
}

/// A time in which this thread runs one actor after another, inside the turn of another perhaps.
pub(super) struct Shift {
    watch: Option<&'static Watch>,
    outer: Mark,
}

impl Shift {
    #[inline]
    pub(super) fn begin() -> Self {
        let number = OWN.try_with(|own| match own.0.get() {
            UNKNOWN => own.claim(),
            number => number,
        });
        let watch = number.ok().and_then(|number| WATCHES.get(number));
        let outer = watch.map_or_else(Mark::default, Watch::read);
        Self { watch, outer }
    }

    /// Says whose turn begins.
    #[inline(always)]
    pub(super) fn turn(&self, mark: Mark) {
        if let Some(watch) = self.watch {
            watch.write(mark);
        }
    }
}

impl Drop for Shift {
    #[inline]
    fn drop(&mut self) {
        self.turn(self.outer);
    }
}

impl Watch {
    #[inline]
    fn read(&self) -> Mark {
        Mark {
            system: self.system.load(Ordering::Relaxed),
            actor: self.actor.load(Ordering::Relaxed),
        }
    }

    /// Only the thread itself writes.
    #[inline]
    fn write(&self, mark: Mark) {
        let turns = self.turns.load(Ordering::Relaxed);
        self.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
        self.actor.store(mark.actor, Ordering::Relaxed);
        self.system.store(mark.system, Ordering::Relaxed);
    }
}

/// A thread at one moment: which turn it is at, and whose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Glance {
    turns: usize,
    pub(super) mark: Mark,
}

/// What all threads do; nothing for those that run no actor. What is torn does not last.
pub(super) fn glances() -> impl Iterator<Item = Glance> {
    let used = USED.load(Ordering::Relaxed);
    WATCHES[..used].iter().map(|watch| Glance {
        turns: watch.turns.load(Ordering::Relaxed),
        mark: watch.read(),
    })
}
