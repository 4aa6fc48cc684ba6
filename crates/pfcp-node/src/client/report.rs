//! Requests that peers send on their own: reports, and requests to release an association.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strowger_pfcp::association::AssociationId;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::session::Refusal;
use strowger_pfcp::transaction::TransactionId;
use strowger_pfcp::validate::tolerate;
use strowger_pfcp::{Frame, Index, Interfaces, MessageView, Rejection, Seid};

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

    /// Forwards a node report to its recipient and acknowledges it.
    pub(super) fn node_report(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        association: AssociationId,
        bytes: &Arc<[u8]>,
    ) {
        let Ok(frame) = Frame::decode(bytes) else {
            return self.protocol.abandon(now, transaction);
        };
        let from = self.protocol.associations().get(association);
        let peer = from.map(|from| from.address);
        let checked = check(&frame).and_then(|()| match (peer, &self.config.node_reports) {
            (Some(peer), Some(reports)) => {
                let bytes = Arc::clone(bytes);
                let told = reports.try_tell(NodeReport { peer, bytes });
                told.map_err(|_| not_taken(peer))
            }
            _ => Ok(()),
        });
        let body = BodyBuilder::new().node(&self.protocol.config().node);
        let body = match &checked {
            Ok(()) => body.cause(Cause::REQUEST_ACCEPTED),
            Err(refusal) => body.refusal(refusal),
        };
        match message(&answer_header(&frame.header, None), body.as_slice()) {
            Ok(answer) => self.protocol.respond(now, transaction, answer.into()),
            Err(_) => self.protocol.abandon(now, transaction),
        }
    }

    /// Forwards a session report to its recipient and acknowledges it.
    ///
    /// Cause 1 tells the user plane to forget the usage, so it is sent only once the recipient has
    /// the report, and never for a malformed one, TS 29.244 §7.6. A recipient without room is
    /// congestion (Cause 74): the user plane sends the usage again later. Without a recipient,
    /// reports are acknowledged: the user of the client does not want them.
    pub(super) fn report(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        peer: SocketAddr,
        bytes: &Arc<[u8]>,
    ) {
        let Ok(frame) = Frame::decode(bytes) else {
            return self.protocol.abandon(now, transaction);
        };
        let seid = frame.header.seid.unwrap_or_default();
        let known = self
            .sessions
            .get(seid)
            .filter(|record| record.peer.ip() == peer.ip())
            .map(|record| record.remote.seid());
        let body = match known {
            None => BodyBuilder::new().cause(Cause::SESSION_CONTEXT_NOT_FOUND),
            Some(_) => match self.take_report(&frame, seid, peer, bytes) {
                Ok(()) => BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED),
                Err(refusal) => BodyBuilder::new().refusal(&refusal),
            },
        };
        let header = answer_header(&frame.header, known);
        match message(&header, body.as_slice()) {
            Ok(answer) => self.protocol.respond(now, transaction, answer.into()),
            Err(_) => self.protocol.abandon(now, transaction),
        }
    }

    fn take_report(
        &self,
        frame: &Frame<'_>,
        seid: Seid,
        peer: SocketAddr,
        bytes: &Arc<[u8]>,
    ) -> Result<(), Refusal> {
        check(frame)?;
        let Some(reports) = &self.config.reports else {
            return Ok(());
        };
        let bytes = Arc::clone(bytes);
        let told = reports.try_tell(SessionReport { seid, peer, bytes });
        told.map_err(|_| not_taken(peer))
    }
}

/// Checks a report of a peer: all elements that it needs are there, and well-formed.
pub(crate) fn check(frame: &Frame<'_>) -> Result<(), Refusal> {
    let mut index = Index::new();
    let wrong = match MessageView::of(frame, &mut index) {
        Ok(view) => tolerate(&view, Interfaces::ALL).err().map(Refusal::from),
        Err(error) => {
            let rejection = Rejection::of(&error, frame.bytes).map(Refusal::from);
            Some(rejection.unwrap_or_else(|| Refusal::new(Cause::INVALID_LENGTH)))
        }
    };
    wrong.map_or(Ok(()), Err)
}

fn not_taken(peer: SocketAddr) -> Refusal {
    tracing::warn!(%peer, "report refused with cause 74: its recipient has no room");
    Refusal::new(Cause::CONGESTION)
}
