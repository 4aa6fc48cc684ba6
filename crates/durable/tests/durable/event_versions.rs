//! Events and snapshots of earlier and later versions, from a fixture that version 1 wrote.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use strowger::testing::TestSystem;
use strowger::{Ask, BoxError, Exit, Request};
use strowger_durable::store::{Batch, EntityId, EventNumber, MemoryStore, Row, Store, Table};
use strowger_durable::{
    Durable, DurableArgs, DurableError, EventContext, EventSourced, Sourced, StoredPart,
    StoredValue,
};

/// The rows of an account of version 1: table, key and value, in hexadecimal digits.
const FIXTURE: &str = include_str!("../fixtures/account_v1.txt");

/// Pays in; the answer is the owner and the balance.
struct Pay(i64);
impl Request for Pay {
    type Reply = (String, i64);
}

/// The types of the first version, in euros.
mod v1 {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    pub(super) enum Event {
        Opened { owner: String },
        Deposited { euros: i64 },
    }

    #[derive(Default, Serialize, Deserialize)]
    pub(super) struct State {
        pub(super) owner: String,
        pub(super) euros: i64,
    }
}

/// The events of the second version, in cents. Its state was that of version 1.
mod v2 {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    pub(super) enum Event {
        Opened { owner: String },
        Deposited { cents: i64 },
    }
}

struct AccountV1;

impl EventSourced for AccountV1 {
    const KIND: &'static str = "account";
    const SNAPSHOT_EVERY: u64 = 3;
    type State = v1::State;
    type Event = v1::Event;
    type Msg = Ask<Pay>;
    type Args = ();
    type Error = BoxError;

    fn apply(state: &mut v1::State, event: v1::Event) {
        match event {
            v1::Event::Opened { owner } => state.owner = owner,
            v1::Event::Deposited { euros } => state.euros += euros,
        }
    }

    async fn pre_start(_: (), cx: &mut EventContext<'_, Self>) -> Result<Self, BoxError> {
        if cx.last_event() == EventNumber(0) {
            let owner = "Ada".to_owned();
            cx.emit(&v1::Event::Opened { owner });
        }
        Ok(Self)
    }

    async fn handle(
        &mut self,
        ask: Ask<Pay>,
        cx: &mut EventContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let euros = ask.request.0;
        cx.emit(&v1::Event::Deposited { euros });
        let answer = (cx.state().owner.clone(), cx.state().euros);
        cx.reply(ask.reply, answer);
        Ok(())
    }
}

/// The third version: events are flat and have another name, and the state is in cents.
#[derive(Serialize, Deserialize)]
enum Event {
    Opened { owner: String },
    Posted { cents: i64, text: String },
}

#[derive(Default, Serialize, Deserialize)]
struct State {
    owner: String,
    cents: i64,
}

/// The account of version 3, which can convert snapshots or not.
struct Account<const CONVERTS: bool>;

impl<const CONVERTS: bool> EventSourced for Account<CONVERTS> {
    const KIND: &'static str = "account";
    const VERSION: u32 = 3;
    const SNAPSHOT_VERSION: u32 = 2;
    const SNAPSHOT_EVERY: u64 = 3;
    type State = State;
    type Event = Event;
    type Msg = Ask<Pay>;
    type Args = ();
    type Error = BoxError;

    fn apply(state: &mut State, event: Event) {
        match event {
            Event::Opened { owner } => state.owner = owner,
            Event::Posted { cents, .. } => state.cents += cents,
        }
    }

    async fn pre_start(_: (), _: &mut EventContext<'_, Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(
        &mut self,
        ask: Ask<Pay>,
        cx: &mut EventContext<'_, Self>,
    ) -> Result<(), BoxError> {
        let text = "by version 3".to_owned();
        let cents = ask.request.0;
        cx.emit(&Event::Posted { cents, text });
        let answer = (cx.state().owner.clone(), cx.state().cents);
        cx.reply(ask.reply, answer);
        Ok(())
    }

    fn upcast_event(version: u32, event: StoredValue) -> Result<StoredValue, BoxError> {
        let next = match version {
            1 => StoredValue::encode(&match event.decode()? {
                v1::Event::Opened { owner } => v2::Event::Opened { owner },
                v1::Event::Deposited { euros } => v2::Event::Deposited {
                    cents: euros.checked_mul(100).ok_or("too many euros")?,
                },
            }),
            _ => StoredValue::encode(&match event.decode()? {
                v2::Event::Opened { owner } => Event::Opened { owner },
                v2::Event::Deposited { cents } => Event::Posted {
                    cents,
                    text: String::new(),
                },
            }),
        };
        Ok(next?)
    }

    fn upcast_snapshot(_: u32, snapshot: StoredValue) -> Result<Option<StoredValue>, BoxError> {
        if !CONVERTS {
            return Ok(None);
        }
        let v1::State { owner, euros } = snapshot.decode()?;
        let cents = euros.checked_mul(100).ok_or("too many euros")?;
        Ok(Some(StoredValue::encode(&State { owner, cents })?))
    }
}

fn entity() -> EntityId {
    EntityId::new("account", "a").expect("a short name")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn unhex(text: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).expect("two digits");
    (0..text.len()).step_by(2).map(byte).collect()
}

/// Returns the rows of the fixture.
fn fixture() -> Vec<Row> {
    let rows = FIXTURE.lines().map(|line| {
        let parts: Vec<&str> = line.split(' ').collect();
        let [table, key, value] = parts[..] else {
            panic!("{line}");
        };
        let table = match table {
            "events" => Table::Events,
            "snapshot" => Table::Snapshot,
            table => panic!("{table}"),
        };
        let (key, value) = (unhex(key), unhex(value));
        Row { table, key, value }
    });
    rows.collect()
}

fn number(row: &Row) -> u64 {
    u64::from_be_bytes(row.key.as_slice().try_into().expect("eight bytes"))
}

/// Returns a store that has an account with some rows.
fn store_with(system: &TestSystem, rows: impl IntoIterator<Item = Row>) -> MemoryStore {
    let store = MemoryStore::new();
    let mut batch = Batch::new();
    for row in rows {
        batch.put(row.table, row.key, row.value);
    }
    system.run(async {
        let fence = store.lease(&entity()).await.expect("a lease");
        let found = store.read(&entity()).await.expect("it can be read");
        let appended = store.append(&entity(), found.sequence, fence, batch).await;
        appended.expect("it is written");
    });
    store
}

/// Returns the answer of an account to a payment, or its exit.
fn pay<A>(
    system: &TestSystem,
    path: &str,
    store: &MemoryStore,
    amount: i64,
) -> Result<(String, i64), Exit>
where
    A: EventSourced<Args = (), Msg = Ask<Pay>>,
{
    let args = DurableArgs::new(Arc::new(store.clone()), "a", ()).expect("a short key");
    let account = system.spawn::<Durable<Sourced<A>>>(path.to_owned(), args);
    let answer = system.run(account.ask(Pay(amount)));
    account.stop();
    let exit = system.run(account.stopped());
    answer.map_err(|_| exit)
}

fn error_of(exit: &Exit) -> &DurableError {
    match exit {
        Exit::Failed(error) => error.downcast_ref().expect("an error of this crate"),
        exit => panic!("{exit}"),
    }
}

#[test]
fn version_1_writes_the_fixture() {
    let system = TestSystem::new(1);
    let store = MemoryStore::new();
    for (euros, sum) in [(1, 1), (20, 21), (300, 321), (-4000, -3679)] {
        let paid = pay::<AccountV1>(&system, &sum.to_string(), &store, euros);
        assert_eq!(paid.expect("an answer"), ("Ada".to_owned(), sum));
    }
    let found = system.run(store.read(&entity())).expect("it can be read");
    let mut written = String::new();
    for row in &found.rows {
        let table = format!("{:?}", row.table).to_lowercase();
        let _ = writeln!(written, "{table} {} {}", hex(&row.key), hex(&row.value));
    }
    assert_eq!(written, FIXTURE, "the format of stores has changed");
}

#[test]
fn events_and_snapshot_of_version_1_are_converted() {
    let system = TestSystem::new(1);
    let all = fixture();
    let events = || all.iter().filter(|row| row.table == Table::Events);
    assert_eq!(events().map(number).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let since_snapshot = |row: &&Row| row.table == Table::Snapshot || number(row) > 3;
    let trimmed: Vec<Row> = all.iter().filter(since_snapshot).cloned().collect();
    let expected = ("Ada".to_owned(), -367_900 + 7);
    for (name, rows) in [
        ("all", all.clone()),
        ("trimmed", trimmed),
        ("without the snapshot", events().cloned().collect()),
    ] {
        let store = store_with(&system, rows);
        for (round, more) in [("first", 7), ("again", 0)] {
            let path = format!("{name} {round}");
            let paid = pay::<Account<true>>(&system, &path, &store, more);
            assert_eq!(paid.expect("an answer"), expected, "{path}");
        }
    }
}

#[test]
fn snapshot_without_conversion_needs_all_events() {
    let system = TestSystem::new(1);
    let store = store_with(&system, fixture());
    for (path, more) in [("first", 7), ("again", 0)] {
        let paid = pay::<Account<false>>(&system, path, &store, more);
        assert_eq!(paid.expect("an answer"), ("Ada".to_owned(), -367_900 + 7));
    }
    for kept in [0, 1, 3] {
        let is_kept = |row: &Row| row.table == Table::Snapshot || number(row) > 5 - kept;
        let store = store_with(&system, fixture().into_iter().filter(is_kept));
        let exit = pay::<Account<false>>(&system, &format!("{kept} kept"), &store, 7);
        let exit = exit.expect_err("an event is missing");
        match error_of(&exit) {
            DurableError::NotDecoded { part, version, .. } => {
                assert_eq!((*part, *version), (StoredPart::Snapshot(EventNumber(3)), 1));
            }
            error => panic!("{error}"),
        }
        for part in [
            "account/a",
            "snapshot after event 3",
            "version 1",
            "sequence 1",
            "event 1 is",
        ] {
            assert!(exit.to_string().contains(part), "{exit}");
        }
    }
}

#[test]
fn event_that_an_upcaster_refuses_is_named() {
    let system = TestSystem::new(1);
    let mut rows = fixture();
    let last = rows.iter_mut().rfind(|row| row.table == Table::Events);
    let last = last.expect("an event");
    last.value.truncate(5);
    let euros = StoredRow(v1::Event::Deposited { euros: i64::MAX });
    last.value.extend(euros.bytes());
    let store = store_with(&system, rows);
    let exit = pay::<Account<true>>(&system, "a", &store, 7).expect_err("it is refused");
    for part in [
        "event 5",
        "account/a",
        "version 1",
        "sequence 1",
        "too many euros",
        "correct the upcaster",
    ] {
        assert!(exit.to_string().contains(part), "{exit}");
    }
}

/// A value as a row has it behind its version.
struct StoredRow(v1::Event);

impl StoredRow {
    fn bytes(&self) -> Vec<u8> {
        rmp_serde::to_vec_named(&self.0).expect("it is encoded")
    }
}

#[test]
fn later_version_is_refused_and_stays_as_it_is() {
    let system = TestSystem::new(1);
    let store = store_with(&system, fixture());
    let paid = pay::<Account<true>>(&system, "later", &store, 7);
    paid.expect("an answer");
    let before = system.run(store.read(&entity())).expect("it can be read");
    // The snapshot after event 6 is of version 2.
    let exit = pay::<AccountV1>(&system, "earlier", &store, 7).expect_err("it is refused");
    match error_of(&exit) {
        DurableError::UnknownVersion {
            part,
            version: 2,
            known: 1,
            ..
        } => assert_eq!(*part, StoredPart::Snapshot(EventNumber(6))),
        error => panic!("{error}"),
    }
    let is_event = |row: &Row| row.table == Table::Events;
    let store = store_with(
        &system,
        before.rows.iter().filter(|row| is_event(row)).cloned(),
    );
    let exit = pay::<AccountV1>(&system, "events", &store, 7).expect_err("it is refused");
    for part in [
        "event 6",
        "account/a",
        "version 3",
        "sequence 1",
        "version 1",
        "run the program",
    ] {
        assert!(exit.to_string().contains(part), "{exit}");
    }
    let after = system.run(store.read(&entity())).expect("it can be read");
    assert_eq!(after.rows.len(), 6);
}

/// A version 2 whose events have the types of version 1, without a conversion.
struct Unconverted;

impl EventSourced for Unconverted {
    const KIND: &'static str = "account";
    const VERSION: u32 = 2;
    type State = v1::State;
    type Event = v1::Event;
    type Msg = Ask<Pay>;
    type Args = ();
    type Error = BoxError;

    fn apply(state: &mut v1::State, event: v1::Event) {
        AccountV1::apply(state, event);
    }

    async fn pre_start(_: (), _: &mut EventContext<'_, Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(
        &mut self,
        _: Ask<Pay>,
        _: &mut EventContext<'_, Self>,
    ) -> Result<(), BoxError> {
        Ok(())
    }
}

#[test]
fn version_without_conversion_is_refused() {
    let system = TestSystem::new(1);
    let store = store_with(&system, fixture());
    let exit = pay::<Unconverted>(&system, "a", &store, 7).expect_err("it is refused");
    for part in [
        "event 4",
        "account/a",
        "version 1",
        "sequence 1",
        "`upcast_event`",
    ] {
        assert!(exit.to_string().contains(part), "{exit}");
    }
}
