//! Hostile requests of agents over HTTP, each beside a harmless twin.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::http::{HttpEndpoint, TOKEN, exchange};
use super::{LIMIT, call};

impl HttpEndpoint {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("it listens")
    }

    /// Sends these bytes and reads until the endpoint closes the connection; returns the text
    /// received.
    async fn all(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.expect("it reads");
        let mut text = Vec::new();
        let read = tokio::time::timeout(LIMIT, stream.read_to_end(&mut text)).await;
        read.expect("the server closes").expect("it answers");
        String::from_utf8(text).expect("answers are text")
    }

    async fn value(&self, metric: &str) -> Option<f64> {
        let head = format!(
            "{}Connection: close\r\n\r\n",
            self.head("GET", "/metrics", "")
        );
        let page = self.all(head.as_bytes()).await;
        let line = page.lines().find_map(|line| line.strip_prefix(metric))?;
        line.trim().parse().ok()
    }
}

/// Number of answered calls in a text.
fn doubled(text: &str) -> usize {
    text.matches("\"structuredContent\"").count()
}

#[tokio::test]
async fn agent_keeps_its_connection_beyond_100_requests() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let mut stream = http.connect().await;
    for number in 0..100 {
        let ask = call(number, "double", &json!({ "number": number })).to_string();
        let head = http.head("POST", "/mcp", &known);
        let text = exchange(&mut stream, &head, &ask, "0\r\n\r\n").await;
        assert!(text.starts_with("HTTP/1.1 200"), "{number}: {text}");
        let doubled = format!("\"number\":{}", number * 2);
        assert!(text.contains(&doubled), "{number}: {text}");
    }
    let status = "strowger_http_responses_total{status=\"200\"}";
    assert!(http.value(status).await >= Some(100.0), "all are counted");
}

#[tokio::test]
async fn token_authorizes_only_its_request() {
    let http = HttpEndpoint::open(|http, _| http.time = LIMIT).await;
    let session = http.session().await;
    let ask = call(1, "double", &json!({ "number": 3 })).to_string();
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let second = format!(
        "{}Connection: close\r\nContent-Length: {}\r\n\r\n{ask}",
        http.head("POST", "/mcp", &known),
        ask.len(),
    );
    let nobody = http.head("POST", "/mcp", &session);
    for (first, status) in [
        (http.head("GET", "/healthz", ""), 200),
        // Here the page is public, whichever token is shown.
        (http.head("GET", "/metrics", &known), 200),
        (format!("{nobody}Content-Length: 0\r\n"), 401),
    ] {
        let text = http.all(format!("{first}\r\n{second}").as_bytes()).await;
        assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{text}");
        assert_eq!(text.matches("HTTP/1.1 ").count(), 2, "{text}");
        assert_eq!(doubled(&text), 1, "{text}");
    }
    // A request with a body and no token is the last: the body is not read, nor what follows it.
    let first = format!("{nobody}Content-Length: {}\r\n\r\n{ask}", ask.len());
    let text = http.all(format!("{first}{second}").as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 401"), "{text}");
    assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{text}");
    assert_eq!(doubled(&text), 0, "{text}");
    // The twin shows its token with both.
    let first = format!(
        "{}Content-Length: {}\r\n\r\n{ask}",
        http.head("POST", "/mcp", &known),
        ask.len(),
    );
    let text = http.all(format!("{first}{second}").as_bytes()).await;
    assert_eq!(text.matches("HTTP/1.1 200").count(), 2, "{text}");
    assert_eq!(doubled(&text), 2, "{text}");
}

#[tokio::test]
async fn body_length_must_match() {
    let http =
        HttpEndpoint::open(|_, limits| limits.time = std::time::Duration::from_millis(500)).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let head = http.head("POST", "/mcp", &known);
    let ask = call(1, "double", &json!({ "number": 3 })).to_string();
    let length = ask.len();
    let hidden = format!("{head}Content-Length: {length}\r\n\r\n{ask}");
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (headers, body, status, calls) in [
        // Twins whose headers are true.
        (
            format!("Connection: close\r\nContent-Length: {length}\r\n"),
            ask.clone(),
            200,
            1,
        ),
        (
            format!("Connection: close\r\n{chunked}"),
            format!("{length:x}\r\n{ask}\r\n0\r\n\r\n"),
            200,
            1,
        ),
        // A chunk whose data is longer than its length says, so that the rest is no valid length.
        (
            chunked.to_owned(),
            format!("{:x}\r\n{ask}\r\n0\r\n\r\n{hidden}", length - 1),
            400,
            0,
        ),
        (
            chunked.to_owned(),
            format!("zz\r\n{ask}\r\n0\r\n\r\n"),
            400,
            0,
        ),
        // The body is shorter than announced.
        (
            format!("Content-Length: {}\r\n", length + 1),
            ask.clone(),
            408,
            0,
        ),
        (
            chunked.to_owned(),
            format!("{:x}\r\n{ask}", length + 9),
            408,
            0,
        ),
        // With both headers the chunks count, and nothing is served after them.
        (
            format!("Content-Length: {length}\r\n{chunked}"),
            format!("{length:x}\r\n{ask}\r\n0\r\n\r\n{hidden}"),
            200,
            1,
        ),
    ] {
        let text = http
            .all(format!("{head}{headers}\r\n{body}").as_bytes())
            .await;
        assert!(
            text.starts_with(&format!("HTTP/1.1 {status}")),
            "{headers:?} {body:?}: {text}"
        );
        assert_eq!(text.matches("HTTP/1.1 ").count(), 1, "{headers:?}: {text}");
        assert_eq!(doubled(&text), calls, "{headers:?}: {text}");
    }
}

#[tokio::test]
async fn only_agents_get_100_continue() {
    let http = HttpEndpoint::open(|_, _| {}).await;
    let session = http.session().await;
    let ask = call(1, "double", &json!({ "number": 3 })).to_string();
    let expect = format!(
        "Expect: 100-continue\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        ask.len()
    );
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let mut stream = http.connect().await;
    let head = format!("{}{expect}", http.head("POST", "/mcp", &known));
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let mut go_on = [0; 25];
    let read = tokio::time::timeout(LIMIT, stream.read_exact(&mut go_on)).await;
    read.expect("it answers in time").expect("it answers");
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.expect("it reads");
    let mut text = String::new();
    let read = tokio::time::timeout(LIMIT, stream.read_to_string(&mut text)).await;
    read.expect("it ends").expect("it answers");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert_eq!(doubled(&text), 1, "{text}");

    let head = format!("{}{expect}", http.head("POST", "/mcp", &session));
    let text = http.all(head.as_bytes()).await;
    assert!(text.starts_with("HTTP/1.1 401"), "{text}");
}

#[tokio::test]
async fn later_requests_have_the_same_head_limit() {
    let http = HttpEndpoint::open(|http, _| http.head = 1000).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}");
    let ask = call(1, "double", &json!({ "number": 3 })).to_string();
    let head = http.head("POST", "/mcp", &known);
    let long = format!("{head}X: {}\r\n", "x".repeat(1000));
    for (second, says) in [
        (long.as_str(), "1000 bytes (metrics.head)"),
        ("GET /healthz HTTP/2.0\r\n", "invalid HTTP/1 request"),
        ("no request\r\n", "invalid HTTP/1 request"),
    ] {
        let mut stream = http.connect().await;
        let first = exchange(&mut stream, &head, &ask, "0\r\n\r\n").await;
        assert_eq!(doubled(&first), 1, "{first}");
        // The twin repeats the first request.
        let again = exchange(&mut stream, &head, &ask, "0\r\n\r\n").await;
        assert_eq!(doubled(&again), 1, "{again}");
        stream
            .write_all(format!("{second}\r\n").as_bytes())
            .await
            .expect("it reads");
        let mut text = String::new();
        let read = tokio::time::timeout(LIMIT, stream.read_to_string(&mut text)).await;
        read.expect("it ends").expect("it answers");
        assert!(text.contains(says), "{second:?}: {text}");
        assert!(text.contains("connection: close"), "{second:?}: {text}");
    }
}

#[tokio::test]
async fn oversized_message_is_refused_with_a_reason() {
    const LIMIT_OF_BODY: usize = 64 * 1024;
    let http = HttpEndpoint::open(|_, limits| limits.body = LIMIT_OF_BODY).await;
    let session = http.session().await;
    let known = format!("Authorization: Bearer {TOKEN}\r\n{session}Connection: close\r\n");
    let head = http.head("POST", "/mcp", &known);
    let ask = call(1, "double", &json!({ "number": 3 })).to_string();
    // The whole request is written before the response is read, as many clients do.
    for (length, status) in [(LIMIT_OF_BODY, 200), (16 << 20, 413)] {
        let space = " ".repeat(length - ask.len());
        let request = format!("{head}Content-Length: {length}\r\n\r\n{ask}{space}");
        let text = http.all(request.as_bytes()).await;
        assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{text}");
    }
}
