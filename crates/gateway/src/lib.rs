//! The endpoints of a node: framed connections, HTTP, MCP, and the control socket for local tools.
//!
//! A [`Gateway`] is a subtree of a running [`ActorSystem`](strowger::ActorSystem). Every client is
//! an actor with limits, and every method call is an actor below it, so a client that is slow,
//! silent or hostile harms only itself. [`Methods`] lists what clients can call; the control
//! methods (`ping`, `methods`, `whoami`, `ps`, `tree`, `top`, `inspect`, `trace`, `exposed`,
//! `kill`) are always included. An [`HttpDoor`] serves metrics and health to monitoring systems.
//! [`Mcp`] serves tools to agents over the Model Context Protocol.
//!
//! ```
//! use serde_json::json;
//! use strowger::ActorSystem;
//! use strowger_gateway::{Client, Gateway, Limits, Methods, Verb};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let socket = directory.path().join("control.sock");
//! let system = ActorSystem::new("node")?;
//! let greet = Verb::reads("greet");
//! let methods = Methods::new().register(greet, |_| async { Ok(json!("hello")) });
//! let gateway = Gateway::open(&system, &socket, Limits::default(), methods).await?;
//!
//! let mut client = Client::connect(gateway.path()).await?;
//! assert_eq!(client.call("greet", json!(null)).await?, "hello");
//! let control = client.call("inspect", json!({ "path": "/gateway/control" })).await?;
//! assert_eq!(control["state"], "running");
//! # system.shutdown(std::time::Duration::from_secs(5)).await;
//! # Ok(())
//! # }
//! ```
//!
//! The same connections carry messages to actors that were
//! [exported](strowger::ActorSystem::export), addressed by name. [`Doors`] opens more endpoints for
//! them: a Unix socket, TCP and WebSocket.
//!
//! Control endpoints are Unix sockets, so the crate builds on Unix only.
//!
//! # Wire protocol
//!
//! A connection carries frames in both directions; [`Frame`] and [`Kind`] define their fields and
//! kinds.
//!
//! ```text
//!  offset  0        4     5        6      8    12      16        20      24
//!          length   kind  content  flags  id   target  deadline  credit  payload
//!          u32      u8    u8       u16    u32  u32     u32 (ms)  u32     `length` bytes
//! ```
//!
//! All numbers are big-endian. The server begins with `hello`. A client sends a `name` frame to
//! bind a `target` number to the name of a method, or to an address and the name of a message. It
//! can then call the target by its number any number of times; the `id`s of its calls must
//! increase, starting from 1. A call is answered by one `done` or `error` frame. A listing or a
//! stream sends `item` frames before, one for each unit of credit that the client granted. An
//! `error` with id 0 concerns the connection, which closes after it. Faults are
//! `{"code", "message", "retryable"}`, with the codes of [`FaultCode`].

mod access;
mod client;
mod connection;
mod control;
mod doors;
mod frame;
mod gateway;
mod health;
mod http;
mod limits;
mod listener;
mod mcp;
mod method;
mod metric;
mod process;
mod relay;
mod snapshot;
mod unauthenticated;
mod web;

pub use access::{Audited, Caller, Right, Role, Subject, Token, TokenError, Verb};
pub use client::{Client, ClientError, Rows};
pub use doors::{Doors, DoorsSpec};
pub use frame::{Decoder, Frame, FrameError, FrameErrorKind, HEADER, Kind};
pub use gateway::{Gateway, OpenError};
pub use health::{Usage, Vitals};
pub use http::{HttpDoor, HttpLimits};
pub use limits::Limits;
pub use mcp::{
    Mcp, McpAnswer, McpCall, McpContent, McpEffect, McpError, McpHttp, McpLimits, McpTool,
    McpTools, Progress,
};
pub use method::{Answer, Methods, Stream};
pub use metric::{Exposition, Family, MetricKind, Recorder};
pub use relay::RelaySpec;
pub use strowger::{ContentType, Fault, FaultCode};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
