//! The node in its own process, and the handle to it.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use strowger::ActorSystem;
use strowger_pfcp_node::{Durability, Node, NodeConfig, NodeHandle};

/// Runs a node: `n4 node ADDRESS [process|disk FOLDER]`. It prints the address it listens on,
/// prints its stats for each line that it reads, and stops at the end of its input.
pub(crate) fn serve() {
    let mut args = std::env::args().skip(2);
    let mut config = settings();
    let address = args.next().expect("the address to listen on");
    config.listen = vec![address.parse().expect("an address with a port")];
    if let Some(durability) = args.next() {
        config.store.durability = match durability.as_str() {
            "process" => Durability::Process,
            "disk" => Durability::Disk,
            other => panic!("{other} is neither process nor disk"),
        };
        config.store.path = Some(args.next().expect("the folder of the store").into());
    }
    let runtime = runtime(2);
    let (system, node) = runtime.block_on(async {
        let system = ActorSystem::new("bench").expect("a runtime is here");
        let node = Node::start(&system, config).await;
        (system, node.expect("the node starts"))
    });
    let mut output = std::io::stdout();
    writeln!(output, "{}", node.local_addr()).expect("somebody listens");
    for line in std::io::stdin().lines() {
        line.expect("lines are text");
        writeln!(output, "{}", stats_to_json(&node)).expect("somebody listens");
    }
    runtime.block_on(async {
        node.stop().await;
        system.shutdown(Duration::from_secs(10)).await;
    });
}

/// The settings of every node that is measured: the defaults, with limits high enough for the work.
pub(crate) fn settings() -> NodeConfig {
    let mut config = NodeConfig::default();
    config.limits.sessions = 2_000_000;
    config.limits.sessions_per_association = 2_000_000;
    config
}

pub(crate) fn runtime(workers: usize) -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()
        .expect("tokio starts its workers")
}

fn stats_to_json(node: &NodeHandle) -> Value {
    let stats = node.stats();
    json!({
        "sessions": stats.sessions,
        "established": stats.established,
        "resident": resident(),
        "processor": processor_nanos(),
    })
}

/// Returns the resident memory of this process, in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux says how it is");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.expect("VmRSS is in kB") * 1024
}

/// Returns the processor time of this process in nanoseconds, in steps of ten milliseconds.
pub(crate) fn processor_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("Linux says how it is");
    // The process name before the last parenthesis may contain spaces.
    let (_, rest) = text.rsplit_once(')').expect("a name in parentheses");
    let times = rest.split_whitespace().skip(11).take(2);
    let ticks: u64 = times
        .map(|time| time.parse::<u64>().expect("a number of ticks"))
        .sum();
    ticks * 10_000_000
}

/// A node in another process, which is killed when this handle is dropped.
pub(crate) struct NodeProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    pub(crate) address: SocketAddr,
}

impl NodeProcess {
    /// Starts a node, and returns once it reports its address.
    pub(crate) fn start(address: &str, store: Option<(Durability, &Path)>) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
        command.args(["node", address]);
        if let Some((durability, folder)) = store {
            let name = match durability {
                Durability::Process => "process",
                Durability::Disk => "disk",
            };
            command.arg(name).arg(folder);
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program starts again");
        let input = child.stdin.take().expect("a pipe was asked for");
        let output = child.stdout.take().expect("a pipe was asked for");
        let mut remote = Self {
            child,
            input,
            output: BufReader::new(output),
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        remote.address = remote.line().parse().expect("the node says where it is");
        remote
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the node answers");
        line.trim().to_owned()
    }

    /// Returns one of the node's stats.
    pub(crate) fn figure(&mut self, name: &str) -> u64 {
        writeln!(self.input, "figures").expect("the node listens");
        let all: Value = serde_json::from_str(&self.line()).expect("figures are JSON");
        all[name].as_u64().expect("every figure is a number")
    }

    /// Ends the node as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("the node is ours");
        self.child.wait().expect("the node is ours");
    }
}

impl Drop for NodeProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
