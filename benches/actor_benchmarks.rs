//! Actors: the cost of starting one, and the rate at which one handles messages.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, SamplingMode, criterion_group};
use strowger_benches::{Bench, Latch, Msg, Spawner, Stopwatch, ask, criterion, stop, tell};

/// Actors are started and have answered; stopping them is not timed.
async fn spawn(spawner: Spawner, size: usize, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let mut watch = Stopwatch::default();
    for _ in 0..iterations {
        let actors = watch.time(async {
            let actors: Vec<_> = (0..size).map(|_| spawner.counter(&latch)).collect();
            for actor in &actors {
                assert_eq!(ask(actor, 7).await, 7, "a new counter is empty");
            }
            actors
        });
        stop(actors.await).await;
    }
    watch.total()
}

async fn spawn_and_stop(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let start = Instant::now();
    for _ in 0..iterations {
        let actor = spawner.counter(&latch);
        stop(vec![actor]).await;
    }
    start.elapsed()
}

/// A hundred messages to a running actor, until it has handled the last one.
async fn throughput(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let actors = spawner.counters(1, &latch).await;
    let start = Instant::now();
    for _ in 0..iterations {
        latch.expect(100);
        for value in 0..100 {
            tell(&actors[0], Msg::Add(value)).await;
        }
        latch.opened().await;
    }
    let time = start.elapsed();
    let sum = ask(&actors[0], 0).await;
    assert_eq!(sum, iterations * 4950, "every number arrived once");
    stop(actors).await;
    time
}

/// The struct, the address and the table of subscribers that the original benchmark built and
/// dropped: no task, no mailbox.
fn build_as_documented() -> (u64, Arc<str>, HashMap<String, Vec<u64>>) {
    (black_box(0), Arc::from("counter"), HashMap::new())
}

fn actors(c: &mut Criterion) {
    let bench = Bench::start();
    let spawner = || bench.spawner();
    c.bench_function("actor_spawn_single", |b| {
        b.iter_custom(|n| bench.run(spawn(spawner(), 1, n)));
    });
    c.bench_function("actor_spawn_and_stop", |b| {
        b.iter_custom(|n| bench.run(spawn_and_stop(spawner(), n)));
    });
    c.bench_function("actor_spawn_batch_small", |b| {
        b.iter_custom(|n| bench.run(spawn(spawner(), 10, n)));
    });
    c.bench_function("actor_message_throughput", |b| {
        b.iter_custom(|n| bench.run(throughput(spawner(), n)));
    });
    let mut group = c.benchmark_group("actor_spawn_batch");
    group.sampling_mode(SamplingMode::Flat).sample_size(10);
    for size in [10_000, 100_000] {
        group.bench_function(size.to_string(), |b| {
            b.iter_custom(|n| bench.run(spawn(spawner(), size, n)));
        });
    }
    group.finish();
    c.bench_function("actor_spawn_single_as_documented", |b| {
        b.iter(build_as_documented);
    });
    c.bench_function("actor_spawn_batch_small_as_documented", |b| {
        b.iter(|| (0..10).map(|_| build_as_documented()).collect::<Vec<_>>());
    });
    c.bench_function("actor_message_throughput_as_documented", |b| {
        // A handler called in a loop: no queue, and no other task.
        b.iter(|| (0..100_u64).fold(0, |sum, value| black_box(sum + value)));
    });
}

criterion_group! { name = group; config = criterion!(); targets = actors }
