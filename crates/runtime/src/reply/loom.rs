//! Models of the wait of an ask, in every order: the slot, the list of recent asks, the watch and
//! the deadline, composed by [`PendingReply::poll_wait`] as in every ask.
//!
//! The executor polls a future again only once its waker was called, as every executor may. A
//! model that looks again unasked would find each value, and prove nothing about wakes.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use ::loom::sync::Mutex;
use ::loom::thread;

use super::{DeadlineArming, PendingFlag, PendingReply, reply_slot};
use crate::schedule::strand::RecentAsks;
use crate::schedule::strand::loom::{Executor, model_with_list};

/// The error of an ask whose deadline has passed.
#[derive(Debug, PartialEq, Eq)]
struct TimedOut;

/// An ask that waits, as the future of an ask composes it.
struct Waiting<D> {
    answer: PendingReply<u32>,
    list: &'static RecentAsks,
    open: Option<Arc<PendingFlag>>,
    deadline: D,
}

impl<D: FnMut(&Context<'_>) -> Poll<()>> Waiting<D> {
    /// Creates an ask whose deadline is polled by `deadline`, once it was in the list.
    fn new(mut answer: PendingReply<u32>, list: &'static RecentAsks, deadline: D) -> Self {
        answer.defer_deadline();
        Self {
            answer,
            list,
            open: None,
            deadline,
        }
    }

    fn poll(&mut self, executor: &Arc<Executor>) -> Poll<Result<u32, TimedOut>> {
        let waker = Waker::from(Arc::clone(executor));
        let polled = self.answer.poll_wait(
            &mut Context::from_waker(&waker),
            |answer| {
                answer.add_to_recent(self.list);
                true
            },
            |_, answer| {
                self.open = Some(answer.pending_flag());
                Ok(())
            },
            |cx| (self.deadline)(cx).map(|()| TimedOut),
        );
        polled.map_ok(|answer| answer.expect("it is sent"))
    }

    /// Polls the ask to its end, each time that it is woken.
    fn run(&mut self, executor: &Arc<Executor>) -> Result<u32, TimedOut> {
        loop {
            executor.park();
            if let Poll::Ready(ended) = self.poll(executor) {
                assert!(
                    self.open
                        .as_ref()
                        .is_none_or(|open| ended.is_err() || !open.is_open())
                );
                return ended;
            }
        }
    }
}

/// Does what the monitor does with a list.
fn take_listed(list: &RecentAsks) {
    let mut wakers = Vec::new();
    list.take(&mut wakers);
    wakers.into_iter().for_each(Waker::wake);
}

/// A deadline that passes when the model says so.
#[derive(Default)]
struct Alarm(Mutex<(bool, Option<Waker>)>);

impl Alarm {
    fn poll(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().expect("no panic before");
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(cx.waker().clone());
        Poll::Pending
    }

    fn pass(&self) {
        let mut state = self.0.lock().expect("no panic before");
        state.0 = true;
        let waker = state.1.take();
        drop(state);
        waker.into_iter().for_each(Waker::wake);
    }
}

#[test]
fn answer_wakes_an_ask_that_becomes_watched() {
    model_with_list(|list| {
        let (reply, answer) = reply_slot::<u32>();
        let answering = thread::spawn(move || reply.send(7));
        let executor = Arc::new(Executor::default());
        let mut asking = Waiting::new(answer, list, |_| Poll::Pending);
        // The first poll watches the answer.
        asking.answer.arming = DeadlineArming::Armed;
        let ended = match asking.poll(&executor) {
            Poll::Ready(ended) => ended,
            Poll::Pending => asking.run(&executor),
        };
        assert_eq!(ended, Ok(7));
        answering.join().expect("no panic");
    });
}

#[test]
fn answer_wakes_an_ask_being_unlisted() {
    model_with_list(|list| {
        let (reply, answer) = reply_slot::<u32>();
        let executor = Arc::new(Executor::default());
        let mut asking = Waiting::new(answer, list, |_| Poll::Pending);
        assert!(asking.poll(&executor).is_pending());
        let answering = thread::spawn(move || reply.send(7));
        let monitor = thread::spawn(move || take_listed(list));
        assert_eq!(asking.run(&executor), Ok(7));
        answering.join().expect("no panic");
        monitor.join().expect("no panic");
    });
}

#[test]
fn ask_polled_while_unlisted_keeps_its_deadline() {
    model_with_list(|list| {
        let (reply, answer) = reply_slot::<u32>();
        let executor = Arc::new(Executor::default());
        // It passes in the moment in which it is set.
        let mut asking = Waiting::new(answer, list, |_| Poll::Ready(()));
        assert!(asking.poll(&executor).is_pending());
        let monitor = thread::spawn(move || take_listed(list));
        // Something else for which the same task waits.
        Arc::clone(&executor).wake();
        assert_eq!(asking.run(&executor), Err(TimedOut));
        monitor.join().expect("no panic");
        drop(reply);
    });
}

#[test]
fn ask_moved_while_unlisted_keeps_its_deadline() {
    model_with_list(|list| {
        let (reply, answer) = reply_slot::<u32>();
        let mut asking = Waiting::new(answer, list, |_| Poll::Ready(()));
        assert!(asking.poll(&Arc::default()).is_pending());
        let monitor = thread::spawn(move || take_listed(list));
        let executor = Arc::new(Executor::default());
        let ended = match asking.poll(&executor) {
            Poll::Ready(ended) => ended,
            Poll::Pending => asking.run(&executor),
        };
        assert_eq!(ended, Err(TimedOut));
        monitor.join().expect("no panic");
        drop(reply);
    });
}

#[test]
fn ask_ends_with_its_answer_or_its_deadline() {
    model_with_list(|list| {
        let (reply, answer) = reply_slot::<u32>();
        let executor = Arc::new(Executor::default());
        let alarm = Arc::new(Alarm::default());
        let mut asking = Waiting::new(answer, list, |cx| alarm.poll(cx));
        assert!(asking.poll(&executor).is_pending());
        let monitor = Arc::clone(&alarm);
        let monitor = thread::spawn(move || {
            take_listed(list);
            monitor.pass();
        });
        let answering = thread::spawn(move || reply.send(7));
        let ended = asking.run(&executor);
        assert!(ended == Ok(7) || (ended == Err(TimedOut) && asking.open.is_some()));
        monitor.join().expect("no panic");
        answering.join().expect("no panic");
    });
}
