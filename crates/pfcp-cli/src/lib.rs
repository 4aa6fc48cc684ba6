//! The commands of `strowger-pfcp`, and what the command line of `strowger` shares with them.
//!
//! The commands work on captures and bytes, or speak PFCP with a peer; none needs a running node of
//! this product. The same commands are those of `strowger pfcp`, which adds the ones that ask a
//! node.
//!
//! ```
//! use strowger_pfcp_cli::hex;
//!
//! // What `strowger-pfcp decode --hex` accepts: spaces and colons may separate the bytes.
//! assert_eq!(hex::parse("20:01 00 0c")?, [0x20, 0x01, 0x00, 0x0c]);
//! # Ok::<(), hex::HexError>(())
//! ```

pub mod completions;
pub mod decode;
mod dictionary;
pub mod diff;
pub mod encode;
pub mod exit;
pub mod file;
pub mod hex;
pub mod latency;
pub mod load;
pub mod output;
pub mod problem;
mod profile;
pub mod replay;
pub mod robustness;
pub mod serve;
pub mod signals;
mod source;
pub mod time;

use clap::Subcommand;

use crate::exit::CliResult;
use crate::output::Output;

/// A command that needs no running node.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Decode the messages of a capture or of hex text.
    Decode(decode::DecodeArgs),
    /// Compare two messages or captures.
    Diff(diff::DiffArgs),
    /// Encode the output of `decode --json`.
    Encode(encode::EncodeArgs),
    /// Replay the requests of a capture against a live node and compare the responses.
    Replay(replay::ReplayArgs),
    /// Generate load on a node, as an SMF does, and measure latency.
    Load(load::LoadArgs),
    /// Run a UPF that rejects, delays, drops and restarts as scripted.
    Serve(serve::ServeArgs),
    /// Send malformed input to a node and check its responses against TS 29.244.
    Robustness(robustness::RobustnessArgs),
}

impl Command {
    /// Runs the command.
    ///
    /// # Errors
    /// Returns the failure that the process reports, with its exit status.
    pub fn run(&self, output: &mut Output) -> CliResult {
        match self {
            Self::Decode(args) => decode::run(args, output),
            Self::Diff(args) => diff::run(args, output),
            Self::Encode(args) => encode::run(args, output),
            Self::Replay(args) => replay::run(args, output),
            Self::Load(args) => load::run(args, output),
            Self::Serve(args) => serve::run(args, output),
            Self::Robustness(args) => robustness::run(args, output),
        }
    }
}
