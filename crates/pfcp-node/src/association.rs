//! The supervisor of the sessions of one peer.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use strowger::{
    Actor, ActorRef, Backoff, Context, Dynamic, DynamicRef, Restart, Shutdown, StartError,
};
use strowger_pfcp::Seid;
use strowger_pfcp::association::NodeName;

use crate::session::{Session, SessionArgs, SessionMsg};
use crate::store::Owner;

/// The sessions of an association, under a supervisor of their own.
#[derive(Debug)]
pub(crate) struct Members {
    key: Arc<str>,
    owner: Arc<Owner>,
    supervisor: DynamicRef<Session>,
    count: usize,
}

impl Members {
    /// Starts the supervisor below the endpoint.
    pub(crate) fn start_supervisor<A: Actor>(
        cx: &mut Context<A>,
        owner: Arc<Owner>,
        limit: usize,
    ) -> Result<Self, StartError> {
        // One session that fails again and again must not end the others: there is no limit to
        // restarts here, but each row of them slows down.
        let sessions = Dynamic::<Session>::new()
            .restart(Restart::Transient)
            .shutdown(Shutdown::Graceful(Duration::from_secs(1)))
            .intensity(u32::MAX, Duration::from_secs(1))
            .backoff(Backoff::new(
                Duration::from_millis(5),
                Duration::from_secs(1),
            ))
            // The endpoint keeps the limit; a session that was deleted has a moment to go.
            .max_children(limit.saturating_mul(2));
        let key: Arc<str> = key_of(&owner.node).into();
        let supervisor = cx.dynamic(Arc::clone(&key), sessions)?;
        Ok(Self {
            key,
            owner,
            supervisor,
            count: 0,
        })
    }

    /// Starts the actor of a session.
    pub(crate) fn start(&mut self, args: SessionArgs) -> Result<ActorRef<SessionMsg>, StartError> {
        let actor = self.supervisor.start_child(session_key(args.seid), args)?;
        self.count += 1;
        Ok(actor)
    }

    /// Notes a session whose actor is started later.
    pub(crate) fn joined(&mut self) {
        self.count += 1;
    }

    /// Starts the actor of a session that was noted, or whose last actor is gone.
    pub(crate) fn start_again(
        &self,
        args: SessionArgs,
    ) -> Result<ActorRef<SessionMsg>, StartError> {
        self.supervisor.start_child(session_key(args.seid), args)
    }

    /// Notes that a session ended.
    pub(crate) fn left(&mut self) {
        self.count = self.count.saturating_sub(1);
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn owner(&self) -> &Arc<Owner> {
        &self.owner
    }

    pub(crate) fn set_owner(&mut self, owner: Arc<Owner>) {
        self.owner = owner;
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn stop(&self) {
        self.supervisor.stop();
    }
}

/// The key of an association in the tree: the peer's name, with what a key must not have escaped.
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

/// The key of a session in the tree.
pub(crate) fn session_key(seid: Seid) -> String {
    format!("{:#x}", seid.0)
}
