//! The store in memory, which survives restarts of actors but not of the process.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use strowger_pfcp::Seid;
use strowger_pfcp::association::NodeName;
use strowger_pfcp::transaction::ResponseKey;

use super::{
    PendingWrite, SessionRecord, Store, StoreChange, StoreHealth, StoredPeer, StoredPfds,
    StoredResponse,
};
use crate::paged_map::SeidMap;
use crate::rule_memory::{MemoryUse, memory_of};

/// Tables in memory. The store on disk uses them too, for reading.
#[derive(Debug)]
pub(crate) struct MemoryStore {
    tables: Mutex<Tables>,
    /// The maximum number of responses.
    room: usize,
}

#[derive(Debug, Default)]
struct Tables {
    sessions: SeidMap<Arc<SessionRecord>>,
    /// The memory of the rules of `sessions`.
    memory: MemoryUse,
    associations: BTreeMap<NodeName, Arc<StoredPeer>>,
    descriptions: BTreeMap<Vec<u8>, Arc<StoredPfds>>,
    answers: VecDeque<StoredResponse>,
}

impl Tables {
    fn put(&mut self, record: Arc<SessionRecord>) {
        let (host, bytes) = memory(&record);
        self.memory.add(host, bytes);
        if let Some(before) = self.sessions.insert(record.seid, record) {
            self.forget(&before);
        }
    }

    fn remove(&mut self, seid: Seid) {
        if let Some(record) = self.sessions.remove(seid) {
            self.forget(&record);
        }
    }

    /// Subtracts the memory of a record that is no longer in the table.
    fn forget(&mut self, record: &SessionRecord) {
        let (host, bytes) = memory(record);
        self.memory.subtract(host, bytes);
    }
}

/// Returns the host that the rules of a session belong to, and their memory.
fn memory(record: &SessionRecord) -> (IpAddr, u64) {
    (record.owner.address.ip(), memory_of(&record.rules))
}

impl MemoryStore {
    /// Creates an empty store that keeps at most `room` responses.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            tables: Mutex::default(),
            room,
        }
    }

    /// Applies changes in order.
    pub(crate) fn apply(&self, changes: impl IntoIterator<Item = StoreChange>) {
        let mut tables = self.tables.lock();
        for change in changes {
            match change {
                StoreChange::Put(record) => tables.put(record),
                StoreChange::Remove(seid) => tables.remove(seid),
                StoreChange::Associate(owner) => {
                    tables.associations.insert(owner.node.clone(), owner);
                }
                StoreChange::Release(node) => _ = tables.associations.remove(&node),
                StoreChange::PutPfds(one) => {
                    tables.descriptions.insert(one.application.clone(), one);
                }
                StoreChange::RemovePfds(application) => {
                    tables.descriptions.remove(&application);
                }
                StoreChange::Answer(answer) => {
                    if tables.answers.len() >= self.room {
                        tables.answers.pop_front();
                    }
                    tables.answers.push_back(answer);
                }
            }
        }
    }

    /// Returns the association with a node.
    pub(super) fn association(&self, node: &NodeName) -> Option<Arc<StoredPeer>> {
        self.tables.lock().associations.get(node).cloned()
    }

    pub(super) fn session(&self, seid: Seid) -> Option<Arc<SessionRecord>> {
        self.tables.lock().sessions.get(seid).cloned()
    }

    pub(super) fn sessions(
        &self,
        wanted: &dyn Fn(&SessionRecord) -> bool,
    ) -> Vec<Arc<SessionRecord>> {
        let tables = self.tables.lock();
        let records = tables.sessions.iter().map(|(_, record)| record);
        let picked = records.filter(|record| wanted(record));
        let mut found: Vec<_> = picked.cloned().collect();
        drop(tables);
        found.sort_unstable_by_key(|record| record.seid);
        found
    }

    pub(super) fn len(&self) -> usize {
        self.tables.lock().sessions.len()
    }

    /// Reads the memory that rules take.
    pub(super) fn rule_memory<T>(&self, read: impl FnOnce(&MemoryUse) -> T) -> T {
        read(&self.tables.lock().memory)
    }

    pub(super) fn associations(&self) -> Vec<Arc<StoredPeer>> {
        self.tables.lock().associations.values().cloned().collect()
    }

    pub(super) fn descriptions(&self) -> Vec<Arc<StoredPfds>> {
        self.tables.lock().descriptions.values().cloned().collect()
    }

    /// Returns the packet flow descriptions of an application.
    pub(super) fn description(&self, application: &[u8]) -> Option<Arc<StoredPfds>> {
        self.tables.lock().descriptions.get(application).cloned()
    }

    pub(super) fn answers(&self) -> Vec<StoredResponse> {
        self.tables.lock().answers.iter().cloned().collect()
    }

    pub(super) fn answer(&self, key: &ResponseKey) -> Option<StoredResponse> {
        let tables = self.tables.lock();
        let mut newest_first = tables.answers.iter().rev();
        newest_first.find(|answer| answer.key == *key).cloned()
    }
}

impl Store for MemoryStore {
    fn table(&self) -> &MemoryStore {
        self
    }

    fn write(&self, changes: Vec<StoreChange>) -> PendingWrite {
        self.apply(changes);
        PendingWrite::Done(Ok(()))
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::default()
    }
}
