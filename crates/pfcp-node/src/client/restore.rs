//! What a client does about peers that it lost, and about the sessions that they lost.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use strowger::SendError;
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{MessageType, Seid};

use super::actor::{ClientActor, What};
use super::record::{Record, State};
use super::{ClientConfig, ClientError, ClientEvent};
use crate::metric;
use crate::planted::{Bug, planted};
use crate::restoration::{Attempt, Backlog, OnLoss, PeerLoss, Restoration, Search};

/// A peer that there is an association with, or was when it was lost.
#[derive(Debug)]
pub(super) struct Peer {
    search: Search,
    backlog: Backlog,
    /// Grows when the peer is lost and when it is found: what was asked before says nothing of what
    /// is after.
    epoch: u64,
    /// The Recovery Time Stamp with which the peer was found last.
    recovery: u32,
    /// The association is being released: the peer is not looked for.
    pub(super) leaves: bool,
    /// Sessions of this restoration that were established again, and that were refused.
    pub(super) restored: u64,
    refused: u64,
}

impl Peer {
    fn new(plan: &Restoration, seed: u64) -> Self {
        Self {
            search: Search::new(*plan, seed),
            backlog: Backlog::new(plan),
            epoch: 0,
            recovery: 0,
            leaves: false,
            restored: 0,
            refused: 0,
        }
    }
}

/// How soon events are told again to a recipient that had no room.
const AGAIN: Duration = Duration::from_millis(20);

impl ClientActor {
    pub(super) fn epoch(&self, peer: SocketAddr) -> u64 {
        self.peers.get(&peer).map_or(0, |peer| peer.epoch)
    }

    /// The address by which a peer is known that is associated from this one: it may set an
    /// association up from another port.
    fn known(&self, association: AssociationId) -> Option<(SocketAddr, u32)> {
        let association = self.protocol.associations().get(association)?;
        let (address, recovery) = (association.address, association.recovery.0);
        if self.peers.contains_key(&address) {
            return Some((address, recovery));
        }
        let mut of_host = self.peers.keys().filter(|one| one.ip() == address.ip());
        let found = of_host.next().copied().filter(|_| of_host.next().is_none());
        Some((found?, recovery))
    }

    /// Takes note of an association that is there, for the first time or once more.
    pub(super) fn found(&mut self, now: Instant, peer: SocketAddr, recovery: u32) {
        let (plan, seed) = (&self.config.restoration, self.seed ^ u64::from(peer.port()));
        let known = self
            .peers
            .entry(peer)
            .or_insert_with(|| Peer::new(plan, seed));
        known.leaves = false;
        known.recovery = recovery;
        if let Some(after) = known.search.found(now) {
            known.epoch += 1;
            self.tell_found(peer, after);
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

    pub(super) fn silent(&mut self, now: Instant, association: AssociationId) {
        if let Some((peer, _)) = self.known(association)
            && let Some(known) = self.peers.get_mut(&peer)
            && !known.leaves
            && known.search.silent(now)
        {
            self.tell_lost(peer, PeerLoss::Silent);
        }
    }

    pub(super) fn heard(&mut self, now: Instant, association: AssociationId) {
        // One that is heard with another time stamp has restarted, which is said next.
        if let Some((peer, recovery)) = self.known(association)
            && let Some(known) = self.peers.get_mut(&peer)
            && known.recovery == recovery
            && let Some(after) = known.search.heard(now)
        {
            known.epoch += 1;
            self.tell_found(peer, after);
        }
    }

    pub(super) fn restarted(&mut self, now: Instant, association: AssociationId) {
        if let Some((peer, recovery)) = self.known(association) {
            self.lose(now, peer, PeerLoss::Restarted(recovery));
        }
    }

    /// Takes note that a peer has none of its sessions any more, and looks for it.
    pub(super) fn lose(&mut self, now: Instant, peer: SocketAddr, why: PeerLoss) {
        let Some(known) = self.peers.get_mut(&peer) else {
            return;
        };
        known.epoch += 1;
        if known.leaves {
            return;
        }
        let is_news = known.search.adrift(now);
        if is_news || why != PeerLoss::NoAssociation {
            self.tell_lost(peer, why);
        }
        for seid in self.sessions.of(peer, |state| state == State::Up) {
            self.lose_session(seid);
        }
        if planted(Bug::RestorationForgotten) {
            for seid in self
                .sessions
                .of(peer, |state| matches!(state, State::Restoring(_)))
            {
                self.sessions.remove(seid);
            }
        }
    }

    /// Takes note that a peer lost a session: it waits to be established again, or is forgotten.
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
                record.state = State::Waiting(0);
                known.backlog.push(seid);
            }
            _ => self.give_up(seid, None),
        }
    }

    /// Forgets a session that was lost, and tells why.
    pub(super) fn give_up(&mut self, seid: Seid, cause: Option<Cause>) {
        let Some(Record { peer, .. }) = self.sessions.remove(seid) else {
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

    /// Forgets a peer whose association was released, and its sessions; tells of those that the
    /// peer released by itself.
    pub(super) fn forget_all(&mut self, peer: SocketAddr) {
        let wanted = self.peers.remove(&peer).is_none_or(|known| known.leaves);
        for seid in self.sessions.of(peer, |_| true) {
            let gone = self.sessions.remove(seid);
            if !wanted && gone.is_some_and(|record| record.state != State::Closing) {
                self.outbox
                    .push_back(ClientEvent::SessionGone { seid, peer });
            }
        }
    }

    /// Makes the attempts that are due to find lost peers.
    pub(super) fn look_for_peers(&mut self, now: Instant) {
        for (peer, known) in &mut self.peers {
            if known.leaves {
                continue;
            }
            match known.search.poll(now) {
                Some(Attempt::Enquire) => {
                    let association = self.protocol.associations().from_address(*peer);
                    if let Some(id) = association.map(|association| association.id) {
                        self.protocol.enquire(now, id);
                    }
                }
                Some(Attempt::Associate) => {
                    let asked = self.protocol.associate(now, *peer);
                    asked.unwrap_or_else(|_| _ = known.search.failed(now));
                }
                None => {}
            }
        }
    }

    /// Asks for as many lost sessions again as the pace allows.
    pub(super) fn restore(&mut self, now: Instant) {
        let up = self.peers.iter().filter(|(_, known)| known.search.is_up());
        let up: Vec<SocketAddr> = up
            .filter(|(_, known)| !known.leaves && !known.backlog.is_idle())
            .map(|(peer, _)| *peer)
            .collect();
        for peer in up {
            while let Some(seid) = self
                .peers
                .get_mut(&peer)
                .and_then(|known| known.backlog.poll(now))
            {
                if !self.ask_again(now, peer, seid) {
                    self.done(peer);
                }
            }
        }
    }

    /// Asks for a lost session, or whether the peer has it; false if there is nothing to wait for.
    fn ask_again(&mut self, now: Instant, peer: SocketAddr, seid: Seid) -> bool {
        let Some(record) = self.sessions.get_mut(seid) else {
            return false;
        };
        let (message_type, remote, body, what) = match (record.state, &record.acknowledged) {
            (State::Waiting(tries), Some(acknowledged)) => {
                record.state = State::Restoring(tries);
                let message_type = MessageType::SESSION_ESTABLISHMENT_REQUEST;
                (
                    message_type,
                    Seid(0),
                    acknowledged.body(),
                    What::Restore(seid),
                )
            }
            (State::Checking(_), _) => {
                let message_type = MessageType::SESSION_MODIFICATION_REQUEST;
                (
                    message_type,
                    record.live.remote(),
                    Vec::new(),
                    What::Check(seid),
                )
            }
            _ => return false,
        };
        match self.send(now, peer, message_type, remote, &body) {
            Ok(id) => {
                self.fly(id, peer, what);
                true
            }
            Err(ClientError::Busy) => {
                if let Some(record) = self.sessions.get_mut(seid)
                    && let State::Restoring(tries) = record.state
                {
                    record.state = State::Waiting(tries);
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

    /// Takes note that a request of the restoration has an outcome.
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

    fn tell_lost(&mut self, peer: SocketAddr, why: PeerLoss) {
        tracing::warn!(%peer, %why, "a peer is lost");
        self.stats.lock().peers_lost += 1;
        metric::peer_lost(why);
        self.outbox.push_back(ClientEvent::PeerLost { peer, why });
    }

    fn tell_found(&mut self, peer: SocketAddr, after: Duration) {
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

    /// Tells what is news, as far as the recipient has room.
    pub(super) fn tell(&mut self) {
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

    /// When something is due that concerns lost peers.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let wanted = self.peers.values().filter(|known| !known.leaves);
        let peers = wanted.filter_map(|known| match known.search.is_up() {
            true => known.backlog.poll_timeout(now),
            false => known.search.poll_timeout(),
        });
        let outbox = (!self.outbox.is_empty()).then(|| now + AGAIN);
        peers.chain(outbox).min()
    }
}
