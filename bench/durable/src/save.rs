//! Saving values of 100 bytes.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use strowger_bench::{Case, Sample, workers};
use strowger_durable::store::Durability;
use tokio::runtime::Runtime;

use crate::database::{Database, Fjall, Sqlite, Writer};
use crate::register::Registers;
use crate::{Place, value};

/// Returns the cases of a row: so many callers save values under so many keys in turn.
pub fn cases(
    id: &'static str,
    durability: Durability,
    keys: u64,
    callers: u64,
    place: &Place,
) -> Vec<Case> {
    let load = Load {
        durability,
        keys,
        callers,
    };
    vec![
        case::<Registers>(id, "strowger", load, place),
        case::<ByHand<Fjall>>(id, "fjall", load, place),
        case::<ByHand<Sqlite>>(id, "sqlite", load, place),
    ]
}

#[derive(Clone, Copy)]
struct Load {
    durability: Durability,
    keys: u64,
    callers: u64,
}

/// A way to save values.
trait Subject: Send + Sync + Sized + 'static {
    fn open(path: &Path, durability: Durability) -> Self;

    fn save(&self, key: String, value: String) -> impl Future<Output = ()> + Send;

    /// Closes the database, opens it again, and returns a value.
    fn read_again(self, path: PathBuf, key: String) -> impl Future<Output = String> + Send;
}

impl Subject for Registers {
    fn open(path: &Path, durability: Durability) -> Self {
        Self::open(path, durability)
    }

    async fn save(&self, key: String, value: String) {
        assert!(Self::save(self, key, value).await > 0, "it was counted");
    }

    async fn read_again(self, path: PathBuf, key: String) -> String {
        self.close().await;
        let again = Self::open(&path, Durability::Process);
        let value = again.get(key).await;
        again.close().await;
        value
    }
}

struct ByHand<D>(Writer, PhantomData<fn() -> D>);

impl<D: Database> Subject for ByHand<D> {
    fn open(path: &Path, durability: Durability) -> Self {
        Self(Writer::open::<D>(path, durability), PhantomData)
    }

    async fn save(&self, key: String, value: String) {
        self.0.save(key, value).await;
    }

    async fn read_again(self, path: PathBuf, key: String) -> String {
        self.0.close();
        let mut again = D::open(&path, Durability::Process);
        again.read(&key).expect("it was acknowledged")
    }
}

fn case<S: Subject>(id: &'static str, subject: &'static str, load: Load, place: &Place) -> Case {
    let place = place.clone();
    let runtime = workers(0, 2);
    Case::new(id, subject, move |operations| {
        runtime.block_on(async { sample::<S>(&runtime, load, operations, &place).await })
    })
}

/// Saves about so many values in a new database, and reads the last one back.
async fn sample<S: Subject>(
    runtime: &Runtime,
    load: Load,
    operations: u64,
    place: &Place,
) -> Sample {
    let path = place.new_path();
    let subject = Arc::new(S::open(&path, load.durability));
    // Every key exists before the clock starts: an entity is awake, a row is replaced.
    save_all(runtime, &subject, load, load.keys, 0).await;
    let operations = operations.max(load.callers);
    let start = Instant::now();
    save_all(runtime, &subject, load, operations, load.keys).await;
    let time = start.elapsed();
    let last = load.keys + operations - 1;
    let subject = Arc::into_inner(subject).expect("all callers are done");
    let found = subject
        .read_again(path.clone(), key(last % load.keys))
        .await;
    assert_eq!(found, value(last), "the last acknowledged value is stored");
    std::fs::remove_dir_all(&path).expect("it is our own");
    Sample {
        time,
        done: operations,
        checked: operations,
    }
}

/// Saves the values of so many numbers from `first` on, each under the key of its number.
async fn save_all<S: Subject>(
    runtime: &Runtime,
    subject: &Arc<S>,
    load: Load,
    count: u64,
    first: u64,
) {
    let next = Arc::new(AtomicU64::new(first));
    let callers = (0..load.callers).map(|_| {
        let (subject, next) = (Arc::clone(subject), Arc::clone(&next));
        runtime.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= first + count {
                    return;
                }
                subject.save(key(number % load.keys), value(number)).await;
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("the caller does not panic");
    }
}

fn key(number: u64) -> String {
    format!("register-{number}")
}
