//! Supervision: starting children, and restarting failed ones.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group};
use strowger::{ActorRef, Strategy, Supervisor};
use strowger_benches::{Bench, Latch, Msg, Spawner, Stopwatch, ask, child, criterion, tell};

/// Returns a supervisor that tolerates every failure of a benchmark.
fn tolerant_supervisor(strategy: Strategy) -> Supervisor {
    Supervisor::new(strategy).intensity(u32::MAX, Duration::from_millis(1))
}

/// A supervisor starts a child, which answers; stopping it is not timed.
async fn child_spawn(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let spec = tolerant_supervisor(Strategy::OneForOne);
    let started = spawner.system.supervise(spawner.key(), spec).await;
    let supervisor = started.expect("it has no children yet");
    let mut watch = Stopwatch::default();
    for _ in 0..iterations {
        watch
            .time(async {
                let started = supervisor.start_child(child("child", &latch)).await;
                let actor: ActorRef<Msg> = started
                    .expect("the key is unused")
                    .downcast()
                    .expect("it is a counter");
                assert_eq!(ask(&actor, 7).await, 7, "a new counter is empty");
            })
            .await;
        let ended = supervisor.terminate_child("child").await;
        ended.expect("it was running");
        let forgotten = supervisor.delete_child("child").await;
        forgotten.expect("it was stopped");
    }
    supervisor.stop();
    supervisor.stopped().await;
    watch.total()
}

/// The middle child fails; the clock stops when all children that the strategy restarts have
/// answered with fresh state.
async fn strategy(
    spawner: Spawner,
    strategy: Strategy,
    size: usize,
    failure: fn() -> Msg,
    iterations: u64,
) -> Duration {
    let latch = Arc::new(Latch::default());
    let mut spec = tolerant_supervisor(strategy);
    for at in 0..size {
        spec = spec.child(child(&at.to_string(), &latch));
    }
    let started = spawner.system.supervise(spawner.key(), spec).await;
    let supervisor = started.expect("the children start");
    let children: Vec<ActorRef<Msg>> = (0..size)
        .filter_map(|at| supervisor.child(&at.to_string()))
        .collect();
    assert_eq!(children.len(), size, "all were started");
    let failing = size / 2;
    let fresh = match strategy {
        Strategy::OneForAll => 0..size,
        Strategy::RestForOne => failing..size,
        _ => failing..failing + 1,
    };
    let start = Instant::now();
    for _ in 0..iterations {
        tell(&children[failing], failure()).await;
        // The failed child answers first: later asks to its siblings reach their new incarnations.
        let first = ask(&children[failing], 7).await;
        assert_eq!(first, 7, "the successor begins anew");
        for at in fresh.clone().filter(|at| *at != failing) {
            assert_eq!(
                ask(&children[at], 7).await,
                7,
                "so do those restarted with it"
            );
        }
    }
    let time = start.elapsed();
    supervisor.stop();
    supervisor.stopped().await;
    time
}

/// A supervisor and three children are started and have answered; stopping them is not timed.
async fn tree_small(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let mut watch = Stopwatch::default();
    for _ in 0..iterations {
        let spec = ["a", "b", "c"]
            .iter()
            .fold(tolerant_supervisor(Strategy::OneForOne), |spec, key| {
                spec.child(child(key, &latch))
            });
        let supervisor = watch
            .time(async {
                let started = spawner.system.supervise(spawner.key(), spec).await;
                let supervisor = started.expect("the children start");
                for key in ["a", "b", "c"] {
                    let actor = supervisor.child(key).expect("it was started");
                    assert_eq!(ask(&actor, 7).await, 7, "a new counter is empty");
                }
                supervisor
            })
            .await;
        supervisor.stop();
        supervisor.stopped().await;
    }
    watch.total()
}

/// A leaf fails, its supervisor escalates, and the supervisor above restarts that subtree, until
/// the new leaf has answered.
async fn escalation(spawner: Spawner, iterations: u64) -> Duration {
    let latch = Arc::new(Latch::default());
    let inner = Supervisor::new(Strategy::OneForOne)
        .intensity(0, Duration::from_secs(1))
        .child(child("leaf", &latch));
    let outer = tolerant_supervisor(Strategy::OneForOne).supervisor("inner", inner);
    let key = spawner.key();
    let started = spawner.system.supervise(key.as_str(), outer).await;
    let supervisor = started.expect("the branch starts");
    let path = format!("/{key}/inner/leaf");
    let leaf = || spawner.system.find(path.as_str())?.downcast::<Msg>();
    let mut old = leaf().expect("it was started");
    let start = Instant::now();
    for _ in 0..iterations {
        tell(&old, Msg::Fail).await;
        old.stopped().await;
        old = loop {
            match leaf() {
                Some(new) if new.id() != old.id() => break new,
                _ => tokio::task::yield_now().await,
            }
        };
        assert_eq!(ask(&old, 7).await, 7, "the new leaf begins anew");
    }
    let time = start.elapsed();
    supervisor.stop();
    supervisor.stopped().await;
    time
}

/// Builds a node with idle children; nothing is started or restarted: the code that the original
/// benchmark timed under all of these names.
fn node_as_documented(children: usize) -> Vec<(Box<u64>, Arc<str>)> {
    (0..children)
        .map(|at| (Box::new(black_box(at as u64)), Arc::from("child")))
        .collect()
}

fn supervision(c: &mut Criterion) {
    let bench = Bench::start();
    let spawner = || bench.spawner();
    c.bench_function("supervisor_child_spawn", |b| {
        b.iter_custom(|n| bench.run(child_spawn(spawner(), n)));
    });
    let fail: fn() -> Msg = || Msg::Fail;
    let panic: fn() -> Msg = || Msg::Panic;
    for (id, kind, size, failure) in [
        (
            "supervisor_strategy_one_for_one",
            Strategy::OneForOne,
            1,
            fail,
        ),
        (
            "supervisor_strategy_one_for_one_panic",
            Strategy::OneForOne,
            1,
            panic,
        ),
        (
            "supervisor_strategy_one_for_all",
            Strategy::OneForAll,
            3,
            fail,
        ),
        (
            "supervisor_strategy_rest_for_one",
            Strategy::RestForOne,
            3,
            fail,
        ),
    ] {
        c.bench_function(id, |b| {
            b.iter_custom(|n| bench.run(strategy(spawner(), kind, size, failure, n)));
        });
    }
    let mut group = c.benchmark_group("supervisor_strategy");
    for (name, kind) in [
        ("one_for_all", Strategy::OneForAll),
        ("rest_for_one", Strategy::RestForOne),
    ] {
        group.bench_function(BenchmarkId::new(name, 100), |b| {
            b.iter_custom(|n| bench.run(strategy(spawner(), kind, 100, fail, n)));
        });
    }
    group.finish();
    c.bench_function("supervisor_tree_small", |b| {
        b.iter_custom(|n| bench.run(tree_small(spawner(), n)));
    });
    c.bench_function("supervisor_escalation", |b| {
        b.iter_custom(|n| bench.run(escalation(spawner(), n)));
    });
    for (id, children) in [
        ("supervisor_child_spawn_as_documented", 1),
        ("supervisor_strategy_one_for_one_as_documented", 1),
        ("supervisor_strategy_one_for_all_as_documented", 3),
        ("supervisor_strategy_rest_for_one_as_documented", 3),
        ("supervisor_tree_small_as_documented", 3),
    ] {
        c.bench_function(id, |b| b.iter(|| node_as_documented(children)));
    }
}

criterion_group! { name = group; config = criterion!(); targets = supervision }
