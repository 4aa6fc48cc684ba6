//! `strowger pfcp serve`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;
use strowger_pfcp::ie::Cause;

use crate::binary::strowger;
use crate::peer::Peer;

#[test]
fn a_wrong_scenario_is_told_with_its_line_and_key() {
    let folder = tempfile::tempdir().expect("a folder of our own");
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
fn a_scenario_that_is_not_there_is_something_outside() {
    let ran = strowger(["pfcp", "serve", "--scenario", "no-such-file.toml"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
}

#[test]
fn a_node_refuses_as_its_scenario_says_and_tells_what_struck() {
    let folder = tempfile::tempdir().expect("a folder of our own");
    let path = folder.path().join("refuse.toml");
    let rules = "[[rule]]\non = \"association setup\"\ncount = 1\nrefuse = 72\n";
    std::fs::write(&path, rules).expect("room");
    let mut serving = Command::new(env!("CARGO_BIN_EXE_strowger"))
        .args([
            "pfcp",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--json",
            "--scenario",
        ])
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the binary is built");
    let lines = BufReader::new(serving.stdout.take().expect("piped")).lines();
    let mut objects = lines.map(|line| -> Value {
        serde_json::from_str(&line.expect("output is text")).expect("an object")
    });
    let first = objects.next().expect("it starts");
    let mut peer = Peer::bind(61, first["n4"].as_str().expect("an address"));
    assert_eq!(peer.associate(7), Cause::NO_ESTABLISHED_ASSOCIATION);
    assert_eq!(peer.associate(7), Cause::REQUEST_ACCEPTED);
    let id = serving.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status();
    assert!(sent.expect("there is a kill command").success());
    let last = objects.next().expect("it says what struck");
    assert_eq!(last["struck"], serde_json::json!([1]));
    assert!(serving.wait().expect("it ends").success());
}
