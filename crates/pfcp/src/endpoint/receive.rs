//! The processing of received datagrams.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use super::answer::{TopLevelElements, cause_of};
use super::limit::{LimitDecision, OverloadInfo};
use super::{
    BodyBuilder, DiscardReason, Endpoint, Event, NodeRequestPurpose, Role, Transmit, answer_header,
    message,
};
use crate::association::{Association, AssociationId, NodeName, Recovery};
use crate::error::{Error, ErrorKind};
use crate::ie::{Cause, IeType};
use crate::message::MessageType;
use crate::transaction::{Admission, AnswerRequirement, TransactionId};
use crate::validate::encode_for_older;
use crate::wire::{Frame, Header, Seid, Sequence, frames};

/// A request that is not answered, because no answer can express the error or no peer waits for
/// one.
pub(super) struct UnanswerableRequest(pub(super) DiscardReason, pub(super) String);

impl From<Error> for UnanswerableRequest {
    fn from(error: Error) -> Self {
        Self(DiscardReason::Malformed, error.to_string())
    }
}

impl From<ErrorKind> for UnanswerableRequest {
    fn from(kind: ErrorKind) -> Self {
        Self(DiscardReason::Malformed, kind.to_string())
    }
}

/// The sender of a datagram, and the local address at which it arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender {
    pub(super) peer: SocketAddr,
    pub(super) local: Option<u16>,
}

/// The outcome of a node-related request.
enum NodeRequestOutcome {
    /// The endpoint answers with these elements.
    Answer(BodyBuilder),
    /// The owner answers, for the peer of this association.
    Owner(AssociationId),
}

impl Endpoint {
    /// Processes a datagram.
    pub fn handle_datagram(&mut self, now: Instant, peer: SocketAddr, bytes: &[u8]) {
        self.handle_datagram_at(now, peer, None, bytes);
    }

    /// Processes a datagram that arrived at one of several local addresses, which the owner numbers
    /// as it likes. Answers carry the same number.
    pub fn handle_datagram_at(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        local: Option<u16>,
        bytes: &[u8],
    ) {
        let from = Sender { peer, local };
        self.stats.datagrams += 1;
        if !self.is_allowed(peer.ip()) {
            self.discard(now, DiscardReason::UnknownPeer, peer, || {
                "not on the allow-list".to_owned()
            });
            return;
        }
        if bytes.len() > self.config.datagram {
            let limit = self.config.datagram;
            let have = bytes.len();
            let detail = || format!("{have} bytes, at most {limit}");
            self.discard(now, DiscardReason::Oversized, peer, detail);
            return;
        }
        for frame in frames(bytes) {
            match frame {
                Ok(frame) => self.receive_frame(now, from, &frame),
                Err(error) => {
                    if matches!(error.kind(), ErrorKind::Version(_)) {
                        self.refuse_version(from, &bytes[error.offset()..]);
                    }
                    self.discard(now, DiscardReason::Malformed, peer, || error.to_string());
                }
            }
        }
    }

    /// Returns `true` if an address is on the allow-list.
    pub(super) fn is_allowed(&self, address: IpAddr) -> bool {
        let mut networks = self.config.allowed.iter();
        networks.any(|network| network.contains(address))
    }

    fn discard(
        &mut self,
        now: Instant,
        kind: DiscardReason,
        peer: SocketAddr,
        detail: impl FnOnce() -> String,
    ) {
        let event = self.discards.count(now, kind, peer, detail);
        self.events.extend(event);
    }

    /// Answers a message of another version, TS 29.244 §7.4.4.7. The sequence number is taken from
    /// where version 1 has it. A Version Not Supported Response is not answered.
    fn refuse_version(&mut self, from: Sender, bytes: &[u8]) {
        let Some(&[flags, message_type, ..]) = bytes.first_chunk::<2>() else {
            return;
        };
        let at = if flags & 1 == 0 { 4 } else { 12 };
        let Some(&[a, b, c]) = bytes.get(at..).and_then(|rest| rest.first_chunk()) else {
            return;
        };
        if message_type == MessageType::VERSION_NOT_SUPPORTED_RESPONSE.0 {
            return;
        }
        let sequence = Sequence::new(u32::from_be_bytes([0, a, b, c]));
        let header = Header::node(MessageType::VERSION_NOT_SUPPORTED_RESPONSE, sequence);
        if let Ok(bytes) = message(&header, &[]) {
            self.transmits.push_back(Transmit {
                peer: from.peer,
                local: from.local,
                bytes: bytes.into(),
            });
        }
    }

    /// Converts a message to the configured release and handles it.
    fn receive_frame(&mut self, now: Instant, from: Sender, frame: &Frame<'_>) {
        let older = encode_for_older(frame, self.config.release);
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
            self.discard(now, DiscardReason::UnknownMessage, peer, detail);
            return;
        }
        if message_type.is_session() != header.seid.is_some() {
            self.discard(now, DiscardReason::Malformed, peer, || {
                ErrorKind::SeidFlag.to_string()
            });
            return;
        }
        // A body that does not consist of elements must not take a slot among the kept answers.
        let top = match TopLevelElements::of(frame) {
            Ok(top) => top,
            Err(error) => {
                let error = error.in_message(message_type);
                self.discard(now, DiscardReason::Malformed, peer, || error.to_string());
                return;
            }
        };
        if message_type.is_request() {
            self.handle_request(now, from, frame, &top);
        } else {
            self.handle_answer(now, peer, frame, &top);
        }
    }

    fn handle_request(
        &mut self,
        now: Instant,
        from: Sender,
        frame: &Frame<'_>,
        top: &TopLevelElements<'_>,
    ) {
        let Sender { peer, local } = from;
        let message_type = frame.header.message_type;
        let id = match self.answers.admit(now, peer, frame) {
            Admission::New(id) => id,
            Admission::Retransmitted(bytes) => {
                return self.transmits.push_back(Transmit { peer, local, bytes });
            }
            Admission::Working => return,
            Admission::Full => {
                return self.discard(now, DiscardReason::Busy, peer, || {
                    "too many requests".to_owned()
                });
            }
        };
        if let Some(local) = local {
            self.locals.insert(id, local);
        }
        // Heartbeats are exempt from the limits, so that a peer over its limits still sees that we
        // are alive.
        if message_type != MessageType::HEARTBEAT_REQUEST
            && let LimitDecision::Exceeded(overload) = self.limiter.admit(now, peer.ip())
        {
            return self.over_limit(id, peer, frame, overload);
        }
        if message_type.is_session() {
            return self.session_request(now, peer, frame, top, id);
        }
        match self.node_request(now, from, frame, top, id) {
            Ok(NodeRequestOutcome::Answer(body)) => {
                self.answer(now, id, &frame.header, &body);
                // The answer goes first, for peers that process one message at a time.
                if let (MessageType::HEARTBEAT_REQUEST, Ok(stamp)) = (message_type, top.recovery())
                {
                    self.evaluate_stamp(now, peer, stamp);
                }
            }
            Ok(NodeRequestOutcome::Owner(association)) => {
                self.events.push_back(Event::NodeRequest {
                    transaction: id,
                    association,
                    bytes: Arc::from(frame.bytes),
                })
            }
            Err(UnanswerableRequest(kind, detail)) => {
                self.forget(id);
                self.discard(now, kind, peer, || detail);
            }
        }
    }

    /// Refuses a request over the limits of its peer. A session-related one is refused through the
    /// owner, who knows the SEID of the peer.
    fn over_limit(
        &mut self,
        transaction: TransactionId,
        peer: SocketAddr,
        frame: &Frame<'_>,
        overload: OverloadInfo,
    ) {
        if frame.header.message_type.is_session() {
            let association = self.associations.from_address(peer);
            let understood = association.is_some_and(Association::understands_overload);
            let overload = match understood {
                true => overload.element(),
                false => BodyBuilder::new(),
            };
            return self.events.push_back(Event::OverLimit {
                transaction,
                bytes: Arc::from(frame.bytes),
                overload,
            });
        }
        let body = self.refusal(frame.header.message_type, Cause::CONGESTION);
        if let Ok(bytes) = message(&answer_header(&frame.header, None), body.as_slice()) {
            self.refuse(transaction, bytes.into());
        }
    }

    /// Drops a pending request, as if it had not arrived.
    fn forget(&mut self, id: TransactionId) {
        self.finish_request(id);
        self.answers.ignore(id);
    }

    pub(super) fn answer(
        &mut self,
        now: Instant,
        id: TransactionId,
        request: &Header,
        body: &BodyBuilder,
    ) {
        match message(&answer_header(request, None), body.as_slice()) {
            Ok(bytes) => self.respond(now, id, bytes.into()),
            Err(_) => self.forget(id),
        }
    }

    /// Returns the body of an answer that consists of a cause and, if the answer has one, our Node
    /// ID.
    pub(super) fn refusal(&self, request: MessageType, cause: Cause) -> BodyBuilder {
        let named = !request.is_session() || request == MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let body = BodyBuilder::new();
        let body = if named {
            body.node(&self.config.node)
        } else {
            body
        };
        body.cause(cause)
    }

    /// Passes a session-related request to the owner, unless it has the wrong direction.
    fn session_request(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        frame: &Frame<'_>,
        top: &TopLevelElements<'_>,
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
            .and_then(|node| self.associations.get_by_node(&node));
        let association = match named {
            Some(association) if !association.is_at(peer.ip()) => {
                let id = association.id;
                self.report_claim(now, peer, id);
                None
            }
            Some(association) => Some(association.id),
            None if top.node.is_some() => None,
            None => self
                .associations
                .from_address(peer)
                .map(|association| association.id),
        };
        if let Some(association) = association {
            self.attribute(transaction, association);
            self.on_peer_alive(now, association);
        }
        let bytes = Arc::from(frame.bytes);
        self.events.push_back(Event::SessionRequest {
            transaction,
            peer,
            association,
            bytes,
        });
    }

    /// Processes a node-related request, or leaves it to the owner.
    fn node_request(
        &mut self,
        now: Instant,
        from: Sender,
        frame: &Frame<'_>,
        top: &TopLevelElements<'_>,
        transaction: TransactionId,
    ) -> Result<NodeRequestOutcome, UnanswerableRequest> {
        let peer = from.peer;
        let request = frame.header.message_type;
        let node = match request {
            MessageType::HEARTBEAT_REQUEST => {
                top.recovery()?;
                let body = BodyBuilder::new().recovery(self.config.recovery);
                return Ok(NodeRequestOutcome::Answer(body));
            }
            MessageType::ASSOCIATION_SETUP_REQUEST => {
                self.check_late(now, peer, top)?;
                return Ok(NodeRequestOutcome::Answer(self.set_up(now, from, top)));
            }
            MessageType::ASSOCIATION_UPDATE_REQUEST | MessageType::ASSOCIATION_RELEASE_REQUEST => {
                top.node().map(Some)
            }
            _ if self.is_for_owner(request) => match (top.node, top.node()) {
                // A PFD management request may omit the Node ID.
                (None, _) if request == MessageType::PFD_MANAGEMENT_REQUEST => Ok(None),
                (_, node) => node.map(Some),
            },
            _ => {
                let body = self.refusal(request, Cause::SERVICE_NOT_SUPPORTED);
                return Ok(NodeRequestOutcome::Answer(body));
            }
        };
        let node = match node {
            Ok(node) => node,
            Err(kind) => {
                let body = self.refusal(request, cause_of(kind));
                // The answers about associations have no Offending IE.
                let names = self.is_for_owner(request);
                let value = IeType::NODE_ID.0.to_be_bytes();
                return Ok(NodeRequestOutcome::Answer(match names {
                    true => body.with(IeType::OFFENDING_IE, &value),
                    false => body,
                }));
            }
        };
        let association = match node {
            Some(node) => self.associations.get_by_node(&node),
            None => self.associations.from_address(peer),
        };
        let (id, is_its_own) = match association {
            Some(one) => (Some(one.id), one.is_at(peer.ip())),
            None => (None, false),
        };
        let Some(id) = id.filter(|_| is_its_own) else {
            if let Some(id) = id {
                self.report_claim(now, peer, id);
            }
            let body = self.refusal(request, Cause::NO_ESTABLISHED_ASSOCIATION);
            return Ok(NodeRequestOutcome::Answer(body));
        };
        self.attribute(transaction, id);
        if self.is_for_owner(request) {
            self.on_peer_alive(now, id);
            return Ok(NodeRequestOutcome::Owner(id));
        }
        if request == MessageType::ASSOCIATION_RELEASE_REQUEST {
            self.released(id);
        } else {
            self.updated(now, id, frame, top);
        }
        Ok(NodeRequestOutcome::Answer(
            self.refusal(request, Cause::REQUEST_ACCEPTED),
        ))
    }

    /// Returns `true` if the owner answers this node-related request in our role.
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

    fn updated(
        &mut self,
        now: Instant,
        id: AssociationId,
        frame: &Frame<'_>,
        top: &TopLevelElements<'_>,
    ) {
        self.on_peer_alive(now, id);
        self.associations.store_properties(id, top.features, None);
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
            bytes: Arc::from(frame.bytes),
        });
    }

    fn handle_answer(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        frame: &Frame<'_>,
        top: &TopLevelElements<'_>,
    ) {
        let Header {
            message_type,
            sequence,
            ..
        } = frame.header;
        if let Some(expected) = self.requests.expected(peer, sequence, message_type)
            && let Err(detail) = check_session_answer(expected, &frame.header, top)
        {
            return self.discard(now, DiscardReason::Malformed, peer, || detail);
        }
        let Some(request) = self.requests.answered(peer, sequence, message_type) else {
            // This is not an error of the peer: its answer and our withdrawal have crossed.
            if self.requests.is_withdrawn(peer, sequence) {
                return;
            }
            let detail = || format!("{message_type} {sequence} fits no request");
            self.discard(now, DiscardReason::Unexpected, peer, detail);
            return;
        };
        let Some(purpose) = self.purposes.remove(&request) else {
            let bytes = Arc::from(frame.bytes);
            self.events.push_back(Event::Response {
                request,
                peer,
                bytes,
            });
            return;
        };
        self.node_answer(now, peer, (message_type, top), purpose);
    }

    fn node_answer(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        (message_type, top): (MessageType, &TopLevelElements<'_>),
        purpose: NodeRequestPurpose,
    ) {
        match purpose {
            NodeRequestPurpose::Associate => {
                let cause = top.cause().ok();
                let is_refusal = cause.is_some_and(|cause| !cause.is_acceptance());
                let setup = accepted_setup(message_type, top).and_then(|(node, recovery)| {
                    let setup = self.associations.set_up(now, node, peer, recovery);
                    setup.map_err(|error| error.to_string())
                });
                match setup {
                    Ok(setup) => {
                        self.associations
                            .store_properties(setup.id(), top.features, None);
                        self.forget_answers(setup);
                        self.push_association_up(setup);
                    }
                    Err(reason) => self.events.push_back(Event::AssociationFailed {
                        peer,
                        cause,
                        invalid: (!is_refusal).then_some(reason),
                    }),
                }
            }
            NodeRequestPurpose::Heartbeat(association) => match top.recovery() {
                Ok(recovery) => self.evaluate_stamp(now, peer, recovery),
                Err(kind) => {
                    self.without_stamp(now, peer, message_type, kind);
                    self.on_peer_alive(now, association);
                }
            },
            NodeRequestPurpose::Confirm(association) => {
                let stamp = top.recovery();
                if let Err(kind) = stamp {
                    self.without_stamp(now, peer, message_type, kind);
                }
                self.confirmed(now, association, stamp.ok());
            }
            // The sessions of the association have ended locally, so its end does not depend on the
            // answer.
            NodeRequestPurpose::Release(association) => {
                self.release_answered(association, peer, message_type, top);
                self.released(association);
            }
            // The peer decides whether and when it releases the association.
            NodeRequestPurpose::Update(association) => {
                self.release_answered(association, peer, message_type, top);
            }
        }
    }

    /// Reports the answer to a heartbeat that has no Recovery Time Stamp. It proves that the peer
    /// is there, but not which of its incarnations.
    fn without_stamp(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        message_type: MessageType,
        kind: ErrorKind,
    ) {
        let detail = || {
            format!(
                "{message_type}: {}",
                fault(IeType::RECOVERY_TIME_STAMP)(kind)
            )
        };
        self.discard(now, DiscardReason::Malformed, peer, detail);
    }

    fn release_answered(
        &mut self,
        association: AssociationId,
        peer: SocketAddr,
        message_type: MessageType,
        top: &TopLevelElements<'_>,
    ) {
        let cause = valid_cause(message_type, top);
        let (cause, invalid) = match (cause, top.node()) {
            (Ok(cause), Err(kind)) if cause.is_acceptance() => {
                (None, Some(fault(IeType::NODE_ID)(kind)))
            }
            (Ok(cause), _) => (Some(cause), None),
            (Err(reason), _) => (None, Some(reason)),
        };
        self.events.push_back(Event::ReleaseAnswered {
            association,
            peer,
            cause,
            invalid,
        });
    }
}

/// Returns the Cause of an answer, or the reason why the answer cannot be used.
fn valid_cause(message_type: MessageType, top: &TopLevelElements<'_>) -> Result<Cause, String> {
    if message_type == MessageType::VERSION_NOT_SUPPORTED_RESPONSE {
        return Err("the peer does not support PFCP version 1".to_owned());
    }
    top.cause().map_err(fault(IeType::CAUSE))
}

/// Names the element that an error is about.
fn fault(ie: IeType) -> impl Fn(ErrorKind) -> String {
    move |kind| match kind {
        ErrorKind::Missing(_) => kind.to_string(),
        _ => format!("{ie}: {kind}"),
    }
}

/// Returns what an Association Setup Response that accepts must contain, TS 29.244 §7.4.4.2, or the
/// first element that is missing or malformed.
fn accepted_setup(
    message_type: MessageType,
    top: &TopLevelElements<'_>,
) -> Result<(NodeName, Recovery), String> {
    let cause = valid_cause(message_type, top)?;
    if !cause.is_acceptance() {
        return Err(cause.to_string());
    }
    let node = top.node().map_err(fault(IeType::NODE_ID))?;
    let recovery = top.recovery();
    Ok((node, recovery.map_err(fault(IeType::RECOVERY_TIME_STAMP))?))
}

/// Checks that the answer to a request about a session is about that session: it carries our SEID,
/// or SEID 0 if the peer refuses because it does not know the session (TS 29.244 §7.2.2.4.2). If
/// the owner relies on it, also checks the Cause, which is mandatory in all of these answers.
fn check_session_answer(
    expected: AnswerRequirement,
    header: &Header,
    top: &TopLevelElements<'_>,
) -> Result<(), String> {
    let (message_type, local) = (header.message_type, expected.seid);
    let cause = top.cause();
    if let (true, Err(kind)) = (expected.cause, cause) {
        return Err(format!("{message_type}: {}", fault(IeType::CAUSE)(kind)));
    }
    let accepts = cause.is_ok_and(Cause::is_acceptance);
    match header.seid {
        Some(seid) if seid == local => Ok(()),
        Some(Seid(0)) if !accepts => Ok(()),
        seid => {
            let seid = seid.unwrap_or_default();
            Err(format!("{message_type} has SEID {seid}, expected {local}"))
        }
    }
}
