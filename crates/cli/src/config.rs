//! The configuration of a node: one file, parsed strictly.
//!
//! Every key has a safe default, and an unknown key is an error that shows its place. The rows
//! under `[n4]` belong to the PFCP node; see [`NodeConfig`].

#[cfg(feature = "agents")]
pub(crate) mod agents;
#[cfg(not(feature = "agents"))]
#[path = "config/without_agents.rs"]
pub(crate) mod agents;
mod change;
#[cfg(feature = "components")]
pub(crate) mod component;
#[cfg(not(feature = "components"))]
#[path = "config/without_components.rs"]
pub(crate) mod component;
#[cfg(not(feature = "agents"))]
mod defaults;
mod doors;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use strowger_gateway::Limits;
use strowger_gateway::http::HttpLimits;
use strowger_gateway::listeners::ListenersSpec;
use strowger_pfcp_node::NodeConfig;

use self::agents::{McpSection, ToolsSection};
pub(crate) use self::change::changes;
use self::component::{ComponentSection, ComponentsSection};
pub(crate) use self::doors::{DoorsSection, GATEWAY_TOKEN, MCP_TOKEN};
use crate::exit::{CliResult, Failure};
pub(crate) use strowger_pfcp_cli::problem::Problem;

/// The configuration of a node.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) node: NodeSection,
    pub(crate) n4: NodeConfig,
    pub(crate) control: ControlSection,
    pub(crate) doors: DoorsSection,
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
    /// The name of the node, as `ping` reports it.
    pub(crate) name: String,
    /// Time limit of an orderly shutdown.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) shutdown: Duration,
}

/// The control socket.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ControlSection {
    /// Path of the socket; if not set, a default path that clients find on their own.
    pub(crate) socket: Option<PathBuf>,
    /// Maximum number of clients at a time.
    pub(crate) connections: usize,
    /// Maximum size of a frame, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) frame: usize,
    /// Maximum number of concurrent calls of one client.
    pub(crate) in_flight: usize,
    /// Time after which a silent client is disconnected.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) idle: Duration,
    /// Maximum duration of a call.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) deadline: Duration,
}

/// The endpoints for clients of actors: a Unix socket, and loopback addresses.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GatewaySection {
    /// Path of the Unix socket; there is none if not set.
    pub(crate) socket: Option<PathBuf>,
    /// Address for frames over TCP; disabled if not set.
    pub(crate) tcp: Option<SocketAddr>,
    /// Address for WebSockets; disabled if not set.
    pub(crate) web: Option<SocketAddr>,
    /// Origins of pages that may connect to the WebSocket address.
    pub(crate) origins: Vec<String>,
    /// The file with the token that clients of the addresses must send.
    pub(crate) token_file: Option<PathBuf>,
    /// Allows calls of the methods of the control socket as well.
    pub(crate) control: bool,
    /// Starts the actor of the conformance suite.
    pub(crate) conformance: bool,
    /// Maximum number of clients at a time.
    pub(crate) connections: usize,
    /// Maximum number of clients at each address that have not sent a token.
    pub(crate) strangers: usize,
    /// Maximum size of a frame, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) frame: usize,
    /// Maximum number of concurrent calls of one client.
    pub(crate) in_flight: usize,
    /// Maximum number of names that one client may bind.
    pub(crate) names: usize,
    /// Maximum number of frames of one client in a second.
    pub(crate) rate: u32,
    /// Maximum number of bytes that wait for one client.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) memory: usize,
    /// Time after which a silent client is disconnected.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) idle: Duration,
    /// Maximum duration of a call.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) deadline: Duration,
    /// Time for which a client may leave written data unread.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) stall: Duration,
}

/// The HTTP endpoint: metrics and health.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MetricsSection {
    /// Address to listen on; disabled if not set.
    pub(crate) listen: Option<SocketAddr>,
    /// Allows another port if the configured one is taken; not a key.
    #[serde(skip)]
    pub(crate) any_port: bool,
    /// Requires a token that may read metrics.
    pub(crate) tokens: bool,
    /// Maximum number of clients at a time.
    pub(crate) connections: usize,
    /// Maximum size of the head of a request, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) head: usize,
    /// Time limit for a request.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) time: Duration,
}

/// The log on standard error.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LogSection {
    /// The log filter; `STROWGER_LOG` in the environment takes precedence.
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
        let limits = ListenersSpec::default().limits;
        Self {
            socket: None,
            tcp: None,
            web: None,
            origins: Vec::new(),
            token_file: None,
            control: false,
            conformance: false,
            connections: limits.connections,
            strangers: limits.unauthenticated,
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
    /// Returns the limits of the endpoints.
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.connections = self.connections;
        limits.unauthenticated = self.strangers;
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
            tokens: false,
            connections: limits.connections,
            head: limits.head,
            time: limits.time,
        }
    }
}

impl MetricsSection {
    /// Returns the limits of the HTTP endpoint.
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
    /// Returns the limits of the control socket.
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
    /// Returns an error if the file cannot be read, or with the place of a problem in it.
    pub(crate) fn read(path: &Path) -> CliResult<(Self, String)> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::file(path, &error).hint("create a configuration with `strowger init FILE`")
        })?;
        let mut config = Self::parse(&text, &path.display().to_string())?;
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        config.doors.resolve_paths(folder);
        component::resolve_paths(&mut config, folder);
        agents::resolve_paths(&mut config, folder);
        Ok((config, text))
    }

    /// Parses a text that errors refer to as `name`.
    pub(crate) fn parse(text: &str, name: &str) -> CliResult<Self> {
        let config: Self = toml::from_str(text)
            .map_err(|error| Problem::of_toml(&error).to_failure(text, name))?;
        match config.problem() {
            Some(problem) => Err(problem.found(text).to_failure(text, name)),
            None => Ok(config),
        }
    }

    /// Returns the first problem that the types cannot rule out.
    pub(crate) fn problem(&self) -> Option<Problem> {
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
        ];
        minimum_problem(too_small).or_else(|| self.duration_problem())
    }

    /// Returns the first problem of durations and addresses.
    fn duration_problem(&self) -> Option<Problem> {
        let (control, gateway) = (&self.control, &self.gateway);
        let spans = [
            ("node.shutdown", self.node.shutdown),
            ("control.idle", control.idle),
            ("control.deadline", control.deadline),
            ("gateway.idle", gateway.idle),
            ("gateway.deadline", gateway.deadline),
            ("gateway.stall", gateway.stall),
            ("metrics.time", self.metrics.time),
        ];
        if let Some(problem) = range_problem(spans) {
            return Some(problem);
        }
        let addresses = [("gateway.tcp", gateway.tcp), ("gateway.web", gateway.web)];
        for (key, address) in addresses {
            let Some(address) = address else { continue };
            if !address.ip().is_loopback() {
                let what = format!(
                    "is {address}; must be a loopback address, because traffic is not encrypted"
                );
                return Some(Problem::at(key, &what));
            }
            if gateway.token_file.is_none() && self.doors.token.is_empty() {
                let what = "needs gateway.token_file or a [[doors.token]], because every user of \
                            this host can connect";
                return Some(Problem::at(key, what));
            }
        }
        self.section_problem()
    }

    /// Returns the first problem of the node's parts, its name and its log filter.
    fn section_problem(&self) -> Option<Problem> {
        if let Some(problem) = component::problem(self) {
            return Some(problem);
        }
        if let Some(problem) = self.doors.problem() {
            return Some(problem);
        }
        if self.metrics.tokens && self.doors.token.is_empty() {
            let what = "needs a [[doors.token]], because nothing could authenticate";
            return Some(Problem::at("metrics.tokens", what));
        }
        if let Some(problem) = agents::problem(self) {
            return Some(problem);
        }
        if self.node.name.is_empty() {
            return Some(Problem::at("node.name", "is empty; a node needs a name"));
        }
        let filter = crate::log::check_filter(&self.log.filter);
        filter.err().map(|error| Problem::at("log.filter", &error))
    }

    /// Returns the default configuration as a file with a comment for each key.
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

const MIN_DURATION: Duration = Duration::from_millis(100);
const MAX_DURATION: Duration = Duration::from_secs(3600);

/// Returns the problem of the first number that is less than its minimum: key, value and minimum.
fn minimum_problem<const N: usize>(numbers: [(&str, usize, usize); N]) -> Option<Problem> {
    let (key, value, least) = numbers
        .into_iter()
        .find(|(_, value, least)| value < least)?;
    let what = format!("is {value}; must be at least {least}");
    Some(Problem::at(key, &what))
}

/// Returns the problem of the first duration that is out of range.
fn range_problem<const N: usize>(durations: [(&str, Duration); N]) -> Option<Problem> {
    let range = MIN_DURATION..=MAX_DURATION;
    let (key, value) = durations
        .into_iter()
        .find(|(_, value)| !range.contains(value))?;
    let what = format!("is {value:?}; must be from 100ms to 60m");
    Some(Problem::at(key, &what))
}

#[cfg(test)]
mod tests;
