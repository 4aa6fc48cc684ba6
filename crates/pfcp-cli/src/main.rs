//! The `strowger-pfcp` binary: PFCP on the command line, without a node.

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use strowger_pfcp_cli::output::{self, Output};
use strowger_pfcp_cli::{Command, completions};

/// Decode, compare, encode, replay and generate PFCP messages (N4, 3GPP TS 29.244).
#[derive(Debug, Parser)]
#[command(name = "strowger-pfcp", version, long_version = BUILD, propagate_version = true)]
#[command(after_help = EXAMPLES)]
#[command(arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: ProgramCommand,
}

#[derive(Debug, Subcommand)]
enum ProgramCommand {
    #[command(flatten)]
    Pfcp(Box<Command>),
    /// Generate a shell completion script.
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completions {
        /// Shell to generate the script for.
        shell: Shell,
    },
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  strowger-pfcp completions bash > /etc/bash_completion.d/strowger-pfcp
  strowger-pfcp completions zsh > ~/.zfunc/_strowger-pfcp
  strowger-pfcp completions fish > ~/.config/fish/completions/strowger-pfcp.fish";

const EXAMPLES: &str = "\
Exit codes:
  0         success
  1         a check failed, or a measurement found losses
  2         invalid arguments or input
  3         a file, port or peer is missing, or refused the request
  130, 143  terminated at once by a second SIGINT or SIGTERM

Environment:
  STROWGER_LOG  log filter for standard error: warn (default), info, strowger=debug
  NO_COLOR      disables colours if set; they are used on terminals only

`strowger pfcp` has the same commands, and those that ask a running node.";

/// The version; of a release, with the commit and its date, as `cargo xtask dist` sets it.
const BUILD: &str = match option_env!("STROWGER_BUILD") {
    Some(build) => build,
    None => env!("CARGO_PKG_VERSION"),
};

/// Returns the command line. Its help texts name this program in place of `strowger pfcp`.
fn command_line() -> clap::Command {
    Cli::command().mut_subcommands(|command| {
        let help = command.get_after_help().map(|help| {
            let text = help.to_string();
            text.replace("strowger pfcp ", "strowger-pfcp ")
        });
        match help {
            Some(help) => command.after_help(help),
            None => command,
        }
    })
}

fn main() -> ExitCode {
    let matches = command_line().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    output::log_to_stderr();
    let mut output = Output::stdout();
    let done = match cli.command {
        ProgramCommand::Pfcp(command) => command.run(&mut output),
        ProgramCommand::Completions { shell } => {
            completions::print(shell, &mut command_line(), &mut output)
        }
    };
    let done = done.and_then(|()| output.flush());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_this_program() {
        let mut command = command_line();
        command.clone().debug_assert();
        for command in command.get_subcommands_mut() {
            let help = command.render_long_help().to_string();
            assert!(help.contains("Examples:\n  strowger-pfcp "), "{help}");
        }
    }
}
