//! One run: whom it works for, and what ends it besides its own end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use strowger::{Reply, SendError, Source};

use super::error::{CodeError, CodeLimit};
use super::functions::Functions;
use super::json::read_json;
use super::message::{Executed, Level, Line, Told};
use super::sandbox::{Boxed, CallOutcome, CodeHost, CodeRealm, CodeStep};
use super::spec::CodeLimits;

/// How often a run that waits looks whether anybody still wants it.
const LOOK: Duration = Duration::from_millis(5);

/// Whom a run works for.
pub(crate) trait Patron: Send + Sync + 'static {
    /// Whether anybody still wants what it comes to.
    fn is_there(&self) -> bool;

    /// Takes a line that it wrote.
    fn print(&self, line: Line);

    /// Hands on what could not be handed on before.
    fn flush(&self) {}
}

/// Nobody: the work is the actor's own.
pub(crate) struct Own;

impl Patron for Own {
    fn is_there(&self) -> bool {
        true
    }

    fn print(&self, _: Line) {}
}

/// One who asked a code actor.
pub(super) struct Customer(Mutex<Way>);

/// How the customer hears of a run.
enum Way {
    /// In the end, of all.
    Reply {
        reply: Option<Reply<Result<Executed, CodeError>>>,
        output: Vec<Line>,
        /// Nobody waited from the beginning: it was told, not asked.
        told: bool,
    },
    /// At once, of each line.
    Source {
        /// Until all was told.
        source: Option<Source<Told>>,
        /// What the reader has no room for yet.
        waiting: VecDeque<Told>,
    },
}

impl Customer {
    pub(super) fn reply(reply: Reply<Result<Executed, CodeError>>) -> Arc<Self> {
        let told = !reply.is_wanted();
        Arc::new(Self(Mutex::new(Way::Reply {
            reply: Some(reply),
            output: Vec::new(),
            told,
        })))
    }

    pub(super) fn source(source: Source<Told>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Way::Source {
            source: Some(source),
            waiting: VecDeque::new(),
        })))
    }

    /// Says what a run came to. Who reads slowly is waited for, as long as a run may take.
    pub(super) async fn end(&self, outcome: Result<(Value, bool), CodeError>, patience: Duration) {
        let finish = |output| {
            outcome.map(|(value, fresh)| Executed {
                value,
                output,
                fresh,
            })
        };
        match &mut *self.0.lock() {
            Way::Reply { reply, output, .. } => {
                let output = std::mem::take(output);
                if let Some(reply) = reply.take() {
                    reply.send(finish(output));
                }
                return;
            }
            Way::Source { source, waiting } => {
                waiting.push_back(Told::Ended(finish(Vec::new())));
                flush(source, waiting);
            }
        }
        let looks = patience.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            let done = match &*self.0.lock() {
                Way::Source { source, waiting } => waiting.is_empty() || readers(source) == 0,
                Way::Reply { .. } => true,
            };
            if done {
                break;
            }
            tokio::time::sleep(LOOK).await;
            self.flush();
        }
        // Whoever has not read by now gets what was sent, and is told that it was not all.
        if let Way::Source { source, waiting } = &mut *self.0.lock()
            && waiting.is_empty()
            && let Some(source) = source.take()
        {
            source.finish();
        }
    }
}

impl Customer {
    /// Tells one who follows the run.
    pub(super) fn tell(&self, told: Told) {
        if let Way::Source { source, waiting } = &mut *self.0.lock() {
            waiting.push_back(told);
            flush(source, waiting);
        }
    }
}

impl Patron for Customer {
    fn is_there(&self) -> bool {
        match &*self.0.lock() {
            Way::Reply { reply, told, .. } => *told || reply.as_ref().is_some_and(Reply::is_wanted),
            Way::Source { source, .. } => readers(source) > 0,
        }
    }

    fn print(&self, line: Line) {
        if let Way::Reply { output, .. } = &mut *self.0.lock() {
            return output.push(line);
        }
        self.tell(Told::Line(line));
    }

    fn flush(&self) {
        if let Way::Source { source, waiting } = &mut *self.0.lock() {
            flush(source, waiting);
        }
    }
}

/// Comes back once nobody wants the run; hands on meanwhile what was written.
async fn left(patron: &dyn Patron) {
    loop {
        tokio::time::sleep(LOOK).await;
        patron.flush();
        if !patron.is_there() {
            return;
        }
    }
}

fn readers(source: &Option<Source<Told>>) -> usize {
    source.as_ref().map_or(0, |source| source.info().readers)
}

fn flush(source: &mut Option<Source<Told>>, waiting: &mut VecDeque<Told>) {
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

/// What a realm is given for a run.
struct Host {
    patron: Arc<dyn Patron>,
    functions: Functions,
}

impl CodeHost for Host {
    fn print(&mut self, level: Level, text: String) {
        self.patron.print(Line { level, text });
    }

    fn call(&mut self, function: usize, arguments: String) -> Boxed<'static, CallOutcome> {
        self.functions.call(function, &arguments)
    }

    fn is_wanted(&self) -> bool {
        self.patron.is_there()
    }
}

/// Does a step in a realm, for as long as it may take and somebody wants it.
pub(crate) async fn run(
    realm: &mut dyn CodeRealm,
    step: CodeStep<'_>,
    functions: &Functions,
    limits: &CodeLimits,
    patron: &Arc<dyn Patron>,
) -> Result<Option<String>, CodeError> {
    let names = functions.names();
    let host = Box::new(Host {
        patron: Arc::clone(patron),
        functions: functions.clone(),
    });
    let running = realm.run(step, &names, limits, host);
    tokio::select! {
        biased;
        outcome = running => outcome,
        () = left(&**patron) => Err(CodeError::Cancelled),
        () = tokio::time::sleep(limits.deadline) => Err(CodeError::Limit(CodeLimit::Deadline)),
    }
}

/// Reads what a step came to.
pub(crate) fn value(json: Option<String>) -> Result<Value, CodeError> {
    match json {
        None => Ok(Value::Null),
        Some(json) => read_json(&json).map_err(CodeError::Value),
    }
}
