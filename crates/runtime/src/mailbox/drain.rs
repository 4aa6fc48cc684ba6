//! The end of a mailbox in which nothing is lost.
//!
//! A drain closes the gate to new messages and lets the actor handle what waits. When the
//! incarnation ends, for whatever reason, what it did not handle is handed to whoever drains. The
//! gate opens with the next incarnation, if there is one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use super::{Lanes, Mailbox, Refused};
use crate::schedule::strand::Lane;

/// Whether a mailbox takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    Open,
    /// Not until what waits is handled.
    Draining,
    /// Not before the next incarnation.
    Drained,
    /// Never again.
    Closed,
}

impl Gate {
    pub(super) const fn refusal(self) -> Refused {
        match self {
            Self::Closed => Refused::Closed,
            Self::Open | Self::Draining | Self::Drained => Refused::Draining,
        }
    }
}

/// One drain, shared by those who wait for its end.
pub(crate) struct Drain<M>(Mutex<State<M>>);

enum State<M> {
    Running { holders: usize, wakers: Vec<Waker> },
    Over(Vec<M>),
}

impl<M> Drain<M> {
    fn join(&self) {
        if let State::Running { holders, .. } = &mut *self.0.lock() {
            *holders += 1;
        }
    }

    /// What was not handled, once the drain is over; the first who asks gets it.
    pub(crate) fn poll_left(&self, waker: &Waker) -> Poll<Vec<M>> {
        match &mut *self.0.lock() {
            State::Over(left) => Poll::Ready(std::mem::take(left)),
            State::Running { wakers, .. } => {
                if !wakers.iter().any(|one| one.will_wake(waker)) {
                    wakers.push(waker.clone());
                }
                Poll::Pending
            }
        }
    }

    /// Takes note that one of those who wait does so no more; what is nobody's now.
    pub(crate) fn leave(&self) -> Vec<M> {
        match &mut *self.0.lock() {
            State::Over(left) => std::mem::take(left),
            State::Running { holders, .. } => {
                *holders -= 1;
                Vec::new()
            }
        }
    }

    /// Hands over what was not handled, if somebody waits for it; returns whom to wake.
    fn finish(&self, left: &mut Lane<M>) -> Vec<Waker> {
        let mut state = self.0.lock();
        match &mut *state {
            State::Running { holders: 0, .. } | State::Over(_) => Vec::new(),
            State::Running { wakers, .. } => {
                let wakers = std::mem::take(wakers);
                *state = State::Over(std::mem::take(left).into_values().collect());
                wakers
            }
        }
    }
}

impl<M> Lanes<M> {
    /// Takes those without a place out of the line; returns whom to wake.
    fn clear_line(&mut self) -> VecDeque<(u64, Waker)> {
        let Some(waiting) = self.waiting_mut() else {
            return VecDeque::new();
        };
        let refused = waiting.senders.split_off(waiting.granted);
        if waiting.granted == 0 {
            self.take_waiting();
        }
        refused
    }

    /// Ends the drain that runs, if one does; returns whom to wake.
    pub(super) fn end_drain(&mut self) -> Vec<Waker> {
        if self.gate == Gate::Draining {
            self.gate = Gate::Drained;
        }
        let drain = self.rare.as_mut().and_then(|rare| rare.drain.take());
        let Some(drain) = drain else {
            return Vec::new();
        };
        let waited = self.user.len();
        let wakers = drain.finish(&mut self.user);
        self.note_gone((waited - self.user.len()) as u64);
        wakers
    }
}

impl<M> Mailbox<M> {
    /// Begins to drain, or joins a drain that runs; `None` where nothing can wait.
    pub(crate) fn drain(&self) -> Option<Arc<Drain<M>>> {
        let mut lanes = self.lanes.lock();
        match lanes.gate {
            Gate::Drained | Gate::Closed => return None,
            Gate::Open | Gate::Draining => lanes.gate = Gate::Draining,
        }
        let drain = lanes.rare().drain.get_or_insert_with(|| {
            let (holders, wakers) = (0, Vec::new());
            Arc::new(Drain(Mutex::new(State::Running { holders, wakers })))
        });
        let drain = Arc::clone(drain);
        drain.join();
        // Those who wait for room are told, with their message; who has a place keeps it.
        let refused = lanes.clear_line();
        self.call(lanes);
        refused.into_iter().for_each(|(_, waker)| waker.wake());
        Some(drain)
    }

    /// Ends the drain that runs where no incarnation does that.
    pub(crate) fn end_drain(&self) {
        let wakers = self.lanes.lock().end_drain();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Why a message that waited for room is not taken after all.
    pub(crate) fn refusal(&self) -> Refused {
        self.lanes.lock().gate.refusal()
    }
}
