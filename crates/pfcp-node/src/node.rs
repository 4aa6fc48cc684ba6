//! A node: started from a configuration, asked about through a handle.

mod kept;
mod order;
mod parts;
mod usage;
mod waiting;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use strowger::{
    ActorSystem, Backoff, ChildSpec, Exit, Path, StartError, Strategy, Supervisor, SupervisorRef,
    TopicError,
};
use strowger_pfcp::Seid;
use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::endpoint::Discard;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::validate::Deviation;

use crate::association::{key_of, session_key};
use crate::bulletin::Bulletin;
use crate::config::{ConfigError, NodeConfig};
use crate::endpoint::Endpoint;
use crate::pfd::Pfds;
use crate::policy::{PolicyActor, PolicyStats};
use crate::pool::{Claim, Pool};
use crate::session::{Drill, SessionMsg, rule_ids};
use crate::shared::{Counters, Shared, get};
use crate::socket::{Batch, BindError, Sockets};
use crate::store::{SessionRecord, StoreError, StoreHealth, StoreLoss};
use crate::tap::Tap;
pub(crate) use kept::Kept;
pub use order::OrderError;
pub use parts::NodeParts;
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

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NodeError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The name is neither an address nor a domain name.
    #[error("`node_id` \"{0}\" is neither an IP address nor a domain name")]
    NodeId(String),
    /// An address cannot be listened on.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// The capture file cannot be written.
    #[error("cannot write the capture file {path}: {source}")]
    Pcap {
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The topics of the node cannot be opened.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The actors did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A component is to be asked about sessions, and the program gave no policy that asks it.
    #[error("`policy.kind` is \"component\", and there are no components here")]
    NoPolicy,
}

/// A node found at its start that its store has lost something: its Recovery Time Stamp has moved.
/// Published to [`StateLost::TOPIC`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateLost {
    /// What the node tells its peers from now on, in seconds since 1900.
    pub recovery: u32,
    /// What is missing.
    pub loss: StoreLoss,
}

impl StateLost {
    /// The topic to subscribe to, before the node starts.
    pub const TOPIC: &str = "node/n4/lost";
}

impl Node {
    /// Starts a node under a supervisor of its own, at `/node/n4`.
    ///
    /// # Errors
    /// When the configuration cannot be used, or an address cannot be listened on.
    pub async fn start(system: &ActorSystem, config: NodeConfig) -> Result<NodeHandle, NodeError> {
        Self::start_with(system, config, NodeParts::default()).await
    }

    /// Starts a node with parts of the caller's own.
    ///
    /// # Errors
    /// When the configuration cannot be used, or an address cannot be listened on.
    pub async fn start_with(
        system: &ActorSystem,
        config: NodeConfig,
        given: NodeParts,
    ) -> Result<NodeHandle, NodeError> {
        config.check()?;
        given.check(&config)?;
        let name = match config.name() {
            name if name.parse::<IpAddr>().is_ok() => name.parse().ok().map(IpAddr::into),
            name => NodeName::from_fqdn(&name),
        };
        let name = name.ok_or_else(|| NodeError::NodeId(config.name()))?;
        let mut sockets = Sockets::bind(&config.listen, config.limits.datagram).await?;
        if let Some(scenario) = &config.scenario {
            sockets.misbehave(scenario.clone(), name.clone());
        }
        let tap = match &config.pcap {
            None => Tap::default(),
            Some(path) => Tap::create(path).map_err(|source| NodeError::Pcap {
                path: path.display().to_string(),
                source,
            })?,
        };
        let pool = pool_of(&config, &sockets);
        let (kept, waiting) = Kept::open(&config, &sockets, &pool).await?;
        let parts = Parts {
            config,
            name,
            sockets,
            tap,
            pool,
            kept,
            waiting,
            given,
        };
        Self::assemble(system, parts).await
    }

    /// Starts the actors of a node whose parts are there.
    pub(crate) async fn assemble(
        system: &ActorSystem,
        parts: Parts,
    ) -> Result<NodeHandle, NodeError> {
        let Parts {
            config,
            name,
            sockets,
            tap,
            pool,
            kept,
            waiting,
            given,
        } = parts;
        let pfds = Pfds::restored(kept.store.descriptions());
        let shared = Arc::new(Shared {
            pool,
            recovery: kept.recovery,
            seed: kept.seed,
            store: kept.store,
            counters: Counters::default(),
            waiting: Mutex::new(waiting),
            next_seid: AtomicU64::new(kept.next_seid),
            unsettled: Mutex::default(),
            endpoint: Mutex::default(),
            data_path: given.data_path(&config),
            meters: Mutex::default(),
            policy: given.desk(&config),
            bulletin: Bulletin::open(system)?,
            ended: Mutex::default(),
            config,
            name,
            sockets,
            pfds,
            tap,
        });
        // A datagram that ends the endpoint again and again must not end the node with it.
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
            // The name is a constant, and whoever does not listen does not hear.
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

/// What a node is made of.
pub(crate) struct Parts {
    pub(crate) config: NodeConfig,
    pub(crate) name: NodeName,
    pub(crate) sockets: Sockets,
    pub(crate) tap: Tap,
    pub(crate) pool: Arc<Pool>,
    pub(crate) kept: Kept,
    /// Datagrams that came before the endpoint was there.
    pub(crate) waiting: Vec<Batch>,
    pub(crate) given: NodeParts,
}

/// The pools of a node that listens on these sockets.
pub(crate) fn pool_of(config: &NodeConfig, sockets: &Sockets) -> Arc<Pool> {
    let addresses: Vec<_> = sockets.addresses().iter().map(SocketAddr::ip).collect();
    Arc::new(Pool::new(&config.pools, &addresses))
}

const SUPERVISOR: &str = "node";
const POLICY: &str = "policy";
const ENDPOINT: &str = "n4";

/// The present as a Recovery Time Stamp: seconds since 1900.
pub(crate) fn recovery_now() -> Recovery {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = (since.as_secs() + 2_208_988_800) & u64::from(u32::MAX);
    Recovery(u32::try_from(seconds).unwrap_or_default())
}

/// A running node; cheap to clone, and readable while the node is busy.
#[derive(Clone, Debug)]
pub struct NodeHandle {
    system: ActorSystem,
    shared: Arc<Shared>,
    supervisor: SupervisorRef,
}

/// A session, as it was last acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The node's identifier of the session.
    pub seid: Seid,
    /// The peer's identifier of the session.
    pub peer_seid: Seid,
    /// The Node ID of the peer.
    pub node: String,
    /// Where the peer sends from.
    pub peer: SocketAddr,
    /// Where the session's actor is in the tree.
    pub path: String,
    /// The addresses of its UE.
    pub ue_addresses: Vec<IpAddr>,
    /// Its tunnels at the node.
    pub teids: Vec<(u32, IpAddr)>,
    /// The identifiers of its PDRs.
    pub pdrs: Vec<u32>,
    /// The identifiers of its FARs.
    pub fars: Vec<u32>,
    /// The identifiers of its URRs.
    pub urrs: Vec<u32>,
    /// The identifiers of its QERs.
    pub qers: Vec<u32>,
    /// How many octets its rules take.
    pub octets: usize,
}

/// Which sessions to list; what is not set does not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The node's identifier, or the peer's.
    pub seid: Option<Seid>,
    /// An address of the UE.
    pub ue_address: Option<IpAddr>,
    /// A TEID at the node.
    pub teid: Option<u32>,
    /// The address of the peer.
    pub peer: Option<IpAddr>,
    /// The Node ID of the peer.
    pub node: Option<String>,
}

/// An association.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AssociationInfo {
    /// The Node ID of the peer.
    pub node: String,
    /// Where the peer sends from.
    pub peer: SocketAddr,
    /// The Recovery Time Stamp of the peer, in seconds since 1900.
    pub recovery: u32,
    /// Where its supervisor is in the tree.
    pub path: String,
    /// How many sessions it has.
    pub sessions: usize,
}

/// Counters since the node started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStats {
    /// Sessions held now.
    pub sessions: usize,
    /// Associations held now.
    pub associations: usize,
    /// Establishments accepted.
    pub established: u64,
    /// Modifications accepted.
    pub modified: u64,
    /// Deletions accepted.
    pub deleted: u64,
    /// Requests refused, by cause.
    pub refused: Vec<(Cause, u64)>,
    /// Requests that a session dropped, by a panic or a kill.
    pub dropped: u64,
    /// Actors of sessions that were started from the store: after a panic, a kill, a restart.
    pub restored: u64,
    /// Datagrams received.
    pub datagrams: u64,
    /// Requests that were repetitions, answered from what was kept.
    pub repeated: u64,
    /// Kept answers that were pushed out early.
    pub evicted: u64,
    /// Requests that were refused because their sender asked for more than it may.
    pub limited: u64,
    /// Restarts of peers, which ended their sessions.
    pub restarts: u64,
    /// Restarts that a heartbeat claimed and the peer denied.
    pub restarts_denied: u64,
    /// Heartbeats with a later Recovery Time Stamp, from peers that restart with a setup alone.
    pub stamps_ignored: u64,
    /// What sessions' peers did though a clause forbids it, and how often.
    pub deviations: Vec<(Deviation, u64)>,
    /// Requests of peers that are being worked on now.
    pub working: u64,
    /// Those of them that a session has.
    pub pending: u64,
    /// Answers that are kept now, for requests that are repeated.
    pub answers: u64,
    /// Datagrams that the system did not take.
    pub unsent: u64,
    /// What was discarded, by kind.
    pub discarded: Vec<(Discard, u64)>,
    /// What was counted and reported.
    pub usage: UsageStats,
    /// How the policy was asked and answered; all zero without one.
    pub policy: PolicyStats,
}

impl NodeHandle {
    /// The first address that the node listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.sockets.address(0)
    }

    /// All addresses that the node listens on.
    #[must_use]
    pub fn local_addrs(&self) -> Vec<SocketAddr> {
        self.shared.sockets.addresses()
    }

    /// The system in which the node runs.
    #[must_use]
    pub fn system(&self) -> &ActorSystem {
        &self.system
    }

    /// The Recovery Time Stamp that the node tells its peers, in seconds since 1900.
    #[must_use]
    pub fn recovery(&self) -> u32 {
        self.shared.recovery.0
    }

    /// The sessions that the filter lets through, in the order of their identifiers.
    #[must_use]
    pub fn sessions(&self, filter: &SessionFilter) -> Vec<SessionInfo> {
        let records = self
            .shared
            .store
            .sessions(&|record| filter.may_pass(record));
        let infos = records.iter().map(|record| self.info(record));
        infos.filter(|info| filter.passes(info)).collect()
    }

    /// A session by the node's identifier.
    #[must_use]
    pub fn session(&self, seid: Seid) -> Option<SessionInfo> {
        self.shared
            .store
            .session(seid)
            .map(|record| self.info(&record))
    }

    /// The rules of a session, as the elements that create them.
    #[must_use]
    pub fn rules(&self, seid: Seid) -> Option<Vec<u8>> {
        self.shared
            .store
            .session(seid)
            .map(|record| record.rules.octets().to_vec())
    }

    /// The associations, in the order of their names.
    #[must_use]
    pub fn associations(&self) -> Vec<AssociationInfo> {
        let info = |owner: Arc<crate::store::Owner>| AssociationInfo {
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

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> NodeStats {
        let counters = &self.shared.counters;
        NodeStats {
            sessions: self.shared.store.len(),
            associations: self.shared.store.associations().len(),
            established: get(&counters.established),
            modified: get(&counters.modified),
            deleted: get(&counters.deleted),
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
                dropped: get(&counters.dropped_octets),
                requests: get(&counters.reports_sent),
                unanswered: get(&counters.reports_unanswered),
                withdrawn: get(&counters.reports_withdrawn),
                reports: get(&counters.usage_reports),
                refused: get(&counters.usage_refused),
            },
            policy: match &self.shared.policy {
                Some(desk) => desk.stats(),
                None => PolicyStats::default(),
            },
        }
    }

    /// What the simulation compares with its own books.
    #[cfg(test)]
    pub(crate) fn store_for_tests(&self) -> &dyn crate::store::Store {
        self.shared.store.as_ref()
    }

    /// How the store is.
    #[must_use]
    pub fn store(&self) -> StoreHealth {
        self.shared.store.health()
    }

    /// Makes the actor of a session panic inside its handler; whether there is such an actor.
    #[must_use]
    pub fn panic_session(&self, seid: Seid, words: &str) -> bool {
        let Some(record) = self.shared.store.session(seid) else {
            return false;
        };
        let Some(actor) = self.system.find(self.path(&record.owner.node, Some(seid))) else {
            return false;
        };
        match actor.downcast::<SessionMsg>() {
            Some(session) => session.try_tell(Drill(words.to_owned())).is_ok(),
            None => false,
        }
    }

    /// Stops the node and waits for its end; its sockets close with the last handle.
    pub async fn stop(&self) {
        self.supervisor.stop();
        self.supervisor.stopped().await;
    }

    /// Waits for the end of the node, whoever ends it, and says why it ended.
    pub async fn ended(&self) -> Exit {
        self.supervisor.stopped().await
    }

    fn path(&self, node: &NodeName, seid: Option<Seid>) -> Path {
        let mut path = format!("/{SUPERVISOR}/{ENDPOINT}/{}", key_of(node));
        if let Some(seid) = seid {
            path = format!("{path}/{}", session_key(seid));
        }
        Path::from(path.as_str())
    }

    fn info(&self, record: &SessionRecord) -> SessionInfo {
        let ids = rule_ids(record);
        let mut info = SessionInfo {
            seid: record.seid,
            peer_seid: record.peer_seid,
            node: record.owner.node.to_string(),
            peer: record.owner.address,
            path: self.path(&record.owner.node, Some(record.seid)).to_string(),
            ue_addresses: Vec::new(),
            teids: Vec::new(),
            pdrs: ids.pdrs,
            fars: ids.fars,
            urrs: ids.urrs,
            qers: ids.qers,
            octets: record.rules.octets().len(),
        };
        for claim in ids.claims {
            match claim {
                Claim::Ue(address) => info.ue_addresses.push(address),
                Claim::Teid { teid, address } => info.teids.push((teid, address)),
            }
        }
        info
    }
}

impl SessionFilter {
    /// What can be told without reading the rules.
    fn may_pass(&self, record: &SessionRecord) -> bool {
        self.seid
            .is_none_or(|seid| [record.seid, record.peer_seid].contains(&seid))
            && self
                .peer
                .is_none_or(|peer| record.owner.address.ip() == peer)
    }

    fn passes(&self, info: &SessionInfo) -> bool {
        self.ue_address
            .is_none_or(|address| info.ue_addresses.contains(&address))
            && self
                .teid
                .is_none_or(|teid| info.teids.iter().any(|&(one, _)| one == teid))
            && self
                .node
                .as_ref()
                .is_none_or(|node| info.node.eq_ignore_ascii_case(node))
    }
}
