//! The sources of an incarnation: its mailbox and its timers, which take turns.

use std::task::{self, Poll};

use super::Context;
use crate::actor::Actor;
use crate::expiry::expired;
use crate::mailbox::{MailboxState, Received, TakeResult};
use crate::schedule::strand::StrandGuard;
use crate::seeded_bug::{Bug, seeded};

/// Number of items after which an actor whose timers are not due looks at the clock again. It also
/// looks when a beat has passed, and when nothing waits.
const TIMER_STRIDE: u32 = 64;

impl<A: Actor> Context<A> {
    /// Takes the next thing to do; the sources take turns, see `mailbox::round`.
    #[inline]
    pub(crate) fn poll_next(
        &mut self,
        lanes: Option<StrandGuard<'_, MailboxState<A::Msg>>>,
        task: &task::Context<'_>,
    ) -> Poll<Received<A::Msg>> {
        if self.state.is_some() {
            return self.poll_held(lanes, task);
        }
        let receiver = self.receiver.get_mut();
        match receiver.poll_next(&self.cell.mailbox, lanes, task) {
            Poll::Ready(Received::Expired(count)) => {
                expired(&self.cell.node, count);
                self.poll_held(None, task)
            }
            next => next,
        }
    }

    fn poll_held(
        &mut self,
        mut lanes: Option<StrandGuard<'_, MailboxState<A::Msg>>>,
        task: &task::Context<'_>,
    ) -> Poll<Received<A::Msg>> {
        loop {
            match self.poll_any(lanes.take(), task) {
                Poll::Ready(Received::Piped(number, message)) => {
                    if let Some(next) = self.piped(number, message) {
                        return Poll::Ready(next);
                    }
                }
                Poll::Ready(Received::Expired(count)) => expired(&self.cell.node, count),
                next => return next,
            }
        }
    }

    fn poll_any(
        &mut self,
        lanes: Option<StrandGuard<'_, MailboxState<A::Msg>>>,
        task: &task::Context<'_>,
    ) -> Poll<Received<A::Msg>> {
        let (mailbox, receiver) = (&self.cell.mailbox, self.receiver.get_mut());
        let Some(state) = &mut self.state else {
            return receiver.poll_next(mailbox, lanes, task);
        };
        let timers = state.timers.get_mut();
        if timers.is_empty() {
            return receiver.poll_next(mailbox, lanes, task);
        }
        let shared = &self.cell.node.shared;
        let mut lanes = lanes;
        // The time of the timer to fire, if one is due.
        let mut due = None;
        if state.since_timers == 0 || receiver.may_be_later() {
            // The clock is not read under the lock.
            let looks = lanes.take().is_some();
            let now = shared.now();
            due = timers.is_due(now).then_some(now);
            lanes = looks.then(|| mailbox.strand().lock());
        }
        loop {
            match receiver.take_next(mailbox, lanes.take(), task, due.is_some()) {
                TakeResult::Item(item) => {
                    // While a timer that is due waits for its turn, it is remembered.
                    state.since_timers = match due {
                        Some(_) => 0,
                        None => (state.since_timers + 1) % TIMER_STRIDE,
                    };
                    return Poll::Ready(item);
                }
                TakeResult::Timer => {
                    // Further timers may be due: looked for before the next item.
                    state.since_timers = 0;
                    let now = due.unwrap_or_else(|| shared.now());
                    return Poll::Ready(Received::Message(timers.fire(now)));
                }
                TakeResult::TurnOver => {
                    state.since_timers = 0;
                    if seeded(Bug::TimersOutliveTheTurn) && timers.is_due(shared.now()) {
                        return Poll::Ready(Received::Message(timers.fire(shared.now())));
                    }
                    return Poll::Pending;
                }
                // The actor rests only once the alarm for its next timer is set.
                TakeResult::Idle => match timers.poll_due(shared.now(), &shared.alarms, task) {
                    Poll::Ready(at) => due = Some(at),
                    Poll::Pending => {
                        state.since_timers = 0;
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}
