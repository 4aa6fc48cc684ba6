//! Counters under kills, rival activations and a full disk, from a seed; a checker reads the
//! history.
//!
//! Operations of the store take effect after delays of their own, in any order, also when their
//! actor was killed meanwhile. Two clients of each counter repeat each increment until it is
//! acknowledged.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::time::Duration;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use strowger::testing::TestSystem;
use strowger::{ActorRef, ChildSpec, Strategy, Supervisor};
use strowger_durable::store::{EntityId, Fence, MemoryStore, Sequence, StoreEvent, StoreFault};
use tokio::time::Instant;

use crate::counter::{CounterMessage, DurableCounter, Get, Increment, counter, key};

const COUNTERS: [&str; 2] = ["a", "b"];
const CLIENTS: usize = 2;
const INCREMENTS: usize = 12;
pub(crate) const MAX_DELAY: Duration = Duration::from_millis(5);

/// An increment that was acknowledged.
#[derive(Debug, Clone, Copy)]
struct Acknowledged {
    value: u64,
    sent: Instant,
    answered: Instant,
}

pub(crate) fn index(random: &mut SplitMix64, length: usize) -> usize {
    usize::try_from(random.next_u64() % length as u64).expect("below a length")
}

/// Sends increments to a counter, to any of its activations, until each is acknowledged.
async fn client(
    name: String,
    seed: u64,
    activations: &[ActorRef<CounterMessage>],
) -> Vec<Acknowledged> {
    let mut random = SplitMix64::seed_from_u64(seed);
    let mut acknowledged = Vec::new();
    for number in 0..INCREMENTS {
        let increment = Increment(key(&format!("{name}-{number}")));
        let sent = Instant::now();
        let value = loop {
            let chosen = index(&mut random, activations.len());
            let within = Duration::from_millis(10 + random.next_u64() % 40);
            let answer = activations[chosen].ask_within(increment.clone(), within);
            if let Ok(value) = answer.await {
                break value;
            }
            tokio::time::sleep(Duration::from_millis(1 + random.next_u64() % 3)).await;
        };
        acknowledged.push(Acknowledged {
            value,
            sent,
            answered: Instant::now(),
        });
    }
    acknowledged
}

/// Kills activations and fills the disk, now and then.
pub(crate) async fn trouble<M: Send + 'static>(
    seed: u64,
    store: &MemoryStore,
    activations: &[ActorRef<M>],
) {
    let mut random = SplitMix64::seed_from_u64(seed);
    for _ in 0..30 {
        tokio::time::sleep(Duration::from_millis(1 + random.next_u64() % 12)).await;
        match random.next_u64() % 4 {
            0 => store.inject(StoreFault::DiskFull),
            _ => activations[index(&mut random, activations.len())].kill(),
        }
    }
}

/// Every acknowledged increment is counted once, and none overtakes one that was acknowledged
/// before it was sent.
fn check_counter(acknowledged: &[Acknowledged], total: u64) {
    let values: BTreeSet<u64> = acknowledged.iter().map(|one| one.value).collect();
    assert_eq!(values.len(), acknowledged.len(), "an increment is lost");
    let sent = (CLIENTS * INCREMENTS) as u64;
    assert_eq!(total, sent, "an increment is lost or doubled");
    assert_eq!(
        values.into_iter().collect::<Vec<_>>(),
        (1..=sent).collect::<Vec<_>>()
    );
    for earlier in acknowledged {
        for later in acknowledged
            .iter()
            .filter(|one| one.sent > earlier.answered)
        {
            assert!(
                earlier.value < later.value,
                "{earlier:?} precedes {later:?}"
            );
        }
    }
}

/// Batches of an entity follow each other, and each is from the holder at that moment.
pub(crate) fn check_store(history: Vec<StoreEvent>) {
    let mut heads: HashMap<EntityId, (Fence, Sequence)> = HashMap::new();
    for event in history {
        match event {
            StoreEvent::Leased { entity, fence } => {
                let head = heads.entry(entity).or_default();
                assert!(fence > head.0, "a fence was given out twice");
                head.0 = fence;
            }
            StoreEvent::Appended {
                entity,
                sequence,
                fence,
            } => {
                let head = heads.entry(entity).or_default();
                assert_eq!(sequence, head.1.next(), "a batch is lost or doubled");
                assert_eq!(fence, head.0, "writes of two activations interleave");
                head.1 = sequence;
            }
            event => panic!("{event:?}"),
        }
    }
}

/// A value is told once, and not if it was forgotten.
fn check_told(told: &[u64], total: u64) {
    let different: BTreeSet<&u64> = told.iter().collect();
    assert_eq!(different.len(), told.len(), "an effect happened twice");
    assert!(told.iter().all(|value| *value <= total));
}

fn scenario(system: &TestSystem) {
    let seed = system.seed();
    let store = MemoryStore::seeded(seed, MAX_DELAY);
    let mut supervisor = Supervisor::new(Strategy::OneForOne).intensity(u32::MAX, MAX_DELAY);
    let observers = COUNTERS.map(|_| system.probe::<u64>());
    for (name, observer) in COUNTERS.iter().zip(&observers) {
        for activation in ["first", "rival"] {
            let args = counter(&store, name, Some(observer.recipient()));
            let child = ChildSpec::new::<DurableCounter>(format!("{name}-{activation}"), args);
            supervisor = supervisor.child(child);
        }
    }
    let top = system.supervise("top", supervisor);
    let activations: BTreeMap<&str, Vec<ActorRef<CounterMessage>>> = COUNTERS
        .iter()
        .map(|name| {
            let both = ["first", "rival"].map(|activation| {
                let child = top.child(&format!("{name}-{activation}"));
                child.expect("it was started")
            });
            (*name, both.to_vec())
        })
        .collect();
    let all: Vec<_> = activations.values().flatten().cloned().collect();
    let run = |name: &'static str| {
        let clients = (0..CLIENTS).map(|client_number| {
            let seed = seed ^ ((client_number as u64 + 1) << 40);
            client(client_number.to_string(), seed, &activations[name])
        });
        let [first, second] = <[_; CLIENTS]>::try_from(clients.collect::<Vec<_>>())
            .unwrap_or_else(|_| panic!("two clients"));
        async move {
            let (first, second) = tokio::join!(first, second);
            [first, second].concat()
        }
    };
    let (a, b, ()) =
        system.run(async { tokio::join!(run("a"), run("b"), trouble(seed, &store, &all)) });
    for ((name, acknowledged), observer) in COUNTERS.iter().zip([a, b]).zip(&observers) {
        // A new activation reads what is stored.
        let args = counter(&store, name, None);
        let reader = system.spawn::<DurableCounter>(format!("reader-{name}"), args);
        let total = system.run(reader.ask(Get)).expect("an answer");
        check_counter(&acknowledged, total);
        check_told(&observer.drain(), total);
    }
    check_store(store.history());
}

/// Returns the seeds to run: some, or those in `STROWGER_DURABLE_SEEDS`, such as `0..10000`.
pub(crate) fn seeds(some: Range<u64>) -> Range<u64> {
    let Ok(text) = std::env::var("STROWGER_DURABLE_SEEDS") else {
        return some;
    };
    let bounds = text.split_once("..").expect("a range of seeds");
    let bound = |text: &str| text.parse().expect("a number");
    bound(bounds.0)..bound(bounds.1)
}

#[test]
fn no_acknowledged_increment_is_lost_or_doubled() {
    TestSystem::check(seeds(0..100), scenario);
}
