//! Tool actors: files, code and programs for agents and components, each confined to what it is
//! granted.
//!
//! A caller uses a tool by sending a message to an actor, so every tool has a bounded mailbox,
//! deadlines, a supervisor and stats of its own, and writes one line to the audit log for each
//! call. Nothing is granted by default: a [`FilesSpec`] names the one directory that a [`Files`]
//! actor reaches.
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
//! files.ask(WriteRequest::new("notes/today.txt", "call back")).await?.expect_err("no such folder");
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
