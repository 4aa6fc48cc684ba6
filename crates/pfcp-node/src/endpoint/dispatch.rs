//! From requests to sessions, and from their answers back to the peer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strowger::{Completion, SendError, StartError};
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::session::Refusal;
use strowger_pfcp::transaction::TransactionId;
use strowger_pfcp::validate::tolerate;
use strowger_pfcp::{Frame, Index, Interfaces, MessageType, MessageView, Rejection, Seid};

use super::{Endpoint, Entry, Pending};
use crate::bulletin::SessionEventKind;
use crate::planted::{Bug, planted};
use crate::session::{Done, Outcome, SessionArgs, Task, Work, peer_seid, refusal_message};
use crate::shared::add;
use crate::store::Change;

/// Why a request does not get to a session.
enum Obstacle {
    /// The peer is told.
    Refused(Refusal),
    /// Actors are on their way out, and others take their place: the peer's next repetition of the
    /// request finds them.
    Passing,
}

impl From<Cause> for Obstacle {
    fn from(cause: Cause) -> Self {
        Self::Refused(Refusal::new(cause))
    }
}

impl From<StartError> for Obstacle {
    fn from(error: StartError) -> Self {
        match error {
            // The supervisor or the last actor of this name has ended, and nobody was told yet; or
            // the actors of deleted sessions have still to go.
            StartError::Closed { .. } | StartError::Taken { .. } | StartError::TooMany { .. } => {
                Self::Passing
            }
            error => {
                tracing::error!(%error, "a session cannot be started");
                Cause::SYSTEM_FAILURE.into()
            }
        }
    }
}

/// Refuses an establishment of nobody who has an association: for what is wrong with it, if it
/// cannot say who sent it.
fn unowned(frame: &Frame<'_>) -> Refusal {
    let mut index = Index::new();
    let wrong = match MessageView::of(frame, &mut index) {
        Ok(view) => tolerate(&view, Interfaces::ALL).err(),
        Err(error) => Rejection::of(&error, frame.octets),
    };
    let unknown = Refusal::new(Cause::NO_ESTABLISHED_ASSOCIATION);
    wrong.map_or(unknown, Refusal::from)
}

impl Endpoint {
    /// Gives a request to the session that it is about, or refuses it.
    pub(super) fn session_request(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        peer: SocketAddr,
        association: Option<AssociationId>,
        octets: &Arc<[u8]>,
    ) {
        let Ok(frame) = Frame::decode(octets) else {
            return self.protocol.abandon(now, transaction);
        };
        let (message_type, seid) = (frame.header.message_type, frame.header.seid);
        if self.has_announced() && message_type != MessageType::SESSION_DELETION_REQUEST {
            self.calls_a_session(peer, seid, association, &frame);
        }
        let found = match message_type {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => match association {
                Some(association) => self.open(association),
                None => Err(Obstacle::Refused(unowned(&frame))),
            },
            MessageType::SESSION_MODIFICATION_REQUEST => {
                self.find(peer, seid).map(|seid| (seid, Task::Modify))
            }
            MessageType::SESSION_DELETION_REQUEST => {
                self.find(peer, seid).map(|seid| (seid, Task::Delete))
            }
            _ => Err(Cause::SERVICE_NOT_SUPPORTED.into()),
        };
        let establishes = message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let sent = found.and_then(|(seid, task)| {
            let reply = self.lane.reply(transaction.get());
            let work = Work {
                task,
                octets: Arc::clone(octets),
                key: self.protocol.answer_key(transaction),
                reply,
            };
            self.pending
                .insert(transaction.get(), Pending { seid, establishes });
            let handed = self.hand(seid, work);
            if establishes && handed.is_err() {
                self.end(seid);
            }
            handed
        });
        let Err(obstacle) = sent else {
            return;
        };
        self.pending.remove(&transaction.get());
        match obstacle {
            Obstacle::Refused(refusal) => {
                self.shared.counters.refused(refusal.cause);
                // Whoever asks for a session says how it calls it.
                let seid = peer_seid(&frame).filter(|_| establishes);
                let answer = refusal_message(&frame, &self.shared, seid, &refusal);
                self.protocol.respond(now, transaction, answer.into());
            }
            Obstacle::Passing => {
                add(&self.shared.counters.dropped);
                self.protocol.abandon(now, transaction);
            }
        }
    }

    /// Notes that a request says how its peer calls a session from now on.
    fn calls_a_session(
        &mut self,
        peer: SocketAddr,
        seid: Option<Seid>,
        association: Option<AssociationId>,
        frame: &Frame<'_>,
    ) {
        let owned = self.find(peer, seid).ok();
        let entry = owned.and_then(|seid| self.sessions.get(seid));
        let association = entry.map(|entry| entry.association).or(association);
        if let Some((association, called)) = association.zip(peer_seid(frame)) {
            self.end_announced(association, called);
        }
    }

    /// Starts the actor of a new session.
    fn open(&mut self, association: AssociationId) -> Result<(Seid, Task), Obstacle> {
        let limits = &self.shared.config.limits;
        let full = self.sessions.len() >= limits.sessions;
        let members = self.members.get_mut(&association);
        let members = members.ok_or(Cause::NO_ESTABLISHED_ASSOCIATION)?;
        if full || members.len() >= limits.sessions_per_association {
            return Err(Cause::NO_RESOURCES_AVAILABLE.into());
        }
        let seid = self.shared.new_seid();
        let args = SessionArgs {
            seid,
            shared: Arc::clone(&self.shared),
        };
        let actor = members.start(args)?;
        let (owner, count) = (Arc::clone(members.owner()), members.len());
        let actor = Some(actor);
        self.sessions.insert(seid, Entry { actor, association });
        Ok((seid, Task::Establish(owner, count)))
    }

    /// Finds the session that a peer speaks of, if it is its own.
    fn find(&self, peer: SocketAddr, seid: Option<Seid>) -> Result<Seid, Obstacle> {
        let seid = seid.unwrap_or_default();
        let owned = self.sessions.get(seid).is_some_and(|entry| {
            self.protocol
                .associations()
                .owns(entry.association, peer.ip())
        });
        if owned {
            Ok(seid)
        } else {
            Err(Cause::SESSION_CONTEXT_NOT_FOUND.into())
        }
    }

    /// Puts work into a session's mailbox; an actor that was stopped from outside starts again.
    fn hand(&mut self, seid: Seid, work: Work) -> Result<(), Obstacle> {
        let entry = self
            .sessions
            .get_mut(seid)
            .ok_or(Cause::SESSION_CONTEXT_NOT_FOUND)?;
        let work = match &entry.actor {
            None => work,
            Some(actor) => match actor.try_tell(work) {
                Ok(()) => return Ok(()),
                Err(SendError::Closed(work)) => work,
                Err(_) => return Err(Cause::CONGESTION.into()),
            },
        };
        let args = SessionArgs {
            seid,
            shared: Arc::clone(&self.shared),
        };
        let members = self
            .members
            .get(&entry.association)
            .ok_or(Cause::SYSTEM_FAILURE)?;
        let actor = entry.actor.insert(members.start_again(args)?);
        actor.try_tell(work).map_err(|_| Obstacle::Passing)
    }

    /// Gives a session's answer to its peer.
    pub(super) async fn completed(&mut self, now: Instant, completion: Completion<Done>) {
        let Some(pending) = self.pending.remove(&completion.token) else {
            return;
        };
        let transaction = TransactionId::from_token(completion.token);
        let done = match completion.result {
            Ok(done) => done,
            Err(why) => {
                if planted(Bug::DroppedStaysPending) {
                    self.pending.insert(completion.token, pending);
                }
                add(&self.shared.counters.dropped);
                tracing::warn!(session = %pending.seid, %why, "a session did not answer");
                return self.dropped(now, transaction, pending).await;
            }
        };
        if !self.sessions.contains(pending.seid) {
            // The session was ended while it worked, and may have written since.
            return self.dropped(now, transaction, pending).await;
        }
        let ended = match done.outcome {
            Outcome::Refused(_) => pending.establishes,
            Outcome::Deleted => true,
            Outcome::Established | Outcome::Modified { .. } => false,
        };
        let mut owner = None;
        if ended {
            owner = self.forget(pending.seid).map(|entry| entry.association);
        } else if done.outcome == (Outcome::Modified { renamed: true }) {
            self.end_report(pending.seid);
        }
        self.protocol.respond(now, transaction, done.octets);
        if let Some(association) = owner {
            self.announced(now, association, &done.more);
        }
    }

    /// A session dropped a request. What it has written of it is done, and answered so; if it has
    /// written nothing, the peer's next repetition is worked on afresh.
    async fn dropped(&mut self, now: Instant, transaction: TransactionId, pending: Pending) {
        let seid = pending.seid;
        self.shared.settle(seid).await;
        let hold = self.protocol.config().answers.hold;
        let key = self.protocol.answer_key(transaction);
        let written = key.and_then(|key| self.shared.store.answer(&key));
        let written = written.filter(|answer| answer.age() <= hold);
        let known = self.sessions.contains(seid);
        let is_kept = known && self.shared.store.session(seid).is_some();
        let deletes = MessageType::SESSION_DELETION_REQUEST;
        match written {
            Some(answer) if is_kept => self.protocol.respond(now, transaction, answer.octets),
            Some(answer) if answer.key.message_type == deletes => {
                self.forget(seid);
                self.shared.pool.release(seid);
                self.shared.meters.lock().remove(&seid);
                self.protocol.respond(now, transaction, answer.octets);
            }
            _ => {
                if pending.establishes || !known {
                    self.end(seid);
                }
                self.protocol.abandon(now, transaction);
            }
        }
    }

    /// Ends a session without being asked by its peer.
    pub(super) fn end(&mut self, seid: Seid) {
        self.forget_stored(seid);
        if let Some(actor) = self.forget(seid).and_then(|entry| entry.actor) {
            actor.stop();
        }
    }

    /// Takes a session out of the store and gives back its addresses.
    fn forget_stored(&mut self, seid: Seid) {
        if let Some(record) = self.shared.store.session(seid) {
            let kind = SessionEventKind::Ended;
            self.shared.bulletin.session(kind, &record);
        }
        self.shared.ended.lock().insert(seid);
        self.news.push(Change::Remove(seid));
        self.shared.pool.release(seid);
        self.shared.meters.lock().remove(&seid);
    }

    pub(super) fn forget(&mut self, seid: Seid) -> Option<Entry> {
        self.shared.unsettled.lock().remove(&seid);
        let entry = self.sessions.remove(seid)?;
        self.end_report(seid);
        if let Some(members) = self.members.get_mut(&entry.association) {
            members.left();
        }
        Some(entry)
    }
}
