//! Models of the lock and of the strand: wakers, runners and an end, in every order.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, Ready as Done, poll_fn};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use ::loom::model;
use ::loom::sync::atomic::{AtomicUsize, Ordering};
use ::loom::sync::{Condvar, Mutex};
use ::loom::thread;

use super::{
    ActorIdentity, Behavior, LifoSlot, NextStep, OpaqueMessage, RecentAsks, Runnable, SlotSender,
    SpinLock, Strand, StrandGuard, StrandHost, TurnData, channel, end_if_parked, start,
};
use crate::exit::Exit;
use crate::path::ActorPath;

/// The queue in which a host waits for its turn.
pub(in crate::schedule) trait TestQueue: Send + Sync + 'static {
    fn push(&self, ready: Runnable);

    /// Returns `true` if nothing runs any more.
    fn is_down(&self) -> bool {
        false
    }

    /// Called when the incarnation is over.
    fn release(&self) {}
}

/// A strand over a number.
pub(in crate::schedule) struct ModelHost<Q = Queue> {
    strand: Strand<u32>,
    line: Q,
    /// Number of incarnations that were over: with an exit, and without.
    ended: AtomicUsize,
    dropped: AtomicUsize,
}

impl<Q: TestQueue> ModelHost<Q> {
    pub(in crate::schedule) fn on_queue(line: Q) -> Arc<Self> {
        Arc::new(Self {
            strand: Strand::new(0),
            line,
            ended: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
        })
    }

    /// Starts a `Behavior` that is over when the number has reached `last`.
    pub(in crate::schedule) fn begin(self: &Arc<Self>, last: u32) {
        let life = CountBehavior {
            last,
            waits: last.is_multiple_of(2),
        };
        let ready = start(self, 0, |_| (), |(), _| life).expect("it is off");
        self.line.push(ready);
    }

    pub(in crate::schedule) fn add(&self) {
        let mut number = self.strand.lock();
        *number += 1;
        number.wake();
    }

    /// Returns the number of incarnations that ended with an exit, and without.
    pub(in crate::schedule) fn ended(&self) -> (usize, usize) {
        let ended = self.ended.load(Ordering::Relaxed);
        (ended, self.dropped.load(Ordering::Relaxed))
    }
}

/// A queue that is run by any thread that checks it.
#[derive(Default)]
pub(in crate::schedule) struct Queue(Mutex<VecDeque<Runnable>>);

impl TestQueue for Queue {
    fn push(&self, ready: Runnable) {
        let mut queue = self.0.lock().expect("nobody panics with it");
        queue.push_back(ready);
        assert_eq!(queue.len(), 1, "a strand is queued once");
    }
}

impl ModelHost {
    fn new() -> Arc<Self> {
        Self::on_queue(Queue::default())
    }

    /// Runs what is queued until the queue is empty.
    fn run(&self) {
        loop {
            let ready = self
                .line
                .0
                .lock()
                .expect("nobody panics with it")
                .pop_front();
            let Some(ready) = ready else { return };
            if let Some(again) = ready.run() {
                self.line.push(again);
            }
        }
    }
}

/// A `Behavior` that is over when the number has reached `last`: its turns return before, or wait.
struct CountBehavior {
    last: u32,
    waits: bool,
}

impl<Q: TestQueue> Behavior<ModelHost<Q>> for CountBehavior {
    type Message = Infallible;
    type Control = ();
    type Error = Infallible;

    fn is_ready(&mut self, _: &ModelHost<Q>) -> bool {
        false
    }

    fn next(
        &mut self,
        host: &ModelHost<Q>,
        number: Option<StrandGuard<'_, u32>>,
        _: &Context<'_>,
        _: &mut Option<OpaqueMessage<Infallible>>,
        exit: &mut Option<Exit>,
    ) -> NextStep<()> {
        if self.waits {
            return NextStep::Control(());
        }
        let number = number.unwrap_or_else(|| host.strand.lock());
        match *number >= self.last {
            true => {
                *exit = Some(Exit::Normal);
                NextStep::End
            }
            false => NextStep::Idle,
        }
    }

    fn handle<'a>(
        &'a mut self,
        _: &'a ModelHost<Q>,
        message: &mut Option<OpaqueMessage<Infallible>>,
    ) -> Option<impl Future<Output = Result<(), Infallible>> + Send + use<'a, Q>> {
        let none =
            |message: OpaqueMessage<Infallible>| -> Done<_> { match message.into_inner() {} };
        message.take().map(none)
    }

    fn into_exit(failure: Infallible) -> Exit {
        match failure {}
    }

    async fn run_control(&mut self, host: &ModelHost<Q>, (): ()) -> Result<(), Exit> {
        poll_fn(|_| match *host.strand.lock() >= self.last {
            true => Poll::Ready(Err(Exit::Normal)),
            false => Poll::Pending,
        })
        .await
    }

    fn begin_end(&mut self, _: &ModelHost<Q>, _: &Exit) -> bool {
        false
    }

    async fn end(&mut self, _: &ModelHost<Q>, exit: Exit) -> Result<(), Exit> {
        Err(exit)
    }

    async fn end_quickly(&mut self, _: &ModelHost<Q>, exit: Exit) -> Result<(), Exit> {
        Err(exit)
    }
}

impl TurnData for u32 {
    fn try_park(&mut self) -> bool {
        true
    }
}

impl<Q: TestQueue> StrandHost for ModelHost<Q> {
    type Data = u32;

    fn strand(&self) -> &Strand<u32> {
        &self.strand
    }

    fn queue(&self, ready: Runnable, _: u32) {
        self.line.push(ready);
    }

    fn is_down(&self) -> bool {
        self.line.is_down()
    }

    fn is_killed(&self) -> bool {
        false
    }

    fn path(&self) -> ActorPath {
        ActorPath::root()
    }

    fn identity(&self) -> ActorIdentity {
        ActorIdentity::default()
    }

    fn on_incarnation_end(self: Arc<Self>, exit: Option<&Exit>, _: Option<u64>, _: u32) {
        let counter = if exit.is_some() {
            &self.ended
        } else {
            &self.dropped
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.line.release();
    }
}

#[test]
fn spin_lock_is_exclusive_and_publishes_writes() {
    model(|| {
        let lock = Arc::new(SpinLock::new(0));
        let add = |lock: &SpinLock<i32>| *lock.lock() += 1;
        let other = Arc::clone(&lock);
        // Two threads that spin at the lock would wait for each other's turns forever.
        let other = thread::spawn(move || add(&other));
        add(&lock);
        add(&lock);
        other.join().expect("no panic");
        assert_eq!(*lock.lock(), 3);
    });
}

#[test]
fn no_wakeup_is_lost_while_parking() {
    model(|| {
        let host = ModelHost::new();
        host.begin(1);
        let waker = Arc::clone(&host);
        let waker = thread::spawn(move || waker.add());
        host.run();
        waker.join().expect("no panic");
        host.run();
        assert_eq!(host.ended(), (1, 0));
        assert_eq!(
            Arc::strong_count(&host),
            1,
            "a strand that is over keeps nothing"
        );
    });
}

#[test]
fn behavior_runs_on_one_thread_at_a_time() {
    model(|| {
        let host = ModelHost::new();
        host.begin(2);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let host = Arc::clone(&host);
                thread::spawn(move || {
                    host.add();
                    host.run();
                })
            })
            .collect();
        for other in others {
            other.join().expect("no panic");
        }
        host.run();
        assert_eq!(host.ended(), (1, 0));
    });
}

#[test]
fn abandoned_strand_ends_once() {
    model(|| {
        let host = ModelHost::new();
        host.begin(1);
        host.run();
        let waker = Arc::clone(&host);
        let waker = thread::spawn(move || {
            waker.add();
            waker.run();
        });
        end_if_parked(&*host);
        waker.join().expect("no panic");
        let (ended, dropped) = host.ended();
        assert_eq!(ended + dropped, 1);
        assert_eq!(
            Arc::strong_count(&host),
            1,
            "a strand that is over keeps nothing"
        );
    });
}

/// The executor of one task, which runs on the thread that polls.
#[derive(Default)]
pub(crate) struct Executor {
    woken: Mutex<bool>,
    bell: Condvar,
}

impl Wake for Executor {
    fn wake(self: Arc<Self>) {
        *self.woken.lock().expect("no panic before") = true;
        self.bell.notify_one();
    }
}

impl Executor {
    /// Waits until the task is woken. If that never happens, loom reports a deadlock.
    pub(crate) fn park(&self) {
        let mut woken = self.woken.lock().expect("no panic before");
        while !*woken {
            woken = self.bell.wait(woken).expect("no panic before");
        }
        *woken = false;
    }
}

/// Counts how often it is woken.
#[derive(Default)]
struct ModelWaker(AtomicUsize);

impl Wake for ModelWaker {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Puts a value into a slot on another thread; the counter is set to 1 when it is told.
fn put(giver: SlotSender<Box<u32>, Arc<AtomicUsize>>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let tell = |told: &Arc<AtomicUsize>| told.store(1, Ordering::Relaxed);
        let woken = giver.send(Box::new(7), tell);
        woken.into_iter().for_each(Waker::wake);
    })
}

#[test]
fn value_wakes_a_receiver_that_sets_a_watch() {
    model(|| {
        let (giver, mut taker) = channel();
        let told = Arc::new(AtomicUsize::new(0));
        let putting = put(giver);
        if let Some(value) = taker.take() {
            assert_eq!(*value, 7);
            return;
        }
        let bell = Arc::new(ModelWaker::default());
        let first = taker.poll(&Waker::from(Arc::clone(&bell)));
        let watched = first.is_pending() && taker.watch(Arc::clone(&told));
        putting.join().expect("no panic");
        let value = match first {
            Poll::Ready(value) => value,
            Poll::Pending => {
                assert_eq!(bell.0.load(Ordering::Relaxed), 1, "it waits to the end");
                taker.take()
            }
        };
        assert_eq!(told.load(Ordering::Relaxed), usize::from(watched));
        assert_eq!(value.as_deref(), Some(&7));
        assert!(taker.take().is_none(), "there was one");
    });
}

#[test]
fn value_wakes_the_last_polling_task() {
    model(|| {
        let (giver, mut taker) = channel();
        let told = Arc::new(AtomicUsize::new(0));
        assert!(taker.poll(Waker::noop()).is_pending());
        assert!(taker.watch(Arc::clone(&told)), "nothing was put in");
        let putting = put(giver);
        let bell = Arc::new(ModelWaker::default());
        let polled = taker.poll(&Waker::from(Arc::clone(&bell)));
        putting.join().expect("no panic");
        let value = match polled {
            Poll::Ready(value) => value,
            Poll::Pending => {
                assert_eq!(bell.0.load(Ordering::Relaxed), 1, "it waits to the end");
                taker.take()
            }
        };
        assert_eq!(told.load(Ordering::Relaxed), 1);
        assert_eq!(value.as_deref(), Some(&7));
    });
}

/// A model with a list, which has to be empty at its end.
pub(crate) fn model_with_list(run: impl Fn(&'static RecentAsks) + Send + Sync + 'static) {
    model(move || {
        let list: &'static RecentAsks = Box::leak(Box::new(RecentAsks::new()));
        run(list);
        // SAFETY: it was leaked above, and nothing is in it.
        drop(unsafe { Box::from_raw(std::ptr::from_ref(list).cast_mut()) });
    });
}

#[test]
fn recent_waiter_is_woken_or_has_its_value() {
    model_with_list(|list| {
        let (giver, mut taker) = channel::<Box<u32>, ()>();
        let bell = Arc::new(ModelWaker::default());
        let waker = Waker::from(Arc::clone(&bell));
        assert!(taker.poll(&waker).is_pending());
        taker.insert_into(list);
        let give = thread::spawn(move || {
            giver
                .send(Box::new(7), |()| ())
                .into_iter()
                .for_each(Waker::wake);
        });
        let mut wakers = Vec::new();
        assert!(!list.take(&mut wakers), "there was one");
        assert!(!taker.will_be_woken());
        wakers.into_iter().for_each(Waker::wake);
        give.join().expect("no panic");
        assert!(bell.0.load(Ordering::Relaxed) > 0, "it is told");
        assert_eq!(taker.take().as_deref(), Some(&7));
        drop(taker);
        assert_eq!(Arc::strong_count(&bell), 2, "no waker is left but this one");
    });
}

#[test]
fn dropped_waiter_is_not_touched_by_the_list() {
    model_with_list(|list| {
        let (giver, mut taker) = channel::<Box<u32>, ()>();
        let waker = Waker::from(Arc::new(ModelWaker::default()));
        assert!(taker.poll(&waker).is_pending());
        taker.insert_into(list);
        let call = thread::spawn(move || {
            let mut wakers = Vec::new();
            list.take(&mut wakers);
            wakers.into_iter().for_each(Waker::wake);
        });
        drop(taker);
        giver
            .send(Box::new(7), |()| ())
            .into_iter()
            .for_each(Waker::wake);
        call.join().expect("no panic");
    });
}

#[test]
fn value_without_receiver_is_dropped_with_the_slot() {
    model(|| {
        let value = Arc::new(());
        let (giver, mut taker) = channel::<Arc<()>, ()>();
        let given = Arc::clone(&value);
        let put = thread::spawn(move || {
            giver.send(given, |()| {}).into_iter().for_each(Waker::wake);
        });
        if taker.poll(Waker::noop()).is_pending() {
            drop(taker);
        }
        put.join().expect("no panic");
        assert_eq!(Arc::strong_count(&value), 1);
    });
}

#[test]
fn lifo_slot_value_is_taken_once() {
    model(|| {
        let next = Arc::new(LifoSlot::new());
        let writer = next.writer().expect("nobody has it");
        assert!(next.writer().is_none(), "one has it");
        let elsewhere = Arc::clone(&next);
        let elsewhere = thread::spawn(move || elsewhere.take().map(|taken: Box<u32>| *taken));
        let mut seen = Vec::new();
        for number in [1, 2] {
            // Refused while the other thread holds the first one.
            seen.extend(writer.put(Box::new(number)).map(|refused| *refused));
            seen.extend(next.take().map(|taken| *taken));
        }
        seen.extend(elsewhere.join().expect("no panic"));
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);
    });
}

#[test]
fn lifo_writer_refills_after_a_remote_take() {
    model(|| {
        let next = Arc::new(LifoSlot::new());
        let writer = next.writer().expect("nobody has it");
        assert!(writer.put(Box::new(1)).is_none());
        let elsewhere = Arc::clone(&next);
        let elsewhere = thread::spawn(move || elsewhere.take().expect("it is there"));
        let refused = writer.put(Box::new(2));
        let first: Box<u32> = elsewhere.join().expect("no panic");
        assert_eq!(*first, 1);
        let second = refused.or_else(|| next.take());
        assert_eq!(*second.expect("it is here or there"), 2);
    });
}

#[test]
fn next_lifo_writer_sees_the_previous_value() {
    model(|| {
        // Puts a number in, unless the other thread is about to; returns a number that was refused.
        let fill = |next: &LifoSlot<Box<u32>>, number| {
            let writer = next.writer()?;
            Some(writer.put(Box::new(number)).map(|refused| *refused))
        };
        let next = Arc::new(LifoSlot::new());
        let other = Arc::clone(&next);
        let other = thread::spawn(move || fill(&other, 1));
        let here = fill(&next, 2);
        let there = other.join().expect("no panic");
        let put = usize::from(here.is_some()) + usize::from(there.is_some());
        let mut seen = Vec::from_iter(next.take().map(|taken| *taken));
        seen.extend(here.flatten());
        seen.extend(there.flatten());
        assert!(put > 0 && seen.len() == put, "{put} were put in: {seen:?}");
    });
}
