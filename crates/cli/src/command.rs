//! The verbs: one module each, with its arguments and what it does.

mod check;
mod completions;
mod component;
mod demo;
mod init;
mod latency;
mod mcp;
mod message;
mod observe;
pub(crate) mod pfcp;
mod run;
mod signals;
pub(crate) mod span;
mod store;
mod top;

use clap::{Parser, Subcommand};

use crate::exit::Done;
use crate::output::Output;

const EXAMPLES: &str = "\
Exit codes:
  0  done
  1  the command ran, and what it checked or measured does not hold
  2  arguments, configuration or input that cannot be understood
  3  something outside is missing or refuses: a file, a port, a node

Environment:
  STROWGER_LOG  what is logged to standard error: warn (default), info, strowger=debug
  NO_COLOR      when set, no colours; there are none off a terminal

Every listing takes --json: one object on each line.";

/// Runs supervised actors and PFCP sessions on one tree, and speaks to them.
#[derive(Debug, Parser)]
#[command(name = "strowger", version, propagate_version = true, after_help = EXAMPLES)]
#[command(arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a node and an SMF that keeps it busy: the place to begin.
    Demo(demo::Args),
    /// Runs a node until it is told to end.
    Run(run::Args),
    /// Says whether a configuration can be used.
    Check(check::Args),
    /// Writes a configuration to begin with.
    Init(init::Args),
    /// Shows the actors of a running node as a tree.
    Tree(observe::TreeArgs),
    /// Lists the actors of a running node with their figures.
    Ps(observe::PsArgs),
    /// Shows the busiest actors of a running node, once a second.
    Top(top::Args),
    /// Shows one actor of a running node, and the session that it is.
    Inspect(observe::InspectArgs),
    /// Tells what single actors of a running node do, as they do it.
    Trace(observe::TraceArgs),
    /// Shows what a running node has logged, by actor.
    Logs(observe::LogsArgs),
    /// Ends an actor of a running node, or makes it panic.
    Kill(observe::KillArgs),
    /// Tells an actor of a running node.
    Tell(message::TellArgs),
    /// Asks an actor of a running node, and prints its answer.
    Ask(message::AskArgs),
    /// Reads a stream of a running node, such as a topic.
    Sub(message::SubArgs),
    /// Gives an agent tools, over the Model Context Protocol.
    Mcp(mcp::Args),
    /// Reads, writes and sends PFCP messages.
    #[command(subcommand)]
    Pfcp(pfcp::Command),
    /// Writes, builds, looks at and runs WebAssembly components.
    #[command(subcommand)]
    Component(component::Command),
    /// Looks at a store that no node uses.
    #[command(subcommand)]
    Store(store::Command),
    /// Prints what a shell needs to complete commands.
    Completions(completions::Args),
}

impl Cli {
    /// Does what the command line says.
    pub(crate) fn run(self, output: &mut Output) -> Done {
        match self.command {
            Command::Demo(args) => demo::run(&args, output),
            Command::Run(args) => run::run(&args, output),
            Command::Check(args) => check::run(&args, output),
            Command::Init(args) => init::run(&args, output),
            Command::Tree(args) => observe::tree(&args, output),
            Command::Ps(args) => observe::ps(&args, output),
            Command::Top(args) => top::run(&args, output),
            Command::Inspect(args) => observe::inspect(&args, output),
            Command::Trace(args) => observe::trace(&args, output),
            Command::Logs(args) => observe::logs(&args, output),
            Command::Kill(args) => observe::kill(&args, output),
            Command::Tell(args) => message::tell(&args, output),
            Command::Ask(args) => message::ask(&args, output),
            Command::Sub(args) => message::sub(&args, output),
            Command::Mcp(args) => mcp::run(&args, output),
            Command::Pfcp(command) => pfcp::run(command, output),
            Command::Component(command) => component::run(&command, output),
            Command::Store(command) => store::run(&command, output),
            Command::Completions(args) => completions::run(&args, output),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_has_examples() {
        fn check(command: &clap::Command, path: &str) {
            let mut children = command.get_subcommands().peekable();
            if children.peek().is_none() {
                let help = command.clone().render_long_help().to_string();
                assert!(help.contains("Examples:"), "`{path}` has no examples");
            }
            for child in children {
                check(child, &format!("{path} {}", child.get_name()));
            }
        }
        check(&Cli::command(), "strowger");
    }
}
