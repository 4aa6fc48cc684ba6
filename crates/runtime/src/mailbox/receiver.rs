//! The receiving half of a mailbox.

use std::mem;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::batch::Batch;
use super::{Completed, Gate, Lanes, Mailbox, Next};
use crate::clock;
use crate::exit::discard;
use crate::info::COUNTED;
use crate::planted::{Bug, planted};
use crate::schedule::pulse;
use crate::schedule::strand::{Held, Rest, Whole};
use crate::schedule::wake::wake;
use crate::sync::Ordering;

/// What a look for messages came to.
pub(crate) enum Look<'a, M> {
    /// A message was passed on.
    Message,
    /// Nothing is to be done.
    Rest,
    /// There may be more to look at than messages.
    More(Option<Held<'a, Lanes<M>>>),
}

/// The half of a mailbox that one incarnation of its actor holds.
pub(crate) struct Receiver<M> {
    batch: Batch<M>,
    /// So many of the batch may be taken before the lanes are looked at again.
    ready: u16,
    /// How many things beyond these may be done before others run.
    budget: u16,
    /// The beat in which the turn began; none where turns are not bounded in time.
    beat: Option<u32>,
    meter: Meter,
}

/// After so many messages an actor lets others run.
pub(super) const BUDGET: u16 = 256;

impl<M> Next<M> {
    fn ready(message: Whole<M>) -> Poll<Self> {
        Poll::Ready(Self::Message(message.into_inner()))
    }
}

impl<M> Receiver<M> {
    /// A receiver whose turns end with the beat in which they begin, if they are `timed`.
    pub(crate) fn new(timed: bool) -> Self {
        Self {
            batch: Batch::new(),
            ready: 0,
            budget: BUDGET,
            beat: timed.then_some(0),
            meter: Meter::new(),
        }
    }

    /// Whether the next message of the batch may be taken before the lanes are looked at.
    #[inline(always)]
    pub(crate) fn is_ready(&self, mailbox: &Mailbox<M>) -> bool {
        self.ready > 0 && !mailbox.is_calling() && !self.is_late()
    }

    /// Returns `true` if the beat in which the turn began is over.
    #[inline(always)]
    fn is_late(&self) -> bool {
        self.beat.is_some_and(|beat| beat != pulse::now()) && !planted(Bug::TurnOutlivesItsBeat)
    }

    /// Takes the next message of the batch.
    #[inline(always)]
    pub(crate) fn take(&mut self, mailbox: &Mailbox<M>) -> Option<Whole<M>> {
        self.ready = self.ready.saturating_sub(1);
        let left = self.batch.len().saturating_sub(1);
        mailbox.batched.store(left, Ordering::Relaxed);
        self.batch.pop_front()
    }

    /// Takes the next thing to do. Pending when there is none, or when it is another's turn.
    pub(crate) fn poll_next(
        &mut self,
        mailbox: &Mailbox<M>,
        lanes: Option<Held<'_, Lanes<M>>>,
        cx: &Context<'_>,
    ) -> Poll<Next<M>> {
        if lanes.is_none() && self.is_ready(mailbox) {
            let message = self.take(mailbox);
            return message.map_or(Poll::Pending, Next::ready);
        }
        let mut message = None;
        match self.look(mailbox, lanes, &mut message) {
            Look::Message => message.map_or(Poll::Pending, Next::ready),
            Look::Rest => Poll::Pending,
            Look::More(lanes) => {
                let lanes = lanes.unwrap_or_else(|| mailbox.lanes.lock());
                self.look_aside(mailbox, lanes, cx)
            }
        }
    }

    /// Says how many of the batch may be taken before the next look, if so many are free to be.
    #[inline(always)]
    fn make_ready(&mut self, free: u64) {
        let ready = u64::from(self.budget)
            .min(self.batch.len() as u64)
            .min(free);
        // No more than the budget.
        self.ready = u16::try_from(ready).unwrap_or(0);
        self.budget -= self.ready;
    }

    /// Looks for messages, if nothing else waits; passes one on.
    #[inline(always)]
    pub(crate) fn look<'a>(
        &mut self,
        mailbox: &Mailbox<M>,
        lanes: Option<Held<'a, Lanes<M>>>,
        to: &mut Option<Whole<M>>,
    ) -> Look<'a, M> {
        if mailbox.is_calling() || !self.batch.is_empty() {
            return Look::More(lanes);
        }
        let Some(mut lanes) = lanes else {
            // Whether there is nothing to do is found out under the lock, when the turn ends.
            if COUNTED && let Some((took, weight)) = self.meter.stop() {
                mailbox.note(took.saturating_mul(weight), 0);
            }
            return Look::Rest;
        };
        if lanes.has_terms() || !mailbox.spec().batches() {
            return Look::More(Some(lanes));
        }
        self.count(&mut lanes);
        if self.budget == 0 || self.is_late() {
            return Look::More(Some(lanes));
        }
        lanes.batched = 0;
        lanes.receiving = false;
        match lanes.user.len() {
            0 => {
                lanes.aside = true;
                drop(lanes);
                self.meter.park();
                return Look::Rest;
            }
            // One alone is taken from where it is.
            1 => *to = lanes.user.pop(),
            _ => {
                self.batch.swap(&mut lanes.user);
                *to = self.batch.pop_front();
                lanes.batched = self.batch.len();
                mailbox.batched.store(lanes.batched, Ordering::Relaxed);
            }
        }
        lanes.aside = false;
        drop(lanes);
        self.budget -= 1;
        if !self.batch.is_empty() {
            self.make_ready(u64::MAX);
        }
        if COUNTED {
            self.measure(mailbox);
        }
        Look::Message
    }

    /// Counts what is left of the budget.
    #[inline(always)]
    fn count(&mut self, lanes: &mut Lanes<M>) {
        self.budget += mem::take(&mut self.ready);
        let said = mem::take(&mut lanes.budget);
        if said > 0 {
            self.budget = said;
        }
        if mem::take(&mut lanes.fresh)
            && let Some(beat) = &mut self.beat
        {
            *beat = pulse::now();
        }
    }

    /// Measures now and then how long things take.
    #[inline(always)]
    fn measure(&mut self, mailbox: &Mailbox<M>) {
        if let Some((took, weight)) = self.meter.lap() {
            mailbox.note(took.saturating_mul(weight), took);
        }
    }

    /// Looks at all the lanes.
    #[cold]
    fn look_aside(
        &mut self,
        mailbox: &Mailbox<M>,
        mut lanes: Held<'_, Lanes<M>>,
        cx: &Context<'_>,
    ) -> Poll<Next<M>> {
        let mut stale: Vec<Whole<M>> = Vec::new();
        self.count(&mut lanes);
        if self.is_spent(&lanes) {
            drop(lanes);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        lanes.aside = true;
        lanes.receiving = false;
        let next = if let Some(system) = lanes.pop_system() {
            Some(system)
        } else if let Some(Completed { message, pipe }) = lanes.pop_completed() {
            lanes.rare().beside += 1;
            Some(match pipe {
                Some(number) => Next::Piped(number, message),
                None => Next::Message(message),
            })
        } else {
            if self.batch.is_empty() && mailbox.spec().batches() {
                self.batch.swap(&mut lanes.user);
            }
            if lanes.has_terms() {
                self.take_stale(&mut lanes, mailbox.spec().batches(), &mut stale);
            }
            if stale.is_empty() {
                let message = match mailbox.spec().batches() {
                    true => self.batch.pop_front(),
                    false => lanes.user.pop(),
                };
                lanes.aside = message.is_none();
                message.map(|message| Next::Message(message.into_inner()))
            } else {
                Some(Next::Expired(stale.len() as u64))
            }
        };
        let free = lanes.free(self.batch.len());
        lanes.batched = self.batch.len();
        mailbox.batched.store(lanes.batched, Ordering::Relaxed);
        let wakers = lanes.grant(mailbox.capacity, self.batch.len());
        lanes.newcomer = false;
        // The next one of the batch is looked at under the lock, to say that it is one.
        let aside = lanes.aside && !self.batch.is_empty();
        mailbox
            .attention
            .store(lanes.needs_attention() || aside, Ordering::Relaxed);
        if next.is_none() && lanes.gate != Gate::Open {
            drop(lanes);
            return Poll::Ready(Next::Stop);
        }
        drop(lanes);
        discard(stale);
        wakers.into_iter().for_each(wake);
        let Some(next) = next else {
            self.meter.park();
            return Poll::Pending;
        };
        self.budget = self.budget.saturating_sub(1);
        self.make_ready(free);
        if COUNTED {
            self.measure(mailbox);
        }
        Poll::Ready(next)
    }

    /// Whether it is another's turn, though there is more to do.
    fn is_spent(&mut self, lanes: &Lanes<M>) -> bool {
        let over = self.budget == 0 || self.is_late();
        let spent = over && (lanes.has_work() || !self.batch.is_empty());
        if spent {
            self.budget = BUDGET;
        }
        spent
    }

    /// Takes the messages at the front of the line that nobody wants any more.
    #[cold]
    fn take_stale(&mut self, lanes: &mut Lanes<M>, batches: bool, stale: &mut Vec<Whole<M>>) {
        let mut front = lanes.front(self.batch.len());
        while lanes.is_stale(front) {
            let message = if batches {
                self.batch.pop_front()
            } else {
                lanes.user.pop()
            };
            stale.extend(message);
            front += 1;
        }
        lanes.rare().expired += stale.len() as u64;
        lanes.forget_terms(front);
    }

    /// Gives back what the incarnation took out and did not handle, to the front of the line.
    pub(crate) fn end(&mut self, mailbox: &Mailbox<M>) {
        self.ready = 0;
        if self.batch.is_empty() {
            return;
        }
        self.give_back(mailbox, &mut mailbox.lanes.lock());
    }

    /// As `end`, under the lock.
    pub(super) fn give_back(&mut self, mailbox: &Mailbox<M>, lanes: &mut Lanes<M>) {
        self.ready = 0;
        let behind = planted(Bug::BatchGoesBehind);
        self.batch.give_back(&mut lanes.user, behind);
        lanes.batched = 0;
        mailbox.batched.store(0, Ordering::Relaxed);
    }
}

impl<M> Rest for Lanes<M> {
    #[inline(always)]
    fn begin_turn(&mut self) {
        self.fresh = true;
    }

    fn rest(&mut self) -> bool {
        // Those who wait behind others that have their places are no work yet.
        let waits = self.newcomer && self.has_ungranted();
        let rests = self.user.is_empty() && !waits && !self.calls();
        self.receiving = rests;
        if rests {
            self.budget = BUDGET;
        }
        rests
    }
}

/// Measures how long batches take: all of them while they are long, else one of sixty-four, so
/// that a short one does not pay for the clock.
struct Meter {
    since: Option<Instant>,
    long: bool,
    skipped: u8,
}

/// A batch of at least so many nanoseconds is long.
const LONG: u64 = 10_000;

/// One of so many short batches is measured.
const STRIDE: u8 = 64;

/// The first is measured after so many.
const FIRST: u8 = 16;

impl Meter {
    const fn new() -> Self {
        Self {
            since: None,
            long: false,
            skipped: STRIDE - FIRST,
        }
    }

    /// Between two batches: what the first took, if it was measured, and for how many it stands.
    #[inline(always)]
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::advance;

    use super::*;

    const SHORT: Duration = Duration::from_nanos(100);
    const LENGTHY: Duration = Duration::from_nanos(LONG);

    /// What a meter says at the end of a batch of this length.
    async fn lap(meter: &mut Meter, length: Duration) -> Option<(u64, u64)> {
        advance(length).await;
        meter.lap()
    }

    #[tokio::test(start_paused = true)]
    async fn one_of_sixty_four_short_batches_is_measured_and_stands_for_all() {
        let mut meter = Meter::new();
        let mut measured = Vec::new();
        for batch in 0..200 {
            if let Some(lap) = lap(&mut meter, SHORT).await {
                measured.push((batch, lap));
            }
        }
        assert_eq!(
            measured,
            [(16, (100, 64)), (80, (100, 64)), (144, (100, 64))]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn long_batches_are_all_measured_and_stand_for_themselves() {
        let mut meter = Meter::new();
        for _ in 0..16 {
            assert_eq!(lap(&mut meter, SHORT).await, None);
        }
        // The first is found to be long at its end, and the second has begun then.
        assert_eq!(lap(&mut meter, LENGTHY).await, Some((LONG, 1)));
        assert_eq!(lap(&mut meter, LENGTHY).await, None);
        for _ in 0..3 {
            assert_eq!(lap(&mut meter, LENGTHY).await, Some((LONG, 1)));
        }
        let shorter = LENGTHY - Duration::from_nanos(1);
        assert_eq!(lap(&mut meter, shorter).await, Some((LONG - 1, 1)));
        // The one after it has begun then, too: it is the first of sixty-four.
        assert_eq!(lap(&mut meter, SHORT).await, Some((100, 64)));
        for _ in 0..63 {
            assert_eq!(lap(&mut meter, SHORT).await, None);
        }
        assert_eq!(lap(&mut meter, SHORT).await, Some((100, 64)));
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_batch_is_measured_to_its_end_and_no_further() {
        let mut meter = Meter::new();
        for _ in 0..16 {
            assert_eq!(lap(&mut meter, SHORT).await, None);
        }
        advance(SHORT).await;
        assert_eq!(meter.stop(), Some((100, 64)));
        assert_eq!(meter.stop(), None, "it was told");
        assert_eq!(lap(&mut meter, SHORT).await, None, "nothing was begun");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_is_no_batch_and_the_batch_after_it_is_measured_instead() {
        let mut meter = Meter::new();
        for _ in 0..16 {
            assert_eq!(lap(&mut meter, SHORT).await, None);
        }
        meter.park();
        assert_eq!(lap(&mut meter, LENGTHY).await, None, "it waited");
        assert_eq!(lap(&mut meter, SHORT).await, Some((100, 64)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_for_nothing_does_not_count_as_a_batch() {
        let mut meter = Meter::new();
        for _ in 0..200 {
            assert_eq!(lap(&mut meter, SHORT).await, None);
            meter.park();
        }
        for _ in 0..16 {
            assert_eq!(lap(&mut meter, SHORT).await, None);
        }
        assert_eq!(lap(&mut meter, SHORT).await, Some((100, 64)));
    }
}
