//! `strowger pfcp load`: an SMF that loads a node.

mod plot;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value, json};
use strowger::ActorSystem;
use strowger_pfcp::Release;
use strowger_pfcp::ie::Cause;
use strowger_pfcp_node::{ClientError, Load, LoadFigures, LoadHandle, LoadPlan, OnLoss, Pace};

use crate::command::latency;
use crate::command::signals::Signals;
use crate::command::span;
use crate::exit::{Done, Failure};
use crate::output::{Ink, Output, Table};

const EXAMPLES: &str = "\
Examples:
  strowger pfcp load --to 127.0.0.1:8805
  strowger pfcp load --to 127.0.0.1:8805 --rate 5000 --sessions 20000 --for 30s
  strowger pfcp load --to 127.0.0.1:8805 --in-flight 32 --for 10s --json | tail -n 1
  strowger pfcp load --to 127.0.0.1:8805 --sessions 100 --for 1s --keep
  strowger pfcp load --to 127.0.0.1:8805 --for 30s --loss 5% --reorder 5% --plot latency.svg
  strowger pfcp load --to 127.0.0.1:8805 --for 5s --modify 0.5 --keep --ledger acknowledged

Sessions are established at the rate until as many are held as wanted; then the oldest makes room
for each new one. Latency counts from the moment when a request was due. At the end all sessions
are deleted, which also shows whether the node still knows them.

A node that does not answer, or that restarted, is looked for while nothing new is begun. Sessions
that it lost count as lost, and are established again unless --forget is given.

Exit code 1: a request was lost or rejected.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The node to load.
    #[arg(long, value_name = "ADDR")]
    to: SocketAddr,
    /// Where to send from; the system chooses unless it is set.
    #[arg(long, value_name = "ADDR")]
    from: Option<SocketAddr>,
    /// Establishments a second, however fast the node is.
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = rate)]
    rate: f64,
    /// Requests in flight instead of a rate, each followed by the next.
    #[arg(long, value_name = "N", conflicts_with = "rate")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    in_flight: Option<u16>,
    /// How many sessions are held at most.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    sessions: usize,
    /// For how long; without it, until ctrl-c.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    duration: Option<Duration>,
    /// How long to wait for an answer before asking again.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::parse)]
    wait: Duration,
    /// How often to ask before a request counts as lost.
    #[arg(long, value_name = "N", default_value_t = 3)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    tries: u32,
    /// Modifications for each establishment, such as 0.5.
    #[arg(long, value_name = "N", default_value_t = 0.0, value_parser = share)]
    modify: f64,
    /// The release to speak: R17 or R19.
    #[arg(long, value_name = "RELEASE", default_value_t = Release::default())]
    release: Release,
    /// Loses this part of the datagrams, both ways: 5% or 0.05.
    #[arg(long, value_name = "PART", default_value = "0", value_parser = part)]
    loss: f64,
    /// Lets this part of the datagrams be overtaken by the next one: 5% or 0.05.
    #[arg(long, value_name = "PART", default_value = "0", value_parser = part)]
    reorder: f64,
    /// Draws latency by quantile as SVG.
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Writes what is asked and what is acknowledged, for `strowger pfcp audit`.
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Leaves the sessions in the node.
    #[arg(long)]
    keep: bool,
    /// Forgets sessions that the node lost, instead of establishing them again.
    #[arg(long)]
    forget: bool,
    /// How long the node may be silent before it is asked for a heartbeat; 0s never asks.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::parse)]
    heartbeat: Duration,
    /// Prints one object at the end.
    #[arg(long)]
    json: bool,
}

/// Reads establishments a second.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text
        .parse()
        .map_err(|_| "expected a number such as 200".to_owned())?;
    if rate > 0.0 && rate <= 1e6 {
        Ok(rate)
    } else {
        Err("expected more than 0 and at most a million a second".to_owned())
    }
}

/// Reads modifications for each establishment.
fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(share),
        _ => Err("expected a number from 0 to 100, such as 0.5".to_owned()),
    }
}

/// Reads a part of something.
fn part(text: &str) -> Result<f64, String> {
    let part = match text.strip_suffix('%') {
        Some(hundredths) => hundredths.trim().parse().map(|part: f64| part / 100.0),
        None => text.parse(),
    };
    match part {
        Ok(part) if (0.0..1.0).contains(&part) => Ok(part),
        _ => Err("expected a part below one, such as 5% or 0.05".to_owned()),
    }
}

pub(crate) fn run(args: &Args, output: &mut Output) -> Done {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::outside(format!("no runtime: {error}")))?;
    runtime.block_on(load(args, output))
}

async fn load(args: &Args, output: &mut Output) -> Done {
    let mut signals = Signals::new()?;
    let system = ActorSystem::new("load").map_err(|error| Failure::outside(error.to_string()))?;
    let figures = load_in(&system, args, &mut signals, output).await;
    system.shutdown(ORDERLY).await;
    let figures = figures?;
    if let Some(path) = &args.plot {
        let title = format!("{}: {} answers", args.to, figures.answered);
        std::fs::write(path, plot::svg(&figures, &title))
            .map_err(|error| Failure::file(path, &error))?;
    }
    if args.json {
        output.json(&to_json(&figures))?;
    } else {
        report(&figures, output)?;
    }
    verdict(&figures)
}

/// How long the actors of an SMF get to end.
pub(crate) const ORDERLY: Duration = Duration::from_secs(5);

async fn load_in(
    system: &ActorSystem,
    args: &Args,
    signals: &mut Signals,
    output: &mut Output,
) -> Done<LoadFigures> {
    let started = Load::start(system, args.plan()).await;
    let handle = started.map_err(|error| failed(&error))?;
    if !args.json {
        let local = handle.local_addr();
        output.line(format!("{local} loads {}; ctrl-c ends it", args.to))?;
    }
    watch(args, &handle, signals, output).await
}

/// Waits for the end and shows how it goes.
async fn watch(
    args: &Args,
    handle: &LoadHandle,
    signals: &mut Signals,
    output: &mut Output,
) -> Done<LoadFigures> {
    let mut every = tokio::time::interval(Duration::from_secs(1));
    let finished = handle.finished();
    tokio::pin!(finished);
    loop {
        tokio::select! {
            figures = &mut finished => return Ok(figures),
            () = signals.end() => handle.stop(),
            _ = every.tick() => {
                if !args.json {
                    output.live(line(&handle.snapshot()))?;
                }
            }
        }
    }
}

fn line(figures: &LoadFigures) -> String {
    format!(
        "{:.0} s  {} held  {:.0}/s  p50 {}  p99 {}  {} rejected  {} lost  {} restored",
        figures.elapsed.as_secs_f64(),
        figures.held,
        figures.rate(),
        latency::text(micros(figures, 0.5)),
        latency::text(micros(figures, 0.99)),
        figures.rejected,
        figures.lost,
        figures.sessions_restored,
    )
}

/// A quantile in whole microseconds.
pub(crate) fn micros(figures: &LoadFigures, quantile: f64) -> u64 {
    figures.latency.value_at_quantile(quantile).div_ceil(1000)
}

impl Args {
    fn plan(&self) -> LoadPlan {
        let mut plan = LoadPlan::new(self.to);
        plan.listen = self.from.unwrap_or(plan.listen);
        plan.pace = match self.in_flight {
            Some(most) => Pace::InFlight(usize::from(most)),
            None => Pace::Rate(self.rate),
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
        plan.modifications = self.modify;
        (plan.loss, plan.reordering) = (self.loss, self.reorder);
        plan.ledger.clone_from(&self.ledger);
        plan
    }
}

/// Says why there is no load, and what to do.
pub(crate) fn failed(error: &ClientError) -> Failure {
    let failure = Failure::outside(error.to_string());
    match error {
        ClientError::Bind(_) => failure.hint("--from says where to send from"),
        ClientError::Ledger(_) => failure,
        _ => failure.hint(
            "`strowger run` or `strowger demo` starts a node; does it allow peers from here?",
        ),
    }
}

fn to_json(figures: &LoadFigures) -> Value {
    let causes = figures
        .causes
        .iter()
        .map(|(cause, count)| (cause.to_string(), json!(count)));
    json!({
        "sent": figures.sent,
        "answered": figures.answered,
        "accepted": figures.accepted,
        "rejected": figures.rejected,
        "lost": figures.lost,
        "established": figures.established,
        "modified": figures.modified,
        "deleted": figures.deleted,
        "held": figures.held,
        "retransmitted": figures.retransmitted,
        "p50_us": micros(figures, 0.5),
        "p90_us": micros(figures, 0.9),
        "p99_us": micros(figures, 0.99),
        "p999_us": micros(figures, 0.999),
        "p9999_us": micros(figures, 0.9999),
        "dropped": figures.dropped,
        "overtaken": figures.overtaken,
        "rate": (figures.rate() * 10.0).round() / 10.0,
        "seconds": (figures.elapsed.as_secs_f64() * 1e3).round() / 1e3,
        "peers_lost": figures.peers_lost,
        "peers_found": figures.peers_found,
        "sessions_lost": figures.sessions_lost,
        "sessions_restored": figures.sessions_restored,
        "sessions_refused": figures.sessions_refused,
        "unanswered": figures.unanswered,
        "skipped": figures.skipped,
        "causes": causes.collect::<Map<_, _>>(),
    })
}

fn report(figures: &LoadFigures, output: &mut Output) -> Done {
    output.line("")?;
    let mut table = Table::new(["latency", "from due to answered"]);
    for (name, quantile) in [
        ("p50", 0.5),
        ("p90", 0.9),
        ("p99", 0.99),
        ("p99.9", 0.999),
        ("p99.99", 0.9999),
    ] {
        table.row([name.to_owned(), latency::text(micros(figures, quantile))]);
    }
    table.row([
        "highest".to_owned(),
        latency::text(figures.latency.max().div_ceil(1000)),
    ]);
    table.print(output)?;
    output.line("")?;
    let mut table = Table::new(["cause", "answers", "meaning"]);
    for (&cause, count) in &figures.causes {
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
        figures.sent,
        figures.answered,
        figures.accepted,
        figures.elapsed.as_secs_f64(),
        figures.rate(),
    ))?;
    let text = format!(
        "{} established, {} modified, {} deleted, {} held, {} rejected, {} lost",
        figures.established,
        figures.modified,
        figures.deleted,
        figures.held,
        figures.rejected,
        figures.lost,
    );
    if figures.peers_lost > 0 {
        output.line(format!(
            "node lost {} times and found {} times; {} sessions lost, {} restored, {} refused; \
             {} requests left out meanwhile",
            figures.peers_lost,
            figures.peers_found,
            figures.sessions_lost,
            figures.sessions_restored,
            figures.sessions_refused,
            figures.skipped,
        ))?;
    }
    let ink = if verdict(figures).is_ok() {
        Ink::Green
    } else {
        Ink::Red
    };
    output.line(output.paint(ink, text))
}

fn verdict(figures: &LoadFigures) -> Done {
    match (figures.lost, figures.rejected) {
        (0, 0) => Ok(()),
        (lost, rejected) => Err(Failure::found(format!("{lost} lost, {rejected} rejected"))
            .hint("the causes say why; the node's log says more")),
    }
}
