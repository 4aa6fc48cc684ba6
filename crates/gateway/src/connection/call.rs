//! One call: an actor that runs a method and writes what it answers.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use strowger::{Actor, ActorSystem, Context};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use crate::fault::{Code, Fault};
use crate::frame::{Content, Frame, Kind};
use crate::method::{Answer, Methods};

/// What a call is made from.
#[derive(Clone)]
pub(super) struct CallArgs {
    pub(super) id: u32,
    pub(super) name: Arc<str>,
    pub(super) payload: Bytes,
    pub(super) content: Content,
    pub(super) methods: Arc<Methods>,
    pub(super) deadline: Duration,
    /// The longest payload.
    pub(super) frame: usize,
    /// How many rows the caller takes.
    pub(super) credit: Arc<Semaphore>,
    pub(super) out: mpsc::Sender<Frame>,
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
        if let Err(fault) = done {
            let error = Frame::new(Kind::Error, self.0.id).with_json(&fault.to_json());
            self.send(error).await;
        }
        cx.stop();
        Ok(())
    }
}

impl Call {
    async fn run(&self, system: ActorSystem) -> Result<(), Fault> {
        let args = &self.0;
        let params = match args.content {
            Content::None => Value::Null,
            Content::Json => serde_json::from_slice(&args.payload).map_err(|error| {
                let text = format!("parameters of {} are not JSON: {error}", args.name);
                Fault::new(Code::BadRequest, text)
            })?,
            Content::Text | Content::Octets => {
                let text = format!("parameters of {} must be JSON", args.name);
                return Err(Fault::new(Code::BadRequest, text));
            }
        };
        let done = Frame::new(Kind::Done, args.id);
        match args.methods.call(&args.name, system, params).await? {
            Answer::Value(value) => self.fit(done.with_json(&value)).await,
            Answer::Rows(rows) => {
                for row in rows {
                    if !self.item(&row).await? {
                        return Ok(());
                    }
                }
                self.fit(done).await
            }
            Answer::Stream(mut poll) => {
                while let Some(row) = poll_fn(&mut poll).await {
                    if !self.item(&row).await? {
                        return Ok(());
                    }
                }
                self.fit(done).await
            }
        }
    }

    /// Sends a row once the caller takes one; false if nobody does any more.
    async fn item(&self, row: &Value) -> Result<bool, Fault> {
        let item = Frame::new(Kind::Item, self.0.id).with_json(row);
        match self.0.credit.acquire().await {
            Ok(permit) => permit.forget(),
            // Never closed: the call ends before its credit.
            Err(_) => return Ok(false),
        }
        self.fit(item).await?;
        Ok(!self.0.out.is_closed())
    }

    /// Sends a frame unless the caller could not take it.
    async fn fit(&self, frame: Frame) -> Result<(), Fault> {
        let (have, limit) = (frame.payload.len(), self.0.frame);
        if have > limit {
            let name = &self.0.name;
            let text = format!("{name} answers with {have} octets, the limit is {limit}");
            return Err(Fault::new(Code::Failed, text));
        }
        self.send(frame).await;
        Ok(())
    }

    async fn send(&self, frame: Frame) {
        // The writer's end is the end of the connection, and so of this call.
        let _ = self.0.out.send(frame).await;
    }
}
