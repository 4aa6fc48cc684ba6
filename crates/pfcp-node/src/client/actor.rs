//! The actor behind a client: its socket, transactions, associations and sessions.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use strowger::{Actor, Ask, Context, EarliestTimer, MailboxSpec, Reply};
use strowger_pfcp::association::{AssociationId, NodeName};
use strowger_pfcp::endpoint::{
    DiscardReason, Endpoint as Protocol, EndpointConfig, Event, RequestError, Role,
};
use strowger_pfcp::ie::{Cause, FSeid};
use strowger_pfcp::transaction::{RequestId, Retransmission};
use strowger_pfcp::{MessageType, Seid};

use super::error::request_failed;
use super::message::{
    ClientMsg, ClientReply, Delete, Establish, EstablishedSession, Exchange, Modify, Release,
};
use super::restore::PeerState;
use super::sessions::{ClientSessions, SessionState};
use super::{ClientConfig, ClientError, ClientEvent, ClientIdentity, ClientStats};
use crate::socket::Sockets;

/// The arguments that every incarnation of the actor starts with.
#[derive(Clone, Debug)]
pub(super) struct ClientArgs {
    pub(super) sockets: Arc<Sockets>,
    pub(super) name: NodeName,
    pub(super) identity: ClientIdentity,
    pub(super) config: Arc<ClientConfig>,
    /// The time limit for a response, including all retransmissions.
    pub(super) response_timeout: Duration,
    pub(super) stats: Arc<Mutex<ClientStats>>,
}

/// A request that has not been answered yet.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) peer: SocketAddr,
    /// The epoch of the peer when the request was sent. A response to a request of an earlier epoch
    /// says nothing about the current one.
    pub(super) epoch: u64,
    pub(super) kind: RequestKind,
}

#[derive(Debug)]
pub(super) enum RequestKind {
    Exchange(Reply<ClientReply>),
    Establish {
        seid: Seid,
        body: Vec<u8>,
        reply: Reply<Result<EstablishedSession, ClientError>>,
    },
    Modify {
        seid: Seid,
        body: Vec<u8>,
        reply: Reply<ClientReply>,
    },
    Delete {
        seid: Seid,
        reply: Reply<ClientReply>,
    },
    /// The establishment of a session that its peer lost.
    Restore(Seid),
    /// A modification that shows whether the peer has a session.
    Check(Seid),
    /// The deletion of a session that is not needed any more.
    DeleteUnneeded,
}

#[derive(Debug)]
pub(super) struct ClientActor {
    sockets: Arc<Sockets>,
    pub(super) config: Arc<ClientConfig>,
    pub(super) protocol: Protocol,
    associating: FxHashMap<SocketAddr, Vec<Reply<Result<AssociationId, ClientError>>>>,
    releasing: FxHashMap<AssociationId, Vec<Reply<Result<(), ClientError>>>>,
    pending: FxHashMap<RequestId, PendingRequest>,
    pub(super) sessions: ClientSessions,
    /// The peers with an association, and those that had one when they were lost.
    pub(super) peers: FxHashMap<SocketAddr, PeerState>,
    /// Events that the recipient has no room for.
    pub(super) outbox: VecDeque<ClientEvent>,
    pub(super) stats: Arc<Mutex<ClientStats>>,
    /// Deleted sessions whose reports may still arrive, until [`ClientMsg::Expired`].
    pub(super) expiring: Vec<Seid>,
    /// The seed of random delays; each start of a client has a different one.
    pub(super) seed: u64,
    response_timeout: Duration,
    timer: EarliestTimer,
}

impl Actor for ClientActor {
    type Msg = ClientMsg;
    type Args = ClientArgs;
    type Error = Infallible;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(1024);

    async fn pre_start(args: ClientArgs, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        let ClientArgs {
            sockets,
            name,
            identity,
            config,
            response_timeout,
            stats,
        } = args;
        let mut protocol = EndpointConfig::new(Role::ControlPlane, name, identity.recovery);
        protocol.first_sequence = identity.first_sequence;
        protocol.allowed.clone_from(&config.peers);
        protocol.retransmission = Retransmission {
            t1: config.t1,
            n1: config.n1,
        };
        protocol.release = config.release;
        protocol.heartbeat = Some(config.heartbeat).filter(|interval| !interval.is_zero());
        cx.task("reader", sockets.read(0, cx.actor_ref()));
        Ok(Self {
            sockets,
            config,
            protocol: Protocol::new(protocol),
            associating: FxHashMap::default(),
            releasing: FxHashMap::default(),
            pending: FxHashMap::default(),
            sessions: ClientSessions::new(identity.first_seid),
            peers: FxHashMap::default(),
            outbox: VecDeque::new(),
            stats,
            expiring: Vec::new(),
            seed: identity.first_seid.0,
            response_timeout,
            timer: EarliestTimer::new(),
        })
    }

    async fn handle(
        &mut self,
        message: ClientMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        let now = cx.now().into_std();
        match message {
            ClientMsg::Received(batch) => {
                for (peer, bytes) in batch.iter() {
                    self.protocol.handle_datagram(now, peer, bytes);
                }
            }
            ClientMsg::Due => {
                self.timer.clear();
                self.protocol.handle_timeout(now);
            }
            ClientMsg::Associate(Ask { request, reply }) => {
                self.associate(now, request.peer, reply);
            }
            ClientMsg::Release(Ask { request, reply }) => self.release(now, &request, reply),
            ClientMsg::Exchange(Ask { request, reply }) => self.exchange(now, &request, reply),
            ClientMsg::Establish(Ask { request, reply }) => self.establish(now, request, reply),
            ClientMsg::Modify(Ask { request, reply }) => self.modify(now, request, reply),
            ClientMsg::Delete(Ask { request, reply }) => self.delete(now, &request, reply),
            ClientMsg::Expired(seid) => _ = self.sessions.remove(seid),
        }
        self.process_events(now, cx);
        Ok(())
    }
}

impl ClientActor {
    fn associate(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        reply: Reply<Result<AssociationId, ClientError>>,
    ) {
        if let Some(waiting) = self.associating.get_mut(&peer) {
            waiting.push(reply);
            return;
        }
        match self.protocol.associate(now, peer) {
            Ok(()) => _ = self.associating.insert(peer, vec![reply]),
            Err(_) => reply.send(Err(ClientError::Busy)),
        }
    }

    fn release(&mut self, now: Instant, request: &Release, reply: Reply<Result<(), ClientError>>) {
        // The client does not search for a released peer.
        if let Some(peer) = self.peers.get_mut(&request.peer) {
            peer.releasing = true;
        }
        if self
            .protocol
            .associations()
            .get(request.association)
            .is_none()
        {
            self.forget_all(request.peer);
            return reply.send(Ok(()));
        }
        match self.protocol.release(now, request.association) {
            Ok(()) => self
                .releasing
                .entry(request.association)
                .or_default()
                .push(reply),
            Err(_) => reply.send(Err(ClientError::Busy)),
        }
    }

    fn exchange(&mut self, now: Instant, request: &Exchange, reply: Reply<ClientReply>) {
        let Exchange {
            peer,
            message_type,
            seid,
            body,
        } = request;
        let sent = self
            .protocol
            .request(now, *peer, *message_type, *seid, body);
        match sent.map_err(not_sent) {
            Ok(id) => self.record_request(id, *peer, RequestKind::Exchange(reply)),
            Err(error) => reply.send(Err(error)),
        }
    }

    fn establish(
        &mut self,
        now: Instant,
        request: Establish,
        reply: Reply<Result<EstablishedSession, ClientError>>,
    ) {
        let Establish {
            peer,
            on_loss,
            rules,
        } = request;
        let seid = self.sessions.open(peer, on_loss);
        let f_seid = FSeid::new(seid, self.sockets.address(0).ip());
        let body = rules.into_request(&self.protocol.config().node, f_seid);
        let sent = body.map_err(ClientError::Request).and_then(|body| {
            let message_type = MessageType::SESSION_ESTABLISHMENT_REQUEST;
            let id = self.send(now, peer, message_type, (Seid(0), seid), &body)?;
            Ok((id, body))
        });
        match sent {
            Ok((id, body)) => {
                self.record_request(id, peer, RequestKind::Establish { seid, body, reply })
            }
            Err(error) => {
                self.sessions.remove(seid);
                reply.send(Err(error));
            }
        }
    }

    fn modify(&mut self, now: Instant, request: Modify, reply: Reply<ClientReply>) {
        let Modify { session, body } = request;
        let (peer, seid) = (session.peer, session.seid);
        // The peer decides about a session that this client has forgotten: the request is sent with
        // the SEID of the handle.
        let remote = match self.sessions.get(seid) {
            None => session.remote,
            Some(record) => match record.state {
                SessionState::Waiting(_)
                | SessionState::Restoring(_)
                | SessionState::Checking(Some(_)) => {
                    return reply.send(Err(ClientError::Restoring { peer, seid }));
                }
                _ => record.remote.seid(),
            },
        };
        let message_type = MessageType::SESSION_MODIFICATION_REQUEST;
        match self.send(now, peer, message_type, (remote, seid), &body) {
            Ok(id) => self.record_request(id, peer, RequestKind::Modify { seid, body, reply }),
            Err(error) => reply.send(Err(error)),
        }
    }

    fn delete(&mut self, now: Instant, request: &Delete, reply: Reply<ClientReply>) {
        let (peer, seid) = (request.session.peer, request.session.seid);
        let lost = ClientError::Lost { peer, seid };
        let remote = match self.sessions.get_mut(seid) {
            None => request.session.remote,
            Some(record) => match record.state {
                SessionState::Waiting(_) => {
                    self.sessions.remove(seid);
                    return reply.send(Err(lost));
                }
                SessionState::Restoring(_) | SessionState::Checking(Some(_)) => {
                    record.state = SessionState::Closing;
                    return reply.send(Err(lost));
                }
                _ => record.remote.seid(),
            },
        };
        let message_type = MessageType::SESSION_DELETION_REQUEST;
        match self.send(now, peer, message_type, (remote, seid), &request.body) {
            Ok(id) => {
                if let Some(record) = self.sessions.get_mut(seid) {
                    record.state = SessionState::Closing;
                }
                self.record_request(id, peer, RequestKind::Delete { seid, reply });
            }
            Err(error) => reply.send(Err(error)),
        }
    }

    /// Sends a request about a session with the peer's SEID and ours.
    pub(super) fn send(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        message_type: MessageType,
        seids: (Seid, Seid),
        body: &[u8],
    ) -> Result<RequestId, ClientError> {
        let sent = self
            .protocol
            .request_about_session(now, peer, message_type, seids, body);
        sent.map_err(not_sent)
    }

    fn count_discarded(&self) {
        let counted = |kind| self.protocol.discarded(kind);
        let mut stats = self.stats.lock();
        stats.malformed = counted(DiscardReason::Malformed);
        stats.unexpected = counted(DiscardReason::Unexpected);
    }

    /// Reports the answer of a peer to the release of its association, which ends in any case.
    fn release_answered(
        &mut self,
        association: AssociationId,
        peer: SocketAddr,
        cause: Option<Cause>,
        invalid: Option<String>,
    ) {
        // A peer that knows no association has nothing to release.
        let is_released =
            |cause: Cause| cause.is_acceptance() || cause == Cause::NO_ESTABLISHED_ASSOCIATION;
        if cause.is_some_and(is_released) {
            return;
        }
        let error = request_failed(peer, cause, invalid);
        tracing::warn!(%peer, %error, "an association is released without its peer");
        for reply in self.releasing.remove(&association).unwrap_or_default() {
            reply.send(Err(error.clone()));
        }
    }

    /// Records a request that was sent.
    pub(super) fn record_request(&mut self, id: RequestId, peer: SocketAddr, kind: RequestKind) {
        let epoch = self.epoch(peer);
        self.pending
            .insert(id, PendingRequest { peer, epoch, kind });
    }

    fn process_events(&mut self, now: Instant, cx: &mut Context<Self>) {
        while let Some(event) = self.protocol.poll_event() {
            self.event(now, event);
        }
        self.search_for_peers(now);
        self.restore(now);
        for seid in self.expiring.drain(..) {
            cx.send_after(self.response_timeout, ClientMsg::Expired(seid));
        }
        let outgoing: Vec<_> = std::iter::from_fn(|| self.protocol.poll_transmit()).collect();
        let unsent = self.sockets.send_all(&outgoing);
        if unsent > 0 {
            tracing::debug!(unsent, "some datagrams could not be sent");
        }
        self.deliver_events();
        self.count_discarded();
        let due = [self.protocol.poll_timeout(), self.due(now)];
        if let Some(at) = due.into_iter().flatten().min() {
            self.timer.arm(at, ClientMsg::Due, cx);
        }
    }

    fn event(&mut self, now: Instant, event: Event) {
        match event {
            Event::AssociationUp { association, .. } => {
                let up = self.protocol.associations().get(association);
                let Some((peer, recovery)) = up.map(|up| (up.address, up.recovery.0)) else {
                    return;
                };
                self.on_peer_found(now, peer, recovery);
                for reply in self.associating.remove(&peer).unwrap_or_default() {
                    reply.send(Ok(association));
                }
            }
            Event::AssociationFailed {
                peer,
                cause,
                invalid,
            } => {
                self.not_found(now, peer, cause);
                let error = request_failed(peer, cause, invalid);
                for reply in self.associating.remove(&peer).unwrap_or_default() {
                    reply.send(Err(error.clone()));
                }
            }
            Event::ReleaseAnswered {
                association,
                peer,
                cause,
                invalid,
            } => self.release_answered(association, peer, cause, invalid),
            Event::AssociationReleased { association } => {
                self.forget_all(association.address);
                for reply in self.releasing.remove(&association.id).unwrap_or_default() {
                    reply.send(Ok(()));
                }
            }
            Event::PeerRestarted { association } => self.restarted(now, association),
            Event::PeerSilent { association } => self.on_peer_silent(now, association),
            Event::PeerHeard { association } => self.on_peer_heard(now, association),
            Event::Response { request, bytes, .. } => {
                if let Some(request) = self.pending.remove(&request) {
                    self.answered(now, request, bytes);
                }
            }
            Event::RequestFailed { request, .. } => {
                if let Some(request) = self.pending.remove(&request) {
                    self.unanswered(now, request);
                }
            }
            Event::SessionRequest {
                transaction,
                peer,
                bytes,
                ..
            } => {
                self.report(now, transaction, peer, &bytes);
            }
            Event::NodeRequest {
                transaction,
                association,
                bytes,
            } => self.node_report(now, transaction, association, &bytes),
            Event::ReleaseWanted { association, .. } => self.release_on_request(now, association),
            Event::Discarded {
                kind,
                peer,
                count,
                detail,
            } => {
                tracing::warn!(kind = kind.name(), %peer, count, detail, "discarded");
            }
            _ => {}
        }
    }
}

fn not_sent(error: RequestError) -> ClientError {
    match error {
        RequestError::Message(error) => ClientError::Request(error),
        RequestError::NotSent { message_type } => ClientError::NotSent { message_type },
        _ => ClientError::Busy,
    }
}
