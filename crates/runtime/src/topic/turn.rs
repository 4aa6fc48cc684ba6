//! Deliveries of a thread do not nest.
//!
//! Filters, conversions and destructors are foreign code that runs inside a delivery, and may
//! publish. What they publish is delivered after the delivery that is under way: so all see one
//! order, and no thread ever holds the locks of two topics, which another might want the other
//! way round.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

type Later = Box<dyn FnOnce()>;

thread_local! {
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
    static LATER: RefCell<VecDeque<Later>> = const { RefCell::new(VecDeque::new()) };
}

/// The thread's right to deliver.
pub(crate) struct Turn(());

impl Turn {
    /// Takes the right; `None` inside a delivery.
    #[inline]
    pub(crate) fn take() -> Option<Self> {
        // Not `then_some`: a turn that is dropped is over.
        (!DELIVERING.replace(true)).then(|| Self(()))
    }

    /// Keeps a delivery for the end of the turn that is under way.
    pub(crate) fn later(delivery: impl FnOnce() + 'static) {
        LATER.with_borrow_mut(|later| later.push_back(Box::new(delivery)));
    }

    /// Does what was kept, also what that kept in its turn.
    #[inline]
    pub(crate) fn finish(self) {
        while let Some(delivery) = LATER.with_borrow_mut(VecDeque::pop_front) {
            delivery();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        DELIVERING.set(false);
    }
}
