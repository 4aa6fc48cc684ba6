//! `strowger mcp` in a build without the feature `agents`: an error with the remedy.

use std::ffi::OsString;

use crate::exit::{CliResult, Failure};
use crate::missing::{self, AGENTS};
use crate::output::Output;

/// The description of the command in listings.
pub(super) const ABOUT: &str = "Serve tools to an AI agent over the Model Context Protocol (MCP) \
                                (needs feature `agents`)";

#[derive(Debug, clap::Args)]
#[command(after_help = missing::text(AGENTS))]
pub(crate) struct McpArgs {
    /// The arguments of the command, which are not examined.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<OsString>,
}

pub(crate) fn run(_: &McpArgs, _: &mut Output) -> CliResult {
    Err(Failure::input(missing::text(AGENTS)))
}
