//! What an endpoint does with a datagram.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use super::answer::{Top, cause_of};
use super::{Discard, Elements, Endpoint, Event, Purpose, Role, Transmit, answer_header, message};
use crate::association::{Setup, SetupRefused};
use crate::error::{Error, ErrorKind};
use crate::ie::{Cause, IeType};
use crate::message::MessageType;
use crate::transaction::{Admission, TransactionId};
use crate::validate::older;
use crate::wire::{Frame, Header, Sequence, frames};

/// A request of a node that cannot be answered: no answer has a place for what is wrong.
struct Unanswerable(String);

impl From<Error> for Unanswerable {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

impl From<ErrorKind> for Unanswerable {
    fn from(kind: ErrorKind) -> Self {
        Self(kind.to_string())
    }
}

impl Endpoint {
    /// Takes a datagram in.
    pub fn handle_datagram(&mut self, now: Instant, peer: SocketAddr, octets: &[u8]) {
        self.stats.datagrams += 1;
        if !self
            .config
            .allowed
            .iter()
            .any(|network| network.contains(peer.ip()))
        {
            self.discard(now, Discard::UnknownPeer, peer, || {
                "not on the allow-list".to_owned()
            });
            return;
        }
        if octets.len() > self.config.datagram {
            let limit = self.config.datagram;
            let have = octets.len();
            let detail = || format!("{have} octets, at most {limit}");
            self.discard(now, Discard::Oversized, peer, detail);
            return;
        }
        for frame in frames(octets) {
            match frame {
                Ok(frame) => self.understand(now, peer, &frame),
                Err(error) => {
                    if matches!(error.kind(), ErrorKind::Version(_)) {
                        self.refuse_version(peer, &octets[error.offset()..]);
                    }
                    self.discard(now, Discard::Malformed, peer, || error.to_string());
                }
            }
        }
    }

    fn discard(
        &mut self,
        now: Instant,
        kind: Discard,
        peer: SocketAddr,
        detail: impl FnOnce() -> String,
    ) {
        let event = self.discards.count(now, kind, peer, detail);
        self.events.extend(event);
    }

    /// Answers a message of another version, TS 29.244 §7.4.4.7: with the sequence number where
    /// version 1 has it, unless it is such an answer itself.
    fn refuse_version(&mut self, peer: SocketAddr, octets: &[u8]) {
        let Some(&[flags, message_type, ..]) = octets.first_chunk::<2>() else {
            return;
        };
        let at = if flags & 1 == 0 { 4 } else { 12 };
        let Some(&[a, b, c]) = octets.get(at..).and_then(|rest| rest.first_chunk()) else {
            return;
        };
        if message_type == MessageType::VERSION_NOT_SUPPORTED_RESPONSE.0 {
            return;
        }
        let sequence = Sequence::new(u32::from_be_bytes([0, a, b, c]));
        let header = Header::node(MessageType::VERSION_NOT_SUPPORTED_RESPONSE, sequence);
        if let Ok(octets) = message(&header, &[]) {
            self.transmits.push_back(Transmit {
                peer,
                octets: octets.into(),
            });
        }
    }

    /// Takes a message as the release has it.
    fn understand(&mut self, now: Instant, peer: SocketAddr, frame: &Frame<'_>) {
        let older = older(frame, self.config.release);
        match older.as_deref().map(Frame::decode) {
            Some(Ok(older)) => self.handle_frame(now, peer, &older),
            _ => self.handle_frame(now, peer, frame),
        }
    }

    fn handle_frame(&mut self, now: Instant, peer: SocketAddr, frame: &Frame<'_>) {
        let header = &frame.header;
        let message_type = header.message_type;
        if message_type.name().is_none() {
            let detail = || format!("message type {}", message_type.0);
            self.discard(now, Discard::UnknownMessage, peer, detail);
            return;
        }
        if message_type.is_session() != header.seid.is_some() {
            self.discard(now, Discard::Malformed, peer, || {
                ErrorKind::SeidFlag.to_string()
            });
            return;
        }
        // Whatever is not made of elements is not worth a place among the kept answers.
        let top = match Top::of(frame) {
            Ok(top) => top,
            Err(error) => {
                let error = error.in_message(message_type);
                self.discard(now, Discard::Malformed, peer, || error.to_string());
                return;
            }
        };
        if message_type.is_request() {
            self.handle_request(now, peer, frame, &top);
        } else {
            self.handle_answer(now, peer, frame, &top);
        }
    }

    fn handle_request(&mut self, now: Instant, peer: SocketAddr, frame: &Frame<'_>, top: &Top<'_>) {
        match self.answers.admit(now, peer, frame) {
            Admission::New(id) if frame.header.message_type.is_session() => {
                self.session_request(now, peer, frame, top, id);
            }
            Admission::New(id) => match self.node_request(now, peer, frame, top) {
                Ok(body) => self.answer(now, id, &frame.header, &body),
                Err(Unanswerable(detail)) => {
                    self.answers.ignore(id);
                    self.discard(now, Discard::Malformed, peer, || detail);
                }
            },
            Admission::Again(octets) => self.transmits.push_back(Transmit { peer, octets }),
            Admission::Working => {}
            Admission::Full => {
                self.discard(now, Discard::Busy, peer, || "too many requests".to_owned());
            }
        }
    }

    pub(super) fn answer(
        &mut self,
        now: Instant,
        id: TransactionId,
        request: &Header,
        body: &Elements,
    ) {
        match message(&answer_header(request, None), body.as_slice()) {
            Ok(octets) => self.respond(now, id, octets.into()),
            Err(_) => self.answers.ignore(id),
        }
    }

    /// The body of an answer that consists of a cause, and our Node ID where the answer has one.
    pub(super) fn refusal(&self, request: MessageType, cause: Cause) -> Elements {
        let named = !request.is_session() || request == MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let body = Elements::new();
        let body = if named {
            body.node(&self.config.node)
        } else {
            body
        };
        body.cause(cause)
    }

    /// Hands a session's request to the owner, unless it goes in the wrong direction.
    fn session_request(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        frame: &Frame<'_>,
        top: &Top<'_>,
        transaction: TransactionId,
    ) {
        let from_user_plane = frame.header.message_type == MessageType::SESSION_REPORT_REQUEST;
        if from_user_plane != (self.config.role == Role::ControlPlane) {
            let body = self.refusal(frame.header.message_type, Cause::SERVICE_NOT_SUPPORTED);
            self.answer(now, transaction, &frame.header, &body);
            return;
        }
        let named = top
            .node()
            .ok()
            .and_then(|node| self.associations.with(&node));
        let association = match named {
            Some(association) => {
                Some(association.id).filter(|_| association.address.ip() == peer.ip())
            }
            None if top.node.is_some() => None,
            None => self
                .associations
                .from_address(peer)
                .map(|association| association.id),
        };
        if let Some(association) = association {
            self.heard(now, association);
        }
        let octets = Arc::from(frame.octets);
        self.events.push_back(Event::SessionRequest {
            transaction,
            peer,
            association,
            octets,
        });
    }

    /// Does what a request of a node asks for; returns the body of the answer.
    fn node_request(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        frame: &Frame<'_>,
        top: &Top<'_>,
    ) -> Result<Elements, Unanswerable> {
        let request = frame.header.message_type;
        let node = match request {
            MessageType::HEARTBEAT_REQUEST => {
                let recovery = top.recovery()?;
                self.heard_from(now, peer, recovery);
                return Ok(Elements::new().recovery(self.config.recovery));
            }
            MessageType::ASSOCIATION_SETUP_REQUEST => return Ok(self.set_up(now, peer, top)),
            MessageType::ASSOCIATION_UPDATE_REQUEST | MessageType::ASSOCIATION_RELEASE_REQUEST => {
                top.node()
            }
            _ => return Ok(self.refusal(request, Cause::SERVICE_NOT_SUPPORTED)),
        };
        let node = match node {
            Ok(node) => node,
            Err(kind) => return Ok(self.refusal(request, cause_of(kind))),
        };
        let association = self.associations.with(&node);
        let Some(id) = association
            .filter(|one| one.address.ip() == peer.ip())
            .map(|one| one.id)
        else {
            return Ok(self.refusal(request, Cause::NO_ESTABLISHED_ASSOCIATION));
        };
        if request == MessageType::ASSOCIATION_RELEASE_REQUEST {
            self.released(id);
        } else {
            self.heard(now, id);
            self.events.push_back(Event::AssociationUpdated {
                association: id,
                octets: Arc::from(frame.octets),
            });
        }
        Ok(self.refusal(request, Cause::REQUEST_ACCEPTED))
    }

    /// Node ID, Recovery Time Stamp and features, as both setup messages have them.
    pub(super) fn identity(&self) -> Elements {
        let body = Elements::new().node(&self.config.node);
        self.rest_of_identity(body)
    }

    fn rest_of_identity(&self, body: Elements) -> Elements {
        let features = match self.config.role {
            Role::UserPlane => IeType::UP_FUNCTION_FEATURES,
            Role::ControlPlane => IeType::CP_FUNCTION_FEATURES,
        };
        body.recovery(self.config.recovery)
            .with(features, &self.config.features)
    }

    fn set_up(&mut self, now: Instant, peer: SocketAddr, top: &Top<'_>) -> Elements {
        let cause = match (top.node(), top.recovery()) {
            (Err(kind), _) | (_, Err(kind)) => cause_of(kind),
            (Ok(node), Ok(recovery)) => match self.associations.set_up(now, node, peer, recovery) {
                Ok(setup) => {
                    self.is_up(setup);
                    Cause::REQUEST_ACCEPTED
                }
                Err(SetupRefused::Claimed { .. }) => Cause::REQUEST_REJECTED,
                Err(SetupRefused::Full { .. }) => Cause::NO_RESOURCES_AVAILABLE,
            },
        };
        self.rest_of_identity(self.refusal(MessageType::ASSOCIATION_SETUP_REQUEST, cause))
    }

    fn is_up(&mut self, setup: Setup) {
        let association = setup.id();
        if matches!(setup, Setup::Restarted(_)) {
            self.events.push_back(Event::PeerRestarted { association });
        }
        let kept = matches!(setup, Setup::Same(_));
        self.events
            .push_back(Event::AssociationUp { association, kept });
    }

    fn heard_from(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        recovery: crate::association::Recovery,
    ) {
        if let Some(association) = self.associations.recovery(peer, recovery) {
            self.events.push_back(Event::PeerRestarted { association });
        }
        if let Some(id) = self
            .associations
            .from_address(peer)
            .map(|association| association.id)
        {
            self.heard(now, id);
        }
    }

    fn handle_answer(&mut self, now: Instant, peer: SocketAddr, frame: &Frame<'_>, top: &Top<'_>) {
        let Header {
            message_type,
            sequence,
            ..
        } = frame.header;
        let Some(request) = self.requests.answered(peer, sequence, message_type) else {
            let detail = || format!("{message_type} {sequence} fits no request");
            self.discard(now, Discard::Unexpected, peer, detail);
            return;
        };
        let Some(purpose) = self.purposes.remove(&request) else {
            let octets = Arc::from(frame.octets);
            self.events.push_back(Event::Response {
                request,
                peer,
                octets,
            });
            return;
        };
        self.node_answer(now, peer, top, purpose);
    }

    fn node_answer(&mut self, now: Instant, peer: SocketAddr, top: &Top<'_>, purpose: Purpose) {
        match purpose {
            Purpose::Associate => {
                let cause = top.cause();
                let accepted = cause.is_some_and(Cause::is_acceptance);
                let known = top
                    .node()
                    .ok()
                    .zip(top.recovery().ok())
                    .filter(|_| accepted);
                let setup = known
                    .map(|(node, recovery)| self.associations.set_up(now, node, peer, recovery));
                match setup {
                    Some(Ok(setup)) => self.is_up(setup),
                    Some(Err(_)) | None => {
                        self.events
                            .push_back(Event::AssociationFailed { peer, cause });
                    }
                }
            }
            Purpose::Heartbeat(association) => {
                self.heard(now, association);
                if let Ok(recovery) = top.recovery() {
                    self.heard_from(now, peer, recovery);
                }
            }
            Purpose::Release(association) => self.released(association),
        }
    }
}
