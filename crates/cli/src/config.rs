//! The configuration of a node: one file, strictly read.
//!
//! Every key has a safe default, and an unknown key is an error that shows its place. The rows
//! under `[n4]` are the PFCP node's own; see [`NodeConfig`].

mod change;
mod problem;
mod span;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use strowger_gateway::{HttpLimits, Limits};
use strowger_pfcp_node::NodeConfig;

pub(crate) use self::change::changes;
pub(crate) use self::problem::Problem;
use crate::exit::{Done, Failure};

/// What a node is told.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) node: NodeSection,
    pub(crate) n4: NodeConfig,
    pub(crate) control: ControlSection,
    pub(crate) metrics: MetricsSection,
    pub(crate) log: LogSection,
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
    pub(crate) fn limits(&self) -> HttpLimits {
        let mut limits = HttpLimits::default();
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
        let config = Self::parse(&text, &path.display().to_string())?;
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
        let control = &self.control;
        let too_small = [
            ("control.connections", control.connections, 1),
            ("control.in_flight", control.in_flight, 1),
            ("control.frame", control.frame, 4096),
            ("metrics.connections", self.metrics.connections, 1),
            ("metrics.head", self.metrics.head, 256),
        ];
        for (key, value, least) in too_small {
            if value < least {
                let what = format!("is {value}; it must be at least {least}");
                return Some(Problem::at(key, &what));
            }
        }
        let spans = [
            ("node.shutdown", self.node.shutdown),
            ("control.idle", control.idle),
            ("control.deadline", control.deadline),
            ("metrics.time", self.metrics.time),
        ];
        for (key, value) in spans {
            if value < SHORTEST || value > LONGEST {
                let what = format!("is {value:?}; it must be from 100ms to 60m");
                return Some(Problem::at(key, &what));
            }
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
