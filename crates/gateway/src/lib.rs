//! The doors of a node: framed connections, and the control socket that carries everything local.
//!
//! A [`Gateway`] is a subtree of a running [`ActorSystem`](strowger::ActorSystem). Every client is
//! an actor with limits, every call an actor below it: a client that is slow, silent or hostile
//! harms itself alone. What can be called is a value, [`Methods`]; the methods of control (`ping`,
//! `methods`, `ps`, `tree`, `top`, `inspect`, `trace`, `exposed`, `kill`) are always there. An
//! [`HttpDoor`] is for those who watch: metrics and health. [`Mcp`] is for agents: tools over the
//! Model Context Protocol.
//!
//! ```
//! use serde_json::json;
//! use strowger::ActorSystem;
//! use strowger_gateway::{Client, Gateway, Limits, Methods};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let socket = directory.path().join("control.sock");
//! let system = ActorSystem::new("node")?;
//! let methods = Methods::new().register("greet", |_| async { Ok(json!("hello")) });
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
//! Actors are spoken to through the same connections, once they were
//! [exposed](strowger::ActorSystem::expose): by address and by name. [`Doors`] opens more of them:
//! a unix socket, TCP and WebSocket.
//!
//! The doors of control are unix sockets; elsewhere the crate has frames, faults and methods only.
//!
//! # On the wire
//!
//! A connection is a row of frames both ways; [`Frame`] and [`Kind`] are their fields and kinds.
//!
//! ```text
//!  offset  0        4     5        6      8    12      16        20      24
//!          length   kind  content  flags  id   target  deadline  credit  payload
//!          u32      u8    u8       u16    u32  u32     u32 (ms)  u32     `length` octets
//! ```
//!
//! All numbers are big-endian. The server begins with `hello`. A client binds a `target` to the
//! name of a method, or to an address and the name of a message, with a `name` frame, and then
//! calls it by number as often as it likes; the `id`s of its calls grow from 1. A call is answered
//! by one `done` or `error` frame; a listing or a stream sends `item` frames before, one for each
//! unit of credit that the client gave. An `error` with
//! id 0 is about the connection, which ends after it. Faults are `{"code", "message",
//! "retryable"}`, with the codes of [`Code`].

#[cfg(unix)]
mod client;
#[cfg(unix)]
mod connection;
#[cfg(unix)]
mod control;
#[cfg(unix)]
mod doors;
mod frame;
#[cfg(unix)]
mod gateway;
mod http;
mod limits;
#[cfg(unix)]
mod listener;
mod mcp;
mod method;
mod metric;
mod process;
mod reader;
mod relay;
mod secret;
mod stranger;
mod vital;
#[cfg(unix)]
mod web;

#[cfg(unix)]
pub use client::{Client, ClientError, Rows};
#[cfg(unix)]
pub use doors::{Doors, DoorsSpec};
pub use frame::{Decoder, Frame, FrameError, FrameErrorKind, HEADER, Kind};
#[cfg(unix)]
pub use gateway::{Gateway, OpenError};
pub use http::{HttpDoor, HttpError, HttpLimits};
pub use limits::Limits;
pub use mcp::{
    Mcp, McpAnswer, McpCall, McpContent, McpEffect, McpError, McpHttp, McpLimits, McpTool,
    McpTools, Progress,
};
pub use method::{Answer, Methods, Stream};
pub use metric::{Exposition, Family, Kind as MetricKind, Recorder};
pub use relay::RelaySpec;
pub use strowger::{Code, Content, Fault};
pub use vital::{Usage, Vitals};
