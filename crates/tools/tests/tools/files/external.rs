//! Files for callers outside the process: by name, with JSON.

use std::sync::{Arc, mpsc};

use serde_json::{Value, json};
use strowger::{CallReply, CallSink, ContentType, Delivery, Fault, FaultCode, Payload};
use strowger_tools::files::Files;

use super::Fixture;

struct AnswerSender(mpsc::SyncSender<Result<CallReply, Fault>>);

impl CallSink for AnswerSender {
    fn answer(&self, _: u64, result: Result<CallReply, Fault>) {
        let _ = self.0.send(result);
    }

    fn is_waiting(&self, _: u64) -> bool {
        true
    }
}

impl Fixture {
    /// Asks as a connection does.
    async fn call(&self, name: &str, payload: Value) -> Result<Payload, Fault> {
        let address = match self.system.export(&self.files, Files::export()) {
            Ok(address) => address,
            Err(_) => "@(files)".parse().expect("it is one"),
        };
        let entry = self.system.remote_entry(&address, name)?;
        let (answers, answer) = mpsc::sync_channel(1);
        let put = entry.call(
            &Payload::from_json(&payload)?,
            1,
            Arc::new(AnswerSender(answers)),
        );
        if let Delivery::Settled(Err(fault)) = put {
            return Err(fault);
        }
        let answer = tokio::task::spawn_blocking(move || answer.recv())
            .await
            .expect("it ends");
        match answer.expect("it answers")? {
            CallReply::Single(payload) => Ok(payload),
            _ => panic!("it is no stream"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn json_writes_are_read_as_bytes() {
    let fixture = Fixture::open(|_| {});
    let write = json!({ "path": "a", "text": "hello", "mode": "atomic" });
    assert_eq!(fixture.call("write", write).await, Ok(Payload::EMPTY));
    let more = json!({ "path": "a", "base64": "AP8=" });
    fixture.call("append", more).await.expect("there is room");
    let read = fixture
        .call("read", json!({ "path": "a" }))
        .await
        .expect("it is there");
    assert_eq!(read, Payload::new(ContentType::Bytes, &b"hello\0\xff"[..]));
    let many = fixture
        .call("read-many", json!({ "paths": ["a", "b"] }))
        .await;
    let many: Value = many.and_then(|payload| payload.decode()).expect("a list");
    assert_eq!(many[0], json!({ "base64": "aGVsbG8A/w==" }));
    assert_eq!(
        many[1]["error"]["details"],
        json!({ "reason": "not-found" })
    );
    let list: Value = fixture
        .call("list", json!({}))
        .await
        .and_then(|p| p.decode())
        .expect("a list");
    assert_eq!(
        list,
        json!({ "entries": [{ "name": "a", "kind": "file" }], "more": false })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_name_the_rule_or_the_mistake() {
    let fixture = Fixture::open(|_| {});
    let refused = fixture.call("read", json!({ "path": "../secret" })).await;
    let refused = refused.expect_err("it is outside");
    assert_eq!(
        (refused.code, refused.details.as_deref()),
        (FaultCode::Refused, Some(&json!({ "reason": "outside" })))
    );
    for (name, payload, said) in [
        ("read", json!({ "pth": "a" }), "unknown field `pth`"),
        (
            "write",
            json!({ "path": "a" }),
            "needs either `text` or `base64`",
        ),
        ("write", json!({ "path": "a", "base64": "?" }), "`base64`"),
        (
            "append",
            json!({ "path": "a", "text": "", "mode": "atomic" }),
            "does not accept `mode`",
        ),
    ] {
        let fault = fixture.call(name, payload).await.expect_err("it is wrong");
        assert_eq!(fault.code, FaultCode::BadRequest);
        assert!(fault.message.contains(said), "{}", fault.message);
    }
}
