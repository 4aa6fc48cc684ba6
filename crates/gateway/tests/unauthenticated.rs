//! Ten thousand silent HTTP clients, in a process of its own: the test counts its descriptors and
//! its memory.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use socket2::SockRef;
use strowger::{ActorSystem, ContentType};
use strowger_gateway::access::{Role, Token};
use strowger_gateway::frame::{Frame, FrameDecoder, FrameKind};
use strowger_gateway::health::HealthRegistry;
use strowger_gateway::http::{HttpLimits, HttpServer};
use strowger_gateway::listeners::{Listeners, ListenersSpec};
use strowger_gateway::mcp::{McpHttpSpec, McpLimits, McpServer, ToolSet};
use strowger_gateway::method::Methods;
use strowger_gateway::metrics::MetricsRecorder;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::timeout;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Number of clients, if there are descriptors for them.
const CLIENTS: usize = 10_000;

/// Time limit of each step: far longer than any takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Maximum memory of a silent connection, both sides of it: most of it is the buffer into which
/// hyper reads.
const MEMORY: usize = 64 << 10;

/// Descriptors that the process needs beside those of silent clients: those of new clients that the
/// node has not told to leave yet, and those of clients that are served.
const SPARE_DESCRIPTORS: usize = 4096;

const TOKEN: &str = "a token of sixteen";

/// The tests share the descriptors and the memory of the process.
static SERIAL: Mutex<()> = Mutex::const_new(());

/// Returns the number of clients for which there are descriptors, `sides` for each, after raising
/// the limit as far as it goes.
fn clients_for_descriptors(sides: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, raised).expect("up to the hard limit");
    let room = maximum.map_or(usize::MAX, |most| {
        usize::try_from(most).unwrap_or(usize::MAX)
    });
    let count = CLIENTS.min(room.saturating_sub(SPARE_DESCRIPTORS) / sides);
    if count < CLIENTS {
        eprintln!("{count} clients instead of {CLIENTS}: there are {room} descriptors");
    }
    count
}

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("there is /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    kib.expect("it is in kB") << 10
}

/// A node with an endpoint for monitoring and agents, and one for browsers.
struct Node {
    system: ActorSystem,
    http: SocketAddr,
    web: SocketAddr,
    _listeners: (HttpServer, Listeners),
    _alone: MutexGuard<'static, ()>,
}

impl Node {
    async fn start(connections: usize) -> Self {
        let alone = SERIAL.lock().await;
        let system = ActorSystem::new("node").expect("inside a runtime");
        let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let tokens = || vec![Token::new("test", Role::Operator, TOKEN)];
        let mut limits = HttpLimits::default();
        limits.connections = connections;
        // Only their number makes clients leave.
        limits.time = Duration::from_secs(3600);
        let http = HttpServer::open(
            &system,
            any,
            limits,
            MetricsRecorder::default(),
            HealthRegistry::new(),
        );
        let http = http.await.expect("the loopback has ports");
        let tools = ToolSet::new("none", "1.0");
        let mcp = McpServer::open(&system, tools, McpLimits::default()).await;
        http.serve_mcp(McpHttpSpec::new(mcp.expect("it opens"), tokens()));
        let mut spec = ListenersSpec::default();
        (spec.websocket, spec.tokens) = (Some(any), tokens());
        spec.methods = Some(Methods::new());
        spec.limits.idle = Duration::from_secs(3600);
        let listeners = Listeners::open(&system, spec).await.expect("it opens");
        Self {
            system,
            http: http.address(),
            web: listeners.websocket_address().expect("it was asked for"),
            _listeners: (http, listeners),
            _alone: alone,
        }
    }

    /// Connects silent clients, each of which ends without a trace once it is dropped.
    async fn silent_clients(address: SocketAddr, count: usize) -> Vec<TcpStream> {
        let mut clients = Vec::new();
        for _ in 0..count {
            let stream = timeout(LIMIT, TcpStream::connect(address)).await;
            let stream = stream.expect("it accepts").expect("it listens");
            let linger = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            linger.expect("it is open");
            clients.push(stream);
        }
        clients
    }

    /// The number of connections at an endpoint.
    fn connections(&self, path: &str) -> usize {
        self.system.find(path).expect("it runs").info().children
    }

    /// Waits until an endpoint has so many connections.
    async fn settles(&self, path: &str, count: RangeInclusive<usize>) {
        let settled = async {
            while !count.contains(&self.connections(path)) {
                tokio::task::yield_now().await;
            }
        };
        let settled = timeout(LIMIT, settled).await;
        let have = self.connections(path);
        assert!(settled.is_ok(), "{path} has {have} connections");
    }

    /// Serves a monitoring system, an agent and a browser, each in time. Returns how often one of
    /// them was disconnected before it was served, and came again.
    async fn serves_others(&self) -> usize {
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        } });
        let hello = hello.to_string();
        let token = format!(
            "Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n"
        );
        let metrics = served(|| gets(self.http, "GET /metrics", "", ""));
        let agent = served(|| gets(self.http, "POST /mcp", &token, &hello));
        let browser = served(|| pings(self.web));
        metrics.await + agent.await + browser.await
    }
}

/// Tries until one try is answered; returns the number of those that were not.
async fn served<F: Future<Output = Result<bool, Error>>>(again: impl Fn() -> F) -> usize {
    let mut lost = 0;
    let served = async {
        while !again().await.unwrap_or(false) {
            lost += 1;
        }
    };
    timeout(LIMIT, served).await.expect("served in time");
    lost
}

/// Sends a request on a connection of its own. Returns `true` if the response is 200.
async fn gets(address: SocketAddr, what: &str, headers: &str, body: &str) -> Result<bool, Error> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "{what} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: \
         {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text.starts_with("HTTP/1.1 200"))
}

/// Calls `ping` over a WebSocket. Returns `true` if it is answered.
async fn pings(address: SocketAddr) -> Result<bool, Error> {
    let stream = TcpStream::connect(address).await?;
    let (mut socket, _) = client_async(format!("ws://{address}/"), stream).await?;
    let token = Frame::new(FrameKind::Token, 0).with_payload(ContentType::Text, TOKEN);
    let mut name = Frame::new(FrameKind::Name, 0).with_payload(ContentType::Text, "ping");
    let mut call = Frame::new(FrameKind::Call, 1);
    (name.target, call.target) = (1, 1);
    let mut bytes = BytesMut::new();
    for frame in [token, name, call] {
        frame.encode_into(1024, &mut bytes).expect("it is short");
    }
    socket.send(Message::Binary(bytes.freeze())).await?;
    let mut decoder = FrameDecoder::new(1 << 20);
    while let Some(Message::Binary(bytes)) = socket.next().await.transpose()? {
        decoder.feed(&bytes);
        while let Some(frame) = decoder.next_frame().expect("frames") {
            if frame.kind != FrameKind::Hello {
                return Ok(frame.kind == FrameKind::Done);
            }
        }
    }
    Ok(false)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_silent_clients_are_bounded_and_block_no_other() {
    let count = clients_for_descriptors(1);
    let limits = (HttpLimits::default(), ListenersSpec::default().limits);
    let node = Node::start(limits.0.connections).await;
    assert_eq!(node.serves_others().await, 0);
    for (address, path, most) in [
        (node.http, "/watch/connections", limits.0.connections),
        (node.web, "/doors/clients", limits.1.unauthenticated),
    ] {
        let before = resident();
        let (mut peak, connected) = (0, AtomicBool::new(false));
        let connecting = async {
            let clients = Node::silent_clients(address, count).await;
            connected.store(true, Ordering::Relaxed);
            clients
        };
        let serving = async {
            while !connected.load(Ordering::Relaxed) {
                peak = peak.max(node.connections(path));
                node.serves_others().await;
            }
        };
        let (clients, ()) = tokio::join!(connecting, serving);
        // Beyond the limit each new client has a moment, but no more than a burst of them; those
        // that were told to leave may still be there.
        assert!(peak <= 2 * (most + 1024) + 16, "{path} had {peak}");
        node.settles(path, 0..=most).await;
        let grown = resident().saturating_sub(before);
        assert!(grown < count * MEMORY / 4, "{path}: {grown} bytes");
        // Once the moment of the last is over, no try is in vain.
        assert_eq!(node.serves_others().await, 0);
        drop(clients);
        node.settles(path, 0..=0).await;
    }
    let restarts = node.system.actors();
    let restarts: u32 = restarts.iter().map(|info| info.restarts).sum();
    assert_eq!(restarts, 0);
}

/// The twin: as many clients as the configuration permits stay, and each is served in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_clients_within_the_limit_stay_and_are_served() {
    let count = clients_for_descriptors(2);
    // More for those that are served beside them.
    let node = Node::start(count + 16).await;
    assert_eq!(node.serves_others().await, 0);
    let before = resident();
    let clients = Node::silent_clients(node.http, count).await;
    node.settles("/watch/connections", count..=count).await;
    let each = resident().saturating_sub(before) / count;
    eprintln!("{each} bytes for each of {count} clients");
    assert!(each < MEMORY, "{each} bytes for each client");
    assert_eq!(node.serves_others().await, 0);
    for mut client in clients {
        let request = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n";
        client.write_all(request).await.expect("it is open");
        let mut text = String::new();
        let read = timeout(LIMIT, client.read_to_string(&mut text)).await;
        read.expect("in time").expect("it is answered");
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    }
    node.settles("/watch/connections", 0..=0).await;
}
