//! Session reports: from a session to its peer, and the answer back.
//!
//! A report is repeated as long as its session is called as it was when the report was made. A peer
//! may use an identifier for another session as soon as the first one has another, has another
//! owner, or has ended, and would book the usage on the wrong one.

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::transaction::{Outstanding, RequestId};
use strowger_pfcp::{MessageType, Seid};

use super::Endpoint;
use crate::planted::{Bug, planted};
use crate::session::Reported;
use crate::shared::add;

/// A Session Report Request that is to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The node's identifier of the session.
    pub(crate) seid: Seid,
    /// The peer's identifier of the session.
    pub(crate) peer_seid: Seid,
    /// The elements.
    pub(crate) body: Vec<u8>,
}

/// The session reports that wait for their answers.
#[derive(Debug, Default)]
pub(super) struct Reports {
    waiting: FxHashMap<RequestId, Sent>,
    /// The one of each session that lives.
    of_session: FxHashMap<Seid, RequestId>,
    /// Those that the deletion of their session announced, by what the peer called it. It has to
    /// keep the identifier until it has them (TS 29.244 §5.2.2.3.1); one that does not ends them.
    announced: FxHashMap<(AssociationId, Seid), Vec<RequestId>>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    outstanding: Outstanding,
    of: Of,
}

/// The subject of a report.
#[derive(Clone, Copy, Debug)]
enum Of {
    Session(Seid),
    /// A session that was deleted, as its peer called it.
    Deleted(AssociationId, Seid),
}

impl Reports {
    /// Notes a report that was sent; returns one of the same session that it takes the place of.
    fn insert(&mut self, outstanding: Outstanding, of: Of) -> Option<Outstanding> {
        let request = outstanding.request;
        self.waiting.insert(request, Sent { outstanding, of });
        match of {
            Of::Session(seid) => {
                let before = self.of_session.insert(seid, request)?;
                Some(self.waiting.remove(&before)?.outstanding)
            }
            Of::Deleted(association, seid) => {
                let announced = self.announced.entry((association, seid));
                announced.or_default().push(request);
                None
            }
        }
    }

    fn remove(&mut self, request: RequestId) -> Option<Of> {
        let of = self.waiting.remove(&request)?.of;
        match of {
            Of::Session(seid) => _ = self.of_session.remove(&seid),
            Of::Deleted(association, seid) => {
                let key = (association, seid);
                if let Some(rest) = self.announced.get_mut(&key) {
                    rest.retain(|one| *one != request);
                    if rest.is_empty() {
                        self.announced.remove(&key);
                    }
                }
            }
        }
        Some(of)
    }

    /// Forgets a report; returns `true` if it waited.
    pub(super) fn forget(&mut self, request: RequestId) -> bool {
        self.remove(request).is_some()
    }

    /// Takes out the report of a session.
    fn take(&mut self, session: Seid) -> Option<Outstanding> {
        let request = self.of_session.remove(&session)?;
        Some(self.waiting.remove(&request)?.outstanding)
    }

    /// Takes out what was announced of sessions that an association calls so.
    fn take_announced(&mut self, association: AssociationId, seid: Seid) -> Vec<Outstanding> {
        let requests = self.announced.remove(&(association, seid));
        let requests = requests.unwrap_or_default().into_iter();
        let sent = requests.filter_map(|request| self.waiting.remove(&request));
        sent.map(|sent| sent.outstanding).collect()
    }
}

impl Endpoint {
    /// Sends a report; its outcome comes back to the session.
    pub(super) fn report(&mut self, now: Instant, outgoing: &Outgoing) {
        // What the session answers may overtake its report: by now it may have ended, or be called
        // otherwise, and then it has made the report anew.
        let record = self.shared.store.session(outgoing.seid);
        let is_current = record.is_some_and(|record| record.peer_seid == outgoing.peer_seid);
        let entry = self.sessions.get(outgoing.seid).filter(|_| is_current);
        let Some(entry) = entry else {
            add(&self.shared.counters.reports_withdrawn);
            return;
        };
        let of = Of::Session(outgoing.seid);
        self.send_report(now, entry.association, of, outgoing);
    }

    /// Sends what the answer to the deletion of a session announced.
    pub(super) fn announced(&mut self, now: Instant, of: AssociationId, more: &[Outgoing]) {
        for outgoing in more {
            let deleted = Of::Deleted(of, outgoing.peer_seid);
            self.send_report(now, of, deleted, outgoing);
        }
    }

    fn send_report(&mut self, now: Instant, to: AssociationId, of: Of, outgoing: &Outgoing) {
        let kind = MessageType::SESSION_REPORT_REQUEST;
        let (seid, body) = (outgoing.peer_seid, &outgoing.body);
        match self.protocol.request_about(now, to, kind, seid, body) {
            Ok(outstanding) => {
                if let Some(before) = self.reports.insert(outstanding, of) {
                    self.withdraw_report(before);
                }
            }
            Err(error) => {
                tracing::debug!(session = %outgoing.seid, %error, "a report is not sent");
                self.tell(outgoing.seid, None);
            }
        }
    }

    /// Gives the outcome of a report to its session.
    pub(super) fn reported(&mut self, request: RequestId, answer: Option<Arc<[u8]>>) {
        if let Some(Of::Session(seid)) = self.reports.remove(request) {
            self.tell(seid, answer);
        }
    }

    /// Ends the report of a session that has ended, or is called otherwise from now on.
    pub(super) fn end_report(&mut self, session: Seid) {
        if planted(Bug::ReportOutlivesSession) {
            return;
        }
        if let Some(outstanding) = self.reports.take(session) {
            self.withdraw_report(outstanding);
        }
    }

    /// Ends what was announced of deleted sessions of a peer that calls another one so.
    pub(super) fn end_announced(&mut self, association: AssociationId, peer_seid: Seid) {
        for outstanding in self.reports.take_announced(association, peer_seid) {
            tracing::warn!(
                peer = %outstanding.peer,
                session = %peer_seid,
                "a peer used the SEID of a session again before it had all of its usage reports"
            );
            self.withdraw_report(outstanding);
        }
    }

    /// Returns `true` if reports of deleted sessions wait.
    pub(super) fn has_announced(&self) -> bool {
        !self.reports.announced.is_empty()
    }

    fn withdraw_report(&mut self, outstanding: Outstanding) {
        add(&self.shared.counters.reports_withdrawn);
        if let Some(octets) = self.protocol.withdraw(outstanding) {
            self.recall(&octets);
        }
    }

    fn tell(&self, seid: Seid, answer: Option<Arc<[u8]>>) {
        let entry = self.sessions.get(seid);
        if let Some(actor) = entry.and_then(|entry| entry.actor.as_ref())
            && actor.try_tell(Reported(answer)).is_err()
        {
            // The session will find that it waited for too long, and tell its peer again.
            tracing::debug!(session = %seid, "the outcome of a report is not taken");
        }
    }
}
