//! What the actors of a node share, and what outlives each of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use strowger::ActorRef;
use strowger_pfcp::Seid;
use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::endpoint::{Discard, EndpointStats};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::validate::Deviation;

use crate::bulletin::Bulletin;
use crate::config::NodeConfig;
use crate::data_path::DataPath;
use crate::endpoint::EndpointMsg;
use crate::pfd::Pfds;
use crate::policy::Desk;
use crate::pool::Pool;
use crate::session::Kept;
use crate::socket::{Batch, Sockets};
use crate::store::{Refused, Store};
use crate::tap::Tap;

/// The parts of a node that survive restarts of its actors.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: NodeConfig,
    pub(crate) name: NodeName,
    /// The Recovery Time Stamp, which moves when state may be lost.
    pub(crate) recovery: Recovery,
    /// Where digests of requests start.
    pub(crate) seed: u64,
    pub(crate) sockets: Sockets,
    pub(crate) store: Box<dyn Store>,
    pub(crate) pool: Arc<Pool>,
    pub(crate) pfds: Pfds,
    pub(crate) tap: Tap,
    pub(crate) counters: Counters,
    pub(crate) next_seid: AtomicU64,
    /// Sessions whose last write is on its way. One that is ended meanwhile leaves it here.
    pub(crate) unsettled: Mutex<FxHashSet<Seid>>,
    /// Sessions that were ended, and that the store still has until it has written so.
    pub(crate) ended: Mutex<FxHashSet<Seid>>,
    /// Datagrams that came before the endpoint was there.
    pub(crate) waiting: Mutex<Vec<Batch>>,
    /// Who sends what sessions report.
    pub(crate) endpoint: Mutex<Option<ActorRef<EndpointMsg>>>,
    pub(crate) data_path: Arc<dyn DataPath>,
    /// What sessions have counted.
    pub(crate) meters: Mutex<FxHashMap<Seid, Kept>>,
    pub(crate) policy: Option<Desk>,
    /// Where others on the tree hear of sessions.
    pub(crate) bulletin: Bulletin,
}

impl Shared {
    /// An identifier that no session has had.
    pub(crate) fn new_seid(&self) -> Seid {
        Seid(self.next_seid.fetch_add(1, Ordering::Relaxed))
    }

    /// Waits until what a session wrote before it was ended is there, or never will be.
    pub(crate) async fn settle(&self, seid: Seid) {
        let unsettled = self.unsettled.lock().contains(&seid);
        if unsettled {
            self.settle_writes().await;
        }
    }

    /// Waits until all that was written by sessions which were ended is there, or never will be.
    pub(crate) async fn settle_all(&self) {
        let unsettled = !self.unsettled.lock().is_empty();
        if unsettled {
            self.settle_writes().await;
        }
    }

    /// Gives back the addresses of those of these sessions that the store does not have: they were
    /// ended between writing so and giving back what they held.
    pub(crate) fn release_unknown(&self, sessions: impl IntoIterator<Item = Seid>) {
        for seid in sessions {
            if self.store.session(seid).is_none() {
                self.pool.release(seid);
            }
        }
    }

    /// Writes are done in their order: nothing at all comes after all of them.
    async fn settle_writes(&self) {
        while self.store.write(Vec::new()).settled().await == Err(Refused::Busy) {
            tokio::task::yield_now().await;
        }
    }
}

/// Counters since the node started.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) established: AtomicU64,
    pub(crate) modified: AtomicU64,
    pub(crate) deleted: AtomicU64,
    /// Starts of a session's actor from the store.
    pub(crate) restored: AtomicU64,
    /// Answers that were not sent because the actor dropped the request.
    pub(crate) dropped: AtomicU64,
    pub(crate) unsent: AtomicU64,
    /// Session reports that were sent, repetitions apart.
    pub(crate) reports_sent: AtomicU64,
    /// Session reports that were not answered.
    pub(crate) reports_unanswered: AtomicU64,
    /// Session reports that ended with what they are about before they were answered.
    pub(crate) reports_withdrawn: AtomicU64,
    /// Usage reports that peers have.
    pub(crate) usage_reports: AtomicU64,
    /// Usage reports that peers refused.
    pub(crate) usage_refused: AtomicU64,
    /// Octets of traffic, by what became of them.
    pub(crate) forwarded: AtomicU64,
    pub(crate) buffered: AtomicU64,
    pub(crate) dropped_octets: AtomicU64,
    causes: CauseCounters,
    deviations: [AtomicU64; Deviation::ALL.len()],
    discards: [AtomicU64; Discard::ALL.len()],
    pub(crate) datagrams: AtomicU64,
    pub(crate) repeated: AtomicU64,
    pub(crate) evicted: AtomicU64,
    /// Requests that were refused because their sender asked for more than it may.
    pub(crate) limited: AtomicU64,
    /// Restarts of peers; those that a heartbeat claimed and the peer denied; later stamps of peers
    /// that restart only with a setup.
    pub(crate) restarts: AtomicU64,
    pub(crate) restarts_denied: AtomicU64,
    pub(crate) stamps_ignored: AtomicU64,
    /// How many there are now: requests being worked on, those of them that a session has, answers.
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

impl Counters {
    /// Counts a refusal.
    pub(crate) fn refused(&self, cause: Cause) {
        add(&self.causes.0[usize::from(cause.0)]);
    }

    /// Every cause with which something was refused, and how often.
    pub(crate) fn causes(&self) -> Vec<(Cause, u64)> {
        let count = |(cause, count): (u8, &AtomicU64)| (Cause(cause), get(count));
        (0..=u8::MAX)
            .zip(&self.causes.0)
            .map(count)
            .filter(|(_, count)| *count > 0)
            .collect()
    }

    /// Counts what was tolerated.
    pub(crate) fn deviated(&self, deviation: Deviation) {
        add(&self.deviations[deviation as usize]);
    }

    /// Every deviation, and how often it was tolerated.
    pub(crate) fn deviations(&self) -> Vec<(Deviation, u64)> {
        let count = |one: Deviation| (one, get(&self.deviations[one as usize]));
        Deviation::ALL.into_iter().map(count).collect()
    }

    /// Every kind of discard, and how often.
    pub(crate) fn discards(&self) -> Vec<(Discard, u64)> {
        let count = |kind: Discard| (kind, get(&self.discards[kind as usize]));
        Discard::ALL.into_iter().map(count).collect()
    }

    /// Writes what an endpoint counted since it told last.
    pub(crate) fn told(&self, stats: EndpointStats, discards: [u64; Discard::ALL.len()]) {
        let rows = [
            (&self.datagrams, stats.datagrams),
            (&self.repeated, stats.repeated),
            (&self.evicted, stats.evicted),
            (&self.limited, stats.limited),
            (&self.restarts, stats.restarts),
            (&self.restarts_denied, stats.restarts_denied),
            (&self.stamps_ignored, stats.stamps_ignored),
        ];
        for (counter, count) in rows.into_iter().chain(self.discards.iter().zip(discards)) {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
    }
}

/// Counts one.
pub(crate) fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Counts some.
pub(crate) fn add_many(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

/// Reads a counter.
pub(crate) fn get(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
