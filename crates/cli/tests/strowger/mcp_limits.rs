//! `strowger mcp --limit`: the effect of each limit of the endpoint, and the message to the agent.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use strowger_gateway::mcp::McpLimits;
use tempfile::TempDir;

use crate::agent::Agent;
use crate::binary::strowger;
use crate::running::Running;

/// An agent with a directory and streams, under a limit.
fn agent_with_limit(folder: &TempDir, limit: &str) -> Agent {
    let root = folder.path().to_string_lossy();
    Agent::start(&["--root", &root, "--streams", "--limit", limit])
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// A call that does not end by itself.
fn endless_read() -> Value {
    json!({ "stream": "news", "wait_ms": 3_600_000 })
}

#[test]
fn excess_call_is_refused_with_the_limit_and_its_setting() {
    let folder = folder();
    let mut agent = agent_with_limit(&folder, "calls=2,deadline=10m");
    agent.call("stream_open", &json!({ "stream": "news" }));
    let calls: Vec<u64> = (0..3)
        .map(|_| agent.begin("stream_read", &endless_read()))
        .collect();
    // Two calls wait; the third one is answered.
    let (_, full) = agent.first_answer(&calls);
    let full = full.to_string();
    for said in [
        "full: ",
        "2 of 2 calls in progress",
        "limit `calls`",
        "--limit calls=N",
    ] {
        assert!(full.contains(said), "{full}");
    }
    // The twin has room for one more.
    let mut agent = agent_with_limit(&folder, "calls=3,deadline=10m");
    agent.call("stream_open", &json!({ "stream": "news" }));
    let short = json!({ "stream": "news", "wait_ms": 1 });
    let calls: Vec<u64> = (0..3).map(|_| agent.begin("stream_read", &short)).collect();
    for _ in &calls {
        let (_, answer) = agent.first_answer(&calls);
        assert_eq!(answer["isError"], false, "{answer}");
    }
}

#[test]
fn overdue_call_ends_with_the_limit_and_its_setting() {
    let folder = folder();
    let mut agent = agent_with_limit(&folder, "deadline=300ms");
    agent.call("stream_open", &json!({ "stream": "news" }));
    let late = agent.refused("stream_read", &endless_read());
    for said in [
        "deadline: ",
        "after 300ms",
        "limit `deadline`",
        "--limit deadline=TIME",
    ] {
        assert!(late.contains(said), "{late}");
    }
}

#[test]
fn oversized_line_is_refused_with_the_limit_and_its_setting() {
    let folder = folder();
    let call = |length: usize| {
        let arguments = json!({ "path": "a", "content": "x".repeat(length) });
        json!({ "name": "write_file", "arguments": arguments })
    };
    let mut agent = agent_with_limit(&folder, "line=8192");
    let id = agent.ask("tools/call", &call(8192));
    let error = agent.error(id);
    let text = error["message"].as_str().expect("text");
    for said in ["larger than 8192 bytes", "limit `line`", "--limit line=N"] {
        assert!(text.contains(said), "{text}");
    }
    assert!(!folder.path().join("a").exists());
    // The next call, and the twin, which is longer than the default limit.
    let short = call(4096);
    agent.structured("write_file", &short["arguments"]);
    let mut agent = agent_with_limit(&folder, "line=67108864,file=33554432");
    agent.structured("write_file", &call(20 << 20)["arguments"]);
    let written = fs::metadata(folder.path().join("a")).expect("it was written");
    assert_eq!(written.len(), 20 << 20);
}

#[test]
fn code_limit_is_raised_by_the_setting_that_its_error_names() {
    let cache = crate::agent::cache();
    let cache = cache.to_str().expect("text");
    let code = json!({ "code": "'x'.repeat(2000)" });
    let args = ["--code", "--cache", cache, "--limit"];
    let mut agent = Agent::start(&[&args[..], &["code.result=1000"]].concat());
    let refused = agent.refused("code_execute", &code);
    assert!(refused.contains("--limit code.result=N"), "{refused}");
    let mut agent = Agent::start(&[&args[..], &["code.result=3000"]].concat());
    assert_eq!(agent.value("code_execute", &code), "x".repeat(2000));
}

#[test]
fn limits_beside_a_node_are_never_looser_than_those_of_the_node() {
    let config = "[mcp]\ncalls = 1\ndeadline = \"10m\"\n[tools.streams]\nenabled = true\n";
    let node = Running::start(config);
    let mut agent = Agent::start(&["--control", &node.control]);
    agent.call("stream_open", &json!({ "stream": "news" }));
    let calls: Vec<u64> = (0..2)
        .map(|_| agent.begin("stream_read", &endless_read()))
        .collect();
    let (_, refused) = agent.first_answer(&calls);
    let refused = refused.to_string();
    assert!(refused.contains("full: "), "{refused}");
    assert!(refused.contains("raise `calls` in [mcp]"), "{refused}");
    calls.into_iter().for_each(|id| agent.cancel(id));

    let control = ["--control", &node.control, "--limit", "deadline=300ms"];
    let mut tight = Agent::start(&control);
    let mut late = std::iter::repeat_with(|| tight.refused("stream_read", &endless_read()));
    let late = late.find(|text| !text.contains("full: "));
    assert!(late.expect("there is room").contains("300ms"));
    for limit in ["octets=1", "code.time=1s", "answer=1MiB"] {
        let ran = strowger(["mcp", "--control", &node.control, "--limit", limit]);
        assert_eq!(ran.code, 2, "{limit}");
        assert!(
            ran.err.contains("the limits of its configuration"),
            "{}",
            ran.err
        );
    }
}

#[test]
fn help_names_every_key() {
    let help = strowger(["mcp", "--help"]);
    let keys = strowger(["mcp", "--root", ".", "--limit", "nothing=1"]);
    let keys = keys.err.split_once("they are ").expect("it names them").1;
    let keys = keys.lines().next().expect("a line");
    let keys = keys.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '.'));
    let words = ["", "and", "line;", "of", "directories", "code", "programs"];
    let keys: Vec<&str> = keys.filter(|key| !words.contains(key)).collect();
    assert_eq!(keys.len(), 4 + 9 + 9, "{keys:?}");
    for key in keys {
        assert!(help.out.contains(key), "{key}: {}", help.out);
    }
}

#[test]
fn documented_limits_match() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md");
    let page = fs::read_to_string(page).expect("the page is there");
    let limits = McpLimits::default();
    for (key, default) in [
        ("calls", limits.calls.to_string()),
        ("deadline", format!("{}s", limits.deadline.as_secs())),
        ("line", limits.line.to_string()),
        ("answer", limits.answer.to_string()),
    ] {
        let row = format!("| `{key}` | {default} |");
        assert!(page.contains(&row), "{row}");
    }
}
