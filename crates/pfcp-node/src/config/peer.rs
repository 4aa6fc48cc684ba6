//! What each peer may use.

use serde::Deserialize;
use strowger_pfcp::Interfaces;
use strowger_pfcp::association::RestartSign;
use strowger_pfcp::endpoint::{Network, PeerLimits};

use super::{ConfigError, interface, restart};

/// What each peer is and may use. A peer is a host: it may send from any port. Beyond a rate the
/// answer is Cause 74 (PFCP entity in congestion), beyond a number Cause 75 (No resources
/// available); heartbeats are answered in any case.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PeerConfig {
    /// The most associations of one host.
    pub associations: usize,
    /// The most requests of one host that are worked on at a time.
    pub transactions: usize,
    /// The most requests of one host a second, over any time; 0 for no limit. Repetitions and
    /// heartbeats do not count.
    pub requests_per_second: u32,
    /// The most requests of one host at once, after a silence.
    pub burst: u32,
    /// Which interface peers speak, by the network of their addresses, the most precise one first.
    /// Who is in none of them may speak any, message by message.
    #[serde(deserialize_with = "interface::deserialize")]
    pub interfaces: Vec<(Network, Interfaces)>,
    /// The sign that peers have restarted, by the network of their addresses, the most precise one
    /// first. Peers in none of them: a later Recovery Time Stamp, in a setup or in heartbeats.
    #[serde(deserialize_with = "restart::deserialize")]
    pub restarts: Vec<(Network, RestartSign)>,
}

impl PeerConfig {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        for (key, is_zero) in [
            ("associations", self.associations == 0),
            ("transactions", self.transactions == 0),
            ("burst", self.burst == 0),
        ] {
            if is_zero {
                return Err(ConfigError::ZeroPeerLimit { key });
            }
        }
        Ok(())
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
            requests_per_second: rate,
            burst,
            interfaces: Vec::new(),
            restarts: Vec::new(),
        }
    }
}
