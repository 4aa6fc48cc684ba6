//! `strowger pfcp pfds`, `release` and `report`: what a running node has of its peers, and tells
//! them.

use std::net::IpAddr;
use std::time::Duration;

use serde_json::{Value, json};

use super::listing::each;
use crate::command::span;
use crate::control::{ControlArgs, block_on, failed};
use crate::exit::Done;
use crate::output::{Ink, Output, Table};

const PFDS: &str = "\
Examples:
  strowger pfcp pfds
  strowger pfcp pfds --json";

const RELEASE: &str = "\
Examples:
  strowger pfcp release 127.0.0.7
  strowger pfcp release smf.example.org --within 30s

The peer is asked, and decides when it releases the association; its sessions end with it.";

const REPORT: &str = "\
Examples:
  strowger pfcp report 127.0.0.7 failed 10.0.0.9
  strowger pfcp report smf.example.org recovered 10.0.0.9

Exit code 3: the peer refused, or did not answer.";

#[derive(Debug, clap::Args)]
#[command(after_help = PFDS)]
pub(crate) struct PfdArgs {
    /// Prints one object for each application.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = RELEASE)]
pub(crate) struct ReleaseArgs {
    /// The Node ID of the peer.
    node: String,
    /// How long it may take.
    #[arg(long, value_name = "TIME", value_parser = span::parse)]
    within: Option<Duration>,
    #[command(flatten)]
    control: ControlArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = REPORT)]
pub(crate) struct ReportArgs {
    /// The Node ID of the peer.
    node: String,
    /// What happened to the path.
    what: What,
    /// The other end of the path: the address of a GTP-U entity.
    address: IpAddr,
    #[command(flatten)]
    control: ControlArgs,
}

/// What happens to paths of the user plane.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum What {
    /// It carries nothing any more.
    Failed,
    /// It carries packets again.
    Recovered,
    /// Its other end has restarted.
    Restarted,
}

pub(crate) fn pfds(args: &PfdArgs, output: &mut Output) -> Done {
    let mut table = Table::new(["application", "packets"]);
    let count = each(&args.control, "pfcp.pfds", Value::Null, |row| {
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
    output.line(output.paint(Ink::Faint, format!("{count} applications")))
}

pub(crate) fn release(args: &ReleaseArgs, output: &mut Output) -> Done {
    let within = args.within.map(|span| span.as_millis());
    let within = within.and_then(|span| u64::try_from(span).ok());
    let order = json!({ "node": args.node, "within_ms": within });
    tell(&args.control, "pfcp.release", order)?;
    output.line(format!("{} is asked to release its association", args.node))
}

pub(crate) fn report(args: &ReportArgs, output: &mut Output) -> Done {
    let what = match args.what {
        What::Failed => "failed",
        What::Recovered => "recovered",
        What::Restarted => "restarted",
    };
    let order = json!({ "node": args.node, "what": what, "address": args.address });
    tell(&args.control, "pfcp.report", order)?;
    output.line(format!("{} knows that {} {what}", args.node, args.address))
}

fn tell(control: &ControlArgs, method: &str, order: Value) -> Done {
    block_on(async {
        let mut client = control.connect().await?;
        let told = client.call(method, order).await;
        told.map(drop).map_err(|error| failed(&error))
    })
}
