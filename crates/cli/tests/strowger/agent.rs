//! The tools of an agent that starts `strowger mcp`: code, programs, and streams that become files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::guarded::Guarded;
use crate::running::Running;

/// An agent with the program that it started.
pub(crate) struct Agent {
    child: Guarded,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    next: u64,
    /// Answers that arrived before they were awaited.
    early: BTreeMap<u64, Value>,
    early_lines: BTreeMap<u64, String>,
}

impl Agent {
    /// Starts the program with these arguments, and completes the handshake.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_by(&[], args)
    }

    /// Does the same by means of another program, which is given the command line.
    pub(crate) fn start_by(program: &[&str], args: &[&str]) -> Self {
        let line = program.iter().chain([&env!("CARGO_BIN_EXE_strowger")]);
        let mut words = line.copied();
        let mut command = Command::new(words.next().expect("the binary at least"));
        command.args(words).arg("mcp").args(args);
        let mut child = Guarded::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut agent = Self {
            child,
            stdin,
            stdout,
            next: 0,
            early: BTreeMap::new(),
            early_lines: BTreeMap::new(),
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let id = agent.ask("initialize", &hello);
        agent.answer(id);
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("it is open");
        writeln!(stdin, "{message}").expect("it reads");
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next line.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("text");
        line
    }

    /// The next message.
    fn read(&mut self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// The line with the answer to a request, verbatim; other answers are kept.
    pub(crate) fn answer_line(&mut self, id: u64) -> String {
        loop {
            if let Some(early) = self.early_lines.remove(&id) {
                return early;
            }
            let line = self.line();
            let message: Value = serde_json::from_str(&line).expect("it is JSON");
            if let Some(answered) = message["id"].as_u64() {
                self.early_lines.insert(answered, line);
            }
        }
    }

    /// The answer to a request; progress notifications before it are skipped.
    fn answer(&mut self, id: u64) -> Value {
        loop {
            if let Some(early) = self.early.remove(&id) {
                return early;
            }
            let message = self.read();
            if let Some(answered) = message["id"].as_u64() {
                self.early.insert(answered, message["result"].clone());
            }
        }
    }

    /// The first answer to any of these requests, with its identifier; the other answers come
    /// later.
    pub(crate) fn first_answer(&mut self, ids: &[u64]) -> (u64, Value) {
        loop {
            let mut message = self.read();
            let id = message["id"].as_u64().filter(|id| ids.contains(id));
            if let Some(id) = id {
                return (id, message["result"].take());
            }
        }
    }

    /// The error of a request; other messages before it are skipped.
    pub(crate) fn error(&mut self, id: u64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == id {
                return message["error"].clone();
            }
            assert!(message["error"].is_null(), "of nobody: {message}");
        }
    }

    /// Cancels a call.
    pub(crate) fn cancel(&mut self, id: u64) {
        let params = json!({ "requestId": id, "reason": "enough" });
        self.send(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params,
        }));
    }

    /// Begins a call with progress notifications.
    pub(crate) fn begin(&mut self, tool: &str, arguments: &Value) -> u64 {
        let token = self.next + 1;
        let params = json!({
            "name": tool, "arguments": arguments, "_meta": { "progressToken": token },
        });
        self.ask("tools/call", &params)
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin(tool, arguments);
        self.answer(id)
    }

    /// The last text of an answer, parsed as JSON.
    pub(crate) fn value(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["isError"], false, "{answer}");
        let blocks = answer["content"].as_array().expect("there is content");
        let text = blocks.last().expect("there is a block")["text"].as_str();
        serde_json::from_str(text.expect("it is a text")).expect("it is JSON")
    }

    /// The structured content of a call.
    pub(crate) fn structured(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["isError"], false, "{answer}");
        answer["structuredContent"].clone()
    }

    /// The error text of a failed call.
    pub(crate) fn refused(&mut self, tool: &str, arguments: &Value) -> String {
        let answer = self.call(tool, arguments);
        assert_eq!(answer["isError"], true, "{answer}");
        answer["content"][0]["text"]
            .as_str()
            .expect("text")
            .to_owned()
    }

    fn tools(&mut self) -> Vec<String> {
        self.schemas().into_keys().collect()
    }

    /// The tools, each with the schema of its arguments.
    pub(crate) fn schemas(&mut self) -> BTreeMap<String, Value> {
        let tools = self.listed().into_iter();
        tools
            .map(|(name, tool)| (name, tool["inputSchema"].clone()))
            .collect()
    }

    /// The tools as the server lists them.
    pub(crate) fn listed(&mut self) -> BTreeMap<String, Value> {
        let id = self.ask("tools/list", &json!({}));
        let listed = self.answer(id);
        let tools = listed["tools"].as_array().expect("a list").iter();
        tools
            .map(|tool| {
                let name = tool["name"].as_str().expect("text").to_owned();
                (name, tool.clone())
            })
            .collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // An agent that leaves closes its end; the program ends by itself, or is killed.
        drop(self.stdin.take());
        let _ = self.child.wait_within(Duration::from_secs(60));
    }
}

/// The cache of the compiled engine, which all tests share.
pub(crate) fn cache() -> PathBuf {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("code-cache");
    let made = fs::DirBuilder::new().mode(0o700).create(&cache);
    assert!(made.is_ok() || cache.is_dir(), "there is a folder");
    cache
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("a.txt"), "3\n4\n").expect("the file is accessible");
    folder
}

/// An agent with files and the additional arguments.
fn agent_in(folder: &TempDir, more: &[&str]) -> Agent {
    let (root, cache) = (folder.path().to_string_lossy(), cache());
    let mut args = vec!["--root", &*root];
    args.extend(more);
    // The option is refused where no engine is compiled.
    if more.contains(&"--code") || more.contains(&"--programs") {
        args.extend(["--cache", cache.to_str().expect("text")]);
    }
    Agent::start(&args)
}

#[test]
fn code_tool_is_enabled_by_its_option_only() {
    let folder = folder();
    let tools = agent_in(&folder, &[]).tools();
    for (name, there) in [("read_text_file", true), ("code_execute", false)] {
        assert_eq!(tools.iter().any(|tool| tool == name), there, "{tools:?}");
    }
    let others = |tool: &String| tool.starts_with("program_") || tool.starts_with("stream_");
    assert!(!tools.iter().any(others), "{tools:?}");
    let tools = agent_in(
        &folder,
        &["--read-only", "--streams", "--code", "--programs"],
    )
    .tools();
    for name in [
        "code_execute",
        "program_publish",
        "program_call",
        "stream_open",
    ] {
        assert!(tools.iter().any(|tool| tool == name), "{tools:?}");
    }
    // This tool would write.
    assert!(
        !tools.iter().any(|tool| tool == "stream_to_file"),
        "{tools:?}"
    );
}

#[test]
fn code_reaches_only_the_tools_it_is_granted() {
    let folder = folder();
    let mut agent = agent_in(&folder, &["--code"]);
    let code = "const { content } = await fns.read_text_file({ path: args.path });
                const sum: number = content.trim().split('\\n').reduce((sum, n) => sum + +n, 0);
                console.log('adding'); console.warn('up');
                await fns.write_file({ path: 'sum.txt', content: String(sum) });
                sum";
    let functions = ["read_text_file", "write_file"];
    let mut wanted = json!({
        "code": code, "language": "ts", "args": { "path": "a.txt" }, "functions": functions,
    });
    let ran = agent.call("code_execute", &wanted);
    let output = json!({ "type": "text", "text": "adding\n[warn] up" });
    let value = json!({ "type": "text", "text": "7" });
    assert_eq!(ran["content"], json!([output, value]));
    assert_eq!(
        ran["structuredContent"],
        json!({ "lines": 2, "fresh": true })
    );
    let sum = fs::read_to_string(folder.path().join("sum.txt")).expect("it was written");
    assert_eq!(sum, "7");

    wanted["args"]["path"] = json!("../secret");
    let refused = agent.refused("code_execute", &wanted);
    assert!(refused.contains("(rule: outside)"), "{refused}");
    let none = agent.value("code_execute", &json!({ "code": "Object.keys(fns)" }));
    assert_eq!(none, json!([]));
    // Code cannot be passed to code, so it cannot get around its limits.
    for name in ["code_execute", "nothing"] {
        let wanted = json!({ "code": "1", "functions": [name] });
        let refused = agent.refused("code_execute", &wanted);
        assert!(refused.contains("that code can call"), "{refused}");
    }
    let kept = json!({ "code": "globalThis.n = (globalThis.n ?? 0) + 1", "realm": "mine" });
    assert_eq!(agent.value("code_execute", &kept), 1);
    assert_eq!(agent.value("code_execute", &kept), 2);
}

#[test]
fn code_error_has_its_kind_and_position() {
    let folder = folder();
    // No limit of time strikes before the limit that a row is about.
    let patient = "deadline=10m,code.time=10m,code.deadline=10m";
    let mut agent = agent_in(&folder, &["--code", "--limit", patient]);
    let thrown = agent.call(
        "code_execute",
        &json!({ "code": "console.log('before');\nnull.x" }),
    );
    assert_eq!(thrown["isError"], true, "{thrown}");
    let told = &thrown["structuredContent"];
    assert_eq!(thrown["content"][0]["text"], "before");
    let text = thrown["content"][1]["text"].as_str().expect("text");
    assert!(
        text.starts_with("TypeError: ") && text.contains("(line 2, column "),
        "{text}"
    );
    assert!(text.contains("\n    at "), "{text}");
    let error = &told["error"];
    assert_eq!(
        (&error["kind"], &error["name"], &error["line"]),
        (&json!("thrown"), &json!("TypeError"), &json!(2)),
        "{told}"
    );
    let endless = json!({ "code": "for (;;);", "time_ms": 300 });
    let failed = agent.call("code_execute", &endless);
    assert_eq!(failed["structuredContent"]["error"]["kind"], "time");
    for (code, kind) in [
        ("'x'.repeat(2 ** 28)", "memory"),
        ("(function f() { f() })()", "stack"),
        ("for (;;) console.log('x'.repeat(1000))", "output"),
        ("'x'.repeat(2 ** 21)", "result"),
        ("await new Promise(() => {})", "unsettled"),
        ("let = 3 3", "thrown"),
    ] {
        let failed = agent.call("code_execute", &json!({ "code": code }));
        let error = &failed["structuredContent"]["error"];
        assert_eq!(error["kind"], kind, "{code}: {failed}");
    }
    // A request for more than is granted does not get it.
    let greedy = json!({
        "code": "'x'.repeat(2 ** 25).length", "memory": 1 << 30, "time_ms": 3_600_000,
    });
    let failed = agent.call("code_execute", &greedy);
    assert_eq!(failed["structuredContent"]["error"]["kind"], "memory");
    let wrong = agent.refused("code_execute", &json!({ "code": "1", "shell": true }));
    assert!(wrong.contains("unknown field `shell`"), "{wrong}");
}

#[test]
fn output_is_streamed_and_a_cancel_ends_an_endless_loop() {
    let cache = cache();
    let node = Running::start(&format!(
        "[mcp]\ndeadline = \"10m\"\n[components]\ncache = {cache:?}\n[tools.code]\nenabled = true\n\
         [tools.code.limits]\ntime = \"10m\"\ndeadline = \"10m\"\n\
         [tools.programs]\nenabled = true\n\
         [tools.programs.limits]\ntime = \"10m\"\ndeadline = \"10m\"\n"
    ));
    let mut agent = Agent::start(&["--control", &node.control]);
    let usage = |node: &Running, tool: &str| {
        let inspected = node.ask(["inspect", tool, "--json"]).last_object();
        inspected["details"]["tool"].clone()
    };
    let endless = json!({ "code": "console.log('round and round'); for (;;);" });
    let id = agent.begin("code_execute", &endless);
    let told = agent.read();
    assert_eq!(told["params"]["message"], "round and round", "{told}");
    assert_eq!(usage(&node, "/tools/code")["running"], 1);
    agent.cancel(id);
    let ended = std::iter::repeat_with(|| usage(&node, "/tools/code"));
    let ended = ended.take(10_000).find(|usage| usage["running"] == 0);
    let ended = ended.expect("it ends");
    assert_eq!(
        (&ended["cancelled"], &ended["runs"]),
        (&json!(1), &json!(1))
    );

    // The same holds for a program; the next call finds it intact.
    let code = "state.n = 0; function handle(n) { while (n === 0); return state.n += n }";
    agent.structured("program_publish", &json!({ "name": "count", "code": code }));
    assert_eq!(
        agent.value("program_call", &json!({ "name": "count", "input": 2 }))["output"],
        2
    );
    let id = agent.begin("program_call", &json!({ "name": "count", "input": 0 }));
    agent.cancel(id);
    let again = agent.value("program_call", &json!({ "name": "count", "input": 5 }));
    assert!(again["output"] == 5 || again["output"] == 7, "{again}");

    let ps = node.ask(["ps", "/tools"]).out;
    assert!(
        ps.contains("0 of 16 runs") && ps.contains("1 of 10000 programs"),
        "{ps}"
    );
}

#[test]
fn programs_are_published_called_listed_and_removed() {
    let folder = folder();
    let mut agent = agent_in(&folder, &["--programs"]);
    let code = "state.n ??= 0; async function handle(by) {
                  const { content } = await fns.read_text_file({ path: 'a.txt' });
                  return state.n += by + content.length }";
    let publish = json!({
        "name": "counter", "code": code, "functions": ["read_text_file"],
        "input": { "type": "integer" },
    });
    let published = agent.structured("program_publish", &publish);
    assert_eq!(published, json!({ "address": "@(programs/counter)" }));
    for expected in [5, 10] {
        let call = json!({ "name": "counter", "input": 1 });
        assert_eq!(agent.value("program_call", &call)["output"], expected);
    }
    let wrong = agent.refused("program_call", &json!({ "name": "counter", "input": "x" }));
    assert!(wrong.contains("does not match its schema"), "{wrong}");
    let listed = agent.value("program_list", &json!({}));
    let program = json!({
        "name": "counter", "state": "resident", "calls": 3, "failed": 1, "restarts": 0,
    });
    assert_eq!(listed["programs"], json!([program]));
    let broken = json!({ "name": "broken", "code": "1;\n2 2" });
    let broken = agent.refused("program_publish", &broken);
    assert!(
        broken.contains("SyntaxError") && broken.contains("line 2"),
        "{broken}"
    );
    for name in ["missing", "../code", "counter/program", ""] {
        let missing = agent.refused("program_call", &json!({ "name": name }));
        assert!(missing.contains("no program"), "{missing}");
    }
    for removed in [true, false] {
        let told = agent.structured("program_remove", &json!({ "name": "counter" }));
        assert_eq!(told, json!({ "removed": removed }));
    }
}

#[test]
fn stream_is_written_to_a_file() {
    let folder = folder();
    let mut agent = agent_in(&folder, &["--streams"]);
    agent.call("stream_open", &json!({ "stream": "news", "replay": 4 }));
    agent.structured(
        "stream_write",
        &json!({ "stream": "news", "text": "one\n" }),
    );
    let id = agent.begin(
        "stream_to_file",
        &json!({ "stream": "news", "path": "news.txt" }),
    );
    let told = agent.read();
    assert_eq!(told["params"]["message"], "4 bytes written", "{told}");
    agent.structured(
        "stream_write",
        &json!({ "stream": "news", "text": "two\n" }),
    );
    agent.call("stream_end", &json!({ "stream": "news" }));
    let written = agent.answer(id);
    assert_eq!(
        written["structuredContent"],
        json!({ "pieces": 2, "octets": 8, "failed": false })
    );
    let news = fs::read_to_string(folder.path().join("news.txt")).expect("it was written");
    assert_eq!(news, "one\ntwo\n");

    let missing = json!({ "stream": "nothing", "path": "news.txt" });
    let refused = agent.refused("stream_to_file", &missing);
    assert!(refused.contains("nothing"), "{refused}");
    agent.call("stream_open", &json!({ "stream": "late", "replay": 4 }));
    let outside = json!({ "stream": "late", "path": "../news.txt" });
    let refused = agent.refused("stream_to_file", &outside);
    assert!(refused.contains("(rule: outside)"), "{refused}");
    let news = fs::read_to_string(folder.path().join("news.txt")).expect("it is as it was");
    assert_eq!(news, "one\ntwo\n");
}

#[test]
fn search_skips_excluded_paths() {
    let folder = folder();
    fs::create_dir(folder.path().join("target")).expect("the file is accessible");
    fs::write(folder.path().join("target/b.txt"), "3\n").expect("the file is accessible");
    let mut agent = agent_in(&folder, &[]);
    for (tool, pattern) in [("search_files", "txt"), ("search_text", "^3$")] {
        let mut search = json!({ "path": "", "pattern": pattern });
        assert_eq!(agent.structured(tool, &search)["count"], 2);
        search["excludePatterns"] = json!(["target"]);
        assert_eq!(agent.structured(tool, &search)["count"], 1);
        search["excludePatterns"] = json!(["["]);
        let wrong = agent.refused(tool, &search);
        assert!(wrong.contains("invalid pattern"), "{wrong}");
    }
}
