//! Calls of agents over HTTP: one or 64 at a time, each on a kept-alive connection.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ServerCapabilities,
    ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Value, json};
use strowger::ActorSystem;
use strowger_bench::{Case, Sample, workers};
use strowger_gateway::access::{Role, Token};
use strowger_gateway::health::HealthRegistry;
use strowger_gateway::http::{HttpLimits, HttpServer};
use strowger_gateway::mcp::{McpHttpSpec, McpLimits, McpServer, Tool, ToolOutput, ToolSet};
use strowger_gateway::metrics::MetricsRecorder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Number of calls in flight at a time, each on its own connection, as the clients of agents do.
const CALLS: u64 = 64;
/// Number of calls of each agent behind a percentile.
const TIMED: u64 = 500;
const TOKEN: &str = "a token of the bench";

pub(super) fn cases() -> Vec<Case> {
    let ours = |runtime: &Runtime| -> StartedServer {
        let (door, system) = runtime.block_on(start_node_endpoint());
        (door.address(), Box::new((door, system)))
    };
    let theirs = |runtime: &Runtime| -> StartedServer {
        (runtime.block_on(start_plain_server()), Box::new(()))
    };
    vec![
        rate("mcp_http_1", 1, "strowger", ours),
        rate("mcp_http_1", 1, "rmcp", theirs),
        rate("mcp_http_64", CALLS, "strowger", ours),
        rate("mcp_http_64", CALLS, "rmcp", theirs),
        percentile("mcp_http_64_p50", 50, "strowger", ours),
        percentile("mcp_http_64_p50", 50, "rmcp", theirs),
        percentile("mcp_http_64_p99", 99, "strowger", ours),
        percentile("mcp_http_64_p99", 99, "rmcp", theirs),
    ]
}

/// The address of a server, and the value that keeps it running.
type StartedServer = (SocketAddr, Box<dyn std::any::Any>);

/// A server with its agents, on a runtime of two workers.
struct ServerWithAgents {
    runtime: Runtime,
    agents: Vec<Agent>,
    _served: Box<dyn std::any::Any>,
}

impl ServerWithAgents {
    fn open(agents: u64, serve: impl Fn(&Runtime) -> StartedServer) -> Self {
        let runtime = workers(0, 2);
        let (address, served) = serve(&runtime);
        let agents = runtime.block_on(Agent::connect(address, agents));
        Self {
            runtime,
            agents,
            _served: served,
        }
    }

    /// Makes every agent do this number of calls.
    fn call(&mut self, each: u64) {
        let agents = std::mem::take(&mut self.agents);
        self.agents = self.runtime.block_on(call_all(agents, each));
    }
}

/// The time of one call while this number of agents call.
fn rate(
    id: &str,
    agents: u64,
    subject: &'static str,
    serve: impl Fn(&Runtime) -> StartedServer + 'static,
) -> Case {
    Case::new(id, subject, move |count| {
        // A connection that waits for the turns of all other cases would be closed as idle.
        let mut scene = ServerWithAgents::open(agents, &serve);
        let each = count.div_ceil(agents);
        let began = Instant::now();
        scene.call(each);
        let time = began.elapsed();
        Sample {
            time,
            done: each * agents,
            checked: each * agents,
        }
    })
}

/// The time that an agent waits for an answer while 64 call: a percentile.
fn percentile(
    id: &str,
    percent: usize,
    subject: &'static str,
    serve: impl Fn(&Runtime) -> StartedServer + 'static,
) -> Case {
    Case::counted(id, subject, "ns", move || {
        let mut scene = ServerWithAgents::open(CALLS, &serve);
        scene.call(TIMED);
        let waits = scene.agents.iter_mut().map(|agent| &mut agent.waits);
        let mut waits: Vec<Duration> = waits.flat_map(std::mem::take).collect();
        waits.sort_unstable();
        let wait = waits[waits.len() * percent / 100];
        Ok((wait.as_nanos() as f64, waits.len() as u64))
    })
}

/// Starts the endpoint of a node with one tool.
async fn start_node_endpoint() -> (HttpServer, ActorSystem) {
    let system = ActorSystem::new("bench").expect("it starts");
    let double = Tool::new("double", "Doubles a number.", schema());
    let tools = ToolSet::new("bench", "1").register(double, |call| async move {
        let number = call.arguments["number"].as_u64().expect("a number");
        Ok(ToolOutput::structured(doubled(number)))
    });
    let mcp = McpServer::open(&system, tools, McpLimits::default()).await;
    let limits = HttpLimits::default();
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let (recorder, health) = (MetricsRecorder::default(), HealthRegistry::new());
    let door = HttpServer::open(&system, any, limits, recorder, health).await;
    let door = door.expect("the loopback has ports");
    let tokens = vec![Token::new("bench", Role::Agent, TOKEN)];
    door.serve_mcp(McpHttpSpec::new(mcp.expect("it opens"), tokens));
    (door, system)
}

/// Starts the same tool with the protocol's SDK alone, without a token, limits or actors.
async fn start_plain_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("the loopback has ports");
    let address = listener.local_addr().expect("it is bound");
    let service = StreamableHttpService::new(
        || Ok(PlainServer),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("it is open");
            let service = service.clone();
            let served = service_fn(move |request| {
                let service = service.clone();
                async move { Ok::<_, Infallible>(service.handle(request).await) }
            });
            tokio::spawn(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), served),
            );
        }
    });
    address
}

struct PlainServer;

impl ServerHandler for PlainServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.expect("arguments");
        let number = arguments["number"].as_u64().expect("a number");
        Ok(CallToolResult::structured(doubled(number)).into())
    }
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "number": { "type": "integer" } } })
}

fn doubled(number: u64) -> Value {
    json!({ "number": number * 2 })
}

/// Makes every agent do this number of calls, one after another, in parallel with the others.
async fn call_all(agents: Vec<Agent>, each: u64) -> Vec<Agent> {
    let tasks = agents.into_iter().map(|mut agent| {
        tokio::spawn(async move {
            agent.waits.clear();
            for _ in 0..each {
                let began = Instant::now();
                agent.call().await;
                agent.waits.push(began.elapsed());
            }
            agent
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut agents = Vec::new();
    for task in tasks {
        agents.push(task.await.expect("all were answered"));
    }
    agents
}

/// One connection of a client; all connections share one session.
struct Agent {
    stream: TcpStream,
    /// The head of a request, without its length.
    head: String,
    answer: Vec<u8>,
    number: u64,
    /// The times of its latest calls.
    waits: Vec<Duration>,
}

impl Agent {
    async fn connect(address: SocketAddr, count: u64) -> Vec<Self> {
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
        );
        let mut first = Self::new(address, head.clone(), 0).await;
        let client = json!({ "name": "bench", "version": "1" });
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client,
        });
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        let hello = first.ask(&hello).await;
        let session = hello
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let session = session.unwrap_or_else(|| panic!("no session: {hello}"));
        head = format!("{head}Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
        let mut agents = Vec::new();
        for number in 0..count {
            // Each agent has its own range of numbers, so that no answer is mistaken for another.
            agents.push(Self::new(address, head.clone(), number << 32).await);
        }
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        agents[0].ask(&ready).await;
        agents
    }

    async fn new(address: SocketAddr, head: String, number: u64) -> Self {
        let stream = TcpStream::connect(address).await.expect("it listens");
        stream.set_nodelay(true).expect("it is open");
        Self {
            stream,
            head,
            answer: Vec::new(),
            number,
            waits: Vec::new(),
        }
    }

    async fn call(&mut self) {
        self.number += 1;
        let number = self.number;
        let arguments = json!({ "number": number });
        let ask = json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {
            "name": "double", "arguments": arguments,
        } });
        let answer = self.ask(&ask).await;
        let mut lines = answer
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let message: Value = lines
            .next_back()
            .and_then(|line| serde_json::from_str(line).ok())
            .unwrap_or_else(|| panic!("no message: {answer}"));
        assert_eq!(message["id"], number, "{answer}");
        assert_eq!(
            message["result"]["structuredContent"],
            doubled(number),
            "{answer}"
        );
    }

    /// Sends a message, and reads its complete answer.
    async fn ask(&mut self, message: &Value) -> String {
        let body = message.to_string();
        let request = format!("{}Content-Length: {}\r\n\r\n{body}", self.head, body.len());
        let asked = self.stream.write_all(request.as_bytes()).await;
        asked.expect("it reads");
        self.answer.clear();
        let read = async {
            while !is_whole(&self.answer) {
                let read = self.stream.read_buf(&mut self.answer).await;
                assert_ne!(read.expect("it answers"), 0, "the connection stays");
            }
        };
        let read = tokio::time::timeout(Duration::from_secs(60), read).await;
        read.expect("it answers in time");
        String::from_utf8(self.answer.clone()).expect("answers are text")
    }
}

/// Returns `true` if the answer is complete. An answer to a call is a stream of events in chunks;
/// one to a notification has no content.
fn is_whole(answer: &[u8]) -> bool {
    match answer.starts_with(b"HTTP/1.1 200 ") {
        true => answer.ends_with(b"\r\n0\r\n\r\n"),
        false => answer.ends_with(b"\r\n\r\n"),
    }
}
