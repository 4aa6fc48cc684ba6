//! `strowger run`: a node that runs until a signal stops it.

mod reload;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use strowger::ShutdownReport;
use strowger_gateway::listeners::Listeners;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::reload::ConfigReload;
use crate::compose::{self, RunningNode, n4_stats};
use crate::config::Config;
use crate::exit::{CliResult, Failure};
use crate::log::log_as_configured;
use crate::output::{Output, TextStyle};
use strowger_pfcp_cli::signals::ShutdownSignals;

const EXAMPLES: &str = "\
Examples:
  strowger run
  strowger run --config node.toml
  strowger run --config node.toml --pcap n4.pcapng --json
  strowger run --port 0 --control /tmp/upf.sock
  strowger run --metrics 127.0.0.1:9464

Signals:
  SIGINT, SIGTERM  shut down and print a summary, within node.shutdown plus 2 s; a second signal
                   terminates the process at once
  SIGHUP           reload the configuration; keys that need a restart are listed

With --json the first line is {\"n4\": \"127.0.0.1:8805\", \"control\": \"PATH\", \"gateway\": null,
\"tcp\": null, \"web\": null, \"http\": null, \"tools\": []}, and the last line is the summary.

Exit codes:
  1         the node failed, or actors had to be killed at shutdown
  130, 143  terminated at once by a second SIGINT or SIGTERM";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    /// Configuration file (TOML), see `strowger init` [default: all defaults].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// UDP port for PFCP, overriding n4.listen; 0 picks a free port.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Path of the control socket, overriding control.socket.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Path of the Unix socket for clients of actors, overriding gateway.socket.
    #[arg(long, value_name = "SOCKET")]
    gateway: Option<PathBuf>,
    /// Start the actor used by the conformance suite of client libraries.
    #[arg(long)]
    conformance: bool,
    /// Serve /metrics, /healthz and /readyz over HTTP on this address, overriding metrics.listen.
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// Capture the node's PFCP traffic to a pcapng file, overriding n4.pcap.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Shut down when standard input reaches EOF, so that the node exits with its parent process.
    #[arg(long)]
    with_parent: bool,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &RunArgs, output: &mut Output) -> CliResult {
    let (mut config, text) = match &args.config {
        Some(path) => Config::read(path)?,
        None => (Config::default(), String::new()),
    };
    log_as_configured(&config.log.filter);
    args.apply(&mut config);
    let reload = ConfigReload::new(args.config.clone(), text);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::outside(format!("cannot start the async runtime: {error}")))?;
    let done = runtime.block_on(serve(args, &config, reload, output));
    // Do not wait for a thread that reads a slow disk.
    runtime.shutdown_timeout(BLOCKING_TIMEOUT);
    done
}

/// Time that blocking threads have to finish reading or writing a file.
const BLOCKING_TIMEOUT: Duration = Duration::from_millis(200);

impl RunArgs {
    /// Overrides the file with the command line.
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

/// The signals that a node reacts to, registered before the node announces that it runs.
struct NodeSignals {
    shutdown: ShutdownSignals,
    hang_up: Signal,
    /// Resolves when standard input ends; stays pending if `--with-parent` is not set.
    parent: oneshot::Receiver<()>,
    /// Keeps `parent` pending if standard input is not watched.
    _no_parent: Option<oneshot::Sender<()>>,
}

enum NodeEvent {
    End,
    ConfigReload,
}

impl NodeSignals {
    fn new(with_parent: bool, shutdown: Duration) -> CliResult<Self> {
        let hang_up = signal(SignalKind::hangup());
        let (gone, parent) = oneshot::channel();
        let mut gone = Some(gone);
        if with_parent {
            watch_parent(gone.take())?;
        }
        Ok(Self {
            parent,
            _no_parent: gone,
            shutdown: ShutdownSignals::with_time_limit(shutdown)?,
            hang_up: hang_up
                .map_err(|error| Failure::outside(format!("cannot listen for signals: {error}")))?,
        })
    }

    async fn next(&mut self) -> NodeEvent {
        tokio::select! {
            () = self.shutdown.recv() => NodeEvent::End,
            _ = &mut self.parent => NodeEvent::End,
            _ = self.hang_up.recv() => NodeEvent::ConfigReload,
        }
    }
}

/// Drops the sender when standard input ends. This takes a thread, because reading a terminal or a
/// file blocks; the thread ends with the process.
fn watch_parent(gone: Option<oneshot::Sender<()>>) -> CliResult {
    let watch = move || {
        // Input is discarded, and an error ends it as well.
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        drop(gone);
    };
    let spawned = std::thread::Builder::new()
        .name("parent".to_owned())
        .spawn(watch);
    spawned
        .map(drop)
        .map_err(|error| Failure::outside(format!("cannot start a thread: {error}")))
}

async fn serve(
    args: &RunArgs,
    config: &Config,
    mut reload: ConfigReload,
    output: &mut Output,
) -> CliResult {
    let mut signals = NodeSignals::new(args.with_parent, config.node.shutdown)?;
    let since = Instant::now();
    let running = compose::start(config).await?;
    announce(args, &running, output)?;
    let ended = loop {
        tokio::select! {
            next = signals.next() => match next {
                NodeEvent::End => break None,
                NodeEvent::ConfigReload => {
                    reload.reload(args.json, output)?;
                    output.flush()?;
                }
            },
            exit = running.node.ended() => break Some(exit),
        }
    };
    // Read before the shutdown, while there are sessions to count.
    let stats = n4_stats(&running.node);
    let report = running.shutdown().await;
    let seconds = since.elapsed().as_secs_f64();
    summary(args, stats, &report, seconds, output)?;
    if let Some(exit) = ended {
        // A process that serves nothing is worse than none: exit, so that the service manager
        // restarts it.
        return Err(Failure::check(format!("the node failed: {exit}")));
    }
    match report.not_stopped.as_slice() {
        [] => Ok(()),
        left => {
            let left: Vec<String> = left.iter().map(ToString::to_string).collect();
            let text = format!(
                "killed actors that did not stop in time: {}",
                left.join(", ")
            );
            Err(Failure::check(text).hint("raise the time limit, node.shutdown"))
        }
    }
}

fn announce(args: &RunArgs, running: &RunningNode, output: &mut Output) -> CliResult {
    if args.json {
        output.json(&running.announcement())?;
    } else {
        for address in &running.n4 {
            let address = output.paint(TextStyle::Bold, address);
            output.line(format!("n4       {address}"))?;
        }
        let control = output.paint(TextStyle::Bold, running.control.display());
        output.line(format!("control  {control}"))?;
        let endpoints = running.endpoints.as_ref();
        if let Some(path) = endpoints.and_then(Listeners::socket_path) {
            let gateway = output.paint(TextStyle::Bold, path.display());
            output.line(format!("gateway  {gateway}"))?;
        }
        if let Some(address) = endpoints.and_then(Listeners::tcp_address) {
            let address = output.paint(TextStyle::Bold, format!("tcp://{address}"));
            output.line(format!("gateway  {address}"))?;
        }
        if let Some(address) = endpoints.and_then(Listeners::websocket_address) {
            let address = output.paint(TextStyle::Bold, format!("ws://{address}"));
            output.line(format!("gateway  {address}"))?;
        }
        if let Some(address) = running.http {
            let metrics = output.paint(TextStyle::Bold, format!("http://{address}/metrics"));
            output.line(format!("metrics  {metrics}"))?;
        }
        for address in running.tools.addresses() {
            let address = output.paint(TextStyle::Bold, address);
            output.line(format!("tools    {address}"))?;
        }
        let hint = output.paint(
            TextStyle::Faint,
            "Ctrl-C stops the node, `strowger tree` shows its actors",
        );
        output.line(hint)?;
    }
    output.flush()
}

fn summary(
    args: &RunArgs,
    stats: Value,
    report: &ShutdownReport,
    seconds: f64,
    output: &mut Output,
) -> CliResult {
    if args.json {
        let mut last = stats;
        last["stopped"] = json!(report.stopped);
        let left = report.not_stopped.iter().map(ToString::to_string);
        last["not_stopped"] = left.collect();
        last["seconds"] = json!((seconds * 1e3).round() / 1e3);
        return output.json(&last);
    }
    output.line(format!(
        "stopped after {seconds:.1} s: {} sessions held, {} established, {} modified, {} deleted; \
         {} actors stopped",
        stats["sessions"],
        stats["established"],
        stats["modified"],
        stats["deleted"],
        report.stopped,
    ))
}
