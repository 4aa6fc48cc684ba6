//! `strowger pfcp replay`: sends the requests of a capture to a live node.
//!
//! `plan` says what to send and which answer the capture has, `peers` sends it, `tally`
//! counts, and `difference` knows for which reasons a node may answer otherwise.

mod answer;
mod difference;
mod peers;
mod plan;
mod tally;

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use strowger_pfcp::vendor::Dictionary;
use strowger_pfcp::{Header, MessageType, Seid, Sequence};

use self::peers::{PeerAnswer, ReplayPeers, RetryPolicy, SequenceNumbers};
use self::plan::{PlannedRequest, ReplayPlan};
use self::tally::{ReplayTally, RequestOutcome};
use super::source;

use crate::exit::{CliResult, Failure};
use crate::output::{Output, TextStyle};

const EXAMPLES: &str = "\
Examples:
  strowger pfcp replay smf.pcapng --to 127.0.0.1:8805
  strowger pfcp replay smf.pcapng --to 127.0.0.1:8805 --json | tail -n 1
  strowger pfcp replay smf.pcapng --to 127.0.0.1:8805 --keep-sequence

Requests are sent one at a time, in the order of the capture. SEIDs assigned by the node replace the
captured ones. Reports of the UP role are skipped.

If the node is on the loopback, each peer of the capture sends from a loopback address of its own.
Otherwise all send from this host, and the node must accept its address for their Node IDs
(n4.peer.named in the configuration of a Strowger node).

Exit codes:
  1  a request was lost, or was accepted or rejected unlike in the capture without a known reason";

/// The arguments of `replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ReplayArgs {
    /// Capture (pcap, pcapng); `-` reads standard input.
    file: PathBuf,
    /// Address of the node.
    #[arg(long, value_name = "ADDR")]
    to: SocketAddr,
    /// Keep the captured sequence numbers.
    #[arg(long)]
    keep_sequence: bool,
    /// Time to wait for a response before retransmitting (T1).
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    #[arg(value_parser = strowger::parse_duration)]
    wait: Duration,
    /// Transmissions before a request counts as lost (N1).
    #[arg(long, value_name = "N", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,
    /// Print JSON, one object per difference, then a summary.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ReplayArgs, output: &mut Output) -> CliResult {
    let packets = source::open(&args.file, &Dictionary::new())?.collect::<CliResult<Vec<_>>>()?;
    let plan = ReplayPlan::read(packets);
    if plan.steps.is_empty() {
        let what = format!("{}: no PFCP request to replay", args.file.display());
        let hint = format!(
            "list its messages with `strowger pfcp decode {}`",
            args.file.display()
        );
        return Err(Failure::check(what).hint(hint));
    }
    let captured = plan.peers();
    let peers = ReplayPeers::open(&captured, &plan.recovery, args.to)
        .map_err(|error| unreachable(args.to, &error))?;
    let mut replay = Replay {
        peers,
        retry: RetryPolicy {
            wait: args.wait,
            tries: args.tries,
        },
        numbers: (!args.keep_sequence).then(|| SequenceNumbers::starting_at(clock_millis())),
        sent_as: vec![Sequence::default(); plan.steps.len()],
        sessions: HashMap::new(),
    };
    let mut tally = ReplayTally::default();
    let start = Instant::now();
    for (at, step) in plan.steps.iter().enumerate() {
        let answer = replay
            .step(at, step)
            .map_err(|error| unreachable(args.to, &error))?;
        let outcome = RequestOutcome::of(step, answer.as_ref());
        if let (true, Some(difference)) = (args.json, &outcome.difference) {
            output.json(&difference.to_json())?;
        }
        tally.add(step, outcome);
    }
    tally.took = start.elapsed();
    tally.left_out = plan.left_out;
    if args.json {
        output.json(&tally.to_json())?;
    } else {
        report(args, &replay.peers, &tally, output)?;
    }
    tally.verdict()
}

/// A replay in progress.
struct Replay {
    peers: ReplayPeers,
    retry: RetryPolicy,
    /// New sequence numbers; `None` if the captured ones are kept.
    numbers: Option<SequenceNumbers>,
    /// The sequence number that each step was sent with, for its retransmissions.
    sent_as: Vec<Sequence>,
    /// The SEIDs that the node assigned, by the captured node and the SEID that it had assigned.
    sessions: HashMap<(IpAddr, Seid), Seid>,
}

impl Replay {
    fn step(&mut self, at: usize, step: &PlannedRequest) -> std::io::Result<Option<PeerAnswer>> {
        let sequence = match (step.repeats, &mut self.numbers) {
            (Some(first), _) => self.sent_as[first],
            (None, Some(numbers)) => numbers.take(),
            (None, None) => step.header.sequence,
        };
        self.sent_as[at] = sequence;
        let seid = step.header.seid.map(|seid| {
            let live = self.sessions.get(&(step.to, seid));
            live.copied().unwrap_or(seid)
        });
        let header = Header {
            sequence,
            seid,
            ..step.header
        };
        let mut request = Vec::with_capacity(16 + step.body.len());
        header
            .encode(step.body.len(), &mut request)
            .expect("the body had room behind the captured header");
        request.extend_from_slice(&step.body);
        let answer = self.peers.ask(step.from, (header, &request), self.retry)?;
        if step.header.message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST {
            let captured = step.captured.and_then(|captured| captured.session);
            let live = answer
                .as_ref()
                .and_then(|answer| answer::session(&answer.body));
            if let (Some(captured), Some(live)) = (captured, live) {
                self.sessions.insert((step.to, captured), live);
            }
        }
        Ok(answer)
    }
}

/// Maximum number of differences printed one by one.
const MAX_DIFFERENCES: usize = 20;

fn report(
    args: &ReplayArgs,
    peers: &ReplayPeers,
    tally: &ReplayTally,
    output: &mut Output,
) -> CliResult {
    for peer in peers.iter() {
        let local = peer.local().map_err(|error| unreachable(args.to, &error))?;
        output.line(format!("{} sends from {local}", peer.captured))?;
    }
    output.line("")?;
    tally.table().print(output)?;
    output.line("")?;
    for (reason, count) in tally.count_excused() {
        let line = format!("{count} x {reason}");
        output.line(output.paint(TextStyle::Faint, line))?;
    }
    let unexplained = tally
        .differences
        .iter()
        .filter(|difference| difference.reason.is_none());
    for difference in unexplained.clone().take(MAX_DIFFERENCES) {
        output.line(output.paint(TextStyle::Red, difference))?;
    }
    let more = unexplained.count().saturating_sub(MAX_DIFFERENCES);
    if more > 0 {
        output.line(format!("and {more} more; --json prints all"))?;
    }
    if tally.left_out > 0 {
        let line = format!("{} reports of the UP role were skipped", tally.left_out);
        output.line(output.paint(TextStyle::Faint, line))?;
    }
    let style = if tally.verdict().is_ok() {
        TextStyle::Green
    } else {
        TextStyle::Red
    };
    let line = output.paint(style, tally.summary());
    output.line(line)
}

fn unreachable(to: SocketAddr, error: &std::io::Error) -> Failure {
    let failure = Failure::outside(format!("node {to}: {error}"));
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => failure.hint(
            "nothing listens on this address; start a node with `strowger run` or `strowger demo`",
        ),
        _ => failure,
    }
}

/// Returns milliseconds of the clock, so that two runs do not start with the same sequence number.
fn clock_millis() -> u32 {
    let since_epoch = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u32::try_from(since_epoch.as_millis() & 0x00ff_ffff).expect("24 bits fit")
}
