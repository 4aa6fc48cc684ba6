//! The configuration of a node: addresses, peers, limits, timers and pools.
//!
//! Every key has a safe default and an unknown key is an error. [`NodeConfig::COMMENTED`] is the
//! default configuration as a file, with a comment for each key.

mod interface;
mod named;
mod networks;
mod peer;
mod policy;
mod pools;
mod release;
mod restart;
mod store;
mod traffic;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use strowger_pfcp::Release;
use strowger_pfcp::endpoint::Network;

pub use peer::{PeerConfig, ReportPort};
pub use policy::{OnFailure, PolicyConfig, PolicyKind};
pub use pools::{InstancePool, Pools};
pub use store::{Durability, StoreConfig};
pub use traffic::{DataPathConfig, DataPathKind};

use crate::scenario::FaultScenario;

/// The configuration of a node; the [`Default`] listens on the loopback.
///
/// ```
/// use strowger_pfcp_node::NodeConfig;
///
/// let config: NodeConfig = toml::from_str("listen = [\"127.0.0.1:0\"]\n[limits]\nsessions = 10")?;
/// assert_eq!(config.limits.sessions, 10);
/// assert_eq!(config.timers, NodeConfig::default().timers);
/// # Ok::<(), toml::de::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct NodeConfig {
    /// The UDP addresses to listen on. Port 0 lets the system choose.
    pub listen: Vec<SocketAddr>,
    /// The Node ID that the node sends to peers: an IP address or a domain name. Defaults to the
    /// first listen address.
    pub node_id: Option<String>,
    /// The networks from which datagrams are accepted; all others are discarded without an answer.
    #[serde(deserialize_with = "networks::deserialize")]
    pub peers: Vec<Network>,
    /// The release of TS 29.244 to use, `"r17"` or `"r19"`. IEs of newer releases are neither sent
    /// nor read.
    #[serde(deserialize_with = "release::deserialize")]
    pub release: Release,
    /// Names of the features that are offered to peers, as in TS 29.244 §8.2.25, in lower case.
    pub features: Vec<String>,
    /// The file to capture the node's own traffic in; no capture if it is not set.
    pub pcap: Option<PathBuf>,
    /// The limits of the node.
    pub limits: Limits,
    /// The limits of each peer.
    pub peer: PeerConfig,
    /// The protocol timers.
    pub timers: Timers,
    /// The pools that the node allocates addresses and TEIDs from.
    pub pools: Pools,
    /// The store for state that has to survive a restart.
    pub store: StoreConfig,
    /// The source of the traffic that sessions measure.
    pub data_path: DataPathConfig,
    /// The policy that decides about sessions.
    pub policy: PolicyConfig,
    /// The faults to inject on purpose, which are configured in a separate file.
    #[serde(skip)]
    pub scenario: Option<FaultScenario>,
}

/// The capacity of a node. A request beyond a limit is refused with a cause.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of associations.
    pub associations: usize,
    /// The maximum number of sessions.
    pub sessions: usize,
    /// The maximum number of sessions of one association.
    pub sessions_per_association: usize,
    /// The maximum size of a datagram that is processed, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub datagram: usize,
    /// The maximum number of transactions that wait for a response, in both directions.
    pub transactions: usize,
    /// The maximum number of responses that are kept for retransmitted requests.
    pub response_cache: usize,
    /// The maximum size of the rules of one session, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub session_bytes: usize,
    /// The maximum number of usage reporting rules of one session. Each that measures takes about a
    /// kilobyte, which is many times the size of its elements.
    pub urrs: usize,
    /// The maximum memory of the rules of all sessions, in bytes: their elements, and about a
    /// kilobyte for each usage reporting rule.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub rule_memory: u64,
    /// The maximum number of usage reports of one session that wait for the peer. Beyond it, new
    /// usage is added to waiting reports.
    pub usage_reports: usize,
    /// The maximum number of buffered packets of one session.
    pub buffered_packets: usize,
    /// The maximum size of all packet flow descriptions, in bytes.
    #[serde(deserialize_with = "strowger::deserialize_size")]
    pub pfd_bytes: usize,
}

/// The timers of the protocol, TS 29.244 §6.4 and §6.2.2.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Timers {
    /// T1: the time to wait for a response before the request is sent again.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub t1: Duration,
    /// N1: the number of times that a request is sent before the node gives up.
    pub n1: u32,
    /// The silence of a peer after which a heartbeat is sent; zero disables heartbeats.
    #[serde(deserialize_with = "strowger::deserialize_duration")]
    pub heartbeat: Duration,
}

/// The error returned when a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// `listen` is empty.
    #[error("`listen` is empty: give at least one address, such as \"127.0.0.1:8805\"")]
    NoListenAddress,
    /// A limit is zero.
    #[error("`limits.{key}` is 0, so nothing would ever be accepted")]
    ZeroLimit {
        /// Configuration key of the limit that is zero.
        key: &'static str,
    },
    /// A limit of each peer is zero.
    #[error("`peer.{key}` is 0, so nothing would ever be accepted")]
    ZeroPeerLimit {
        /// Configuration key of the limit that is zero.
        key: &'static str,
    },
    /// More peers are named than associations are allowed.
    #[error(
        "`peer.named` has {named} peers, and `limits.associations` is {associations}: raise it, so \
         that each named peer has room, and others too"
    )]
    NamedPeers {
        /// Number of named peers.
        named: usize,
        /// The limit of associations.
        associations: usize,
    },
    /// A named peer has addresses that are not in the allowed networks.
    #[error("`peer.named` gives {node} the addresses {network}, which `peers` does not allow")]
    NamedPeerNotAllowed {
        /// The Node ID.
        node: String,
        /// Network of the peer as configured.
        network: Network,
    },
    /// The range of TEIDs is empty or contains TEID 0, which is reserved.
    #[error(
        "`pools.teid_first` {first} to `pools.teid_last` {last} is not a range of TEIDs from 1"
    )]
    TeidRange {
        /// The first TEID.
        first: u32,
        /// The last TEID.
        last: u32,
    },
    /// A timer is out of range: a request would never be sent, or never be given up.
    #[error("`timers.{key}` is {value}; it must be from {least} to {most}")]
    Timer {
        /// Configuration key of the time.
        key: &'static str,
        /// The configured value.
        value: String,
        /// The smallest allowed value.
        least: &'static str,
        /// The largest allowed value.
        most: &'static str,
    },
    /// A number in the store configuration is out of range.
    #[error("`store.{key}` is {value}; it must be from {least} to {most}")]
    Store {
        /// Configuration key in the table of the store.
        key: &'static str,
        /// The configured value.
        value: u64,
        /// The smallest allowed value.
        least: u64,
        /// The largest allowed value.
        most: u64,
    },
    /// A number in the traffic model is out of range.
    #[error("`data_path.{key}` is {value}; it must be from {least} to {most}")]
    DataPath {
        /// Configuration key in the table of the data path.
        key: &'static str,
        /// The configured value.
        value: u64,
        /// The smallest allowed value.
        least: u64,
        /// The largest allowed value.
        most: u64,
    },
    /// A duration is out of range.
    #[error("`{key}` is {value:?}; it must be from {least} to {most}")]
    Span {
        /// Configuration key of the time span.
        key: &'static str,
        /// The configured value.
        value: Duration,
        /// The smallest allowed value.
        least: &'static str,
        /// The largest allowed value.
        most: &'static str,
    },
    /// A policy key is set that the configured kind of policy does not read.
    #[error("`policy.{key}` is set, but only \"{kind}\" as `policy.kind` reads it")]
    PolicyKey {
        /// Configuration key in the table of the policy.
        key: &'static str,
        /// The kind of policy that reads it.
        kind: &'static str,
    },
    /// The policy is a component, but no component is named.
    #[error("`policy.kind` is \"component\", but `policy.component` is missing")]
    NoComponent,
    /// A feature name is unknown.
    #[error(
        "`features` has \"{0}\", which this node does not have; \
         it has \"ftup\", \"pfdm\", \"ueip\" and \"ip6pl\""
    )]
    UnknownFeature(String),
}

impl NodeConfig {
    /// The default configuration as a TOML file with a comment for each key.
    pub const COMMENTED: &'static str = include_str!("config/default.toml");

    /// Checks the constraints that the types do not express.
    ///
    /// # Errors
    /// Returns an error for the first key that cannot be used.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.listen.is_empty() {
            return Err(ConfigError::NoListenAddress);
        }
        let limits = &self.limits;
        if let Some((key, _)) = limits.rows().into_iter().find(|(_, value)| *value == 0) {
            let key = key.trim_start_matches("limits.");
            return Err(ConfigError::ZeroLimit { key });
        }
        let (first, last) = (self.pools.teid_first, self.pools.teid_last);
        if first == 0 || first > last {
            return Err(ConfigError::TeidRange { first, last });
        }
        if let Some(name) = self.features.iter().find(|name| feature(name).is_none()) {
            return Err(ConfigError::UnknownFeature(name.clone()));
        }
        self.store.check()?;
        self.data_path.check()?;
        self.policy.check()?;
        self.peer.check(&self.peers, limits.associations)?;
        self.timers.check()
    }

    /// Returns `true` if a feature is offered to peers.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.features.iter().any(|feature| feature == name)
    }

    /// Returns the value of the UP Function Features IE.
    pub(crate) fn feature_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; 2];
        for (byte, bit) in self.features.iter().filter_map(|name| feature(name)) {
            if bytes.len() <= byte {
                bytes.resize(byte + 1, 0);
            }
            bytes[byte] |= bit;
        }
        bytes
    }

    /// Returns the name of the node: the configured Node ID, or else its first listen address.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.node_id, self.listen.first()) {
            (Some(name), _) => name.clone(),
            (None, Some(first)) => first.ip().to_string(),
            (None, None) => Ipv4Addr::LOCALHOST.to_string(),
        }
    }

    /// Returns `true` if datagrams from `peer` are accepted.
    #[must_use]
    pub fn allows(&self, peer: IpAddr) -> bool {
        self.peers.iter().any(|network| network.contains(peer))
    }
}

/// Returns the position of a feature in its IE: the byte, counted from 0, and the bit.
fn feature(name: &str) -> Option<(usize, u8)> {
    match name {
        "ftup" => Some((0, 1 << 4)),
        "pfdm" => Some((0, 1 << 5)),
        "ueip" => Some((2, 1 << 2)),
        "ip6pl" => Some((3, 1 << 5)),
        _ => None,
    }
}

impl Limits {
    /// Returns the limits with their configuration keys.
    pub(crate) const fn rows(&self) -> [(&'static str, u64); 12] {
        [
            ("limits.associations", self.associations as u64),
            ("limits.sessions", self.sessions as u64),
            (
                "limits.sessions_per_association",
                self.sessions_per_association as u64,
            ),
            ("limits.datagram", self.datagram as u64),
            ("limits.transactions", self.transactions as u64),
            ("limits.response_cache", self.response_cache as u64),
            ("limits.session_bytes", self.session_bytes as u64),
            ("limits.urrs", self.urrs as u64),
            ("limits.rule_memory", self.rule_memory),
            ("limits.usage_reports", self.usage_reports as u64),
            ("limits.buffered_packets", self.buffered_packets as u64),
            ("limits.pfd_bytes", self.pfd_bytes as u64),
        ]
    }
}

impl Timers {
    fn check(&self) -> Result<(), ConfigError> {
        let (least, most) = (Duration::from_millis(1), Duration::from_secs(600));
        for (key, value, least) in [
            ("t1", self.t1, least),
            ("heartbeat", self.heartbeat, Duration::ZERO),
        ] {
            if value < least || value > most {
                let value = format!("{value:?}");
                return Err(ConfigError::Timer {
                    key,
                    value,
                    least: "1ms",
                    most: "10m",
                });
            }
        }
        if self.n1 == 0 || self.n1 > 100 {
            let value = self.n1.to_string();
            return Err(ConfigError::Timer {
                key: "n1",
                value,
                least: "1",
                most: "100",
            });
        }
        Ok(())
    }
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, crate::PFCP_PORT))],
            node_id: None,
            peers: networks::known(["127.0.0.0/8", "::1/128"]),
            release: Release::default(),
            features: ["ftup", "pfdm", "ueip"].map(String::from).to_vec(),
            pcap: None,
            limits: Limits::default(),
            peer: PeerConfig::default(),
            timers: Timers::default(),
            pools: Pools::default(),
            store: StoreConfig::default(),
            data_path: DataPathConfig::default(),
            policy: PolicyConfig::default(),
            scenario: None,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            associations: 1024,
            sessions: 1_000_000,
            sessions_per_association: 1_000_000,
            datagram: 65_507,
            transactions: 65_536,
            response_cache: 65_536,
            session_bytes: 64 * 1024,
            urrs: 512,
            rule_memory: 4 << 30,
            usage_reports: 64,
            buffered_packets: 1024,
            pfd_bytes: 1024 * 1024,
        }
    }
}

impl Default for Timers {
    fn default() -> Self {
        Self {
            t1: Duration::from_secs(3),
            n1: 3,
            heartbeat: Duration::from_secs(60),
        }
    }
}

#[cfg(test)]
mod tests;
