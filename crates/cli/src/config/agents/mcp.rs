//! The configuration of the MCP endpoint.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use strowger_gateway::http::HttpLimits;
use strowger_gateway::mcp::McpLimits;

use super::limit::{self, LimitSet};
use crate::config::{Problem, minimum_problem, range_problem};

/// The MCP endpoint: access over HTTP, and limits of all agents.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpSection {
    /// Allows agents over HTTP.
    pub(crate) http: bool,
    /// The file with the token that agents must send over HTTP.
    pub(crate) token_file: Option<PathBuf>,
    /// Origins of pages that may connect.
    pub(crate) origins: Vec<String>,
    /// Host names that requests may be sent to.
    pub(crate) hosts: Vec<String>,
    /// Maximum number of HTTP connections at a time.
    pub(crate) connections: usize,
    /// Maximum number of agents with a session over HTTP.
    pub(crate) sessions: usize,
    /// Maximum size of a message over HTTP, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) body: usize,
    /// Maximum number of concurrent calls.
    pub(crate) calls: usize,
    /// Maximum duration of a call.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) deadline: Duration,
    /// Maximum bytes of text in an answer.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub(crate) answer: usize,
    /// Time after which a silent session ends.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) idle: Duration,
    /// Time limit for receiving a message.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub(crate) time: Duration,
}

impl Default for McpSection {
    fn default() -> Self {
        let limits = McpLimits::default();
        Self {
            http: false,
            token_file: None,
            origins: Vec::new(),
            hosts: Vec::new(),
            connections: HttpLimits::default().agents,
            sessions: limits.sessions,
            body: limits.body,
            calls: limits.calls,
            deadline: limits.deadline,
            answer: limits.answer,
            idle: limits.idle,
            time: limits.time,
        }
    }
}

/// The keys of limits that arguments set as well.
pub(crate) const MCP_LIMITS: [&str; 3] = ["answer", "calls", "deadline"];

impl McpSection {
    /// Sets a limit by its key.
    pub(crate) fn set_limit(&mut self, key: &str, value: &str) -> LimitSet {
        match key {
            "answer" => limit::set_size(&mut self.answer, value),
            "calls" => limit::set_number(&mut self.calls, value),
            "deadline" => limit::set_duration(&mut self.deadline, value),
            _ => None,
        }
    }

    /// Returns `true` if agents may connect over HTTP.
    pub(crate) const fn serves_http(&self) -> bool {
        self.http
    }

    /// Returns the file with the token of agents over HTTP, if they may connect.
    pub(crate) fn http_token_file(&self) -> Option<&Path> {
        self.token_file.as_deref().filter(|_| self.http)
    }

    /// Returns the maximum number of HTTP connections of agents at a time.
    pub(crate) const fn http_connections(&self) -> usize {
        self.connections
    }

    /// Returns the first problem that the types cannot rule out.
    pub(super) fn problem(&self, has_shared_tokens: bool) -> Option<Problem> {
        if self.http && self.token_file.is_none() && !has_shared_tokens {
            let what = "needs mcp.token_file or a [[doors.token]], because every user of this \
                        host can connect";
            return Some(Problem::at("mcp.http", what));
        }
        let numbers = [
            ("mcp.connections", self.connections, 1),
            ("mcp.sessions", self.sessions, 1),
            ("mcp.calls", self.calls, 1),
            ("mcp.body", self.body, 4096),
            ("mcp.answer", self.answer, 4096),
        ];
        let durations = [
            ("mcp.deadline", self.deadline),
            ("mcp.idle", self.idle),
            ("mcp.time", self.time),
        ];
        minimum_problem(numbers).or_else(|| range_problem(durations))
    }

    /// Returns the limits of all agents.
    pub(crate) fn limits(&self) -> McpLimits {
        let mut limits = McpLimits::default();
        limits.sessions = self.sessions;
        limits.body = self.body;
        limits.calls = self.calls;
        limits.deadline = self.deadline;
        limits.answer = self.answer;
        limits.idle = self.idle;
        limits.time = self.time;
        limits
    }
}
