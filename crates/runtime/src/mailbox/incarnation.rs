//! The lifecycle of a mailbox: incarnations begin, are told to stop, and end, until it closes.

use std::mem;
use std::task::{Poll, Waker};

use super::drain::Admission;
use super::{
    HomedRunnable, IncarnationQueues, Mailbox, MailboxState, Receiver, SystemMessage, wake_receiver,
};
use crate::exit::{Exit, drop_all_caught};
use crate::schedule::strand::StrandGuard;
use crate::schedule::wake::wake;
use crate::seeded_bug::{Bug, seeded};
use crate::sync::{Ordering, Weakening, weakened};

impl<M> MailboxState<M> {
    /// Begins an incarnation, which takes messages again if the last one was drained.
    pub(crate) fn begin_incarnation(&mut self) -> u32 {
        // A drain ends one incarnation; the next one takes messages again.
        if self.admission == Admission::Drained {
            self.admission = Admission::Open;
        }
        self.last_was_control = true;
        self.incarnation
    }

    /// Returns `true` if an order to stop waits, ahead of everything else or behind other system
    /// messages.
    fn is_told_to_stop(&self) -> bool {
        let mut news = self.cold.iter().flat_map(|cold| &cold.system);
        self.stop_requested || news.any(|one| matches!(one, SystemMessage::Stop(_)))
    }
}

impl<M> Mailbox<M> {
    /// Pushes a system message: for the current incarnation, whichever it is, or only for the given
    /// one.
    pub(crate) fn push_system(&self, system: SystemMessage, incarnation: Option<u32>) -> bool {
        let mut state = self.strand.lock();
        // The end of a task or a pipe of an earlier incarnation does not concern this one.
        if state.admission == Admission::Closed
            || incarnation.is_some_and(|one| one != state.incarnation)
        {
            drop(state);
            return false;
        }
        state.push_system(system);
        self.notify(state);
        true
    }

    /// Orders the actor to stop. If it is waiting, it is not woken but returned to the caller, who
    /// queues it.
    pub(crate) fn stop(&self) -> Option<HomedRunnable> {
        let mut state = self.strand.lock();
        if state.admission == Admission::Closed {
            return None;
        }
        // A running actor reads the flag before its next message, and needs no wake-up.
        state.push_system(SystemMessage::Stop(Exit::Shutdown));
        self.lock_needed.store(true, Ordering::Relaxed);
        if mem::take(&mut state.receiving) {
            state.into_runnable()
        } else {
            None
        }
    }

    pub(super) fn notify(&self, state: StrandGuard<'_, MailboxState<M>>) {
        if weakened(Weakening::SignalInterruptsBatch) {
            return wake_receiver(state);
        }
        self.lock_needed.store(true, Ordering::Relaxed);
        wake_receiver(state);
    }

    /// Ends an incarnation and begins the next one, which continues with the batch of the last one.
    /// Returns the number of the new incarnation, and `true` if the last one had been told to stop.
    pub(crate) fn begin_next_incarnation(&self, receiver: &mut Receiver<M>) -> (u32, bool) {
        let mut state = self.strand.lock();
        // Without cold state only messages wait: the next incarnation keeps the batch where it is,
        // and the restart costs one lock.
        let goes_on = state.cold.is_none();
        if !goes_on || seeded(Bug::BatchReturnedToBack) {
            receiver.return_batch_locked(self, &mut state);
        }
        // An order to stop belongs to the incarnation that ends, but the caller must know of it: an
        // actor that was told to stop is not restarted.
        let stopped = state.is_told_to_stop();
        let left = self.take_incarnation_state(&mut state);
        if !goes_on {
            state.begin_incarnation();
        }
        let incarnation = state.incarnation;
        drop(state);
        drop_leftovers(left);
        (incarnation, stopped)
    }

    /// Takes out what was meant only for the incarnation that ends.
    #[inline(always)]
    fn take_incarnation_state(
        &self,
        state: &mut MailboxState<M>,
    ) -> Option<Box<IncarnationLeftovers<M>>> {
        // From here on, completions and signals for the old incarnation are refused.
        state.incarnation += 1;
        state.receiving = false;
        state.stop_requested = false;
        let left = state.cold.is_some().then(|| state.take_leftovers());
        self.lock_needed
            .store(state.needs_lock(), Ordering::Relaxed);
        left
    }

    /// Ends an incarnation: what was meant only for it is dropped. If `closes`, the mailbox closes:
    /// the messages that wait are dropped as well, and their number is returned.
    pub(crate) fn end_incarnation(
        &self,
        mut state: StrandGuard<'_, MailboxState<M>>,
        closes: bool,
    ) -> Option<u64> {
        state.batch_len = 0;
        self.batch_len.store(0, Ordering::Relaxed);
        if closes {
            state.receiving = false;
            return Some(self.close_locked(state));
        }
        let left = self.take_incarnation_state(&mut state);
        drop(state);
        drop_leftovers(left);
        None
    }

    /// Closes the mailbox for good; drops the messages that wait and returns their number.
    pub(crate) fn close(&self) -> u64 {
        self.close_locked(self.strand.lock())
    }

    fn close_locked(&self, mut state: StrandGuard<'_, MailboxState<M>>) -> u64 {
        let left = state.cold.is_some().then(|| state.take_leftovers());
        state.admission = Admission::Closed;
        state.stop_requested = false;
        self.lock_needed.store(true, Ordering::Relaxed);
        let user = mem::take(&mut state.messages);
        // Most actors end with nothing waiting; they skip what only cold state can hold.
        if state.cold.is_none() && user.is_empty() {
            // No message waits, and no sender.
            drop(state);
            drop(user);
            return 0;
        }
        let waiting = state.take_waiting();
        let count = user.len() as u64;
        state.add_removed_unhandled(count);
        drop(state);
        if count > 0 {
            drop_all_caught(user.into_values());
        }
        drop_leftovers(left);
        if weakened(Weakening::CloseWakesSenders) {
            return count;
        }
        if let Some(waiting) = waiting {
            waiting
                .senders
                .into_iter()
                .for_each(|(_, waker)| wake(waker));
        }
        count
    }

    /// Returns `true` if an order to stop waits for the receiver.
    pub(crate) fn is_told_to_stop(&self) -> bool {
        self.strand.lock().is_told_to_stop()
    }

    /// Creates the means of a hook to wait for an order to stop.
    pub(crate) const fn stop_request(&self) -> StopRequest<'_, M> {
        StopRequest(self)
    }

    pub(crate) fn incarnation(&self) -> u32 {
        self.strand.lock().incarnation
    }
}

/// Waits for an order to stop, in a hook of this crate that also waits for other actors.
pub(crate) struct StopRequest<'a, M>(&'a Mailbox<M>);

impl<M> StopRequest<'_, M> {
    /// Ready once an order to stop waits for the receiver.
    pub(crate) fn poll(&self) -> Poll<()> {
        let mut state = self.0.strand.lock();
        if state.is_told_to_stop() {
            return Poll::Ready(());
        }
        // The push of an order wakes an actor only while `receiving` is set. The second flag says
        // that the actor is not idle, so that `first_unanswered` still counts the message it
        // handles.
        state.receiving = true;
        state.hook_waits_for_stop = true;
        Poll::Pending
    }
}

impl<M> Drop for StopRequest<'_, M> {
    fn drop(&mut self) {
        let mut state = self.0.strand.lock();
        state.hook_waits_for_stop = false;
        state.receiving = false;
    }
}

/// Leftovers of an incarnation that had more than messages.
struct IncarnationLeftovers<M> {
    queues: Option<IncarnationQueues<M>>,
    /// The callers that wait for the end of a drain.
    drainers: Vec<Waker>,
}

impl<M> MailboxState<M> {
    #[cold]
    fn take_leftovers(&mut self) -> Box<IncarnationLeftovers<M>> {
        let drainers = self.end_drain();
        let own = self.take_incarnation_queues();
        Box::new(IncarnationLeftovers {
            queues: own,
            drainers,
        })
    }
}

/// Drops what no incarnation receives and wakes the callers that wait, after the lock was released.
#[inline(always)]
fn drop_leftovers<M>(left: Option<Box<IncarnationLeftovers<M>>>) {
    if let Some(left) = left {
        left.wake_and_drop();
    }
}

impl<M> IncarnationLeftovers<M> {
    #[cold]
    fn wake_and_drop(self) {
        self.drainers.into_iter().for_each(Waker::wake);
        if let Some((completions, system)) = self.queues {
            // Their destructors are foreign code: a panic in one must not keep the others from
            // being dropped.
            drop_all_caught(completions);
            drop_all_caught(system);
        }
    }
}
