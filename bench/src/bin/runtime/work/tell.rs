//! Numbers told to one actor.

use std::time::Instant;

use strowger_bench::Sample;
use tokio::sync::oneshot;

use crate::counter::Wiring;
use crate::subject::{Capacity, Placement, Subject};

/// Tellers send numbers to one actor, until it has handled the last one.
pub async fn tell<S: Subject>(
    subject: S,
    capacity: Capacity,
    tellers: u64,
    operations: u64,
) -> Sample {
    let each = operations.div_ceil(tellers);
    let done = each * tellers;
    let running = subject.spawn(capacity).await;
    let (report, reported) = oneshot::channel();
    let wiring = Wiring {
        peers: Vec::new(),
        expected: done,
        report: Some(report),
        ..Wiring::default()
    };
    S::wire(&running.actor, wiring).await;
    assert_eq!(S::ask(&running.actor, 0).await, 0, "the counter is wired");
    let start = Instant::now();
    let tasks: Vec<_> = (0..tellers)
        .map(|teller| {
            let actor = running.actor.clone();
            subject.task(Placement::Any(teller as usize), async move {
                for value in 0..each {
                    S::tell(&actor, value).await;
                }
            })
        })
        .collect();
    let sum = reported.await.expect("the counter reports");
    let time = start.elapsed();
    let expected = tellers * (each * (each - 1) / 2);
    assert_eq!(sum, expected, "every number arrived once");
    for task in tasks {
        task.await.expect("a teller ends");
    }
    subject.stop(running).await;
    Sample {
        time,
        done,
        checked: done,
    }
}
