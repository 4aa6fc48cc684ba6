//! `strowger pfcp pfds`, `release` and `report`: data that a running node has from its peers, and
//! requests that it sends them.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Value, json};
use strowger_pfcp::ie::Cause;

use super::sessions::for_each_row;
use crate::command::duration;
use crate::control::{ControlArgs, block_on, client_failure};
use crate::exit::{CliResult, Failure};
use crate::output::{Output, Table, TextStyle};

const PFDS: &str = "\
Examples:
  strowger pfcp pfds
  strowger pfcp pfds --json";

const RELEASE: &str = "\
Examples:
  strowger pfcp release 127.0.0.7
  strowger pfcp release smf.example.org --within 30s
  strowger pfcp release smf.example.org --force

The peer decides when to release the association; its sessions end with it. Without --within the
command waits only for the peer's response. With --force the node asks nothing: association and
sessions end at once, and another address may use the Node ID.

Exit codes:
  1  no association with this peer
  3  the peer refused, did not respond, or did not release the association in time; the
     association and its sessions still exist";

const REPORT: &str = "\
Examples:
  strowger pfcp report 127.0.0.7 failed 10.0.0.9
  strowger pfcp report smf.example.org recovered 10.0.0.9

Exit codes:
  3  the peer refused, or did not respond";

#[derive(Debug, clap::Args)]
#[command(after_help = PFDS)]
pub(crate) struct PfdArgs {
    /// Print JSON, one object per application.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = RELEASE)]
pub(crate) struct ReleaseArgs {
    /// Node ID of the peer.
    node: String,
    /// Maximum time to wait for the release itself [default: do not wait for it].
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    within: Option<Duration>,
    /// End the association without asking the peer, for a peer that is gone.
    #[arg(long, conflicts_with = "within")]
    force: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = REPORT)]
pub(crate) struct ReportArgs {
    /// Node ID of the peer.
    node: String,
    /// New state of the path.
    what: PathState,
    /// Remote end of the path: the address of a GTP-U entity.
    address: IpAddr,
    #[command(flatten)]
    control: ControlArgs,
}

/// States of user plane paths that can be reported.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum PathState {
    /// The path carries no packets.
    Failed,
    /// The path carries packets again.
    Recovered,
    /// The other end of the path has restarted.
    Restarted,
}

pub(crate) fn pfds(args: &PfdArgs, output: &mut Output) -> CliResult {
    let mut table = Table::new(["application", "packets"]);
    let count = for_each_row(&args.control, "pfcp.pfds", Value::Null, |row| {
        if args.json {
            return output.json(&row);
        }
        let application = row["application"].as_str().unwrap_or_default();
        let contents = row["contents"].as_array().map(Vec::as_slice);
        for text in contents.unwrap_or_default() {
            let text = text.as_str().unwrap_or_default();
            table.row([application.to_owned(), text.to_owned()]);
        }
        Ok(())
    })?;
    if args.json {
        return Ok(());
    }
    table.print(output)?;
    output.line(output.paint(TextStyle::Faint, format!("{count} applications")))
}

pub(crate) fn release(args: &ReleaseArgs, output: &mut Output) -> CliResult {
    let within = args.within.map(|span| span.as_millis());
    let within = within.and_then(|span| u64::try_from(span).ok());
    let order = json!({ "node": args.node, "within_ms": within, "force": args.force });
    let answer = call(&args.control, "pfcp.release", order)?;
    let outcome = answer["outcome"].as_str().unwrap_or_default();
    let is_released = outcome == "released";
    if args.json {
        output.json(&json!({
            "node": args.node,
            "outcome": outcome,
            "cause": answer["cause"],
            "released": is_released,
            "sessions": answer["sessions"],
        }))?;
    }
    let (node, sessions) = (&args.node, count_sessions(&answer["sessions"]));
    let in_time = args
        .within
        .map_or_else(String::new, |within| format!(" within {within:?}"));
    let failure = match outcome {
        "released" | "agreed" if args.json => return Ok(()),
        "released" if args.force => {
            return output.line(format!(
                "released the association of {node} without asking it; {sessions} ended"
            ));
        }
        "released" => {
            return output.line(format!("{node} released its association; {sessions} ended"));
        }
        "agreed" => {
            return output.line(format!(
                "{node} agreed to release its association at a time of its choice; {sessions} \
                 still exist"
            ));
        }
        "overdue" => format!("{node} agreed to release its association, but did not{in_time}"),
        "refused" => {
            let cause = answer["cause"]
                .as_u64()
                .and_then(|cause| cause.try_into().ok());
            let cause = Cause(cause.unwrap_or_default());
            format!(
                "{node} refused to release its association: cause {} ({cause})",
                cause.0
            )
        }
        _ => format!("{node} did not respond{in_time}"),
    };
    let failure = format!("{failure}; the association and its {sessions} still exist");
    Err(Failure::outside(failure).hint(
        "sessions end when the peer releases the association, or sets it up again after a restart; \
         if the peer is gone for good, use --force",
    ))
}

fn count_sessions(sessions: &Value) -> String {
    match sessions.as_u64() {
        Some(1) => "1 session".to_owned(),
        count => format!("{} sessions", count.unwrap_or_default()),
    }
}

pub(crate) fn report(args: &ReportArgs, output: &mut Output) -> CliResult {
    let what = match args.what {
        PathState::Failed => "failed",
        PathState::Recovered => "recovered",
        PathState::Restarted => "restarted",
    };
    let order = json!({ "node": args.node, "what": what, "address": args.address });
    call(&args.control, "pfcp.report", order)?;
    output.line(format!(
        "reported to {}: {} {what}",
        args.node, args.address
    ))
}

/// Longer than any node retransmits a request: the node itself reports a missing answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

fn call(control: &ControlArgs, method: &str, order: Value) -> CliResult<Value> {
    block_on(async {
        let mut client = control.connect().await?;
        client.set_deadline(ANSWER_TIMEOUT);
        let answer = client.call(method, order).await;
        answer.map_err(|error| client_failure(&error))
    })
}
