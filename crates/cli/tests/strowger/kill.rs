//! `strowger kill`: acknowledged state comes back, and no other actor is affected.

use std::net::Ipv4Addr;

use serde_json::Value;
use strowger_pfcp::Seid;
use strowger_pfcp::ie::Cause;

use crate::peer::Peer;
use crate::running::Running;

const ENDPOINT: &str = "/node/n4";

fn establish_sessions(peer: &mut Peer, count: u8) -> Vec<Seid> {
    let establish = |number| peer.establish(Ipv4Addr::new(10, 200, 0, number));
    (1..=count)
        .map(establish)
        .collect::<Result<_, _>>()
        .expect("accepted")
}

fn path_of(peer: &Peer, seid: Seid) -> String {
    format!("{ENDPOINT}/{}/{:#x}", peer.address, seid.0)
}

fn inspect(live: &Running, path: &str) -> Value {
    let ran = live.ask(["inspect", path, "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.last_object()
}

fn restarts(live: &Running) -> Vec<(String, u64)> {
    let of = |row: &Value| {
        let path = row["path"].as_str().expect("a path").to_owned();
        (path, row["restarts"].as_u64().expect("a number"))
    };
    let ours = |path: &str| path.starts_with(ENDPOINT);
    let rows = live.actors();
    let rows = rows.iter().map(of);
    rows.filter(|(path, _)| ours(path)).collect()
}

fn kill(live: &Running, args: &[&str]) -> Value {
    let ran = live.ask(["kill", "--json"].into_iter().chain(args.iter().copied()));
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.last_object()
}

/// Both ways to end an actor, with the rest of the command line.
const KILL_MODES: [&[&str]; 2] = [&["--panic"], &[]];

#[test]
fn panicked_session_keeps_its_rules_and_affects_no_other() {
    let live = Running::start("");
    let mut peer = Peer::associated(2, &live.n4);
    let sessions = establish_sessions(&mut peer, 5);
    let path = path_of(&peer, sessions[2]);
    let (rules, before) = (inspect(&live, &path), restarts(&live));
    assert!(
        rules["details"]["rules"]
            .as_array()
            .is_some_and(|rules| rules.len() >= 4),
        "{rules}"
    );

    let done = kill(&live, &[&path, "--panic"]);
    assert_eq!(done["restarted"], true, "{done}");

    let after = inspect(&live, &path);
    assert_eq!(after["details"], rules["details"]);
    assert_eq!(after["restarts"], 1);
    let expected = before.into_iter().map(|(at, count)| match at == path {
        true => (at, count + 1),
        false => (at, count),
    });
    assert_eq!(restarts(&live), expected.collect::<Vec<_>>());
    for seid in sessions {
        assert_eq!(peer.modify(seid), Cause::REQUEST_ACCEPTED, "{seid}");
    }
    live.end();
}

#[test]
fn killed_session_answers_again() {
    let live = Running::start("");
    let mut peer = Peer::associated(2, &live.n4);
    let sessions = establish_sessions(&mut peer, 3);
    let path = path_of(&peer, sessions[1]);
    // A modified rule may move behind the other rules once.
    assert_eq!(peer.modify(sessions[1]), Cause::REQUEST_ACCEPTED);
    let rules = inspect(&live, &path);
    for _ in 0..3 {
        kill(&live, &[&path]);
        assert_eq!(peer.modify(sessions[1]), Cause::REQUEST_ACCEPTED);
    }
    assert_eq!(inspect(&live, &path)["details"], rules["details"]);
    assert_eq!(peer.delete(sessions[1]), Cause::REQUEST_ACCEPTED);
    assert_eq!(peer.modify(sessions[1]), Cause::SESSION_CONTEXT_NOT_FOUND);
    assert_eq!(peer.modify(sessions[0]), Cause::REQUEST_ACCEPTED);
    live.end();
}

#[test]
fn restarted_endpoint_recovers_associations_and_sessions_from_the_store() {
    let live = Running::start("");
    let mut peer = Peer::associated(2, &live.n4);
    let mut sessions = establish_sessions(&mut peer, 5);
    let paths: Vec<String> = sessions.iter().map(|seid| path_of(&peer, *seid)).collect();
    for way in KILL_MODES {
        let details = |path: &String| inspect(&live, path)["details"].take();
        let before: Vec<Value> = paths.iter().map(details).collect();
        let args: Vec<&str> = [ENDPOINT].iter().chain(way).copied().collect();
        let done = kill(&live, &args);
        assert_eq!(done["restarted"], true, "{done}");
        // No new association: the node still knows the old one.
        let next = Ipv4Addr::new(10, 200, 1, u8::try_from(sessions.len()).expect("few"));
        let after: Vec<Value> = paths.iter().map(details).collect();
        assert_eq!(after, before);
        sessions.push(peer.establish(next).expect("accepted"));
        for &seid in &sessions {
            assert_eq!(peer.modify(seid), Cause::REQUEST_ACCEPTED, "{seid} {way:?}");
        }
    }
    live.end();
}

#[test]
fn restarted_association_recovers_its_sessions() {
    let live = Running::start("");
    let mut peer = Peer::associated(2, &live.n4);
    let mut other = Peer::associated(3, &live.n4);
    let sessions = establish_sessions(&mut peer, 5);
    let apart = other
        .establish(Ipv4Addr::new(10, 200, 9, 9))
        .expect("accepted");
    for way in KILL_MODES {
        let path = format!("{ENDPOINT}/{}", peer.address);
        let args: Vec<&str> = [path.as_str()].iter().chain(way).copied().collect();
        kill(&live, &args);
        for &seid in &sessions {
            assert_eq!(peer.modify(seid), Cause::REQUEST_ACCEPTED, "{seid} {way:?}");
        }
        assert_eq!(other.modify(apart), Cause::REQUEST_ACCEPTED);
    }
    assert_eq!(inspect(&live, &path_of(&other, apart))["restarts"], 0);
    live.end();
}

#[test]
fn process_exits_when_its_node_is_killed() {
    let mut live = Running::start("");
    let mut peer = Peer::associated(2, &live.n4);
    establish_sessions(&mut peer, 3);
    // The answer may be lost with the process.
    live.ask(["kill", "/node"]);
    assert_eq!(live.object()["sessions"], 3);
    let (code, errors) = live.ended();
    assert_eq!(code, 1, "{errors}");
    assert!(
        errors.contains("error: the node failed: killed"),
        "{errors}"
    );
}
