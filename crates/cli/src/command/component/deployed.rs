//! `strowger component list`, `deploy`, `upgrade`, `rollback` and `remove`: components of a running
//! node.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use strowger::FaultCode;
use strowger_gateway::client::ClientError;

use super::follow::DeadlineArgs;
use crate::command::observe::printable;
use crate::control::{ControlArgs, block_on, client_failure};
use crate::exit::{CliResult, Failure};
use crate::output::{Output, Table, TextStyle};

const LIST: &str = "\
Examples:
  strowger component list
  strowger component list --json | jq -r 'select(.state == \"quarantine\") | .fault'

Calls are the messages handled, including refused ones; each fault ends an incarnation. A component
in quarantine failed too often or stayed over its CPU share; deploy it or another version again. A
component with long calls runs on guest threads, with lower priority than native actors; one that
exceeded its CPU share is throttled.";

const DEPLOY: &str = "\
Examples:
  strowger component deploy counter/counter.toml
  strowger component deploy counter/counter.toml --name counter-2 --expose
  strowger component deploy large/large.toml --deadline 5m --progress

The node reads the files. With --expose, clients outside the node can send messages to the
component, such as `strowger ask components/counter '\"hello\"'`. A deployed component does not
survive a restart of the node; list it in the node's configuration to keep it.

At --deadline or on Ctrl-C, a component that is not starting yet is cancelled and never runs; one
that is starting continues. The last line says which of the two happened.

Exit codes:
  1  the component is running already, or failed to start
  2  the component cannot be loaded
  3  no node is running, or the deadline expired";

const UPGRADE: &str = "\
Examples:
  strowger component upgrade counter/counter.toml
  strowger component upgrade next.toml --name counter
  strowger component upgrade next.toml --name counter --grant

Messages wait during the upgrade, and state is handed over if both versions support it. If the new
version fails to start or is not healthy, the running version continues.

Changes in capabilities and limits are printed. An upgrade that extends them is refused without
--grant; the caps of the node's configuration apply in any case.

Exit codes:
  1  no such component, the new version failed, or it needs --grant
  2  the component cannot be loaded, exceeds the node's caps, or is not signed as required";

const ROLLBACK: &str = "\
Examples:
  strowger component rollback counter

Works like an upgrade to the previous version, which is refused without --grant if that version has
more capabilities or higher limits.

Exit codes:
  1  no such component, no previous version, or it needs --grant";

const REMOVE: &str = "\
Examples:
  strowger component remove counter

Stops the component in order, after the message that it is handling.

Exit codes:
  1  no such component";

#[derive(Debug, clap::Args)]
#[command(after_help = LIST)]
pub(crate) struct ListArgs {
    /// Print JSON, one object per component.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

/// The arguments that say how the outcome is printed, and which node is asked.
#[derive(Debug, clap::Args)]
struct OutcomeArgs {
    /// Print JSON.
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
    /// Manifest of the component.
    manifest: PathBuf,
    /// Name of the component on the node [default: the name in the manifest].
    #[arg(long)]
    name: Option<String>,
    /// Expose the component to clients outside the node, at @(components/NAME).
    #[arg(long)]
    expose: bool,
    #[command(flatten)]
    outcome: OutcomeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = UPGRADE)]
pub(crate) struct UpgradeArgs {
    /// Manifest of the new version.
    manifest: PathBuf,
    /// Name of the running component [default: the name in the manifest].
    #[arg(long)]
    name: Option<String>,
    /// Accept capabilities and limits beyond those of the running version.
    #[arg(long)]
    grant: bool,
    #[command(flatten)]
    outcome: OutcomeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = ROLLBACK)]
pub(crate) struct RollbackArgs {
    /// Name of the component.
    name: String,
    /// Accept capabilities and limits beyond those of the running version.
    #[arg(long)]
    grant: bool,
    #[command(flatten)]
    outcome: OutcomeArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = REMOVE)]
pub(crate) struct RemoveArgs {
    /// Name of the component.
    name: String,
    #[command(flatten)]
    outcome: OutcomeArgs,
}

pub(crate) fn list(args: &ListArgs, output: &mut Output) -> CliResult {
    let rows = block_on(async {
        let mut client = args.control.connect().await?;
        let rows = client.rows("component.list", Value::Null).await;
        let mut rows = rows.map_err(|error| client_failure(&error))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().await.map_err(|error| client_failure(&error))? {
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
        "starts",
        "waiting",
        "memory",
        "cpu time",
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
        "manifest": absolute_path(&args.manifest)?,
        "name": args.name,
        "expose": args.expose,
    });
    let row = args.outcome.ask("component.deploy", params)?;
    args.outcome.show(&row, "deployed", output)
}

pub(crate) fn upgrade(args: &UpgradeArgs, output: &mut Output) -> CliResult {
    let params = json!({
        "manifest": absolute_path(&args.manifest)?,
        "name": args.name,
        "grant": args.grant,
    });
    let row = args
        .outcome
        .replace_version("component.upgrade", params, output)?;
    args.outcome.show(&row, "upgraded", output)
}

pub(crate) fn rollback(args: &RollbackArgs, output: &mut Output) -> CliResult {
    let params = json!({ "name": args.name, "grant": args.grant });
    let row = args
        .outcome
        .replace_version("component.rollback", params, output)?;
    args.outcome.show(&row, "rolled back", output)
}

pub(crate) fn remove(args: &RemoveArgs, output: &mut Output) -> CliResult {
    let done = args
        .outcome
        .ask("component.remove", json!({ "name": args.name }))?;
    if args.outcome.json {
        return output.json(&done);
    }
    output.line(format!("{} removed", text(&done, "name")))
}

impl OutcomeArgs {
    fn ask(&self, method: &str, params: Value) -> CliResult<Value> {
        self.call(method, params)?.map_err(|error| refusal(&error))
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
        Err(refusal(&error))
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
            line.push_str(&format!(
                "; `rollback` restores {}",
                short_hash(row, "previous")
            ));
        }
        if !row["address"].is_null() {
            line.push_str(&format!("; exposed as {}", text(row, "address")));
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
fn refusal(error: &ClientError) -> Failure {
    let ClientError::Fault(fault) = error else {
        return client_failure(error);
    };
    let failure = match fault.code {
        FaultCode::Refused => Failure::check(&fault.message),
        _ => client_failure(error),
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
fn absolute_path(path: &Path) -> CliResult<String> {
    let whole = std::fs::canonicalize(path).map_err(|error| Failure::file(path, &error))?;
    let text = whole.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::input(format!("{}: path is not valid UTF-8", path.display())))
}

fn text(row: &Value, key: &str) -> String {
    row[key].as_str().map_or_else(|| "-".to_owned(), printable)
}

fn version(row: &Value) -> String {
    short_hash(row, "sha256")
}

/// Returns the beginning of a hash, long enough to tell versions apart.
fn short_hash(row: &Value, key: &str) -> String {
    text(row, key).chars().take(12).collect()
}
