//! The conformance suite over frames: the behaviour of a node towards a client in any language. The
//! cases have the same names as in TypeScript.

mod client;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use strowger::ContentType;
use strowger_gateway::frame::{Frame, FrameKind};

use crate::running::Running;
use client::{FrameClient, Refusal, SMALL, StreamEvent};

type Case = (&'static str, fn(&mut FrameClient));

const CASES: &[Case] = &[
    ("an ask gets the answer of its message", answers),
    ("octets are given back as octets", bytes_payload),
    ("a hundred asks at once get each its own answer", hundred),
    ("messages of one sender are handled in order", order),
    ("a tell is queued before it resolves", tells),
    ("nobody at a path is an unknown target", unknown_target),
    (
        "an unknown type is a bad request that names what there is",
        unknown_type,
    ),
    ("a stream of what is no stream is a bad request", no_stream),
    ("an ask of a stream is a bad request", ask_of_stream),
    ("an error keeps its code, message, and details", errors),
    ("a refusal leaves the actor as it is", refusal_leaves),
    (
        "an ask without an answer ends at its deadline, and the handler is told",
        deadline,
    ),
    (
        "a cancelled ask ends at once, and the handler is told",
        cancelled,
    ),
    (
        "an ask that was cancelled before is not handled",
        cancelled_before,
    ),
    (
        "what waits behind a question that nobody waits for any more is handled",
        message_behind_cancelled_ask,
    ),
    (
        "a crash fails the ask, and the next incarnation begins anew",
        crash,
    ),
    ("a crash loses nothing that waits", crash_loses_nothing),
    (
        "a mailbox without room refuses, and takes again when there is some",
        full_mailbox,
    ),
    ("a stream gives all its items in order, and ends", stream),
    (
        "streams of one actor go side by side with its messages",
        side_by_side,
    ),
    ("a reader that stops stops the producer", reader_stops),
    (
        "a cancelled stream ends with what came before, and stops the producer",
        cancelled_stream,
    ),
    (
        "a stream ends at its deadline, and stops the producer",
        stream_deadline,
    ),
    (
        "a crash ends the streams of its incarnation",
        crash_ends_streams,
    ),
    (
        "a topic gives each reader what is published from then on",
        topic,
    ),
    // This case must be the last one: it ends the actor.
    ("an actor that has ended is an unknown target", ended),
];

#[test]
fn node_passes_the_conformance_suite() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = path.join("../../fixtures/messages/conformance.json");
    let text = fs::read_to_string(path).expect("the names are there");
    let suite: Value = serde_json::from_str(&text).expect("the names are JSON");
    let names = suite["cases"].as_array().expect("a list");
    let names: Vec<&str> = names
        .iter()
        .filter_map(|case| case["name"].as_str())
        .collect();
    let ours: Vec<&str> = CASES.iter().map(|(name, _)| *name).collect();
    assert_eq!(ours, names);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let socket = folder.path().join("gateway");
    let live = Running::start(&format!(
        "[gateway]\nconformance = true\nsocket = {socket:?}\n"
    ));
    for (name, run) in CASES {
        println!("case: {name}");
        run(&mut FrameClient::open(&socket));
    }
    println!("conformance: {} cases over frames", CASES.len());
    live.end();
}

const LONG_MS: u64 = 60_000;
const WAIT: &str = "wait";

/// An ask that is not answered for a long time.
fn long_wait() -> Value {
    json!({ "ms": LONG_MS })
}

fn ask_frame(payload: &Value) -> Frame {
    Frame::new(FrameKind::Call, 0).with_json(payload)
}

/// An ask with a deadline of `ms` milliseconds.
fn ask_frame_within(ms: u32, payload: &Value) -> Frame {
    let mut frame = ask_frame(payload);
    frame.deadline = ms;
    frame
}

fn failure_code(result: Result<Value, Refusal>) -> Option<(String, bool)> {
    let refusal = result.err()?;
    Some((refusal.code, refusal.retryable))
}

fn failure(code: &str, retryable: bool) -> Option<(String, bool)> {
    Some((code.to_owned(), retryable))
}

/// Asks until no stream of the actor has a reader; if that never happens, the case times out.
fn until_no_stream_is_read(client: &mut FrameClient) {
    while client.number("active", &Value::Null) > 0.0 {}
}

fn answers(client: &mut FrameClient) {
    let long = "long ".repeat(4000);
    let values = json!([
        null,
        true,
        0,
        -1.5,
        9_007_199_254_740_991_u64,
        1e300,
        "",
        "text",
        "ä€😀\u{0}\n\"",
        [],
        {},
        [1, [2, [3]]],
        { "a": { "b": null }, "": [false] },
        long
    ]);
    for value in values.as_array().expect("a list") {
        assert_eq!(client.asked("echo", value), Ok(value.clone()));
    }
}

fn bytes_payload(client: &mut FrameClient) {
    let bytes_payload: Vec<u8> = (0..=255).collect();
    let frame =
        Frame::new(FrameKind::Call, 0).with_payload(ContentType::Bytes, bytes_payload.clone());
    let id = client.call(client::ECHO, "echo", frame);
    let answer = client.frame(id);
    assert_eq!(
        (answer.kind, answer.content),
        (FrameKind::Done, ContentType::Bytes)
    );
    assert_eq!(answer.payload, bytes_payload);
}

fn hundred(client: &mut FrameClient) {
    let asked: Vec<u32> = (0..100).map(|n| client.ask("echo", &json!(n))).collect();
    for (n, id) in asked.into_iter().enumerate() {
        assert_eq!(client.answer(id), Ok(json!(n)));
    }
}

fn order(client: &mut FrameClient) {
    let before = client.number("sum", &Value::Null);
    for n in 0..100 {
        client.tell("add", &json!(n));
    }
    let asked = [1; 3].map(|n| client.ask("add", &json!(n)));
    let sum = before + 4950.0;
    for (n, id) in [1.0, 2.0, 3.0].into_iter().zip(asked) {
        assert_eq!(client.answer(id), Ok(json!(sum + n)));
    }
}

fn tells(client: &mut FrameClient) {
    let before = client.number("sum", &Value::Null);
    let tells = client.tell("add", &json!(5));
    assert_eq!(client.answer(tells), Ok(Value::Null));
    assert_eq!(client.asked("sum", &Value::Null), Ok(json!(before + 5.0)));
}

fn unknown_target(client: &mut FrameClient) {
    let mut stream = ask_frame(&json!(1));
    stream.credit = 8;
    let tells = Frame::new(FrameKind::Tell, 0).with_json(&json!(1));
    for frame in [ask_frame(&json!(1)), tells, stream] {
        let id = client.call("nobody/here", "echo", frame);
        assert_eq!(
            failure_code(client.answer(id)),
            failure("unknown-target", false)
        );
    }
}

fn unknown_type(client: &mut FrameClient) {
    for message in ["ech", "constructor", "__proto__"] {
        let refusal = client.asked(message, &json!(1)).expect_err("an error");
        assert_eq!(refusal.code, "bad-request");
        assert!(refusal.message.contains("echo"), "{refusal:?}");
    }
}

fn no_stream(client: &mut FrameClient) {
    let mut frame = ask_frame(&Value::Null);
    frame.credit = 8;
    let id = client.call(client::ECHO, "sum", frame);
    // A call with credit is an ask if its type is not a stream; the client calls that a bad
    // request.
    let answer = client.frame(id);
    assert_eq!(
        (answer.kind, answer.content),
        (FrameKind::Done, ContentType::Json)
    );
}

fn ask_of_stream(client: &mut FrameClient) {
    let numbers = json!({ "from": 0, "to": null });
    let refusal = client.asked("numbers", &numbers).expect_err("an error");
    assert_eq!(refusal.code, "bad-request");
    assert!(refusal.message.contains("stream"), "{refusal:?}");
    until_no_stream_is_read(client);
}

fn errors(client: &mut FrameClient) {
    for code in [
        "unknown-target",
        "bad-request",
        "full",
        "deadline",
        "cancelled",
        "refused",
        "failed",
    ] {
        let message = format!("it is {code}");
        let details = json!({ "n": [1] });
        let error =
            json!({"code": code, "message": message, "retryable": true, "details": details});
        let expected = Refusal {
            code: code.to_owned(),
            message,
            retryable: true,
            details: Box::new(details),
        };
        assert_eq!(client.asked("fail", &error), Err(expected));
    }
    let bare = client
        .asked("fail", &refusing_payload())
        .expect_err("an error");
    assert_eq!((bare.message.as_str(), *bare.details), ("no", Value::Null));
}

/// An error without its optional members.
fn refusing_payload() -> Value {
    json!({"code": "refused", "message": "no", "retryable": false})
}

fn refusal_leaves(client: &mut FrameClient) {
    let before = client.number("add", &json!(1));
    let refused = client.asked("fail", &refusing_payload());
    assert_eq!(failure_code(refused), failure("refused", false));
    assert_eq!(client.asked("sum", &Value::Null), Ok(json!(before)));
}

fn deadline(client: &mut FrameClient) {
    let before = client.number("abandoned", &Value::Null);
    // A call that expires before its handler begins is not handled: then it is asked again.
    loop {
        let id = client.call(client::ECHO, WAIT, ask_frame_within(30, &long_wait()));
        assert_eq!(failure_code(client.answer(id)), failure("deadline", true));
        if client.number("abandoned", &Value::Null) > before {
            break;
        }
    }
}

fn cancelled(client: &mut FrameClient) {
    let before = client.number("abandoned", &Value::Null);
    let id = client.ask(WAIT, &long_wait());
    let message_behind_cancelled_ask = client.ask("echo", &json!("behind"));
    client.cancel(id);
    assert_eq!(client.refused(id).code, "cancelled");
    assert_eq!(
        client.answer(message_behind_cancelled_ask),
        Ok(json!("behind"))
    );
    // Its handler may not have begun: then there is nothing to abandon.
    let after = client.number("abandoned", &Value::Null);
    assert!((0.0..=1.0).contains(&(after - before)), "{after} {before}");
}

fn cancelled_before(client: &mut FrameClient) {
    let before = client.number("sum", &Value::Null);
    let held = client.ask(WAIT, &long_wait());
    let asked = client.ask("add", &json!(7));
    client.cancel(asked);
    assert_eq!(client.refused(asked).code, "cancelled");
    client.cancel(held);
    assert_eq!(client.refused(held).code, "cancelled");
    assert_eq!(client.asked("sum", &Value::Null), Ok(json!(before)));
}

fn message_behind_cancelled_ask(client: &mut FrameClient) {
    let held = client.call(client::ECHO, WAIT, ask_frame_within(30, &long_wait()));
    let message_behind_cancelled_ask: Vec<u32> =
        (0..10).map(|n| client.ask("echo", &json!(n))).collect();
    for (n, id) in message_behind_cancelled_ask.into_iter().enumerate() {
        assert_eq!(client.answer(id), Ok(json!(n)));
    }
    assert_eq!(client.refused(held).code, "deadline");
}

fn crash(client: &mut FrameClient) {
    client.number("add", &json!(5));
    let crashed = client.asked("crash", &Value::Null);
    assert_eq!(failure_code(crashed), failure("failed", false));
    assert_eq!(client.asked("add", &json!(1)), Ok(json!(1.0)));
}

fn crash_loses_nothing(client: &mut FrameClient) {
    client.tell("crash", &Value::Null);
    let asked = [1, 2].map(|n| client.ask("add", &json!(n)));
    for (id, sum) in asked.into_iter().zip([1.0, 3.0]) {
        assert_eq!(client.answer(id), Ok(json!(sum)));
    }
}

fn full_mailbox(client: &mut FrameClient) {
    let held = client.call(SMALL, WAIT, ask_frame(&long_wait()));
    let add = |n: u32| Frame::new(FrameKind::Tell, 0).with_json(&json!(n));
    let tells: Vec<u32> = (0..10).map(|n| client.call(SMALL, "add", add(n))).collect();
    let answers: Vec<_> = tells.into_iter().map(|id| client.answer(id)).collect();
    let refused: Vec<_> = answers
        .into_iter()
        .filter_map(|each| failure_code(Err(each.err()?)))
        .collect();
    assert!(refused.len() >= 7, "{} were refused", refused.len());
    for refusal in refused {
        assert_eq!(Some(refusal), failure("full", true));
    }
    client.cancel(held);
    assert_eq!(client.refused(held).code, "cancelled");
    loop {
        let id = client.call(SMALL, "echo", ask_frame(&json!(1)));
        match client.answer(id) {
            Ok(answer) => return assert_eq!(answer, 1),
            Err(refusal) => assert_eq!(refusal.code, "full"),
        }
    }
}

fn stream(client: &mut FrameClient) {
    for window in [1, 2, 5, 64, 1000] {
        let id = client.numbers(0, Some(200), window);
        let items: Vec<Value> = (0..200).map(Value::from).collect();
        assert_eq!(client.rest(id), (items, None));
    }
    let id = client.numbers(3, Some(3), 64);
    assert_eq!(client.next(id), StreamEvent::End);
}

fn side_by_side(client: &mut FrameClient) {
    let endless = client.numbers(0, None, 2);
    let other = client.numbers(100, None, 2);
    for n in 0..10 {
        assert_eq!(client.item(endless), n);
        assert_eq!(client.item(other), 100 + n);
        assert_eq!(client.asked("echo", &json!(n)), Ok(json!(n)));
    }
    for id in [endless, other] {
        client.cancel(id);
        let (_, why) = client.rest(id);
        assert_eq!(why.map(|why| why.code).as_deref(), Some("cancelled"));
    }
}

fn reader_stops(client: &mut FrameClient) {
    let id = client.numbers(0, None, 2);
    for n in 0..3 {
        assert_eq!(client.item(id), n);
    }
    client.cancel(id);
    until_no_stream_is_read(client);
}

fn cancelled_stream(client: &mut FrameClient) {
    let id = client.numbers(0, None, 4);
    assert_eq!(client.item(id), 0);
    client.cancel(id);
    let (items, why) = client.rest(id);
    let numbers: Vec<Value> = (1..=items.len()).map(Value::from).collect();
    assert_eq!(items, numbers, "what came before, and in order");
    assert_eq!(why.map(|why| why.code).as_deref(), Some("cancelled"));
    until_no_stream_is_read(client);
}

fn stream_deadline(client: &mut FrameClient) {
    let mut frame = ask_frame_within(30, &json!({"from": 0}));
    frame.credit = 1;
    let id = client.call(client::ECHO, "numbers", frame);
    let (_, why) = client.rest(id);
    assert_eq!(why.map(|why| why.code).as_deref(), Some("deadline"));
    until_no_stream_is_read(client);
}

fn crash_ends_streams(client: &mut FrameClient) {
    let id = client.numbers(0, None, 1);
    assert_eq!(client.item(id), 0);
    let crashed = client.asked("crash", &Value::Null);
    assert_eq!(failure_code(crashed), failure("failed", false));
    let (_, why) = client.rest(id);
    assert_eq!(why.map(|why| why.code).as_deref(), Some("failed"));
    assert_eq!(client.asked("echo", &json!(1)), Ok(json!(1)));
}

fn topic(client: &mut FrameClient) {
    let readers = [(); 2].map(|()| {
        let mut frame = Frame::new(FrameKind::Call, 0);
        frame.credit = 64;
        client.call("topic/conformance", "subscribe", frame)
    });
    // Nothing reports when a subscription exists: the first item shows it.
    let mut published = 0;
    let mut publish = |client: &mut FrameClient| {
        published += 1;
        client.tell("publish", &json!(published));
        client.number("sum", &Value::Null);
        published
    };
    let firsts = readers.map(|id| {
        while !client.has_arrived(id) {
            publish(client);
        }
        client.next(id)
    });
    let last = publish(client);
    for (id, first) in readers.into_iter().zip(firsts) {
        let StreamEvent::Item(first) = first else {
            panic!("{first:?} is no item")
        };
        let first = first["value"].as_u64().expect("a number");
        for n in first + 1..=last {
            assert_eq!(client.next(id), StreamEvent::Item(json!({ "value": n })));
        }
        client.cancel(id);
        assert_eq!(client.refused(id).code, "cancelled");
    }
}

fn ended(client: &mut FrameClient) {
    let id = client.numbers(0, None, 1);
    assert_eq!(client.item(id), 0);
    client.tell("end", &Value::Null);
    loop {
        match client.asked("echo", &json!(1)) {
            Ok(answer) => assert_eq!(answer, 1),
            Err(refusal) => break assert_eq!(refusal.code, "unknown-target"),
        }
    }
    let tells = client.tell("add", &json!(1));
    assert_eq!(client.refused(tells).code, "unknown-target");
    let (_, why) = client.rest(id);
    assert_eq!(why.map(|why| why.code).as_deref(), Some("failed"));
}
