//! `strowger pfcp serve`.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Lines};
use std::net::Ipv4Addr;
use std::process::{ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::message::{HeartbeatRequest, SessionModificationRequest};
use strowger_pfcp::{IeType, Message};

use crate::binary::strowger;
use crate::guarded::Guarded;
use crate::peer::{Peer, STARTED, value};

#[test]
fn invalid_scenario_is_reported_with_line_and_key() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("wrong.toml");
    std::fs::write(&path, "[[rule]]\non = \"heartbeat\"\nrefus = 75\n").expect("room");
    let path = path.to_str().expect("a path in letters");
    let ran = strowger(["pfcp", "serve", "--scenario", path]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("line 3"), "{}", ran.err);
    assert!(ran.err.contains("refus"), "{}", ran.err);
    assert!(ran.err.contains("\nhint: "), "{}", ran.err);
}

#[test]
fn missing_scenario_is_an_environment_error() {
    let ran = strowger(["pfcp", "serve", "--scenario", "no-such-file.toml"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
}

/// A running `strowger pfcp serve`; killed when dropped.
struct ServeProcess {
    child: Guarded,
    lines: Lines<BufReader<ChildStdout>>,
    n4: String,
    recovery: u64,
}

impl ServeProcess {
    fn start(listen: &str, args: &[&OsStr]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
        command
            .args(["pfcp", "serve", "--json", "--listen", listen])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = Guarded::spawn(&mut command);
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut serving = Self {
            child,
            lines,
            n4: String::new(),
            recovery: 0,
        };
        serving.wait_for_start();
        serving
    }

    /// Starts with a scenario on a port that the system chooses.
    fn with_scenario(scenario: &str) -> Self {
        let file = tempfile::NamedTempFile::new().expect("a file of our own");
        std::fs::write(file.path(), scenario).expect("room");
        let args = [OsStr::new("--scenario"), file.path().as_os_str()];
        Self::start("127.0.0.1:0", &args)
    }

    fn object(&mut self) -> Value {
        let line = self.lines.next().expect("it says more");
        serde_json::from_str(&line.expect("output is text")).expect("an object")
    }

    /// Waits until it reports that it is ready.
    fn wait_for_start(&mut self) {
        let said = self.object();
        self.n4 = said["n4"].as_str().expect("an address").to_owned();
        self.recovery = said["recovery"].as_u64().expect("a time stamp");
    }

    /// Shuts it down in order; returns the number of times that each rule was hit.
    fn end_with_hits(mut self) -> Value {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status();
        assert!(sent.expect("kill is installed").success());
        let last = self.object();
        assert!(self.child.wait().success());
        last["struck"].clone()
    }
}

#[test]
fn killed_node_keeps_its_sessions() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = [OsStr::new("--store"), folder.path().as_os_str()];
    let serving = ServeProcess::start("127.0.0.1:0", &store);
    let mut peer = Peer::associated(62, &serving.n4);
    let establish = |number| peer.establish(Ipv4Addr::new(10, 62, 0, number));
    let sessions: Vec<_> = (1..=5).map(establish).collect();
    let (n4, recovery) = (serving.n4.clone(), serving.recovery);
    // This kills it with SIGKILL.
    drop(serving);

    let again = ServeProcess::start(&n4, &store);
    assert_eq!(again.recovery, recovery, "nothing is lost");
    for seid in sessions {
        let seid = seid.expect("it was accepted");
        assert_eq!(peer.modify(seid), Cause::REQUEST_ACCEPTED);
        assert_eq!(peer.delete(seid), Cause::REQUEST_ACCEPTED);
    }
}

#[test]
fn scenario_refusals_are_applied_and_counted() {
    let serving = ServeProcess::with_scenario(
        "[[rule]]\non = \"association setup\"\ncount = 1\nrefuse = 72\n",
    );
    let mut peer = Peer::bind(61, &serving.n4);
    assert_eq!(peer.associate(7), Cause::NO_ESTABLISHED_ASSOCIATION);
    assert_eq!(peer.associate(7), Cause::REQUEST_ACCEPTED);
    assert_eq!(serving.end_with_hits(), json!([1]));
}

#[test]
fn dropped_and_delayed_requests_are_answered_on_retry_or_later() {
    let serving = ServeProcess::with_scenario(
        "[[rule]]\non = \"session establishment\"\nafter = 1\ncount = 1\ndrop = true\n\
         [[rule]]\non = \"session deletion\"\ncount = 1\ndelay = \"30ms\"\n",
    );
    let mut peer = Peer::associated(63, &serving.n4);
    let ue = |number| Ipv4Addr::new(10, 63, 0, number);
    let passed = peer.establish(ue(1)).expect("the first one passes");
    let dropped = peer.establish(ue(2)).expect("it is asked for again");
    for seid in [passed, dropped] {
        assert_eq!(peer.delete(seid), Cause::REQUEST_ACCEPTED);
    }
    assert_eq!(serving.end_with_hits(), json!([1, 1]));
}

#[test]
fn scenario_restart_loses_the_sessions_and_is_announced() {
    let mut serving = ServeProcess::with_scenario(
        "[[rule]]\non = \"session modification\"\ncount = 1\nrestart = true\n",
    );
    let before = serving.recovery;
    let mut peer = Peer::associated(64, &serving.n4);
    let seid = peer
        .establish(Ipv4Addr::new(10, 64, 0, 1))
        .expect("accepted");
    let sequence = peer.next_sequence();
    let strikes = Message::session(seid, sequence, SessionModificationRequest::new());
    peer.send(&strikes.encode().expect("it fits"));
    serving.wait_for_start();
    assert!(serving.recovery > before, "peers are told");
    assert_eq!(peer.modify(seid), Cause::SESSION_CONTEXT_NOT_FOUND);
    assert_eq!(serving.end_with_hits(), json!([1]));
}

#[test]
fn scenario_changes_the_recovery_time_stamp() {
    let serving =
        ServeProcess::with_scenario("[[rule]]\non = \"heartbeat\"\nafter = 1\ntime_stamp = 60\n");
    let mut peer = Peer::bind(65, &serving.n4);
    let mut told = || {
        let request = Message::node(peer.next_sequence(), HeartbeatRequest::new(STARTED));
        let answer = peer.ask(&request);
        let value = value(&answer, IeType::RECOVERY_TIME_STAMP).expect("mandatory");
        u64::from(u32::from_be_bytes(
            *value.first_chunk().expect("four bytes"),
        ))
    };
    assert_eq!(told(), serving.recovery);
    assert_eq!(told(), serving.recovery + 60);
}
