//! What a node finds when it starts.

use std::hash::{BuildHasher as _, RandomState};

use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{Elements, message};
use strowger_pfcp::transaction::AnswerKey;
use strowger_pfcp::{Frame, Header, MessageType, Seid, Sequence};

use super::recovery_now;
use crate::config::NodeConfig;
use crate::pool::Pool;
use crate::session::claims;
use crate::store::{Circumstances, Memory, Prepared, Store, StoreError};

/// The store, and what the node is by it.
pub(super) struct Kept {
    pub(super) store: Box<dyn Store>,
    pub(super) recovery: Recovery,
    pub(super) seed: u64,
    pub(super) next_seid: u64,
}

impl Kept {
    /// Opens the store that the configuration names, or makes one in memory.
    pub(super) async fn open(config: &NodeConfig) -> Result<Self, StoreError> {
        let now = recovery_now();
        // Whoever cannot guess the keys of this table cannot guess the seed.
        let seed = RandomState::new().hash_one(now.0);
        let answers = config.limits.response_cache;
        let Some(path) = config.store.path.clone() else {
            return Ok(Self {
                store: Box::new(Memory::new(answers)),
                recovery: now,
                seed,
                next_seid: 1,
            });
        };
        let given = Circumstances {
            answers,
            now,
            seed,
            probe,
        };
        let store = config.store.clone();
        let opening = tokio::task::spawn_blocking(move || {
            Prepared::take(&path).and_then(|prepared| prepared.open(&store, given))
        });
        let opened = match opening.await {
            Ok(opened) => opened?,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        };
        Ok(Self {
            store: Box::new(opened.store),
            recovery: opened.recovery,
            seed: opened.seed,
            next_seid: opened.next_seid,
        })
    }

    /// Lets all sessions hold their addresses before one of them is given to somebody else.
    pub(super) fn claim(&self, pool: &Pool) {
        for record in self.store.sessions(&|_| true) {
            if let Err(taken) = pool.replace(record.seid, claims(&record.rules)) {
                tracing::warn!(session = %record.seid, ?taken, "two sessions have one address");
            }
        }
    }
}

/// The digest of a request that is always the same.
fn probe(seed: u64) -> u64 {
    let header = Header::session(MessageType(50), Seid(0), Sequence::new(1));
    let octets = message(&header, Elements::new().as_slice()).unwrap_or_default();
    let peer = ([127, 0, 0, 1], crate::PFCP_PORT).into();
    Frame::decode(&octets).map_or(0, |frame| AnswerKey::of(peer, &frame, seed).digest)
}
