//! Stores of every format so far, opened by this build, and the program that writes them.
//!
//! `fixtures/stores/durable-N` has two stores of format N: `process`, whose process ended without
//! closing it, and `disk`, which was closed. A fixture is never rewritten: a change of the format
//! adds new ones in a new directory, written by the last program that writes the format:
//!
//! ```text
//! STROWGER_DURABLE_FIXTURES=fixtures/stores/durable-4 cargo test -p strowger-durable \
//!     --test durable format::writing
//! ```
//!
//! The test passes two minutes later, when the reminder in them is late.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use strowger::{Accepts, ActorRef, ActorSystem, Ask, BoxError, Request};
use strowger_durable::store::tools::StoppedStore;
use strowger_durable::store::{Durability, EntityId, FjallOptions, FjallStore, Sequence, Store};
use strowger_durable::{
    AnswerWindow, Delivery, DurableActor, DurableContext, Entities, EntityKind, EntityRef,
    IdempotencyKey, Reminder,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use crate::counter::key;
use crate::ledger::{DurableLedger, LedgerMessage, Read, Write, added, ledger};

/// The last format, which this build writes.
const FORMAT: u32 = 3;
/// The folder for new fixtures.
const FIXTURES: &str = "STROWGER_DURABLE_FIXTURES";
/// The folder in which the child writes a store, whose name is that of its durability.
const CHILD: &str = "STROWGER_DURABLE_FIXTURES_CHILD";
const STORES: [(&str, Durability); 2] =
    [("process", Durability::Process), ("disk", Durability::Disk)];

const PATIENCE: Duration = Duration::from_secs(60);
/// A century.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// Increments of the keeper: more than there are between two writes of a head in any format.
const INCREMENTS: u64 = 300;
const EVENTS: u64 = 10;
/// A fixture is as old as its format, and its last answers still have to be in the window.
pub(crate) const ANSWERS_OF_FIXTURES: AnswerWindow = AnswerWindow {
    age: NEVER,
    ..AnswerWindow::DEFAULT
};

/// Increments; the answer is the new value.
struct Increment(IdempotencyKey);
impl Request for Increment {
    type Reply = u64;
}

/// Does something, or nothing; the answer is what there is afterwards.
enum Do {
    Nothing,
    Remind(&'static str, Duration),
    Send(EntityId),
}
impl Request for Do {
    type Reply = Result<View, String>;
}

#[derive(Debug, PartialEq, Eq)]
struct View {
    value: u64,
    /// The reminders that fired, each with `true` if it was late.
    fired: Vec<(String, bool)>,
    /// The messages taken, each with its sender.
    taken: Vec<(String, String)>,
    /// The reminders that are set.
    reminders: Vec<String>,
    undelivered: usize,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Kept {
    value: u64,
    fired: Vec<(String, bool)>,
    taken: Vec<(String, String)>,
}

enum KeeperMessage {
    Increment(Ask<Increment>),
    Do(Ask<Do>),
}

impl Accepts<Ask<Increment>> for KeeperMessage {
    fn wrap(ask: Ask<Increment>) -> Self {
        Self::Increment(ask)
    }
}

impl Accepts<Ask<Do>> for KeeperMessage {
    fn wrap(ask: Ask<Do>) -> Self {
        Self::Do(ask)
    }
}

/// An entity of one of two kinds, with everything that a store keeps for an entity. It reports the
/// names of the reminders that fire and of the senders of messages.
struct Keeper<const RECEIVES: bool>(UnboundedSender<String>);

impl<const RECEIVES: bool> DurableActor for Keeper<RECEIVES> {
    const KIND: &'static str = if RECEIVES { "receiver" } else { "keeper" };
    const ANSWERS: AnswerWindow = ANSWERS_OF_FIXTURES;

    type State = Kept;
    type Msg = KeeperMessage;
    type Args = UnboundedSender<String>;
    type Error = BoxError;

    async fn pre_start(
        observer: UnboundedSender<String>,
        _: &mut Kept,
        _: &mut DurableContext<'_, Self>,
    ) -> Result<Self, BoxError> {
        Ok(Self(observer))
    }

    async fn handle(
        &mut self,
        message: KeeperMessage,
        state: &mut Kept,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        match message {
            KeeperMessage::Increment(Ask { request, reply }) => {
                cx.reply_once(&request.0, reply, || {
                    state.value += 1;
                    state.value
                });
            }
            KeeperMessage::Do(Ask { request, reply }) => {
                let done = match request {
                    Do::Nothing => Ok(()),
                    Do::Remind(name, after) => {
                        let set = cx.set_reminder(name, after, &());
                        set.map_err(|error| error.to_string())
                    }
                    Do::Send(receiver) => {
                        let sent = cx.send_durable(&receiver, &"hello");
                        sent.map_err(|error| error.to_string())
                    }
                };
                let reminders = cx.reminders();
                let view = View {
                    value: state.value,
                    fired: state.fired.clone(),
                    taken: state.taken.clone(),
                    reminders: reminders.iter().map(ToString::to_string).collect(),
                    undelivered: cx.undelivered(),
                };
                cx.reply(reply, done.map(|()| view));
            }
        }
        Ok(())
    }

    async fn remind(
        &mut self,
        reminder: Reminder,
        state: &mut Kept,
        _: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let name = reminder.name().to_owned();
        self.0.send(name.clone())?;
        state.fired.push((name, reminder.is_late()));
        Ok(())
    }

    async fn receive(
        &mut self,
        delivery: Delivery,
        state: &mut Kept,
        _: &mut DurableContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let sender = delivery.sender().to_string();
        self.0.send(sender.clone())?;
        state.taken.push((sender, delivery.decode()?));
        Ok(())
    }
}

/// The keepers on a store, and its ledger.
struct World {
    system: ActorSystem,
    store: FjallStore,
    entities: Entities,
    keepers: EntityKind<Keeper<false>>,
    observer: UnboundedSender<String>,
    reports: UnboundedReceiver<String>,
}

impl World {
    fn open(folder: &Path, durability: Durability) -> Result<Self, BoxError> {
        let options = FjallOptions {
            durability,
            ..FjallOptions::default()
        };
        let store = FjallStore::open(folder, options)?;
        let system = ActorSystem::new("keepers")?;
        let entities = Entities::new(Arc::new(store.clone()));
        let (observer, reports) = unbounded_channel();
        let keepers = entities.start(&system, "keepers", observer.clone())?;
        Ok(Self {
            system,
            store,
            entities,
            keepers,
            observer,
            reports,
        })
    }

    /// Starts the kind that receives messages.
    fn receivers(&self) -> Result<EntityKind<Keeper<true>>, BoxError> {
        let observer = self.observer.clone();
        Ok(self.entities.start(&self.system, "receivers", observer)?)
    }

    fn ledger(&self) -> Result<ActorRef<LedgerMessage>, BoxError> {
        let args = ledger(&self.store, "a", None);
        Ok(self
            .system
            .spawn::<DurableLedger<7, false>>("ledger", args)?)
    }

    async fn report(&mut self) -> Result<String, BoxError> {
        let report = timeout(PATIENCE, self.reports.recv()).await?;
        Ok(report.ok_or("no keeper runs")?)
    }

    async fn close(self) {
        self.system.shutdown(PATIENCE).await;
    }
}

async fn increment(keeper: &EntityRef<Keeper<false>>, number: u64) -> Result<u64, BoxError> {
    let increment = Increment(key(&number.to_string()));
    Ok(keeper.ask_within(increment, PATIENCE).await?)
}

async fn ask<const RECEIVES: bool>(
    keeper: &EntityRef<Keeper<RECEIVES>>,
    action: Do,
) -> Result<View, BoxError> {
    Ok(keeper.ask_within(action, PATIENCE).await??)
}

#[expect(clippy::exit, reason = "the store has to stay open")]
#[tokio::main(flavor = "current_thread")]
async fn write(folder: &Path, durability: Durability) -> Result<(), BoxError> {
    let world = World::open(folder, durability)?;
    let keeper = world.keepers.get("a")?;
    for number in 1..=INCREMENTS {
        assert_eq!(increment(&keeper, number).await?, number);
    }
    ask(&keeper, Do::Remind("soon", PATIENCE)).await?;
    ask(&keeper, Do::Remind("never", NEVER)).await?;
    // Its kind does not run here, so the message stays.
    let receiver = EntityId::new("receiver", "b")?;
    ask(&keeper, Do::Send(receiver)).await?;
    let args = ledger(&world.store, "a", None);
    let ledger = world
        .system
        .spawn::<DurableLedger<7, false>>("ledger", args)?;
    for entry in 1..=EVENTS {
        let write = Write(added([entry]), key(&entry.to_string()));
        assert_eq!(ledger.ask_within(write, PATIENCE).await?, entry);
    }
    if durability == Durability::Process {
        std::process::exit(0);
    }
    world.close().await;
    Ok(())
}

/// The program of the child; without its environment variable, it does nothing.
#[test]
fn writing_child() {
    if let Some(folder) = std::env::var_os(CHILD) {
        for (name, durability) in STORES {
            if Path::new(&folder).ends_with(name) {
                write(Path::new(&folder), durability).expect("it writes");
            }
        }
    }
}

fn tar(arguments: &[&str], archive: &Path, folder: &Path, what: &str) {
    let mut tar = Command::new("tar");
    tar.args(arguments).arg(archive).arg("-C").arg(folder);
    let status = tar.arg(what).status();
    assert!(status.expect("there is a tar").success());
}

/// Writes new fixtures, if it is told where.
#[test]
fn writing_of_fixtures() {
    let Some(fixtures) = std::env::var_os(FIXTURES) else {
        return;
    };
    // Tests run in the folder of their package.
    let fixtures = Path::new("../..").join(fixtures);
    std::fs::create_dir(&fixtures).expect("a fixture is never rewritten");
    for (name, _) in STORES {
        let folder = tempfile::tempdir().expect("a folder");
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program);
        child.args(["--exact", "format::writing_child"]);
        child.env(CHILD, folder.path().join(name));
        child.env_remove(FIXTURES);
        assert!(child.status().expect("it runs").success());
        let archive = fixtures.join(format!("{name}.tar.gz"));
        tar(&["--sparse", "-czf"], &archive, folder.path(), name);
    }
}

/// Reads what the fixtures contain, and goes on with it.
async fn go_on(world: &mut World) -> Result<(), BoxError> {
    // Without a message, the reminder that is due wakes the keeper.
    assert_eq!(world.report().await?, "soon");
    let keeper = world.keepers.get("a")?;
    // The last answers were kept.
    assert_eq!(increment(&keeper, INCREMENTS).await?, INCREMENTS);
    assert_eq!(ask(&keeper, Do::Nothing).await?, keeper_view(INCREMENTS, 1));
    let receiver = world.receivers()?.get("b")?;
    assert_eq!(world.report().await?, "keeper/a");
    let received = ask(&receiver, Do::Nothing).await?;
    let message = ("keeper/a".to_owned(), "hello".to_owned());
    assert_eq!(received.taken, [message]);
    assert_eq!(increment(&keeper, INCREMENTS + 1).await?, INCREMENTS + 1);
    timeout(PATIENCE, async {
        while ask(&keeper, Do::Nothing).await?.undelivered > 0 {}
        Ok::<(), BoxError>(())
    })
    .await??;

    let rows = world.store.read(&EntityId::new("ledger", "a")?).await?;
    assert_eq!(rows.sequence, Sequence(EVENTS));
    let ledger = world.ledger()?;
    let last = Write(added([EVENTS]), key(&EVENTS.to_string()));
    assert_eq!(ledger.ask_within(last, PATIENCE).await?, EVENTS);
    let next = Write(added([EVENTS + 1]), key("next"));
    assert_eq!(ledger.ask_within(next, PATIENCE).await?, EVENTS + 1);
    Ok(())
}

/// Reads what this build has written.
async fn read_again(world: &World) -> Result<(), BoxError> {
    let keeper = world.keepers.get("a")?;
    assert_eq!(
        ask(&keeper, Do::Nothing).await?,
        keeper_view(INCREMENTS + 1, 0)
    );
    assert_eq!(increment(&keeper, INCREMENTS + 1).await?, INCREMENTS + 1);
    let book = world.ledger()?.ask_within(Read, PATIENCE).await?;
    assert!(book.entries.into_iter().eq(1..=EVENTS + 1));
    Ok(())
}

fn keeper_view(value: u64, undelivered: usize) -> View {
    View {
        value,
        fired: vec![("soon".to_owned(), true)],
        taken: vec![],
        reminders: vec!["never".to_owned()],
        undelivered,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn read(folder: &Path, durability: Durability) -> Result<(), BoxError> {
    let mut world = World::open(folder, durability)?;
    go_on(&mut world).await?;
    world.close().await;
    let world = World::open(folder, durability)?;
    read_again(&world).await?;
    world.close().await;
    Ok(())
}

#[test]
fn store_of_every_format_is_complete_and_usable() {
    for format in 1..=FORMAT {
        for (name, durability) in STORES {
            let stores = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stores");
            let archive: PathBuf = stores.join(format!("durable-{format}/{name}.tar.gz"));
            let folder = tempfile::tempdir().expect("a folder");
            tar(&["-xzf"], &archive, folder.path(), name);
            let path = folder.path().join(name);
            let mark = std::fs::read(path.join("mark")).expect("it is readable");
            assert_eq!(
                u32::from(mark[3]),
                format,
                "the format of a mark is its fourth byte"
            );
            let store = StoppedStore::open(&path).expect("it is stopped");
            let report = store.check(&mut |_| {}).expect("it is readable");
            assert!(report.is_intact(), "{format}, {name}: {report:?}");
            drop(store);
            let done = read(&path, durability);
            done.unwrap_or_else(|error| panic!("format {format}, {name}: {error}"));
        }
    }
}
