//! One dispatcher.

use std::collections::VecDeque;
use std::future::Future;
use std::mem;
use std::pin::{Pin, pin};
use std::ptr;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use super::watch::Shift;
use super::{Pool, monitor, near};
use crate::planted::{Bug, planted};
use crate::schedule::eager::{self, Luck};
use crate::schedule::strand::{Current, Filler, Lock, Next, Ready};
use crate::schedule::{pulse, wake};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// After so many actors a dispatcher looks at the clock.
const STRIDE: u32 = 64;

/// After this time a dispatcher lets the other tasks of the runtime run, and its timers and I/O.
const QUANTUM: Duration = Duration::from_micros(200);

/// After so many more, once another task waits for its thread, a dispatcher gives way.
const GRACE: u32 = 8;

/// With so many waiting, a dispatcher sends those on that belong to another.
const CROWD: usize = 64;

/// Where one dispatcher sits. Aligned so that two do not share a line.
#[repr(align(128))]
pub(super) struct Seat {
    number: usize,
    /// Who comes before the queue. One who is woken by an actor that runs here goes there, unless
    /// somebody waits already.
    next: Next<Ready>,
    /// Whether there may be somebody in the queue; written under its lock.
    queued: AtomicBool,
    /// Whether there may be somebody in the bulk; written under the lock.
    bulky: AtomicBool,
    /// Whether it is the bulk's turn, though others wait; only the dispatcher looks at it.
    owed: AtomicBool,
    /// The last beat in which it let all other work go before; only the dispatcher looks at it.
    paused: AtomicU32,
    queue: Lock<Queue>,
    /// Set under the lock of the queue while the dispatcher waits to be woken, and cleared by the
    /// dispatcher itself: a thread that is about to wake it may be preempted for long, such as one
    /// of low priority, and then the next one wakes it.
    parked: AtomicBool,
    /// Wakes the dispatcher's task.
    waker: OnceLock<Waker>,
    /// Grows with every actor that is run; what holds a worker does not let it grow.
    turns: AtomicU64,
    /// Whether a thread is dispatching here.
    pub(super) busy: AtomicBool,
    /// Set by the monitor while a handler does not come back.
    stuck: AtomicBool,
    /// The seat to rob next, and how thoroughly.
    order: AtomicUsize,
}

#[derive(Default)]
struct Queue {
    ready: VecDeque<Ready>,
    /// Those whose last turn was ended by the beat, with more to do: they come after the others.
    bulk: VecDeque<Ready>,
    /// The luck of those looks for more that it may be asked.
    luck: Luck,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.bulk.is_empty()
    }
}

thread_local! {
    /// The seat for which this thread dispatches, with its pool.
    static HERE: Current<Dispatcher> = const { Current::none() };
}

/// Gives the dispatcher of a pool that this thread is.
#[inline(always)]
pub(super) fn here<R>(pool: &Pool, look: impl FnOnce(Option<&Dispatcher>) -> R) -> R {
    Current::with(&HERE, |here| {
        look(here.filter(|here| ptr::eq(&raw const *here.pool, pool)))
    })
}

impl Seat {
    pub(super) fn new(number: usize) -> Self {
        Self {
            number,
            next: Next::new(),
            queued: AtomicBool::new(false),
            bulky: AtomicBool::new(false),
            owed: AtomicBool::new(false),
            paused: AtomicU32::new(0),
            queue: Lock::new(Queue::default()),
            parked: AtomicBool::new(false),
            waker: OnceLock::new(),
            turns: AtomicU64::new(0),
            busy: AtomicBool::new(false),
            stuck: AtomicBool::new(false),
            order: AtomicUsize::new(0),
        }
    }

    pub(super) const fn number(&self) -> usize {
        self.number
    }

    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }

    /// Queues an actor that this dispatcher woke; hands it back if it belongs to another and there
    /// is a crowd.
    #[inline(always)]
    pub(super) fn push_here(
        &self,
        filler: Option<&Filler<Ready>>,
        ready: Ready,
        home: usize,
    ) -> Option<Ready> {
        let mut ready = ready;
        if !self.queued.load(Ordering::Relaxed)
            && let Some(filler) = filler
        {
            ready = filler.put(ready)?;
        }
        let mut queue = self.queue.lock();
        if queue.ready.len() >= CROWD && home != self.number {
            return Some(ready);
        }
        queue.ready.push_back(ready);
        self.note(&queue);
        None
    }

    /// Queues an actor from elsewhere.
    pub(super) fn push(&self, ready: Ready) {
        let mut queue = self.queue.lock();
        queue.ready.push_back(ready);
        self.note(&queue);
        let parked = self.parked.load(Ordering::Relaxed);
        drop(queue);
        if parked {
            self.wake();
        }
    }

    /// Wakes the dispatcher, if it is parked.
    pub(super) fn call(&self) {
        let queue = self.queue.lock();
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

    /// Ends all that is queued.
    pub(super) fn clear(&self) {
        let mut queue = self.queue.lock();
        let queued = (mem::take(&mut queue.ready), mem::take(&mut queue.bulk));
        drop(queue);
        drop((self.next.take(), queued));
    }

    /// What the monitor sees.
    pub(super) fn look(&self) -> Look {
        let queue = self.queue.lock();
        Look {
            turns: self.turns.load(Ordering::Relaxed),
            waiting: queue.ready.len() + queue.bulk.len() + usize::from(self.next.is_full()),
            parked: self.parked.load(Ordering::Relaxed),
            busy: self.busy.load(Ordering::Relaxed),
        }
    }

    /// Notes that a handler does not come back; returns whether that was known.
    pub(super) fn set_stuck(&self) -> bool {
        self.stuck.swap(true, Ordering::Relaxed)
    }

    /// Sends the dispatcher to another's queue, to take all of it or half.
    pub(super) fn send_to(&self, victim: usize, all: bool) {
        let order = victim * 2 + usize::from(all) + 1;
        self.order.store(order, Ordering::Relaxed);
        self.call();
    }

    /// Carries out an order to rob.
    fn rob(&self, pool: &Pool) {
        let order = self.order.swap(0, Ordering::Relaxed);
        let Some(order) = order.checked_sub(1) else {
            return;
        };
        let (victim, all) = (&pool.seats[order / 2], order % 2 == 1);
        let next = if all { victim.next.take() } else { None };
        let mut theirs = victim.queue.lock();
        let half = |queue: &mut VecDeque<Ready>| {
            let kept = if all { 0 } else { queue.len() / 2 };
            queue.split_off(kept)
        };
        let (mut ready, mut bulk) = (half(&mut theirs.ready), half(&mut theirs.bulk));
        victim.note(&theirs);
        drop(theirs);
        let mut queue = self.queue.lock();
        queue.ready.extend(next);
        queue.ready.append(&mut ready);
        queue.bulk.append(&mut bulk);
        self.note(&queue);
    }

    /// Takes the first of the queue.
    pub(super) fn pop(&self) -> Option<Ready> {
        let mut queue = self.queue.lock();
        let first = queue.ready.pop_front();
        self.note(&queue);
        first
    }

    /// Takes the first of the bulk.
    #[cold]
    fn pop_bulk(&self) -> Option<Ready> {
        let mut queue = self.queue.lock();
        let first = queue.bulk.pop_front();
        self.note(&queue);
        first
    }

    /// Takes who comes next: of the bulk where that is owed, or nobody else waits.
    #[inline(always)]
    fn take_next(&self, owed: bool) -> Option<Ready> {
        if owed && let Some(bulk) = self.pop_bulk() {
            return Some(bulk);
        }
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        if self.queued.load(Ordering::Relaxed)
            && let Some(first) = self.pop()
        {
            return Some(first);
        }
        match self.bulky.load(Ordering::Relaxed) {
            true => self.pop_bulk(),
            false => None,
        }
    }

    /// Notes whether somebody is in the queue: one who is woken now comes after those.
    #[inline(always)]
    fn note(&self, queue: &Queue) {
        self.queued
            .store(!queue.ready.is_empty(), Ordering::Relaxed);
        self.bulky.store(!queue.bulk.is_empty(), Ordering::Relaxed);
    }

    /// Runs actors until none waits, or the rest of the runtime has waited long enough.
    pub(super) fn dispatch(
        &self,
        pool: &Pool,
        filler: Option<&Filler<Ready>>,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        // A dispatcher is one task for all its life, and so has one waker.
        self.waker.get_or_init(|| cx.waker().clone());
        self.parked.store(false, Ordering::Relaxed);
        let (mut left, mut since) = (STRIDE, None::<Instant>);
        let mut beat = pulse::now();
        let mut owed = self.owed.load(Ordering::Relaxed);
        if owed {
            self.owed.store(false, Ordering::Relaxed);
        }
        // Whether only others than the bulk had turns.
        let mut light = !owed;
        // What was noted outside is another's matter.
        let (mut awaited, mut over) = (false, false);
        let _before = wake::take_others();
        let mut turns = self.turns.load(Ordering::Relaxed);
        let shift = Shift::begin();
        loop {
            let Some(ready) = self.take_next(mem::take(&mut owed)) else {
                match self.park(pool, over, cx) {
                    Some(parked) => return parked,
                    None => continue,
                }
            };
            turns += 1;
            self.turns.store(turns, Ordering::Relaxed);
            shift.turn(ready.mark());
            let again = ready.run();
            if self.stuck.load(Ordering::Relaxed) {
                self.stuck.store(false, Ordering::Relaxed);
            }
            left -= 1;
            if wake::take_others() && !awaited {
                (awaited, left) = (true, left.min(GRACE));
            }
            // This turn was ended by the beat; an earlier one may have been.
            let ended = mem::replace(&mut beat, pulse::now()) != beat;
            over |= ended;
            if let Some(again) = again {
                if ended {
                    light = false;
                    self.push_bulk(again);
                } else {
                    let none = self.push_here(filler, again, self.number);
                    debug_assert!(none.is_none(), "it is at home");
                }
            }
            // Without budget, who waits for an answer or for something of tokio's waits in vain.
            // One with nothing to do parks: a task that pauses waits for this very thread, though
            // another may be free when more comes.
            let spent = over || !tokio::task::coop::has_budget_remaining();
            if spent && self.has_more() {
                return self.pause(light, cx);
            }
            if awaited && (left == 0 || self.has_bulk_alone()) {
                return self.give_way(beat, light, cx);
            }
            if left == 0 {
                left = STRIDE;
                let now = Instant::now();
                if now - *since.get_or_insert(now) >= QUANTUM {
                    return self.pause(light, cx);
                }
            }
        }
    }

    /// Waits for work, if there is none: returns what the task does then. With its beat over it
    /// does not look for more, because other tasks wait for its thread meanwhile.
    fn park(&self, pool: &Pool, over: bool, cx: &Context<'_>) -> Option<Poll<()>> {
        let mut queue = self.queue.lock();
        if !queue.is_empty() || self.next.is_full() {
            self.note(&queue);
            return None;
        }
        if pool.is_done() {
            return Some(Poll::Ready(()));
        }
        if self.order.load(Ordering::Relaxed) != 0 {
            drop(queue);
            self.rob(pool);
            return None;
        }
        if pool.is_asked() && planted(Bug::LooksForEver) {
            cx.waker().wake_by_ref();
            return Some(Poll::Pending);
        }
        if pool.is_asked() && pool.take_asked() && !over && queue.luck.begin() {
            drop(queue);
            let found = eager::look_for_work(|| self.is_told());
            self.queue.lock().luck.end(found);
            return None;
        }
        self.parked.store(true, Ordering::Relaxed);
        Some(Poll::Pending)
    }

    /// Returns `true` if there is something to do, as far as one sees without the lock.
    fn is_told(&self) -> bool {
        self.queued.load(Ordering::Relaxed) || self.order.load(Ordering::Relaxed) != 0
    }

    /// Queues an actor whose turn was ended by the beat.
    #[cold]
    fn push_bulk(&self, ready: Ready) {
        let mut queue = self.queue.lock();
        match planted(Bug::HogComesFirst) {
            true => queue.ready.push_front(ready),
            false => queue.bulk.push_back(ready),
        }
        self.note(&queue);
    }

    /// Returns `true` if somebody waits.
    #[cold]
    fn has_more(&self) -> bool {
        self.next.is_full()
            || self.queued.load(Ordering::Relaxed)
            || self.bulky.load(Ordering::Relaxed)
    }

    /// Returns `true` if nobody waits but the bulk.
    #[inline(always)]
    fn has_bulk_alone(&self) -> bool {
        self.bulky.load(Ordering::Relaxed)
            && !self.queued.load(Ordering::Relaxed)
            && !self.next.is_full()
    }

    /// Lets the tasks run that wait for this thread, or another thread go on here. Once a beat that
    /// is all other work: one that another thread woke, as the monitor does, is in no queue of this
    /// thread, and would wait for as long as that has work.
    fn give_way(&self, beat: u32, light: bool, cx: &mut Context<'_>) -> Poll<()> {
        if self.paused.load(Ordering::Relaxed) != beat {
            self.paused.store(beat, Ordering::Relaxed);
            return self.pause(light, cx);
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Lets the runtime do all its other work; the bulk comes next if only others had their turns.
    fn pause(&self, light: bool, cx: &mut Context<'_>) -> Poll<()> {
        if light && self.bulky.load(Ordering::Relaxed) {
            self.owed.store(true, Ordering::Relaxed);
        }
        pause(cx)
    }
}

/// Lets the runtime do all its other work, I/O and timers included, before the next turn.
fn pause(cx: &mut Context<'_>) -> Poll<()> {
    let paused = pin!(tokio::task::yield_now()).poll(cx);
    debug_assert!(paused.is_pending());
    Poll::Pending
}

/// A seat at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Look {
    /// How many turns there were.
    pub(super) turns: u64,
    /// How many actors wait for one.
    pub(super) waiting: usize,
    /// Whether the dispatcher waits for work.
    pub(super) parked: bool,
    /// Whether a thread dispatches.
    pub(super) busy: bool,
}

/// The task of a dispatcher. However it ends, its seat is given up.
pub(super) struct Dispatcher {
    pool: Arc<Pool>,
    number: usize,
    filler: Option<Filler<Ready>>,
}

impl Dispatcher {
    pub(super) fn new(pool: Arc<Pool>, number: usize) -> Self {
        pool.seated.fetch_add(1, Ordering::Relaxed);
        Self {
            filler: pool.seats[number].next.filler(),
            pool,
            number,
        }
    }

    pub(super) fn seat(&self) -> &Seat {
        &self.pool.seats[self.number]
    }

    /// Queues an actor that one who runs here woke; hands it back if it belongs to another and
    /// there is a crowd.
    #[inline(always)]
    pub(super) fn push(&self, ready: Ready, home: usize) -> Option<Ready> {
        self.seat().push_here(self.filler.as_ref(), ready, home)
    }
}

impl Future for Dispatcher {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let seat = self.seat();
        monitor::begin(&seat.busy);
        near::note(self.pool.runtime, self.number);
        let dispatch = || seat.dispatch(&self.pool, self.filler.as_ref(), cx);
        let polled = Current::enter(&HERE, &*self, dispatch);
        seat.busy.store(false, Ordering::Relaxed);
        polled
    }
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.pool.leave();
    }
}
