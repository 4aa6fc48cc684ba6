//! `strowger pfcp robustness`: robustness tests for any node, and a table of the results.

mod cases;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strowger_pfcp_node::{
    RobustnessError, RobustnessFailure, RobustnessPlan, RobustnessReport, RobustnessTest,
};

use super::profile::ProfileArgs;

use crate::exit::{CliResult, Failure};
use crate::hex::Hex;
use crate::output::{Output, Table, TextStyle};

const EXAMPLES: &str = "\
Examples:
  strowger pfcp robustness 127.0.0.1:8805
  strowger pfcp robustness 127.0.0.1:8805 --sessions 1000 --json
  strowger pfcp robustness 10.0.0.1:8805 --from 10.0.0.2:0 --wait 3s
  strowger pfcp robustness 127.0.0.7:8805 --from 127.0.0.4:8805 --node-id 127.0.0.4 --dnn internet
  strowger pfcp robustness 127.0.0.1:8805 --from 127.0.0.7:0 --cases bad-inputs.json

Sets up associations and sessions as an SMF does. Then sends known hostile input, each request with
wrong headers, and each element of each request missing, empty, short, long, out of range, duplicate
and in the wrong place. After each case the node must answer a heartbeat, and another session must
accept a modification. Clauses in the output are those of TS 29.244.

Do not run it against a node in service: a defect of the node may affect all of its sessions.

Exit codes:
  1  a case got a wrong response, or affected another session";

/// The arguments of `robustness`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct RobustnessArgs {
    /// Address of the node.
    #[arg(value_name = "ADDR")]
    to: SocketAddr,
    /// Address to send from [default: chosen by the system].
    #[arg(long, value_name = "ADDR")]
    from: Option<SocketAddr>,
    /// Node ID of the SMF that owns the sessions, an IP address or a domain name [default: the
    /// local address].
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    /// Node ID of a second SMF without sessions; if it is an address, messages are sent from it
    /// [default: apart.robustness, or a loopback address if --node-id is an address].
    #[arg(long, value_name = "ID")]
    second_node_id: Option<String>,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Time to wait for a response.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    #[arg(value_parser = strowger::parse_duration)]
    wait: Duration,
    /// Sessions to hold throughout; each must accept a modification at the end.
    #[arg(long, value_name = "N", default_value_t = 10)]
    #[arg(value_parser = clap::value_parser!(u32).range(..=60_000))]
    sessions: u32,
    /// File with additional cases: JSON objects with `name`, `hex` and `expect`.
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Print JSON, one object at the end.
    #[arg(long)]
    json: bool,
}

/// Maximum number of failures printed for people; `--json` prints all.
const MAX_FAILURES: usize = 20;

pub(crate) fn run(args: &RobustnessArgs, output: &mut Output) -> CliResult {
    let mut plan = RobustnessPlan::new(args.to);
    plan.from = args.from;
    plan.node_id.clone_from(&args.node_id);
    plan.second_node_id.clone_from(&args.second_node_id);
    plan.profile = args.profile.profile(&plan.profile);
    plan.wait = args.wait;
    plan.sessions = args.sessions;
    if let Some(path) = &args.cases {
        plan.cases = cases::read(path)?;
    }
    let begun = Instant::now();
    let mut shown = Ok(());
    let report = RobustnessTest::run(&plan, |report| {
        if !args.json && shown.is_ok() && report.sent().is_multiple_of(500) {
            shown = output.live(format!(
                "{} sent, {} passed",
                report.sent(),
                report.passed()
            ));
        }
    });
    let report = report.map_err(|error| test_failure(&error))?;
    shown?;
    if args.json {
        output.json(&to_json(&report, begun.elapsed()))?;
    } else {
        print_report(&report, begun.elapsed(), output)?;
    }
    verdict(&report)
}

fn test_failure(error: &RobustnessError) -> Failure {
    let failure = Failure::outside(error.to_string());
    match error {
        RobustnessError::NodeId(_) | RobustnessError::Profile(_) => {
            Failure::input(error.to_string())
                .hint("check --node-id, --second-node-id, --dnn, --pdn-type and --ue-pool")
        }
        RobustnessError::Unusable { .. } => failure.hint(
            "check that the node is in the UPF role, allows peers from this host, and can resolve \
             --node-id and --second-node-id",
        ),
        _ => failure.hint("choose another address with --from"),
    }
}

fn print_report(report: &RobustnessReport, took: Duration, output: &mut Output) -> CliResult {
    output.line("")?;
    let mut table = Table::new(["cases", "sent", "passed", "failed", "clauses"]);
    for row in &report.rows {
        table.row([
            row.family.clone(),
            row.sent.to_string(),
            row.passed.to_string(),
            (row.sent - row.passed).to_string(),
            row.clauses
                .iter()
                .take(MAX_CLAUSES)
                .cloned()
                .collect::<Vec<_>>()
                .join(", "),
        ]);
    }
    table.print(output)?;
    output.line("")?;
    for failure in report.failures.iter().take(MAX_FAILURES) {
        let case = &failure.case;
        let name = output.paint(TextStyle::Red, format!("{}: {}", case.family, case.name));
        output.line(format!("{name} ({})", case.clause))?;
        output.line(format!("  {}", failure.fault))?;
        output.line(format!("  sent     {}", shortened(&case.bytes)))?;
        for answer in &failure.answers {
            output.line(format!("  received {}", shortened(answer)))?;
        }
    }
    if report.failures.len() > MAX_FAILURES {
        let more = report.failures.len() - MAX_FAILURES;
        output.line(format!("{more} more failed; --json prints all"))?;
    }
    let style = if report.is_clean() {
        TextStyle::Green
    } else {
        TextStyle::Red
    };
    output.line(output.paint(style, summary(report, took)))
}

/// Maximum number of clauses in a row of the table.
const MAX_CLAUSES: usize = 4;

/// Formats bytes in hex, cut if they are too many to read.
fn shortened(bytes: &[u8]) -> String {
    const MAX_HEX_DIGITS: usize = 400;
    match bytes.get(..MAX_HEX_DIGITS) {
        None => Hex(bytes).to_string(),
        Some(start) => format!("{}... ({} bytes)", Hex(start), bytes.len()),
    }
}

fn summary(report: &RobustnessReport, took: Duration) -> String {
    let silent = if report.silent {
        "; the node no longer responds"
    } else {
        ""
    };
    format!(
        "{} sent, {} passed, {} failed in {:.1} s; {} of {} sessions unharmed{silent}",
        report.sent(),
        report.passed(),
        report.failures.len(),
        took.as_secs_f64(),
        report.unharmed,
        report.sessions,
    )
}

fn to_json(report: &RobustnessReport, took: Duration) -> Value {
    let rows: Vec<Value> = report
        .rows
        .iter()
        .map(|row| {
            json!({
                "family": row.family,
                "clauses": row.clauses,
                "sent": row.sent,
                "passed": row.passed,
                "failed": row.sent - row.passed,
            })
        })
        .collect();
    json!({
        "rows": rows,
        "sent": report.sent(),
        "passed": report.passed(),
        "failed": report.failures.len(),
        "sessions": report.sessions,
        "unharmed": report.unharmed,
        "silent": report.silent,
        "seconds": (took.as_secs_f64() * 1e3).round() / 1e3,
        "failures": report.failures.iter().map(failure_to_json).collect::<Vec<_>>(),
    })
}

fn failure_to_json(failure: &RobustnessFailure) -> Value {
    let answers: Vec<String> = failure
        .answers
        .iter()
        .map(|one| Hex(one).to_string())
        .collect();
    json!({
        "family": failure.case.family,
        "name": failure.case.name,
        "clause": failure.case.clause,
        "fault": failure.fault,
        "sent": Hex(&failure.case.bytes).to_string(),
        "came": answers,
    })
}

fn verdict(report: &RobustnessReport) -> CliResult {
    if report.is_clean() {
        return Ok(());
    }
    let harmed = report.sessions - report.unharmed;
    let text = format!(
        "{} cases failed, {harmed} sessions harmed",
        report.failures.len()
    );
    Err(Failure::check(text).hint("--json prints the bytes of each case"))
}
