//! State that survives restarts: sessions with their rules, associations, and responses that peers
//! may request again by retransmission.
//!
//! A session writes to the store before it responds, so that a restart finds everything that peers
//! were told. The store in memory survives restarts of actors, the store on disk also those of the
//! process.
//!
//! ```text
//!  session ── write ──▶ queue ──▶ writer ── one group ──▶ database, then head, then table
//!     ▲                             │                                          (memory)
//!     └────────── outcome ──────────┘
//! ```

mod disk;
mod format;
mod image;
mod memory;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use strowger_pfcp::Seid;
use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::session::RuleSet;
use strowger_pfcp::transaction::ResponseKey;
use tokio::sync::oneshot;

pub(crate) use disk::{LockedStore, OpenParams, threads};
pub use image::{StoreImage, StoredAssociation, StoredSession};
pub(crate) use memory::MemoryStore;

use crate::pool::AddressClaim;

/// The peer that a session belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPeer {
    /// The Node ID of the peer.
    pub(crate) node: NodeName,
    /// The address that the peer sends from.
    pub(crate) address: SocketAddr,
    /// The Recovery Time Stamp of the peer.
    pub(crate) recovery: Recovery,
    /// The local address towards the peer.
    pub(crate) local: IpAddr,
}

/// A session as last acknowledged to its peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRecord {
    /// The node's SEID.
    pub(crate) seid: Seid,
    /// The peer's SEID.
    pub(crate) peer_seid: Seid,
    pub(crate) owner: Arc<StoredPeer>,
    pub(crate) rules: RuleSet,
    /// The UE addresses from the node's pools that no rule has as a destination, and that the
    /// session keeps because another rule names them.
    pub(crate) kept: Box<[AddressClaim]>,
    /// Set if the session has moved to another association since its peer last sent a CP F-SEID,
    /// whose address is that of the previous owner.
    pub(crate) moved: bool,
}

/// The packet flow descriptions of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredPfds {
    /// The value of the Application ID IE.
    pub(crate) application: Vec<u8>,
    /// The encoded PFD Contents IEs.
    pub(crate) contents: Vec<u8>,
}

/// The key by which a retransmission of a request is recognized, and the Recovery Time Stamp of the
/// incarnation of the peer that sent the request.
pub(crate) type RequestKey = (ResponseKey, Recovery);

/// A response that was sent, kept for retransmissions of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredResponse {
    pub(crate) key: ResponseKey,
    /// The incarnation of the peer that received the response; `None` if an earlier build stored
    /// it.
    pub(crate) recovery: Option<Recovery>,
    /// The complete message.
    pub(crate) bytes: Arc<[u8]>,
    /// The time of the response in milliseconds since 1970, which remains meaningful after a
    /// restart.
    pub(crate) at: u64,
}

impl StoredResponse {
    pub(crate) fn new((key, recovery): RequestKey, bytes: Arc<[u8]>) -> Self {
        Self {
            key,
            recovery: Some(recovery),
            bytes,
            at: milliseconds_now(),
        }
    }

    /// Returns `true` if the response was for the incarnation of the peer with this stamp.
    pub(crate) fn is_for(&self, recovery: Recovery) -> bool {
        self.recovery.is_none_or(|own| own == recovery)
    }

    /// Returns the time since the response.
    pub(crate) fn age(&self) -> Duration {
        Duration::from_millis(milliseconds_now().saturating_sub(self.at))
    }
}

/// Returns the first SEID of a node that knows nothing of its previous incarnations. A peer may
/// repeat a request to the previous one for some time: if this one had the same SEIDs, the request
/// would modify or delete another session. The SEIDs of two incarnations differ as long as they
/// start within 18 hours and establish fewer than a million sessions per second.
pub(crate) const fn first_seid(recovery: Recovery) -> u64 {
    const SESSIONS_PER_SECOND: u64 = 1 << 20;
    1 + (recovery.0 % (1 << 16)) as u64 * SESSIONS_PER_SECOND
}

/// Returns the current time in milliseconds since 1970.
pub(crate) fn milliseconds_now() -> u64 {
    #[cfg(test)]
    if let Some(simulated) = crate::simulation::virtual_unix_millis() {
        return simulated;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// A change of the stored state.
#[derive(Clone, Debug)]
pub(crate) enum StoreChange {
    /// Inserts or replaces a session.
    Put(Arc<SessionRecord>),
    /// Removes a session.
    Remove(Seid),
    /// Inserts or replaces an association.
    Associate(Arc<StoredPeer>),
    /// Removes an association.
    Release(NodeName),
    /// Inserts or replaces the descriptions of an application.
    PutPfds(Arc<StoredPfds>),
    /// Removes the descriptions of an application.
    RemovePfds(Vec<u8>),
    /// Adds a response, and evicts the oldest one if the maximum number is reached.
    Answer(StoredResponse),
}

impl StoreChange {
    /// Returns `true` if the change is refused when the disk is full. All other changes are applied
    /// in any case, if necessary only in memory, and written to disk as soon as possible.
    pub(crate) fn needs_disk_space(&self) -> bool {
        matches!(self, Self::Put(_))
    }
}

/// The reason why a write was refused. A refused write has no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteRefused {
    /// The disk is full or cannot be written.
    DiskFull,
    /// The queue of writes is full.
    Busy,
}

impl WriteRefused {
    pub(crate) const fn cause(self) -> Cause {
        match self {
            Self::DiskFull => Cause::NO_RESOURCES_AVAILABLE,
            Self::Busy => Cause::CONGESTION,
        }
    }
}

/// A pending write.
#[derive(Debug)]
#[must_use = "what is written counts only once the write is done"]
pub(crate) enum PendingWrite {
    Done(Result<(), WriteRefused>),
    Waiting(oneshot::Receiver<Result<(), WriteRefused>>),
}

impl PendingWrite {
    /// Waits until the write is as durable as the store promises, or refused.
    pub(crate) async fn outcome(self) -> Result<(), WriteRefused> {
        match self {
            Self::Done(outcome) => outcome,
            Self::Waiting(outcome) => outcome.await.unwrap_or(Err(WriteRefused::DiskFull)),
        }
    }
}

/// A store for state that has to survive restarts.
pub(crate) trait Store: fmt::Debug + Send + Sync {
    /// Returns the tables in memory, which serve all reads.
    fn table(&self) -> &MemoryStore;

    /// Returns the session with the given SEID.
    fn session(&self, seid: Seid) -> Option<Arc<SessionRecord>> {
        self.table().session(seid)
    }

    /// Returns the sessions that `wanted` selects, sorted by SEID.
    fn sessions(&self, wanted: &dyn Fn(&SessionRecord) -> bool) -> Vec<Arc<SessionRecord>> {
        self.table().sessions(wanted)
    }

    /// Returns the number of sessions.
    fn len(&self) -> usize {
        self.table().len()
    }

    /// Returns the memory that rules take, in total and those of a host.
    fn rule_memory(&self, host: IpAddr) -> (u64, u64) {
        self.table()
            .rule_memory(|used| (used.total(), used.of(host)))
    }

    /// Returns the memory that rules take, in total and those of the host with the most.
    fn most_rule_memory(&self) -> (u64, u64) {
        self.table().rule_memory(|used| (used.total(), used.most()))
    }

    /// Returns the associations, in the order of their Node IDs.
    fn associations(&self) -> Vec<Arc<StoredPeer>> {
        self.table().associations()
    }

    /// Returns the packet flow descriptions, in the order of the applications.
    fn descriptions(&self) -> Vec<Arc<StoredPfds>> {
        self.table().descriptions()
    }

    /// Returns the stored responses, oldest first.
    fn answers(&self) -> Vec<StoredResponse> {
        self.table().answers()
    }

    /// Returns the last response to a request, if it is stored.
    fn answer(&self, key: &ResponseKey) -> Option<StoredResponse> {
        self.table().answer(key)
    }

    /// Writes changes as a whole or not at all, after all earlier writes.
    fn write(&self, changes: Vec<StoreChange>) -> PendingWrite;

    /// Returns the health of the store.
    fn health(&self) -> StoreHealth;
}

/// The health of the store of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreHealth {
    /// The folder of the store; `None` if it is in memory.
    pub path: Option<PathBuf>,
    /// Set while new sessions and modifications are refused because the disk is full or cannot be
    /// written.
    pub refusing: bool,
    /// Number of groups of writes that were committed since the node started.
    pub groups: u64,
    /// Number of writes in those groups.
    pub writes: u64,
    /// Number of writes that were refused.
    pub refused: u64,
    /// The total time that the commits took, from the first byte until the promised durability.
    pub committing: Duration,
    /// The time that the longest commit took.
    pub longest: Duration,
    /// The size of the store on the disk in bytes; read once per second.
    pub bytes: u64,
    /// The data that the last start found to be missing or damaged; `None` if there was none.
    pub loss: Option<StoreLoss>,
}

/// The data that a store has lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreLoss {
    /// Number of records that could be read but differ from what was written.
    pub damaged: u64,
    /// Number of acknowledged groups of writes that are missing at the end.
    pub groups_missing: u64,
    /// Number of sessions that should exist, if known.
    pub sessions_expected: Option<u64>,
    /// Number of sessions that exist.
    pub sessions_found: u64,
    /// A description for the log.
    pub detail: String,
}

impl fmt::Display for StoreLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}; {} damaged records, {} groups missing at the end, {} sessions found",
            self.detail, self.damaged, self.groups_missing, self.sessions_found
        )?;
        match self.sessions_expected {
            Some(expected) => write!(f, " of {expected}"),
            None => Ok(()),
        }
    }
}

/// The error returned when a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// An I/O operation failed.
    #[error("cannot use the store {path}: {source}")]
    Io {
        /// The path of the folder or file.
        path: PathBuf,
        /// The I/O error.
        source: std::io::Error,
    },
    /// Another process uses the store.
    #[error("the store {path} is used by another process")]
    Locked {
        /// Folder of the store.
        path: PathBuf,
    },
    /// The folder is not empty and does not contain a store.
    #[error("{path} is not a store: it is not empty and has no file `format`")]
    NotAStore {
        /// Folder that holds something else.
        path: PathBuf,
    },
    /// The store was written by a newer version of this program.
    #[error("the store {path} has format {found}; this program reads up to format {known}")]
    Newer {
        /// Folder of the store.
        path: PathBuf,
        /// The format of the store.
        found: u32,
        /// The newest format that this program reads.
        known: u32,
    },
    /// The database cannot be opened for a reason other than damage.
    #[error("cannot open the database in {path}: {reason}")]
    Database {
        /// Folder of the store.
        path: PathBuf,
        /// The error of the database.
        reason: String,
    },
}

#[cfg(test)]
mod tests;
