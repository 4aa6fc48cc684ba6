//! The program that `cargo xtask chaos durable` kills, and whose power `cargo xtask power-loss`
//! cuts.
//!
//! Two clients of each entity increment it, each increment with a key of its own. The program
//! prints a line before it sends an increment and one after it has the answer, so the order of its
//! lines is the order in which things happened:
//!
//! ```text
//! @opened                             the store is open
//! @refused ERROR                      the store does not open
//! @value ENTITY VALUE                 an entity has been read
//! @damaged ENTITY ERROR               an entity cannot be read, or its state is not a written one
//! @sent ENTITY CLIENT NUMBER          the increment with this number is sent, or repeated
//! @answered ENTITY CLIENT NUMBER VALUE
//! @failed ENTITY CLIENT NUMBER ERROR  the increment has no answer; the client stops
//! @closed                             the store is closed
//! @left                               the process ends and leaves the store open
//! ```

use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strowger::{Accepts, ActorSystem, Ask, BoxError, Request};
use strowger_durable::store::{Durability, FjallOptions, FjallStore};
use strowger_durable::{DurableActor, DurableContext, Entities, EntityRef, IdempotencyKey};
use tokio::task::JoinSet;

const FOLDER: &str = "STROWGER_DURABLE_WORKLOAD";
const PLAN: &str = "STROWGER_DURABLE_PLAN";
const CLIENTS: usize = 2;
/// Maximum time until an answer, on a busy machine under `strace`.
const PATIENCE: Duration = Duration::from_secs(60);

/// Increments; the answer is the new value.
struct Grow(IdempotencyKey);
impl Request for Grow {
    type Reply = u64;
}

/// Returns the value, or `None` if the rest of the state does not belong to it.
struct Inspect;
impl Request for Inspect {
    type Reply = Option<u64>;
}

enum PaddedMessage {
    Grow(Ask<Grow>),
    Inspect(Ask<Inspect>),
}

impl Accepts<Ask<Grow>> for PaddedMessage {
    fn wrap(message: Ask<Grow>) -> Self {
        Self::Grow(message)
    }
}

impl Accepts<Ask<Inspect>> for PaddedMessage {
    fn wrap(message: Ask<Inspect>) -> Self {
        Self::Inspect(message)
    }
}

/// A value, and text made of it, so that a state put together from two writes shows.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PaddedCount {
    value: u64,
    text: String,
}

impl PaddedCount {
    fn set(&mut self, value: u64, length: usize) {
        self.value = value;
        self.text = Self::text(value, length);
    }

    fn text(value: u64, length: usize) -> String {
        let mut text = format!("{value} ").repeat(length / 2);
        text.truncate(length);
        text
    }

    fn is_whole(&self) -> bool {
        self.value == 0 || self.text == Self::text(self.value, self.text.len())
    }
}

/// A counter with a state as long as told.
struct PaddedCounter(usize);

impl DurableActor for PaddedCounter {
    const KIND: &'static str = "padded";

    type State = PaddedCount;
    type Msg = PaddedMessage;
    type Args = usize;
    type Error = BoxError;

    async fn pre_start(
        padding: usize,
        _: &mut PaddedCount,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        // States of different lengths: of a few bytes, and of several sectors.
        let number: usize = cx.entity().key().parse()?;
        Ok(Self(padding * number))
    }

    async fn handle(
        &mut self,
        message: PaddedMessage,
        state: &mut PaddedCount,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match message {
            PaddedMessage::Grow(Ask { request, reply }) => {
                cx.reply_once(&request.0, reply, || {
                    state.set(state.value + 1, self.0);
                    state.value
                });
            }
            PaddedMessage::Inspect(ask) => {
                let value = state.is_whole().then_some(state.value);
                cx.reply(ask.reply, value);
            }
        }
        Ok(())
    }
}

/// The parameters of a run, in the order of their words in the environment variable.
struct Plan {
    durability: Durability,
    /// Bytes of rows in memory before a table is written.
    buffer: u64,
    /// Bytes by which the state of an entity is longer than that of the one before.
    padding: usize,
    /// Number of times that the store is opened.
    openings: u64,
    /// Number of increments of each client after each opening.
    increments: u64,
    /// The next increment of each client, ordered by entity.
    next: Vec<u64>,
    /// `true` to end the process without closing the store.
    leaves: bool,
}

impl FromStr for Plan {
    type Err = BoxError;

    fn from_str(text: &str) -> Result<Self, BoxError> {
        let words: Vec<&str> = text.split(' ').collect();
        let [durability, buffer, padding, openings, increments, next, end] = words[..] else {
            return Err(format!("seven words, not {text:?}").into());
        };
        let next: Result<_, _> = next.split(',').map(str::parse).collect();
        Ok(Self {
            durability: match durability {
                "process" => Durability::Process,
                "disk" => Durability::Disk,
                other => return Err(format!("no durability is called {other}").into()),
            },
            buffer: buffer.parse()?,
            padding: padding.parse()?,
            openings: openings.parse()?,
            increments: increments.parse()?,
            next: next?,
            leaves: match end {
                "leave" => true,
                "close" => false,
                other => return Err(format!("no end is called {other}").into()),
            },
        })
    }
}

#[expect(clippy::print_stdout, reason = "the parent reads it")]
fn tell(line: &str) {
    println!("@{line}");
}

type Counters = Vec<EntityRef<PaddedCounter>>;

async fn read_all(counters: &Counters) {
    for (number, counter) in counters.iter().enumerate() {
        match counter.ask_within(Inspect, PATIENCE).await {
            Ok(Some(value)) => tell(&format!("value {number} {value}")),
            Ok(None) => tell(&format!("damaged {number} a state of two writes")),
            Err(error) => tell(&format!("damaged {number} {error}")),
        }
    }
}

/// Sends increments one after the other, and returns the number of the next one.
async fn client(
    counter: EntityRef<PaddedCounter>,
    entity: usize,
    client: usize,
    first: u64,
    increments: u64,
) -> u64 {
    for number in first..first.saturating_add(increments) {
        let name = format!("{entity} {client} {number}");
        tell(&format!("sent {name}"));
        let key = IdempotencyKey::new(format!("{client}-{number}")).expect("a short key");
        match counter.ask_within(Grow(key), PATIENCE).await {
            Ok(value) => tell(&format!("answered {name} {value}")),
            Err(error) => {
                tell(&format!("failed {name} {error}"));
                return number;
            }
        }
    }
    first.saturating_add(increments)
}

/// Opens the store, increments, and closes it, unless the process ends here.
#[expect(clippy::exit, reason = "the store has to stay open")]
async fn run_once(folder: &Path, plan: &mut Plan) -> Result<bool, BoxError> {
    let options = FjallOptions {
        durability: plan.durability,
        buffer: plan.buffer,
        ..FjallOptions::default()
    };
    let store = match FjallStore::open(folder, options) {
        Ok(store) => store,
        Err(error) => {
            tell(&format!("refused {error}"));
            return Ok(false);
        }
    };
    tell("opened");
    let system = ActorSystem::new("workload")?;
    let entities = Entities::new(Arc::new(store.clone()));
    let kind = entities.start::<PaddedCounter>(&system, "counters", plan.padding)?;
    let keys = 0..plan.next.len() / CLIENTS;
    let counters: Result<Counters, _> = keys.map(|key| kind.get(key.to_string())).collect();
    let counters = counters?;
    read_all(&counters).await;
    let mut clients = JoinSet::new();
    for (at, first) in plan.next.iter().copied().enumerate() {
        let (entity, number) = (at / CLIENTS, at % CLIENTS);
        let (counter, increments) = (counters[entity].clone(), plan.increments);
        clients.spawn(async move {
            let next = client(counter, entity, number, first, increments).await;
            (at, next)
        });
    }
    while let Some(ended) = clients.join_next().await {
        let (at, next) = ended?;
        plan.next[at] = next;
    }
    read_all(&counters).await;
    if plan.leaves {
        tell("left");
        std::process::exit(0);
    }
    drop((counters, kind, entities));
    system.shutdown(PATIENCE).await;
    drop(store);
    tell("closed");
    Ok(true)
}

#[tokio::main(flavor = "current_thread")]
async fn work(folder: &Path, mut plan: Plan) -> Result<(), BoxError> {
    tell("");
    for _ in 0..plan.openings {
        if !run_once(folder, &mut plan).await? {
            break;
        }
    }
    Ok(())
}

/// The program of the child; without its environment variables, it does nothing.
#[test]
fn workload_child() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let plan = std::env::var(PLAN).expect("a plan");
        let plan = plan.parse().expect("a plan");
        work(Path::new(&folder), plan).expect("it runs");
    }
}
