//! Actors that clients call through an endpoint, by address and name.

use bytes::BytesMut;
use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{
    ActorRef, ActorSystem, Ask, BoxError, Completion, ContentType, Context, Export, FaultCode,
    FindActor, KeyedActors, MailboxSpec, Payload, Reader, Reply, Request, Source, SourceSpec,
    handlers,
};
use strowger_gateway::client::{Client, ClientError};
use strowger_gateway::frame::{Frame, FrameKind};
use strowger_gateway::listeners::{Listeners, ListenersSpec};
use strowger_gateway::relay::RelaySpec;

mod fuzzed;
mod hostile;
mod raw;
mod roles;
mod tcp;
mod tokens;
mod vectors;
mod web;

use raw::{PATIENCE, RawClient};

/// The token that a client shows where an endpoint requires one.
const TOKEN: &str = "sixteen-octets-x";

#[derive(Deserialize)]
struct Add(u64);
impl Request for Add {
    type Reply = u64;
}

#[derive(Deserialize)]
struct Hold;
impl Request for Hold {
    type Reply = ();
}

#[derive(Deserialize)]
struct Held;
impl Request for Held {
    type Reply = usize;
}

#[derive(Deserialize)]
struct Note(String);

/// Returns its payload unchanged.
struct Echo(Payload);
impl Request for Echo {
    type Reply = Payload;
}

#[derive(Deserialize)]
struct Numbers {
    to: Option<u64>,
}
impl Request for Numbers {
    type Reply = Reader<u64>;
}

/// An endless stream of numbers, produced as they are read.
#[derive(Deserialize)]
struct Endless;
impl Request for Endless {
    type Reply = Reader<u64>;
}

/// A text of this many bytes.
#[derive(Deserialize)]
struct Long(usize);
impl Request for Long {
    type Reply = String;
}

#[derive(Deserialize)]
struct Streams;
impl Request for Streams {
    type Reply = usize;
}

#[derive(Deserialize)]
struct Crash;
impl Request for Crash {
    type Reply = ();
}

#[derive(Default)]
struct Clerk {
    sum: u64,
    held: Vec<Reply<()>>,
    sources: Vec<(Source<u64>, u64)>,
}

#[handlers]
impl strowger::Actor for Clerk {
    type Args = ();
    type Error = BoxError;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(4);

    async fn pre_start((): (), cx: &mut Context<Self>) -> Result<Self, BoxError> {
        let exports = Export::new()
            .ask::<Add>("add")
            .ask::<Hold>("hold")
            .ask::<Held>("held")
            .tell::<Note>("note")
            .stream::<Numbers, u64>("numbers")
            .stream::<Endless, u64>("endless")
            .ask::<Long>("long")
            .ask::<Streams>("streams")
            .ask_with("echo", |payload| Ok(Echo(payload.clone())), Ok)
            .ask::<Crash>("crash");
        cx.system().export(&cx.actor_ref(), exports)?;
        Ok(Self::default())
    }

    async fn add(&mut self, Add(more): Add) -> u64 {
        self.sum += more;
        self.sum
    }

    async fn note(&mut self, Note(note): Note) {
        self.sum += note.len() as u64;
    }

    async fn hold(&mut self, ask: Ask<Hold>) {
        self.held.push(ask.reply);
    }

    async fn held(&mut self, _: Held) -> usize {
        self.held.iter().filter(|reply| reply.is_waiting()).count()
    }

    async fn echo(&mut self, Echo(payload): Echo) -> Payload {
        payload
    }

    async fn numbers(&mut self, ask: Ask<Numbers>, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let mut source = cx.source(SourceSpec::DEFAULT);
        ask.reply.send(source.reader()?);
        let to = ask.request.to.unwrap_or(u64::MAX);
        for number in 0..to {
            if source.try_send(number).is_err() {
                self.sources.push((source, number));
                return Ok(());
            }
        }
        source.finish();
        Ok(())
    }

    async fn endless(&mut self, ask: Ask<Endless>, cx: &mut Context<Self>) -> Result<(), BoxError> {
        let mut source = cx.source(SourceSpec::DEFAULT);
        ask.reply.send(source.reader()?);
        self.sources.push((source, 0));
        self.send_pending_items(cx);
        Ok(())
    }

    async fn ready(&mut self, _: Completion<()>, cx: &mut Context<Self>) {
        self.send_pending_items(cx);
    }

    async fn long(&mut self, Long(bytes): Long) -> String {
        "x".repeat(bytes)
    }

    async fn streams(&mut self, _: Streams) -> usize {
        let sources = self.sources.iter();
        sources
            .filter(|(source, _)| source.info().readers > 0)
            .count()
    }

    async fn crash(&mut self, ask: Ask<Crash>) {
        let _reply = ask.reply;
        std::panic::resume_unwind(Box::new("told to"));
    }
}

impl Clerk {
    /// Sends as many items to each stream as its reader accepts.
    fn send_pending_items(&mut self, cx: &Context<Self>) {
        for (source, next) in &mut self.sources {
            while source.info().readers > 0 && source.try_send(*next).is_ok() {
                *next += 1;
            }
            if source.info().readers > 0 {
                source.notify_when_ready(cx.lane().reply(0));
            }
        }
    }
}

struct Node {
    listeners: Listeners,
    system: ActorSystem,
    clerk: ActorRef<ClerkMessage>,
    directory: tempfile::TempDir,
}

async fn node(change: impl FnOnce(&mut ListenersSpec)) -> Node {
    let directory = tempfile::tempdir().expect("a folder of our own");
    let system = ActorSystem::new("node").expect("inside a runtime");
    let clerk = system
        .spawn::<Clerk>("clerk", ())
        .expect("nobody has its key");
    while system.exports().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut spec = ListenersSpec::default();
    spec.socket = Some(directory.path().join("gateway.sock"));
    change(&mut spec);
    let listeners = Listeners::open(&system, spec)
        .await
        .expect("the folder is ours");
    Node {
        listeners,
        system,
        clerk,
        directory,
    }
}

impl Node {
    async fn client(&self) -> Client {
        let socket = self.directory.path().join("gateway.sock");
        Client::connect(socket).await.expect("the node listens")
    }

    async fn raw(&self) -> RawClient {
        RawClient::unix(&self.directory.path().join("gateway.sock")).await
    }
}

fn code(result: Result<Value, ClientError>) -> FaultCode {
    match result {
        Err(ClientError::Fault(fault)) => fault.code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn ask_and_tell_by_address() {
    let node = node(|_| {}).await;
    let mut client = node.client().await;
    assert_eq!(
        client
            .call("@(clerk) add", json!(3))
            .await
            .expect("it answers"),
        3
    );
    client
        .tell("@(clerk) add", json!(4))
        .await
        .expect("there is room");
    client
        .tell("@(clerk) note", json!("four"))
        .await
        .expect("there is room");
    assert_eq!(
        client
            .call("@(clerk) add", json!(0))
            .await
            .expect("it answers"),
        11
    );
    assert!(node.clerk.is_alive());
}

#[tokio::test]
async fn unreachable_targets_have_fault_codes() {
    let node = node(|_| {}).await;
    let mut client = node.client().await;
    let calls = [
        ("@(nobody) add", json!(1), FaultCode::UnknownTarget),
        ("@(doors/clients) add", json!(1), FaultCode::UnknownTarget),
        ("@(clerk) burn", json!(1), FaultCode::BadRequest),
        ("@(clerk) add", json!("three"), FaultCode::BadRequest),
        ("@(clerk) note", json!("asked"), FaultCode::BadRequest),
        ("@(clerk) crash", Value::Null, FaultCode::Failed),
        ("ping", Value::Null, FaultCode::UnknownTarget),
    ];
    for (name, payload, expected) in calls {
        assert_eq!(code(client.call(name, payload).await), expected, "{name}");
    }
    node.clerk.stopped().await;
    assert_eq!(
        code(client.call("@(clerk) add", json!(1)).await),
        FaultCode::UnknownTarget
    );
}

#[tokio::test]
async fn bytes_pass_unchanged() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) echo").await;
    let mut call =
        Frame::new(FrameKind::Call, 1).with_payload(ContentType::Bytes, vec![0, 0xff, 7]);
    call.target = 1;
    raw.send(call).await;
    let done = raw.next().await.expect("it answers");
    assert_eq!(
        (done.kind, done.content),
        (FrameKind::Done, ContentType::Bytes)
    );
    assert_eq!(&done.payload[..], [0, 0xff, 7]);
}

#[tokio::test]
async fn invalid_address_closes_the_connection() {
    let node = node(|_| {}).await;
    for name in [
        "@(clerk)",
        "@(clerk) ",
        "@(cl erk) add",
        "@(../x) add",
        "@(clerk) a b",
    ] {
        let mut raw = node.raw().await;
        raw.name(1, name).await;
        raw.is_ended("protocol", "").await;
    }
}

/// The clerk under any key but one, whose search never ends.
struct Desks(ActorRef<ClerkMessage>);

impl KeyedActors<ClerkMessage> for Desks {
    type Hold = ();

    fn find(&self, key: &str) -> FindActor<ClerkMessage, ()> {
        let (clerk, is_lost) = (self.0.clone(), key == "lost");
        Box::pin(async move {
            if is_lost {
                std::future::pending::<()>().await;
            }
            Ok((clerk, ()))
        })
    }

    fn is_open(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn search_for_a_keyed_actor_delays_only_its_own_messages() {
    let node = node(|_| {}).await;
    let desks = Desks(node.clerk.clone());
    let export = Export::new().ask::<Add>("add");
    let exported = node.system.export_keyed("desks", desks, export);
    exported.expect("the name is free");
    let mut raw = node.raw().await;
    raw.name(1, "@(desks/lost) add").await;
    raw.name(2, "@(desks/first) add").await;
    let add = |id, target, deadline| {
        let mut call = Frame::new(FrameKind::Call, id).with_json(&json!(3));
        (call.target, call.deadline) = (target, deadline);
        call
    };
    raw.send(add(1, 1, 300)).await;
    raw.send(add(2, 1, 200)).await;
    raw.send(add(3, 2, 60_000)).await;
    assert_eq!(raw.done(3).await, json!(3));
    for expected in [2, 1] {
        let (id, code, message) = raw.error().await;
        assert_eq!((id, code.as_str()), (expected, "deadline"), "{message}");
    }
    raw.send(add(4, 2, 60_000)).await;
    assert_eq!(raw.done(4).await, json!(6));
}

#[tokio::test]
async fn cancel_is_answered_once_and_reaches_the_handler() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) hold").await;
    raw.name(2, "@(clerk) held").await;
    raw.call(1, 1).await;
    raw.call(2, 2).await;
    assert_eq!(raw.done(2).await, json!(1));
    raw.send(Frame::new(FrameKind::Cancel, 1)).await;
    let (id, code, _) = raw.error().await;
    assert_eq!((id, code.as_str()), (1, "cancelled"));
    raw.send(Frame::new(FrameKind::Cancel, 1)).await;
    raw.call(3, 2).await;
    assert_eq!(raw.done(3).await, json!(0));
}

#[tokio::test]
async fn expired_deadline_reaches_the_handler() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) hold").await;
    raw.name(2, "@(clerk) held").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    (call.target, call.deadline) = (1, 20);
    raw.send(call).await;
    let (id, code, message) = raw.error().await;
    assert_eq!((id, code.as_str()), (1, "deadline"), "{message}");
    raw.call(2, 2).await;
    assert_eq!(raw.done(2).await, json!(0));
}

#[tokio::test]
async fn earlier_deadline_expires_first() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) hold").await;
    // All at once, so that their deadlines start together.
    let mut calls = BytesMut::new();
    for (id, deadline) in [(1, 60_000), (2, 40), (3, 20)] {
        let mut call = Frame::new(FrameKind::Call, id);
        (call.target, call.deadline) = (1, deadline);
        call.encode_into(0, &mut calls).expect("it is empty");
    }
    raw.send_bytes(&calls).await;
    assert_eq!((raw.error().await.0, raw.error().await.0), (3, 2));
}

#[tokio::test]
async fn items_need_credit() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) numbers").await;
    raw.name(2, "@(clerk) streams").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    (call.target, call.credit) = (1, 2);
    raw.send(call.with_json(&json!({}))).await;
    for number in 0..2 {
        assert_eq!(raw.item(1).await, number);
    }
    raw.call(2, 2).await;
    assert_eq!(raw.done(2).await, json!(1), "no third item");
    let mut credit = Frame::new(FrameKind::Credit, 1);
    credit.credit = 1;
    raw.send(credit).await;
    assert_eq!(raw.item(1).await, 2);
    raw.send(Frame::new(FrameKind::Cancel, 1)).await;
    assert_eq!(raw.error().await.1, "cancelled");
    let mut id = 3;
    while raw.ask(id, 2).await != json!(0) {
        id += 1;
    }
}

#[tokio::test]
async fn ask_to_a_stream_is_a_bad_request() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) numbers").await;
    raw.name(2, "@(clerk) streams").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    call.target = 1;
    raw.send(call.with_json(&json!({}))).await;
    let (id, code, message) = raw.error().await;
    assert_eq!((id, code.as_str()), (1, "bad-request"));
    assert!(message.contains("numbers is a stream"), "{message}");
    // This credit comes too late: the call is over.
    let mut credit = Frame::new(FrameKind::Credit, 1);
    credit.credit = 1;
    raw.send(credit).await;
    raw.call(2, 2).await;
    assert_eq!(raw.done(2).await, json!(0), "nothing was begun");
}

#[tokio::test]
async fn stream_end_needs_no_credit() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) numbers").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    (call.target, call.credit) = (1, 2);
    raw.send(call.with_json(&json!({"to": 2}))).await;
    for number in 0..2 {
        assert_eq!(raw.item(1).await, number);
    }
    let done = raw.next().await.expect("an end");
    assert_eq!(
        (done.kind, done.content),
        (FrameKind::Done, ContentType::None)
    );
    let mut call = Frame::new(FrameKind::Call, 2);
    (call.target, call.credit) = (1, 1);
    raw.send(call.with_json(&json!({"to": 0}))).await;
    assert_eq!(raw.next().await.expect("an end").kind, FrameKind::Done);
}

#[tokio::test]
async fn streams_end_with_the_connection() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) numbers").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    (call.target, call.credit) = (1, 1);
    raw.send(call.with_json(&json!({}))).await;
    assert_eq!(raw.item(1).await, 0);
    drop(raw);
    let mut client = node.client().await;
    let gone = async {
        while client
            .call("@(clerk) streams", Value::Null)
            .await
            .expect("it answers")
            != 0
        {}
    };
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("the reader goes");
}

#[tokio::test]
async fn messages_wait_in_order_for_a_full_mailbox() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) add").await;
    const CALLS: u32 = 500;
    for id in 1..=CALLS {
        let mut call = Frame::new(FrameKind::Call, id);
        call.target = 1;
        raw.send(call.with_json(&json!(1))).await;
    }
    for id in 1..=CALLS {
        assert_eq!(raw.done(id).await, json!(id), "in the order of sending");
    }
}

#[tokio::test]
async fn calls_beyond_the_limit_are_refused() {
    let node = node(|spec| spec.limits.in_flight = 2).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) hold").await;
    for id in 1..=3 {
        raw.call(id, 1).await;
    }
    let (id, code, _) = raw.error().await;
    assert_eq!((id, code.as_str()), (3, "full"));
}

#[tokio::test]
async fn half_closed_client_gets_open_replies() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) add").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    call.target = 1;
    raw.send(call.with_json(&json!(1))).await;
    raw.shutdown().await;
    assert_eq!(raw.done(1).await, json!(1));
    assert_eq!(raw.next().await, None);
}

#[tokio::test]
async fn actor_exit_fails_waiting_calls() {
    let node = node(|_| {}).await;
    let mut raw = node.raw().await;
    raw.name(1, "@(clerk) hold").await;
    raw.name(2, "@(clerk) numbers").await;
    raw.call(1, 1).await;
    let mut call = Frame::new(FrameKind::Call, 2);
    (call.target, call.credit) = (2, u32::MAX);
    raw.send(call.with_json(&json!({}))).await;
    assert_eq!(raw.item(2).await, 0);
    node.clerk.kill();
    let mut ends = Vec::new();
    while ends.len() < 2 {
        let frame = raw.next().await.expect("the connection goes on");
        if frame.kind == FrameKind::Error {
            ends.push(frame.id);
        }
    }
    ends.sort_unstable();
    assert_eq!(ends, [1, 2]);
}

#[tokio::test]
async fn topic_is_a_stream() {
    let node = node(|_| {}).await;
    let relay = RelaySpec::<u32>::new("load", |load| json!({ "percent": load }));
    let relays =
        strowger::Supervisor::new(strowger::Strategy::OneForOne).child(relay.child("load"));
    node.system
        .supervise("relays", relays)
        .await
        .expect("nobody has the key");
    let mut raw = node.raw().await;
    raw.name(1, "@(topic/load) subscribe").await;
    let mut call = Frame::new(FrameKind::Call, 1);
    (call.target, call.credit) = (1, 8);
    raw.send(call).await;
    let topic = node.system.topic::<u32>("load").expect("a name");
    let publish = async {
        loop {
            topic.publish(7);
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        () = publish => {}
        item = raw.item(1) => assert_eq!(item["value"], json!({"percent": 7})),
    }
}

#[tokio::test]
async fn methods_need_configuration() {
    let node = node(|spec| spec.methods = Some(strowger_gateway::method::Methods::new())).await;
    let mut client = node.client().await;
    assert_eq!(
        client.call("ping", Value::Null).await.expect("it answers")["name"],
        "node"
    );
    let exposed = client
        .call("exposed", Value::Null)
        .await
        .expect("it answers");
    assert_eq!(exposed[0]["address"], "@(clerk)");
    assert_eq!(
        exposed[0]["messages"][0],
        json!({"name": "add", "pattern": "ask"})
    );
    let fault = client.call("exposed", json!({"address": "@(x)"})).await;
    assert_eq!(code(fault), FaultCode::UnknownTarget);
}
