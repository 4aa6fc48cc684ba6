//! The first answer from a store with many entities.

use std::cell::OnceCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger_bench::{Case, Plan, workers};
use strowger_durable::DurableActor as _;
use strowger_durable::store::{Batch, Durability, EntityId, Fence, Sequence, Store as _};
use tokio::runtime::Runtime;

use crate::database::{Database as _, Fjall, Pair};
use crate::register::{Register, Registers};
use crate::{Databases, GROUP, key, value};

const ID: &str = "first_answer_1m";

/// Measures the time from opening a store to the first answer.
pub(crate) fn measure(plan: &Plan, databases: &Databases) {
    let entities = if plan.is_quick() { 20_000 } else { 1_000_000 };
    let runtime = Rc::new(workers(0, 2));
    let case = |subject, fill: Fill, start: Start| {
        let (runtime, path) = (Rc::clone(&runtime), databases.path(ID, subject));
        let filled = OnceCell::new();
        let count = move || {
            filled.get_or_init(|| fill(&runtime, &path, entities));
            let time = start(&runtime, &path, entities / 2);
            Ok((time.as_secs_f64() * 1000.0, 1))
        };
        Case::counted(ID, subject, "ms", count).with_note("entities", entities)
    };
    plan.run(vec![
        case("strowger", fill_store, start_store),
        case("fjall", fill_by_hand, start_by_hand),
    ]);
}

/// Fills a database with the values of the first numbers, and closes it.
type Fill = fn(&Runtime, &Path, u64);

/// Opens a database, and returns the time until the value of a number was read.
type Start = fn(&Runtime, &Path, u64) -> Duration;

/// Stores all entities: the rows of the first one as its actor has saved them, and those of
/// the others with their own values instead.
fn fill_store(runtime: &Runtime, path: &Path, entities: u64) {
    runtime.block_on(async {
        let registers = Registers::open(path, Durability::Process);
        assert_eq!(registers.save(key(0), value(0)).await, 1);
        let store = Arc::clone(&registers.store);
        let saved = store.read(&id(0)).await.expect("the entity is stored");
        let saved = Arc::new(saved);
        let writers = (1..=GROUP as u64).map(|first| {
            let (store, saved) = (Arc::clone(&store), Arc::clone(&saved));
            tokio::spawn(async move {
                for number in (first..entities).step_by(GROUP) {
                    let mut batch = Batch::new();
                    for row in &saved.rows {
                        let bytes = with_value(&row.value, number);
                        batch.put(row.table, row.key.clone(), bytes);
                    }
                    let appended = store.append(&id(number), Sequence(0), Fence(0), batch);
                    let sequence = appended.await.expect("the disk has room");
                    assert_eq!(sequence, Sequence(1), "the entity is new");
                }
            })
        });
        for writer in writers.collect::<Vec<_>>() {
            writer.await.expect("no writer panics");
        }
        drop(store);
        registers.close().await;
    });
}

fn id(number: u64) -> EntityId {
    EntityId::new(Register::KIND, key(number)).expect("the key is short")
}

/// Returns the bytes of a row of the first entity with the value of another one.
fn with_value(row: &[u8], number: u64) -> Vec<u8> {
    let (first, own) = (value(0), value(number));
    let at = row
        .windows(first.len())
        .position(|part| part == first.as_bytes());
    let at = at.expect("the state has the value");
    let mut bytes = row.to_vec();
    bytes[at..at + own.len()].copy_from_slice(own.as_bytes());
    bytes
}

fn start_store(runtime: &Runtime, path: &Path, number: u64) -> Duration {
    runtime.block_on(async {
        let start = Instant::now();
        let registers = Registers::open(path, Durability::Process);
        let found = registers.get(key(number)).await;
        let time = start.elapsed();
        assert_eq!(found, value(number));
        registers.close().await;
        time
    })
}

fn fill_by_hand(_: &Runtime, path: &Path, entities: u64) {
    let mut database = Fjall::open(path, Durability::Process);
    let numbers: Vec<u64> = (0..entities).collect();
    for numbers in numbers.chunks(GROUP) {
        let pair = |number: &u64| (key(*number), value(*number));
        let pairs: Vec<Pair> = numbers.iter().map(pair).collect();
        database.write(&pairs);
    }
}

fn start_by_hand(_: &Runtime, path: &Path, number: u64) -> Duration {
    let start = Instant::now();
    let mut database = Fjall::open(path, Durability::Process);
    let found = database.read(&key(number));
    let time = start.elapsed();
    assert_eq!(found, value(number));
    time
}
