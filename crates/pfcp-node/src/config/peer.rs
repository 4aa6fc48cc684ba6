//! The limits and properties of peers.

use std::net::SocketAddr;
use std::num::NonZeroU16;

use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
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
    /// The port of the CP functions that session reports are sent to.
    pub report_port: ReportPort,
}

/// The port of a CP function that session reports are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportPort {
    /// This port. TS 29.244 §4.2.2 has requests sent to 8805, from whichever port the peer sends
    /// its own.
    Number(NonZeroU16),
    /// The port that the peer set up its association from, if the report goes to that host, or else
    /// 8805. A deviation for peers that share a host, of which only one can have port 8805.
    Source,
}

impl ReportPort {
    /// Returns the port at a host of the peer that set up its association from `source`.
    pub(crate) fn at(self, host: std::net::IpAddr, source: SocketAddr) -> u16 {
        match self {
            Self::Number(port) => port.get(),
            Self::Source if host == source.ip() => source.port(),
            Self::Source => crate::PFCP_PORT,
        }
    }
}

impl Default for ReportPort {
    fn default() -> Self {
        Self::Number(NonZeroU16::new(crate::PFCP_PORT).unwrap_or(NonZeroU16::MAX))
    }
}

impl<'de> Deserialize<'de> for ReportPort {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        input.deserialize_any(ReportPortVisitor)
    }
}

struct ReportPortVisitor;

impl Visitor<'_> for ReportPortVisitor {
    type Value = ReportPort;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a port from 1 to 65535, or \"source\"")
    }

    fn visit_i64<E: Error>(self, port: i64) -> Result<ReportPort, E> {
        let number = u16::try_from(port).ok().and_then(NonZeroU16::new);
        let wrong = || E::invalid_value(Unexpected::Signed(port), &self);
        number.map(ReportPort::Number).ok_or_else(wrong)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ReportPort, E> {
        match text {
            "source" => Ok(ReportPort::Source),
            text => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
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
            report_port: ReportPort::default(),
        }
    }
}
