//! One dispatcher, and the state that holds its run queues.

use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::pin::{Pin, pin};
use std::ptr;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::watch::WatchGuard;
use super::{Pool, affinity, monitor};
use crate::budget::{TurnBudget, exhaust};
use crate::schedule::spin::{self, SpinBackoff};
use crate::schedule::strand::{CurrentRef, LifoSlot, LifoWriter, Runnable, SpinLock};
use crate::schedule::{beat, wake};
use crate::seeded_bug::{Bug, seeded};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, Weakening, weakened};

/// Number of actors after which a dispatcher reads the clock.
const CLOCK_INTERVAL: u32 = 64;

/// Number of actors after which the budget of the task is refilled.
const BUDGET_REFILL_INTERVAL: u32 = 16;

/// The time after which a dispatcher lets the other tasks of the runtime run, and its timers and
/// I/O.
const YIELD_INTERVAL: Duration = Duration::from_micros(200);

/// Number of further actors that a dispatcher runs once another task waits for its thread, before
/// it yields.
const TURNS_BEFORE_YIELD: u32 = 8;

/// Number of waiting actors from which a dispatcher passes on those that belong to another one.
const CROWDED_QUEUE_LEN: usize = 64;

/// The run queues and the state of one dispatcher. Aligned so that two of them do not share a cache
/// line.
#[repr(align(128))]
pub(super) struct DispatcherState {
    number: usize,
    /// The LIFO slot, which comes before the queue. An actor that is woken by one that runs here
    /// goes there, unless other actors wait already.
    lifo_slot: LifoSlot<Runnable>,
    /// Set if the queue may contain an actor; written under its lock.
    has_queued: AtomicBool,
    /// Set if the low-priority queue may contain an actor; written under the lock.
    has_low_priority: AtomicBool,
    /// Set if it is the turn of the low-priority queue though others wait; only the dispatcher
    /// reads it.
    owes_low_priority_turn: AtomicBool,
    /// The last beat in which the dispatcher let all other work go first; only the dispatcher reads
    /// it.
    last_full_yield_beat: AtomicU32,
    /// The last beat in which the dispatcher ended with a task woken; only the dispatcher reads it.
    last_hand_over_beat: AtomicU32,
    run_queues: SpinLock<RunQueues>,
    /// Set under the lock of the queue while the dispatcher waits to be woken, and cleared by the
    /// dispatcher itself: a thread that is about to wake it may be preempted for long, for example
    /// a thread of low priority, and then the next one wakes it.
    parked: AtomicBool,
    /// Wakes the dispatcher's task.
    waker: OnceLock<Waker>,
    /// Grows with every actor that is run; it does not grow while a handler blocks the worker.
    turns: AtomicU64,
    /// Set while a thread is dispatching here.
    pub(super) busy: AtomicBool,
    /// Set by the monitor while a handler does not return.
    blocked: AtomicBool,
    /// The order to steal, if not zero: the dispatcher to steal from, and whether to take
    /// everything.
    steal_request: AtomicUsize,
}

#[derive(Default)]
struct RunQueues {
    run_queue: VecDeque<Runnable>,
    /// Actors whose last turn was ended by the beat, with more to do: they come after the others.
    low_priority: VecDeque<Runnable>,
    /// The success of polling for more asks.
    backoff: SpinBackoff,
}

impl RunQueues {
    fn is_empty(&self) -> bool {
        self.run_queue.is_empty() && self.low_priority.is_empty()
    }
}

thread_local! {
    /// The dispatcher that this thread runs, with its pool.
    static CURRENT_DISPATCHER: CurrentRef<Dispatcher> = const { CurrentRef::new() };
}

/// Passes the dispatcher of the pool that this thread runs, if any, to `look`.
#[inline(always)]
pub(super) fn with_current<R>(pool: &Pool, look: impl FnOnce(Option<&Dispatcher>) -> R) -> R {
    CurrentRef::with(&CURRENT_DISPATCHER, |here| {
        look(here.filter(|here| ptr::eq(&raw const *here.pool, pool)))
    })
}

impl DispatcherState {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            lifo_slot: LifoSlot::new(),
            has_queued: AtomicBool::new(false),
            has_low_priority: AtomicBool::new(false),
            owes_low_priority_turn: AtomicBool::new(false),
            last_full_yield_beat: AtomicU32::new(0),
            last_hand_over_beat: AtomicU32::new(0),
            run_queues: SpinLock::new(RunQueues::default()),
            parked: AtomicBool::new(false),
            waker: OnceLock::new(),
            turns: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            blocked: AtomicBool::new(false),
            steal_request: AtomicUsize::new(0),
        }
    }

    pub(super) const fn number(&self) -> usize {
        self.number
    }

    /// Returns `true` if it waits, and nothing was queued for it since. This may change at any
    /// time.
    pub(super) fn is_idle(&self) -> bool {
        self.parked.load(Ordering::Relaxed) && !self.has_queued.load(Ordering::Relaxed)
    }

    pub(super) fn is_blocked(&self) -> bool {
        self.blocked.load(Ordering::Relaxed)
    }

    /// Queues an actor that this dispatcher woke. Hands it back if it belongs to another dispatcher
    /// and there is a crowd.
    #[inline(always)]
    pub(super) fn push_from_turn(
        &self,
        writer: Option<&LifoWriter<Runnable>>,
        ready: Runnable,
        home: usize,
    ) -> Option<Runnable> {
        let mut ready = ready;
        if !self.has_queued.load(Ordering::Relaxed)
            && let Some(writer) = writer
        {
            ready = writer.put(ready)?;
        }
        let mut queue = self.run_queues.lock();
        if queue.run_queue.len() >= CROWDED_QUEUE_LEN && home != self.number {
            return Some(ready);
        }
        queue.run_queue.push_back(ready);
        self.update_hints(&queue);
        None
    }

    /// Queues an actor from elsewhere.
    pub(super) fn push(&self, ready: Runnable) {
        let mut queue = self.run_queues.lock();
        queue.run_queue.push_back(ready);
        self.update_hints(&queue);
        let parked =
            self.parked.load(Ordering::Relaxed) && !weakened(Weakening::PushWakesDispatcher);
        drop(queue);
        if parked {
            self.wake();
        }
    }

    /// Wakes the dispatcher, if it is parked.
    pub(super) fn unpark(&self) {
        let queue = self.run_queues.lock();
        let parked = self.parked.load(Ordering::Relaxed);
        drop(queue);
        if parked {
            self.wake();
        }
    }

    /// Wakes the dispatcher.
    fn wake(&self) {
        if let Some(waker) = self.waker.get() {
            waker.wake_by_ref();
        }
    }

    /// Ends all actors that are queued.
    pub(super) fn clear(&self) {
        let mut queue = self.run_queues.lock();
        let queued = (
            mem::take(&mut queue.run_queue),
            mem::take(&mut queue.low_priority),
        );
        drop(queue);
        drop((self.lifo_slot.take(), queued));
    }

    /// Returns the state of the dispatcher for the monitor.
    pub(super) fn sample(&self) -> DispatcherSample {
        let queue = self.run_queues.lock();
        DispatcherSample {
            turns: self.turns.load(Ordering::Relaxed),
            waiting: queue.run_queue.len()
                + queue.low_priority.len()
                + usize::from(self.lifo_slot.is_full()),
            parked: self.parked.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
        }
    }

    /// Records that a handler does not return; returns `true` if that was known.
    pub(super) fn swap_blocked(&self) -> bool {
        self.blocked.swap(true, Ordering::Relaxed)
    }

    /// Sends the dispatcher to the queue of another, to take all of it or half.
    pub(super) fn request_steal(&self, victim: usize, all: bool) {
        let steal_order = victim * 2 + usize::from(all) + 1;
        self.steal_request.store(steal_order, Ordering::Relaxed);
        if !weakened(Weakening::StealOrderWakesDispatcher) {
            self.unpark();
        }
    }

    /// Carries out an order to steal.
    fn steal(&self, pool: &Pool) {
        let steal_order = self.steal_request.swap(0, Ordering::Relaxed);
        let Some(steal_order) = steal_order.checked_sub(1) else {
            return;
        };
        let (victim, all) = (&pool.dispatchers[steal_order / 2], steal_order % 2 == 1);
        let next = match all && !weakened(Weakening::StealTakesLifoSlot) {
            true => victim.lifo_slot.take(),
            false => None,
        };
        let mut theirs = victim.run_queues.lock();
        let half = |queue: &mut VecDeque<Runnable>| {
            let kept = if all { 0 } else { queue.len() / 2 };
            queue.split_off(kept)
        };
        let (mut ready, mut low_priority) =
            (half(&mut theirs.run_queue), half(&mut theirs.low_priority));
        victim.update_hints(&theirs);
        drop(theirs);
        let mut queue = self.run_queues.lock();
        queue.run_queue.extend(next);
        queue.run_queue.append(&mut ready);
        queue.low_priority.append(&mut low_priority);
        self.update_hints(&queue);
    }

    /// Takes the first actor of the queue.
    pub(super) fn pop(&self) -> Option<Runnable> {
        let mut queue = self.run_queues.lock();
        let first = queue.run_queue.pop_front();
        self.update_hints(&queue);
        first
    }

    /// Takes the first actor of the low-priority queue.
    #[cold]
    fn pop_low_priority(&self) -> Option<Runnable> {
        let mut queue = self.run_queues.lock();
        let first = queue.low_priority.pop_front();
        self.update_hints(&queue);
        first
    }

    /// Takes the next actor: from the low-priority queue if it is owed a turn, or if no other actor
    /// waits.
    #[inline(always)]
    fn take_next(&self, low_priority_due: bool) -> Option<Runnable> {
        if low_priority_due && let Some(low_priority) = self.pop_low_priority() {
            return Some(low_priority);
        }
        if let Some(next) = self.lifo_slot.take() {
            return Some(next);
        }
        if self.has_queued.load(Ordering::Relaxed)
            && let Some(first) = self.pop()
        {
            return Some(first);
        }
        match self.has_low_priority.load(Ordering::Relaxed) {
            true => self.pop_low_priority(),
            false => None,
        }
    }

    /// Records whether the queues contain actors: an actor that is woken now comes after them.
    #[inline(always)]
    fn update_hints(&self, queue: &RunQueues) {
        self.has_queued
            .store(!queue.run_queue.is_empty(), Ordering::Relaxed);
        self.has_low_priority
            .store(!queue.low_priority.is_empty(), Ordering::Relaxed);
    }

    /// Runs actors until none waits, or until the rest of the runtime has waited long enough.
    pub(super) fn dispatch(
        &self,
        pool: &Pool,
        writer: Option<&LifoWriter<Runnable>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        // A dispatcher stays one task for all its life, and so has one waker.
        self.waker.get_or_init(|| cx.waker().clone());
        self.parked.store(false, Ordering::Relaxed);
        let (mut left, mut since) = (CLOCK_INTERVAL, None::<Instant>);
        let mut beat = beat::current();
        let mut low_priority_due = self.owes_low_priority_turn.load(Ordering::Relaxed);
        if low_priority_due {
            self.owes_low_priority_turn.store(false, Ordering::Relaxed);
        }
        // Set while only actors outside the low-priority queue had turns.
        let mut light = !low_priority_due;
        // Wakes that were noted outside do not concern this dispatcher.
        let (mut awaited, mut over) = (false, false);
        let _before = wake::take_other_woken();
        let mut turns = self.turns.load(Ordering::Relaxed);
        let watch = WatchGuard::begin();
        let mut budget = TurnBudget::begin();
        loop {
            let Some(ready) = self.take_next(mem::take(&mut low_priority_due)) else {
                match self.park(pool, over, cx) {
                    Some(parked) => {
                        drop(budget);
                        if wake::take_other_woken() || awaited {
                            self.hand_over(beat);
                        }
                        return parked;
                    }
                    None => continue,
                }
            };
            turns += 1;
            self.turns.store(turns, Ordering::Relaxed);
            watch.begin_turn(ready.identity());
            let again = ready.run();
            if self.blocked.load(Ordering::Relaxed) {
                self.blocked.store(false, Ordering::Relaxed);
            }
            left -= 1;
            if left.is_multiple_of(BUDGET_REFILL_INTERVAL) {
                budget.renew();
            }
            if wake::take_other_woken() && !awaited {
                (awaited, left) = (true, left.min(TURNS_BEFORE_YIELD));
            }
            // This turn was ended by the beat; an earlier one may have been.
            let ended = mem::replace(&mut beat, beat::current()) != beat;
            over |= ended;
            if let Some(again) = again {
                if ended {
                    light = false;
                    self.push_low_priority(again);
                } else {
                    let none = self.push_from_turn(writer, again, self.number);
                    debug_assert!(none.is_none(), "it is at home");
                }
            }
            // Without budget, an actor that waits for an answer or for anything of tokio's waits in
            // vain. A dispatcher with nothing to do parks instead: a task that pauses waits for
            // this very thread, though another thread may be free when more work comes.
            let spent = over || !tokio::task::coop::has_budget_remaining();
            if spent && self.has_more() && !seeded(Bug::DispatcherNeverYields) {
                return self.yield_to_runtime(light, cx);
            }
            let grace = left > 0 && !self.has_only_low_priority()
                || seeded(Bug::DispatcherIgnoresWokenTasks);
            if awaited && !grace {
                return self.yield_to_tasks(beat, light, cx);
            }
            if left == 0 {
                left = CLOCK_INTERVAL;
                let now = Instant::now();
                let long = now - *since.get_or_insert(now) >= YIELD_INTERVAL;
                if long && !seeded(Bug::DispatcherNeverYields) {
                    return self.yield_to_runtime(light, cx);
                }
            }
        }
    }

    /// Lets a task that was woken run next on this thread. If many are woken in a row, they go
    /// through the queue of the thread; the first one in a beat need not wait for what is there.
    fn hand_over(&self, beat: u32) {
        if self.last_hand_over_beat.load(Ordering::Relaxed) == beat {
            return exhaust();
        }
        self.last_hand_over_beat.store(beat, Ordering::Relaxed);
    }

    /// Parks the dispatcher, if there is no work; returns the poll result of the task then. If its
    /// beat is over, the other tasks of its thread run before it polls for more work.
    fn park(&self, pool: &Pool, over: bool, cx: &mut Context<'_>) -> Option<Poll<()>> {
        let mut queue = self.run_queues.lock();
        if !queue.is_empty() || self.lifo_slot.is_full() {
            self.update_hints(&queue);
            return None;
        }
        if pool.is_done() {
            return Some(Poll::Ready(()));
        }
        let is_ordered = self.steal_request.load(Ordering::Relaxed) != 0;
        if is_ordered && !weakened(Weakening::ParkChecksStealOrder) {
            drop(queue);
            self.steal(pool);
            return None;
        }
        if pool.saw_external_ask() && seeded(Bug::DispatcherSpinsForever) {
            cx.waker().wake_by_ref();
            return Some(Poll::Pending);
        }
        if pool.saw_external_ask() && queue.backoff.begin() {
            drop(queue);
            if over {
                // It polls when it comes back, once the others have had the thread.
                return Some(yield_to_runtime(cx));
            }
            if pool.take_external_ask() {
                let found = spin::spin_for_work(|| self.has_pending_work());
                self.run_queues.lock().backoff.end(found);
            }
            return None;
        }
        self.parked.store(true, Ordering::Relaxed);
        Some(Poll::Pending)
    }

    /// Returns `true` if there is something to do, as far as that can be seen without the lock.
    fn has_pending_work(&self) -> bool {
        self.has_queued.load(Ordering::Relaxed) || self.steal_request.load(Ordering::Relaxed) != 0
    }

    /// Queues an actor whose turn was ended by the beat.
    #[cold]
    fn push_low_priority(&self, ready: Runnable) {
        let mut queue = self.run_queues.lock();
        match seeded(Bug::PreemptedActorQueuedFirst) {
            true => queue.run_queue.push_front(ready),
            false => queue.low_priority.push_back(ready),
        }
        self.update_hints(&queue);
    }

    /// Returns `true` if an actor waits.
    #[cold]
    fn has_more(&self) -> bool {
        self.lifo_slot.is_full()
            || self.has_queued.load(Ordering::Relaxed)
            || self.has_low_priority.load(Ordering::Relaxed)
    }

    /// Returns `true` if actors wait in the low-priority queue only.
    #[inline(always)]
    fn has_only_low_priority(&self) -> bool {
        self.has_low_priority.load(Ordering::Relaxed)
            && !self.has_queued.load(Ordering::Relaxed)
            && !self.lifo_slot.is_full()
    }

    /// Lets the tasks that wait for this thread run, or lets another thread continue here. Once in
    /// a beat, this extends to all other work: a task that another thread woke, such as the
    /// monitor, is in no queue of this thread, and would wait for as long as this thread has work.
    fn yield_to_tasks(&self, beat: u32, light: bool, cx: &mut Context<'_>) -> Poll<()> {
        if self.last_full_yield_beat.load(Ordering::Relaxed) != beat {
            self.last_full_yield_beat.store(beat, Ordering::Relaxed);
            return self.yield_to_runtime(light, cx);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Lets the runtime do all its other work. The low-priority queue comes next, if only other
    /// actors had turns.
    fn yield_to_runtime(&self, light: bool, cx: &mut Context<'_>) -> Poll<()> {
        if light && self.has_low_priority.load(Ordering::Relaxed) {
            self.owes_low_priority_turn.store(true, Ordering::Relaxed);
        }
        yield_to_runtime(cx)
    }
}

/// Lets the runtime do all its other work, I/O and timers included, before the next turn.
fn yield_to_runtime(cx: &mut Context<'_>) -> Poll<()> {
    let paused = pin!(tokio::task::yield_now()).poll(cx);
    debug_assert!(paused.is_pending());
    Poll::Pending
}

/// A dispatcher at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DispatcherSample {
    /// Number of turns so far.
    pub(super) turns: u64,
    /// Number of actors that wait for a turn.
    pub(super) waiting: usize,
    /// Set if the dispatcher waits for work.
    pub(super) parked: bool,
    /// Set if a thread dispatches.
    pub(super) busy: bool,
}

/// The task of a dispatcher. However it ends, it leaves its pool.
pub(super) struct Dispatcher {
    pool: Arc<Pool>,
    number: usize,
    writer: Option<LifoWriter<Runnable>>,
}

impl Dispatcher {
    pub(super) fn new(pool: Arc<Pool>, number: usize) -> Self {
        pool.running_dispatchers.fetch_add(1, Ordering::Relaxed);
        Self {
            writer: pool.dispatchers[number].lifo_slot.writer(),
            pool,
            number,
        }
    }

    pub(super) fn state(&self) -> &DispatcherState {
        &self.pool.dispatchers[self.number]
    }

    /// Queues an actor that was woken by an actor that runs here. Hands it back if it belongs to
    /// another dispatcher and there is a crowd.
    #[inline(always)]
    pub(super) fn push(&self, ready: Runnable, home: usize) -> Option<Runnable> {
        self.state()
            .push_from_turn(self.writer.as_ref(), ready, home)
    }
}

impl Future for Dispatcher {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let dispatcher = self.state();
        monitor::mark_busy(&dispatcher.busy);
        affinity::set(self.pool.runtime, self.number);
        let dispatch = || dispatcher.dispatch(&self.pool, self.writer.as_ref(), cx);
        let polled = CurrentRef::enter(&CURRENT_DISPATCHER, &*self, dispatch);
        dispatcher.busy.store(false, Ordering::Relaxed);
        polled
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.pool.remove_dispatcher();
    }
}
