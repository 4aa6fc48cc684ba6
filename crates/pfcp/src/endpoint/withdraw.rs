//! Requests of ours that end before their answer.
//!
//! TS 29.244 §6.4 repeats a request until it is answered or given up. What it is about may end
//! before: the peer may then use its SEID for another session, and would take a repetition for a
//! request about that one.

use std::sync::Arc;
use std::time::Instant;

use super::{Endpoint, Event, Purpose, RequestError};
use crate::association::AssociationId;
use crate::message::MessageType;
use crate::planted::{Bug, planted};
use crate::transaction::Outstanding;
use crate::wire::{Header, Seid};

impl Purpose {
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
    /// Sends a request that is about an association, to its peer. It ends with the association, or
    /// when the peer restarts: then it is not sent again, and its outcome is
    /// [`Event::RequestWithdrawn`]. What is returned withdraws it before: [`Endpoint::withdraw`].
    ///
    /// # Errors
    /// When there is no such association, as many requests wait as may, or the body does not fit a
    /// message.
    pub fn request_about(
        &mut self,
        now: Instant,
        association: AssociationId,
        message_type: MessageType,
        seid: Seid,
        body: &[u8],
    ) -> Result<Outstanding, RequestError> {
        let found = self.associations.get(association);
        let peer = found.ok_or(RequestError::NoAssociation)?.address;
        let sequence = self.requests.sequence(peer)?;
        let mut header = Header::node(message_type, sequence);
        header.seid = message_type.is_session().then_some(seid);
        let request = self.send_request(now, (peer, Some(association)), &header, body)?;
        Ok(Outstanding {
            request,
            peer,
            sequence,
        })
    }

    /// Withdraws a request: it is not sent again, has no outcome, and an answer that is on its way
    /// is ignored. Returns its bytes, so that the owner can drop a datagram of them that it took
    /// out with [`Endpoint::poll_transmit`] and has not sent; `None` if it does not wait any more.
    pub fn withdraw(&mut self, outstanding: Outstanding) -> Option<Arc<[u8]>> {
        let octets = self.requests.withdraw(outstanding)?;
        self.purposes.remove(&outstanding.request);
        self.transmits
            .retain(|transmit| !Arc::ptr_eq(&transmit.octets, &octets));
        Some(octets)
    }

    /// Withdraws what is about an association that has ended, or whose peer has restarted.
    pub(super) fn withdraw_about(&mut self, association: AssociationId) {
        if planted(Bug::AskedAfterTheEnd) {
            return;
        }
        let is_over = self.associations.get(association).is_none();
        for outstanding in self.requests.about(association) {
            let request = outstanding.request;
            match self.purposes.get(&request) {
                // Its next life answers a heartbeat as well, and can be released.
                Some(Purpose::Heartbeat(_) | Purpose::Confirm(_) | Purpose::Release(_))
                    if !is_over => {}
                Some(_) => _ = self.withdraw(outstanding),
                None => {
                    if let Some(octets) = self.withdraw(outstanding) {
                        let event = Event::RequestWithdrawn { request, octets };
                        self.events.push_back(event);
                    }
                }
            }
        }
    }
}
