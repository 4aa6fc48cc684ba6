//! Routing: from a topic to its subscribers, and from an ask to its answer.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group};
use strowger_benches::{Bench, Latch, Spawner, ask, criterion, stop};

/// Publications on an existing topic; `window` of them are in flight at a time.
async fn publish(spawner: Spawner, subscribers: usize, window: u64, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let actors = spawner.counters(subscribers, &latch).await;
    let topic = spawner.topic(&actors);
    let mut left = iterations;
    let start = Instant::now();
    while left > 0 {
        let now = left.min(window);
        latch.expect(now * subscribers as u64);
        for _ in 0..now {
            topic.publish(1);
        }
        latch.opened().await;
        left -= now;
    }
    let time = start.elapsed();
    for actor in &actors {
        assert_eq!(ask(actor, 0).await, iterations, "each got every one once");
    }
    stop(actors).await;
    time
}

/// An ask and its answer, one at a time.
async fn questions(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let actors = spawner.counters(1, &latch).await;
    let start = Instant::now();
    for number in 1..=iterations {
        assert_eq!(ask(&actors[0], 1).await, number, "its own answer");
    }
    let time = start.elapsed();
    stop(actors).await;
    time
}

fn messaging(c: &mut Criterion) {
    let bench = Bench::start();
    let spawner = || bench.spawner();
    c.bench_function("message_routing_overhead", |b| {
        b.iter_custom(|n| bench.run(publish(spawner(), 1, 1, n)));
    });
    c.bench_function("message_correlation_tracking_overhead", |b| {
        b.iter_custom(|n| bench.run(questions(spawner(), n)));
    });
    let mut group = c.benchmark_group("message_pubsub_fanout");
    for subscribers in [10, 100] {
        group.throughput(Throughput::Elements(subscribers as u64));
        group.bench_function(subscribers.to_string(), |b| {
            b.iter_custom(|n| bench.run(publish(spawner(), subscribers, 1, n)));
        });
    }
    group.finish();
    let mut group = c.benchmark_group("message_sustained_throughput");
    group.throughput(Throughput::Elements(1));
    group.bench_function("1000_at_a_time", |b| {
        b.iter_custom(|n| bench.run(publish(spawner(), 1, 1000, n)));
    });
    group.finish();
    c.bench_function("message_routing_overhead_as_documented", |b| {
        // A publication on a topic without subscribers.
        let topic = spawner().topic(&[]);
        b.iter(|| topic.publish(black_box(1)));
    });
    c.bench_function("message_correlation_tracking_overhead_as_documented", |b| {
        // A number is inserted and removed again: nothing is sent.
        let mut waiting = HashMap::new();
        b.iter(|| {
            waiting.insert(black_box(7_u64), 1_u64);
            waiting.remove(&7)
        });
    });
}

criterion_group! { name = group; config = criterion!(); targets = messaging }
