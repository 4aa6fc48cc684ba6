//! Components that compute all the time on a running node: they delay no client, they are named,
//! and the node ends in time.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use strowger_gateway::client::Client as Control;

use crate::binary::{Ran, strowger};
use crate::files::Files;
use crate::running::Running;

pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn deploy(node: &Running, manifest: &str) -> Ran {
    deploy_at(&node.control, manifest)
}

fn deploy_at(control: &str, manifest: &str) -> Ran {
    let words = ["component", "deploy", manifest, "--expose"];
    strowger(words.into_iter().chain(["--control", control]))
}

fn rows(node: &Running) -> Vec<Value> {
    let ran = node.ask(["component", "list", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    ran.objects()
}

/// Starts `count` hogs on the node with this control socket; returns their names.
pub(crate) fn hogs(control: &str, files: &Files, count: usize, turns: u32) -> Vec<String> {
    let mut names = Vec::new();
    for number in 0..count {
        // A call of some milliseconds may take longer than the default on a slow machine; the fault
        // would end the messages with which the component keeps itself busy.
        let (name, manifest) = files.hog(number, turns, "[limits]\ndeadline = \"1s\"");
        let ran = deploy_at(control, &manifest);
        assert_eq!(ran.code, 0, "{}", ran.err);
        names.push(name);
    }
    for name in &names {
        let address = format!("components/{name}");
        let told = strowger(["tell", &address, "\"x\"", "--control", control]);
        assert_eq!(told.code, 0, "{}", told.err);
    }
    names
}

/// Locks the machine for one of these tests at a time.
pub(crate) fn lock_machine() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The response time of the node for a connected client: the slowest of a few requests.
pub(crate) fn slowest_answer(control: &str) -> Duration {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a thread is enough");
    runtime.block_on(async {
        let mut client = Control::connect(control).await.expect("it exists");
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            for method in ["component.list", "tree", "ping"] {
                let began = Instant::now();
                let mut rows = client
                    .rows(method, Value::Null)
                    .await
                    .expect("it is a method");
                while rows.next().await.expect("it answers").is_some() {}
                slowest = slowest.max(began.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        slowest
    })
}

/// No answer takes this long, even on a machine that runs other tests meanwhile.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(1);
/// No orderly shutdown takes this long either.
const MAX_SHUTDOWN_TIME: Duration = Duration::from_secs(15);

/// Collects names until there are as many as hogs, or the time is over.
fn collect_names(hogs: &[String], mut look: impl FnMut() -> Vec<Value>) -> Vec<String> {
    let began = Instant::now();
    let mut seen = BTreeSet::new();
    while seen.len() < hogs.len() && began.elapsed() < MAX_SHUTDOWN_TIME {
        seen.extend(look().iter().filter_map(Value::as_str).map(str::to_owned));
    }
    seen.into_iter().collect()
}

fn assert_unaffected_by_hogs(count: usize, turns: u32) {
    let files = Files::new();
    let node = Running::start("");
    let mut names = hogs(&node.control, &files, count, turns);
    names.sort();
    let slowest = slowest_answer(&node.control);
    assert!(slowest < MAX_ANSWER_TIME, "{slowest:?}");
    // A call that saw no tick, because the ticks were late, may bring a hog back for one call.
    let heavy = collect_names(&names, || {
        let rows = rows(&node).into_iter();
        let heavy = rows.filter(|row| row["state"] == "running" && row["heavy"] == true);
        let used = heavy.filter(|row| row["cpu_ms"].as_u64() > Some(0));
        used.map(|row| row["name"].clone()).collect()
    });
    assert_eq!(heavy, names, "`component list` names them");
    let heavy = collect_names(&names, || {
        let top = node.ask(["top", "--once", "--json", "--limit", "1024"]);
        assert_eq!(top.code, 0, "{}", top.err);
        let mut reading = top.last_object();
        let rows = reading["rows"].as_array_mut().expect("rows").drain(..);
        let heavy = rows.filter(|row| row["component"]["heavy"] == true);
        heavy.map(|row| row["path"].clone()).collect()
    });
    assert_eq!(heavy.len(), names.len(), "`top` names them: {heavy:?}");
    let began = Instant::now();
    node.end();
    assert!(began.elapsed() < MAX_SHUTDOWN_TIME, "{:?}", began.elapsed());
}

#[test]
fn one_hog_per_processor_keeps_the_node_responsive() {
    let _alone = lock_machine();
    assert_unaffected_by_hogs(cores(), 2_000_000);
}

#[test]
fn ten_hogs_per_processor_keep_the_node_responsive() {
    let _alone = lock_machine();
    assert_unaffected_by_hogs(10 * cores(), 2_000_000);
}

#[test]
fn long_component_calls_keep_the_node_responsive() {
    let _alone = lock_machine();
    let files = Files::new();
    let node = Running::start("");
    let more = "[limits]\ndeadline = \"1s\"";
    for number in 0..2 * cores() {
        let (name, manifest) = files.hog(number, 300_000_000, more);
        assert_eq!(deploy(&node, &manifest).code, 0, "{}", node.log());
        node.ask(["tell", &format!("components/{name}"), "\"x\""]);
    }
    let slowest = slowest_answer(&node.control);
    assert!(slowest < MAX_ANSWER_TIME, "{slowest:?}");
    let began = Instant::now();
    node.signal("TERM");
    let (_, errors) = node.ended();
    assert!(
        began.elapsed() < MAX_SHUTDOWN_TIME,
        "{:?}: {errors}",
        began.elapsed()
    );
}

#[test]
fn configured_action_follows_an_exceeded_cpu_share() {
    let _alone = lock_machine();
    for (excess, state) in [("throttle", "running"), ("quarantine", "quarantine")] {
        let files = Files::new();
        let node = Running::start(&format!(
            "[components]\nexcess = {excess:?}\npatience = \"500ms\"\nnice = 0\n\
             [components.caps]\ncpu = \"5%\"\n"
        ));
        hogs(&node.control, &files, 1, 2_000_000);
        let until = Instant::now() + Duration::from_secs(30);
        let row = loop {
            let row = rows(&node).pop().expect("it exists");
            let done = row["state"] == state && row["throttled"].as_u64() > Some(3);
            if done || Instant::now() > until {
                break row;
            }
            thread::sleep(Duration::from_millis(50));
        };
        assert_eq!(row["state"], state, "{row}");
        assert!(row["throttled_ms"].as_u64() > Some(0), "{row}");
        if state == "quarantine" {
            assert_eq!(row["fault"], "handle: exceeded limits.cpu");
        }
        assert!(node.log().contains("throttled"), "{}", node.log());
        node.end();
    }
}

#[test]
fn manifest_beyond_the_caps_is_refused_by_every_command() {
    let _alone = lock_machine();
    let files = Files::new();
    let (_, manifest) = files.hog(0, 1, "[limits]\ndeadline = \"15s\"");
    let config = files.place("node.toml");
    let configure = |cap: &str| {
        let text = format!(
            "[components.caps]\ndeadline = {cap:?}\n[[component]]\nmanifest = {manifest:?}\n"
        );
        fs::write(&config, text).expect("the file is accessible");
    };
    let refused = |ran: &Ran| {
        assert_eq!(ran.code, 2, "{}", ran.err);
        for part in [
            "limits.deadline",
            "15s",
            "1s",
            "hint: lower the value",
            "components.caps",
        ] {
            assert!(ran.err.contains(part), "{part}: {}", ran.err);
        }
    };
    configure("1s");
    refused(&strowger(["check", &config]));
    refused(&strowger(["component", "inspect", &manifest]));
    refused(&strowger([
        "component",
        "inspect",
        &manifest,
        "--config",
        &config,
    ]));
    let node = Running::start("");
    refused(&deploy(&node, &manifest));
    node.end();
    configure("15s");
    let ran = strowger(["check", &config]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let ran = strowger(["component", "inspect", &manifest, "--config", &config]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let node = Running::start("[components.caps]\ndeadline = \"15s\"\n");
    assert_eq!(deploy(&node, &manifest).code, 0);
    node.end();
}

/// A node that cannot shut down in order: a component computes for as long as it may.
fn start_busy_node(files: &Files, shutdown: &str) -> Running {
    let node = Running::start(&format!(
        "[node]\nshutdown = {shutdown:?}\n[components.caps]\ndeadline = \"600s\"\n"
    ));
    let (name, manifest) = files.hog(0, 0, "[limits]\ndeadline = \"600s\"");
    assert_eq!(deploy(&node, &manifest).code, 0, "{}", node.log());
    node.ask(["tell", &format!("components/{name}"), "\"x\""]);
    let until = Instant::now() + Duration::from_secs(30);
    while rows(&node)[0]["heavy"] != true {
        assert!(Instant::now() < until, "it computes by now");
        thread::sleep(Duration::from_millis(20));
    }
    node
}

#[test]
fn shutdown_is_bounded_under_cpu_load() {
    let _alone = lock_machine();
    let files = Files::new();
    let node = start_busy_node(&files, "1s");
    let began = Instant::now();
    node.signal("TERM");
    let (code, errors) = node.ended();
    assert!(code <= 1, "{code}: {errors}");
    assert!(
        began.elapsed() < MAX_SHUTDOWN_TIME,
        "{:?}: {errors}",
        began.elapsed()
    );
}

#[test]
fn second_signal_ends_the_process_at_once() {
    let _alone = lock_machine();
    for (signal, status) in [("TERM", 143), ("INT", 130)] {
        let files = Files::new();
        let node = start_busy_node(&files, "10m");
        node.signal(signal);
        // The first signal must be delivered before the second one: the system merges two pending
        // ones.
        thread::sleep(Duration::from_millis(500));
        let began = Instant::now();
        node.signal(signal);
        let (code, errors) = node.ended();
        assert_eq!(code, status, "{errors}");
        assert!(errors.contains("terminated before"), "{errors}");
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?}",
            began.elapsed()
        );
    }
}
