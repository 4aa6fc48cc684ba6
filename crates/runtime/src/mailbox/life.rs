//! How a mailbox follows the lives of its actor: begun, told to stop, closed.

use std::mem;
use std::task::{Poll, Waker};

use super::drain::Gate;
use super::{Idle, Lanes, Mailbox, Own, Receiver, System, rouse};
use crate::exit::{Exit, discard};
use crate::planted::{Bug, planted};
use crate::schedule::strand::Held;
use crate::sync::Ordering;

impl<M> Lanes<M> {
    /// Begins an incarnation, which takes messages again if the last one was drained.
    pub(crate) fn begin(&mut self) -> u32 {
        if self.gate == Gate::Drained {
            self.gate = Gate::Open;
        }
        self.aside = true;
        self.incarnation
    }

    /// Returns `true` if a stop waits, in front of all else or behind other news.
    fn is_told_to_stop(&self) -> bool {
        let mut news = self.rare.iter().flat_map(|rare| &rare.system);
        self.stop || news.any(|one| matches!(one, System::Stop(_)))
    }
}

impl<M> Mailbox<M> {
    /// Puts something in the system lane: for whichever incarnation runs, or for one of them.
    pub(crate) fn system(&self, system: System, incarnation: Option<u32>) -> bool {
        let mut lanes = self.lanes.lock();
        if lanes.gate == Gate::Closed || incarnation.is_some_and(|one| one != lanes.incarnation) {
            drop(lanes);
            return false;
        }
        lanes.push_system(system);
        self.call(lanes);
        true
    }

    /// Orders the actor to stop. If it waits, it is not woken but given to the caller, who queues
    /// it.
    pub(crate) fn stop(&self) -> Option<Idle> {
        let mut lanes = self.lanes.lock();
        if lanes.gate == Gate::Closed {
            return None;
        }
        lanes.push_system(System::Stop(Exit::Shutdown));
        self.attention.store(true, Ordering::Relaxed);
        if mem::take(&mut lanes.receiving) {
            lanes.claim()
        } else {
            None
        }
    }

    pub(super) fn call(&self, lanes: Held<'_, Lanes<M>>) {
        self.attention.store(true, Ordering::Relaxed);
        rouse(lanes);
    }

    /// Ends an incarnation and begins another one, which goes on with what the last one took out.
    /// Returns its number, and whether the last one was told to stop on its way.
    pub(crate) fn renew(&self, receiver: &mut Receiver<M>) -> (u32, bool) {
        let mut lanes = self.lanes.lock();
        let goes_on = lanes.rare.is_none();
        if !goes_on || planted(Bug::BatchGoesBehind) {
            receiver.give_back(self, &mut lanes);
        }
        let stopped = lanes.is_told_to_stop();
        let left = self.part(&mut lanes);
        if !goes_on {
            lanes.begin();
        }
        let incarnation = lanes.incarnation;
        drop(lanes);
        tell(left);
        (incarnation, stopped)
    }

    /// Takes out what was meant for the incarnation alone that ends.
    #[inline(always)]
    fn part(&self, lanes: &mut Lanes<M>) -> Option<Box<Left<M>>> {
        lanes.incarnation += 1;
        lanes.receiving = false;
        lanes.stop = false;
        let left = lanes.rare.is_some().then(|| lanes.take_left());
        self.attention
            .store(lanes.needs_attention(), Ordering::Relaxed);
        left
    }

    /// Ends an incarnation: what was meant for it alone is dropped. If nothing more is taken in,
    /// what waited is dropped as well, and counted.
    pub(crate) fn ended(&self, mut lanes: Held<'_, Lanes<M>>, closes: bool) -> Option<u64> {
        lanes.batched = 0;
        self.batched.store(0, Ordering::Relaxed);
        if closes {
            lanes.receiving = false;
            return Some(self.shut(lanes));
        }
        let left = self.part(&mut lanes);
        drop(lanes);
        tell(left);
        None
    }

    /// Refuses all from now on; what waited is returned as a count and dropped.
    pub(crate) fn close(&self) -> u64 {
        self.shut(self.lanes.lock())
    }

    fn shut(&self, mut lanes: Held<'_, Lanes<M>>) -> u64 {
        let left = lanes.rare.is_some().then(|| lanes.take_left());
        lanes.gate = Gate::Closed;
        lanes.stop = false;
        self.attention.store(true, Ordering::Relaxed);
        let user = mem::take(&mut lanes.user);
        if lanes.rare.is_none() && user.is_empty() {
            // Nothing waits, and nobody.
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
        if let Some(waiting) = waiting {
            waiting
                .senders
                .into_iter()
                .for_each(|(_, waker)| waker.wake());
        }
        count
    }

    /// Returns `true` if a stop waits for the receiver.
    pub(crate) fn is_told_to_stop(&self) -> bool {
        self.lanes.lock().is_told_to_stop()
    }

    /// Waits until a stop waits for the receiver; for hooks of our own that wait for others.
    pub(crate) fn poll_stop(&self) -> Poll<()> {
        let mut lanes = self.lanes.lock();
        if lanes.is_told_to_stop() {
            return Poll::Ready(());
        }
        lanes.receiving = true;
        Poll::Pending
    }

    pub(crate) fn incarnation(&self) -> u32 {
        self.lanes.lock().incarnation
    }
}

/// What is left of an incarnation that had more than messages.
struct Left<M> {
    own: Option<Own<M>>,
    /// Those who wait for the end of a drain.
    drainers: Vec<Waker>,
}

impl<M> Lanes<M> {
    #[cold]
    fn take_left(&mut self) -> Box<Left<M>> {
        let drainers = self.end_drain();
        let own = self.take_own();
        Box::new(Left { own, drainers })
    }
}

/// Drops what nobody gets, once the lock is given back, and tells those who wait.
#[inline(always)]
fn tell<M>(left: Option<Box<Left<M>>>) {
    if let Some(left) = left {
        left.tell();
    }
}

impl<M> Left<M> {
    #[cold]
    fn tell(self) {
        self.drainers.into_iter().for_each(Waker::wake);
        if let Some((completions, system)) = self.own {
            discard(completions);
            discard(system);
        }
    }
}
