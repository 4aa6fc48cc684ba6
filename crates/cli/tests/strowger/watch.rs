//! `top` and `trace` on a running node, as scripts use them.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::binary::strowger;
use crate::guarded::Guarded;
use crate::running::Running;

#[test]
fn top_once_prints_a_table_or_an_object() {
    let node = Running::start("");
    let ran = node.ask(["top", "--once", "--sort", "memory", "--limit", "3"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(
        lines.len(),
        6,
        "totals, limits, a head and three rows: {}",
        ran.out
    );
    assert!(lines[0].starts_with("strowger: "), "{}", ran.out);
    assert!(lines[1].contains("sessions 0 of "), "{}", ran.out);
    let ran = node.ask(["top", "n4", "--once", "--json"]);
    let top = ran.last_object();
    let rows = top["rows"].as_array().expect("rows");
    let paths: Vec<&str> = rows.iter().filter_map(|row| row["path"].as_str()).collect();
    assert_eq!(paths, ["/node/n4"]);
    assert!(rows[0]["memory"].as_u64() > Some(0));
    let names: Vec<&Value> = top["limits"]
        .as_array()
        .expect("limits")
        .iter()
        .map(|limit| &limit["name"])
        .collect();
    let mut limits = vec!["memory", "sessions", "associations"];
    limits.extend(cfg!(feature = "components").then_some("components"));
    assert_eq!(names, limits);
    assert_eq!(
        top["late_asks"],
        serde_json::json!([]),
        "a calm node answers in time"
    );
}

#[test]
fn top_without_a_terminal_names_the_alternatives() {
    let node = Running::start("");
    let ran = node.ask(["top"]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("hint: use --once"), "{}", ran.err);
}

#[test]
fn top_and_trace_report_a_missing_node() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let socket = folder.path().join("none.sock");
    let socket = socket.to_str().expect("text");
    for args in [&["top", "--once"][..], &["trace", "**"]] {
        let ran = strowger(args.iter().copied().chain(["--control", socket]));
        assert_eq!(ran.code, 3);
        assert!(
            ran.err.starts_with("error: no node listens at "),
            "{}",
            ran.err
        );
        assert!(ran.err.contains("hint: start a node with"), "{}", ran.err);
    }
}

#[test]
fn trace_shows_activity_and_ends_after_its_records() {
    let node = Running::start("");
    let mut command = Command::new(env!("CARGO_BIN_EXE_strowger"));
    command
        .args([
            "trace",
            "/gateway/**",
            "--max",
            "20",
            "--for",
            "50s",
            "--json",
        ])
        .args(["--control", &node.control])
        .stdout(Stdio::piped());
    let mut trace = Guarded::spawn(&mut command);
    let out = BufReader::new(trace.stdout.take().expect("piped"));
    let mut lines = out.lines().map(|line| {
        let line = line.expect("output is text");
        serde_json::from_str::<Value>(&line).expect("objects")
    });
    // Each call is work for the traced actors, whenever the trace begins.
    let mut told = Vec::new();
    while told.len() < 21 {
        node.actors();
        told.extend(lines.by_ref().take(if told.is_empty() { 1 } else { 20 }));
    }
    assert!(trace.wait().success());
    let (end, told) = told.split_last().expect("there are lines");
    assert_eq!(end["end"], "records");
    assert_eq!(told.len(), 20);
    let inside = |line: &Value| {
        line["path"]
            .as_str()
            .is_some_and(|at| at.starts_with("/gateway"))
    };
    assert!(told.iter().all(inside), "{told:?}");
}

#[test]
fn trace_as_text_ends_with_the_reason() {
    let node = Running::start("");
    let ran = node.ask(["trace", "/nobody", "--for", "1ms"]);
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "end of trace (time limit); 0 records dropped\n")
    );
    let ran = node.ask(["trace", "/nobody", "--max", "0"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
}
