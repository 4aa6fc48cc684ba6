//! Starting with many stored entities, and the memory of those that sleep and those that are awake.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use strowger::{Actor, ActorRef, ActorSystem, Ask, Context};
use strowger_bench::{Case, LiveBytes, workers};
use strowger_durable::store::Durability;
use tokio::runtime::Runtime;

use crate::register::{Registers, Save};
use crate::{Place, value};

/// Number of callers that fill the store.
const CALLERS: u64 = 256;
/// Number of awake entities behind a figure.
const AWAKE: u64 = 5000;

/// Returns the rows of a store with so many entities, which is filled once.
pub fn cases(entities: u64, place: &Place) -> Vec<Case> {
    let store = Rc::new(StoredEntities {
        runtime: workers(0, 2),
        place: place.clone(),
        entities,
        path: OnceCell::new(),
    });
    let (sleeping, awake, plain) = (Rc::clone(&store), Rc::clone(&store), Rc::clone(&store));
    vec![
        Case::counted("first_answer", "strowger", "ns", move || {
            Ok((store.first_answer(), entities))
        })
        .with_note("entities", entities),
        Case::counted("asleep_bytes", "strowger", "bytes", move || {
            Ok((sleeping.bytes_asleep(), entities))
        })
        .with_note("entities", entities),
        Case::counted("awake_bytes", "strowger", "bytes", move || {
            Ok((awake.bytes_awake(), AWAKE))
        }),
        Case::counted("awake_bytes", "plain actor", "bytes", move || {
            Ok((bytes_of_plain(&plain.runtime), AWAKE))
        }),
    ]
}

fn key(number: u64) -> String {
    format!("register-{number}")
}

/// A store with many entities.
struct StoredEntities {
    runtime: Runtime,
    place: Place,
    entities: u64,
    /// Where the store is, once it is filled.
    path: OnceCell<PathBuf>,
}

impl StoredEntities {
    fn path(&self) -> &Path {
        self.path.get_or_init(|| self.fill(self.entities))
    }

    /// Stores so many entities, closes the store, and returns its path.
    fn fill(&self, entities: u64) -> PathBuf {
        let path = self.place.new_path();
        let registers = Arc::new(Registers::open(&path, Durability::Process));
        self.runtime.block_on(async {
            let callers = (0..CALLERS).map(|caller| {
                let registers = Arc::clone(&registers);
                tokio::spawn(async move {
                    for number in (caller..entities).step_by(CALLERS as usize) {
                        registers.save(key(number), value(number)).await;
                    }
                })
            });
            for caller in callers.collect::<Vec<_>>() {
                caller.await.expect("it does not panic");
            }
            let registers = Arc::into_inner(registers).expect("all callers are done");
            registers.close().await;
        });
        path
    }

    /// Returns the time from opening the store to the first answer, in nanoseconds.
    fn first_answer(&self) -> f64 {
        let path = self.path();
        self.runtime.block_on(async {
            let number = self.entities / 2;
            let start = Instant::now();
            let registers = Registers::open(path, Durability::Process);
            let found = registers.get(key(number)).await;
            let time = start.elapsed();
            assert_eq!(found, value(number), "it is stored");
            registers.close().await;
            time.as_nanos() as f64
        })
    }

    /// Returns the bytes of the heap for each stored entity, when one of them has answered.
    fn bytes_asleep(&self) -> f64 {
        let path = self.path();
        self.runtime.block_on(async {
            let bytes = LiveBytes::watch();
            let registers = Registers::open(path, Durability::Process);
            assert_eq!(registers.get(key(0)).await, value(0), "it is stored");
            let held = bytes.now();
            registers.close().await;
            held as f64 / self.entities as f64
        })
    }

    /// Returns the bytes of the heap for each entity that is awake and has nothing to do.
    fn bytes_awake(&self) -> f64 {
        // Of a few entities, the database keeps all rows in memory from its start on, and so
        // nothing is counted that it keeps of what it reads.
        let path = self.fill(AWAKE);
        self.runtime.block_on(async {
            let registers = Registers::open(&path, Durability::Process);
            let bytes = LiveBytes::watch();
            for number in 0..AWAKE {
                assert_eq!(registers.get(key(number)).await, value(number));
            }
            let held = bytes.now();
            registers.close().await;
            held as f64 / AWAKE as f64
        })
    }
}

/// An actor with the same state that is not stored.
struct PlainRegister {
    value: String,
    count: u64,
}

impl Actor for PlainRegister {
    type Msg = Ask<Save>;
    type Args = ();
    type Error = Infallible;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self {
            value: String::new(),
            count: 0,
        })
    }

    async fn handle(&mut self, ask: Ask<Save>, _: &mut Context<Self>) -> Result<(), Infallible> {
        self.value = ask.request.0;
        self.count += 1;
        ask.reply.send(self.count);
        Ok(())
    }
}

/// Returns the bytes of the heap for each plain actor that has nothing to do.
fn bytes_of_plain(runtime: &Runtime) -> f64 {
    runtime.block_on(async {
        let system = ActorSystem::new("bench").expect("it starts");
        let mut actors: Vec<ActorRef<Ask<Save>>> = Vec::with_capacity(AWAKE as usize);
        let bytes = LiveBytes::watch();
        for number in 0..AWAKE {
            let actor = system.spawn::<PlainRegister>(key(number), ());
            let actor = actor.expect("its key is free");
            assert_eq!(actor.ask(Save(value(number))).await, Ok(1));
            actors.push(actor);
        }
        let held = bytes.now();
        system.shutdown(std::time::Duration::from_secs(60)).await;
        held as f64 / AWAKE as f64
    })
}
