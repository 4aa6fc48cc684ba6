//! Starting and stopping actors, and the memory of an idle actor.

use std::time::{Duration, Instant};

use strowger_bench::{Counted, LiveBytes, Sample};

use crate::counter::Failure;
use crate::subject::{Capacity, Subject};

/// Actors are spawned and asked once each; stopping them is not timed.
pub async fn spawn_until_answered<S: Subject>(
    subject: S,
    capacity: Capacity,
    operations: u64,
) -> Sample {
    const BATCH: u64 = 500;
    let mut time = Duration::ZERO;
    let mut done = 0;
    while done < operations {
        let count = BATCH.min(operations - done);
        let mut actors = Vec::with_capacity(BATCH as usize);
        let start = Instant::now();
        for number in 1..=count {
            let running = subject.spawn(capacity).await;
            let answer = S::ask(&running.actor, number).await;
            assert_eq!(answer, number, "a new actor answers");
            actors.push(running);
        }
        time += start.elapsed();
        for running in actors {
            subject.stop(running).await;
        }
        done += count;
    }
    Sample {
        time,
        done,
        checked: done,
    }
}

/// Batches of ten thousand actors are spawned, then stopped and awaited one by one.
pub async fn spawn_and_stop<S: Subject>(subject: S, capacity: Capacity, operations: u64) -> Sample {
    const BATCH: usize = 10_000;
    let batches = operations.div_ceil(BATCH as u64);
    let mut ended = 0;
    let mut actors = Vec::with_capacity(BATCH);
    let start = Instant::now();
    for _ in 0..batches {
        for _ in 0..BATCH {
            actors.push(subject.spawn(capacity).await);
        }
        for running in actors.drain(..) {
            subject.stop(running).await;
            ended += 1;
        }
    }
    let time = start.elapsed();
    Sample {
        time,
        done: batches * BATCH as u64,
        checked: ended,
    }
}

/// An actor fails, and its next incarnation answers, with fresh state.
pub async fn restart<S: Subject>(
    subject: S,
    capacity: Capacity,
    failure: Failure,
    operations: u64,
) -> Sample {
    let mut supervised = subject.supervise(capacity).await;
    let mut actor = supervised.actor;
    assert_eq!(S::ask(&actor, 7).await, 7, "a new counter is empty");
    let start = Instant::now();
    for value in 1..=operations {
        S::fail(&actor, failure).await;
        if let Some(successors) = &mut supervised.successors {
            actor = successors.recv().await.expect("there is a successor");
        }
        let answer = S::ask(&actor, value).await;
        assert_eq!(answer, value, "the successor begins anew");
    }
    let time = start.elapsed();
    drop(actor);
    supervised.end.await;
    Sample {
        time,
        done: operations,
        checked: operations,
    }
}

/// Heap bytes per actor, for actors that answered once and are now idle.
pub async fn heap_per_idle_actor<S: Subject>(subject: S, capacity: Capacity) -> Counted {
    const ACTORS: usize = 10_000;
    let mut actors = Vec::with_capacity(ACTORS);
    let bytes = LiveBytes::watch();
    for number in 0..ACTORS as u64 {
        let running = subject.spawn(capacity).await;
        let answer = S::ask(&running.actor, number).await;
        assert_eq!(answer, number, "a new actor answers");
        actors.push(running);
    }
    // Asks again: by the second answer, memory of the first one that another thread frees is free.
    for running in &actors {
        S::ask(&running.actor, 0).await;
    }
    let each = bytes.now() as f64 / ACTORS as f64;
    drop(bytes);
    for running in actors {
        subject.stop(running).await;
    }
    Ok((each, ACTORS as u64))
}
