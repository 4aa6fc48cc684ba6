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
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
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
async fn sent(address: SocketAddr, octets: &[u8]) -> io::Result<String> {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(octets).await?;
        let mut text = Vec::new();
        while !is_answered(octets, &text) && stream.read_buf(&mut text).await? > 0 {}
        // Fails if the endpoint has closed the connection.
        let _ = stream.shutdown().await;
        stream.read_to_end(&mut text).await?;
        Ok(String::from_utf8(text).expect("answers are text"))
    };
    tokio::time::timeout(LIMIT, exchange)
        .await
        .expect("the door closes every connection")
}

/// Returns `true` if the text begins with a whole response.
fn is_answered(request: &[u8], text: &[u8]) -> bool {
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

async fn get(address: SocketAddr, path: &str) -> Answer {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let text = sent(address, request.as_bytes()).await;
    Answer::read(&text.expect("the door answers"))
}

/// An HTTP endpoint with its system, which has a recorder of its own.
struct Door {
    system: ActorSystem,
    door: HttpServer,
}

impl Door {
    async fn open(limits: HttpLimits, vitals: HealthRegistry) -> Self {
        let system = ActorSystem::new("watched").expect("inside a runtime");
        let address = "127.0.0.1:0".parse().expect("an address");
        let recorder = MetricsRecorder::default();
        let door = HttpServer::open(&system, address, limits, recorder, vitals).await;
        Self {
            door: door.expect("the loopback has ports"),
            system,
        }
    }

    async fn get(&self, path: &str) -> Answer {
        get(self.door.address(), path).await
    }
}

#[tokio::test]
async fn metrics_are_a_page_that_a_strict_reader_takes() {
    let vitals = HealthRegistry::new()
        .limit("lines", || Some(LimitUsage::new(3.0, 12.0)))
        .collect(|page| {
            page.family(
                "calls_total",
                MetricKind::Counter,
                "Calls.\n\"All\" of them\\",
            )
            .sample(&[("from", "a\"b\\c\nd")], 7.0);
        });
    let door = Door::open(HttpLimits::default(), vitals).await;
    let answer = door.get("/metrics").await;
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .head
            .contains("content-type: text/plain; version=0.0.4"),
        "{}",
        answer.head
    );
    let page = exposition::read(&answer.body);
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
            .is_some_and(|octets| octets > 1e5)
    );
    let again = exposition::read(&door.get("/metrics").await.body);
    assert_eq!(
        again.value("strowger_http_responses_total", &[("status", "200")]),
        Some(1.0)
    );
}

#[tokio::test]
async fn what_is_counted_through_the_facade_is_on_the_page() {
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
    let mut page = strowger_gateway::metrics::Exposition::default();
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
async fn a_node_that_lives_is_healthy() {
    let door = Door::open(HttpLimits::default(), HealthRegistry::new()).await;
    let answer = door.get("/healthz").await;
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
}

#[tokio::test]
async fn metrics_may_be_for_those_only_whose_role_reads() {
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
    let door = HttpServer::open_with_tokens(
        &system,
        any,
        limits,
        recorder,
        HealthRegistry::new(),
        &tokens,
    );
    let address = door.await.expect("the loopback has ports").address();
    let page = async |path: &str, more: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{more}\r\n");
        let text = sent(address, request.as_bytes()).await;
        Answer::read(&text.expect("the door answers"))
    };
    for (token, status) in [
        ("of a viewer", 200),
        ("of an operator", 200),
        ("of an agent", 403),
        ("of few verbs", 403),
        // Totals are those of the whole node, whoever reads them.
        ("of one far away", 200),
        ("of nobody", 401),
        ("", 401),
    ] {
        let bearer = format!("Authorization: Bearer {token}\r\n");
        let answer = page("/metrics", &bearer).await;
        assert_eq!(answer.status, status, "{token}: {answer:?}");
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
async fn readiness_says_what_is_in_its_way() {
    let connected = Arc::new(AtomicBool::new(false));
    let trunk = Arc::clone(&connected);
    let vitals =
        HealthRegistry::new().check("trunk", move || match trunk.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err("the trunk is not connected".to_owned()),
        });
    let door = Door::open(HttpLimits::default(), vitals).await;
    let answer = door.get("/readyz").await;
    assert_eq!(answer.status, 503);
    let reasons = json!([{ "check": "trunk", "reason": "the trunk is not connected" }]);
    assert_eq!(answer.json(), json!({ "ready": false, "reasons": reasons }));
    connected.store(true, Ordering::Relaxed);
    let answer = door.get("/readyz").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json(), json!({ "ready": true, "reasons": [] }));
}

/// Stops when it is told to.
struct Slow(Arc<tokio::sync::Semaphore>);

impl Actor for Slow {
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
async fn a_node_that_ends_says_so_to_the_last() {
    let door = Door::open(HttpLimits::default(), HealthRegistry::new()).await;
    let end = Arc::new(tokio::sync::Semaphore::new(0));
    door.system
        .spawn::<Slow>("slow", Arc::clone(&end))
        .expect("the key is free");
    assert_eq!(door.get("/readyz").await.status, 200);
    let system = door.system.clone();
    let ending = tokio::spawn(async move { system.shutdown(LIMIT).await });
    let answer = loop {
        let answer = door.get("/readyz").await;
        if answer.status == 503 {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(answer.json()["reasons"][0]["check"], "shutdown");
    end.add_permits(1);
    let report = ending.await.expect("a shutdown does not panic");
    assert!(report.not_stopped.is_empty(), "{report:?}");
    let closed = TcpStream::connect(door.door.address()).await;
    assert!(closed.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn every_wrong_request_has_its_answer() {
    let door = Door::open(HttpLimits::default(), HealthRegistry::new()).await;
    let long = format!(
        "GET /healthz HTTP/1.1\r\nX: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    let many = format!("GET /healthz HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(1000));
    let endless = "a".repeat(1_000_000);
    for (octets, status) in [
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
        let shown = String::from_utf8_lossy(&octets[..octets.len().min(40)]);
        match sent(door.door.address(), octets).await {
            Ok(text) => assert_eq!(Answer::read(&text).status, status, "{shown:?}"),
            Err(error) => assert!(octets.len() > 64 * 1024, "{shown:?}: {error}"),
        }
    }
    assert_eq!(door.get("/healthz").await.status, 200);
    assert_eq!(restarts(&door.system), 0);
}

#[tokio::test]
async fn a_head_is_answered_without_a_body() {
    let door = Door::open(HttpLimits::default(), HealthRegistry::new()).await;
    let text = sent(door.door.address(), b"HEAD /healthz HTTP/1.1\r\n\r\n").await;
    let answer = Answer::read(&text.expect("the door answers"));
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert!(answer.head.contains("content-length: 3"), "{}", answer.head);
}

#[tokio::test]
async fn a_request_that_never_ends_is_cut_off() {
    let mut limits = HttpLimits::default();
    limits.time = Duration::from_millis(50);
    limits.head = 16 * 1024 * 1024;
    let door = Door::open(limits, HealthRegistry::new()).await;
    let text = loop {
        // A client that is itself too slow to receive the response tries again.
        match sent(door.door.address(), b"GET /metrics HTTP/1.1\r\nX: ").await {
            Ok(text) if !text.is_empty() => break text,
            _ => {}
        }
    };
    assert_eq!(Answer::read(&text).status, 408);
    // Sending one byte at a time does not avoid the limit.
    let mut stream = TcpStream::connect(door.door.address())
        .await
        .expect("it listens");
    let trickle = async {
        for octet in b"GET /metrics HTTP/1.1\r\nX: ".iter().cycle() {
            if stream.write_all(&[*octet]).await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, trickle)
        .await
        .expect("the door closes the connection");
}

#[tokio::test]
async fn beyond_the_limit_those_make_room_who_say_nothing() {
    let mut limits = HttpLimits::default();
    limits.connections = 2;
    limits.time = LIMIT;
    let door = Door::open(limits, HealthRegistry::new()).await;
    let address = door.door.address();
    let mut silent = Vec::new();
    for _ in 0..10 {
        silent.push(TcpStream::connect(address).await.expect("it listens"));
    }
    for _ in 0..5 {
        assert_eq!(door.get("/healthz").await.status, 200);
        silent.push(TcpStream::connect(address).await.expect("it listens"));
    }
    // They get a response, and are then disconnected.
    let mut text = String::new();
    let read = silent[0].read_to_string(&mut text);
    let read = tokio::time::timeout(LIMIT, read).await;
    read.expect("it has made room").expect("it is told");
    assert!(text.starts_with("HTTP/1.1 503 "), "{text}");
    assert_eq!(restarts(&door.system), 0);
}

#[tokio::test]
async fn a_port_that_is_taken_is_said() {
    let door = Door::open(HttpLimits::default(), HealthRegistry::new()).await;
    let system = ActorSystem::new("second").expect("inside a runtime");
    let taken = HttpServer::open(
        &system,
        door.door.address(),
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
async fn a_listener_that_panics_comes_back_at_its_port() {
    let door = Door::open(HttpLimits::default(), HealthRegistry::new()).await;
    let listener = door.system.find("/watch/http").expect("it runs");
    listener.inject_panic("a drill");
    while listener.info().restarts == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(door.get("/healthz").await.status, 200);
    door.door.close().await;
    assert!(door.system.find("/watch").is_none());
}

fn restarts(system: &ActorSystem) -> u32 {
    system.actors().iter().map(|info| info.restarts).sum()
}
