//! `strowger tree`, `ps`, `inspect`, `trace`, `logs` and `kill`: a running node, seen from outside.

mod details;
mod logs;
mod trace;
mod tree;

use std::time::Duration;

use serde_json::{Value, json};

use crate::control::{ControlArgs, block_on, client_failure};
use crate::exit::CliResult;
use crate::output::{Output, Table, TextStyle};

pub(crate) use self::logs::{LogsArgs, logs};
pub(crate) use self::trace::{TraceArgs, trace};

const TREE_EXAMPLES: &str = "\
Examples:
  strowger tree
  strowger tree /node --limit 100
  strowger tree --json | jq -r .path";

#[derive(Debug, clap::Args)]
#[command(after_help = TREE_EXAMPLES)]
pub(crate) struct TreeArgs {
    /// Show only this actor and the actors below it.
    path: Option<String>,
    /// Maximum number of children to show per actor.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: u64,
    /// Print JSON, one object per actor, without a limit.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

const PS_EXAMPLES: &str = "\
Examples:
  strowger ps
  strowger ps --sort handled --limit 10
  strowger ps /gateway --json

Fields to sort by: depth, high_water, dropped, handled, busy_us, waited_us, memory, restarts,
children.

Exit codes:
  1  no such actor";

#[derive(Debug, clap::Args)]
#[command(after_help = PS_EXAMPLES)]
pub(crate) struct PsArgs {
    /// List only this actor and the actors below it.
    path: Option<String>,
    /// Sort by this field, largest value first.
    #[arg(long, value_name = "FIELD")]
    sort: Option<String>,
    /// Maximum number of actors to list [default: no limit].
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Print JSON, one object per actor.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  strowger inspect /node/n4
  strowger inspect /node/n4/127.0.0.1/0x1
  strowger inspect /node/n4/127.0.0.1/0x1 --json | jq .details.rules

Exit codes:
  1  no such actor";

#[derive(Debug, clap::Args)]
#[command(after_help = INSPECT_EXAMPLES)]
pub(crate) struct InspectArgs {
    /// Path of the actor, as shown by `strowger tree`.
    path: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

const KILL_EXAMPLES: &str = "\
Examples:
  strowger kill /node/n4/127.0.0.1/0x1
  strowger kill /node/n4/127.0.0.1/0x1 --panic

The actor's supervisor decides whether it is restarted.

Exit codes:
  1  no such actor";

#[derive(Debug, clap::Args)]
#[command(after_help = KILL_EXAMPLES)]
pub(crate) struct KillArgs {
    /// Path of the actor, as shown by `strowger tree`.
    path: String,
    /// Make the actor panic instead of killing it.
    #[arg(long)]
    panic: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

pub(crate) fn tree(args: &TreeArgs, output: &mut Output) -> CliResult {
    if args.json {
        let params = json!({ "path": args.path });
        return for_each_row(&args.control, "tree", params, |row| output.json(&row));
    }
    let params = json!({ "path": args.path, "limit": args.limit });
    let mut rows = Vec::new();
    for_each_row(&args.control, "tree", params, |row| {
        rows.push(row);
        Ok(())
    })?;
    tree::print(&rows, output)
}

pub(crate) fn ps(args: &PsArgs, output: &mut Output) -> CliResult {
    let params = json!({ "path": args.path, "sort": args.sort, "limit": args.limit });
    if args.json {
        return for_each_row(&args.control, "ps", params, |row| output.json(&row));
    }
    let mut rows = Vec::new();
    for_each_row(&args.control, "ps", params, |row| {
        rows.push(row);
        Ok(())
    })?;
    let shown = |note: &str| rows.iter().any(|row| row[note].is_object());
    let (components, tools) = (shown("component"), shown("tool"));
    let mut table = Table::new(
        [
            "path",
            "kind",
            "state",
            "waiting",
            "capacity",
            "max waiting",
            "handled",
            "busy time",
            "restarts",
            "last exit",
        ]
        .into_iter()
        .chain(components.then_some("component"))
        .chain(tools.then_some("tool")),
    );
    for row in &rows {
        let cells = [
            format_value(&row["path"]),
            type_name(row),
            format_value(&row["state"]),
            format_value(&row["depth"]),
            format_value(&row["capacity"]),
            format_value(&row["high_water"]),
            format_value(&row["handled"]),
            format!("{:.1} ms", row["busy_us"].as_f64().unwrap_or(0.0) / 1e3),
            format_value(&row["restarts"]),
            format_value(&row["last_exit"]),
        ];
        let component = components.then(|| component_note(&row["component"]));
        let tool = tools.then(|| tool_note(&row["tool"]));
        table.row(cells.into_iter().chain(component).chain(tool));
    }
    table.print(output)
}

pub(crate) fn inspect(args: &InspectArgs, output: &mut Output) -> CliResult {
    let params = json!({ "path": args.path });
    let actor = call(&args.control, "inspect", params)?;
    if args.json {
        return output.json(&actor);
    }
    details::print(&actor, output)
}

pub(crate) fn kill(args: &KillArgs, output: &mut Output) -> CliResult {
    let params = json!({ "path": args.path, "panic": args.panic });
    let done = call(&args.control, "kill", params)?;
    if args.json {
        return output.json(&done);
    }
    let after = match done["restarted"].as_bool() {
        Some(true) => output.paint(TextStyle::Green, "restarted"),
        _ => output.paint(TextStyle::Red, "ended"),
    };
    let (path, exit) = (format_value(&done["path"]), format_value(&done["exit"]));
    output.line(format!("{path}: {exit}; {after}"))
}

fn call(control: &ControlArgs, method: &str, params: Value) -> CliResult<Value> {
    block_on(async {
        let mut client = control.connect().await?;
        let called = client.call(method, params).await;
        called.map_err(|error| client_failure(&error))
    })
}

/// The deadline of a listing: a node may have a million actors.
const LISTING_TIMEOUT: Duration = Duration::from_secs(60);

/// Calls a listing and takes its rows one by one, as they arrive.
fn for_each_row(
    control: &ControlArgs,
    method: &str,
    params: Value,
    mut take: impl FnMut(Value) -> CliResult,
) -> CliResult {
    block_on(async {
        let mut client = control.connect().await?;
        client.set_deadline(LISTING_TIMEOUT);
        let rows = client.rows(method, params).await;
        let mut rows = rows.map_err(|error| client_failure(&error))?;
        while let Some(row) = rows.next().await.map_err(|error| client_failure(&error))? {
            take(row)?;
        }
        Ok(())
    })
}

/// Formats a value for people.
fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Describes the activity and the memory of a component.
fn component_note(note: &Value) -> String {
    if note.is_null() {
        return String::new();
    }
    let kib = note["memory"].as_u64().unwrap_or(0) / 1024;
    let mut text = format!(
        "{} calls, {} faults, {kib} KiB, {:.1} s CPU",
        note["calls"],
        note["faults"],
        note["cpu_ms"].as_f64().unwrap_or(0.0) / 1e3
    );
    if note["heavy"] == true {
        text.push_str(", on guest threads");
    }
    if note["throttled"].as_u64().is_some_and(|count| count > 0) {
        text.push_str(&format!(", throttled {} times", note["throttled"]));
    }
    text
}

/// Describes the calls of a tool, and the usage of its quotas.
fn tool_note(note: &Value) -> String {
    if note.is_null() {
        return String::new();
    }
    let mut text = format!(
        "{} calls, {} refused, {} failed",
        note["calls"], note["refused"], note["failed"]
    );
    for quota in note["quota"].as_array().into_iter().flatten() {
        let (used, most) = (&quota["used"], &quota["most"]);
        text.push_str(&format!(
            ", {used} of {most} {}",
            format_value(&quota["name"])
        ));
    }
    text
}

/// Replaces control characters, which a terminal would act on: keys of actors may come from peers.
pub(crate) fn printable(text: &str) -> String {
    let plain = |letter: char| if letter.is_control() { '?' } else { letter };
    text.chars().map(plain).collect()
}

/// Replaces control characters in a text of several lines, and keeps line ends and tabs.
pub(crate) fn printable_lines(text: &str) -> String {
    let plain = |letter: char| match letter {
        '\n' | '\t' => letter,
        letter if letter.is_control() => '?',
        letter => letter,
    };
    text.chars().map(plain).collect()
}

/// Returns the Rust type of an actor without its module path and without the wrapper that marks it
/// as an actor.
fn type_name(row: &Value) -> String {
    let full = row["kind"].as_str().unwrap_or_default();
    let mut short = String::new();
    let mut word = String::new();
    for letter in full.chars() {
        match letter {
            ':' => word.clear(),
            letter if letter.is_alphanumeric() || letter == '_' => word.push(letter),
            letter => {
                short.push_str(&word);
                word.clear();
                short.push(letter);
            }
        }
    }
    short.push_str(&word);
    short.replace("Actor", "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_shown_without_their_modules() {
        let of = |full: &str| type_name(&json!({ "kind": full }));
        assert_eq!(of("strowger_gateway::listener::Listener"), "Listener");
        let dynamic = "strowger::supervision::DynamicActor<a::b::Connection>";
        assert_eq!(of(dynamic), "Dynamic<Connection>");
        assert_eq!(
            of("a::Pair<b::C, alloc::sync::Arc<d::E>>"),
            "Pair<C, Arc<E>>"
        );
    }
}
