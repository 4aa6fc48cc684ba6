//! Access to a Strowger node from outside: sockets, WebSocket, HTTP for monitoring, and MCP for
//! agents.
//!
//! The crate is for programs that run an [`ActorSystem`](strowger::ActorSystem) and let other
//! processes inspect it, call its methods or talk to its actors, and for the [`client`] side of
//! the same protocol.
//!
//! | module | purpose |
//! |---|---|
//! | root | [`Gateway`]: the control socket of the node's owner |
//! | [`listeners`] | Unix socket, TCP and WebSocket for clients that talk to exported actors |
//! | [`method`] | methods that clients call by name |
//! | [`client`], [`frame`] | a client of both, and the frames that it exchanges with the node |
//! | [`access`] | tokens, roles, and the decision if a caller may use an operation |
//! | [`http`], [`metrics`], [`health`] | metrics and health checks for monitoring systems |
//! | [`mcp`] | tools for agents, over the Model Context Protocol |
//! | [`relay`] | topics as streams for clients |
//!
//! Each endpoint is a subtree of the system. Every client is an actor with limits and every method
//! call an actor below it, so a slow, silent or hostile client harms only itself. The control
//! methods (`ping`, `methods`, `whoami`, `ps`, `tree`, `top`, `inspect`, `trace`, `exposed`,
//! `kill`) are always served on the control socket.
//!
//! ```
//! use serde_json::json;
//! use strowger::ActorSystem;
//! use strowger_gateway::access::Operation;
//! use strowger_gateway::client::Client;
//! use strowger_gateway::method::Methods;
//! use strowger_gateway::{Gateway, Limits};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let socket = directory.path().join("control.sock");
//! let system = ActorSystem::new("node")?;
//! let greet = Operation::reads("greet");
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
//! Endpoints of the owner are Unix sockets, so the crate builds on Unix only.
//!
//! The feature `mcp`, which is on by default, adds the module [`mcp`] and its dependencies.
//!
//! # Wire protocol
//!
//! A connection carries frames in both directions; [`Frame`](frame::Frame) and
//! [`FrameKind`](frame::FrameKind) define their fields and kinds.
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
//! `{"code", "message", "retryable"}`, with the codes of [`FaultCode`](strowger::FaultCode).

pub mod access;
pub mod client;
mod connection;
mod control;
pub mod frame;
mod gateway;
pub mod health;
pub mod http;
mod limits;
mod listener;
pub mod listeners;
#[cfg(feature = "mcp")]
pub mod mcp;
#[cfg(not(feature = "mcp"))]
#[path = "without_mcp.rs"]
mod mcp;
pub mod method;
pub mod metrics;
mod process;
pub mod relay;
mod snapshot;
mod unauthenticated;
mod websocket;

pub use gateway::{Gateway, OpenError};
pub use limits::Limits;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
