//! Messages that actors pass on to other actors.

use std::time::Instant;

use strowger_bench::Sample;
use tokio::sync::oneshot;

use crate::counter::{Token, Wiring};
use crate::subject::{Capacity, Subject};

/// Actors pass a token around a ring.
pub async fn ring<S: Subject>(
    subject: S,
    capacity: Capacity,
    size: usize,
    operations: u64,
) -> Sample {
    let mut actors = Vec::with_capacity(size);
    for _ in 0..size {
        actors.push(subject.spawn(capacity).await);
    }
    // The token stops when its hops run out; with whole rounds that is at the last actor.
    let hops = operations.next_multiple_of(size as u64);
    let (report, reported) = oneshot::channel();
    let mut report = Some(report);
    for (at, running) in actors.iter().enumerate() {
        let last = at + 1 == size;
        let wiring = Wiring {
            peers: vec![actors[(at + 1) % size].actor.clone()],
            expected: u64::MAX,
            report: report.take_if(|_| last),
            ..Wiring::default()
        };
        S::wire(&running.actor, wiring).await;
    }
    for running in &actors {
        S::ask(&running.actor, 0).await;
    }
    let token = Token {
        left: hops,
        hops: 0,
    };
    let start = Instant::now();
    S::pass(&actors[0].actor, token).await;
    let counted = reported.await.expect("the last hop reports");
    let time = start.elapsed();
    assert_eq!(counted, hops, "every hop was made once");
    // Addresses in a cycle keep each other alive, so the cycle is broken here.
    for running in &actors {
        S::wire(&running.actor, Wiring::default()).await;
    }
    for running in actors {
        subject.stop(running).await;
    }
    Sample {
        time,
        done: hops,
        checked: hops,
    }
}

/// One actor passes every number on to many; an operation is one delivery.
pub async fn fan_out<S: Subject>(
    subject: S,
    capacity: Capacity,
    size: usize,
    operations: u64,
) -> Sample {
    let rounds = operations.div_ceil(size as u64);
    let hub = subject.spawn(capacity).await;
    let mut leaves = Vec::with_capacity(size);
    let mut reports = Vec::with_capacity(size);
    for _ in 0..size {
        let running = subject.spawn(capacity).await;
        let (report, reported) = oneshot::channel();
        let wiring = Wiring {
            peers: Vec::new(),
            expected: rounds,
            report: Some(report),
            ..Wiring::default()
        };
        S::wire(&running.actor, wiring).await;
        assert_eq!(S::ask(&running.actor, 0).await, 0, "the leaf is wired");
        leaves.push(running);
        reports.push(reported);
    }
    let wiring = Wiring {
        peers: leaves.iter().map(|leaf| leaf.actor.clone()).collect(),
        expected: u64::MAX,
        report: None,
        ..Wiring::default()
    };
    S::wire(&hub.actor, wiring).await;
    assert_eq!(S::ask(&hub.actor, 0).await, 0, "the hub is wired");
    let start = Instant::now();
    for value in 0..rounds {
        S::fan(&hub.actor, value).await;
    }
    let mut sum = 0;
    for reported in reports {
        sum += reported.await.expect("every leaf reports");
    }
    let time = start.elapsed();
    let expected = size as u64 * (rounds * (rounds - 1) / 2);
    assert_eq!(sum, expected, "every number arrived once at every leaf");
    S::wire(&hub.actor, Wiring::default()).await;
    subject.stop(hub).await;
    for leaf in leaves {
        subject.stop(leaf).await;
    }
    let done = rounds * size as u64;
    Sample {
        time,
        done,
        checked: done,
    }
}
