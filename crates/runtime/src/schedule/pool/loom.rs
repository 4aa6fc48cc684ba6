//! Models of the dispatchers' queues, of a thread of its own and of the monitor's sleep: who wakes
//! whom, in every order.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, OnceLock, Weak};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use ::loom::model;
use ::loom::sync::{Condvar, Mutex};
use ::loom::thread;
use tokio::runtime::{Builder, Handle};

use super::monitor::{Sleep, is_busy};
use super::seat::Dispatcher;
use super::solo::Solo;
use super::{Pool, Residents};
use crate::schedule::strand::loom::{Line, Toy};
use crate::schedule::strand::{Ready, abandon};
use crate::sync::{AtomicBool, Ordering};

/// A runtime with one worker, so that a pool has two seats: it is not run, and outlives models.
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
struct Far(Arc<Pool>, usize);

impl Line for Far {
    fn push(&self, ready: Ready) {
        self.0.push_far(ready, self.1);
    }

    fn is_down(&self) -> bool {
        self.0.is_down()
    }

    fn release(&self) {
        self.0.release(super::place_of(self.1));
    }
}

/// A toy that lives at this seat.
fn toy(pool: &Arc<Pool>, seat: usize) -> Arc<Toy<Far>> {
    pool.admit();
    Toy::within(Far(Arc::clone(pool), seat))
}

/// Somebody who waits until it is called.
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

/// Dispatches at a seat until nothing lives in a pool that is closed. One who is not woken then
/// waits for ever, which loom does not let pass.
fn dispatch(pool: &Pool, seat: usize) {
    let sleeper = Arc::new(Sleeper::default());
    let waker = Waker::from(Arc::clone(&sleeper));
    let mut dispatching = pin!(poll_fn(|cx| pool.seats[seat].dispatch(pool, None, cx)));
    while dispatching
        .as_mut()
        .poll(&mut Context::from_waker(&waker))
        .is_pending()
    {
        sleeper.park();
    }
}

#[test]
fn what_is_woken_from_elsewhere_runs_and_a_closed_pool_is_left() {
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
fn a_dispatcher_that_is_sent_to_another_takes_what_waits_there() {
    let handle = handle();
    model(move || {
        let pool = Pool::new(handle.clone());
        let toy = toy(&pool, 0);
        let helper = Arc::clone(&pool);
        let helper = thread::spawn(move || dispatch(&helper, 1));
        toy.begin(0);
        pool.seats[1].send_to(0, true);
        pool.close();
        helper.join().expect("no panic");
        assert_eq!(toy.ended(), (1, 0));
    });
}

#[test]
fn a_dispatcher_that_is_sent_to_one_that_is_held_takes_who_is_next_there() {
    let handle = handle();
    model(move || {
        let pool = Pool::new(handle.clone());
        let held = Dispatcher::new(Arc::clone(&pool), 0);
        let toy = toy(&pool, 0);
        toy.begin(0);
        let woken = pool.seats[0].pop();
        let far = held.push(woken.expect("it was queued"), 0);
        assert!(far.is_none());
        let helper = Arc::clone(&pool);
        let helper = thread::spawn(move || dispatch(&helper, 1));
        pool.seats[1].send_to(0, true);
        pool.close();
        helper.join().expect("no panic");
        assert_eq!(toy.ended(), (1, 0));
    });
}

#[test]
fn what_is_robbed_is_run_once() {
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
        pool.seats[1].send_to(0, false);
        dispatch(&pool, 1);
        robbed.join().expect("no panic");
        for toy in &toys {
            assert_eq!(toy.ended(), (1, 0));
        }
    });
}

/// Those who live in a pool: one.
struct One(Weak<Toy<Far>>);

impl Residents for One {
    fn abandon(&self) {
        if let Some(toy) = self.0.upgrade() {
            abandon(&*toy);
        }
    }

    fn handler_limit(&self) -> Duration {
        Duration::MAX
    }

    fn progress(&self, _: u64) -> Option<u64> {
        None
    }

    fn held(&self, _: u64, _: Duration) {}
}

#[test]
fn what_is_queued_when_the_last_dispatcher_leaves_is_ended() {
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
fn what_waits_when_the_last_dispatcher_leaves_is_ended() {
    let handle = handle();
    model(move || {
        let pool = Pool::new(handle.clone());
        let toy = toy(&pool, 0);
        let all: Arc<dyn Residents> = Arc::new(One(Arc::downgrade(&toy)));
        assert!(pool.residents.set(Arc::downgrade(&all)).is_ok());
        let last = Dispatcher::new(Arc::clone(&pool), 0);
        toy.begin(1);
        let ready = pool.seats[0].pop().expect("it was queued");
        let leaving = thread::spawn(move || drop(last));
        // It runs on another's stack, and parks.
        assert!(ready.run().is_none());
        leaving.join().expect("no panic");
        assert_eq!(toy.ended(), (0, 1));
    });
}

#[test]
fn a_thread_of_its_own_runs_what_it_is_given_and_ends() {
    /// The thread of one actor.
    struct Own(Arc<Solo>);

    impl Line for Own {
        fn push(&self, ready: Ready) {
            self.0.push(ready);
        }

        fn release(&self) {
            drop(self.0.end());
        }
    }

    model(|| {
        let solo = Arc::new(Solo::default());
        let toy = Toy::within(Own(Arc::clone(&solo)));
        let runner = thread::spawn(move || solo.run());
        toy.begin(1);
        toy.add();
        runner.join().expect("no panic");
        assert_eq!(toy.ended(), (1, 0));
    });
}

#[test]
fn the_monitor_does_not_sleep_while_a_dispatcher_works() {
    model(|| {
        let monitor = Arc::new((Sleep::new(), AtomicBool::new(false), Sleeper::default()));
        let dispatcher = Arc::clone(&monitor);
        let dispatcher = thread::spawn(move || {
            let (sleep, busy, sleeper) = &*dispatcher;
            let begin = || {
                if sleep.begin(busy) {
                    sleeper.call();
                }
            };
            begin();
            busy.store(false, Ordering::Relaxed);
            begin();
        });
        let (sleep, busy, sleeper) = &*monitor;
        // Woken for the first time, it may find that nobody works any more.
        let mut seen = false;
        while !seen {
            let look = || {
                seen = is_busy(busy);
                seen
            };
            sleep.rest(look, || sleeper.park());
        }
        dispatcher.join().expect("no panic");
    });
}
