//! The door for agents.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use strowger_gateway::{HttpLimits, McpLimits};

use super::span;

/// The door for agents: who may come over HTTP, and what all of them may take.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct McpSection {
    /// Whether they may come over HTTP.
    pub(crate) http: bool,
    /// The file with what they have to know there.
    pub(crate) token_file: Option<PathBuf>,
    /// The origins of pages that may come.
    pub(crate) origins: Vec<String>,
    /// The most connections over HTTP at a time.
    pub(crate) connections: usize,
    /// The most agents with a session over HTTP.
    pub(crate) sessions: usize,
    /// The longest message over HTTP, in octets.
    pub(crate) body: usize,
    /// The most calls at a time.
    pub(crate) calls: usize,
    /// The longest that a call may take.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) deadline: Duration,
    /// How long a session may be silent.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) idle: Duration,
    /// How long a message may take to come.
    #[serde(deserialize_with = "span::deserialize")]
    pub(crate) time: Duration,
}

impl Default for McpSection {
    fn default() -> Self {
        let limits = McpLimits::default();
        Self {
            http: false,
            token_file: None,
            origins: Vec::new(),
            connections: HttpLimits::default().agents,
            sessions: limits.sessions,
            body: limits.body,
            calls: limits.calls,
            deadline: limits.deadline,
            idle: limits.idle,
            time: limits.time,
        }
    }
}

impl McpSection {
    /// The limits of all agents.
    pub(crate) fn limits(&self) -> McpLimits {
        let mut limits = McpLimits::default();
        limits.sessions = self.sessions;
        limits.body = self.body;
        limits.calls = self.calls;
        limits.deadline = self.deadline;
        limits.idle = self.idle;
        limits.time = self.time;
        limits
    }
}
