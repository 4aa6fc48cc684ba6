//! The program `strowger-pfcp`. `strowger` has the same commands, and their tests.

#[path = "../../pfcp/tests/others/guarded.rs"]
#[allow(dead_code, reason = "other test programs use the rest")]
mod guarded;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use serde_json::Value;

use guarded::Guarded;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strowger-pfcp"));
    command.args(args).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the program; returns its exit status, its output and its errors.
fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Guarded::spawn(&mut command(args)).output();
    let text = |bytes| String::from_utf8(bytes).expect("it is text");
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn decodes_and_refuses_with_the_exit_codes_of_its_help() {
    let heartbeat = "2001000c00000100006000040a0b0c0d";
    let (code, out, err) = run(&["decode", "--json", "--hex", heartbeat]);
    assert_eq!(code, Some(0), "{err}");
    let message: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(message["name"], "Heartbeat Request");
    let (code, _, err) = run(&["decode", "--hex", "20g1"]);
    assert_eq!(code, Some(2), "{err}");
    let (code, _, err) = run(&["decode", "missing.pcap"]);
    assert_eq!(code, Some(3), "{err}");
    assert!(err.contains("missing.pcap"), "{err}");
}

#[test]
fn invalid_log_filter_is_named() {
    for (filter, is_valid) in [("a=b=c", false), ("info,strowger=debug", true), ("", true)] {
        let mut command = command(&["completions", "bash"]);
        let output = Guarded::spawn(command.env("STROWGER_LOG", filter)).output();
        assert!(output.status.success());
        let err = String::from_utf8(output.stderr).expect("it is text");
        let is_named = err.starts_with(&format!("STROWGER_LOG={filter}: invalid"));
        assert_eq!(is_named, !is_valid, "{filter}: {err}");
    }
}

#[test]
fn completions_name_this_program_and_its_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let (code, out, err) = run(&["completions", shell]);
        assert_eq!(code, Some(0), "{err}");
        assert!(out.contains("strowger-pfcp"), "{shell}");
        assert!(out.contains("robustness"), "{shell}");
    }
    let (code, _, err) = run(&["completions", "cmd"]);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("bash"), "{err}");
}

#[test]
fn load_meets_what_serve_answers() {
    let mut server = Guarded::spawn(&mut command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--json",
    ]));
    let mut lines = BufReader::new(server.stdout.take().expect("piped")).lines();
    let first = lines.next().expect("a line").expect("it is text");
    let first: Value = serde_json::from_str(&first).expect("JSON");
    let peer = first["n4"].as_str().expect("an address");
    let (code, out, err) = run(&[
        "load",
        "--json",
        "--to",
        peer,
        "--rate",
        "50",
        "--sessions",
        "20",
        "--for",
        "1s",
    ]);
    assert_eq!(code, Some(0), "{err}");
    let last = out.lines().last().expect("a summary");
    let summary: Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(summary["lost"], 0, "{summary}");
    assert!(summary["accepted"].as_u64() > Some(20), "{summary}");
}
