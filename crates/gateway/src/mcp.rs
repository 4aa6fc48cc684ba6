//! Tools for agents over the Model Context Protocol (MCP).
//!
//! The tools are registered in a [`ToolSet`]. Each call runs as an actor
//! of its own below `/mcp/calls`: it has a deadline, its panic is a fault of that call only, and it
//! ends when the agent cancels it or disconnects. An agent connects over a pair of streams, such as
//! standard input and output ([`McpServer::serve`]), or over HTTP
//! ([`HttpServer::serve_mcp`](crate::http::HttpServer::serve_mcp)).
//!
//! ```text
//! agent ──bytes───▶ protocol (rmcp) ──▶ tool by name ──▶ /mcp/calls/7 ──▶ actors that it asks
//!       ◀─progress─                  ◀──────────────────┘
//! ```

mod answer_limit;
mod arguments;
mod event_log;
mod http;
mod line;
mod server;
mod session;
mod tool;
mod tool_call;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;
use serde_json::{Value, json};
use strowger::{
    Actor, ActorSystem, ChildSpec, Context, Dynamic, DynamicRef, Fault, FaultCode, Shutdown,
    StartError, Strategy, Supervisor,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

use self::answer_limit::AnswerLimit;
pub(crate) use self::http::McpHttpService;
pub use self::http::McpHttpSpec;
use self::line::LineTransport;
use self::server::McpHandler;
pub use self::tool::{
    ProgressReporter, Tool, ToolContent, ToolEffect, ToolOutput, ToolRequest, ToolSet,
};
use self::tool_call::{PendingAnswer, ToolCall, ToolCallArgs};
use crate::access::{AuditLog, Caller};

/// Limits for all agents together.
///
/// ```
/// let mut limits = strowger_gateway::mcp::McpLimits::default();
/// limits.calls = 16;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpLimits {
    /// Maximum number of concurrent calls.
    pub calls: usize,
    /// Maximum duration of a call.
    pub deadline: Duration,
    /// Maximum number of sessions over HTTP. For another one, the session that has been idle for
    /// longest is closed.
    pub sessions: usize,
    /// Time after which an idle session over HTTP is closed.
    pub idle: Duration,
    /// Maximum size of a message over HTTP, in bytes.
    pub body: usize,
    /// Time limit for receiving a message over HTTP.
    pub time: Duration,
    /// Maximum length of a line over a pair of streams, in bytes with its terminator; at least
    /// 1024.
    pub line: usize,
    /// Maximum bytes of text in an answer; at least 4096. Clients refuse answers of more than about
    /// 25 000 tokens. Tools that list, read or search return pages; the rest of any other answer is
    /// kept for the tool `continue_answer`, up to 16 MiB for all agents.
    pub answer: usize,
}

impl Default for McpLimits {
    fn default() -> Self {
        Self {
            calls: 64,
            deadline: Duration::from_secs(60),
            sessions: 64,
            idle: Duration::from_secs(300),
            body: 4 << 20,
            time: Duration::from_secs(10),
            line: 16 << 20,
            answer: 80 << 10,
        }
    }
}

/// Advice on how to raise a limit of the endpoint.
fn raise_limit_hint(key: &str, value: &str) -> String {
    format!(
        "raise `{key}` in [mcp] of the node's configuration, or with --limit {key}={value} of \
         strowger mcp"
    )
}

/// The error returned by [`McpServer::serve`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpServeError {
    /// The agent did not complete the handshake of the protocol.
    #[error("MCP initialization failed: {0}")]
    Handshake(String),
    /// The output was closed before all answers were written.
    #[error("the output was closed before all answers were written: {0}")]
    Output(String),
    /// The task that serves the agent failed.
    #[error("MCP session failed: {0}")]
    Session(String),
}

/// The open MCP endpoint: the subtree `/mcp`. Clones refer to the same endpoint.
///
/// ```
/// use serde_json::json;
/// use strowger::ActorSystem;
/// use strowger_gateway::mcp::{McpLimits, McpServer, Tool, ToolEffect, ToolOutput, ToolSet};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new("node")?;
/// let number = json!({ "type": "object", "properties": { "number": { "type": "integer" } } });
/// let double = Tool::new("double", "Doubles a number.", number).with_effect(ToolEffect::Reads);
/// let tools = ToolSet::new("numbers", "1.0").register(double, |call| async move {
///     let number = call.arguments["number"].as_i64().unwrap_or(0);
///     Ok(ToolOutput::structured(json!({ "doubled": number * 2 })))
/// });
/// let mcp = McpServer::open(&system, tools, McpLimits::default()).await?;
/// let output = mcp.call("double", json!({ "number": 21 })).await?;
/// assert_eq!(output.structured, Some(json!({ "doubled": 42 })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct McpServer(Arc<McpInner>);

#[derive(Debug)]
struct McpInner {
    tools: ToolSet,
    limits: McpLimits,
    answer_limit: AnswerLimit,
    calls: DynamicRef<ToolCall>,
    /// The caller if no other is given: the process itself, or the process that started it.
    owner: Caller,
    /// The destination of audit records.
    audit: AuditLog,
    /// The number of the next call.
    next: AtomicU64,
    /// Ends the protocol's own tasks when the subtree ends.
    ended: CancellationToken,
}

/// The key of the subtree.
const KEY: &str = "mcp";

impl McpServer {
    /// Starts the subtree, without serving agents yet.
    ///
    /// # Errors
    /// Returns an error if the system is shutting down, or already has the subtree.
    pub async fn open(
        system: &ActorSystem,
        tools: ToolSet,
        limits: McpLimits,
    ) -> Result<Self, StartError> {
        let ended = CancellationToken::new();
        let answer_limit = AnswerLimit::new(limits.answer);
        let calls = Dynamic::<ToolCall>::new()
            .max_children(limits.calls)
            .shutdown(Shutdown::Graceful(Duration::from_millis(200)));
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(ChildSpec::dynamic("calls", calls))
            .child(ChildSpec::new::<SessionsGuard>("sessions", ended.clone()));
        let supervisor = system.supervise(KEY, supervisor).await?;
        let closed = || StartError::ParentEnding {
            path: supervisor.path(),
        };
        let calls = supervisor.any_child("calls").ok_or_else(closed)?;
        Ok(Self(Arc::new(McpInner {
            tools: answer_limit.register(tools),
            limits,
            answer_limit,
            calls: calls.dynamic().ok_or_else(closed)?,
            owner: Caller::owner(system, "stdio"),
            audit: AuditLog::new(system),
            next: AtomicU64::new(1),
            ended,
        })))
    }

    /// Returns the tools.
    #[must_use]
    pub fn tools(&self) -> &ToolSet {
        &self.0.tools
    }

    /// Returns the descriptions of the tools that a caller may call, with the limit on their
    /// answers, in the order of their names.
    pub fn describe_for(&self, caller: &Caller) -> impl Iterator<Item = Tool> {
        let tools = self.0.tools.list_for(caller);
        tools.map(|tool| self.0.answer_limit.describe(tool))
    }

    /// Serves one agent until it disconnects or the subtree ends.
    ///
    /// # Errors
    /// Returns an error if the agent does not complete the handshake, or the task that serves it
    /// fails.
    pub async fn serve<R, W>(&self, read: R, write: W) -> Result<(), McpServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let ended = self.0.ended.child_token();
        let owner = Some(self.0.owner.clone());
        let server = McpHandler::new(self.clone(), owner);
        let limits = &self.0.limits;
        // Each call has ended by its own deadline.
        let drain = limits.deadline + DRAIN_MARGIN;
        let (transport, writing) =
            LineTransport::new(read, write, limits.line, drain, ended.clone());
        let served = match server.serve_with_ct(transport, ended.clone()).await {
            Ok(running) => match running.waiting().await {
                Ok(_) => Ok(()),
                Err(error) => Err(McpServeError::Session(error.to_string())),
            },
            // An agent may leave before it has said anything.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                Ok(())
            }
            Err(error) => Err(McpServeError::Handshake(unmet(error))),
        };
        let written = tokio::select! {
            written = writing => written,
            // The node ends, whether or not the agent still reads.
            () = async { ended.cancelled().await; sleep(DRAIN_MARGIN).await } => return served,
        };
        match written {
            Ok(Ok(())) => served,
            Ok(Err(error)) => served.and_then(|()| Err(McpServeError::Output(error.to_string()))),
            Err(error) => served.and_then(|()| Err(McpServeError::Session(error.to_string()))),
        }
    }

    /// Calls a tool for the owner of the node, without progress reports. Dropping the future ends
    /// the call.
    ///
    /// # Errors
    /// Returns `unknown-target` if there is no such tool, `full` if too many calls are in progress,
    /// `deadline` if the call takes too long; else the fault of the tool.
    pub async fn call(&self, name: &str, arguments: Value) -> Result<ToolOutput, Fault> {
        let owner = &self.0.owner;
        self.call_for(owner, name, arguments, ProgressReporter::default())
            .await
    }

    /// Calls a tool for a caller, with progress reports.
    ///
    /// # Errors
    /// Returns `forbidden` if the caller may not call the tool; else the errors of
    /// [`McpServer::call`].
    pub async fn call_for(
        &self,
        caller: &Caller,
        name: &str,
        arguments: Value,
        progress: ProgressReporter,
    ) -> Result<ToolOutput, Fault> {
        self.run(caller, name, arguments, progress)?.await
    }

    /// Starts a call.
    fn run(
        &self,
        caller: &Caller,
        name: &str,
        arguments: Value,
        progress: ProgressReporter,
    ) -> Result<PendingAnswer, Fault> {
        let inner = &*self.0;
        let (tool, mut record) = inner.tools.begin(name, caller)?;
        let call = ToolRequest {
            arguments,
            progress,
            caller: caller.clone(),
            page_size: Some(inner.answer_limit.page_size()),
        };
        let (deadline, limit) = (inner.limits.deadline, inner.answer_limit.clone());
        let (args, answer) = ToolCallArgs::new(tool, call, deadline, limit);
        let key = inner.next.fetch_add(1, Ordering::Relaxed);
        match inner.calls.start_child(key, args) {
            Ok(actor) => Ok(PendingAnswer::new(actor, answer, record)),
            Err(error) => {
                if let Some(record) = &mut record {
                    record.close(Err(FaultCode::Full));
                }
                Err(start_fault(&error, inner.limits.calls))
            }
        }
    }
}

/// Describes a handshake that failed, without the message that it failed at.
fn unmet(error: ServerInitializeError) -> String {
    match error {
        ServerInitializeError::ExpectedInitializeRequest(_) => {
            "the first message must be an `initialize` request".to_owned()
        }
        error => error.to_string(),
    }
}

/// Time to write what remains when all calls have ended.
const DRAIN_MARGIN: Duration = Duration::from_secs(2);

/// Builds the fault for a call that could not be started.
fn start_fault(error: &StartError, calls: usize) -> Fault {
    if !matches!(error, StartError::TooManyChildren { .. }) {
        return Fault::new(
            FaultCode::Full,
            format!("the call was not started: {error}"),
        );
    }
    let text = format!(
        "the call was not started: {calls} of {calls} calls in progress (limit `calls`): wait for \
         one to end, or {}",
        raise_limit_hint("calls", "N")
    );
    let details = json!({ "reason": "calls", "most": calls, "used": calls, "calls": calls });
    Fault::new(FaultCode::Full, text).with_details(details)
}

/// An actor that ends the sessions together with the subtree.
struct SessionsGuard {
    _guard: DropGuard,
}

impl Actor for SessionsGuard {
    type Msg = Infallible;
    type Args = CancellationToken;
    type Error = Infallible;

    async fn pre_start(
        ended: CancellationToken,
        _: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        Ok(Self {
            _guard: ended.drop_guard(),
        })
    }

    async fn handle(&mut self, never: Infallible, _: &mut Context<Self>) -> Result<(), Infallible> {
        match never {}
    }
}
