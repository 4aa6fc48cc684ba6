//! Agents over HTTP: which requests are admitted, and the resources that one agent may take from
//! the others.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strowger::Event;
use strowger_gateway::access::{Role, Token};
use strowger_gateway::health::HealthRegistry;
use strowger_gateway::http::{HttpLimits, HttpServer};
use strowger_gateway::mcp::{McpHttpSpec, McpLimits};
use strowger_gateway::metrics::MetricsRecorder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::{LIMIT, TestEndpoint, call, initialize};

pub(crate) const TOKEN: &str = "a token of sixteen";
const VIEWER: &str = "a token of a viewer";
const OPERATOR: &str = "a token of an operator";
const LIMITED: &str = "a token of few tools";
const ORIGIN: &str = "https://agents.example";

/// An HTTP endpoint for agents.
pub(crate) struct HttpEndpoint {
    pub(crate) endpoint: TestEndpoint,
    pub(crate) address: SocketAddr,
    server: HttpServer,
}

impl HttpEndpoint {
    pub(crate) async fn open(change: impl FnOnce(&mut HttpLimits, &mut McpLimits)) -> Self {
        Self::at("127.0.0.1:0", change).await
    }

    /// Listens at an address.
    async fn at(address: &str, change: impl FnOnce(&mut HttpLimits, &mut McpLimits)) -> Self {
        let mut limits = HttpLimits::default();
        let mut of_agents = McpLimits::default();
        change(&mut limits, &mut of_agents);
        let endpoint = TestEndpoint::open(|limits| *limits = of_agents).await;
        let any = address.parse().expect("an address");
        let recorder = MetricsRecorder::default();
        let server = HttpServer::open(
            &endpoint.system,
            any,
            limits,
            recorder,
            HealthRegistry::new(),
        )
        .await;
        let server = server.expect("the loopback has ports");
        let limited = Token::new("limited", Role::Agent, LIMITED)
            .with_addresses(vec!["/mcp/tools/doub*".parse().expect("a pattern")]);
        let tokens = vec![
            Token::new("test", Role::Agent, TOKEN),
            Token::new("viewer", Role::Viewer, VIEWER),
            Token::new("operator", Role::Operator, OPERATOR),
            limited,
        ];
        let agents = McpHttpSpec::new(endpoint.mcp.clone(), tokens);
        let hosts = ["agents.example", "port.example:8443"].map(str::to_owned);
        let agents = agents.with_hosts(hosts.to_vec());
        server.serve_mcp(agents.with_origins(vec![ORIGIN.to_owned()]));
        Self {
            address: server.address(),
            endpoint,
            server,
        }
    }

    /// An authorized request with more headers.
    async fn post(&self, more: &str, message: &Value) -> Response {
        self.post_as(TOKEN, more, message).await
    }

    /// The same with another token.
    async fn post_as(&self, token: &str, more: &str, message: &Value) -> Response {
        let known = format!("Authorization: Bearer {token}\r\n{more}");
        self.sent("POST", &known, &message.to_string()).await
    }

    async fn sent(&self, method: &str, more: &str, body: &str) -> Response {
        let stream = self.begin(method, more, body).await;
        Response::read(stream).await
    }

    /// Sends a request, and leaves the response unread.
    async fn begin(&self, method: &str, more: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.expect("it listens");
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\n\
             {more}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len(),
        );
        let written = stream.write_all(request.as_bytes()).await;
        written.expect("it reads");
        stream
    }

    /// Begins a session; returns its header.
    pub(crate) async fn session(&self) -> String {
        self.session_of(TOKEN).await
    }

    async fn session_of(&self, token: &str) -> String {
        let hello = self.post_as(token, "", &initialize("2025-06-18")).await;
        assert_eq!(hello.status, 200, "{hello:?}");
        let id = hello.header("mcp-session-id").expect("a session");
        let header = format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post_as(token, &header, &ready).await.status, 202);
        header
    }
}

#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    async fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(LIMIT, stream.read_to_end(&mut bytes)).await;
        read.expect("every connection ends").expect("it answers");
        let text = String::from_utf8(bytes).expect("answers are text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        Self {
            status: head[9..12].parse().expect("a number"),
            head: head.to_lowercase(),
            body: body.to_owned(),
        }
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The last message of an event stream.
    fn message(&self) -> Value {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let mut messages = data.filter_map(|data| serde_json::from_str(data).ok());
        messages
            .next_back()
            .unwrap_or_else(|| panic!("no message in {self:?}"))
    }
}

#[tokio::test]
async fn agent_with_a_token_gets_a_session() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let response = http
        .post(&session, &call(1, "double", &json!({ "number": 3 })))
        .await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(
        response.message()["result"]["structuredContent"]["number"],
        6
    );
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let left = http.sent("DELETE", &known, "").await;
    assert!(matches!(left.status, 200 | 202 | 204), "{left:?}");
    let gone = http
        .post(&session, &call(2, "double", &json!({ "number": 3 })))
        .await;
    assert_eq!(gone.status, 404, "{gone:?}");
}

#[tokio::test]
async fn requests_without_a_valid_token_are_refused() {
    let http = HttpEndpoint::open(|_, limits| limits.body = 4096).await;
    let message = initialize("2025-06-18").to_string();
    let unknown = http.sent("POST", "", &message).await;
    assert_eq!(unknown.status, 401);
    assert_eq!(unknown.header("www-authenticate"), Some("bearer"));
    for token in [
        "Bearer wrong",
        "Bearer a token of sixteen!",
        "Basic abc",
        "Bearer ",
    ] {
        let wrong = format!("Authorization: {token}\r\n");
        assert_eq!(
            http.sent("POST", &wrong, &message).await.status,
            401,
            "{token}"
        );
    }
    let known = format!("Authorization: Bearer {TOKEN}\r\n");
    for origin in ["https://evil.example", "null", "http://127.0.0.1"] {
        let page = format!("{known}Origin: {origin}\r\n");
        assert_eq!(
            http.sent("POST", &page, &message).await.status,
            403,
            "{origin}"
        );
    }
    let page = format!("{known}Origin: {ORIGIN}\r\n");
    let let_in = http.sent("POST", &page, &message).await;
    assert_eq!(let_in.status, 200, "{let_in:?}");
    assert_eq!(let_in.header("access-control-allow-origin"), Some(ORIGIN));
    let asked = http
        .sent("OPTIONS", &format!("Origin: {ORIGIN}\r\n"), "")
        .await;
    assert_eq!(asked.status, 204);
    let allowed = asked
        .header("access-control-allow-headers")
        .expect("a list");
    for name in [
        "authorization",
        "mcp-protocol-version",
        "mcp-method",
        "mcp-name",
    ] {
        assert!(
            allowed.split(", ").any(|allowed| allowed == name),
            "{allowed}"
        );
    }

    let elsewhere = message.replace("test", &"t".repeat(5000));
    assert_eq!(http.sent("POST", &known, &elsewhere).await.status, 413);
    let broken = http.sent("POST", &known, "{").await;
    assert!((400..500).contains(&broken.status), "{broken:?}");
}

const ALL_TOOLS: [&str; 5] = ["continue_answer", "count", "double", "panic", "wait"];

#[tokio::test]
async fn agent_calls_only_the_tools_its_token_allows() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let list = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/list" });
    for (token, tools, granted) in [
        (TOKEN, &ALL_TOOLS[..], true),
        (OPERATOR, &ALL_TOOLS, true),
        (LIMITED, &["double"], true),
        (VIEWER, &[], false),
    ] {
        let session = http.session_of(token).await;
        let listed = http.post_as(token, &session, &list).await.message();
        let listed = listed["result"]["tools"].as_array().expect("a list");
        let names: Vec<&str> = listed
            .iter()
            .filter_map(|one| one["name"].as_str())
            .collect();
        assert_eq!(names, tools, "{token}");
        let double = call(1, "double", &json!({ "number": 3 }));
        let response = http.post_as(token, &session, &double).await;
        let result = &response.message()["result"];
        if granted {
            assert_eq!(
                result["structuredContent"]["number"], 6,
                "{token}: {response:?}"
            );
        } else {
            assert_eq!(result["isError"], true, "{response:?}");
            let text = result["content"][0]["text"].as_str().expect("text");
            let why = "forbidden: the token viewer (role viewer) may not use mcp.call on";
            assert!(text.starts_with(why), "{text}");
        }
        // The session continues after every refusal.
        let count = http
            .post_as(token, &session, &call(2, "count", &json!({})))
            .await;
        let is_refused = count.message()["result"]["isError"] == true;
        assert_eq!(is_refused, !tools.contains(&"count"), "{token}: {count:?}");
    }
}

#[tokio::test]
async fn session_belongs_to_its_token() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let double = call(1, "double", &json!({ "number": 3 }));
    for token in [VIEWER, OPERATOR] {
        let foreign = http.post_as(token, &session, &double).await;
        assert_eq!(foreign.status, 404, "{foreign:?}");
        let known = format!("Authorization: Bearer {token}\r\n{session}");
        assert_eq!(http.sent("DELETE", &known, "").await.status, 404);
    }
    let own = http.post(&session, &double).await;
    assert_eq!(own.message()["result"]["structuredContent"]["number"], 6);
}

/// Begins a session with a request for this host.
async fn hello_to(address: SocketAddr, host: &str) -> Response {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let body = initialize("2025-06-18").to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let written = stream.write_all(request.as_bytes()).await;
    written.expect("it reads");
    Response::read(stream).await
}

#[tokio::test]
async fn page_of_another_origin_is_refused() {
    let http = HttpEndpoint::at("127.0.0.2:0", |_, _| {}).await;
    let own = http.address.to_string();
    for host in [
        &*own,
        "127.0.0.2",
        "localhost",
        "LOCALHOST:80",
        "127.0.0.1:9464",
        "[::1]:9464",
        "agents.example",
        "agents.example:8443",
        "port.example:8443",
    ] {
        assert_eq!(hello_to(http.address, host).await.status, 200, "{host}");
    }
    for host in [
        "rebound.example",
        "10.0.0.1",
        "127.0.0.2.evil.example",
        "agents.example.evil.example",
        "port.example",
        "port.example:1",
        "a b",
    ] {
        let refused = hello_to(http.address, host).await;
        assert_eq!(refused.status, 403, "{host}");
        let says = format!("host `{host}` not allowed");
        assert!(refused.body.contains(&says), "{refused:?}");
        assert!(refused.body.contains("mcp.hosts"), "{refused:?}");
    }
}

#[tokio::test]
async fn disconnect_or_cancel_ends_the_call() {
    let mut http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let waiting = call(9, "wait", &json!({})).to_string();
    let open = http.begin("POST", &known, &waiting).await;
    assert_eq!(http.endpoint.next_notice().await, "begun");
    let params = json!({ "requestId": 9 });
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
    assert_eq!(http.post(&session, &cancel).await.status, 202);
    assert_eq!(http.endpoint.next_notice().await, "ended");
    drop(open);

    let again = call(10, "wait", &json!({})).to_string();
    let open = http.begin("POST", &known, &again).await;
    assert_eq!(http.endpoint.next_notice().await, "begun");
    // Over HTTP a session outlives its connections: the call ends with the session.
    assert!(http.sent("DELETE", &known, "").await.status < 300);
    assert_eq!(http.endpoint.next_notice().await, "ended");
    drop(open);
}

#[tokio::test]
async fn an_agent_that_was_cut_off_fetches_its_answer() {
    let mut http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let waiting = call(9, "wait", &json!({})).to_string();
    let mut open = http.begin("POST", &known, &waiting).await;
    assert_eq!(http.endpoint.next_notice().await, "begun");
    let (mut head, mut chunk) = (String::new(), [0; 1024]);
    let last_id = |text: &str| {
        let mut ids = text.lines().filter_map(|line| line.strip_prefix("id:"));
        ids.next_back().map(|id| id.trim().to_owned())
    };
    while last_id(&head).is_none() {
        let count = open.read(&mut chunk).await.expect("it is served");
        head.push_str(&String::from_utf8_lossy(&chunk[..count]));
    }
    let first = last_id(&head).expect("an event");
    drop(open);
    // The call ends while nobody listens.
    let waiting = http.endpoint.system.find("/mcp/calls/1").expect("it waits");
    waiting.kill();
    waiting.stopped().await;
    let resume = |id: &str| format!("{known}Last-Event-ID: {id}\r\n");
    let fetched = http.sent("GET", &resume(&first), "").await;
    assert_eq!(fetched.message()["id"], 9, "{fetched:?}");
    let last = last_id(&fetched.body).expect("an event");
    // Only what is later is repeated.
    let rest = http.sent("GET", &resume(&last), "").await;
    assert!(!rest.body.contains("data: {"), "{rest:?}");
}

#[tokio::test]
async fn agent_limit_does_not_affect_monitoring() {
    let http = HttpEndpoint::open(|http, agents| {
        http.connections = 1;
        http.agents = 1;
        agents.sessions = 1;
    })
    .await;
    let session = http.session().await;
    // The only connection that agents may have.
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let mut open = http.begin("GET", &known, "").await;
    let mut first = [0; 12];
    open.read_exact(&mut first).await.expect("it is served");
    assert_eq!(&first, b"HTTP/1.1 200");
    let full = http
        .post(&session, &call(1, "double", &json!({ "number": 1 })))
        .await;
    assert_eq!(full.status, 503, "{full:?}");
    let mut stream = TcpStream::connect(http.address).await.expect("it listens");
    let health = format!(
        "{}Connection: close\r\n\r\n",
        http.head("GET", "/healthz", "")
    );
    stream.write_all(health.as_bytes()).await.expect("it reads");
    assert_eq!(Response::read(stream).await.status, 200);
}

#[tokio::test]
async fn abandoned_sessions_are_evicted() {
    let http = HttpEndpoint::open(|_, agents| agents.sessions = 2).await;
    let (first, second) = (http.session().await, http.session().await);
    let ask = call(1, "double", &json!({ "number": 1 }));
    // Now the second session is the one that has been idle the longest.
    assert_eq!(http.post(&first, &ask).await.status, 200);
    let third = http.session().await;
    assert_eq!(http.post(&second, &ask).await.status, 404);
    for there in [&first, &third] {
        assert_eq!(http.post(there, &ask).await.status, 200);
    }
    // A session that listens, or waits for an answer, is not evicted.
    let mut open = Vec::new();
    for session in [&first, &third] {
        let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
        let mut stream = http.begin("GET", &known, "").await;
        let mut begins = [0; 12];
        stream.read_exact(&mut begins).await.expect("it is served");
        assert_eq!(&begins, b"HTTP/1.1 200");
        open.push(stream);
    }
    let busy = http.post("", &initialize("2025-06-18")).await;
    assert_eq!(busy.status, 503, "{busy:?}");
    assert!(busy.body.contains("2 agents in use"), "{busy:?}");
    drop(open);
    while http.post("", &initialize("2025-06-18")).await.status == 503 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn scheme_is_case_insensitive_and_params_are_checked() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let wrong = json!({ "jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": { "a": 1 } });
    for scheme in ["bearer", "BEARER", "Bearer"] {
        let known = format!("Authorization: {scheme} {TOKEN}\r\n{session}");
        let response = http.sent("POST", &known, &wrong.to_string()).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.message()["error"]["code"], -32602, "{response:?}");
    }
    let known = format!("Authorization: Bearer{TOKEN}\r\n{session}");
    assert_eq!(
        http.sent("POST", &known, &wrong.to_string()).await.status,
        401
    );
}

/// Sends a request on a persistent connection, and reads until the response contains `until`.
pub(crate) async fn exchange(
    stream: &mut TcpStream,
    head: &str,
    body: &str,
    until: &str,
) -> String {
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream
        .write_all(request.as_bytes())
        .await
        .expect("it reads");
    let mut text = String::new();
    let read = async {
        while !text.contains(until) {
            let mut bytes = [0; 4096];
            let count = stream.read(&mut bytes).await.expect("it answers");
            assert!(count > 0, "it stays: {text}");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    };
    let read = tokio::time::timeout(LIMIT, read).await;
    assert!(read.is_ok(), "it answers in time");
    text
}

impl HttpEndpoint {
    /// The head of a request on a persistent connection, without its length.
    pub(crate) fn head(&self, method: &str, path: &str, more: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n{more}",
            self.address
        )
    }
}

#[tokio::test]
async fn agent_connection_serves_consecutive_requests() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let mut stream = TcpStream::connect(http.address).await.expect("it listens");
    for number in 1..=3 {
        let ask = call(number, "double", &json!({ "number": number })).to_string();
        let head = http.head("POST", "/mcp", &known);
        let text = exchange(&mut stream, &head, &ask, "0\r\n\r\n").await;
        assert!(
            text.contains(&format!("\"number\":{}", number * 2)),
            "{text}"
        );
    }
    for (path, said) in [
        ("/healthz", "ok\n"),
        ("/nowhere", "this server has /metrics"),
    ] {
        let text = exchange(&mut stream, &http.head("GET", path, ""), "", said).await;
        assert!(text.contains("HTTP/1.1 "), "{text}");
    }
    // Every request must show the token.
    let head = http.head("POST", "/mcp", &session);
    let text = exchange(&mut stream, &head, "{}", "with a token of this node").await;
    assert!(text.starts_with("HTTP/1.1 401"), "{text}");
}

#[tokio::test]
async fn connection_counts_as_agent_after_its_first_token() {
    let http = HttpEndpoint::open(|http, _| http.time = LIMIT).await;
    let session = http.session().await;
    let mut stream = TcpStream::connect(http.address).await.expect("it listens");
    // A page asks first, without a token.
    let head = http.head("OPTIONS", "/mcp", &format!("Origin: {ORIGIN}\r\n"));
    let text = exchange(&mut stream, &head, "", "\r\n\r\n").await;
    assert!(text.starts_with("HTTP/1.1 204"), "{text}");
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let head = http.head("POST", "/mcp", &known);
    // More requests than a connection without a token serves.
    for number in 1..=120 {
        let ask = call(number, "double", &json!({ "number": number })).to_string();
        let text = exchange(&mut stream, &head, &ask, "0\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 200"), "{number}: {text}");
    }
}

#[tokio::test]
async fn half_closed_agent_is_disconnected() {
    let mut http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let waiting = call(9, "wait", &json!({})).to_string();
    let mut open = http.begin("POST", &known, &waiting).await;
    assert_eq!(http.endpoint.next_notice().await, "begun");
    open.shutdown().await.expect("it is open");
    let read = tokio::time::timeout(LIMIT, open.read_to_end(&mut Vec::new())).await;
    // The connection ends, cleanly or not.
    let _ = read.expect("it ends");
}

#[tokio::test]
async fn idle_agent_connection_closes_with_the_server() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let mut stream = TcpStream::connect(http.address).await.expect("it listens");
    let ask = call(1, "double", &json!({ "number": 1 })).to_string();
    let head = http.head("POST", "/mcp", &known);
    exchange(&mut stream, &head, &ask, "0\r\n\r\n").await;
    let mut events = http.endpoint.system.events();
    http.server.close().await;
    let mut ended = 0;
    while let Some(event) = events.try_next() {
        if let Event::Stopped { path, exit } = event
            && path.to_string().starts_with("/watch/connections/")
        {
            assert!(exit.is_orderly(), "{path}: {exit}");
            ended += 1;
        }
    }
    assert!(ended > 0, "one was there");
    let read = tokio::time::timeout(LIMIT, stream.read_to_end(&mut Vec::new())).await;
    read.expect("it is closed").expect("it is closed in order");
}

#[tokio::test]
async fn agents_up_to_the_limit_are_served() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    // All permitted connections stay open; they are more than unauthenticated clients may have.
    let mut open = Vec::new();
    for number in 0..HttpLimits::default().agents as u64 {
        let ask = call(number, "double", &json!({ "number": 1 })).to_string();
        let mut stream = TcpStream::connect(http.address).await.expect("it listens");
        let head = http.head("POST", "/mcp", &known);
        let text = exchange(&mut stream, &head, &ask, "0\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 200"), "{number}: {text}");
        open.push(stream);
    }
    let more = http
        .post(&session, &call(1, "double", &json!({ "number": 1 })))
        .await;
    assert_eq!(more.status, 503, "{more:?}");
    assert!(more.body.contains("agents connected"), "{more:?}");
}

#[tokio::test]
async fn calls_up_to_the_limit_run_concurrently() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let calls = McpLimits::default().calls as u64;
    let asks = (0..calls).map(|number| {
        let (address, head) = (http.address, http.head("POST", "/mcp", &known));
        tokio::spawn(async move {
            let ask = call(number, "double", &json!({ "number": 1 })).to_string();
            let mut stream = TcpStream::connect(address).await.expect("it listens");
            exchange(&mut stream, &head, &ask, "0\r\n\r\n").await
        })
    });
    for ask in asks.collect::<Vec<_>>() {
        let text = ask.await.expect("it ends");
        assert!(text.contains("\"number\":2"), "{text}");
    }
}

#[tokio::test]
async fn silent_connections_do_not_starve_agents() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let mut silent = Vec::new();
    for _ in 0..HttpLimits::default().connections * 4 {
        silent.push(TcpStream::connect(http.address).await.expect("it listens"));
    }
    for number in 0..5 {
        let ask = call(number, "double", &json!({ "number": 1 }));
        assert_eq!(http.post(&session, &ask).await.status, 200);
        for path in ["/healthz", "/metrics"] {
            let mut stream = TcpStream::connect(http.address).await.expect("it listens");
            let head = format!("{}Connection: close\r\n", http.head("GET", path, ""));
            let text = exchange(&mut stream, &head, "", "\r\n\r\n").await;
            assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        }
        silent.push(TcpStream::connect(http.address).await.expect("it listens"));
    }
}

/// Clients that connect at once, and again whenever they are disconnected; they end with the set.
fn silent_clients(server: SocketAddr, says: &'static str) -> JoinSet<()> {
    let mut crowd = JoinSet::new();
    for _ in 0..500 {
        crowd.spawn(async move {
            loop {
                let Ok(mut stream) = TcpStream::connect(server).await else {
                    tokio::task::yield_now().await;
                    continue;
                };
                let mut response = [0; 512];
                let _ = stream.write_all(says.as_bytes()).await;
                // Reads a whole response, and waits for the end of the stream.
                while matches!(stream.read(&mut response).await, Ok(1..)) {}
                if !says.ends_with("\r\n\r\n") {
                    continue;
                }
                // The node has closed its side; this side stays open. A crowd that is answered must
                // not ask for more than a busy machine can answer: where it did, others waited
                // behind it, as behind any clients.
                let mut pace = tokio::time::interval(Duration::from_secs(1));
                pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
                while stream.write_all(b"x").await.is_ok() {
                    pace.tick().await;
                }
            }
        });
    }
    crowd
}

/// Shorter than the time for which an unauthenticated client keeps its place.
const OBSERVATION_TIME: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unauthenticated_flood_does_not_delay_agents_or_monitoring() {
    for says in [
        "",
        "GET /healthz HT",
        "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let http = HttpEndpoint::open(|_, _| {}).await;
        let session = http.session().await;
        let crowd = silent_clients(http.address, says);
        let mut best = Duration::MAX;
        // Even a crowd that is served at once loads the machine: one good round of many is enough.
        for _ in 0..10 {
            let mut slowest = Duration::ZERO;
            for number in 0..20 {
                let start = Instant::now();
                let mut stream = TcpStream::connect(http.address).await.expect("it listens");
                let head = format!("{}Connection: close\r\n", http.head("GET", "/healthz", ""));
                let text = exchange(&mut stream, &head, "", "\r\n\r\n").await;
                assert!(text.starts_with("HTTP/1.1 200"), "{says:?}: {text}");
                slowest = slowest.max(start.elapsed());
                let start = Instant::now();
                let ask = call(number, "double", &json!({ "number": 1 }));
                assert_eq!(http.post(&session, &ask).await.status, 200, "{says:?}");
                slowest = slowest.max(start.elapsed());
            }
            best = best.min(slowest);
            if best < OBSERVATION_TIME {
                break;
            }
        }
        assert!(best < OBSERVATION_TIME, "{says:?}: {best:?}");
        drop(crowd);
    }
}

#[tokio::test]
async fn path_is_not_found_without_tools() {
    let endpoint = TestEndpoint::open(|_| {}).await;
    let any = "127.0.0.1:0".parse().expect("an address");
    let (limits, recorder) = (HttpLimits::default(), MetricsRecorder::default());
    let server = HttpServer::open(
        &endpoint.system,
        any,
        limits,
        recorder,
        HealthRegistry::new(),
    )
    .await;
    let server = server.expect("the loopback has ports");
    let http = HttpEndpoint {
        address: server.address(),
        endpoint,
        server,
    };
    assert_eq!(http.post("", &initialize("2025-06-18")).await.status, 404);
}
