//! Saves of values of 100 bytes.

use std::cell::RefCell;
use std::future::Future;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use strowger_bench::{Case, Plan, Sample, workers};
use strowger_durable::store::Durability;
use tokio::runtime::Runtime;

use crate::database::{Database, Fjall, LogFile, Sqlite, WriterThread};
use crate::peer::{self, PeerProgram, PeerSaver};
use crate::register::Registers;
use crate::{Databases, key, value};

/// Number of entities of the rows with many.
pub(crate) const MANY: u64 = 10_000;
/// Number of callers of the rows with many entities. Each saves to its own part of the entities.
pub(crate) const CALLERS: u64 = 1000;

/// Measures one entity with one caller, and many with many callers in both modes.
pub(crate) fn measure(plan: &Plan, databases: &Databases) {
    let mut row = SaveRow::new(databases, "save", Durability::Process, 1, 1);
    row.add::<Registers>("strowger");
    row.add::<Blocking<Fjall>>("fjall");
    row.add::<Blocking<Sqlite>>("sqlite");
    row.add::<Threaded<Fjall>>("fjall thread");
    row.add::<Threaded<Sqlite>>("sqlite thread");
    row.add::<Blocking<LogFile>>("std");
    row.run(plan);
    for (id, durability) in [
        ("save_10k", Durability::Process),
        ("save_10k_disk", Durability::Disk),
    ] {
        let mut row = SaveRow::new(databases, id, durability, MANY, CALLERS);
        row.add::<Registers>("strowger");
        row.add::<Threaded<Fjall>>("fjall thread");
        row.add::<Threaded<Sqlite>>("sqlite thread");
        if durability == Durability::Disk {
            peer::PROGRAMS
                .iter()
                .for_each(|program| row.add_peer(program));
        }
        row.run(plan);
    }
}

/// A way to save values.
trait Subject: Send + Sync + Sized + 'static {
    fn open(path: &Path, durability: Durability) -> Self;

    /// Saves the value of a key for the nth time.
    fn save(&self, key: String, value: String, nth: u64) -> impl Future<Output = ()> + Send;

    fn close(self) -> impl Future<Output = ()>;

    /// Opens the database again, and returns the values of keys.
    fn read_again(
        path: &Path,
        keys: impl Iterator<Item = String>,
    ) -> impl Future<Output = Vec<String>>;
}

impl Subject for Registers {
    fn open(path: &Path, durability: Durability) -> Self {
        Self::open(path, durability)
    }

    async fn save(&self, key: String, value: String, nth: u64) {
        let count = Self::save(self, key, value).await;
        assert_eq!(count, nth, "every save is counted once");
    }

    async fn close(self) {
        Self::close(self).await;
    }

    async fn read_again(path: &Path, keys: impl Iterator<Item = String>) -> Vec<String> {
        let registers = Self::open(path, Durability::Process);
        let mut values = Vec::new();
        for key in keys {
            values.push(registers.get(key).await);
        }
        Self::close(registers).await;
        values
    }
}

/// A database that is called on the thread of the caller, and blocks it.
struct Blocking<D>(Mutex<D>);

impl<D: Database> Subject for Blocking<D> {
    fn open(path: &Path, durability: Durability) -> Self {
        Self(Mutex::new(D::open(path, durability)))
    }

    async fn save(&self, key: String, value: String, _: u64) {
        let mut database = self.0.lock().expect("no caller panics");
        database.write(&[(key, value)]);
    }

    async fn close(self) {}

    async fn read_again(path: &Path, keys: impl Iterator<Item = String>) -> Vec<String> {
        let mut database = D::open(path, Durability::Process);
        keys.map(|key| database.read(&key)).collect()
    }
}

/// A database that a thread of its own writes, while callers await the write.
struct Threaded<D>(WriterThread, PhantomData<fn() -> D>);

impl<D: Database> Subject for Threaded<D> {
    fn open(path: &Path, durability: Durability) -> Self {
        Self(WriterThread::open::<D>(path, durability), PhantomData)
    }

    async fn save(&self, key: String, value: String, _: u64) {
        self.0.save((key, value)).await;
    }

    async fn close(self) {
        self.0.close();
    }

    async fn read_again(path: &Path, keys: impl Iterator<Item = String>) -> Vec<String> {
        Blocking::<D>::read_again(path, keys).await
    }
}

/// The work of a row.
#[derive(Clone, Copy)]
struct Load {
    durability: Durability,
    entities: u64,
    /// Number of callers, a divisor of the number of entities.
    callers: u64,
}

/// The subjects of a row.
struct SaveRow<'a> {
    databases: &'a Databases,
    id: &'static str,
    load: Load,
    cases: Vec<Case>,
    checks: Vec<Box<dyn FnOnce()>>,
}

impl<'a> SaveRow<'a> {
    fn new(
        databases: &'a Databases,
        id: &'static str,
        durability: Durability,
        entities: u64,
        callers: u64,
    ) -> Self {
        Self {
            databases,
            id,
            load: Load {
                durability,
                entities,
                callers,
            },
            cases: Vec::new(),
            checks: Vec::new(),
        }
    }

    fn add<S: Subject>(&mut self, subject: &'static str) {
        let path = self.databases.path(self.id, subject);
        let saver = Rc::new(RefCell::new(Saver::<S>::new(path, self.load)));
        let measured = Rc::clone(&saver);
        let case = Case::new(self.id, subject, move |operations| {
            measured.borrow_mut().sample(operations)
        });
        self.cases.push(case);
        self.checks
            .push(Box::new(move || saver.borrow_mut().check()));
    }

    /// Adds a peer that runs in a process of its own.
    fn add_peer(&mut self, program: &'static PeerProgram) {
        let path = self.databases.path(self.id, program.subject);
        let command = match program.command(&path) {
            Ok(command) => command,
            Err(reason) => {
                let case = Case::lacking(self.id, program.subject, "ns", reason);
                self.cases.push(case);
                return;
            }
        };
        let peer = Rc::new(RefCell::new(PeerSaver::new(command)));
        let measured = Rc::clone(&peer);
        let case = Case::new(self.id, program.subject, move |operations| {
            measured.borrow_mut().sample(operations)
        });
        self.cases.push(case.in_another_process());
        self.checks
            .push(Box::new(move || peer.borrow_mut().check()));
    }

    fn run(self, plan: &Plan) {
        plan.run(self.cases);
        self.checks.into_iter().for_each(|check| check());
    }
}

/// A subject and what it has saved.
struct Saver<S> {
    path: PathBuf,
    load: Load,
    /// `None` before the first sample.
    opened: Option<(Runtime, Arc<S>)>,
    /// The number of the next value. Entities take turns, so it tells how often each was saved.
    next: u64,
}

impl<S: Subject> Saver<S> {
    const fn new(path: PathBuf, load: Load) -> Self {
        Self {
            path,
            load,
            opened: None,
            next: 0,
        }
    }

    /// Saves about `operations` values. All entities are stored and awake before the clock starts.
    fn sample(&mut self, operations: u64) -> Sample {
        if self.opened.is_none() {
            let runtime = workers(0, 2);
            let subject = {
                let _runtime = runtime.enter();
                S::open(&self.path, self.load.durability)
            };
            self.opened = Some((runtime, Arc::new(subject)));
            self.save(self.load.entities);
        }
        let operations = operations.max(self.load.callers);
        let time = self.save(operations);
        Sample {
            time,
            done: operations,
            checked: operations,
        }
    }

    /// Saves the values of the next `count` numbers, and returns the time that it took.
    fn save(&mut self, count: u64) -> Duration {
        let Some((runtime, subject)) = &self.opened else {
            return Duration::ZERO;
        };
        let Load {
            entities, callers, ..
        } = self.load;
        let (first, end) = (self.next, self.next + count);
        self.next = end;
        let start = Instant::now();
        let callers = (first..first + callers).map(|first| {
            let subject = Arc::clone(subject);
            runtime.spawn(async move {
                // All saves of an entity are by the same caller, one after the other.
                for number in (first..end).step_by(callers as usize) {
                    let (key, nth) = (key(number % entities), number / entities + 1);
                    subject.save(key, value(number), nth).await;
                }
            })
        });
        let callers: Vec<_> = callers.collect();
        runtime.block_on(async {
            for caller in callers {
                caller.await.expect("no caller panics");
            }
        });
        start.elapsed()
    }

    /// Closes the database, opens it again, and checks the last value of each entity.
    fn check(&mut self) {
        let Some((runtime, subject)) = self.opened.take() else {
            return;
        };
        let subject = Arc::into_inner(subject).expect("all callers are done");
        let entities = self.load.entities;
        let values = runtime.block_on(async {
            subject.close().await;
            S::read_again(&self.path, (0..entities).map(key)).await
        });
        assert_eq!(values.len() as u64, entities);
        for (entity, found) in (0..).zip(values) {
            let last = self.next - 1 - (self.next - 1 - entity) % entities;
            assert_eq!(found, value(last), "the last value of {}", key(entity));
        }
    }
}
