//! `strowger run`: a node, until it is told to end.

mod reload;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use strowger::ShutdownReport;
use strowger_gateway::Doors;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::reload::Reload;
use crate::command::signals::Signals;
use crate::compose::{self, Running, n4_stats};
use crate::config::Config;
use crate::exit::{Done, Failure};
use crate::output::{Ink, Output, log_as_configured};

const EXAMPLES: &str = "\
Examples:
  strowger run
  strowger run --config node.toml
  strowger run --config node.toml --pcap n4.pcapng --json
  strowger run --port 0 --control /tmp/upf.sock
  strowger run --metrics 127.0.0.1:9464

Signals:
  SIGINT, SIGTERM  ordered end with a summary, within node.shutdown and 2 s; a second one ends at
                   once, with the exit code 130 or 143
  SIGHUP           reads the configuration again; says what needs a new start

Exit code 1: the node ended by itself, or had to be ended by force.

With --json the first line is {\"n4\": \"127.0.0.1:8805\", \"control\": \"PATH\", \"gateway\": null,
\"tcp\": null, \"web\": null, \"http\": null, \"tools\": []}, and the last one the summary.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The configuration; without one, every key has its default. See `strowger init`.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listens for PFCP on this port in place of those configured; 0 lets the system choose.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Puts the control socket here in place of where it is configured.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Opens a unix socket here for those who speak to actors, in place of where it is configured.
    #[arg(long, value_name = "SOCKET")]
    gateway: Option<PathBuf>,
    /// Has the actor that the conformance suite of clients speaks to.
    #[arg(long)]
    conformance: bool,
    /// Answers HTTP here with /metrics, /healthz and /readyz, in place of where it is configured.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Writes the node's own PFCP traffic to a pcapng file.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Ends in order when standard input does, and so with the program that started it.
    #[arg(long)]
    with_parent: bool,
    /// Prints objects, one on each line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> Done {
    let (mut config, text) = match &args.config {
        Some(path) => Config::read(path)?,
        None => (Config::default(), String::new()),
    };
    log_as_configured(&config.log.filter);
    args.apply(&mut config);
    let reload = Reload::new(args.config.clone(), text);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::outside(format!("no runtime: {error}")))?;
    let done = runtime.block_on(serve(args, &config, reload, output));
    // Nobody waits for a thread that reads a slow disk.
    runtime.shutdown_timeout(THREADS);
    done
}

/// How much longer than `node.shutdown` an ordered end may take until the process ends by force.
const GRACE: Duration = Duration::from_secs(2);
/// How long threads have to end that still read a file or write one.
const THREADS: Duration = Duration::from_millis(200);

impl Args {
    /// Lets the command line go before the file.
    fn apply(&self, config: &mut Config) {
        if let Some(port) = self.port {
            for address in &mut config.n4.listen {
                address.set_port(port);
            }
        }
        if let Some(path) = &self.control {
            config.control.socket = Some(path.clone());
        }
        if let Some(path) = &self.gateway {
            config.gateway.socket = Some(path.clone());
        }
        config.gateway.conformance |= self.conformance;
        if let Some(address) = self.metrics {
            config.metrics.listen = Some(address);
        }
        if let Some(path) = &self.pcap {
            config.n4.pcap = Some(path.clone());
        }
    }
}

/// The signals that a node listens to, from before it says that it is there.
struct News {
    end: Signals,
    hang_up: Signal,
    /// Never ends, where nobody wants to know.
    parent: oneshot::Receiver<()>,
    /// Held so that it does not.
    _no_parent: Option<oneshot::Sender<()>>,
}

enum Next {
    End,
    Reload,
}

impl News {
    fn new(with_parent: bool, shutdown: Duration) -> Done<Self> {
        let hang_up = signal(SignalKind::hangup());
        let (gone, parent) = oneshot::channel();
        let mut gone = Some(gone);
        if with_parent {
            watch_parent(gone.take())?;
        }
        Ok(Self {
            parent,
            _no_parent: gone,
            end: Signals::within(shutdown.saturating_add(GRACE))?,
            hang_up: hang_up.map_err(|error| Failure::outside(format!("no signals: {error}")))?,
        })
    }

    async fn next(&mut self) -> Next {
        tokio::select! {
            () = self.end.end() => Next::End,
            _ = &mut self.parent => Next::End,
            _ = self.hang_up.recv() => Next::Reload,
        }
    }
}

/// Lets the sender go when standard input ends. A thread, because nothing else waits for a terminal
/// or a file; it ends with the process.
fn watch_parent(gone: Option<oneshot::Sender<()>>) -> Done {
    let watch = move || {
        // What comes is nobody's, and an error is an end as well.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(gone);
    };
    let spawned = std::thread::Builder::new()
        .name("parent".to_owned())
        .spawn(watch);
    spawned
        .map(drop)
        .map_err(|error| Failure::outside(format!("no thread: {error}")))
}

async fn serve(args: &Args, config: &Config, mut reload: Reload, output: &mut Output) -> Done {
    let mut news = News::new(args.with_parent, config.node.shutdown)?;
    let since = Instant::now();
    let running = compose::start(config).await?;
    announce(args, &running, output)?;
    let ended = loop {
        tokio::select! {
            next = news.next() => match next {
                Next::End => break None,
                Next::Reload => {
                    reload.again(args.json, output)?;
                    output.flush()?;
                }
            },
            exit = running.node.ended() => break Some(exit),
        }
    };
    // Read before the end, when there are sessions to count.
    let stats = n4_stats(&running.node);
    let report = running.shutdown().await;
    let seconds = since.elapsed().as_secs_f64();
    summary(args, stats, &report, seconds, output)?;
    if let Some(exit) = ended {
        // A process that serves nothing is worse than none: whoever watches it starts it again.
        return Err(Failure::found(format!("the node ended by itself: {exit}")));
    }
    match report.not_stopped.as_slice() {
        [] => Ok(()),
        left => {
            let left: Vec<String> = left.iter().map(ToString::to_string).collect();
            let text = format!("killed what had not stopped in time: {}", left.join(", "));
            Err(Failure::found(text).hint("node.shutdown says how long they get"))
        }
    }
}

fn announce(args: &Args, running: &Running, output: &mut Output) -> Done {
    if args.json {
        output.json(&running.announcement())?;
    } else {
        for address in &running.n4 {
            let address = output.paint(Ink::Bold, address);
            output.line(format!("n4       {address}"))?;
        }
        let control = output.paint(Ink::Bold, running.control.display());
        output.line(format!("control  {control}"))?;
        let doors = running.doors.as_ref();
        if let Some(path) = doors.and_then(Doors::socket) {
            let gateway = output.paint(Ink::Bold, path.display());
            output.line(format!("gateway  {gateway}"))?;
        }
        if let Some(address) = doors.and_then(Doors::tcp) {
            let address = output.paint(Ink::Bold, format!("tcp://{address}"));
            output.line(format!("gateway  {address}"))?;
        }
        if let Some(address) = doors.and_then(Doors::web) {
            let address = output.paint(Ink::Bold, format!("ws://{address}"));
            output.line(format!("gateway  {address}"))?;
        }
        if let Some(address) = running.http {
            let metrics = output.paint(Ink::Bold, format!("http://{address}/metrics"));
            output.line(format!("metrics  {metrics}"))?;
        }
        for address in running.tools.addresses() {
            let address = output.paint(Ink::Bold, address);
            output.line(format!("tools    {address}"))?;
        }
        let hint = output.paint(Ink::Faint, "ctrl-c ends the node, `strowger tree` shows it");
        output.line(hint)?;
    }
    output.flush()
}

fn summary(
    args: &Args,
    stats: Value,
    report: &ShutdownReport,
    seconds: f64,
    output: &mut Output,
) -> Done {
    if args.json {
        let mut last = stats;
        last["stopped"] = json!(report.stopped);
        let left = report.not_stopped.iter().map(ToString::to_string);
        last["not_stopped"] = left.collect();
        last["seconds"] = json!((seconds * 1e3).round() / 1e3);
        return output.json(&last);
    }
    output.line(format!(
        "ended after {seconds:.1} s: {} sessions held, {} established, {} modified, {} deleted; \
         {} actors stopped",
        stats["sessions"],
        stats["established"],
        stats["modified"],
        stats["deleted"],
        report.stopped,
    ))
}
