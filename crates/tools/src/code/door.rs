//! Code for those outside: names of messages, and their JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};
use strowger::{
    ActorSystem, Address, Answer, Calls, Code as FaultCode, Content, Door, Fault, Payload, Put,
};
use tokio::sync::oneshot;

use super::CodeMessage;
use super::error::CodeError;
use super::functions::Functions;
use super::message::{
    AnswerCall, Execute, Executed, FollowRun, Forget, GetCodeUsage, Language, Told,
};
use super::sandbox::FunctionName;
use super::spec::CodeBudget;

/// What those outside may ask a [`Code`](crate::Code) actor.
///
/// | message | payload | answer |
/// |---|---|---|
/// | `execute` | `{code, language?, args?, realm?, fns?, limits?}` | `{value, output, fresh}` |
/// | `follow` | the same, `calls?` | a stream: `{line}`, `{call}`; then `{ended}` or `{error}` |
/// | `answer` | `{call, value?}` or `{call, error}` | whether the call waited for it |
/// | `forget` | `{realm}` | whether it was there |
/// | `usage` | none | runs, failures, limits passed, realms |
///
/// `language` is `js` or `ts`. `fns` names functions that the code gets: each is a message to an
/// exposed actor, `{"read": {"to": "@(tools/files)", "type": "read", "waits": false}}`; its first
/// argument is the payload. `calls` names functions that the follower has, `{"price": {"waits":
/// false}}`: a call of one is an item of the stream, `{call, name, arguments}`, and waits for its
/// `answer`. `limits` are tighter ones than the actor's: `time_ms`, `deadline_ms`, `memory`,
/// `stack`, `jobs`, `output`, `result`.
pub fn code_door(system: &ActorSystem) -> Door<CodeMessage> {
    let (one, other) = (system.clone(), system.clone());
    let execute = move |payload: &Payload| payload.read::<Wanted>()?.execute(&one);
    let follow = move |payload: &Payload| payload.read::<Wanted>()?.follow(&other);
    let answer = |payload: &Payload| payload.read::<Answered>()?.answer();
    let executed = |outcome: Result<Executed, CodeError>| {
        Payload::json(&outcome.map_err(|error| error.to_fault())?)
    };
    let reader = |outcome: Result<strowger::Reader<Told>, CodeError>| {
        outcome.map_err(|error| error.to_fault())
    };
    Door::new()
        .ask_with::<Execute>("execute", execute, executed)
        .stream_with::<FollowRun, Told>("follow", follow, reader, |told, _| {
            Payload::json(&match told {
                Told::Line(line) => json!({ "line": line }),
                Told::Called(called) => json!({ "call": called }),
                Told::Ended(Ok(executed)) => json!({ "ended": executed }),
                Told::Ended(Err(error)) => json!({ "error": error.to_fault().to_json() }),
            })
        })
        .ask_with::<AnswerCall>("answer", answer, |waited| Payload::json(&waited))
        .ask::<Forget>("forget")
        .ask::<GetCodeUsage>("usage")
}

/// A run, as JSON has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    code: String,
    #[serde(default)]
    language: Language,
    #[serde(default)]
    args: Option<Value>,
    #[serde(default)]
    realm: Option<String>,
    #[serde(default)]
    fns: BTreeMap<String, Target>,
    #[serde(default)]
    calls: BTreeMap<String, Own>,
    #[serde(default)]
    limits: CodeBudget,
}

/// What stands behind a function.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Target {
    to: String,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    waits: bool,
}

/// A function that the one who asks has.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Own {
    #[serde(default)]
    waits: bool,
}

impl Wanted {
    fn execute(self, system: &ActorSystem) -> Result<Execute, Fault> {
        match self.calls.is_empty() {
            true => Ok(self.follow(system)?.execute),
            false => {
                let text = "`calls` come to one who follows the run: ask `follow`";
                Err(Fault::new(FaultCode::BadRequest, text))
            }
        }
    }

    fn follow(self, system: &ActorSystem) -> Result<FollowRun, Fault> {
        let execute = Execute {
            functions: given(self.fns, system)?,
            code: self.code,
            language: self.language,
            args: self.args,
            realm: self.realm,
            budget: self.limits,
        };
        let calls = self.calls.into_iter();
        let calls = calls.map(|(name, Own { waits })| FunctionName { name, waits });
        Ok(FollowRun {
            execute,
            calls: calls.collect(),
        })
    }
}

/// An answer to a call, as JSON has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    call: String,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    error: Option<String>,
}

impl Answered {
    fn answer(self) -> Result<AnswerCall, Fault> {
        let outcome = match (self.value, self.error) {
            (value, None) => Ok(value),
            (Value::Null, Some(error)) => Err(error),
            (_, Some(_)) => {
                let text = "an answer has a `value` or an `error`";
                return Err(Fault::new(FaultCode::BadRequest, text));
            }
        };
        let call = self.call;
        Ok(AnswerCall { call, outcome })
    }
}

/// Functions that ask exposed actors.
pub(crate) fn given(
    fns: BTreeMap<String, Target>,
    system: &ActorSystem,
) -> Result<Functions, Fault> {
    let mut functions = Functions::new();
    for (name, target) in fns {
        let to: Address = target.to.parse()?;
        let (system, kind) = (system.clone(), Arc::<str>::from(target.kind));
        let work = move |values: Vec<Value>| {
            let (system, to, kind) = (system.clone(), to.clone(), Arc::clone(&kind));
            async move {
                let value = values.into_iter().next().unwrap_or(Value::Null);
                let answer = ask(&system, &to, &kind, &value).await;
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

/// One who waits for one answer.
struct Waiting(Mutex<Option<oneshot::Sender<Result<Answer, Fault>>>>);

impl Calls for Waiting {
    fn answer(&self, _: u64, result: Result<Answer, Fault>) {
        if let Some(sender) = self.0.lock().take() {
            // Whoever waited may have gone.
            drop(sender.send(result));
        }
    }

    fn is_wanted(&self, _: u64) -> bool {
        let sender = self.0.lock();
        sender.as_ref().is_some_and(|sender| !sender.is_closed())
    }
}

/// Asks an exposed actor.
async fn ask(
    system: &ActorSystem,
    to: &Address,
    kind: &str,
    value: &Value,
) -> Result<Value, Fault> {
    let entry = system.entry(to, kind)?;
    let payload = match value {
        Value::Null => Payload::NONE,
        value => Payload::json(value)?,
    };
    let (sender, answer) = oneshot::channel();
    let waiting = Arc::new(Waiting(Mutex::new(Some(sender))));
    // Held until the answer is there: it is what takes the message back.
    let _ticket = match entry.call(&payload, 0, waiting) {
        Put::Done(done) => done?,
        Put::Waits(put) => put.await?,
    };
    let gone = || Fault::new(FaultCode::UnknownTarget, format!("{to} has ended"));
    match answer.await.map_err(|_| gone())?? {
        Answer::One(payload) => read(&payload),
        _ => {
            let text = format!("`{kind}` of {to} is a stream, which code cannot be given");
            Err(Fault::new(FaultCode::BadRequest, text))
        }
    }
}

/// An answer as a value: octets that are text are a text.
fn read(payload: &Payload) -> Result<Value, Fault> {
    if payload.content != Content::Octets {
        return payload.read();
    }
    match std::str::from_utf8(&payload.octets) {
        Ok(text) => Ok(Value::from(text)),
        Err(_) => {
            use base64::Engine as _;
            let octets = base64::engine::general_purpose::STANDARD.encode(&payload.octets);
            Ok(json!({ "base64": octets }))
        }
    }
}
