//! State that the actors of a node share, and that outlives each of them.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use strowger::ActorRef;
use strowger_pfcp::Seid;
use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::endpoint::{DiscardReason, DiscardReportLimiter, EndpointStats};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::validate::Deviation;

use crate::capture_file::CaptureFile;
use crate::config::NodeConfig;
use crate::data_path::DataPath;
use crate::endpoint::EndpointMsg;
use crate::pfd::PfdStore;
use crate::policy::PolicyClient;
use crate::pool::AddressPool;
use crate::rule_memory::MemoryUse;
use crate::session::{ClaimKind, SharedMeter};
use crate::socket::{Batch, Sockets};
use crate::store::{Store, WriteRefused};
use crate::topics::NodeTopics;

/// The parts of a node that survive restarts of its actors.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: NodeConfig,
    pub(crate) name: NodeName,
    /// The Recovery Time Stamp, which moves when state may have been lost.
    pub(crate) recovery: Recovery,
    /// The seed of the digests of requests.
    pub(crate) seed: u64,
    pub(crate) sockets: Sockets,
    pub(crate) store: Box<dyn Store>,
    pub(crate) pool: Arc<AddressPool>,
    pub(crate) pfds: PfdStore,
    pub(crate) capture: CaptureFile,
    pub(crate) counters: NodeCounters,
    pub(crate) next_seid: AtomicU64,
    /// Sessions with a write in progress. A session that is stopped during the write remains in the
    /// set.
    pub(crate) writing: Mutex<FxHashSet<Seid>>,
    /// Sessions that were ended, but that the store contains until it has written their removal.
    pub(crate) ended: Mutex<FxHashSet<Seid>>,
    /// Datagrams that arrived before the endpoint started.
    pub(crate) waiting: Mutex<Vec<Batch>>,
    /// The actor that sends the reports of sessions.
    pub(crate) endpoint: Mutex<Option<ActorRef<EndpointMsg>>>,
    pub(crate) data_path: Arc<dyn DataPath>,
    /// The memory that is set aside for rules until the store has them.
    pub(crate) reserved: Arc<Mutex<MemoryUse>>,
    /// The usage measurements of sessions.
    pub(crate) meters: Mutex<FxHashMap<Seid, SharedMeter>>,
    pub(crate) policy: Option<PolicyClient>,
    /// The topics to publish session events to.
    pub(crate) topics: NodeTopics,
    /// Limits the lines of the log about refused claims.
    pub(crate) claim_log: Mutex<DiscardReportLimiter<(ClaimKind, IpAddr)>>,
}

impl Shared {
    /// Returns a SEID that no session has had.
    pub(crate) fn new_seid(&self) -> Seid {
        Seid(self.next_seid.fetch_add(1, Ordering::Relaxed))
    }

    /// Waits until the last write of a stopped session has completed or failed.
    pub(crate) async fn wait_for_writes(&self, seid: Seid) {
        let writing = self.writing.lock().contains(&seid);
        if writing {
            self.await_earlier_writes().await;
        }
    }

    /// Waits until the last writes of all stopped sessions have completed or failed.
    pub(crate) async fn wait_for_all_writes(&self) {
        let writing = !self.writing.lock().is_empty();
        if writing {
            self.await_earlier_writes().await;
        }
    }

    /// Releases the addresses of those `sessions` that are not in the store: they were stopped
    /// after their removal was written and before their addresses were released.
    pub(crate) fn release_unknown(&self, sessions: impl IntoIterator<Item = Seid>) {
        for seid in sessions {
            if self.store.session(seid).is_none() {
                self.pool.release(seid);
            }
        }
    }

    /// Writes complete in order, so an empty write completes after all earlier ones.
    async fn await_earlier_writes(&self) {
        while self.store.write(Vec::new()).outcome().await == Err(WriteRefused::Busy) {
            tokio::task::yield_now().await;
        }
    }
}

/// Counters and gauges since the node started.
#[derive(Debug, Default)]
pub(crate) struct NodeCounters {
    pub(crate) established: AtomicU64,
    pub(crate) modified: AtomicU64,
    pub(crate) deleted: AtomicU64,
    /// Number of sessions that ended because their peer used their CP F-SEID again.
    pub(crate) superseded: AtomicU64,
    /// Number of session actors that were started from the store.
    pub(crate) restored: AtomicU64,
    /// Number of responses that were not sent because the actor dropped the request.
    pub(crate) dropped: AtomicU64,
    pub(crate) unsent: AtomicU64,
    /// Number of session reports sent, without retransmissions.
    pub(crate) reports_sent: AtomicU64,
    /// Number of session reports that were not answered.
    pub(crate) reports_unanswered: AtomicU64,
    /// Number of session reports whose session or association ended before they were answered.
    pub(crate) reports_withdrawn: AtomicU64,
    /// Number of usage reports that peers have received.
    pub(crate) usage_reports: AtomicU64,
    /// Number of usage reports that peers refused.
    pub(crate) usage_refused: AtomicU64,
    /// Bytes of traffic, by what happened to them.
    pub(crate) forwarded: AtomicU64,
    pub(crate) buffered: AtomicU64,
    pub(crate) dropped_bytes: AtomicU64,
    causes: CauseCounters,
    deviations: [AtomicU64; Deviation::ALL.len()],
    claims_refused: [AtomicU64; ClaimKind::ALL.len()],
    discards: [AtomicU64; DiscardReason::ALL.len()],
    pub(crate) datagrams: AtomicU64,
    pub(crate) repeated: AtomicU64,
    pub(crate) evicted: AtomicU64,
    /// Number of requests that were refused because of the memory of their rules.
    pub(crate) memory_refused: AtomicU64,
    /// Number of requests that were refused because their sender exceeded a limit.
    pub(crate) limited: AtomicU64,
    /// Numbers of restarts of peers, of restarts that a heartbeat indicated and the peer denied,
    /// and of later time stamps from peers that signal a restart only by an association setup.
    pub(crate) restarts: AtomicU64,
    pub(crate) restarts_denied: AtomicU64,
    pub(crate) stamps_ignored: AtomicU64,
    /// Number of association setups that were refused.
    pub(crate) setups_refused: AtomicU64,
    /// Number of requests that were refused because their Node ID belongs to another peer.
    pub(crate) node_ids_refused: AtomicU64,
    /// Gauges: requests in progress, requests in progress at a session, and cached responses.
    pub(crate) working: AtomicU64,
    pub(crate) pending: AtomicU64,
    pub(crate) answers: AtomicU64,
}

#[derive(Debug)]
struct CauseCounters([AtomicU64; 256]);

impl Default for CauseCounters {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl NodeCounters {
    /// Counts a refusal.
    pub(crate) fn refused(&self, cause: Cause) {
        add(&self.causes.0[usize::from(cause.0)]);
    }

    /// Returns the number of refusals for every cause that occurred.
    pub(crate) fn causes(&self) -> Vec<(Cause, u64)> {
        let count = |(cause, count): (u8, &AtomicU64)| (Cause(cause), get(count));
        (0..=u8::MAX)
            .zip(&self.causes.0)
            .map(count)
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Counts a tolerated deviation.
    pub(crate) fn count_deviation(&self, deviation: Deviation) {
        add(&self.deviations[deviation as usize]);
    }

    /// Returns the number of times that each deviation was tolerated.
    pub(crate) fn deviations(&self) -> Vec<(Deviation, u64)> {
        let count = |one: Deviation| (one, get(&self.deviations[one as usize]));
        Deviation::ALL.into_iter().map(count).collect()
    }

    /// Counts a refused claim.
    pub(crate) fn claim_refused(&self, kind: ClaimKind) {
        add(&self.claims_refused[kind as usize]);
    }

    /// Returns the number of refused claims of each kind.
    pub(crate) fn claims_refused(&self) -> Vec<(&'static str, u64)> {
        let count = |kind: ClaimKind| (kind.name(), get(&self.claims_refused[kind as usize]));
        let node_ids = [("node_id", get(&self.node_ids_refused))];
        let others = ClaimKind::ALL.into_iter().map(count);
        node_ids.into_iter().chain(others).collect()
    }

    /// Returns the number of discards of each kind.
    pub(crate) fn discards(&self) -> Vec<(DiscardReason, u64)> {
        let count = |kind: DiscardReason| (kind, get(&self.discards[kind as usize]));
        DiscardReason::ALL.into_iter().map(count).collect()
    }

    /// Adds the counts of an endpoint since its last call.
    pub(crate) fn add_stats(
        &self,
        stats: EndpointStats,
        discards: [u64; DiscardReason::ALL.len()],
    ) {
        let rows = [
            (&self.datagrams, stats.datagrams),
            (&self.repeated, stats.repeated),
            (&self.evicted, stats.evicted),
            (&self.limited, stats.limited),
            (&self.restarts, stats.restarts),
            (&self.restarts_denied, stats.restarts_denied),
            (&self.stamps_ignored, stats.stamps_ignored),
            (&self.setups_refused, stats.setups_refused),
            (&self.node_ids_refused, stats.claims_refused),
        ];
        for (counter, count) in rows.into_iter().chain(self.discards.iter().zip(discards)) {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
    }
}

/// Increments a counter.
pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Adds `count` to a counter.
pub(crate) fn add_many(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Reads a counter.
pub(crate) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
