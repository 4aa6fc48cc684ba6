//! Requests that peers send on their own: reports, and requests to release an association.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strowger_pfcp::association::AssociationId;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::transaction::TransactionId;
use strowger_pfcp::validate::tolerate;
use strowger_pfcp::{Frame, Index, Interfaces, MessageView, Rejection};

use super::actor::ClientActor;
use super::{NodeReport, SessionReport};

impl ClientActor {
    /// Releases an association on request of the peer. Callers with unfinished work find their
    /// sessions gone and establish them again.
    pub(super) fn release_on_request(&mut self, now: Instant, association: AssociationId) {
        if self.protocol.release(now, association).is_err() {
            tracing::warn!("too busy to release an association");
        }
    }

    /// Acknowledges a node report and forwards it to its recipient.
    pub(super) fn node_report(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        association: AssociationId,
        octets: &Arc<[u8]>,
    ) {
        let Ok(frame) = Frame::decode(octets) else {
            return self.protocol.abandon(now, transaction);
        };
        let mut index = Index::new();
        let wrong = match MessageView::of(&frame, &mut index) {
            Ok(view) => tolerate(&view, Interfaces::ALL).err(),
            Err(error) => Rejection::of(&error, octets),
        };
        let body = BodyBuilder::new().node(&self.protocol.config().node);
        let body = match &wrong {
            None => body.cause(Cause::REQUEST_ACCEPTED),
            Some(rejection) => body.refusal(&rejection.clone().into()),
        };
        match message(&answer_header(&frame.header, None), body.as_slice()) {
            Ok(answer) => self.protocol.respond(now, transaction, answer.into()),
            Err(_) => self.protocol.abandon(now, transaction),
        }
        let from = self.protocol.associations().get(association);
        let (Some(from), Some(reports), None) = (from, &self.config.node_reports, wrong) else {
            return;
        };
        let peer = from.address;
        let octets = Arc::clone(octets);
        if reports.try_tell(NodeReport { peer, octets }).is_err() {
            tracing::warn!(%peer, "node report dropped: no receiver");
        }
    }

    /// Acknowledges a session report and forwards it to its recipient.
    pub(super) fn report(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        peer: SocketAddr,
        octets: &Arc<[u8]>,
    ) {
        let Ok(frame) = Frame::decode(octets) else {
            return self.protocol.abandon(now, transaction);
        };
        let seid = frame.header.seid.unwrap_or_default();
        let known = self
            .sessions
            .get(seid)
            .filter(|record| record.peer.ip() == peer.ip())
            .map(|record| record.remote.seid());
        let cause = match known {
            Some(_) => Cause::REQUEST_ACCEPTED,
            None => Cause::SESSION_CONTEXT_NOT_FOUND,
        };
        let header = answer_header(&frame.header, known);
        let body = BodyBuilder::new().cause(cause);
        match message(&header, body.as_slice()) {
            Ok(answer) => self.protocol.respond(now, transaction, answer.into()),
            Err(_) => self.protocol.abandon(now, transaction),
        }
        if let (Some(_), Some(reports)) = (known, &self.config.reports)
            && reports
                .try_tell(SessionReport {
                    seid,
                    peer,
                    octets: Arc::clone(octets),
                })
                .is_err()
        {
            tracing::warn!(session = %seid, %peer, "session report dropped: no receiver");
        }
    }
}
