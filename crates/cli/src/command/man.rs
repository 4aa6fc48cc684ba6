//! `strowger man`: manual pages, for packagers of the program.

use std::path::PathBuf;

use clap::CommandFactory;

use super::Cli;
use crate::exit::{CliResult, Failure};
use crate::output::Output;

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// Directory to write the pages to, one per command.
    directory: PathBuf,
}

pub(crate) fn run(args: &ManArgs, output: &mut Output) -> CliResult {
    let directory = &args.directory;
    let failed = |error| Failure::file(directory, &error);
    std::fs::create_dir_all(directory).map_err(failed)?;
    // Without the commit, on which every page would otherwise depend.
    let command = Cli::command().long_version(env!("CARGO_PKG_VERSION"));
    clap_mangen::generate_to(command, directory).map_err(failed)?;
    output.line(format!(
        "created {}",
        directory.join("strowger.1").display()
    ))
}
