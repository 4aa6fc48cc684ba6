//! The HTTP endpoint: its pages, and its handling of invalid requests.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use strowger::{Actor, ActorSystem, BoxError, Context};
use strowger_gateway::OpenError;
use strowger_gateway::access::{Role, Token};
use strowger_gateway::health::{HealthRegistry, LimitUsage};
use strowger_gateway::http::{HttpLimits, HttpServer};
use strowger_gateway::metrics::{MetricKind, MetricsRecorder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

mod exposition;
mod hostile;

/// No step takes nearly this long.
const LIMIT: Duration = Duration::from_secs(60);

/// A parsed response.
#[derive(Debug)]
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Response {
    fn read(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.strip_prefix("HTTP/1.1 ").expect("a status line");
        Self {
            status: status[..3].parse().expect("a number"),
            head: head.to_lowercase(),
            body: body.to_owned(),
        }
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("the body is JSON")
    }
}

/// Sends these bytes, ends its side once it has an answer, and reads until the endpoint closes the
/// connection; returns the text received.
async fn exchange(address: SocketAddr, bytes: &[u8]) -> io::Result<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(bytes).await?;
        let mut text = Vec::new();
        while !is_complete_response(bytes, &text) && stream.read_buf(&mut text).await? > 0 {}
        // Fails if the endpoint has closed the connection.
        let _ = stream.shutdown().await;
        stream.read_to_end(&mut text).await?;
        Ok(String::from_utf8(text).expect("answers are text"))
    };
    tokio::time::timeout(LIMIT, exchange)
        .await
        .expect("the server closes every connection")
}

/// Returns `true` if the text begins with a whole response.
fn is_complete_response(request: &[u8], text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().expect("a number"));
    request.starts_with(b"HEAD ") || body.len() >= length
}

async fn get(address: SocketAddr, path: &str) -> Response {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let text = exchange(address, request.as_bytes()).await;
    Response::read(&text.expect("the server answers"))
}

/// An HTTP endpoint with its system, which has a recorder of its own.
struct TestServer {
    system: ActorSystem,
    server: HttpServer,
}

impl TestServer {
    async fn open(limits: HttpLimits, health: HealthRegistry) -> Self {
        let system = ActorSystem::new("watched").expect("inside a runtime");
        let address = "127.0.0.1:0".parse().expect("an address");
        let recorder = MetricsRecorder::default();
        let server = HttpServer::open(&system, address, limits, recorder, health).await;
        Self {
            server: server.expect("the loopback has ports"),
            system,
        }
    }

    async fn get(&self, path: &str) -> Response {
        get(self.server.address(), path).await
    }
}

#[tokio::test]
async fn metrics_page_parses_strictly() {
    let health = HealthRegistry::new()
        .limit("lines", || Some(LimitUsage::new(3.0, 12.0)))
        .collect(|page| {
            page.family(
                "calls_total",
                MetricKind::Counter,
                "Calls.\n\"All\" of them\\",
            )
            .sample(&[("from", "a\"b\\c\nd")], 7.0);
        });
    let server = TestServer::open(HttpLimits::default(), health).await;
    let response = server.get("/metrics").await;
    assert_eq!(response.status, 200);
    assert!(
        response
            .head
            .contains("content-type: text/plain; version=0.0.4"),
        "{}",
        response.head
    );
    let page = exposition::read(&response.body);
    assert_eq!(
        page.value("strowger_limit_used", &[("limit", "lines")]),
        Some(3.0)
    );
    assert_eq!(
        page.value("strowger_limit_max", &[("limit", "lines")]),
        Some(12.0)
    );
    assert_eq!(
        page.value("calls_total", &[("from", "a\"b\\c\nd")]),
        Some(7.0)
    );
    assert_eq!(page.value("strowger_mailbox_messages", &[]), Some(0.0));
    assert!(
        page.value("process_resident_memory_bytes", &[])
            .is_some_and(|bytes| bytes > 1e5)
    );
    let again = exposition::read(&server.get("/metrics").await.body);
    assert_eq!(
        again.value("strowger_http_responses_total", &[("status", "200")]),
        Some(1.0)
    );
}

#[tokio::test]
async fn facade_metrics_are_on_the_page() {
    let recorder = MetricsRecorder::default();
    metrics::with_local_recorder(&recorder, || {
        metrics::describe_counter!("calls.made", "Calls that were made.");
        metrics::counter!("calls.made", "line" => "7").increment(2);
        metrics::counter!("calls.made", "line" => "7").increment(1);
        metrics::gauge!("lines").set(2.5);
        metrics::gauge!("lines").decrement(1.0);
        metrics::histogram!("seconds").record(0.5);
        metrics::histogram!("seconds").record(1.0);
        for number in 0..5000 {
            metrics::counter!("many", "number" => number.to_string()).increment(1);
        }
    });
    let mut page = strowger_gateway::metrics::MetricsPage::default();
    recorder.write(&mut page);
    let page = exposition::read(page.as_str());
    assert_eq!(page.value("calls_made", &[("line", "7")]), Some(3.0));
    assert_eq!(page.help("calls_made"), Some("Calls that were made."));
    assert_eq!(page.value("lines", &[]), Some(1.5));
    assert_eq!(page.value("seconds_sum", &[]), Some(1.5));
    assert_eq!(page.value("seconds_count", &[]), Some(2.0));
    let refused = page.value("strowger_metrics_refused_total", &[]);
    assert_eq!(
        refused,
        Some(905.0),
        "4096 series less the one of calls are kept"
    );
}

#[tokio::test]
async fn running_node_is_healthy() {
    let server = TestServer::open(HttpLimits::default(), HealthRegistry::new()).await;
    let response = server.get("/healthz").await;
    assert_eq!((response.status, response.body.as_str()), (200, "ok\n"));
}

#[tokio::test]
async fn metrics_can_require_a_token() {
    let system = ActorSystem::new("watched").expect("inside a runtime");
    let any = "127.0.0.1:0".parse().expect("an address");
    let far = vec!["/nowhere".parse().expect("a pattern")];
    let tokens = [
        Token::new("v", Role::Viewer, "of a viewer"),
        Token::new("o", Role::Operator, "of an operator"),
        Token::new("a", Role::Agent, "of an agent"),
        Token::new("few", Role::Viewer, "of few verbs").with_operations(["tree".to_owned()]),
        Token::new("far", Role::Viewer, "of one far away").with_addresses(far),
    ];
    let (limits, recorder) = (HttpLimits::default(), MetricsRecorder::default());
    let server = HttpServer::open_with_tokens(
        &system,
        any,
        limits,
        recorder,
        HealthRegistry::new(),
        &tokens,
    );
    let address = server.await.expect("the loopback has ports").address();
    let page = async |path: &str, more: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n");
        let text = exchange(address, request.as_bytes()).await;
        Response::read(&text.expect("the server answers"))
    };
    for (token, status) in [
        ("of a viewer", 200),
        ("of an operator", 200),
        ("of an agent", 403),
        ("of few verbs", 403),
        // Totals are those of the whole node, whichever client reads them.
        ("of one far away", 200),
        ("of nobody", 401),
        ("", 401),
    ] {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        let response = page("/metrics", &bearer).await;
        assert_eq!(response.status, status, "{token}: {response:?}");
        assert_eq!(page("/healthz", &bearer).await.status, 200);
        assert_eq!(page("/readyz", &bearer).await.status, 200);
    }
    let nobody = page("/metrics", "").await;
    assert_eq!(nobody.status, 401);
    assert!(
        nobody.head.contains("www-authenticate: bearer"),
        "{nobody:?}"
    );
    let agent = page("/metrics", "Authorization: bearer of an agent\r\n").await;
    assert!(
        agent.body.contains("(role agent) may not use metrics"),
        "{agent:?}"
    );
}

#[tokio::test]
async fn readiness_lists_failed_checks() {
    let connected = Arc::new(AtomicBool::new(false));
    let trunk = Arc::clone(&connected);
    let health =
        HealthRegistry::new().check("trunk", move || match trunk.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err("the trunk is not connected".to_owned()),
        });
    let server = TestServer::open(HttpLimits::default(), health).await;
    let response = server.get("/readyz").await;
    assert_eq!(response.status, 503);
    let reasons = json!([{ "check": "trunk", "reason": "the trunk is not connected" }]);
    assert_eq!(
        response.json(),
        json!({ "ready": false, "reasons": reasons })
    );
    connected.store(true, Ordering::Relaxed);
    let response = server.get("/readyz").await;
    assert_eq!(response.status, 200);
    assert_eq!(response.json(), json!({ "ready": true, "reasons": [] }));
}

/// Stops once the semaphore has a permit.
struct SlowStop(Arc<tokio::sync::Semaphore>);

impl Actor for SlowStop {
    type Msg = ();
    type Args = Arc<tokio::sync::Semaphore>;
    type Error = BoxError;

    async fn pre_start(end: Self::Args, _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(end))
    }

    async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
        Ok(())
    }

    async fn post_stop(self, _: &strowger::Exit, _: &mut Context<Self>) {
        // The semaphore is never closed.
        let _ = self.0.acquire().await;
    }
}

#[tokio::test]
async fn readiness_fails_during_shutdown() {
    let server = TestServer::open(HttpLimits::default(), HealthRegistry::new()).await;
    let end = Arc::new(tokio::sync::Semaphore::new(0));
    server
        .system
        .spawn::<SlowStop>("slow", Arc::clone(&end))
        .expect("the key is free");
    assert_eq!(server.get("/readyz").await.status, 200);
    let system = server.system.clone();
    let ending = tokio::spawn(async move { system.shutdown(LIMIT).await });
    let response = loop {
        let response = server.get("/readyz").await;
        if response.status == 503 {
            break response;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(response.json()["reasons"][0]["check"], "shutdown");
    end.add_permits(1);
    let report = ending.await.expect("a shutdown does not panic");
    assert!(report.not_stopped.is_empty(), "{report:?}");
    let closed = TcpStream::connect(server.server.address()).await;
    assert!(closed.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn invalid_requests_get_matching_statuses() {
    let server = TestServer::open(HttpLimits::default(), HealthRegistry::new()).await;
    let long = format!(
        "GET /healthz HTTP/1.1\r\nX: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    let many = format!("GET /healthz HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(1000));
    let endless = "a".repeat(1_000_000);
    for (bytes, status) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], 404),
        (b"GET /metrics/../etc/passwd HTTP/1.1\r\n\r\n", 404),
        (b"GET http://elsewhere/metrics HTTP/1.1\r\n\r\n", 400),
        (
            b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
            405,
        ),
        (b"DELETE /readyz HTTP/1.1\r\n\r\n", 405),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET /metrics HTTP/3.0\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"\0\0\0\0\0\0\0\0", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (long.as_bytes(), 431),
        (many.as_bytes(), 431),
        (endless.as_bytes(), 431),
    ] {
        // A client that sends more than is read may find the connection reset.
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]);
        match exchange(server.server.address(), bytes).await {
            Ok(text) => assert_eq!(Response::read(&text).status, status, "{shown:?}"),
            Err(error) => assert!(bytes.len() > 64 * 1024, "{shown:?}: {error}"),
        }
    }
    assert_eq!(server.get("/healthz").await.status, 200);
    assert_eq!(restarts(&server.system), 0);
}

#[tokio::test]
async fn head_request_has_no_body() {
    let server = TestServer::open(HttpLimits::default(), HealthRegistry::new()).await;
    let text = exchange(server.server.address(), b"HEAD /healthz HTTP/1.1\r\n\r\n").await;
    let response = Response::read(&text.expect("the server answers"));
    assert_eq!((response.status, response.body.as_str()), (200, ""));
    assert!(
        response.head.contains("content-length: 3"),
        "{}",
        response.head
    );
}

#[tokio::test]
async fn endless_request_times_out() {
    let mut limits = HttpLimits::default();
    limits.time = Duration::from_millis(50);
    limits.head = 16 * 1024 * 1024;
    let server = TestServer::open(limits, HealthRegistry::new()).await;
    let text = loop {
        // A client that is itself too slow to receive the response tries again.
        match exchange(server.server.address(), b"GET /metrics HTTP/1.1\r\nX: ").await {
            Ok(text) if !text.is_empty() => break text,
            _ => {}
        }
    };
    assert_eq!(Response::read(&text).status, 408);
    // Sending one byte at a time does not avoid the limit.
    let mut stream = TcpStream::connect(server.server.address())
        .await
        .expect("it listens");
    let trickle = async {
        for byte in b"GET /metrics HTTP/1.1\r\nX: ".iter().cycle() {
            if stream.write_all(&[*byte]).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, trickle)
        .await
        .expect("the server closes the connection");
}

#[tokio::test]
async fn silent_connections_are_evicted_above_the_limit() {
    let mut limits = HttpLimits::default();
    limits.connections = 2;
    limits.time = LIMIT;
    let server = TestServer::open(limits, HealthRegistry::new()).await;
    let address = server.server.address();
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(TcpStream::connect(address).await.expect("it listens"));
    }
    for _ in 0..5 {
        assert_eq!(server.get("/healthz").await.status, 200);
        silent.push(TcpStream::connect(address).await.expect("it listens"));
    }
    // They get a response, and are then disconnected.
    let mut text = String::new();
    let read = silent[0].read_to_string(&mut text);
    let read = tokio::time::timeout(LIMIT, read).await;
    read.expect("it has made room").expect("it is told");
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    assert_eq!(restarts(&server.system), 0);
}

#[tokio::test]
async fn port_in_use_is_an_error() {
    let server = TestServer::open(HttpLimits::default(), HealthRegistry::new()).await;
    let system = ActorSystem::new("second").expect("inside a runtime");
    let taken = HttpServer::open(
        &system,
        server.server.address(),
        HttpLimits::default(),
        MetricsRecorder::default(),
        HealthRegistry::new(),
    );
    let error = taken.await.expect_err("the port is taken");
    assert!(matches!(error, OpenError::Bind { .. }), "{error}");
    assert!(
        error.to_string().starts_with("cannot listen on 127.0.0.1:"),
        "{error}"
    );
}

#[tokio::test]
async fn listener_restarts_on_its_port_after_a_panic() {
    let server = TestServer::open(HttpLimits::default(), HealthRegistry::new()).await;
    let listener = server.system.find("/watch/http").expect("it runs");
    listener.inject_panic("a drill");
    while listener.info().restarts == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(server.get("/healthz").await.status, 200);
    server.server.close().await;
    assert!(server.system.find("/watch").is_none());
}

fn restarts(system: &ActorSystem) -> u32 {
    system.actors().iter().map(|info| info.restarts).sum()
}
