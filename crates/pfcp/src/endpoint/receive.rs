//! What an endpoint does with a datagram.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use super::answer::{Top, cause_of};
use super::limit::{Overload, Verdict};
use super::{Discard, Elements, Endpoint, Event, Purpose, Role, Transmit, answer_header, message};
use crate::association::{Association, AssociationId, NodeName, Setup, SetupRefused};
use crate::error::{Error, ErrorKind};
use crate::ie::{Cause, IeType};
use crate::message::MessageType;
use crate::transaction::{Admission, TransactionId};
use crate::validate::older;
use crate::wire::{Frame, Header, Sequence, frames};

/// A request of a node that is not answered: no answer has a place for what is wrong, or nobody
/// waits for one.
struct Unanswerable(Discard, String);

impl From<Error> for Unanswerable {
    fn from(error: Error) -> Self {
        Self(Discard::Malformed, error.to_string())
    }
}

impl From<ErrorKind> for Unanswerable {
    fn from(kind: ErrorKind) -> Self {
        Self(Discard::Malformed, kind.to_string())
    }
}

/// Who sent a datagram, and to which of our addresses.
#[derive(Clone, Copy, Debug)]
struct Sender {
    peer: SocketAddr,
    local: Option<u16>,
}

/// What becomes of a request of a node.
enum Deed {
    /// It is answered with these elements.
    Answer(Elements),
    /// The owner answers it, for the peer of this association.
    Owner(AssociationId),
}

impl Endpoint {
    /// Takes a datagram in.
    pub fn handle_datagram(&mut self, now: Instant, peer: SocketAddr, octets: &[u8]) {
        self.handle_datagram_at(now, peer, None, octets);
    }

    /// Takes a datagram in that came to one of several addresses of ours, which the owner counts
    /// as it likes: what is answered says the same number.
    pub fn handle_datagram_at(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        local: Option<u16>,
        octets: &[u8],
    ) {
        let from = Sender { peer, local };
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
                Ok(frame) => self.understand(now, from, &frame),
                Err(error) => {
                    if matches!(error.kind(), ErrorKind::Version(_)) {
                        self.refuse_version(from, &octets[error.offset()..]);
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
    fn refuse_version(&mut self, from: Sender, octets: &[u8]) {
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
                peer: from.peer,
                local: from.local,
                octets: octets.into(),
            });
        }
    }

    /// Takes a message as the release has it.
    fn understand(&mut self, now: Instant, from: Sender, frame: &Frame<'_>) {
        let older = older(frame, self.config.release);
        match older.as_deref().map(Frame::decode) {
            Some(Ok(older)) => self.handle_frame(now, from, &older),
            _ => self.handle_frame(now, from, frame),
        }
    }

    fn handle_frame(&mut self, now: Instant, from: Sender, frame: &Frame<'_>) {
        let peer = from.peer;
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
            self.handle_request(now, from, frame, &top);
        } else {
            self.handle_answer(now, peer, frame, &top);
        }
    }

    fn handle_request(&mut self, now: Instant, from: Sender, frame: &Frame<'_>, top: &Top<'_>) {
        let Sender { peer, local } = from;
        let message_type = frame.header.message_type;
        let id = match self.answers.admit(now, peer, frame) {
            Admission::New(id) => id,
            Admission::Again(octets) => {
                return self.transmits.push_back(Transmit {
                    peer,
                    local,
                    octets,
                });
            }
            Admission::Working => return,
            Admission::Full => {
                return self.discard(now, Discard::Busy, peer, || "too many requests".to_owned());
            }
        };
        if let Some(local) = local {
            self.locals.insert(id, local);
        }
        // A peer that may ask for nothing else still hears that we are there.
        if message_type != MessageType::HEARTBEAT_REQUEST
            && let Verdict::Over(overload) = self.limiter.admit(now, peer.ip())
        {
            return self.over_limit(id, peer, frame, overload);
        }
        if message_type.is_session() {
            return self.session_request(now, peer, frame, top, id);
        }
        match self.node_request(now, from, frame, top) {
            Ok(Deed::Answer(body)) => {
                self.answer(now, id, &frame.header, &body);
                // A peer that reads one message at a time has its answer before a question of ours.
                if let (MessageType::HEARTBEAT_REQUEST, Ok(stamp)) = (message_type, top.recovery())
                {
                    self.stamped(now, peer, stamp);
                }
            }
            Ok(Deed::Owner(association)) => self.events.push_back(Event::NodeRequest {
                transaction: id,
                association,
                octets: Arc::from(frame.octets),
            }),
            Err(Unanswerable(kind, detail)) => {
                self.forget(id);
                self.discard(now, kind, peer, || detail);
            }
        }
    }

    /// Refuses what is more than a peer may ask for; of a session, through the owner, who knows
    /// how the peer calls it.
    fn over_limit(
        &mut self,
        transaction: TransactionId,
        peer: SocketAddr,
        frame: &Frame<'_>,
        overload: Overload,
    ) {
        if frame.header.message_type.is_session() {
            let association = self.associations.from_address(peer);
            let understood = association.is_some_and(Association::understands_overload);
            let overload = match understood {
                true => overload.element(),
                false => Elements::new(),
            };
            return self.events.push_back(Event::OverLimit {
                transaction,
                octets: Arc::from(frame.octets),
                overload,
            });
        }
        let body = self.refusal(frame.header.message_type, Cause::CONGESTION);
        if let Ok(octets) = message(&answer_header(&frame.header, None), body.as_slice()) {
            self.refuse(transaction, octets.into());
        }
    }

    /// Forgets a request that is worked on, as if it had not come.
    fn forget(&mut self, id: TransactionId) {
        self.settled(id);
        self.answers.ignore(id);
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
            Err(_) => self.forget(id),
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

    /// Does what a request of a node asks for, or leaves it to the owner.
    fn node_request(
        &mut self,
        now: Instant,
        from: Sender,
        frame: &Frame<'_>,
        top: &Top<'_>,
    ) -> Result<Deed, Unanswerable> {
        let peer = from.peer;
        let request = frame.header.message_type;
        let node = match request {
            MessageType::HEARTBEAT_REQUEST => {
                top.recovery()?;
                let body = Elements::new().recovery(self.config.recovery);
                return Ok(Deed::Answer(body));
            }
            MessageType::ASSOCIATION_SETUP_REQUEST => {
                self.check_late(now, peer, top)?;
                return Ok(Deed::Answer(self.set_up(now, from, top)));
            }
            MessageType::ASSOCIATION_UPDATE_REQUEST | MessageType::ASSOCIATION_RELEASE_REQUEST => {
                top.node().map(Some)
            }
            _ if self.is_for_owner(request) => match (top.node, top.node()) {
                // PFD management need not say who asks.
                (None, _) if request == MessageType::PFD_MANAGEMENT_REQUEST => Ok(None),
                (_, node) => node.map(Some),
            },
            _ => {
                let body = self.refusal(request, Cause::SERVICE_NOT_SUPPORTED);
                return Ok(Deed::Answer(body));
            }
        };
        let node = match node {
            Ok(node) => node,
            Err(kind) => {
                let body = self.refusal(request, cause_of(kind));
                // Messages about associations have no place for the element.
                let names = self.is_for_owner(request);
                let value = IeType::NODE_ID.0.to_be_bytes();
                return Ok(Deed::Answer(match names {
                    true => body.with(IeType::OFFENDING_IE, &value),
                    false => body,
                }));
            }
        };
        let association = match node {
            Some(node) => self.associations.with(&node),
            None => self.associations.from_address(peer),
        };
        let Some(id) = association
            .filter(|one| one.address.ip() == peer.ip())
            .map(|one| one.id)
        else {
            let body = self.refusal(request, Cause::NO_ESTABLISHED_ASSOCIATION);
            return Ok(Deed::Answer(body));
        };
        if self.is_for_owner(request) {
            self.heard(now, id);
            return Ok(Deed::Owner(id));
        }
        if request == MessageType::ASSOCIATION_RELEASE_REQUEST {
            self.released(id);
        } else {
            self.updated(now, id, frame, top);
        }
        Ok(Deed::Answer(self.refusal(request, Cause::REQUEST_ACCEPTED)))
    }

    /// Says that a request of a node is answered by the owner, in our role.
    fn is_for_owner(&self, request: MessageType) -> bool {
        match self.config.role {
            Role::UserPlane => matches!(
                request,
                MessageType::PFD_MANAGEMENT_REQUEST
                    | MessageType::SESSION_SET_DELETION_REQUEST
                    | MessageType::SESSION_SET_MODIFICATION_REQUEST
            ),
            Role::ControlPlane => request == MessageType::NODE_REPORT_REQUEST,
        }
    }

    fn updated(&mut self, now: Instant, id: AssociationId, frame: &Frame<'_>, top: &Top<'_>) {
        self.heard(now, id);
        self.associations.note(id, top.features, None);
        if let Some(within) = top.wants_release()
            && self.config.role == Role::ControlPlane
        {
            self.events.push_back(Event::ReleaseWanted {
                association: id,
                within,
            });
        }
        self.events.push_back(Event::AssociationUpdated {
            association: id,
            octets: Arc::from(frame.octets),
        });
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

    fn set_up(&mut self, now: Instant, from: Sender, top: &Top<'_>) -> Elements {
        let peer = from.peer;
        let mut retained = false;
        let cause = match (top.node(), top.recovery()) {
            (Err(kind), _) | (_, Err(kind)) => cause_of(kind),
            (Ok(node), Ok(_)) if self.is_one_too_many(&node, peer) => Cause::NO_RESOURCES_AVAILABLE,
            (Ok(node), Ok(recovery)) => match self.associations.set_up(now, node, peer, recovery) {
                Ok(setup) => {
                    self.associations.note(setup.id(), top.features, from.local);
                    let known = !matches!(setup, Setup::New(_));
                    retained = known && top.retains(peer.ip());
                    self.is_up(match retained {
                        true => Setup::Same(setup.id()),
                        false => setup,
                    });
                    Cause::REQUEST_ACCEPTED
                }
                Err(SetupRefused::Claimed { .. }) => Cause::REQUEST_REJECTED,
                Err(SetupRefused::Full { .. }) => Cause::NO_RESOURCES_AVAILABLE,
            },
        };
        let refusal = self.refusal(MessageType::ASSOCIATION_SETUP_REQUEST, cause);
        let body = self.rest_of_identity(refusal);
        match retained {
            // PSREI: the sessions are still there.
            true => body.with(IeType::PFCPASRSP_FLAGS, &[1]),
            false => body,
        }
    }

    /// Says that a host has as many associations as it may, and asks for one more.
    fn is_one_too_many(&self, node: &NodeName, peer: SocketAddr) -> bool {
        let limit = self.config.peer.associations;
        self.associations.with(node).is_none() && self.associations.of_host(peer.ip()) >= limit
    }

    /// Lets a setup of an earlier life of its peer have no effect, nor an answer: its time stamp is
    /// older than that of the last setup, which is not so long ago that it cannot have been on its
    /// way since. A peer whose clock was set back asks again after T1, and then the setup is taken
    /// whatever it says, TS 29.244 §6.2.6.2.2.
    fn check_late(
        &self,
        now: Instant,
        peer: SocketAddr,
        top: &Top<'_>,
    ) -> Result<(), Unanswerable> {
        let (Ok(node), Ok(recovery)) = (top.node(), top.recovery()) else {
            // The answer says what is wrong.
            return Ok(());
        };
        let longest = self.config.retransmission.t1;
        let late = self.associations.with(&node).filter(|known| {
            known.address.ip() == peer.ip()
                && known.set_up_with.is_after(recovery)
                && now < known.since + longest
        });
        late.map_or(Ok(()), |known| {
            let (old, new) = (recovery.0, known.set_up_with.0);
            let detail = format!("Recovery Time Stamp {old} after {new}");
            Err(Unanswerable(Discard::Late, detail))
        })
    }

    fn is_up(&mut self, setup: Setup) {
        let association = setup.id();
        if matches!(setup, Setup::Restarted(_)) {
            self.restarted(association);
        }
        let kept = matches!(setup, Setup::Same(_));
        self.events
            .push_back(Event::AssociationUp { association, kept });
    }

    fn handle_answer(&mut self, now: Instant, peer: SocketAddr, frame: &Frame<'_>, top: &Top<'_>) {
        let Header {
            message_type,
            sequence,
            ..
        } = frame.header;
        let Some(request) = self.requests.answered(peer, sequence, message_type) else {
            // The peer did nothing wrong: its answer and our withdrawal have crossed.
            if self.requests.is_withdrawn(peer, sequence) {
                return;
            }
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
                    Some(Ok(setup)) => {
                        self.associations.note(setup.id(), top.features, None);
                        self.is_up(setup);
                    }
                    Some(Err(_)) | None => {
                        self.events
                            .push_back(Event::AssociationFailed { peer, cause });
                    }
                }
            }
            Purpose::Heartbeat(association) => match top.recovery() {
                Ok(recovery) => self.stamped(now, peer, recovery),
                Err(_) => self.heard(now, association),
            },
            Purpose::Confirm(association) => {
                self.confirmed(now, association, top.recovery().ok());
            }
            Purpose::Release(association) => self.released(association),
            // The peer releases the association when it likes, or does not.
            Purpose::Update(_) => {}
        }
    }
}
