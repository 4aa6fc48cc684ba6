//! The receiving half of a mailbox.

use std::collections::VecDeque;
use std::mem;
use std::task::{Context, Poll, Waker};

use tokio::time::Instant;

use super::{Completed, Gate, Lanes, Mailbox, Next};
use crate::clock;
use crate::exit::discard;
use crate::info::COUNTED;
use crate::planted::{Bug, planted};
use crate::schedule::strand::{Held, Rest};
use crate::sync::Ordering;

/// The half of a mailbox that one incarnation of its actor holds.
pub(crate) struct Receiver<M> {
    batch: VecDeque<M>,
    handled: u64,
    /// How many messages come before the first with a term; see `term`.
    free: u64,
    budget: u32,
    /// Whether the lanes were looked at since it last rested.
    looked: bool,
    meter: Meter,
}

/// After so many messages an actor lets others run.
pub(super) const BUDGET: u32 = 256;

impl<M> Receiver<M> {
    pub(crate) fn new(mailbox: &Mailbox<M>) -> Self {
        let handled = mailbox.handled.load(Ordering::Relaxed);
        Self {
            batch: VecDeque::new(),
            handled,
            free: 0,
            budget: BUDGET,
            looked: false,
            meter: Meter::default(),
        }
    }

    /// Takes the next message, if nothing but the next message is to be done.
    #[inline(always)]
    pub(crate) fn take(&mut self, mailbox: &Mailbox<M>) -> Option<M> {
        if self.batch.is_empty()
            || self.budget == 0
            || self.free == 0
            || mailbox.attention.load(Ordering::Relaxed)
        {
            return None;
        }
        let message = self.batch.pop_front();
        self.free -= 1;
        mailbox.batched.store(self.batch.len(), Ordering::Relaxed);
        self.budget -= 1;
        self.handled += u64::from(COUNTED);
        message
    }

    /// Takes the next thing to do. Pending when there is none, or when it is another's turn.
    #[inline]
    pub(crate) fn poll_next(&mut self, mailbox: &Mailbox<M>, cx: &Context<'_>) -> Poll<Next<M>> {
        if let Some(message) = self.take(mailbox) {
            return Poll::Ready(Next::Message(message));
        }
        if !mailbox.attention.load(Ordering::Relaxed) {
            // Whether that is so is found out under the lock, when the turn ends.
            if self.looked && self.batch.is_empty() && !mailbox.filled.load(Ordering::Relaxed) {
                let last = if COUNTED { self.meter.stop() } else { None };
                return self.rest(mailbox, last);
            }
        }
        self.poll_lanes(mailbox, cx)
    }

    /// There is nothing to do for now. The lanes say so to those who put something in when the
    /// turn ends, if it is still true then.
    fn rest(&mut self, mailbox: &Mailbox<M>, last: Option<(u64, u64)>) -> Poll<Next<M>> {
        mailbox.handled.store(self.handled, Ordering::Relaxed);
        if let Some((took, weight)) = last {
            mailbox.note(took.saturating_mul(weight), 0);
        }
        self.looked = false;
        self.budget = BUDGET;
        Poll::Pending
    }

    #[inline(always)]
    fn taken(&mut self, message: M) -> Poll<Next<M>> {
        self.budget -= 1;
        self.handled += u64::from(COUNTED);
        Poll::Ready(Next::Message(message))
    }

    fn poll_lanes(&mut self, mailbox: &Mailbox<M>, cx: &Context<'_>) -> Poll<Next<M>> {
        mailbox.handled.store(self.handled, Ordering::Relaxed);
        let measured = if COUNTED { self.meter.lap() } else { None };
        self.looked = true;
        let mut lanes = mailbox.lanes.lock();
        let plain = self.batch.is_empty()
            && self.budget > 0
            && mailbox.spec.batches()
            && lanes.terms.is_none()
            && !mailbox.attention.load(Ordering::Relaxed);
        if !plain {
            return self.poll_side(mailbox, lanes, measured, cx);
        }
        if mem::take(&mut lanes.visited) {
            self.budget = 1;
        }
        // One alone is taken from where it is.
        let message = if lanes.user.len() > 1 {
            mem::swap(&mut lanes.user, &mut self.batch);
            let message = self.batch.pop_front();
            mailbox.batched.store(self.batch.len(), Ordering::Relaxed);
            message
        } else {
            lanes.user.pop_front()
        };
        mailbox.filled.store(false, Ordering::Relaxed);
        lanes.aside = message.is_none();
        lanes.receiving = false;
        drop(lanes);
        self.free = u64::MAX;
        match message {
            Some(message) => {
                if let Some((took, weight)) = measured {
                    mailbox.note(took.saturating_mul(weight), took);
                }
                self.taken(message)
            }
            None => {
                self.meter.park();
                self.rest(mailbox, measured)
            }
        }
    }

    /// Looks at all the lanes.
    #[cold]
    fn poll_side(
        &mut self,
        mailbox: &Mailbox<M>,
        mut lanes: Held<'_, Lanes<M>>,
        measured: Option<(u64, u64)>,
        cx: &Context<'_>,
    ) -> Poll<Next<M>> {
        let mut stale = Vec::new();
        if self.is_spent(&mut lanes) {
            drop(lanes);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        lanes.aside = true;
        lanes.receiving = false;
        let next = if let Some(system) = lanes.pop_system() {
            Some(system)
        } else if let Some(Completed { message, pipe }) = lanes.completions.pop() {
            Some(match pipe {
                Some(number) => Next::Piped(number, message),
                None => Next::Message(message),
            })
        } else {
            if self.batch.is_empty() && mailbox.spec.batches() {
                mem::swap(&mut lanes.user, &mut self.batch);
            }
            if lanes.terms.is_some() {
                self.take_stale(&mut lanes, mailbox.spec.batches(), &mut stale);
            }
            if stale.is_empty() {
                let message = match mailbox.spec.batches() {
                    true => self.batch.pop_front(),
                    false => lanes.user.pop_front(),
                };
                lanes.aside = message.is_none();
                message.map(Next::Message)
            } else {
                Some(Next::Expired(stale.len() as u64))
            }
        };
        self.free = lanes.free(self.batch.len());
        mailbox.batched.store(self.batch.len(), Ordering::Relaxed);
        let wakers = lanes.grant(mailbox.spec.capacity, self.batch.len());
        lanes.newcomer = false;
        // The next one of the batch is looked at under the lock, to say that it is one.
        let aside = lanes.aside && !self.batch.is_empty();
        mailbox
            .attention
            .store(lanes.needs_attention() || aside, Ordering::Relaxed);
        mailbox
            .filled
            .store(!lanes.user.is_empty(), Ordering::Relaxed);
        if next.is_none() && lanes.gate != Gate::Open {
            drop(lanes);
            return Poll::Ready(Next::Stop);
        }
        drop(lanes);
        discard(stale);
        wakers.into_iter().for_each(Waker::wake);
        if next.is_none() {
            self.meter.park();
            return self.rest(mailbox, measured);
        }
        if let Some((took, weight)) = measured {
            mailbox.note(took.saturating_mul(weight), took);
        }
        match next {
            Some(Next::Message(message)) => self.taken(message),
            Some(other) => {
                self.budget -= 1;
                self.handled += u64::from(matches!(other, Next::Piped(..)));
                Poll::Ready(other)
            }
            None => Poll::Pending,
        }
    }

    /// Whether it is another's turn, though there is more to do.
    fn is_spent(&mut self, lanes: &mut Lanes<M>) -> bool {
        if mem::take(&mut lanes.visited) {
            self.budget = 1;
        }
        let spent = self.budget == 0 && (lanes.has_work() || !self.batch.is_empty());
        if spent {
            self.budget = BUDGET;
        }
        spent
    }

    /// Takes the messages at the front of the line that nobody wants any more.
    #[cold]
    fn take_stale(&mut self, lanes: &mut Lanes<M>, batches: bool, stale: &mut Vec<M>) {
        let mut front = lanes.front(self.batch.len());
        while lanes.is_stale(front) {
            let message = if batches {
                self.batch.pop_front()
            } else {
                lanes.user.pop_front()
            };
            stale.extend(message);
            front += 1;
        }
        lanes.expired += stale.len() as u64;
        lanes.forget_terms(front);
    }

    /// Ends the incarnation: what it took out goes back to the front of the line, and what was
    /// meant for it alone is dropped.
    pub(crate) fn end(&mut self, mailbox: &Mailbox<M>) {
        mailbox.handled.store(self.handled, Ordering::Relaxed);
        let mut lanes = mailbox.lanes.lock();
        lanes.incarnation += 1;
        lanes.receiving = false;
        if lanes.gate == Gate::Closed {
            drop(lanes);
            return;
        }
        if !self.batch.is_empty() {
            if !planted(Bug::BatchGoesBehind) {
                mem::swap(&mut lanes.user, &mut self.batch);
            }
            lanes.user.append(&mut self.batch);
        }
        mailbox.batched.store(0, Ordering::Relaxed);
        mailbox
            .filled
            .store(!lanes.user.is_empty(), Ordering::Relaxed);
        let own = lanes.take_own();
        let drainers = lanes.end_drain();
        mailbox
            .attention
            .store(lanes.needs_attention(), Ordering::Relaxed);
        drop(lanes);
        drainers.into_iter().for_each(Waker::wake);
        if let Some((completions, system)) = own {
            discard(completions);
            discard(system);
        }
    }
}

impl<M> Rest for Lanes<M> {
    fn rest(&mut self) -> bool {
        // Those who wait behind others that have their places are no work yet.
        let waits = self.newcomer && self.has_ungranted();
        let rests = self.user.is_empty() && !waits && !self.calls();
        self.receiving = rests;
        rests
    }
}

/// Measures how long batches take: all of them while they are long, else one of sixteen, so that
/// a short one does not pay for the clock.
#[derive(Default)]
struct Meter {
    since: Option<Instant>,
    long: bool,
    skipped: u8,
}

/// A batch of at least so many nanoseconds is long.
const LONG: u64 = 10_000;

/// One of so many short batches is measured.
const STRIDE: u8 = 16;

impl Meter {
    /// Between two batches: what the first took, if it was measured, and for how many it stands.
    #[inline]
    fn lap(&mut self) -> Option<(u64, u64)> {
        let started = self.since.take();
        self.skipped += 1;
        let measure = self.long || self.skipped >= STRIDE;
        if started.is_none() && !measure {
            return None;
        }
        let now = clock::now();
        let lap = started.map(|since| self.took(since, now));
        if measure {
            self.skipped = 0;
            self.since = Some(now);
        }
        lap
    }

    /// After the last batch: what it took, if it was measured, and for how many it stands.
    #[inline]
    fn stop(&mut self) -> Option<(u64, u64)> {
        let since = self.since.take()?;
        Some(self.took(since, clock::now()))
    }

    fn took(&mut self, since: Instant, now: Instant) -> (u64, u64) {
        let took = u64::try_from((now - since).as_nanos()).unwrap_or(u64::MAX);
        let weight = if self.long { 1 } else { STRIDE.into() };
        self.long = took >= LONG;
        // A long batch among short ones is no sample: it stands for itself.
        (took, if self.long { 1 } else { weight })
    }

    /// There is no next batch: what was started is the wait for one.
    fn park(&mut self) {
        let began = self.since.take().is_some();
        self.skipped = if began {
            STRIDE
        } else {
            self.skipped.saturating_sub(1)
        };
    }
}
