//! The door for agents: tools over the Model Context Protocol.
//!
//! Which tools there are is a value, [`McpTools`]; this door knows none by name. Each call runs as
//! an actor of its own below `/mcp/calls`: it has a deadline, its panic is a fault of the one call,
//! and it ends when the agent cancels, or leaves. An agent comes over a pair of streams, as from
//! standard input ([`Mcp::serve`]), or over HTTP ([`HttpDoor::offer`](crate::HttpDoor::offer)).
//!
//! ```text
//! agent ──octets──▶ protocol (rmcp) ──▶ tool by name ──▶ /mcp/calls/7 ──▶ whatever it asks
//!       ◀─progress─                  ◀──────────────────┘
//! ```

mod call;
mod http;
mod line;
mod server;
mod session;
mod tool;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rmcp::ServiceExt as _;
use serde_json::{Value, json};
use strowger::{
    Actor, ActorSystem, ChildSpec, Code, Context, Dynamic, DynamicRef, Fault, Shutdown, StartError,
    Strategy, Supervisor,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::call::{Call, CallArgs, Waiting};
pub use self::http::McpHttp;
pub(crate) use self::http::{Opened, PATH, bearer};
use self::line::Lines;
use self::server::Server;
pub use self::tool::{McpAnswer, McpCall, McpContent, McpEffect, McpTool, McpTools, Progress};

/// What all agents together may take.
///
/// ```
/// let mut limits = strowger_gateway::McpLimits::default();
/// limits.calls = 16;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpLimits {
    /// The most calls at a time.
    pub calls: usize,
    /// The longest that a call may take.
    pub deadline: Duration,
    /// The most agents that have a session over HTTP. Where there are so many, the one that has
    /// asked for nothing the longest makes room for the next.
    pub sessions: usize,
    /// How long such an agent may be silent.
    pub idle: Duration,
    /// The longest message of an agent over HTTP, in octets.
    pub body: usize,
    /// How long it may take over sending one.
    pub time: Duration,
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
        }
    }
}

/// Why an agent is not served any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The agent did not begin as the protocol says.
    #[error("the agent did not begin as it should: {0}")]
    Handshake(String),
    /// What serves it failed.
    #[error("the agent is not served any more: {0}")]
    Ended(String),
}

/// The open door: the subtree `/mcp`. A clone is the same.
///
/// ```
/// use serde_json::json;
/// use strowger::ActorSystem;
/// use strowger_gateway::{Mcp, McpAnswer, McpEffect, McpLimits, McpTool, McpTools};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new("node")?;
/// let number = json!({ "type": "object", "properties": { "number": { "type": "integer" } } });
/// let double = McpTool::new("double", "Doubles a number.", number).with_effect(McpEffect::Reads);
/// let tools = McpTools::new("numbers", "1.0").register(double, |call| async move {
///     let number = call.arguments["number"].as_i64().unwrap_or(0);
///     Ok(McpAnswer::of(json!({ "doubled": number * 2 })))
/// });
/// let mcp = Mcp::open(&system, tools, McpLimits::default()).await?;
/// let answer = mcp.call("double", json!({ "number": 21 })).await?;
/// assert_eq!(answer.structured, Some(json!({ "doubled": 42 })));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Mcp(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tools: McpTools,
    limits: McpLimits,
    calls: DynamicRef<Call>,
    /// The number of the next call.
    next: AtomicU64,
    /// Ends what the protocol's own tasks do, when the subtree ends.
    ended: CancellationToken,
}

/// The key of the subtree.
const KEY: &str = "mcp";

impl Mcp {
    /// Starts the subtree; nobody is served yet.
    ///
    /// # Errors
    /// When the system is shutting down, or has the subtree already.
    pub async fn open(
        system: &ActorSystem,
        tools: McpTools,
        limits: McpLimits,
    ) -> Result<Self, StartError> {
        let ended = CancellationToken::new();
        let calls = Dynamic::<Call>::new()
            .max_children(limits.calls)
            .shutdown(Shutdown::Graceful(Duration::from_millis(200)));
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .child(ChildSpec::dynamic("calls", calls))
            .child(ChildSpec::new::<Keeper>("sessions", ended.clone()));
        let supervisor = system.supervise(KEY, supervisor).await?;
        let closed = || StartError::Closed {
            path: supervisor.path(),
        };
        let calls = supervisor.any_child("calls").ok_or_else(closed)?;
        Ok(Self(Arc::new(Inner {
            tools,
            limits,
            calls: calls.dynamic().ok_or_else(closed)?,
            next: AtomicU64::new(1),
            ended,
        })))
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> &McpTools {
        &self.0.tools
    }

    /// Serves one agent until it leaves, or the subtree ends.
    ///
    /// # Errors
    /// When it does not begin as the protocol says.
    pub async fn serve<R, W>(&self, read: R, write: W) -> Result<(), McpError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let ended = self.0.ended.child_token();
        let server = Server(self.clone());
        let running = server.serve_with_ct((Lines::new(read), write), ended).await;
        let running = running.map_err(|error| McpError::Handshake(error.to_string()))?;
        match running.waiting().await {
            Ok(_) => Ok(()),
            Err(error) => Err(McpError::Ended(error.to_string())),
        }
    }

    /// Calls a tool, as an agent does that wants to hear of no progress. Dropping the future ends
    /// the call.
    ///
    /// # Errors
    /// `unknown-target` when there is no such tool, `full` when there are as many calls as may be,
    /// `deadline` when it took too long; else what the tool says.
    pub async fn call(&self, name: &str, arguments: Value) -> Result<McpAnswer, Fault> {
        self.call_with(name, arguments, Progress::default()).await
    }

    /// Calls a tool, and hears of its progress.
    ///
    /// # Errors
    /// As [`Mcp::call`].
    pub async fn call_with(
        &self,
        name: &str,
        arguments: Value,
        progress: Progress,
    ) -> Result<McpAnswer, Fault> {
        self.run(name, arguments, progress)?.await
    }

    /// Starts a call.
    fn run(&self, name: &str, arguments: Value, progress: Progress) -> Result<Waiting, Fault> {
        let inner = &*self.0;
        let unknown = || inner.tools.unknown(name);
        let tool = inner.tools.find(name).ok_or_else(unknown)?;
        let call = McpCall {
            arguments,
            progress,
        };
        let deadline = inner.limits.deadline;
        let (args, answer) = CallArgs::new(tool, call, deadline);
        let key = inner.next.fetch_add(1, Ordering::Relaxed);
        match inner.calls.start_child(key, args) {
            Ok(actor) => Ok(Waiting::new(actor, answer)),
            Err(error) => {
                let fault = Fault::new(Code::Full, format!("the call was not begun: {error}"));
                Err(fault.with_details(json!({ "calls": inner.limits.calls })))
            }
        }
    }
}

/// Lets sessions go when the subtree does.
struct Keeper {
    _guard: DropGuard,
}

impl Actor for Keeper {
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
