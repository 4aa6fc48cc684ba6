//! A simulated disk that outlives the node: it keeps what was written, and fails like a disk.
//!
//! ```text
//!  write ──▶ queued ──▶ recent ──▶ durable
//!              │          └ a power loss discards some of these, and the time stamp moves
//!              └ a crash discards some of these, which were not acknowledged
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger_pfcp::Seid;
use strowger_pfcp::association::Recovery;
use strowger_pfcp::transaction::ResponseKey;
use tokio::sync::{Notify, oneshot};

use super::network::SimulatedNetwork;
use super::rng::SimulationRng;
use crate::store::{MemoryStore, PendingWrite, Store, StoreChange, StoreHealth, WriteRefused};

#[derive(Debug)]
pub(super) struct SimulatedDisk {
    state: Mutex<DiskState>,
    changed: Notify,
    network: SimulatedNetwork,
    /// The maximum number of responses to keep.
    answers: usize,
    /// Set if a response may be forgotten while its request can still arrive.
    forgets_responses: bool,
}

/// The sender of the outcome of a write.
type OutcomeSender = oneshot::Sender<Result<(), WriteRefused>>;

#[derive(Debug)]
struct DiskState {
    rng: SimulationRng,
    incarnation: u32,
    durable: MemoryStore,
    recent: VecDeque<Vec<StoreChange>>,
    queued: VecDeque<(Vec<StoreChange>, OutcomeSender)>,
    is_full: bool,
    /// The probability that a write fails, in percent.
    failing: u64,
    recovery: u32,
    highest: u64,
    /// The incarnation of the control plane that the user plane knows.
    peer: Option<Recovery>,
    /// Set until the second association with that incarnation.
    first_setup: bool,
    /// The session that each request affected.
    done: BTreeMap<(u32, u8), Seid>,
    /// Requests whose acceptance was written, even if it was reverted later.
    written: BTreeSet<(u32, u8)>,
}

/// The store of one incarnation of the node.
#[derive(Debug)]
pub(super) struct SimulatedStore {
    disk: Arc<SimulatedDisk>,
    table: Arc<MemoryStore>,
    incarnation: u32,
    /// Set if groups take time to commit.
    slow: bool,
}

/// The state that an incarnation of the node finds.
pub(super) struct OpenedDisk {
    pub(super) store: SimulatedStore,
    pub(super) recovery: u32,
    pub(super) next_seid: u64,
}

impl SimulatedDisk {
    pub(super) fn new(
        mut rng: SimulationRng,
        network: SimulatedNetwork,
        answers: usize,
        forgets_responses: bool,
    ) -> Arc<Self> {
        let failing = rng.below(3) * 10;
        Arc::new(Self {
            state: Mutex::new(DiskState {
                rng,
                incarnation: 0,
                durable: MemoryStore::new(answers),
                recent: VecDeque::new(),
                queued: VecDeque::new(),
                is_full: false,
                failing,
                recovery: 1000,
                highest: 0,
                peer: None,
                first_setup: true,
                done: BTreeMap::new(),
                written: BTreeSet::new(),
            }),
            changed: Notify::new(),
            network,
            answers,
            forgets_responses,
        })
    }

    /// Opens the store for a new incarnation. The previous incarnation can no longer write.
    pub(super) fn open(self: &Arc<Self>) -> OpenedDisk {
        let mut state = self.state.lock();
        state.incarnation += 1;
        let table = Arc::new(MemoryStore::new(self.answers));
        let kept = &state.durable;
        let associations = kept.associations().into_iter().map(StoreChange::Associate);
        let described = kept.descriptions().into_iter().map(StoreChange::PutPfds);
        let sessions = kept.sessions(&|_| true).into_iter().map(StoreChange::Put);
        let answers = kept.answers().into_iter().map(StoreChange::Answer);
        table.apply(associations.chain(described).chain(sessions).chain(answers));
        let slow = state.rng.percent(50);
        let store = SimulatedStore {
            disk: Arc::clone(self),
            table,
            incarnation: state.incarnation,
            slow,
        };
        if slow {
            let work = Arc::clone(self).commit_groups(state.incarnation, Arc::clone(&store.table));
            tokio::spawn(work);
        }
        OpenedDisk {
            store,
            recovery: state.recovery,
            next_seid: state.highest + 1,
        }
    }

    /// Returns `true` if a write is in progress that has not been acknowledged.
    pub(super) fn is_writing(&self) -> bool {
        !self.state.lock().queued.is_empty()
    }

    /// Ends an incarnation. With a loss of `power`, acknowledged writes may be lost. Returns `true`
    /// if some are.
    pub(super) fn crash(&self, power: bool) -> bool {
        let mut state = self.state.lock();
        state.incarnation += 1;
        let queued = std::mem::take(&mut state.queued);
        let written = match state.rng.percent(50) {
            true => 0,
            false => state.rng.below(queued.len() as u64 + 1),
        };
        let torn = queued.len() as u64 - written;
        for (group, outcome) in queued
            .into_iter()
            .take(usize::try_from(written).unwrap_or(0))
        {
            drop(outcome);
            self.done(&mut state, &group);
            state.recent.push_back(group);
        }
        let acknowledged = state.recent.len();
        let lost = match power && acknowledged > 0 {
            true => 1 + state.rng.below(acknowledged as u64),
            false => 0,
        };
        let kept = acknowledged - usize::try_from(lost).unwrap_or(0);
        state.recent.truncate(kept);
        let recent = std::mem::take(&mut state.recent);
        state.durable.apply(recent.into_iter().flatten());
        if lost > 0 {
            state.recovery += 1;
            state.peer = None;
            let answers = state.durable.answers();
            let kept: Vec<_> = answers.iter().map(|answer| name(answer.key)).collect();
            state.done.retain(|key, _| kept.contains(key));
            state.written.retain(|key| kept.contains(key));
        }
        drop(state);
        self.changed.notify_waiters();
        self.network.count(|faults| {
            faults.torn += torn;
            faults.lost_groups += lost;
        });
        lost > 0
    }

    pub(super) fn recovery(&self) -> u32 {
        self.state.lock().recovery
    }

    pub(super) fn set_full(&self, is_full: bool) {
        self.state.lock().is_full = is_full;
    }

    /// Ends all faults of the disk.
    pub(super) fn end_faults(&self) {
        let mut state = self.state.lock();
        (state.is_full, state.failing) = (false, 0);
    }

    fn write(self: &Arc<Self>, store: &SimulatedStore, changes: Vec<StoreChange>) -> PendingWrite {
        let mut state = self.state.lock();
        if state.incarnation != store.incarnation {
            return PendingWrite::Done(Err(WriteRefused::DiskFull));
        }
        let failing = state.failing;
        if changes.iter().any(StoreChange::needs_disk_space) {
            let is_full = state.is_full;
            let refused = match is_full {
                true => Some(WriteRefused::DiskFull),
                false if state.rng.percent(failing) => match state.rng.percent(50) {
                    true => Some(WriteRefused::Busy),
                    false => Some(WriteRefused::DiskFull),
                },
                false => None,
            };
            if let Some(refused) = refused {
                drop(state);
                self.network.count(|faults| match (refused, is_full) {
                    (WriteRefused::Busy, _) => faults.store_busy += 1,
                    (WriteRefused::DiskFull, true) => faults.disk_full += 1,
                    (WriteRefused::DiskFull, false) => faults.write_failed += 1,
                });
                return PendingWrite::Done(Err(refused));
            }
        }
        if store.slow {
            let (sender, outcome) = oneshot::channel();
            state.queued.push_back((changes, sender));
            drop(state);
            self.changed.notify_waiters();
            self.changed.notify_one();
            return PendingWrite::Waiting(outcome);
        }
        self.commit(&mut state, &store.table, changes);
        PendingWrite::Done(Ok(()))
    }

    async fn commit_groups(self: Arc<Self>, incarnation: u32, table: Arc<MemoryStore>) {
        loop {
            let waiting = self.state.lock().queued.len();
            if waiting == 0 {
                if self.state.lock().incarnation != incarnation {
                    return;
                }
                self.changed.notified().await;
                continue;
            }
            let delay = Duration::from_millis(1) + self.state.lock().rng.millis(400);
            tokio::time::sleep(delay).await;
            let mut state = self.state.lock();
            if state.incarnation != incarnation {
                return;
            }
            for _ in 0..waiting {
                let Some((group, outcome)) = state.queued.pop_front() else {
                    break;
                };
                self.commit(&mut state, &table, group);
                // The receiver may have been killed in the meantime.
                let _ = outcome.send(Ok(()));
            }
        }
    }

    fn commit(&self, state: &mut DiskState, table: &MemoryStore, changes: Vec<StoreChange>) {
        self.done(state, &changes);
        table.apply(changes.clone());
        state.recent.push_back(changes);
        if state.recent.len() > RECENT
            && let Some(group) = state.recent.pop_front()
        {
            state.durable.apply(group);
        }
    }

    /// Records the request of each change, and checks that no request is executed twice.
    fn done(&self, state: &mut DiskState, changes: &[StoreChange]) {
        let mut seid = None;
        let mut key = None;
        for change in changes {
            match change {
                StoreChange::Put(record) => seid = Some(record.seid),
                StoreChange::Remove(removed) => seid = Some(*removed),
                StoreChange::Answer(answer) => key = Some(name(answer.key)),
                StoreChange::Associate(owner) => self.associated(state, owner.recovery),
                StoreChange::Release(_) | StoreChange::PutPfds(_) | StoreChange::RemovePfds(_) => {}
            }
            if let StoreChange::Put(record) = change {
                state.highest = state.highest.max(record.seid.0);
            }
        }
        match (seid, key) {
            (Some(seid), Some(key)) => {
                state.written.insert(key);
                let before = state.done.insert(key, seid);
                if before.is_some() && !self.forgets_responses {
                    let (sequence, kind) = key;
                    let text = format!("request {sequence} of type {kind} is done twice");
                    self.network.record_violation(text);
                }
            }
            // The node reverted a change that was not acknowledged.
            (Some(seid), None) => state.done.retain(|key, done| *done != seid || key.1 != 50),
            (None, _) => {}
        }
    }

    /// Records that the control plane has restarted, as a heartbeat or its first setup reveals. The
    /// user plane drops its responses both times, so it may execute late copies of requests again.
    fn associated(&self, state: &mut DiskState, recovery: Recovery) {
        let restarted = state.peer.replace(recovery) != Some(recovery);
        if restarted || state.first_setup {
            state.done.clear();
            self.network.forgets_answers_of_peer();
        }
        state.first_setup = restarted;
    }

    /// Returns `true` if the acceptance of a request was written.
    pub(super) fn has_written(&self, sequence: u32, request: u8) -> bool {
        self.state.lock().written.contains(&(sequence, request))
    }
}

impl Store for SimulatedStore {
    fn table(&self) -> &MemoryStore {
        &self.table
    }

    fn write(&self, changes: Vec<StoreChange>) -> PendingWrite {
        self.disk.write(self, changes)
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::default()
    }
}

fn name(key: ResponseKey) -> (u32, u8) {
    (key.sequence.get(), key.message_type.0)
}

/// The number of recent groups that a power loss may discard.
const RECENT: usize = 4;
