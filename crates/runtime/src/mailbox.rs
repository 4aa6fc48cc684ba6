//! The mailbox of an actor.
//!
//! One lock guards the three lanes of a mailbox: *system* (stop, down, links), *completion*
//! (answers that the actor asked for through a lane, and outputs of pipes) and *user*. The receiver
//! takes the whole user lane out at once, and so locks once for a batch, but the batch still
//! counts:
//!
//! - **Capacity is exact.** The receiver publishes how many messages of its batch remain, and a
//!   sender adds that number.
//! - **Signals overtake**, within the limits of [`rotation`]. The receiver reads one relaxed flag
//!   for each message. A set flag sends it back to the lock, even in the middle of a batch.
//! - **No waiting message is lost.** The batch survives a panic and goes back to the front of the
//!   queue.
//! - **Only the sender that finds the actor receiving wakes it**, under the same lock.

mod batch;
mod cold;
mod drain;
mod expiry;
mod incarnation;
#[cfg(all(test, strowger_loom))]
mod loom;
mod receiver;
mod rotation;
mod spec;
mod stats;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

use tokio::time::Instant;

use crate::exit::{Exit, drop_all_caught};
use crate::info::STATS_ENABLED;
use crate::monitor::Signal;
use crate::schedule::strand::{MessageQueue, OpaqueMessage, Runnable, Strand, StrandGuard};
use crate::seeded_bug::{Bug, seeded};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering, Weakening, weakened};
use cold::ColdMailboxState;
use drain::Admission;
pub(crate) use drain::Drain;
use expiry::Expiry;
use receiver::TURN_BUDGET;
pub(crate) use receiver::{FastTake, Receiver, TakeResult};
pub use spec::{MailboxSpec, Overflow};
pub(crate) use stats::MailboxStats;

/// An actor that waits for messages: the right to run it, and the worker that it belongs to.
pub(crate) type HomedRunnable = (Runnable, u32);

/// The promise of a sender.
const SENT_ONCE: &str = "a message is sent once";

/// A system message: an order, which comes before everything else, or a signal.
#[derive(Debug)]
pub(crate) enum SystemMessage {
    Stop(Exit),
    Signal(Signal),
    Panic(Arc<str>),
    TaskEnded(u64),
    PipePanicked(u64, Arc<str>),
    Notified,
}

impl SystemMessage {
    /// Returns `true` if it ends the incarnation.
    const fn ends_incarnation(&self) -> bool {
        matches!(self, Self::Stop(_) | Self::Panic(_))
    }
}

/// The reason why a message was refused. The message stays with its sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PushError {
    Closed,
    Draining,
    Full,
}

/// The next thing that the receiver takes.
#[derive(Debug)]
pub(crate) enum ReceivedItem<M> {
    /// An order to end with [`Exit::Shutdown`].
    Stop,
    System(Box<SystemMessage>),
    Message(M),
    /// The output of the pipe with this number.
    PipeOutput(u64, M),
    /// This number of messages had expired or were abandoned, and were dropped.
    Expired(u64),
}

/// A mailbox: the half that senders share.
// The order of the fields keeps what senders write and what the receiver writes on different cache
// lines.
#[repr(C)]
pub(crate) struct Mailbox<M> {
    strand: Strand<MailboxState<M>>,
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
    messages: MessageQueue<M>,
    /// Number of messages of its batch that the receiver had not handled at the last check; never
    /// too small.
    batch_len: usize,
    /// From this many messages in the queue and the batch together, a push takes the slow path,
    /// which checks the capacity and records the depth.
    slow_path_depth: usize,
    /// Number of messages ever pushed; see `expiry`.
    push_count: u64,
    admission: Admission,
    /// Set while the actor waits for something to be pushed.
    receiving: bool,
    /// Set while an order to stop waits in front of the system lane.
    stop_requested: bool,
    /// Set if a sender began to wait since the receiver last granted places.
    has_new_waiter: bool,
    /// Set unless the receiver's last item was a message of the user lane.
    last_was_control: bool,
    /// A new budget for the receiver: how many items the actor may handle before it lets others
    /// run. Zero once the receiver has taken it.
    new_budget: u16,
    /// Set when a turn begins, and cleared when the receiver has noticed.
    turn_began: bool,
    /// Set while a hook waits for an order to stop: then the actor is not idle, though `receiving`
    /// is set.
    hook_waits_for_stop: bool,
    incarnation: u32,
    /// Highest number of messages that ever waited, saturating.
    high_water: u32,
    cold: Option<Box<ColdMailboxState<M>>>,
}

/// The result of a push.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pushed {
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
type IncarnationQueues<M> = (VecDeque<CompletedItem<M>>, VecDeque<SystemMessage>);

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
    fn granted_places(&self) -> usize {
        self.waiting().map_or(0, |waiting| waiting.granted)
    }

    /// Returns the queue of senders that wait for room. Its tickets start from the number of the
    /// incarnation, so that a ticket from a queue that a drain cleared matches no later one.
    fn sender_queue(&mut self) -> &mut SenderQueue {
        let next_ticket = u64::from(self.incarnation) << 32;
        // While senders wait, every push takes the slow path.
        self.slow_path_depth = 0;
        self.cold_mut().senders.get_or_insert_with(|| SenderQueue {
            next_ticket,
            ..SenderQueue::default()
        })
    }

    fn has_waiting_sender(&self) -> bool {
        self.waiting()
            .is_some_and(|waiting| waiting.granted < waiting.senders.len())
    }

    /// Pushes a message; returns its number.
    #[inline(always)]
    fn push(&mut self, message: impl FnOnce() -> M, until: Option<Instant>) -> u64 {
        // Building the message may panic; nothing has changed at that point.
        self.messages.push(message());
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
        if STATS_ENABLED {
            let depth = u32::try_from(depth).unwrap_or(u32::MAX);
            self.high_water = self.high_water.max(depth);
            let mark = self.high_water.saturating_add(self.high_water / 16);
            self.slow_path_depth = capacity.min(mark as usize);
        }
        // Waiting senders come first, so every push must see them.
        if self.waiting().is_some() {
            self.slow_path_depth = 0;
        }
    }

    /// Grants free places to the senders that have waited longest; returns the wakers to wake.
    fn grant_places(&mut self, capacity: usize, batch_len: usize) -> Vec<Waker> {
        let used = self.messages.len() + batch_len;
        let Some(waiting) = self.waiting_mut() else {
            return Vec::new();
        };
        // `granted` counts from the front of the queue, and a sender that fills its place leaves
        // it, so places go out in the order in which the senders came.
        let places = capacity.saturating_sub(used).min(waiting.senders.len());
        let mut wakers = Vec::new();
        while waiting.granted < places {
            wakers.push(waiting.senders[waiting.granted].1.clone());
            waiting.granted += 1;
        }
        wakers
    }

    fn has_work(&self) -> bool {
        self.stop_requested || !self.messages.is_empty() || self.has_control_items()
    }

    fn needs_lock(&self) -> bool {
        self.has_signals() || self.has_waiting_sender()
    }

    /// Returns `true` if something other than messages needs the receiver.
    fn has_signals(&self) -> bool {
        self.stop_requested || self.admission != Admission::Open || self.has_control_items()
    }

    /// Queues a system message. The most common one, a plain order to stop, is a flag and needs no
    /// queue.
    ///
    /// Orders overtake the signals that wait, so that an end does not depend on how many there are.
    /// They keep their own order: the first of them decides the exit.
    fn push_system(&mut self, system: SystemMessage) {
        let is_plain_stop = matches!(system, SystemMessage::Stop(Exit::Shutdown));
        let behind = seeded(Bug::StopWaitsForSignals);
        let first = self.cold.as_ref().and_then(|cold| cold.system.front());
        // A flag may stand for the order only if it would be first: another order that waits
        // decides the exit, and must be taken before it.
        if is_plain_stop && !first.is_some_and(|first| behind || first.ends_incarnation()) {
            self.stop_requested = true;
            return;
        }
        let cold = self.cold_mut();
        let is_notification = matches!(system, SystemMessage::Notified);
        if is_notification && mem::replace(&mut cold.is_notified, true) {
            return;
        }
        let queue = &mut cold.system;
        // Signals keep their order among themselves, behind all orders.
        if !system.ends_incarnation() || behind {
            queue.push_back(system);
            return;
        }
        let orders = queue.iter().take_while(|one| one.ends_incarnation());
        let mut at = 0;
        for order in orders {
            // A second order to stop changes nothing.
            if is_plain_stop && matches!(order, SystemMessage::Stop(_)) {
                return;
            }
            at += 1;
        }
        queue.insert(at, system);
    }

    /// Returns `true` if an order waits, which comes before everything else.
    fn has_stop_request(&self) -> bool {
        let first = || self.cold.as_ref()?.system.front();
        self.stop_requested || first().is_some_and(SystemMessage::ends_incarnation)
    }

    fn pop_system(&mut self) -> Option<ReceivedItem<M>> {
        if mem::take(&mut self.stop_requested) {
            return Some(ReceivedItem::Stop);
        }
        let cold = self.cold.as_mut()?;
        let system = cold.system.pop_front()?;
        if matches!(system, SystemMessage::Notified) {
            // Before the signal is handled: what is notified from now on may be too late for it.
            cold.is_notified = false;
        }
        Some(ReceivedItem::System(Box::new(system)))
    }

    /// Takes the order to stop that waits ahead of everything else, if there is one.
    #[inline]
    pub(crate) fn take_stop(&mut self) -> bool {
        if self.stop_requested {
            self.receiving = false;
            self.last_was_control = true;
        }
        mem::take(&mut self.stop_requested)
    }

    /// Takes out what is meant for one incarnation only.
    fn take_incarnation_queues(&mut self) -> Option<IncarnationQueues<M>> {
        let cold = self.cold.as_mut()?;
        cold.is_notified = false;
        let none = cold.completions.is_empty() && cold.system.is_empty();
        (!none).then(|| {
            (
                mem::take(&mut cold.completions),
                mem::take(&mut cold.system),
            )
        })
    }
}

impl<M> Mailbox<M> {
    #[inline(always)]
    pub(crate) fn new(spec: MailboxSpec) -> Self {
        Self {
            strand: Strand::new(MailboxState {
                messages: MessageQueue::new(),
                batch_len: 0,
                slow_path_depth: 0,
                push_count: 0,
                admission: Admission::Open,
                receiving: false,
                stop_requested: false,
                has_new_waiter: false,
                last_was_control: true,
                new_budget: TURN_BUDGET,
                turn_began: false,
                hook_waits_for_stop: false,
                incarnation: 0,
                high_water: 0,
                cold: None,
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
        &self.strand
    }

    #[inline(always)]
    pub(crate) const fn spec(&self) -> MailboxSpec {
        MailboxSpec {
            capacity: self.capacity,
            overflow: self.overflow,
        }
    }

    fn batch_len(&self) -> usize {
        if seeded(Bug::BatchNotCountedInCapacity) {
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
    ) -> Result<Pushed, PushError> {
        let mut state = self.strand.lock();
        if state.admission != Admission::Open {
            return Err(state.admission.refusal());
        }
        // `batch_len` is the cached count, which is never too small: below `slow_path_depth` there
        // is room for certain, and the push reads no atomic of the receiver.
        if state.messages.len() + state.batch_len >= state.slow_path_depth
            && self.is_full(&mut state)
        {
            return self.push_overflowing(state, message, until, wrap);
        }
        let number = state.push(
            || wrap(message.take().expect(SENT_ONCE).into_inner()),
            until,
        );
        wake_receiver(state);
        Ok(Pushed { number, dropped: 0 })
    }

    /// Returns `true` if there is no room for one more message; otherwise records the new depth.
    #[cold]
    fn is_full(&self, state: &mut MailboxState<M>) -> bool {
        // The cached count of the batch may be too large; refresh it.
        state.batch_len = self.batch_len();
        let used = state.messages.len() + state.batch_len;
        // A sender must not overtake those that wait, even if a place is free at this moment.
        let full = state.has_waiting_sender() || used + state.granted_places() >= self.capacity;
        if !full {
            state.note_depth(used + 1, self.capacity);
        }
        full
    }

    #[cold]
    fn push_overflowing<T>(
        &self,
        mut state: StrandGuard<'_, MailboxState<M>>,
        message: &mut Option<OpaqueMessage<T>>,
        until: Option<Instant>,
        wrap: impl FnOnce(T) -> M,
    ) -> Result<Pushed, PushError> {
        // Displaced messages are dropped after the lock is released: their destructors are foreign
        // code.
        let displaced = match self.overflow {
            Overflow::Wait | Overflow::Fail => return Err(PushError::Full),
            Overflow::DropNewest => {
                state.cold_mut().dropped += 1;
                drop(state);
                drop(message.take());
                return Ok(Pushed {
                    number: u64::MAX,
                    dropped: 1,
                });
            }
            Overflow::DropOldest => state.messages.take_first(),
            Overflow::KeepLatest => mem::take(&mut state.messages),
        };
        state.add_removed_unhandled(displaced.len() as u64);
        let missed = u64::from(seeded(Bug::OverflowMiscounted));
        let count = (displaced.len() as u64).saturating_sub(missed);
        state.cold_mut().dropped += count;
        let front = state.front_number(self.batch_len());
        state.forget_expiries(front);
        let number = state.push(
            || wrap(message.take().expect(SENT_ONCE).into_inner()),
            until,
        );
        wake_receiver(state);
        drop_all_caught(displaced.into_values());
        Ok(Pushed {
            number,
            dropped: count,
        })
    }

    /// Waits for a place. Ready with `true` once `ticket` holds one, or with `false` if the mailbox
    /// refuses messages.
    pub(crate) fn poll_reserve(&self, ticket: &mut Option<u64>, waker: &Waker) -> Poll<bool> {
        let mut state = self.strand.lock();
        if state.admission != Admission::Open {
            return Poll::Ready(false);
        }
        let used = state.messages.len() + self.batch_len() + state.granted_places();
        let room = used < self.capacity && !state.has_waiting_sender();
        let waiting = state.sender_queue();
        if let Some(ticket) = *ticket {
            let at = waiting
                .senders
                .binary_search_by_key(&ticket, |(ticket, _)| *ticket);
            let Ok(at) = at else {
                // A drain cleared the queue, and the next incarnation has already begun.
                return Poll::Ready(false);
            };
            // The first `granted` senders hold a place each.
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
        // The receiver may be about to park. The flag keeps it running for one more look, in which
        // it grants the places that its batch has freed meanwhile.
        state.has_new_waiter = true;
        self.lock_needed.store(true, Ordering::Relaxed);
        Poll::Pending
    }

    /// Reserves a place if there is one now. Returns `Ok(None)` if the overflow rule always makes
    /// room.
    pub(crate) fn try_reserve(&self) -> Result<Option<u64>, PushError> {
        let mut state = self.strand.lock();
        if state.admission != Admission::Open {
            return Err(state.admission.refusal());
        }
        if !self.spec().batches() {
            return Ok(None);
        }
        let used = state.messages.len() + self.batch_len() + state.granted_places();
        if used >= self.capacity || state.has_waiting_sender() {
            return Err(PushError::Full);
        }
        let waiting = state.sender_queue();
        let ticket = waiting.next_ticket;
        waiting.next_ticket += 1;
        // The place is granted at once, so this waker is never called.
        waiting.senders.push_back((ticket, Waker::noop().clone()));
        waiting.granted += 1;
        Ok(Some(ticket))
    }

    /// Puts a message in the place that `ticket` holds. If the mailbox has closed since, drops the
    /// message, as it drops all that wait when the actor ends, and returns `None`.
    pub(crate) fn fill_reserved(
        &self,
        ticket: u64,
        message: M,
        until: Option<Instant>,
    ) -> Option<u64> {
        let mut state = self.strand.lock();
        if state.admission == Admission::Closed {
            drop(state);
            return None;
        }
        if let Some(waiting) = state.waiting_mut() {
            waiting.remove(ticket);
            if waiting.senders.is_empty() {
                state.take_waiting();
            }
        }
        // The granted place was counted until now, so the depth cannot exceed the capacity here.
        let depth = state.messages.len() + self.batch_len() + 1;
        state.note_depth(depth, self.capacity);
        let number = state.push(|| message, until);
        wake_receiver(state);
        Some(number)
    }

    /// Gives up a place, or a turn in the queue for one.
    #[cold]
    pub(crate) fn release_place(&self, ticket: u64) {
        let mut state = self.strand.lock();
        let Some(waiting) = state.waiting_mut() else {
            return;
        };
        waiting.remove(ticket);
        if waiting.senders.is_empty() {
            state.take_waiting();
            return;
        }
        // Wakers run after the lock is released: they are foreign code, and may send to this
        // mailbox.
        let wakers = state.grant_places(self.capacity, self.batch_len());
        drop(state);
        if weakened(Weakening::GivenUpPlaceWakesSender) {
            return;
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Delivers an answer, or the output of a pipe, beyond the capacity. Returns `false` if the
    /// incarnation that asked for it is gone.
    pub(crate) fn push_completion(&self, incarnation: u32, message: M, pipe: Option<u64>) -> bool {
        let mut state = self.strand.lock();
        // The answer to an incarnation that has ended would reach a state that never asked for it.
        if state.admission == Admission::Closed || state.incarnation != incarnation {
            drop(state);
            return false;
        }
        let completed = CompletedItem { message, pipe };
        state.cold_mut().completions.push_back(completed);
        self.notify(state);
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
fn wake_receiver<M>(mut state: StrandGuard<'_, MailboxState<M>>) {
    if weakened(Weakening::PushWakesReceiver) {
        return;
    }
    // Clearing the flag under the lock makes this sender the only one that wakes the actor.
    if state.receiving {
        state.receiving = false;
        state.wake();
    }
}

#[cfg(test)]
mod tests;
