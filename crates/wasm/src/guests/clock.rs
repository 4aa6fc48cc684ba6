//! The processor time of one life's call on guest threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::guest::{Moment, Spent};

/// How long the call of a life has computed on guest threads, and what others want of it.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Nanoseconds of processor time and of the clock, of turns that are over.
    cpu: AtomicU64,
    wall: AtomicU64,
    /// When the turn under way began.
    turn: Mutex<Option<Moment>>,
    abandoned: AtomicBool,
    /// The call saw a tick on a guest thread.
    ticked: AtomicBool,
    /// The call passed its slice on a worker, and wants to go on here.
    moves: AtomicBool,
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl Clock {
    /// A call begins.
    pub(crate) fn begin(&self) {
        self.cpu.store(0, Ordering::Relaxed);
        self.wall.store(0, Ordering::Relaxed);
        self.moves.store(false, Ordering::Relaxed);
        self.ticked.store(false, Ordering::Relaxed);
    }

    /// Notes that the call saw a tick.
    pub(crate) fn tick(&self) {
        self.ticked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_ticked(&self) -> bool {
        self.ticked.load(Ordering::Relaxed)
    }

    /// A turn begins on this thread.
    pub(super) fn start(&self) {
        *self.turn.lock() = Some(Moment::now());
    }

    /// The turn is over; returns what it took.
    pub(super) fn stop(&self) -> Spent {
        let Some(began) = self.turn.lock().take() else {
            return Spent::default();
        };
        let spent = Moment::now().since(began);
        self.cpu.fetch_add(nanos(spent.cpu), Ordering::Relaxed);
        self.wall.fetch_add(nanos(spent.wall), Ordering::Relaxed);
        spent
    }

    /// What the turn under way has taken, and the call with it; on the thread of the turn.
    pub(crate) fn read(&self) -> (Spent, Spent) {
        let before = Spent {
            cpu: Duration::from_nanos(self.cpu.load(Ordering::Relaxed)),
            wall: Duration::from_nanos(self.wall.load(Ordering::Relaxed)),
        };
        let began = *self.turn.lock();
        let turn = began.map_or_else(Spent::default, |began| Moment::now().since(began));
        (turn, before.plus(turn))
    }

    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Wants the call under way to go on on a guest thread.
    pub(crate) fn want_move(&self) {
        self.moves.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the call under way wants to go on on a guest thread.
    pub(crate) fn wants_move(&self) -> bool {
        self.moves.load(Ordering::Relaxed)
    }
}
