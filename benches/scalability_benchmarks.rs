//! Cost at larger numbers: names in the registry, and actors with work.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use strowger::ActorRef;
use strowger_benches::{Bench, Latch, Msg, Spawner, ask, criterion, stop, tell};

/// Registers one actor under this number of names.
async fn registered(spawner: Spawner, names: usize) -> ActorRef<Msg> {
    let latch = Arc::new(Latch::default());
    let actor = spawner.counter(&latch);
    ask(&actor, 0).await;
    for name in 0..names {
        let taken = spawner.system.register(name.to_string(), &actor);
        taken.expect("the name is unused");
    }
    actor
}

/// Looks names up in an order that defeats the processor's caches.
async fn lookup(spawner: Spawner, names: usize, iterations: u64) -> Duration {
    let actor = registered(spawner.clone(), names).await;
    let keys: Vec<String> = (0..names).map(|name| name.to_string()).collect();
    let mut at = 0;
    let mut found = 0;
    let start = Instant::now();
    for _ in 0..iterations {
        at = (at + 7919) % names;
        found += u64::from(spawner.system.whereis::<Msg>(&keys[at]).is_some());
    }
    let time = start.elapsed();
    assert_eq!(found, iterations, "every name leads to the actor");
    stop(vec![actor]).await;
    time
}

/// Two tasks look names up while a third registers and unregisters names.
async fn concurrent_lookup(spawner: Spawner, iterations: u64) -> Duration {
    let actor = registered(spawner.clone(), 1000).await;
    let system = spawner.system.clone();
    let writer = {
        let (system, actor) = (system.clone(), actor.clone());
        tokio::spawn(async move {
            for number in 0..iterations / 4 {
                let name = format!("short-lived {number}");
                let taken = system.register(name.as_str(), &actor);
                taken.expect("the name is unused");
                assert!(system.unregister(&name), "it was taken");
                tokio::task::consume_budget().await;
            }
        })
    };
    let start = Instant::now();
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let system = system.clone();
            tokio::spawn(async move {
                for at in 0..iterations / 2 {
                    let name = (at % 1000).to_string();
                    assert!(system.whereis::<Msg>(&name).is_some(), "it is there");
                    tokio::task::consume_budget().await;
                }
            })
        })
        .collect();
    for reader in readers {
        reader.await.expect("every name was found");
    }
    let time = start.elapsed();
    writer.await.expect("every name was free");
    stop(vec![actor]).await;
    time
}

/// Registers and unregisters a name in a registry of a thousand.
async fn registration(spawner: Spawner, iterations: u64) -> Duration {
    let actor = registered(spawner.clone(), 1000).await;
    let start = Instant::now();
    for _ in 0..iterations {
        let taken = spawner.system.register("one more", &actor);
        taken.expect("the name is unused");
        assert!(spawner.system.unregister("one more"), "it was taken");
    }
    let time = start.elapsed();
    stop(vec![actor]).await;
    time
}

/// Ten thousand messages, spread over `size` actors, until all are handled.
async fn spread(spawner: Spawner, size: usize, iterations: u64) -> Duration {
    const MESSAGES: usize = 10_000;
    let latch = Arc::new(Latch::default());
    let actors = spawner.counters(size, &latch).await;
    let start = Instant::now();
    for _ in 0..iterations {
        latch.expect(MESSAGES as u64);
        for message in 0..MESSAGES {
            tell(&actors[message % size], Msg::Add(1)).await;
        }
        latch.opened().await;
    }
    let time = start.elapsed();
    let mut sum = 0;
    for actor in &actors {
        sum += ask(actor, 0).await;
    }
    assert_eq!(
        sum,
        iterations * MESSAGES as u64,
        "every number arrived once"
    );
    stop(actors).await;
    time
}

fn scalability(c: &mut Criterion) {
    let bench = Bench::start();
    let spawner = || bench.spawner();
    let mut group = c.benchmark_group("registry_lookup_scale");
    for names in [10, 100, 1000, 100_000] {
        group.bench_function(BenchmarkId::from_parameter(names), |b| {
            b.iter_custom(|n| bench.run(lookup(spawner(), names, n)));
        });
    }
    group.finish();
    c.bench_function("registry_concurrent_lookup", |b| {
        b.iter_custom(|n| bench.run(concurrent_lookup(spawner(), n.next_multiple_of(4))));
    });
    c.bench_function("registry_registration_scale", |b| {
        b.iter_custom(|n| bench.run(registration(spawner(), n)));
    });
    let mut group = c.benchmark_group("actor_scale_10000_messages");
    group.throughput(Throughput::Elements(10_000));
    for size in [1, 10, 100, 1000, 10_000] {
        group.bench_function(BenchmarkId::from_parameter(size), |b| {
            b.iter_custom(|n| bench.run(spread(spawner(), size, n)));
        });
    }
    group.finish();
    c.bench_function("registry_lookup_scale_as_documented", |b| {
        // One hot key of a map, on one thread.
        let map: std::collections::HashMap<u64, u64> = (0..1000).map(|n| (n, n)).collect();
        b.iter(|| map.get(black_box(&500)).copied());
    });
}

criterion_group! { name = group; config = criterion!(); targets = scalability }
