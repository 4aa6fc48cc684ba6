//! The receiving half of a mailbox.

use std::mem;
use std::task::{Context, Poll};

use tokio::time::Instant;

use super::batch::Batch;
use super::rotation::{SourceKind, SourceRotation};
use super::{Admission, CompletedItem, Mailbox, MailboxState, ReceivedItem};
use crate::clock;
use crate::exit::drop_all_caught;
use crate::info::STATS_ENABLED;
use crate::schedule::beat;
use crate::schedule::strand::{OpaqueMessage, StrandGuard, TurnData};
use crate::schedule::wake::wake;
use crate::seeded_bug::{Bug, seeded};
use crate::sync::{Ordering, Weakening, weakened};

/// The result of a look for messages.
pub(crate) enum FastTake<'a, M> {
    /// A message was taken.
    Message,
    /// There is nothing to do.
    Idle,
    /// There may be more to check than messages.
    More(Option<StrandGuard<'a, MailboxState<M>>>),
}

/// The next thing to do, as far as the mailbox and the budget of the turn are concerned.
pub(crate) enum TakeResult<M> {
    Item(ReceivedItem<M>),
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
    round: SourceRotation,
    meter: BatchMeter,
}

/// Number of messages after which an actor lets others run.
pub(super) const TURN_BUDGET: u16 = 256;

impl<M> Receiver<M> {
    /// Creates a receiver. If `timed`, its turns end with the beat in which they begin.
    pub(crate) fn new(timed: bool) -> Self {
        Self {
            batch: Batch::new(),
            ready: 0,
            budget: TURN_BUDGET,
            beat: 0,
            timed,
            round: SourceRotation::new(),
            meter: BatchMeter::new(),
        }
    }

    /// Returns `true` if the next message of the batch may be taken before the lanes are checked.
    #[inline(always)]
    pub(crate) fn is_ready(&self, mailbox: &Mailbox<M>) -> bool {
        // The flag is read relaxed. A signal that is pushed at this moment may be seen one message
        // late, and is seen at the latest when `ready` is used up.
        self.ready > 0 && !mailbox.needs_lock() && !self.is_beat_over()
    }

    /// Returns `true` if the beat in which the turn began is over.
    #[inline(always)]
    fn is_beat_over(&self) -> bool {
        self.timed && self.beat != beat::current() && !seeded(Bug::TurnIgnoresBeat)
    }

    /// Returns `true` if time may have passed since the last look: a handler may have waited, or
    /// computed for long. On virtual time, nothing less than the clock tells.
    #[inline]
    pub(crate) fn may_time_have_passed(&self) -> bool {
        !self.timed || self.beat != beat::current()
    }

    /// Takes the next message of the batch.
    #[inline(always)]
    pub(crate) fn take(&mut self, mailbox: &Mailbox<M>) -> Option<OpaqueMessage<M>> {
        // The message that is handled no longer counts against the capacity: its place is free.
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
        state: Option<StrandGuard<'_, MailboxState<M>>>,
        cx: &Context<'_>,
    ) -> Poll<ReceivedItem<M>> {
        match self.take_next(mailbox, state, cx, false) {
            TakeResult::Item(item) => Poll::Ready(item),
            TakeResult::Timer | TakeResult::Idle | TakeResult::TurnOver => Poll::Pending,
        }
    }

    /// Takes the next thing to do. If `timer_due`, a timer takes its turn with everything that
    /// waits here.
    pub(crate) fn take_next(
        &mut self,
        mailbox: &Mailbox<M>,
        state: Option<StrandGuard<'_, MailboxState<M>>>,
        cx: &Context<'_>,
        timer_due: bool,
    ) -> TakeResult<M> {
        if timer_due {
            let state = state.unwrap_or_else(|| mailbox.strand.lock());
            return self.take_slow(mailbox, state, cx, true);
        }
        let mut message = None;
        let result = if state.is_none() && self.is_ready(mailbox) {
            message = self.take(mailbox);
            FastTake::Message
        } else {
            self.take_fast(mailbox, state, &mut message)
        };
        match result {
            FastTake::Message => message.map_or(TakeResult::Idle, |message| {
                TakeResult::Item(ReceivedItem::Message(message.into_inner()))
            }),
            FastTake::Idle => TakeResult::Idle,
            FastTake::More(state) => {
                let state = state.unwrap_or_else(|| mailbox.strand.lock());
                self.take_slow(mailbox, state, cx, false)
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
    pub(crate) fn take_fast<'a>(
        &mut self,
        mailbox: &Mailbox<M>,
        state: Option<StrandGuard<'a, MailboxState<M>>>,
        to: &mut Option<OpaqueMessage<M>>,
    ) -> FastTake<'a, M> {
        // A batch that is not empty here has used up `ready`, so its budget must be settled first.
        if mailbox.needs_lock() || !self.batch.is_empty() {
            return FastTake::More(state);
        }
        let Some(mut state) = state else {
            // Without the lock, the end of the turn finds out whether there is anything to do.
            if STATS_ENABLED && let Some((took, weight)) = self.meter.stop() {
                mailbox.record_timing(took.saturating_mul(weight), 0);
            }
            return FastTake::Idle;
        };
        // Both need a look at each message under the lock: its number, and whether it was
        // displaced.
        if state.has_expiries() || !mailbox.spec().batches() {
            return FastTake::More(Some(state));
        }
        self.settle_budget(&mut state);
        // The slow path decides whether the turn is over, because that depends on what waits.
        if self.budget == 0 || self.is_beat_over() {
            return FastTake::More(Some(state));
        }
        state.batch_len = 0;
        state.receiving = false;
        match state.messages.len() {
            0 => {
                state.last_was_control = true;
                drop(state);
                self.meter.park();
                return FastTake::Idle;
            }
            // A single message is taken directly.
            1 => *to = state.messages.pop(),
            // The queues change places: taking a batch costs the same for two messages and for
            // thousands, and the buffer of the old batch is used again for the messages to come.
            _ => {
                self.batch.swap(&mut state.messages);
                *to = self.batch.pop_front();
                state.batch_len = self.batch.len();
                mailbox.batch_len.store(state.batch_len, Ordering::Relaxed);
            }
        }
        state.last_was_control = false;
        drop(state);
        self.budget -= 1;
        if !self.batch.is_empty() {
            self.make_ready(u64::MAX);
        }
        if STATS_ENABLED {
            self.measure(mailbox);
        }
        FastTake::Message
    }

    /// Settles what remains of the budget.
    #[inline(always)]
    fn settle_budget(&mut self, state: &mut MailboxState<M>) {
        self.budget += mem::take(&mut self.ready);
        // `ready` was charged in advance; what was not used goes back. A new budget replaces the
        // rest: it was set when the actor parked or asked to yield.
        let said = mem::take(&mut state.new_budget);
        if said > 0 {
            self.budget = said;
        }
        if mem::take(&mut state.turn_began) {
            self.beat = beat::current();
        }
    }

    /// Measures batches now and then.
    #[inline(always)]
    fn measure(&mut self, mailbox: &Mailbox<M>) {
        if let Some((took, weight)) = self.meter.lap() {
            mailbox.record_timing(took.saturating_mul(weight), took);
        }
    }

    /// Checks all lanes, and takes the next item in the order of the round.
    #[cold]
    fn take_slow(
        &mut self,
        mailbox: &Mailbox<M>,
        mut state: StrandGuard<'_, MailboxState<M>>,
        cx: &Context<'_>,
        timer_due: bool,
    ) -> TakeResult<M> {
        let mut stale: Vec<OpaqueMessage<M>> = Vec::new();
        self.settle_budget(&mut state);
        // An actor that is woken while it runs is queued again behind the others when it returns.
        if self.is_turn_over(&state, timer_due) {
            drop(state);
            cx.waker().wake_by_ref();
            return TakeResult::TurnOver;
        }
        state.last_was_control = true;
        // Senders need not wake an actor that is about to look at everything.
        state.receiving = false;
        let has_messages = !self.batch.is_empty() || !state.messages.is_empty();
        // A drain does not wait for timers: it ends with the last message.
        let timer_due = timer_due
            && (state.admission == Admission::Open || has_messages || state.has_control_items());
        let taken = state.taken_count(self.batch.len());
        let next = match self.round.next(&state, taken, timer_due, has_messages) {
            Some(SourceKind::Stop | SourceKind::Signals) => {
                state.pop_system().map(TakeResult::Item)
            }
            Some(SourceKind::Completions) => state.pop_completed().map(|completed| {
                state.cold_mut().taken_outside_queue += 1;
                let CompletedItem { message, pipe } = completed;
                TakeResult::Item(match pipe {
                    Some(number) => ReceivedItem::PipeOutput(number, message),
                    None => ReceivedItem::Message(message),
                })
            }),
            Some(SourceKind::Timers) => Some(TakeResult::Timer),
            Some(SourceKind::Messages) => {
                self.take_message(&mut state, mailbox.spec().batches(), &mut stale)
            }
            None => None,
        };
        let free = state.len_before_expiring(self.batch.len());
        state.batch_len = self.batch.len();
        mailbox.batch_len.store(state.batch_len, Ordering::Relaxed);
        // Places are granted on each look and not for each message, so that the fast path never has
        // to look at the queue of senders.
        let wakers = state.grant_places(mailbox.capacity, self.batch.len());
        state.has_new_waiter = false;
        // The next message of the batch is taken under the lock, so that `other_work` is cleared.
        let other_work = state.last_was_control && !self.batch.is_empty();
        mailbox
            .lock_needed
            .store(state.needs_lock() || other_work, Ordering::Relaxed);
        // The mailbox takes no more messages and none is left: the actor ends.
        if next.is_none() && state.admission != Admission::Open {
            drop(state);
            return TakeResult::Item(ReceivedItem::Stop);
        }
        drop(state);
        // What has expired counts as if it had been handled: it is dropped within the turn.
        let count = u16::try_from(stale.len()).unwrap_or(u16::MAX).max(1);
        drop_all_caught(stale);
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
        if STATS_ENABLED {
            self.measure(mailbox);
        }
        next
    }

    /// Takes the next message, or some of those at the front of the queue that have expired.
    fn take_message(
        &mut self,
        state: &mut MailboxState<M>,
        batches: bool,
        stale: &mut Vec<OpaqueMessage<M>>,
    ) -> Option<TakeResult<M>> {
        // Where displaced messages must be found in the queue, no batch is taken out of it.
        if self.batch.is_empty() && batches {
            self.batch.swap(&mut state.messages);
        }
        if state.has_expiries() {
            self.take_expired(state, batches, stale);
        }
        if !stale.is_empty() {
            return Some(TakeResult::Item(ReceivedItem::Expired(stale.len() as u64)));
        }
        let message = if batches {
            self.batch.pop_front()
        } else {
            state.messages.pop()
        };
        state.last_was_control = message.is_none();
        message.map(|message| TakeResult::Item(ReceivedItem::Message(message.into_inner())))
    }

    /// Returns `true` if it is another actor's turn, though there is more to do.
    fn is_turn_over(&mut self, state: &MailboxState<M>, timer_due: bool) -> bool {
        let over = self.budget == 0 && !seeded(Bug::TurnHasNoMessageLimit) || self.is_beat_over();
        let spent = over && (timer_due || state.has_work() || !self.batch.is_empty());
        // The next turn is one of its own, with a full budget.
        if spent {
            self.budget = TURN_BUDGET;
        }
        spent
    }

    /// Takes the messages at the front of the queue that have expired or were abandoned, at most as
    /// many as the turn may still handle.
    #[cold]
    fn take_expired(
        &mut self,
        state: &mut MailboxState<M>,
        batches: bool,
        stale: &mut Vec<OpaqueMessage<M>>,
    ) {
        let mut front = state.front_number(self.batch.len());
        // Destructors of dropped messages take time, so they count against the turn like handlers.
        while stale.len() < usize::from(self.budget.max(1)) && state.is_expired(front) {
            let message = if batches {
                self.batch.pop_front()
            } else {
                state.messages.pop()
            };
            stale.extend(message);
            front += 1;
        }
        state.cold_mut().expired += stale.len() as u64;
        state.forget_expiries(front);
    }

    /// Puts the messages that the incarnation took out and did not handle back to the front of the
    /// queue.
    pub(crate) fn return_batch(&mut self, mailbox: &Mailbox<M>) {
        self.ready = 0;
        if self.batch.is_empty() {
            return;
        }
        self.return_batch_locked(mailbox, &mut mailbox.strand.lock());
    }

    /// Like `return_batch`, with the lock held.
    pub(super) fn return_batch_locked(
        &mut self,
        mailbox: &Mailbox<M>,
        state: &mut MailboxState<M>,
    ) {
        self.ready = 0;
        let behind = seeded(Bug::BatchReturnedToBack);
        self.batch.give_back(&mut state.messages, behind);
        state.batch_len = 0;
        mailbox.batch_len.store(0, Ordering::Relaxed);
    }
}

impl<M> TurnData for MailboxState<M> {
    #[inline(always)]
    fn begin_turn(&mut self) {
        self.turn_began = true;
    }

    fn try_park(&mut self) -> bool {
        // Senders that wait behind others that hold a place are no work yet.
        let waits = self.has_new_waiter && self.has_waiting_sender();
        let is_empty = if weakened(Weakening::RestChecksMessages) {
            true
        } else {
            self.messages.is_empty()
        };
        // This decides under the lock whether the actor parks, and sets `receiving` in the same
        // step: a push either comes before it and is seen here, or after it and wakes the actor.
        let rests = is_empty && !waits && !self.has_signals();
        self.receiving = if weakened(Weakening::RestMarksReceiving) {
            false
        } else {
            rests
        };
        if rests {
            self.new_budget = TURN_BUDGET;
        }
        rests
    }
}

/// A meter of how long batches take: it measures all of them while they are long, and otherwise one
/// of sixty-four, so that a short batch does not pay for reading the clock.
struct BatchMeter {
    since: Option<Instant>,
    long: bool,
    skipped: u8,
}

/// A batch of at least this many nanoseconds is long.
const LONG_BATCH_NANOS: u64 = 10_000;

/// One of this many short batches is measured.
const SAMPLE_INTERVAL: u8 = 64;

/// The first batch is measured after this many.
const FIRST_SAMPLE_AFTER: u8 = 16;

impl BatchMeter {
    const fn new() -> Self {
        Self {
            since: None,
            long: false,
            skipped: SAMPLE_INTERVAL - FIRST_SAMPLE_AFTER,
        }
    }

    /// Called between two batches. Returns how long the first took, if it was measured, and how
    /// many batches it stands for.
    #[inline(always)]
    fn lap(&mut self) -> Option<(u64, u64)> {
        let started = self.since.take();
        self.skipped += 1;
        let measure = self.long || self.skipped >= SAMPLE_INTERVAL;
        // The clock is not read for a batch that is neither sampled nor ends a sample.
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
        let weight = if self.long { 1 } else { SAMPLE_INTERVAL.into() };
        self.long = took >= LONG_BATCH_NANOS;
        // A long batch among short ones is no sample: it stands only for itself.
        (took, if self.long { 1 } else { weight })
    }

    /// Called if there is no next batch. A measurement that was just started would measure the wait
    /// for one, so it is dropped, and the next batch is measured instead.
    fn park(&mut self) {
        let began = self.since.take().is_some();
        self.skipped = if began {
            SAMPLE_INTERVAL
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
    const LENGTHY: Duration = Duration::from_nanos(LONG_BATCH_NANOS);

    /// Returns the meter's result at the end of a batch of this length.
    async fn lap(meter: &mut BatchMeter, length: Duration) -> Option<(u64, u64)> {
        advance(length).await;
        meter.lap()
    }

    #[tokio::test(start_paused = true)]
    async fn short_batches_are_sampled_one_in_64() {
        let mut meter = BatchMeter::new();
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
    async fn long_batches_are_all_measured() {
        let mut meter = BatchMeter::new();
        for _ in 0..16 {
            assert_eq!(lap(&mut meter, SHORT).await, None);
        }
        // The first batch is found to be long at its end, when the second has already begun.
        assert_eq!(lap(&mut meter, LENGTHY).await, Some((LONG_BATCH_NANOS, 1)));
        assert_eq!(lap(&mut meter, LENGTHY).await, None);
        for _ in 0..3 {
            assert_eq!(lap(&mut meter, LENGTHY).await, Some((LONG_BATCH_NANOS, 1)));
        }
        let shorter = LENGTHY - Duration::from_nanos(1);
        assert_eq!(
            lap(&mut meter, shorter).await,
            Some((LONG_BATCH_NANOS - 1, 1))
        );
        // The batch after it has already begun, too: it is the first of sixty-four.
        assert_eq!(lap(&mut meter, SHORT).await, Some((100, 64)));
        for _ in 0..63 {
            assert_eq!(lap(&mut meter, SHORT).await, None);
        }
        assert_eq!(lap(&mut meter, SHORT).await, Some((100, 64)));
    }

    #[tokio::test(start_paused = true)]
    async fn last_batch_is_measured_to_its_end() {
        let mut meter = BatchMeter::new();
        for _ in 0..16 {
            assert_eq!(lap(&mut meter, SHORT).await, None);
        }
        advance(SHORT).await;
        assert_eq!(meter.stop(), Some((100, 64)));
        assert_eq!(meter.stop(), None, "it was told");
        assert_eq!(lap(&mut meter, SHORT).await, None, "nothing was begun");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_is_not_measured_as_a_batch() {
        let mut meter = BatchMeter::new();
        for _ in 0..16 {
            assert_eq!(lap(&mut meter, SHORT).await, None);
        }
        meter.park();
        assert_eq!(lap(&mut meter, LENGTHY).await, None, "it waited");
        assert_eq!(lap(&mut meter, SHORT).await, Some((100, 64)));
    }

    #[tokio::test(start_paused = true)]
    async fn empty_turn_is_not_measured_as_a_batch() {
        let mut meter = BatchMeter::new();
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
