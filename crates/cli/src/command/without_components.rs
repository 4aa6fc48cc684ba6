//! `strowger component` in a build without the feature `components`: an error with the remedy.

use std::ffi::OsString;

use clap::Subcommand;

use crate::exit::{CliResult, Failure};
use crate::missing::{self, COMPONENTS};
use crate::output::Output;

/// The description of the command in listings.
pub(super) const ABOUT: &str = "Create, build, sign, run and deploy WebAssembly components (needs \
                                feature `components`)";

/// The command with any arguments.
#[derive(Debug, Subcommand)]
#[command(after_help = missing::text(COMPONENTS))]
pub(crate) enum ComponentCommand {
    #[command(external_subcommand)]
    Any(Vec<OsString>),
}

pub(crate) fn run(
    ComponentCommand::Any(_arguments): &ComponentCommand,
    _: &mut Output,
) -> CliResult {
    Err(Failure::input(missing::text(COMPONENTS)))
}
