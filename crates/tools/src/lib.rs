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
//! use strowger_tools::{Files, FilesSpec, Read, Write};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), BoxError> {
//! # let folder = tempfile::tempdir()?;
//! let system = ActorSystem::new("office")?;
//! let files = system.spawn::<Files>("files", FilesSpec::new(folder.path()))?;
//! files.ask(Write::new("notes/today.txt", "call back")).await?.expect_err("no such folder");
//! files.ask(Write::new("today.txt", "call back")).await??;
//! assert_eq!(&files.ask(Read::new("today.txt")).await??[..], b"call back");
//!
//! let refused = files.ask(Read::new("../../etc/passwd")).await?;
//! assert_eq!(
//!     refused.expect_err("it is outside").to_string(),
//!     "`../../etc/passwd` leads outside the root (rule: outside)"
//! );
//! # Ok(())
//! # }
//! ```

mod code;
mod files;
mod program;
mod stream;

pub use code::{
    AnswerCall, Boxed, CallOutcome, Called, Code, CodeBudget, CodeError, CodeHost, CodeLimit,
    CodeLimits, CodeMessage, CodeRealm, CodeSpec, CodeStep, CodeUsage, CodeWatch, Execute,
    Executed, FollowRun, Forget, FunctionName, Functions, GetCodeUsage, Language, Level,
    LimitSetter, Line, PassedLimit, Sandbox, Thrown, Told, code_door,
};
#[doc(hidden)]
pub use code::{Ran, Sweep};
#[doc(hidden)]
pub use files::Beside;
pub use files::{
    Append, Change, Delete, Edit, Edited, Entry, EntryKind, FileError, FileLimits, Files,
    FilesMessage, FilesSpec, FilesWatch, Found, GetMedia, GetRoot, GetUsage, List, ListOrder,
    Listing, Make, Match, Media, Read, ReadLines, ReadMany, Rename, Root, Rule, Search, Skipped,
    SkippedPath, Stat, Tree, TreeCut, TreeEntry, Usage, VerbUsage, Write, WriteMode, file_uri,
    files_door, path_of_file_uri, shown_path,
};
pub use program::{
    ListPrograms, Perform, Program, ProgramArgs, ProgramError, ProgramInfo, ProgramMessage,
    ProgramState, Programs, ProgramsMessage, ProgramsSpec, ProgramsUsage, ProgramsWatch, Publish,
    Side, Withdraw, program_door, programs_door,
};
#[doc(hidden)]
pub use program::{Rest, Wake};
#[doc(hidden)]
pub use stream::Look;
pub use stream::{
    EndStream, FailStream, Follow, ListStreams, OpenStream, Piece, Put, StreamError, StreamInfo,
    StreamLimits, Streams, StreamsMessage, StreamsSpec, StreamsWatch, streams_door,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
