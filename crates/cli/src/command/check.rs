//! `strowger check`: checks whether a configuration can be used.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::json;
use strowger_pfcp_node::{Durability, StoreConfig};

use crate::compose::{agents, components, endpoints};
use crate::config::Config;
use crate::exit::{CliResult, Failure};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  strowger check node.toml
  strowger init - | strowger check -

Loads the components and checks their imports against their grants, and reads the token files.

Exit codes:
  2  the configuration is invalid; standard error names the key and the fix
  3  a file is missing";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Configuration file (TOML); `-` reads standard input.
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CheckArgs, output: &mut Output) -> CliResult {
    let config = if args.file == Path::new("-") {
        let mut text = String::new();
        let read = std::io::stdin().lock().read_to_string(&mut text);
        read.map_err(|error| Failure::input(format!("standard input: {error}")))?;
        Config::parse(&text, "standard input")?
    } else {
        Config::read(&args.file)?.0
    };
    let components = components::check(&config)?;
    let tools = agents::check(&config.tools)?;
    endpoints::tokens(&config)?;
    let file = args.file.display().to_string();
    let listen = config.n4.listen.iter().map(ToString::to_string);
    let listen: Vec<String> = listen.collect();
    if args.json {
        return output.json(&json!({
            "file": file,
            "ok": true,
            "n4": listen,
            "components": components,
            "tools": tools,
        }));
    }
    let peers = config.n4.peers.iter().map(ToString::to_string);
    let peers: Vec<String> = peers.collect();
    let components = match components.as_slice() {
        [] => String::new(),
        names => format!("; components: {}", names.join(", ")),
    };
    let tools = match tools.as_slice() {
        [] => String::new(),
        names => format!("; allowed directories: {}", names.join(", ")),
    };
    output.line(format!(
        "{file}: valid; listens on {} for peers in {}; stores sessions in {}{components}{tools}",
        listen.join(", "),
        peers.join(", "),
        describe_store(&config.n4.store),
    ))
}

/// Describes where sessions are stored.
fn describe_store(store: &StoreConfig) -> String {
    match (&store.path, store.durability) {
        (None, _) => "memory".to_owned(),
        (Some(path), Durability::Process) => format!("{}", path.display()),
        (Some(path), Durability::Disk) => format!("{}, synced to disk", path.display()),
    }
}
