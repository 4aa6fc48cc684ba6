//! The alarms of a system, which everything that waits for a time uses.
//!
//! All alarms are in one timer wheel, and one task, the driver, sleeps until the earliest is due.
//! The driver is started by the first alarm and runs only when an alarm is due, so an idle system
//! does not tick. Cancelling an alarm does not wake the driver; it then wakes once in vain.

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use slab::Slab;
use tokio::time::{Instant, Sleep};

use super::wheel::{AlarmKey, Wheel};
use crate::cell::ErasedCell;
use crate::clock;
use crate::late_ask::TrackedAsk;
use crate::path::ActorPath;
use crate::schedule::Scheduler;

pub(crate) struct Alarms {
    start: Instant,
    scheduler: Scheduler,
    state: Mutex<AlarmState>,
}

struct AlarmState {
    wheel: Wheel<Waker>,
    /// The asks that wait for their answers. They are here because setting the deadline of an ask
    /// takes the lock anyway.
    asks: Slab<TrackedAsk>,
    /// The time at which the driver next looks at the wheel, unless it is woken earlier.
    next_wakeup: u64,
    driver: DriverState,
    closed: bool,
    /// The wakers of the callers that wait for the end of the driver.
    ended: Vec<Waker>,
}

enum DriverState {
    Absent,
    /// The driver will look at the wheel before it sleeps.
    Awake,
    Asleep(Waker),
}

/// Number of alarms that fire before the lock of the wheel is released for others.
const ALARMS_PER_LOCK: usize = 256;

/// Number of batches after which the driver lets other tasks of its worker run.
const BATCHES_PER_POLL: usize = 4;

impl Alarms {
    pub(crate) fn new(scheduler: Scheduler) -> Arc<Self> {
        Arc::new(Self {
            start: scheduler.now(),
            scheduler,
            state: Mutex::new(AlarmState {
                wheel: Wheel::new(),
                asks: Slab::new(),
                next_wakeup: u64::MAX,
                driver: DriverState::Absent,
                closed: false,
                ended: Vec::new(),
            }),
        })
    }

    /// Returns a time limit for a wait. It starts when first polled.
    pub(crate) const fn deadline(self: &Arc<Self>, within: Duration) -> Deadline<'_> {
        Deadline {
            alarms: self,
            state: DeadlineState::Unarmed(within),
            ask: None,
        }
    }

    /// Returns the deadline of an ask that waits without a limit, and is listed all the same.
    pub(crate) const fn unlimited_deadline(self: &Arc<Self>) -> Deadline<'_> {
        Deadline {
            alarms: self,
            state: DeadlineState::Unlimited,
            ask: None,
        }
    }

    /// Runs a future with a time limit. Returns `None` if the limit has passed.
    pub(crate) async fn timeout<F: Future>(
        self: &Arc<Self>,
        limit: Duration,
        future: F,
    ) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut deadline = self.deadline(limit);
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Some(output));
            }
            deadline.poll(cx).map(|()| None)
        })
        .await
    }

    /// Waits until a time. Repeated polls for the same time use one alarm.
    pub(super) fn poll_at(
        self: &Arc<Self>,
        alarm: &mut Option<Alarm>,
        at: Instant,
        cx: &Context<'_>,
    ) -> Poll<()> {
        drop(alarm.take_if(|set| set.at != at));
        match alarm {
            Some(set) => {
                let polled = self.poll(set.key, cx);
                if polled.is_ready() {
                    set.armed = false;
                    *alarm = None;
                }
                polled
            }
            None => {
                *alarm = Some(Alarm {
                    at,
                    key: self.set(at, cx.waker().clone()),
                    alarms: Arc::clone(self),
                    armed: true,
                });
                Poll::Pending
            }
        }
    }

    /// Returns `Ready` once the alarm has fired.
    fn poll(&self, key: AlarmKey, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        let Some(waker) = state.wheel.get_mut(key) else {
            return Poll::Ready(());
        };
        if !waker.will_wake(cx.waker()) {
            let before = mem::replace(waker, cx.waker().clone());
            drop(state);
            drop(before);
        }
        Poll::Pending
    }

    fn set(self: &Arc<Self>, at: Instant, waker: Waker) -> AlarmKey {
        self.set_in(self.state.lock(), at, waker)
    }

    fn set_in(
        self: &Arc<Self>,
        mut state: MutexGuard<'_, AlarmState>,
        at: Instant,
        waker: Waker,
    ) -> AlarmKey {
        let at = self.since_start(at);
        let key = state.wheel.insert(at, waker);
        if at < state.next_wakeup {
            state.next_wakeup = at;
            self.wake_driver(state);
        }
        key
    }

    /// Returns the waiting asks that pass the filter.
    pub(crate) fn waiting_asks(&self, filter: impl Fn(&TrackedAsk) -> bool) -> Vec<TrackedAsk> {
        let state = self.state.lock();
        let asks = state.asks.iter().map(|(_, ask)| ask);
        asks.filter(|ask| filter(ask)).cloned().collect()
    }

    fn since_start(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.start);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Makes the driver look at the wheel.
    fn wake_driver(self: &Arc<Self>, mut state: MutexGuard<'_, AlarmState>) {
        match mem::replace(&mut state.driver, DriverState::Awake) {
            DriverState::Awake => {}
            DriverState::Asleep(waker) => {
                drop(state);
                waker.wake();
            }
            DriverState::Absent => {
                drop(state);
                let run = AlarmDriver {
                    alarms: Arc::clone(self),
                    sleep: None,
                };
                // The task ends with the system: `close` asks it to, and `ended` waits for it.
                drop(self.scheduler.spawn(ActorPath::root, run));
            }
        }
    }

    /// Lets the driver end as soon as no alarms are left.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.closed = true;
        if matches!(state.driver, DriverState::Asleep(_)) {
            self.wake_driver(state);
        }
    }

    /// Waits for the end of the driver, unless there are alarms that others still wait for.
    pub(crate) async fn ended(self: &Arc<Self>) {
        poll_fn(|cx| {
            let mut state = self.state.lock();
            if state.wheel.len() > 0 || matches!(state.driver, DriverState::Absent) {
                return Poll::Ready(());
            }
            state.ended.push(cx.waker().clone());
            // It may sleep until the time of an alarm that was cancelled since.
            self.wake_driver(state);
            Poll::Pending
        })
        .await;
    }
}

impl fmt::Debug for Alarms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarms")
            .field("set", &self.state.lock().wheel.len())
            .finish_non_exhaustive()
    }
}

/// The driver task.
struct AlarmDriver {
    alarms: Arc<Alarms>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Future for AlarmDriver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut due = Vec::new();
        let mut batches = 0;
        loop {
            let now = this.alarms.since_start(clock::now());
            let mut state = this.alarms.state.lock();
            due.extend((0..ALARMS_PER_LOCK).map_while(|_| state.wheel.pop(now)));
            if due.len() == ALARMS_PER_LOCK {
                // Gives others a chance to take the lock in between.
                drop(state);
                due.drain(..).for_each(Waker::wake);
                batches += 1;
                if batches == BATCHES_PER_POLL {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                continue;
            }
            if state.closed && state.wheel.len() == 0 {
                drop(state);
                due.drain(..).for_each(Waker::wake);
                return Poll::Ready(());
            }
            let next = state.wheel.next();
            if state.closed {
                // There are alarms, so callers that wait for the end give up.
                due.append(&mut state.ended);
            }
            state.next_wakeup = next.unwrap_or(u64::MAX);
            state.driver = DriverState::Asleep(cx.waker().clone());
            drop(state);
            due.drain(..).for_each(Waker::wake);
            let Some(next) = next else {
                this.sleep = None;
                return Poll::Pending;
            };
            let at = clock::saturating_add(this.alarms.start, Duration::from_nanos(next));
            let sleep = this
                .sleep
                .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
            if sleep.deadline() != at {
                sleep.as_mut().reset(at);
            }
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for AlarmDriver {
    fn drop(&mut self) {
        let mut state = self.alarms.state.lock();
        // If the tokio runtime shut down before the system, the next alarm starts another driver.
        state.driver = DriverState::Absent;
        state.next_wakeup = u64::MAX;
        let ended = mem::take(&mut state.ended);
        drop(state);
        ended.into_iter().for_each(Waker::wake);
    }
}

/// An alarm that is set for a time. It is cancelled when dropped, even if its incarnation is
/// dropped before its end; otherwise the waker in the wheel would keep the wheel alive in a cycle.
#[derive(Debug)]
pub(super) struct Alarm {
    at: Instant,
    key: AlarmKey,
    alarms: Arc<Alarms>,
    /// `true` until the alarm has fired.
    armed: bool,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if self.armed {
            let waker = self.alarms.state.lock().wheel.remove(self.key);
            drop(waker);
        }
    }
}

/// A time limit for a wait, cancelled when dropped.
#[derive(Debug)]
pub(crate) struct Deadline<'a> {
    alarms: &'a Arc<Alarms>,
    state: DeadlineState,
    /// The key of the waiting ask in [`AlarmState::asks`], if it is listed.
    ask: Option<u32>,
}

#[derive(Debug)]
enum DeadlineState {
    Unlimited,
    Unarmed(Duration),
    Armed(AlarmKey),
    Passed,
}

impl Deadline<'_> {
    /// Returns `Ready` once the limit has passed. The time starts with the first poll.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.poll_with(cx, |_, _| None)
    }

    /// Like `poll`, for an ask of `callee`, which is listed as waiting until this is dropped.
    #[inline]
    pub(crate) fn poll_ask<C: ErasedCell + 'static>(
        &mut self,
        cx: &Context<'_>,
        callee: &Arc<C>,
    ) -> Poll<()> {
        self.poll_with(cx, |now, within| {
            TrackedAsk::new(Arc::<C>::clone(callee), now, within)
        })
    }

    #[inline]
    fn poll_with(
        &mut self,
        cx: &Context<'_>,
        ask: impl FnOnce(Instant, Duration) -> Option<TrackedAsk>,
    ) -> Poll<()> {
        match self.state {
            DeadlineState::Unlimited => {
                if self.ask.is_none() {
                    let ask = ask(clock::now(), Duration::MAX);
                    self.track_ask(&mut self.alarms.state.lock(), ask);
                }
                return Poll::Pending;
            }
            DeadlineState::Unarmed(within) if within.is_zero() => {}
            DeadlineState::Unarmed(within) => {
                let now = clock::now();
                let at = clock::saturating_add(now, within);
                self.arm(cx.waker().clone(), at, ask(now, within));
                return Poll::Pending;
            }
            DeadlineState::Armed(key) if self.alarms.poll(key, cx).is_pending() => {
                return Poll::Pending;
            }
            DeadlineState::Armed(_) | DeadlineState::Passed => {}
        }
        self.state = DeadlineState::Passed;
        Poll::Ready(())
    }

    #[inline]
    fn arm(&mut self, waker: Waker, at: Instant, ask: Option<TrackedAsk>) {
        let mut state = self.alarms.state.lock();
        self.track_ask(&mut state, ask);
        self.state = DeadlineState::Armed(self.alarms.set_in(state, at, waker));
    }

    #[inline]
    fn track_ask(&mut self, state: &mut AlarmState, ask: Option<TrackedAsk>) {
        if let Some(ask) = ask {
            let place = state.asks.insert(ask);
            self.ask = Some(u32::try_from(place).expect("fewer than 2^32 asks"));
        }
    }

    /// Cancels the alarm, and removes the ask from the list.
    fn cancel(&self) {
        let mut state = self.alarms.state.lock();
        let waker = match self.state {
            DeadlineState::Armed(key) => state.wheel.remove(key),
            _ => None,
        };
        let ask = self.ask.and_then(|ask| state.asks.try_remove(ask as usize));
        drop(state);
        // It may hold the last reference to the callee.
        drop((waker, ask));
    }
}

impl Drop for Deadline<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.ask.is_some() || matches!(self.state, DeadlineState::Armed(_)) {
            self.cancel();
        }
    }
}

#[cfg(all(test, not(strowger_loom)))]
mod tests {
    use std::task::Wake;

    use tokio::task::yield_now;
    use tokio::time::timeout;

    use super::*;
    use crate::sync::{AtomicUsize, Ordering};

    const SECOND: Duration = Duration::from_secs(1);
    const DAY: Duration = Duration::from_secs(86_400);

    /// Returns alarms whose driver has been started.
    async fn driven() -> Arc<Alarms> {
        let alarms = Alarms::new(Scheduler::current().expect("within tokio"));
        assert!(
            alarms
                .timeout(SECOND, std::future::pending::<()>())
                .await
                .is_none()
        );
        alarms
    }

    #[tokio::test(start_paused = true)]
    async fn ended_ignores_cancelled_alarms() {
        let alarms = driven().await;
        let mut deadline = alarms.deadline(DAY);
        let armed = poll_fn(|cx| Poll::Ready(deadline.poll(cx).is_pending()));
        assert!(armed.await);
        alarms.close();
        // The driver sees the alarm, and sleeps.
        yield_now().await;
        drop(deadline);
        let ended = timeout(SECOND, alarms.ended()).await;
        assert!(
            ended.is_ok(),
            "it sleeps until a time for which nothing waits"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn driver_end_wakes_all_waiters() {
        let alarms = driven().await;
        let ended = |alarms: Arc<Alarms>| async move { alarms.ended().await };
        let both = [(); 2].map(|()| tokio::spawn(ended(Arc::clone(&alarms))));
        yield_now().await;
        alarms.close();
        for one in both {
            let ended = timeout(SECOND, one).await.expect("it is woken");
            ended.expect("no panic");
        }
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Count {
        fn get(&self) -> usize {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn driver_yields_between_many_due_alarms() {
        let alarms = Alarms::new(Scheduler::current().expect("within tokio"));
        // Its own driver would fire them.
        alarms.state.lock().driver = DriverState::Awake;
        let fired = Arc::new(Count::default());
        let all = 10 * ALARMS_PER_LOCK * BATCHES_PER_POLL;
        for _ in 0..all {
            alarms.set(clock::now(), Waker::from(Arc::clone(&fired)));
        }
        let mut driver = pin!(AlarmDriver {
            alarms: Arc::clone(&alarms),
            sleep: None,
        });
        let again = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&again));
        let mut polls = 0;
        while fired.get() < all {
            let before = fired.get();
            assert!(
                driver
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
            );
            polls += 1;
            assert_eq!(fired.get() - before, ALARMS_PER_LOCK * BATCHES_PER_POLL);
            assert_eq!(again.get(), polls, "it is to be polled again");
        }
    }
}
