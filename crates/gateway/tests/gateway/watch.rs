//! `top` and `trace` over the control socket.

use std::time::Duration;

use serde_json::{Value, json};
use strowger::{
    Actor, ActorRef, ActorSystem, Ask, BoxError, Context, FaultCode, MailboxSpec, Reply, Request,
};
use strowger_gateway::client::{Client, ClientError};
use strowger_gateway::health::{HealthRegistry, LimitUsage};
use strowger_gateway::method::Methods;
use strowger_gateway::{Gateway, Limits};

/// Waits forever on the first message, fails on zero, and completes any other at once.
struct SlowActor;

impl Actor for SlowActor {
    type Msg = u64;
    type Args = ();
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(100);

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self)
    }

    async fn handle(&mut self, number: u64, _: &mut Context<Self>) -> Result<(), BoxError> {
        match number {
            0 => Err("nothing".into()),
            1 => std::future::pending().await,
            _ => Ok(()),
        }
    }
}

struct Node {
    system: ActorSystem,
    gateway: Gateway,
    _directory: tempfile::TempDir,
}

impl Node {
    async fn start(methods: Methods) -> Self {
        let directory = tempfile::tempdir().expect("a folder of our own");
        let system = ActorSystem::new("node").expect("inside a runtime");
        let socket = directory.path().join("control.sock");
        let gateway = Gateway::open(&system, socket, Limits::default(), methods).await;
        Self {
            system,
            gateway: gateway.expect("the socket is free"),
            _directory: directory,
        }
    }

    async fn client(&self) -> Client {
        let client = Client::connect(self.gateway.path()).await;
        client.expect("the node listens")
    }

    fn slow_actor(&self, key: &str, waiting: usize) -> ActorRef<u64> {
        let slow_actor = self.system.spawn::<SlowActor>(key.to_owned(), ());
        let slow_actor = slow_actor.expect("the key is free");
        for number in [1].into_iter().chain(std::iter::repeat_n(2, waiting)) {
            slow_actor.try_tell(number).expect("there is room");
        }
        slow_actor
    }
}

async fn code(client: &mut Client, method: &str, params: Value) -> (FaultCode, String) {
    match client.call(method, params).await {
        Err(ClientError::Fault(fault)) => (fault.code, fault.message),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn top_lists_the_deepest_with_totals_and_limits() {
    let health = HealthRegistry::new().limit("lines", || Some(LimitUsage::new(9.0, 10.0)));
    let node = Node::start(Methods::new().with_health(health)).await;
    node.slow_actor("a", 5);
    node.slow_actor("b", 90);
    let mut client = node.client().await;
    let params = json!({ "sort": "depth", "limit": 1, "path": "/*" });
    let top = client.call("top", params).await.expect("an answer");
    let rows = top["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["path"], "/b");
    assert_eq!(rows[0]["capacity"], 100);
    assert!(rows[0]["memory"].as_u64().is_some_and(|bytes| bytes > 0));
    assert!(rows[0]["rate"].is_number() && rows[0]["load"].is_number());
    assert_eq!(top["totals"]["actors"], 3, "{top}");
    assert!(top["totals"]["depth"].as_u64() >= Some(95), "{top}");
    assert_eq!(top["totals"]["nearly_full"], 1);
    assert!(top["span_ms"].as_u64() > Some(0), "rates need two readings");
    let limits = top["limits"].as_array().expect("limits");
    let names: Vec<&Value> = limits.iter().map(|limit| &limit["name"]).collect();
    assert_eq!(names, ["memory", "lines"]);
    assert_eq!(
        limits[1],
        json!({ "name": "lines", "used": 9.0, "most": 10.0 })
    );
}

/// Keeps the replies to all requests, and so answers none.
struct Silent(Vec<Reply<()>>);

struct Question;

impl Request for Question {
    type Reply = ();
}

impl Actor for Silent {
    type Msg = Ask<Question>;
    type Args = ();
    type Error = BoxError;

    async fn pre_start((): (), _: &mut Context<Self>) -> Result<Self, BoxError> {
        Ok(Self(Vec::new()))
    }

    async fn handle(&mut self, ask: Ask<Question>, _: &mut Context<Self>) -> Result<(), BoxError> {
        self.0.push(ask.reply);
        Ok(())
    }
}

#[tokio::test]
async fn top_lists_late_asks() {
    let node = Node::start(Methods::new()).await;
    let silent = node.system.spawn::<Silent>("silent", ());
    let silent = silent.expect("the key is free");
    let asked = tokio::spawn(async move {
        let minute = Duration::from_secs(60);
        silent.ask_within(Question, minute).await
    });
    let mut client = node.client().await;
    let named = async {
        loop {
            let top = client.call("top", json!({})).await.expect("an answer");
            if top["late_asks"] != json!([]) {
                break top;
            }
        }
    };
    let named = tokio::time::timeout(Duration::from_secs(20), named).await;
    let top = named.expect("it is late after a second");
    let late = top["late_asks"].as_array().expect("late asks");
    assert_eq!((late.len(), &top["totals"]["late_asks"]), (1, &json!(1)));
    assert_eq!(late[0]["asker"], Value::Null);
    assert_eq!(late[0]["callee"], "/silent");
    assert!(late[0]["age_ms"].as_u64() >= Some(1000), "{top}");
    let top = client.call("top", json!({ "path": "/gateway/**" })).await;
    assert_eq!(top.expect("an answer")["late_asks"], json!([]));
    asked.abort();
}

#[tokio::test]
async fn invalid_top_and_trace_requests_are_explained() {
    let node = Node::start(Methods::new()).await;
    let mut client = node.client().await;
    for (method, params, says) in [
        ("top", json!({ "sort": "beauty" }), "expected depth, rate"),
        ("top", json!({ "path": "" }), "must not be empty"),
        ("top", json!({ "pth": "/" }), "unknown parameter"),
        ("trace", json!({}), "missing parameter \"path\""),
        (
            "trace",
            json!({ "path": "**", "max": 0 }),
            "from 1 to 100000",
        ),
        (
            "trace",
            json!({ "path": "**", "max": 100_001 }),
            "from 1 to 100000",
        ),
        (
            "trace",
            json!({ "path": "x".repeat(2000) }),
            "longer than 1024 bytes",
        ),
    ] {
        let (code, message) = code(&mut client, method, params).await;
        assert_eq!(code, FaultCode::BadRequest, "{message}");
        assert!(message.contains(says), "{message}");
    }
}

#[tokio::test]
async fn trace_streams_records_up_to_its_limit() {
    let node = Node::start(Methods::new()).await;
    let slow_actor = node
        .system
        .spawn::<SlowActor>("desk", ())
        .expect("a free key");
    let mut client = node.client().await;
    let params = json!({ "path": "desk", "max": 5 });
    let mut rows = client.rows("trace", params).await.expect("it is sent");
    // The trace begins some time after the call: sends messages until the first line arrives.
    let tell = async {
        loop {
            let _ = slow_actor.try_tell(2);
            tokio::task::yield_now().await;
        }
    };
    let read = async {
        let mut lines = Vec::new();
        while let Some(row) = rows.next().await.expect("the trace goes on") {
            lines.push(row);
        }
        lines
    };
    let lines = tokio::select! {
        lines = read => lines,
        () = tell => unreachable!("it goes on for ever"),
    };
    assert_eq!(lines.len(), 6, "{lines:?}");
    let (end, lines) = lines.split_last().expect("there are lines");
    assert_eq!(*end, json!({ "end": "records", "lost": 0 }));
    assert!(lines.iter().all(|line| line["path"] == "/desk"));
    let message = lines.iter().find(|line| line["step"] == "message");
    assert_eq!(message.expect("messages are told")["name"], "u64");
    let handled = lines.iter().find(|line| line["step"] == "handled");
    assert_eq!(handled.expect("so is their end")["failed"], false);
}

#[tokio::test]
async fn empty_trace_ends_at_its_time_limit() {
    let node = Node::start(Methods::new()).await;
    let mut client = node.client().await;
    let params = json!({ "path": "/nobody", "within_ms": 1 });
    let rows = client.call("trace", params).await.expect("it ends");
    assert_eq!(rows, json!([{ "end": "time", "lost": 0 }]));
}

#[tokio::test]
async fn tracer_that_does_not_read_delays_no_actor() {
    let node = Node::start(Methods::new()).await;
    let slow_actor = node
        .system
        .spawn::<SlowActor>("desk", ())
        .expect("a free key");
    let mut client = node.client().await;
    let params = json!({ "path": "desk", "max": 100_000 });
    let rows = client.rows("trace", params).await.expect("it is sent");
    const MESSAGES: u64 = 20_000;
    for _ in 0..MESSAGES {
        slow_actor.tell(2).await.expect("it lives");
    }
    while slow_actor.erase().info().handled < MESSAGES {
        tokio::task::yield_now().await;
    }
    drop(rows);
    drop(client);
    assert_eq!(slow_actor.erase().info().restarts, 0);
}
