//! The outcomes of the requests of a load.

use std::net::SocketAddr;
use std::time::Instant;

use strowger_pfcp::ie::Cause;

use super::{LoadActor, LoadRequest, Operation};
use crate::client::ClientError;
use crate::load::change::SessionChange;
use crate::load::requests::answer;
use crate::restoration::PeerLoss;

impl LoadActor {
    pub(super) fn answered(&mut self, now: Instant, request: LoadRequest, bytes: &[u8]) {
        let (cause, remote) = answer(bytes);
        let accepted = cause.is_acceptance();
        let latency = now.saturating_duration_since(request.intended);
        let is_current = request.epoch == self.epoch;
        if let Some(journal) = &self.journal {
            journal.lock().answer(request.number, accepted, bytes);
        }
        let reports_usage = matches!(
            request.kind,
            Operation::Delete | Operation::Clear | Operation::Modify(_, SessionChange::Query)
        );
        if reports_usage && self.requests.count_usage() {
            self.count_usage(bytes);
        }
        if let Operation::Establish(_) | Operation::Delete | Operation::Modify(..) = request.kind {
            self.stats.lock().answer(cause, latency);
        }
        let establishes = matches!(
            request.kind,
            Operation::Establish(_) | Operation::Restore(_)
        );
        if establishes && accepted && remote.is_none() {
            let invalid = &mut self.stats.lock().invalid;
            *invalid += 1;
            if *invalid == 1 {
                let peer = self.plan.to;
                tracing::warn!(%peer, "establishment accepted without a usable UP F-SEID");
            }
        }
        let unknown = matches!(
            cause,
            Cause::SESSION_CONTEXT_NOT_FOUND | Cause::NO_ESTABLISHED_ASSOCIATION
        );
        match request.kind {
            Operation::Establish(seid) => match remote.filter(|_| accepted) {
                Some(remote) => {
                    self.stats.lock().established += 1;
                    match is_current {
                        true => {
                            self.establishing -= 1;
                            self.hold(seid, remote);
                        }
                        false => self.check(now, seid, remote),
                    }
                }
                None => self.establishing -= 1,
            },
            Operation::Delete => {
                let mut stats = self.stats.lock();
                stats.deleted += u64::from(accepted);
                stats.lost += u64::from(unknown);
                stats.sessions_lost += u64::from(unknown);
            }
            Operation::Modify(seid, change) => {
                self.modification_ended(seid);
                if accepted {
                    let mut stats = self.stats.lock();
                    stats.modified += 1;
                    stats.changes.count(change);
                    if self.remote.contains_key(&seid) {
                        self.modified.entry(seid).or_default().record(change);
                    }
                } else if is_current && cause == Cause::SESSION_CONTEXT_NOT_FOUND {
                    self.lose_session(seid);
                }
            }
            Operation::Probe(seid, reply) => {
                self.modification_ended(seid);
                if accepted {
                    self.stats.lock().probes_accepted += 1;
                } else if unknown {
                    self.lose_session(seid);
                } else if self.remote.remove(&seid).is_some() {
                    // The session counts as lost once: removed from `remote`, it will not be
                    // deleted later.
                    self.stats.lock().lost += 1;
                }
                reply.send(Ok(Some(cause)));
            }
            Operation::Restore(seid) => self.restored(now, seid, is_current, Some(cause), remote),
            Operation::Check(seid, remote) => {
                self.checked(now, seid, remote, is_current, Some(cause))
            }
            Operation::Clear => self.stats.lock().lost += u64::from(!accepted),
        }
        if is_current && cause == Cause::NO_ESTABLISHED_ASSOCIATION {
            self.on_node_lost(now, PeerLoss::NoAssociation);
        }
    }

    pub(super) fn unanswered(&mut self, now: Instant, request: LoadRequest, peer: SocketAddr) {
        if let Some(journal) = &self.journal {
            journal.lock().end(request.number);
        }
        let is_current = request.epoch == self.epoch;
        if !matches!(request.kind, Operation::Restore(_) | Operation::Check(..)) {
            let mut stats = self.stats.lock();
            stats.lost += 1;
            stats.unanswered += 1;
        }
        match request.kind {
            Operation::Establish(_) => self.establishing -= 1,
            Operation::Modify(seid, _) => self.modification_ended(seid),
            Operation::Probe(seid, reply) => {
                self.modification_ended(seid);
                reply.send(Err(ClientError::NoAnswer { peer }));
            }
            Operation::Restore(seid) => self.restored(now, seid, is_current, None, None),
            Operation::Check(seid, remote) => self.checked(now, seid, remote, is_current, None),
            Operation::Delete | Operation::Clear => {}
        }
        // The next heartbeat that would show whether the node is lost may be far away.
        if let Some(association) = self.association {
            self.protocol.check_peer(now, association);
        }
    }
}
