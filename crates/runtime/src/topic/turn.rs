//! Keeps the deliveries of a thread from nesting.
//!
//! Filters, conversions and destructors are user code that runs inside a delivery and may publish.
//! The messages they publish are delivered after the current delivery. So all subscribers see one
//! order, and a thread never holds the locks of two topics, which could deadlock with a thread that
//! takes them in the opposite order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

type DeferredDelivery = Box<dyn FnOnce()>;

thread_local! {
    static DELIVERING: Cell<bool> = const { Cell::new(false) };
    static DEFERRED: RefCell<VecDeque<DeferredDelivery>> = const { RefCell::new(VecDeque::new()) };
}

/// The right of the current thread to deliver.
pub(crate) struct DeliveryGuard(());

impl DeliveryGuard {
    /// Takes the right to deliver. Returns `None` inside a delivery.
    #[inline]
    pub(crate) fn try_enter() -> Option<Self> {
        // Not `then_some`: it would create a `DeliveryGuard` in either case, and dropping one ends
        // the turn.
        (!DELIVERING.replace(true)).then(|| Self(()))
    }

    /// Queues a delivery for the end of the current turn.
    pub(crate) fn defer(delivery: impl FnOnce() + 'static) {
        DEFERRED.with_borrow_mut(|later| later.push_back(Box::new(delivery)));
    }

    /// Runs the queued deliveries, including those queued meanwhile, and ends the turn.
    #[inline]
    pub(crate) fn finish(self) {
        while let Some(delivery) = DEFERRED.with_borrow_mut(VecDeque::pop_front) {
            delivery();
        }
    }
}

impl Drop for DeliveryGuard {
    fn drop(&mut self) {
        DELIVERING.set(false);
    }
}
