//! Restarts of peers: which sign of one is believed, TS 29.244 §6.2.2 and TS 23.527 §4.2.
//!
//! A setup is believed at once. A later Recovery Time Stamp in a heartbeat is confirmed first, with
//! a heartbeat of our own to the address that the association was set up from: a datagram from any
//! port of the peer's host must not end its sessions.
//!
//! ```text
//!   peer ── heartbeat, later stamp ──▶ claimed ── heartbeat ──▶ peer
//!                                         │
//!                  later stamp ──▶ restarted; known stamp ──▶ denied; no answer ──▶ path failure
//! ```

use std::net::SocketAddr;
use std::time::Instant;

use super::{Endpoint, Event, Purpose};
use crate::association::{AssociationId, Recovery, RestartSign, Said};
use crate::planted::{Bug, planted};

impl Endpoint {
    /// Asks a peer for a heartbeat at once, also where none are sent otherwise: it is due at `now`.
    /// Does nothing while the answer to one is awaited.
    ///
    /// A later Recovery Time Stamp in the answer is [`Event::PeerRestarted`], no answer is
    /// [`Event::PeerSilent`].
    pub fn enquire(&mut self, now: Instant, association: AssociationId) {
        self.associations.hurry(now, association);
    }

    /// Takes note of the stamp in a heartbeat, or in the answer to one.
    ///
    /// One that is older than the known stamp was delayed on its way and says nothing.
    pub(super) fn stamped(&mut self, now: Instant, from: SocketAddr, stamp: Recovery) {
        let Some(association) = self.associations.from_address(from) else {
            return;
        };
        let (id, peer, known) = (association.id, association.address, association.recovery);
        let silent = association.silent;
        if !stamp.is_after(known) {
            return self.heard(now, id);
        }
        if self.sign_of(peer) == RestartSign::AssociationSetup && !planted(Bug::StampBelieved) {
            self.heard(now, id);
            self.stats.stamps_ignored += 1;
            if self.associations.ignored(id) {
                self.events.push_back(Event::StampIgnored {
                    association: id,
                    stamp,
                });
            }
            return;
        }
        // A silent peer that claims a restart is not the one that was lost, unless it denies that.
        if !silent {
            self.heard(now, id);
        }
        if planted(Bug::ClaimBelieved) {
            return self.confirmed(now, id, Some(stamp));
        }
        if self.associations.claimed(now, id, stamp)
            && self.beat(now, peer, Purpose::Confirm(id)).is_err()
        {
            // Too busy to ask: the next heartbeat claims it again.
            self.associations.unanswered(id);
            self.heard(now, id);
        }
    }

    /// Takes the answer of a peer that was asked whether it has restarted.
    pub(super) fn confirmed(&mut self, now: Instant, id: AssociationId, stamp: Option<Recovery>) {
        let Some(stamp) = stamp else {
            self.associations.unanswered(id);
            return self.heard(now, id);
        };
        let until = now + self.config.retransmission.t1;
        match self.associations.said(id, stamp, until) {
            Said::Restarted => {
                // Its new life was heard, which is no news of the last one.
                self.associations.heard(now, id);
                self.restarted(id);
            }
            Said::Denied(claim) => {
                self.heard(now, id);
                self.stats.restarts_denied += 1;
                self.events.push_back(Event::RestartDenied {
                    association: id,
                    claim,
                });
            }
            Said::Nothing => self.heard(now, id),
        }
    }

    /// Ends what the last life of a peer was asked.
    pub(super) fn restarted(&mut self, association: AssociationId) {
        self.stats.restarts += 1;
        self.withdraw_about(association);
        self.events.push_back(Event::PeerRestarted { association });
    }

    fn sign_of(&self, peer: SocketAddr) -> RestartSign {
        let mut signs = self.config.restarts.iter();
        let found = signs.find(|(network, _)| network.contains(peer.ip()));
        found.map_or(RestartSign::Heartbeat, |(_, sign)| *sign)
    }
}
