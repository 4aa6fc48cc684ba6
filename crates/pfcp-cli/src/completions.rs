//! Completion scripts for shells.

use clap_complete::Shell;

use crate::exit::CliResult;
use crate::output::Output;

/// Prints the script with which a shell completes the arguments of a program.
///
/// # Errors
/// Returns an error if the output cannot be written.
pub fn print(shell: Shell, command: &mut clap::Command, output: &mut Output) -> CliResult {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, command, name, &mut script);
    output.line(String::from_utf8_lossy(&script).trim_end())
}
