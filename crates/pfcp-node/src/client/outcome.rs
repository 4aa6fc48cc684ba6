//! The outcomes of the requests of a client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strowger::Reply;
use strowger_pfcp::ie::{Cause, CreatedPdr, PfcpsdrspFlags};
use strowger_pfcp::message::{Body, SessionEstablishmentResponse};
use strowger_pfcp::{IeType, Message, MessageType, Seid};

use super::actor::{ClientActor, PendingRequest, RequestKind};
use super::message::{ClientReply, EstablishedSession};
use super::read::read;
use super::sessions::{Attempts, MAX_ATTEMPTS, SessionState};
use super::{ClientError, ClientEvent, accepted};
use crate::metric;
use crate::restoration::{AcknowledgedRules, OnLoss, PeerLoss};
use crate::seeded_bug::{Bug, seeded};

/// The result that the response to a session request reports.
enum ResponseOutcome {
    Accepted,
    Refused(Cause),
    Missing,
}

impl ClientActor {
    pub(super) fn answered(&mut self, now: Instant, request: PendingRequest, bytes: Arc<[u8]>) {
        let PendingRequest { peer, epoch, kind } = request;
        let (cause, _) = crate::load::answer(&bytes);
        let outcome = match (cause, &kind) {
            (cause, _) if cause.is_acceptance() => ResponseOutcome::Accepted,
            // Without a valid Cause, nothing is known about the session.
            (Cause::RESERVED, RequestKind::Restore(_)) => ResponseOutcome::Missing,
            _ => ResponseOutcome::Refused(cause),
        };
        let is_current = epoch == self.epoch(peer) || seeded(Bug::EitherLifeBelieved);
        match kind {
            RequestKind::Exchange(reply) => reply.send(Ok(bytes)),
            RequestKind::Establish { seid, body, reply } => {
                let opened = self.opened(peer, seid, is_current, &body, &bytes);
                reply.send(opened);
            }
            RequestKind::Modify { seid, body, reply } => {
                self.modified(now, seid, is_current, &outcome, &body, &bytes);
                reply.send(Ok(bytes));
            }
            RequestKind::Delete { seid, reply } => {
                self.deleted(seid, is_current, &outcome, &bytes);
                reply.send(Ok(bytes));
            }
            RequestKind::Restore(seid) => {
                self.restored(now, peer, seid, is_current, outcome, &bytes);
                self.done(peer);
            }
            RequestKind::Check(seid) => {
                self.checked(seid, is_current, outcome);
                self.done(peer);
            }
            RequestKind::DeleteUnneeded => {}
        }
        if is_current && cause == Cause::NO_ESTABLISHED_ASSOCIATION {
            self.on_sessions_lost(now, peer, PeerLoss::NoAssociation);
        }
    }

    pub(super) fn unanswered(&mut self, now: Instant, request: PendingRequest) {
        let PendingRequest { peer, epoch, kind } = request;
        let is_current = epoch == self.epoch(peer);
        let none = |reply: Reply<ClientReply>| reply.send(Err(ClientError::NoAnswer { peer }));
        match kind {
            RequestKind::Exchange(reply) | RequestKind::Modify { reply, .. } => none(reply),
            RequestKind::Establish { seid, reply, .. } => {
                self.sessions.remove(seid);
                reply.send(Err(ClientError::NoAnswer { peer }));
            }
            RequestKind::Delete { seid, reply } => {
                // The caller may delete the session again, unless it was lost together with all
                // others.
                match self.sessions.get_mut(seid) {
                    Some(record) if is_current => record.state = SessionState::Up,
                    _ => _ = self.sessions.remove(seid),
                }
                none(reply);
            }
            RequestKind::Restore(seid) => {
                self.restored(
                    now,
                    peer,
                    seid,
                    is_current,
                    ResponseOutcome::Missing,
                    &Arc::from([]),
                );
                self.done(peer);
            }
            RequestKind::Check(seid) => {
                self.checked(seid, is_current, ResponseOutcome::Missing);
                self.done(peer);
            }
            RequestKind::DeleteUnneeded => {}
        }
        // The peer may be lost, and the next heartbeat that would show this may be far away.
        let association = self.protocol.associations().from_address(peer);
        if let Some(id) = association.map(|association| association.id) {
            self.protocol.check_peer(now, id);
        }
    }

    fn opened(
        &mut self,
        peer: SocketAddr,
        seid: Seid,
        is_current: bool,
        body: &[u8],
        bytes: &[u8],
    ) -> Result<EstablishedSession, ClientError> {
        let (remote, created) = match established(peer, bytes) {
            Ok(accepted) => accepted,
            Err(error) => {
                self.sessions.remove(seid);
                return Err(error);
            }
        };
        let Some(record) = self.sessions.get_mut(seid) else {
            return Err(ClientError::Lost { peer, seid });
        };
        record.remote.set(remote, created.into());
        if record.on_loss == OnLoss::Restore {
            record.acknowledged = AcknowledgedRules::establish(body, bytes);
            if record.acknowledged.is_none() {
                tracing::warn!(%peer, session = %seid, "the rules of a session cannot be kept");
            }
        }
        record.state = match is_current {
            true => SessionState::Up,
            false => SessionState::Checking(None),
        };
        let remote = Arc::clone(&record.remote);
        if !is_current {
            self.wait_again(peer, seid);
        }
        Ok(EstablishedSession { seid, remote })
    }

    fn modified(
        &mut self,
        now: Instant,
        seid: Seid,
        is_current: bool,
        outcome: &ResponseOutcome,
        body: &[u8],
        bytes: &[u8],
    ) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        let peer = record.peer;
        match outcome {
            ResponseOutcome::Accepted => {
                if let Some(acknowledged) = &record.acknowledged {
                    record.acknowledged = acknowledged.modify(body, bytes);
                    if record.acknowledged.is_none() {
                        tracing::warn!(%peer, session = %seid, "a change cannot be kept");
                    }
                }
            }
            ResponseOutcome::Refused(Cause::SESSION_CONTEXT_NOT_FOUND)
                if is_current && record.state == SessionState::Up =>
            {
                tracing::warn!(%peer, session = %seid, "a peer does not know a session");
                self.lose_session(seid);
                // A peer that lost more than this session shows so by its Recovery Time Stamp.
                let association = self.protocol.associations().from_address(peer);
                if let Some(id) = association.map(|association| association.id) {
                    self.protocol.check_peer(now, id);
                }
            }
            ResponseOutcome::Refused(_) | ResponseOutcome::Missing => {}
        }
    }

    /// Forgets a deleted session, either at once or when no more reports about it can arrive, TS
    /// 29.244 §7.5.7. If the peer refuses the deletion although it has the session, the caller may
    /// delete it again.
    fn deleted(&mut self, seid: Seid, is_current: bool, outcome: &ResponseOutcome, bytes: &[u8]) {
        let is_gone = match outcome {
            ResponseOutcome::Accepted => true,
            ResponseOutcome::Refused(cause) => matches!(
                *cause,
                Cause::SESSION_CONTEXT_NOT_FOUND | Cause::NO_ESTABLISHED_ASSOCIATION
            ),
            ResponseOutcome::Missing => false,
        };
        if !is_gone
            && is_current
            && let Some(record) = self.sessions.get_mut(seid)
        {
            record.state = SessionState::Up;
        } else if reports_follow(bytes) {
            self.expiring.push(seid);
        } else {
            self.sessions.remove(seid);
        }
    }

    /// Handles the outcome of establishing a lost session again.
    fn restored(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        seid: Seid,
        is_current: bool,
        outcome: ResponseOutcome,
        bytes: &Arc<[u8]>,
    ) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        let SessionState::Restoring(tries) = record.state else {
            // The session was deleted in the meantime.
            self.sessions.remove(seid);
            if let Ok((remote, _)) = established(peer, bytes) {
                self.delete_unneeded_session(now, peer, (remote, seid));
            }
            return;
        };
        match (outcome, established(peer, bytes)) {
            (ResponseOutcome::Accepted, Ok((remote, created))) => {
                record.remote.set(remote, created.into());
                if is_current {
                    self.is_restored(seid);
                } else {
                    // The session may have been accepted before or after the restart of the peer.
                    record.state = SessionState::Checking(Some(tries));
                    self.wait_again(peer, seid);
                }
            }
            (ResponseOutcome::Refused(cause), _) => {
                self.try_again(seid, tries, is_current, Some(cause))
            }
            (ResponseOutcome::Accepted | ResponseOutcome::Missing, _) => {
                self.try_again(seid, tries, is_current, None)
            }
        }
    }

    /// Records that a lost session has been established again.
    fn is_restored(&mut self, seid: Seid) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        record.state = SessionState::Up;
        let (peer, remote) = (record.peer, Arc::clone(&record.remote));
        self.stats.lock().sessions_restored += 1;
        metric::session_restored();
        self.outbox.push_back(ClientEvent::SessionRestored {
            seid,
            peer,
            remote: remote.seid(),
            created: remote.created(),
        });
        if let Some(known) = self.peers.get_mut(&peer) {
            known.restored += 1;
        }
    }

    /// Queues another attempt to establish a lost session that was refused or not answered, or
    /// gives up on the session.
    fn try_again(&mut self, seid: Seid, tries: Attempts, is_current: bool, cause: Option<Cause>) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        let peer = record.peer;
        let tries = match cause {
            // The peer was lost again, so its earlier answer does not count as an attempt.
            _ if !is_current => tries,
            Some(Cause::NO_ESTABLISHED_ASSOCIATION) => tries,
            None | Some(Cause::CONGESTION | Cause::SYSTEM_FAILURE) if tries < MAX_ATTEMPTS => {
                tries + 1
            }
            _ => return self.give_up(seid, cause),
        };
        record.state = SessionState::Waiting(tries);
        self.wait_again(peer, seid);
    }

    /// Handles the outcome of checking whether the peer has a session that it may have accepted
    /// before or after a restart.
    fn checked(&mut self, seid: Seid, is_current: bool, outcome: ResponseOutcome) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        let (peer, tries) = match record.state {
            SessionState::Checking(tries) => (record.peer, tries),
            SessionState::Closing if is_current => return,
            _ => {
                self.sessions.remove(seid);
                return;
            }
        };
        match (outcome, tries) {
            (ResponseOutcome::Accepted, None) if is_current => record.state = SessionState::Up,
            (ResponseOutcome::Accepted, Some(_)) if is_current => self.is_restored(seid),
            // The check is repeated when the peer is reachable.
            (ResponseOutcome::Accepted | ResponseOutcome::Missing, _) => {
                self.wait_again(peer, seid)
            }
            (ResponseOutcome::Refused(_), Some(tries)) => self.try_again(seid, tries, false, None),
            (ResponseOutcome::Refused(_), None) => {
                record.state = SessionState::Up;
                self.lose_session(seid);
            }
        }
    }

    /// Deletes a session that was established but is not needed any more.
    fn delete_unneeded_session(&mut self, now: Instant, peer: SocketAddr, seids: (Seid, Seid)) {
        let message_type = MessageType::SESSION_DELETION_REQUEST;
        if let Ok(id) = self.send(now, peer, message_type, seids, &[]) {
            self.record_request(id, peer, RequestKind::DeleteUnneeded);
        }
    }
}

/// Returns the peer's SEID of an accepted session, and the values that the peer chose.
fn established(peer: SocketAddr, bytes: &[u8]) -> Result<(Seid, Vec<CreatedPdr>), ClientError> {
    let message = read(peer, bytes)?;
    let Body::SessionEstablishmentResponse(answer) = message.body else {
        return Err(ClientError::NoAnswer { peer });
    };
    let SessionEstablishmentResponse {
        cause,
        offending_ie,
        up_f_seid,
        created_pdrs,
        ..
    } = *answer;
    accepted(peer, cause, offending_ie.as_ref().map(|ie| ie.ie()))?;
    let missing = || ClientError::InvalidAnswer {
        peer,
        reason: format!("accepted without a usable {}", IeType::F_SEID),
    };
    let usable = up_f_seid.filter(|f_seid| f_seid.seid != 0);
    let remote = usable.ok_or_else(missing)?;
    Ok((Seid(remote.seid), created_pdrs))
}

/// Returns `true` if reports about a deleted session may still arrive, TS 29.244 §7.5.7.
fn reports_follow(bytes: &[u8]) -> bool {
    let Ok(message) = Message::decode(bytes) else {
        return false;
    };
    let Body::SessionDeletionResponse(answer) = &message.body else {
        return false;
    };
    let pending = |flags: PfcpsdrspFlags| flags.contains(PfcpsdrspFlags::PURU);
    answer.pfcpsdrsp_flags.is_some_and(pending)
        || answer.additional_usage_reports_information.is_some()
}
