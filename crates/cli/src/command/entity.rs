//! `strowger entity`: the entities of a store of durable actors that no process uses.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Subcommand;
use serde_json::{Value, json};
use strowger_durable::store::EntityId;
use strowger_durable::store::tools::{EntityCondition, EntityInfo, RowInfo, ToolError};

use super::store::durable::{ProgressLine, failure, open};
use crate::exit::{CliResult, Failure};
use crate::output::{Output, Table, TextStyle};

const LIST: &str = "\
Examples:
  strowger entity list /var/lib/bank
  strowger entity list /var/lib/bank --kind account --limit 10
  strowger entity list /var/lib/bank --json | grep '\"condition\":\"quarantined\"'

Stop the process that uses the store first. An entity's sequence counts the writes to it; its fence
counts its activations.";

const SHOW: &str = "\
Examples:
  strowger entity show /var/lib/bank account acc-42
  strowger entity show /var/lib/bank account acc-42 --json

Prints the rows of one entity: its state or events, kept answers, reminders and messages to others.
Values are decoded where that is possible. Stop the process that uses the store first.

Exit codes:
  1  no such entity";

#[derive(Debug, Subcommand)]
pub(crate) enum EntityCommand {
    /// List the entities of a store.
    List(EntityListArgs),
    /// Show one entity and its rows.
    Show(EntityShowArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = LIST)]
pub(crate) struct EntityListArgs {
    /// Directory of the store.
    path: PathBuf,
    /// List only entities of this kind.
    #[arg(long)]
    kind: Option<String>,
    /// Maximum number of entities to list.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u64,
    /// Print JSON, one object per entity, without a limit.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
#[command(after_help = SHOW)]
pub(crate) struct EntityShowArgs {
    /// Directory of the store.
    path: PathBuf,
    /// Kind of the entity, such as `account`.
    kind: String,
    /// Key of the entity.
    key: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(command: &EntityCommand, output: &mut Output) -> CliResult {
    match command {
        EntityCommand::List(args) => list(args, output),
        EntityCommand::Show(args) => show(args, output),
    }
}

fn list(args: &EntityListArgs, output: &mut Output) -> CliResult {
    let store = open(&args.path)?;
    let mut table = Table::new([
        "kind",
        "key",
        "sequence",
        "fence",
        "rows",
        "bytes",
        "wakes",
        "condition",
    ]);
    let (mut listed, mut unread) = (0, None);
    let mut progress = ProgressLine::new();
    let done = store.entities(
        args.kind.as_deref(),
        &mut |info| {
            listed += 1;
            if args.json {
                output.json(&info_json(info)).map_err(|failure| {
                    unread = Some(failure);
                    ToolError::Output(std::io::ErrorKind::BrokenPipe.into())
                })?;
            } else if listed <= args.limit {
                table.row(cells(info));
            }
            Ok(())
        },
        &mut |done| progress.update(done),
    );
    drop(progress);
    if let Some(unread) = unread {
        return Err(unread);
    }
    done.map_err(failure)?;
    if args.json {
        return Ok(());
    }
    table.print(output)?;
    match listed.saturating_sub(args.limit) {
        0 => Ok(()),
        more => output.line(format!("{more} more; use --limit or --kind")),
    }
}

fn cells(info: &EntityInfo) -> [String; 8] {
    [
        text_of(info.entity.kind().as_bytes()),
        text_of(info.entity.key().as_bytes()),
        info.sequence.to_string(),
        info.fence.to_string(),
        info.rows.to_string(),
        info.bytes.to_string(),
        info.wake.map_or_else(|| "-".to_owned(), relative),
        info.condition.to_string(),
    ]
}

/// Describes a time since the Unix epoch from now.
fn relative(at: Duration) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = at.abs_diff(now).as_secs();
    let text = match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    };
    if at >= now {
        format!("in {text}")
    } else {
        format!("{text} ago")
    }
}

fn millis(at: Duration) -> u64 {
    u64::try_from(at.as_millis()).unwrap_or(u64::MAX)
}

fn info_json(info: &EntityInfo) -> Value {
    let (condition, detail) = match &info.condition {
        EntityCondition::Damaged(detail) => ("damaged".to_owned(), Some(detail)),
        condition => (condition.to_string(), None),
    };
    json!({
        "kind": info.entity.kind(),
        "key": info.entity.key(),
        "sequence": info.sequence.0,
        "fence": info.fence.0,
        "rows": info.rows,
        "bytes": info.bytes,
        "wake_ms": info.wake.map(millis),
        "condition": condition,
        "detail": detail,
    })
}

fn show(args: &EntityShowArgs, output: &mut Output) -> CliResult {
    let entity = EntityId::new(args.kind.as_str(), args.key.as_str());
    let entity = entity.map_err(|error| Failure::input(error.to_string()))?;
    let store = open(&args.path)?;
    let Some(info) = store.entity(&entity).map_err(failure)? else {
        let text = format!("{}: no entity {entity}", args.path.display());
        return Err(Failure::check(text).hint("`strowger entity list` lists the entities"));
    };
    let mut rows = Vec::new();
    let mut add = |row| {
        rows.push(row);
        Ok(())
    };
    store.rows(&entity, &mut add).map_err(failure)?;
    if args.json {
        let mut object = info_json(&info);
        object["contents"] = rows.iter().map(row_json).collect();
        return output.json(&object);
    }
    output.line(format!(
        "entity    {}",
        output.paint(TextStyle::Bold, &entity)
    ))?;
    output.line(format!("condition {}", info.condition))?;
    output.line(format!("sequence  {}", info.sequence))?;
    output.line(format!("fence     {}", info.fence))?;
    if let Some(at) = info.wake {
        output.line(format!("wakes     {}", relative(at)))?;
    }
    output.line(format!("rows      {} ({} bytes)", info.rows, info.bytes))?;
    if rows.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(["table", "key", "sequence", "bytes", "value"]);
    for row in &rows {
        table.row([
            row.table_name
                .map_or_else(|| row.table.to_string(), str::to_owned),
            key_of(row),
            row.sequence.to_string(),
            row.value.len().to_string(),
            match &row.decoded {
                Some(decoded) => shorten(&decoded.to_string()),
                None => text_of(&row.value),
            },
        ]);
    }
    table.print(output)
}

/// Returns the key of a row: the number of an event or a message, or a text.
fn key_of(row: &RowInfo) -> String {
    match (row.table_name, row.key.first_chunk()) {
        (Some("events" | "outbox" | "inbox"), Some(number)) => {
            u64::from_be_bytes(*number).to_string()
        }
        _ => text_of(&row.key),
    }
}

/// Maximum number of characters of a value in a table; `--json` prints the whole.
const MAX_SHOWN: usize = 200;

fn shorten(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Shows bytes as text, with escapes for what is not.
fn text_of(bytes: &[u8]) -> String {
    // An escape has at most four characters for a byte.
    let shown = bytes.get(..MAX_SHOWN + 1).unwrap_or(bytes);
    match std::str::from_utf8(shown) {
        Ok(text) => shorten(&text.escape_debug().to_string()),
        Err(_) => shorten(&shown.escape_ascii().to_string()),
    }
}

fn row_json(row: &RowInfo) -> Value {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    let bytes = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({"base64": STANDARD.encode(bytes)}),
    };
    json!({
        "table": row.table,
        "table_name": row.table_name,
        "key": bytes(&row.key),
        "sequence": row.sequence.0,
        "value": bytes(&row.value),
        "decoded": row.decoded,
    })
}
