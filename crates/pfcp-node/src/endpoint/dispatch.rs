//! Dispatching of requests to sessions, and of their responses back to the peer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strowger::{Completion, SendError, StartError};
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::session::Refusal;
use strowger_pfcp::transaction::{ResponseKey, TransactionId};
use strowger_pfcp::validate::tolerate;
use strowger_pfcp::{Frame, Header, Index, Interfaces, MessageType, MessageView, Rejection, Seid};

use super::{Endpoint, ForwardedRequest, SessionEntry};
use crate::seeded_bug::{Bug, seeded};
use crate::session::{
    Procedure, RequestOutcome, SessionArgs, SessionRequest, SessionResponse, peer_seid,
    refusal_message,
};
use crate::shared::add;
use crate::store::{RequestKey, StoreChange, StoredResponse};
use crate::topics::SessionEventKind;

/// The reason why a request does not reach a session.
enum DispatchError {
    /// The peer receives a rejection.
    Refused(Refusal),
    /// The actors are being replaced: the next retransmission of the request reaches the new ones.
    Restarting,
}

impl From<Cause> for DispatchError {
    fn from(cause: Cause) -> Self {
        Self::Refused(Refusal::new(cause))
    }
}

impl From<Refusal> for DispatchError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<StartError> for DispatchError {
    fn from(error: StartError) -> Self {
        match error {
            // The supervisor or the previous actor of this name has stopped, and the endpoint has
            // not been notified yet; or actors of deleted sessions are still stopping.
            StartError::ParentEnding { .. }
            | StartError::KeyTaken { .. }
            | StartError::TooManyChildren { .. } => Self::Restarting,
            error => {
                tracing::error!(%error, "a session cannot be started");
                Cause::SYSTEM_FAILURE.into()
            }
        }
    }
}

/// Returns the rejection of an establishment from a peer without an association. If the request is
/// malformed, that takes precedence over the missing association.
fn no_association_refusal(frame: &Frame<'_>) -> Refusal {
    let mut index = Index::new();
    let wrong = match MessageView::of(frame, &mut index) {
        Ok(view) => tolerate(&view, Interfaces::ALL).err(),
        Err(error) => Rejection::of(&error, frame.bytes),
    };
    let unknown = Refusal::new(Cause::NO_ESTABLISHED_ASSOCIATION);
    wrong.map_or(unknown, Refusal::from)
}

impl Endpoint {
    /// Passes a request to the session that it addresses, or refuses it.
    pub(super) fn session_request(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        peer: SocketAddr,
        association: Option<AssociationId>,
        bytes: &Arc<[u8]>,
    ) {
        let Ok(frame) = Frame::decode(bytes) else {
            return self.protocol.abandon(now, transaction);
        };
        let (message_type, seid) = (frame.header.message_type, frame.header.seid);
        if self.has_announced() && message_type != MessageType::SESSION_DELETION_REQUEST {
            self.end_reports_of_reused_seid(peer, seid, association, &frame);
        }
        let found = match message_type {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => match association {
                Some(association) => self.open(association, &frame),
                None => Err(DispatchError::Refused(no_association_refusal(&frame))),
            },
            MessageType::SESSION_MODIFICATION_REQUEST => {
                self.find(peer, seid).map(|seid| (seid, Procedure::Modify))
            }
            MessageType::SESSION_DELETION_REQUEST => {
                self.find(peer, seid).map(|seid| (seid, Procedure::Delete))
            }
            _ => Err(Cause::SERVICE_NOT_SUPPORTED.into()),
        };
        let establishes = message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let sent = found.and_then(|(seid, procedure)| {
            let key = self.request_key(transaction, seid);
            let reply = self.lane.reply(transaction.get());
            let request = SessionRequest {
                procedure,
                bytes: Arc::clone(bytes),
                key,
                reply,
            };
            let recovery = key.map(|(_, recovery)| recovery);
            let forwarded = ForwardedRequest {
                seid,
                establishes,
                recovery,
            };
            self.pending.insert(transaction.get(), forwarded);
            let forwarded = self.forward(seid, request);
            if establishes && forwarded.is_err() {
                self.end(seid);
            }
            forwarded
        });
        let Err(error) = sent else {
            return;
        };
        self.pending.remove(&transaction.get());
        match error {
            DispatchError::Refused(refusal) => {
                self.shared.counters.refused(refusal.cause);
                // An establishment request names the peer's SEID.
                let seid = peer_seid(&frame).filter(|_| establishes);
                let answer = refusal_message(&frame, &self.shared, seid, &refusal);
                self.protocol.respond(now, transaction, answer.into());
            }
            DispatchError::Restarting => {
                add(&self.shared.counters.dropped);
                match seid.filter(|_| !establishes) {
                    Some(seid) => self.undeliverable(now, transaction, seid),
                    None => self.protocol.abandon(now, transaction),
                }
            }
        }
    }

    /// Assigns a request to the association of its session, and returns its key.
    fn request_key(&mut self, transaction: TransactionId, seid: Seid) -> Option<RequestKey> {
        let association = self.sessions.get(seid)?.association;
        self.protocol.attribute(transaction, association);
        let members = self.association_sessions.get(&association)?;
        let key = self.protocol.answer_key(transaction)?;
        Some((key, members.owner().recovery))
    }

    /// Handles a request in which the peer assigns its SEID to a session: pending reports of a
    /// deleted session with the same SEID end.
    fn end_reports_of_reused_seid(
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
    fn open(
        &mut self,
        association: AssociationId,
        frame: &Frame<'_>,
    ) -> Result<(Seid, Procedure), DispatchError> {
        let peer_seid = self.end_superseded(association, frame)?;
        let limits = &self.shared.config.limits;
        let full = self.sessions.len() >= limits.sessions;
        let members = self.association_sessions.get_mut(&association);
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
        members.use_peer_seid(peer_seid, seid);
        let entry = SessionEntry {
            actor: Some(actor),
            association,
            peer_seid,
            sequence: Some(frame.header.sequence),
        };
        self.sessions.insert(seid, entry);
        Ok((seid, Procedure::Establish(owner, count)))
    }

    /// Finds the session that a request addresses, if it belongs to the peer.
    fn find(&self, peer: SocketAddr, seid: Option<Seid>) -> Result<Seid, DispatchError> {
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

    /// Puts work into the mailbox of a session; an actor that was stopped from outside is started
    /// again.
    fn forward(&mut self, seid: Seid, request: SessionRequest) -> Result<(), DispatchError> {
        let entry = self
            .sessions
            .get_mut(seid)
            .ok_or(Cause::SESSION_CONTEXT_NOT_FOUND)?;
        let request = match &entry.actor {
            None => request,
            Some(actor) => match actor.try_tell(request) {
                Ok(()) => return Ok(()),
                Err(SendError::Closed(request)) => request,
                Err(_) => return Err(Cause::CONGESTION.into()),
            },
        };
        let args = SessionArgs {
            seid,
            shared: Arc::clone(&self.shared),
        };
        let members = self
            .association_sessions
            .get(&entry.association)
            .ok_or(Cause::SYSTEM_FAILURE)?;
        let actor = entry.actor.insert(members.start_counted(args)?);
        actor
            .try_tell(request)
            .map_err(|_| DispatchError::Restarting)
    }

    /// Sends the response of a session to its peer.
    pub(super) async fn completed(
        &mut self,
        now: Instant,
        completion: Completion<SessionResponse>,
    ) {
        let Some(pending) = self.pending.remove(&completion.token) else {
            return;
        };
        let transaction = TransactionId::from_token(completion.token);
        let response = match completion.result {
            Ok(response) => response,
            Err(why) => {
                if seeded(Bug::DroppedStaysPending) {
                    self.pending.insert(completion.token, pending);
                }
                add(&self.shared.counters.dropped);
                tracing::warn!(session = %pending.seid, %why, "a session did not answer");
                return self.dropped(now, transaction, pending).await;
            }
        };
        if !self.sessions.contains(pending.seid) {
            // The session was ended while it worked on the request, and may have written to the
            // store since.
            return self.dropped(now, transaction, pending).await;
        }
        let ended = match response.outcome {
            RequestOutcome::Refused(_) => pending.establishes,
            RequestOutcome::Deleted => true,
            RequestOutcome::Established | RequestOutcome::Modified { .. } => false,
        };
        let mut owner = None;
        if ended {
            owner = self.forget(pending.seid).map(|entry| entry.association);
        } else if response.outcome == (RequestOutcome::Modified { renamed: true }) {
            self.end_report(pending.seid);
            self.renamed(pending.seid);
        }
        self.protocol.respond(now, transaction, response.bytes);
        if let Some(to) = owner.zip(response.report_address) {
            self.send_announced(now, to, &response.more);
        }
    }

    /// Handles a request that a session dropped. If the session has written a response, the peer
    /// receives that response; otherwise the next retransmission is processed afresh.
    async fn dropped(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        pending: ForwardedRequest,
    ) {
        let seid = pending.seid;
        self.shared.wait_for_writes(seid).await;
        let hold = self.protocol.config().answers.hold;
        let key = self.protocol.answer_key(transaction);
        let written = key.and_then(|key| self.shared.store.answer(&key));
        // The previous incarnation of the peer may have sent the same bytes.
        let is_own = |answer: &StoredResponse| {
            pending
                .recovery
                .is_some_and(|recovery| answer.is_for(recovery))
        };
        let written = written.filter(|answer| answer.age() <= hold && is_own(answer));
        let known = self.sessions.contains(seid);
        let is_kept = known && self.shared.store.session(seid).is_some();
        let deletes = MessageType::SESSION_DELETION_REQUEST;
        match written {
            Some(answer) if is_kept => self.protocol.respond(now, transaction, answer.bytes),
            Some(answer) if answer.key.message_type == deletes => {
                self.forget(seid);
                self.shared.pool.release(seid);
                self.shared.meters.lock().remove(&seid);
                self.protocol.respond(now, transaction, answer.bytes);
            }
            _ => {
                if pending.establishes || !known {
                    self.end(seid);
                }
                match pending.establishes {
                    true => self.protocol.abandon(now, transaction),
                    false => self.undeliverable(now, transaction, seid),
                }
            }
        }
    }

    /// Handles a request that did not reach its session: if the session has ended, as when the
    /// request waited behind its deletion, a retransmission would find nothing else. Otherwise the
    /// next retransmission is processed afresh.
    fn undeliverable(&mut self, now: Instant, transaction: TransactionId, seid: Seid) {
        let key = self.protocol.answer_key(transaction);
        match key.filter(|_| self.shared.store.session(seid).is_none()) {
            Some(key) => self.respond_unknown_session(now, transaction, key),
            None => self.protocol.abandon(now, transaction),
        }
    }

    /// Answers a request about a session that has ended, with SEID 0 (TS 29.244 §7.2.2.4.2).
    fn respond_unknown_session(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        key: ResponseKey,
    ) {
        let request = Header::session(key.message_type, Seid(0), key.sequence);
        let cause = Cause::SESSION_CONTEXT_NOT_FOUND;
        let body = BodyBuilder::new().cause(cause);
        match message(&answer_header(&request, None), body.as_slice()) {
            Ok(answer) => {
                self.shared.counters.refused(cause);
                self.protocol.respond(now, transaction, answer.into());
            }
            Err(_) => self.protocol.abandon(now, transaction),
        }
    }

    /// Ends a session without a request of its peer.
    pub(super) fn end(&mut self, seid: Seid) {
        self.forget_stored(seid);
        if let Some(actor) = self.forget(seid).and_then(|entry| entry.actor) {
            actor.stop();
        }
    }

    /// Removes a session from the store and releases its addresses.
    fn forget_stored(&mut self, seid: Seid) {
        if let Some(record) = self.shared.store.session(seid) {
            let kind = SessionEventKind::Ended;
            self.shared.topics.session(kind, &record);
        }
        self.shared.ended.lock().insert(seid);
        self.changes.push(StoreChange::Remove(seid));
        self.shared.pool.release(seid);
        self.shared.meters.lock().remove(&seid);
    }

    pub(super) fn forget(&mut self, seid: Seid) -> Option<SessionEntry> {
        self.shared.writing.lock().remove(&seid);
        let entry = self.sessions.remove(seid)?;
        self.end_report(seid);
        self.forget_refusal(seid);
        if let Some(members) = self.association_sessions.get_mut(&entry.association) {
            members.uncount_session();
            members.disuse_peer_seid(entry.peer_seid, seid);
        }
        Some(entry)
    }
}
