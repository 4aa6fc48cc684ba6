//! `strowger component inspect`: what a component wants, against what it is granted.

use std::path::PathBuf;

use serde_json::json;
use strowger_wasm::Caps;

use super::{Which, host, refused};
use crate::config::Config;
use crate::exit::{Done, Failure};
use crate::output::{Ink, Output, Table};

const EXAMPLES: &str = "\
Examples:
  strowger component inspect counter.wasm
  strowger component inspect counter.toml
  strowger component inspect counter.wasm --manifest strict.toml --json
  strowger component inspect counter.toml --config node.toml

Exit code 1: it imports what its manifest does not grant. Exit code 2: its manifest asks for more
than the node allows, or it is no component.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    which: Which,
    /// The configuration of the node that is to run it, which says what a manifest may ask for;
    /// without one, the defaults of a node.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Prints one object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> Done {
    let (octets, manifest) = args.which.read()?;
    let caps = match &args.config {
        Some(path) => Config::read(path)?.0.components.caps,
        None => Caps::default(),
    };
    let seen = host(caps)?.inspect(&octets, &manifest);
    let seen = seen.map_err(|error| refused(&args.which, &error))?;
    let denied = seen.imports.iter().filter(|(_, needs)| needs.is_some());
    let denied = denied.count();
    if args.json {
        let imports = seen.imports.iter().map(|(import, needs)| {
            json!({ "import": import, "granted": needs.is_none(), "needs": needs })
        });
        let grants = seen.grants.iter();
        let grants = grants.map(|(key, value)| json!({ "grant": key, "value": value }));
        output.json(&json!({
            "name": manifest.component.name,
            "sha256": seen.digest.to_string(),
            "signer": seen.signer.map(|signer| signer.to_string()),
            "octets": seen.octets,
            "engine": seen.engine,
            "waits": seen.waits,
            "grants": grants.collect::<Vec<_>>(),
            "imports": imports.collect::<Vec<_>>(),
            "exports": seen.exports,
        }))?;
    } else {
        output.line(format!("name    {}", manifest.component.name))?;
        output.line(format!("sha256  {}", seen.digest))?;
        if let Some(signer) = seen.signer {
            output.line(format!("signer  {signer}, checked"))?;
        }
        output.line(format!("octets  {}", seen.octets))?;
        output.line(format!("engine  {}", seen.engine))?;
        output.line(format!("exports {}", seen.exports.join(", ")))?;
        for (key, value) in &seen.grants {
            output.line(format!("grants  {key}: {value}"))?;
        }
        let mut table = Table::new(["IMPORT", "GRANTED", "NEEDS"]);
        for (import, needs) in &seen.imports {
            let granted = match needs {
                None => output.paint(Ink::Green, "yes"),
                Some(_) => output.paint(Ink::Red, "no"),
            };
            table.row([import.clone(), granted, needs.unwrap_or("-").to_owned()]);
        }
        if !seen.imports.is_empty() {
            table.print(output)?;
        }
    }
    match denied {
        0 => Ok(()),
        count => Err(Failure::found(format!("{count} imports are not granted"))
            .hint("a component that imports more than it is granted is not loaded")),
    }
}
