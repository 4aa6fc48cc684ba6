//! The configuration of policies.

use std::time::Duration;

use serde::Deserialize;

use super::ConfigError;
use crate::policy::QosCaps;

/// The policy that decides about sessions, and the fallback when it does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PolicyConfig {
    /// Policy that decides about new sessions.
    pub kind: PolicyKind,
    /// The time limit for an answer of the policy.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub budget: Duration,
    /// The fallback when the policy fails or is late.
    pub on_failure: OnFailure,
    /// For `component`: the name of the component.
    pub component: Option<String>,
    /// For `qos-cap`: the highest uplink rate, in kbit/s.
    pub uplink: Option<u64>,
    /// For `qos-cap`: the highest downlink rate, in kbit/s.
    pub downlink: Option<u64>,
    /// For `qos-cap`: the maximum number of sessions of a peer.
    pub sessions: Option<usize>,
}

/// The kind of policy that decides about sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PolicyKind {
    /// Every session is accepted.
    #[default]
    None,
    /// Caps rates and counts sessions.
    QosCap,
    /// A component of the program that embeds the node, which supplies the policy.
    Component,
}

impl PolicyKind {
    /// Returns the name of the kind in a configuration.
    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::QosCap => "qos-cap",
            Self::Component => "component",
        }
    }
}

/// The fallback when a policy fails or is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum OnFailure {
    /// The request is refused with Cause 77 (System failure).
    #[default]
    Deny,
    /// The request is admitted unchanged.
    Allow,
    /// The policy's last answer to the same peer and question applies again; without one, the
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
        // The peer retransmits after T1, so an answer that takes longer than 10 s is useless.
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
