//! A node that is killed with -9, and one that finds its store.

use std::net::Ipv4Addr;
use std::path::Path;

use serde_json::Value;
use strowger_pfcp::ie::Cause;

use crate::binary::strowger;
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
fn node_that_was_killed_has_all_that_it_acknowledged() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let mut live = Running::start(&config(folder.path()));
    let port = live.n4.rsplit_once(':').expect("a port").1;
    let port = port.parse().expect("a number");
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
fn what_a_load_was_told_is_there_after_a_kill() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let ledger = folder.path().join("ledger");
    let ledger = ledger.to_str().expect("text");
    let live = Running::start(&config(folder.path()));
    let port = live.n4.rsplit_once(':').expect("a port").1;
    let port = port.parse().expect("a number");
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
        "--ledger",
        ledger,
    ];
    let ran = strowger(load);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let done = ran.last_object();
    assert!(done["modified"].as_u64() > Some(0), "{done}");
    live.kill();
    let live = Running::start_on(port, &config(folder.path()));
    let audit = live.ask(["pfcp", "audit", ledger, "--json"]);
    assert_eq!(audit.code, 0, "{}{}", audit.out, audit.err);
    let report = audit.last_object();
    assert_eq!(report["acknowledged"], done["established"], "{report}");
    assert_eq!(report["whole"], report["expected"], "{report}");

    // It notices what is not as it was acknowledged.
    let mut peer = Peer::bind(1, &live.n4);
    let first = sessions(&live)[0]["seid"].as_u64().expect("a number");
    assert_eq!(
        peer.delete(strowger_pfcp::Seid(first)),
        Cause::REQUEST_ACCEPTED
    );
    let audit = live.ask(["pfcp", "audit", ledger, "--json"]);
    assert_eq!(audit.code, 1, "{}{}", audit.out, audit.err);
    assert_eq!(audit.last_object()["lost"], 1);
    live.end();
}
