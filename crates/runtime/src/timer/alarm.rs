//! The alarms of a system: whatever waits for a time waits here.
//!
//! One wheel holds them all, and one task, the driver, sleeps until the earliest is due. The
//! driver is started by the first alarm and moves for nothing but alarms: an idle system does not
//! tick. An alarm that is taken back leaves the driver alone; it then wakes once too often.

use std::fmt;
use std::future::{Future, poll_fn};
use std::mem;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, Sleep};

use super::wheel::{Key, Wheel};
use crate::clock;
use crate::path::Path;
use crate::schedule::Scheduler;

pub(crate) struct Alarms {
    start: Instant,
    scheduler: Scheduler,
    state: Mutex<State>,
}

struct State {
    wheel: Wheel<Waker>,
    /// When the driver looks at the wheel again, unless it is woken before.
    planned: u64,
    driver: Driver,
    closed: bool,
    /// Waits for the end of the driver.
    ended: Option<Waker>,
}

enum Driver {
    Absent,
    /// It looks at the wheel before it sleeps.
    Awake,
    Asleep(Waker),
}

/// So many alarms go off before the wheel is free again for others.
const BATCH: usize = 256;

impl Alarms {
    pub(crate) fn new(scheduler: Scheduler) -> Arc<Self> {
        Arc::new(Self {
            start: scheduler.now(),
            scheduler,
            state: Mutex::new(State {
                wheel: Wheel::new(),
                planned: u64::MAX,
                driver: Driver::Absent,
                closed: false,
                ended: None,
            }),
        })
    }

    /// A limit for one who waits; it is armed when first polled.
    pub(crate) const fn deadline(self: &Arc<Self>, within: Duration) -> Deadline<'_> {
        Deadline {
            alarms: self,
            state: Limit::Unarmed(within),
        }
    }

    /// Runs a future up to a limit.
    pub(crate) async fn within<F: Future>(
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

    /// Waits until a time, again and again with one alarm.
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

    /// Ready when the alarm has gone off.
    fn poll(&self, key: Key, cx: &Context<'_>) -> Poll<()> {
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

    fn set(self: &Arc<Self>, at: Instant, waker: Waker) -> Key {
        let at = self.since_start(at);
        let mut state = self.state.lock();
        let key = state.wheel.insert(at, waker);
        if at < state.planned {
            state.planned = at;
            self.hurry(state);
        }
        key
    }

    fn since_start(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.start);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Has the driver look at the wheel.
    fn hurry(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        match mem::replace(&mut state.driver, Driver::Awake) {
            Driver::Awake => {}
            Driver::Asleep(waker) => {
                drop(state);
                waker.wake();
            }
            Driver::Absent => {
                drop(state);
                let run = Run {
                    alarms: Arc::clone(self),
                    sleep: None,
                };
                // It ends with the system: `close` says when, `ended` waits for it.
                drop(self.scheduler.spawn(Path::root, run));
            }
        }
    }

    /// Lets the driver end when no alarm is left.
    pub(crate) fn close(self: &Arc<Self>) {
        let mut state = self.state.lock();
        state.closed = true;
        if matches!(state.driver, Driver::Asleep(_)) {
            self.hurry(state);
        }
    }

    /// Waits for the end of the driver, unless others still wait for an alarm.
    pub(crate) async fn ended(&self) {
        poll_fn(|cx| {
            let mut state = self.state.lock();
            if state.wheel.len() > 0 || matches!(state.driver, Driver::Absent) {
                return Poll::Ready(());
            }
            state.ended = Some(cx.waker().clone());
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

/// The driver.
struct Run {
    alarms: Arc<Alarms>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Future for Run {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut due = Vec::new();
        loop {
            let now = this.alarms.since_start(clock::now());
            let mut state = this.alarms.state.lock();
            due.extend((0..BATCH).map_while(|_| state.wheel.pop(now)));
            if due.len() == BATCH {
                // Others may want the wheel in between.
                drop(state);
                due.drain(..).for_each(Waker::wake);
                continue;
            }
            if state.closed && state.wheel.len() == 0 {
                drop(state);
                due.drain(..).for_each(Waker::wake);
                return Poll::Ready(());
            }
            let next = state.wheel.next();
            state.planned = next.unwrap_or(u64::MAX);
            state.driver = Driver::Asleep(cx.waker().clone());
            drop(state);
            due.drain(..).for_each(Waker::wake);
            let Some(next) = next else {
                this.sleep = None;
                return Poll::Pending;
            };
            let at = clock::later(this.alarms.start, Duration::from_nanos(next));
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

impl Drop for Run {
    fn drop(&mut self) {
        let mut state = self.alarms.state.lock();
        // Where its runtime went down before the system, the next alarm starts another.
        state.driver = Driver::Absent;
        state.planned = u64::MAX;
        let ended = state.ended.take();
        drop(state);
        if let Some(ended) = ended {
            ended.wake();
        }
    }
}

/// An alarm that is set for a time; taken back when dropped, also with an incarnation that nobody
/// runs to its end: the waker in the wheel leads back to the wheel.
#[derive(Debug)]
pub(super) struct Alarm {
    at: Instant,
    key: Key,
    alarms: Arc<Alarms>,
    /// Whether it has not gone off yet.
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

/// A limit for one who waits; taken back when dropped.
#[derive(Debug)]
pub(crate) struct Deadline<'a> {
    alarms: &'a Arc<Alarms>,
    state: Limit,
}

#[derive(Debug)]
enum Limit {
    Unarmed(Duration),
    Armed(Key),
    Passed,
}

impl Deadline<'_> {
    /// Ready once the limit has passed; it starts to run with the first poll.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        match self.state {
            Limit::Unarmed(within) if within.is_zero() => {}
            Limit::Unarmed(within) => {
                let at = clock::later(clock::now(), within);
                self.state = Limit::Armed(self.alarms.set(at, cx.waker().clone()));
                return Poll::Pending;
            }
            Limit::Armed(key) if self.alarms.poll(key, cx).is_pending() => return Poll::Pending,
            Limit::Armed(_) | Limit::Passed => {}
        }
        self.state = Limit::Passed;
        Poll::Ready(())
    }
}

impl Drop for Deadline<'_> {
    fn drop(&mut self) {
        if let Limit::Armed(key) = self.state {
            let waker = self.alarms.state.lock().wheel.remove(key);
            drop(waker);
        }
    }
}
