//! `strowger demo` and `pfcp load`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::binary::strowger;
use crate::captures::tshark_is_here;
use crate::running::Running;

/// A demo that runs until it is ended, or dropped.
struct Demo {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    n4: String,
    control: String,
    folder: TempDir,
}

impl Demo {
    fn start(args: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder of our own");
        let mut child = Command::new(env!("CARGO_BIN_EXE_strowger"))
            .args(["demo", "--json", "--port", "0", "--control"])
            .arg(folder.path().join("control.sock"))
            .args(args)
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary is built");
        let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let first = object(&mut lines);
        let text = |key: &str| first[key].as_str().expect("text").to_owned();
        let (n4, control) = (text("n4"), text("control"));
        Self {
            child,
            lines,
            n4,
            control,
            folder,
        }
    }

    fn sessions(&self) -> Vec<Value> {
        let ran = strowger(["pfcp", "sessions", "--json", "--control", &self.control]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.objects()
    }

    /// Waits for the end: the exit code and the summary.
    fn ended(&mut self) -> (Option<i32>, Value) {
        let last = object(&mut self.lines);
        (self.child.wait().expect("it ends").code(), last)
    }

    /// Ends it as ctrl-c does.
    fn interrupt(&mut self) -> (Option<i32>, Value) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.expect("there is a kill command").success());
        self.ended()
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn object(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> Value {
    let line = lines.next().expect("a line").expect("output is text");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

#[test]
fn demo_ends_with_the_sessions_that_were_asked_for() {
    let mut demo = Demo::start(&["--for", "3s", "--rate", "500", "--sessions", "100"]);
    let (code, last) = demo.ended();
    assert_eq!(code, Some(0), "{last}");
    for (key, value) in [("held", 100), ("rejected", 0), ("lost", 0), ("restarts", 0)] {
        assert_eq!(last[key], value, "{key}: {last}");
    }
    let established = last["established"].as_u64().expect("a number");
    // An open loop makes up for what it missed, but a slow machine may not let it.
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
    // Each was a question to the policy; on a slow machine some are not answered in time.
    let number = |key: &str| last[key].as_u64().expect("a number");
    let asked = number("policy_calls") + number("policy_unanswered");
    assert!(asked >= established && number("policy_calls") > 0, "{last}");
}

#[test]
fn another_process_and_a_capture_agree_with_the_demo() {
    let args = ["--rate", "500", "--sessions", "50", "--pcap", "n4.pcapng"];
    let mut demo = Demo::start(&args);
    // The sixtieth has taken the place of one of the fifty.
    let replaced = |sessions: &[Value]| sessions.iter().any(|row| row["seid"].as_u64() > Some(60));
    // How many there are then says little: while a listing is read, some are deleted and others
    // established, on a busy machine most of them.
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
    if !tshark_is_here() {
        return;
    }
    let accepted = Command::new("tshark")
        .arg("-d")
        .arg(format!("udp.port=={port},pfcp"))
        .args(["-Y", "pfcp.msg_type == 51 && pfcp.cause == 1", "-r"])
        .arg(&capture)
        .output()
        .expect("tshark runs");
    let accepted = String::from_utf8_lossy(&accepted.stdout).lines().count();
    assert_eq!(last["established"], accepted, "{last}");
}

#[test]
fn sessions_outlive_panics() {
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
    assert!(last["policy_traps"].as_u64() >= Some(1), "{last}");
    for (key, value) in [("held", 100), ("rejected", 0), ("lost", 0)] {
        assert_eq!(last[key], value, "{key}: {last}");
    }
}

#[test]
fn port_that_is_taken_is_said_with_the_way_out() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let port = taken.local_addr().expect("bound").port().to_string();
    let ran = strowger(["demo", "--port", &port, "--for", "1s"]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains(&port), "{}", ran.err);
    assert!(ran.err.contains("--port 0"), "{}", ran.err);
}

#[test]
fn load_on_a_node_tells_latencies_and_causes() {
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
fn load_on_nobody_says_so() {
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
