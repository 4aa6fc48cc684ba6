//! `strowger demo`: a node with embedded defaults, and an SMF that keeps it busy.

mod figures;
mod policy;
mod workroom;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp_node::{Chaos, DataPathKind, Load, LoadHandle, LoadPlan, Pace};
use tokio::time::{Instant, interval_at, sleep_until};

use self::figures::Figures;
use self::policy::Poison;
use self::workroom::Workroom;
use super::pfcp::load;
use super::signals::Signals;
use super::span;
use crate::compose::{self, Running};
use crate::config::Config;
use crate::control;
use crate::exit::{Done, Failure};
use crate::output::{Ink, Output, log_as_configured};

const EXAMPLES: &str = "\
Examples:
  strowger demo
  strowger demo --for 10s --chaos
  strowger demo --rate 2000 --sessions 10000
  strowger demo --for 10s --json --port 0 --pcap n4.pcapng

Establishes sessions at the rate until enough are held; then it deletes the oldest and establishes
the next at the same rate. With --chaos at least ten sessions a second are made to panic while
they are used; each must afterwards accept a modification that names its own PDR, or it is lost.

A WebAssembly component, qos-cap, is asked about each session. It lowers rates above 50 Mbit/s from
the user and 200 Mbit/s to the user, whatever network the session names, if any, and refuses none.
A session that it has no answer about, after a trap or 5 s, is accepted as it was asked for; the
summary counts these. With --chaos it traps twice a second and goes on.

Tools for agents reach the files in a new folder below that for temporary files, which goes with the
demo, and nothing else; code of agents runs in a sandbox.

Traffic is simulated: sessions count it and report their usage to the SMF. No packet is forwarded.

With --json the first line is {\"n4\": \"127.0.0.1:8805\", \"control\": \"PATH\", \"http\":
\"127.0.0.1:9464\", \"tools\": [\"@(tools/files)\", ...]}, and the last one is the summary.

Exit code 1: a session was lost or rejected.";

/// Panics a second: more than the ten that are promised, as the first need a session to be held.
const PANICS: f64 = 12.0;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// For how long; without it, until ctrl-c.
    #[arg(long = "for", value_name = "TIME", value_parser = span::parse)]
    duration: Option<Duration>,
    /// Establishments a second.
    #[arg(long, value_name = "N", default_value_t = 200.0, value_parser = load::rate)]
    rate: f64,
    /// How many sessions are held.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    sessions: usize,
    /// Panics inside session handlers, at least ten a second.
    #[arg(long)]
    chaos: bool,
    /// The port for PFCP; 0 lets the system choose.
    #[arg(long, value_name = "PORT", default_value_t = strowger_pfcp_node::PFCP_PORT)]
    port: u16,
    /// Puts the control socket here.
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Answers HTTP here with /metrics, /healthz and /readyz; unless set, at 127.0.0.1:9464 or, if
    /// that is taken, at another port.
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Writes the node's PFCP traffic to a pcapng file.
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Prints one object at the beginning and one at the end.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, output: &mut Output) -> Done {
    // Each question without an answer is a warning; the summary counts them.
    log_as_configured(QUIET);
    if args.chaos {
        quieten_chaos();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::outside(format!("no runtime: {error}")))?;
    let done = runtime.block_on(demo(args, output));
    // Nobody waits for a thread that reads a slow disk.
    runtime.shutdown_timeout(THREADS);
    done
}

/// How long threads have to end that still read a file or write one.
const THREADS: Duration = Duration::from_millis(200);

async fn demo(args: &Args, output: &mut Output) -> Done {
    let mut signals = Signals::new()?;
    let workroom = Workroom::make()?;
    let mut config = args.config();
    workroom.grant(&mut config);
    let running = compose::start(&config).await?;
    announce(args, &running, output)?;
    let figures = under_load(args, &running, &mut signals, output).await;
    running.shutdown().await;
    drop(workroom);
    let figures = figures?;
    if args.json {
        output.json(&figures.to_json())?;
    } else {
        figures.report(output)?;
    }
    figures.verdict()
}

impl Args {
    fn config(&self) -> Config {
        let mut config = Config::default();
        for address in &mut config.n4.listen {
            address.set_port(self.port);
        }
        config.n4.pcap.clone_from(&self.pcap);
        config.control.socket.clone_from(&self.control);
        config.metrics.listen = Some(self.metrics.unwrap_or(METRICS));
        config.metrics.any_port = self.metrics.is_none();
        let room = self.sessions.saturating_add(SPARE);
        config.n4.limits.sessions = config.n4.limits.sessions.max(room);
        config.n4.data_path.kind = DataPathKind::Simulated;
        policy::configure(&mut config);
        config
    }

    fn plan(&self, running: &Running) -> LoadPlan {
        let to = running.node.local_addr();
        let mut plan = LoadPlan::new(to);
        plan.pace = Pace::Rate(self.rate);
        plan.sessions = self.sessions;
        plan.n1 = TRIES;
        plan.usage = Some(THRESHOLD);
        plan.rates = true;
        plan.chaos = self.chaos.then(|| Chaos {
            node: running.node.clone(),
            rate: PANICS,
        });
        plan
    }
}

/// Where exporters for Prometheus usually are.
const METRICS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

/// How often the SMF sends a request, a second apart: longer than the policy may take, so that a
/// session whose policy is late is accepted late, and not given up.
const TRIES: u32 = 10;
const _: () = assert!(TRIES as u64 > policy::BUDGET.as_secs());

/// Octets of a session after which its usage is reported: a few seconds of the traffic that is
/// simulated.
const THRESHOLD: u64 = 500_000;

/// Sessions beyond those that are held, for whoever tries the node from another terminal.
const SPARE: usize = 1000;

/// Runs the load until its time is over or a signal comes.
async fn under_load(
    args: &Args,
    running: &Running,
    signals: &mut Signals,
    output: &mut Output,
) -> Done<Figures> {
    // A system of its own: `strowger tree` shows the node, not who loads it.
    let smf = ActorSystem::new("smf").map_err(|error| Failure::outside(error.to_string()))?;
    let figures = load_in(&smf, args, running, signals, output).await;
    smf.shutdown(load::ORDERLY).await;
    figures
}

async fn load_in(
    smf: &ActorSystem,
    args: &Args,
    running: &Running,
    signals: &mut Signals,
    output: &mut Output,
) -> Done<Figures> {
    let handle = Load::start(smf, args.plan(running))
        .await
        .map_err(|error| load::failed(&error))?;
    let start = Instant::now();
    let end = args.duration.map(|duration| start + duration);
    let watched = watch(args, running, &handle, (start, end), signals, output).await;
    handle.stop();
    let last = handle.finished().await;
    watched?;
    Ok(Figures::of(&last, running))
}

/// How often the policy traps.
const TRAPS: Duration = Duration::from_millis(500);

/// Draws the live line once a second.
async fn watch(
    args: &Args,
    running: &Running,
    handle: &LoadHandle,
    (start, end): (Instant, Option<Instant>),
    signals: &mut Signals,
    output: &mut Output,
) -> Done {
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
    let poison = args.chaos.then(Poison::new);
    let mut traps = interval_at(start + TRAPS, TRAPS);
    loop {
        tokio::select! {
            () = &mut over => return Ok(()),
            () = signals.end() => return Ok(()),
            _ = traps.tick() => {
                if let Some(poison) = &poison {
                    poison.give(running);
                }
                continue;
            }
            _ = every.tick() => {}
        }
        if args.json {
            continue;
        }
        let load = handle.snapshot();
        let mut figures = Figures::of(&load, running);
        figures.rate = (load.established - before) as f64;
        before = load.established;
        let line = figures.line(output);
        output.live(line)?;
    }
}

fn announce(args: &Args, running: &Running, output: &mut Output) -> Done {
    if args.json {
        output.json(&running.announcement())?;
        return output.flush();
    }
    let title = output.paint(Ink::Bold, "Strowger demo");
    output.line(format!(
        "{title}: a node in the UP role, and an SMF that sets up sessions"
    ))?;
    output.line("")?;
    for address in &running.n4 {
        let address = output.paint(Ink::Cyan, address);
        output.line(format!("  N4       {address}"))?;
    }
    let control = output.paint(Ink::Cyan, running.control.display());
    output.line(format!("  control  {control}"))?;
    if let Some(address) = running.http {
        let metrics = output.paint(Ink::Cyan, format!("http://{address}/metrics"));
        output.line(format!("  metrics  {metrics}"))?;
    }
    output.line(format!("  policy   {} {}", policy::NAME, policy::RULE))?;
    let tools: Vec<_> = running.tools.addresses().collect();
    let tools = output.paint(Ink::Cyan, tools.join(" "));
    output.line(format!("  tools    {tools}"))?;
    output.line("")?;
    output.line(output.paint(
        Ink::Faint,
        "Try in another terminal, and end this with ctrl-c:",
    ))?;
    // What can be typed there as it stands, also when the binary is not on the path.
    let program = std::env::args().next().filter(|name| name.contains('/'));
    let program = program.as_deref().unwrap_or("strowger");
    let usual = control::usual_socket().is_ok_and(|usual| usual == running.control);
    let at = match usual {
        true => String::new(),
        false => format!(" --control {}", running.control.display()),
    };
    let read = format!(
        "ask tools/files#read '{{\"path\": \"{}\"}}'",
        workroom::NOTE
    );
    let run = r#"ask tools/code#execute '{"code": "6 * 7"}'"#;
    let width = program.len() + at.len() + read.len().max(run.len()) + 3;
    for (command, what) in [
        ("tree", "the supervised actors"),
        ("top", "the busiest of them, live"),
        ("component list", "the policy that is asked"),
        ("pfcp sessions", "what the node holds"),
        ("ask tools/files#list", "the files that agents reach"),
        (&read, "one of them"),
        (run, "code of an agent, in a sandbox"),
        ("mcp", "the same for an agent that starts this"),
    ] {
        let command = format!("  {program} {command}{at}");
        output.line(format!(
            "{command:<width$}  {}",
            output.paint(Ink::Faint, what)
        ))?;
    }
    output.line("")?;
    output.flush()
}

/// Keeps the panics that are asked for off the terminal; every other one is told.
fn quieten_chaos() {
    // Each end of an actor is a warning; here they are the point, and the summary counts them.
    log_as_configured(&format!("{QUIET},strowger::run=error"));
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        if !text.is_some_and(|text| text.contains(CHAOS)) {
            tell(panic);
        }
    }));
}

/// What the demo logs.
const QUIET: &str = "warn,strowger_pfcp_node::policy=error";

/// What the words of an injected panic contain.
const CHAOS: &str = "chaos";
