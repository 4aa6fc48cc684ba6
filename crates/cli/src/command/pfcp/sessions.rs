//! `strowger pfcp sessions` and `associations`: sessions and associations of a running node.

use std::net::IpAddr;

use serde_json::{Value, json};
use strowger_pfcp::Seid;

use crate::compose::{elements, elements_as_text};
use crate::control::{ControlArgs, block_on, client_failure};
use crate::exit::{CliResult, Failure};
use crate::output::{Output, Table, TextStyle};

const SESSIONS: &str = "\
Examples:
  strowger pfcp sessions
  strowger pfcp sessions 0x2a
  strowger pfcp sessions --ue 10.45.0.2
  strowger pfcp sessions --seid 0x2a --json
  strowger pfcp sessions --peer 127.0.0.1 --json | wc -l";

const ASSOCIATIONS: &str = "\
Examples:
  strowger pfcp associations
  strowger pfcp associations --peer 127.0.0.1
  strowger pfcp associations --json";

#[derive(Debug, clap::Args)]
#[command(after_help = SESSIONS)]
pub(crate) struct SessionArgs {
    /// Show the current rules of the session with this SEID of the node.
    #[arg(value_name = "SEID", value_parser = parse_number)]
    session: Option<u64>,
    /// List only the session with this SEID of the node, such as 42 or 0x2a.
    #[arg(long, value_parser = parse_number)]
    seid: Option<u64>,
    /// List only sessions of the UE with this address.
    #[arg(long, value_name = "IP")]
    ue: Option<IpAddr>,
    /// List only sessions with this TEID, such as 16 or 0x10.
    #[arg(long, value_parser = parse_number)]
    teid: Option<u64>,
    /// List only sessions of the peer at this address.
    #[arg(long, value_name = "IP")]
    peer: Option<IpAddr>,
    /// List only sessions of the peer with this Node ID.
    #[arg(long, value_name = "NODE ID")]
    node: Option<String>,
    /// Print JSON, one object per session.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = ASSOCIATIONS)]
pub(crate) struct AssociationArgs {
    /// List only associations with the peer at this address.
    #[arg(long, value_name = "IP")]
    peer: Option<IpAddr>,
    /// Print JSON, one object per association.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

/// Parses a number, decimal or with `0x`.
fn parse_number(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| "expected a number such as 42 or 0x2a".to_owned())
}

/// Prints the merged rules of one session.
fn print_rules(args: &SessionArgs, seid: u64, output: &mut Output) -> CliResult {
    let mut found = false;
    for_each_row(
        &args.control,
        "pfcp.rules",
        json!({ "seid": seid }),
        |row| {
            // The search also finds a session for which the peer uses this number as its SEID.
            if row["seid"].as_u64() != Some(seid) {
                return Ok(());
            }
            found = true;
            let rules = parse_hex(row["rules"].as_str().unwrap_or_default());
            if args.json {
                let (peer_seid, rules) = (&row["peer_seid"], elements(Seid(seid), &rules));
                return output
                    .json(&json!({ "seid": seid, "peer_seid": peer_seid, "rules": rules }));
            }
            let peer_seid = format_hex(&row["peer_seid"]);
            let head = format!("session {seid:#x}, {peer_seid} at its peer");
            output.line(output.paint(TextStyle::Faint, head))?;
            output.line(elements_as_text(Seid(seid), &rules))
        },
    )?;
    if found {
        return Ok(());
    }
    Err(Failure::outside(format!("no session {seid:#x}")))
}

/// Parses hexadecimal digits.
fn parse_hex(digits: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    (0..digits.len()).step_by(2).map_while(byte).collect()
}

pub(crate) fn sessions(args: &SessionArgs, output: &mut Output) -> CliResult {
    if let Some(seid) = args.session {
        return print_rules(args, seid, output);
    }
    let wanted = json!({
        "seid": args.seid,
        "ue_address": args.ue,
        "teid": args.teid,
        "peer": args.peer,
        "node": args.node,
    });
    let mut table = Table::new([
        "SEID",
        "peer SEID",
        "peer",
        "UE addresses",
        "tunnels (TEID)",
        "rules",
        "actor",
    ]);
    let count = for_each_row(&args.control, "pfcp.sessions", wanted, |row| {
        if args.json {
            return output.json(&row);
        }
        table.row([
            format_hex(&row["seid"]),
            format_hex(&row["peer_seid"]),
            format_value(&row["peer"]),
            format_list(&row["ue_addresses"], format_value),
            format_list(&row["teids"], |teid| {
                format!(
                    "{}@{}",
                    format_hex(&teid["teid"]),
                    format_value(&teid["address"])
                )
            }),
            count_rules(&row),
            format_value(&row["path"]),
        ]);
        Ok(())
    })?;
    if args.json {
        return Ok(());
    }
    table.print(output)?;
    print_count(count, "sessions", output)
}

pub(crate) fn associations(args: &AssociationArgs, output: &mut Output) -> CliResult {
    let peer = args.peer.map(|peer| peer.to_string());
    let mut table = Table::new(["Node ID", "peer", "sessions", "actor"]);
    let mut count = 0;
    for_each_row(&args.control, "pfcp.associations", Value::Null, |row| {
        let address = row["peer"].as_str().and_then(|peer| peer.rsplit_once(':'));
        let host = address
            .map_or("", |(host, _)| host)
            .trim_matches(['[', ']']);
        if peer.as_ref().is_some_and(|peer| peer != host) {
            return Ok(());
        }
        count += 1;
        if args.json {
            return output.json(&row);
        }
        let cells = ["node", "peer", "sessions", "path"].map(|key| format_value(&row[key]));
        table.row(cells);
        Ok(())
    })?;
    if args.json {
        return Ok(());
    }
    table.print(output)?;
    print_count(count, "associations", output)
}

/// Calls a method of a node and takes each row as it arrives.
pub(super) fn for_each_row(
    control: &ControlArgs,
    method: &str,
    wanted: Value,
    mut take: impl FnMut(Value) -> CliResult,
) -> CliResult<u64> {
    block_on(async {
        let mut client = control.connect().await?;
        let rows = client.rows(method, wanted).await;
        let mut rows = rows.map_err(|error| client_failure(&error))?;
        let mut count = 0;
        while let Some(row) = rows.next().await.map_err(|error| client_failure(&error))? {
            count += 1;
            take(row)?;
        }
        Ok(count)
    })
}

fn print_count(count: u64, what: &str, output: &mut Output) -> CliResult {
    output.line(output.paint(TextStyle::Faint, format!("{count} {what}")))
}

fn format_hex(value: &Value) -> String {
    value
        .as_u64()
        .map_or_else(|| "-".to_owned(), |number| format!("{number:#x}"))
}

fn format_value(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn format_list(value: &Value, write: impl Fn(&Value) -> String) -> String {
    match value.as_array() {
        Some(values) if !values.is_empty() => {
            values.iter().map(write).collect::<Vec<_>>().join(" ")
        }
        _ => "-".to_owned(),
    }
}

/// Counts the rules of each kind.
fn count_rules(row: &Value) -> String {
    let kinds = [
        ("pdrs", "PDR"),
        ("fars", "FAR"),
        ("qers", "QER"),
        ("urrs", "URR"),
    ];
    let counted = kinds.iter().filter_map(|(key, name)| {
        let count = row[*key].as_array()?.len();
        (count > 0).then(|| format!("{count} {name}"))
    });
    counted.collect::<Vec<_>>().join(", ")
}
