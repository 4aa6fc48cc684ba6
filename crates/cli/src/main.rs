//! The `strowger` binary: a node of supervised actors and PFCP sessions, and its tools.
//!
//! [`command`] holds one module for each verb; a verb takes its arguments and an
//! [`output::Output`], and ends with a [`exit::Failure`] or without one. What a failure prints and
//! which number the process ends with is decided here and nowhere else.

mod agent;
mod command;
mod component;
mod compose;
mod config;
mod conformance;
mod control;
mod exit;
mod file;
mod logbook;
mod output;

use std::process::ExitCode;

use clap::Parser;

use crate::command::Cli;
use crate::output::Output;

fn main() -> ExitCode {
    let cli = Cli::parse();
    output::log_to_stderr();
    let mut output = Output::stdout();
    let done = cli.run(&mut output).and_then(|()| output.flush());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
