//! Roles of tokens: the operations that each permits at every endpoint, and the audit records.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use strowger::{Actor, BoxError, ContentType, Context, Fault, FaultCode, Strategy, Supervisor};
use strowger_gateway::access::{AuditRecord, Operation, Permission, Role, Token};
use strowger_gateway::client::{Client, ClientError};
use strowger_gateway::frame::{Frame, FrameKind};
use strowger_gateway::method::Methods;
use strowger_gateway::relay::RelaySpec;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::messages::raw::{PATIENCE, RawClient};
use crate::messages::web::Page;
use crate::messages::{Node, node};

const ROLES: [(Role, &str); 3] = [
    (Role::Viewer, "the-secret-of-viewer"),
    (Role::Operator, "the-secret-of-operator"),
    (Role::Agent, "the-secret-of-agent"),
];

fn all() -> Vec<Token> {
    let token = |(role, secret): (Role, &'static str)| Token::new(role.name(), role, secret);
    ROLES.into_iter().map(token).collect()
}

fn limited(name: &'static str, role: Role, secret: &'static str, patterns: &[&str]) -> Token {
    let patterns = patterns.iter().map(|one| one.parse().expect("a pattern"));
    Token::new(name, role, secret).with_addresses(patterns.collect())
}

/// A node with control methods at each endpoint, and two topics.
async fn start_with_tokens(tokens: Vec<Token>) -> Node {
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let node = node(|spec| {
        (spec.tcp, spec.websocket) = (Some(any), Some(any));
        spec.tokens = tokens;
        spec.methods = Some(Methods::new());
    })
    .await;
    let encode = |load: &u32| json!(load);
    let relays = Supervisor::new(Strategy::OneForOne)
        .child(RelaySpec::<u32>::new("a", encode).child("a"))
        .child(RelaySpec::<u32>::new("b", encode).child("b"));
    let started = node.system.supervise("relays", relays).await;
    started.expect("nobody has the key");
    node
}

/// A connection through one of the endpoints.
enum TestClient {
    Stream(RawClient),
    Page(Box<Page>),
}

impl TestClient {
    async fn open(node: &Node, endpoint: &str, secret: &str) -> Self {
        let token =
            Frame::new(FrameKind::Token, 0).with_payload(ContentType::Text, secret.to_owned());
        let mut client_under_test = match endpoint {
            "socket" => Self::Stream(node.raw().await),
            "tcp" => {
                Self::Stream(RawClient::tcp(node.listeners.tcp_address().expect("asked for")).await)
            }
            _ => Self::Page(Box::new(
                Page::open(node.listeners.websocket_address().expect("asked for"), None).await,
            )),
        };
        client_under_test.send(token).await;
        client_under_test
    }

    async fn send(&mut self, frame: Frame) {
        match self {
            Self::Stream(raw) => raw.send(frame).await,
            Self::Page(page) => page.send(&[frame]).await,
        }
    }

    async fn next(&mut self) -> Frame {
        let next = match self {
            Self::Stream(raw) => timeout(PATIENCE, raw.next()).await,
            Self::Page(page) => timeout(PATIENCE, page.next()).await,
        };
        next.expect("it answers").expect("the connection stays")
    }

    /// The outcome of a call: `None` for an answer, or the fault.
    async fn attempt(
        &mut self,
        id: u32,
        kind: FrameKind,
        name: &str,
        payload: &Value,
    ) -> Option<Fault> {
        let mut bound =
            Frame::new(FrameKind::Name, 0).with_payload(ContentType::Text, name.to_owned());
        bound.target = id;
        self.send(bound).await;
        let mut call = Frame::new(kind, id).with_json(payload);
        call.target = id;
        if kind == FrameKind::Call {
            call.credit = 1000;
        }
        self.send(call).await;
        if name.ends_with(" subscribe") {
            // Without this the call would go on forever.
            self.send(Frame::new(FrameKind::Cancel, id)).await;
        }
        loop {
            let frame = self.next().await;
            assert_eq!(frame.id, id, "{frame:?}");
            match frame.kind {
                FrameKind::Item => {}
                FrameKind::Done => return None,
                FrameKind::Error => {
                    let fault: Value = frame.into_payload().decode().expect("JSON");
                    return Some(Fault::from_json(&fault).expect("a fault"));
                }
                other => panic!("{other}"),
            }
        }
    }
}

/// Each operation with a harmless call.
fn every_operation() -> Vec<(Operation, FrameKind, String, Value)> {
    let methods = Operation::control_methods().iter();
    let method = |operation: &Operation| {
        (
            *operation,
            FrameKind::Call,
            operation.name().to_owned(),
            json!({}),
        )
    };
    let mut calls: Vec<_> = methods.map(method).collect();
    let mut message = |operation: Operation, kind, name: &str, payload| {
        calls.push((operation, kind, name.to_owned(), payload));
    };
    message(
        Operation::TELL,
        FrameKind::Tell,
        "@(clerk) note",
        json!("x"),
    );
    message(Operation::ASK, FrameKind::Call, "@(clerk) add", json!(1));
    message(
        Operation::STREAM,
        FrameKind::Call,
        "@(clerk) numbers",
        json!({ "to": 1 }),
    );
    message(
        Operation::SUBSCRIBE,
        FrameKind::Call,
        "@(topic/a) subscribe",
        json!(null),
    );
    calls
}

#[tokio::test]
async fn each_role_has_only_its_operations_at_each_endpoint() {
    let node = start_with_tokens(all()).await;
    let mut seen = BTreeSet::new();
    for endpoint in ["socket", "tcp", "web"] {
        for (role, secret) in ROLES {
            let mut client_under_test = TestClient::open(&node, endpoint, secret).await;
            // The owner's socket asks for no token, and a token does not restrict its role.
            let role = if endpoint == "socket" {
                Role::Owner
            } else {
                role
            };
            for (id, (operation, kind, name, payload)) in (1..).zip(every_operation()) {
                let fault = client_under_test.attempt(id, kind, &name, &payload).await;
                let forbidden = fault
                    .as_ref()
                    .is_some_and(|one| one.code == FaultCode::Forbidden);
                let expected = !role.grants(operation.permission());
                assert_eq!(forbidden, expected, "{endpoint} {role} {name}: {fault:?}");
                if let Some(fault) = fault.filter(|_| forbidden) {
                    let said = fault.details.expect("details");
                    // A caller without permission learns nothing about the name, not even that it
                    // is a stream.
                    let named = if operation == Operation::STREAM {
                        Operation::ASK
                    } else {
                        operation
                    };
                    assert_eq!(said["verb"], named.name(), "{said}");
                    assert_eq!(
                        (&said["role"], &said["rule"]),
                        (&json!(role), &json!("role"))
                    );
                }
                seen.insert((operation.permission().name(), forbidden));
            }
            // No refusal has ended the connection.
            let ping = client_under_test
                .attempt(1000, FrameKind::Call, "ping", &json!({}))
                .await;
            assert_eq!(ping, None, "{endpoint} {role}");
        }
    }
    let tried = [Permission::Read, Permission::Interact, Permission::Manage]
        .map(|permission| permission.name());
    for permission in tried {
        assert!(
            seen.contains(&(permission, true)) && seen.contains(&(permission, false)),
            "{permission}"
        );
    }
}

async fn client(node: &Node, secret: &str) -> Client {
    let address = node.listeners.tcp_address().expect("it was asked for");
    Client::connect_tcp(address, secret)
        .await
        .expect("it listens")
}

fn code(result: Result<Value, ClientError>) -> Option<FaultCode> {
    match result {
        Ok(_) => None,
        Err(ClientError::Fault(fault)) => Some(fault.code),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn token_reaches_only_its_addresses() {
    let node = start_with_tokens(vec![
        limited("in", Role::Operator, "secret-in", &["/clerk", "/relays/**"]),
        limited("out", Role::Operator, "secret-out", &["/topic/a"]),
        limited(
            "reader",
            Role::Viewer,
            "secret-reader",
            &["/topic/a", "/relays/*"],
        ),
    ])
    .await;
    let mut near = client(&node, "secret-in").await;
    let mut far = client(&node, "secret-out").await;
    assert_eq!(code(near.call("@(clerk) add", json!(1)).await), None);
    for name in ["@(clerk) add", "@(nobody) add", "@(topic/b) subscribe"] {
        let refused = code(far.call(name, json!(1)).await);
        assert_eq!(refused, Some(FaultCode::Forbidden), "{name}");
    }
    let told = far.tell("@(clerk) note", json!("x")).await;
    assert_eq!(code(told.map(|()| Value::Null)), Some(FaultCode::Forbidden));

    // Listings show the client only the addresses within its reach.
    let paths = |rows: Value| -> Vec<String> {
        let rows = rows.as_array().expect("rows").clone();
        let path = |row: &Value| row["path"].as_str().map(str::to_owned);
        rows.iter().filter_map(path).collect()
    };
    let mut reader = client(&node, "secret-reader").await;
    let seen = paths(reader.call("ps", json!({})).await.expect("rows"));
    assert_eq!(seen, ["/relays/a", "/relays/b"]);
    let seen = reader.call("ps", json!({ "path": "/clerk" })).await;
    assert_eq!(
        code(seen),
        Some(FaultCode::Forbidden),
        "nothing of it is in reach"
    );
    let seen = reader.call("exposed", json!({})).await.expect("rows");
    assert_eq!(seen.as_array().map(Vec::len), Some(1), "{seen}");
    assert_eq!(seen[0]["address"], "@(topic/a)");
    for (path, expected) in [
        ("/relays/a", None),
        ("relays//a/", None),
        ("/relays/nobody", Some(FaultCode::UnknownTarget)),
        ("/clerk", Some(FaultCode::Forbidden)),
        ("/relays/../clerk", Some(FaultCode::Forbidden)),
        ("/", Some(FaultCode::Forbidden)),
    ] {
        let seen = code(reader.call("inspect", json!({ "path": path })).await);
        assert_eq!(seen, expected, "{path}");
    }
    let missing = reader.call("inspect", json!({ "path": "/relays/x" })).await;
    let missing = missing.expect_err("nobody is there").to_string();
    assert_eq!(
        missing, "no actor is exposed at /relays/x",
        "no neighbour is named"
    );

    // A topic is reached like any other address.
    for (topic, expected) in [("a", "cancelled"), ("b", "forbidden")] {
        let mut client_under_test = TestClient::open(&node, "tcp", "secret-reader").await;
        let name = format!("@(topic/{topic}) subscribe");
        let fault = client_under_test
            .attempt(1, FrameKind::Call, &name, &json!(null))
            .await;
        assert_eq!(fault.expect("it ends").code.as_str(), expected, "{topic}");
    }

    let kill = |path: &str| json!({ "path": path });
    assert_eq!(
        code(far.call("kill", kill("/clerk")).await),
        Some(FaultCode::Forbidden)
    );
    assert!(node.clerk.is_alive(), "nothing runs before the decision");
    assert_eq!(code(near.call("kill", kill("/clerk")).await), None);
    assert!(!node.clerk.is_alive());
}

#[tokio::test]
async fn token_has_only_its_listed_operations() {
    let token = limited("t", Role::Operator, "secret-t", &["/clerk"]);
    let node = start_with_tokens(vec![token.with_operations(["ask".to_owned()])]).await;
    let mut client = client(&node, "secret-t").await;
    assert_eq!(code(client.call("@(clerk) add", json!(1)).await), None);
    let told = client.tell("@(clerk) add", json!(1)).await;
    let Err(ClientError::Fault(fault)) = told else {
        panic!("it is not listed")
    };
    assert_eq!(fault.details.expect("details")["rule"], "verbs");
    let itself = client
        .call("whoami", json!(null))
        .await
        .expect("it answers");
    assert_eq!(
        itself,
        json!({
            "token": "t",
            "role": "operator",
            "door": "tcp",
            "addresses": ["/clerk"],
            "verbs": ["ask"],
        })
    );
    let owner = node.client().await.call("whoami", json!(null)).await;
    assert_eq!(owner.expect("it answers")["role"], "owner");
}

/// Forwards published records; first sends `None`, to say that it has subscribed.
struct AuditSubscriber(mpsc::UnboundedSender<Option<Arc<AuditRecord>>>);

impl Actor for AuditSubscriber {
    type Msg = Arc<AuditRecord>;
    type Args = mpsc::UnboundedSender<Option<Arc<AuditRecord>>>;
    type Error = BoxError;

    async fn pre_start(told: Self::Args, cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let me = cx.actor_ref().recipient::<Arc<AuditRecord>>();
        cx.system().subscribe(AuditRecord::TOPIC, me)?;
        let _ = told.send(None);
        Ok(Self(told))
    }

    async fn handle(
        &mut self,
        one: Arc<AuditRecord>,
        _: &mut Context<Self>,
    ) -> Result<(), BoxError> {
        let _ = self.0.send(Some(one));
        Ok(())
    }
}

/// The audit records of a node.
struct AuditRecords(mpsc::UnboundedReceiver<Option<Arc<AuditRecord>>>);

impl AuditRecords {
    async fn of(node: &Node) -> Self {
        let (told, mut records) = mpsc::unbounded_channel();
        let spawned = node.system.spawn::<AuditSubscriber>("listener", told);
        spawned.expect("nobody has the key");
        let begun = timeout(PATIENCE, records.recv()).await;
        assert_eq!(begun.expect("it begins"), Some(None));
        Self(records)
    }

    async fn next(&mut self) -> Arc<AuditRecord> {
        let next = timeout(PATIENCE, self.0.recv()).await;
        next.expect("there is one more")
            .flatten()
            .expect("a record")
    }
}

#[tokio::test]
async fn only_writes_are_audited_with_their_outcome() {
    let node = start_with_tokens(all()).await;
    let mut records = AuditRecords::of(&node).await;
    let mut operator = client(&node, ROLES[1].1).await;
    let mut viewer = client(&node, ROLES[0].1).await;
    let mut owner = node.client().await;
    // Reads leave no record.
    assert_eq!(code(operator.call("ps", json!({})).await), None);
    assert_eq!(code(viewer.call("tree", json!({})).await), None);
    let named = |record: &AuditRecord| {
        let AuditRecord {
            token,
            endpoint,
            operation,
            address,
            outcome,
            ..
        } = record;
        format!("{token} {endpoint} {operation} {address} {outcome}")
    };
    let _ = operator.call("@(clerk) add", json!(1)).await;
    assert_eq!(
        named(&*records.next().await),
        "operator tcp ask /clerk done"
    );
    let _ = operator.call("@(clerk) add", json!("x")).await;
    assert_eq!(
        named(&*records.next().await),
        "operator tcp ask /clerk bad-request"
    );
    let _ = operator.tell("@(clerk) note", json!("x")).await;
    assert_eq!(
        named(&*records.next().await),
        "operator tcp tell /clerk done"
    );
    let _ = operator.call("@(clerk) numbers", json!({ "to": 0 })).await;
    assert_eq!(
        named(&*records.next().await),
        "operator tcp stream /clerk begun"
    );
    // A refused read leaves no record, a refused write leaves one.
    let _ = viewer.call("@(clerk) add", json!(1)).await;
    assert_eq!(
        named(&*records.next().await),
        "viewer tcp ask /clerk forbidden"
    );
    let _ = viewer
        .call("kill", json!({ "path": "/clerk\n\u{1b}[31m" }))
        .await;
    let record = records.next().await;
    assert_eq!(
        named(&record),
        "viewer tcp kill /clerk\u{fffd}\u{fffd}[31m forbidden"
    );
    assert_eq!(record.role, Role::Viewer);
    let _ = owner.call("kill", json!({ "path": "/nobody" })).await;
    assert_eq!(
        named(&*records.next().await),
        "owner socket kill /nobody unknown-target"
    );
    let _ = owner.call("kill", json!({ "path": "/clerk" })).await;
    assert_eq!(
        named(&*records.next().await),
        "owner socket kill /clerk done"
    );
}

#[tokio::test]
async fn message_flood_does_not_hide_a_kill_from_the_audit() {
    const TELLS: u64 = 2000;
    let node = start_with_tokens(all()).await;
    let mut records = AuditRecords::of(&node).await;
    let mut operator = client(&node, ROLES[1].1).await;
    for _ in 0..TELLS {
        let told = operator.tell("@(clerk) note", json!("")).await;
        told.expect("it is granted");
    }
    let killed = operator.call("kill", json!({ "path": "/clerk" })).await;
    killed.expect("it is granted");
    let (mut told, mut left_out) = (0, 0);
    loop {
        let record = records.next().await;
        left_out += record.left_out;
        match record.operation {
            "tell" => told += 1,
            // When the tells take more than a second, the first are summed up before the kill.
            "left-out" => {}
            "kill" => break,
            other => panic!("{other}"),
        }
    }
    drop(operator);
    while told + left_out < TELLS {
        left_out += records.next().await.left_out;
    }
    assert_eq!(told + left_out, TELLS);
    assert!(told >= 100, "a few are recorded: {told}");
    assert!(left_out > TELLS / 2, "most are counted: {left_out}");
}
