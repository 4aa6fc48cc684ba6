//! Behaviour as the number of actors and the load grow.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use strowger_bench::{Counted, LiveBytes};
use tokio::time::{MissedTickBehavior, interval};

use crate::counter::{FinishLine, Wiring};
use crate::subject::{Capacity, Placement, Running, Subject};

/// Numbers of actors in the throughput rows.
pub const ACTORS: [usize; 6] = [10, 100, 1000, 10_000, 100_000, 1_000_000];
/// Messages per second in the latency rows.
pub const LOADS: [u64; 6] = [1000, 10_000, 100_000, 300_000, 1_000_000, 2_000_000];

/// The quantile of the latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantile {
    /// The 50th percentile.
    Half,
    /// The 99th percentile.
    NinetyNine,
}

/// Four tasks tell numbers to actors in turn, until the last number is handled. The figure is in
/// nanoseconds per message.
pub async fn throughput<S: Subject>(subject: S, actors: usize) -> Counted {
    const MESSAGES: usize = 400_000;
    const TELLERS: usize = 4;
    let each = (MESSAGES / actors).max(1);
    let done = (each * actors) as u64;
    let finish = Arc::new(FinishLine::default());
    let mut running = Vec::with_capacity(actors);
    for _ in 0..actors {
        let one = subject.spawn(Capacity::Unbounded).await;
        let wiring = Wiring {
            expected: each as u64,
            finish: Some(Arc::clone(&finish)),
            ..Wiring::default()
        };
        S::wire(&one.actor, wiring).await;
        running.push(one);
    }
    for one in &running {
        S::ask(&one.actor, 0).await;
    }
    let all: Vec<S::Ref> = running.iter().map(|one| one.actor.clone()).collect();
    let all = Arc::new(all);
    let mut times = Vec::new();
    for _ in 0..3 {
        finish.expect(actors as u64);
        let start = Instant::now();
        let tellers: Vec<_> = (0..TELLERS)
            .map(|teller| {
                let all = Arc::clone(&all);
                let mine = actors * teller / TELLERS..actors * (teller + 1) / TELLERS;
                subject.task(Placement::Any(teller), async move {
                    for _ in 0..each {
                        for actor in &all[mine.clone()] {
                            S::tell(actor, 1).await;
                        }
                    }
                })
            })
            .collect();
        let sum = finish.sum().await;
        times.push(start.elapsed());
        assert_eq!(sum, done, "{}: every number arrived once", S::NAME);
        for teller in tellers {
            teller.await.expect("a teller ends");
        }
    }
    drop(all);
    stop_all(&subject, running).await;
    times.sort();
    let middle = times[times.len() / 2];
    Ok((middle.as_nanos() as f64 / done as f64, done))
}

/// The cost of many actors that live at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrowdFigure {
    /// Time until all were spawned and have answered, in nanoseconds.
    Spawned,
    /// Heap memory of the actors, in bytes.
    Heap,
    /// Growth of the process since before the first crowd, in bytes.
    Resident,
}

/// Spawns this number of actors, asks each once and keeps them alive.
pub async fn crowd<S: Subject>(subject: S, actors: usize, figure: CrowdFigure) -> Counted {
    static BEFORE: OnceLock<f64> = OnceLock::new();
    let mut running = Vec::with_capacity(actors);
    // Memory that earlier crowds left free does not count for this one.
    strowger_bench::trim();
    let before = *BEFORE.get_or_init(resident);
    let bytes = (figure == CrowdFigure::Heap).then(LiveBytes::watch);
    let start = Instant::now();
    for number in 0..actors as u64 {
        let one = subject.spawn(Capacity::Unbounded).await;
        let answer = S::ask(&one.actor, number).await;
        assert_eq!(answer, number, "{}: a new actor answers", S::NAME);
        running.push(one);
    }
    let took = start.elapsed();
    let value = match figure {
        CrowdFigure::Spawned => took.as_nanos() as f64,
        CrowdFigure::Heap => bytes.as_ref().map_or(0, LiveBytes::now) as f64,
        CrowdFigure::Resident => resident() - before,
    };
    drop(bytes);
    for one in &running {
        S::ask(&one.actor, 0).await;
    }
    stop_all(&subject, running).await;
    Ok((value, actors as u64))
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux says how it is");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u32>().ok());
    f64::from(kilobytes.expect("VmRSS is in kB")) * 1024.0
}

/// A hundred actors are told `load` numbers per second, in a burst every millisecond; meanwhile one
/// of them is asked every millisecond. The figure is how long the answers take, in nanoseconds.
pub async fn latency<S: Subject>(subject: S, load: u64, quantile: Quantile) -> Counted {
    const LOAD_TIME: Duration = Duration::from_millis(1200);
    const TICK: Duration = Duration::from_millis(1);
    const MAX_WAIT: Duration = Duration::from_secs(5);
    let mut running = Vec::with_capacity(100);
    for _ in 0..100 {
        running.push(subject.spawn(Capacity::Bounded).await);
    }
    let all: Arc<Vec<S::Ref>> = Arc::new(running.iter().map(|one| one.actor.clone()).collect());
    let over = Arc::new(AtomicBool::new(false));
    let (actors, ended) = (Arc::clone(&all), Arc::clone(&over));
    let told = subject.task(Placement::Any(1), async move {
        let mut ticks = interval(TICK);
        // A late burst is made up for, so that the load is reached unless the subject is too slow.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
        let mut at = 0;
        while !ended.load(Ordering::Relaxed) {
            ticks.tick().await;
            for _ in 0..load / 1000 {
                S::tell(&actors[at % 100], 1).await;
                at += 1;
            }
        }
        at as u64
    });
    let mut took = Vec::new();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let start = Instant::now();
    while start.elapsed() < LOAD_TIME {
        ticks.tick().await;
        let asked = Instant::now();
        S::ask(&all[took.len() * 7 % 100], 0).await;
        took.push(asked.elapsed());
    }
    over.store(true, Ordering::Relaxed);
    let told = told.await.expect("the teller ends");
    let mut sum = sum_of::<S>(&all).await;
    // A peer may let an ask overtake numbers that wait. All numbers have to arrive, none twice.
    let late = Instant::now();
    while sum < told && late.elapsed() < MAX_WAIT {
        tokio::time::sleep(TICK).await;
        sum = sum_of::<S>(&all).await;
    }
    assert_eq!(sum, told, "{}: every number arrived once", S::NAME);
    drop(all);
    stop_all(&subject, running).await;
    if (told as f64) < 0.9 * LOAD_TIME.as_secs_f64() * load as f64 {
        return Err("it does not keep up with the load");
    }
    took.sort();
    let at = match quantile {
        Quantile::Half => took.len() / 2,
        Quantile::NinetyNine => took.len() * 99 / 100,
    };
    Ok((took[at].as_nanos() as f64, took.len() as u64))
}

async fn sum_of<S: Subject>(all: &[S::Ref]) -> u64 {
    let mut sum = 0;
    for actor in all {
        sum += S::ask(actor, 0).await;
    }
    sum
}

async fn stop_all<S: Subject>(subject: &S, running: Vec<Running<S>>) {
    for one in running {
        subject.stop(one).await;
    }
}
