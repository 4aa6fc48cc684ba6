//! The configuration of a node: one file, strictly read.
//!
//! Every key has a safe default, and an unknown key is an error that shows its place. The rows
//! under `[n4]` are the PFCP node's own; see [`NodeConfig`].

mod change;
mod code;
mod component;
mod mcp;
mod problem;
mod span;
mod tools;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use strowger_gateway::{DoorsSpec, HttpLimits, Limits};
use strowger_pfcp_node::NodeConfig;

pub(crate) use self::change::changes;
pub(crate) use self::code::{CodeSection, ProgramsSection};
pub(crate) use self::component::{ComponentSection, ComponentsSection, Embedded};
pub(crate) use self::mcp::McpSection;
pub(crate) use self::problem::Problem;
pub(crate) use self::tools::{FilesSection, ToolsSection};
use crate::exit::{Done, Failure};

/// What a node is told.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) node: NodeSection,
    pub(crate) n4: NodeConfig,
    pub(crate) control: ControlSection,
    pub(crate) gateway: GatewaySection,
    pub(crate) metrics: MetricsSection,
    pub(crate) log: LogSection,
    pub(crate) components: ComponentsSection,
    pub(crate) component: Vec<ComponentSection>,
    pub(crate) tools: ToolsSection,
    pub(crate) mcp: McpSection,
}

/// The process as a whole.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NodeSection {
    /// The name of the node, as `ping` tells it.
    pub(crate) name: String,
    /// How long an ordered end may take.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) shutdown: Duration,
}

/// The control socket.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ControlSection {
    /// Where it is; a place that clients find by themselves if it is not set.
    pub(crate) socket: Option<PathBuf>,
    /// The most clients at a time.
    pub(crate) connections: usize,
    /// The longest frame, in octets.
    pub(crate) frame: usize,
    /// The most calls of one client at a time.
    pub(crate) in_flight: usize,
    /// How long a client may be silent.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) idle: Duration,
    /// The longest that a call may take.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) deadline: Duration,
}

/// The doors to actors: a unix socket, and addresses of the loopback.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GatewaySection {
    /// Where the unix socket is; there is none if it is not set.
    pub(crate) socket: Option<PathBuf>,
    /// Where frames are taken over TCP; nowhere if it is not set.
    pub(crate) tcp: Option<SocketAddr>,
    /// Where WebSockets are taken; nowhere if it is not set.
    pub(crate) web: Option<SocketAddr>,
    /// The origins of pages that may connect there.
    pub(crate) origins: Vec<String>,
    /// The file with what clients of addresses have to know.
    pub(crate) token_file: Option<PathBuf>,
    /// Whether the methods of control can be called as well.
    pub(crate) control: bool,
    /// Whether the actor of the conformance suite is there.
    pub(crate) conformance: bool,
    /// The most clients at a time.
    pub(crate) connections: usize,
    /// The most of each address whose clients have not sent the token.
    pub(crate) strangers: usize,
    /// The longest frame, in octets.
    pub(crate) frame: usize,
    /// The most calls of one client at a time.
    pub(crate) in_flight: usize,
    /// The most names that one client may bind.
    pub(crate) names: usize,
    /// The most frames of one client in a second.
    pub(crate) rate: u32,
    /// How many octets may wait for one client.
    pub(crate) memory: usize,
    /// How long a client may be silent.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) idle: Duration,
    /// The longest that a call may take.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) deadline: Duration,
    /// How long a client may leave unread what was written.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) stall: Duration,
}

/// The HTTP door: metrics and health.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MetricsSection {
    /// Where it listens; nowhere if it is not set.
    pub(crate) listen: Option<SocketAddr>,
    /// Whether another port will do if that one is taken; not a key.
    #[serde(skip)]
    pub(crate) any_port: bool,
    /// The most clients at a time.
    pub(crate) connections: usize,
    /// The longest head of a request, in octets.
    pub(crate) head: usize,
    /// How long a client may take.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) time: Duration,
}

/// The log on standard error.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LogSection {
    /// What is logged; `STROWGER_LOG` in the environment goes first.
    pub(crate) filter: String,
}

impl Default for NodeSection {
    fn default() -> Self {
        Self {
            name: "strowger".to_owned(),
            shutdown: Duration::from_secs(10),
        }
    }
}

impl Default for ControlSection {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            socket: None,
            connections: limits.connections,
            frame: limits.frame,
            in_flight: limits.in_flight,
            idle: limits.idle,
            deadline: limits.deadline,
        }
    }
}

impl Default for GatewaySection {
    fn default() -> Self {
        let limits = DoorsSpec::default().limits;
        Self {
            socket: None,
            tcp: None,
            web: None,
            origins: Vec::new(),
            token_file: None,
            control: false,
            conformance: false,
            connections: limits.connections,
            strangers: limits.strangers,
            frame: limits.frame,
            in_flight: limits.in_flight,
            names: limits.names,
            rate: limits.rate,
            memory: limits.memory,
            idle: limits.idle,
            deadline: limits.deadline,
            stall: limits.stall,
        }
    }
}

impl GatewaySection {
    /// The limits of the doors.
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.connections = self.connections;
        limits.strangers = self.strangers;
        limits.frame = self.frame;
        limits.in_flight = self.in_flight;
        limits.names = self.names;
        limits.rate = self.rate;
        limits.memory = self.memory;
        limits.idle = self.idle;
        limits.deadline = self.deadline;
        limits.stall = self.stall;
        limits
    }
}

impl Default for MetricsSection {
    fn default() -> Self {
        let limits = HttpLimits::default();
        Self {
            listen: None,
            any_port: false,
            connections: limits.connections,
            head: limits.head,
            time: limits.time,
        }
    }
}

impl MetricsSection {
    /// The limits of the HTTP door.
    pub(crate) fn limits(&self, agents: usize) -> HttpLimits {
        let mut limits = HttpLimits::default();
        limits.agents = agents;
        limits.connections = self.connections;
        limits.head = self.head;
        limits.time = self.time;
        limits
    }
}

impl Default for LogSection {
    fn default() -> Self {
        Self {
            filter: "warn".to_owned(),
        }
    }
}

impl ControlSection {
    /// The limits of the control socket.
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.connections = self.connections;
        limits.frame = self.frame;
        limits.in_flight = self.in_flight;
        limits.idle = self.idle;
        limits.deadline = self.deadline;
        limits
    }
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// When the file cannot be read, or what is wrong in it, with the place.
    pub(crate) fn read(path: &Path) -> Done<(Self, String)> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::file(path, &error).hint("`strowger init FILE` writes a configuration")
        })?;
        let mut config = Self::parse(&text, &path.display().to_string())?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        config.components.found_from(folder);
        for component in &mut config.component {
            component.found_from(folder);
        }
        config.tools.found_from(folder);
        Ok((config, text))
    }

    /// Reads a text that is called `name` in what is said about it.
    pub(crate) fn parse(text: &str, name: &str) -> Done<Self> {
        let config: Self =
            toml::from_str(text).map_err(|error| Problem::of_toml(&error).told(text, name))?;
        match config.problem() {
            Some(problem) => Err(problem.found(text).told(text, name)),
            None => Ok(config),
        }
    }

    /// What types cannot refuse.
    fn problem(&self) -> Option<Problem> {
        if let Err(error) = self.n4.check() {
            return Some(Problem::of_section("n4", &error.to_string()));
        }
        let (control, gateway) = (&self.control, &self.gateway);
        let too_small = [
            ("control.connections", control.connections, 1),
            ("control.in_flight", control.in_flight, 1),
            ("control.frame", control.frame, 4096),
            ("gateway.connections", gateway.connections, 1),
            ("gateway.strangers", gateway.strangers, 1),
            ("gateway.in_flight", gateway.in_flight, 1),
            ("gateway.names", gateway.names, 1),
            ("gateway.rate", gateway.rate as usize, 1),
            ("gateway.frame", gateway.frame, 4096),
            ("gateway.memory", gateway.memory, 4096),
            ("metrics.connections", self.metrics.connections, 1),
            ("metrics.head", self.metrics.head, 256),
            ("mcp.connections", self.mcp.connections, 1),
            ("tools.streams.streams", self.tools.streams.streams, 1),
            ("tools.streams.readers", self.tools.streams.readers, 1),
            ("tools.streams.piece", self.tools.streams.piece, 1),
            ("tools.streams.waiting", self.tools.streams.waiting, 1),
            (
                "tools.streams.window",
                self.tools.streams.window as usize,
                1,
            ),
            ("mcp.sessions", self.mcp.sessions, 1),
            ("mcp.calls", self.mcp.calls, 1),
            ("mcp.body", self.mcp.body, 4096),
        ];
        for (key, value, least) in too_small {
            if value < least {
                let what = format!("is {value}; it must be at least {least}");
                return Some(Problem::at(key, &what));
            }
        }
        self.problem_of_spans()
    }

    /// The same of spans and addresses.
    fn problem_of_spans(&self) -> Option<Problem> {
        let (control, gateway) = (&self.control, &self.gateway);
        let spans = [
            ("node.shutdown", self.node.shutdown),
            ("control.idle", control.idle),
            ("control.deadline", control.deadline),
            ("gateway.idle", gateway.idle),
            ("gateway.deadline", gateway.deadline),
            ("gateway.stall", gateway.stall),
            ("metrics.time", self.metrics.time),
            ("tools.streams.stall", self.tools.streams.stall),
            ("tools.streams.idle", self.tools.streams.idle),
            ("mcp.deadline", self.mcp.deadline),
            ("mcp.idle", self.mcp.idle),
            ("mcp.time", self.mcp.time),
        ];
        for (key, value) in spans {
            if value < SHORTEST || value > LONGEST {
                let what = format!("is {value:?}; it must be from 100ms to 60m");
                return Some(Problem::at(key, &what));
            }
        }
        let addresses = [("gateway.tcp", gateway.tcp), ("gateway.web", gateway.web)];
        for (key, address) in addresses {
            let Some(address) = address else { continue };
            if !address.ip().is_loopback() {
                let what = format!(
                    "is {address}; what passes there is not encrypted, so it must \
                                    be an address of the loopback"
                );
                return Some(Problem::at(key, &what));
            }
            if gateway.token_file.is_none() {
                let what = "needs gateway.token_file: everybody on this machine can reach it";
                return Some(Problem::at(key, what));
            }
        }
        self.problem_of_parts()
    }

    /// The same of what a node hosts, and of what it says.
    fn problem_of_parts(&self) -> Option<Problem> {
        if let Some(problem) = self.components.problem(self.component.len()) {
            return Some(problem);
        }
        if self.mcp.http && self.mcp.token_file.is_none() {
            let what = "needs mcp.token_file: everybody on this machine can reach it";
            return Some(Problem::at("mcp.http", what));
        }
        if let Some(problem) = self.tools.problem(self.components.instances) {
            return Some(problem);
        }
        if self.node.name.is_empty() {
            return Some(Problem::at("node.name", "is empty; a node needs a name"));
        }
        let filter = crate::output::check_filter(&self.log.filter);
        filter.err().map(|error| Problem::at("log.filter", &error))
    }

    /// The default configuration as a file with a comment for each key.
    pub(crate) fn example() -> String {
        let mut text = include_str!("config/node.toml").to_owned();
        text.push_str("\n[n4]\n");
        for line in NodeConfig::COMMENTED.lines() {
            match line.strip_prefix('[') {
                Some(table) => text.push_str(&format!("[n4.{table}\n")),
                None => text.push_str(&format!("{line}\n")),
            }
        }
        text
    }
}

const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests;
