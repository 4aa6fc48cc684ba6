//! The answer of a tool is sent once: its text in the content, facts beside it, nothing twice.
//!
//! Clients limit the length of a line. An answer that is both in the content and in the structured
//! content would reach such a limit with half of the data.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::agent::{Agent, cache};
use crate::running::Running;

/// The minimum length of a long answer.
const MIN_LONG_ANSWER: usize = 64 << 10;

/// The most bytes of facts beside a text.
const MAX_FACTS: usize = 512;

/// An agent whose answers are measured, and the tools that it has not called yet.
struct MeasuredAgent {
    agent: Agent,
    tools: BTreeMap<String, Value>,
    left: BTreeSet<String>,
}

impl MeasuredAgent {
    fn new(mut agent: Agent) -> Self {
        let tools = agent.listed();
        let left = tools.keys().cloned().collect();
        Self { agent, tools, left }
    }

    /// Calls a tool, and checks that its answer has the expected length and is sent once.
    fn call(&mut self, tool: &str, arguments: &Value, is_long: bool) -> Value {
        let id = self.begin(tool, arguments);
        self.end(tool, id, is_long)
    }

    fn long(&mut self, tool: &str, arguments: &Value, marker: &str) {
        let answer = self.call(tool, arguments, true).to_string();
        assert_eq!(
            answer.matches(marker).count(),
            1,
            "{tool} says {marker} once"
        );
    }

    fn short(&mut self, tool: &str, arguments: &Value) -> Value {
        self.call(tool, arguments, false)
    }

    fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.left.remove(tool);
        let params = json!({ "name": tool, "arguments": arguments });
        self.agent.ask("tools/call", &params)
    }

    fn end(&mut self, tool: &str, id: u64, is_long: bool) -> Value {
        let line = self.agent.answer_line(id);
        let message: Value = serde_json::from_str(&line).expect("it is JSON");
        let answer = message["result"].clone();
        let shown: String = answer.to_string().chars().take(300).collect();
        let blocks = answer["content"].as_array().expect("there is content");
        let payload: usize = blocks.iter().map(payload).sum();
        assert_eq!(
            payload > MIN_LONG_ANSWER,
            is_long,
            "{tool} answers {payload} bytes: {shown}"
        );
        let most = payload * 13 / 10 + 2 * MAX_FACTS;
        assert!(
            line.len() < most,
            "{tool}: {} bytes for {payload}: {shown}",
            line.len()
        );

        let facts = &answer["structuredContent"];
        assert!(facts.to_string().len() <= MAX_FACTS, "{tool}: {facts}");
        match self.tools[tool].get("outputSchema") {
            None => assert!(facts.is_null(), "{tool} has no schema of {facts}"),
            // A refusal is a text.
            Some(_) if facts.is_null() => assert_eq!(answer["isError"], true, "{tool}: {shown}"),
            Some(schema) => {
                let valid = jsonschema::validate(schema, facts);
                assert!(
                    valid.is_ok(),
                    "{tool}: {facts} is not as {schema} says: {valid:?}"
                );
            }
        }
        answer
    }
}

/// Number of bytes that a block carries.
fn payload(block: &Value) -> usize {
    let pieces = [&block["text"], &block["data"], &block["resource"]["blob"]];
    pieces
        .iter()
        .filter_map(|piece| piece.as_str())
        .map(str::len)
        .sum()
}

/// Files of any kind, and a directory whose names alone are long.
fn fill(data: &Path) {
    fs::create_dir_all(data.join("many")).expect("the file is accessible");
    let lines = (0..1000).map(|line| format!("{} needle {line:4}\n", "x".repeat(100)));
    fs::write(data.join("long.txt"), lines.collect::<String>()).expect("the file is accessible");
    fs::write(data.join("dot.png"), vec![0x89; 100_000]).expect("the file is accessible");
    for file in 0..400 {
        let name = format!("{file:03}-{}", "n".repeat(200));
        fs::write(data.join("many").join(name), "").expect("the file is accessible");
    }
}

/// A node with all tools.
fn node(data: &Path) -> Running {
    let cache = cache();
    Running::start(&format!(
        "[mcp]\nanswer = \"16MiB\"\n[components]\ncache = {cache:?}\n\
         [[tools.files]]\nroot = {data:?}\n\
         [tools.streams]\nenabled = true\nstreams = 1000\n[tools.code]\nenabled = true\n\
         [tools.programs]\nenabled = true\n"
    ))
}

#[test]
fn tools_send_their_answer_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    fill(&data);
    let node = node(&data);
    let mut all = MeasuredAgent::new(Agent::start(&["--control", &node.control]));
    measure_files(&mut all);
    measure_changes(&mut all);
    measure_streams(&mut all);
    measure_code(&mut all);
    measure_programs(&mut all);
    measure_views(&mut all);
    let left = &all.left;
    assert!(
        left.is_empty(),
        "call these here too, with a long answer if they have one: {left:?}"
    );
}

fn measure_files(all: &mut MeasuredAgent) {
    let file = json!({ "path": "long.txt" });
    all.long("read_text_file", &file, "needle  500");
    all.long("read_file", &file, "needle  500");
    all.long(
        "read_multiple_files",
        &json!({ "paths": ["long.txt"] }),
        "needle  500",
    );
    all.call("read_media_file", &json!({ "path": "dot.png" }), true);
    let many = json!({ "path": "many" });
    for tool in [
        "list_directory",
        "list_directory_with_sizes",
        "directory_tree",
    ] {
        all.long(tool, &many, "300-nnn");
    }
    all.long(
        "search_files",
        &json!({ "path": "", "pattern": "nnn" }),
        "300-nnn",
    );
    let lines = json!({ "path": "", "pattern": "needle", "most": 1000 });
    all.long("search_text", &lines, "needle  500");
    all.short("get_file_info", &file);
    all.short("list_allowed_directories", &json!({}));
    all.short("continue_answer", &json!({ "answer": 0 }));
}

fn measure_changes(all: &mut MeasuredAgent) {
    let edits = json!([{ "oldText": "needle", "newText": "thread", "all": true }]);
    let edit = json!({ "path": "long.txt", "edits": edits, "dryRun": true });
    all.long("edit_file", &edit, "thread  500");
    let content = "x".repeat(100_000);
    let write = json!({ "path": "new", "content": content });
    all.short("write_file", &write);
    all.short("append_file", &write);
    all.short("create_directory", &json!({ "path": "a" }));
    all.short(
        "move_file",
        &json!({ "source": "new", "destination": "a/new" }),
    );
    all.short("delete_file", &json!({ "path": "a", "recursive": true }));
}

fn measure_streams(all: &mut MeasuredAgent) {
    let stream = |name: &str| json!({ "stream": name, "replay": 4 });
    all.short("stream_open", &stream("news"));
    for text in ["first ", "second "] {
        let text = text.repeat(10_000);
        all.short("stream_write", &json!({ "stream": "news", "text": text }));
    }
    let read = all.call("stream_read", &json!({ "stream": "news", "most": 2 }), true);
    assert_eq!(
        read["content"].as_array().expect("blocks").len(),
        3,
        "a block for each piece"
    );
    all.short("stream_end", &json!({ "stream": "news" }));
    // The reason why a stream ended may be long as well.
    for tool in ["stream_read", "stream_to_file"] {
        all.short("stream_open", &stream("bad"));
        let arguments = match tool {
            "stream_read" => json!({ "stream": "bad", "wait_ms": 60_000 }),
            _ => json!({ "stream": "bad", "path": "bad.txt" }),
        };
        let id = all.begin(tool, &arguments);
        while !all
            .short("stream_list", &json!({}))
            .to_string()
            .contains("\\\"readers\\\":1")
        {}
        let error = "why ".repeat(30_000);
        all.short("stream_end", &json!({ "stream": "bad", "error": error }));
        let failed = all.end(tool, id, true);
        assert_eq!(failed["structuredContent"]["failed"], true, "{tool}");
    }
    for number in 0..600 {
        let name = format!("{number:03}-{}", "s".repeat(120));
        all.short("stream_open", &json!({ "stream": name }));
    }
    all.long("stream_list", &json!({}), "300-sss");
}

fn measure_code(all: &mut MeasuredAgent) {
    for (code, marker) in [
        ("'begin ' + 'y'.repeat(100_000)", "begin "),
        ("console.log('begin ' + 'y'.repeat(100_000))", "begin "),
        ("throw new Error('begin ' + 'y'.repeat(100_000))", "begin "),
        (
            "const e = new Error('no'); e.name = 'begin ' + 'y'.repeat(100_000); throw e",
            "begin yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy",
        ),
    ] {
        all.long("code_execute", &json!({ "code": code }), marker);
    }
    let failed = all.short(
        "code_execute",
        &json!({ "code": "for (;;);", "time_ms": 20 }),
    );
    let error = &failed["structuredContent"]["error"];
    assert_eq!(
        (&error["kind"], &error["most"]),
        (&json!("time"), &json!(20))
    );
}

fn measure_programs(all: &mut MeasuredAgent) {
    let code = "function handle(n) { return 'begin ' + 'p'.repeat(n) }";
    all.short("program_publish", &json!({ "name": "long", "code": code }));
    all.long(
        "program_call",
        &json!({ "name": "long", "input": 100_000 }),
        "begin ",
    );
    for number in 0..600 {
        let name = format!("{number:03}-{}", "p".repeat(60));
        let draft = json!({ "name": name, "code": "1", "draft": true });
        all.short("program_publish", &draft);
    }
    all.long("program_list", &json!({}), "300-ppp");
    all.short("program_remove", &json!({ "name": "long" }));
}

fn measure_views(all: &mut MeasuredAgent) {
    let programs = json!({ "path": "/tools/programs", "most": 1000 });
    all.call("actor_tree", &programs, true);
    all.short("inspect", &json!({ "path": "/tools/code" }));
    // A heartbeat with a vendor's element that fills the datagram.
    let element = format!("8001{:04x}7fff{}", 40_002, "ab".repeat(40_000));
    let length = 4 + 8 + element.len() / 2;
    let hex = format!("2001{length:04x}00000100006000040a0b0c0d{element}");
    all.call("pfcp_decode", &json!({ "hex": hex }), true);
}

#[test]
fn directories_are_listed_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let roots: Vec<String> = (0..400)
        .map(|number| {
            let root = folder
                .path()
                .join(format!("{number:03}-{}", "d".repeat(200)));
            fs::create_dir(&root).expect("the file is accessible");
            format!("n{number:03}={}", root.display())
        })
        .collect();
    let mut args: Vec<&str> = roots.iter().flat_map(|root| ["--root", root]).collect();
    args.extend(["--limit", "answer=1MiB"]);
    let mut all = MeasuredAgent::new(Agent::start(&args));
    all.long("list_allowed_directories", &json!({}), "/300-ddd");
}
