//! The limit on the text of an answer: each tool keeps within it and tells how to continue, and the
//! parts join to the whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::agent::{Agent, cache};
use crate::running::Running;

/// The limit in these tests, the smallest.
const LIMIT: usize = 4096;

/// An agent over one of the transports.
trait CallTool {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value;
}

impl CallTool for Agent {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        Self::call(self, tool, arguments)
    }
}

/// An agent over HTTP.
struct HttpAgent<'a> {
    address: &'a str,
    session: String,
}

const TOKEN: &str = "a-token-for-agents";

impl<'a> HttpAgent<'a> {
    fn new(address: &'a str) -> Self {
        let mut agent = Self {
            address,
            session: String::new(),
        };
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let (head, _) = agent.post(&hello);
        let head = head.to_lowercase();
        let id = head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = id.expect("a session");
        agent.session = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
        agent.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        agent
    }

    /// Returns the head and the body of a response.
    fn post(&self, message: &Value) -> (String, String) {
        let (address, session, body) = (self.address, &self.session, message.to_string());
        let mut stream = TcpStream::connect(address).expect("it listens");
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\n\
             Authorization: Bearer {TOKEN}\r\n{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        (head.to_owned(), body.to_owned())
    }
}

impl CallTool for HttpAgent<'_> {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let (_, body) = self.post(&call);
        let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let mut messages = data.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let message = messages.next_back().unwrap_or_else(|| panic!("{body}"));
        message["result"].clone()
    }
}

/// Returns the texts of an answer, which are within the limit.
fn texts(answer: &Value) -> Vec<String> {
    let blocks = answer["content"]
        .as_array()
        .unwrap_or_else(|| panic!("{answer}"));
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    let texts: Vec<String> = texts.map(str::to_owned).collect();
    let length: usize = texts.iter().map(String::len).sum();
    assert!(
        length <= LIMIT,
        "{length} bytes: {}",
        &texts[0][..texts[0].len().min(200)]
    );
    texts
}

/// Returns the number behind a key in a note, such as that behind `offset=`.
fn number(note: &str, key: &str) -> Option<u64> {
    let digits = note.split_once(key)?.1;
    let end = digits.find(|letter: char| !letter.is_ascii_digit());
    digits[..end.unwrap_or(digits.len())].parse().ok()
}

/// Returns the last line of a text if it tells how to continue.
fn note(text: &str) -> Option<&str> {
    let last = text.lines().last()?;
    let is_note = last.contains("call again with offset=") || last.contains("call continue_answer");
    is_note.then_some(last)
}

/// Calls a tool and continues to the end. Returns the texts of each answer.
fn follow(agent: &mut dyn CallTool, tool: &str, arguments: &Value) -> Vec<Vec<String>> {
    let first = agent.call(tool, arguments);
    assert_eq!(first["isError"], false, "{first}");
    follow_from(agent, &first, tool, arguments)
}

fn follow_from(
    agent: &mut dyn CallTool,
    first: &Value,
    tool: &str,
    arguments: &Value,
) -> Vec<Vec<String>> {
    let (mut tool, mut arguments) = (tool.to_owned(), arguments.clone());
    let mut pages = vec![texts(first)];
    loop {
        let page = &pages[pages.len() - 1];
        let Some(note) = page.iter().find_map(|text| note(text)) else {
            return pages;
        };
        match number(note, "answer=") {
            Some(answer) => {
                "continue_answer".clone_into(&mut tool);
                arguments = json!({ "answer": answer });
                if let Some(offset) = number(note, "offset=") {
                    arguments["offset"] = json!(offset);
                }
            }
            None => arguments["offset"] = json!(number(note, "offset=")),
        }
        assert!(pages.len() < 100, "{tool} goes on for ever: {note}");
        pages.push(texts(&agent.call(&tool, &arguments)));
    }
}

/// Joins all text of an answer that does not fit, without its notes.
fn joined(agent: &mut dyn CallTool, tool: &str, arguments: &Value) -> String {
    let pages = follow(agent, tool, arguments);
    assert!(pages.len() > 1, "{tool} {arguments}: {pages:?}");
    join(&pages)
}

fn join(pages: &[Vec<String>]) -> String {
    let texts = pages.iter().flatten().filter(|text| note(text).is_none());
    texts.map(String::as_str).collect()
}

/// Returns all lines of an answer that does not fit, without its notes.
fn lines(agent: &mut dyn CallTool, tool: &str, arguments: &Value) -> Vec<String> {
    let pages = follow(agent, tool, arguments);
    assert!(pages.len() > 1, "{tool} {arguments}: {pages:?}");
    let lines = pages.iter().flatten().flat_map(|text| text.lines());
    let lines = lines.filter(|line| !line.starts_with('(') && !line.ends_with(':'));
    lines.map(str::to_owned).collect()
}

/// Returns all items of an answer in JSON that does not fit.
fn items(agent: &mut dyn CallTool, tool: &str, arguments: &Value, key: &str) -> Vec<Value> {
    let pages = follow(agent, tool, arguments);
    assert!(pages.len() > 1, "{tool} {arguments}: {pages:?}");
    let pages = pages.iter().flat_map(|page| {
        let page: Value = serde_json::from_str(&page[0]).expect("it is JSON");
        page[key].as_array().expect("a list").clone()
    });
    pages.collect()
}

/// Returns the text of an answer of an agent without a tight limit.
fn whole(agent: &mut Agent, tool: &str, arguments: &Value) -> String {
    let answer = agent.call(tool, arguments);
    assert_eq!(answer["isError"], false, "{answer}");
    let blocks = answer["content"].as_array().expect("there is content");
    assert_eq!(blocks.len(), 1, "{tool} is whole");
    blocks[0]["text"].as_str().expect("text").to_owned()
}

/// Files whose content, and directories whose lists, are longer than an answer.
fn fill(data: &Path) {
    let write = |path: &str, text: &str| {
        let path = data.join(path);
        let parent = path.parent().expect("it is below the data");
        fs::create_dir_all(parent).expect("the folder is writable");
        fs::write(path, text).expect("the folder is writable");
    };
    let lines = (0..300).map(|line| format!("line {line:4} {}\n", "\u{e9}".repeat(20)));
    write("lines.txt", &lines.collect::<String>());
    write("long.txt", &"one line ".repeat(2000));
    write("short.txt", "short\n");
    for file in 0..80 {
        let name = format!("many/{file:03}-{}", "n".repeat(100));
        write(&name, &"needle\n".repeat(1 + file * 7 % 80 / 40));
    }
    for directory in 0..20 {
        for file in 0..20 {
            write(&format!("tree/d{directory:02}/sub/f{file:02}"), "");
        }
    }
}

/// Collects the paths of a tree, down to the entries that were left out.
fn tree(agent: &mut dyn CallTool, path: &str, paths: &mut BTreeSet<String>) {
    let answer = agent.call("directory_tree", &json!({ "path": path }));
    let answer: Value = serde_json::from_str(&texts(&answer).concat()).expect("it is JSON");
    let top = &answer["tree"];
    if top["cut_by"] == "answer" {
        let cuts = top["cuts"].to_string();
        assert!(cuts.contains("list_directory"), "{cuts}");
    }
    collect(agent, top, path, paths);
}

fn path_below(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}/{name}"),
    }
}

fn collect(agent: &mut dyn CallTool, entry: &Value, path: &str, paths: &mut BTreeSet<String>) {
    let mut last = None;
    for below in entry["entries"].as_array().into_iter().flatten() {
        let name = below["name"].as_str().expect("a name");
        let below_path = path_below(path, name);
        assert!(paths.insert(below_path.clone()), "{below_path} is repeated");
        match below["cut_by"] == "answer" {
            true => tree(agent, &below_path, paths),
            false => collect(agent, below, &below_path, paths),
        }
        last = Some(name.to_owned());
    }
    if entry["cut_by"] == "answer" {
        let rest = pages_after(agent, "list_directory", &json!({ "path": path }), last);
        for line in rest {
            let (kind, name) = line.split_once(' ').expect("a kind and a name");
            let below = path_below(path, name);
            assert!(paths.insert(below.clone()), "{below} is repeated");
            if kind == "[DIR]" {
                tree(agent, &below, paths);
            }
        }
    }
}

/// Lists a directory after a name, page by page.
fn pages_after(
    agent: &mut dyn CallTool,
    tool: &str,
    arguments: &Value,
    mut after: Option<String>,
) -> Vec<String> {
    let (mut all, mut arguments) = (Vec::new(), arguments.clone());
    loop {
        if let Some(after) = after {
            arguments["after"] = json!(after);
        }
        let answer = agent.call(tool, &arguments);
        let text = texts(&answer).concat();
        let lines = text.lines().filter(|line| line.starts_with('['));
        let page: Vec<String> = lines.map(str::to_owned).collect();
        let facts = &answer["structuredContent"];
        assert_eq!(facts["count"], page.len(), "{tool}: {text}");
        let more = facts["more"] == true;
        assert_eq!(more, text.contains("as `after`"), "{text}");
        let last = page.last().and_then(|line| line.split(' ').nth(1));
        after = last.map(str::to_owned);
        all.extend(page);
        if !more {
            return all;
        }
    }
}

/// Calls every tool that reads files with an answer that does not fit. `large` has no tight limit.
fn check_files(agent: &mut dyn CallTool, large: &mut Agent) {
    for arguments in [
        json!({ "path": "lines.txt" }),
        json!({ "path": "long.txt" }),
        json!({ "path": "lines.txt", "from": 10, "head": 200 }),
        json!({ "path": "lines.txt", "tail": 200 }),
        json!({ "path": "lines.txt", "offset": 101 }),
    ] {
        for tool in ["read_text_file", "read_file"] {
            let text = joined(agent, tool, &arguments);
            assert!(text == whole(large, tool, &arguments), "{tool} {arguments}");
        }
    }
    check_several(agent);
    let many = json!({ "path": "many" });
    for tool in ["list_directory", "list_directory_with_sizes"] {
        let all = pages_after(agent, tool, &many, None);
        let whole = whole(large, tool, &many);
        assert_eq!(all, whole.lines().collect::<Vec<_>>(), "{tool}");
    }
    for (tool, arguments) in [
        ("search_files", json!({ "path": "", "pattern": "nnn" })),
        ("search_text", json!({ "path": "", "pattern": "needle" })),
        (
            "list_directory_with_sizes",
            json!({ "path": "many", "sortBy": "size" }),
        ),
    ] {
        let all = lines(agent, tool, &arguments);
        let whole = whole(large, tool, &arguments);
        let whole: Vec<&str> = whole
            .lines()
            .filter(|line| !line.starts_with('('))
            .collect();
        assert_eq!(all, whole, "{tool}");
    }
    // `most` bounds one answer, and the next continues after it.
    let some = json!({ "path": "", "pattern": "needle", "most": 5 });
    let answer = agent.call("search_text", &some);
    let text = texts(&answer).concat();
    assert!(text.contains("call again with offset=5"), "{text}");
    for path in ["many", "tree", ""] {
        let mut paths = BTreeSet::new();
        tree(agent, path, &mut paths);
        let mut expected = BTreeSet::new();
        let answer = whole(large, "directory_tree", &json!({ "path": path }));
        let answer: Value = serde_json::from_str(&answer).expect("it is JSON");
        collect(large, &answer["tree"], path, &mut expected);
        assert_eq!(paths, expected, "{path}");
    }
    let edits = json!([{ "oldText": "line", "newText": "thread", "all": true }]);
    let edit = json!({ "path": "lines.txt", "edits": edits, "dryRun": true });
    let diff = joined(agent, "edit_file", &edit);
    assert!(diff == whole(large, "edit_file", &edit), "{diff}");
}

/// Reads several files, together longer than an answer.
fn check_several(agent: &mut dyn CallTool) {
    let (mut left, mut read) = (
        vec!["short.txt", "long.txt", "lines.txt", "none.txt"],
        BTreeMap::new(),
    );
    while !left.is_empty() {
        let answer = agent.call("read_multiple_files", &json!({ "paths": left }));
        let blocks = texts(&answer);
        let mark = blocks[0].split_once("] ").expect("a mark").0;
        let mark = format!("{mark}] ");
        let mut unread = Vec::new();
        for block in &blocks {
            let part = block.strip_prefix(&mark).expect("one mark");
            if let Some(paths) = part.strip_prefix("(not read, the answer is full: ") {
                let paths = paths.split_once(": call again").expect("it says how").0;
                unread = left.split_off(left.len() - paths.split(", ").count());
                assert_eq!(unread.join(", "), paths);
                continue;
            }
            let end = part.find([':', ' ']).expect("a path");
            let path = part[..end].to_owned();
            let Some((head, text)) = part.split_once(":\n") else {
                assert!(part.contains("no such file"), "{part}");
                read.insert(path, String::new());
                continue;
            };
            let mut text = text.to_owned();
            if let Some(offset) = number(head, "call read_text_file with offset=") {
                let rest = json!({ "path": path, "offset": offset });
                text.push_str(&join(&follow(agent, "read_text_file", &rest)));
            }
            read.insert(path, text);
        }
        assert!(unread.len() < left.len() + unread.len(), "{blocks:?}");
        left = unread;
    }
    assert_eq!(read.len(), 4);
    assert_eq!(read["long.txt"], "one line ".repeat(2000));
    assert_eq!(read["lines.txt"].lines().count(), 300);
}

/// Calls every tool that runs code with an answer that does not fit.
fn check_code(agent: &mut dyn CallTool) {
    let long = (0..2000)
        .map(|number| format!("{number} "))
        .collect::<String>();
    let make = "const long = Array.from({ length: 2000 }, (_, n) => n + ' ').join('');";
    for (code, expected) in [
        ("long", json!(long).to_string()),
        ("console.log(long)", format!("{long}null")),
        ("console.log(long); long", format!("{long}{}", json!(long))),
    ] {
        let arguments = json!({ "code": format!("{make} {code}") });
        let pages = follow(agent, "code_execute", &arguments);
        assert!(pages.len() > 1, "{code}");
        // A short value is in the first answer, behind the beginning of the output.
        let mut texts: Vec<String> = pages.into_iter().flatten().collect();
        if let Some(at) = texts.iter().position(|text| text == "null") {
            let value = texts.remove(at);
            texts.push(value);
        }
        assert_eq!(join(&[texts]), expected, "{code}");
    }
    let throw = json!({ "code": format!("{make} throw new Error(long)") });
    let first = agent.call("code_execute", &throw);
    assert_eq!(first["isError"], true);
    let error = join(&follow_from(agent, &first, "code_execute", &throw));
    assert!(error.starts_with(&format!("Error: {long}")), "{error}");
    let program =
        "function handle(n) { return Array.from({ length: n }, (_, n) => n + ' ').join('') }";
    let published = json!({ "name": "long", "code": program });
    agent.call("program_publish", &published);
    let call = json!({ "name": "long", "input": 2000 });
    let output = joined(agent, "program_call", &call);
    let output: Value = serde_json::from_str(&output).expect("it is JSON");
    assert_eq!(output["output"], long);
    for number in 0..40 {
        let name = format!("{number:03}-{}", "p".repeat(60));
        let draft = json!({ "name": name, "code": "1", "draft": true });
        agent.call("program_publish", &draft);
    }
    let programs = items(agent, "program_list", &json!({}), "programs");
    let names: BTreeSet<&str> = programs
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!((names.len(), programs.len()), (41, 41));
    agent.call("program_remove", &json!({ "name": "long" }));
    // A heartbeat with a vendor's element that fills most of the datagram.
    let element = format!("8001{:04x}7fff{}", 20_002, "ab".repeat(20_000));
    let length = 4 + 8 + element.len() / 2;
    let hex = format!("2001{length:04x}00000100006000040a0b0c0d{element}");
    let decoded = joined(agent, "pfcp_decode", &json!({ "hex": hex }));
    serde_json::from_str::<Value>(&decoded).expect("it is JSON");
    assert!(decoded.contains(&"ab".repeat(20_000)));
}

fn check_streams(agent: &mut Agent) {
    let stream = json!({ "stream": "news", "replay": 6 });
    agent.call("stream_open", &stream);
    let pieces: Vec<String> = (0..6)
        .map(|piece| format!("{piece} ").repeat(700))
        .collect();
    for piece in &pieces {
        agent.call("stream_write", &json!({ "stream": "news", "text": piece }));
    }
    let read = json!({ "stream": "news", "most": 6 });
    let pages = follow(agent, "stream_read", &read);
    let texts = pages.into_iter().flatten();
    let texts = texts.filter(|text| text != "(more may follow)");
    assert_eq!(join(&[texts.collect()]), pieces.concat());
    agent.call("stream_end", &json!({ "stream": "news" }));
    // The reason why a stream ended may be long as well.
    let error: String = (0..2000).map(|number| format!("{number} ")).collect();
    for tool in ["stream_read", "stream_to_file"] {
        agent.call("stream_open", &json!({ "stream": "bad" }));
        let arguments = match tool {
            "stream_read" => json!({ "stream": "bad", "wait_ms": 60_000 }),
            _ => json!({ "stream": "bad", "path": "bad.txt" }),
        };
        let id = agent.begin(tool, &arguments);
        while agent.value("stream_list", &json!({}))["streams"][0]["readers"] != 1 {}
        let end = json!({ "stream": "bad", "error": error });
        let ending = agent.begin("stream_end", &end);
        let answers = [
            agent.first_answer(&[id, ending]),
            agent.first_answer(&[id, ending]),
        ];
        let first = answers.iter().find(|(answered, _)| *answered == id);
        let (_, first) = first.expect("it is answered");
        let text = join(&follow_from(agent, first, tool, &arguments));
        assert!(text.contains(&error), "{tool}: {text}");
    }
    for number in 0..60 {
        let name = format!("{number:03}-{}", "s".repeat(120));
        agent.call("stream_open", &json!({ "stream": name }));
    }
    let streams = items(agent, "stream_list", &json!({}), "streams");
    let names: BTreeSet<&str> = streams
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert_eq!((names.len(), streams.len()), (60, 60), "{streams:?}");
}

fn check_views(agent: &mut dyn CallTool) {
    let tools = json!({ "path": "/tools/programs", "most": 1000 });
    let actors = items(agent, "actor_tree", &tools, "actors");
    let paths: BTreeSet<&str> = actors
        .iter()
        .filter_map(|one| one["path"].as_str())
        .collect();
    assert_eq!(paths.len(), actors.len(), "{actors:?}");
    assert!(paths.len() > 8, "{paths:?}");
    texts(&agent.call("inspect", &json!({ "path": "/tools/code" })));
}

/// Tools whose answers are short, apart from errors, and that of bytes, which `file` bounds.
const SHORT: [&str; 14] = [
    "append_file",
    "continue_answer",
    "create_directory",
    "delete_file",
    "get_file_info",
    "move_file",
    "program_publish",
    "program_remove",
    "read_media_file",
    "stream_end",
    "stream_open",
    "stream_to_file",
    "stream_write",
    "write_file",
];

/// Counts the tools that are called.
struct Counted<'a>(&'a mut Agent, BTreeSet<String>);

impl CallTool for Counted<'_> {
    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.1.insert(tool.to_owned());
        self.0.call(tool, arguments)
    }
}

#[test]
fn answer_of_every_tool_fits_and_continues_to_its_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    fill(&data);
    let token = folder.path().join("token");
    fs::write(&token, format!("{TOKEN}\n")).expect("the folder is writable");
    fs::set_permissions(&token, Permissions::from_mode(0o600)).expect("the file is accessible");
    let (cache, root) = (cache(), data.to_string_lossy());
    let node = Running::start(&format!(
        "[metrics]\nlisten = \"127.0.0.1:0\"\n\
         [mcp]\nanswer = \"4KiB\"\nhttp = true\ntoken_file = {token:?}\n\
         [components]\ncache = {cache:?}\n[[tools.files]]\nroot = {data:?}\n\
         [tools.streams]\nenabled = true\nstreams = 1000\n[tools.code]\nenabled = true\n\
         [tools.programs]\nenabled = true\n"
    ));
    let mut large = Agent::start(&["--root", &root, "--limit", "answer=16MiB"]);
    let mut agent = Agent::start(&["--control", &node.control]);
    let listed = agent.listed();
    let mut counted = Counted(&mut agent, BTreeSet::new());
    check_files(&mut counted, &mut large);
    check_code(&mut counted);
    check_views(&mut counted);
    let mut called = counted.1;
    check_streams(&mut agent);
    called.extend(["stream_read", "stream_to_file", "stream_list"].map(str::to_owned));
    called.insert("list_allowed_directories".to_owned());
    for (name, tool) in &listed {
        let is_short = SHORT.contains(&name.as_str());
        assert!(
            is_short || called.contains(name),
            "call {name} here, with an answer that does not fit if it has one"
        );
        let about = tool["description"].as_str().expect("text");
        let says = about.contains(&format!("Returns at most {LIMIT} bytes of text; "));
        assert_eq!(says, !is_short, "{name}: {about}");
    }
    let address = node.http.as_deref().expect("the door is open");
    let mut http = HttpAgent::new(address);
    check_files(&mut http, &mut large);
    check_code(&mut http);
    let mut stdio = Agent::start(&["--root", &root, "--limit", "answer=4096"]);
    check_files(&mut stdio, &mut large);
}

#[test]
fn many_allowed_directories_are_listed_in_pages() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let roots: Vec<String> = (0..60)
        .map(|number| {
            let name = format!("{number:03}-{}", "d".repeat(100));
            let root = folder.path().join(name);
            fs::create_dir(&root).expect("the folder is writable");
            format!("n{number:03}={}", root.display())
        })
        .collect();
    let mut args: Vec<&str> = roots.iter().flat_map(|root| ["--root", root]).collect();
    args.extend(["--limit", "answer=4KiB"]);
    let mut agent = Agent::start(&args);
    let all = lines(&mut agent, "list_allowed_directories", &json!({}));
    assert_eq!(all.len(), 60, "{all:?}");
    let unique: BTreeSet<&String> = all.iter().collect();
    assert_eq!(unique.len(), 60);
    // A refusal that names them all fits as well.
    let refused = agent.call("read_text_file", &json!({ "path": "elsewhere/a" }));
    let pages = follow_from(&mut agent, &refused, "read_text_file", &json!({}));
    assert!(
        pages.len() > 1 && join(&pages).contains("059-ddd"),
        "{pages:?}"
    );
}

#[test]
fn default_limit_is_described_and_holds() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let text = "line\n".repeat(40_000);
    fs::write(folder.path().join("a.txt"), &text).expect("the folder is writable");
    let root = folder.path().to_string_lossy();
    let mut agent = Agent::start(&["--root", &root]);
    let about = agent.listed()["read_text_file"]["description"].to_string();
    assert!(
        about.contains("Returns at most 81920 bytes of text; "),
        "{about}"
    );
    let first = agent.call("read_text_file", &json!({ "path": "a.txt" }));
    let page = first["content"][0]["text"].as_str().expect("text");
    assert!((60_000..81_920).contains(&page.len()), "{}", page.len());
    assert!(page.ends_with("line\n"));
    // A file that is larger than one call may read is read in pages as well.
    let mut small = Agent::start(&["--root", &root, "--limit", "file=90000"]);
    let first = small.call("read_text_file", &json!({ "path": "a.txt" }));
    assert_eq!(first["content"][0]["text"], page);
}
