//! The HTTP pages of a node for monitoring.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::{Value, json};

use crate::binary::strowger;
use crate::running::Running;

pub(crate) const LISTEN: &str = "[metrics]\nlisten = \"127.0.0.1:0\"\n";

/// The status and the body of a response.
pub(crate) fn get(node: &Running, path: &str) -> (u16, String) {
    let address = node.http.as_deref().expect("the door is open");
    let mut stream = TcpStream::connect(address).expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("it answers");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|text| text.parse().ok());
    (status.expect("a status"), body.to_owned())
}

#[test]
fn documented_metrics_match_those_of_a_node() {
    let node = Running::start(LISTEN);
    let (status, page) = get(&node, "/metrics");
    assert_eq!(status, 200);
    let shown: BTreeSet<(&str, &str)> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let document = std::fs::read_to_string(document).expect("it exists");
    // Metrics of components exist only on nodes with components; a separate test covers their
    // chapter.
    let ours = document.split("\n## Components").next();
    let rows = ours.expect("a first part").lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        Some((name, rest.split(' ').next()?))
    });
    let documented: BTreeSet<(&str, &str)> = rows.collect();
    assert_eq!(shown, documented);
    let value = |name: &str| {
        let line = page.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse::<f64>().ok())
    };
    assert!(value("strowger_actors ") > Some(5.0), "{page}");
    assert_eq!(value("strowger_limit_used{limit=\"sessions\"} "), Some(0.0));
    assert_eq!(value("strowger_n4_sessions "), Some(0.0));
}

#[test]
fn serving_node_is_healthy_and_ready() {
    let node = Running::start(LISTEN);
    assert_eq!(get(&node, "/healthz"), (200, "ok\n".to_owned()));
    let (status, body) = get(&node, "/readyz");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!(
        (status, body),
        (200, json!({ "ready": true, "reasons": [] }))
    );
}

#[test]
fn metrics_are_not_served_by_default() {
    let node = Running::start("");
    assert_eq!(node.http, None);
    let ran = node.ask(["tree"]);
    assert!(!ran.out.contains("watch"), "{}", ran.out);
}

#[test]
fn taken_metrics_port_is_reported_with_a_hint() {
    let node = Running::start(LISTEN);
    let address = node.http.as_deref().expect("the door is open");
    let ran = strowger(["run", "--port", "0", "--metrics", address]);
    assert_eq!(ran.code, 3);
    assert!(ran.err.contains("HTTP endpoint"), "{}", ran.err);
    assert!(
        ran.err.contains("hint: choose another address"),
        "{}",
        ran.err
    );
}
