//! A single run: the receiver of its output, and the reasons to end it early.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use strowger::{Reply, SendError, Source};

use super::error::{CodeError, CodeLimit};
use super::functions::GrantedFunctions;
use super::json::parse_json;
use super::message::{ConsoleLevel, ConsoleLine, RunEvent, RunResult};
use super::sandbox::{BoxFuture, CallOutcome, CodeHost, CodeRealm, CodeStep};
use super::spec::CodeLimits;

/// Interval at which a run that waits checks if its result is still wanted.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The party that a run works for.
pub(crate) trait RunOwner: Send + Sync + 'static {
    /// Returns `true` while the result is still wanted.
    fn is_wanted(&self) -> bool;

    /// Takes a line of output.
    fn print(&self, line: ConsoleLine);

    /// Forwards items that could not be sent before.
    fn flush(&self) {}
}

/// The actor itself, for its internal work; its result is always wanted.
pub(crate) struct InternalOwner;

impl RunOwner for InternalOwner {
    fn is_wanted(&self) -> bool {
        true
    }

    fn print(&self, _: ConsoleLine) {}
}

/// The caller of a code actor.
pub(super) struct RunCaller(Mutex<ReplyChannel>);

/// The means by which a caller receives the output and the result.
enum ReplyChannel {
    /// A single reply at the end.
    Reply {
        reply: Option<Reply<Result<RunResult, CodeError>>>,
        output: Vec<ConsoleLine>,
        /// `true` if the run was requested by a tell: there is no reply to wait for from the start.
        was_tell: bool,
    },
    /// A stream, with each line as it is written.
    Source {
        /// `Some` until everything was sent.
        source: Option<Source<RunEvent>>,
        /// Items that the reader has no room for yet.
        waiting: VecDeque<RunEvent>,
    },
}

impl RunCaller {
    pub(super) fn for_reply(reply: Reply<Result<RunResult, CodeError>>) -> Arc<Self> {
        let was_tell = !reply.is_waiting();
        Arc::new(Self(Mutex::new(ReplyChannel::Reply {
            reply: Some(reply),
            output: Vec::new(),
            was_tell,
        })))
    }

    pub(super) fn for_stream(source: Source<RunEvent>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(ReplyChannel::Source {
            source: Some(source),
            waiting: VecDeque::new(),
        })))
    }

    /// Sends the result of a run. Waits for a slow reader of a stream for at most `max_wait`.
    pub(super) async fn finish(
        &self,
        outcome: Result<(Value, bool), CodeError>,
        max_wait: Duration,
    ) {
        let finish = |output| {
            outcome.map(|(value, fresh)| RunResult {
                value,
                output,
                fresh,
            })
        };
        match &mut *self.0.lock() {
            ReplyChannel::Reply { reply, output, .. } => {
                let output = std::mem::take(output);
                if let Some(reply) = reply.take() {
                    reply.send(finish(output));
                }
                return;
            }
            ReplyChannel::Source { source, waiting } => {
                waiting.push_back(RunEvent::Ended(finish(Vec::new())));
                flush_events(source, waiting);
            }
        }
        let checks = max_wait.as_millis() / CHECK_INTERVAL.as_millis();
        for _ in 0..checks {
            let done = match &*self.0.lock() {
                ReplyChannel::Source { source, waiting } => {
                    waiting.is_empty() || reader_count(source) == 0
                }
                ReplyChannel::Reply { .. } => true,
            };
            if done {
                break;
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
            self.flush();
        }
        // A reader that is still behind gets what was sent. Its stream is not finished, so the
        // reader can tell that it is incomplete.
        if let ReplyChannel::Source { source, waiting } = &mut *self.0.lock()
            && waiting.is_empty()
            && let Some(source) = source.take()
        {
            source.finish();
        }
    }
}

impl RunCaller {
    /// Sends an item to the follower of the run.
    pub(super) fn send_event(&self, told: RunEvent) {
        if let ReplyChannel::Source { source, waiting } = &mut *self.0.lock() {
            waiting.push_back(told);
            flush_events(source, waiting);
        }
    }
}

impl RunOwner for RunCaller {
    fn is_wanted(&self) -> bool {
        match &*self.0.lock() {
            ReplyChannel::Reply {
                reply, was_tell, ..
            } => *was_tell || reply.as_ref().is_some_and(Reply::is_waiting),
            ReplyChannel::Source { source, .. } => reader_count(source) > 0,
        }
    }

    fn print(&self, line: ConsoleLine) {
        if let ReplyChannel::Reply { output, .. } = &mut *self.0.lock() {
            return output.push(line);
        }
        self.send_event(RunEvent::Line(line));
    }

    fn flush(&self) {
        if let ReplyChannel::Source { source, waiting } = &mut *self.0.lock() {
            flush_events(source, waiting);
        }
    }
}

/// Completes when the result is no longer wanted. Forwards pending output meanwhile.
async fn until_unwanted(owner: &dyn RunOwner) {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        owner.flush();
        if !owner.is_wanted() {
            return;
        }
    }
}

fn reader_count(source: &Option<Source<RunEvent>>) -> usize {
    source.as_ref().map_or(0, |source| source.info().readers)
}

fn flush_events(source: &mut Option<Source<RunEvent>>, waiting: &mut VecDeque<RunEvent>) {
    let Some(source) = source else { return };
    while let Some(told) = waiting.pop_front() {
        match source.try_send(told) {
            Ok(_) => {}
            Err(SendError::Full(told)) => {
                waiting.push_front(told);
                return;
            }
            // The actor has ended, and the stream with it.
            Err(_) => waiting.clear(),
        }
    }
}

/// The host side of a run, as its realm sees it.
struct RunHost {
    owner: Arc<dyn RunOwner>,
    functions: GrantedFunctions,
}

impl CodeHost for RunHost {
    fn print(&mut self, level: ConsoleLevel, text: String) {
        self.owner.print(ConsoleLine { level, text });
    }

    fn call(&mut self, function: usize, arguments: String) -> BoxFuture<'static, CallOutcome> {
        self.functions.call(function, &arguments)
    }

    fn is_wanted(&self) -> bool {
        self.owner.is_wanted()
    }
}

/// Performs a step in a realm. The step is cancelled when its result is no longer wanted, and fails
/// once the deadline has passed.
pub(crate) async fn run_step(
    realm: &mut dyn CodeRealm,
    step: CodeStep<'_>,
    functions: &GrantedFunctions,
    limits: &CodeLimits,
    owner: &Arc<dyn RunOwner>,
) -> Result<Option<String>, CodeError> {
    let names = functions.declarations();
    let host = Box::new(RunHost {
        owner: Arc::clone(owner),
        functions: functions.clone(),
    });
    let running = realm.run(step, &names, limits, host);
    tokio::select! {
        biased;
        outcome = running => outcome,
        () = until_unwanted(&**owner) => Err(CodeError::Cancelled),
        () = tokio::time::sleep(limits.deadline) => Err(limits.exceeded(CodeLimit::Deadline, None)),
    }
}

/// Parses the result of a step.
pub(crate) fn parse_value(json: Option<String>) -> Result<Value, CodeError> {
    match json {
        None => Ok(Value::Null),
        Some(json) => parse_json(&json).map_err(CodeError::InvalidValue),
    }
}
