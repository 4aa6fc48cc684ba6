//! Clients that are wrong, slow or greedy harm only themselves.

use std::io::ErrorKind;
use std::time::Duration;

use bytes::BytesMut;
use serde_json::{Value, json};
use strowger::{ActorSystem, ContentType, FaultCode};
use strowger_gateway::access::Operation;
use strowger_gateway::client::{Client, ClientError};
use strowger_gateway::frame::{Frame, FrameDecoder, FrameKind};
use strowger_gateway::method::{MethodOutput, Methods};
use strowger_gateway::{Gateway, Limits};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// Not part of any claim: it only makes a hanging test end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client that writes arbitrary frames.
struct RawClient {
    stream: UnixStream,
    decoder: FrameDecoder,
}

struct Node {
    gateway: Gateway,
    _system: ActorSystem,
    _directory: tempfile::TempDir,
}

async fn node(change: impl FnOnce(&mut Limits)) -> Node {
    let directory = tempfile::tempdir().expect("a folder of our own");
    let system = ActorSystem::new("node").expect("inside a runtime");
    let socket = directory.path().join("control.sock");
    let methods = Methods::new()
        .register(Operation::reads("never"), |_| async {
            std::future::pending::<()>().await;
            Ok(Value::Null)
        })
        .register(Operation::reads("endless"), |_| async {
            Ok(MethodOutput::rows(
                (0_u64..).map(|n| json!([n, "x".repeat(1000)])),
            ))
        })
        .register(Operation::reads("huge"), |_| async {
            Ok(json!("x".repeat(100_000)))
        });
    let mut limits = Limits::default();
    limits.frame = 64 * 1024;
    change(&mut limits);
    let gateway = Gateway::open(&system, socket, limits, methods)
        .await
        .expect("the socket is free");
    Node {
        gateway,
        _system: system,
        _directory: directory,
    }
}

impl Node {
    async fn raw(&self) -> RawClient {
        let stream = UnixStream::connect(self.gateway.path())
            .await
            .expect("as the protocol says");
        let mut raw = RawClient {
            stream,
            decoder: FrameDecoder::new(1 << 20),
        };
        let hello = raw.next().await.expect("as the protocol says");
        assert_eq!(hello.kind, FrameKind::Hello);
        raw
    }

    async fn still_answers(&self) {
        let mut client = Client::connect(self.gateway.path())
            .await
            .expect("the node listens");
        client
            .call("ping", Value::Null)
            .await
            .expect("as the protocol says");
    }
}

impl RawClient {
    async fn send(&mut self, frame: Frame) {
        let mut bytes = BytesMut::new();
        frame
            .encode_into(1 << 20, &mut bytes)
            .expect("as the protocol says");
        self.send_bytes(&bytes).await;
    }

    async fn send_bytes(&mut self, bytes: &[u8]) {
        match self.stream.write_all(bytes).await {
            Ok(()) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::BrokenPipe),
        }
    }

    async fn name(&mut self, target: u32, name: &str) {
        let mut frame =
            Frame::new(FrameKind::Name, 0).with_payload(ContentType::Text, name.to_owned());
        frame.target = target;
        self.send(frame).await;
    }

    async fn call(&mut self, id: u32, target: u32) {
        let mut frame = Frame::new(FrameKind::Call, id);
        frame.target = target;
        self.send(frame).await;
    }

    /// The next frame; `None` when the node has closed the connection.
    async fn next(&mut self) -> Option<Frame> {
        let next = async {
            loop {
                if let Some(frame) = self.decoder.next_frame().expect("as the protocol says") {
                    return Some(frame);
                }
                let mut bytes = [0; 4096];
                match self.stream.read(&mut bytes).await {
                    Ok(0) => return None,
                    Ok(n) => self.decoder.feed(&bytes[..n]),
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let next = tokio::time::timeout(PATIENCE, next).await;
        next.expect("the node answers or closes")
    }

    async fn error(&mut self) -> (u32, String, String) {
        let frame = self.next().await.expect("a frame");
        assert_eq!(frame.kind, FrameKind::Error, "{frame:?}");
        let error: Value = serde_json::from_slice(&frame.payload).expect("as the protocol says");
        let text = |key: &str| {
            error[key]
                .as_str()
                .expect("as the protocol says")
                .to_owned()
        };
        (frame.id, text("code"), text("message"))
    }

    /// Checks that the connection ends with this error.
    async fn is_ended(&mut self, code: &str, says: &str) {
        let (id, is, message) = self.error().await;
        assert_eq!((id, is.as_str()), (0, code), "{message}");
        assert!(message.contains(says), "{message}");
        assert_eq!(self.next().await, None);
    }
}

#[tokio::test]
async fn garbage_closes_the_connection_and_tells_the_offset() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.send_bytes(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    raw.is_ended("protocol", "frame at byte 0: unknown kind 47")
        .await;
    node.still_answers().await;
}

#[tokio::test]
async fn oversized_frame_is_refused_before_its_payload() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    let mut bytes = BytesMut::new();
    Frame::new(FrameKind::Cancel, 1)
        .encode_into(10, &mut bytes)
        .unwrap();
    bytes[..4].copy_from_slice(&u32::MAX.to_be_bytes());
    raw.send_bytes(&bytes).await;
    raw.is_ended("protocol", "payload of 4294967295 bytes, limit is 65536")
        .await;
}

#[tokio::test]
async fn truncated_stream_is_reported() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.send_bytes(&[0, 0, 0, 9, 3]).await;
    raw.stream.shutdown().await.unwrap();
    raw.is_ended("protocol", "the stream ended after 5 of 24 bytes")
        .await;
}

#[tokio::test]
async fn server_frames_from_a_client_are_refused() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.send(Frame::new(FrameKind::Done, 1)).await;
    raw.is_ended("protocol", "clients must not send done frames")
        .await;
}

#[tokio::test]
async fn names_are_bounded_in_length_and_number() {
    let node = node(|limits| limits.names = 8).await;
    let mut raw = node.raw().await;
    raw.name(1, "too-long-a-name").await;
    raw.is_ended("protocol", "limited to 8 bytes").await;
    let mut raw = node.raw().await;
    for target in 1..=9 {
        raw.name(target, "ping").await;
    }
    raw.is_ended("protocol", "more than 8 names").await;
    let mut raw = node.raw().await;
    raw.name(0, "ping").await;
    raw.is_ended("protocol", "target 0").await;
}

#[tokio::test]
async fn invalid_calls_keep_the_connection() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.call(1, 77).await;
    let (id, code, _) = raw.error().await;
    assert_eq!((id, code.as_str()), (1, "unknown-target"));
    raw.name(1, "ping").await;
    raw.call(1, 1).await;
    let (id, code, message) = raw.error().await;
    assert_eq!((id, code.as_str()), (1, "bad-request"), "{message}");
    let mut call = Frame::new(FrameKind::Call, 2).with_payload(ContentType::Json, "{\"pa");
    call.target = 1;
    raw.send(call).await;
    let (id, code, message) = raw.error().await;
    assert_eq!((id, code.as_str()), (2, "bad-request"), "{message}");
    raw.call(3, 1).await;
    assert_eq!(raw.next().await.unwrap().kind, FrameKind::Done);
}

#[tokio::test]
async fn deep_json_is_refused() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "ping").await;
    let mut call =
        Frame::new(FrameKind::Call, 1).with_payload(ContentType::Json, "[".repeat(60_000));
    call.target = 1;
    raw.send(call).await;
    let (_, code, message) = raw.error().await;
    assert_eq!(code, "bad-request", "{message}");
    node.still_answers().await;
}

#[tokio::test]
async fn excess_calls_are_refused_until_others_are_cancelled() {
    let node = node(|limits| limits.in_flight = 2).await;
    let mut raw = node.raw().await;
    raw.name(1, "never").await;
    for id in 1..=3 {
        raw.call(id, 1).await;
    }
    let (id, code, _) = raw.error().await;
    assert_eq!((id, code.as_str()), (3, "full"));
    raw.send(Frame::new(FrameKind::Cancel, 1)).await;
    let (id, code, _) = raw.error().await;
    assert_eq!((id, code.as_str()), (1, "cancelled"));
    raw.name(2, "ping").await;
    raw.call(4, 2).await;
    assert_eq!(raw.next().await.unwrap().kind, FrameKind::Done);
}

#[tokio::test]
async fn rows_need_credit() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "endless").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    (call.target, call.credit) = (1, 3);
    raw.send(call).await;
    for _ in 0..3 {
        assert_eq!(raw.next().await.unwrap().kind, FrameKind::Item);
    }
    raw.name(2, "ping").await;
    raw.call(2, 2).await;
    let frame = raw.next().await.unwrap();
    assert_eq!(
        (frame.kind, frame.id),
        (FrameKind::Done, 2),
        "no fourth row"
    );
    let mut credit = Frame::new(FrameKind::Credit, 1);
    credit.credit = u32::MAX;
    raw.send(credit.clone()).await;
    raw.send(credit).await;
    for _ in 0..10 {
        assert_eq!(raw.next().await.unwrap().kind, FrameKind::Item);
    }
}

#[tokio::test]
async fn listing_without_credit_is_a_bad_request() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "endless").await;
    raw.call(1, 1).await;
    let (id, code, message) = raw.error().await;
    assert_eq!((id, code.as_str()), (1, "bad-request"));
    assert!(message.contains("endless is a stream"), "{message}");
}

#[tokio::test]
async fn client_that_does_not_read_is_disconnected() {
    let node = node(|limits| limits.stall = Duration::from_millis(50)).await;
    let mut raw = node.raw().await;
    raw.name(1, "endless").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    (call.target, call.credit) = (1, u32::MAX);
    raw.send(call).await;
    let mut client = Client::connect(node.gateway.path()).await.unwrap();
    let gone = async {
        loop {
            let params = json!({"path": "/gateway/connections"});
            if client.call("inspect", params).await.unwrap()["children"] == 1 {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn silent_client_is_disconnected_with_a_reason() {
    let node = node(|limits| limits.idle = Duration::from_millis(40)).await;
    let mut raw = node.raw().await;
    raw.send_bytes(&[0, 0, 0]).await;
    raw.is_ended("idle", "no frame for 40ms").await;
}

#[tokio::test]
async fn excess_connection_is_refused_with_a_reason() {
    let node = node(|limits| limits.connections = 2).await;
    let (first, _second) = (node.raw().await, node.raw().await);
    match Client::connect(node.gateway.path()).await {
        Err(ClientError::Fault(fault)) => assert_eq!(fault.code, FaultCode::Full),
        other => panic!("{other:?}"),
    }
    drop(first);
    let room = async {
        while Client::connect(node.gateway.path()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, room).await.unwrap();
}

#[tokio::test]
async fn oversized_reply_is_a_fault() {
    let node = node(|_| {}).await;
    let mut client = Client::connect(node.gateway.path()).await.unwrap();
    match client.call("huge", Value::Null).await {
        Err(ClientError::Fault(fault)) => {
            assert_eq!(fault.code, FaultCode::Failed);
            assert!(fault.message.contains("limit is 65536"), "{fault}");
        }
        other => panic!("{other:?}"),
    }
    assert!(client.call("ping", Value::Null).await.is_ok());
}

#[tokio::test]
async fn thousand_garbage_clients_leak_nothing() {
    let node = node(|_| {}).await;
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..1000 {
        let Ok(mut stream) = UnixStream::connect(node.gateway.path()).await else {
            continue;
        };
        let mut bytes = [0; 64];
        for byte in &mut bytes {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = seed.to_be_bytes()[0];
        }
        bytes[..2].copy_from_slice(&[0, 0]);
        bytes[4] &= 7;
        let _ = stream.write_all(&bytes).await;
    }
    let clean = async {
        loop {
            if let Ok(mut client) = Client::connect(node.gateway.path()).await {
                let params = json!({"path": "/gateway/connections"});
                if let Ok(info) = client.call("inspect", params).await
                    && info["children"] == 1
                {
                    assert_eq!(info["restarts"], 0);
                    return;
                }
            }
        }
    };
    tokio::time::timeout(PATIENCE, clean).await.unwrap();
}
