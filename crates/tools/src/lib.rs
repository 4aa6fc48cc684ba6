//! Tools as supervised actors, for programs that let agents, components or other untrusted callers
//! work with files, run code and exchange streams.
//!
//! | module | actor | service |
//! |---|---|---|
//! | [`files`] | [`Files`] | reads, writes, lists and searches files below one directory |
//! | [`code`] | [`Code`] | runs untrusted JavaScript and TypeScript in a sandbox |
//! | [`program`] | [`Programs`] | publishes code that keeps state between messages |
//! | [`stream`] | [`Streams`] | passes text and bytes from one producer to many readers |
//!
//! A caller uses a tool by sending a request to its actor, so every tool has a bounded mailbox,
//! deadlines, a supervisor and stats of its own. It writes one line to the audit log
//! (`strowger::audit` in `tracing`) for each call. Nothing is granted by default: a [`FilesSpec`]
//! names the one directory that a [`Files`] actor reaches, and code reaches only the functions
//! that its request grants. Every limit has a default, and an error that reports an exceeded limit
//! names the limit, the use and the remedy.
//!
//! Callers outside the process send the same requests as JSON; see [`Files::export`],
//! [`Code::export`], [`Programs::export`] and [`Streams::export`].
//!
//! # Example
//!
//! ```
//! use strowger::{ActorSystem, BoxError};
//! use strowger_tools::files::{Files, FilesSpec, ReadRequest, WriteRequest};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! # let folder = tempfile::tempdir()?;
//! let system = ActorSystem::new("office")?;
//! let files = system.spawn::<Files>("files", FilesSpec::new(folder.path()))?;
//! files.ask(WriteRequest::new("notes/today.txt", "call back")).await?.expect_err("no folder");
//! files.ask(WriteRequest::new("today.txt", "call back")).await??;
//! assert_eq!(&files.ask(ReadRequest::new("today.txt")).await??[..], b"call back");
//!
//! let refused = files.ask(ReadRequest::new("../../etc/passwd")).await?;
//! assert_eq!(
//!     refused.expect_err("it is outside").to_string(),
//!     "`../../etc/passwd` leads outside the root (rule: outside)"
//! );
//! # Ok(())
//! # }
//! ```

pub mod code;
pub mod files;
pub mod program;
pub mod stream;

pub use code::{Code, CodeSpec};
pub use files::{Files, FilesSpec};
pub use program::{Programs, ProgramsSpec};
pub use stream::{Streams, StreamsSpec};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
