//! The lifecycle of a mailbox: incarnations begin, are told to stop, and end, until it closes.

use std::mem;
use std::task::{Poll, Waker};

use super::drain::Gate;
use super::{
    IncarnationQueues, Mailbox, MailboxState, PlacedRunnable, Receiver, System, wake_receiver,
};
use crate::exit::{Exit, discard};
use crate::schedule::strand::StrandGuard;
use crate::schedule::wake::wake;
use crate::seeded_bug::{Bug, seeded};
use crate::sync::{Ordering, Weakening, weakened};

impl<M> MailboxState<M> {
    /// Begins an incarnation, which takes messages again if the last one was drained.
    pub(crate) fn begin_incarnation(&mut self) -> u32 {
        if self.gate == Gate::Drained {
            self.gate = Gate::Open;
        }
        self.other_work = true;
        self.incarnation
    }

    /// Returns `true` if an order to stop waits, ahead of everything else or behind other system
    /// messages.
    fn is_told_to_stop(&self) -> bool {
        let mut news = self.rare.iter().flat_map(|rare| &rare.system);
        self.stop || news.any(|one| matches!(one, System::Stop(_)))
    }
}

impl<M> Mailbox<M> {
    /// Pushes a system message: for the current incarnation, whichever it is, or only for the given
    /// one.
    pub(crate) fn system(&self, system: System, incarnation: Option<u32>) -> bool {
        let mut lanes = self.lanes.lock();
        if lanes.gate == Gate::Closed || incarnation.is_some_and(|one| one != lanes.incarnation) {
            drop(lanes);
            return false;
        }
        lanes.push_system(system);
        self.notify(lanes);
        true
    }

    /// Orders the actor to stop. If it is waiting, it is not woken but returned to the caller, who
    /// queues it.
    pub(crate) fn stop(&self) -> Option<PlacedRunnable> {
        let mut lanes = self.lanes.lock();
        if lanes.gate == Gate::Closed {
            return None;
        }
        lanes.push_system(System::Stop(Exit::Shutdown));
        self.lock_needed.store(true, Ordering::Relaxed);
        if mem::take(&mut lanes.receiving) {
            lanes.claim()
        } else {
            None
        }
    }

    pub(super) fn notify(&self, lanes: StrandGuard<'_, MailboxState<M>>) {
        if weakened(Weakening::SignalInterruptsBatch) {
            return wake_receiver(lanes);
        }
        self.lock_needed.store(true, Ordering::Relaxed);
        wake_receiver(lanes);
    }

    /// Ends an incarnation and begins the next one, which continues with the batch of the last one.
    /// Returns the number of the new incarnation, and `true` if the last one had been told to stop.
    pub(crate) fn renew(&self, receiver: &mut Receiver<M>) -> (u32, bool) {
        let mut lanes = self.lanes.lock();
        let goes_on = lanes.rare.is_none();
        if !goes_on || seeded(Bug::BatchGoesBehind) {
            receiver.give_back(self, &mut lanes);
        }
        let stopped = lanes.is_told_to_stop();
        let left = self.take_incarnation_state(&mut lanes);
        if !goes_on {
            lanes.begin_incarnation();
        }
        let incarnation = lanes.incarnation;
        drop(lanes);
        tell(left);
        (incarnation, stopped)
    }

    /// Takes out what was meant only for the incarnation that ends.
    #[inline(always)]
    fn take_incarnation_state(&self, lanes: &mut MailboxState<M>) -> Option<Box<Leftovers<M>>> {
        lanes.incarnation += 1;
        lanes.receiving = false;
        lanes.stop = false;
        let left = lanes.rare.is_some().then(|| lanes.take_leftovers());
        self.lock_needed
            .store(lanes.needs_lock(), Ordering::Relaxed);
        left
    }

    /// Ends an incarnation: what was meant only for it is dropped. If `closes`, the mailbox closes:
    /// the messages that wait are dropped as well, and their number is returned.
    pub(crate) fn end_incarnation(
        &self,
        mut lanes: StrandGuard<'_, MailboxState<M>>,
        closes: bool,
    ) -> Option<u64> {
        lanes.batch_len = 0;
        self.batch_len.store(0, Ordering::Relaxed);
        if closes {
            lanes.receiving = false;
            return Some(self.close_locked(lanes));
        }
        let left = self.take_incarnation_state(&mut lanes);
        drop(lanes);
        tell(left);
        None
    }

    /// Closes the mailbox for good; drops the messages that wait and returns their number.
    pub(crate) fn close(&self) -> u64 {
        self.close_locked(self.lanes.lock())
    }

    fn close_locked(&self, mut lanes: StrandGuard<'_, MailboxState<M>>) -> u64 {
        let left = lanes.rare.is_some().then(|| lanes.take_leftovers());
        lanes.gate = Gate::Closed;
        lanes.stop = false;
        self.lock_needed.store(true, Ordering::Relaxed);
        let user = mem::take(&mut lanes.user);
        if lanes.rare.is_none() && user.is_empty() {
            // No message waits, and no sender.
            drop(lanes);
            drop(user);
            return 0;
        }
        let waiting = lanes.take_waiting();
        let count = user.len() as u64;
        lanes.note_gone(count);
        drop(lanes);
        if count > 0 {
            discard(user.into_values());
        }
        tell(left);
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
        self.lanes.lock().is_told_to_stop()
    }

    /// Creates the means of a hook to wait for an order to stop.
    pub(crate) const fn stop_poll(&self) -> StopPoll<'_, M> {
        StopPoll(self)
    }

    pub(crate) fn incarnation(&self) -> u32 {
        self.lanes.lock().incarnation
    }
}

/// Waits for an order to stop, in a hook of this crate that also waits for other actors.
pub(crate) struct StopPoll<'a, M>(&'a Mailbox<M>);

impl<M> StopPoll<'_, M> {
    /// Ready once an order to stop waits for the receiver.
    pub(crate) fn poll(&self) -> Poll<()> {
        let mut lanes = self.0.lanes.lock();
        if lanes.is_told_to_stop() {
            return Poll::Ready(());
        }
        lanes.receiving = true;
        lanes.hook_receives = true;
        Poll::Pending
    }
}

impl<M> Drop for StopPoll<'_, M> {
    fn drop(&mut self) {
        let mut lanes = self.0.lanes.lock();
        lanes.hook_receives = false;
        lanes.receiving = false;
    }
}

/// Leftovers of an incarnation that had more than messages.
struct Leftovers<M> {
    own: Option<IncarnationQueues<M>>,
    /// The callers that wait for the end of a drain.
    drainers: Vec<Waker>,
}

impl<M> MailboxState<M> {
    #[cold]
    fn take_leftovers(&mut self) -> Box<Leftovers<M>> {
        let drainers = self.end_drain();
        let own = self.take_own();
        Box::new(Leftovers { own, drainers })
    }
}

/// Drops what no incarnation receives and wakes the callers that wait, after the lock was released.
#[inline(always)]
fn tell<M>(left: Option<Box<Leftovers<M>>>) {
    if let Some(left) = left {
        left.tell();
    }
}

impl<M> Leftovers<M> {
    #[cold]
    fn tell(self) {
        self.drainers.into_iter().for_each(Waker::wake);
        if let Some((completions, system)) = self.own {
            discard(completions);
            discard(system);
        }
    }
}
