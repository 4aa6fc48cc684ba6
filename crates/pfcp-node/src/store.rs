//! What has to survive: sessions with their rules, associations, answers that may be asked for
//! again.
//!
//! A session writes here before it answers, so what a peer was told is what a restart finds: of an
//! actor in either form, of the process in the form on disk.
//!
//! ```text
//!  session ── write ──▶ queue ──▶ writer ── one group ──▶ database, then head, then table
//!     ▲                             │                                          (memory)
//!     └────────── ticket ───────────┘
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
use strowger_pfcp::transaction::AnswerKey;
use tokio::sync::oneshot;

pub(crate) use disk::{Circumstances, Prepared, threads};
pub use image::{StoreImage, StoredAssociation, StoredSession};
pub(crate) use memory::Memory;

/// To whom a session belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The peer's Node ID.
    pub(crate) node: NodeName,
    /// Where the peer sends from.
    pub(crate) address: SocketAddr,
    /// When the peer started.
    pub(crate) recovery: Recovery,
    /// Our address towards the peer.
    pub(crate) local: IpAddr,
}

/// A session as it was last acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SessionRecord {
    /// Our identifier.
    pub(crate) seid: Seid,
    /// The identifier that the peer chose.
    pub(crate) peer_seid: Seid,
    pub(crate) owner: Arc<Owner>,
    pub(crate) rules: RuleSet,
}

/// The packet flow descriptions of an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Described {
    /// The value of its Application ID.
    pub(crate) application: Vec<u8>,
    /// Its PFD Contents, as elements.
    pub(crate) contents: Vec<u8>,
}

/// An answer that was given, for when its request is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) key: AnswerKey,
    /// The whole message.
    pub(crate) octets: Arc<[u8]>,
    /// When it was given: milliseconds since 1970, which mean something after a restart as well.
    pub(crate) at: u64,
}

impl Answer {
    pub(crate) fn new(key: AnswerKey, octets: Arc<[u8]>) -> Self {
        let at = milliseconds_now();
        Self { key, octets, at }
    }

    /// How long ago it was given.
    pub(crate) fn age(&self) -> Duration {
        Duration::from_millis(milliseconds_now().saturating_sub(self.at))
    }
}

/// The present in milliseconds since 1970.
pub(crate) fn milliseconds_now() -> u64 {
    #[cfg(test)]
    if let Some(simulated) = crate::simulation::wall() {
        return simulated;
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// One change of what is kept.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A session, in place of what was there.
    Put(Arc<SessionRecord>),
    /// A session is gone.
    Remove(Seid),
    /// An association, in place of what was there.
    Associate(Arc<Owner>),
    /// An association is gone.
    Release(NodeName),
    /// The descriptions of an application, in place of what was there.
    Describe(Arc<Described>),
    /// An application has no descriptions any more.
    Undescribe(Vec<u8>),
    /// An answer, in place of the oldest one if there are as many as may be.
    Answer(Answer),
}

impl Change {
    /// Says that it is refused when the disk is full. The others are done in any case, in memory
    /// if nowhere else, and written as soon as that is possible.
    pub(crate) fn needs_room(&self) -> bool {
        matches!(self, Self::Put(_))
    }
}

/// Why a write was refused. Nothing of it is kept then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The disk is full, or cannot be written.
    NoRoom,
    /// As many writes wait as may.
    Busy,
}

impl Refused {
    pub(crate) const fn cause(self) -> Cause {
        match self {
            Self::NoRoom => Cause::NO_RESOURCES_AVAILABLE,
            Self::Busy => Cause::CONGESTION,
        }
    }
}

/// A write on its way.
#[derive(Debug)]
#[must_use = "what is written counts only when the ticket says so"]
pub(crate) enum Ticket {
    Settled(Result<(), Refused>),
    Waiting(oneshot::Receiver<Result<(), Refused>>),
}

impl Ticket {
    /// Waits until the write is as durable as the store promises, or refused.
    pub(crate) async fn settled(self) -> Result<(), Refused> {
        match self {
            Self::Settled(outcome) => outcome,
            Self::Waiting(outcome) => outcome.await.unwrap_or(Err(Refused::NoRoom)),
        }
    }
}

/// Where a node keeps what has to survive.
pub(crate) trait Store: fmt::Debug + Send + Sync {
    /// What is read, whatever it is written to.
    fn table(&self) -> &Memory;

    /// The session of this identifier.
    fn session(&self, seid: Seid) -> Option<Arc<SessionRecord>> {
        self.table().session(seid)
    }

    /// The sessions that `wanted` picks, in the order of their identifiers.
    fn sessions(&self, wanted: &dyn Fn(&SessionRecord) -> bool) -> Vec<Arc<SessionRecord>> {
        self.table().sessions(wanted)
    }

    /// How many sessions there are.
    fn len(&self) -> usize {
        self.table().len()
    }

    /// The associations, in the order of their names.
    fn associations(&self) -> Vec<Arc<Owner>> {
        self.table().associations()
    }

    /// What is known of applications, in their order.
    fn descriptions(&self) -> Vec<Arc<Described>> {
        self.table().descriptions()
    }

    /// The answers that are kept, oldest first.
    fn answers(&self) -> Vec<Answer> {
        self.table().answers()
    }

    /// The last answer to a request, if it is kept.
    fn answer(&self, key: &AnswerKey) -> Option<Answer> {
        self.table().answer(key)
    }

    /// Writes changes, all or none, after all that was written before.
    fn write(&self, changes: Vec<Change>) -> Ticket;

    /// How the store is.
    fn health(&self) -> StoreHealth;
}

/// How the store of a node is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreHealth {
    /// Where it is; `None` in memory.
    pub path: Option<PathBuf>,
    /// Whether new sessions and modifications are refused, because the disk is full or cannot be
    /// written.
    pub refusing: bool,
    /// Groups of writes that were committed since the node started.
    pub groups: u64,
    /// Writes in those groups.
    pub writes: u64,
    /// Writes that were refused.
    pub refused: u64,
    /// How long those groups took together, from the first octet to as durable as is promised.
    pub committing: Duration,
    /// How long the longest of them took.
    pub longest: Duration,
    /// How many octets the store takes on the disk; read once a second.
    pub octets: u64,
    /// What the last start found to be missing or damaged; `None` when all was there.
    pub loss: Option<StoreLoss>,
}

/// What a store was found to have lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreLoss {
    /// Records that could be read and were not what had been written.
    pub damaged: u64,
    /// Groups of writes that were acknowledged and are missing at the end.
    pub groups_missing: u64,
    /// Sessions that should be there, where that is known.
    pub sessions_expected: Option<u64>,
    /// Sessions that are there.
    pub sessions_found: u64,
    /// In words, for the log.
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

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The system refuses.
    #[error("cannot use the store {path}: {source}")]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another process uses it.
    #[error("the store {path} is used by another process")]
    Locked {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("{path} is not a store: it is not empty and has no file `format`")]
    NotAStore {
        /// The folder.
        path: PathBuf,
    },
    /// A newer version of this program wrote it.
    #[error("the store {path} has format {found}; this program reads up to format {known}")]
    Newer {
        /// The folder.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that this program reads.
        known: u32,
    },
    /// The database refuses, for a reason that is not damage.
    #[error("cannot open the database in {path}: {reason}")]
    Database {
        /// The folder.
        path: PathBuf,
        /// What it says.
        reason: String,
    },
}

#[cfg(test)]
mod tests;
