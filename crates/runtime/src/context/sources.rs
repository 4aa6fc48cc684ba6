//! The sources of an incarnation: its mailbox and its timers, which take turns.

use std::task::{self, Poll};

use super::Context;
use crate::actor::Actor;
use crate::cell::ActorCore;
use crate::event::Event;
use crate::mailbox::{MailboxState, ReceivedItem, TakeResult};
use crate::metric::MetricEvent;
use crate::schedule::strand::StrandGuard;
use crate::seeded_bug::{Bug, seeded};

/// Number of items after which an actor whose timers are not due looks at the clock again. It also
/// looks when a beat has passed, and when nothing waits.
const CLOCK_CHECK_INTERVAL: u32 = 64;

impl<A: Actor> Context<A> {
    /// Takes the next thing to do; the sources take turns, see `mailbox::rotation`.
    #[inline]
    pub(crate) fn poll_next(
        &mut self,
        mailbox_state: Option<StrandGuard<'_, MailboxState<A::Msg>>>,
        task: &task::Context<'_>,
    ) -> Poll<ReceivedItem<A::Msg>> {
        if self.state.is_some() {
            return self.poll_with_state(mailbox_state, task);
        }
        let receiver = self.receiver.get_mut();
        match receiver.poll_next(&self.cell.mailbox, mailbox_state, task) {
            Poll::Ready(ReceivedItem::Expired(count)) => {
                report_expired(&self.cell.core, count);
                self.poll_with_state(None, task)
            }
            next => next,
        }
    }

    fn poll_with_state(
        &mut self,
        mut mailbox_state: Option<StrandGuard<'_, MailboxState<A::Msg>>>,
        task: &task::Context<'_>,
    ) -> Poll<ReceivedItem<A::Msg>> {
        loop {
            match self.poll_sources(mailbox_state.take(), task) {
                Poll::Ready(ReceivedItem::PipeOutput(number, message)) => {
                    if let Some(next) = self.accept_pipe_output(number, message) {
                        return Poll::Ready(next);
                    }
                }
                Poll::Ready(ReceivedItem::Expired(count)) => report_expired(&self.cell.core, count),
                next => return next,
            }
        }
    }

    fn poll_sources(
        &mut self,
        mailbox_state: Option<StrandGuard<'_, MailboxState<A::Msg>>>,
        task: &task::Context<'_>,
    ) -> Poll<ReceivedItem<A::Msg>> {
        let (mailbox, receiver) = (&self.cell.mailbox, self.receiver.get_mut());
        let Some(state) = &mut self.state else {
            return receiver.poll_next(mailbox, mailbox_state, task);
        };
        let timers = state.timers.get_mut();
        if timers.is_empty() {
            return receiver.poll_next(mailbox, mailbox_state, task);
        }
        let shared = &self.cell.core.shared;
        // A guard that is taken below need not live as long as the caller's.
        let mut mailbox_state = mailbox_state;
        // The time of the timer to fire, if one is due.
        let mut due = None;
        if state.items_since_clock_check == 0 || receiver.may_time_have_passed() {
            // The clock is not read under the lock.
            let looks = mailbox_state.take().is_some();
            let now = shared.now();
            due = timers.is_due(now).then_some(now);
            mailbox_state = looks.then(|| mailbox.strand().lock());
        }
        loop {
            match receiver.take_next(mailbox, mailbox_state.take(), task, due.is_some()) {
                TakeResult::Item(item) => {
                    // While a timer that is due waits for its turn, it is remembered.
                    state.items_since_clock_check = match due {
                        Some(_) => 0,
                        None => (state.items_since_clock_check + 1) % CLOCK_CHECK_INTERVAL,
                    };
                    return Poll::Ready(item);
                }
                TakeResult::Timer => {
                    // Further timers may be due: looked for before the next item.
                    state.items_since_clock_check = 0;
                    let now = due.unwrap_or_else(|| shared.now());
                    return Poll::Ready(ReceivedItem::Message(timers.fire(now)));
                }
                TakeResult::TurnOver => {
                    state.items_since_clock_check = 0;
                    if seeded(Bug::TimersIgnoreTurnEnd) && timers.is_due(shared.now()) {
                        return Poll::Ready(ReceivedItem::Message(timers.fire(shared.now())));
                    }
                    return Poll::Pending;
                }
                // The actor rests only once the alarm for its next timer is set.
                TakeResult::Idle => match timers.poll_due(shared.now(), &shared.alarms, task) {
                    Poll::Ready(at) => due = Some(at),
                    Poll::Pending => {
                        state.items_since_clock_check = 0;
                        return Poll::Pending;
                    }
                },
            }
        }
    }
}

/// Reports messages that expired.
#[cold]
fn report_expired(node: &ActorCore, count: u64) {
    node.shared
        .events
        .emit(MetricEvent::Expired(count), || Event::Expired {
            path: node.path(),
            count,
        });
}
