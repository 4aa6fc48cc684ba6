//! Sessions of agents over HTTP, with their last use and the choice of the one to close.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

/// The last use of each session. Agents rarely close their sessions.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    uses: Mutex<HashMap<Arc<str>, SessionUse>>,
}

/// The use of a session.
#[derive(Debug)]
struct SessionUse {
    last: Instant,
    /// The name of the token that started the session; other tokens may not use it.
    owner: Arc<str>,
    /// Alive while a request of the session is in progress; shared by all of its concurrent
    /// requests.
    busy: Weak<()>,
}

/// The error of a request to a session that another token started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ForeignSession;

/// A guard that keeps a session from being closed to make room.
pub(super) type BusyGuard = Arc<()>;

impl Sessions {
    pub(super) fn new(manager: LocalSessionManager) -> Self {
        Self {
            manager: Arc::new(manager),
            uses: Mutex::default(),
        }
    }

    /// Returns rmcp's own session manager.
    pub(super) fn manager(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.manager)
    }

    /// Records the use of a session. The session is busy until the returned guard is dropped.
    pub(super) async fn enter(
        &self,
        id: &str,
        owner: &str,
    ) -> Result<Option<BusyGuard>, ForeignSession> {
        // Identifiers that were never assigned are not stored.
        if !self.manager.sessions.read().await.contains_key(id) {
            return Ok(None);
        }
        let mut uses = self.uses.lock();
        let now = Instant::now();
        let session = uses.entry(Arc::from(id)).or_insert_with(|| SessionUse {
            last: now,
            owner: Arc::from(owner),
            busy: Weak::new(),
        });
        if *session.owner != *owner {
            return Err(ForeignSession);
        }
        session.last = now;
        let busy = session.busy.upgrade().unwrap_or_default();
        session.busy = Arc::downgrade(&busy);
        Ok(Some(busy))
    }

    /// Makes room for another session: while there are `limit` sessions, closes the one that has
    /// been idle for longest. Returns `false` if all of them are busy.
    pub(super) async fn make_room(&self, limit: usize) -> bool {
        loop {
            let open: Vec<_> = self.manager.sessions.read().await.keys().cloned().collect();
            if open.len() < limit {
                return true;
            }
            let oldest = {
                let mut uses = self.uses.lock();
                uses.retain(|id, _| open.contains(id));
                // A session without an entry is new: its agent has not received the identifier yet.
                let known = open.iter().filter_map(|id| uses.get_key_value(&**id));
                let idle = known.filter(|(_, session)| session.busy.strong_count() == 0);
                let oldest = idle.min_by_key(|(_, session)| session.last);
                oldest.map(|(id, _)| Arc::clone(id))
            };
            let Some(oldest) = oldest else {
                return false;
            };
            self.uses.lock().remove(&oldest);
            tracing::debug!(session = %oldest, "session evicted to make room for another");
            if let Err(error) = self.manager.close_session(&oldest).await {
                tracing::debug!(%error, "session had ended");
            }
        }
    }
}
