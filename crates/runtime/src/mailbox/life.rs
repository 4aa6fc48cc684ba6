//! How a mailbox follows the lives of its actor: begun, told to stop, closed.

use std::mem;
use std::task::{Poll, Waker};

use super::drain::Gate;
use super::{Idle, Lanes, Mailbox, Own, System, rouse};
use crate::exit::{Exit, discard};
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

    /// Ends an incarnation that may have a successor at once.
    pub(crate) fn part(&self) {
        self.ended(self.lanes.lock(), false);
    }

    /// Begins another incarnation, where the last one ended.
    pub(crate) fn renew(&self) -> u32 {
        self.lanes.lock().begin()
    }

    /// Ends an incarnation: what was meant for it alone is dropped. If nothing more is taken in,
    /// what waited is dropped as well, and counted.
    pub(crate) fn ended(&self, mut lanes: Held<'_, Lanes<M>>, closes: bool) -> Option<u64> {
        lanes.incarnation += 1;
        lanes.receiving = false;
        lanes.batched = 0;
        self.batched.store(0, Ordering::Relaxed);
        if closes {
            return Some(self.shut(lanes));
        }
        let own = lanes.take_own();
        let drainers = lanes.end_drain();
        self.attention
            .store(lanes.needs_attention(), Ordering::Relaxed);
        drop(lanes);
        wake_all(drainers);
        if let Some(own) = own {
            drop_own(own);
        }
        None
    }

    /// Refuses all from now on; what waited is returned as a count and dropped.
    pub(crate) fn close(&self) -> u64 {
        self.shut(self.lanes.lock())
    }

    fn shut(&self, mut lanes: Held<'_, Lanes<M>>) -> u64 {
        let drainers = lanes.end_drain();
        lanes.gate = Gate::Closed;
        self.attention.store(true, Ordering::Relaxed);
        let user = mem::take(&mut lanes.user);
        if lanes.rare.is_none() && user.is_empty() {
            // Nothing waits, and nobody.
            lanes.stop = false;
            drop(lanes);
            drop(user);
            return 0;
        }
        let own = lanes.take_own();
        let waiting = lanes.take_waiting();
        let count = user.len() as u64;
        lanes.note_gone(count);
        drop(lanes);
        wake_all(drainers);
        if count > 0 {
            discard(user.into_values());
        }
        if let Some(own) = own {
            drop_own(own);
        }
        if let Some(waiting) = waiting {
            waiting
                .senders
                .into_iter()
                .for_each(|(_, waker)| waker.wake());
        }
        count
    }

    /// Waits until a stop waits for the receiver; for hooks of our own that wait for others.
    pub(crate) fn poll_stop(&self) -> Poll<()> {
        let mut lanes = self.lanes.lock();
        let stops = |one: &System| matches!(one, System::Stop(_));
        let mut news = lanes.rare.iter().flat_map(|rare| &rare.system);
        if lanes.stop || news.any(stops) {
            return Poll::Ready(());
        }
        lanes.receiving = true;
        Poll::Pending
    }

    pub(crate) fn incarnation(&self) -> u32 {
        self.lanes.lock().incarnation
    }
}

fn wake_all(wakers: Vec<Waker>) {
    if !wakers.is_empty() {
        wakers.into_iter().for_each(Waker::wake);
    }
}

#[cold]
fn drop_own<M>((completions, system): Own<M>) {
    discard(completions);
    discard(system);
}
