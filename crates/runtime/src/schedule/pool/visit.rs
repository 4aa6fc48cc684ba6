//! Actors on the stacks of others.
//!
//! One who asks an actor that is idle runs it, for that one message: no queue is crossed and no
//! thread woken. So does one who starts an actor, for its first turn. An actor that runs is never
//! entered again, the depth is bounded, and from time to time the queue is used all the same, so
//! that one who only asks lets others run.

use std::cell::Cell;

use tokio::runtime::Id;

use super::watch::Shift;
use crate::schedule::strand::Ready;

const DEPTH: u32 = 8;

/// After so many visits one goes through the queue.
const ROW: u32 = 1024;

struct Visits {
    depth: Cell<u32>,
    left: Cell<u32>,
    /// The runtime for which this thread works.
    runtime: Cell<Option<Id>>,
    /// The number of the seat at which this thread dispatched last.
    seat: Cell<usize>,
}

thread_local! {
    static VISITS: Visits = const {
        Visits {
            depth: Cell::new(0),
            left: Cell::new(ROW),
            runtime: Cell::new(None),
            seat: Cell::new(0),
        }
    };
}

/// Notes that this thread works for a runtime, now at this seat.
pub(super) fn welcome(runtime: Option<Id>, seat: usize) {
    VISITS.with(|visits| {
        visits.runtime.set(runtime);
        visits.seat.set(seat);
    });
}

/// The number of the seat at which this thread dispatched last, if it works for this runtime.
pub(super) fn near(runtime: Option<Id>) -> Option<usize> {
    let seat = VISITS.try_with(|visits| {
        let works = runtime.is_some() && visits.runtime.get() == runtime;
        works.then(|| visits.seat.get())
    });
    seat.ok().flatten()
}

/// Whether a visit is due and possible on this stack, of which `fits` knows the runtime.
#[inline]
pub(super) fn may(fits: impl FnOnce(Option<Id>) -> bool) -> bool {
    let may = VISITS.try_with(|visits| {
        if visits.depth.get() >= DEPTH || !fits(visits.runtime.get()) {
            return false;
        }
        let left = visits.left.get();
        visits.left.set(if left == 0 { ROW } else { left - 1 });
        left > 0
    });
    may.unwrap_or(false)
}

/// Runs an actor; returns it if it was woken meanwhile.
#[inline]
pub(super) fn on_this_stack(ready: Ready) -> Option<Ready> {
    VISITS.with(|visits| {
        visits.depth.set(visits.depth.get() + 1);
        let shift = Shift::begin();
        shift.turn(ready.mark());
        let again = ready.run();
        drop(shift);
        visits.depth.set(visits.depth.get() - 1);
        again
    })
}
