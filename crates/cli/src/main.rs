//! The `strowger` binary: a node of supervised actors and PFCP sessions, and its tools.
//!
//! [`command`] has one module for each command. A command takes its arguments and an
//! [`output::Output`], and fails with an [`exit::Failure`]. Only this module prints failures and
//! chooses the exit status of the process.

#[cfg(feature = "agents")]
mod agent;
mod command;
#[cfg(feature = "components")]
mod component;
mod compose;
mod config;
mod conformance;
mod control;
mod log;
mod log_ring;
#[cfg(not(feature = "agents"))]
mod missing;

use std::process::ExitCode;

use clap::Parser;
// The commands of `pfcp` bring these along.
pub(crate) use strowger_pfcp_cli::{exit, file, output};

use crate::command::Cli;
use crate::output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    log::log_to_stderr();
    let mut output = Output::stdout();
    let done = cli.run(&mut output).and_then(|()| output.flush());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
