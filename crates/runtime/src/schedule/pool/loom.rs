//! Models of the dispatchers' queues, of a blocking thread and of the monitor's sleep: wakes in
//! every order.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use ::loom::model;
use ::loom::sync::{Condvar, Mutex};
use ::loom::thread;
use tokio::runtime::{Builder, Handle};

use super::blocking::BlockingThread;
use super::dispatcher::Dispatcher;
use super::monitor::{MonitorSleep, is_busy, wake_listed};
use super::watch::ThreadWatches;
use super::{Pool, SchedulerHost};
use crate::schedule::strand::loom::{ModelHost, TestQueue, model_with_list};
use crate::schedule::strand::{ActorIdentity, Runnable, channel, end_if_parked};
use crate::sync::{AtomicBool, AtomicUsize, Ordering};

/// A runtime with one worker, so that a pool has two dispatchers. It is never run, and outlives the
/// models.
fn handle() -> Handle {
    static HANDLE: OnceLock<Handle> = OnceLock::new();
    let handle = HANDLE.get_or_init(|| {
        let runtime = Builder::new_current_thread().build();
        let runtime = Box::leak(Box::new(runtime.expect("it has no drivers")));
        runtime.handle().clone()
    });
    handle.clone()
}

/// A place in a pool, for a toy that is always woken from elsewhere.
struct Remote(Arc<Pool>, usize);

impl TestQueue for Remote {
    fn push(&self, ready: Runnable) {
        self.0.push_remote(ready, self.1);
    }

    fn is_down(&self) -> bool {
        self.0.is_down()
    }

    fn release(&self) {
        self.0.release(super::home_of(self.1));
    }
}

/// Creates a toy whose home is this dispatcher.
fn toy(pool: &Arc<Pool>, dispatcher: usize) -> Arc<ModelHost<Remote>> {
    pool.admit();
    ModelHost::on_queue(Remote(Arc::clone(pool), dispatcher))
}

/// A thread that waits until it is called.
#[derive(Default)]
struct Sleeper {
    called: Mutex<bool>,
    bell: Condvar,
}

impl Sleeper {
    fn call(&self) {
        *self.called.lock().expect("no panic before") = true;
        self.bell.notify_one();
    }

    fn park(&self) {
        let mut called = self.called.lock().expect("no panic before");
        while !*called {
            called = self.bell.wait(called).expect("no panic before");
        }
        *called = false;
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.call();
    }
}

/// Runs a dispatcher until no incarnation is left in a closed pool. A dispatcher that is not
/// woken then waits forever, which loom reports.
fn dispatch(pool: &Pool, dispatcher: usize) {
    let sleeper = Arc::new(Sleeper::default());
    let waker = Waker::from(Arc::clone(&sleeper));
    let mut dispatching = pin!(poll_fn(
        |cx| pool.dispatchers[dispatcher].dispatch(pool, None, cx)
    ));
    while dispatching
        .as_mut()
        .poll(&mut Context::from_waker(&waker))
        .is_pending()
    {
        sleeper.park();
    }
}

#[test]
fn remotely_woken_actor_runs_and_closed_pool_drains() {
    let handle = handle();
    model(move || {
        let pool = Pool::new(handle.clone());
        let toy = toy(&pool, 0);
        let dispatcher = Arc::clone(&pool);
        let dispatcher = thread::spawn(move || dispatch(&dispatcher, 0));
        toy.begin(1);
        toy.add();
        pool.close();
        dispatcher.join().expect("no panic");
        assert_eq!(toy.ended(), (1, 0));
    });
}

#[test]
fn steal_request_takes_the_victims_queue() {
    let handle = handle();
    model(move || {
        let pool = Pool::new(handle.clone());
        let toy = toy(&pool, 0);
        let helper = Arc::clone(&pool);
        let helper = thread::spawn(move || dispatch(&helper, 1));
        toy.begin(0);
        pool.dispatchers[1].request_steal(0, true);
        pool.close();
        helper.join().expect("no panic");
        assert_eq!(toy.ended(), (1, 0));
    });
}

#[test]
fn relieving_a_blocked_dispatcher_takes_its_lifo_slot() {
    let handle = handle();
    model(move || {
        let pool = Pool::new(handle.clone());
        let held = Dispatcher::new(Arc::clone(&pool), 0);
        let toy = toy(&pool, 0);
        toy.begin(0);
        let woken = pool.dispatchers[0].pop();
        let far = held.push(woken.expect("it was queued"), 0);
        assert!(far.is_none());
        let helper = Arc::clone(&pool);
        let helper = thread::spawn(move || dispatch(&helper, 1));
        pool.dispatchers[1].request_steal(0, true);
        pool.close();
        helper.join().expect("no panic");
        assert_eq!(toy.ended(), (1, 0));
    });
}

#[test]
fn stolen_actor_runs_once() {
    let handle = handle();
    model(move || {
        let pool = Pool::new(handle.clone());
        let toys = [toy(&pool, 0), toy(&pool, 0)];
        for toy in &toys {
            toy.begin(0);
        }
        pool.close();
        let robbed = Arc::clone(&pool);
        let robbed = thread::spawn(move || dispatch(&robbed, 0));
        pool.dispatchers[1].request_steal(0, false);
        dispatch(&pool, 1);
        robbed.join().expect("no panic");
        for toy in &toys {
            assert_eq!(toy.ended(), (1, 0));
        }
    });
}

/// The owner of a pool: a single toy.
struct One(Weak<ModelHost<Remote>>);

impl SchedulerHost for One {
    fn end_parked_actors(&self) {
        if let Some(toy) = self.0.upgrade() {
            end_if_parked(&*toy);
        }
    }

    fn handler_limit(&self) -> Duration {
        Duration::MAX
    }

    fn progress(&self, _: u64) -> Option<u64> {
        None
    }

    fn report_blocked(&self, _: u64, _: Duration) {}
}

#[test]
fn queued_actor_is_ended_when_the_last_dispatcher_leaves() {
    let handle = handle();
    model(move || {
        let pool = Pool::new(handle.clone());
        let toy = toy(&pool, 0);
        let last = Dispatcher::new(Arc::clone(&pool), 0);
        // The runtime may end at any time, and its tasks with it.
        let leaving = thread::spawn(move || drop(last));
        toy.begin(1);
        leaving.join().expect("no panic");
        assert_eq!(toy.ended(), (0, 1));
    });
}

#[test]
fn parked_actor_is_ended_when_the_last_dispatcher_leaves() {
    let handle = handle();
    model(move || {
        let pool = Pool::new(handle.clone());
        let toy = toy(&pool, 0);
        let all: Arc<dyn SchedulerHost> = Arc::new(One(Arc::downgrade(&toy)));
        assert!(pool.owner.set(Arc::downgrade(&all)).is_ok());
        let last = Dispatcher::new(Arc::clone(&pool), 0);
        toy.begin(1);
        let ready = pool.dispatchers[0].pop().expect("it was queued");
        let leaving = thread::spawn(move || drop(last));
        // It runs on the stack of another thread, and parks.
        assert!(ready.run().is_none());
        leaving.join().expect("no panic");
        assert_eq!(toy.ended(), (0, 1));
    });
}

#[test]
fn blocking_thread_runs_its_actor_and_ends() {
    /// The thread of one actor.
    struct OwnThread(Arc<BlockingThread>);

    impl TestQueue for OwnThread {
        fn push(&self, ready: Runnable) {
            self.0.push(ready);
        }

        fn release(&self) {
            drop(self.0.end());
        }
    }

    model(|| {
        let thread = Arc::new(BlockingThread::default());
        let toy = ModelHost::on_queue(OwnThread(Arc::clone(&thread)));
        let runner = thread::spawn(move || thread.run());
        toy.begin(1);
        toy.add();
        runner.join().expect("no panic");
        assert_eq!(toy.ended(), (1, 0));
    });
}

#[test]
fn monitor_does_not_sleep_while_a_dispatcher_is_busy() {
    model(|| {
        let monitor = Arc::new((
            MonitorSleep::new(),
            AtomicBool::new(false),
            Sleeper::default(),
        ));
        let dispatcher = Arc::clone(&monitor);
        let dispatcher = thread::spawn(move || {
            let (sleep, busy, sleeper) = &*dispatcher;
            let begin = || {
                if sleep.mark_busy(busy) {
                    sleeper.call();
                }
            };
            begin();
            busy.store(false, Ordering::Relaxed);
            begin();
        });
        let (sleep, busy, sleeper) = &*monitor;
        // When it is woken for the first time, it may find that no dispatcher works any more.
        let mut seen = false;
        while !seen {
            let sample = || {
                seen = is_busy(busy);
                seen
            };
            sleep.sleep_unless(sample, || sleeper.park());
        }
        dispatcher.join().expect("no panic");
    });
}

#[test]
fn listed_ask_is_woken_while_the_monitor_goes_to_sleep() {
    /// Counts the askers that are called.
    #[derive(Default)]
    struct Called(AtomicUsize);

    impl Wake for Called {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    model_with_list(|list| {
        let called = Arc::new(Called::default());
        let waker = Waker::from(Arc::clone(&called));
        let monitor = Arc::new((MonitorSleep::new(), Sleeper::default()));
        let shared = Arc::clone(&monitor);
        let asker = thread::spawn(move || {
            let ask = |_| {
                let (giver, mut taker) = channel::<u32, ()>();
                assert!(taker.poll(&waker).is_pending());
                taker.insert_into(list);
                if shared.0.mark_wanted(list) {
                    shared.1.call();
                }
                (giver, taker)
            };
            [1, 2].map(ask)
        });
        let (sleep, sleeper) = &*monitor;
        let mut wakers = Vec::new();
        loop {
            wake_listed(list, &mut wakers);
            if called.0.load(Ordering::Relaxed) == 2 {
                break;
            }
            sleep.sleep_unless(|| is_busy(&list.needs_check), || sleeper.park());
        }
        for (giver, taker) in asker.join().expect("no panic") {
            drop(giver.send(7, |()| ()));
            drop(taker);
        }
    });
}

#[test]
fn watch_has_one_owner_and_keeps_counting() {
    model(|| {
        let turn = |watches: &ThreadWatches<1>, actor| {
            let watch = watches.claim()?;
            watch.write(ActorIdentity { system: 1, actor });
            watch.give_back();
            Some(())
        };
        let watches = Arc::new(ThreadWatches::new());
        let other = Arc::clone(&watches);
        let other = thread::spawn(move || turn(&other, 1));
        let here = turn(&watches, 2);
        let there = other.join().expect("no panic");
        let turns = usize::from(here.is_some()) + usize::from(there.is_some());
        let sample = watches.samples().next().expect("one was claimed");
        assert!(
            turns > 0 && sample.turns == turns,
            "{turns} turns, {sample:?}"
        );
    });
}
