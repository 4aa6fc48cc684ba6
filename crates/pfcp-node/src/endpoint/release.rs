//! Release of associations on request of the owner, TS 29.244 §6.2.8.3.
//!
//! A peer agrees in its response, and releases the association later with a request of its own. The
//! owner waits for the response or, if a time limit was given, until the release or the end of that
//! time.

use std::time::{Duration, Instant};

use strowger::{Context, Reply, Request};
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::ie::Cause;

use super::{Endpoint, EndpointMsg};
use crate::node::{NodeRequestError, ReleaseOutcome, ReleaseReport};

/// A request to release the association of the peer with a Node ID: by the peer, with an optional
/// time limit, or without asking it.
#[derive(Debug)]
pub(crate) struct RequestRelease {
    pub(crate) node: String,
    pub(crate) within: Option<Duration>,
    pub(crate) force: bool,
}

type ReleaseResult = Result<ReleaseReport, NodeRequestError>;

impl Request for RequestRelease {
    type Reply = ReleaseResult;
}

/// The peers that were asked, with the replies that wait for the outcome.
#[derive(Debug, Default)]
pub(super) struct ReleaseWaiters(Vec<ReleaseWaiter>);

#[derive(Debug)]
struct ReleaseWaiter {
    association: AssociationId,
    /// The end of the time limit.
    until: Option<Instant>,
    /// Set when the peer has agreed.
    agreed: bool,
    reply: Reply<ReleaseResult>,
}

impl ReleaseWaiters {
    /// Ends the waits for an association whose peer restarted: the request was lost.
    pub(super) fn withdraw(&mut self, association: AssociationId) {
        for waiter in self.take(|one| one.association == association) {
            waiter.reply.send(Err(NodeRequestError::AssociationEnded));
        }
    }

    fn take(&mut self, wanted: impl Fn(&ReleaseWaiter) -> bool) -> Vec<ReleaseWaiter> {
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(wanted);
        self.0 = left;
        taken
    }
}

impl ReleaseWaiter {
    fn end(self, outcome: ReleaseOutcome, sessions: usize) {
        self.reply.send(Ok(ReleaseReport { outcome, sessions }));
    }
}

impl Endpoint {
    pub(super) fn release(
        &mut self,
        now: Instant,
        request: &RequestRelease,
        reply: Reply<ReleaseResult>,
        cx: &mut Context<Self>,
    ) {
        let Some(association) = self.association_with(&request.node) else {
            let node = request.node.clone();
            return reply.send(Err(NodeRequestError::UnknownPeer { node }));
        };
        if request.force {
            tracing::warn!(node = %request.node, "the owner of the node releases an association");
            self.protocol.end_association(association);
        } else {
            let asked = self
                .protocol
                .request_release(now, association, request.within);
            if asked.is_err() {
                return reply.send(Err(NodeRequestError::Busy));
            }
        }
        if let Some(within) = request.within {
            cx.send_after(within, EndpointMsg::ReleaseDue);
        }
        // Callers that stopped waiting do not take up room.
        self.releases.0.retain(|one| one.reply.is_waiting());
        self.releases.0.push(ReleaseWaiter {
            association,
            until: request.within.map(|within| now + within),
            agreed: false,
            reply,
        });
    }

    /// Handles the response of a peer. If it agreed and there is a time limit, the wait continues.
    pub(super) fn release_answered(
        &mut self,
        association: AssociationId,
        cause: Option<Cause>,
        invalid: Option<String>,
    ) {
        if let Some(reason) = invalid {
            for waiter in self.releases.take(|one| one.association == association) {
                let error = NodeRequestError::InvalidAnswer(reason.clone());
                waiter.reply.send(Err(error));
            }
            return;
        }
        let outcome = match cause {
            None => ReleaseOutcome::Unanswered,
            Some(cause) if !cause.is_acceptance() => ReleaseOutcome::Refused(cause),
            Some(_) => ReleaseOutcome::Agreed,
        };
        let agreed = outcome == ReleaseOutcome::Agreed;
        let waiters = self
            .releases
            .take(|one| one.association == association && !(agreed && one.until.is_some()));
        for one in &mut self.releases.0 {
            one.agreed |= agreed && one.association == association;
        }
        let sessions = self.count_of(association);
        for one in waiters {
            one.end(outcome, sessions);
        }
    }

    /// Handles the release of an association, which ended `sessions` sessions.
    pub(super) fn release_done(&mut self, association: AssociationId, sessions: usize) {
        for waiter in self.releases.take(|one| one.association == association) {
            waiter.end(ReleaseOutcome::Released, sessions);
        }
    }

    /// Ends the waits whose time limit has passed.
    pub(super) fn releases_due(&mut self, now: Instant) {
        let over = |one: &ReleaseWaiter| one.until.is_some_and(|until| until <= now);
        for waiter in self.releases.take(over) {
            let sessions = self.count_of(waiter.association);
            let outcome = match waiter.agreed {
                true => ReleaseOutcome::Overdue,
                false => ReleaseOutcome::Unanswered,
            };
            waiter.end(outcome, sessions);
        }
    }

    fn count_of(&self, association: AssociationId) -> usize {
        let members = self.association_sessions.get(&association);
        members.map_or(0, |members| members.len())
    }
}
