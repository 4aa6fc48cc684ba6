//! The actor of one tool call.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use strowger::{Actor, ActorRef, Context, Fault, FaultCode, MailboxSpec};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::answer_limit::AnswerLimit;
use super::raise_limit_hint;
use super::tool::{RegisteredTool, ToolOutput, ToolRequest, close};
use crate::access::AuditGuard;

type ToolResult = Result<ToolOutput, Fault>;

/// The arguments of a call, taken by its only incarnation.
#[derive(Clone)]
pub(super) struct ToolCallArgs(Arc<Mutex<Option<ToolCall>>>);

/// The message that starts a call, its only one.
#[derive(Debug)]
pub(super) struct StartTool;

/// The error of a second incarnation: a call is never restarted.
#[derive(Debug, thiserror::Error)]
#[error("the call was begun before")]
pub(super) struct AlreadyStarted;

pub(super) struct ToolCall {
    tool: Arc<RegisteredTool>,
    call: Option<ToolRequest>,
    deadline: Duration,
    limit: AnswerLimit,
    answer: Option<oneshot::Sender<ToolResult>>,
}

impl ToolCallArgs {
    pub(super) fn new(
        tool: Arc<RegisteredTool>,
        call: ToolRequest,
        deadline: Duration,
        limit: AnswerLimit,
    ) -> (Self, oneshot::Receiver<ToolResult>) {
        let (answer, answered) = oneshot::channel();
        let call = ToolCall {
            tool,
            call: Some(call),
            deadline,
            limit,
            answer: Some(answer),
        };
        (Self(Arc::new(Mutex::new(Some(call)))), answered)
    }
}

impl Actor for ToolCall {
    type Msg = StartTool;
    type Args = ToolCallArgs;
    type Error = AlreadyStarted;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

    async fn pre_start(args: ToolCallArgs, _: &mut Context<Self>) -> Result<Self, AlreadyStarted> {
        args.0.lock().take().ok_or(AlreadyStarted)
    }

    async fn handle(
        &mut self,
        StartTool: StartTool,
        cx: &mut Context<Self>,
    ) -> Result<(), AlreadyStarted> {
        if let (Some(call), Some(answer)) = (self.call.take(), self.answer.take()) {
            let (deadline, caller) = (self.deadline, call.caller.clone());
            let done = timeout(deadline, self.tool.call(call)).await;
            let mut done =
                done.unwrap_or_else(|_| Err(deadline_fault(&self.tool.definition.name, deadline)));
            self.limit.apply(&mut done, &caller);
            // The caller may not wait any more.
            let _ = answer.send(done);
        }
        cx.stop();
        Ok(())
    }
}

/// Builds the fault for a call whose deadline passed.
fn deadline_fault(name: &str, deadline: Duration) -> Fault {
    let text = format!(
        "{name} was cancelled after {deadline:?} (limit `deadline`): request less at a time, or \
         {}",
        raise_limit_hint("deadline", "TIME")
    );
    let most = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    Fault::new(FaultCode::Deadline, text)
        .with_details(json!({ "reason": "deadline", "most": most }))
}

/// The answer to a call as a future. Dropping it ends the call.
#[derive(Debug)]
pub(super) struct PendingAnswer {
    actor: ActorRef<StartTool>,
    answer: oneshot::Receiver<ToolResult>,
    answered: bool,
    record: Option<AuditGuard>,
}

impl PendingAnswer {
    /// Starts the call.
    pub(super) fn new(
        actor: ActorRef<StartTool>,
        answer: oneshot::Receiver<ToolResult>,
        record: Option<AuditGuard>,
    ) -> Self {
        // If the actor has ended already, the answer reports it.
        let _ = actor.try_tell(StartTool);
        Self {
            actor,
            answer,
            answered: false,
            record,
        }
    }
}

impl Future for PendingAnswer {
    type Output = ToolResult;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<ToolResult> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        self.answered = true;
        let answer = answer.unwrap_or_else(|_| {
            let text = format!("{} exited before it completed", self.actor.path());
            Err(Fault::new(FaultCode::Failed, text))
        });
        if let Some(mut record) = self.record.take() {
            close(&mut record, &answer);
        }
        Poll::Ready(answer)
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        if !self.answered {
            self.actor.kill();
        }
    }
}
