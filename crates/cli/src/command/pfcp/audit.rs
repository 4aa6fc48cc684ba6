//! `strowger pfcp audit`: compares the state acknowledged to a peer with that of a running node.

use std::path::PathBuf;

use serde_json::{Value, json};
use strowger_pfcp::Seid;
use strowger_pfcp_node::{AuditReport, JournalAudit, JournalError, NodeSession};

use super::sessions::for_each_row;
use crate::control::ControlArgs;
use crate::exit::{CliResult, Failure};
use crate::output::{Output, TextStyle};
use strowger_pfcp_cli::hex;

const EXAMPLES: &str = "\
Examples:
  strowger pfcp load --to 127.0.0.1:8805 --for 10s --keep --journal acknowledged
  strowger pfcp audit acknowledged
  strowger pfcp audit acknowledged --json

Each acknowledged session must exist with its complete rule set, byte for byte. A request without a
response may have taken effect or not. Run it while the node receives no requests.

Exit codes:
  1  a session is missing or differs";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct AuditArgs {
    /// Journal written by `pfcp load --journal`.
    journal: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

pub(crate) fn run(args: &AuditArgs, output: &mut Output) -> CliResult {
    let audit = JournalAudit::read(&args.journal).map_err(|error| match error {
        JournalError::Line { .. } => Failure::input(error.to_string()),
        error => Failure::outside(error.to_string()),
    })?;
    let mut found = Vec::new();
    if let Some(node) = audit.node() {
        for_each_row(
            &args.control,
            "pfcp.rules",
            json!({ "node": node }),
            |row| {
                found.push(parse_session(&row).ok_or_else(|| {
                    Failure::outside(format!(
                        "unexpected reply from the node, not a session: {row}"
                    ))
                })?);
                Ok(())
            },
        )?;
    }
    let report = audit.compare(found);
    if args.json {
        output.json(&to_json(&report))?;
    } else {
        print_report(&report, output)?;
    }
    match (report.lost, report.wrong) {
        (0, 0) => Ok(()),
        (lost, wrong) => Err(Failure::check(format!("{lost} lost, {wrong} wrong"))),
    }
}

fn parse_session(row: &Value) -> Option<NodeSession> {
    Some(NodeSession {
        seid: Seid(row["seid"].as_u64()?),
        peer_seid: Seid(row["peer_seid"].as_u64()?),
        rules: hex::parse(row["rules"].as_str()?).ok()?,
    })
}

fn to_json(report: &AuditReport) -> Value {
    json!({
        "acknowledged": report.acknowledged,
        "expected": report.expected,
        "whole": report.whole,
        "lost": report.lost,
        "wrong": report.wrong,
        "unanswered": report.unanswered.0,
        "unanswered_done": report.unanswered.1,
        "findings": report.findings,
    })
}

fn print_report(report: &AuditReport, output: &mut Output) -> CliResult {
    for finding in &report.findings {
        output.line(finding)?;
    }
    output.line(format!(
        "{} sessions acknowledged, {} of them not deleted, {} complete on the node",
        report.acknowledged, report.expected, report.whole
    ))?;
    let (asked, done) = report.unanswered;
    output.line(format!(
        "{asked} establishments without a response, {done} of them took effect"
    ))?;
    let style = match (report.lost, report.wrong) {
        (0, 0) => TextStyle::Green,
        _ => TextStyle::Red,
    };
    let text = format!("{} lost, {} wrong", report.lost, report.wrong);
    output.line(output.paint(style, text))
}
