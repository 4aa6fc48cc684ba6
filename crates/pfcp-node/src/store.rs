//! What has to survive a panic: sessions with their rules, associations.
//!
//! A session writes here before it answers, so what a peer was told is what a restart finds.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use strowger_pfcp::Seid;
use strowger_pfcp::association::{NodeName, Recovery};

/// To whom a session belongs.
#[derive(Debug, PartialEq, Eq)]
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
#[derive(Debug)]
pub(crate) struct SessionRecord {
    /// Our identifier.
    pub(crate) seid: Seid,
    /// The identifier that the peer chose.
    pub(crate) peer_seid: Seid,
    pub(crate) owner: Arc<Owner>,
    /// The rules, as elements.
    pub(crate) rules: Box<[u8]>,
}

/// The store of a node, in memory: it survives its actors, not its process.
#[derive(Debug, Default)]
pub(crate) struct Store {
    sessions: Mutex<FxHashMap<Seid, Arc<SessionRecord>>>,
    associations: Mutex<BTreeMap<NodeName, Arc<Owner>>>,
}

impl Store {
    /// Writes a session, in place of what was there.
    pub(crate) fn put(&self, record: Arc<SessionRecord>) {
        self.sessions.lock().insert(record.seid, record);
    }

    pub(crate) fn session(&self, seid: Seid) -> Option<Arc<SessionRecord>> {
        self.sessions.lock().get(&seid).cloned()
    }

    /// Forgets a session; whether it was there.
    pub(crate) fn remove(&self, seid: Seid) -> bool {
        self.sessions.lock().remove(&seid).is_some()
    }

    /// The sessions that `wanted` picks, in the order of their identifiers.
    pub(crate) fn sessions(
        &self,
        wanted: impl Fn(&SessionRecord) -> bool,
    ) -> Vec<Arc<SessionRecord>> {
        let mut found: Vec<_> = self
            .sessions
            .lock()
            .values()
            .filter(|record| wanted(record))
            .cloned()
            .collect();
        found.sort_unstable_by_key(|record| record.seid);
        found
    }

    /// How many sessions there are.
    pub(crate) fn len(&self) -> usize {
        self.sessions.lock().len()
    }

    /// Writes an association, in place of what was there.
    pub(crate) fn put_association(&self, owner: Arc<Owner>) {
        self.associations.lock().insert(owner.node.clone(), owner);
    }

    pub(crate) fn remove_association(&self, node: &NodeName) {
        self.associations.lock().remove(node);
    }

    pub(crate) fn associations(&self) -> Vec<Arc<Owner>> {
        self.associations.lock().values().cloned().collect()
    }
}
