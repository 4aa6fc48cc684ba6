//! The form in memory: it survives its actors, not its process.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use strowger_pfcp::Seid;
use strowger_pfcp::association::NodeName;
use strowger_pfcp::transaction::AnswerKey;

use super::{Answer, Change, Described, Owner, SessionRecord, Store, StoreHealth, Ticket};
use crate::page_map::SeidMap;

/// Tables in memory; the form on disk has one as well, for reading.
#[derive(Debug)]
pub(crate) struct Memory {
    tables: Mutex<Tables>,
    /// The most answers.
    room: usize,
}

#[derive(Debug, Default)]
struct Tables {
    sessions: SeidMap<Arc<SessionRecord>>,
    associations: BTreeMap<NodeName, Arc<Owner>>,
    descriptions: BTreeMap<Vec<u8>, Arc<Described>>,
    answers: VecDeque<Answer>,
}

impl Memory {
    /// Makes an empty store that keeps at most `room` answers.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            tables: Mutex::default(),
            room,
        }
    }

    /// Does what the changes say, in their order.
    pub(crate) fn apply(&self, changes: impl IntoIterator<Item = Change>) {
        let mut tables = self.tables.lock();
        for change in changes {
            match change {
                Change::Put(record) => _ = tables.sessions.insert(record.seid, record),
                Change::Remove(seid) => _ = tables.sessions.remove(seid),
                Change::Associate(owner) => {
                    tables.associations.insert(owner.node.clone(), owner);
                }
                Change::Release(node) => _ = tables.associations.remove(&node),
                Change::Describe(one) => {
                    tables.descriptions.insert(one.application.clone(), one);
                }
                Change::Undescribe(application) => {
                    tables.descriptions.remove(&application);
                }
                Change::Answer(answer) => {
                    if tables.answers.len() >= self.room {
                        tables.answers.pop_front();
                    }
                    tables.answers.push_back(answer);
                }
            }
        }
    }

    /// The association with a node.
    pub(super) fn association(&self, node: &NodeName) -> Option<Arc<Owner>> {
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

    pub(super) fn associations(&self) -> Vec<Arc<Owner>> {
        self.tables.lock().associations.values().cloned().collect()
    }

    pub(super) fn descriptions(&self) -> Vec<Arc<Described>> {
        self.tables.lock().descriptions.values().cloned().collect()
    }

    /// What is known of an application.
    pub(super) fn description(&self, application: &[u8]) -> Option<Arc<Described>> {
        self.tables.lock().descriptions.get(application).cloned()
    }

    pub(super) fn answers(&self) -> Vec<Answer> {
        self.tables.lock().answers.iter().cloned().collect()
    }

    pub(super) fn answer(&self, key: &AnswerKey) -> Option<Answer> {
        let tables = self.tables.lock();
        let mut newest_first = tables.answers.iter().rev();
        newest_first.find(|answer| answer.key == *key).cloned()
    }
}

impl Store for Memory {
    fn table(&self) -> &Memory {
        self
    }

    fn write(&self, changes: Vec<Change>) -> Ticket {
        self.apply(changes);
        Ticket::Settled(Ok(()))
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::default()
    }
}
