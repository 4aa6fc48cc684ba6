//! The outcomes of a load's requests.

use std::net::SocketAddr;
use std::time::Instant;

use strowger_pfcp::ie::Cause;

use super::{Flight, LoadActor, What};
use crate::client::ClientError;
use crate::load::requests::answer;
use crate::restoration::PeerLoss;

impl LoadActor {
    pub(super) fn answered(&mut self, now: Instant, flight: Flight, octets: &[u8]) {
        let (cause, remote) = answer(octets);
        let accepted = cause.is_acceptance();
        let latency = now.saturating_duration_since(flight.intended);
        let is_current = flight.epoch == self.epoch;
        if let Some(ledger) = &self.ledger {
            ledger.lock().answer(flight.number, accepted, octets);
        }
        if self.plan.usage.is_some() && matches!(flight.what, What::Delete | What::Clear) {
            self.count_usage(octets);
        }
        if let What::Establish(_) | What::Delete | What::Modify(..) = flight.what {
            self.figures.lock().answer(cause, latency);
        }
        let unknown = matches!(
            cause,
            Cause::SESSION_CONTEXT_NOT_FOUND | Cause::NO_ESTABLISHED_ASSOCIATION
        );
        match flight.what {
            What::Establish(seid) => {
                self.establishing -= 1;
                if let Some(remote) = remote.filter(|_| accepted) {
                    self.figures.lock().established += 1;
                    match is_current {
                        true => self.hold(seid, remote),
                        false => self.check(now, seid, remote),
                    }
                }
            }
            What::Delete => {
                let mut figures = self.figures.lock();
                figures.deleted += u64::from(accepted);
                figures.lost += u64::from(unknown);
                figures.sessions_lost += u64::from(unknown);
            }
            What::Modify(seid, number) => {
                self.modifying.remove(&seid);
                if accepted {
                    self.figures.lock().modified += 1;
                    if self.remote.contains_key(&seid) {
                        self.modified.insert(seid, number);
                    }
                } else if is_current && cause == Cause::SESSION_CONTEXT_NOT_FOUND {
                    self.lose_session(seid);
                }
            }
            What::Probe(seid, reply) => {
                if accepted {
                    self.figures.lock().survived += 1;
                } else if unknown {
                    self.lose_session(seid);
                } else if self.remote.remove(&seid).is_some() {
                    // Counted once: it is not deleted later.
                    self.figures.lock().lost += 1;
                }
                reply.send(Ok(Some(cause)));
            }
            What::Restore(seid) => self.restored(now, seid, is_current, Some(cause), remote),
            What::Check(seid, remote) => self.checked(now, seid, remote, is_current, Some(cause)),
            What::Clear => self.figures.lock().lost += u64::from(!accepted),
        }
        if is_current && cause == Cause::NO_ESTABLISHED_ASSOCIATION {
            self.lose(now, PeerLoss::NoAssociation);
        }
    }

    pub(super) fn unanswered(&mut self, now: Instant, flight: Flight, peer: SocketAddr) {
        if let Some(ledger) = &self.ledger {
            ledger.lock().end(flight.number);
        }
        let is_current = flight.epoch == self.epoch;
        if !matches!(flight.what, What::Restore(_) | What::Check(..)) {
            let mut figures = self.figures.lock();
            figures.lost += 1;
            figures.unanswered += 1;
        }
        match flight.what {
            What::Establish(_) => self.establishing -= 1,
            What::Modify(seid, _) => _ = self.modifying.remove(&seid),
            What::Probe(_, reply) => reply.send(Err(ClientError::NoAnswer { peer })),
            What::Restore(seid) => self.restored(now, seid, is_current, None, None),
            What::Check(seid, remote) => self.checked(now, seid, remote, is_current, None),
            What::Delete | What::Clear => {}
        }
        // The heartbeat that shows whether the node is lost may be due later only.
        if let Some(association) = self.association {
            self.protocol.enquire(now, association);
        }
    }
}
