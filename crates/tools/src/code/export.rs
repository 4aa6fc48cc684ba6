//! The external interface of a code actor: message names and their JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{
    ActorSystem, Address, CallReply, CallSink, ContentType, Delivery, Export, Fault, FaultCode,
    Payload,
};
use tokio::sync::oneshot;

use super::error::CodeError;
use super::functions::GrantedFunctions;
use super::message::{
    AnswerCallRequest, CodeUsageRequest, ExecuteRequest, FollowRunRequest, ForgetRealmRequest,
    Language, RunEvent, RunResult,
};
use super::sandbox::FunctionDecl;
use super::spec::CodeBudget;
use super::{Code, CodeMessage};

impl Code {
    /// The messages that the actor accepts from external callers.
    ///
    /// | message | payload | answer |
    /// |---|---|---|
    /// | `execute` | `{code, language?, args?, realm?, fns?, limits?}` | `{value, output, fresh}` |
    /// | `follow` | the same, `calls?` | a stream: `{line}`, `{call}`, `{ended}` or `{error}` |
    /// | `answer` | `{call, value?}` or `{call, error}` | `true` if the call was waiting for it |
    /// | `forget` | `{realm}` | `true` if the realm existed |
    /// | `usage` | none | runs, failures, limits passed, realms |
    ///
    /// `language` is `js` or `ts`. `fns` names the functions that the code is granted: each sends a
    /// message to an exposed actor,
    /// `{"read": {"to": "@(tools/files)", "type": "read", "waits": false}}`, with its first
    /// argument as the payload. `calls` names functions that the follower implements,
    /// `{"price": {"waits": false}}`: each call is an item of the stream, `{call, name,
    /// arguments}`, and waits for its `answer`. `limits` may only tighten those of the actor:
    /// `time_ms`, `deadline_ms`, `memory`, `stack`, `jobs`, `output`, `result`.
    pub fn export(system: &ActorSystem) -> Export<CodeMessage> {
        let (one, other) = (system.clone(), system.clone());
        let execute = move |payload: &Payload| payload.decode::<RunPayload>()?.execute(&one);
        let follow = move |payload: &Payload| payload.decode::<RunPayload>()?.follow(&other);
        let answer = |payload: &Payload| payload.decode::<AnswerPayload>()?.answer();
        let executed = |outcome: Result<RunResult, CodeError>| {
            Payload::from_json(&outcome.map_err(|error| error.to_fault())?)
        };
        let reader = |outcome: Result<strowger::Reader<RunEvent>, CodeError>| {
            outcome.map_err(|error| error.to_fault())
        };
        Export::new()
            .ask_with::<ExecuteRequest>("execute", execute, executed)
            .stream_with::<FollowRunRequest, RunEvent>("follow", follow, reader, |told, _| {
                Payload::from_json(&match told {
                    RunEvent::Line(line) => json!({ "line": line }),
                    RunEvent::Call(called) => json!({ "call": called }),
                    RunEvent::Ended(Ok(executed)) => json!({ "ended": executed }),
                    RunEvent::Ended(Err(error)) => json!({ "error": error.to_fault().to_json() }),
                })
            })
            .ask_with::<AnswerCallRequest>("answer", answer, |waited| Payload::from_json(&waited))
            .ask::<ForgetRealmRequest>("forget")
            .ask::<CodeUsageRequest>("usage")
    }
}

/// The JSON of a run request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunPayload {
    code: String,
    #[serde(default)]
    language: Language,
    #[serde(default)]
    args: Option<Value>,
    #[serde(default)]
    realm: Option<String>,
    #[serde(default)]
    fns: BTreeMap<String, FunctionTarget>,
    #[serde(default)]
    calls: BTreeMap<String, FollowerFunction>,
    #[serde(default)]
    limits: CodeBudget,
}

/// The exposed actor and message behind a granted function.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FunctionTarget {
    to: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    waits: bool,
}

/// A function that the follower implements.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FollowerFunction {
    #[serde(default)]
    waits: bool,
}

impl RunPayload {
    fn execute(self, system: &ActorSystem) -> Result<ExecuteRequest, Fault> {
        match self.calls.is_empty() {
            true => Ok(self.follow(system)?.execute),
            false => {
                let text = "`calls` are available only to a caller that follows the run: use \
                            `follow`";
                Err(Fault::new(FaultCode::BadRequest, text))
            }
        }
    }

    fn follow(self, system: &ActorSystem) -> Result<FollowRunRequest, Fault> {
        let execute = ExecuteRequest {
            functions: granted_functions(self.fns, system)?,
            code: self.code,
            language: self.language,
            args: self.args,
            realm: self.realm,
            budget: self.limits,
        };
        let calls = self.calls.into_iter();
        let calls = calls.map(|(name, FollowerFunction { waits })| FunctionDecl { name, waits });
        Ok(FollowRunRequest {
            execute,
            follower_functions: calls.collect(),
        })
    }
}

/// The JSON of an answer to a call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerPayload {
    call: String,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    error: Option<String>,
}

impl AnswerPayload {
    fn answer(self) -> Result<AnswerCallRequest, Fault> {
        let outcome = match (self.value, self.error) {
            (value, None) => Ok(value),
            (Value::Null, Some(error)) => Err(error),
            (_, Some(_)) => {
                let text = "a reply needs a `value` or an `error`";
                return Err(Fault::new(FaultCode::BadRequest, text));
            }
        };
        let call = self.call;
        Ok(AnswerCallRequest { call, outcome })
    }
}

/// Builds functions that ask exposed actors.
pub(crate) fn granted_functions(
    fns: BTreeMap<String, FunctionTarget>,
    system: &ActorSystem,
) -> Result<GrantedFunctions, Fault> {
    let mut functions = GrantedFunctions::new();
    for (name, target) in fns {
        let to: Address = target.to.parse()?;
        let (system, kind) = (system.clone(), Arc::<str>::from(target.kind));
        let work = move |values: Vec<Value>| {
            let (system, to, kind) = (system.clone(), to.clone(), Arc::clone(&kind));
            async move {
                let value = values.into_iter().next().unwrap_or(Value::Null);
                let answer = ask_exported(&system, &to, &kind, &value).await;
                answer.map_err(|fault| fault.to_string())
            }
        };
        functions = match target.waits {
            true => functions.waiting(&name, work),
            false => functions.promise(&name, work),
        };
    }
    Ok(functions)
}

/// The receiver of a single answer.
struct AnswerReceiver(Mutex<Option<oneshot::Sender<Result<CallReply, Fault>>>>);

impl CallSink for AnswerReceiver {
    fn answer(&self, _: u64, result: Result<CallReply, Fault>) {
        if let Some(sender) = self.0.lock().take() {
            // The caller may no longer wait for the answer.
            drop(sender.send(result));
        }
    }

    fn is_waiting(&self, _: u64) -> bool {
        let sender = self.0.lock();
        sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }
}

/// Asks an exposed actor and waits for its answer.
async fn ask_exported(
    system: &ActorSystem,
    to: &Address,
    kind: &str,
    value: &Value,
) -> Result<Value, Fault> {
    let entry = system.remote_entry(to, kind)?;
    let payload = match value {
        Value::Null => Payload::EMPTY,
        value => Payload::from_json(value)?,
    };
    let (sender, answer) = oneshot::channel();
    let waiting = Arc::new(AnswerReceiver(Mutex::new(Some(sender))));
    // Held until the answer arrives: dropping the ticket cancels the message.
    let _ticket = match entry.call(&payload, 0, waiting) {
        Delivery::Settled(done) => done?,
        Delivery::Queued(put) => put.await?,
    };
    let gone = || Fault::new(FaultCode::UnknownTarget, format!("{to} has exited"));
    match answer.await.map_err(|_| gone())?? {
        CallReply::Single(payload) => payload_to_json(&payload),
        _ => {
            let text = format!("`{kind}` of {to} is a stream, which code cannot call");
            Err(Fault::new(FaultCode::BadRequest, text))
        }
    }
}

/// Converts an answer to a JSON value: bytes become a string if they are UTF-8, else base64.
fn payload_to_json(payload: &Payload) -> Result<Value, Fault> {
    if payload.content != ContentType::Bytes {
        return payload.decode();
    }
    match std::str::from_utf8(&payload.bytes) {
        Ok(text) => Ok(Value::from(text)),
        Err(_) => {
            use base64::Engine as _;
            let bytes = base64::engine::general_purpose::STANDARD.encode(&payload.bytes);
            Ok(json!({ "base64": bytes }))
        }
    }
}
