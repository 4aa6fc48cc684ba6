//! Bytes of the heap of entities that are awake, and of those that sleep.

use std::convert::Infallible;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use strowger::{Actor, ActorRef, ActorSystem, Ask, Context};
use strowger_bench::{Case, LiveBytes, Plan, workers};
use strowger_durable::DurableActor as _;
use strowger_durable::store::{Durability, EntityId, Store as _};
use tokio::runtime::Runtime;

use crate::register::{Register, Registers, Save, Sleep, wait_until};
use crate::{Databases, key, value};

/// Number of entities behind a figure.
const ENTITIES: u64 = 5000;

/// Measures entities beside actors with the same state that are not stored.
pub(crate) fn measure(plan: &Plan, databases: &Databases) {
    let runtime = Rc::new(workers(0, 2));
    let case = |id, subject, bytes: fn(&Runtime, &Path) -> i64| {
        let (runtime, path) = (Rc::clone(&runtime), databases.path("heap", subject));
        Case::counted(id, subject, "bytes", move || {
            let bytes = bytes(&runtime, &path);
            Ok((bytes as f64 / ENTITIES as f64, ENTITIES))
        })
    };
    plan.run(vec![
        case("awake_bytes", "strowger", |runtime, path| {
            Heap::measure(runtime, path).awake
        }),
        case("awake_bytes", "plain actor", |runtime, _| plain(runtime)),
        case("asleep_bytes", "strowger", |runtime, path| {
            Heap::measure(runtime, path).asleep
        }),
    ]);
}

/// The bytes of the heap of all entities, without those of the database.
struct Heap {
    /// While all of them are awake and have nothing to do.
    awake: i64,
    /// After all of them were awake and went to sleep.
    asleep: i64,
}

impl Heap {
    fn measure(runtime: &Runtime, path: &Path) -> Self {
        runtime.block_on(async {
            let registers = Registers::open(path, Durability::Process);
            for number in 0..ENTITIES {
                registers.save(key(number), value(number)).await;
            }
            registers.close().await;
            let registers = Registers::open(path, Durability::Process);
            // From now on, the database has all it keeps of rows that were read.
            take_all_over(&registers).await;
            let bytes = LiveBytes::watch();
            // Each activation takes its entity over, which is a write that the database buffers.
            take_all_over(&registers).await;
            let buffered = bytes.now();
            for number in 0..ENTITIES {
                assert_eq!(registers.get(key(number)).await, value(number));
            }
            let awake = bytes.now() - 2 * buffered;
            for number in 0..ENTITIES {
                let register = registers.kind.get(key(number)).expect("the key is short");
                register.tell(Sleep).await.expect("the register is awake");
            }
            wait_until(|| registers.kind.awake().is_empty()).await;
            // The last of them may still be freed.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let asleep = bytes.now() - 2 * buffered;
            drop(bytes);
            registers.close().await;
            Self { awake, asleep }
        })
    }
}

/// Takes all entities over and reads them, as their activations do.
async fn take_all_over(registers: &Registers) {
    for number in 0..ENTITIES {
        let entity = EntityId::new(Register::KIND, key(number)).expect("the key is short");
        let store = &registers.store;
        store.lease(&entity).await.expect("the disk has room");
        let read = store.read(&entity).await.expect("the entity is intact");
        assert!(!read.rows.is_empty(), "the entity is stored");
    }
}

/// An actor with the state of a register that is not stored.
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
        self.count += self.value.len() as u64;
        ask.reply.send(self.count);
        Ok(())
    }
}

/// Returns the bytes of the heap of as many plain actors that have nothing to do.
fn plain(runtime: &Runtime) -> i64 {
    runtime.block_on(async {
        let system = ActorSystem::new("bench").expect("the system starts");
        let mut actors: Vec<ActorRef<Ask<Save>>> = Vec::with_capacity(ENTITIES as usize);
        let bytes = LiveBytes::watch();
        for number in 0..ENTITIES {
            let actor = system.spawn::<PlainRegister>(key(number), ());
            let actor = actor.expect("the key is free");
            assert_eq!(actor.ask(Save(value(number))).await, Ok(100));
            actors.push(actor);
        }
        let held = bytes.now();
        drop(bytes);
        system.shutdown(Duration::from_secs(60)).await;
        held
    })
}
