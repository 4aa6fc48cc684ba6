//! The outcomes of a client's requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strowger::Reply;
use strowger_pfcp::ie::{Cause, CreatedPdr, PfcpsdrspFlags};
use strowger_pfcp::message::{Body, SessionEstablishmentResponse};
use strowger_pfcp::{IeType, Message, MessageType, Seid};

use super::actor::{ClientActor, Flight, What};
use super::message::{Answer, Opened};
use super::read::read;
use super::record::{State, TRIES, Tries};
use super::{ClientError, ClientEvent, accepted};
use crate::metric;
use crate::planted::{Bug, planted};
use crate::restoration::{Acknowledged, OnLoss, PeerLoss};

/// What the answer to a request about a session says.
enum Said {
    Accepted,
    Refused(Cause),
    Nothing,
}

impl ClientActor {
    pub(super) fn answered(&mut self, now: Instant, flight: Flight, octets: Arc<[u8]>) {
        let Flight { peer, epoch, what } = flight;
        let (cause, _) = crate::load::answer(&octets);
        let said = match cause.is_acceptance() {
            true => Said::Accepted,
            false => Said::Refused(cause),
        };
        let is_current = epoch == self.epoch(peer) || planted(Bug::EitherLifeBelieved);
        match what {
            What::Raw(reply) => reply.send(Ok(octets)),
            What::Establish { seid, body, reply } => {
                let opened = self.opened(peer, seid, is_current, &body, &octets);
                reply.send(opened);
            }
            What::Modify { seid, body, reply } => {
                self.modified(now, seid, is_current, &said, &body, &octets);
                reply.send(Ok(octets));
            }
            What::Delete { seid, reply } => {
                self.deleted(seid, &octets);
                reply.send(Ok(octets));
            }
            What::Restore(seid) => {
                self.restored(now, peer, seid, is_current, said, &octets);
                self.done(peer);
            }
            What::Check(seid) => {
                self.checked(seid, is_current, said);
                self.done(peer);
            }
            What::Undo => {}
        }
        if is_current && cause == Cause::NO_ESTABLISHED_ASSOCIATION {
            self.lose(now, peer, PeerLoss::NoAssociation);
        }
    }

    pub(super) fn unanswered(&mut self, now: Instant, flight: Flight) {
        let Flight { peer, epoch, what } = flight;
        let is_current = epoch == self.epoch(peer);
        let none = |reply: Reply<Answer>| reply.send(Err(ClientError::NoAnswer { peer }));
        match what {
            What::Raw(reply) | What::Modify { reply, .. } => none(reply),
            What::Establish { seid, reply, .. } => {
                self.sessions.remove(seid);
                reply.send(Err(ClientError::NoAnswer { peer }));
            }
            What::Delete { seid, reply } => {
                // Whoever wanted it gone may ask again, unless it went with all others.
                match self.sessions.get_mut(seid) {
                    Some(record) if is_current => record.state = State::Up,
                    _ => _ = self.sessions.remove(seid),
                }
                none(reply);
            }
            What::Restore(seid) => {
                self.restored(now, peer, seid, is_current, Said::Nothing, &Arc::from([]));
                self.done(peer);
            }
            What::Check(seid) => {
                self.checked(seid, is_current, Said::Nothing);
                self.done(peer);
            }
            What::Undo => {}
        }
        // It may be lost: the heartbeat that says so may be due in a long time only.
        let association = self.protocol.associations().from_address(peer);
        if let Some(id) = association.map(|association| association.id) {
            self.protocol.enquire(now, id);
        }
    }

    fn opened(
        &mut self,
        peer: SocketAddr,
        seid: Seid,
        is_current: bool,
        body: &[u8],
        octets: &[u8],
    ) -> Result<Opened, ClientError> {
        let (remote, created) = match established(peer, octets) {
            Ok(accepted) => accepted,
            Err(error) => {
                self.sessions.remove(seid);
                return Err(error);
            }
        };
        let Some(record) = self.sessions.get_mut(seid) else {
            return Err(ClientError::Lost { peer, seid });
        };
        record.live.set(remote, created.into());
        if record.on_loss == OnLoss::Restore {
            record.acknowledged = Acknowledged::establish(body, octets);
            if record.acknowledged.is_none() {
                tracing::warn!(%peer, session = %seid, "the rules of a session cannot be kept");
            }
        }
        record.state = match is_current {
            true => State::Up,
            false => State::Checking(None),
        };
        let live = Arc::clone(&record.live);
        if !is_current {
            self.wait_again(peer, seid);
        }
        Ok(Opened { seid, live })
    }

    fn modified(
        &mut self,
        now: Instant,
        seid: Seid,
        is_current: bool,
        said: &Said,
        body: &[u8],
        octets: &[u8],
    ) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        let peer = record.peer;
        match said {
            Said::Accepted => {
                if let Some(acknowledged) = &record.acknowledged {
                    record.acknowledged = acknowledged.modify(body, octets);
                    if record.acknowledged.is_none() {
                        tracing::warn!(%peer, session = %seid, "a change cannot be kept");
                    }
                }
            }
            Said::Refused(Cause::SESSION_CONTEXT_NOT_FOUND)
                if is_current && record.state == State::Up =>
            {
                tracing::warn!(%peer, session = %seid, "a peer does not know a session");
                self.lose_session(seid);
                // One that lost more than this session says so by its time stamp.
                let association = self.protocol.associations().from_address(peer);
                if let Some(id) = association.map(|association| association.id) {
                    self.protocol.enquire(now, id);
                }
            }
            Said::Refused(_) | Said::Nothing => {}
        }
    }

    /// Forgets a deleted session, at once or when no more reports about it come, TS 29.244 §7.5.7.
    fn deleted(&mut self, seid: Seid, octets: &[u8]) {
        if reports_follow(octets) {
            self.expiring.push(seid);
        } else {
            self.sessions.remove(seid);
        }
    }

    /// Takes note of the outcome of the establishment of a lost session.
    fn restored(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        seid: Seid,
        is_current: bool,
        said: Said,
        octets: &Arc<[u8]>,
    ) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        let State::Restoring(tries) = record.state else {
            // It was deleted meanwhile.
            self.sessions.remove(seid);
            if let Ok((remote, _)) = established(peer, octets) {
                self.undo(now, peer, remote);
            }
            return;
        };
        match (said, established(peer, octets)) {
            (Said::Accepted, Ok((remote, created))) => {
                record.live.set(remote, created.into());
                if is_current {
                    self.is_restored(seid);
                } else {
                    // Which of its lives accepted it?
                    record.state = State::Checking(Some(tries));
                    self.wait_again(peer, seid);
                }
            }
            (Said::Refused(cause), _) => self.try_again(seid, tries, is_current, Some(cause)),
            (Said::Accepted | Said::Nothing, _) => self.try_again(seid, tries, is_current, None),
        }
    }

    /// Takes note that a lost session is established.
    fn is_restored(&mut self, seid: Seid) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        record.state = State::Up;
        let (peer, live) = (record.peer, Arc::clone(&record.live));
        self.stats.lock().sessions_restored += 1;
        metric::session_restored();
        self.outbox.push_back(ClientEvent::SessionRestored {
            seid,
            peer,
            remote: live.remote(),
            created: live.created(),
        });
        if let Some(known) = self.peers.get_mut(&peer) {
            known.restored += 1;
        }
    }

    /// Lets a lost session that was refused, or that nobody answered about, wait for another
    /// attempt, or gives it up.
    fn try_again(&mut self, seid: Seid, tries: Tries, is_current: bool, cause: Option<Cause>) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        let peer = record.peer;
        let tries = match cause {
            // The peer was lost once more: what it said before is over.
            _ if !is_current => tries,
            Some(Cause::NO_ESTABLISHED_ASSOCIATION) => tries,
            None | Some(Cause::CONGESTION | Cause::SYSTEM_FAILURE) if tries < TRIES => tries + 1,
            _ => return self.give_up(seid, cause),
        };
        record.state = State::Waiting(tries);
        self.wait_again(peer, seid);
    }

    /// Takes note of whether the peer has a session that either of its lives may have accepted.
    fn checked(&mut self, seid: Seid, is_current: bool, said: Said) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        let (peer, tries) = match record.state {
            State::Checking(tries) => (record.peer, tries),
            State::Closing if is_current => return,
            _ => {
                self.sessions.remove(seid);
                return;
            }
        };
        match (said, tries) {
            (Said::Accepted, None) if is_current => record.state = State::Up,
            (Said::Accepted, Some(_)) if is_current => self.is_restored(seid),
            // It is asked once more when the peer is there.
            (Said::Accepted | Said::Nothing, _) => self.wait_again(peer, seid),
            (Said::Refused(_), Some(tries)) => self.try_again(seid, tries, false, None),
            (Said::Refused(_), None) => {
                record.state = State::Up;
                self.lose_session(seid);
            }
        }
    }

    /// Deletes a session that was established and that nobody wants.
    fn undo(&mut self, now: Instant, peer: SocketAddr, remote: Seid) {
        let message_type = MessageType::SESSION_DELETION_REQUEST;
        if let Ok(id) = self.send(now, peer, message_type, remote, &[]) {
            self.fly(id, peer, What::Undo);
        }
    }
}

/// The peer's identifier of an accepted session, and what it chose.
fn established(peer: SocketAddr, octets: &[u8]) -> Result<(Seid, Vec<CreatedPdr>), ClientError> {
    let message = read(peer, octets)?;
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
    let missing = || ClientError::Refused {
        peer,
        cause: Cause::CONDITIONAL_IE_MISSING,
        offending_ie: Some(IeType::F_SEID),
    };
    let remote = up_f_seid.ok_or_else(missing)?;
    Ok((Seid(remote.seid), created_pdrs))
}

/// Returns true if reports about a deleted session may still come, TS 29.244 §7.5.7.
fn reports_follow(octets: &[u8]) -> bool {
    let Ok(message) = Message::decode(octets) else {
        return false;
    };
    let Body::SessionDeletionResponse(answer) = &message.body else {
        return false;
    };
    let pending = |flags: PfcpsdrspFlags| flags.contains(PfcpsdrspFlags::PURU);
    answer.pfcpsdrsp_flags.is_some_and(pending)
        || answer.additional_usage_reports_information.is_some()
}
