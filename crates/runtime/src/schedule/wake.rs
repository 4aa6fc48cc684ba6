//! Wakes of tasks that are not actors, by actors.
//!
//! A dispatcher is one tokio task among others. If an actor wakes another task, by an answer or by
//! room in its mailbox, that task has to wait until the dispatcher lets other tasks run: tokio may
//! keep it in a place from which no other thread takes it. Such a wake is therefore noted, and the
//! dispatcher soon yields.

use std::cell::Cell;
use std::task::Waker;

thread_local! {
    /// Number of wakes that woke actors.
    static ACTOR_WAKES: Cell<u32> = const { Cell::new(0) };
    /// Set if something other than an actor was woken since the last `take_other_woken`.
    static OTHER_WOKEN: Cell<bool> = const { Cell::new(false) };
}

/// Wakes a task, and notes if it is not an actor.
pub(crate) fn wake(waker: Waker) {
    let count = || ACTOR_WAKES.try_with(Cell::get).unwrap_or_default();
    let before = count();
    waker.wake();
    if count() == before {
        // A thread that is ending dispatches nothing.
        let _ended = OTHER_WOKEN.try_with(|others| others.set(true));
    }
}

/// Notes that an actor is woken.
pub(super) fn count_actor_wake() {
    let _ended = ACTOR_WAKES.try_with(|actors| actors.set(actors.get().wrapping_add(1)));
}

/// Returns `true` if something other than an actor was woken on this thread since the last call.
#[inline]
pub(super) fn take_other_woken() -> bool {
    OTHER_WOKEN.with(Cell::take)
}
