//! Wakes of those who are no actors, by actors.
//!
//! A dispatcher is a task among others. One that an actor wakes, by an answer or by room in its
//! mailbox, has to wait until the dispatcher lets other tasks run: where tokio keeps it, no other
//! thread takes it up. So such a wake is noted, and the dispatcher gives way soon.

use std::cell::Cell;
use std::task::Waker;

thread_local! {
    /// How many wakes were of actors.
    static ACTORS: Cell<u32> = const { Cell::new(0) };
    /// Whether another was woken since that was last asked.
    static OTHERS: Cell<bool> = const { Cell::new(false) };
}

/// Wakes whoever it is.
pub(crate) fn wake(waker: Waker) {
    let count = || ACTORS.try_with(Cell::get).unwrap_or_default();
    let before = count();
    waker.wake();
    if count() == before {
        // A thread on its way out dispatches nothing.
        let _ended = OTHERS.try_with(|others| others.set(true));
    }
}

/// Notes that it is an actor that is woken.
pub(super) fn note_actor() {
    let _ended = ACTORS.try_with(|actors| actors.set(actors.get().wrapping_add(1)));
}

/// Whether others than actors were woken on this thread since this was last asked.
#[inline]
pub(super) fn take_others() -> bool {
    OTHERS.with(Cell::take)
}
