//! The sessions of a client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use strowger_pfcp::Seid;
use strowger_pfcp::ie::CreatedPdr;

use crate::restoration::{Acknowledged, OnLoss};

/// The peer's side of a session, which changes when the session is restored.
#[derive(Debug)]
pub(super) struct Live {
    remote: AtomicU64,
    created: Mutex<Arc<[CreatedPdr]>>,
}

impl Live {
    pub(super) fn new(remote: Seid, created: Vec<CreatedPdr>) -> Self {
        Self {
            remote: AtomicU64::new(remote.0),
            created: Mutex::new(created.into()),
        }
    }

    pub(super) fn set(&self, remote: Seid, created: Arc<[CreatedPdr]>) {
        self.remote.store(remote.0, Ordering::Relaxed);
        *self.created.lock() = created;
    }

    pub(super) fn remote(&self) -> Seid {
        Seid(self.remote.load(Ordering::Relaxed))
    }

    pub(super) fn created(&self) -> Arc<[CreatedPdr]> {
        Arc::clone(&self.created.lock())
    }
}

/// A session that the client asked for.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) peer: SocketAddr,
    pub(super) live: Arc<Live>,
    pub(super) on_loss: OnLoss,
    /// What the session is established again with; `None` where it is not kept.
    pub(super) acknowledged: Option<Acknowledged>,
    pub(super) state: State,
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Its establishment is not answered.
    Opening,
    /// The peer has it.
    Up,
    /// The peer lost it, and it waits for its turn to be established again.
    Waiting(Tries),
    /// It is being established again.
    Restoring(Tries),
    /// Either life of a peer that restarted may have accepted it, which a modification that changes
    /// nothing is to show; with the tries of a session that was lost.
    Checking(Option<Tries>),
    /// It was deleted, or is to be as soon as a request about it is answered.
    Closing,
}

/// Attempts to establish a session again that the peer refused for now or did not answer.
pub(super) type Tries = u8;

/// Such attempts that are made at most.
pub(super) const TRIES: Tries = 3;

/// The sessions of a client, by its own identifiers.
#[derive(Debug)]
pub(super) struct Records {
    all: FxHashMap<Seid, Record>,
    next: u64,
}

impl Records {
    pub(super) fn new(first: Seid) -> Self {
        Self {
            all: FxHashMap::default(),
            next: first.0,
        }
    }

    /// Adds a session that is about to be asked for.
    pub(super) fn open(&mut self, peer: SocketAddr, on_loss: OnLoss) -> Seid {
        let seid = Seid(self.next);
        self.next += 1;
        let record = Record {
            peer,
            live: Arc::new(Live::new(Seid(0), Vec::new())),
            on_loss,
            acknowledged: None,
            state: State::Opening,
        };
        self.all.insert(seid, record);
        seid
    }

    pub(super) fn get(&self, seid: Seid) -> Option<&Record> {
        self.all.get(&seid)
    }

    pub(super) fn get_mut(&mut self, seid: Seid) -> Option<&mut Record> {
        self.all.get_mut(&seid)
    }

    pub(super) fn remove(&mut self, seid: Seid) -> Option<Record> {
        self.all.remove(&seid)
    }

    /// The sessions of a peer in a state, in the order in which they were asked for.
    pub(super) fn of(&self, peer: SocketAddr, wanted: impl Fn(State) -> bool) -> Vec<Seid> {
        let found = self.all.iter();
        let found = found.filter(|(_, one)| one.peer == peer && wanted(one.state));
        let mut found: Vec<_> = found.map(|(seid, _)| *seid).collect();
        found.sort_unstable();
        found
    }
}
