//! A node that is killed with SIGKILL, and a node that reopens its store.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::Value;
use strowger_pfcp::Seid;
use strowger_pfcp::ie::Cause;

use crate::binary::strowger;
use crate::captures::report_skipped;
use crate::guarded;
use crate::peer::Peer;
use crate::running::Running;

fn config(folder: &Path) -> String {
    let store = folder.join("store");
    format!("[n4.store]\npath = {store:?}\nreserve = \"1MiB\"\n")
}

fn sessions(live: &Running) -> Vec<Value> {
    let ran = live.ask(["pfcp", "sessions", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.objects()
}

#[test]
fn killed_node_keeps_all_acknowledged_state() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut live = Running::start(&config(folder.path()));
    let port = port_of(&live);
    let mut peer = Peer::associated(2, &live.n4);
    let mut held = Vec::new();
    for round in 0..5 {
        for number in 1..=20 {
            let ue = Ipv4Addr::new(10, 200, round, number);
            held.push(peer.establish(ue).expect("accepted"));
        }
        let deleted = held.remove(0);
        assert_eq!(peer.delete(deleted), Cause::REQUEST_ACCEPTED);
        assert_eq!(peer.modify(held[0]), Cause::REQUEST_ACCEPTED);
        let before = sessions(&live);
        assert_eq!(before.len(), held.len());
        live.kill();
        live = Running::start_on(port, &config(folder.path()));
        assert_eq!(sessions(&live), before);
        for &seid in &held {
            assert_eq!(peer.modify(seid), Cause::REQUEST_ACCEPTED, "{seid}");
        }
        assert_eq!(peer.modify(deleted), Cause::SESSION_CONTEXT_NOT_FOUND);
    }
    live.end();
}

#[test]
fn acknowledged_load_survives_a_kill() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let journal = folder.path().join("journal");
    let journal = journal.to_str().expect("text");
    let live = Running::start(&config(folder.path()));
    let port = port_of(&live);
    let load = [
        "pfcp",
        "load",
        "--json",
        "--keep",
        "--to",
        &live.n4,
        "--in-flight",
        "8",
        "--sessions",
        "100",
        "--modify",
        "0.5",
        "--for",
        "500ms",
        "--journal",
        journal,
    ];
    let ran = strowger(load);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let done = ran.last_object();
    assert!(done["modified"].as_u64() > Some(0), "{done}");
    live.kill();
    let live = Running::start_on(port, &config(folder.path()));
    let audit = live.ask(["pfcp", "audit", journal, "--json"]);
    assert_eq!(audit.code, 0, "{}{}", audit.out, audit.err);
    let report = audit.last_object();
    assert_eq!(report["acknowledged"], done["established"], "{report}");
    assert_eq!(report["whole"], report["expected"], "{report}");

    // The test notices any difference from the acknowledged state.
    let mut peer = Peer::bind(1, &live.n4);
    let first = sessions(&live)[0]["seid"].as_u64().expect("a number");
    assert_eq!(peer.delete(Seid(first)), Cause::REQUEST_ACCEPTED);
    let audit = live.ask(["pfcp", "audit", journal, "--json"]);
    assert_eq!(audit.code, 1, "{}{}", audit.out, audit.err);
    assert_eq!(audit.last_object()["lost"], 1);
    live.end();
}

/// Checks a node whose disk accepts no more data. Returns the sessions that were acknowledged and
/// not deleted, and those that were deleted.
fn assert_refuses_and_resumes(
    live: &Running,
    peer: &mut Peer,
    mut held: Vec<Seid>,
) -> (Vec<Value>, Vec<Seid>) {
    let refused = (1..20_000_u32).find_map(|number| {
        let [_, a, b, c] = number.to_be_bytes();
        let established = peer.establish(Ipv4Addr::new(10, a, b, c));
        established.map(|seid| held.push(seid)).err()
    });
    assert_eq!(refused, Some(Cause::NO_RESOURCES_AVAILABLE));
    assert!(held.len() > 10, "{}", held.len());
    assert_eq!(peer.modify(held[0]), Cause::NO_RESOURCES_AVAILABLE);
    let deleted = held.split_off(held.len() - 5);
    for &seid in &deleted {
        assert_eq!(peer.delete(seid), Cause::REQUEST_ACCEPTED);
        assert_eq!(peer.modify(seid), Cause::SESSION_CONTEXT_NOT_FOUND);
    }
    peer.heartbeat();
    let there = sessions(live);
    assert_eq!(there.len(), held.len());
    assert!(live.log().contains("deletions go on"), "{}", live.log());
    (there, deleted)
}

fn port_of(live: &Running) -> u16 {
    let port = live.n4.rsplit_once(':').expect("a port").1;
    port.parse().expect("a number")
}

/// Runs a node that may create no file longer than a MiB: this resembles a disk that accepts no
/// more data and frees none.
const SHORT_FILES: [&str; 3] = [
    "sh",
    "-c",
    "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\"",
];

#[test]
fn node_that_cannot_write_refuses_new_sessions_and_deletes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = config(folder.path());
    // The database makes its journal long when it is new.
    Running::start(&config).end();
    let live = Running::start_by(&SHORT_FILES, 0, &config);
    let port = port_of(&live);
    let mut peer = Peer::associated(2, &live.n4);
    let (there, deleted) = assert_refuses_and_resumes(&live, &mut peer, Vec::new());
    live.kill();
    let live = Running::start_on(port, &config);
    let after = sessions(&live);
    let seid = |row: &Value| row["seid"].as_u64().expect("a number");
    for row in &there {
        assert!(after.contains(row), "{row} is lost");
    }
    // A deletion that could not be written may be undone.
    let more = after.iter().filter(|row| !there.contains(row));
    for row in more {
        assert!(deleted.iter().any(|gone| gone.0 == seid(row)), "{row}");
    }
    assert!(!live.log().contains("moves"), "{}", live.log());
    live.end();
}

#[test]
fn node_with_a_full_disk_resumes_when_there_is_space() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let disk = folder.path().join("disk");
    std::fs::create_dir(&disk).expect("the folder is writable");
    let script = format!("mount -t tmpfs -o size=8m tmpfs {disk:?} && exec \"$0\" \"$@\"",);
    let own = ["unshare", "-rm", "sh", "-c", &script];
    let can = std::process::Command::new("unshare")
        .args(["-rm", "sh", "-c", &format!("mount -t tmpfs tmpfs {disk:?}")])
        .status();
    if !can.is_ok_and(|status| status.success()) {
        // The other test uses files that cannot grow.
        let _: Vec<()> = report_skipped("a disk that is full", "this user may not mount one");
        return;
    }
    let live = Running::start_by(&own, 0, &config(&disk));
    let mut peer = Peer::associated(2, &live.n4);
    let establish = |number| peer.establish(Ipv4Addr::new(12, 0, 0, number));
    let held = (1..=20).map(establish).collect::<Result<Vec<_>, _>>();
    let held = held.expect("there is room");
    let filler = live
        .root()
        .join(disk.strip_prefix("/").expect("absolute"))
        .join("filler");
    let full = std::fs::write(&filler, vec![1; 16 << 20]);
    assert!(full.is_err(), "a disk of 8 MiB takes 16");
    let (there, deleted) = assert_refuses_and_resumes(&live, &mut peer, held);
    std::fs::remove_file(&filler).expect("the file is accessible");
    let mut tries = 0_u32;
    let new = loop {
        tries += 1;
        let [_, a, b, c] = tries.to_be_bytes();
        if let Ok(seid) = peer.establish(Ipv4Addr::new(11, a, b, c)) {
            break seid;
        }
        // The node checks once a second.
        std::thread::yield_now();
        assert!(tries < 10_000_000);
    };
    let after = sessions(&live);
    assert_eq!(after.len(), there.len() + 1);
    assert_eq!(peer.modify(new), Cause::REQUEST_ACCEPTED);
    for gone in deleted {
        assert_eq!(peer.modify(gone), Cause::SESSION_CONTEXT_NOT_FOUND);
    }
    live.end();
}

#[test]
fn store_is_verified_and_exported_without_a_change() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store");
    let path = path.to_str().expect("text");
    let ran = strowger(["store", "verify", path]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    let live = Running::start(&config(folder.path()));
    let mut peer = Peer::associated(2, &live.n4);
    let seid = peer
        .establish(Ipv4Addr::new(10, 200, 0, 1))
        .expect("accepted");
    let ran = strowger(["store", "verify", path]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("used by another process"), "{}", ran.err);
    live.kill();

    let verified = strowger(["store", "verify", path, "--json"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
    let found = verified.last_object();
    assert_eq!(
        (&found["sessions"], &found["lost"]),
        (&1.into(), &Value::Null)
    );
    let rows = strowger(["store", "export", path]).objects();
    let kinds: Vec<&Value> = rows.iter().map(|row| &row["kind"]).collect();
    assert_eq!(kinds, ["association", "session"]);
    assert_eq!(rows[1]["seid"], seid.0);
    assert!(
        rows[1]["rules"]
            .as_array()
            .is_some_and(|rules| rules.len() >= 4)
    );

    // Half of the last groups is cut off.
    let journal = Path::new(path).join("db/0.jnl");
    let mut bytes = std::fs::read(&journal).expect("it exists");
    let end = bytes.iter().rposition(|&byte| byte != 0).expect("records");
    bytes.truncate(end - 300);
    std::fs::write(&journal, &bytes).expect("the folder is writable");
    for _ in 0..2 {
        let verified = strowger(["store", "verify", path]);
        assert_eq!(verified.code, 1, "{}{}", verified.out, verified.err);
        assert!(
            verified.err.contains("the last groups are missing"),
            "{}",
            verified.err
        );
        assert_eq!(std::fs::read(&journal).expect("it exists"), bytes);
    }
}

#[test]
fn node_does_not_start_on_a_read_only_store() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = config(folder.path());
    let live = Running::start(&config);
    let port = port_of(&live);
    let mut peer = Peer::associated(2, &live.n4);
    let held = peer.establish(Ipv4Addr::new(10, 0, 0, 1));
    let held = held.expect("there is room");
    live.kill();

    let store = folder.path().join("store");
    let read_only =
        format!("mount --bind {store:?} {store:?} && mount -o remount,ro,bind {store:?}");
    let within = |script: &str| {
        let mut command = std::process::Command::new("unshare");
        command.args(["-rm", "sh", "-c", script]);
        command
    };
    let can = within(&read_only).status();
    if !can.is_ok_and(|status| status.success()) {
        let _: Vec<()> = report_skipped("a disk that is read-only", "this user may not mount one");
        return;
    }
    let file = folder.path().join("node.toml");
    std::fs::write(&file, &config).expect("the folder is writable");
    let mut command = within(&format!("{read_only} && exec \"$0\" \"$@\""));
    command.arg(env!("CARGO_BIN_EXE_strowger"));
    command.args(["run", "--port", "0", "--control"]);
    command.arg(folder.path().join("control.sock"));
    let ran = guarded::output(command.arg("--config").arg(&file));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{said}");
    assert!(said.contains("cannot use the store"), "{said}");
    assert!(said.contains("Read-only file system"), "{said}");

    let live = Running::start_on(port, &config);
    assert_eq!(sessions(&live).len(), 1);
    assert_eq!(peer.modify(held), Cause::REQUEST_ACCEPTED);
    assert!(!live.log().contains("moves"), "{}", live.log());
    live.end();
}
