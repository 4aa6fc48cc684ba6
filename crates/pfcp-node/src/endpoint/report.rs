//! Session reports: from a session to its peer, and the answer back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use strowger_pfcp::transaction::RequestId;
use strowger_pfcp::{MessageType, Seid};

use super::Endpoint;
use crate::session::Reported;

/// A Session Report Request that is to be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// The node's identifier of the session.
    pub(crate) seid: Seid,
    /// The peer's identifier of the session.
    pub(crate) peer_seid: Seid,
    /// Where the peer was when it was last heard of.
    pub(crate) peer: SocketAddr,
    /// The elements.
    pub(crate) body: Vec<u8>,
}

impl Endpoint {
    /// Sends a report; its outcome comes back to the session.
    pub(super) fn report(&mut self, now: Instant, outgoing: &Outgoing) {
        let associations = self.protocol.associations();
        let peer = self
            .sessions
            .get(outgoing.seid)
            .and_then(|entry| associations.get(entry.association))
            .map_or(outgoing.peer, |association| association.address);
        let sent = self.protocol.request(
            now,
            peer,
            MessageType::SESSION_REPORT_REQUEST,
            outgoing.peer_seid,
            &outgoing.body,
        );
        match sent {
            Ok(request) => _ = self.reports.insert(request, outgoing.seid),
            Err(error) => {
                tracing::debug!(session = %outgoing.seid, %error, "a report is not sent");
                self.tell(outgoing.seid, None);
            }
        }
    }

    /// Gives the outcome of a report to its session.
    pub(super) fn reported(&mut self, request: RequestId, answer: Option<Arc<[u8]>>) {
        if let Some(seid) = self.reports.remove(&request) {
            self.tell(seid, answer);
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
