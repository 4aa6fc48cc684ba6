//! `strowger pfcp load`: an SMF that loads a node.

mod plot;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};
use strowger::ActorSystem;
use strowger_pfcp::Release;
use strowger_pfcp::ie::Cause;
use strowger_pfcp_node::{
    ChangeStats, ClientError, Load, LoadHandle, LoadMix, LoadPace, LoadPlan, LoadStats, OnLoss,
};

use super::profile::ProfileArgs;

use crate::exit::{CliResult, Failure};
use crate::file::read_plain;
use crate::latency;
use crate::output::{Output, Table, TextStyle};
use crate::signals::ShutdownSignals;

const EXAMPLES: &str = "\
Examples:
  strowger pfcp load --to 127.0.0.1:8805
  strowger pfcp load --to 127.0.0.1:8805 --rate 5000 --sessions 20000 --for 30s
  strowger pfcp load --to 127.0.0.1:8805 --in-flight 32 --for 10s --json | tail -n 1
  strowger pfcp load --to 127.0.0.1:8805 --sessions 100 --for 1s --keep
  strowger pfcp load --to 127.0.0.1:8805 --for 30s --loss 5% --reorder 5% --plot latency.svg
  strowger pfcp load --to 127.0.0.1:8805 --for 5s --modify 0.5 --keep --journal acknowledged
  strowger pfcp load --to 127.0.0.1:8805 --for 30s --mix mix.toml
  strowger pfcp load --to 127.0.0.7:8805 --from 127.0.0.4:8805 --node-id 127.0.0.4 \\
    --dnn internet --s-nssai 1 --ue-pool 10.45.0.0/16 --for 10s

Sessions are established at --rate until --sessions are held; then each new session replaces the
oldest. Latency is measured from the time at which a request was due. At the end all sessions are
deleted, which also verifies that the node still has them.

File for --mix:

  modifications = 2.0           # per establishment; --modify overrides it
  [shares]                      # relative to their sum
  handover = 3                  # Update FAR: another tunnel
  idle = 5                      # Update FAR: buffer and notify; the next modification, or a
                                # downlink data report of the node, connects the session again
  qos = 1                       # Update QER: other rates
  report = 1                    # Query URR
  precedence = 0                # Update PDR

Without a file, --modify uses the shares above.

If the node does not answer or has restarted, the load pauses until the node is back. Sessions that
the node lost count as lost and are established again, unless --forget is given.

Exit codes:
  1  a request was lost or rejected, or accepted without a usable UP F-SEID
  3  the node does not answer";

/// The arguments of `load`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct LoadArgs {
    /// Address of the node.
    #[arg(long, value_name = "ADDR")]
    to: SocketAddr,
    /// Address to send from [default: chosen by the system].
    #[arg(long, value_name = "ADDR")]
    from: Option<SocketAddr>,
    /// Node ID of the SMF, an IP address or a domain name [default: smf-PORT.load].
    #[arg(long, value_name = "ID")]
    node_id: Option<String>,
    #[command(flatten)]
    profile: ProfileArgs,
    /// Sessions to establish per second, independent of the node's responses.
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = parse_rate)]
    rate: f64,
    /// Keep this many requests in flight instead of a fixed rate.
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    in_flight: Option<u16>,
    /// Maximum number of sessions to hold at the same time.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    sessions: usize,
    /// Stop after this time, such as 30s or 5m [default: run until Ctrl-C].
    #[arg(long = "for", value_name = "DURATION", value_parser = strowger::parse_duration)]
    duration: Option<Duration>,
    /// Time to wait for a response before retransmitting (T1).
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    #[arg(value_parser = strowger::parse_duration)]
    wait: Duration,
    /// Transmissions before a request counts as lost (N1).
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,
    /// Modifications per establishment, such as 0.5 [default: 0, or that of --mix].
    #[arg(long, value_name = "N", value_parser = parse_ratio)]
    modify: Option<f64>,
    /// Kinds of modifications and their shares (TOML).
    #[arg(long, value_name = "FILE")]
    mix: Option<PathBuf>,
    /// 3GPP release to speak: R17 or R19.
    #[arg(long, value_name = "RELEASE", default_value_t = Release::default())]
    release: Release,
    /// Drop this share of the datagrams in both directions, such as 5% or 0.05.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    loss: f64,
    /// Swap this share of the datagrams with the next one, such as 5% or 0.05.
    #[arg(long, value_name = "SHARE", default_value = "0", value_parser = parse_share)]
    reorder: f64,
    /// Plot latency by quantile to this SVG file.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write a journal of requests and acknowledgements, for `strowger pfcp audit`.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Keep the sessions in the node at the end instead of deleting them.
    #[arg(long)]
    keep: bool,
    /// Do not establish sessions again that the node lost.
    #[arg(long)]
    forget: bool,
    /// Silence of the node after which a heartbeat is sent; 0s disables heartbeats.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    #[arg(value_parser = strowger::parse_duration)]
    heartbeat: Duration,
    /// Print JSON, one object at the end.
    #[arg(long)]
    json: bool,
}

/// Parses establishments a second.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text
        .parse()
        .map_err(|_| "expected a number such as 200".to_owned())?;
    if rate > 0.0 && rate <= 1e6 {
        Ok(rate)
    } else {
        Err("expected more than 0 and at most 1000000 per second".to_owned())
    }
}

/// Parses modifications for each establishment.
fn parse_ratio(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 100, such as 0.5".to_owned()),
    }
}

/// Parses a share, as a percentage or a fraction.
fn parse_share(text: &str) -> Result<f64, String> {
    let part = match text.strip_suffix('%') {
        Some(hundredths) => hundredths.trim().parse().map(|part: f64| part / 100.0),
        None => text.parse(),
    };
    match part {
        Ok(part) if (0.0..1.0).contains(&part) => Ok(part),
        _ => Err("expected a share below 1, such as 5% or 0.05".to_owned()),
    }
}

pub(crate) fn run(args: &LoadArgs, output: &mut Output) -> CliResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::outside(format!("cannot start the async runtime: {error}")))?;
    runtime.block_on(load(args, output))
}

async fn load(args: &LoadArgs, output: &mut Output) -> CliResult {
    let mut signals = ShutdownSignals::new()?;
    let system = ActorSystem::new("load").map_err(|error| Failure::outside(error.to_string()))?;
    let stats = load_in(&system, args, &mut signals, output).await;
    system.shutdown(SHUTDOWN_TIMEOUT).await;
    let stats = stats?;
    if let Some(path) = &args.plot {
        let title = format!("{}: {} replies", args.to, stats.answered);
        std::fs::write(path, plot::svg(&stats, &title))
            .map_err(|error| Failure::file(path, &error))?;
    }
    if args.json {
        output.json(&to_json(&stats))?;
    } else {
        print_report(&stats, output)?;
    }
    verdict(&stats)
}

/// Time that the actors of an SMF have to stop.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

async fn load_in(
    system: &ActorSystem,
    args: &LoadArgs,
    signals: &mut ShutdownSignals,
    output: &mut Output,
) -> CliResult<LoadStats> {
    let started = Load::start(system, args.plan()?).await;
    let handle = started.map_err(|error| smf_failure(&error))?;
    if !args.json {
        let local = handle.local_addr();
        output.line(format!("load from {local} to {}; Ctrl-C ends it", args.to))?;
    }
    show_progress(args, &handle, signals, output).await
}

/// Waits for the end and shows progress.
async fn show_progress(
    args: &LoadArgs,
    handle: &LoadHandle,
    signals: &mut ShutdownSignals,
    output: &mut Output,
) -> CliResult<LoadStats> {
    let mut every = tokio::time::interval(Duration::from_secs(1));
    let finished = handle.finished();
    tokio::pin!(finished);
    loop {
        tokio::select! {
            stats = &mut finished => return Ok(stats),
            () = signals.recv() => handle.stop(),
            _ = every.tick() => {
                if !args.json {
                    output.live(progress_line(&handle.snapshot()))?;
                }
            }
        }
    }
}

fn progress_line(stats: &LoadStats) -> String {
    format!(
        "{:.0} s  {} held  {:.0}/s  p50 {}  p99 {}  {} rejected  {} lost  {} restored",
        stats.elapsed.as_secs_f64(),
        stats.held,
        stats.rate(),
        latency::format_micros(quantile_micros(stats, 0.5)),
        latency::format_micros(quantile_micros(stats, 0.99)),
        stats.rejected,
        stats.lost,
        stats.sessions_restored,
    )
}

/// Returns a quantile in whole microseconds.
#[must_use]
pub fn quantile_micros(stats: &LoadStats, quantile: f64) -> u64 {
    stats.latency.value_at_quantile(quantile).div_ceil(1000)
}

impl LoadArgs {
    fn plan(&self) -> CliResult<LoadPlan> {
        let mut plan = LoadPlan::new(self.to);
        plan.node_id.clone_from(&self.node_id);
        plan.profile = self.profile.profile(&plan.profile);
        let mix = self.mix.as_deref().map(read_mix).transpose()?;
        let modifications = self.modify.or_else(|| mix.map(|mix| mix.modifications));
        plan.modifications = modifications.unwrap_or(0.0);
        plan.shares = mix.map_or(plan.shares, |mix| mix.shares);
        plan.listen = self.from.unwrap_or(plan.listen);
        plan.pace = match self.in_flight {
            Some(most) => LoadPace::InFlight(usize::from(most)),
            None => LoadPace::Rate(self.rate),
        };
        plan.release = self.release;
        plan.sessions = self.sessions;
        plan.duration = self.duration;
        (plan.t1, plan.n1) = (self.wait, self.tries);
        plan.keep = self.keep;
        plan.on_loss = match self.forget {
            true => OnLoss::Forget,
            false => OnLoss::Restore,
        };
        plan.heartbeat = self.heartbeat;
        (plan.loss, plan.reordering) = (self.loss, self.reorder);
        plan.journal.clone_from(&self.journal);
        Ok(plan)
    }
}

/// Maximum size of a mix file, in bytes.
const MAX_MIX: usize = 64 * 1024;

/// Reads the mix from a file.
fn read_mix(path: &Path) -> CliResult<LoadMix> {
    let wrong = |what: String| {
        Failure::input(format!("{}: {what}", path.display()))
            .hint("see the example of a mix in `strowger pfcp load --help`")
    };
    let bytes = read_plain(path, MAX_MIX)?;
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.to_string()))?;
    let mix: LoadMix = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    mix.check().map_err(|error| wrong(error.to_string()))?;
    Ok(mix)
}

/// Converts the error to a failure that says what to do.
#[must_use]
pub fn smf_failure(error: &ClientError) -> Failure {
    let failure = Failure::outside(error.to_string());
    match error {
        ClientError::NodeId(_) | ClientError::Profile(_) | ClientError::Mix(_) => {
            Failure::input(error.to_string())
                .hint("check --node-id, --dnn, --pdn-type, --ue-pool and --sessions")
        }
        ClientError::Bind(_) => failure.hint("choose another address with --from"),
        ClientError::Journal(_) | ClientError::InvalidAnswer { .. } => failure,
        ClientError::Refused { .. } => failure.hint(
            "a node that resolves Node IDs needs --node-id with the address of --from; see also \
             its log",
        ),
        _ => failure.hint(
            "start a node with `strowger run` or `strowger demo`; check that it allows peers from \
             this host and can resolve --node-id",
        ),
    }
}

fn to_json(stats: &LoadStats) -> Value {
    let causes = stats
        .causes
        .iter()
        .map(|(cause, count)| (cause.to_string(), json!(count)));
    json!({
        "sent": stats.sent,
        "answered": stats.answered,
        "accepted": stats.accepted,
        "rejected": stats.rejected,
        "lost": stats.lost,
        "invalid": stats.invalid,
        "established": stats.established,
        "modified": stats.modified,
        "changes": changes_to_json(&stats.changes),
        "downlink_reports": stats.downlink_reports,
        "usage_reports": stats.usage_reports,
        "deleted": stats.deleted,
        "held": stats.held,
        "retransmitted": stats.retransmitted,
        "p50_us": quantile_micros(stats, 0.5),
        "p90_us": quantile_micros(stats, 0.9),
        "p99_us": quantile_micros(stats, 0.99),
        "p999_us": quantile_micros(stats, 0.999),
        "p9999_us": quantile_micros(stats, 0.9999),
        "dropped": stats.dropped,
        "overtaken": stats.datagrams_reordered,
        "rate": (stats.rate() * 10.0).round() / 10.0,
        "seconds": (stats.elapsed.as_secs_f64() * 1e3).round() / 1e3,
        "peers_lost": stats.peers_lost,
        "peers_found": stats.peers_found,
        "sessions_lost": stats.sessions_lost,
        "sessions_restored": stats.sessions_restored,
        "sessions_refused": stats.sessions_refused,
        "unanswered": stats.unanswered,
        "skipped": stats.skipped,
        "causes": causes.collect::<Map<_, _>>(),
    })
}

fn changes_to_json(changes: &ChangeStats) -> Value {
    json!({
        "handover": changes.handover,
        "idle": changes.idle,
        "resume": changes.resume,
        "qos": changes.qos,
        "report": changes.report,
        "precedence": changes.precedence,
    })
}

fn print_report(stats: &LoadStats, output: &mut Output) -> CliResult {
    output.line("")?;
    let mut table = Table::new(["latency", "due until response"]);
    for (name, quantile) in [
        ("p50", 0.5),
        ("p90", 0.9),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
    ] {
        table.row([
            name.to_owned(),
            latency::format_micros(quantile_micros(stats, quantile)),
        ]);
    }
    table.row([
        "highest".to_owned(),
        latency::format_micros(stats.latency.max().div_ceil(1000)),
    ]);
    table.print(output)?;
    output.line("")?;
    let mut table = Table::new(["cause", "responses", "meaning"]);
    for (&cause, count) in &stats.causes {
        table.row([
            cause.to_string(),
            count.to_string(),
            Cause(cause).to_string(),
        ]);
    }
    table.print(output)?;
    output.line("")?;
    output.line(format!(
        "{} sent, {} answered, {} accepted in {:.1} s, {:.0} establishments/s",
        stats.sent,
        stats.answered,
        stats.accepted,
        stats.elapsed.as_secs_f64(),
        stats.rate(),
    ))?;
    let invalid = match stats.invalid {
        0 => String::new(),
        count => format!(", {count} invalid"),
    };
    let text = format!(
        "{} established, {} modified, {} deleted, {} held, {} rejected, {} lost{invalid}",
        stats.established, stats.modified, stats.deleted, stats.held, stats.rejected, stats.lost,
    );
    if stats.peers_lost > 0 {
        output.line(format!(
            "node lost {} times and found {} times; {} sessions lost, {} restored, {} refused; {} \
             requests skipped meanwhile",
            stats.peers_lost,
            stats.peers_found,
            stats.sessions_lost,
            stats.sessions_restored,
            stats.sessions_refused,
            stats.skipped,
        ))?;
    }
    if stats.modified > 0 {
        output.line(describe_modifications(stats))?;
    }
    let style = if verdict(stats).is_ok() {
        TextStyle::Green
    } else {
        TextStyle::Red
    };
    output.line(output.paint(style, text))
}

/// Describes the accepted modifications.
fn describe_modifications(stats: &LoadStats) -> String {
    let changes = &stats.changes;
    format!(
        "modifications: {} handovers, {} idle, {} reconnected ({} downlink reports), {} QoS \
         changes, {} usage queries, {} precedence changes; {} usage reports",
        changes.handover,
        changes.idle,
        changes.resume,
        stats.downlink_reports,
        changes.qos,
        changes.report,
        changes.precedence,
        stats.usage_reports,
    )
}

fn verdict(stats: &LoadStats) -> CliResult {
    match (stats.lost, stats.rejected, stats.invalid) {
        (0, 0, 0) => Ok(()),
        (lost, rejected, invalid) if invalid > 0 => Err(Failure::check(format!(
            "{lost} lost, {rejected} rejected, {invalid} accepted without a usable UP F-SEID"
        ))
        .hint("the node's responses break TS 29.244 §7.5.3; a capture shows them")),
        (lost, rejected, _) => Err(Failure::check(format!("{lost} lost, {rejected} rejected"))
            .hint("see the causes above, and the node's log")),
    }
}
