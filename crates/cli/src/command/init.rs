//! `strowger init`: a configuration to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::exit::{CliResult, Failure};
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  strowger init
  strowger init /etc/strowger/node.toml
  strowger init - | grep -A2 listen";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct InitArgs {
    /// File to create; `-` writes to standard output.
    #[arg(default_value = "node.toml")]
    file: PathBuf,
    /// Overwrite an existing file.
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &InitArgs, output: &mut Output) -> CliResult {
    let text = Config::example();
    if args.file == Path::new("-") {
        return output.line(text.trim_end());
    }
    let mut options = OpenOptions::new();
    options.write(true);
    if args.force {
        options.create(true).truncate(true);
    } else {
        options.create_new(true);
    }
    let written = options
        .open(&args.file)
        .and_then(|mut file| file.write_all(text.as_bytes()));
    let file = args.file.display();
    match written {
        Ok(()) => output.line(format!(
            "created {file}; start the node with `strowger run --config {file}`"
        )),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let failure = Failure::outside(format!("{file}: already exists"));
            Err(failure.hint("choose another name, or overwrite it with --force"))
        }
        Err(error) => Err(Failure::outside(format!("{file}: {error}"))),
    }
}
