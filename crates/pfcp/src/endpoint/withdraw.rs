//! Withdrawal of our requests before they are answered.
//!
//! TS 29.244 §6.4 retransmits a request until it is answered or given up. The subject of the
//! request may end before that: the peer may then reuse its SEID for another session, and would
//! take a retransmission for a request about that session.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use super::{Endpoint, Event, NodeRequestPurpose, RequestError};
use crate::association::AssociationId;
use crate::message::MessageType;
use crate::seeded_bug::{Bug, seeded};
use crate::transaction::{AnswerRequirement, OutstandingRequest};
use crate::wire::{Header, Seid};

impl NodeRequestPurpose {
    /// Returns the association that a request is about.
    pub(super) const fn association(self) -> Option<AssociationId> {
        match self {
            Self::Heartbeat(id) | Self::Confirm(id) | Self::Release(id) | Self::Update(id) => {
                Some(id)
            }
            Self::Associate => None,
        }
    }
}

impl Endpoint {
    /// Sends a request about an association to its peer. The request is withdrawn when the
    /// association ends or the peer restarts: it is not sent again, and its outcome is
    /// [`Event::RequestWithdrawn`]. The returned value can be used to withdraw it earlier, with
    /// [`Endpoint::withdraw`].
    ///
    /// # Errors
    /// Returns an error if the association does not exist, too many requests are waiting for
    /// answers, or the body does not fit into a message.
    pub fn request_about(
        &mut self,
        now: Instant,
        association: AssociationId,
        message_type: MessageType,
        seid: Seid,
        body: &[u8],
    ) -> Result<OutstandingRequest, RequestError> {
        let found = self.associations.get(association);
        let peer = found.ok_or(RequestError::NoAssociation)?.address;
        self.request_at(now, (association, peer), message_type, seid, body)
    }

    /// Sends a request about an association, like [`Endpoint::request_about`], to another address
    /// of its peer. A CP function tells in its F-SEID where it expects the requests about a
    /// session, TS 29.244 §4.3.2.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::request_about`].
    pub fn request_at(
        &mut self,
        now: Instant,
        (association, peer): (AssociationId, SocketAddr),
        message_type: MessageType,
        seid: Seid,
        body: &[u8],
    ) -> Result<OutstandingRequest, RequestError> {
        if self.associations.get(association).is_none() {
            return Err(RequestError::NoAssociation);
        }
        let sequence = self.requests.sequence(peer)?;
        let mut header = Header::node(message_type, sequence);
        header.seid = message_type.is_session().then_some(seid);
        let request = self.send_request(now, (peer, Some(association)), &header, body)?;
        Ok(OutstandingRequest {
            request,
            peer,
            sequence,
        })
    }

    /// Records our SEID of the session that a request of [`Endpoint::request_about`] concerns. An
    /// answer without a Cause, or about another session, is then discarded, and the request is sent
    /// again as if it had not been answered.
    pub fn expect_seid(&mut self, outstanding: OutstandingRequest, seid: Seid) {
        let cause = true;
        self.requests
            .expect(outstanding, AnswerRequirement { seid, cause });
    }

    /// Withdraws a request: it is not sent again and has no outcome, and a late answer to it is
    /// ignored. Returns its bytes, so that the owner can drop a datagram with them that it took
    /// from [`Endpoint::poll_transmit`] and has not sent. Returns `None` if the request is not
    /// waiting for an answer.
    pub fn withdraw(&mut self, outstanding: OutstandingRequest) -> Option<Arc<[u8]>> {
        let bytes = self.requests.withdraw(outstanding)?;
        self.purposes.remove(&outstanding.request);
        self.transmits
            .retain(|transmit| !Arc::ptr_eq(&transmit.bytes, &bytes));
        Some(bytes)
    }

    /// Withdraws the requests about an association that has ended, or whose peer has restarted.
    pub(super) fn withdraw_about(&mut self, association: AssociationId) {
        if seeded(Bug::AskedAfterTheEnd) {
            return;
        }
        let is_over = self.associations.get(association).is_none();
        for outstanding in self.requests.about(association) {
            let request = outstanding.request;
            match self.purposes.get(&request) {
                // The new incarnation answers heartbeats too, and its association can be released.
                Some(
                    NodeRequestPurpose::Heartbeat(_)
                    | NodeRequestPurpose::Confirm(_)
                    | NodeRequestPurpose::Release(_),
                ) if !is_over => {}
                Some(_) => _ = self.withdraw(outstanding),
                None => {
                    if let Some(bytes) = self.withdraw(outstanding) {
                        let event = Event::RequestWithdrawn { request, bytes };
                        self.events.push_back(event);
                    }
                }
            }
        }
    }
}
