//! What waits for an actor.
//!
//! One lock guards the three lanes of a mailbox: *system* (stop, down, links), *completion*
//! (answers for which the actor minted a token) and *user*. The receiver takes the whole user lane
//! out at once and so locks once for a batch, but the batch still counts:
//!
//! - **Capacity is exact.** The receiver publishes what remains of its batch; a sender adds it.
//! - **Signals overtake.** One relaxed flag, read for each message, sends the receiver back to the
//!   lock, also in the middle of a batch.
//! - **Nothing that waits is lost.** The batch outlives a panic and goes back to the front.
//! - **Only who finds the actor receiving wakes it**, under the same lock.

mod batch;
mod drain;
mod figures;
mod life;
#[cfg(all(test, strowger_loom))]
mod loom;
mod rare;
mod receiver;
mod spec;
mod term;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::task::{Poll, Waker};

use tokio::time::Instant;

use crate::exit::{Exit, discard};
use crate::info::COUNTED;
use crate::monitor::Signal;
use crate::planted::{Bug, planted};
use crate::schedule::strand::{Held, Lane, Ready, Strand, Whole};
use crate::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use drain::Drain;
use drain::Gate;
pub(crate) use figures::Figures;
use rare::Rare;
use receiver::BUDGET;
pub(crate) use receiver::{Look, Receiver};
pub use spec::{MailboxSpec, Overflow};
use term::Term;

/// An actor that waits for messages: the right to run it, and where it belongs.
pub(crate) type Idle = (Ready, u32);

/// What a sender promises.
const ONCE: &str = "a message is sent once";

/// What overtakes every message.
#[derive(Debug)]
pub(crate) enum System {
    Stop(Exit),
    Signal(Signal),
    Panic(Arc<str>),
    TaskEnded(u64),
    PipePanicked(u64, Arc<str>),
}

/// Why a message was not taken. It stays with the sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Closed,
    Draining,
    Full,
}

/// What the receiver takes next.
#[derive(Debug)]
pub(crate) enum Next<M> {
    /// An order to end with [`Exit::Shutdown`].
    Stop,
    System(Box<System>),
    Message(M),
    /// What the pipe of this number came to.
    Piped(u64, M),
    /// So many messages were not wanted any more, and were dropped.
    Expired(u64),
}

/// A mailbox: the half that senders share.
// In this order, or what senders write shares lines with what the receiver writes.
#[repr(C)]
pub(crate) struct Mailbox<M> {
    lanes: Strand<Lanes<M>>,
    /// How much of its batch the receiver has not handled; written by the receiver only.
    batched: AtomicUsize,
    /// Tells the receiver that a lane other than its batch needs it.
    attention: AtomicBool,
    overflow: Overflow,
    capacity: usize,
    /// Nanoseconds at work, and of the last batch that was measured.
    busy: AtomicU64,
    waited: AtomicU64,
}

// What is needed for each message comes first.
#[repr(C)]
pub(crate) struct Lanes<M> {
    user: Lane<M>,
    /// How much of its batch the receiver had not handled when that was last looked at.
    batched: usize,
    /// With so many in line and in the batch, more is to be done for a message than to put it in.
    plenty: usize,
    /// How many messages were ever put in; see `term`.
    pushed: u64,
    gate: Gate,
    /// Whether the actor waits for something to be put in.
    receiving: bool,
    /// Whether an order to stop waits in front of the system lane.
    stop: bool,
    /// Whether a sender began to wait since the receiver last gave places away.
    newcomer: bool,
    /// Whether what the receiver took last was not a message of the user lane.
    aside: bool,
    /// How many things the actor may do before it lets others run; zero where that was said.
    budget: u16,
    /// Set when a turn begins, until the receiver knows.
    fresh: bool,
    incarnation: u32,
    /// The most that ever waited, as far as that fits.
    high_water: u32,
    rare: Option<Box<Rare<M>>>,
}

/// Where a message was put.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    /// Its number; see `term`. Meaningless for one that the overflow rule dropped.
    pub(crate) number: u64,
    /// How many messages were dropped to obey the overflow rule.
    pub(crate) dropped: u64,
}

/// A message beyond the capacity: an answer, or what a pipe came to.
struct Completed<M> {
    message: M,
    pipe: Option<u64>,
}

/// What is meant for one incarnation alone.
type Own<M> = (VecDeque<Completed<M>>, VecDeque<System>);

/// Senders that wait for room, oldest first; the first `granted` of them have a place.
#[derive(Default)]
struct Waiting {
    senders: VecDeque<(u64, Waker)>,
    granted: usize,
    next_ticket: u64,
}

impl Waiting {
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

impl<M> Lanes<M> {
    fn granted(&self) -> usize {
        self.waiting().map_or(0, |waiting| waiting.granted)
    }

    /// The line before the mailbox. Its numbers are of this incarnation, so that those of a line
    /// that a drain cleared are nobody else's.
    fn line(&mut self) -> &mut Waiting {
        let next_ticket = u64::from(self.incarnation) << 32;
        self.plenty = 0;
        self.rare().waiting.get_or_insert_with(|| Waiting {
            next_ticket,
            ..Waiting::default()
        })
    }

    fn has_ungranted(&self) -> bool {
        self.waiting()
            .is_some_and(|waiting| waiting.granted < waiting.senders.len())
    }

    /// Puts a message in; returns its number.
    #[inline(always)]
    fn push(&mut self, message: impl FnOnce() -> M, until: Option<Instant>) -> u64 {
        // Making it may panic: nothing has changed then.
        self.user.push(message());
        let number = self.pushed;
        self.pushed += 1;
        if let Some(until) = until {
            self.set_term(number, Term::Until(until));
        }
        number
    }

    /// Notes how many wait when one more is put in: beyond what was noted by more than a
    /// sixteenth, they are counted again.
    fn note_depth(&mut self, depth: usize, capacity: usize) {
        self.plenty = capacity;
        if COUNTED {
            let depth = u32::try_from(depth).unwrap_or(u32::MAX);
            self.high_water = self.high_water.max(depth);
            let mark = self.high_water.saturating_add(self.high_water / 16);
            self.plenty = capacity.min(mark as usize);
        }
        if self.waiting().is_some() {
            self.plenty = 0;
        }
    }

    /// Gives free places to the senders that have waited longest; returns whom to wake.
    fn grant(&mut self, capacity: usize, batched: usize) -> Vec<Waker> {
        let used = self.user.len() + batched;
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
        self.stop || !self.user.is_empty() || self.has_aside()
    }

    fn needs_attention(&self) -> bool {
        self.calls() || self.has_ungranted()
    }

    /// Whether something else than messages waits for the receiver.
    fn calls(&self) -> bool {
        self.stop || self.gate != Gate::Open || self.has_aside()
    }

    /// Puts news in line. The commonest of them needs no line.
    fn push_system(&mut self, system: System) {
        let first = || self.rare.as_ref().is_none_or(|rare| rare.system.is_empty());
        if matches!(system, System::Stop(Exit::Shutdown)) && first() {
            self.stop = true;
        } else {
            self.rare().system.push_back(system);
        }
    }

    fn pop_system(&mut self) -> Option<Next<M>> {
        if mem::take(&mut self.stop) {
            return Some(Next::Stop);
        }
        let system = self.rare.as_mut()?.system.pop_front()?;
        Some(Next::System(Box::new(system)))
    }

    /// Takes the order to stop that waits in front of all else, if it is there.
    #[inline]
    pub(crate) fn take_stop(&mut self) -> bool {
        if self.stop {
            self.receiving = false;
            self.aside = true;
        }
        mem::take(&mut self.stop)
    }

    /// Takes out what is meant for one incarnation alone.
    fn take_own(&mut self) -> Option<Own<M>> {
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
            lanes: Strand::new(Lanes {
                user: Lane::new(),
                batched: 0,
                plenty: 0,
                pushed: 0,
                gate: Gate::Open,
                receiving: false,
                stop: false,
                newcomer: false,
                aside: true,
                budget: BUDGET,
                fresh: false,
                incarnation: 0,
                high_water: 0,
                rare: None,
            }),
            batched: AtomicUsize::new(0),
            attention: AtomicBool::new(false),
            overflow: spec.overflow,
            capacity: spec.capacity,
            busy: AtomicU64::new(0),
            waited: AtomicU64::new(0),
        }
    }

    pub(crate) const fn strand(&self) -> &Strand<Lanes<M>> {
        &self.lanes
    }

    #[inline(always)]
    pub(crate) const fn spec(&self) -> MailboxSpec {
        MailboxSpec {
            capacity: self.capacity,
            overflow: self.overflow,
        }
    }

    fn batched(&self) -> usize {
        if planted(Bug::CapacityForgetsBatch) {
            return 0;
        }
        // A value that is too old is too large: a sender may then see a place late, never early.
        self.batched.load(Ordering::Relaxed)
    }

    /// Puts a message in if there is room; it is taken and wrapped only then, under the lock.
    #[inline(always)]
    pub(crate) fn push<T>(
        &self,
        message: &mut Option<Whole<T>>,
        until: Option<Instant>,
        wrap: impl FnOnce(T) -> M,
    ) -> Result<Placed, Refused> {
        let mut lanes = self.lanes.lock();
        if lanes.gate != Gate::Open {
            return Err(lanes.gate.refusal());
        }
        if lanes.user.len() + lanes.batched >= lanes.plenty && self.is_full(&mut lanes) {
            return self.push_over(lanes, message, until, wrap);
        }
        let number = lanes.push(|| wrap(message.take().expect(ONCE).into_inner()), until);
        rouse(lanes);
        Ok(Placed { number, dropped: 0 })
    }

    /// Whether there is no place for one more message, which is noted if there is.
    #[cold]
    fn is_full(&self, lanes: &mut Lanes<M>) -> bool {
        // What senders know of the batch is too large, if anything; now they know more.
        lanes.batched = self.batched();
        let used = lanes.user.len() + lanes.batched;
        let full = lanes.has_ungranted() || used + lanes.granted() >= self.capacity;
        if !full {
            lanes.note_depth(used + 1, self.capacity);
        }
        full
    }

    #[cold]
    fn push_over<T>(
        &self,
        mut lanes: Held<'_, Lanes<M>>,
        message: &mut Option<Whole<T>>,
        until: Option<Instant>,
        wrap: impl FnOnce(T) -> M,
    ) -> Result<Placed, Refused> {
        // What is displaced is dropped after the lock: its destructor is foreign code.
        let displaced = match self.overflow {
            Overflow::Wait | Overflow::Fail => return Err(Refused::Full),
            Overflow::DropNewest => {
                lanes.rare().dropped += 1;
                drop(lanes);
                drop(message.take());
                return Ok(Placed {
                    number: u64::MAX,
                    dropped: 1,
                });
            }
            Overflow::DropOldest => lanes.user.take_first(),
            Overflow::KeepLatest => mem::take(&mut lanes.user),
        };
        lanes.note_gone(displaced.len() as u64);
        let missed = u64::from(planted(Bug::OverflowMiscounted));
        let count = (displaced.len() as u64).saturating_sub(missed);
        lanes.rare().dropped += count;
        let front = lanes.front(self.batched());
        lanes.forget_terms(front);
        let number = lanes.push(|| wrap(message.take().expect(ONCE).into_inner()), until);
        rouse(lanes);
        discard(displaced.into_values());
        Ok(Placed {
            number,
            dropped: count,
        })
    }

    /// Waits for a place. Ready with `true` when `ticket` holds one, with `false` when messages
    /// are refused.
    pub(crate) fn poll_reserve(&self, ticket: &mut Option<u64>, waker: &Waker) -> Poll<bool> {
        let mut lanes = self.lanes.lock();
        if lanes.gate != Gate::Open {
            return Poll::Ready(false);
        }
        let used = lanes.user.len() + self.batched() + lanes.granted();
        let room = used < self.capacity && !lanes.has_ungranted();
        let waiting = lanes.line();
        if let Some(ticket) = *ticket {
            let at = waiting
                .senders
                .binary_search_by_key(&ticket, |(ticket, _)| *ticket);
            let Ok(at) = at else {
                // A drain cleared the line, and the next incarnation is there already.
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
        lanes.newcomer = true;
        self.attention.store(true, Ordering::Relaxed);
        Poll::Pending
    }

    /// A place now, if there is one; `Ok(None)` where the rule always makes room.
    pub(crate) fn try_reserve(&self) -> Result<Option<u64>, Refused> {
        let mut lanes = self.lanes.lock();
        if lanes.gate != Gate::Open {
            return Err(lanes.gate.refusal());
        }
        if !self.spec().batches() {
            return Ok(None);
        }
        let used = lanes.user.len() + self.batched() + lanes.granted();
        if used >= self.capacity || lanes.has_ungranted() {
            return Err(Refused::Full);
        }
        let waiting = lanes.line();
        let ticket = waiting.next_ticket;
        waiting.next_ticket += 1;
        waiting.senders.push_back((ticket, Waker::noop().clone()));
        waiting.granted += 1;
        Ok(Some(ticket))
    }

    /// Puts a message in the place that `ticket` holds. A mailbox that has closed since drops it,
    /// as it drops all that waits when its actor ends.
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
        let depth = lanes.user.len() + self.batched() + 1;
        lanes.note_depth(depth, self.capacity);
        let number = lanes.push(|| message, until);
        rouse(lanes);
        Some(number)
    }

    /// Gives a place, or a turn, back.
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
        let wakers = lanes.grant(self.capacity, self.batched());
        drop(lanes);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Delivers an answer, or the output of a pipe, beyond the capacity, unless the incarnation
    /// that asked for it is gone.
    pub(crate) fn complete(&self, incarnation: u32, message: M, pipe: Option<u64>) -> bool {
        let mut lanes = self.lanes.lock();
        if lanes.gate == Gate::Closed || lanes.incarnation != incarnation {
            drop(lanes);
            return false;
        }
        let completed = Completed { message, pipe };
        lanes.rare().completions.push_back(completed);
        self.call(lanes);
        true
    }

    /// Whether something else than a message waits for the receiver.
    #[inline(always)]
    pub(crate) fn is_calling(&self) -> bool {
        self.attention.load(Ordering::Relaxed)
    }
}

/// Gives the lanes back, and the actor a turn if it waits for what was put in.
#[inline(always)]
fn rouse<M>(mut lanes: Held<'_, Lanes<M>>) {
    if lanes.receiving {
        lanes.receiving = false;
        lanes.wake();
    }
}

#[cfg(test)]
mod tests;
