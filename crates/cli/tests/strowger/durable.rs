//! The commands for a store of durable actors, on real stores.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use strowger::{ActorSystem, Ask, Export, Request};
use strowger_durable::store::{
    Batch, EntityId, FjallOptions, FjallStore, Sequence, Store, StoreFault, Table,
};
use strowger_durable::{DurableActor, DurableContext, Entities};
use strowger_gateway::method::Methods;
use strowger_gateway::{Gateway, Limits};

use crate::binary::{Ran, strowger, strowger_with_input};

/// Adds an amount, and returns the sum.
#[derive(Deserialize)]
struct Deposit(i64);
impl Request for Deposit {
    type Reply = i64;
}

struct Account;

impl DurableActor for Account {
    const KIND: &'static str = "account";

    type State = i64;
    type Msg = Ask<Deposit>;
    type Args = ();
    type Error = Infallible;

    async fn pre_start(
        (): (),
        _: &mut i64,
        _: &mut DurableContext<'_, Self>,
    ) -> Result<Self, Infallible> {
        Ok(Self)
    }

    async fn handle(
        &mut self,
        ask: Ask<Deposit>,
        state: &mut i64,
        cx: &mut DurableContext<'_, Self>,
    ) -> Result<(), Infallible> {
        *state += ask.request.0;
        cx.reply(ask.reply, *state);
        Ok(())
    }
}

/// A program with durable actors, which clients of its control socket reach by key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entities_are_asked_by_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("control.sock");
    let path = socket.to_str().expect("text").to_owned();
    let ask = async |address: &'static str, amount: &'static str| {
        let path = path.clone();
        let ran = move || strowger(["ask", address, amount, "--control", &path]);
        tokio::task::spawn_blocking(ran).await.expect("no panic")
    };
    for sum in ["50", "100"] {
        let system = ActorSystem::new("bank").expect("inside a runtime");
        let store = folder.path().join("store");
        let store = FjallStore::open(store, FjallOptions::default()).expect("it opens");
        let entities = Entities::new(Arc::new(store));
        let accounts = entities.start::<Account>(&system, "accounts", ());
        let accounts = accounts.expect("the key is free");
        let deposit = Export::new().ask::<Deposit>("deposit");
        accounts
            .export(&system, "bank/accounts", deposit)
            .expect("the name is free");
        let gateway = Gateway::open(&system, &socket, Limits::default(), Methods::new());
        gateway.await.expect("the folder is ours");

        let ran = succeeded(ask("bank/accounts/acc-42#deposit", "50").await);
        assert_eq!(ran.out.trim(), sum);
        // The only message need not be named.
        let ran = succeeded(ask("@(bank/accounts/acc-43)", "7").await);
        assert_eq!(ran.out.trim(), if sum == "50" { "7" } else { "14" });
        let ran = ask("bank/accounts/acc-42#withdraw", "50").await;
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("it takes deposit"), "{}", ran.err);
        let ran = ask("bank/accounts#deposit", "50").await;
        assert_eq!(ran.code, 1, "{}", ran.err);
        system.shutdown(Duration::from_secs(10)).await;
    }
}

/// A state as durable actors store it: an encoding, and MessagePack.
const STATE: &[u8] = b"\x01\x81\xa6amount\x07";

/// Makes a store of three entities. With a fault, the last one has it.
#[tokio::main(flavor = "current_thread")]
async fn make_store(path: &Path, fault: Option<StoreFault>) {
    let store = FjallStore::open(path, FjallOptions::default()).expect("it opens");
    for (kind, key) in [("account", "a"), ("account", "b"), ("order", "c")] {
        let entity = EntityId::new(kind, key).expect("a short name");
        let fence = store.lease(&entity).await.expect("a lease");
        if let Some(fault) = fault.filter(|_| key == "c") {
            store.inject(fault).await;
        }
        let mut batch = Batch::new();
        batch.put(Table::State, [], STATE);
        let appended = store.append(&entity, Sequence(0), fence, batch).await;
        assert_eq!(appended, Ok(Sequence(1)));
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("text")
}

fn succeeded(ran: Ran) -> Ran {
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    ran
}

#[test]
fn entities_are_listed_and_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = text(folder.path());
    make_store(folder.path(), None);
    let listed = succeeded(strowger(["entity", "list", path, "--json"])).objects();
    let keys: Vec<_> = listed.iter().map(|row| &row["key"]).collect();
    assert_eq!(keys, ["c", "a", "b"]);
    assert_eq!(listed[0]["condition"], "intact");
    let listed = succeeded(strowger([
        "entity", "list", path, "--kind", "account", "--limit", "1",
    ]));
    assert!(listed.out.contains("1 more"), "{}", listed.out);

    let shown = succeeded(strowger(["entity", "show", path, "account", "a"]));
    assert!(shown.out.contains("{\"amount\":7}"), "{}", shown.out);
    let shown = succeeded(strowger(["entity", "show", path, "account", "a", "--json"]));
    let row = &shown.last_object()["contents"][0];
    assert_eq!(
        (&row["table_name"], &row["decoded"]),
        (&json!("state"), &json!({"amount": 7}))
    );

    let unknown = strowger(["entity", "show", path, "account", "none"]);
    assert_eq!(unknown.code, 1, "{}", unknown.err);
    assert!(
        unknown.err.contains("no entity account/none"),
        "{}",
        unknown.err
    );
}

#[test]
fn damaged_store_is_checked_repaired_and_restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let [good, bad] = ["good", "bad"].map(|name| folder.path().join(name));
    make_store(&good, None);
    make_store(&bad, Some(StoreFault::Damage));
    let (good, bad) = (text(&good), text(&bad));
    let checked = succeeded(strowger(["store", "check", good]));
    assert!(checked.out.contains("no damage found"), "{}", checked.out);

    let checked = strowger(["store", "check", bad, "--json"]);
    assert_eq!(checked.code, 1, "{}", checked.err);
    let report = checked.last_object();
    assert_eq!(report["intact"], false);
    assert_eq!(report["damaged"][0]["key"], "c");
    assert_eq!(report["kinds"][0]["entities"], 2);
    let exported = strowger(["store", "export", bad]);
    assert_eq!(exported.code, 1, "{}", exported.err);
    assert!(
        exported.err.contains("1 damaged entities"),
        "{}",
        exported.err
    );

    let planned = succeeded(strowger(["store", "repair", bad, "--dry-run"]));
    assert!(
        planned.out.contains("order/c: would be quarantined"),
        "{}",
        planned.out
    );
    let repaired = succeeded(strowger(["store", "repair", bad, "--json"])).last_object();
    assert_eq!(
        repaired["quarantined"],
        json!([{"kind": "order", "key": "c"}])
    );
    let checked = succeeded(strowger(["store", "check", bad]));
    assert!(
        checked.out.contains("quarantined: order/c"),
        "{}",
        checked.out
    );
    let again = succeeded(strowger(["store", "repair", bad]));
    assert!(again.out.contains("nothing to repair"), "{}", again.out);

    let export = succeeded(strowger(["store", "export", good])).out;
    let refused = strowger_with_input(["store", "import", bad, "-"], export.as_bytes());
    assert_eq!(refused.code, 1, "{}", refused.err);
    assert!(
        refused.err.contains("--existing replace"),
        "{}",
        refused.err
    );
    let replace = [
        "store",
        "import",
        bad,
        "-",
        "--existing",
        "replace",
        "--json",
    ];
    let replaced = succeeded(strowger_with_input(replace, export.as_bytes())).last_object();
    assert_eq!(
        (&replaced["entities"], &replaced["replaced"]),
        (&json!(3), &json!(3))
    );
    let shown = succeeded(strowger(["entity", "show", bad, "order", "c"]));
    assert!(shown.out.contains("condition intact"), "{}", shown.out);
}

#[test]
fn store_is_copied_by_backup_and_by_import() {
    let folder = tempfile::tempdir().expect("a folder");
    let [store, copy, other] = ["store", "copy", "other"].map(|name| folder.path().join(name));
    make_store(&store, None);
    let (store, copy, other) = (text(&store), text(&copy), text(&other));
    let export = succeeded(strowger(["store", "export", store])).out;
    let first = export.lines().next().expect("a first line");
    assert_eq!(
        first,
        r#"{"store":{"format":"strowger-durable","version":1}}"#
    );
    let copied = succeeded(strowger(["store", "backup", store, copy, "--json"])).last_object();
    assert_eq!(copied["entities"], 3);
    assert_eq!(succeeded(strowger(["store", "export", copy])).out, export);
    let again = strowger(["store", "backup", store, copy]);
    assert_eq!(again.code, 3, "{}", again.err);
    assert!(again.err.contains("choose another path"), "{}", again.err);
    succeeded(strowger_with_input(
        ["store", "import", other, "-"],
        export.as_bytes(),
    ));
    assert_eq!(succeeded(strowger(["store", "export", other])).out, export);
}

#[test]
fn unusable_input_and_stores_are_refused_with_a_remedy() {
    let folder = tempfile::tempdir().expect("a folder");
    let [store, none, sessions, file] =
        ["store", "none", "sessions", "file"].map(|name| folder.path().join(name));
    make_store(&store, None);
    std::fs::create_dir(&sessions).expect("a folder");
    std::fs::write(sessions.join("format"), "strowger store 1").expect("it is written");
    std::fs::write(&file, "{\"store\":7}\n").expect("it is written");
    let (store, none, sessions, file) = (text(&store), text(&none), text(&sessions), text(&file));
    for (words, code, expected) in [
        (&["store", "check", none][..], 3, "No such file"),
        (
            &["store", "check", text(folder.path())],
            2,
            "not a store of durable actors",
        ),
        (
            &["store", "check", sessions],
            2,
            "use `strowger store verify`",
        ),
        (&["store", "verify", store], 2, "use `strowger store check`"),
        (&["store", "import", none, file], 2, "line 1: not an export"),
        (
            &["store", "import", sessions, file],
            2,
            "use `strowger store verify`",
        ),
        (&["store", "import", store, none], 3, "No such file"),
        (&["entity", "list", none], 3, "No such file"),
    ] {
        let ran = strowger(words.iter().copied());
        assert_eq!(ran.code, code, "{words:?}: {}", ran.err);
        assert!(ran.err.contains(expected), "{words:?}: {}", ran.err);
    }
    assert!(!Path::new(none).exists());
}

#[test]
fn store_in_use_is_refused_with_its_process() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = text(folder.path());
    make_store(folder.path(), None);
    let _open = FjallStore::open(folder.path(), FjallOptions::default()).expect("it opens");
    let target = folder.path().join("copy");
    for words in [
        &["store", "check", path][..],
        &["store", "repair", path],
        &["store", "export", path],
        &["store", "backup", path, text(&target)],
        &["store", "import", path, "-"],
        &["entity", "list", path],
    ] {
        let ran = strowger(words.iter().copied());
        assert_eq!(ran.code, 3, "{words:?}: {}", ran.err);
        assert!(
            ran.err.contains("stop that process"),
            "{words:?}: {}",
            ran.err
        );
        if Path::new("/proc/locks").exists() {
            let holder = format!("process {}", std::process::id());
            assert!(ran.err.contains(&holder), "{words:?}: {}", ran.err);
        }
    }
}
