//! Ledgers under kills, rival activations and a full disk, from a seed; a checker compares what was
//! acknowledged, the state and the stored events.

use std::time::Duration;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use strowger::testing::TestSystem;
use strowger::{ActorRef, ChildSpec, Strategy, Supervisor};
use strowger_durable::store::{EntityId, MemoryStore, Store, Table};
use tokio::time::Instant;

use crate::counter::key;
use crate::ledger::{Book, DurableLedger, LedgerEvent, LedgerMessage, Read, Write, added, ledger};
use crate::simulation::{MAX_DELAY, check_store, index, seeds, trouble};

const CLIENTS: u64 = 2;
const WRITES: u64 = 12;
/// Maximum number of attempts at a write.
const ATTEMPTS: usize = 500;

/// A write that was acknowledged.
#[derive(Debug)]
struct AcknowledgedWrite {
    entries: Vec<u64>,
    /// The number of events after it.
    last: u64,
    sent: Instant,
    answered: Instant,
}

/// Writes one to three entries at once, to any activation, until they are acknowledged.
async fn client(
    number: u64,
    seed: u64,
    activations: &[ActorRef<LedgerMessage>],
) -> Vec<AcknowledgedWrite> {
    let mut random = SplitMix64::seed_from_u64(seed ^ ((number + 1) << 40));
    let mut acknowledged = Vec::new();
    for write in 0..WRITES {
        let first = (number * WRITES + write) * 10;
        let entries = Vec::from_iter(first..=first + random.next_u64() % 3);
        let request = Write(added(entries.clone()), key(&first.to_string()));
        let sent = Instant::now();
        let mut attempts = 0;
        let last = loop {
            attempts += 1;
            assert!(attempts <= ATTEMPTS, "a write is not acknowledged");
            let chosen = index(&mut random, activations.len());
            let within = Duration::from_millis(10 + random.next_u64() % 40);
            let answer = activations[chosen].ask_within(request.clone(), within);
            if let Ok(last) = answer.await {
                break last;
            }
            tokio::time::sleep(Duration::from_millis(1 + random.next_u64() % 3)).await;
        };
        acknowledged.push(AcknowledgedWrite {
            entries,
            last,
            sent,
            answered: Instant::now(),
        });
    }
    acknowledged
}

/// The entries of each write are there once, together, in order and where the answer says; and
/// behind those of writes that were acknowledged before it was sent.
fn check_book(acknowledged: &[AcknowledgedWrite], book: &Book) {
    let entries = &book.entries;
    let sent: usize = acknowledged.iter().map(|one| one.entries.len()).sum();
    assert_eq!(entries.len(), sent, "an event is lost or doubled: {book:?}");
    assert_eq!(book.events, sent as u64, "an event is lost or doubled");
    for one in acknowledged {
        let end = usize::try_from(one.last).expect("a small number");
        let begin = end.checked_sub(one.entries.len());
        let found = begin.and_then(|begin| entries.get(begin..end));
        assert_eq!(found, Some(&one.entries[..]), "moved: {one:?} in {book:?}");
        for later in acknowledged.iter().filter(|it| it.sent > one.answered) {
            assert!(one.last < later.last, "{one:?} precedes {later:?}");
        }
    }
}

/// The stored events are numbered without a gap, and lead to the state.
fn check_events(system: &TestSystem, store: &MemoryStore, book: &Book, keeps: bool) {
    let entity = EntityId::new("ledger", "a").expect("a short name");
    let found = system.run(store.read(&entity)).expect("it can be read");
    let events = found.rows.iter().filter(|row| row.table == Table::Events);
    let mut replayed = Book::default();
    let mut numbers = Vec::new();
    for row in events {
        let key = row.key.as_slice().try_into().expect("eight bytes");
        numbers.push(u64::from_be_bytes(key));
        // Behind the encoding and the version.
        let event: LedgerEvent = rmp_serde::from_slice(&row.value[5..]).expect("an event");
        replayed.apply(&event);
    }
    let first = book.events + 1 - numbers.len() as u64;
    assert_eq!(numbers, Vec::from_iter(first..=book.events));
    assert!(book.entries.ends_with(&replayed.entries), "{replayed:?}");
    assert!(!keeps || first == 1, "an event was trimmed");
}

/// A number of events is told once, and not if its events were forgotten.
fn check_told(told: &[u64], book: &Book) {
    let mut different = told.to_vec();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), told.len(), "an effect happened twice");
    assert!(told.iter().all(|events| *events <= book.events));
}

fn scenario<const EVERY: u64, const KEEPS: bool>(system: &TestSystem) {
    let seed = system.seed();
    let store = MemoryStore::seeded(seed, MAX_DELAY);
    let observer = system.probe::<u64>();
    let names = ["first", "rival"];
    let mut supervisor = Supervisor::new(Strategy::OneForOne).intensity(u32::MAX, MAX_DELAY);
    for name in names {
        let args = ledger(&store, "a", Some(observer.recipient()));
        supervisor = supervisor.child(ChildSpec::new::<DurableLedger<EVERY, KEEPS>>(name, args));
    }
    let top = system.supervise("top", supervisor);
    let activations = names.map(|name| top.child(name).expect("it was started"));
    let (first, second, ()) = system.run(async {
        let clients = [0, 1].map(|number| client(number, seed, &activations));
        let [first, second] = clients;
        tokio::join!(first, second, trouble(seed, &store, &activations))
    });
    // A new activation reads what is stored.
    let args = ledger(&store, "a", None);
    let reader = system.spawn::<DurableLedger<EVERY, KEEPS>>("reader", args);
    let book = system.run(reader.ask(Read)).expect("an answer");
    let acknowledged: Vec<_> = first.into_iter().chain(second).collect();
    assert_eq!(acknowledged.len() as u64, CLIENTS * WRITES);
    check_book(&acknowledged, &book);
    check_told(&observer.drain(), &book);
    check_events(system, &store, &book, KEEPS);
    check_store(store.history());
}

#[test]
fn no_acknowledged_event_is_lost_doubled_or_reordered() {
    TestSystem::check(seeds(0..40), |system| match system.seed() % 2 {
        0 => scenario::<4, true>(system),
        _ => scenario::<4, false>(system),
    });
}
