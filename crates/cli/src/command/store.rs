//! `strowger store`: stores that no process uses. A folder is either the session store of a node,
//! or a store of durable actors.

pub(crate) mod durable;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;
use strowger_pfcp_node::{StoreError, StoreImage};

use crate::compose::elements;
use crate::exit::{CliResult, Failure};
use crate::output::{Output, TextStyle};

const VERIFY: &str = "\
Examples:
  strowger store verify /var/lib/strowger/n4
  strowger store verify /var/lib/strowger/n4 --json

Reads a copy in the directory for temporary files and leaves the store unchanged. Stop the node
first.

Exit codes:
  1  data is damaged or missing";

const EXPORT: &str = "\
Examples:
  strowger store export /var/lib/strowger/n4 > sessions.jsonl
  strowger store export /var/lib/strowger/n4 | grep '\"seid\":42,'
  strowger store export /var/lib/bank > bank.jsonl

Of a session store: prints all associations, then all applications with packet flow descriptions,
then all sessions with their rules in hex and decoded. Damaged records are skipped; `strowger store
verify` reports them. Stop the node first.

Of a store of durable actors: prints the version of the format, then each entity and its rows, for
`strowger store import`. Damaged entities are left out and named on standard error.

Exit codes:
  1  damaged entities were left out";

#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Verify a session store: is all acknowledged data stored and undamaged?
    Verify(StoreVerifyArgs),
    /// Export a store as JSON, one object per line.
    Export(StoreExportArgs),
    /// Check a store of durable actors for damage and loss.
    Check(durable::StoreCheckArgs),
    /// Repair a store of durable actors: quarantine what is damaged, keep the rest.
    Repair(durable::StoreRepairArgs),
    /// Import an export into a store of durable actors.
    Import(durable::StoreImportArgs),
    /// Copy a store of durable actors.
    Backup(durable::StoreBackupArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = VERIFY)]
pub(crate) struct StoreVerifyArgs {
    /// Directory of the store.
    path: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = EXPORT)]
pub(crate) struct StoreExportArgs {
    /// Directory of the store.
    path: PathBuf,
}

pub(crate) fn run(command: &StoreCommand, output: &mut Output) -> CliResult {
    match command {
        StoreCommand::Verify(args) => verify(args, output),
        StoreCommand::Export(args) if durable::is_store(&args.path) => {
            durable::export(&args.path, output)
        }
        StoreCommand::Export(args) => export(args, output),
        StoreCommand::Check(args) => durable::check(args, output),
        StoreCommand::Repair(args) => durable::repair(args, output),
        StoreCommand::Import(args) => durable::import(args, output),
        StoreCommand::Backup(args) => durable::backup(args, output),
    }
}

fn read(path: &Path) -> CliResult<StoreImage> {
    StoreImage::read(path).map_err(|error| {
        let text = error.to_string();
        match error {
            StoreError::Locked { .. } => Failure::outside(text).hint(
                "stop the node; `strowger pfcp sessions` lists the sessions of a running one",
            ),
            StoreError::NotAStore { .. } => Failure::input(text),
            StoreError::Newer { .. } => Failure::input(text).hint("upgrade strowger"),
            _ => Failure::outside(text),
        }
    })
}

fn verify(args: &StoreVerifyArgs, output: &mut Output) -> CliResult {
    if durable::is_store(&args.path) {
        let text = format!("{}: is a store of durable actors", args.path.display());
        return Err(Failure::input(text).hint("use `strowger store check`"));
    }
    let image = read(&args.path)?;
    let lost = image.loss.as_ref().map(ToString::to_string);
    if args.json {
        output.json(&json!({
            "format": image.format,
            "recovery": image.recovery,
            "group": image.group,
            "associations": image.associations.len(),
            "sessions": image.sessions.len(),
            "applications": image.applications.len(),
            "answers": image.answers,
            "damaged": image.damaged,
            "lost": lost,
        }))?;
    } else {
        output.line(format!(
            "format {}, group {}, Recovery Time Stamp {}",
            image.format, image.group, image.recovery
        ))?;
        output.line(format!(
            "{} associations, {} sessions, {} applications, {} answers",
            image.associations.len(),
            image.sessions.len(),
            image.applications.len(),
            image.answers
        ))?;
    }
    match (lost, image.damaged) {
        (Some(lost), _) => Err(Failure::check(lost)
            .hint("the next start recovers the rest and changes the Recovery Time Stamp")),
        (None, 0) if args.json => Ok(()),
        (None, 0) => output.line(output.paint(TextStyle::Green, "no damage found")),
        (None, damaged) => Err(Failure::check(format!(
            "{damaged} damaged records, all recoverable from copies"
        ))
        .hint("the next start rewrites them; no data is lost")),
    }
}

fn export(args: &StoreExportArgs, output: &mut Output) -> CliResult {
    let image = read(&args.path)?;
    for association in &image.associations {
        output.json(&json!({
            "kind": "association",
            "node": association.node,
            "peer": association.peer,
            "recovery": association.recovery,
        }))?;
    }
    for one in &image.applications {
        output.json(&json!({
            "kind": "application",
            "application": one.application,
            "contents": one.contents,
        }))?;
    }
    for session in &image.sessions {
        let hex: String = session
            .rules
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        output.json(&json!({
            "kind": "session",
            "seid": session.seid.0,
            "peer_seid": session.peer_seid.0,
            "node": session.node,
            "peer": session.peer,
            "octets": hex,
            "rules": elements(session.seid, &session.rules),
        }))?;
    }
    Ok(())
}
