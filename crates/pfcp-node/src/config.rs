//! What a node is told: addresses, peers, limits, times, pools.
//!
//! Every key has a safe default, an unknown key is an error, and [`NodeConfig::COMMENTED`] is the
//! default configuration as a file, with a comment for each key.

mod interface;
mod networks;
mod peer;
mod policy;
mod release;
mod restart;
mod size;
mod span;
mod store;
mod traffic;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use strowger_pfcp::Release;
use strowger_pfcp::endpoint::Network;

pub use peer::PeerConfig;
pub use policy::{OnFailure, PolicyConfig, PolicyKind};
pub use store::{Durability, StoreConfig};
pub use traffic::{DataPathConfig, DataPathKind};

use crate::scenario::Scenario;

/// The configuration of a node; [`Default`] is a node on the loopback.
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
    /// How the node names itself to peers: an IP address or a domain name. The first listen address
    /// if it is not set.
    pub node_id: Option<String>,
    /// The networks from which datagrams are accepted; all others are discarded unanswered.
    #[serde(deserialize_with = "networks::deserialize")]
    pub peers: Vec<Network>,
    /// The release of TS 29.244 that is spoken, `"r17"` or `"r19"`: what is newer is left out of
    /// what the node sends, and ignored in what it receives.
    #[serde(deserialize_with = "release::deserialize")]
    pub release: Release,
    /// Names of the features that are offered to peers, as in TS 29.244 §8.2.25, in lower case.
    pub features: Vec<String>,
    /// A capture file of the node's own traffic; none if it is not set.
    pub pcap: Option<PathBuf>,
    /// Limits.
    pub limits: Limits,
    /// Limits of each peer.
    pub peer: PeerConfig,
    /// Times.
    pub timers: Timers,
    /// Where the node takes addresses that it allocates.
    pub pools: Pools,
    /// Where the node keeps what has to survive.
    pub store: StoreConfig,
    /// Where the traffic comes from that sessions count.
    pub data_path: DataPathConfig,
    /// Who is asked about sessions.
    pub policy: PolicyConfig,
    /// What the node does wrong on purpose; it has a file of its own.
    #[serde(skip)]
    pub scenario: Option<Scenario>,
}

/// How much a node takes in. Beyond a limit the answer is a cause, never a crash.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// The most associations at a time.
    pub associations: usize,
    /// The most sessions at a time.
    pub sessions: usize,
    /// The most sessions of one association.
    pub sessions_per_association: usize,
    /// The longest datagram that is looked at, in octets.
    pub datagram: usize,
    /// The most transactions that wait for an answer, ours and those of peers.
    pub transactions: usize,
    /// The most answers that are kept for retransmitted requests.
    pub response_cache: usize,
    /// The most octets that the rules of one session may take.
    pub session_octets: usize,
    /// The most usage reports of one session that wait for the peer; beyond it reports grow instead
    /// of becoming more.
    pub usage_reports: usize,
    /// The most packets of one session that are buffered.
    pub buffered_packets: usize,
    /// The most octets that packet flow descriptions may take.
    pub pfd_octets: usize,
}

/// Times of the protocol, TS 29.244 §6.4 and §6.2.2.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Timers {
    /// T1: how long an answer is waited for before the request is sent again.
    #[serde(deserialize_with = "span::deserialize")]
    pub t1: Duration,
    /// N1: how often a request is sent before it is given up.
    pub n1: u32,
    /// How long a peer may be silent before a heartbeat is sent; zero sends none.
    #[serde(deserialize_with = "span::deserialize")]
    pub heartbeat: Duration,
}

/// Address pools.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Pools {
    /// The networks from which UE addresses are allocated when a peer asks for it.
    #[serde(deserialize_with = "networks::deserialize")]
    pub ue: Vec<Network>,
    /// The first TEID that is allocated.
    pub teid_first: u32,
    /// The last TEID that is allocated.
    pub teid_last: u32,
    /// The address of the user plane that is told with an allocated TEID. The first listen address
    /// of the right family if it is not set.
    pub gtpu: Vec<IpAddr>,
}

/// A configuration that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// There is nothing to listen on.
    #[error("`listen` is empty: give at least one address, such as \"127.0.0.1:8805\"")]
    NoListenAddress,
    /// A limit is zero.
    #[error("`limits.{key}` is 0, so nothing would ever be accepted")]
    ZeroLimit {
        /// The key.
        key: &'static str,
    },
    /// A limit of each peer is zero.
    #[error("`peer.{key}` is 0, so nothing would ever be accepted")]
    ZeroPeerLimit {
        /// The key.
        key: &'static str,
    },
    /// The range of TEIDs is empty or has TEID 0, which is reserved.
    #[error(
        "`pools.teid_first` {first} to `pools.teid_last` {last} is not a range of TEIDs from 1"
    )]
    TeidRange {
        /// The first TEID.
        first: u32,
        /// The last TEID.
        last: u32,
    },
    /// A request would never be sent, or never be given up.
    #[error("`timers.{key}` is {value}; it must be from {least} to {most}")]
    Timer {
        /// The key.
        key: &'static str,
        /// What it is set to.
        value: String,
        /// The least possible value.
        least: &'static str,
        /// The greatest possible value.
        most: &'static str,
    },
    /// A number of the store is too small or too large.
    #[error("`store.{key}` is {value}; it must be from {least} to {most}")]
    Store {
        /// The key.
        key: &'static str,
        /// What it is set to.
        value: u64,
        /// The least possible value.
        least: u64,
        /// The greatest possible value.
        most: u64,
    },
    /// A number of the model of traffic is too small or too large.
    #[error("`data_path.{key}` is {value}; it must be from {least} to {most}")]
    DataPath {
        /// The key.
        key: &'static str,
        /// What it is set to.
        value: u64,
        /// The least possible value.
        least: u64,
        /// The greatest possible value.
        most: u64,
    },
    /// A time is too short or too long.
    #[error("`{key}` is {value:?}; it must be from {least} to {most}")]
    Span {
        /// The key.
        key: &'static str,
        /// What it is set to.
        value: Duration,
        /// The least possible value.
        least: &'static str,
        /// The greatest possible value.
        most: &'static str,
    },
    /// A key of policies is set, and nobody would look at it.
    #[error("`policy.{key}` is set, but only \"{kind}\" as `policy.kind` reads it")]
    PolicyKey {
        /// The key.
        key: &'static str,
        /// The kind of policy that reads it.
        kind: &'static str,
    },
    /// A component is to be asked, and nobody says which.
    #[error("`policy.kind` is \"component\", and `policy.component` does not say which")]
    NoComponent,
    /// A feature has no such name.
    #[error(
        "`features` has \"{0}\", which this node does not have; \
         it has \"ftup\", \"pfdm\" and \"ueip\""
    )]
    UnknownFeature(String),
}

impl NodeConfig {
    /// The default configuration as a TOML file with a comment for each key.
    pub const COMMENTED: &'static str = include_str!("config/default.toml");

    /// Checks what types cannot.
    ///
    /// # Errors
    /// The first key that cannot be used, and why.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.listen.is_empty() {
            return Err(ConfigError::NoListenAddress);
        }
        let limits = &self.limits;
        for (key, value) in [
            ("associations", limits.associations),
            ("sessions", limits.sessions),
            ("sessions_per_association", limits.sessions_per_association),
            ("datagram", limits.datagram),
            ("transactions", limits.transactions),
            ("response_cache", limits.response_cache),
            ("session_octets", limits.session_octets),
            ("usage_reports", limits.usage_reports),
            ("buffered_packets", limits.buffered_packets),
            ("pfd_octets", limits.pfd_octets),
        ] {
            if value == 0 {
                return Err(ConfigError::ZeroLimit { key });
            }
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
        self.peer.check()?;
        self.timers.check()
    }

    /// Whether a feature is offered to peers.
    pub(crate) fn offers(&self, name: &str) -> bool {
        self.features.iter().any(|feature| feature == name)
    }

    /// The value of the element UP Function Features.
    pub(crate) fn feature_octets(&self) -> Vec<u8> {
        let mut octets = vec![0; 2];
        for (octet, bit) in self.features.iter().filter_map(|name| feature(name)) {
            if octets.len() <= octet {
                octets.resize(octet + 1, 0);
            }
            octets[octet] |= bit;
        }
        octets
    }

    /// The name of the node: what is configured, else its first listen address.
    #[must_use]
    pub fn name(&self) -> String {
        match (&self.node_id, self.listen.first()) {
            (Some(name), _) => name.clone(),
            (None, Some(first)) => first.ip().to_string(),
            (None, None) => Ipv4Addr::LOCALHOST.to_string(),
        }
    }

    /// Whether datagrams from `peer` are accepted.
    #[must_use]
    pub fn allows(&self, peer: IpAddr) -> bool {
        self.peers.iter().any(|network| network.contains(peer))
    }
}

/// Where a feature stands in its element: the octet, counted from 0, and the bit.
fn feature(name: &str) -> Option<(usize, u8)> {
    match name {
        "ftup" => Some((0, 1 << 4)),
        "pfdm" => Some((0, 1 << 5)),
        "ueip" => Some((2, 1 << 2)),
        _ => None,
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
            session_octets: 64 * 1024,
            usage_reports: 64,
            buffered_packets: 1024,
            pfd_octets: 1024 * 1024,
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

impl Default for Pools {
    fn default() -> Self {
        Self {
            ue: networks::known(["10.45.0.0/16", "2001:db8:cafe::/48"]),
            teid_first: 1,
            teid_last: u32::MAX,
            gtpu: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
