//! Messages: from actor to actor, through topics, and in mailboxes.

use std::collections::{HashMap, VecDeque};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group};
use strowger::SendError;
use strowger_benches::{Bench, Latch, Msg, Spawner, ask, criterion, stop, tell};
use tokio::sync::Notify;

/// A ball goes back and forth between two actors.
async fn send_receive(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let actors = spawner.counters(2, &latch).await;
    latch.expect(1);
    let start = Instant::now();
    tell(&actors[0], Msg::Ball(2 * iterations, actors[1].clone())).await;
    latch.opened().await;
    let time = start.elapsed();
    let flights = ask(&actors[0], 0).await + ask(&actors[1], 0).await;
    assert_eq!(flights, 2 * iterations, "every flight was made once");
    stop(actors).await;
    time
}

/// Publications on an existing topic, until the last subscriber has handled the last one.
async fn publish(
    spawner: Spawner,
    subscribers: usize,
    publications: u64,
    iterations: u64,
) -> Duration {
    let latch = Arc::new(Latch::default());
    let actors = spawner.counters(subscribers, &latch).await;
    let topic = spawner.topic(&actors);
    let start = Instant::now();
    for _ in 0..iterations {
        latch.expect(publications * subscribers as u64);
        for _ in 0..publications {
            topic.publish(1);
        }
        latch.opened().await;
    }
    let time = start.elapsed();
    for actor in &actors {
        let sum = ask(actor, 0).await;
        assert_eq!(sum, publications * iterations, "each got every one once");
    }
    stop(actors).await;
    time
}

/// A hundred numbers go into a mailbox and out again.
async fn mailbox(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let actors = spawner.counters(1, &latch).await;
    let mut time = Duration::ZERO;
    for _ in 0..iterations {
        // The actor is held until all hundred wait, so this measures the queue and not the
        // hand-over.
        let gate = Arc::new(Notify::new());
        tell(&actors[0], Msg::Gate(Arc::clone(&gate))).await;
        latch.expect(100);
        let start = Instant::now();
        for value in 0..100 {
            tell(&actors[0], Msg::Add(value)).await;
        }
        gate.notify_one();
        latch.opened().await;
        time += start.elapsed();
    }
    assert_eq!(ask(&actors[0], 0).await, iterations * 4950, "all arrived");
    stop(actors).await;
    time
}

/// A send to a full mailbox fails and returns the message.
async fn full(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let actors = spawner.counters(1, &latch).await;
    let gate = Arc::new(Notify::new());
    tell(&actors[0], Msg::Gate(Arc::clone(&gate))).await;
    while actors[0].try_tell(Msg::Add(0)).is_ok() {
        // The actor takes the gate out first, which leaves room for one more message.
        tokio::task::yield_now().await;
    }
    latch.expect(u64::MAX);
    let mut refused = 0;
    let start = Instant::now();
    for value in 0..iterations {
        if let Err(SendError::Full(Msg::Add(back))) = actors[0].try_tell(Msg::Add(value)) {
            refused += u64::from(back == value);
        }
    }
    let time = start.elapsed();
    assert_eq!(refused, iterations, "each was refused and came back");
    gate.notify_one();
    stop(actors).await;
    time
}

/// A new table of subscribers, publications into their queues, and the queues drained, all on one
/// task: the code that the original benchmark timed.
fn broker_as_documented(subscribers: usize, publications: u64) -> u64 {
    let mut broker: HashMap<&str, Vec<VecDeque<u64>>> = HashMap::new();
    broker.insert("topic", vec![VecDeque::new(); subscribers]);
    for value in 0..publications {
        for queue in broker.get_mut("topic").into_iter().flatten() {
            queue.push_back(black_box(value));
        }
    }
    let queues = broker.into_values().flatten();
    queues.map(|queue| queue.into_iter().sum::<u64>()).sum()
}

fn messages(c: &mut Criterion) {
    let bench = Bench::start();
    let spawner = || bench.spawner();
    c.bench_function("message_send_receive", |b| {
        b.iter_custom(|n| bench.run(send_receive(spawner(), n)));
    });
    c.bench_function("message_throughput", |b| {
        b.iter_custom(|n| bench.run(publish(spawner(), 1, 100, n)));
    });
    c.bench_function("message_broadcast_small", |b| {
        b.iter_custom(|n| bench.run(publish(spawner(), 10, 1, n)));
    });
    let mut group = c.benchmark_group("message_broadcast");
    for subscribers in [100, 1000] {
        group.bench_function(BenchmarkId::from_parameter(subscribers), |b| {
            b.iter_custom(|n| bench.run(publish(spawner(), subscribers, 1, n)));
        });
    }
    group.finish();
    c.bench_function("message_mailbox_operations", |b| {
        b.iter_custom(|n| bench.run(mailbox(spawner(), n)));
    });
    c.bench_function("message_mailbox_full", |b| {
        b.iter_custom(|n| bench.run(full(spawner(), n)));
    });
    for (id, subscribers, publications) in [
        ("message_send_receive_as_documented", 1, 1),
        ("message_throughput_as_documented", 1, 100),
        ("message_broadcast_small_as_documented", 10, 1),
    ] {
        c.bench_function(id, |b| {
            b.iter(|| broker_as_documented(subscribers, publications));
        });
    }
    c.bench_function("message_mailbox_operations_as_documented", |b| {
        // A hundred sends into a new queue that has no receiver.
        b.iter(|| (0..100_u64).map(black_box).collect::<VecDeque<_>>());
    });
}

criterion_group! { name = group; config = criterion!(); targets = messages }
