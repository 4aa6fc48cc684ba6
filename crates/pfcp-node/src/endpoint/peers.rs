//! Associations that are set up, set up again, and released.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger::Context;
use strowger_pfcp::Seid;
use strowger_pfcp::association::{Association, AssociationId, Recovery, SetupError};

use super::superseded::f_seid_of;
use super::{Endpoint, EndpointMsg, SessionEntry};
use crate::association::AssociationSessions;
use crate::seeded_bug::{Bug, seeded};
use crate::session::SessionArgs;
use crate::socket::local_address_for;
use crate::store::{SessionRecord, StoreChange, StoredPeer, milliseconds_now};

impl Endpoint {
    /// Restores the associations of the store and the actors of their sessions.
    pub(super) fn restore(&mut self, cx: &mut Context<Self>) {
        let now = cx.now().into_std();
        for owner in self.shared.store.associations() {
            let (node, address) = (owner.node.clone(), owner.address);
            match self.protocol.restore(now, node, address, owner.recovery) {
                Ok(association) => self.supervise(association, &owner, cx),
                Err(error) => self.end_disallowed(&owner, error),
            }
        }
        self.restore_answers(now);
    }

    /// Ends the sessions of a stored association that the configuration no longer allows: no peer
    /// may modify them, and a later peer with the same Node ID must not find them.
    fn end_disallowed(&mut self, owner: &StoredPeer, error: SetupError) {
        let of_it = |record: &SessionRecord| record.owner.node == owner.node;
        let records = self.shared.store.sessions(&of_it);
        for record in &records {
            self.end(record.seid);
        }
        self.changes.push(StoreChange::Release(owner.node.clone()));
        tracing::error!(
            node = %owner.node,
            address = %owner.address,
            sessions = records.len(),
            %error,
            "a stored association cannot be restored; its sessions are ended"
        );
    }

    /// Restores the responses that peers may still request by a retransmission, except those for
    /// previous incarnations of their peers.
    pub(super) fn restore_answers(&mut self, now: Instant) {
        let (present, hold) = (milliseconds_now(), self.protocol.config().answers.hold);
        for answer in self.shared.store.answers() {
            let association = self.protocol.associations().from_address(answer.key.peer);
            let members = association.and_then(|one| self.association_sessions.get(&one.id));
            if members.is_some_and(|members| !answer.is_for(members.owner().recovery)) {
                continue;
            }
            // If the clock was set back in the meantime, the response is kept for the full time
            // again.
            let age = Duration::from_millis(present.saturating_sub(answer.at));
            if let Some(left) = hold.checked_sub(age) {
                self.protocol
                    .restore_answer(now, left, answer.key, answer.bytes);
            }
        }
    }

    /// Starts the supervisor of an association, and queues its stored sessions to be started.
    fn supervise(
        &mut self,
        association: AssociationId,
        owner: &Arc<StoredPeer>,
        cx: &mut Context<Self>,
    ) {
        let limit = self.shared.config.limits.sessions_per_association;
        let mut members = match AssociationSessions::start_supervisor(cx, Arc::clone(owner), limit)
        {
            Ok(members) => members,
            Err(error) => {
                tracing::error!(node = %owner.node, %error, "an association cannot be supervised");
                return;
            }
        };
        let of_it = |record: &SessionRecord| record.owner.node == owner.node;
        let mut superseded = Vec::new();
        // In the order of their SEIDs, so that the newest of two sessions with one F-SEID stays.
        for record in self.shared.store.sessions(&of_it) {
            members.count_session();
            let before = members.use_peer_seid(record.peer_seid, record.seid);
            superseded.extend(before.map(|before| (before, Arc::clone(&record))));
            let entry = SessionEntry {
                actor: None,
                association,
                peer_seid: record.peer_seid,
                sequence: None,
            };
            self.sessions.insert(record.seid, entry);
            self.unstarted.push(record.seid);
        }
        self.association_sessions.insert(association, members);
        for (before, by) in superseded {
            self.end_if_superseded(before, f_seid_of(&by).as_deref());
        }
        self.start_some(cx);
    }

    /// Starts some of the queued session actors, and schedules the rest. Requests and heartbeats
    /// are handled in between.
    pub(super) fn start_some(&mut self, cx: &mut Context<Self>) {
        for _ in 0..STARTS_PER_TURN {
            let Some(seid) = self.unstarted.pop() else {
                return;
            };
            let Some(entry) = self.sessions.get_mut(seid) else {
                continue;
            };
            let Some(members) = self.association_sessions.get(&entry.association) else {
                continue;
            };
            if entry.actor.is_some() {
                continue;
            }
            let shared = Arc::clone(&self.shared);
            match members.start_counted(SessionArgs { seid, shared }) {
                Ok(actor) => entry.actor = Some(actor),
                // The next request to the session tries again.
                Err(error) => tracing::error!(session = %seid, %error, "a session is not started"),
            }
        }
        cx.send_after(Duration::ZERO, EndpointMsg::Start);
    }

    pub(super) fn association_up(
        &mut self,
        association: AssociationId,
        kept: bool,
        cx: &mut Context<Self>,
    ) {
        let ended = match kept || !self.association_sessions.contains_key(&association) {
            true => 0,
            // If this setup revealed the restart, no sessions are left. If a heartbeat revealed it,
            // late requests may have created some.
            false => self.end_all(association),
        };
        let Some(up) = self.protocol.associations().get(association) else {
            return;
        };
        let owner = Arc::new(StoredPeer {
            node: up.node.clone(),
            address: up.address,
            recovery: up.recovery,
            local: self.local_address(up.address.ip()),
        });
        tracing::info!(node = %owner.node, address = %owner.address, kept, ended, "associated");
        let members = self.association_sessions.get(&association);
        let before = members.map(|members| members.owner().address);
        if let Some(before) = before.filter(|before| before.ip() != owner.address.ip()) {
            tracing::warn!(
                node = %owner.node, %before, address = %owner.address, "a peer has moved"
            );
        }
        self.changes
            .push(StoreChange::Associate(Arc::clone(&owner)));
        match self.association_sessions.get_mut(&association) {
            Some(members) => members.set_owner(owner),
            None => self.supervise(association, &owner, cx),
        }
    }

    /// Ends the sessions of a peer that restarted, since the peer does not know them any more.
    pub(super) fn peer_restarted(&mut self, association: AssociationId) {
        if seeded(Bug::RestartIgnored) {
            return;
        }
        let ended = self.end_all(association);
        let Some(up) = self.protocol.associations().get(association) else {
            return;
        };
        let Some(members) = self.association_sessions.get_mut(&association) else {
            return;
        };
        let before = Arc::clone(members.owner());
        let owner = Arc::new(StoredPeer {
            node: up.node.clone(),
            address: up.address,
            recovery: up.recovery,
            local: before.local,
        });
        tracing::info!(
            node = %owner.node,
            address = %owner.address,
            before = before.recovery.0,
            now = owner.recovery.0,
            sessions = ended,
            "a peer restarted: its Recovery Time Stamp moved; its sessions are ended"
        );
        self.shared.topics.restart(&owner, before.recovery.0, ended);
        self.changes
            .push(StoreChange::Associate(Arc::clone(&owner)));
        members.set_owner(owner);
    }

    /// Reports that a heartbeat indicated a restart that the peer denied.
    pub(super) fn restart_denied(&self, association: AssociationId, claim: Recovery) {
        if let Some(up) = self.protocol.associations().get(association) {
            tracing::warn!(
                node = %up.node,
                address = %up.address,
                claimed = claim.0,
                known = up.recovery.0,
                "a heartbeat has a later Recovery Time Stamp than its peer, which was asked: \
                 somebody else sent it, and no session is ended"
            );
        }
    }

    /// Reports a later Recovery Time Stamp in a heartbeat that is configured not to count as a
    /// restart.
    pub(super) fn stamp_ignored(&self, association: AssociationId, stamp: Recovery) {
        if let Some(up) = self.protocol.associations().get(association) {
            tracing::info!(
                node = %up.node,
                address = %up.address,
                stamp = stamp.0,
                known = up.recovery.0,
                "later Recovery Time Stamps in heartbeats of this peer end no sessions: \
                 `n4.peer.restarts` says that it restarts with an association setup alone"
            );
        }
    }

    pub(super) fn association_released(&mut self, association: &Association) {
        let ended = self.end_all(association.id);
        self.changes
            .push(StoreChange::Release(association.node.clone()));
        if let Some(policy) = &self.shared.policy {
            policy.forget(&association.node.to_string());
        }
        if let Some(members) = self.association_sessions.remove(&association.id) {
            members.stop();
        }
        tracing::info!(node = %association.node, sessions = ended, "association released");
        self.release_done(association.id, ended);
    }

    fn end_all(&mut self, association: AssociationId) -> usize {
        let seids = self.sessions_of(association);
        for &seid in &seids {
            self.end(seid);
        }
        seids.len()
    }

    /// Returns the sessions of an association, sorted by SEID.
    fn sessions_of(&self, association: AssociationId) -> Vec<Seid> {
        let of_it = |(seid, entry): (Seid, &SessionEntry)| {
            (entry.association == association).then_some(seid)
        };
        let mut seids: Vec<Seid> = self.sessions.iter().filter_map(of_it).collect();
        seids.sort_unstable();
        seids
    }

    /// Replaces a supervisor that was stopped from outside, and restarts its sessions.
    pub(super) async fn supervisor_ended(&mut self, key: &str, cx: &mut Context<Self>) {
        let ended = self
            .association_sessions
            .iter()
            .find(|(_, members)| members.key() == key);
        let Some((&association, members)) = ended else {
            return;
        };
        let owner = Arc::clone(members.owner());
        // The last writes of its sessions decide which of them still exist.
        self.shared.wait_for_all_writes().await;
        let of_it = self.sessions_of(association);
        self.shared.release_unknown(of_it.iter().copied());
        self.association_sessions.remove(&association);
        for &seid in &of_it {
            self.sessions.remove(seid);
        }
        self.supervise(association, &owner, cx);
        // Sessions that are not restored were deleted, so only their responses are outstanding.
        for seid in of_it {
            if !self.sessions.contains(seid) {
                self.end_report(seid);
            }
        }
    }

    fn local_address(&self, peer: IpAddr) -> IpAddr {
        let sockets = &self.shared.sockets;
        let socket = sockets.for_peer((peer, 0).into());
        local_address_for(sockets.address(socket).ip(), peer)
    }
}

/// The number of session actors started in one turn of the endpoint, so that requests of peers do
/// not wait longer.
const STARTS_PER_TURN: usize = 100;
