//! Handling of a lost node, and restoration of the sessions that it lost.

use std::time::{Duration, Instant};

use strowger_pfcp::association::AssociationId;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{MessageType, Seid};

use super::{LoadActor, LoadPace, LoadPhase, Operation, due};
use crate::metric;
use crate::restoration::{AcknowledgedRules, OnLoss, PeerLoss, SearchAttempt};

/// The maximum number of attempts to restore a session that the node refused temporarily or did not
/// answer.
const MAX_ATTEMPTS: u8 = 3;

impl LoadActor {
    pub(super) fn on_peer_silent(&mut self, now: Instant) {
        if self.phase == LoadPhase::Working && self.search.silent(now) {
            self.count_lost(PeerLoss::Silent);
        }
    }

    pub(super) fn on_peer_heard(&mut self, now: Instant, association: AssociationId) {
        // A node that is heard with a different time stamp has restarted, which the next event
        // reports.
        if self.stamp(association) == self.recovery
            && let Some(after) = self.search.heard(now)
        {
            self.epoch += 1;
            self.count_found(after);
        }
    }

    pub(super) fn on_peer_found(&mut self, now: Instant, association: AssociationId) {
        self.association = Some(association);
        self.recovery = self.stamp(association);
        if let Some(after) = self.search.found(now) {
            self.epoch += 1;
            self.count_found(after);
        }
    }

    pub(super) fn not_found(&mut self, now: Instant, cause: Option<Cause>) {
        if let Some(again) = self.search.failed(now) {
            let cause = cause.map_or_else(|| "no answer".to_owned(), |cause| cause.to_string());
            let peer = self.plan.to;
            tracing::warn!(%peer, cause, ?again, "the lost node was not found; it is asked again");
        }
    }

    pub(super) fn restarted(&mut self, now: Instant, association: AssociationId) {
        self.on_node_lost(now, PeerLoss::Restarted(self.stamp(association)));
    }

    fn stamp(&self, association: AssociationId) -> u32 {
        let known = self.protocol.associations().get(association);
        known.map_or(0, |known| known.recovery.0)
    }

    /// Records that the node has lost all its sessions, and starts the search for it.
    pub(super) fn on_node_lost(&mut self, now: Instant, why: PeerLoss) {
        if self.phase != LoadPhase::Working {
            return;
        }
        self.epoch += 1;
        let is_news = self.search.unassociated(now);
        if is_news || why != PeerLoss::NoAssociation {
            self.count_lost(why);
        }
        let mut lost: Vec<Seid> = self.remote.keys().copied().collect();
        lost.sort_unstable();
        for seid in lost {
            self.lose_session(seid);
        }
        self.order.clear();
    }

    /// Records that the node lost a held session.
    pub(super) fn lose_session(&mut self, seid: Seid) {
        if self.remote.remove(&seid).is_none() {
            return;
        }
        {
            let mut stats = self.stats.lock();
            stats.lost += 1;
            stats.sessions_lost += 1;
        }
        metric::session_lost();
        match self.plan.on_loss {
            OnLoss::Restore => {
                self.lost.insert(seid, 0);
                self.backlog.push(seid);
            }
            OnLoss::Forget => _ = self.modified.remove(&seid),
        }
    }

    /// Makes the attempt to find the node that is due.
    pub(super) fn search_for_node(&mut self, now: Instant) {
        match self.search.poll(now) {
            Some(SearchAttempt::Heartbeat) => {
                if let Some(association) = self.association {
                    self.protocol.check_peer(now, association);
                }
            }
            Some(SearchAttempt::Associate) => {
                let asked = self.protocol.associate(now, self.plan.to);
                asked.unwrap_or_else(|_| _ = self.search.failed(now));
            }
            None => {}
        }
    }

    /// Omits the requests that are scheduled while the node is lost.
    pub(super) fn skip(&mut self, now: Instant) {
        if let LoadPace::Rate(rate) = self.plan.pace
            && rate > 0.0
        {
            while due(self.began, self.scheduled, rate, now).is_some() {
                self.scheduled += 1;
                self.stats.lock().skipped += 1;
            }
        }
    }

    /// Requests as many lost sessions again as the pace allows.
    pub(super) fn restore(&mut self, now: Instant) {
        while self.search.is_up() {
            let Some(seid) = self.backlog.poll(now) else {
                return;
            };
            let body = match self.lost.get(&seid) {
                Some(_) => self.body_of(seid),
                None => None,
            };
            let message_type = MessageType::SESSION_ESTABLISHMENT_REQUEST;
            let kind = Operation::Restore(seid);
            let sent =
                body.is_some_and(|body| self.send(now, now, message_type, Seid(0), &body, kind));
            if !sent {
                self.backlog.done();
                self.lost.remove(&seid);
            }
        }
    }

    /// Returns the body of the request that establishes a session again as it was when it was lost.
    fn body_of(&self, seid: Seid) -> Option<Vec<u8>> {
        let body = self.requests.establishment(seid).ok()?;
        let mut acknowledged = AcknowledgedRules::establish(&body, &[])?;
        let applied = self.modified.get(&seid).copied().unwrap_or_default();
        for change in applied.changes() {
            let change = self.requests.modification(change).ok()?;
            acknowledged = acknowledged.modify(&change, &[])?;
        }
        Some(acknowledged.body())
    }

    /// Records that the node has a session.
    pub(super) fn hold(&mut self, seid: Seid, remote: Seid) {
        self.remote.insert(seid, remote);
        self.order.push_back(seid);
    }

    /// Checks whether the node has a session that it may have accepted before or after a restart.
    pub(super) fn check(&mut self, now: Instant, seid: Seid, remote: Seid) {
        let message_type = MessageType::SESSION_MODIFICATION_REQUEST;
        let kind = Operation::Check(seid, remote);
        if !self.send(now, now, message_type, remote, &[], kind)
            && self.lost.remove(&seid).is_none()
        {
            self.establishing -= 1;
        }
    }

    pub(super) fn checked(
        &mut self,
        now: Instant,
        seid: Seid,
        remote: Seid,
        is_current: bool,
        cause: Option<Cause>,
    ) {
        let accepted = cause.is_some_and(Cause::is_acceptance);
        if accepted && !is_current {
            return self.check(now, seid, remote);
        }
        let is_restored = self.lost.remove(&seid).is_some();
        if !is_restored {
            self.establishing -= 1;
        }
        // A session is counted as held before it is counted as lost.
        self.hold(seid, remote);
        match (accepted, is_restored) {
            (true, true) => self.count_restored(),
            (true, false) => {}
            (false, false) => self.lose_session(seid),
            (false, true) => {
                // The loss has already been counted.
                self.remote.remove(&seid);
                self.lost.insert(seid, 0);
                self.backlog.push(seid);
            }
        }
    }

    /// Handles the outcome of establishing a lost session again.
    pub(super) fn restored(
        &mut self,
        now: Instant,
        seid: Seid,
        is_current: bool,
        cause: Option<Cause>,
        remote: Option<Seid>,
    ) {
        self.backlog.done();
        let Some(tries) = self.lost.get_mut(&seid) else {
            return;
        };
        let accepted = cause.is_some_and(Cause::is_acceptance);
        match (accepted, remote) {
            (true, Some(remote)) if is_current => {
                self.lost.remove(&seid);
                self.hold(seid, remote);
                return self.count_restored();
            }
            (true, Some(remote)) => return self.check(now, seid, remote),
            _ => {}
        }
        let again = match cause {
            _ if !is_current => true,
            Some(Cause::NO_ESTABLISHED_ASSOCIATION) => true,
            None | Some(Cause::CONGESTION | Cause::SYSTEM_FAILURE) => {
                *tries += 1;
                *tries <= MAX_ATTEMPTS
            }
            Some(_) => false,
        };
        if again {
            return self.backlog.push(seid);
        }
        self.lost.remove(&seid);
        self.modified.remove(&seid);
        self.stats.lock().sessions_refused += 1;
        metric::session_refused();
        let (peer, cause) = (self.plan.to, cause.map_or(0, |cause| cause.0));
        tracing::warn!(%peer, session = %seid, cause, "a session is not restored");
    }

    fn count_restored(&self) {
        self.stats.lock().sessions_restored += 1;
        metric::session_restored();
    }

    fn count_lost(&self, why: PeerLoss) {
        let peer = self.plan.to;
        tracing::warn!(%peer, %why, "the node is lost");
        self.stats.lock().peers_lost += 1;
        metric::peer_lost(why);
    }

    fn count_found(&self, after: Duration) {
        let (peer, sessions) = (self.plan.to, self.backlog.len());
        tracing::info!(%peer, ?after, sessions, "the lost node is found");
        self.stats.lock().peers_found += 1;
        metric::peer_found();
    }

    /// Returns the time of the next action that concerns the lost node.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        match self.phase {
            LoadPhase::Working if self.search.is_up() => self.backlog.poll_timeout(now),
            LoadPhase::Working => self.search.poll_timeout(),
            _ => None,
        }
    }
}
