//! The guarantees of event-sourced actors, on virtual time and a store in memory.

use std::sync::Arc;
use std::time::Duration;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};
use strowger::testing::TestSystem;
use strowger::{ActorRef, ActorSystem, AskError, ChildSpec, Exit, Strategy, Supervisor};
use strowger_durable::store::{
    Batch, EntityId, EventNumber, FjallOptions, FjallStore, MemoryStore, Row, Sequence, Store,
    StoreError, StoreEvent, StoreFault, Table,
};
use strowger_durable::{DurableError, Entities, EntityError, Sourced};

use crate::counter::{DurableCounter, counter, key};
use crate::ledger::{
    After, Book, DurableLedger, EmitThen, Ledger, LedgerEvent, LedgerMessage, Read, Write, added,
    ledger,
};

const SECOND: Duration = Duration::from_secs(1);

fn spawn<const EVERY: u64, const KEEPS: bool>(
    system: &TestSystem,
    path: &str,
    store: &MemoryStore,
) -> ActorRef<LedgerMessage> {
    system.spawn::<DurableLedger<EVERY, KEEPS>>(path.to_owned(), ledger(store, "a", None))
}

fn read(system: &TestSystem, ledger: &ActorRef<LedgerMessage>) -> Book {
    system.run(ledger.ask(Read)).expect("an answer")
}

fn write(
    system: &TestSystem,
    ledger: &ActorRef<LedgerMessage>,
    events: Vec<LedgerEvent>,
    name: &str,
) -> Result<u64, AskError> {
    system.run(ledger.ask(Write(events, key(name))))
}

fn stop(system: &TestSystem, ledger: &ActorRef<LedgerMessage>) {
    ledger.stop();
    system.run(ledger.stopped());
}

fn durable_error(exit: &Exit) -> &DurableError {
    match exit {
        Exit::Failed(error) => error.downcast_ref().expect("an error of this crate"),
        exit => panic!("{exit}"),
    }
}

fn entity() -> EntityId {
    EntityId::new("ledger", "a").expect("a short name")
}

fn rows(system: &TestSystem, store: &impl Store) -> Vec<Row> {
    let found = system.run(store.read(&entity()));
    found.expect("it can be read").rows
}

/// Returns the numbers of the stored events.
fn event_numbers(rows: &[Row]) -> Vec<u64> {
    let events = rows.iter().filter(|row| row.table == Table::Events);
    events
        .map(|row| u64::from_be_bytes(row.key.as_slice().try_into().expect("eight bytes")))
        .collect()
}

/// Appends to an entity without its actor.
fn append(system: &TestSystem, store: &MemoryStore, entity: &EntityId, batch: Batch) -> Sequence {
    system.run(async {
        let fence = store.lease(entity).await.expect("a lease");
        let found = store.read(entity).await.expect("it can be read").sequence;
        let appended = store.append(entity, found, fence, batch).await;
        appended.expect("it is written")
    })
}

fn random_events(random: &mut SplitMix64, model: &mut Book) -> Vec<LedgerEvent> {
    let mut events = Vec::new();
    for _ in 0..random.next_u64() % 4 {
        let event = match random.next_u64() % 4 {
            0 if !model.entries.is_empty() => LedgerEvent::Removed {
                index: usize::try_from(random.next_u64()).unwrap_or_default() % model.entries.len(),
            },
            1 => LedgerEvent::AllDoubled,
            _ => LedgerEvent::Added {
                entry: random.next_u64() % 1000,
            },
        };
        model.apply(&event);
        events.push(event);
    }
    events
}

/// Sends random commands, and compares the state with that of a model after each restart.
fn restarts_keep_the_state<const EVERY: u64, const KEEPS: bool>(seed: u64) {
    let mut random = SplitMix64::seed_from_u64(seed);
    let system = TestSystem::new(seed);
    let mut store = MemoryStore::new();
    let mut model = Book::default();
    let mut restarts = 0;
    let mut actor = spawn::<EVERY, KEEPS>(&system, "start", &store);
    for step in 0..40 {
        let mut attempt = model.clone();
        let events = random_events(&mut random, &mut attempt);
        let is_over = match random.next_u64() % 6 {
            0 => {
                let after = [After::Fail, After::Panic][step % 2];
                let told = actor.tell(EmitThen(events, after));
                system.run(told).expect("there is room");
                system.run(actor.stopped());
                true
            }
            1 => {
                stop(&system, &actor);
                store = store.reopen();
                true
            }
            2 => {
                actor.kill();
                system.run(actor.stopped());
                true
            }
            _ => {
                let last = write(&system, &actor, events, &step.to_string());
                assert_eq!(last.ok(), Some(attempt.events));
                model = attempt;
                false
            }
        };
        if is_over {
            restarts += 1;
            actor = spawn::<EVERY, KEEPS>(&system, &format!("restart-{step}"), &store);
            assert_eq!(read(&system, &actor), model, "after restart {restarts}");
        }
    }
    assert_eq!(read(&system, &actor), model);
    let stored = event_numbers(&rows(&system, &store));
    let first = match KEEPS {
        true => 1,
        false => model.events + 1 - stored.len() as u64,
    };
    assert_eq!(stored, Vec::from_iter(first..=model.events));
    assert!(KEEPS || (stored.len() as u64) < EVERY.max(1));
}

#[test]
fn replayed_state_is_the_live_state() {
    for seed in 0..20 {
        restarts_keep_the_state::<4, true>(seed);
        restarts_keep_the_state::<4, false>(seed);
        restarts_keep_the_state::<1, false>(seed);
        restarts_keep_the_state::<0, true>(seed);
        restarts_keep_the_state::<1000, true>(seed);
    }
}

#[test]
fn outputs_leave_only_after_the_events_are_stored() {
    TestSystem::check(0..30, |system| {
        let store = MemoryStore::seeded(system.seed(), Duration::from_millis(5));
        let observer = system.probe::<u64>();
        let args = ledger(&store, "a", Some(observer.recipient()));
        let ledger = system.spawn::<DurableLedger<4, true>>("a", args);
        for number in 1..=5 {
            let (appends, answer) = system.run(async {
                let events = added([1, 2]);
                let answer = ledger.ask(Write(events, key(&number.to_string()))).await;
                let history = store.history().into_iter();
                let appends = history.filter(|it| matches!(it, StoreEvent::Appended { .. }));
                (appends.count() as u64, answer)
            });
            assert_eq!((appends, answer.ok()), (number, Some(2 * number)));
            assert_eq!(observer.expect(SECOND), 2 * number);
        }
    });
}

#[test]
fn failed_write_drops_outputs_and_events_and_ends_the_actor() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let observer = system.probe::<u64>();
    let args = ledger(&store, "a", Some(observer.recipient()));
    let child = ChildSpec::new::<DurableLedger<4, true>>("ledger", args);
    let top = system.supervise("top", Supervisor::new(Strategy::OneForOne).child(child));
    let ledger = top.child("ledger").expect("it was started");
    assert_eq!(write(&system, &ledger, added([1]), "1").ok(), Some(1));
    store.inject(StoreFault::DiskFull);
    let refused = write(&system, &ledger, added([2]), "2");
    assert!(matches!(refused, Err(AskError::Dropped)), "{refused:?}");
    assert_eq!(read(&system, &ledger).entries, [1]);
    for _ in 0..2 {
        assert_eq!(write(&system, &ledger, added([2]), "2").ok(), Some(2));
    }
    assert_eq!(observer.drain(), [1, 2]);
    assert_eq!(event_numbers(&rows(&system, &store)), [1, 2]);
}

#[test]
fn failed_write_is_the_exit_of_the_incarnation() {
    for fault in [StoreFault::DiskFull, StoreFault::SyncFailed] {
        let system = TestSystem::new(1);
        let store = MemoryStore::new();
        let ledger = spawn::<4, true>(&system, "a", &store);
        store.inject(fault);
        let told = ledger.tell(EmitThen(added([1]), After::Succeed));
        system.run(told).expect("there is room");
        let exit = system.run(ledger.stopped());
        match durable_error(&exit) {
            DurableError::NotSaved {
                entity, sequence, ..
            } => assert_eq!((entity.to_string(), sequence.0), ("ledger/a".to_owned(), 1)),
            error => panic!("{error}"),
        }
    }
}

#[test]
fn failed_hook_leaves_no_events() {
    for after in [After::Fail, After::Panic] {
        let system = TestSystem::new(1);
        let store = MemoryStore::new();
        let child = ChildSpec::new::<DurableLedger<4, true>>("ledger", ledger(&store, "a", None));
        let top = system.supervise("top", Supervisor::new(Strategy::OneForOne).child(child));
        let ledger = top.child("ledger").expect("it was started");
        for (entry, after) in [(1, After::Succeed), (2, after), (3, After::Succeed)] {
            let told = ledger.tell(EmitThen(added([entry, entry]), after));
            system.run(told).expect("there is room");
        }
        assert_eq!(read(&system, &ledger).entries, [1, 1, 3, 3]);
        assert_eq!(event_numbers(&rows(&system, &store)), [1, 2, 3, 4]);
    }
}

#[test]
fn event_that_cannot_be_applied_or_decoded_is_not_stored() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let first = spawn::<4, true>(&system, "first", &store);
    assert_eq!(write(&system, &first, added([1]), "1").ok(), Some(1));
    let removed = LedgerEvent::Removed { index: 7 };
    let refused = write(&system, &first, vec![removed], "2");
    assert!(matches!(refused, Err(AskError::Panicked)), "{refused:?}");
    let second = spawn::<4, true>(&system, "second", &store);
    let mut events = added([2]);
    events.push(LedgerEvent::Unreadable { lost: 3 });
    let told = second.tell(EmitThen(events, After::Succeed));
    system.run(told).expect("there is room");
    let exit = system.run(second.stopped());
    assert!(
        matches!(durable_error(&exit), DurableError::NotEncoded { .. }),
        "{exit}"
    );
    for part in ["ledger/a", "decoded again", "lost"] {
        assert!(exit.to_string().contains(part), "{exit}");
    }
    let third = spawn::<4, true>(&system, "third", &store);
    assert_eq!(read(&system, &third).entries, [1]);
    assert_eq!(event_numbers(&rows(&system, &store)), [1]);
}

#[test]
fn message_without_events_is_not_written() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let ledger = spawn::<4, true>(&system, "a", &store);
    for _ in 0..3 {
        let told = ledger.tell(EmitThen(Vec::new(), After::Succeed));
        system.run(told).expect("there is room");
        assert_eq!(read(&system, &ledger), Book::default());
    }
    let sequence = system
        .run(store.read(&entity()))
        .map(|found| found.sequence);
    assert_eq!(sequence, Ok(Sequence(0)));
}

/// Runs two rounds of a ledger on disk; the second one begins with a new store and system.
async fn restart_on_disk<const EVERY: u64, const KEEPS: bool>(expected: &[u64]) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = || FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens");
    for round in 0..2_u64 {
        let store = store();
        let system = ActorSystem::new("test").expect("a runtime");
        let args = ledger::<EVERY, KEEPS>(&store, "a", None);
        let ledger = system.spawn::<DurableLedger<EVERY, KEEPS>>("a", args);
        let ledger = ledger.expect("the key is free");
        let book = ledger.ask(Read).await.expect("an answer");
        assert_eq!(book.entries, Vec::from_iter(0..round * 300));
        for entry in round * 300..(round + 1) * 300 {
            let answer = ledger.ask(Write(added([entry]), key(&entry.to_string())));
            assert_eq!(answer.await.ok(), Some(entry + 1));
        }
        let repeated = ledger.ask(Write(added([7]), key("299")));
        assert_eq!(repeated.await.ok(), Some(300));
        system.shutdown(SECOND).await;
    }
    let found = store().read(&entity()).await.expect("it can be read");
    assert_eq!(event_numbers(&found.rows), expected);
}

#[tokio::test]
async fn all_events_survive_a_restart_of_system_and_store() {
    restart_on_disk::<70, true>(&Vec::from_iter(1..=600)).await;
}

#[tokio::test]
async fn events_before_a_snapshot_are_trimmed_on_disk() {
    restart_on_disk::<70, false>(&Vec::from_iter(561..=600)).await;
}

#[test]
fn change_of_the_retention_trims_at_the_next_snapshot() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let keeps = spawn::<4, true>(&system, "keeps", &store);
    for entry in 0..10 {
        let written = write(&system, &keeps, added([entry]), &entry.to_string());
        assert_eq!(written.ok(), Some(entry + 1));
    }
    stop(&system, &keeps);
    let trims = spawn::<4, false>(&system, "trims", &store);
    assert_eq!(write(&system, &trims, added([10]), "10").ok(), Some(11));
    let stored = event_numbers(&rows(&system, &store));
    assert_eq!(stored, Vec::from_iter(1..=11));
    assert_eq!(write(&system, &trims, added([11, 12]), "11").ok(), Some(13));
    assert_eq!(event_numbers(&rows(&system, &store)), [0; 0]);
    stop(&system, &trims);
    let keeps = spawn::<4, true>(&system, "keeps again", &store);
    assert_eq!(read(&system, &keeps).entries, Vec::from_iter(0..13));
    assert_eq!(write(&system, &keeps, added([13]), "13").ok(), Some(14));
    assert_eq!(event_numbers(&rows(&system, &store)), [14]);
}

#[test]
fn repeated_request_emits_once_across_restarts() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    for round in 0..3 {
        let ledger = spawn::<1, false>(&system, &format!("round-{round}"), &store);
        for _ in 0..2 {
            assert_eq!(write(&system, &ledger, added([1, 2]), "same").ok(), Some(2));
        }
        stop(&system, &ledger);
    }
}

#[test]
fn entity_is_activated_by_key_and_by_its_reminder() {
    let system = TestSystem::new(1);
    let store = MemoryStore::seeded(1, Duration::from_millis(5));
    let observer = system.probe::<u64>();
    let entities = Entities::new(Arc::new(store));
    let observed = Some(observer.recipient());
    let ledgers = entities.start::<Sourced<Ledger<2, true>>>(system.system(), "ledgers", observed);
    let ledgers = ledgers.expect("the key is free");
    for key in ["a", "b"] {
        let ledger = ledgers.get(key).expect("a short key");
        let told = ledger.tell(EmitThen(added([1]), After::Remind(100 * SECOND, 2)));
        system.run(told).expect("it is delivered");
        assert_eq!(observer.expect(SECOND), 1);
    }
    observer.expect_none(98 * SECOND);
    assert!(ledgers.awake().is_empty());
    for _ in 0..2 {
        assert_eq!(observer.expect(3 * SECOND), 2);
    }
    observer.expect_none(1000 * SECOND);
    for key in ["a", "b"] {
        let ledger = ledgers.get(key).expect("a short key");
        let book = system.run(ledger.ask(Read)).expect("an answer");
        assert_eq!(book.entries, [1, 2]);
    }
    let stored = system.run(ledgers.stored(None, 10)).expect("it is listed");
    assert_eq!(stored.len(), 2);
}

#[test]
fn damaged_event_ends_its_entity_alone() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let entities = Entities::new(Arc::new(store.clone()));
    let ledgers = entities.start::<Sourced<Ledger<4, true>>>(system.system(), "ledgers", None);
    let ledgers = ledgers.expect("the key is free");
    let written = |name: &str, entry: u64| {
        let ledger = ledgers.get(name).expect("a short key");
        let answer = system.run(ledger.ask(Write(added([entry]), key(&entry.to_string()))));
        system.advance(SECOND);
        answer
    };
    let not_activated = |name: &str, parts: &[&str]| {
        let refused = written(name, 99).expect_err("it is damaged");
        assert!(
            matches!(refused, EntityError::NotActivated { .. }),
            "{refused}"
        );
        let refused = refused.to_string();
        let is_whole = parts.iter().all(|part| refused.contains(part));
        assert!(is_whole && refused.contains(name), "{refused}");
    };
    for name in ["stored", "decoded", "cut", "missing", "sound"] {
        for entry in 1..=3 {
            assert_eq!(written(name, entry).ok(), Some(entry));
        }
    }
    store.inject(StoreFault::Damage);
    assert_eq!(written("stored", 4).ok(), Some(4));
    not_activated("stored", &["sequence 4", "restore the store"]);
    let change = |name: &str, number: u64, value: Option<&[u8]>| {
        let mut batch = Batch::new();
        let key = EventNumber(number).row_key();
        match value {
            Some(value) => batch.put(Table::Events, key, value),
            None => batch.remove(Table::Events, key),
        }
        let entity = EntityId::new("ledger", name).expect("a short name");
        append(&system, &store, &entity, batch);
    };
    change("decoded", 2, Some(&[1, 0, 0, 0, 1, 0xa3, b'?', b'?', b'?']));
    not_activated(
        "decoded",
        &[
            "event 2",
            "version 1",
            "sequence 4",
            "upcaster",
            "restore the store",
        ],
    );
    change("cut", 3, Some(&[1, 0, 0]));
    not_activated(
        "cut",
        &["malformed event", "sequence 4", "restore the store"],
    );
    change("missing", 2, None);
    not_activated("missing", &["event 2 is missing", "sequence 4", "restore"]);
    assert_eq!(written("sound", 4).ok(), Some(4));
}

#[test]
fn state_of_the_other_form_is_refused() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    let mut batch = Batch::new();
    batch.put(Table::State, [], [1, 0xc0]);
    append(&system, &store, &entity(), batch);
    let sourced = spawn::<4, true>(&system, "sourced", &store);
    let exit = system.run(sourced.stopped()).to_string();
    assert!(
        exit.contains("ledger/a") && exit.contains("DurableActor"),
        "{exit}"
    );
    for table in [Table::Events, Table::Snapshot] {
        let name = EntityId::new("counter", format!("{table:?}")).expect("a short name");
        let mut batch = Batch::new();
        batch.put(table, EventNumber(1).row_key(), [1]);
        append(&system, &store, &name, batch);
        let saved = system.spawn::<DurableCounter>(name.key(), counter(&store, name.key(), None));
        let exit = system.run(saved.stopped()).to_string();
        assert!(
            exit.contains("counter/") && exit.contains("EventSourced"),
            "{exit}"
        );
    }
}

#[test]
fn second_activation_takes_the_entity_over_while_the_first_starts() {
    TestSystem::check(0..30, |system| {
        let store = MemoryStore::seeded(system.seed(), Duration::from_millis(5));
        let first = spawn::<2, false>(system, "first", &store);
        for entry in 0..3 {
            let written = write(system, &first, added([entry]), &entry.to_string());
            assert_eq!(written.ok(), Some(entry + 1));
        }
        let rivals = ["second", "third"].map(|path| spawn::<2, false>(system, path, &store));
        // Of the two, at most one can still write; the other may have read before that.
        let answers = rivals.map(|rival| {
            let events = added([3, 4]);
            system.run(rival.ask(Write(events, key("last")))).ok()
        });
        assert!(answers.contains(&Some(5)), "{answers:?}");
        assert!(answers.iter().flatten().all(|answer| *answer == 5));
        let fourth = spawn::<2, false>(system, "fourth", &store);
        assert_eq!(read(system, &fourth).entries, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn error_of_a_taken_over_start_is_that_of_the_store() {
    // Between its two reads, another activation appends.
    let mut seen = 0;
    for seed in 0..60 {
        let system = TestSystem::new(seed);
        let store = MemoryStore::seeded(seed, Duration::from_millis(5));
        let first = spawn::<9, true>(&system, "first", &store);
        assert_eq!(write(&system, &first, added([1]), "1").ok(), Some(1));
        let second = spawn::<9, true>(&system, "second", &store);
        let third = spawn::<9, true>(&system, "third", &store);
        let _ = system.run(async {
            let ask = |actor: &ActorRef<LedgerMessage>| {
                let actor = actor.clone();
                async move { actor.ask(Write(added([2]), key("2"))).await }
            };
            tokio::join!(ask(&third), ask(&second))
        });
        for actor in [second, third] {
            if actor.is_alive() {
                continue;
            }
            let exit = system.run(actor.stopped());
            match durable_error(&exit) {
                DurableError::NotLoaded {
                    source: StoreError::WrongSequence { .. },
                    ..
                } => seen += 1,
                DurableError::NotSaved { .. } => {}
                error => panic!("{error}"),
            }
        }
    }
    assert!(seen > 0, "no start was taken over");
}
