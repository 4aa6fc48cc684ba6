//! Fairness between the exits of children and requests.

use std::collections::VecDeque;

use crate::seeded_bug::{Bug, seeded};

/// The exits that a supervisor has yet to answer, in order.
///
/// Signals overtake messages, so a child that fails as soon as it is restarted could keep its
/// supervisor from its requests forever: each answer leads to the next exit. Therefore, after each
/// answered exit, one pending request is served before the next exit.
#[derive(Debug)]
pub(crate) struct FairExitQueue<T> {
    pending: VecDeque<T>,
    /// `true` if an exit was answered and no request has been served since.
    request_due: bool,
}

impl<T> FairExitQueue<T> {
    pub(crate) const fn new() -> Self {
        Self {
            pending: VecDeque::new(),
            request_due: false,
        }
    }

    /// Adds an exit.
    pub(crate) fn push(&mut self, exit: T) {
        self.pending.push_back(exit);
    }

    /// Records that a request was served.
    pub(crate) const fn request_served(&mut self) {
        self.request_due = false;
    }

    /// Takes the exit to answer now. Returns `None` if it is a pending request's turn; the caller
    /// then serves that request before it calls this again.
    pub(crate) fn next(&mut self, request_waits: impl FnOnce() -> bool) -> Option<T> {
        if self.pending.is_empty() {
            return None;
        }
        if self.request_due && request_waits() && !seeded(Bug::ExitsStarveRequests) {
            return None;
        }
        self.request_due = true;
        self.pending.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_handled_in_order_without_requests() {
        let mut exits = FairExitQueue::new();
        exits.push(1);
        exits.push(2);
        assert_eq!(exits.next(|| false), Some(1));
        exits.push(3);
        assert_eq!(exits.next(|| false), Some(2));
        assert_eq!(exits.next(|| false), Some(3));
        assert_eq!(exits.next(|| false), None);
    }

    #[test]
    fn request_is_served_between_two_exits() {
        let mut exits = FairExitQueue::new();
        for exit in 0..3 {
            exits.push(exit);
        }
        for exit in 0..3 {
            assert_eq!(exits.next(|| true), Some(exit));
            assert_eq!(exits.next(|| true), None, "a request is next");
            exits.request_served();
        }
        assert_eq!(exits.next(|| true), None, "all are answered");
    }

    #[test]
    fn first_exit_precedes_requests() {
        let mut exits = FairExitQueue::new();
        exits.push(());
        assert_eq!(exits.next(|| true), Some(()));
    }

    #[test]
    fn requests_are_not_checked_without_exits() {
        let mut exits = FairExitQueue::<()>::new();
        assert_eq!(exits.next(|| unreachable!("there is no exit")), None);
    }
}
