//! One call of a tool: an actor that runs it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{Actor, ActorRef, Code, Context, Fault, MailboxSpec};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::tool::{McpAnswer, McpCall, Registered};

type Result<T = McpAnswer> = std::result::Result<T, Fault>;

/// What a call is made from; taken by its one incarnation.
#[derive(Clone)]
pub(super) struct CallArgs(Arc<Mutex<Option<Call>>>);

/// Tells a call to begin, and is all that it takes.
#[derive(Debug)]
pub(super) struct Run;

/// The call was begun before: it has one life.
#[derive(Debug, thiserror::Error)]
#[error("the call was begun before")]
pub(super) struct Begun;

pub(super) struct Call {
    tool: Arc<Registered>,
    call: Option<McpCall>,
    deadline: Duration,
    answer: Option<oneshot::Sender<Result>>,
}

impl CallArgs {
    pub(super) fn new(
        tool: Arc<Registered>,
        call: McpCall,
        deadline: Duration,
    ) -> (Self, oneshot::Receiver<Result>) {
        let (answer, answered) = oneshot::channel();
        let call = Call {
            tool,
            call: Some(call),
            deadline,
            answer: Some(answer),
        };
        (Self(Arc::new(Mutex::new(Some(call)))), answered)
    }
}

impl Actor for Call {
    type Msg = Run;
    type Args = CallArgs;
    type Error = Begun;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

    async fn pre_start(args: CallArgs, _: &mut Context<Self>) -> std::result::Result<Self, Begun> {
        args.0.lock().take().ok_or(Begun)
    }

    async fn handle(&mut self, Run: Run, cx: &mut Context<Self>) -> std::result::Result<(), Begun> {
        if let (Some(call), Some(answer)) = (self.call.take(), self.answer.take()) {
            let deadline = self.deadline;
            let done = timeout(deadline, self.tool.call(call)).await;
            let done = done.unwrap_or_else(|_| {
                let text = format!("{} was not done within {deadline:?}", self.tool.about.name);
                Err(Fault::new(Code::Deadline, text))
            });
            // Whoever asked may have gone.
            let _ = answer.send(done);
        }
        cx.stop();
        Ok(())
    }
}

/// One who waits for a call, which ends if nobody waits any more.
#[derive(Debug)]
pub(super) struct Waiting {
    actor: ActorRef<Run>,
    answer: oneshot::Receiver<Result>,
    answered: bool,
}

impl Waiting {
    /// Lets a call begin.
    pub(super) fn new(actor: ActorRef<Run>, answer: oneshot::Receiver<Result>) -> Self {
        // If it has ended already, the answer says so.
        let _ = actor.try_tell(Run);
        Self {
            actor,
            answer,
            answered: false,
        }
    }
}

impl Future for Waiting {
    type Output = Result;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Result> {
        let answer = ready!(Pin::new(&mut self.answer).poll(cx));
        self.answered = true;
        Poll::Ready(answer.unwrap_or_else(|_| {
            let text = format!("{} ended before it was done", self.actor.path());
            Err(Fault::new(Code::Failed, text))
        }))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.answered {
            self.actor.kill();
        }
    }
}
