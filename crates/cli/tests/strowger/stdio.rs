//! `strowger mcp` on standard input and output: malformed lines, the end of the input, slow and
//! departed readers.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStdin, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{command, strowger_with_input};
use crate::guarded::Guarded;

const LIMIT: Duration = Duration::from_secs(60);

fn hello() -> String {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    format!("{hello}\n{ready}\n")
}

fn call(id: u64, tool: &str, arguments: &Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

/// Opens a stream, and waits for a piece that never comes.
fn waits(id: u64, wait_ms: u64) -> String {
    let open = call(id, "stream_open", &json!({ "stream": "news" }));
    let read = json!({ "stream": "news", "wait_ms": wait_ms });
    format!("{open}\n{}", call(id + 1, "stream_read", &read))
}

fn folder() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder of our own");
    fs::write(folder.path().join("a.txt"), "text").expect("it is ours");
    let root = folder.path().to_string_lossy().into_owned();
    (folder, root)
}

fn start(root: &str) -> (Guarded, ChildStdin) {
    let mut command = command(["mcp", "--root", root, "--streams"]);
    let mut child = Guarded::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let stdin = child.stdin.take().expect("piped");
    (child, stdin)
}

#[test]
fn a_malformed_line_is_answered_under_its_id() {
    let (_folder, root) = folder();
    let bad = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}"#;
    let good = call(2, "read_text_file", &json!({ "path": "a.txt" }));
    let input = [hello().as_bytes(), bad, b"\n", good.as_bytes()].concat();
    // The last line has no end.
    let ran = strowger_with_input(["mcp", "--root", &root], &input);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let answers = ran.objects();
    let of = |id: u64| {
        answers
            .iter()
            .find(|answer| answer["id"] == id)
            .expect("it answers")
    };
    assert_eq!(of(1)["error"]["code"], -32700, "{}", of(1));
    let text = of(1)["error"]["message"].as_str().expect("text");
    assert!(text.contains("send U+FFFD instead"), "{text}");
    assert_eq!(of(2)["result"]["content"][0]["text"], "text");
}

#[test]
fn an_agent_that_leaves_before_the_handshake_is_no_failure() {
    let (_folder, root) = folder();
    for input in [&b""[..], b"\n"] {
        let ran = strowger_with_input(["mcp", "--root", &root], input);
        assert_eq!((ran.code, &*ran.err, &*ran.out), (0, "", ""));
    }
}

#[test]
fn a_wrong_handshake_is_named_in_words() {
    let (_folder, root) = folder();
    let ran = strowger_with_input(
        ["mcp", "--root", &root],
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
    );
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(
        ran.err
            .contains("the first message must be an `initialize` request"),
        "{}",
        ran.err
    );
}

#[test]
fn calls_are_answered_as_whole_lines_after_the_end_of_the_input() {
    let (folder, root) = folder();
    let long = "long line ".repeat(7000);
    fs::write(folder.path().join("long.txt"), &long).expect("it is ours");
    let (mut child, mut stdin) = start(&root);
    let read = call(9, "read_text_file", &json!({ "path": "long.txt" }));
    let input = format!("{}{}\n{read}", hello(), waits(1, 6000));
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    // A pipe holds less than the answers: the reader is slower than the protocol's own patience.
    sleep(Duration::from_secs(7));
    let stdout = BufReader::new(child.stdout.take().expect("piped"));
    let answers = stdout.lines().map(|line| {
        let line = line.expect("text");
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    let ids: Vec<u64> = answers.filter_map(|answer| answer["id"].as_u64()).collect();
    for id in [0, 1, 2, 9] {
        assert!(ids.contains(&id), "{ids:?}");
    }
    assert!(child.wait_within(LIMIT).expect("it ends").success());
}

#[test]
fn calls_end_when_input_has_ended_and_output_has_no_reader() {
    let (_folder, root) = folder();
    let (mut child, mut stdin) = start(&root);
    let input = format!("{}{}\n", hello(), waits(1, 3_600_000));
    stdin.write_all(input.as_bytes()).expect("it reads");
    let mut stdout = child.stdout.take().expect("piped");
    stdout.read_exact(&mut [0; 100]).expect("it answers");
    let begun = Instant::now();
    drop((stdin, stdout));
    let _ = child.wait_within(LIMIT);
    assert!(
        begun.elapsed() < Duration::from_secs(30),
        "its call would take an hour"
    );
}
