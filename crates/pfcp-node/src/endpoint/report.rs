//! Session reports: from a session to its peer, and the response back.
//!
//! A report is retransmitted only while its session has the peer SEID that the report was made for.
//! The peer may assign that SEID to another session as soon as the first one is renamed, moved to
//! another owner or deleted, and would then attribute the usage to the wrong session.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::transaction::{OutstandingRequest, RequestId};
use strowger_pfcp::{Frame, IeType, MessageType, Seid};

use super::Endpoint;
use crate::seeded_bug::{Bug, seeded};
use crate::session::{ReportOutcome, report_address};
use crate::shared::add;

/// A Session Report Request to be sent.
#[derive(Debug)]
pub(crate) struct OutgoingReport {
    /// The node's SEID of the session.
    pub(crate) seid: Seid,
    /// The peer's SEID of the session.
    pub(crate) peer_seid: Seid,
    /// The encoded IEs.
    pub(crate) body: Vec<u8>,
}

/// The session reports that wait for their responses.
#[derive(Debug, Default)]
pub(super) struct PendingReports {
    waiting: FxHashMap<RequestId, PendingReport>,
    /// The report of each existing session.
    of_session: FxHashMap<Seid, RequestId>,
    /// The reports that a deletion response announced, by the peer's SEID of the deleted session.
    /// The peer must not reuse the SEID until it has received them (TS 29.244 §5.2.2.3.1); if it
    /// does, the reports end.
    announced: FxHashMap<(AssociationId, Seid), Vec<RequestId>>,
    /// The sessions whose last answered report was refused.
    refusals: FxHashMap<Seid, ReportRefusal>,
}

/// The cause of refused reports, and the time of the first of them.
#[derive(Clone, Copy, Debug)]
struct ReportRefusal {
    cause: Cause,
    since: Instant,
}

#[derive(Clone, Copy, Debug)]
struct PendingReport {
    outstanding: OutstandingRequest,
    subject: ReportSubject,
}

/// The session that a report belongs to.
#[derive(Clone, Copy, Debug)]
enum ReportSubject {
    Session(Seid),
    /// A deleted session, by the SEID of its peer.
    Deleted(AssociationId, Seid),
}

impl PendingReports {
    /// Records a report that was sent. Returns the previous report of the same session, which it
    /// replaces.
    fn insert(
        &mut self,
        outstanding: OutstandingRequest,
        subject: ReportSubject,
    ) -> Option<OutstandingRequest> {
        let request = outstanding.request;
        self.waiting.insert(
            request,
            PendingReport {
                outstanding,
                subject,
            },
        );
        match subject {
            ReportSubject::Session(seid) => {
                let before = self.of_session.insert(seid, request)?;
                Some(self.waiting.remove(&before)?.outstanding)
            }
            ReportSubject::Deleted(association, seid) => {
                let announced = self.announced.entry((association, seid));
                announced.or_default().push(request);
                None
            }
        }
    }

    fn remove(&mut self, request: RequestId) -> Option<ReportSubject> {
        let subject = self.waiting.remove(&request)?.subject;
        match subject {
            ReportSubject::Session(seid) => _ = self.of_session.remove(&seid),
            ReportSubject::Deleted(association, seid) => {
                let key = (association, seid);
                if let Some(rest) = self.announced.get_mut(&key) {
                    rest.retain(|one| *one != request);
                    if rest.is_empty() {
                        self.announced.remove(&key);
                    }
                }
            }
        }
        Some(subject)
    }

    /// Forgets a report. Returns `true` if the report was waiting for its response.
    pub(super) fn forget(&mut self, request: RequestId) -> bool {
        self.remove(request).is_some()
    }

    /// Removes and returns the report of a session.
    fn take(&mut self, session: Seid) -> Option<OutstandingRequest> {
        let request = self.of_session.remove(&session)?;
        Some(self.waiting.remove(&request)?.outstanding)
    }

    /// Removes and returns the announced reports of deleted sessions with the given SEID of the
    /// peer.
    fn take_announced(
        &mut self,
        association: AssociationId,
        seid: Seid,
    ) -> Vec<OutstandingRequest> {
        let requests = self.announced.remove(&(association, seid));
        let requests = requests.unwrap_or_default().into_iter();
        let sent = requests.filter_map(|request| self.waiting.remove(&request));
        sent.map(|sent| sent.outstanding).collect()
    }
}

impl Endpoint {
    /// Sends a report; the outcome is returned to the session.
    pub(super) fn report(&mut self, now: Instant, outgoing: &OutgoingReport) {
        // The response of the session can overtake its report. By now the session may have ended or
        // been renamed, in which case it makes the report again.
        let record = self.shared.store.session(outgoing.seid);
        let record = record.filter(|record| record.peer_seid == outgoing.peer_seid);
        let entry = self.sessions.get(outgoing.seid);
        let Some((entry, record)) = entry.zip(record) else {
            add(&self.shared.counters.reports_withdrawn);
            return;
        };
        let to = (entry.association, report_address(&record, &self.shared));
        self.send_report(now, to, ReportSubject::Session(outgoing.seid), outgoing);
    }

    /// Sends the reports that the response to a session deletion announced.
    pub(super) fn send_announced(
        &mut self,
        now: Instant,
        to: (AssociationId, SocketAddr),
        more: &[OutgoingReport],
    ) {
        for outgoing in more {
            let deleted = ReportSubject::Deleted(to.0, outgoing.peer_seid);
            self.send_report(now, to, deleted, outgoing);
        }
    }

    fn send_report(
        &mut self,
        now: Instant,
        to: (AssociationId, SocketAddr),
        subject: ReportSubject,
        outgoing: &OutgoingReport,
    ) {
        let kind = MessageType::SESSION_REPORT_REQUEST;
        let (seid, body) = (outgoing.peer_seid, &outgoing.body);
        match self.protocol.request_at(now, to, kind, seid, body) {
            Ok(outstanding) => {
                self.protocol.expect_seid(outstanding, outgoing.seid);
                if let Some(before) = self.reports.insert(outstanding, subject) {
                    self.withdraw_report(before);
                }
            }
            Err(error) => {
                tracing::debug!(session = %outgoing.seid, %error, "a report is not sent");
                self.notify_session(outgoing.seid, None);
            }
        }
    }

    /// Passes the outcome of a report to its session.
    pub(super) fn reported(&mut self, now: Instant, request: RequestId, answer: Option<Arc<[u8]>>) {
        let Some(ReportSubject::Session(seid)) = self.reports.remove(request) else {
            return;
        };
        let cause = answer.as_deref().and_then(cause_of);
        if let Some(cause) = cause {
            if cause.is_acceptance() {
                self.reports.refusals.remove(&seid);
            } else if self.report_refused(now, seid, cause) {
                return;
            }
        }
        self.notify_session(seid, answer);
    }

    /// Handles a refused report. Returns `true` if the session ends.
    ///
    /// A peer that does not know the session (Cause 65) will not delete it, so the node does. A
    /// peer that still waits for the response that establishes the session does not know it either.
    /// The session therefore sends its report again, and ends if the answer is the same after the
    /// time for which the peer may repeat its request. Meanwhile a heartbeat finds out whether the
    /// peer has restarted and lost all of them, TS 23.527 §4.2.
    fn report_refused(&mut self, now: Instant, seid: Seid, cause: Cause) -> bool {
        let Some(entry) = self.sessions.get(seid) else {
            return false;
        };
        let association = entry.association;
        let before = self.reports.refusals.get(&seid).copied();
        let before = before.filter(|before| before.cause == cause);
        let since = before.map_or(now, |before| before.since);
        self.reports
            .refusals
            .insert(seid, ReportRefusal { cause, since });
        let hold = self.protocol.config().answers.hold;
        let peer = self.protocol.associations().get(association);
        let node = peer.map(|peer| peer.node.to_string()).unwrap_or_default();
        match cause {
            Cause::SESSION_CONTEXT_NOT_FOUND if now >= since + hold => {
                tracing::warn!(
                    session = %seid,
                    node,
                    "a peer does not know a session: it refuses reports with cause 65; the session \
                     is ended, and its unreported usage is lost"
                );
                self.end(seid);
                return true;
            }
            Cause::SESSION_CONTEXT_NOT_FOUND => self.protocol.check_peer(now, association),
            // Logged once, not for each report.
            cause if before.is_none() => tracing::warn!(
                session = %seid,
                node,
                cause = cause.0,
                "a peer refused a session report ({cause}); refused usage is kept for the answer \
                 to the deletion of the session"
            ),
            _ => {}
        }
        false
    }

    /// Forgets what the peer answered to the reports of a session.
    pub(super) fn forget_refusal(&mut self, session: Seid) {
        self.reports.refusals.remove(&session);
    }

    /// Ends the report of a session that has ended or been renamed.
    pub(super) fn end_report(&mut self, session: Seid) {
        if seeded(Bug::ReportOutlivesSession) {
            return;
        }
        if let Some(outstanding) = self.reports.take(session) {
            self.withdraw_report(outstanding);
        }
    }

    /// Ends the announced reports of deleted sessions whose peer uses the same SEID for another
    /// session.
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

    /// Returns `true` if announced reports of deleted sessions are waiting.
    pub(super) fn has_announced(&self) -> bool {
        !self.reports.announced.is_empty()
    }

    fn withdraw_report(&mut self, outstanding: OutstandingRequest) {
        add(&self.shared.counters.reports_withdrawn);
        if let Some(bytes) = self.protocol.withdraw(outstanding) {
            self.discard_unsent(&bytes);
        }
    }

    fn notify_session(&self, seid: Seid, answer: Option<Arc<[u8]>>) {
        let entry = self.sessions.get(seid);
        if let Some(actor) = entry.and_then(|entry| entry.actor.as_ref())
            && actor.try_tell(ReportOutcome(answer)).is_err()
        {
            // The session notices the timeout by itself, and reports again.
            tracing::debug!(session = %seid, "report outcome dropped: session actor is gone");
        }
    }
}

fn cause_of(answer: &[u8]) -> Option<Cause> {
    let frame = Frame::decode(answer).ok()?;
    let mut tlvs = frame.tlvs().map_while(Result::ok);
    let cause = tlvs.find(|tlv| tlv.ie == IeType::CAUSE)?;
    cause.value.first().copied().map(Cause)
}
