//! Detection of peer restarts, TS 29.244 §6.2.2 and TS 23.527 §4.2.
//!
//! A setup is trusted at once. A later Recovery Time Stamp in a heartbeat is first confirmed with a
//! heartbeat of our own, sent to the address that the association was set up from: a datagram from
//! an arbitrary port of the peer's host must not end the sessions of the peer.
//!
//! ```text
//!   peer ── heartbeat, later stamp ──▶ claimed ── heartbeat ──▶ peer
//!                                         │
//!                  later stamp ──▶ restarted; known stamp ──▶ denied; no answer ──▶ path failure
//! ```
//!
//! A restart also ends the kept answers to the requests of the previous incarnation.

use std::net::SocketAddr;
use std::time::Instant;

use super::{Endpoint, Event, NodeRequestPurpose};
use crate::association::{AssociationId, InquiryOutcome, Recovery, RestartSign, SetupOutcome};
use crate::seeded_bug::{Bug, seeded};

impl Endpoint {
    /// Sends a heartbeat to a peer at once, even if heartbeats are disabled: it is due at `now`.
    /// Does nothing while the answer to a heartbeat is pending.
    ///
    /// A later Recovery Time Stamp in the answer results in [`Event::PeerRestarted`], a missing
    /// answer in [`Event::PeerSilent`].
    pub fn check_peer(&mut self, now: Instant, association: AssociationId) {
        self.associations.heartbeat_now(now, association);
    }

    /// Evaluates the stamp in a heartbeat, or in the answer to one.
    ///
    /// A stamp older than the known one was delayed in transit, and is ignored.
    pub(super) fn evaluate_stamp(&mut self, now: Instant, from: SocketAddr, stamp: Recovery) {
        let Some(association) = self.associations.from_address(from) else {
            return;
        };
        let (id, peer, known) = (association.id, association.address, association.recovery);
        let silent = association.silent;
        if !stamp.is_after(known) {
            return self.on_peer_alive(now, id);
        }
        if self.restart_sign(peer) == RestartSign::AssociationSetup && !seeded(Bug::StampBelieved) {
            self.on_peer_alive(now, id);
            self.stats.stamps_ignored += 1;
            if self.associations.stamp_ignored(id) {
                self.events.push_back(Event::StampIgnored {
                    association: id,
                    stamp,
                });
            }
            return;
        }
        // A silent peer that claims a restart is not heard again until it denies the restart: it
        // may be another incarnation.
        if !silent {
            self.on_peer_alive(now, id);
        }
        if seeded(Bug::ClaimBelieved) {
            return self.confirmed(now, id, Some(stamp));
        }
        if self.associations.restart_claimed(now, id, stamp)
            && self
                .send_heartbeat(now, peer, NodeRequestPurpose::Confirm(id))
                .is_err()
        {
            // No request slot is free: the next heartbeat repeats the claim.
            self.associations.inquiry_unanswered(id);
            self.on_peer_alive(now, id);
        }
    }

    /// Processes the answer of a peer that was asked whether it has restarted.
    pub(super) fn confirmed(&mut self, now: Instant, id: AssociationId, stamp: Option<Recovery>) {
        let Some(stamp) = stamp else {
            self.associations.inquiry_unanswered(id);
            return self.on_peer_alive(now, id);
        };
        let until = now + self.config.retransmission.t1;
        match self.associations.inquiry_answered(id, stamp, until) {
            InquiryOutcome::Restarted => {
                // The new incarnation was heard. No event says so, because the silence was that of
                // the previous one.
                self.associations.on_peer_alive(now, id);
                self.forget_answers(SetupOutcome::Restarted(id));
                self.restarted(id);
            }
            InquiryOutcome::Denied(claim) => {
                self.on_peer_alive(now, id);
                self.stats.restarts_denied += 1;
                self.events.push_back(Event::RestartDenied {
                    association: id,
                    claim,
                });
            }
            InquiryOutcome::AlreadySettled => self.on_peer_alive(now, id),
        }
    }

    /// Withdraws the requests to the previous incarnation of a peer.
    pub(super) fn restarted(&mut self, association: AssociationId) {
        self.stats.restarts += 1;
        self.withdraw_about(association);
        self.events.push_back(Event::PeerRestarted { association });
    }

    /// Drops the requests of previous incarnations of a peer, and the answers kept for them: with
    /// equal sequence numbers and equal bytes, a request of the new incarnation would otherwise
    /// count as a repetition, and be answered with identifiers that do not exist any more.
    ///
    /// After a release, the answers stay for repetitions of the release, until a setup with another
    /// stamp shows that they belong to a previous incarnation.
    pub(super) fn forget_answers(&mut self, setup: SetupOutcome) {
        let Some(association) = self.associations.get(setup.id()) else {
            return;
        };
        if matches!(setup, SetupOutcome::Unchanged(_)) {
            return;
        }
        let associations = &self.associations;
        let unfinished = self.answers.forget_origins(|key, origin| {
            let was_released = || associations.get(origin.association).is_none();
            origin.association == association.id
                || (origin.recovery != association.recovery
                    && association.is_at(key.peer.ip())
                    && was_released())
        });
        for (transaction, key) in unfinished {
            self.finish_with_key(transaction, key);
        }
    }

    fn restart_sign(&self, peer: SocketAddr) -> RestartSign {
        let mut signs = self.config.restarts.iter();
        let found = signs.find(|(network, _)| network.contains(peer.ip()));
        found.map_or(RestartSign::Heartbeat, |(_, sign)| *sign)
    }
}
