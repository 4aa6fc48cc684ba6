//! The conformance suite over frames: the behaviour of a node towards a client in any language. The
//! cases have the same names as in TypeScript.

mod line;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use strowger::ContentType;
use strowger_gateway::frame::{Frame, FrameKind};

use crate::running::Running;
use line::{Line, Next, Refusal, SMALL};

type Case = (&'static str, fn(&mut Line));

const CASES: &[Case] = &[
    ("an ask gets the answer of its message", answers),
    ("octets are given back as octets", octets),
    ("a hundred asks at once get each its own answer", hundred),
    ("messages of one sender are handled in order", order),
    ("a tell is queued before it resolves", told),
    ("nobody at a path is an unknown target", nobody),
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
        behind,
    ),
    (
        "a crash fails the ask, and the next incarnation begins anew",
        crash,
    ),
    ("a crash loses nothing that waits", crash_loses_nothing),
    (
        "a mailbox without room refuses, and takes again when there is some",
        no_room,
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
fn actors_in_a_node_behave_as_the_suite_says() {
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
    let folder = tempfile::tempdir().expect("a folder of our own");
    let socket = folder.path().join("gateway");
    let live = Running::start(&format!(
        "[gateway]\nconformance = true\nsocket = {socket:?}\n"
    ));
    for (name, run) in CASES {
        println!("case: {name}");
        run(&mut Line::open(&socket));
    }
    println!("conformance: {} cases over frames", CASES.len());
    live.end();
}

const LONG: u64 = 60_000;
const WAIT: &str = "wait";

/// An ask that is not answered for a long time.
fn long() -> Value {
    json!({ "ms": LONG })
}

fn calls(payload: &Value) -> Frame {
    Frame::new(FrameKind::Call, 0).with_json(payload)
}

/// An ask with a deadline of `ms` milliseconds.
fn within(ms: u32, payload: &Value) -> Frame {
    let mut frame = calls(payload);
    frame.deadline = ms;
    frame
}

fn code(result: Result<Value, Refusal>) -> Option<(String, bool)> {
    let refusal = result.err()?;
    Some((refusal.code, refusal.retryable))
}

fn is(code: &str, retryable: bool) -> Option<(String, bool)> {
    Some((code.to_owned(), retryable))
}

/// Asks until no stream of the actor has a reader; if that never happens, the case times out.
fn until_no_stream_is_read(line: &mut Line) {
    while line.number("active", &Value::Null) > 0.0 {}
}

fn answers(line: &mut Line) {
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
        assert_eq!(line.asked("echo", value), Ok(value.clone()));
    }
}

fn octets(line: &mut Line) {
    let octets: Vec<u8> = (0..=255).collect();
    let frame = Frame::new(FrameKind::Call, 0).with_payload(ContentType::Bytes, octets.clone());
    let id = line.call(line::ECHO, "echo", frame);
    let answer = line.frame(id);
    assert_eq!(
        (answer.kind, answer.content),
        (FrameKind::Done, ContentType::Bytes)
    );
    assert_eq!(answer.payload, octets);
}

fn hundred(line: &mut Line) {
    let asked: Vec<u32> = (0..100).map(|n| line.ask("echo", &json!(n))).collect();
    for (n, id) in asked.into_iter().enumerate() {
        assert_eq!(line.answer(id), Ok(json!(n)));
    }
}

fn order(line: &mut Line) {
    let before = line.number("sum", &Value::Null);
    for n in 0..100 {
        line.tell("add", &json!(n));
    }
    let asked = [1; 3].map(|n| line.ask("add", &json!(n)));
    let sum = before + 4950.0;
    for (n, id) in [1.0, 2.0, 3.0].into_iter().zip(asked) {
        assert_eq!(line.answer(id), Ok(json!(sum + n)));
    }
}

fn told(line: &mut Line) {
    let before = line.number("sum", &Value::Null);
    let told = line.tell("add", &json!(5));
    assert_eq!(line.answer(told), Ok(Value::Null));
    assert_eq!(line.asked("sum", &Value::Null), Ok(json!(before + 5.0)));
}

fn nobody(line: &mut Line) {
    let mut stream = calls(&json!(1));
    stream.credit = 8;
    let told = Frame::new(FrameKind::Tell, 0).with_json(&json!(1));
    for frame in [calls(&json!(1)), told, stream] {
        let id = line.call("nobody/here", "echo", frame);
        assert_eq!(code(line.answer(id)), is("unknown-target", false));
    }
}

fn unknown_type(line: &mut Line) {
    for message in ["ech", "constructor", "__proto__"] {
        let refusal = line.asked(message, &json!(1)).expect_err("an error");
        assert_eq!(refusal.code, "bad-request");
        assert!(refusal.message.contains("echo"), "{refusal:?}");
    }
}

fn no_stream(line: &mut Line) {
    let mut frame = calls(&Value::Null);
    frame.credit = 8;
    let id = line.call(line::ECHO, "sum", frame);
    // A call with credit is an ask if its type is not a stream; the client calls that a bad
    // request.
    let answer = line.frame(id);
    assert_eq!(
        (answer.kind, answer.content),
        (FrameKind::Done, ContentType::Json)
    );
}

fn ask_of_stream(line: &mut Line) {
    let numbers = json!({ "from": 0, "to": null });
    let refusal = line.asked("numbers", &numbers).expect_err("an error");
    assert_eq!(refusal.code, "bad-request");
    assert!(refusal.message.contains("stream"), "{refusal:?}");
    until_no_stream_is_read(line);
}

fn errors(line: &mut Line) {
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
        assert_eq!(line.asked("fail", &error), Err(expected));
    }
    let bare = line.asked("fail", &refusing()).expect_err("an error");
    assert_eq!((bare.message.as_str(), *bare.details), ("no", Value::Null));
}

/// An error without its optional members.
fn refusing() -> Value {
    json!({"code": "refused", "message": "no", "retryable": false})
}

fn refusal_leaves(line: &mut Line) {
    let before = line.number("add", &json!(1));
    let refused = line.asked("fail", &refusing());
    assert_eq!(code(refused), is("refused", false));
    assert_eq!(line.asked("sum", &Value::Null), Ok(json!(before)));
}

fn deadline(line: &mut Line) {
    let before = line.number("abandoned", &Value::Null);
    // A call that expires before its handler begins is not handled: then it is asked again.
    loop {
        let id = line.call(line::ECHO, WAIT, within(30, &long()));
        assert_eq!(code(line.answer(id)), is("deadline", true));
        if line.number("abandoned", &Value::Null) > before {
            break;
        }
    }
}

fn cancelled(line: &mut Line) {
    let before = line.number("abandoned", &Value::Null);
    let id = line.ask(WAIT, &long());
    let behind = line.ask("echo", &json!("behind"));
    line.cancel(id);
    assert_eq!(line.refused(id).code, "cancelled");
    assert_eq!(line.answer(behind), Ok(json!("behind")));
    // Its handler may not have begun: then there is nothing to abandon.
    let after = line.number("abandoned", &Value::Null);
    assert!((0.0..=1.0).contains(&(after - before)), "{after} {before}");
}

fn cancelled_before(line: &mut Line) {
    let before = line.number("sum", &Value::Null);
    let held = line.ask(WAIT, &long());
    let asked = line.ask("add", &json!(7));
    line.cancel(asked);
    assert_eq!(line.refused(asked).code, "cancelled");
    line.cancel(held);
    assert_eq!(line.refused(held).code, "cancelled");
    assert_eq!(line.asked("sum", &Value::Null), Ok(json!(before)));
}

fn behind(line: &mut Line) {
    let held = line.call(line::ECHO, WAIT, within(30, &long()));
    let behind: Vec<u32> = (0..10).map(|n| line.ask("echo", &json!(n))).collect();
    for (n, id) in behind.into_iter().enumerate() {
        assert_eq!(line.answer(id), Ok(json!(n)));
    }
    assert_eq!(line.refused(held).code, "deadline");
}

fn crash(line: &mut Line) {
    line.number("add", &json!(5));
    let crashed = line.asked("crash", &Value::Null);
    assert_eq!(code(crashed), is("failed", false));
    assert_eq!(line.asked("add", &json!(1)), Ok(json!(1.0)));
}

fn crash_loses_nothing(line: &mut Line) {
    line.tell("crash", &Value::Null);
    let asked = [1, 2].map(|n| line.ask("add", &json!(n)));
    for (id, sum) in asked.into_iter().zip([1.0, 3.0]) {
        assert_eq!(line.answer(id), Ok(json!(sum)));
    }
}

fn no_room(line: &mut Line) {
    let held = line.call(SMALL, WAIT, calls(&long()));
    let add = |n: u32| Frame::new(FrameKind::Tell, 0).with_json(&json!(n));
    let told: Vec<u32> = (0..10).map(|n| line.call(SMALL, "add", add(n))).collect();
    let answers: Vec<_> = told.into_iter().map(|id| line.answer(id)).collect();
    let refused: Vec<_> = answers
        .into_iter()
        .filter_map(|each| code(Err(each.err()?)))
        .collect();
    assert!(refused.len() >= 7, "{} were refused", refused.len());
    for refusal in refused {
        assert_eq!(Some(refusal), is("full", true));
    }
    line.cancel(held);
    assert_eq!(line.refused(held).code, "cancelled");
    loop {
        let id = line.call(SMALL, "echo", calls(&json!(1)));
        match line.answer(id) {
            Ok(answer) => return assert_eq!(answer, 1),
            Err(refusal) => assert_eq!(refusal.code, "full"),
        }
    }
}

fn stream(line: &mut Line) {
    for window in [1, 2, 5, 64, 1000] {
        let id = line.numbers(0, Some(200), window);
        let items: Vec<Value> = (0..200).map(Value::from).collect();
        assert_eq!(line.rest(id), (items, None));
    }
    let id = line.numbers(3, Some(3), 64);
    assert_eq!(line.next(id), Next::End);
}

fn side_by_side(line: &mut Line) {
    let endless = line.numbers(0, None, 2);
    let other = line.numbers(100, None, 2);
    for n in 0..10 {
        assert_eq!(line.item(endless), n);
        assert_eq!(line.item(other), 100 + n);
        assert_eq!(line.asked("echo", &json!(n)), Ok(json!(n)));
    }
    for id in [endless, other] {
        line.cancel(id);
        let (_, why) = line.rest(id);
        assert_eq!(why.map(|why| why.code).as_deref(), Some("cancelled"));
    }
}

fn reader_stops(line: &mut Line) {
    let id = line.numbers(0, None, 2);
    for n in 0..3 {
        assert_eq!(line.item(id), n);
    }
    line.cancel(id);
    until_no_stream_is_read(line);
}

fn cancelled_stream(line: &mut Line) {
    let id = line.numbers(0, None, 4);
    assert_eq!(line.item(id), 0);
    line.cancel(id);
    let (items, why) = line.rest(id);
    let numbers: Vec<Value> = (1..=items.len()).map(Value::from).collect();
    assert_eq!(items, numbers, "what came before, and in order");
    assert_eq!(why.map(|why| why.code).as_deref(), Some("cancelled"));
    until_no_stream_is_read(line);
}

fn stream_deadline(line: &mut Line) {
    let mut frame = within(30, &json!({"from": 0}));
    frame.credit = 1;
    let id = line.call(line::ECHO, "numbers", frame);
    let (_, why) = line.rest(id);
    assert_eq!(why.map(|why| why.code).as_deref(), Some("deadline"));
    until_no_stream_is_read(line);
}

fn crash_ends_streams(line: &mut Line) {
    let id = line.numbers(0, None, 1);
    assert_eq!(line.item(id), 0);
    let crashed = line.asked("crash", &Value::Null);
    assert_eq!(code(crashed), is("failed", false));
    let (_, why) = line.rest(id);
    assert_eq!(why.map(|why| why.code).as_deref(), Some("failed"));
    assert_eq!(line.asked("echo", &json!(1)), Ok(json!(1)));
}

fn topic(line: &mut Line) {
    let readers = [(); 2].map(|()| {
        let mut frame = Frame::new(FrameKind::Call, 0);
        frame.credit = 64;
        line.call("topic/conformance", "subscribe", frame)
    });
    // Nothing reports when a subscription exists: the first item shows it.
    let mut published = 0;
    let mut publish = |line: &mut Line| {
        published += 1;
        line.tell("publish", &json!(published));
        line.number("sum", &Value::Null);
        published
    };
    let firsts = readers.map(|id| {
        while !line.has_come(id) {
            publish(line);
        }
        line.next(id)
    });
    let last = publish(line);
    for (id, first) in readers.into_iter().zip(firsts) {
        let Next::Item(first) = first else {
            panic!("{first:?} is no item")
        };
        let first = first["value"].as_u64().expect("a number");
        for n in first + 1..=last {
            assert_eq!(line.next(id), Next::Item(json!({ "value": n })));
        }
        line.cancel(id);
        assert_eq!(line.refused(id).code, "cancelled");
    }
}

fn ended(line: &mut Line) {
    let id = line.numbers(0, None, 1);
    assert_eq!(line.item(id), 0);
    line.tell("end", &Value::Null);
    loop {
        match line.asked("echo", &json!(1)) {
            Ok(answer) => assert_eq!(answer, 1),
            Err(refusal) => break assert_eq!(refusal.code, "unknown-target"),
        }
    }
    let told = line.tell("add", &json!(1));
    assert_eq!(line.refused(told).code, "unknown-target");
    let (_, why) = line.rest(id);
    assert_eq!(why.map(|why| why.code).as_deref(), Some("failed"));
}
