//! One call of a method: an actor that runs it and writes what it answers.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use strowger::{Actor, ActorSystem, Code, Content, Context, Fault, Payload};
use tokio::time::timeout;

use super::desk::Desk;
use crate::method::{Answer, Methods};

/// What a call is made from.
#[derive(Clone)]
pub(super) struct CallArgs {
    pub(super) id: u32,
    pub(super) name: Arc<str>,
    pub(super) payload: Payload,
    pub(super) methods: Arc<Methods>,
    pub(super) deadline: Duration,
    /// The caller takes rows.
    pub(super) reads: bool,
    pub(super) desk: Arc<Desk>,
}

/// Tells a call to begin, and is all that it takes.
#[derive(Debug)]
pub(super) struct Run;

pub(super) struct Call(CallArgs);

impl Actor for Call {
    type Msg = Run;
    type Args = CallArgs;
    type Error = Infallible;

    async fn pre_start(args: CallArgs, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(args))
    }

    async fn handle(&mut self, Run: Run, cx: &mut Context<Self>) -> Result<(), Infallible> {
        let deadline = self.0.deadline;
        let done = match timeout(deadline, self.run(cx.system())).await {
            Ok(done) => done,
            Err(_) => {
                let text = format!("{} has not answered within {deadline:?}", self.0.name);
                Err(Fault::new(Code::Deadline, text))
            }
        };
        self.0.desk.finish(self.0.id, done);
        cx.stop();
        Ok(())
    }
}

impl Call {
    async fn run(&self, system: ActorSystem) -> Result<Payload, Fault> {
        let args = &self.0;
        let params = match args.payload.content {
            Content::None => Value::Null,
            Content::Json => serde_json::from_slice(&args.payload.octets).map_err(|error| {
                let text = format!("parameters of {} are not JSON: {error}", args.name);
                Fault::new(Code::BadRequest, text)
            })?,
            _ => {
                let text = format!("parameters of {} must be JSON", args.name);
                return Err(Fault::new(Code::BadRequest, text));
            }
        };
        match args.methods.call(&args.name, system, params).await? {
            Answer::Value(value) => Payload::json(&value),
            // It would wait for credit in silence, though who asks expects one answer.
            Answer::Rows(_) | Answer::Stream(_) if !args.reads => Err(unasked(&args.name)),
            Answer::Rows(rows) => {
                for row in rows {
                    if !self.item(&row).await? {
                        break;
                    }
                }
                Ok(Payload::NONE)
            }
            Answer::Stream(mut poll) => {
                while let Some(row) = poll_fn(&mut poll).await {
                    if !self.item(&row).await? {
                        break;
                    }
                }
                Ok(Payload::NONE)
            }
        }
    }

    /// Sends a row once the caller takes one; false if nobody does any more.
    async fn item(&self, row: &Value) -> Result<bool, Fault> {
        let Some(credit) = self.0.desk.credit(self.0.id) else {
            return Ok(false);
        };
        match credit.acquire().await {
            Ok(permit) => permit.forget(),
            // Never closed: the call ends before its credit.
            Err(_) => return Ok(false),
        }
        self.0.desk.item(self.0.id, &Payload::json(row)?).await
    }
}

/// The fault of a question whose answer is a stream.
pub(super) fn unasked(name: &str) -> Fault {
    let text = format!(
        "{name} is a stream: whoever reads it gives credit with the call, and an ask gives none"
    );
    Fault::new(Code::BadRequest, text)
}
