//! Associations that come, come again, and go.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger::Context;
use strowger_pfcp::Seid;
use strowger_pfcp::association::{Association, AssociationId};

use super::{Endpoint, Entry};
use crate::association::Members;
use crate::session::SessionArgs;
use crate::socket::local_towards;
use crate::store::{Change, Owner, milliseconds_now};

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
        for record in self
            .shared
            .store
            .sessions(&|record| record.owner.node == owner.node)
        {
            let args = SessionArgs {
                seid: record.seid,
                shared: Arc::clone(&self.shared),
            };
            match members.start(args) {
                Ok(actor) => {
                    self.sessions
                        .insert(record.seid, Entry { actor, association });
                }
                Err(error) => {
                    tracing::error!(session = %record.seid, %error, "a session is not restored");
                }
            }
        }
        self.members.insert(association, members);
    }

    pub(super) fn association_up(
        &mut self,
        association: AssociationId,
        kept: bool,
        cx: &mut Context<Self>,
    ) {
        let Some(up) = self.protocol.associations().get(association) else {
            return;
        };
        let owner = Arc::new(Owner {
            node: up.node.clone(),
            address: up.address,
            recovery: up.recovery,
            local: self.local_address(up.address.ip()),
        });
        tracing::info!(node = %owner.node, address = %owner.address, kept, "associated");
        self.news.push(Change::Associate(Arc::clone(&owner)));
        match self.members.get_mut(&association) {
            Some(members) => members.set_owner(owner),
            None => self.admit(association, &owner, cx),
        }
    }

    /// A peer that restarted knows none of its sessions.
    pub(super) fn peer_restarted(&mut self, association: AssociationId) {
        let ended = self.end_all(association);
        let node = self
            .members
            .get(&association)
            .map(|members| members.owner().node.to_string());
        tracing::info!(
            node,
            sessions = ended,
            "a peer restarted; its sessions are ended"
        );
        let Some(up) = self.protocol.associations().get(association) else {
            return;
        };
        if let Some(members) = self.members.get_mut(&association) {
            let local = members.owner().local;
            let (node, address, recovery) = (up.node.clone(), up.address, up.recovery);
            let owner = Arc::new(Owner {
                node,
                address,
                recovery,
                local,
            });
            self.news.push(Change::Associate(Arc::clone(&owner)));
            members.set_owner(owner);
        }
    }

    pub(super) fn association_released(&mut self, association: &Association) {
        let ended = self.end_all(association.id);
        self.news.push(Change::Release(association.node.clone()));
        if let Some(members) = self.members.remove(&association.id) {
            members.stop();
        }
        tracing::info!(node = %association.node, sessions = ended, "association released");
    }

    fn end_all(&mut self, association: AssociationId) -> usize {
        let of_it =
            |(seid, entry): (&Seid, &Entry)| (entry.association == association).then_some(*seid);
        let mut seids: Vec<Seid> = self.sessions.iter().filter_map(of_it).collect();
        seids.sort_unstable();
        for &seid in &seids {
            self.end(seid);
        }
        seids.len()
    }

    /// A supervisor that was ended from outside is made again, with its sessions.
    pub(super) fn supervisor_ended(&mut self, key: &str, cx: &mut Context<Self>) {
        let ended = self
            .members
            .iter()
            .find(|(_, members)| members.key() == key);
        let Some((&association, members)) = ended else {
            return;
        };
        let owner = Arc::clone(members.owner());
        self.members.remove(&association);
        self.sessions
            .retain(|_, entry| entry.association != association);
        self.admit(association, &owner, cx);
    }

    fn local_address(&self, peer: IpAddr) -> IpAddr {
        let sockets = &self.shared.sockets;
        let socket = sockets.for_peer((peer, 0).into());
        local_towards(sockets.address(socket).ip(), peer)
    }
}
