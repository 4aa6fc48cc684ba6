//! `strowger completions`: a completion script for the shell.

use clap::CommandFactory;
use clap_complete::Shell;
use strowger_pfcp_cli::completions;

use super::Cli;
use crate::exit::CliResult;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  strowger completions bash > /etc/bash_completion.d/strowger
  strowger completions zsh > ~/.zfunc/_strowger
  strowger completions fish > ~/.config/fish/completions/strowger.fish";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompletionsArgs {
    /// Shell to generate the script for.
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, output: &mut Output) -> CliResult {
    completions::print(args.shell, &mut Cli::command(), output)
}
