//! The sessions of a client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use strowger_pfcp::Seid;
use strowger_pfcp::ie::CreatedPdr;

use crate::restoration::{AcknowledgedRules, OnLoss};

/// The peer's side of a session, which changes when the session is restored.
#[derive(Debug)]
pub(super) struct RemoteSession {
    seid: AtomicU64,
    created: Mutex<Arc<[CreatedPdr]>>,
}

impl RemoteSession {
    pub(super) fn new(seid: Seid, created: Vec<CreatedPdr>) -> Self {
        Self {
            seid: AtomicU64::new(seid.0),
            created: Mutex::new(created.into()),
        }
    }

    pub(super) fn set(&self, seid: Seid, created: Arc<[CreatedPdr]>) {
        self.seid.store(seid.0, Ordering::Relaxed);
        *self.created.lock() = created;
    }

    pub(super) fn seid(&self) -> Seid {
        Seid(self.seid.load(Ordering::Relaxed))
    }

    pub(super) fn created(&self) -> Arc<[CreatedPdr]> {
        Arc::clone(&self.created.lock())
    }
}

/// A session that the client requested.
#[derive(Debug)]
pub(super) struct ClientSession {
    pub(super) peer: SocketAddr,
    pub(super) remote: Arc<RemoteSession>,
    pub(super) on_loss: OnLoss,
    /// The rules that the session is established again with; `None` if it is not to be restored.
    pub(super) acknowledged: Option<AcknowledgedRules>,
    pub(super) state: SessionState,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionState {
    /// The establishment request has not been answered.
    Opening,
    /// The peer has the session.
    Up,
    /// The peer lost the session, which is queued to be established again.
    Waiting(Attempts),
    /// The session is being established again.
    Restoring(Attempts),
    /// The peer may have accepted the session before or after its restart. A modification that
    /// changes nothing finds out which. Holds the number of attempts if the session had been lost.
    Checking(Option<Attempts>),
    /// The session was deleted, or will be as soon as a pending request about it is answered.
    Closing,
}

/// Number of attempts to establish a session again that the peer refused temporarily or did not
/// answer.
pub(super) type Attempts = u8;

/// The maximum number of such attempts.
pub(super) const MAX_ATTEMPTS: Attempts = 3;

/// The sessions of a client, by the client's own SEIDs.
#[derive(Debug)]
pub(super) struct ClientSessions {
    all: FxHashMap<Seid, ClientSession>,
    next: u64,
}

impl ClientSessions {
    pub(super) fn new(first: Seid) -> Self {
        Self {
            all: FxHashMap::default(),
            next: first.0,
        }
    }

    /// Adds a session that is about to be requested.
    pub(super) fn open(&mut self, peer: SocketAddr, on_loss: OnLoss) -> Seid {
        let seid = Seid(self.next);
        self.next += 1;
        let record = ClientSession {
            peer,
            remote: Arc::new(RemoteSession::new(Seid(0), Vec::new())),
            on_loss,
            acknowledged: None,
            state: SessionState::Opening,
        };
        self.all.insert(seid, record);
        seid
    }

    pub(super) fn get(&self, seid: Seid) -> Option<&ClientSession> {
        self.all.get(&seid)
    }

    pub(super) fn get_mut(&mut self, seid: Seid) -> Option<&mut ClientSession> {
        self.all.get_mut(&seid)
    }

    pub(super) fn remove(&mut self, seid: Seid) -> Option<ClientSession> {
        self.all.remove(&seid)
    }

    /// Returns the sessions of a peer whose state matches `wanted`, in the order in which they were
    /// requested.
    pub(super) fn of(&self, peer: SocketAddr, wanted: impl Fn(SessionState) -> bool) -> Vec<Seid> {
        let found = self.all.iter();
        let found = found.filter(|(_, one)| one.peer == peer && wanted(one.state));
        let mut found: Vec<_> = found.map(|(seid, _)| *seid).collect();
        found.sort_unstable();
        found
    }
}
