//! The supervisor of the sessions of one peer.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use strowger::{
    Actor, ActorRef, Backoff, Context, Dynamic, DynamicRef, Restart, Shutdown, StartError,
};
use strowger_pfcp::Seid;
use strowger_pfcp::association::NodeName;

use crate::paged_map::SeidMap;
use crate::session::{SessionActor, SessionArgs, SessionMsg};
use crate::store::StoredPeer;

/// The sessions of an association, under their own supervisor.
#[derive(Debug)]
pub(crate) struct AssociationSessions {
    key: Arc<str>,
    owner: Arc<StoredPeer>,
    supervisor: DynamicRef<SessionActor>,
    count: usize,
    /// The session that uses each SEID of the peer.
    by_peer_seid: SeidMap<Seid>,
}

impl AssociationSessions {
    /// Starts the supervisor as a child of the endpoint.
    pub(crate) fn start_supervisor<A: Actor>(
        cx: &mut Context<A>,
        owner: Arc<StoredPeer>,
        limit: usize,
    ) -> Result<Self, StartError> {
        // A session that fails repeatedly must not take the others down, so the number of restarts
        // is not limited here; the backoff slows down repeated restarts instead.
        let sessions = Dynamic::<SessionActor>::new()
            .restart(Restart::Transient)
            .shutdown(Shutdown::Graceful(Duration::from_secs(1)))
            .intensity(u32::MAX, Duration::from_secs(1))
            .backoff(Backoff::new(
                Duration::from_millis(5),
                Duration::from_secs(1),
            ))
            // The endpoint enforces the session limit. Twice that number leaves room for deleted
            // sessions whose actors are still stopping.
            .max_children(limit.saturating_mul(2));
        let key: Arc<str> = key_of(&owner.node).into();
        let supervisor = cx.dynamic(Arc::clone(&key), sessions)?;
        Ok(Self {
            key,
            owner,
            supervisor,
            count: 0,
            by_peer_seid: SeidMap::default(),
        })
    }

    /// Starts the actor of a session.
    pub(crate) fn start(&mut self, args: SessionArgs) -> Result<ActorRef<SessionMsg>, StartError> {
        let actor = self.supervisor.start_child(session_key(args.seid), args)?;
        self.count += 1;
        Ok(actor)
    }

    /// Counts a session whose actor is started later.
    pub(crate) fn count_session(&mut self) {
        self.count += 1;
    }

    /// Starts the actor of a session that was counted earlier, or whose previous actor is gone.
    pub(crate) fn start_counted(
        &self,
        args: SessionArgs,
    ) -> Result<ActorRef<SessionMsg>, StartError> {
        self.supervisor.start_child(session_key(args.seid), args)
    }

    /// Removes a session that ended from the count.
    pub(crate) fn uncount_session(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Returns the session that uses a SEID of the peer.
    pub(crate) fn using(&self, peer_seid: Seid) -> Option<Seid> {
        self.by_peer_seid.get(peer_seid).copied()
    }

    /// Records the SEID of the peer that a session uses, and returns another session that used it.
    pub(crate) fn use_peer_seid(&mut self, peer_seid: Seid, session: Seid) -> Option<Seid> {
        // SEID 0 identifies no session.
        if peer_seid == Seid(0) {
            return None;
        }
        let before = self.by_peer_seid.insert(peer_seid, session);
        before.filter(|before| *before != session)
    }

    /// Forgets the SEID of the peer that a session used, unless another session uses it now.
    pub(crate) fn disuse_peer_seid(&mut self, peer_seid: Seid, session: Seid) {
        if self.using(peer_seid) == Some(session) {
            self.by_peer_seid.remove(peer_seid);
        }
    }

    pub(crate) fn owner(&self) -> &Arc<StoredPeer> {
        &self.owner
    }

    pub(crate) fn set_owner(&mut self, owner: Arc<StoredPeer>) {
        self.owner = owner;
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn stop(&self) {
        self.supervisor.stop();
    }
}

/// Returns the key of an association in the actor tree: the name of the peer, with characters that
/// a key must not contain escaped.
pub(crate) fn key_of(node: &NodeName) -> String {
    let mut key = String::new();
    for letter in node.to_string().chars() {
        match letter {
            '/' | '%' => _ = write!(key, "%{:02x}", u32::from(letter)),
            _ => key.push(letter),
        }
    }
    key
}

/// Returns the key of a session in the actor tree.
pub(crate) fn session_key(seid: Seid) -> String {
    format!("{:#x}", seid.0)
}
