//! The limits and properties of peers.

use serde::Deserialize;
use strowger_pfcp::Interfaces;
use strowger_pfcp::association::{NamedPeer, RestartSign};
use strowger_pfcp::endpoint::{Network, PeerLimits};

use super::{ConfigError, interface, named, restart};

/// The limits and properties of each peer. A peer is a host: it may send from any port. A request
/// beyond the rate is answered with Cause 74 (PFCP entity in congestion), a request beyond a number
/// with Cause 75 (No resources available). Heartbeats are always answered.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PeerConfig {
    /// The maximum number of associations of one host.
    pub associations: usize,
    /// The maximum number of requests of one host in progress.
    pub transactions: usize,
    /// The maximum memory of the rules of the sessions of one host, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub rule_memory: u64,
    /// The maximum number of requests of one host per second, over any period; 0 for no limit.
    /// Retransmissions and heartbeats are not counted.
    pub requests_per_second: u32,
    /// The maximum number of requests of one host at once, after a silence.
    pub burst: u32,
    /// The interface that peers use, by the network of their addresses, longest prefix first. Peers
    /// in none of the networks may use any interface, message by message.
    #[serde(deserialize_with = "interface::deserialize")]
    pub interfaces: Vec<(Network, Interfaces)>,
    /// The sign that peers have restarted, by the network of their addresses, longest prefix first.
    /// The default is a later Recovery Time Stamp, in an association setup or in heartbeats.
    #[serde(deserialize_with = "restart::deserialize")]
    pub restarts: Vec<(Network, RestartSign)>,
    /// Peers whose Node IDs are bound to addresses. An association is reserved for each of them,
    /// and `associations` does not count it.
    #[serde(deserialize_with = "named::deserialize")]
    pub named: Vec<NamedPeer>,
}

impl PeerConfig {
    /// Returns the limits with their configuration keys.
    pub(crate) fn rows(&self) -> [(&'static str, u64); 5] {
        [
            ("peer.associations", self.associations as u64),
            ("peer.transactions", self.transactions as u64),
            ("peer.rule_memory", self.rule_memory),
            ("peer.requests_per_second", self.requests_per_second.into()),
            ("peer.burst", self.burst.into()),
        ]
    }

    pub(super) fn check(&self, allowed: &[Network], most: usize) -> Result<(), ConfigError> {
        for (key, is_zero) in [
            ("associations", self.associations == 0),
            ("transactions", self.transactions == 0),
            ("rule_memory", self.rule_memory == 0),
            ("burst", self.burst == 0),
        ] {
            if is_zero {
                return Err(ConfigError::ZeroPeerLimit { key });
            }
        }
        named::check(&self.named, allowed, most)
    }
}

impl Default for PeerConfig {
    fn default() -> Self {
        let PeerLimits {
            associations,
            transactions,
            rate,
            burst,
        } = PeerLimits::default();
        Self {
            associations,
            transactions,
            rule_memory: 2 << 30,
            requests_per_second: rate,
            burst,
            interfaces: Vec::new(),
            restarts: Vec::new(),
            named: Vec::new(),
        }
    }
}
