//! One ask at a time: of an idle actor, of a busy one, and of one on another worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use strowger_bench::Sample;

use crate::counter::Wiring;
use crate::subject::{Capacity, Placement, Subject, ask_repeatedly};

/// One task asks one actor that has nothing else to do.
pub async fn ask<S: Subject>(subject: S, capacity: Capacity, operations: u64) -> Sample {
    let running = subject.spawn(capacity).await;
    assert_eq!(S::ask(&running.actor, 0).await, 0, "a new counter is empty");
    let time = time_asks::<S>(&running.actor, operations).await;
    subject.stop(running).await;
    Sample {
        time,
        done: operations,
        checked: operations,
    }
}

/// The actor runs on another worker, which shares no queue with the worker of the asking task.
pub async fn ask_there<S: Subject>(subject: S, capacity: Capacity, operations: u64) -> Sample {
    let there = subject.clone();
    let spawned = subject.task(Placement::There, async move {
        let running = there.spawn(capacity).await;
        assert_eq!(S::ask(&running.actor, 0).await, 0, "a new counter is empty");
        running
    });
    let running = spawned.await.expect("the counter starts");
    let time = time_asks::<S>(&running.actor, operations).await;
    let there = subject.clone();
    let stopped = subject.task(Placement::There, async move { there.stop(running).await });
    stopped.await.expect("the counter stops");
    Sample {
        time,
        done: operations,
        checked: operations,
    }
}

async fn time_asks<S: Subject>(actor: &S::Ref, operations: u64) -> Duration {
    let start = Instant::now();
    ask_repeatedly::<S>(actor, operations).await;
    start.elapsed()
}

/// An actor asks another, one ask at a time, while it handles a single message; in the hand-written
/// subject, a task asks a task.
pub async fn ask_from_actor<S: Subject>(subject: S, capacity: Capacity, operations: u64) -> Sample {
    let asked = subject.spawn(capacity).await;
    let asking = subject.spawn(capacity).await;
    let wiring = Wiring {
        peers: vec![asked.actor.clone()],
        ..Wiring::default()
    };
    S::wire(&asking.actor, wiring).await;
    assert_eq!(
        S::query(&asking.actor, 0).await,
        0,
        "the asking actor is wired"
    );
    let start = Instant::now();
    let sum = S::query(&asking.actor, operations).await;
    let time = start.elapsed();
    assert_eq!(sum, operations * (operations - 1) / 2, "all were answered");
    S::wire(&asking.actor, Wiring::default()).await;
    subject.stop(asking).await;
    subject.stop(asked).await;
    Sample {
        time,
        done: operations,
        checked: operations,
    }
}

/// Another task tells the same actor all the time: sixteen numbers, then sixteen more once those
/// are handled.
pub async fn ask_busy<S: Subject>(subject: S, capacity: Capacity, operations: u64) -> Sample {
    const BURST: u64 = 16;
    let running = subject.spawn(capacity).await;
    assert_eq!(S::ask(&running.actor, 0).await, 0, "a new counter is empty");
    let enough = Arc::new(AtomicBool::new(false));
    let (actor, stop) = (running.actor.clone(), Arc::clone(&enough));
    let told = subject.task(Placement::Any(1), async move {
        let mut told = 0;
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..BURST {
                S::tell(&actor, 1).await;
            }
            told += BURST;
            S::ask(&actor, 0).await;
        }
        told
    });
    let mut last = 0;
    let start = Instant::now();
    for _ in 0..operations {
        let answer = S::ask(&running.actor, 1).await;
        assert!(answer > last, "every question is counted");
        last = answer;
    }
    let time = start.elapsed();
    enough.store(true, Ordering::Relaxed);
    let told = told.await.expect("the teller ends");
    let sum = S::ask(&running.actor, 0).await;
    assert_eq!(sum, operations + told, "every number arrived once");
    subject.stop(running).await;
    Sample {
        time,
        done: operations,
        checked: operations + told,
    }
}
