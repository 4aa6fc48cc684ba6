//! Keeps the deliveries of a thread from nesting.
//!
//! Filters, conversions and destructors are user code that runs inside a delivery and may publish.
//! The messages they publish are delivered after the current delivery. So all subscribers see one
//! order, and a thread never holds the locks of two topics, which could deadlock with a thread that
//! takes them in the opposite order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

type Later = Box<dyn FnOnce()>;

thread_local! {
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
    static LATER: RefCell<VecDeque<Later>> = const { RefCell::new(VecDeque::new()) };
}

/// The right of the current thread to deliver.
pub(crate) struct DeliveryTurn(());

impl DeliveryTurn {
    /// Takes the right to deliver. Returns `None` inside a delivery.
    #[inline]
    pub(crate) fn take() -> Option<Self> {
        // Not `then_some`: it would create a `DeliveryTurn` in either case, and dropping one ends
        // the turn.
        (!DELIVERING.replace(true)).then(|| Self(()))
    }

    /// Queues a delivery for the end of the current turn.
    pub(crate) fn later(delivery: impl FnOnce() + 'static) {
        LATER.with_borrow_mut(|later| later.push_back(Box::new(delivery)));
    }

    /// Runs the queued deliveries, including those queued meanwhile, and ends the turn.
    #[inline]
    pub(crate) fn finish(self) {
        while let Some(delivery) = LATER.with_borrow_mut(VecDeque::pop_front) {
            delivery();
        }
    }
}

impl Drop for DeliveryTurn {
    fn drop(&mut self) {
        DELIVERING.set(false);
    }
}
