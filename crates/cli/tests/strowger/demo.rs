//! `strowger demo` and `pfcp load`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::binary::strowger;
use crate::captures::has_tshark;
use crate::demo_process::Demo;
use crate::guarded::{self, Guarded};
use crate::running::Running;

#[test]
fn demo_holds_the_requested_sessions() {
    let mut demo = Demo::start(&["--for", "3s", "--rate", "500", "--sessions", "100"]);
    let (code, last) = demo.ended();
    assert_eq!(code, Some(0), "{last}");
    for (key, value) in [("held", 100), ("rejected", 0), ("lost", 0), ("restarts", 0)] {
        assert_eq!(last[key], value, "{key}: {last}");
    }
    let established = last["established"].as_u64().expect("a number");
    // An open loop catches up, but a slow machine may not allow it.
    let seconds = last["seconds"].as_f64().expect("a number");
    let due = 500.0 * seconds + 1.0;
    assert!(established >= 100, "{last}");
    assert!(
        Duration::from_secs(established).as_secs_f64() <= due,
        "{last}"
    );
    for key in ["rate", "p50_us", "p99_us"] {
        assert!(last[key].as_f64() > Some(0.0), "{key}: {last}");
    }
    let number = |key: &str| last[key].as_u64().expect("a number");
    let asked = number("policy_calls") + number("policy_unanswered");
    if cfg!(feature = "components") {
        // Each establishment asked the policy; on a slow machine some calls are not answered in
        // time.
        assert!(asked >= established && number("policy_calls") > 0, "{last}");
    } else {
        assert_eq!(asked, 0, "{last}");
    }
}

#[test]
fn control_socket_and_capture_agree_with_the_demo() {
    let args = ["--rate", "500", "--sessions", "50", "--pcap", "n4.pcapng"];
    let mut demo = Demo::start(&args);
    // The sixtieth session has replaced one of the fifty.
    let later = |row: &Value| row["peer_seid"].as_u64() > Some(60);
    let replaced = |sessions: &[Value]| sessions.iter().any(later);
    // The number of listed sessions says little: while a listing is read, some sessions are deleted
    // and others established, on a busy machine most of them.
    while !replaced(&demo.sessions()) {}
    let (code, last) = demo.interrupt();
    assert_eq!((code, &last["held"]), (Some(0), &50.into()), "{last}");
    let capture = demo.folder.path().join("n4.pcapng");
    let (_, port) = demo.n4.rsplit_once(':').expect("an address");
    let path = capture.to_str().expect("the path is text");
    let unfound = strowger(["pfcp", "decode", path]);
    assert!(
        unfound.code == 1 && unfound.err.contains("--port"),
        "{}",
        unfound.err
    );
    let checked = strowger(["pfcp", "decode", path, "--port", port, "--check"]);
    assert_eq!(checked.code, 0, "{}", checked.err);
    if !has_tshark() {
        return;
    }
    let mut tshark = Command::new("tshark");
    tshark
        .arg("-d")
        .arg(format!("udp.port=={port},pfcp"))
        .args(["-Y", "pfcp.msg_type == 51 && pfcp.cause == 1", "-r"])
        .arg(&capture);
    let accepted = guarded::output(&mut tshark);
    let accepted = String::from_utf8_lossy(&accepted.stdout).lines().count();
    assert_eq!(last["established"], accepted, "{last}");
}

#[test]
fn sessions_survive_panics() {
    let args = [
        "--for",
        "2s",
        "--rate",
        "500",
        "--sessions",
        "100",
        "--chaos",
    ];
    let mut demo = Demo::start(&args);
    let (code, last) = demo.ended();
    assert_eq!(code, Some(0), "{last}");
    assert!(last["panics"].as_u64() >= Some(1), "{last}");
    assert_eq!(last["restarts"], last["panics"], "{last}");
    let traps = u64::from(cfg!(feature = "components"));
    assert!(last["policy_traps"].as_u64() >= Some(traps), "{last}");
    for (key, value) in [("held", 100), ("rejected", 0), ("lost", 0)] {
        assert_eq!(last[key], value, "{key}: {last}");
    }
}

#[test]
fn taken_port_is_reported_with_a_hint() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let port = taken.local_addr().expect("bound").port().to_string();
    let ran = strowger(["demo", "--port", &port, "--for", "1s"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains(&port), "{}", ran.err);
    assert!(ran.err.contains("--port 0"), "{}", ran.err);
}

#[test]
fn load_reports_latencies_and_causes() {
    let node = Running::start("");
    let to = ["pfcp", "load", "--to", &node.n4, "--for", "500ms", "--json"];
    let rate = ["--rate", "400", "--sessions", "100"];
    let flight = ["--in-flight", "8", "--sessions", "100"];
    for pace in [&rate[..], &flight[..]] {
        let ran = strowger(to.into_iter().chain(pace.iter().copied()));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let last = ran.last_object();
        assert_eq!(
            (&last["lost"], &last["rejected"]),
            (&0.into(), &0.into()),
            "{last}"
        );
        assert_eq!(last["sent"], last["answered"], "{last}");
        assert_eq!(last["causes"]["1"], last["accepted"], "{last}");
        for key in ["p50_us", "p99_us", "p999_us", "rate"] {
            assert!(last[key].as_f64() > Some(0.0), "{key}: {last}");
        }
    }
    assert!(
        node.ask(["pfcp", "sessions", "--json"])
            .objects()
            .is_empty()
    );
}

#[test]
fn load_without_a_node_is_reported() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let to = silent.local_addr().expect("bound").to_string();
    let args = [
        "pfcp", "load", "--to", &to, "--wait", "20ms", "--tries", "1",
    ];
    let ran = strowger(args);
    assert_eq!(ran.code, 3, "{}", ran.out);
    assert!(
        ran.err.contains(&to) && ran.err.contains("\nhint: "),
        "{}",
        ran.err
    );
}

/// A load that runs until it is ended or dropped.
struct LoadProcess {
    child: Guarded,
    log: std::io::Lines<BufReader<std::process::ChildStderr>>,
}

impl LoadProcess {
    fn start(to: &str, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
        command
            .args(["pfcp", "load", "--json", "--to", to])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = Guarded::spawn(&mut command);
        let log = BufReader::new(child.stderr.take().expect("piped")).lines();
        Self { child, log }
    }

    /// Waits until standard error contains this text.
    fn wait_for(&mut self, text: &str) {
        let mut log = self.log.by_ref().map(|line| line.expect("errors are text"));
        assert!(
            log.any(|line| line.contains(text)),
            "it never says {text:?}"
        );
    }

    /// Ends the load with SIGINT; returns its last output.
    fn interrupt(self) -> Value {
        let sent = Command::new("kill")
            .args(["-INT", &self.child.id().to_string()])
            .status();
        assert!(sent.expect("kill is installed").success());
        let ran = self.child.output();
        let text = String::from_utf8(ran.stdout).expect("output is text");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text:?}"))
    }
}

fn sessions_of(node: &Running) -> Vec<Value> {
    node.ask(["pfcp", "sessions", "--json"]).objects()
}

/// The number of sessions that the load wants to hold, and of those at the time of the kill.
const WANTED: u64 = 100;
const BEFORE_KILL: usize = 60;

fn number(last: &Value, key: &str) -> u64 {
    let number = last[key].as_u64();
    number.unwrap_or_else(|| panic!("{key} in {last}"))
}

/// Kills a loaded node with SIGKILL, restarts it, and lets the load continue.
fn load_over_a_kill(config: &str, args: &[&str]) -> Value {
    let wanted = WANTED.to_string();
    let quick = [
        "--rate",
        "50",
        "--sessions",
        &wanted,
        "--modify",
        "0.5",
        "--heartbeat",
        "200ms",
    ];
    let patience = ["--wait", "500ms", "--tries", "5"];
    let args: Vec<&str> = [&quick[..], &patience, args].concat();
    let node = Running::start(config);
    let n4 = node.n4.clone();
    let mut load = LoadProcess::start(&n4, &args);
    // Fewer than the load wants: it deletes none yet.
    while sessions_of(&node).len() < BEFORE_KILL {}
    node.kill();
    // This takes longer than a second, so that the next incarnation has another time stamp.
    load.wait_for("the node is lost");
    let (_, port) = n4.rsplit_once(':').expect("an address");
    let node = Running::start_on(port.parse().expect("a port"), config);
    let mut sessions = sessions_of(&node);
    while (sessions.len() as u64) < WANTED {
        sessions = sessions_of(&node);
    }
    // The load deletes a session only once it holds as many as it wants. The node may hold more:
    // sessions whose establishment it answered too late.
    let seids = |sessions: &[Value]| -> BTreeSet<u64> {
        let seids = sessions.iter().filter_map(|row| row["peer_seid"].as_u64());
        seids.collect()
    };
    let first = seids(&sessions);
    while first.difference(&seids(&sessions_of(&node))).count() < 20 {}
    let last = load.interrupt();
    // It holds fewer only by those whose establishment failed at the end.
    let held = number(&last, "held");
    let failed = number(&last, "unanswered") + number(&last, "rejected");
    assert!(held <= WANTED && held + failed >= WANTED, "{last}");
    assert!(number(&last, "peers_lost") >= 1, "{last}");
    assert!(number(&last, "peers_found") >= 1, "{last}");
    assert!(number(&last, "skipped") >= 1, "{last}");
    // All remaining sessions were deleted at the end.
    assert_eq!(sessions_of(&node).len(), 0);
    node.end();
    last
}

/// Asserts that the sessions at the time of the kill were lost. The load never knew those whose
/// establishment the node answered too late.
fn assert_sessions_lost(last: &Value) {
    let lost = number(last, "sessions_lost");
    assert!(lost >= 1, "{last}");
    assert!(
        lost + number(last, "unanswered") >= BEFORE_KILL as u64,
        "{last}"
    );
}

#[test]
fn load_restores_its_sessions_after_kill_9_of_a_node_without_a_store() {
    let last = load_over_a_kill("", &[]);
    assert_sessions_lost(&last);
    assert_eq!(number(&last, "sessions_refused"), 0, "{last}");
    let [lost, restored, unanswered] =
        ["sessions_lost", "sessions_restored", "unanswered"].map(|key| number(&last, key));
    // A session whose deletion was pending is not restored: the node rejects the deletion.
    let given_up = unanswered + number(&last, "rejected");
    assert!(restored >= 1 && restored + given_up >= lost, "{last}");
    assert_eq!(number(&last, "lost"), lost + unanswered, "{last}");
}

#[test]
fn load_with_forget_continues_with_new_sessions_after_kill_9() {
    let last = load_over_a_kill("", &["--forget"]);
    assert_sessions_lost(&last);
    assert_eq!(last["sessions_restored"], 0, "{last}");
}

#[test]
fn load_keeps_its_sessions_over_kill_9_of_a_node_with_a_store() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = folder.path().join("store");
    let last = load_over_a_kill(&format!("[n4.store]\npath = {store:?}\n"), &[]);
    assert_eq!(last["sessions_lost"], 0, "{last}");
    assert_eq!(last["lost"], last["unanswered"], "{last}");
}
