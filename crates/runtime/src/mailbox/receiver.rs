//! The receiving half of a mailbox.

use std::mem;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::batch::Batch;
use super::round::{Round, SourceKind};
use super::{CompletedItem, Gate, Mailbox, MailboxState, Received};
use crate::clock;
use crate::exit::discard;
use crate::info::COUNTED;
use crate::schedule::beat;
use crate::schedule::strand::{OpaqueMessage, StrandGuard, TurnData};
use crate::schedule::wake::wake;
use crate::seeded_bug::{Bug, seeded};
use crate::sync::{Ordering, Weakening, weakened};

/// The result of a look for messages.
pub(crate) enum LookResult<'a, M> {
    /// A message was taken.
    Message,
    /// There is nothing to do.
    Idle,
    /// There may be more to check than messages.
    More(Option<StrandGuard<'a, MailboxState<M>>>),
}

/// The next thing to do, as far as the mailbox and the budget of the turn are concerned.
pub(crate) enum TakeResult<M> {
    Item(Received<M>),
    /// It is the turn of the timer that is due, and it has been counted as an item.
    Timer,
    /// Nothing waits, and no timer is due.
    Idle,
    /// The turn is over although something waits. The actor has been woken, so the caller returns
    /// `Pending` and does nothing else.
    TurnOver,
}

/// The half of a mailbox that one incarnation of its actor holds.
pub(crate) struct Receiver<M> {
    batch: Batch<M>,
    /// Number of messages of the batch that may be taken before the lanes are checked again.
    ready: u16,
    /// Number of further items that may be handled before others run.
    budget: u16,
    /// The beat in which the turn began.
    beat: u32,
    /// Set if turns are bounded in time.
    timed: bool,
    round: Round,
    meter: Meter,
}

/// Number of messages after which an actor lets others run.
pub(super) const BUDGET: u16 = 256;

impl<M> Receiver<M> {
    /// Creates a receiver. If `timed`, its turns end with the beat in which they begin.
    pub(crate) fn new(timed: bool) -> Self {
        Self {
            batch: Batch::new(),
            ready: 0,
            budget: BUDGET,
            beat: 0,
            timed,
            round: Round::new(),
            meter: Meter::new(),
        }
    }

    /// Returns `true` if the next message of the batch may be taken before the lanes are checked.
    #[inline(always)]
    pub(crate) fn is_ready(&self, mailbox: &Mailbox<M>) -> bool {
        self.ready > 0 && !mailbox.needs_lock() && !self.is_late()
    }

    /// Returns `true` if the beat in which the turn began is over.
    #[inline(always)]
    fn is_late(&self) -> bool {
        self.timed && self.beat != beat::now() && !seeded(Bug::TurnOutlivesItsBeat)
    }

    /// Returns `true` if time may have passed since the last look: a handler may have waited, or
    /// computed for long. On virtual time, nothing less than the clock tells.
    #[inline]
    pub(crate) fn may_be_later(&self) -> bool {
        !self.timed || self.beat != beat::now()
    }

    /// Takes the next message of the batch.
    #[inline(always)]
    pub(crate) fn take(&mut self, mailbox: &Mailbox<M>) -> Option<OpaqueMessage<M>> {
        self.ready = self.ready.saturating_sub(1);
        let left = self.batch.len().saturating_sub(1);
        mailbox.batch_len.store(left, Ordering::Relaxed);
        self.batch.pop_front()
    }

    /// Takes the next thing to do, for an actor without timers. Pending if there is none, or if it
    /// is another actor's turn.
    pub(crate) fn poll_next(
        &mut self,
        mailbox: &Mailbox<M>,
        lanes: Option<StrandGuard<'_, MailboxState<M>>>,
        cx: &Context<'_>,
    ) -> Poll<Received<M>> {
        match self.take_next(mailbox, lanes, cx, false) {
            TakeResult::Item(item) => Poll::Ready(item),
            TakeResult::Timer | TakeResult::Idle | TakeResult::TurnOver => Poll::Pending,
        }
    }

    /// Takes the next thing to do. If `timer_due`, a timer takes its turn with everything that
    /// waits here.
    pub(crate) fn take_next(
        &mut self,
        mailbox: &Mailbox<M>,
        lanes: Option<StrandGuard<'_, MailboxState<M>>>,
        cx: &Context<'_>,
        timer_due: bool,
    ) -> TakeResult<M> {
        if timer_due {
            let lanes = lanes.unwrap_or_else(|| mailbox.lanes.lock());
            return self.look_closer(mailbox, lanes, cx, true);
        }
        let mut message = None;
        let result = if lanes.is_none() && self.is_ready(mailbox) {
            message = self.take(mailbox);
            LookResult::Message
        } else {
            self.look(mailbox, lanes, &mut message)
        };
        match result {
            LookResult::Message => message.map_or(TakeResult::Idle, |message| {
                TakeResult::Item(Received::Message(message.into_inner()))
            }),
            LookResult::Idle => TakeResult::Idle,
            LookResult::More(lanes) => {
                let lanes = lanes.unwrap_or_else(|| mailbox.lanes.lock());
                self.look_closer(mailbox, lanes, cx, false)
            }
        }
    }

    /// Sets how many messages of the batch may be taken before the next look, at most `free`.
    #[inline(always)]
    fn make_ready(&mut self, free: u64) {
        let ready = u64::from(self.budget)
            .min(self.batch.len() as u64)
            .min(free);
        // It is at most the budget.
        self.ready = u16::try_from(ready).unwrap_or(0);
        self.budget -= self.ready;
    }

    /// Looks for messages, provided that nothing else waits, and takes one.
    #[inline(always)]
    pub(crate) fn look<'a>(
        &mut self,
        mailbox: &Mailbox<M>,
        lanes: Option<StrandGuard<'a, MailboxState<M>>>,
        to: &mut Option<OpaqueMessage<M>>,
    ) -> LookResult<'a, M> {
        if mailbox.needs_lock() || !self.batch.is_empty() {
            return LookResult::More(lanes);
        }
        let Some(mut lanes) = lanes else {
            // Without the lock, the end of the turn finds out whether there is anything to do.
            if COUNTED && let Some((took, weight)) = self.meter.stop() {
                mailbox.note(took.saturating_mul(weight), 0);
            }
            return LookResult::Idle;
        };
        if lanes.has_expiries() || !mailbox.spec().batches() {
            return LookResult::More(Some(lanes));
        }
        self.count(&mut lanes);
        if self.budget == 0 || self.is_late() {
            return LookResult::More(Some(lanes));
        }
        lanes.batch_len = 0;
        lanes.receiving = false;
        match lanes.user.len() {
            0 => {
                lanes.other_work = true;
                drop(lanes);
                self.meter.park();
                return LookResult::Idle;
            }
            // A single message is taken directly.
            1 => *to = lanes.user.pop(),
            _ => {
                self.batch.swap(&mut lanes.user);
                *to = self.batch.pop_front();
                lanes.batch_len = self.batch.len();
                mailbox.batch_len.store(lanes.batch_len, Ordering::Relaxed);
            }
        }
        lanes.other_work = false;
        drop(lanes);
        self.budget -= 1;
        if !self.batch.is_empty() {
            self.make_ready(u64::MAX);
        }
        if COUNTED {
            self.measure(mailbox);
        }
        LookResult::Message
    }

    /// Settles what remains of the budget.
    #[inline(always)]
    fn count(&mut self, lanes: &mut MailboxState<M>) {
        self.budget += mem::take(&mut self.ready);
        let said = mem::take(&mut lanes.budget);
        if said > 0 {
            self.budget = said;
        }
        if mem::take(&mut lanes.turn_began) {
            self.beat = beat::now();
        }
    }

    /// Measures batches now and then.
    #[inline(always)]
    fn measure(&mut self, mailbox: &Mailbox<M>) {
        if let Some((took, weight)) = self.meter.lap() {
            mailbox.note(took.saturating_mul(weight), took);
        }
    }

    /// Checks all lanes, and takes the next item in the order of the round.
    #[cold]
    fn look_closer(
        &mut self,
        mailbox: &Mailbox<M>,
        mut lanes: StrandGuard<'_, MailboxState<M>>,
        cx: &Context<'_>,
        timer_due: bool,
    ) -> TakeResult<M> {
        let mut stale: Vec<OpaqueMessage<M>> = Vec::new();
        self.count(&mut lanes);
        if self.is_spent(&lanes, timer_due) {
            drop(lanes);
            cx.waker().wake_by_ref();
            return TakeResult::TurnOver;
        }
        lanes.other_work = true;
        lanes.receiving = false;
        let has_messages = !self.batch.is_empty() || !lanes.user.is_empty();
        // A drain does not wait for timers: it ends with the last message.
        let timer_due =
            timer_due && (lanes.gate == Gate::Open || has_messages || lanes.has_other_work());
        let taken = lanes.taken(self.batch.len());
        let next = match self.round.next(&lanes, taken, timer_due, has_messages) {
            Some(SourceKind::Order | SourceKind::Signals) => {
                lanes.pop_system().map(TakeResult::Item)
            }
            Some(SourceKind::Completions) => lanes.pop_completed().map(|completed| {
                lanes.rare().beside += 1;
                let CompletedItem { message, pipe } = completed;
                TakeResult::Item(match pipe {
                    Some(number) => Received::Piped(number, message),
                    None => Received::Message(message),
                })
            }),
            Some(SourceKind::Timers) => Some(TakeResult::Timer),
            Some(SourceKind::Messages) => {
                self.take_message(&mut lanes, mailbox.spec().batches(), &mut stale)
            }
            None => None,
        };
        let free = lanes.free(self.batch.len());
        lanes.batch_len = self.batch.len();
        mailbox.batch_len.store(lanes.batch_len, Ordering::Relaxed);
        let wakers = lanes.grant(mailbox.capacity, self.batch.len());
        lanes.has_new_waiter = false;
        // The next message of the batch is taken under the lock, so that `other_work` is cleared.
        let other_work = lanes.other_work && !self.batch.is_empty();
        mailbox
            .lock_needed
            .store(lanes.needs_lock() || other_work, Ordering::Relaxed);
        // The mailbox takes no more messages and none is left: the actor ends.
        if next.is_none() && lanes.gate != Gate::Open {
            drop(lanes);
            return TakeResult::Item(Received::Stop);
        }
        drop(lanes);
        // What has expired counts as if it had been handled: it is dropped within the turn.
        let count = u16::try_from(stale.len()).unwrap_or(u16::MAX).max(1);
        discard(stale);
        if weakened(Weakening::RoomWakesSender) {
            drop(wakers);
        } else {
            wakers.into_iter().for_each(wake);
        }
        let Some(next) = next else {
            self.meter.park();
            return TakeResult::Idle;
        };
        self.budget = self.budget.saturating_sub(count);
        self.make_ready(free);
        if COUNTED {
            self.measure(mailbox);
        }
        next
    }

    /// Takes the next message, or some of those at the front of the queue that have expired.
    fn take_message(
        &mut self,
        lanes: &mut MailboxState<M>,
        batches: bool,
        stale: &mut Vec<OpaqueMessage<M>>,
    ) -> Option<TakeResult<M>> {
        if self.batch.is_empty() && batches {
            self.batch.swap(&mut lanes.user);
        }
        if lanes.has_expiries() {
            self.take_stale(lanes, batches, stale);
        }
        if !stale.is_empty() {
            return Some(TakeResult::Item(Received::Expired(stale.len() as u64)));
        }
        let message = if batches {
            self.batch.pop_front()
        } else {
            lanes.user.pop()
        };
        lanes.other_work = message.is_none();
        message.map(|message| TakeResult::Item(Received::Message(message.into_inner())))
    }

    /// Returns `true` if it is another actor's turn, though there is more to do.
    fn is_spent(&mut self, lanes: &MailboxState<M>, timer_due: bool) -> bool {
        let over = self.budget == 0 && !seeded(Bug::TurnHasNoCount) || self.is_late();
        let spent = over && (timer_due || lanes.has_work() || !self.batch.is_empty());
        if spent {
            self.budget = BUDGET;
        }
        spent
    }

    /// Takes the messages at the front of the queue that have expired or were abandoned, at most as
    /// many as the turn may still handle.
    #[cold]
    fn take_stale(
        &mut self,
        lanes: &mut MailboxState<M>,
        batches: bool,
        stale: &mut Vec<OpaqueMessage<M>>,
    ) {
        let mut front = lanes.front(self.batch.len());
        while stale.len() < usize::from(self.budget.max(1)) && lanes.is_stale(front) {
            let message = if batches {
                self.batch.pop_front()
            } else {
                lanes.user.pop()
            };
            stale.extend(message);
            front += 1;
        }
        lanes.rare().expired += stale.len() as u64;
        lanes.forget_expiries(front);
    }

    /// Puts the messages that the incarnation took out and did not handle back to the front of the
    /// queue.
    pub(crate) fn end(&mut self, mailbox: &Mailbox<M>) {
        self.ready = 0;
        if self.batch.is_empty() {
            return;
        }
        self.give_back(mailbox, &mut mailbox.lanes.lock());
    }

    /// Like `end`, with the lock held.
    pub(super) fn give_back(&mut self, mailbox: &Mailbox<M>, lanes: &mut MailboxState<M>) {
        self.ready = 0;
        let behind = seeded(Bug::BatchGoesBehind);
        self.batch.give_back(&mut lanes.user, behind);
        lanes.batch_len = 0;
        mailbox.batch_len.store(0, Ordering::Relaxed);
    }
}

impl<M> TurnData for MailboxState<M> {
    #[inline(always)]
    fn begin_turn(&mut self) {
        self.turn_began = true;
    }

    fn rest(&mut self) -> bool {
        // Senders that wait behind others that hold a place are no work yet.
        let waits = self.has_new_waiter && self.has_ungranted();
        let is_empty = if weakened(Weakening::RestChecksMessages) {
            true
        } else {
            self.user.is_empty()
        };
        let rests = is_empty && !waits && !self.has_signals();
        self.receiving = if weakened(Weakening::RestMarksReceiving) {
            false
        } else {
            rests
        };
        if rests {
            self.budget = BUDGET;
        }
        rests
    }
}

/// A meter of how long batches take: it measures all of them while they are long, and otherwise one
/// of sixty-four, so that a short batch does not pay for reading the clock.
struct Meter {
    since: Option<Instant>,
    long: bool,
    skipped: u8,
}

/// A batch of at least this many nanoseconds is long.
const LONG: u64 = 10_000;

/// One of this many short batches is measured.
const STRIDE: u8 = 64;

/// The first batch is measured after this many.
const FIRST: u8 = 16;

impl Meter {
    const fn new() -> Self {
        Self {
            since: None,
            long: false,
            skipped: STRIDE - FIRST,
        }
    }

    /// Called between two batches. Returns how long the first took, if it was measured, and how
    /// many batches it stands for.
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

    /// Called after the last batch. Returns how long it took, if it was measured, and how many
    /// batches it stands for.
    #[inline]
    fn stop(&mut self) -> Option<(u64, u64)> {
        let since = self.since.take()?;
        Some(self.took(since, clock::now()))
    }

    fn took(&mut self, since: Instant, now: Instant) -> (u64, u64) {
        let took = u64::try_from((now - since).as_nanos()).unwrap_or(u64::MAX);
        let weight = if self.long { 1 } else { STRIDE.into() };
        self.long = took >= LONG;
        // A long batch among short ones is no sample: it stands only for itself.
        (took, if self.long { 1 } else { weight })
    }

    /// Called if there is no next batch. A measurement that was just started would measure the wait
    /// for one, so it is dropped, and the next batch is measured instead.
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

    /// Returns the meter's result at the end of a batch of this length.
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
        // The first batch is found to be long at its end, when the second has already begun.
        assert_eq!(lap(&mut meter, LENGTHY).await, Some((LONG, 1)));
        assert_eq!(lap(&mut meter, LENGTHY).await, None);
        for _ in 0..3 {
            assert_eq!(lap(&mut meter, LENGTHY).await, Some((LONG, 1)));
        }
        let shorter = LENGTHY - Duration::from_nanos(1);
        assert_eq!(lap(&mut meter, shorter).await, Some((LONG - 1, 1)));
        // The batch after it has already begun, too: it is the first of sixty-four.
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
