//! One node on the N4 interface, without I/O: octets and time in, octets and events out.
//!
//! An endpoint joins [transactions](crate::transaction), [associations](crate::association) and
//! heartbeats. It answers what concerns the node itself; what concerns a session is an [`Event`]
//! for whoever owns the sessions.

mod answer;
mod discard;
mod event;
mod limit;
mod network;
mod receive;
mod restart;
mod withdraw;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

pub use answer::{Elements, answer_header, message};
pub use discard::Discard;
pub use event::Event;
pub use limit::PeerLimits;
pub use network::{Network, NetworkError};

use crate::association::{AssociationId, Associations, NodeName, Recovery, RestartSign};
use crate::error::Error;
use crate::ie::{Cause, IeType, Release};
use crate::message::MessageType;
use crate::transaction::{
    AnswerKey, AnswerLimits, Answers, Due, RequestId, Requests, RequestsFull, Retransmission,
    TransactionId,
};
use crate::validate::older;
use crate::wire::{Frame, Header, Seid, Sequence};
use answer::timer_octet;
use discard::Discards;
use limit::Limiter;

/// On which side of the interface a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// SMF, or the control plane of a gateway: it asks for sessions.
    ControlPlane,
    /// UPF, or the user plane of a gateway: it has the sessions.
    UserPlane,
}

/// What an [`Endpoint`] is and what it may use.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// On which side it stands.
    pub role: Role,
    /// Its Node ID.
    pub node: NodeName,
    /// When it started; a larger value tells peers that all sessions are gone.
    pub recovery: Recovery,
    /// The release that is spoken: what is newer is left out of what is sent and ignored in what
    /// is received, TS 29.244 §7.6.
    pub release: Release,
    /// The value of UP Function Features or CP Function Features, as the role has it.
    pub features: Vec<u8>,
    /// From where datagrams are accepted; all others are discarded.
    pub allowed: Vec<Network>,
    /// How requests are repeated.
    pub retransmission: Retransmission,
    /// The bounds of what is kept to answer repeated requests.
    pub answers: AnswerLimits,
    /// How long a peer may be silent before it is asked; `None` for never.
    pub heartbeat: Option<Duration>,
    /// The sign that peers have restarted, by their addresses; the first network that has an
    /// address counts. Peers in none of them: [`RestartSign::Heartbeat`].
    pub restarts: Vec<(Network, RestartSign)>,
    /// How many associations there may be.
    pub associations: usize,
    /// How many requests of our own may wait for answers.
    pub requests: usize,
    /// What one peer may use.
    pub peer: PeerLimits,
    /// How many octets a datagram may have.
    pub datagram: usize,
    /// The sequence number of the first request.
    pub first_sequence: Sequence,
    /// Where digests of requests start. Keep it from peers; the same one gives the same run.
    pub seed: u64,
}

impl EndpointConfig {
    /// Makes the configuration of a node with defaults: everybody on loopback may speak, 64
    /// associations, 65 536 requests, datagrams of 65 507 octets, a heartbeat after 10 s.
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
            allowed: loopback
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect(),
            retransmission: Retransmission::default(),
            answers: AnswerLimits::default(),
            heartbeat: Some(Duration::from_secs(10)),
            restarts: Vec::new(),
            associations: 64,
            requests: 65_536,
            peer: PeerLimits::default(),
            datagram: 65_507,
            first_sequence: Sequence::new(1),
            seed: 0,
        }
    }
}

/// Octets to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Where to.
    pub peer: SocketAddr,
    /// Which of our addresses it leaves from: the number that the request came with in
    /// [`Endpoint::handle_datagram_at`], or that of the association. `None` for any.
    pub local: Option<u16>,
    /// One datagram.
    pub octets: Arc<[u8]>,
}

/// Figures of an [`Endpoint`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Datagrams that came in.
    pub datagrams: u64,
    /// Requests that were repetitions, and were answered from what was kept.
    pub repeated: u64,
    /// Kept answers that a limit pushed out before their time.
    pub evicted: u64,
    /// Requests of ours that were sent again.
    pub retransmitted: u64,
    /// Requests of ours that were not answered.
    pub unanswered: u64,
    /// Requests that were refused because their sender asked for more than it may.
    pub limited: u64,
    /// Restarts of peers: a setup with another stamp, or heartbeats that the peer confirmed.
    pub restarts: u64,
    /// Restarts that a heartbeat claimed and the peer denied.
    pub restarts_denied: u64,
    /// Heartbeats with a later stamp from peers that are known to restart only with a setup.
    pub stamps_ignored: u64,
    /// Requests of ours that wait for an answer now.
    pub waiting: usize,
    /// Requests of peers that are being worked on now.
    pub working: usize,
    /// Answers that are kept now.
    pub answers: usize,
}

/// Why a request of ours exists.
#[derive(Clone, Copy, Debug)]
enum Purpose {
    Associate,
    Heartbeat(AssociationId),
    /// A heartbeat that asks whether the peer has restarted.
    Confirm(AssociationId),
    Release(AssociationId),
    Update(AssociationId),
}

/// One node on the N4 interface.
///
/// The methods are of four kinds. Getters take `&self`. What comes from outside goes in through
/// [`Endpoint::handle_datagram`] and [`Endpoint::handle_timeout`]. What the owner wants goes in
/// through [`Endpoint::associate`], [`Endpoint::release`], [`Endpoint::request`],
/// [`Endpoint::respond`], [`Endpoint::refuse`] and [`Endpoint::abandon`]. After each of these the
/// owner takes out, until
/// there is nothing left: [`Endpoint::poll_transmit`], [`Endpoint::poll_event`], and then
/// [`Endpoint::poll_timeout`], which says when to call `handle_timeout` next.
///
/// Time never goes backwards: every `now` is at or after the one before.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    associations: Associations,
    requests: Requests,
    purposes: FxHashMap<RequestId, Purpose>,
    answers: Answers,
    limiter: Limiter,
    /// Where requests came in that are being worked on, if the owner said it.
    locals: FxHashMap<TransactionId, u16>,
    discards: Discards,
    stats: EndpointStats,
    transmits: VecDeque<Transmit>,
    events: VecDeque<Event>,
}

impl Endpoint {
    /// Makes an endpoint without associations.
    #[must_use]
    pub fn new(config: EndpointConfig) -> Self {
        Self {
            associations: Associations::new(config.associations, config.heartbeat),
            requests: Requests::new(
                config.retransmission,
                config.requests,
                config.first_sequence,
            ),
            purposes: FxHashMap::default(),
            answers: Answers::new(config.answers, config.seed),
            limiter: Limiter::new(config.peer),
            locals: FxHashMap::default(),
            discards: Discards::default(),
            stats: EndpointStats::default(),
            transmits: VecDeque::new(),
            events: VecDeque::new(),
            config,
        }
    }

    /// Lets time pass: repeats requests, sends heartbeats, forgets old answers.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.answers.expire(now);
        while let Some(due) = self.requests.poll_due(now) {
            match due {
                Due::Again { peer, octets, .. } => {
                    self.stats.retransmitted += 1;
                    self.send(peer, octets);
                }
                Due::Failed { request, peer } => self.failed(now, request, peer),
            }
        }
        while let Some((association, peer)) = self.associations.poll_heartbeat(now) {
            if self
                .beat(now, peer, Purpose::Heartbeat(association))
                .is_err()
            {
                // Too busy to ask: nothing is known of the peer.
                self.heard(now, association);
            }
        }
    }

    fn beat(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        purpose: Purpose,
    ) -> Result<(), RequestsFull> {
        let body = Elements::new().recovery(self.config.recovery);
        let kind = MessageType::HEARTBEAT_REQUEST;
        self.ask(now, peer, kind, &body, purpose)
    }

    /// Sends a request of ours.
    fn send(&mut self, peer: SocketAddr, octets: Arc<[u8]>) {
        let association = self.associations.from_address(peer);
        let local = association.and_then(|association| association.local);
        self.transmits.push_back(Transmit {
            peer,
            local,
            octets,
        });
    }

    /// Notes that a peer was heard.
    fn heard(&mut self, now: Instant, association: AssociationId) {
        if self.associations.heard(now, association) {
            self.events.push_back(Event::PeerHeard { association });
        }
    }

    fn failed(&mut self, now: Instant, request: RequestId, peer: SocketAddr) {
        self.stats.unanswered += 1;
        match self.purposes.remove(&request) {
            Some(Purpose::Associate) => {
                self.events
                    .push_back(Event::AssociationFailed { peer, cause: None });
            }
            // Without an answer the question whether it has restarted is one of a broken path.
            Some(Purpose::Heartbeat(association) | Purpose::Confirm(association)) => {
                self.associations.unanswered(association);
                if self.associations.missed(now, association) {
                    self.events.push_back(Event::PeerSilent { association });
                }
            }
            Some(Purpose::Release(association)) => self.released(association),
            Some(Purpose::Update(_)) => {}
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

    /// Asks a peer for an association; the outcome is [`Event::AssociationUp`] or
    /// [`Event::AssociationFailed`].
    ///
    /// # Errors
    /// [`RequestsFull`] when as many requests wait as may.
    pub fn associate(&mut self, now: Instant, peer: SocketAddr) -> Result<(), RequestsFull> {
        let body = self.identity();
        self.ask(
            now,
            peer,
            MessageType::ASSOCIATION_SETUP_REQUEST,
            &body,
            Purpose::Associate,
        )
    }

    /// Asks the peer to end an association; it has ended with [`Event::AssociationReleased`],
    /// also when the peer does not answer.
    ///
    /// # Errors
    /// [`RequestsFull`] when as many requests wait as may.
    pub fn release(
        &mut self,
        now: Instant,
        association: AssociationId,
    ) -> Result<(), RequestsFull> {
        let Some(peer) = self.associations.get(association).map(|one| one.address) else {
            return Ok(());
        };
        let body = Elements::new().node(&self.config.node);
        let purpose = Purpose::Release(association);
        self.ask(
            now,
            peer,
            MessageType::ASSOCIATION_RELEASE_REQUEST,
            &body,
            purpose,
        )
    }

    /// Asks the peer, in the control plane, to release an association, within some time if it is
    /// given: TS 29.244 §6.2.8.3. The peer decides when it does.
    ///
    /// # Errors
    /// [`RequestsFull`] when as many requests wait as may.
    pub fn ask_release(
        &mut self,
        now: Instant,
        association: AssociationId,
        within: Option<Duration>,
    ) -> Result<(), RequestsFull> {
        let Some(peer) = self.associations.get(association).map(|one| one.address) else {
            return Ok(());
        };
        let wanted = Elements::new()
            .node(&self.config.node)
            .with(IeType::PFCP_ASSOCIATION_RELEASE_REQUEST, &[1]);
        let body = match within {
            Some(span) => wanted.with(IeType::GRACEFUL_RELEASE_PERIOD, &[timer_octet(span)]),
            None => wanted,
        };
        let update = MessageType::ASSOCIATION_UPDATE_REQUEST;
        self.ask(now, peer, update, &body, Purpose::Update(association))
    }

    fn ask(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        message_type: MessageType,
        body: &Elements,
        purpose: Purpose,
    ) -> Result<(), RequestsFull> {
        let sequence = self.requests.sequence(peer)?;
        let header = Header::node(message_type, sequence);
        let to = (peer, purpose.association());
        if let Ok(request) = self.send_request(now, to, &header, body.as_slice()) {
            self.purposes.insert(request, purpose);
        }
        Ok(())
    }

    /// Sends a request about a session, or another one that the owner speaks for; its outcome is
    /// [`Event::Response`] or [`Event::RequestFailed`]. `seid` is the one that the peer chose, 0
    /// where it did not yet; messages between nodes have none.
    ///
    /// # Errors
    /// When as many requests wait as may, or the body does not fit a message.
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
        Ok(self.send_request(now, (peer, None), &header, body)?)
    }

    fn send_request(
        &mut self,
        now: Instant,
        (peer, about): (SocketAddr, Option<AssociationId>),
        header: &Header,
        body: &[u8],
    ) -> Result<RequestId, Error> {
        let octets = self.spoken(message(header, body)?.into());
        let answer = header.message_type.response().unwrap_or(MessageType(0));
        let sequence = header.sequence;
        let waiting = Arc::clone(&octets);
        let request = self
            .requests
            .sent(now, (peer, sequence), about, answer, waiting);
        self.send(peer, octets);
        Ok(request)
    }

    /// Answers a request with a whole message, and keeps it for repetitions. Does nothing when
    /// the request was abandoned.
    pub fn respond(&mut self, now: Instant, transaction: TransactionId, octets: Arc<[u8]>) {
        let octets = self.spoken(octets);
        let local = self.settled(transaction);
        if let Some(peer) = self.answers.answer(now, transaction, Arc::clone(&octets)) {
            self.transmits.push_back(Transmit {
                peer,
                local,
                octets,
            });
        }
    }

    /// Answers a request of [`Event::OverLimit`] without keeping the answer: what a flood is
    /// answered with must not push out what other peers may ask for again.
    pub fn refuse(&mut self, transaction: TransactionId, octets: Arc<[u8]>) {
        let octets = self.spoken(octets);
        let local = self.locals.remove(&transaction);
        if let Some(peer) = self.answers.peer(transaction) {
            self.answers.ignore(transaction);
            self.transmits.push_back(Transmit {
                peer,
                local,
                octets,
            });
        }
    }

    /// Returns a message that is to be sent, as the release has it.
    fn spoken(&self, octets: Arc<[u8]>) -> Arc<[u8]> {
        if self.config.release == Release::R19 {
            return octets;
        }
        let frame = Frame::decode(&octets).ok();
        let older = frame.and_then(|frame| older(&frame, self.config.release));
        older.map_or(octets, Arc::from)
    }

    /// Gives up work on a request, as after a panic: when the peer repeats it, it is worked on
    /// afresh. After [`AnswerLimits::attempts`] it is answered with Cause 77 (System failure).
    pub fn abandon(&mut self, now: Instant, transaction: TransactionId) {
        let key = self.answers.key(transaction);
        match self.answers.abandon(now, transaction) {
            Some(header) => {
                let body = self.refusal(header.message_type, Cause::SYSTEM_FAILURE);
                self.answer(now, transaction, &header, &body);
            }
            None => _ = key.map(|key| self.unburden(transaction, key)),
        }
    }

    /// Notes that a request is no longer worked on; where it came in.
    fn settled(&mut self, transaction: TransactionId) -> Option<u16> {
        let key = self.answers.key(transaction)?;
        self.unburden(transaction, key)
    }

    fn unburden(&mut self, transaction: TransactionId, key: AnswerKey) -> Option<u16> {
        // Heartbeats are not counted.
        if key.message_type != MessageType::HEARTBEAT_REQUEST {
            self.limiter.done(key.peer.ip());
        }
        self.locals.remove(&transaction)
    }

    /// Takes out the next datagram to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Takes out the next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns when [`Endpoint::handle_timeout`] is to be called next.
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

    /// Returns what the endpoint is.
    #[must_use]
    pub fn config(&self) -> &EndpointConfig {
        &self.config
    }

    /// Puts an association back that was there before its owner restarted.
    ///
    /// # Errors
    /// As for a setup by the peer.
    pub fn restore(
        &mut self,
        now: Instant,
        node: NodeName,
        address: SocketAddr,
        recovery: Recovery,
    ) -> Result<AssociationId, crate::association::SetupRefused> {
        let setup = self.associations.set_up(now, node, address, recovery)?;
        Ok(setup.id())
    }

    /// Returns by what a request that waits for our answer is known when it is repeated.
    #[must_use]
    pub fn answer_key(&self, transaction: TransactionId) -> Option<AnswerKey> {
        self.answers.key(transaction)
    }

    /// Puts an answer back that was given before its owner restarted; `left` is for how long it is
    /// still to be kept. The seed must be the one that the answer was given with.
    pub fn restore_answer(
        &mut self,
        now: Instant,
        left: Duration,
        key: AnswerKey,
        octets: Arc<[u8]>,
    ) {
        self.answers.restore(now, left, key, octets);
    }

    /// Returns the figures.
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

    /// Returns how many messages or datagrams of a kind were discarded.
    #[must_use]
    pub fn discarded(&self, kind: Discard) -> u64 {
        self.discards.total(kind)
    }
}

/// Why a request was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// As many requests wait as may.
    #[error(transparent)]
    Full(#[from] RequestsFull),
    /// The body does not fit a message.
    #[error(transparent)]
    Message(#[from] Error),
    /// The association has ended.
    #[error("there is no such association")]
    NoAssociation,
}
