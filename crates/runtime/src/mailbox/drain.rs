//! Draining: an end of an incarnation that loses no message.
//!
//! A drain closes the gate to new messages and lets the actor handle those that wait. When the
//! incarnation ends, for whatever reason, the messages that it did not handle are handed to the
//! caller of the drain. The gate opens with the next incarnation, if there is one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;

use super::{Mailbox, MailboxState, PushError};
use crate::schedule::strand::MessageQueue;
use crate::schedule::wake::wake;

/// The gate of a mailbox, which admits or refuses messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Open,
    /// Refuses messages while those that wait are handled.
    Draining,
    /// Refuses messages until the next incarnation.
    Drained,
    /// Refuses messages for good.
    Closed,
}

impl Admission {
    pub(super) const fn refusal(self) -> PushError {
        match self {
            Self::Closed => PushError::Closed,
            Self::Open | Self::Draining | Self::Drained => PushError::Draining,
        }
    }
}

/// One drain, shared by all callers that wait for its end.
pub(crate) struct Drain<M>(Mutex<DrainState<M>>);

enum DrainState<M> {
    Running { holders: usize, wakers: Vec<Waker> },
    Over(Vec<M>),
}

impl<M> Drain<M> {
    fn add_waiter(&self) {
        if let DrainState::Running { holders, .. } = &mut *self.0.lock() {
            *holders += 1;
        }
    }

    /// Returns the unhandled messages once the drain is over; the first caller gets them.
    pub(crate) fn poll_unhandled(&self, waker: &Waker) -> Poll<Vec<M>> {
        match &mut *self.0.lock() {
            DrainState::Over(left) => Poll::Ready(std::mem::take(left)),
            DrainState::Running { wakers, .. } => {
                if !wakers.iter().any(|one| one.will_wake(waker)) {
                    wakers.push(waker.clone());
                }
                Poll::Pending
            }
        }
    }

    /// Removes one of the waiting callers. If the drain is over, returns the messages that no
    /// caller has taken.
    pub(crate) fn remove_waiter(&self) -> Vec<M> {
        match &mut *self.0.lock() {
            DrainState::Over(left) => std::mem::take(left),
            DrainState::Running { holders, .. } => {
                *holders -= 1;
                Vec::new()
            }
        }
    }

    /// Hands over the unhandled messages if a caller still waits for them; returns the wakers to
    /// wake.
    fn finish(&self, left: &mut MessageQueue<M>) -> Vec<Waker> {
        let mut state = self.0.lock();
        match &mut *state {
            DrainState::Running { holders: 0, .. } | DrainState::Over(_) => Vec::new(),
            DrainState::Running { wakers, .. } => {
                let wakers = std::mem::take(wakers);
                *state = DrainState::Over(std::mem::take(left).into_values().collect());
                wakers
            }
        }
    }
}

impl<M> MailboxState<M> {
    /// Removes the senders without a place from the queue; returns their wakers.
    fn refuse_waiting_senders(&mut self) -> VecDeque<(u64, Waker)> {
        let Some(waiting) = self.waiting_mut() else {
            return VecDeque::new();
        };
        let refused = waiting.senders.split_off(waiting.granted);
        if waiting.granted == 0 {
            self.take_waiting();
        }
        refused
    }

    /// Ends the current drain, if any; returns the wakers to wake.
    pub(super) fn end_drain(&mut self) -> Vec<Waker> {
        if self.admission == Admission::Draining {
            self.admission = Admission::Drained;
        }
        let drain = self.cold.as_mut().and_then(|cold| cold.drain.take());
        let Some(drain) = drain else {
            return Vec::new();
        };
        let waited = self.messages.len();
        let wakers = drain.finish(&mut self.messages);
        self.add_removed_unhandled((waited - self.messages.len()) as u64);
        wakers
    }
}

impl<M> Mailbox<M> {
    /// Begins a drain, or joins the current one. Returns `None` if no message can be waiting.
    pub(crate) fn drain(&self) -> Option<Arc<Drain<M>>> {
        let mut state = self.strand.lock();
        match state.admission {
            Admission::Drained | Admission::Closed => return None,
            Admission::Open | Admission::Draining => state.admission = Admission::Draining,
        }
        let drain = state.cold_mut().drain.get_or_insert_with(|| {
            let (holders, wakers) = (0, Vec::new());
            Arc::new(Drain(Mutex::new(DrainState::Running { holders, wakers })))
        });
        let drain = Arc::clone(drain);
        drain.add_waiter();
        // Senders that wait for room are refused and get their messages back; a sender that holds a
        // place keeps it.
        let refused = state.refuse_waiting_senders();
        self.notify(state);
        refused.into_iter().for_each(|(_, waker)| wake(waker));
        Some(drain)
    }

    /// Ends the current drain where no incarnation does so.
    pub(crate) fn end_drain(&self) {
        let wakers = self.strand.lock().end_drain();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the reason why a message that waited for room is refused after all.
    pub(crate) fn refusal(&self) -> PushError {
        self.strand.lock().admission.refusal()
    }
}
