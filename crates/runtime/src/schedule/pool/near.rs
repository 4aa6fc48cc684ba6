//! The dispatcher near a thread: the one that it ran last.
//!
//! A task that starts or stops an actor is likely to wait for it. Run by the dispatcher that this
//! thread ran last, the actor shares its processor and its caches with the task that waits.

use std::cell::Cell;

use tokio::runtime::Id;

struct Near {
    /// The runtime for which this thread works.
    runtime: Cell<Option<Id>>,
    /// The number of the seat at which this thread dispatched last.
    seat: Cell<usize>,
}

thread_local! {
    static NEAR: Near = const {
        Near {
            runtime: Cell::new(None),
            seat: Cell::new(0),
        }
    };
}

/// Notes that this thread works for a runtime, now at this seat.
pub(super) fn note(runtime: Option<Id>, seat: usize) {
    NEAR.with(|near| {
        near.runtime.set(runtime);
        near.seat.set(seat);
    });
}

/// The number of the seat at which this thread dispatched last, if it works for this runtime.
pub(super) fn seat(runtime: Option<Id>) -> Option<usize> {
    let seat = NEAR.try_with(|near| {
        let works = runtime.is_some() && near.runtime.get() == runtime;
        works.then(|| near.seat.get())
    });
    seat.ok().flatten()
}
