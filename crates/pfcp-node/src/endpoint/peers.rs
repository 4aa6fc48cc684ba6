//! Associations that come, come again, and go.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger::Context;
use strowger_pfcp::Seid;
use strowger_pfcp::association::{Association, AssociationId, Recovery};

use super::{Endpoint, EndpointMsg, Entry};
use crate::association::Members;
use crate::planted::{Bug, planted};
use crate::session::SessionArgs;
use crate::socket::local_towards;
use crate::store::{Change, Owner, SessionRecord, milliseconds_now};

impl Endpoint {
    /// Puts back what an earlier incarnation had: associations, and the actors of their sessions.
    pub(super) fn restore(&mut self, cx: &mut Context<Self>) {
        let now = cx.now().into_std();
        self.restore_answers(now);
        for owner in self.shared.store.associations() {
            let (node, address) = (owner.node.clone(), owner.address);
            match self.protocol.restore(now, node, address, owner.recovery) {
                Ok(association) => self.admit(association, &owner, cx),
                Err(error) => {
                    tracing::error!(node = %owner.node, %error, "association cannot be restored");
                }
            }
        }
    }

    /// Puts back the answers that peers may still ask for.
    pub(super) fn restore_answers(&mut self, now: Instant) {
        let (present, hold) = (milliseconds_now(), self.protocol.config().answers.hold);
        for answer in self.shared.store.answers() {
            // A clock that was set back since keeps them a whole time more.
            let age = Duration::from_millis(present.saturating_sub(answer.at));
            if let Some(left) = hold.checked_sub(age) {
                self.protocol
                    .restore_answer(now, left, answer.key, answer.octets);
            }
        }
    }

    /// Makes the supervisor of an association, and starts the sessions that the store has of it.
    fn admit(&mut self, association: AssociationId, owner: &Arc<Owner>, cx: &mut Context<Self>) {
        let limit = self.shared.config.limits.sessions_per_association;
        let mut members = match Members::start_supervisor(cx, Arc::clone(owner), limit) {
            Ok(members) => members,
            Err(error) => {
                tracing::error!(node = %owner.node, %error, "an association cannot be supervised");
                return;
            }
        };
        let of_it = |record: &SessionRecord| record.owner.node == owner.node;
        for record in self.shared.store.sessions(&of_it) {
            members.joined();
            let actor = None;
            self.sessions
                .insert(record.seid, Entry { actor, association });
            self.unstarted.push(record.seid);
        }
        self.members.insert(association, members);
        self.start_some(cx);
    }

    /// Starts some of the actors that the store has sessions for, and sees to it that others
    /// follow. Requests and heartbeats do not wait for all of them.
    pub(super) fn start_some(&mut self, cx: &mut Context<Self>) {
        for _ in 0..AT_ONCE {
            let Some(seid) = self.unstarted.pop() else {
                return;
            };
            let Some(entry) = self.sessions.get_mut(seid) else {
                continue;
            };
            let Some(members) = self.members.get(&entry.association) else {
                continue;
            };
            if entry.actor.is_some() {
                continue;
            }
            let shared = Arc::clone(&self.shared);
            match members.start_again(SessionArgs { seid, shared }) {
                Ok(actor) => entry.actor = Some(actor),
                // A request will try it again.
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
        let ended = match kept || !self.members.contains_key(&association) {
            true => 0,
            // After a restart that this setup tells there are none any more; after one that a
            // heartbeat told there are those of requests that were late.
            false => self.end_all(association),
        };
        let Some(up) = self.protocol.associations().get(association) else {
            return;
        };
        let owner = Arc::new(Owner {
            node: up.node.clone(),
            address: up.address,
            recovery: up.recovery,
            local: self.local_address(up.address.ip()),
        });
        tracing::info!(node = %owner.node, address = %owner.address, kept, ended, "associated");
        self.news.push(Change::Associate(Arc::clone(&owner)));
        match self.members.get_mut(&association) {
            Some(members) => members.set_owner(owner),
            None => self.admit(association, &owner, cx),
        }
    }

    /// A peer that restarted knows none of its sessions.
    pub(super) fn peer_restarted(&mut self, association: AssociationId) {
        if planted(Bug::RestartIgnored) {
            return;
        }
        let ended = self.end_all(association);
        let Some(up) = self.protocol.associations().get(association) else {
            return;
        };
        let Some(members) = self.members.get_mut(&association) else {
            return;
        };
        let before = Arc::clone(members.owner());
        let owner = Arc::new(Owner {
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
        self.shared
            .bulletin
            .restart(&owner, before.recovery.0, ended);
        self.news.push(Change::Associate(Arc::clone(&owner)));
        members.set_owner(owner);
    }

    /// A heartbeat said that a peer restarted, and the peer says that it has not.
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

    /// A heartbeat has a later stamp, which says nothing of this peer.
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
        self.news.push(Change::Release(association.node.clone()));
        if let Some(desk) = &self.shared.policy {
            desk.forget(&association.node.to_string());
        }
        if let Some(members) = self.members.remove(&association.id) {
            members.stop();
        }
        tracing::info!(node = %association.node, sessions = ended, "association released");
    }

    fn end_all(&mut self, association: AssociationId) -> usize {
        let seids = self.sessions_of(association);
        for &seid in &seids {
            self.end(seid);
        }
        seids.len()
    }

    /// The sessions of an association, in their order.
    fn sessions_of(&self, association: AssociationId) -> Vec<Seid> {
        let of_it =
            |(seid, entry): (Seid, &Entry)| (entry.association == association).then_some(seid);
        let mut seids: Vec<Seid> = self.sessions.iter().filter_map(of_it).collect();
        seids.sort_unstable();
        seids
    }

    /// A supervisor that was ended from outside is made again, with its sessions.
    pub(super) async fn supervisor_ended(&mut self, key: &str, cx: &mut Context<Self>) {
        let ended = self
            .members
            .iter()
            .find(|(_, members)| members.key() == key);
        let Some((&association, members)) = ended else {
            return;
        };
        let owner = Arc::clone(members.owner());
        // What its sessions wrote last decides which of them there are.
        self.shared.settle_all().await;
        let of_it = self.sessions_of(association);
        self.shared.release_unknown(of_it.iter().copied());
        self.members.remove(&association);
        for &seid in &of_it {
            self.sessions.remove(seid);
        }
        self.admit(association, &owner, cx);
        // Those that do not come back were deleted, and wait for nothing but their answers.
        for seid in of_it {
            if !self.sessions.contains(seid) {
                self.end_report(seid);
            }
        }
    }

    fn local_address(&self, peer: IpAddr) -> IpAddr {
        let sockets = &self.shared.sockets;
        let socket = sockets.for_peer((peer, 0).into());
        local_towards(sockets.address(socket).ip(), peer)
    }
}

/// Actors that are started in one turn of the endpoint: what peers ask for does not wait for more.
const AT_ONCE: usize = 100;
