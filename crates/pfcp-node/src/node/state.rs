//! The state that a node finds in its store when it starts.

use std::hash::{BuildHasher as _, RandomState};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{BodyBuilder, message};
use strowger_pfcp::transaction::ResponseKey;
use strowger_pfcp::{Frame, Header, MessageType, Seid, Sequence};

use super::{recovery_now, startup};
use crate::config::NodeConfig;
use crate::pool::AddressPool;
use crate::session::claims;
use crate::socket::{Batch, Sockets};
use crate::store::{
    LockedStore, MemoryStore, OpenParams, SessionRecord, Store, StoreError, first_seid, threads,
};

/// The store, and the identity of the node that follows from it.
pub(crate) struct NodeState {
    pub(crate) store: Box<dyn Store>,
    pub(crate) recovery: Recovery,
    pub(crate) seed: u64,
    pub(crate) next_seid: u64,
}

impl NodeState {
    /// Opens the configured store, or creates one in memory, and claims the addresses of its
    /// sessions in the pool. Meanwhile heartbeats are answered; all other messages are returned.
    pub(super) async fn open(
        config: &NodeConfig,
        sockets: &Sockets,
        pool: &Arc<AddressPool>,
    ) -> Result<(Self, Vec<Batch>), StoreError> {
        let now = recovery_now();
        // The seed is as unpredictable as the random keys of `RandomState`.
        let seed = RandomState::new().hash_one(now.0);
        let answers = config.limits.response_cache;
        let Some(path) = config.store.path.clone() else {
            let state = Self {
                store: Box::new(MemoryStore::new(answers)),
                recovery: now,
                seed,
                next_seid: first_seid(now),
            };
            return Ok((state, Vec::new()));
        };
        let given = OpenParams {
            answers,
            now,
            seed,
            probe,
        };
        let store = config.store.clone();
        let prepared = blocking(move || LockedStore::lock(&path)).await?;
        let recovery = prepared.recovery();
        let pool = Arc::clone(pool);
        let opening = blocking(move || {
            let opened = prepared.open(&store, given)?;
            let state = Self {
                store: Box::new(opened.store),
                recovery: opened.recovery,
                seed: opened.seed,
                next_seid: opened.next_seid,
            };
            state.claim(&pool);
            Ok(state)
        });
        let (opened, batches) =
            startup::answer_heartbeats_while(sockets, config, recovery, opening).await;
        opened.map(|state| (state, batches))
    }

    /// Claims the addresses of all sessions before any of them can be allocated to another session.
    pub(crate) fn claim(&self, pool: &AddressPool) {
        let records = self.store.sessions(&|_| true);
        let claims_of = |records: &[Arc<SessionRecord>]| -> Vec<_> {
            let records = records.iter();
            records
                .map(|record| (record.seid, claims(record)))
                .collect()
        };
        let part = records
            .len()
            .div_ceil(threads())
            .max(MIN_SESSIONS_PER_THREAD);
        let claimed: Vec<_> = thread::scope(|scope| {
            let parts: Vec<_> = records
                .chunks(part)
                .map(|part| scope.spawn(move || claims_of(part)))
                .collect();
            let parts = parts.into_iter().map(ScopedJoinHandle::join);
            parts
                .map(|part| part.unwrap_or_else(|why| resume_unwind(why)))
                .collect()
        });
        for (session, claims) in claimed.into_iter().flatten() {
            if let Err(taken) = pool.replace(session, claims) {
                tracing::warn!(%session, ?taken, "two sessions claim the same address");
            }
        }
    }
}

/// The minimum number of sessions per thread.
const MIN_SESSIONS_PER_THREAD: usize = 1000;

/// Runs work that waits for the disk on a blocking thread.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => resume_unwind(failed.into_panic()),
    }
}

/// Returns the digest of a constant request, by which a changed digest function is detected.
fn probe(seed: u64) -> u64 {
    let header = Header::session(MessageType(50), Seid(0), Sequence::new(1));
    let bytes = message(&header, BodyBuilder::new().as_slice()).unwrap_or_default();
    let peer = ([127, 0, 0, 1], crate::PFCP_PORT).into();
    Frame::decode(&bytes).map_or(0, |frame| ResponseKey::of(peer, &frame, seed).digest)
}
