//! A node: started from a configuration, inspected through a handle.

mod filter;
mod operator_request;
mod parts;
mod startup;
mod state;
mod usage;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use strowger::{
    ActorPath, ActorSystem, Backoff, ChildSpec, Exit, StartError, Strategy, Supervisor,
    SupervisorRef, TopicError,
};
use strowger_pfcp::Seid;
use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::endpoint::DiscardReason;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::validate::Deviation;

use crate::association::{key_of, session_key};
use crate::capture_file::CaptureFile;
use crate::config::{ConfigError, NodeConfig};
use crate::endpoint::Endpoint;
use crate::pfd::PfdStore;
use crate::policy::{PolicyActor, PolicyStats};
use crate::pool::{AddressClaim, AddressPool};
use crate::session::{InjectedPanic, SessionMsg, rule_ids};
use crate::shared::{NodeCounters, Shared, get};
use crate::socket::{Batch, BindError, Sockets};
use crate::store::{SessionRecord, StoreError, StoreHealth, StoreLoss};
use crate::topics::NodeTopics;
pub use filter::SessionFilter;
pub use operator_request::{NodeRequestError, ReleaseOutcome, ReleaseReport};
pub use parts::NodeParts;
pub(crate) use state::NodeState;
pub use usage::UsageStats;

/// A PFCP node in the UPF role.
///
/// ```
/// use strowger::ActorSystem;
/// use strowger_pfcp_node::{Node, NodeConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let system = ActorSystem::new("doc")?;
/// let mut config = NodeConfig::default();
/// config.listen = vec!["127.0.0.1:0".parse()?];
/// let node = Node::start(&system, config).await?;
/// assert_ne!(node.local_addr().port(), 0);
/// # system.shutdown(std::time::Duration::from_secs(1)).await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Node;

/// The error returned when a node fails to start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The Node ID is neither an IP address nor a domain name.
    #[error("`node_id` \"{0}\" is neither an IP address nor a domain name")]
    NodeId(String),
    /// An address cannot be bound.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The capture file cannot be created.
    #[error("cannot write the capture file {path}: {source}")]
    Pcap {
        /// The path of the file.
        path: String,
        /// The I/O error.
        source: std::io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The topics of the node cannot be opened.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The actors failed to start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A component is configured as the policy, but the embedding program supplied no policy.
    #[error("`policy.kind` is \"component\", but this program has no component host")]
    NoPolicy,
}

/// An event about state that a node found missing from its store when it started. The Recovery Time
/// Stamp of the node has moved. Published to [`StateLost::TOPIC`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateLost {
    /// The Recovery Time Stamp that the node sends from now on, in seconds since 1900.
    pub recovery: u32,
    /// The missing state.
    pub loss: StoreLoss,
}

impl StateLost {
    /// The topic to subscribe to before the node starts.
    pub const TOPIC: &str = "node/n4/lost";
}

impl Node {
    /// Starts a node under its own supervisor, at `/node/n4`.
    ///
    /// # Errors
    /// Returns an error if the configuration cannot be used, or if an address cannot be bound.
    pub async fn start(system: &ActorSystem, config: NodeConfig) -> Result<NodeHandle, NodeError> {
        Self::start_with(system, config, NodeParts::default()).await
    }

    /// Starts a node with parts that the caller supplies.
    ///
    /// # Errors
    /// Returns an error if the configuration cannot be used, or if an address cannot be bound.
    pub async fn start_with(
        system: &ActorSystem,
        config: NodeConfig,
        host_parts: NodeParts,
    ) -> Result<NodeHandle, NodeError> {
        config.check()?;
        host_parts.check(&config)?;
        let name = NodeName::from_text(&config.name());
        let name = name.ok_or_else(|| NodeError::NodeId(config.name()))?;
        let mut sockets = Sockets::bind(&config.listen, config.limits.datagram).await?;
        if let Some(scenario) = &config.scenario {
            sockets.inject_faults(scenario.clone(), name.clone());
        }
        let capture = match &config.pcap {
            None => CaptureFile::default(),
            Some(path) => CaptureFile::create(path).map_err(|source| NodeError::Pcap {
                path: path.display().to_string(),
                source,
            })?,
        };
        let pool = pool_of(&config, &sockets);
        let (state, waiting) = NodeState::open(&config, &sockets, &pool).await?;
        let parts = NodeSetup {
            config,
            name,
            sockets,
            capture,
            pool,
            state,
            waiting,
            host_parts,
        };
        Self::assemble(system, parts).await
    }

    /// Starts the actors of a node from its assembled parts.
    pub(crate) async fn assemble(
        system: &ActorSystem,
        parts: NodeSetup,
    ) -> Result<NodeHandle, NodeError> {
        let NodeSetup {
            config,
            name,
            sockets,
            capture,
            pool,
            state,
            waiting,
            host_parts,
        } = parts;
        let pfds = PfdStore::restored(state.store.descriptions());
        let shared = Arc::new(Shared {
            pool,
            recovery: state.recovery,
            seed: state.seed,
            store: state.store,
            counters: NodeCounters::default(),
            waiting: Mutex::new(waiting),
            next_seid: AtomicU64::new(state.next_seid),
            writing: Mutex::default(),
            endpoint: Mutex::default(),
            data_path: host_parts.data_path(&config),
            reserved: Arc::default(),
            meters: Mutex::default(),
            policy: host_parts.policy_client(&config),
            topics: NodeTopics::open(system)?,
            claim_log: Mutex::default(),
            ended: Mutex::default(),
            config,
            name,
            sockets,
            pfds,
            capture,
        });
        // A datagram that crashes the endpoint repeatedly must not take the node down.
        let mut supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(1000, Duration::from_secs(1))
            .backoff(Backoff::new(
                Duration::from_millis(10),
                Duration::from_secs(1),
            ));
        if shared.policy.is_some() {
            let policy = ChildSpec::new::<PolicyActor>(POLICY, Arc::clone(&shared));
            supervisor = supervisor.child(policy);
        }
        let endpoint = ChildSpec::new::<Endpoint>(ENDPOINT, Arc::clone(&shared));
        let supervisor = supervisor.child(endpoint);
        let supervisor = system.supervise(SUPERVISOR, supervisor).await?;
        if let Some(loss) = shared.store.health().loss {
            let recovery = shared.recovery.0;
            // The topic name is a valid constant, and the event is optional: it may
            // have no subscriber.
            if let Ok(topic) = system.topic(StateLost::TOPIC) {
                topic.publish(StateLost { recovery, loss });
            }
        }
        Ok(NodeHandle {
            system: system.clone(),
            shared,
            supervisor,
        })
    }
}

/// The parts that a node is assembled from.
pub(crate) struct NodeSetup {
    pub(crate) config: NodeConfig,
    pub(crate) name: NodeName,
    pub(crate) sockets: Sockets,
    pub(crate) capture: CaptureFile,
    pub(crate) pool: Arc<AddressPool>,
    pub(crate) state: NodeState,
    /// Datagrams that arrived before the endpoint started.
    pub(crate) waiting: Vec<Batch>,
    pub(crate) host_parts: NodeParts,
}

/// Creates the pools of a node that listens on `sockets`.
pub(crate) fn pool_of(config: &NodeConfig, sockets: &Sockets) -> Arc<AddressPool> {
    let addresses: Vec<_> = sockets.addresses().iter().map(SocketAddr::ip).collect();
    Arc::new(AddressPool::new(&config.pools, &addresses))
}

const SUPERVISOR: &str = "node";
const POLICY: &str = "policy";
const ENDPOINT: &str = "n4";

/// Returns the current time as a Recovery Time Stamp: seconds since 1900.
pub(crate) fn recovery_now() -> Recovery {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = (since.as_secs() + 2_208_988_800) & u64::from(u32::MAX);
    Recovery(u32::try_from(seconds).unwrap_or_default())
}

/// A handle to a running node. It is cheap to clone, and can be read while the node is busy.
#[derive(Clone, Debug)]
pub struct NodeHandle {
    system: ActorSystem,
    shared: Arc<Shared>,
    supervisor: SupervisorRef,
}

/// A session, as last acknowledged to its peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The node's SEID of the session.
    pub seid: Seid,
    /// The peer's SEID of the session.
    pub peer_seid: Seid,
    /// The Node ID of the peer.
    pub node: String,
    /// The address that the peer sends from.
    pub peer: SocketAddr,
    /// The path of the session's actor in the tree.
    pub path: String,
    /// The UE IP addresses of the session.
    pub ue_addresses: Vec<IpAddr>,
    /// The tunnels of the session at the node.
    pub teids: Vec<(u32, IpAddr)>,
    /// The PDR IDs.
    pub pdrs: Vec<u32>,
    /// The FAR IDs.
    pub fars: Vec<u32>,
    /// The URR IDs.
    pub urrs: Vec<u32>,
    /// The QER IDs.
    pub qers: Vec<u32>,
    /// The size of the rules, in bytes.
    pub bytes: usize,
}

/// An association with a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationInfo {
    /// The Node ID of the peer.
    pub node: String,
    /// The address that the peer sends from.
    pub peer: SocketAddr,
    /// The Recovery Time Stamp of the peer, in seconds since 1900.
    pub recovery: u32,
    /// The path of the association's supervisor in the tree.
    pub path: String,
    /// Number of sessions of the association.
    pub sessions: usize,
}

/// Counters and gauges of a node since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStats {
    /// Number of sessions at present.
    pub sessions: usize,
    /// Number of associations at present.
    pub associations: usize,
    /// Number of accepted establishments.
    pub established: u64,
    /// Number of accepted modifications.
    pub modified: u64,
    /// Number of accepted deletions.
    pub deleted: u64,
    /// Number of sessions that ended because their peer used their CP F-SEID for another session.
    pub superseded: u64,
    /// Number of refused requests, by cause.
    pub refused: Vec<(Cause, u64)>,
    /// Number of requests that a session dropped because it panicked or was killed.
    pub dropped: u64,
    /// Number of session actors that were started from the store: after a panic, a kill or a
    /// restart.
    pub restored: u64,
    /// Number of datagrams received.
    pub datagrams: u64,
    /// Number of retransmitted requests that were answered from the response cache.
    pub repeated: u64,
    /// Number of cached responses that were evicted early.
    pub evicted: u64,
    /// The memory that the rules of all sessions take, in bytes, as an estimate from above.
    pub rule_memory: u64,
    /// The memory of the rules of the host that has the most.
    pub rule_memory_of_peer: u64,
    /// Number of requests that were refused because of the memory of their rules.
    pub memory_refused: u64,
    /// The limits of the node, by configuration key.
    pub limits: Vec<(&'static str, u64)>,
    /// Number of requests that were refused because their sender exceeded a limit.
    pub limited: u64,
    /// Number of restarts of peers, which ended their sessions.
    pub restarts: u64,
    /// Number of restarts that a heartbeat indicated and the peer denied.
    pub restarts_denied: u64,
    /// Number of heartbeats with a later Recovery Time Stamp, from peers that signal a restart only
    /// by an association setup.
    pub stamps_ignored: u64,
    /// Number of association setups that were refused, either because the Node ID does not belong
    /// to the sender or for lack of resources.
    pub setups_refused: u64,
    /// Number of claims that were refused, by the name of what was claimed: `node_id`, `f_teid` and
    /// `ue_address`, which belong to other peers or sessions, and `report_address`, which is not
    /// allowed.
    pub claims_refused: Vec<(&'static str, u64)>,
    /// Number of tolerated deviations of peers from the specification, by kind.
    pub deviations: Vec<(Deviation, u64)>,
    /// Number of peers' requests in progress.
    pub working: u64,
    /// Number of requests in progress at a session.
    pub pending: u64,
    /// Number of cached responses for retransmitted requests.
    pub answers: u64,
    /// Number of datagrams that the system did not accept for sending.
    pub unsent: u64,
    /// Number of discarded messages, by kind.
    pub discarded: Vec<(DiscardReason, u64)>,
    /// Counters of traffic and usage reports.
    pub usage: UsageStats,
    /// Counters of the policy; all zero without one.
    pub policy: PolicyStats,
}

impl NodeHandle {
    /// Returns the first address that the node listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.sockets.address(0)
    }

    /// Returns all addresses that the node listens on.
    #[must_use]
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.shared.sockets.addresses()
    }

    /// Returns the actor system that the node runs in.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        &self.system
    }

    /// Returns the Recovery Time Stamp that the node sends to its peers, in seconds since 1900.
    #[must_use]
    pub fn recovery(&self) -> u32 {
        self.shared.recovery.0
    }

    /// Returns the sessions that match the filter, in the order of their SEIDs.
    #[must_use]
    pub fn sessions(&self, filter: &SessionFilter) -> Vec<SessionInfo> {
        let records = self
            .shared
            .store
            .sessions(&|record| filter.may_pass(record));
        let infos = records.iter().map(|record| self.info(record));
        infos.filter(|info| filter.passes(info)).collect()
    }

    /// Returns the session with the given SEID of the node.
    #[must_use]
    pub fn session(&self, seid: Seid) -> Option<SessionInfo> {
        self.shared
            .store
            .session(seid)
            .map(|record| self.info(&record))
    }

    /// Returns the rules of a session, encoded as the IEs that create them.
    #[must_use]
    pub fn rules(&self, seid: Seid) -> Option<Vec<u8>> {
        self.shared
            .store
            .session(seid)
            .map(|record| record.rules.bytes().to_vec())
    }

    /// Returns the associations, in the order of their Node IDs.
    #[must_use]
    pub fn associations(&self) -> Vec<AssociationInfo> {
        let info = |owner: Arc<crate::store::StoredPeer>| AssociationInfo {
            sessions: self
                .shared
                .store
                .sessions(&|record| record.owner.node == owner.node)
                .len(),
            node: owner.node.to_string(),
            peer: owner.address,
            recovery: owner.recovery.0,
            path: self.path(&owner.node, None).to_string(),
        };
        self.shared
            .store
            .associations()
            .into_iter()
            .map(info)
            .collect()
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> NodeStats {
        let counters = &self.shared.counters;
        let config = &self.shared.config;
        let (rule_memory, rule_memory_of_peer) = self.shared.store.most_rule_memory();
        NodeStats {
            rule_memory,
            rule_memory_of_peer,
            memory_refused: get(&counters.memory_refused),
            limits: config
                .limits
                .rows()
                .into_iter()
                .chain(config.peer.rows())
                .collect(),
            sessions: self.shared.store.len(),
            associations: self.shared.store.associations().len(),
            established: get(&counters.established),
            modified: get(&counters.modified),
            deleted: get(&counters.deleted),
            superseded: get(&counters.superseded),
            refused: counters.causes(),
            dropped: get(&counters.dropped),
            restored: get(&counters.restored),
            datagrams: get(&counters.datagrams),
            repeated: get(&counters.repeated),
            evicted: get(&counters.evicted),
            limited: get(&counters.limited),
            restarts: get(&counters.restarts),
            restarts_denied: get(&counters.restarts_denied),
            stamps_ignored: get(&counters.stamps_ignored),
            setups_refused: get(&counters.setups_refused),
            claims_refused: counters.claims_refused(),
            deviations: counters.deviations(),
            working: get(&counters.working),
            pending: get(&counters.pending),
            answers: get(&counters.answers),
            unsent: get(&counters.unsent),
            discarded: counters.discards(),
            usage: UsageStats {
                metered: self.shared.meters.lock().len(),
                forwarded: get(&counters.forwarded),
                buffered: get(&counters.buffered),
                dropped: get(&counters.dropped_bytes),
                requests: get(&counters.reports_sent),
                unanswered: get(&counters.reports_unanswered),
                withdrawn: get(&counters.reports_withdrawn),
                reports: get(&counters.usage_reports),
                refused: get(&counters.usage_refused),
            },
            policy: match &self.shared.policy {
                Some(client) => client.stats(),
                None => PolicyStats::default(),
            },
        }
    }

    /// Returns the store, which the simulation compares with its own model.
    #[cfg(test)]
    pub(crate) fn store_for_tests(&self) -> &dyn crate::store::Store {
        self.shared.store.as_ref()
    }

    /// Returns the health of the store.
    #[must_use]
    pub fn store(&self) -> StoreHealth {
        self.shared.store.health()
    }

    /// Makes the actor of a session panic inside its handler. Returns `true` if the actor exists.
    #[must_use]
    pub fn panic_session(&self, seid: Seid, words: &str) -> bool {
        let Some(record) = self.shared.store.session(seid) else {
            return false;
        };
        let Some(actor) = self.system.find(self.path(&record.owner.node, Some(seid))) else {
            return false;
        };
        match actor.downcast::<SessionMsg>() {
            Some(session) => session.try_tell(InjectedPanic(words.to_owned())).is_ok(),
            None => false,
        }
    }

    /// Stops the node and waits until it has stopped. Its sockets close when the last handle is
    /// dropped.
    pub async fn stop(&self) {
        self.supervisor.stop();
        self.supervisor.stopped().await;
    }

    /// Waits until the node stops for any reason, and returns the reason.
    pub async fn ended(&self) -> Exit {
        self.supervisor.stopped().await
    }

    fn path(&self, node: &NodeName, seid: Option<Seid>) -> ActorPath {
        let mut path = format!("/{SUPERVISOR}/{ENDPOINT}/{}", key_of(node));
        if let Some(seid) = seid {
            path = format!("{path}/{}", session_key(seid));
        }
        ActorPath::from(path.as_str())
    }

    fn info(&self, record: &SessionRecord) -> SessionInfo {
        let ids = rule_ids(record);
        let mut info = SessionInfo {
            seid: record.seid,
            peer_seid: record.peer_seid,
            node: record.owner.node.to_string(),
            peer: record.owner.address,
            path: self.path(&record.owner.node, Some(record.seid)).to_string(),
            ue_addresses: ids.ue_addresses,
            teids: Vec::new(),
            pdrs: ids.pdrs,
            fars: ids.fars,
            urrs: ids.urrs,
            qers: ids.qers,
            bytes: record.rules.bytes().len(),
        };
        for claim in ids.claims {
            if let AddressClaim::Teid { teid, address } = claim {
                info.teids.push((teid, address));
            }
        }
        info
    }
}
