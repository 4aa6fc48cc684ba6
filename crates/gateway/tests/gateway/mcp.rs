//! The endpoint for agents: its answers, the limits of a call, and the ways in which a call ends.

use std::time::Duration;

use serde_json::{Value, json};
use strowger::{ActorSystem, Fault, FaultCode};
use strowger_gateway::access::Caller;
use strowger_gateway::mcp::{
    McpLimits, McpServer, ProgressReporter, Tool, ToolEffect, ToolOutput, ToolSet,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

mod hostile;
mod http;

/// No step takes nearly this long.
const LIMIT: Duration = Duration::from_secs(60);

/// Reports the outcome of calls that wait.
struct DropNotice(mpsc::UnboundedSender<&'static str>);

impl Drop for DropNotice {
    fn drop(&mut self) {
        let _ = self.0.send("ended");
    }
}

/// Tools that answer, wait, panic and report progress; and a receiver for the reports of the
/// waiting ones.
fn tools() -> (ToolSet, mpsc::UnboundedReceiver<&'static str>) {
    let (tell, told) = mpsc::unbounded_channel();
    let none = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let number = json!({ "type": "object", "properties": { "number": { "type": "integer" } } });
    let double = Tool::new("double", "Doubles a number.", number.clone())
        .with_output(number)
        .with_effect(ToolEffect::Reads);
    let wait = Tool::new("wait", "Waits until it is cancelled.", none());
    let panic = Tool::new("panic", "Panics.", none());
    let count = Tool::new("count", "Tells how far it is.", none());
    let tools = ToolSet::new("numbers", "1.0")
        .with_instructions("Use double.")
        .register(double, |call| async move {
            let Some(number) = call.arguments["number"].as_i64() else {
                return Err(Fault::new(FaultCode::BadRequest, "number is none"));
            };
            Ok(ToolOutput::structured(json!({ "number": number * 2 })))
        })
        .register(wait, move |_| {
            let told = DropNotice(tell.clone());
            async move {
                let _ = told.0.send("begun");
                std::future::pending().await
            }
        })
        .register(panic, |_| async { panic!("as it was told to") })
        .register(count, |call| async move {
            call.progress.report(1.0, Some(2.0), "half").await;
            Ok(ToolOutput::text("counted"))
        });
    (tools, told)
}

/// An endpoint with its tools.
struct TestEndpoint {
    system: ActorSystem,
    mcp: McpServer,
    told: mpsc::UnboundedReceiver<&'static str>,
}

impl TestEndpoint {
    async fn open(change: impl FnOnce(&mut McpLimits)) -> Self {
        let (tools, told) = tools();
        let system = ActorSystem::new("office").expect("inside a runtime");
        let mut limits = McpLimits::default();
        change(&mut limits);
        let mcp = McpServer::open(&system, tools, limits)
            .await
            .expect("it opens");
        Self { system, mcp, told }
    }

    /// The next report of a waiting call.
    async fn next_notice(&mut self) -> &'static str {
        let told = tokio::time::timeout(LIMIT, self.told.recv()).await;
        told.expect("it is said in time")
            .expect("somebody can say it")
    }

    /// An agent that has completed the handshake.
    async fn agent(&self) -> Agent {
        let mut agent = Agent::new(self.mcp.clone());
        agent.send(&initialize("2025-06-18")).await;
        let hello = agent.next().await;
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
        assert_eq!(hello["result"]["serverInfo"]["name"], "numbers");
        assert_eq!(hello["result"]["instructions"], "Use double.");
        agent
            .send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        agent
    }
}

fn initialize(version: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    } })
}

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": tool, "arguments": arguments, "_meta": { "progressToken": id },
    } })
}

/// The other side of a pair of streams.
struct Agent {
    read: BufReader<ReadHalf<DuplexStream>>,
    write: WriteHalf<DuplexStream>,
    served: JoinHandle<bool>,
}

impl Agent {
    fn new(mcp: McpServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (read, write) = tokio::io::split(theirs);
        let served = tokio::spawn(async move { mcp.serve(read, write).await.is_ok() });
        let (read, write) = tokio::io::split(ours);
        Self {
            read: BufReader::new(read),
            write,
            served,
        }
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.write
            .write_all(line.as_bytes())
            .await
            .expect("it reads");
    }

    async fn next(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(LIMIT, self.read.read_line(&mut line)).await;
        read.expect("it answers in time").expect("it writes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// Calls a tool, and returns its answer.
    async fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.send(&call(id, tool, &arguments)).await;
        let answer = self.next().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }
}

#[tokio::test]
async fn agent_lists_and_calls_tools() {
    let endpoint = TestEndpoint::open(|_| {}).await;
    let mut agent = endpoint.agent().await;
    agent
        .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))
        .await;
    let list = agent.next().await;
    let list = list["result"]["tools"].as_array().expect("a list");
    let names: Vec<&str> = list
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    assert_eq!(
        names,
        ["continue_answer", "count", "double", "panic", "wait"]
    );
    let list = &list[1..];
    let double = &list[1];
    assert_eq!(double["annotations"]["readOnlyHint"], true);
    assert_eq!(double["inputSchema"], double["outputSchema"]);
    assert_eq!(list[0]["annotations"]["destructiveHint"], true);

    let answer = agent.call(2, "double", json!({ "number": 21 })).await;
    assert_eq!(
        answer["result"]["structuredContent"],
        json!({ "number": 42 })
    );
    assert_eq!(answer["result"]["content"][0]["text"], "{\"number\":42}");
}

#[tokio::test]
async fn failures_are_readable_for_a_model() {
    let endpoint = TestEndpoint::open(|_| {}).await;
    let mut agent = endpoint.agent().await;
    let answer = agent.call(1, "double", json!({ "number": "many" })).await;
    assert_eq!(answer["result"]["isError"], true);
    assert_eq!(
        answer["result"]["content"][0]["text"],
        "bad-request: number is none"
    );
    let answer = agent.call(2, "halve", json!({})).await;
    let text = answer["error"]["message"].as_str().expect("an error");
    assert!(
        text.contains("unknown tool \"halve\"; expected one of continue_answer, count, double"),
        "{text}"
    );
    let answer = agent.call(3, "panic", json!({})).await;
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let answer = agent.call(4, "double", json!({ "number": 1 })).await;
    assert_eq!(answer["result"]["structuredContent"]["number"], 2);
}

#[tokio::test]
async fn cancelled_call_ends() {
    let mut endpoint = TestEndpoint::open(|_| {}).await;
    let mut agent = endpoint.agent().await;
    agent.send(&call(7, "wait", &json!({}))).await;
    assert_eq!(endpoint.next_notice().await, "begun");
    assert!(
        endpoint.system.find("/mcp/calls/1").is_some(),
        "a call is an actor"
    );
    let params = json!({ "requestId": 7, "reason": "enough" });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    agent.send(&cancel).await;
    assert_eq!(endpoint.next_notice().await, "ended");
    let answer = agent.call(8, "double", json!({ "number": 1 })).await;
    assert_eq!(answer["result"]["structuredContent"]["number"], 2);
}

#[tokio::test]
async fn calls_end_when_their_agent_disconnects() {
    let mut endpoint = TestEndpoint::open(|_| {}).await;
    let mut agent = endpoint.agent().await;
    agent.send(&call(1, "wait", &json!({}))).await;
    assert_eq!(endpoint.next_notice().await, "begun");
    let Agent {
        read,
        write,
        served,
    } = agent;
    drop((read, write));
    assert_eq!(endpoint.next_notice().await, "ended");
    assert!(served.await.expect("it does not panic"), "it left in order");
}

#[tokio::test]
async fn progress_is_reported_on_request() {
    let endpoint = TestEndpoint::open(|_| {}).await;
    let mut agent = endpoint.agent().await;
    agent.send(&call(5, "count", &json!({}))).await;
    let told = agent.next().await;
    assert_eq!(told["method"], "notifications/progress", "{told}");
    assert_eq!(told["params"]["progressToken"], 5);
    assert_eq!(
        (&told["params"]["progress"], &told["params"]["total"]),
        (&json!(1.0), &json!(2.0))
    );
    assert_eq!(agent.next().await["id"], 5);

    let (tell, mut heard) = mpsc::unbounded_channel();
    let progress = ProgressReporter::new(move |done, of, text| {
        let _ = tell.send((done, of, text.to_owned()));
    });
    let owner = Caller::owner(&endpoint.system, "test");
    let counted = endpoint
        .mcp
        .call_for(&owner, "count", Value::Null, progress)
        .await;
    assert_eq!(counted.expect("it counts"), ToolOutput::text("counted"));
    assert_eq!(
        heard.recv().await,
        Some((1.0, Some(2.0), "half".to_owned()))
    );
}

#[tokio::test]
async fn excess_calls_are_refused_and_others_continue() {
    let mut endpoint = TestEndpoint::open(|limits| limits.calls = 1).await;
    let mut agent = endpoint.agent().await;
    agent.send(&call(1, "wait", &json!({}))).await;
    assert_eq!(endpoint.next_notice().await, "begun");
    let answer = agent.call(2, "double", json!({ "number": 1 })).await;
    let text = answer["result"]["content"][0]["text"]
        .as_str()
        .expect("text");
    assert!(text.starts_with("full: "), "{text}");
    for said in [
        "1 of 1 calls in progress",
        "limit `calls`",
        "--limit calls=N",
    ] {
        assert!(text.contains(said), "{text}");
    }
    let waiting = endpoint.system.find("/mcp/calls/1").expect("it waits");
    waiting.kill();
    let ended = agent.next().await;
    assert_eq!(
        (&ended["id"], &ended["result"]["isError"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(endpoint.next_notice().await, "ended");
    waiting.stopped().await;
    let answer = agent.call(3, "double", json!({ "number": 1 })).await;
    assert_eq!(
        answer["result"]["structuredContent"]["number"], 2,
        "{answer}"
    );
}

#[tokio::test(start_paused = true)]
async fn call_has_a_deadline() {
    let endpoint = TestEndpoint::open(|limits| limits.deadline = Duration::from_secs(5)).await;
    let late = endpoint.mcp.call("wait", Value::Null).await;
    let fault = late.expect_err("it waits for ever");
    assert_eq!(fault.code, FaultCode::Deadline);
    assert!(
        fault
            .message
            .contains("wait was cancelled after 5s (limit `deadline`)"),
        "{fault}"
    );
    assert!(fault.message.contains("--limit deadline=TIME"), "{fault}");
}

#[tokio::test]
async fn garbage_affects_no_other_agent() {
    let endpoint = TestEndpoint::open(|_| {}).await;
    let mut good = endpoint.agent().await;
    for (garbage, answers) in [
        ("\n\n\n", 0),
        ("GET / HTTP/1.1\r\n\r\n", 1),
        ("[1,2]\n", 1),
        ("{\"id\":1}\n", 1),
        ("\u{0}\n", 1),
        ("{\"jsonrpc\":\"2.0\",\"id\"", 1),
    ] {
        let mut bad = Agent::new(endpoint.mcp.clone());
        bad.write
            .write_all(garbage.as_bytes())
            .await
            .expect("it reads");
        bad.write.shutdown().await.expect("it can be closed");
        for _ in 0..answers {
            let answer = bad.next().await;
            assert!(answer["error"]["code"].is_i64(), "{garbage:?}: {answer}");
        }
        let mut rest = String::new();
        let read = bad.read.read_line(&mut rest).await;
        assert_eq!(read.expect("it ends"), 0, "{garbage:?}: {rest}");
        assert!(bad.served.await.expect("it does not panic"), "{garbage:?}");
    }
    let mut bad = Agent::new(endpoint.mcp.clone());
    bad.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
        .await;
    assert!(
        !bad.served.await.expect("it does not panic"),
        "no handshake"
    );
    let answer = good.call(1, "double", json!({ "number": 4 })).await;
    assert_eq!(answer["result"]["structuredContent"]["number"], 8);
}

#[tokio::test]
async fn malformed_lines_are_answered_and_the_session_goes_on() {
    let endpoint = TestEndpoint::open(|_| {}).await;
    let mut agent = endpoint.agent().await;
    let number = json!({ "number": 4 });
    for (line, id, code) in [
        (
            &br#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"\ud83d"}}"#[..],
            json!(7),
            -32700,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"\xff\"}",
            json!("x"),
            -32700,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":8,\"params\":{\"a\":NaN}}",
            json!(8),
            -32700,
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"",
            json!(9),
            -32700,
        ),
        (b"{\"jsonrpc\":\"2.0\",\"id\":10}", json!(10), -32600),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"ping\"}]",
            json!(11),
            -32600,
        ),
    ] {
        agent.write.write_all(line).await.expect("it reads");
        agent.write.write_all(b"\n").await.expect("it reads");
        let answer = agent.next().await;
        let shown = String::from_utf8_lossy(line);
        let told = (&answer["id"], &answer["error"]["code"]);
        assert_eq!(told, (&id, &json!(code)), "{shown}: {answer}");
        let answer = agent.call(1, "double", number.clone()).await;
        assert_eq!(answer["result"]["structuredContent"]["number"], 8);
    }
}

#[tokio::test]
async fn an_id_in_use_is_refused() {
    let mut endpoint = TestEndpoint::open(|_| {}).await;
    let mut agent = endpoint.agent().await;
    agent.send(&call(7, "wait", &json!({}))).await;
    assert_eq!(endpoint.next_notice().await, "begun");
    let answer = agent.call(7, "double", json!({ "number": 1 })).await;
    let text = answer["error"]["message"].as_str().expect("an error");
    assert!(text.contains("request in progress"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn calls_are_answered_after_the_end_of_the_input_within_their_deadline() {
    let endpoint = TestEndpoint::open(|limits| limits.deadline = Duration::from_secs(30)).await;
    let mut agent = endpoint.agent().await;
    // The last line has no end.
    let line = call(3, "wait", &json!({})).to_string();
    agent
        .write
        .write_all(line.as_bytes())
        .await
        .expect("it reads");
    agent.write.shutdown().await.expect("it can be closed");
    let answer = agent.next().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["isError"]),
        (&json!(3), &json!(true))
    );
    let text = answer["result"]["content"][0]["text"]
        .as_str()
        .expect("text");
    assert!(text.starts_with("deadline: "), "{text}");
    assert!(
        agent.served.await.expect("it does not panic"),
        "it left in order"
    );
}

#[tokio::test]
async fn agents_end_with_the_system() {
    let mut endpoint = TestEndpoint::open(|_| {}).await;
    let mut agent = endpoint.agent().await;
    agent.send(&call(1, "wait", &json!({}))).await;
    assert_eq!(endpoint.next_notice().await, "begun");
    assert!(endpoint.system.shutdown(LIMIT).await.not_stopped.is_empty());
    assert_eq!(endpoint.next_notice().await, "ended");
    let served = tokio::time::timeout(LIMIT, agent.served).await;
    served.expect("it ends in time").expect("it does not panic");
}

/// The texts of an answer.
fn texts(answer: &Value) -> Vec<String> {
    let blocks = answer["result"]["content"].as_array().expect("blocks");
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.map(str::to_owned).collect()
}

#[tokio::test]
async fn long_answer_continues_to_its_end() {
    let long = |name: &'static str| Tool::new(name, "Is long.", json!({ "type": "object" }));
    let tools = ToolSet::new("long", "1.0")
        .register(
            long("paged").with_paging("for the rest, pass it"),
            |call| async move { Ok(ToolOutput::text(format!("{:?}", call.page_size))) },
        )
        .register(long("blocks"), |_| async {
            let output = ToolOutput::text("begin");
            let output = output
                .with_text("\u{e9}".repeat(5000))
                .with_text("x".repeat(3000));
            Ok(output.with_text("end"))
        })
        .register(long("fails"), |_| async {
            Err(Fault::new(FaultCode::Failed, "why ".repeat(2000)))
        });
    let system = ActorSystem::new("office").expect("inside a runtime");
    let mut limits = McpLimits::default();
    limits.answer = 4096;
    let mcp = McpServer::open(&system, tools, limits).await;
    let mcp = mcp.expect("it opens");
    let mut agent = Agent::new(mcp.clone());
    agent.send(&initialize("2025-06-18")).await;
    agent.next().await;
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    agent.send(&ready).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    agent.send(&list).await;
    let list = agent.next().await.to_string();
    let about = "Is long. Returns at most 4096 bytes of text; for the rest, pass it.";
    assert_eq!(list.matches(about).count(), 1, "{list}");
    let paged = agent.call(2, "paged", json!({})).await;
    assert_eq!(texts(&paged), ["Some(3072)"]);

    let mut id = 3;
    for (tool, whole) in [
        (
            "blocks",
            format!("begin{}{}", "\u{e9}".repeat(5000), "x".repeat(3000)),
        ),
        ("fails", format!("failed: {}", "why ".repeat(2000))),
    ] {
        let mut answer = agent.call(id, tool, json!({})).await;
        assert_eq!(answer["result"]["isError"], tool == "fails");
        if tool == "blocks" {
            assert_eq!(texts(&answer).last().map(String::as_str), Some("end"));
        }
        let mut joined = String::new();
        loop {
            id += 1;
            let page = texts(&answer);
            assert!(
                page.iter().map(String::len).sum::<usize>() <= 4096,
                "{page:?}"
            );
            let mut arguments = None;
            for text in &page {
                let (text, note) = match text.find("call continue_answer with ") {
                    Some(at) => (
                        &text[..text[..at].rfind('(').expect("a note")],
                        Some(&text[at..]),
                    ),
                    None => (text.as_str(), None),
                };
                let text = text.strip_suffix('\n').unwrap_or(text);
                joined.push_str(if text == "end" { "" } else { text });
                if let Some(note) = note {
                    let number = |key: &str| {
                        let digits = note.split_once(key)?.1;
                        let end = digits.find(|letter: char| !letter.is_ascii_digit())?;
                        digits[..end].parse::<u64>().ok()
                    };
                    arguments = Some(json!({
                        "answer": number("answer="), "offset": number("offset="),
                    }));
                }
            }
            let Some(arguments) = arguments else { break };
            // The same part may be requested again.
            let again = agent
                .call(1000 + id, "continue_answer", arguments.clone())
                .await;
            answer = agent.call(id, "continue_answer", arguments).await;
            assert_eq!(again["result"], answer["result"]);
        }
        assert_eq!(joined, whole, "{tool}");
    }
    for answer in [0, 3] {
        let none = agent
            .call(90, "continue_answer", json!({ "answer": answer }))
            .await;
        let text = &texts(&none)[0];
        assert!(
            text.contains(&format!("no rest of an answer {answer} is kept")),
            "{text}"
        );
    }
}

#[tokio::test]
async fn rest_of_an_answer_belongs_to_its_caller() {
    let tool = Tool::new("long", "Is long.", json!({ "type": "object" }));
    let tools = ToolSet::new("long", "1.0").register(tool, |_| async {
        Ok(ToolOutput::text("x".repeat(100_000)))
    });
    let system = ActorSystem::new("office").expect("inside a runtime");
    let mcp = McpServer::open(&system, tools, McpLimits::default()).await;
    let mcp = mcp.expect("it opens");
    let output = mcp.call("long", json!({})).await.expect("it answers");
    let note = format!("{output:?}");
    assert!(note.contains("call continue_answer with answer=1 for the rest"));
    let rest = json!({ "answer": 1 });
    mcp.call("continue_answer", rest.clone())
        .await
        .expect("it is the owner's");
    let other = Caller::owner(&system, "elsewhere");
    let none = ProgressReporter::default();
    let refused = mcp.call_for(&other, "continue_answer", rest, none).await;
    assert_eq!(
        refused.map_err(|fault| fault.code),
        Err(FaultCode::UnknownTarget)
    );
}
