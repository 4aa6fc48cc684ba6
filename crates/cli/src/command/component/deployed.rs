//! `strowger component list`, `deploy`, `upgrade`, `rollback`, `remove`: on a running node.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use strowger_gateway::{ClientError, Code};

use crate::command::observe::printable;
use crate::control::{ControlArgs, block_on, failed};
use crate::exit::{Done, Failure};
use crate::output::{Ink, Output, Table};

const LIST: &str = "\
Examples:
  strowger component list
  strowger component list --json | jq -r 'select(.state == \"quarantine\") | .fault'

Calls are the messages that it handled, of which it refused some; a fault ends a life. One in
quarantine failed too often, or stayed beyond its share of a processor: deploy it again, or another
version of it. One whose calls are long runs on guest threads, behind all that is native; one that
has used more than its share is throttled.";

const DEPLOY: &str = "\
Examples:
  strowger component deploy counter/counter.toml
  strowger component deploy counter/counter.toml --name counter-2 --expose

The node reads the files. With --expose those outside can speak to it: `strowger ask
components/counter '\"hello\"'`. What is in the configuration of a node starts again with the node;
what is deployed does not.

Exit code 1: it runs already, or does not start. Exit code 2: it cannot be loaded.";

const UPGRADE: &str = "\
Examples:
  strowger component upgrade counter/counter.toml
  strowger component upgrade next.toml --name counter

What waits is held meanwhile, and state is handed over if both versions have it. The new version has
to be well; if anything fails, the version before goes on.

Exit code 1: there is no such component, or the new version failed.";

const ROLLBACK: &str = "\
Examples:
  strowger component rollback counter

Puts the version before in the place of the one that runs, as an upgrade does.

Exit code 1: there is no such component, or no version before.";

const REMOVE: &str = "\
Examples:
  strowger component remove counter

Ends it in order. Exit code 1: there is no such component.";

#[derive(Debug, clap::Args)]
#[command(after_help = LIST)]
pub(crate) struct ListArgs {
    /// Prints one object for each.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

/// How what was done is told, and by whom.
#[derive(Debug, clap::Args)]
struct Told {
    /// Prints one object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = DEPLOY)]
pub(crate) struct DeployArgs {
    /// The manifest.
    manifest: PathBuf,
    /// A name in place of that of the manifest.
    #[arg(long)]
    name: Option<String>,
    /// Lets those outside speak to it, at @(components/NAME).
    #[arg(long)]
    expose: bool,
    #[command(flatten)]
    told: Told,
}

#[derive(Debug, clap::Args)]
#[command(after_help = UPGRADE)]
pub(crate) struct UpgradeArgs {
    /// The manifest of the other version.
    manifest: PathBuf,
    /// The component, if the manifest has another name.
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    told: Told,
}

#[derive(Debug, clap::Args)]
#[command(after_help = ROLLBACK)]
pub(crate) struct RollbackArgs {
    /// The component.
    name: String,
    #[command(flatten)]
    told: Told,
}

#[derive(Debug, clap::Args)]
#[command(after_help = REMOVE)]
pub(crate) struct RemoveArgs {
    /// The component.
    name: String,
    #[command(flatten)]
    told: Told,
}

pub(crate) fn list(args: &ListArgs, output: &mut Output) -> Done {
    let rows = block_on(async {
        let mut client = args.control.connect().await?;
        let rows = client.rows("component.list", Value::Null).await;
        let mut rows = rows.map_err(|error| failed(&error))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().await.map_err(|error| failed(&error))? {
            all.push(row);
        }
        Ok(all)
    })?;
    if args.json {
        return rows.iter().try_for_each(|row| output.json(row));
    }
    if rows.is_empty() {
        return output.line(output.paint(Ink::Faint, "no components"));
    }
    let heads = [
        "name",
        "state",
        "version",
        "calls",
        "refused",
        "faults",
        "lives",
        "waiting",
        "memory",
        "cpu",
        "runs on",
        "throttled",
        "address",
    ];
    let mut table = Table::new(heads);
    for row in &rows {
        let number = |key: &str| row[key].to_string();
        table.row([
            text(row, "name"),
            text(row, "state"),
            version(row),
            number("calls"),
            number("refused"),
            number("faults"),
            number("lives"),
            number("waiting"),
            format!("{} KiB", row["memory"].as_u64().unwrap_or(0) / 1024),
            format!("{:.1} s", row["cpu_ms"].as_f64().unwrap_or(0.0) / 1e3),
            match row["heavy"].as_bool() {
                Some(true) => "guest threads".to_owned(),
                _ => "workers".to_owned(),
            },
            number("throttled"),
            text(row, "address"),
        ]);
    }
    table.print(output)
}

pub(crate) fn deploy(args: &DeployArgs, output: &mut Output) -> Done {
    let params = json!({
        "manifest": place(&args.manifest)?,
        "name": args.name,
        "expose": args.expose,
    });
    let row = args.told.ask("component.deploy", params)?;
    args.told.show(&row, "runs", output)
}

pub(crate) fn upgrade(args: &UpgradeArgs, output: &mut Output) -> Done {
    let params = json!({ "manifest": place(&args.manifest)?, "name": args.name });
    let row = args.told.ask("component.upgrade", params)?;
    args.told.show(&row, "was upgraded and runs", output)
}

pub(crate) fn rollback(args: &RollbackArgs, output: &mut Output) -> Done {
    let row = args
        .told
        .ask("component.rollback", json!({ "name": args.name }))?;
    args.told.show(&row, "was rolled back and runs", output)
}

pub(crate) fn remove(args: &RemoveArgs, output: &mut Output) -> Done {
    let done = args
        .told
        .ask("component.remove", json!({ "name": args.name }))?;
    if args.told.json {
        return output.json(&done);
    }
    output.line(format!("{} is gone", text(&done, "name")))
}

impl Told {
    fn ask(&self, method: &str, params: Value) -> Done<Value> {
        block_on(async {
            let mut client = self.control.connect().await?;
            let called = client.call(method, params).await;
            called.map_err(|error| refused(&error))
        })
    }

    fn show(&self, row: &Value, what: &str, output: &mut Output) -> Done {
        if self.json {
            return output.json(row);
        }
        let name = output.paint(Ink::Bold, text(row, "name"));
        let mut line = format!("{name} {what}, version {}", version(row));
        if !row["previous"].is_null() {
            line.push_str(&format!("; {} can come back", short(row, "previous")));
        }
        if !row["address"].is_null() {
            line.push_str(&format!("; outside it is {}", text(row, "address")));
        }
        output.line(line)
    }
}

/// What the node made of it, as it would be said here.
fn refused(error: &ClientError) -> Failure {
    let ClientError::Fault(fault) = error else {
        return failed(error);
    };
    let failure = match fault.code {
        Code::Refused => Failure::found(&fault.message),
        _ => failed(error),
    };
    let hint = fault
        .details
        .as_ref()
        .and_then(|details| details["hint"].as_str());
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Where a file is, for another process.
fn place(path: &Path) -> Done<String> {
    let whole = std::fs::canonicalize(path).map_err(|error| Failure::file(path, &error))?;
    let text = whole.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::input(format!("{}: the path is no text", path.display())))
}

fn text(row: &Value, key: &str) -> String {
    row[key].as_str().map_or_else(|| "-".to_owned(), printable)
}

fn version(row: &Value) -> String {
    short(row, "sha256")
}

/// The beginning of a hash, enough to tell versions apart.
fn short(row: &Value, key: &str) -> String {
    text(row, key).chars().take(12).collect()
}
