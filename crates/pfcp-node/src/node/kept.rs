//! What a node finds when it starts.

use std::hash::{BuildHasher as _, RandomState};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{Elements, message};
use strowger_pfcp::transaction::AnswerKey;
use strowger_pfcp::{Frame, Header, MessageType, Seid, Sequence};

use super::{recovery_now, waiting};
use crate::config::NodeConfig;
use crate::pool::Pool;
use crate::session::claims;
use crate::socket::{Batch, Sockets};
use crate::store::{Circumstances, Memory, Prepared, SessionRecord, Store, StoreError, threads};

/// The store, and what the node is by it.
pub(crate) struct Kept {
    pub(crate) store: Box<dyn Store>,
    pub(crate) recovery: Recovery,
    pub(crate) seed: u64,
    pub(crate) next_seid: u64,
}

impl Kept {
    /// Opens the store that the configuration names, or makes one in memory; its sessions hold
    /// their addresses in the pool. Heartbeats are answered meanwhile, and what else comes is
    /// returned.
    pub(super) async fn open(
        config: &NodeConfig,
        sockets: &Sockets,
        pool: &Arc<Pool>,
    ) -> Result<(Self, Vec<Batch>), StoreError> {
        let now = recovery_now();
        // Whoever cannot guess the keys of this table cannot guess the seed.
        let seed = RandomState::new().hash_one(now.0);
        let answers = config.limits.response_cache;
        let Some(path) = config.store.path.clone() else {
            let kept = Self {
                store: Box::new(Memory::new(answers)),
                recovery: now,
                seed,
                next_seid: 1,
            };
            return Ok((kept, Vec::new()));
        };
        let given = Circumstances {
            answers,
            now,
            seed,
            probe,
        };
        let store = config.store.clone();
        let prepared = blocking(move || Prepared::take(&path)).await?;
        let told = prepared.recovery();
        let pool = Arc::clone(pool);
        let opening = blocking(move || {
            let opened = prepared.open(&store, given)?;
            let kept = Self {
                store: Box::new(opened.store),
                recovery: opened.recovery,
                seed: opened.seed,
                next_seid: opened.next_seid,
            };
            kept.claim(&pool);
            Ok(kept)
        });
        let (opened, batches) = waiting::answering(sockets, config, told, opening).await;
        opened.map(|kept| (kept, batches))
    }

    /// Lets all sessions hold their addresses before one of them is given to somebody else.
    pub(crate) fn claim(&self, pool: &Pool) {
        let records = self.store.sessions(&|_| true);
        let claims_of = |records: &[Arc<SessionRecord>]| -> Vec<_> {
            let records = records.iter();
            records
                .map(|record| (record.seid, claims(&record.rules)))
                .collect()
        };
        let part = records.len().div_ceil(threads()).max(LEAST);
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
                tracing::warn!(%session, ?taken, "two sessions have one address");
            }
        }
    }
}

/// Sessions for which a thread of their own is worth while.
const LEAST: usize = 1000;

/// Runs work that waits for the disk where that holds up nobody.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(failed) => resume_unwind(failed.into_panic()),
    }
}

/// The digest of a request that is always the same.
fn probe(seed: u64) -> u64 {
    let header = Header::session(MessageType(50), Seid(0), Sequence::new(1));
    let octets = message(&header, Elements::new().as_slice()).unwrap_or_default();
    let peer = ([127, 0, 0, 1], crate::PFCP_PORT).into();
    Frame::decode(&octets).map_or(0, |frame| AnswerKey::of(peer, &frame, seed).digest)
}
