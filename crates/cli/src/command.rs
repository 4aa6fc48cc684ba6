//! The commands, one module each: arguments and implementation.

mod check;
mod completions;
#[cfg(feature = "components")]
mod component;
#[cfg(not(feature = "components"))]
#[path = "command/without_components.rs"]
mod component;
mod demo;
pub(crate) mod duration;
mod entity;
mod init;
mod man;
#[cfg(feature = "agents")]
mod mcp;
#[cfg(not(feature = "agents"))]
#[path = "command/without_agents.rs"]
mod mcp;
mod message;
mod observe;
pub(crate) mod pfcp;
mod run;
mod store;
mod top;

use clap::{Parser, Subcommand};

use crate::exit::CliResult;
use crate::output::Output;

const EXAMPLES: &str = "\
Exit codes:
  0         success
  1         a check failed, a measurement found losses, or an actor or component was not found
  2         invalid arguments, configuration or input
  3         a file, port or node is missing, or refused the request
  130, 143  terminated at once by a second SIGINT or SIGTERM

Environment:
  STROWGER_LOG  log filter for standard error: warn (default), info, strowger=debug
  NO_COLOR      disables colours if set; they are used on terminals only

Durations are written as 500ms, 1.5s, 2m or 1h; a plain number is in seconds.
With --json, listings print one object per line.";

/// The version; of a release, with the commit and its date. `cargo xtask dist` sets the variable: a
/// build script that asked git would rebuild this crate after every commit.
const BUILD: &str = match option_env!("STROWGER_BUILD") {
    Some(build) => build,
    None => env!("CARGO_PKG_VERSION"),
};

/// A runtime of supervised actors, with a PFCP (N4) node and tools for both.
#[derive(Debug, Parser)]
#[command(name = "strowger", version, long_version = BUILD, propagate_version = true)]
#[command(after_help = EXAMPLES)]
#[command(arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a demo: a node, and a simulated SMF that keeps it busy (start here).
    Demo(demo::DemoArgs),
    /// Run a node until it receives SIGINT or SIGTERM.
    Run(run::RunArgs),
    /// Validate a configuration file.
    Check(check::CheckArgs),
    /// Create a configuration file with all defaults, commented.
    Init(init::InitArgs),
    /// Show the actors of a running node as a tree.
    Tree(observe::TreeArgs),
    /// List the actors of a running node with their statistics.
    Ps(observe::PsArgs),
    /// Monitor the busiest actors of a running node, live.
    Top(top::TopArgs),
    /// Show details of one actor, such as its mailbox, restarts or PFCP session.
    Inspect(observe::InspectArgs),
    /// Trace messages and lifecycle events of selected actors.
    Trace(observe::TraceArgs),
    /// Print the log of a running node, filtered by actor.
    Logs(observe::LogsArgs),
    /// Kill an actor of a running node, or make it panic.
    Kill(observe::KillArgs),
    /// Send a message to an actor, without a reply.
    Tell(message::TellArgs),
    /// Send a request to an actor and print the reply.
    Ask(message::AskArgs),
    /// Subscribe to a topic or another stream, and print its items.
    Sub(message::SubArgs),
    #[command(about = mcp::ABOUT)]
    Mcp(mcp::McpArgs),
    /// Decode, encode, send and inspect PFCP messages and sessions.
    #[command(subcommand)]
    Pfcp(pfcp::PfcpCommand),
    #[command(subcommand, about = component::ABOUT)]
    Component(component::ComponentCommand),
    /// Check, repair, export, import and back up stores of sessions and of durable actors.
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// List and show the entities of a store of durable actors.
    #[command(subcommand)]
    Entity(entity::EntityCommand),
    /// Generate a shell completion script.
    Completions(completions::CompletionsArgs),
    /// Generate manual pages.
    #[command(hide = true)]
    Man(man::ManArgs),
}

impl Cli {
    /// Runs the chosen command.
    pub(crate) fn run(self, output: &mut Output) -> CliResult {
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
            Command::Entity(command) => entity::run(&command, output),
            Command::Completions(args) => completions::run(&args, output),
            Command::Man(args) => man::run(&args, output),
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
                let is_missing = help.contains("this program was built without");
                assert!(
                    is_missing || help.contains("Examples:"),
                    "`{path}` has no examples"
                );
            }
            for child in children.filter(|child| !child.is_hide_set()) {
                check(child, &format!("{path} {}", child.get_name()));
            }
        }
        check(&Cli::command(), "strowger");
    }

    /// Returns the commands of a page, both in its prose and in its fenced blocks.
    fn commands(page: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut prose = String::new();
        let mut is_fenced = false;
        for line in page.lines() {
            let inner = line.trim();
            if inner.starts_with("```") {
                is_fenced = !is_fenced;
            } else if is_fenced {
                let line = inner.strip_prefix("$ ").unwrap_or(inner);
                found.extend(
                    line.split(['|', ';', '&'])
                        .map(|part| part.trim().to_owned()),
                );
            } else {
                prose.push_str(if inner.is_empty() { "\n" } else { inner });
                prose.push(' ');
            }
        }
        for paragraph in prose.lines() {
            found.extend(paragraph.split('`').skip(1).step_by(2).map(str::to_owned));
        }
        found.retain(|command| command.starts_with("strowger "));
        found
    }

    /// Splits a command into words as a shell does, up to the first word that is for the shell.
    fn words(command: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for letter in command.chars() {
            match quote {
                Some(open) if open == letter => quote = None,
                Some(_) => words.last_mut().expect("never empty").push(letter),
                None => match letter {
                    '\'' | '"' => quote = Some(letter),
                    ' ' => words.push(String::new()),
                    '|' | '>' | '<' | '&' | ';' => break,
                    '#' if words.last().is_some_and(String::is_empty) => break,
                    _ => words.last_mut().expect("never empty").push(letter),
                },
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    /// Returns why a command of a page is invalid, if it is. Pages leave arguments out, or write
    /// `FILE` for one.
    fn wrong(command: &str) -> Option<String> {
        use clap::error::{ContextKind, ContextValue, ErrorKind};

        let error = Cli::try_parse_from(words(command)).err()?;
        // The error of an option without a value names the option.
        let is_placeholder = |value: &ContextValue| {
            let text = value.to_string();
            let mut letters = text.chars().filter(|letter| letter.is_alphabetic());
            text.is_empty() || text.contains(char::is_uppercase) && letters.all(char::is_uppercase)
        };
        match error.kind() {
            ErrorKind::InvalidSubcommand
            | ErrorKind::UnknownArgument
            | ErrorKind::ArgumentConflict
            | ErrorKind::TooManyValues => {}
            ErrorKind::ValueValidation | ErrorKind::InvalidValue => {
                let value = error.get(ContextKind::InvalidValue);
                if value.is_some_and(is_placeholder) {
                    return None;
                }
            }
            _ => return None,
        }
        Some(format!("`{command}`: {error}"))
    }

    #[test]
    fn documented_commands_exist() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = [
            "",
            "docs",
            "docs/guides",
            "docs/internals",
            "docs/reference",
            "docs/start",
            "docs/decisions",
            "packages/strowger",
        ];
        let pages = folders
            .iter()
            .flat_map(|folder| std::fs::read_dir(root.join(folder)).expect("the folder is here"));
        let pages = pages.map(|entry| entry.expect("it can be read").path());
        let (mut seen, mut found) = (0, Vec::new());
        for page in pages.filter(|path| path.extension().is_some_and(|end| end == "md")) {
            let text = std::fs::read_to_string(&page).expect("it is text");
            // A backslash at the end of a line continues the command.
            for command in commands(&text.replace("\\\n", " ")) {
                seen += 1;
                let wrong = wrong(&command);
                found.extend(wrong.map(|wrong| format!("{}: {wrong}", page.display())));
            }
        }
        assert!(found.is_empty(), "{}", found.join("\n"));
        assert!(seen > 100, "only {seen} commands");
        for bad in [
            "strowger prune",
            "strowger tree --colour",
            "strowger ask a b c",
            "strowger demo --rate fast",
        ] {
            assert!(wrong(bad).is_some(), "{bad}");
        }
    }
}
