//! A disk that outlives the node: it keeps what was written, and fails as disks do.
//!
//! ```text
//!  write ──▶ flying ──▶ recent ──▶ settled
//!              │          └ a loss of power takes some of these, and the time stamp moves
//!              └ a crash takes some of these; nobody was told of them
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger_pfcp::Seid;
use strowger_pfcp::transaction::AnswerKey;
use tokio::sync::{Notify, oneshot};

use super::dice::Dice;
use super::wire::Wire;
use crate::store::{Change, Memory, Refused, Store, StoreHealth, Ticket};

#[derive(Debug)]
pub(super) struct Platter {
    state: Mutex<State>,
    changed: Notify,
    wire: Wire,
    /// The most answers that are kept.
    answers: usize,
    /// Whether an answer may be forgotten while its request can still come.
    forgetful: bool,
}

/// Who waits for a write.
type Told = oneshot::Sender<Result<(), Refused>>;

#[derive(Debug)]
struct State {
    dice: Dice,
    life: u32,
    settled: Memory,
    recent: VecDeque<Vec<Change>>,
    flying: VecDeque<(Vec<Change>, Told)>,
    is_full: bool,
    /// How often a write fails, in hundredths.
    failing: u64,
    recovery: u32,
    highest: u64,
    /// What was done for each request: the session.
    done: BTreeMap<(u32, u8), Seid>,
    /// Requests whose acceptance was written, also where it was taken back since.
    written: BTreeSet<(u32, u8)>,
}

/// The store of one life of the node.
#[derive(Debug)]
pub(super) struct Disk {
    platter: Arc<Platter>,
    table: Arc<Memory>,
    life: u32,
    /// Whether groups take time.
    slow: bool,
}

/// What a life of the node finds.
pub(super) struct Found {
    pub(super) disk: Disk,
    pub(super) recovery: u32,
    pub(super) next_seid: u64,
}

impl Platter {
    pub(super) fn new(mut dice: Dice, wire: Wire, answers: usize, forgetful: bool) -> Arc<Self> {
        let failing = dice.below(3) * 10;
        Arc::new(Self {
            state: Mutex::new(State {
                dice,
                life: 0,
                settled: Memory::new(answers),
                recent: VecDeque::new(),
                flying: VecDeque::new(),
                is_full: false,
                failing,
                recovery: 1000,
                highest: 0,
                done: BTreeMap::new(),
                written: BTreeSet::new(),
            }),
            changed: Notify::new(),
            wire,
            answers,
            forgetful,
        })
    }

    /// Opens what there is for a new life; the last one writes no more.
    pub(super) fn open(self: &Arc<Self>) -> Found {
        let mut state = self.state.lock();
        state.life += 1;
        let table = Arc::new(Memory::new(self.answers));
        let kept = &state.settled;
        let associations = kept.associations().into_iter().map(Change::Associate);
        let described = kept.descriptions().into_iter().map(Change::Describe);
        let sessions = kept.sessions(&|_| true).into_iter().map(Change::Put);
        let answers = kept.answers().into_iter().map(Change::Answer);
        table.apply(associations.chain(described).chain(sessions).chain(answers));
        let slow = state.dice.percent(50);
        let disk = Disk {
            platter: Arc::clone(self),
            table,
            life: state.life,
            slow,
        };
        if slow {
            let work = Arc::clone(self).commit_groups(state.life, Arc::clone(&disk.table));
            tokio::spawn(work);
        }
        Found {
            disk,
            recovery: state.recovery,
            next_seid: state.highest + 1,
        }
    }

    /// Whether something is written now that nobody was told of yet.
    pub(super) fn is_writing(&self) -> bool {
        !self.state.lock().flying.is_empty()
    }

    /// Ends a life; with the power gone, some of what was acknowledged may be lost. Whether it is.
    pub(super) fn crash(&self, power: bool) -> bool {
        let mut state = self.state.lock();
        state.life += 1;
        let flying = std::mem::take(&mut state.flying);
        let written = match state.dice.percent(50) {
            true => 0,
            false => state.dice.below(flying.len() as u64 + 1),
        };
        let torn = flying.len() as u64 - written;
        for (group, told) in flying
            .into_iter()
            .take(usize::try_from(written).unwrap_or(0))
        {
            drop(told);
            self.done(&mut state, &group);
            state.recent.push_back(group);
        }
        let acknowledged = state.recent.len();
        let lost = match power && acknowledged > 0 {
            true => 1 + state.dice.below(acknowledged as u64),
            false => 0,
        };
        let kept = acknowledged - usize::try_from(lost).unwrap_or(0);
        state.recent.truncate(kept);
        let recent = std::mem::take(&mut state.recent);
        state.settled.apply(recent.into_iter().flatten());
        if lost > 0 {
            state.recovery += 1;
            let answers = state.settled.answers();
            let kept: Vec<_> = answers.iter().map(|answer| name(answer.key)).collect();
            state.done.retain(|key, _| kept.contains(key));
            state.written.retain(|key| kept.contains(key));
        }
        drop(state);
        self.changed.notify_waiters();
        self.wire.count(|faults| {
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

    /// Nothing fails any more.
    pub(super) fn heal(&self) {
        let mut state = self.state.lock();
        (state.is_full, state.failing) = (false, 0);
    }

    fn write(self: &Arc<Self>, disk: &Disk, changes: Vec<Change>) -> Ticket {
        let mut state = self.state.lock();
        if state.life != disk.life {
            return Ticket::Settled(Err(Refused::NoRoom));
        }
        let failing = state.failing;
        if changes.iter().any(Change::needs_room) {
            let is_full = state.is_full;
            let refused = match is_full {
                true => Some(Refused::NoRoom),
                false if state.dice.percent(failing) => match state.dice.percent(50) {
                    true => Some(Refused::Busy),
                    false => Some(Refused::NoRoom),
                },
                false => None,
            };
            if let Some(refused) = refused {
                drop(state);
                self.wire.count(|faults| match (refused, is_full) {
                    (Refused::Busy, _) => faults.store_busy += 1,
                    (Refused::NoRoom, true) => faults.disk_full += 1,
                    (Refused::NoRoom, false) => faults.write_failed += 1,
                });
                return Ticket::Settled(Err(refused));
            }
        }
        if disk.slow {
            let (told, outcome) = oneshot::channel();
            state.flying.push_back((changes, told));
            drop(state);
            self.changed.notify_waiters();
            self.changed.notify_one();
            return Ticket::Waiting(outcome);
        }
        self.commit(&mut state, &disk.table, changes);
        Ticket::Settled(Ok(()))
    }

    async fn commit_groups(self: Arc<Self>, life: u32, table: Arc<Memory>) {
        loop {
            let waiting = self.state.lock().flying.len();
            if waiting == 0 {
                if self.state.lock().life != life {
                    return;
                }
                self.changed.notified().await;
                continue;
            }
            let delay = Duration::from_millis(1) + self.state.lock().dice.millis(400);
            tokio::time::sleep(delay).await;
            let mut state = self.state.lock();
            if state.life != life {
                return;
            }
            for _ in 0..waiting {
                let Some((group, told)) = state.flying.pop_front() else {
                    break;
                };
                self.commit(&mut state, &table, group);
                // Whoever waits may have been killed meanwhile.
                let _ = told.send(Ok(()));
            }
        }
    }

    fn commit(&self, state: &mut State, table: &Memory, changes: Vec<Change>) {
        self.done(state, &changes);
        table.apply(changes.clone());
        state.recent.push_back(changes);
        if state.recent.len() > RECENT
            && let Some(group) = state.recent.pop_front()
        {
            state.settled.apply(group);
        }
    }

    /// Notes what was done for which request: nothing is done twice.
    fn done(&self, state: &mut State, changes: &[Change]) {
        let mut seid = None;
        let mut key = None;
        for change in changes {
            match change {
                Change::Put(record) => seid = Some(record.seid),
                Change::Remove(removed) => seid = Some(*removed),
                Change::Answer(answer) => key = Some(name(answer.key)),
                Change::Associate(_)
                | Change::Release(_)
                | Change::Describe(_)
                | Change::Undescribe(_) => {}
            }
            if let Change::Put(record) = change {
                state.highest = state.highest.max(record.seid.0);
            }
        }
        match (seid, key) {
            (Some(seid), Some(key)) => {
                state.written.insert(key);
                let before = state.done.insert(key, seid);
                if before.is_some() && !self.forgetful {
                    let (sequence, kind) = key;
                    let text = format!("request {sequence} of type {kind} is done twice");
                    self.wire.wrong(text);
                }
            }
            // The node took back what nobody was told of.
            (Some(seid), None) => state.done.retain(|key, done| *done != seid || key.1 != 50),
            (None, _) => {}
        }
    }

    /// Whether the acceptance of a request was written.
    pub(super) fn has_written(&self, sequence: u32, request: u8) -> bool {
        self.state.lock().written.contains(&(sequence, request))
    }
}

impl Store for Disk {
    fn table(&self) -> &Memory {
        &self.table
    }

    fn write(&self, changes: Vec<Change>) -> Ticket {
        self.platter.write(self, changes)
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::default()
    }
}

fn name(key: AnswerKey) -> (u32, u8) {
    (key.sequence.get(), key.message_type.0)
}

/// Groups that a loss of power may take.
const RECENT: usize = 4;
