//! `strowger demo`: a node with embedded defaults, and an SMF that keeps it busy.

#[cfg(feature = "agents")]
mod agents;
#[cfg(not(feature = "agents"))]
#[path = "demo/without_agents.rs"]
mod agents;
#[cfg(feature = "components")]
mod policy;
#[cfg(not(feature = "components"))]
#[path = "demo/without_components.rs"]
mod policy;
mod stats;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp_node::{
    DataPathKind, Load, LoadHandle, LoadPace, LoadPlan, PanicInjection, ReportPort,
};
use tokio::time::{Instant, interval_at, sleep_until};

use self::agents::DemoTools;
use self::policy::TrapMessage;
use self::stats::DemoStats;
use super::duration;
use crate::compose::{self, RunningNode};
use crate::config::Config;
use crate::control;
use crate::exit::{CliResult, Failure};
use crate::log::log_as_configured;
use crate::output::{Output, TextStyle};
use strowger_pfcp_cli::load;
use strowger_pfcp_cli::signals::ShutdownSignals;

const TEMPLATE: &str = "\
Examples:
  strowger demo
  strowger demo --for 10s --chaos
  strowger demo --rate 2000 --sessions 10000
  strowger demo --for 10s --json --port 0 --pcap n4.pcapng

The SMF establishes sessions at --rate until --sessions are held, then keeps replacing the oldest.

With --chaos, session handlers panic while they are in use. Each session must then accept a
modification that names its own PDR; otherwise it counts as lost.

POLICY

TOOLS

User traffic is simulated: sessions count it and report usage to the SMF, but forward no packets.

With --json the first line is {\"n4\": \"127.0.0.1:8805\", \"control\": \"PATH\", \"http\":
\"127.0.0.1:9464\", \"tools\": [\"@(tools/files)\", ...]}, and the last line is the summary.

Exit codes:
  1  a session was lost or rejected";

/// Returns the end of the help, which describes the parts that this program was built with.
fn after_help() -> String {
    TEMPLATE
        .replace("POLICY", policy::HELP)
        .replace("TOOLS", agents::HELP)
}

/// Panics a second: more than the promised ten, since the first ones wait until a session is held.
const PANICS_PER_SECOND: f64 = 12.0;

#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub(crate) struct DemoArgs {
    /// Stop after this time, such as 30s or 5m [default: run until Ctrl-C].
    #[arg(long = "for", value_name = "DURATION", value_parser = duration::parse)]
    duration: Option<Duration>,
    /// Sessions to establish per second.
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = load::parse_rate)]
    rate: f64,
    /// Number of sessions to hold at the same time.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    sessions: usize,
    /// Make session handlers panic, at least ten times per second.
    #[arg(long)]
    chaos: bool,
    /// UDP port for PFCP; 0 picks a free port.
    #[arg(long, value_name = "PORT", default_value_t = strowger_pfcp_node::PFCP_PORT)]
    port: u16,
    /// Path of the control socket.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Serve /metrics, /healthz and /readyz over HTTP on this address [default: 127.0.0.1:9464, or
    /// another port if that is in use].
    #[arg(long, value_name = "ADDR")]
    metrics: Option<SocketAddr>,
    /// Capture the node's PFCP traffic to a pcapng file.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Print JSON, one object at the start and one at the end.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &DemoArgs, output: &mut Output) -> CliResult {
    // Each unanswered policy request is logged as a warning; the summary counts them.
    log_as_configured(LOG_FILTER);
    if args.chaos {
        silence_injected_panics();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::outside(format!("cannot start the async runtime: {error}")))?;
    let done = runtime.block_on(demo(args, output));
    // Do not wait for a thread that reads a slow disk.
    runtime.shutdown_timeout(BLOCKING_TIMEOUT);
    done
}

/// Time that blocking threads have to finish reading or writing a file.
const BLOCKING_TIMEOUT: Duration = Duration::from_millis(200);

async fn demo(args: &DemoArgs, output: &mut Output) -> CliResult {
    let mut config = args.config();
    // The actors of the SMF stop first, then those of the node.
    let orderly = load::SHUTDOWN_TIMEOUT.saturating_add(config.node.shutdown);
    let mut signals = ShutdownSignals::with_time_limit(orderly)?;
    let tools = DemoTools::create()?;
    tools.grant(&mut config);
    let running = compose::start(&config).await?;
    announce(args, &running, output)?;
    let stats = run_load(args, &running, &mut signals, output).await;
    running.shutdown().await;
    tools.remove();
    let stats = stats?;
    if args.json {
        output.json(&stats.to_json())?;
    } else {
        stats.report(output)?;
    }
    stats.verdict()
}

impl DemoArgs {
    fn config(&self) -> Config {
        let mut config = Config::default();
        for address in &mut config.n4.listen {
            address.set_port(self.port);
        }
        config.n4.pcap.clone_from(&self.pcap);
        config.control.socket.clone_from(&self.control);
        config.metrics.listen = Some(self.metrics.unwrap_or(METRICS_ADDRESS));
        config.metrics.any_port = self.metrics.is_none();
        let room = self.sessions.saturating_add(SPARE_SESSIONS);
        config.n4.limits.sessions = config.n4.limits.sessions.max(room);
        config.n4.data_path.kind = DataPathKind::Simulated;
        // The SMF is on the same host, where the node has port 8805.
        config.n4.peer.report_port = ReportPort::Source;
        policy::configure(&mut config);
        config
    }

    fn plan(&self, running: &RunningNode) -> LoadPlan {
        let to = running.node.local_addr();
        let mut plan = LoadPlan::new(to);
        plan.pace = LoadPace::Rate(self.rate);
        plan.sessions = self.sessions;
        plan.n1 = TRIES;
        plan.usage = Some(REPORT_THRESHOLD);
        plan.rates = true;
        plan.panic_injection = self.chaos.then(|| PanicInjection {
            node: running.node.clone(),
            rate: PANICS_PER_SECOND,
        });
        plan
    }
}

/// The port at which Prometheus exporters usually listen.
const METRICS_ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

/// Number of transmissions of a request by the SMF, one a second: together longer than the policy
/// may take, so that a session whose policy is late is accepted late instead of being given up.
const TRIES: u32 = 10;

/// Bytes of a session after which its usage is reported: a few seconds of the simulated traffic.
const REPORT_THRESHOLD: u64 = 500_000;

/// Sessions beyond the held ones, for anyone who tries the node from another terminal.
const SPARE_SESSIONS: usize = 1000;

/// Runs the load until its time is over or a signal arrives.
async fn run_load(
    args: &DemoArgs,
    running: &RunningNode,
    signals: &mut ShutdownSignals,
    output: &mut Output,
) -> CliResult<DemoStats> {
    // A system of its own: `strowger tree` shows the node only, not its load generator.
    let smf = ActorSystem::new("smf").map_err(|error| Failure::outside(error.to_string()))?;
    let stats = run_load_in(&smf, args, running, signals, output).await;
    smf.shutdown(load::SHUTDOWN_TIMEOUT).await;
    stats
}

async fn run_load_in(
    smf: &ActorSystem,
    args: &DemoArgs,
    running: &RunningNode,
    signals: &mut ShutdownSignals,
    output: &mut Output,
) -> CliResult<DemoStats> {
    let handle = Load::start(smf, args.plan(running))
        .await
        .map_err(|error| load::smf_failure(&error))?;
    let start = Instant::now();
    let end = args.duration.map(|duration| start + duration);
    let watched = show_progress(args, running, &handle, (start, end), signals, output).await;
    handle.stop();
    let last = handle.finished().await;
    watched?;
    Ok(DemoStats::of(&last, running))
}

/// Interval between traps of the policy.
const TRAP_INTERVAL: Duration = Duration::from_millis(500);

/// Draws the live line once a second.
async fn show_progress(
    args: &DemoArgs,
    running: &RunningNode,
    handle: &LoadHandle,
    (start, end): (Instant, Option<Instant>),
    signals: &mut ShutdownSignals,
    output: &mut Output,
) -> CliResult {
    let second = Duration::from_secs(1);
    let mut every = interval_at(start + second, second);
    let over = async {
        match end {
            Some(end) => sleep_until(end).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(over);
    let mut before = 0;
    let poison = args.chaos.then(TrapMessage::new);
    let mut traps = interval_at(start + TRAP_INTERVAL, TRAP_INTERVAL);
    loop {
        tokio::select! {
            () = &mut over => return Ok(()),
            () = signals.recv() => return Ok(()),
            _ = traps.tick() => {
                if let Some(poison) = &poison {
                    poison.send_to(&running.components);
                }
                continue;
            }
            _ = every.tick() => {}
        }
        if args.json {
            continue;
        }
        let load = handle.snapshot();
        let mut stats = DemoStats::of(&load, running);
        stats.rate = (load.established - before) as f64;
        before = load.established;
        let line = stats.line(output);
        output.live(line)?;
    }
}

fn announce(args: &DemoArgs, running: &RunningNode, output: &mut Output) -> CliResult {
    if args.json {
        output.json(&running.announcement())?;
        return output.flush();
    }
    let title = output.paint(TextStyle::Bold, "Strowger demo");
    output.line(format!(
        "{title}: a node in the UP role, and a simulated SMF that establishes sessions"
    ))?;
    output.line("")?;
    for address in &running.n4 {
        let address = output.paint(TextStyle::Cyan, address);
        output.line(format!("  N4       {address}"))?;
    }
    let control = output.paint(TextStyle::Cyan, running.control.display());
    output.line(format!("  control  {control}"))?;
    if let Some(address) = running.http {
        let metrics = output.paint(TextStyle::Cyan, format!("http://{address}/metrics"));
        output.line(format!("  metrics  {metrics}"))?;
    }
    if let Some(rule) = policy::RULE {
        output.line(format!("  policy   {rule}"))?;
    }
    let tools: Vec<_> = running.tools.addresses().collect();
    if !tools.is_empty() {
        let tools = output.paint(TextStyle::Cyan, tools.join(" "));
        output.line(format!("  tools    {tools}"))?;
    }
    let missing: Vec<&str> = [policy::MISSING, agents::MISSING]
        .into_iter()
        .flatten()
        .collect();
    if !missing.is_empty() {
        let missing = missing.join(" and ");
        output.line(format!(
            "  without  {missing}; the default build has more, see --help"
        ))?;
    }
    output.line("")?;
    output.line(output.paint(
        TextStyle::Faint,
        "Try these in another terminal; Ctrl-C ends the demo:",
    ))?;
    // A command that can be pasted as it is, even if the binary is not on the path.
    let program = std::env::args().next().filter(|name| name.contains('/'));
    let program = program.as_deref().unwrap_or("strowger");
    let is_default =
        control::default_socket().is_ok_and(|is_default| is_default == running.control);
    let at = match is_default {
        true => String::new(),
        false => format!(" --control {}", running.control.display()),
    };
    let of_node = [
        ("tree", "the supervised actors"),
        ("top", "live view of the busiest actors"),
        ("pfcp sessions", "the sessions of the node"),
    ];
    let commands = of_node
        .iter()
        .chain(policy::COMMANDS)
        .chain(agents::COMMANDS);
    let longest = commands.clone().map(|(command, _)| command.len()).max();
    let width = program.len() + at.len() + longest.unwrap_or_default() + 3;
    for (command, what) in commands {
        let command = format!("  {program} {command}{at}");
        output.line(format!(
            "{command:<width$}  {}",
            output.paint(TextStyle::Faint, what)
        ))?;
    }
    output.line("")?;
    output.flush()
}

/// Keeps the requested panics off the terminal; every other panic is reported.
fn silence_injected_panics() {
    // Each failed actor logs a warning; here failures are the point, and the summary counts them.
    log_as_configured(&format!("{LOG_FILTER},strowger::run=error"));
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        if !text.is_some_and(|text| text.contains(PANIC_MARKER)) {
            tell(panic);
        }
    }));
}

/// The log filter of the demo.
const LOG_FILTER: &str = "warn,strowger_pfcp_node::policy=error";

/// Text that the message of an injected panic contains.
const PANIC_MARKER: &str = "chaos";
