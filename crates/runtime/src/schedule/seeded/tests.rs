use std::future::{pending, poll_fn};
use std::pin::pin;

use super::*;
use crate::schedule::{Scheduler, TaskHandle};

fn queue(seed: u64) -> (Arc<SeededScheduler>, Scheduler) {
    let queue = SeededScheduler::new(seed, Instant::now());
    (Arc::clone(&queue), Scheduler::Seeded(queue))
}

fn run_all(queue: &SeededScheduler) {
    while queue.run_one(Waker::noop()) {}
}

fn ended(task: &mut TaskHandle) -> Poll<TaskEnd> {
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
        scheduler.spawn(ActorPath::root, async move {
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
fn seed_determines_the_order() {
    let orders: Vec<_> = (0..50).map(order).collect();
    assert_eq!(orders, (0..50).map(order).collect::<Vec<_>>());
    let mut distinct = orders;
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), 50);
}

#[test]
fn owner_sees_every_kind_of_task_end() {
    let (queue, scheduler) = queue(1);
    let mut finished = scheduler.spawn(ActorPath::root, turns(3));
    let mut panicked = scheduler.spawn(ActorPath::root, async {
        turns(1).await;
        std::panic::resume_unwind(Box::new("boom"));
    });
    let mut stuck = scheduler.spawn(ActorPath::root, pending());
    run_all(&queue);
    assert_eq!(ended(&mut finished), Poll::Ready(TaskEnd::Finished));
    assert_eq!(
        ended(&mut panicked),
        Poll::Ready(TaskEnd::Panicked("boom".into()))
    );
    assert_eq!(ended(&mut stuck), Poll::Pending);
    stuck.abort();
    assert_eq!(ended(&mut stuck), Poll::Pending);
    run_all(&queue);
    assert_eq!(ended(&mut stuck), Poll::Ready(TaskEnd::Aborted));
    assert!(queue.0.lock().live.is_empty());
}

#[test]
fn destructor_panic_ends_only_its_task() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("bomb"));
        }
    }
    let (queue, scheduler) = queue(1);
    let bomb = Bomb;
    let mut task = scheduler.spawn(ActorPath::root, async move {
        let _held = bomb;
        pending::<()>().await;
    });
    let mut other = scheduler.spawn(ActorPath::root, turns(5));
    run_all(&queue);
    task.abort();
    run_all(&queue);
    assert_eq!(ended(&mut task), Poll::Ready(TaskEnd::Aborted));
    assert_eq!(ended(&mut other), Poll::Ready(TaskEnd::Finished));
}

#[test]
fn repeated_wakes_queue_a_task_once() {
    let (queue, scheduler) = queue(1);
    let task = scheduler.spawn(ActorPath::root, async {
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
fn clear_drops_unwakeable_tasks() {
    let (queue, scheduler) = queue(1);
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    drop(scheduler.spawn(ActorPath::root, async move {
        let _inside = inside;
        pending::<()>().await;
    }));
    run_all(&queue);
    assert_eq!(Arc::strong_count(&held), 2);
    queue.clear();
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn new_work_wakes_the_driver() {
    struct Count(AtomicBool);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            assert!(!self.0.swap(true, Ordering::Relaxed));
        }
    }
    let (queue, scheduler) = queue(1);
    let count = Arc::new(Count(AtomicBool::new(false)));
    assert!(!queue.run_one(&Waker::from(Arc::clone(&count))));
    drop(scheduler.spawn(ActorPath::root, turns(1)));
    drop(scheduler.spawn(ActorPath::root, turns(1)));
    assert!(count.0.load(Ordering::Relaxed));
}

#[test]
#[cfg_attr(miri, ignore = "too many steps for an interpreter")]
fn trace_keeps_first_steps_and_a_digest_of_all() {
    let (queue, scheduler) = queue(1);
    drop(scheduler.spawn(|| "/a".into(), turns(70_000)));
    run_all(&queue);
    let trace = queue.trace();
    assert_eq!(
        (trace.turns(), trace.steps().len()),
        (70_001, ScheduleTrace::MAX_STEPS)
    );
    assert_eq!(trace.steps()[0].path, ActorPath::from("/a"));
    let mut longer = trace.clone();
    longer.record(trace.steps()[0].clone());
    assert_ne!(longer, trace);
    assert_eq!(longer.steps(), trace.steps());
}
