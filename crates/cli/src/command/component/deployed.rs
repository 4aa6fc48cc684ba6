//! `strowger component list`, `deploy`, `upgrade`, `rollback` and `remove`: components of a running
//! node.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use strowger_gateway::{ClientError, FaultCode};

use super::follow::DeadlineArgs;
use crate::command::observe::printable;
use crate::control::{ControlArgs, block_on, failed};
use crate::exit::{CliResult, Failure};
use crate::output::{Output, Table, TextStyle};

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
  strowger component deploy large/large.toml --deadline 5m --progress

The node reads the files. With --expose those outside can speak to it: `strowger ask
components/counter '\"hello\"'`. What is in the configuration of a node starts again with the node;
what is deployed does not.

While a long component is compiled a terminal shows how far it is. At the deadline, and at ctrl-c,
what has not begun to start is cancelled, and nothing of it runs; what is starting goes on. The last
line says which of the two it is.

Exit code 1: it runs already, or does not start. Exit code 2: it cannot be loaded. Exit code 3: no
node is there, or it was cancelled, or it goes on.";

const UPGRADE: &str = "\
Examples:
  strowger component upgrade counter/counter.toml
  strowger component upgrade next.toml --name counter
  strowger component upgrade next.toml --name counter --grant

What waits is held meanwhile, and state is handed over if both versions have it. The new version has
to be well; if anything fails, the version before goes on.

What the new version may reach and use up more or less than the one that runs is shown. One that may
do more is refused without --grant, and what the node's configuration caps is capped with it, too.

Exit code 1: there is no such component, the new version failed, or it may do more. Exit code 2: it
cannot be loaded, is not signed as it must be, or asks for more than the node allows.";

const ROLLBACK: &str = "\
Examples:
  strowger component rollback counter

Puts the version before in the place of the one that runs, as an upgrade does: if it may do more,
it is refused without --grant.

Exit code 1: there is no such component, no version before, or it may do more.";

const REMOVE: &str = "\
Examples:
  strowger component remove counter

Ends it in order. Exit code 1: there is no such component.";

#[derive(Debug, clap::Args)]
#[command(after_help = LIST)]
pub(crate) struct ListArgs {
    /// Prints one JSON object for each component.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

/// The arguments that say how the outcome is printed, and which node is asked.
#[derive(Debug, clap::Args)]
struct OutcomeArgs {
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    deadline: DeadlineArgs,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = DEPLOY)]
pub(crate) struct DeployArgs {
    /// The manifest.
    manifest: PathBuf,
    /// A name to use instead of the one in the manifest.
    #[arg(long)]
    name: Option<String>,
    /// Lets clients outside the node reach it, at @(components/NAME).
    #[arg(long)]
    expose: bool,
    #[command(flatten)]
    outcome: OutcomeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = UPGRADE)]
pub(crate) struct UpgradeArgs {
    /// The manifest of the other version.
    manifest: PathBuf,
    /// The component, if the manifest has another name.
    #[arg(long)]
    name: Option<String>,
    /// Grants what the new version may do beyond the one that runs.
    #[arg(long)]
    grant: bool,
    #[command(flatten)]
    outcome: OutcomeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = ROLLBACK)]
pub(crate) struct RollbackArgs {
    /// The component.
    name: String,
    /// Grants what the previous version may do beyond the one that runs.
    #[arg(long)]
    grant: bool,
    #[command(flatten)]
    outcome: OutcomeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = REMOVE)]
pub(crate) struct RemoveArgs {
    /// The component.
    name: String,
    #[command(flatten)]
    outcome: OutcomeArgs,
}

pub(crate) fn list(args: &ListArgs, output: &mut Output) -> CliResult {
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
        return output.line(output.paint(TextStyle::Faint, "no components"));
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

pub(crate) fn deploy(args: &DeployArgs, output: &mut Output) -> CliResult {
    let params = json!({
        "manifest": place(&args.manifest)?,
        "name": args.name,
        "expose": args.expose,
    });
    let row = args.outcome.ask("component.deploy", params)?;
    args.outcome.show(&row, "runs", output)
}

pub(crate) fn upgrade(args: &UpgradeArgs, output: &mut Output) -> CliResult {
    let params = json!({
        "manifest": place(&args.manifest)?,
        "name": args.name,
        "grant": args.grant,
    });
    let row = args
        .outcome
        .replace_version("component.upgrade", params, output)?;
    args.outcome.show(&row, "was upgraded and runs", output)
}

pub(crate) fn rollback(args: &RollbackArgs, output: &mut Output) -> CliResult {
    let params = json!({ "name": args.name, "grant": args.grant });
    let row = args
        .outcome
        .replace_version("component.rollback", params, output)?;
    args.outcome.show(&row, "was rolled back and runs", output)
}

pub(crate) fn remove(args: &RemoveArgs, output: &mut Output) -> CliResult {
    let done = args
        .outcome
        .ask("component.remove", json!({ "name": args.name }))?;
    if args.outcome.json {
        return output.json(&done);
    }
    output.line(format!("{} is gone", text(&done, "name")))
}

impl OutcomeArgs {
    fn ask(&self, method: &str, params: Value) -> CliResult<Value> {
        self.call(method, params)?.map_err(|error| refused(&error))
    }

    /// Asks for another version. If that is refused, the differences are printed as well.
    fn replace_version(
        &self,
        method: &str,
        params: Value,
        output: &mut Output,
    ) -> CliResult<Value> {
        let error = match self.call(method, params)? {
            Ok(row) => return Ok(row),
            Err(error) => error,
        };
        if let (true, ClientError::Fault(fault)) = (self.json, &error)
            && let Some(changes) = fault.details.as_ref().and_then(|one| one.get("changes"))
        {
            output.json(&json!({ "refused": "wider", "changes": changes }))?;
        }
        Err(refused(&error))
    }

    fn call(&self, method: &str, params: Value) -> CliResult<Result<Value, ClientError>> {
        self.deadline.follow(&self.control, method, params)
    }

    fn show(&self, row: &Value, what: &str, output: &mut Output) -> CliResult {
        if self.json {
            return output.json(row);
        }
        let name = output.paint(TextStyle::Bold, text(row, "name"));
        let mut line = format!("{name} {what}, version {}", version(row));
        if !row["previous"].is_null() {
            line.push_str(&format!("; {} can come back", short(row, "previous")));
        }
        if !row["address"].is_null() {
            line.push_str(&format!("; outside it is {}", text(row, "address")));
        }
        output.line(line)?;
        let changes = row["changes"].as_array().into_iter().flatten();
        changes.into_iter().try_for_each(|change| {
            let side = |key: &str| match change[key].as_str() {
                Some(text) => printable(text),
                None => "nothing".to_owned(),
            };
            let mut kind = text(change, "change");
            if change["wider"] == true && kind != "widened" {
                kind.push_str(", wider");
            }
            let (key, before, after) = (text(change, "key"), side("before"), side("after"));
            output.line(format!("  {key}: {before} -> {after} ({kind})"))
        })
    }
}

/// Converts a refusal of the node to the failure that this program would report itself.
fn refused(error: &ClientError) -> Failure {
    let ClientError::Fault(fault) = error else {
        return failed(error);
    };
    let failure = match fault.code {
        FaultCode::Refused => Failure::check(&fault.message),
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

/// Returns the absolute path of a file, for another process.
fn place(path: &Path) -> CliResult<String> {
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

/// Returns the beginning of a hash, long enough to tell versions apart.
fn short(row: &Value, key: &str) -> String {
    text(row, key).chars().take(12).collect()
}
