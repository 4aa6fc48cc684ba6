//! A node on the N4 interface, without I/O: bytes and time in, bytes and events out.
//!
//! An endpoint combines [transactions](crate::transaction), [associations](crate::association) and
//! heartbeats. It answers messages that concern the node itself. Messages that concern a session
//! are passed as an [`Event`] to the owner of the sessions.

mod answer;
mod associate;
mod discard;
mod event;
mod limit;
mod network;
mod receive;
mod restart;
mod withdraw;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

pub use answer::{BodyBuilder, answer_header, message};
pub use discard::{DiscardReason, DiscardReportLimiter};
pub use event::Event;
pub use limit::PeerLimits;
pub use network::{Network, NetworkError};

use crate::association::{
    Association, AssociationId, Associations, NamedPeer, NodeName, Recovery, RestartSign,
};
use crate::error::Error;
use crate::ie::{Cause, Release};
use crate::message::MessageType;
use crate::transaction::{
    AnswerRequirement, OutstandingRequest, RequestId, RequestOrigin, Requests, RequestsFull,
    ResponseCache, ResponseCacheLimits, ResponseKey, Retransmission, TimerAction, TransactionId,
};
use crate::validate::encode_for_older;
use crate::wire::{Frame, Header, Seid, Sequence};
use discard::DiscardCounters;
use limit::Limiter;

/// The role of a node: its side of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// An SMF, or the control plane of a gateway. It requests sessions.
    ControlPlane,
    /// A UPF, or the user plane of a gateway. It holds the sessions.
    UserPlane,
}

impl Role {
    /// Returns the requests that a node in this role may send, TS 29.244 Table 7.3-1.
    #[must_use]
    pub const fn requests(self) -> &'static [MessageType] {
        match self {
            Self::ControlPlane => &[
                MessageType::HEARTBEAT_REQUEST,
                MessageType::PFD_MANAGEMENT_REQUEST,
                MessageType::ASSOCIATION_SETUP_REQUEST,
                MessageType::ASSOCIATION_UPDATE_REQUEST,
                MessageType::ASSOCIATION_RELEASE_REQUEST,
                MessageType::SESSION_SET_DELETION_REQUEST,
                MessageType::SESSION_SET_MODIFICATION_REQUEST,
                MessageType::SESSION_ESTABLISHMENT_REQUEST,
                MessageType::SESSION_MODIFICATION_REQUEST,
                MessageType::SESSION_DELETION_REQUEST,
            ],
            Self::UserPlane => &[
                MessageType::HEARTBEAT_REQUEST,
                MessageType::ASSOCIATION_SETUP_REQUEST,
                MessageType::ASSOCIATION_UPDATE_REQUEST,
                MessageType::NODE_REPORT_REQUEST,
                MessageType::SESSION_SET_DELETION_REQUEST,
                MessageType::SESSION_REPORT_REQUEST,
            ],
        }
    }
}

/// The configuration of an [`Endpoint`].
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The role of the node.
    pub role: Role,
    /// The Node ID of the node.
    pub node: NodeName,
    /// The time at which the node started. A larger value tells peers that all sessions are gone.
    pub recovery: Recovery,
    /// The release that the node speaks. Anything newer is removed from messages that are sent and
    /// ignored in messages that are received, TS 29.244 §7.6.
    pub release: Release,
    /// The value of UP Function Features or CP Function Features, depending on the role.
    pub features: Vec<u8>,
    /// The requests that the owner sends, all of [`Role::requests`] by default. Others are refused
    /// with [`RequestError::NotSent`]: the owner has no rule for their answers.
    pub sends: &'static [MessageType],
    /// The networks from which datagrams are accepted. All others are discarded.
    pub allowed: Vec<Network>,
    /// The retransmission timer and count of requests.
    pub retransmission: Retransmission,
    /// The bounds on the answers kept for repeated requests.
    pub answers: ResponseCacheLimits,
    /// The time without traffic after which a peer is sent a heartbeat, or `None` for no
    /// heartbeats.
    pub heartbeat: Option<Duration>,
    /// The sign by which the restart of a peer is detected, by the address of the peer. The first
    /// network that contains the address applies; peers in none of them use
    /// [`RestartSign::Heartbeat`].
    pub restarts: Vec<(Network, RestartSign)>,
    /// Peers whose Node IDs are bound to addresses. One of the `associations` is reserved for each.
    pub named: Vec<NamedPeer>,
    /// Maximum number of associations.
    pub associations: usize,
    /// Maximum number of our own requests that wait for answers.
    pub requests: usize,
    /// The limits of a single peer.
    pub peer: PeerLimits,
    /// Maximum number of bytes of a datagram.
    pub datagram: usize,
    /// The sequence number of the first request.
    pub first_sequence: Sequence,
    /// The seed for the digests of requests. Keep it secret from peers. Equal seeds give equal
    /// runs.
    pub seed: u64,
}

impl EndpointConfig {
    /// Creates a configuration with defaults: peers on loopback only, 64 associations, 65 536
    /// requests, datagrams of up to 65 507 bytes, and a heartbeat after 10 s.
    #[must_use]
    pub fn new(role: Role, node: NodeName, recovery: Recovery) -> Self {
        let loopback = ["127.0.0.0/8", "::1"];
        Self {
            role,
            node,
            recovery,
            release: Release::default(),
            features: match role {
                Role::UserPlane => vec![0; 2],
                Role::ControlPlane => vec![0],
            },
            sends: role.requests(),
            allowed: loopback
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect(),
            retransmission: Retransmission::default(),
            answers: ResponseCacheLimits::default(),
            heartbeat: Some(Duration::from_secs(10)),
            restarts: Vec::new(),
            named: Vec::new(),
            associations: 64,
            requests: 65_536,
            peer: PeerLimits::default(),
            datagram: 65_507,
            first_sequence: Sequence::new(1),
            seed: 0,
        }
    }
}

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Address and port to send to.
    pub peer: SocketAddr,
    /// The local address to send from: the number that the request came with in
    /// [`Endpoint::handle_datagram_at`], or that of the association. `None` for any.
    pub local: Option<u16>,
    /// The bytes of the datagram.
    pub bytes: Arc<[u8]>,
}

/// Counters and gauges of an [`Endpoint`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Number of datagrams received.
    pub datagrams: u64,
    /// Number of repeated requests, which were answered with kept answers.
    pub repeated: u64,
    /// Number of kept answers that were evicted early because of a limit.
    pub evicted: u64,
    /// Number of retransmissions of our requests.
    pub retransmitted: u64,
    /// Number of our requests that were not answered.
    pub unanswered: u64,
    /// Number of requests refused because their sender exceeded its limits.
    pub limited: u64,
    /// Number of restarts of peers: setups with another stamp, and heartbeats that the peer
    /// confirmed.
    pub restarts: u64,
    /// Number of restarts that a heartbeat claimed and the peer denied.
    pub restarts_denied: u64,
    /// Number of heartbeats with a later stamp from peers that are known to restart only with a
    /// setup.
    pub stamps_ignored: u64,
    /// Number of setups refused because the Node ID does not belong to the sender, or for lack of
    /// resources.
    pub setups_refused: u64,
    /// Number of requests, setups among them, refused because their Node ID belongs to another
    /// peer.
    pub claims_refused: u64,
    /// Number of our requests that wait for an answer now.
    pub waiting: usize,
    /// Number of requests of peers that are being processed now.
    pub working: usize,
    /// Number of answers kept now.
    pub answers: usize,
}

/// The purpose of a node-related request of ours.
#[derive(Clone, Copy, Debug)]
enum NodeRequestPurpose {
    Associate,
    Heartbeat(AssociationId),
    /// A heartbeat that asks a peer whether it has restarted.
    Confirm(AssociationId),
    Release(AssociationId),
    Update(AssociationId),
}

/// A node on the N4 interface.
///
/// There are four kinds of methods. Getters take `&self`. Input from outside goes in through
/// [`Endpoint::handle_datagram`] and [`Endpoint::handle_timeout`]. Requests of the owner go in
/// through [`Endpoint::associate`], [`Endpoint::release`], [`Endpoint::request`],
/// [`Endpoint::respond`], [`Endpoint::refuse`] and [`Endpoint::abandon`]. After each of these
/// calls, the owner drains [`Endpoint::poll_transmit`] and [`Endpoint::poll_event`], and then calls
/// [`Endpoint::poll_timeout`], which returns the time of the next call to `handle_timeout`.
///
/// Time never goes backwards: every `now` is at or after the previous one.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    associations: Associations,
    requests: Requests,
    purposes: FxHashMap<RequestId, NodeRequestPurpose>,
    answers: ResponseCache,
    limiter: Limiter,
    /// The local addresses at which pending requests arrived, if the owner provided them.
    locals: FxHashMap<TransactionId, u16>,
    discards: DiscardCounters,
    /// Limits how often refused setups are reported.
    refusals: DiscardReportLimiter<IpAddr>,
    stats: EndpointStats,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
}

impl Endpoint {
    /// Creates an endpoint without associations.
    #[must_use]
    pub fn new(config: EndpointConfig) -> Self {
        Self {
            associations: Associations::new(config.associations, config.heartbeat)
                .with_named(&config.named),
            requests: Requests::new(
                config.retransmission,
                config.requests,
                config.first_sequence,
            ),
            purposes: FxHashMap::default(),
            answers: ResponseCache::new(config.answers, config.seed),
            limiter: Limiter::new(config.peer),
            locals: FxHashMap::default(),
            discards: DiscardCounters::default(),
            refusals: DiscardReportLimiter::default(),
            stats: EndpointStats::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            config,
        }
    }

    /// Advances time: retransmits requests, sends heartbeats, and drops expired answers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.answers.expire(now);
        while let Some(due) = self.requests.poll_due(now) {
            match due {
                TimerAction::Retransmit {
                    peer, about, bytes, ..
                } => {
                    self.stats.retransmitted += 1;
                    self.send((peer, about), bytes);
                }
                TimerAction::Failed { request, peer } => self.failed(now, request, peer),
            }
        }
        while let Some((association, peer)) = self.associations.poll_heartbeat(now) {
            if self
                .send_heartbeat(now, peer, NodeRequestPurpose::Heartbeat(association))
                .is_err()
            {
                // No request slot is free for the heartbeat, so nothing is known about the peer.
                self.on_peer_alive(now, association);
            }
        }
    }

    fn send_heartbeat(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        purpose: NodeRequestPurpose,
    ) -> Result<(), RequestsFull> {
        let body = BodyBuilder::new().recovery(self.config.recovery);
        let kind = MessageType::HEARTBEAT_REQUEST;
        self.queue_request(now, peer, kind, &body, purpose)
    }

    /// Queues a request of ours.
    fn send(&mut self, (peer, about): (SocketAddr, Option<AssociationId>), bytes: Arc<[u8]>) {
        let association = about.and_then(|id| self.associations.get(id));
        // A local address of one family reaches no peer of the other.
        let association = association.filter(|one| one.address.is_ipv4() == peer.is_ipv4());
        let association = association.or_else(|| self.associations.from_address(peer));
        let local = association.and_then(|association| association.local);
        self.transmits.push_back(Transmit { peer, local, bytes });
    }

    /// Records that a peer was heard.
    fn on_peer_alive(&mut self, now: Instant, association: AssociationId) {
        if self.associations.on_peer_alive(now, association) {
            self.events.push_back(Event::PeerHeard { association });
        }
    }

    fn failed(&mut self, now: Instant, request: RequestId, peer: SocketAddr) {
        self.stats.unanswered += 1;
        match self.purposes.remove(&request) {
            Some(NodeRequestPurpose::Associate) => {
                self.events.push_back(Event::AssociationFailed {
                    peer,
                    cause: None,
                    invalid: None,
                });
            }
            // Without an answer, the inquiry about a restart has become a path failure.
            Some(
                NodeRequestPurpose::Heartbeat(association)
                | NodeRequestPurpose::Confirm(association),
            ) => {
                self.associations.inquiry_unanswered(association);
                if self.associations.on_heartbeat_timeout(now, association) {
                    self.events.push_back(Event::PeerSilent { association });
                }
            }
            Some(NodeRequestPurpose::Release(association)) => {
                self.events
                    .push_back(Event::release_unanswered(association, peer));
                self.released(association);
            }
            Some(NodeRequestPurpose::Update(association)) => self
                .events
                .push_back(Event::release_unanswered(association, peer)),
            None => self
                .events
                .push_back(Event::RequestFailed { request, peer }),
        }
    }

    fn released(&mut self, association: AssociationId) {
        if let Some(association) = self.associations.remove(association) {
            self.withdraw_about(association.id);
            self.events
                .push_back(Event::AssociationReleased { association });
        }
    }

    fn queue_request(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        message_type: MessageType,
        body: &BodyBuilder,
        purpose: NodeRequestPurpose,
    ) -> Result<(), RequestsFull> {
        let sequence = self.requests.sequence(peer)?;
        let header = Header::node(message_type, sequence);
        let to = (peer, purpose.association());
        let sent = self.send_request(now, to, &header, body.as_slice());
        debug_assert!(sent.is_ok(), "{message_type} is not sent: {sent:?}");
        if let Ok(request) = sent {
            self.purposes.insert(request, purpose);
        }
        Ok(())
    }

    /// Sends a request about a session of ours, like [`Endpoint::request`]. `remote` is the SEID
    /// chosen by the peer, and `local` the one chosen by us: an answer about another session is
    /// discarded, and the request is sent again as if it had not been answered.
    ///
    /// # Errors
    /// Returns the errors of [`Endpoint::request`].
    pub fn request_about_session(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        message_type: MessageType,
        (remote, local): (Seid, Seid),
        body: &[u8],
    ) -> Result<RequestId, RequestError> {
        let sequence = self.requests.sequence(peer)?;
        let header = Header::session(message_type, remote, sequence);
        let request = self.send_request(now, (peer, None), &header, body)?;
        let outstanding = OutstandingRequest {
            request,
            peer,
            sequence,
        };
        let (seid, cause) = (local, false);
        self.requests
            .expect(outstanding, AnswerRequirement { seid, cause });
        Ok(request)
    }

    /// Sends a session-related request, or another request on behalf of the owner. The outcome is
    /// [`Event::Response`] or [`Event::RequestFailed`]. `seid` is the SEID chosen by the peer, or 0
    /// if it has not chosen one yet; node-related messages have none.
    ///
    /// # Errors
    /// Returns an error if too many requests are waiting for answers, or the body does not fit into
    /// a message.
    pub fn request(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        message_type: MessageType,
        seid: Seid,
        body: &[u8],
    ) -> Result<RequestId, RequestError> {
        let sequence = self.requests.sequence(peer)?;
        let mut header = Header::node(message_type, sequence);
        header.seid = message_type.is_session().then_some(seid);
        self.send_request(now, (peer, None), &header, body)
    }

    fn send_request(
        &mut self,
        now: Instant,
        (peer, about): (SocketAddr, Option<AssociationId>),
        header: &Header,
        body: &[u8],
    ) -> Result<RequestId, RequestError> {
        let message_type = header.message_type;
        if !self.config.sends.contains(&message_type) {
            return Err(RequestError::NotSent { message_type });
        }
        let bytes = self.encode_for_release(message(header, body)?.into());
        let answer = header.message_type.response().unwrap_or(MessageType(0));
        let sequence = header.sequence;
        let waiting = Arc::clone(&bytes);
        let request = self
            .requests
            .sent(now, (peer, sequence), about, answer, waiting);
        self.send((peer, about), bytes);
        Ok(request)
    }

    /// Answers a request with an encoded message, and keeps the answer for repetitions of the
    /// request. Does nothing if the request was abandoned.
    pub fn respond(&mut self, now: Instant, transaction: TransactionId, bytes: Arc<[u8]>) {
        let bytes = self.encode_for_release(bytes);
        let local = self.finish_request(transaction);
        if let Some(peer) = self.answers.answer(now, transaction, Arc::clone(&bytes)) {
            self.transmits.push_back(Transmit { peer, local, bytes });
        }
    }

    /// Answers the request of an [`Event::OverLimit`] without keeping the answer: the answers to a
    /// flood must not evict answers that other peers may ask for again.
    pub fn refuse(&mut self, transaction: TransactionId, bytes: Arc<[u8]>) {
        let bytes = self.encode_for_release(bytes);
        let local = self.locals.remove(&transaction);
        if let Some(peer) = self.answers.peer(transaction) {
            self.answers.ignore(transaction);
            self.transmits.push_back(Transmit { peer, local, bytes });
        }
    }

    /// Returns a message in the form of the configured release, for sending.
    fn encode_for_release(&self, bytes: Arc<[u8]>) -> Arc<[u8]> {
        if self.config.release == Release::R19 {
            return bytes;
        }
        let frame = Frame::decode(&bytes).ok();
        let older = frame.and_then(|frame| encode_for_older(&frame, self.config.release));
        older.map_or(bytes, Arc::from)
    }

    /// Abandons the processing of a request, for example after a panic. When the peer repeats the
    /// request, it is processed afresh. After [`ResponseCacheLimits::attempts`] attempts it is
    /// answered with Cause 77 (System failure).
    pub fn abandon(&mut self, now: Instant, transaction: TransactionId) {
        let key = self.answers.key(transaction);
        match self.answers.abandon(now, transaction) {
            Some(header) => {
                let body = self.refusal(header.message_type, Cause::SYSTEM_FAILURE);
                self.answer(now, transaction, &header, &body);
            }
            None => _ = key.map(|key| self.finish_with_key(transaction, key)),
        }
    }

    /// Records that a request is no longer being processed, and returns the local address at which
    /// it arrived.
    fn finish_request(&mut self, transaction: TransactionId) -> Option<u16> {
        let key = self.answers.key(transaction)?;
        self.finish_with_key(transaction, key)
    }

    fn finish_with_key(&mut self, transaction: TransactionId, key: ResponseKey) -> Option<u16> {
        // Heartbeats do not count against the limits of a peer.
        if key.message_type != MessageType::HEARTBEAT_REQUEST {
            self.limiter.done(key.peer.ip());
        }
        self.locals.remove(&transaction)
    }

    /// Returns the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the time at which [`Endpoint::handle_timeout`] is to be called next.
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        let due = [
            self.requests.poll_timeout(),
            self.associations.poll_timeout(),
        ];
        due.into_iter().flatten().min()
    }

    /// Returns the associations.
    #[must_use]
    pub fn associations(&self) -> &Associations {
        &self.associations
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }

    /// Restores an association from before its owner restarted.
    ///
    /// # Errors
    /// Returns the same errors as a setup by the peer.
    pub fn restore(
        &mut self,
        now: Instant,
        node: NodeName,
        address: SocketAddr,
        recovery: Recovery,
    ) -> Result<AssociationId, crate::association::SetupError> {
        let setup = self.associations.set_up(now, node, address, recovery)?;
        Ok(setup.id())
    }

    /// Returns the key by which repetitions of a pending request are recognized.
    #[must_use]
    pub fn answer_key(&self, transaction: TransactionId) -> Option<ResponseKey> {
        self.answers.key(transaction)
    }

    /// Assigns a pending request to an association, for requests that only their owner can assign:
    /// those that name a session, from a host with several associations. The request and its answer
    /// are dropped when the peer restarts.
    pub fn attribute(&mut self, transaction: TransactionId, association: AssociationId) {
        if let Some(origin) = self.associations.get(association).map(Self::origin) {
            self.answers.attribute(transaction, origin);
        }
    }

    fn origin(association: &Association) -> RequestOrigin {
        RequestOrigin {
            association: association.id,
            recovery: association.recovery,
        }
    }

    /// Restores an answer from before its owner restarted. `left` is the remaining time for which
    /// it is kept. The seed must be the one that the answer was given with, and the association of
    /// the peer must have been restored.
    pub fn restore_answer(
        &mut self,
        now: Instant,
        left: Duration,
        key: ResponseKey,
        bytes: Arc<[u8]>,
    ) {
        let origin = self.associations.from_address(key.peer).map(Self::origin);
        self.answers.restore(now, left, (key, origin), bytes);
    }

    /// Returns the counters and gauges.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        EndpointStats {
            repeated: self.answers.repeated(),
            evicted: self.answers.evicted(),
            limited: self.limiter.refused(),
            waiting: self.requests.len(),
            working: self.answers.working(),
            answers: self.answers.len() - self.answers.working(),
            ..self.stats
        }
    }

    /// Returns the number of messages or datagrams of a kind that were discarded.
    #[must_use]
    pub fn discarded(&self, kind: DiscardReason) -> u64 {
        self.discards.total(kind)
    }
}

/// The error returned when a request cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The maximum number of requests is already waiting for answers.
    #[error(transparent)]
    Full(#[from] RequestsFull),
    /// The body does not fit into a message.
    #[error(transparent)]
    Message(#[from] Error),
    /// The association does not exist.
    #[error("no such association")]
    NoAssociation,
    /// The node does not send requests of this type ([`EndpointConfig::sends`]).
    #[error("this node does not send a message of the type {message_type}")]
    NotSent {
        /// The type of the request.
        message_type: MessageType,
    },
}
