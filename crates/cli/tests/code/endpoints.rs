//! The endpoints of programs and their registry: messages that outside callers may send, and the
//! refusals that they get.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use strowger::{
    ActorRef, ActorSystem, Address, CallReply, CallSink, ContentType, Delivery, Fault, FaultCode,
    Payload,
};
use strowger_tools::program::{Programs, ProgramsMessage, ProgramsSpec};
use tokio::sync::oneshot;

use super::host;
use super::sandbox::Realms;

/// A caller outside the system that waits for one answer.
struct OutsideCaller(Mutex<Option<oneshot::Sender<Result<CallReply, Fault>>>>);

impl CallSink for OutsideCaller {
    fn answer(&self, _: u64, result: Result<CallReply, Fault>) {
        let sender = self.0.lock().take();
        drop(sender.expect("there is one answer").send(result));
    }

    fn is_waiting(&self, _: u64) -> bool {
        true
    }
}

/// Programs with their endpoints.
struct ProgramEndpoints {
    system: ActorSystem,
    _programs: ActorRef<ProgramsMessage>,
}

impl ProgramEndpoints {
    fn open(change: impl FnOnce(&mut ProgramsSpec)) -> Self {
        let system = ActorSystem::new("street").expect("it starts");
        let sandbox: Arc<Realms> = Arc::clone(&host().1);
        let mut spec = ProgramsSpec::new(sandbox);
        change(&mut spec);
        let fixture = system.spawn::<Programs>("programs", spec);
        let fixture = fixture.expect("it starts");
        let door = Programs::export(&system);
        system.export(&fixture, door).expect("nobody is there");
        Self {
            system,
            _programs: fixture,
        }
    }

    async fn send(&self, to: &str, kind: &str, payload: Payload) -> Result<Value, Fault> {
        let to: Address = to.parse()?;
        let entry = self.system.remote_entry(&to, kind)?;
        let (sender, answer) = oneshot::channel();
        let outside = Arc::new(OutsideCaller(Mutex::new(Some(sender))));
        let _ticket = match entry.call(&payload, 0, outside) {
            Delivery::Settled(done) => done?,
            Delivery::Queued(put) => put.await?,
        };
        match answer.await.expect("it is answered")? {
            CallReply::Single(payload) => payload.decode(),
            other => panic!("no stream was asked for: {other:?}"),
        }
    }

    async fn ask(&self, to: &str, kind: &str, value: Value) -> Result<Value, Fault> {
        let payload = Payload::from_json(&value).expect("it is JSON");
        self.send(to, kind, payload).await
    }

    async fn refused(&self, to: &str, kind: &str, value: Value) -> (FaultCode, String) {
        code_and_reason(self.ask(to, kind, value).await)
    }

    async fn publish(&self, program: Value) -> Result<Value, Fault> {
        self.ask(PROGRAMS, "publish", program).await
    }
}

const PROGRAMS: &str = "@(programs)";

/// The code of a fault, and the reason from its details or its text.
fn code_and_reason(outcome: Result<Value, Fault>) -> (FaultCode, String) {
    let fault = outcome.expect_err("it is refused").to_json();
    let code = FaultCode::ALL.into_iter();
    let mut code = code.filter(|code| fault["code"] == code.as_str());
    let reason = fault["details"]["reason"].as_str();
    let text = reason.or_else(|| fault["message"].as_str());
    (
        code.next().expect("a code"),
        text.expect("it says why").to_owned(),
    )
}

const COUNTER: &str = "state.n ??= 0; function handle(by) { return state.n += by }";

#[tokio::test]
async fn program_is_published_asked_and_removed() {
    let programs = ProgramEndpoints::open(|_| {});
    let counter = json!({"name": "counter", "code": COUNTER});
    assert_eq!(programs.publish(counter).await, Ok(Value::Null));
    let address = "@(programs/counter)";
    assert_eq!(
        programs.ask(address, "perform", json!(2)).await,
        Ok(json!(2))
    );
    assert_eq!(
        programs.ask(address, "perform", json!(3)).await,
        Ok(json!(5))
    );
    let listed = programs.ask(PROGRAMS, "list", Value::Null).await;
    let one = json!({"name": "counter", "state": "resident", "calls": 2, "failed": 0,
        "restarts": 0});
    assert_eq!(listed, Ok(json!([one])));
    let counter = json!({"name": "counter"});
    let withdraw = || programs.ask(PROGRAMS, "withdraw", counter.clone());
    assert_eq!(withdraw().await, Ok(json!(true)));
    assert_eq!(withdraw().await, Ok(json!(false)));
    let gone = programs.refused(address, "perform", json!(1)).await;
    assert_eq!(gone.0, FaultCode::UnknownTarget, "{}", gone.1);
}

#[tokio::test]
async fn malformed_messages_reach_no_program() {
    let programs = ProgramEndpoints::open(|_| {});
    for malformed in [
        json!({"name": "a"}),
        json!({"code": COUNTER}),
        json!({"name": 7, "code": COUNTER}),
        json!({"name": "a", "code": COUNTER, "colour": "red"}),
        json!({"name": "a", "code": COUNTER, "language": "basic"}),
        json!({"name": "a", "code": COUNTER, "limits": {"time_ms": -1}}),
        json!({"name": "a", "code": COUNTER, "limits": {"hours": 1}}),
        json!({"name": "a", "code": COUNTER, "fns": {"f": {"to": "@(", "type": "x"}}}),
        json!({"name": "../a", "code": COUNTER}),
        json!({"name": "", "code": COUNTER}),
        json!("a"),
        json!(null),
    ] {
        let published = programs.publish(malformed.clone()).await;
        assert!(published.is_err(), "{malformed} was published");
        let (code, why) = code_and_reason(published);
        assert_eq!(code, FaultCode::BadRequest, "{malformed}: {why}");
    }
    // JSON that is cut off, bytes, and text that is not JSON.
    for (content, bytes) in [
        (ContentType::Json, &br#"{"name": "a", "code""#[..]),
        (ContentType::Bytes, &br#"{"name": "a", "code": ""}"#[..]),
        (ContentType::Text, &b"\xff\xfe"[..]),
    ] {
        let payload = Payload::new(content, bytes);
        let (code, why) = code_and_reason(programs.send(PROGRAMS, "publish", payload).await);
        assert_eq!(code, FaultCode::BadRequest, "{why}");
    }
    assert_eq!(
        programs.ask(PROGRAMS, "list", Value::Null).await,
        Ok(json!([])),
        "one of them was published"
    );
    let counter = json!({"name": "counter", "code": COUNTER});
    programs.publish(counter).await.expect("it is valid");
    let address = "@(programs/counter)";
    for (content, bytes) in [
        (ContentType::Json, &b"{"[..]),
        (ContentType::Json, &b""[..]),
        (ContentType::Bytes, &b"1"[..]),
    ] {
        let payload = Payload::new(content, bytes);
        let (code, why) = code_and_reason(programs.send(address, "perform", payload).await);
        assert_eq!(code, FaultCode::BadRequest, "{why}");
    }
    // Nested more deeply than JSON parsers can bear.
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let payload = Payload::new(ContentType::Json, deep);
    let (code, why) = code_and_reason(programs.send(address, "perform", payload).await);
    assert_eq!(code, FaultCode::BadRequest, "{why}");
    // None of these reached it as a message.
    let listed = programs.ask(PROGRAMS, "list", Value::Null).await;
    assert_eq!(listed.expect("it answers")[0]["calls"], json!(0));
    assert_eq!(
        programs.ask(address, "perform", json!(1)).await,
        Ok(json!(1))
    );
}

#[tokio::test]
async fn messages_to_unknown_addresses_are_refused() {
    let programs = ProgramEndpoints::open(|_| {});
    let counter = json!({"name": "counter", "code": COUNTER});
    programs.publish(counter).await.expect("it is valid");
    for (address, kind) in [
        ("@(programs/nobody)", "perform"),
        ("@(programs/counter/program)", "perform"),
        ("@(programs/published/counter/program)", "perform"),
        ("@(elsewhere)", "publish"),
    ] {
        let (code, why) = programs.refused(address, kind, json!(1)).await;
        assert_eq!(code, FaultCode::UnknownTarget, "{address}: {why}");
    }
    // Messages between the actors themselves have no name outside.
    for (address, kind) in [
        ("@(programs/counter)", "sleep"),
        ("@(programs/counter)", "wake"),
        ("@(programs/counter)", "publish"),
        (PROGRAMS, "perform"),
    ] {
        let (code, why) = programs.refused(address, kind, json!(1)).await;
        assert!(
            matches!(code, FaultCode::BadRequest | FaultCode::UnknownTarget),
            "{address} {kind}: {code} {why}"
        );
    }
    let (code, _) = programs
        .refused("programs counter", "perform", json!(1))
        .await;
    assert_eq!(code, FaultCode::BadRequest);
}

#[tokio::test]
async fn oversized_message_is_refused_without_ending_the_program() {
    let programs = ProgramEndpoints::open(|spec| {
        spec.restarts = 0;
        spec.limits.source = 1 << 10;
        spec.limits.result = 4 << 10;
    });
    let long = format!("{COUNTER} /* {} */", "x".repeat(1 << 10));
    let (code, why) = programs
        .refused(PROGRAMS, "publish", json!({"name": "long", "code": long}))
        .await;
    assert_eq!((code, &*why), (FaultCode::Refused, "source"));
    let schema = json!({"enum": ["x".repeat(64 << 10)]});
    let program = json!({"name": "schema", "code": COUNTER, "input": schema});
    let (code, why) = programs.refused(PROGRAMS, "publish", program).await;
    assert_eq!((code, &*why), (FaultCode::BadRequest, "schema"));

    let code = "let n = 0; function handle(m) { n++; return m === 'n' ? n : m + m }";
    let echo = json!({"name": "echo", "code": code});
    programs.publish(echo).await.expect("it is valid");
    let address = "@(programs/echo)";
    // Longer than a program accepts, by one byte and by many; the program sees neither, and keeps
    // running although its intensity allows no failure.
    let text = |bytes: usize| json!("x".repeat(bytes - 2));
    for bytes in [(4 << 10) + 1, 64 << 20] {
        let (code, why) = programs.refused(address, "perform", text(bytes)).await;
        assert_eq!((code, &*why), (FaultCode::Refused, "length"), "{bytes}");
    }
    assert_eq!(
        programs.ask(address, "perform", json!("n")).await,
        Ok(json!(1))
    );
    let short = programs.ask(address, "perform", text(1 << 10)).await;
    assert_eq!(short, Ok(json!("x".repeat((2 << 10) - 4))));
    // The input fits, but the result does not: a failure of the program, which may not have one.
    let (code, why) = programs.refused(address, "perform", text(4 << 10)).await;
    assert_eq!((code, &*why), (FaultCode::Refused, "result"));
    let (code, why) = programs.refused(address, "perform", json!("n")).await;
    assert_eq!(code, FaultCode::UnknownTarget, "{why}");
}

#[tokio::test]
async fn schemas_are_enforced_for_outside_callers() {
    let programs = ProgramEndpoints::open(|_| {});
    for (side, schema) in [
        ("input", json!({"type": 7})),
        ("output", json!({"$ref": "https://example.org/schema.json"})),
        ("input", json!({"pattern": "("})),
    ] {
        let mut program = json!({"name": "bad", "code": COUNTER});
        program[side] = schema;
        let (code, why) = programs.refused(PROGRAMS, "publish", program).await;
        assert_eq!((code, &*why), (FaultCode::BadRequest, "schema"), "{side}");
    }
    let code = "let n = 0; function handle(m) { n++; return m.n > 9 ? 'many' : n }";
    let program = json!({"name": "checked", "code": code,
        "input": {"type": "object", "required": ["n"], "additionalProperties": false,
            "properties": {"n": {"type": "integer", "minimum": 0}}},
        "output": {"type": "integer"}});
    programs.publish(program).await.expect("it is valid");
    let address = "@(programs/checked)";
    for input in [
        json!({"n": -1}),
        json!({"n": 1.5}),
        json!({"n": "1"}),
        json!({"n": 1, "m": 1}),
        json!({}),
        json!([1]),
        json!(null),
    ] {
        let (code, why) = programs.refused(address, "perform", input.clone()).await;
        assert_eq!((code, &*why), (FaultCode::BadRequest, "input"), "{input}");
    }
    // The program saw none of these.
    let first = programs.ask(address, "perform", json!({"n": 1})).await;
    assert_eq!(first, Ok(json!(1)));
    // A forbidden output is the program's own fault.
    let (code, why) = programs.refused(address, "perform", json!({"n": 10})).await;
    assert_eq!((code, &*why), (FaultCode::Failed, "output"));
    let next = programs.ask(address, "perform", json!({"n": 1})).await;
    assert_eq!(next, Ok(json!(3)));
}

#[tokio::test]
async fn granted_functions_are_called_for_outside_callers() {
    let programs = ProgramEndpoints::open(|_| {});
    let counter = json!({"name": "counter", "code": COUNTER});
    programs.publish(counter).await.expect("it is valid");
    let code = "async function handle(by) { return await fns.count(by) }";
    let fns = json!({"count": {"to": "@(programs/counter)", "type": "perform"}});
    let passes = json!({"name": "passes", "code": code, "fns": fns});
    programs.publish(passes).await.expect("it is valid");
    let address = "@(programs/passes)";
    assert_eq!(
        programs.ask(address, "perform", json!(4)).await,
        Ok(json!(4))
    );
    assert_eq!(
        programs.ask(address, "perform", json!(5)).await,
        Ok(json!(9))
    );
    // The same code without the grant has no actor to ask.
    let alone = json!({"name": "alone", "code": code});
    programs.publish(alone).await.expect("it is valid");
    let (code, why) = programs
        .refused("@(programs/alone)", "perform", json!(1))
        .await;
    assert_eq!((code, &*why), (FaultCode::Failed, "thrown"));
}
