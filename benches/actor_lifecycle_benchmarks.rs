//! The whole lifecycle of an actor, and access to its state.

use std::hint::black_box;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group};
use strowger_benches::{Bench, Latch, Msg, Spawner, ask, criterion, stop, tell};

/// Start, first message, first answer, orderly stop.
async fn complete(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let start = Instant::now();
    for _ in 0..iterations {
        let actor = spawner.counter(&latch);
        tell(&actor, Msg::Add(3)).await;
        assert_eq!(ask(&actor, 4).await, 7, "it counted both");
        stop(vec![actor]).await;
    }
    start.elapsed()
}

/// Reads the state of a running actor by asking it.
async fn read(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let actors = spawner.counters(1, &latch).await;
    ask(&actors[0], 7).await;
    let start = Instant::now();
    for _ in 0..iterations {
        assert_eq!(ask(&actors[0], 0).await, 7, "nobody wrote");
    }
    let time = start.elapsed();
    stop(actors).await;
    time
}

/// Writes the state of a running actor by telling it, until the last write is done.
async fn write(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let actors = spawner.counters(1, &latch).await;
    latch.expect(iterations);
    let start = Instant::now();
    for _ in 0..iterations {
        tell(&actors[0], Msg::Add(1)).await;
    }
    latch.opened().await;
    let time = start.elapsed();
    assert_eq!(ask(&actors[0], 0).await, iterations, "each was made once");
    stop(actors).await;
    time
}

fn lifecycle(c: &mut Criterion) {
    let bench = Bench::start();
    let spawner = || bench.spawner();
    c.bench_function("actor_lifecycle_complete", |b| {
        b.iter_custom(|n| bench.run(complete(spawner(), n)));
    });
    c.bench_function("actor_state_read_access", |b| {
        b.iter_custom(|n| bench.run(read(spawner(), n)));
    });
    c.bench_function("actor_state_write_access", |b| {
        b.iter_custom(|n| bench.run(write(spawner(), n)));
    });
    // An uncontended lock instead of an actor.
    let state = RwLock::new(7_u64);
    c.bench_function("actor_state_read_access_as_documented", |b| {
        b.iter(|| state.read().map(|value| black_box(*value)).ok());
    });
    c.bench_function("actor_state_write_access_as_documented", |b| {
        b.iter(|| state.write().map(|mut value| *value = black_box(8)).ok());
    });
}

criterion_group! { name = group; config = criterion!(); targets = lifecycle }
