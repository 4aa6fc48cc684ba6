//! Who decides about sessions.

use std::time::Duration;

use serde::Deserialize;

use super::{ConfigError, span};
use crate::policy::QosCaps;

/// Who is asked about sessions, and what holds when nobody answers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PolicyConfig {
    /// The policy.
    pub kind: PolicyKind,
    /// How long an answer is waited for.
    #[serde(deserialize_with = "span::deserialize")]
    pub budget: Duration,
    /// What holds when the policy fails or is late.
    pub on_failure: OnFailure,
    /// Of `component`: its name.
    pub component: Option<String>,
    /// Of `qos-cap`: the highest rate from the user, in kbit/s.
    pub uplink: Option<u64>,
    /// Of `qos-cap`: the highest rate to the user, in kbit/s.
    pub downlink: Option<u64>,
    /// Of `qos-cap`: the most sessions of a peer.
    pub sessions: Option<usize>,
}

/// Who decides about sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PolicyKind {
    /// Nobody is asked.
    #[default]
    None,
    /// Rates are capped and sessions counted.
    QosCap,
    /// A component of the program that the node runs in, which gives the node its policy.
    Component,
}

impl PolicyKind {
    /// Its name in a configuration.
    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::QosCap => "qos-cap",
            Self::Component => "component",
        }
    }
}

/// What holds when a policy fails or is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OnFailure {
    /// The request is refused with Cause 77 (System failure).
    #[default]
    Deny,
    /// The request is admitted as it is.
    Allow,
    /// What the policy answered last to this peer and question holds again; if it never did, the
    /// request is refused.
    LastGood,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self {
            kind: PolicyKind::None,
            budget: Duration::from_millis(50),
            on_failure: OnFailure::Deny,
            component: None,
            uplink: None,
            downlink: None,
            sessions: None,
        }
    }
}

impl PolicyConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        // The peer asks again after T1; an answer that takes longer than this is no answer.
        if self.budget < Duration::from_millis(1) || self.budget > Duration::from_secs(10) {
            return Err(ConfigError::Span {
                key: "policy.budget",
                value: self.budget,
                least: "1ms",
                most: "10s",
            });
        }
        let keys = [
            ("component", self.component.is_some(), PolicyKind::Component),
            ("uplink", self.uplink.is_some(), PolicyKind::QosCap),
            ("downlink", self.downlink.is_some(), PolicyKind::QosCap),
            ("sessions", self.sessions.is_some(), PolicyKind::QosCap),
        ];
        let unread = |(_, given, kind): &&(_, bool, PolicyKind)| *given && *kind != self.kind;
        if let Some((key, _, kind)) = keys.iter().find(unread) {
            let kind = kind.name();
            return Err(ConfigError::PolicyKey { key, kind });
        }
        if self.kind == PolicyKind::Component && self.component.is_none() {
            return Err(ConfigError::NoComponent);
        }
        Ok(())
    }

    pub(crate) fn caps(&self) -> QosCaps {
        QosCaps {
            uplink: self.uplink,
            downlink: self.downlink,
            sessions: self.sessions,
        }
    }
}
