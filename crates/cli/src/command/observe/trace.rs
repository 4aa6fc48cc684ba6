//! `strowger trace`: the activity of selected actors, live.

use std::time::Duration;

use serde_json::{Value, json};

use super::{format_value, printable};
use crate::command::duration;
use crate::control::{ControlArgs, block_on, client_failure};
use crate::exit::CliResult;
use crate::output::{Output, TextStyle};

const EXAMPLES: &str = "\
Examples:
  strowger trace '/node/n4/**'
  strowger trace 0x2a --max 20
  strowger trace '/node/n4/*/0x*' --for 10s --json | jq 'select(.step == \"handled\") | .took_us'

PATTERN is a path in which * matches any characters within a key and ** any number of keys. Without
a slash it matches the last key. Each message appears twice: when the actor starts to handle it, and
when it has finished.

The trace ends after --max records, after --for or control.deadline of the node, or after 16 MiB.
Tracing never blocks an actor: records that are not read in time are dropped, and the last line
counts them.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TraceArgs {
    /// Actors to trace, such as '/node/n4/**'.
    pattern: String,
    /// Stop after this many records, up to 100000.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    max: u64,
    /// Stop after this time.
    #[arg(
        long = "for",
        value_name = "DURATION",
        default_value = "30s",
        value_parser = duration::parse
    )]
    within: Duration,
    /// Print JSON, one object per record, then a final one.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

/// Extra time that the call may take beyond the trace itself.
const SLACK: Duration = Duration::from_secs(5);

pub(crate) fn trace(args: &TraceArgs, output: &mut Output) -> CliResult {
    let within = u64::try_from(args.within.as_millis()).unwrap_or(u64::MAX);
    let params = json!({ "path": args.pattern, "max": args.max, "within_ms": within });
    block_on(async {
        let mut client = args.control.connect().await?;
        client.set_deadline(args.within.saturating_add(SLACK));
        let rows = client.rows("trace", params).await;
        let mut rows = rows.map_err(|error| client_failure(&error))?;
        while let Some(row) = rows.next().await.map_err(|error| client_failure(&error))? {
            match args.json {
                true => output.json(&row)?,
                false => output.line(format_row(&row, output))?,
            }
            output.flush()?;
        }
        Ok(())
    })
}

fn format_row(row: &Value, output: &Output) -> String {
    if let Some(end) = row.get("end") {
        let why = match end.as_str() {
            Some("records") => "--max records",
            Some("octets") => "16 MiB of records",
            Some("time") => "time limit",
            _ => "the node is shutting down",
        };
        let end = format!("end of trace ({why}); {} records dropped", row["lost"]);
        return output.paint(TextStyle::Faint, end);
    }
    let seconds = row["at_us"].as_f64().unwrap_or(0.0) / 1e6;
    let time = output.paint(TextStyle::Faint, format!("{seconds:>10.6}"));
    let path = output.paint(TextStyle::Bold, printable(&format_value(&row["path"])));
    let step = printable(&format_value(&row["text"]));
    let step = match row["step"].as_str() {
        Some("restarted" | "stopped" | "escalated" | "dead-letter" | "overflow") => {
            output.paint(TextStyle::Red, step)
        }
        Some("handled") if row["failed"] == true => output.paint(TextStyle::Red, step),
        _ => step,
    };
    format!("{time}  {path}  {step}")
}
