//! Fairness between the exits of children and requests.

use std::collections::VecDeque;

use crate::seeded_bug::{Bug, seeded};

/// The exits that a supervisor has yet to answer, in order.
///
/// Signals overtake messages, so a child that fails as soon as it is restarted could keep its
/// supervisor from its requests forever: each answer leads to the next exit. Therefore, after each
/// answered exit, one pending request is served before the next exit.
#[derive(Debug)]
pub(crate) struct FairExits<T> {
    pending: VecDeque<T>,
    /// `true` if an exit was answered and no request has been served since.
    yields: bool,
}

impl<T> FairExits<T> {
    pub(crate) const fn new() -> Self {
        Self {
            pending: VecDeque::new(),
            yields: false,
        }
    }

    /// Adds an exit.
    pub(crate) fn push(&mut self, exit: T) {
        self.pending.push_back(exit);
    }

    /// Records that a request was served.
    pub(crate) const fn request_served(&mut self) {
        self.yields = false;
    }

    /// Takes the exit to answer now. Returns `None` if it is a pending request's turn; the caller
    /// then serves that request before it calls this again.
    pub(crate) fn next(&mut self, request_waits: impl FnOnce() -> bool) -> Option<T> {
        if self.pending.is_empty() {
            return None;
        }
        if self.yields && request_waits() && !seeded(Bug::ExitsStarveRequests) {
            return None;
        }
        self.yields = true;
        self.pending.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_answered_in_order_while_no_request_waits() {
        let mut exits = FairExits::new();
        exits.push(1);
        exits.push(2);
        assert_eq!(exits.next(|| false), Some(1));
        exits.push(3);
        assert_eq!(exits.next(|| false), Some(2));
        assert_eq!(exits.next(|| false), Some(3));
        assert_eq!(exits.next(|| false), None);
    }

    #[test]
    fn a_request_comes_between_two_exits() {
        let mut exits = FairExits::new();
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
    fn the_first_exit_overtakes_requests() {
        let mut exits = FairExits::new();
        exits.push(());
        assert_eq!(exits.next(|| true), Some(()));
    }

    #[test]
    fn nobody_looks_for_requests_without_an_exit() {
        let mut exits = FairExits::<()>::new();
        assert_eq!(exits.next(|| unreachable!("there is no exit")), None);
    }
}
