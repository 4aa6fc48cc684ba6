//! `strowger pfcp serve`: a UPF that misbehaves on request.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use strowger::ActorSystem;
use strowger_pfcp::endpoint::Network;
use strowger_pfcp_node::{FaultScenario, Node, NodeConfig, NodeError, NodeHandle};

use crate::exit::{CliResult, Failure};
use crate::output::Output;
use crate::signals::ShutdownSignals;

const EXAMPLES: &str = "\
Examples:
  strowger pfcp serve --scenario refuse.toml
  strowger pfcp serve --listen 10.0.0.7:8805 --allow 10.0.0.0/24 --scenario refuse.toml
  strowger pfcp serve --listen 127.0.0.1:0 --store sessions --scenario restart.toml --json

A scenario is a list of rules; the first rule that matches decides about a message:

  [[rule]]
  on = \"session establishment\"  # message type, a number or part of its name [default: all]
  after = 10                    # skip this many messages first
  count = 5                     # apply at most this many times
  probability = 0.5             # apply to this share of the messages
  refuse = 75                   # cause; or delay = \"200ms\", drop = true, restart = true, or
                                # time_stamp = 60: from then on, shift the Recovery Time Stamp
                                # by this many seconds

A restart ends all sessions and changes the Recovery Time Stamp; with --store both are kept.";

/// The arguments of `serve`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// Faults to inject (TOML) [default: none].
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Address to listen on; port 0 picks a free port.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8805")]
    listen: SocketAddr,
    /// Accept requests from this network besides the loopback; may be repeated.
    #[arg(long, value_name = "NETWORK")]
    allow: Vec<Network>,
    /// Keep sessions in this directory across restarts.
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Print JSON, one object per start, then a summary.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ServeArgs, output: &mut Output) -> CliResult {
    let scenario = args.scenario.as_deref().map_or_else(
        || Ok(FaultScenario::default()),
        |path| {
            let text =
                std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
            parse(path, &text)
        },
    )?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime
        .map_err(|error| Failure::outside(format!("cannot start the async runtime: {error}")))?;
    runtime.block_on(serve(args, &scenario, output))
}

fn parse(path: &Path, text: &str) -> CliResult<FaultScenario> {
    toml::from_str(text).map_err(|error| {
        let hint = "see the example of a rule in `strowger pfcp serve --help`";
        Failure::input(format!("{}: {error}", path.display())).hint(hint)
    })
}

async fn serve(args: &ServeArgs, scenario: &FaultScenario, output: &mut Output) -> CliResult {
    let mut signals = ShutdownSignals::with_time_limit(SHUTDOWN_TIMEOUT)?;
    let mut listen = args.listen;
    let mut ended = false;
    while !ended {
        let system =
            ActorSystem::new("serve").map_err(|error| Failure::outside(error.to_string()))?;
        let node = start(&system, args, listen, scenario).await?;
        // After a restart, reuse the port that the system chose for the first start.
        listen = node.local_addr();
        let recovery = node.recovery();
        if args.json {
            output.json(&json!({ "n4": listen.to_string(), "recovery": recovery }))?;
        } else {
            output.line(format!(
                "listening on {listen}, Recovery Time Stamp {recovery}; Ctrl-C ends it"
            ))?;
        }
        output.flush()?;
        tokio::select! {
            () = signals.recv() => ended = true,
            () = scenario.restart() => {}
        }
        node.stop().await;
        drop(node);
        system.shutdown(SHUTDOWN_TIMEOUT).await;
        if !ended {
            // Recovery Time Stamps are in seconds: the next one must differ.
            tokio::time::sleep(Duration::from_millis(1100)).await;
        }
    }
    let injected = scenario.applied_counts();
    if args.json {
        return output.json(&json!({ "struck": injected }));
    }
    for (at, count) in injected.iter().enumerate() {
        output.line(format!("rule {} applied {count} times", at + 1))?;
    }
    Ok(())
}

async fn start(
    system: &ActorSystem,
    args: &ServeArgs,
    listen: SocketAddr,
    scenario: &FaultScenario,
) -> CliResult<NodeHandle> {
    let mut config = NodeConfig::default();
    config.listen = vec![listen];
    config.peers.extend(&args.allow);
    config.store.path.clone_from(&args.store);
    config.scenario = Some(scenario.clone());
    Node::start(system, config).await.map_err(|error| {
        let failure = Failure::outside(error.to_string());
        match error {
            NodeError::Bind(_) => {
                failure.hint("choose another address with --listen; port 0 picks a free port")
            }
            _ => failure,
        }
    })
}

/// Time that the actors of the node have to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
