//! The mailbox of an actor.
//!
//! One lock guards the three lanes of a mailbox: *system* (stop, down, links), *completion*
//! (answers that the actor asked for through a lane, and outputs of pipes) and *user*. The receiver
//! takes the whole user lane out at once, and so locks once for a batch, but the batch still
//! counts:
//!
//! - **Capacity is exact.** The receiver publishes how many messages of its batch remain, and a
//!   sender adds that number.
//! - **Signals overtake**, within the limits of [`round`]. The receiver reads one relaxed flag for
//!   each message. A set flag sends it back to the lock, even in the middle of a batch.
//! - **No waiting message is lost.** The batch survives a panic and goes back to the front of the
//!   queue.
//! - **Only the sender that finds the actor receiving wakes it**, under the same lock.

mod batch;
mod drain;
mod expiry;
mod life;
#[cfg(all(test, strowger_loom))]
mod loom;
mod rare;
mod receiver;
mod round;
mod spec;
mod stats;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

use tokio::time::Instant;

use crate::exit::{Exit, discard};
use crate::info::COUNTED;
use crate::monitor::Signal;
use crate::schedule::strand::{MessageQueue, OpaqueMessage, Runnable, Strand, StrandGuard};
use crate::seeded_bug::{Bug, seeded};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, Weakening, weakened};
pub(crate) use drain::Drain;
use drain::Gate;
use expiry::Expiry;
use rare::RareMailboxState;
use receiver::BUDGET;
pub(crate) use receiver::{LookResult, Receiver, TakeResult};
pub use spec::{MailboxSpec, Overflow};
pub(crate) use stats::MailboxStats;

/// An actor that waits for messages: the right to run it, and the worker that it belongs to.
pub(crate) type PlacedRunnable = (Runnable, u32);

/// The promise of a sender.
const ONCE: &str = "a message is sent once";

/// A system message: an order, which comes before everything else, or a signal.
#[derive(Debug)]
pub(crate) enum System {
    Stop(Exit),
    Signal(Signal),
    Panic(Arc<str>),
    TaskEnded(u64),
    PipePanicked(u64, Arc<str>),
}

impl System {
    /// Returns `true` if it ends the incarnation.
    const fn is_order(&self) -> bool {
        matches!(self, Self::Stop(_) | Self::Panic(_))
    }
}

/// The reason why a message was refused. The message stays with its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Closed,
    Draining,
    Full,
}

/// The next thing that the receiver takes.
#[derive(Debug)]
pub(crate) enum Received<M> {
    /// An order to end with [`Exit::Shutdown`].
    Stop,
    System(Box<System>),
    Message(M),
    /// The output of the pipe with this number.
    Piped(u64, M),
    /// This number of messages had expired or were abandoned, and were dropped.
    Expired(u64),
}

/// A mailbox: the half that senders share.
// The order of the fields keeps what senders write and what the receiver writes on different cache
// lines.
#[repr(C)]
pub(crate) struct Mailbox<M> {
    lanes: Strand<MailboxState<M>>,
    /// Number of messages of its batch that the receiver has not handled; written by the receiver
    /// only.
    batch_len: AtomicUsize,
    /// Tells the receiver that a lane other than its batch needs it.
    lock_needed: AtomicBool,
    overflow: Overflow,
    capacity: usize,
    /// Total nanoseconds that the actor was at work.
    busy: AtomicU64,
    /// Nanoseconds that the last measured batch took.
    waited: AtomicU64,
}

// The fields that every message needs come first.
#[repr(C)]
pub(crate) struct MailboxState<M> {
    user: MessageQueue<M>,
    /// Number of messages of its batch that the receiver had not handled at the last check; never
    /// too small.
    batch_len: usize,
    /// From this many messages in the queue and the batch together, a push takes the slow path,
    /// which checks the capacity and records the depth.
    slow_path_depth: usize,
    /// Number of messages ever pushed; see `expiry`.
    push_count: u64,
    gate: Gate,
    /// Set while the actor waits for something to be pushed.
    receiving: bool,
    /// Set while an order to stop waits in front of the system lane.
    stop: bool,
    /// Set if a sender began to wait since the receiver last granted places.
    has_new_waiter: bool,
    /// Set unless the receiver's last item was a message of the user lane.
    other_work: bool,
    /// A new budget for the receiver: how many items the actor may handle before it lets others
    /// run. Zero once the receiver has taken it.
    budget: u16,
    /// Set when a turn begins, and cleared when the receiver has noticed.
    turn_began: bool,
    /// Set while a hook waits for an order to stop: then the actor is not idle, though `receiving`
    /// is set.
    hook_receives: bool,
    incarnation: u32,
    /// Highest number of messages that ever waited, saturating.
    high_water: u32,
    rare: Option<Box<RareMailboxState<M>>>,
}

/// The result of a push.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accepted {
    /// The message's number; see `expiry`. Meaningless if the overflow rule dropped the message.
    pub(crate) number: u64,
    /// Number of messages that the overflow rule dropped.
    pub(crate) dropped: u64,
}

/// A message beyond the capacity: an answer, or the output of a pipe.
struct CompletedItem<M> {
    message: M,
    pipe: Option<u64>,
}

/// The completions and system messages that are meant for one incarnation only.
type IncarnationQueues<M> = (VecDeque<CompletedItem<M>>, VecDeque<System>);

/// Senders that wait for room, oldest first; the first `granted` of them hold a place.
#[derive(Default)]
struct SenderQueue {
    senders: VecDeque<(u64, Waker)>,
    granted: usize,
    next_ticket: u64,
}

impl SenderQueue {
    fn remove(&mut self, ticket: u64) -> Option<bool> {
        let at = self
            .senders
            .binary_search_by_key(&ticket, |(ticket, _)| *ticket)
            .ok()?;
        self.senders.remove(at);
        let granted = at < self.granted;
        self.granted -= usize::from(granted);
        Some(granted)
    }
}

impl<M> MailboxState<M> {
    fn granted(&self) -> usize {
        self.waiting().map_or(0, |waiting| waiting.granted)
    }

    /// Returns the queue of senders that wait for room. Its tickets start from the number of the
    /// incarnation, so that a ticket from a queue that a drain cleared matches no later one.
    fn sender_queue(&mut self) -> &mut SenderQueue {
        let next_ticket = u64::from(self.incarnation) << 32;
        // While senders wait, every push takes the slow path.
        self.slow_path_depth = 0;
        self.rare().waiting.get_or_insert_with(|| SenderQueue {
            next_ticket,
            ..SenderQueue::default()
        })
    }

    fn has_ungranted(&self) -> bool {
        self.waiting()
            .is_some_and(|waiting| waiting.granted < waiting.senders.len())
    }

    /// Pushes a message; returns its number.
    #[inline(always)]
    fn push(&mut self, message: impl FnOnce() -> M, until: Option<Instant>) -> u64 {
        // Building the message may panic; nothing has changed at that point.
        self.user.push(message());
        let number = self.push_count;
        self.push_count += 1;
        if let Some(until) = until {
            self.set_expiry(number, Expiry::Until(until));
        }
        number
    }

    /// Records the depth after one more push, and sets `slow_path_depth`, the depth at which pushes
    /// take the slow path again: a sixteenth above the high-water mark, at most the capacity, and
    /// zero while senders wait.
    fn note_depth(&mut self, depth: usize, capacity: usize) {
        self.slow_path_depth = capacity;
        if COUNTED {
            let depth = u32::try_from(depth).unwrap_or(u32::MAX);
            self.high_water = self.high_water.max(depth);
            let mark = self.high_water.saturating_add(self.high_water / 16);
            self.slow_path_depth = capacity.min(mark as usize);
        }
        if self.waiting().is_some() {
            self.slow_path_depth = 0;
        }
    }

    /// Grants free places to the senders that have waited longest; returns the wakers to wake.
    fn grant(&mut self, capacity: usize, batch_len: usize) -> Vec<Waker> {
        let used = self.user.len() + batch_len;
        let Some(waiting) = self.waiting_mut() else {
            return Vec::new();
        };
        let places = capacity.saturating_sub(used).min(waiting.senders.len());
        let mut wakers = Vec::new();
        while waiting.granted < places {
            wakers.push(waiting.senders[waiting.granted].1.clone());
            waiting.granted += 1;
        }
        wakers
    }

    fn has_work(&self) -> bool {
        self.stop || !self.user.is_empty() || self.has_other_work()
    }

    fn needs_lock(&self) -> bool {
        self.has_signals() || self.has_ungranted()
    }

    /// Returns `true` if something other than messages needs the receiver.
    fn has_signals(&self) -> bool {
        self.stop || self.gate != Gate::Open || self.has_other_work()
    }

    /// Queues a system message. The most common one, a plain order to stop, is a flag and needs no
    /// queue.
    ///
    /// Orders overtake the signals that wait, so that an end does not depend on how many there are.
    /// They keep their own order: the first of them decides the exit.
    fn push_system(&mut self, system: System) {
        let is_plain_stop = matches!(system, System::Stop(Exit::Shutdown));
        let behind = seeded(Bug::StopWaitsForSignals);
        let first = self.rare.as_ref().and_then(|rare| rare.system.front());
        if is_plain_stop && !first.is_some_and(|first| behind || first.is_order()) {
            self.stop = true;
            return;
        }
        let queue = &mut self.rare().system;
        if !system.is_order() || behind {
            queue.push_back(system);
            return;
        }
        let orders = queue.iter().take_while(|one| one.is_order());
        let mut at = 0;
        for order in orders {
            // A second order to stop changes nothing.
            if is_plain_stop && matches!(order, System::Stop(_)) {
                return;
            }
            at += 1;
        }
        queue.insert(at, system);
    }

    /// Returns `true` if an order waits, which comes before everything else.
    fn has_order(&self) -> bool {
        let first = || self.rare.as_ref()?.system.front();
        self.stop || first().is_some_and(System::is_order)
    }

    fn pop_system(&mut self) -> Option<Received<M>> {
        if mem::take(&mut self.stop) {
            return Some(Received::Stop);
        }
        let system = self.rare.as_mut()?.system.pop_front()?;
        Some(Received::System(Box::new(system)))
    }

    /// Takes the order to stop that waits ahead of everything else, if there is one.
    #[inline]
    pub(crate) fn take_stop(&mut self) -> bool {
        if self.stop {
            self.receiving = false;
            self.other_work = true;
        }
        mem::take(&mut self.stop)
    }

    /// Takes out what is meant for one incarnation only.
    fn take_own(&mut self) -> Option<IncarnationQueues<M>> {
        let rare = self.rare.as_mut()?;
        let none = rare.completions.is_empty() && rare.system.is_empty();
        (!none).then(|| {
            (
                mem::take(&mut rare.completions),
                mem::take(&mut rare.system),
            )
        })
    }
}

impl<M> Mailbox<M> {
    #[inline(always)]
    pub(crate) fn new(spec: MailboxSpec) -> Self {
        Self {
            lanes: Strand::new(MailboxState {
                user: MessageQueue::new(),
                batch_len: 0,
                slow_path_depth: 0,
                push_count: 0,
                gate: Gate::Open,
                receiving: false,
                stop: false,
                has_new_waiter: false,
                other_work: true,
                budget: BUDGET,
                turn_began: false,
                hook_receives: false,
                incarnation: 0,
                high_water: 0,
                rare: None,
            }),
            batch_len: AtomicUsize::new(0),
            lock_needed: AtomicBool::new(false),
            overflow: spec.overflow,
            capacity: spec.capacity,
            busy: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        }
    }

    pub(crate) const fn strand(&self) -> &Strand<MailboxState<M>> {
        &self.lanes
    }

    #[inline(always)]
    pub(crate) const fn spec(&self) -> MailboxSpec {
        MailboxSpec {
            capacity: self.capacity,
            overflow: self.overflow,
        }
    }

    fn batch_len(&self) -> usize {
        if seeded(Bug::CapacityForgetsBatch) {
            return 0;
        }
        // A stale value is too large, never too small: a sender may see a place late, never early.
        self.batch_len.load(Ordering::Relaxed)
    }

    /// Pushes a message if there is room. Only then is it taken and wrapped, under the lock.
    #[inline(always)]
    pub(crate) fn push<T>(
        &self,
        message: &mut Option<OpaqueMessage<T>>,
        until: Option<Instant>,
        wrap: impl FnOnce(T) -> M,
    ) -> Result<Accepted, Refusal> {
        let mut lanes = self.lanes.lock();
        if lanes.gate != Gate::Open {
            return Err(lanes.gate.refusal());
        }
        if lanes.user.len() + lanes.batch_len >= lanes.slow_path_depth && self.is_full(&mut lanes) {
            return self.push_over(lanes, message, until, wrap);
        }
        let number = lanes.push(|| wrap(message.take().expect(ONCE).into_inner()), until);
        wake_receiver(lanes);
        Ok(Accepted { number, dropped: 0 })
    }

    /// Returns `true` if there is no room for one more message; otherwise records the new depth.
    #[cold]
    fn is_full(&self, lanes: &mut MailboxState<M>) -> bool {
        // The cached count of the batch may be too large; refresh it.
        lanes.batch_len = self.batch_len();
        let used = lanes.user.len() + lanes.batch_len;
        let full = lanes.has_ungranted() || used + lanes.granted() >= self.capacity;
        if !full {
            lanes.note_depth(used + 1, self.capacity);
        }
        full
    }

    #[cold]
    fn push_over<T>(
        &self,
        mut lanes: StrandGuard<'_, MailboxState<M>>,
        message: &mut Option<OpaqueMessage<T>>,
        until: Option<Instant>,
        wrap: impl FnOnce(T) -> M,
    ) -> Result<Accepted, Refusal> {
        // Displaced messages are dropped after the lock is released: their destructors are foreign
        // code.
        let displaced = match self.overflow {
            Overflow::Wait | Overflow::Fail => return Err(Refusal::Full),
            Overflow::DropNewest => {
                lanes.rare().dropped += 1;
                drop(lanes);
                drop(message.take());
                return Ok(Accepted {
                    number: u64::MAX,
                    dropped: 1,
                });
            }
            Overflow::DropOldest => lanes.user.take_first(),
            Overflow::KeepLatest => mem::take(&mut lanes.user),
        };
        lanes.note_gone(displaced.len() as u64);
        let missed = u64::from(seeded(Bug::OverflowMiscounted));
        let count = (displaced.len() as u64).saturating_sub(missed);
        lanes.rare().dropped += count;
        let front = lanes.front(self.batch_len());
        lanes.forget_expiries(front);
        let number = lanes.push(|| wrap(message.take().expect(ONCE).into_inner()), until);
        wake_receiver(lanes);
        discard(displaced.into_values());
        Ok(Accepted {
            number,
            dropped: count,
        })
    }

    /// Waits for a place. Ready with `true` once `ticket` holds one, or with `false` if the mailbox
    /// refuses messages.
    pub(crate) fn poll_reserve(&self, ticket: &mut Option<u64>, waker: &Waker) -> Poll<bool> {
        let mut lanes = self.lanes.lock();
        if lanes.gate != Gate::Open {
            return Poll::Ready(false);
        }
        let used = lanes.user.len() + self.batch_len() + lanes.granted();
        let room = used < self.capacity && !lanes.has_ungranted();
        let waiting = lanes.sender_queue();
        if let Some(ticket) = *ticket {
            let at = waiting
                .senders
                .binary_search_by_key(&ticket, |(ticket, _)| *ticket);
            let Ok(at) = at else {
                // A drain cleared the queue, and the next incarnation has already begun.
                return Poll::Ready(false);
            };
            if at < waiting.granted {
                return Poll::Ready(true);
            }
            waiting.senders[at].1.clone_from(waker);
            return Poll::Pending;
        }
        waiting
            .senders
            .push_back((waiting.next_ticket, waker.clone()));
        *ticket = Some(waiting.next_ticket);
        waiting.next_ticket += 1;
        if room {
            waiting.granted += 1;
            return Poll::Ready(true);
        }
        lanes.has_new_waiter = true;
        self.lock_needed.store(true, Ordering::Relaxed);
        Poll::Pending
    }

    /// Reserves a place if there is one now. Returns `Ok(None)` if the overflow rule always makes
    /// room.
    pub(crate) fn try_reserve(&self) -> Result<Option<u64>, Refusal> {
        let mut lanes = self.lanes.lock();
        if lanes.gate != Gate::Open {
            return Err(lanes.gate.refusal());
        }
        if !self.spec().batches() {
            return Ok(None);
        }
        let used = lanes.user.len() + self.batch_len() + lanes.granted();
        if used >= self.capacity || lanes.has_ungranted() {
            return Err(Refusal::Full);
        }
        let waiting = lanes.sender_queue();
        let ticket = waiting.next_ticket;
        waiting.next_ticket += 1;
        waiting.senders.push_back((ticket, Waker::noop().clone()));
        waiting.granted += 1;
        Ok(Some(ticket))
    }

    /// Puts a message in the place that `ticket` holds. If the mailbox has closed since, drops the
    /// message, as it drops all that wait when the actor ends, and returns `None`.
    pub(crate) fn fill(&self, ticket: u64, message: M, until: Option<Instant>) -> Option<u64> {
        let mut lanes = self.lanes.lock();
        if lanes.gate == Gate::Closed {
            drop(lanes);
            return None;
        }
        if let Some(waiting) = lanes.waiting_mut() {
            waiting.remove(ticket);
            if waiting.senders.is_empty() {
                lanes.take_waiting();
            }
        }
        let depth = lanes.user.len() + self.batch_len() + 1;
        lanes.note_depth(depth, self.capacity);
        let number = lanes.push(|| message, until);
        wake_receiver(lanes);
        Some(number)
    }

    /// Gives up a place, or a turn in the queue for one.
    #[cold]
    pub(crate) fn give_up(&self, ticket: u64) {
        let mut lanes = self.lanes.lock();
        let Some(waiting) = lanes.waiting_mut() else {
            return;
        };
        waiting.remove(ticket);
        if waiting.senders.is_empty() {
            lanes.take_waiting();
            return;
        }
        let wakers = lanes.grant(self.capacity, self.batch_len());
        drop(lanes);
        if weakened(Weakening::GivenUpPlaceWakesSender) {
            return;
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Delivers an answer, or the output of a pipe, beyond the capacity. Returns `false` if the
    /// incarnation that asked for it is gone.
    pub(crate) fn complete(&self, incarnation: u32, message: M, pipe: Option<u64>) -> bool {
        let mut lanes = self.lanes.lock();
        if lanes.gate == Gate::Closed || lanes.incarnation != incarnation {
            drop(lanes);
            return false;
        }
        let completed = CompletedItem { message, pipe };
        lanes.rare().completions.push_back(completed);
        self.notify(lanes);
        true
    }

    /// Returns `true` if something other than a message needs the receiver.
    #[inline(always)]
    pub(crate) fn needs_lock(&self) -> bool {
        self.lock_needed.load(Ordering::Relaxed)
    }
}

/// Releases the lock, and wakes the actor if it was waiting for what was pushed.
#[inline(always)]
fn wake_receiver<M>(mut lanes: StrandGuard<'_, MailboxState<M>>) {
    if weakened(Weakening::PushWakesReceiver) {
        return;
    }
    if lanes.receiving {
        lanes.receiving = false;
        lanes.wake();
    }
}

#[cfg(test)]
mod tests;
