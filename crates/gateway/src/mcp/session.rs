//! Agents over HTTP that have a session: who asked for something last, and who makes room.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

/// When each agent asked for something last. Agents that leave seldom say so.
pub(super) struct Sessions {
    kit: Arc<LocalSessionManager>,
    seen: Mutex<HashMap<Arc<str>, Seen>>,
}

/// When a session was used.
#[derive(Debug)]
struct Seen {
    last: Instant,
    /// What it asked for and gets; it is shared by all that it asks for at a time.
    busy: Weak<()>,
}

/// Keeps a session from making room for another as long as it lives.
pub(super) type Busy = Arc<()>;

impl Sessions {
    pub(super) fn new(kit: LocalSessionManager) -> Self {
        Self {
            kit: Arc::new(kit),
            seen: Mutex::default(),
        }
    }

    /// What the protocol's kit keeps of sessions.
    pub(super) fn kit(&self) -> Arc<LocalSessionManager> {
        Arc::clone(&self.kit)
    }

    /// Notes that a session asks for something, until what it gets is dropped.
    pub(super) async fn enter(&self, id: &str) -> Option<Busy> {
        // Names that nobody was given are not kept.
        if !self.kit.sessions.read().await.contains_key(id) {
            return None;
        }
        let mut seen = self.seen.lock();
        let now = Instant::now();
        let seen = seen.entry(Arc::from(id)).or_insert_with(|| Seen {
            last: now,
            busy: Weak::new(),
        });
        seen.last = now;
        let busy = seen.busy.upgrade().unwrap_or_default();
        seen.busy = Arc::downgrade(&busy);
        Some(busy)
    }

    /// Makes room for one more session: of so many that there may be, the one ends that has asked
    /// for nothing the longest and gets nothing. Says whether there is room.
    pub(super) async fn make_room(&self, most: usize) -> bool {
        loop {
            let there: Vec<_> = self.kit.sessions.read().await.keys().cloned().collect();
            if there.len() < most {
                return true;
            }
            let oldest = {
                let mut seen = self.seen.lock();
                seen.retain(|id, _| there.contains(id));
                // One that was never seen has not been told its name yet.
                let known = there.iter().filter_map(|id| seen.get_key_value(&**id));
                let idle = known.filter(|(_, seen)| seen.busy.strong_count() == 0);
                let oldest = idle.min_by_key(|(_, seen)| seen.last);
                oldest.map(|(id, _)| Arc::clone(id))
            };
            let Some(oldest) = oldest else {
                return false;
            };
            self.seen.lock().remove(&oldest);
            tracing::debug!(session = %oldest, "a session makes room for another");
            if let Err(error) = self.kit.close_session(&oldest).await {
                tracing::debug!(%error, "a session had ended");
            }
        }
    }
}
