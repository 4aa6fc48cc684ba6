//! The processor time of one incarnation's call on guest threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::guest::{Elapsed, ThreadInstant};

/// The time of the current call on guest threads, and the requests to it.
#[derive(Debug, Default)]
pub(crate) struct TurnClock {
    /// Nanoseconds of processor time and on the clock, of completed turns.
    cpu: AtomicU64,
    wall: AtomicU64,
    /// Start of the current turn.
    turn: Mutex<Option<ThreadInstant>>,
    /// Nanoseconds of processor time of the current turn that were already charged.
    charged: AtomicU64,
    abandoned: AtomicBool,
    /// `true` if the call saw a tick on a guest thread.
    ticked: AtomicBool,
    /// `true` if the call exceeded its slice on a worker and is to continue on a guest thread.
    moves: AtomicBool,
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

impl TurnClock {
    /// Resets the clock for a new call.
    pub(crate) fn begin(&self) {
        self.cpu.store(0, Ordering::Relaxed);
        self.wall.store(0, Ordering::Relaxed);
        self.moves.store(false, Ordering::Relaxed);
        self.ticked.store(false, Ordering::Relaxed);
    }

    /// Records that the call saw a tick.
    pub(crate) fn tick(&self) {
        self.ticked.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_ticked(&self) -> bool {
        self.ticked.load(Ordering::Relaxed)
    }

    /// Starts a turn on this thread.
    pub(super) fn start(&self) {
        self.charged.store(0, Ordering::Relaxed);
        *self.turn.lock() = Some(ThreadInstant::now());
    }

    /// Excludes time on the clock from the turn; only on its thread.
    pub(crate) fn skip(&self, wall: Duration) {
        if let Some(turn) = &mut *self.turn.lock() {
            turn.skip(wall);
        }
    }

    /// Returns the part of the current turn's processor time `turn` that was not charged yet.
    /// Charging at ticks makes a call that never yields visible.
    pub(crate) fn charge(&self, turn: Duration) -> Duration {
        let charged = self.charged.swap(nanos(turn), Ordering::Relaxed);
        turn.saturating_sub(Duration::from_nanos(charged))
    }

    /// Ends the turn; returns the part of it that was not charged yet.
    pub(super) fn stop(&self) -> Duration {
        let Some(began) = self.turn.lock().take() else {
            return Duration::ZERO;
        };
        let spent = ThreadInstant::now().since(began);
        self.cpu.fetch_add(nanos(spent.cpu), Ordering::Relaxed);
        self.wall.fetch_add(nanos(spent.wall), Ordering::Relaxed);
        self.charge(spent.cpu)
    }

    /// Returns the time of the current turn, and that of the whole call; only on the thread of the
    /// turn.
    pub(crate) fn read(&self) -> (Elapsed, Elapsed) {
        let before = Elapsed {
            cpu: Duration::from_nanos(self.cpu.load(Ordering::Relaxed)),
            wall: Duration::from_nanos(self.wall.load(Ordering::Relaxed)),
        };
        let began = *self.turn.lock();
        let turn = began.map_or_else(Elapsed::default, |began| ThreadInstant::now().since(began));
        (turn, before.plus(turn))
    }

    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Requests that the current call continues on a guest thread.
    pub(crate) fn want_move(&self) {
        self.moves.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the current call is to continue on a guest thread.
    pub(crate) fn wants_move(&self) -> bool {
        self.moves.load(Ordering::Relaxed)
    }
}
