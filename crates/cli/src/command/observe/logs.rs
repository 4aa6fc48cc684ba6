//! `strowger logs`: the recent log of a running node, by actor.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::{format_value, printable};
use crate::command::duration;
use crate::control::{ControlArgs, block_on, client_failure};
use crate::exit::CliResult;
use crate::output::{Output, TextStyle};

const EXAMPLES: &str = "\
Examples:
  strowger logs
  strowger logs /node/n4 --last 20
  strowger logs '/node/n4/**' --level warn --follow 30s
  strowger logs /node --follow 10m --json | jq -r .text

PATH selects an actor and all actors below it. In a pattern, * matches any characters within a key
and ** any number of keys. Without PATH, lines that belong to no actor are printed as well.

The node keeps its last 4096 lines of level info and above, whatever STROWGER_LOG says. Following
never blocks an actor: lines that are not read in time are dropped, and the last line counts them.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LogsArgs {
    /// Actor path or pattern [default: the whole node].
    path: Option<String>,
    /// Number of most recent lines to print.
    #[arg(long, value_name = "N", default_value_t = 100)]
    last: u64,
    /// Minimum level to print.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    #[arg(value_parser = ["error", "warn", "info"])]
    level: String,
    /// Keep printing new lines for this time, such as 30s.
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    follow: Option<Duration>,
    /// Print JSON, one object per line, then a final one.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

/// Extra time that the call may take beyond the time of following.
const SLACK: Duration = Duration::from_secs(5);

pub(crate) fn logs(args: &LogsArgs, output: &mut Output) -> CliResult {
    let follow = args.follow.unwrap_or_default();
    let follow_ms = u64::try_from(follow.as_millis()).unwrap_or(u64::MAX);
    let params = json!({
        "path": args.path,
        "last": args.last,
        "level": args.level,
        "follow_ms": follow_ms,
    });
    block_on(async {
        let mut client = args.control.connect().await?;
        client.set_deadline(follow.saturating_add(SLACK));
        let rows = client.rows("logs", params).await;
        let mut rows = rows.map_err(|error| client_failure(&error))?;
        while let Some(row) = rows.next().await.map_err(|error| client_failure(&error))? {
            if args.json {
                output.json(&row)?;
            } else if let Some(line) = format_row(&row, output) {
                output.line(line)?;
            }
            output.flush()?;
        }
        Ok(())
    })
}

fn format_row(row: &Value, output: &Output) -> Option<String> {
    if row["end"] == true {
        let lost = row["lost"].as_u64().filter(|lost| *lost > 0)?;
        return Some(output.paint(TextStyle::Yellow, format!("{lost} lines were dropped")));
    }
    let at = UNIX_EPOCH + Duration::from_micros(row["at_us"].as_u64().unwrap_or_default());
    let seconds = at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() % 86_400;
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let time = output.paint(
        TextStyle::Faint,
        format!("{hours:02}:{minutes:02}:{seconds:02}Z"),
    );
    let level = format_value(&row["level"]);
    let level = match level.as_str() {
        "error" => output.paint(TextStyle::Red, format!("{level:<5}")),
        "warn" => output.paint(TextStyle::Yellow, format!("{level:<5}")),
        _ => format!("{level:<5}"),
    };
    let actor = match &row["path"] {
        Value::Null => output.paint(TextStyle::Faint, printable(&format_value(&row["target"]))),
        path => output.paint(TextStyle::Bold, printable(&format_value(path))),
    };
    let words = printable(&format_value(&row["text"]));
    Some(format!("{time}  {level}  {actor}  {words}"))
}
