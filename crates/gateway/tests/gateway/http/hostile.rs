//! Hostile HTTP requests, each beside a harmless twin.

use std::net::SocketAddr;
use std::time::Duration;

use strowger_gateway::health::HealthRegistry;
use strowger_gateway::http::HttpLimits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{LIMIT, Response, TestServer, exchange, is_complete_response, restarts};

/// The single response to these bytes, which must contain a helpful message.
async fn send_and_read(address: SocketAddr, bytes: &[u8]) -> Response {
    let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(80)]).into_owned();
    let text = exchange(address, bytes).await;
    let text = text.unwrap_or_else(|error| panic!("{shown:?}: {error}"));
    let responses = text.lines().filter(|line| line.starts_with("HTTP/"));
    assert_eq!(responses.count(), 1, "{shown:?}: {text}");
    let response = Response::read(&text);
    if response.status >= 400 {
        assert!(response.body.len() > 20, "{shown:?}: {text}");
        assert!(response.head.contains("text/plain"), "{shown:?}: {text}");
    }
    response
}

async fn open() -> TestServer {
    TestServer::open(HttpLimits::default(), HealthRegistry::new()).await
}

/// An endpoint whose connections stay as long as a slow machine needs.
async fn open_without_timeout() -> TestServer {
    let mut limits = HttpLimits::default();
    limits.time = LIMIT;
    TestServer::open(limits, HealthRegistry::new()).await
}

/// The responses to these bytes; all but the last leave the connection open.
async fn read_all_responses(address: SocketAddr, bytes: &[u8]) -> Vec<Response> {
    let text = exchange(address, bytes).await.expect("it is answered");
    let responses = text.split_inclusive("HTTP/1.1 ").skip(1);
    let responses = responses.map(|response| response.trim_end_matches("HTTP/1.1 "));
    let responses = responses.map(|response| Response::read(&format!("HTTP/1.1 {response}")));
    let responses: Vec<Response> = responses.collect();
    if let Some((_, first)) = responses.split_last() {
        assert!(
            first.iter().all(|response| !closes_connection(response)),
            "{first:?}"
        );
    }
    responses
}

fn closes_connection(response: &Response) -> bool {
    response.head.contains("connection: close")
}

#[tokio::test]
async fn connection_serves_consecutive_requests() {
    let server = open_without_timeout().await;
    let mut stream = TcpStream::connect(server.server.address())
        .await
        .expect("it listens");
    for (path, status) in [
        ("/healthz", 200),
        ("/nowhere", 404),
        ("/metrics", 200),
        ("/readyz", 200),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it reads");
        let mut text = Vec::new();
        let read = async {
            while !is_complete_response(request.as_bytes(), &text) {
                assert!(stream.read_buf(&mut text).await.expect("it answers") > 0);
            }
        };
        tokio::time::timeout(LIMIT, read).await.expect("it answers");
        let response = Response::read(&String::from_utf8(text).expect("text"));
        assert_eq!(response.status, status, "{path}: {response:?}");
        assert!(!closes_connection(&response), "{response:?}");
    }
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_up_to_a_limit() {
    let server = open_without_timeout().await;
    let address = server.server.address();
    let ask = |path| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    let both = ask("/healthz") + &ask("/nowhere");
    for count in [1, 2, 50] {
        let responses = read_all_responses(address, both.repeat(count).as_bytes()).await;
        let statuses: Vec<u16> = responses.iter().map(|response| response.status).collect();
        assert_eq!(statuses, [200, 404].repeat(count));
        assert_eq!(
            closes_connection(&responses[responses.len() - 1]),
            count == 50
        );
    }
    // More than a connection serves: the rest is not answered.
    let responses = read_all_responses(address, ask("/healthz").repeat(150).as_bytes()).await;
    assert_eq!(responses.len(), 100);
    assert!(closes_connection(&responses[99]), "{responses:?}");
    let page = server.get("/metrics").await;
    let page = super::exposition::read(&page.body);
    let served = page.value("strowger_http_responses_total", &[("status", "200")]);
    assert_eq!(
        served,
        Some(153.0),
        "what came after the last is not served"
    );
    assert_eq!(restarts(&server.system), 0);
}

#[tokio::test]
async fn response_closes_a_connection_that_cannot_be_reused() {
    let server = open_without_timeout().await;
    let address = server.server.address();
    for (request, status) in [
        ("GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", 200),
        ("GET\r\n\r\n", 400),
        (
            "POST /healthz HTTP/1.1\r\nContent-Length: 9\r\n\r\nsome body",
            405,
        ),
    ] {
        // The requests beside it are harmless.
        let ask = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
        let responses =
            read_all_responses(address, format!("{ask}{request}{ask}").as_bytes()).await;
        let statuses: Vec<u16> = responses.iter().map(|response| response.status).collect();
        assert_eq!(statuses, [200, status], "{request:?}");
        assert!(
            closes_connection(&responses[1]),
            "{request:?}: {responses:?}"
        );
    }
}

#[tokio::test]
async fn contended_connection_closes_after_its_response() {
    let mut limits = HttpLimits::default();
    (limits.connections, limits.time) = (2, LIMIT);
    let server = TestServer::open(limits, HealthRegistry::new()).await;
    let address = server.server.address();
    let ask = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
    assert!(
        !closes_connection(&send_and_read(address, ask).await),
        "nobody waits"
    );
    // New clients keep their places for a moment, so there are too many of them.
    for _ in 0..100 {
        let mut others = Vec::new();
        for _ in 0..3 {
            others.push(TcpStream::connect(address).await.expect("it listens"));
        }
        if closes_connection(&send_and_read(address, ask).await) {
            return;
        }
    }
    panic!("others wait and the connection stays");
}

#[tokio::test]
async fn idle_connection_is_closed() {
    let mut limits = HttpLimits::default();
    limits.time = Duration::from_secs(4);
    let server = TestServer::open(limits, HealthRegistry::new()).await;
    let mut stream = TcpStream::connect(server.server.address())
        .await
        .expect("it listens");
    let asked = stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").await;
    asked.expect("it reads");
    let mut text = String::new();
    let read = tokio::time::timeout(LIMIT, stream.read_to_string(&mut text)).await;
    read.expect("it ends").expect("it is answered");
    assert_eq!(Response::read(&text).body, "ok\n");
}

#[tokio::test]
async fn unauthenticated_body_is_never_read() {
    let server = open().await;
    let address = server.server.address();
    for (headers, body, status) in [
        // Twins whose headers are true.
        ("Content-Length: 5", "hello", 405),
        ("Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n\r\n", 405),
        // The headers announce more than is sent.
        ("Content-Length: 999999999999", "hello", 405),
        ("Transfer-Encoding: chunked", "FFFFFFFF\r\nhello", 405),
        (
            "Transfer-Encoding: chunked",
            "FFFFFFFFFFFFFFFFFFFFFFFFFFFF\r\nhello",
            405,
        ),
        ("Transfer-Encoding: chunked", "no number\r\nhello", 405),
        // The headers cannot be true.
        ("Content-Length: -5", "hello", 400),
        ("Content-Length: +5", "hello", 400),
        ("Content-Length: 5\r\nContent-Length: 6", "hello", 400),
        ("Content-Length: 99999999999999999999999", "hello", 400),
        ("Transfer-Encoding: gzip", "hello", 400),
        ("Transfer-Encoding: chunked, gzip", "hello", 400),
        // A request hidden in the bytes that one of the two lengths leaves over is not served.
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
            "0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n",
            405,
        ),
    ] {
        let request = format!("POST /metrics HTTP/1.1\r\nHost: a\r\n{headers}\r\n\r\n{body}");
        let response = send_and_read(address, request.as_bytes()).await;
        assert_eq!(response.status, status, "{request:?}: {response:?}");
    }
    assert_eq!(restarts(&server.system), 0);
}

#[tokio::test]
async fn unread_body_gets_no_100_continue() {
    let server = open().await;
    let address = server.server.address();
    let request = |method: &str, length: usize| {
        format!(
            "{method} /healthz HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\
             Content-Length: {length}\r\n\r\n"
        )
    };
    let response = send_and_read(address, request("POST", 5).as_bytes()).await;
    assert_eq!(response.status, 405);
    let response = send_and_read(address, request("GET", 0).as_bytes()).await;
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn head_limit_is_exact() {
    let mut limits = HttpLimits::default();
    limits.head = 1000;
    let server = TestServer::open(limits, HealthRegistry::new()).await;
    let address = server.server.address();
    let head = |length: usize| {
        let begin = "GET /healthz HTTP/1.1\r\nHost: a\r\nX: ";
        let rest = length - begin.len() - "\r\n\r\n".len();
        format!("{begin}{}\r\n\r\n", "x".repeat(rest))
    };
    assert_eq!(
        send_and_read(address, head(1000).as_bytes()).await.status,
        200
    );
    let long = send_and_read(address, head(1001).as_bytes()).await;
    assert_eq!(long.status, 431);
    assert!(long.body.contains("1000 bytes (metrics.head)"), "{long:?}");
    // A line that does not end is refused at the limit.
    let endless = send_and_read(address, &head(1001).as_bytes()[..1000]).await;
    assert_eq!(endless.status, 431);
}

#[tokio::test]
async fn too_many_headers_are_refused() {
    let server = open().await;
    let address = server.server.address();
    let head = |count: usize| {
        let headers = "a: b\r\n".repeat(count);
        format!("GET /healthz HTTP/1.1\r\n{headers}\r\n")
    };
    assert_eq!(
        send_and_read(address, head(100).as_bytes()).await.status,
        200
    );
    let flood = send_and_read(address, head(101).as_bytes()).await;
    assert_eq!(flood.status, 431);
    assert!(flood.body.contains("100 headers"), "{flood:?}");
}

#[tokio::test]
async fn line_breaks_cannot_inject_into_a_response() {
    let server = open().await;
    let address = server.server.address();
    for (request, status) in [
        // Twins: the same characters where they have no meaning.
        ("GET /healthz?a=%0d%0ab HTTP/1.1\r\nHost: a\r\n\r\n", 200),
        ("GET /healthz HTTP/1.1\r\nX: a%0d%0ab\r\n\r\n", 200),
        ("GET /%0d%0aInjected:%20yes HTTP/1.1\r\n\r\n", 404),
        ("GET /\rInjected: yes HTTP/1.1\r\n\r\n", 400),
        ("GET /healthz\r\nInjected: yes HTTP/1.1\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nX: a\rInjected: yes\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nX: a\0b\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nX : a\r\n\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nX: a\r\n folded\r\n\r\n", 400),
    ] {
        let response = send_and_read(address, request.as_bytes()).await;
        assert_eq!(response.status, status, "{request:?}: {response:?}");
        assert!(!response.head.contains("injected"), "{response:?}");
        assert!(!response.body.contains("Injected"), "{response:?}");
    }
}

#[tokio::test]
async fn other_http_versions_are_refused() {
    let server = open().await;
    let address = server.server.address();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for request in [
        &b"GET /healthz\r\n\r\n"[..],
        b"GET /healthz\n\n",
        b"GET /healthz HTTP/0.9\r\n\r\n",
        b"GET /healthz HTTP/2.0\r\n\r\n",
        preface,
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
    ] {
        let response = send_and_read(address, request).await;
        assert_eq!(response.status, 400, "{response:?}");
        assert!(response.body.contains("HTTP/1 request"), "{response:?}");
    }
    // Twins: the same headers in the HTTP version that is spoken.
    let upgrade = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n\
                   Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    assert_eq!(send_and_read(address, upgrade.as_bytes()).await.status, 200);
    let old = exchange(address, b"GET /healthz HTTP/1.0\r\n\r\n").await;
    let old = old.expect("it is answered");
    assert!(old.starts_with("HTTP/1.0 200 OK\r\n"), "{old}");
    assert!(old.ends_with("\r\n\r\nok\n"), "{old}");
}

#[tokio::test]
async fn head_response_has_the_length_and_no_body() {
    let server = open().await;
    let address = server.server.address();
    let ask = |method| format!("{method} /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = send_and_read(address, ask("HEAD").as_bytes()).await;
    let page = send_and_read(address, ask("GET").as_bytes()).await;
    assert_eq!(
        (head.status, head.body.as_str(), page.status),
        (200, "", 200)
    );
    let length = |response: &Response| {
        let mut lines = response.head.lines();
        let length = lines.find_map(|line| line.strip_prefix("content-length: "));
        length.and_then(|length| length.parse::<usize>().ok())
    };
    assert!(length(&head) > Some(1000), "{head:?}");
    assert_eq!(length(&page), Some(page.body.len()));
}

#[tokio::test]
async fn proxy_requests_are_refused() {
    let server = open().await;
    let address = server.server.address();
    for (target, host, status) in [
        ("/healthz", "a:80", 200),
        ("http://a:80/healthz", "a:80", 200),
        ("HTTP://A:80/healthz", "a:80", 200),
        ("http://a:80", "a:80", 404),
        ("http://elsewhere/healthz", "a:80", 400),
        ("http://a:80@elsewhere/healthz", "a:80", 400),
        ("http://b@a:80/healthz", "a:80", 400),
        ("//elsewhere/healthz", "a:80", 404),
        ("*", "a:80", 404),
        ("a:80", "a:80", 404),
        ("elsewhere:80", "a:80", 400),
        ("healthz", "a:80", 400),
    ] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let response = send_and_read(address, request.as_bytes()).await;
        assert_eq!(response.status, status, "{target}: {response:?}");
    }
    let tunnel = b"CONNECT elsewhere:443 HTTP/1.1\r\nHost: elsewhere:443\r\n\r\n";
    let response = send_and_read(address, tunnel).await;
    assert!(matches!(response.status, 400..=405), "{response:?}");
}

#[tokio::test]
async fn half_closed_client_gets_its_response() {
    let server = open().await;
    let address = server.server.address();
    for (bytes, status) in [
        (&b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"[..], 200),
        (b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        // A truncated request is no request.
        (b"GET /metrics HTTP/1.1\r\nHost: a\r\n", 400),
        (b"GET", 400),
    ] {
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(bytes).await.expect("it reads");
        stream.shutdown().await.expect("it is open");
        let mut text = String::new();
        let read = stream.read_to_string(&mut text);
        let read = tokio::time::timeout(LIMIT, read).await;
        read.expect("it ends").expect("it is answered");
        assert_eq!(Response::read(&text).status, status, "{bytes:?}");
    }
    // A client that sends nothing gets no response.
    let mut silent = TcpStream::connect(address).await.expect("it listens");
    silent.shutdown().await.expect("it is open");
    let mut text = String::new();
    let read = tokio::time::timeout(LIMIT, silent.read_to_string(&mut text)).await;
    read.expect("it ends").expect("it is closed");
    assert_eq!(text, "");
}

#[tokio::test]
async fn late_request_error_tells_the_limit() {
    let mut limits = HttpLimits::default();
    limits.time = Duration::from_millis(200);
    let server = TestServer::open(limits, HealthRegistry::new()).await;
    let response = send_and_read(server.server.address(), b"GET /healthz HTTP/1.1\r\nX: ").await;
    assert_eq!(response.status, 408);
    assert!(
        response.body.contains("200ms (metrics.time)"),
        "{response:?}"
    );
}
