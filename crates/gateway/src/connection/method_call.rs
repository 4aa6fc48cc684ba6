//! The actor of one method call, which runs the method and writes its answer.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use strowger::{Actor, ActorSystem, ContentType, Context, Fault, FaultCode, Payload};
use tokio::time::timeout;

use super::outbox::Outbox;
use crate::access::{Caller, RowFilter};
use crate::method::{MethodOutput, MethodRequest, Methods};

/// The arguments of a call.
#[derive(Clone)]
pub(super) struct MethodCallArgs {
    pub(super) id: u32,
    pub(super) name: Arc<str>,
    pub(super) payload: Payload,
    pub(super) methods: Arc<Methods>,
    pub(super) caller: Caller,
    pub(super) deadline: Duration,
    /// `true` if the caller takes rows.
    pub(super) reads_rows: bool,
    pub(super) outbox: Arc<Outbox>,
}

/// The message that starts a call, its only one.
#[derive(Debug)]
pub(super) struct StartMethod;

pub(super) struct MethodCall(MethodCallArgs);

impl Actor for MethodCall {
    type Msg = StartMethod;
    type Args = MethodCallArgs;
    type Error = Infallible;

    async fn pre_start(args: MethodCallArgs, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(args))
    }

    async fn handle(
        &mut self,
        StartMethod: StartMethod,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        let deadline = self.0.deadline;
        let done = match timeout(deadline, self.run(cx.system())).await {
            Ok(done) => done,
            Err(_) => {
                let text = format!("{} did not reply within {deadline:?}", self.0.name);
                Err(Fault::new(FaultCode::Deadline, text))
            }
        };
        self.0.outbox.finish(self.0.id, done);
        cx.stop();
        Ok(())
    }
}

impl MethodCall {
    async fn run(&self, system: ActorSystem) -> Result<Payload, Fault> {
        let args = &self.0;
        let params = match args.payload.content {
            ContentType::None => Value::Null,
            ContentType::Json => serde_json::from_slice(&args.payload.bytes).map_err(|error| {
                let text = format!("parameters of {} are not JSON: {error}", args.name);
                Fault::new(FaultCode::BadRequest, text)
            })?,
            _ => {
                let text = format!("parameters of {} must be JSON", args.name);
                return Err(Fault::new(FaultCode::BadRequest, text));
            }
        };
        let request = MethodRequest {
            system,
            caller: args.caller.clone(),
            params,
        };
        let (answer, mut filter) = args.methods.call(&args.name, request).await?;
        let mut shows = |row: &Value| filter.as_mut().is_none_or(|filter| filter.shows(row));
        match answer {
            MethodOutput::Value(value) => return Payload::from_json(&value),
            // Without credit the listing would wait silently, while the caller expects a single
            // answer.
            MethodOutput::Rows(_) | MethodOutput::Stream(_) if !args.reads_rows => {
                return Err(stream_needs_credit(&args.name));
            }
            MethodOutput::Rows(rows) => {
                for row in rows {
                    if shows(&row) && !self.send_row(&row).await? {
                        break;
                    }
                }
            }
            MethodOutput::Stream(mut poll) => {
                while let Some(row) = poll_fn(&mut poll).await {
                    if shows(&row) && !self.send_row(&row).await? {
                        break;
                    }
                }
            }
        }
        filter.map_or(Ok(()), RowFilter::finish)?;
        Ok(Payload::EMPTY)
    }

    /// Sends a row once the caller grants credit. Returns `false` if the call has ended.
    async fn send_row(&self, row: &Value) -> Result<bool, Fault> {
        let Some(credit) = self.0.outbox.credit(self.0.id) else {
            return Ok(false);
        };
        match credit.acquire().await {
            Ok(permit) => permit.forget(),
            // Cannot happen: the semaphore is never closed.
            Err(_) => return Ok(false),
        }
        self.0
            .outbox
            .send_item(self.0.id, Payload::from_json(row)?)
            .await
    }
}

/// Builds the fault for an ask to a message or method that answers with a stream.
pub(super) fn stream_needs_credit(name: &str) -> Fault {
    let text =
        format!("{name} is a stream: read it with a call that grants credit, not with an ask");
    Fault::new(FaultCode::BadRequest, text)
}
