//! The actor behind a client: socket, transactions, associations.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use strowger::{Accepts, Actor, Ask, Context, MailboxSpec, Reply, Request, TimerKey};
use strowger_pfcp::association::{AssociationId, NodeName};
use strowger_pfcp::endpoint::{
    Elements, Endpoint as Protocol, EndpointConfig, Event, Role, answer_header, message,
};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::transaction::{RequestId, Retransmission, TransactionId};
use strowger_pfcp::{
    Frame, Index, Interfaces, MessageType, MessageView, Rejection, Seid, validate,
};

use super::{ClientConfig, ClientError, Identity, NodeReport, PeerRestarted, SessionReport};
use crate::socket::{Batch, Sockets};

/// What every incarnation is made from.
#[derive(Clone, Debug)]
pub(super) struct ClientArgs {
    pub(super) sockets: Arc<Sockets>,
    pub(super) name: NodeName,
    pub(super) identity: Identity,
    pub(super) config: Arc<ClientConfig>,
}

/// Asks for an association with a peer.
#[derive(Debug)]
pub(super) struct Associate {
    pub(super) peer: SocketAddr,
}

impl Request for Associate {
    type Reply = Result<AssociationId, ClientError>;
}

/// Asks to end an association.
#[derive(Debug)]
pub(super) struct Release {
    pub(super) association: AssociationId,
}

impl Request for Release {
    type Reply = Result<(), ClientError>;
}

/// The whole message of an answer.
type Answer = Result<Arc<[u8]>, ClientError>;

/// Asks a peer about a session; the answer is the whole message.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) peer: SocketAddr,
    pub(super) message_type: MessageType,
    pub(super) seid: Seid,
    pub(super) body: Vec<u8>,
}

impl Request for Exchange {
    type Reply = Answer;
}

/// Asks for an identifier for a session that is about to be established.
#[derive(Debug)]
pub(super) struct Know {
    pub(super) peer: SocketAddr,
}

impl Request for Know {
    type Reply = Seid;
}

/// Tells the peer's identifier of a session.
#[derive(Debug)]
pub(super) struct Bind {
    pub(super) seid: Seid,
    pub(super) remote: Seid,
}

impl Request for Bind {
    type Reply = ();
}

/// Tells that a session is no more.
#[derive(Debug)]
pub(super) struct Forget {
    pub(super) seid: Seid,
    /// How long reports about it may still come.
    pub(super) after: Duration,
}

impl Forget {
    pub(super) const fn now(seid: Seid) -> Self {
        let after = Duration::ZERO;
        Self { seid, after }
    }
}

impl Request for Forget {
    type Reply = ();
}

/// What the actor takes.
#[derive(Debug)]
pub(crate) enum ClientMsg {
    Received(Batch),
    Due,
    /// No reports about a session that was deleted come any more.
    Expired(Seid),
    Associate(Ask<Associate>),
    Release(Ask<Release>),
    Exchange(Ask<Exchange>),
    Know(Ask<Know>),
    Bind(Ask<Bind>),
    Forget(Ask<Forget>),
}

/// Writes how the actor's own enum is made from what others send.
macro_rules! accepts {
    ($($variant:ident($type:ty);)*) => {
        $(impl Accepts<$type> for ClientMsg {
            fn wrap(message: $type) -> Self {
                Self::$variant(message)
            }
        })*
    };
}

accepts! {
    Received(Batch);
    Associate(Ask<Associate>);
    Release(Ask<Release>);
    Exchange(Ask<Exchange>);
    Know(Ask<Know>);
    Bind(Ask<Bind>);
    Forget(Ask<Forget>);
}

#[derive(Debug)]
pub(super) struct ClientActor {
    sockets: Arc<Sockets>,
    config: Arc<ClientConfig>,
    protocol: Protocol,
    associating: FxHashMap<SocketAddr, Vec<Reply<Result<AssociationId, ClientError>>>>,
    releasing: FxHashMap<AssociationId, Vec<Reply<Result<(), ClientError>>>>,
    waiting: FxHashMap<RequestId, Reply<Answer>>,
    /// Our sessions: the peer, and its identifier once it told.
    sessions: FxHashMap<Seid, (SocketAddr, Seid)>,
    next_seid: u64,
    timer: Option<(Instant, TimerKey)>,
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
        cx.task("reader", sockets.read(0, cx.me()));
        Ok(Self {
            sockets,
            config,
            protocol: Protocol::new(protocol),
            associating: FxHashMap::default(),
            releasing: FxHashMap::default(),
            waiting: FxHashMap::default(),
            sessions: FxHashMap::default(),
            next_seid: identity.first_seid.0,
            timer: None,
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
                for (peer, octets) in batch.iter() {
                    self.protocol.handle_datagram(now, peer, octets);
                }
            }
            ClientMsg::Due => {
                self.timer = None;
                self.protocol.handle_timeout(now);
            }
            ClientMsg::Associate(Ask { request, reply }) => {
                self.associate(now, request.peer, reply)
            }
            ClientMsg::Release(Ask { request, reply }) => {
                match self.protocol.release(now, request.association) {
                    Ok(()) => self
                        .releasing
                        .entry(request.association)
                        .or_default()
                        .push(reply),
                    Err(_) => reply.send(Err(ClientError::Busy)),
                }
            }
            ClientMsg::Exchange(Ask { request, reply }) => self.exchange(now, &request, reply),
            ClientMsg::Know(Ask { request, reply }) => {
                let seid = Seid(self.next_seid);
                self.next_seid += 1;
                self.sessions.insert(seid, (request.peer, Seid(0)));
                reply.send(seid);
            }
            ClientMsg::Bind(Ask { request, reply }) => {
                if let Some((_, remote)) = self.sessions.get_mut(&request.seid) {
                    *remote = request.remote;
                }
                reply.send(());
            }
            ClientMsg::Forget(Ask { request, reply }) => {
                if request.after.is_zero() {
                    self.sessions.remove(&request.seid);
                } else {
                    cx.send_after(request.after, ClientMsg::Expired(request.seid));
                }
                reply.send(());
            }
            ClientMsg::Expired(seid) => _ = self.sessions.remove(&seid),
        }
        self.settle(now, cx);
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

    fn exchange(&mut self, now: Instant, request: &Exchange, reply: Reply<Answer>) {
        let Exchange {
            peer,
            message_type,
            seid,
            body,
        } = request;
        match self
            .protocol
            .request(now, *peer, *message_type, *seid, body)
        {
            Ok(request) => _ = self.waiting.insert(request, reply),
            Err(strowger_pfcp::endpoint::RequestError::Message(error)) => {
                reply.send(Err(ClientError::Request(error)));
            }
            Err(_) => reply.send(Err(ClientError::Busy)),
        }
    }

    fn settle(&mut self, now: Instant, cx: &mut Context<Self>) {
        while let Some(event) = self.protocol.poll_event() {
            self.event(now, event);
        }
        let leaving: Vec<_> = std::iter::from_fn(|| self.protocol.poll_transmit()).collect();
        let unsent = self.sockets.send_all(&leaving);
        if unsent > 0 {
            tracing::debug!(unsent, "the system took not all datagrams");
        }
        let Some(wanted) = self.protocol.poll_timeout() else {
            return;
        };
        match self.timer {
            Some((at, _)) if at <= wanted => return,
            Some((_, timer)) => _ = cx.cancel(timer),
            None => {}
        }
        let timer = cx.send_after(wanted.saturating_duration_since(now), ClientMsg::Due);
        self.timer = Some((wanted, timer));
    }

    fn event(&mut self, now: Instant, event: Event) {
        match event {
            Event::AssociationUp { association, .. } => {
                let up = self.protocol.associations().get(association);
                let waiting = up.and_then(|up| self.associating.remove(&up.address));
                for reply in waiting.unwrap_or_default() {
                    reply.send(Ok(association));
                }
            }
            Event::AssociationFailed { peer, cause } => {
                let error = match cause {
                    Some(cause) => ClientError::Refused {
                        peer,
                        cause,
                        offending_ie: None,
                    },
                    None => ClientError::NoAnswer { peer },
                };
                for reply in self.associating.remove(&peer).unwrap_or_default() {
                    reply.send(Err(error.clone()));
                }
            }
            Event::AssociationReleased { association } => {
                let address = association.address;
                self.sessions.retain(|_, (peer, _)| *peer != address);
                for reply in self.releasing.remove(&association.id).unwrap_or_default() {
                    reply.send(Ok(()));
                }
            }
            Event::PeerRestarted { association } => self.restarted(association),
            Event::Response {
                request, octets, ..
            } => {
                if let Some(reply) = self.waiting.remove(&request) {
                    reply.send(Ok(octets));
                }
            }
            Event::RequestFailed { request, peer } => {
                if let Some(reply) = self.waiting.remove(&request) {
                    reply.send(Err(ClientError::NoAnswer { peer }));
                }
            }
            Event::SessionRequest {
                transaction,
                peer,
                octets,
                ..
            } => {
                self.report(now, transaction, peer, &octets);
            }
            Event::NodeRequest {
                transaction,
                association,
                octets,
            } => self.node_report(now, transaction, association, &octets),
            Event::ReleaseWanted { association, .. } => self.obey(now, association),
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

    /// Forgets the sessions of a peer that does not know them any more.
    fn restarted(&mut self, association: AssociationId) {
        let Some(up) = self.protocol.associations().get(association) else {
            return;
        };
        let (peer, recovery) = (up.address, up.recovery.0);
        self.sessions.retain(|_, (of, _)| *of != peer);
        tracing::info!(%peer, recovery, "a peer restarted");
        if let Some(restarts) = &self.config.restarts
            && restarts.try_tell(PeerRestarted { peer, recovery }).is_err()
        {
            tracing::warn!(%peer, "nobody took the news of a restart");
        }
    }

    /// Releases an association whose peer wants it. Whoever has work left asks again when it finds
    /// its sessions gone.
    fn obey(&mut self, now: Instant, association: AssociationId) {
        if self.protocol.release(now, association).is_err() {
            tracing::warn!("too busy to release an association");
        }
    }

    /// Answers a report about a node, and hands it on.
    fn node_report(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        association: AssociationId,
        octets: &Arc<[u8]>,
    ) {
        let Ok(frame) = Frame::decode(octets) else {
            return self.protocol.abandon(now, transaction);
        };
        let mut index = Index::new();
        let wrong = match MessageView::of(&frame, &mut index) {
            Ok(view) => validate(&view, Interfaces::ALL).err(),
            Err(error) => Rejection::of(&error, octets),
        };
        let body = Elements::new().node(&self.protocol.config().node);
        let body = match &wrong {
            None => body.cause(Cause::REQUEST_ACCEPTED),
            Some(rejection) => body.refusal(&rejection.clone().into()),
        };
        match message(&answer_header(&frame.header, None), body.as_slice()) {
            Ok(answer) => self.protocol.respond(now, transaction, answer.into()),
            Err(_) => self.protocol.abandon(now, transaction),
        }
        let from = self.protocol.associations().get(association);
        let (Some(from), Some(reports), None) = (from, &self.config.node_reports, wrong) else {
            return;
        };
        let peer = from.address;
        let octets = Arc::clone(octets);
        if reports.try_tell(NodeReport { peer, octets }).is_err() {
            tracing::warn!(%peer, "nobody took a node report");
        }
    }

    /// Answers a report about a session, and hands it on.
    fn report(
        &mut self,
        now: Instant,
        transaction: TransactionId,
        peer: SocketAddr,
        octets: &Arc<[u8]>,
    ) {
        let Ok(frame) = Frame::decode(octets) else {
            return self.protocol.abandon(now, transaction);
        };
        let seid = frame.header.seid.unwrap_or_default();
        let known = self
            .sessions
            .get(&seid)
            .filter(|(owner, _)| owner.ip() == peer.ip());
        let cause = match known {
            Some(_) => Cause::REQUEST_ACCEPTED,
            None => Cause::SESSION_CONTEXT_NOT_FOUND,
        };
        let header = answer_header(&frame.header, known.map(|&(_, remote)| remote));
        let body = Elements::new().cause(cause);
        match message(&header, body.as_slice()) {
            Ok(answer) => self.protocol.respond(now, transaction, answer.into()),
            Err(_) => self.protocol.abandon(now, transaction),
        }
        if let (Some(_), Some(reports)) = (known, &self.config.reports)
            && reports
                .try_tell(SessionReport {
                    seid,
                    peer,
                    octets: Arc::clone(octets),
                })
                .is_err()
        {
            tracing::warn!(session = %seid, %peer, "nobody took a session report");
        }
    }
}
