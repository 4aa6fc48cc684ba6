use std::future::{pending, poll_fn};
use std::pin::pin;

use super::*;
use crate::schedule::{Scheduler, TaskHandle};

fn queue(seed: u64) -> (Arc<RunQueue>, Scheduler) {
    let queue = RunQueue::new(seed, Instant::now());
    (Arc::clone(&queue), Scheduler::Seeded(queue))
}

fn run_all(queue: &RunQueue) {
    while queue.run_one(Waker::noop()) {}
}

fn ended(task: &mut TaskHandle) -> Poll<Ended> {
    pin!(task).poll(&mut Context::from_waker(Waker::noop()))
}

async fn turns(count: u32) {
    for _ in 0..count {
        let mut passed = false;
        poll_fn(|cx| {
            if std::mem::replace(&mut passed, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }
}

fn order(seed: u64) -> Vec<u32> {
    let (queue, scheduler) = queue(seed);
    let order = Arc::new(Mutex::new(Vec::new()));
    for name in 0..8 {
        let order = Arc::clone(&order);
        scheduler.spawn(Path::root, async move {
            for _ in 0..4 {
                order.lock().push(name);
                turns(1).await;
            }
        });
    }
    run_all(&queue);
    let order = order.lock().clone();
    assert_eq!(order.len(), 32);
    order
}

#[test]
fn one_seed_gives_one_order_and_others_give_others() {
    let orders: Vec<_> = (0..50).map(order).collect();
    assert_eq!(orders, (0..50).map(order).collect::<Vec<_>>());
    let mut distinct = orders;
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 50);
}

#[test]
fn every_kind_of_end_is_seen_by_the_owner() {
    let (queue, scheduler) = queue(1);
    let mut finished = scheduler.spawn(Path::root, turns(3));
    let mut panicked = scheduler.spawn(Path::root, async {
        turns(1).await;
        std::panic::resume_unwind(Box::new("boom"));
    });
    let mut stuck = scheduler.spawn(Path::root, pending());
    run_all(&queue);
    assert_eq!(ended(&mut finished), Poll::Ready(Ended::Finished));
    assert_eq!(
        ended(&mut panicked),
        Poll::Ready(Ended::Panicked("boom".into()))
    );
    assert_eq!(ended(&mut stuck), Poll::Pending);
    stuck.abort();
    assert_eq!(ended(&mut stuck), Poll::Pending);
    run_all(&queue);
    assert_eq!(ended(&mut stuck), Poll::Ready(Ended::Aborted));
    assert!(queue.0.lock().live.is_empty());
}

#[test]
fn a_panic_in_a_destructor_ends_the_task_only() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("bomb"));
        }
    }
    let (queue, scheduler) = queue(1);
    let bomb = Bomb;
    let mut task = scheduler.spawn(Path::root, async move {
        let _held = bomb;
        pending::<()>().await;
    });
    let mut other = scheduler.spawn(Path::root, turns(5));
    run_all(&queue);
    task.abort();
    run_all(&queue);
    assert_eq!(ended(&mut task), Poll::Ready(Ended::Aborted));
    assert_eq!(ended(&mut other), Poll::Ready(Ended::Finished));
}

#[test]
fn a_task_is_queued_once_however_often_it_is_woken() {
    let (queue, scheduler) = queue(1);
    let task = scheduler.spawn(Path::root, async {
        poll_fn(|cx| {
            (0..10).for_each(|_| cx.waker().wake_by_ref());
            Poll::Ready(())
        })
        .await;
        pending::<()>().await;
    });
    run_all(&queue);
    assert_eq!(queue.trace().turns(), 2);
    drop(task);
}

#[test]
fn clearing_drops_what_nothing_can_wake() {
    let (queue, scheduler) = queue(1);
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    drop(scheduler.spawn(Path::root, async move {
        let _inside = inside;
        pending::<()>().await;
    }));
    run_all(&queue);
    assert_eq!(Arc::strong_count(&held), 2);
    queue.clear();
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn the_driver_is_woken_when_there_is_work_again() {
    struct Count(AtomicBool);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            assert!(!self.0.swap(true, Ordering::Relaxed));
        }
    }
    let (queue, scheduler) = queue(1);
    let count = Arc::new(Count(AtomicBool::new(false)));
    assert!(!queue.run_one(&Waker::from(Arc::clone(&count))));
    drop(scheduler.spawn(Path::root, turns(1)));
    drop(scheduler.spawn(Path::root, turns(1)));
    assert!(count.0.load(Ordering::Relaxed));
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for an interpreter")]
fn a_trace_keeps_its_first_steps_and_the_digest_of_all() {
    let (queue, scheduler) = queue(1);
    drop(scheduler.spawn(|| "/a".into(), turns(70_000)));
    run_all(&queue);
    let trace = queue.trace();
    assert_eq!((trace.turns(), trace.steps().len()), (70_001, Trace::KEPT));
    assert_eq!(trace.steps()[0].path, Path::from("/a"));
    let mut longer = trace.clone();
    longer.record(trace.steps()[0].clone());
    assert_ne!(longer, trace);
    assert_eq!(longer.steps(), trace.steps());
}
