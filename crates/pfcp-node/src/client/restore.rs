//! Restoration: how a client searches for lost peers and restores the sessions that they lost.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use strowger::SendError;
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{MessageType, Seid};

use super::actor::{ClientActor, RequestKind};
use super::sessions::{ClientSession, SessionState};
use super::{ClientConfig, ClientError, ClientEvent};
use crate::metric;
use crate::restoration::{
    OnLoss, PeerLoss, PeerSearch, Restoration, RestorationQueue, SearchAttempt,
};
use crate::seeded_bug::{Bug, seeded};

/// A peer that has an association, or had one when it was lost.
#[derive(Debug)]
pub(super) struct PeerState {
    search: PeerSearch,
    backlog: RestorationQueue,
    /// Incremented when the peer is lost and when it is found, so that responses to earlier
    /// requests can be told apart.
    epoch: u64,
    /// The Recovery Time Stamp with which the peer was last found.
    recovery: u32,
    /// Set while the association is being released: the client does not search for the peer.
    pub(super) releasing: bool,
    /// Numbers of sessions that were established again and refused in this restoration.
    pub(super) restored: u64,
    refused: u64,
}

impl PeerState {
    fn new(plan: &Restoration, seed: u64) -> Self {
        Self {
            search: PeerSearch::new(*plan, seed),
            backlog: RestorationQueue::new(plan),
            epoch: 0,
            recovery: 0,
            releasing: false,
            restored: 0,
            refused: 0,
        }
    }
}

/// The delay before queued events are offered again to a recipient that had no room.
const EVENT_RETRY_DELAY: Duration = Duration::from_millis(20);

impl ClientActor {
    pub(super) fn epoch(&self, peer: SocketAddr) -> u64 {
        self.peers.get(&peer).map_or(0, |peer| peer.epoch)
    }

    /// Returns the address under which the peer of an association is known, and its Recovery Time
    /// Stamp. A peer may set up an association from another port, so a single known peer on the
    /// same host also matches.
    fn known_peer(&self, association: AssociationId) -> Option<(SocketAddr, u32)> {
        let association = self.protocol.associations().get(association)?;
        let (address, recovery) = (association.address, association.recovery.0);
        if self.peers.contains_key(&address) {
            return Some((address, recovery));
        }
        let mut of_host = self.peers.keys().filter(|one| one.ip() == address.ip());
        let found = of_host.next().copied().filter(|_| of_host.next().is_none());
        Some((found?, recovery))
    }

    /// Handles an association that was set up, for the first time or again.
    pub(super) fn on_peer_found(&mut self, now: Instant, peer: SocketAddr, recovery: u32) {
        let (plan, seed) = (&self.config.restoration, self.seed ^ u64::from(peer.port()));
        let known = self
            .peers
            .entry(peer)
            .or_insert_with(|| PeerState::new(plan, seed));
        known.releasing = false;
        known.recovery = recovery;
        if let Some(after) = known.search.found(now) {
            known.epoch += 1;
            self.publish_found(peer, after);
        }
    }

    pub(super) fn not_found(&mut self, now: Instant, peer: SocketAddr, cause: Option<Cause>) {
        let Some(known) = self.peers.get_mut(&peer) else {
            return;
        };
        if let Some(again) = known.search.failed(now) {
            let cause = cause.map_or_else(|| "no answer".to_owned(), |cause| cause.to_string());
            tracing::warn!(%peer, cause, ?again, "a lost peer was not found; it is asked again");
        }
    }

    pub(super) fn on_peer_silent(&mut self, now: Instant, association: AssociationId) {
        if let Some((peer, _)) = self.known_peer(association)
            && let Some(known) = self.peers.get_mut(&peer)
            && !known.releasing
            && !seeded(Bug::SilenceUnnoticed)
            && known.search.silent(now)
        {
            self.publish_lost(peer, PeerLoss::Silent);
        }
    }

    pub(super) fn on_peer_heard(&mut self, now: Instant, association: AssociationId) {
        // A peer that is heard with a different time stamp has restarted, which the next event
        // reports.
        if let Some((peer, recovery)) = self.known_peer(association)
            && let Some(known) = self.peers.get_mut(&peer)
            && known.recovery == recovery
            && let Some(after) = known.search.heard(now)
        {
            known.epoch += 1;
            self.publish_found(peer, after);
        }
    }

    pub(super) fn restarted(&mut self, now: Instant, association: AssociationId) {
        if let Some((peer, recovery)) = self.known_peer(association) {
            self.on_sessions_lost(now, peer, PeerLoss::Restarted(recovery));
        }
    }

    /// Records that a peer has lost all its sessions, and starts the search for the peer.
    pub(super) fn on_sessions_lost(&mut self, now: Instant, peer: SocketAddr, why: PeerLoss) {
        let Some(known) = self.peers.get_mut(&peer) else {
            return;
        };
        known.epoch += 1;
        if known.releasing {
            return;
        }
        let is_news = known.search.unassociated(now);
        if is_news || why != PeerLoss::NoAssociation {
            self.publish_lost(peer, why);
        }
        for seid in self.sessions.of(peer, |state| state == SessionState::Up) {
            self.lose_session(seid);
        }
        if seeded(Bug::RestorationForgotten) {
            for seid in self
                .sessions
                .of(peer, |state| matches!(state, SessionState::Restoring(_)))
            {
                self.sessions.remove(seid);
            }
        }
    }

    /// Records that a peer lost a session, which is then queued for restoration or forgotten.
    pub(super) fn lose_session(&mut self, seid: Seid) {
        let Some(record) = self.sessions.get_mut(seid) else {
            return;
        };
        let peer = record.peer;
        self.stats.lock().sessions_lost += 1;
        metric::session_lost();
        let keeps = record.on_loss == OnLoss::Restore && record.acknowledged.is_some();
        match self.peers.get_mut(&peer) {
            Some(known) if keeps => {
                record.state = SessionState::Waiting(0);
                known.backlog.push(seid);
            }
            _ => self.give_up(seid, None),
        }
    }

    /// Forgets a session that was lost, and publishes the reason.
    pub(super) fn give_up(&mut self, seid: Seid, cause: Option<Cause>) {
        let Some(ClientSession { peer, .. }) = self.sessions.remove(seid) else {
            return;
        };
        let event = match cause {
            Some(cause) => {
                self.stats.lock().sessions_refused += 1;
                metric::session_refused();
                tracing::warn!(%peer, session = %seid, %cause, "a session is not restored");
                ClientEvent::SessionRefused { seid, peer, cause }
            }
            None => {
                self.stats.lock().sessions_gone += 1;
                ClientEvent::SessionGone { seid, peer }
            }
        };
        self.outbox.push_back(event);
        if let Some(known) = self.peers.get_mut(&peer) {
            known.refused += 1;
        }
    }

    /// Forgets a peer whose association was released, together with its sessions. Publishes the
    /// sessions as gone if the peer released the association on its own.
    pub(super) fn forget_all(&mut self, peer: SocketAddr) {
        let wanted = self.peers.remove(&peer).is_none_or(|known| known.releasing);
        for seid in self.sessions.of(peer, |_| true) {
            let gone = self.sessions.remove(seid);
            if !wanted && gone.is_some_and(|record| record.state != SessionState::Closing) {
                self.outbox
                    .push_back(ClientEvent::SessionGone { seid, peer });
            }
        }
    }

    /// Makes the attempts to find lost peers that are due.
    pub(super) fn search_for_peers(&mut self, now: Instant) {
        for (peer, known) in &mut self.peers {
            if known.releasing {
                continue;
            }
            match known.search.poll(now) {
                Some(SearchAttempt::Heartbeat) => {
                    let association = self.protocol.associations().from_address(*peer);
                    if let Some(id) = association.map(|association| association.id) {
                        self.protocol.check_peer(now, id);
                    }
                }
                Some(SearchAttempt::Associate) => {
                    let asked = self.protocol.associate(now, *peer);
                    asked.unwrap_or_else(|_| _ = known.search.failed(now));
                }
                None => {}
            }
        }
    }

    /// Requests as many lost sessions again as the pace allows.
    pub(super) fn restore(&mut self, now: Instant) {
        let up = self.peers.iter().filter(|(_, known)| known.search.is_up());
        let up: Vec<SocketAddr> = up
            .filter(|(_, known)| !known.releasing && !known.backlog.is_idle())
            .map(|(peer, _)| *peer)
            .collect();
        for peer in up {
            while let Some(seid) = self
                .peers
                .get_mut(&peer)
                .and_then(|known| known.backlog.poll(now))
            {
                if !self.request_again(now, peer, seid) {
                    self.done(peer);
                }
            }
        }
    }

    /// Requests a lost session again, or checks whether the peer has it. Returns `false` if no
    /// request was sent, so that there is no response to wait for.
    fn request_again(&mut self, now: Instant, peer: SocketAddr, seid: Seid) -> bool {
        let Some(record) = self.sessions.get_mut(seid) else {
            return false;
        };
        let (message_type, remote, body, kind) = match (record.state, &record.acknowledged) {
            (SessionState::Waiting(tries), Some(acknowledged)) => {
                record.state = SessionState::Restoring(tries);
                let message_type = MessageType::SESSION_ESTABLISHMENT_REQUEST;
                (
                    message_type,
                    Seid(0),
                    acknowledged.body(),
                    RequestKind::Restore(seid),
                )
            }
            (SessionState::Checking(_), _) => {
                let message_type = MessageType::SESSION_MODIFICATION_REQUEST;
                (
                    message_type,
                    record.remote.seid(),
                    Vec::new(),
                    RequestKind::Check(seid),
                )
            }
            _ => return false,
        };
        match self.send(now, peer, message_type, (remote, seid), &body) {
            Ok(id) => {
                self.record_request(id, peer, kind);
                true
            }
            Err(ClientError::Busy) => {
                if let Some(record) = self.sessions.get_mut(seid)
                    && let SessionState::Restoring(tries) = record.state
                {
                    record.state = SessionState::Waiting(tries);
                }
                self.wait_again(peer, seid);
                false
            }
            Err(error) => {
                tracing::warn!(%peer, session = %seid, %error, "a session cannot be restored");
                self.give_up(seid, None);
                false
            }
        }
    }

    pub(super) fn wait_again(&mut self, peer: SocketAddr, seid: Seid) {
        if let Some(known) = self.peers.get_mut(&peer) {
            known.backlog.push(seid);
        }
    }

    /// Records that a request of the restoration has completed.
    pub(super) fn done(&mut self, peer: SocketAddr) {
        let Some(known) = self.peers.get_mut(&peer) else {
            return;
        };
        known.backlog.done();
        if known.backlog.is_idle() && known.restored + known.refused > 0 {
            let restored = std::mem::take(&mut known.restored);
            let refused = std::mem::take(&mut known.refused);
            tracing::info!(%peer, restored, refused, "the sessions of a peer are restored");
            self.outbox.push_back(ClientEvent::RestorationDone {
                peer,
                restored,
                refused,
            });
        }
    }

    fn publish_lost(&mut self, peer: SocketAddr, why: PeerLoss) {
        tracing::warn!(%peer, %why, "a peer is lost");
        self.stats.lock().peers_lost += 1;
        metric::peer_lost(why);
        self.outbox.push_back(ClientEvent::PeerLost { peer, why });
    }

    fn publish_found(&mut self, peer: SocketAddr, after: Duration) {
        let sessions = self.peers.get(&peer).map_or(0, |known| known.backlog.len());
        tracing::info!(%peer, ?after, sessions, "a lost peer is found");
        self.stats.lock().peers_found += 1;
        metric::peer_found();
        self.outbox.push_back(ClientEvent::PeerFound {
            peer,
            after,
            sessions,
        });
    }

    /// Sends queued events to their recipient, as long as it has room.
    pub(super) fn deliver_events(&mut self) {
        let Some(events) = &self.config.events else {
            return self.outbox.clear();
        };
        while let Some(event) = self.outbox.pop_front() {
            match events.try_tell(event) {
                Ok(()) => {}
                Err(SendError::Full(event)) if self.outbox.len() < ClientConfig::EVENTS => {
                    self.outbox.push_front(event);
                    return;
                }
                Err(_) => self.stats.lock().events_dropped += 1,
            }
        }
    }

    /// Returns the time of the next action that concerns lost peers.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let wanted = self.peers.values().filter(|known| !known.releasing);
        let peers = wanted.filter_map(|known| match known.search.is_up() {
            true => known.backlog.poll_timeout(now),
            false => known.search.poll_timeout(),
        });
        let outbox = (!self.outbox.is_empty()).then(|| now + EVENT_RETRY_DELAY);
        peers.chain(outbox).min()
    }
}
