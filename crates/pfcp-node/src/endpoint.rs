//! The endpoint: the actor that owns the sockets, the transactions and the map of sessions.
//!
//! ```text
//!   socket ─ batch ─▶ endpoint ─ request ─▶ session        one queue each way:
//!   socket ◀─ send ── endpoint ◀─ answer ── session        a mailbox, a completion lane
//! ```
//!
//! It decides nothing about a session's rules, and waits for nobody: an answer that never comes is
//! a dropped reply, which comes back as a completion as well. When it panics, its next incarnation
//! finds sockets, associations and sessions in what is shared, and starts their actors again.

mod dispatch;
mod nodewide;
mod order;
mod peers;
mod report;

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use strowger::{
    Accepts, Actor, ActorRef, Ask, Completion, Context, Exit, Lane, MailboxSpec, Reply, Signal,
    TimerKey,
};
use strowger_pfcp::Seid;
use strowger_pfcp::association::AssociationId;
use strowger_pfcp::endpoint::{
    Discard, Endpoint as Protocol, EndpointConfig, EndpointStats, Event, PeerLimits, Role, Transmit,
};
use strowger_pfcp::transaction::{AnswerLimits, RequestId, Retransmission};

pub(crate) use report::Outgoing;
use report::Reports;

use crate::association::Members;
use crate::node::OrderError;
use crate::page_map::SeidMap;
use crate::session::{Done, SessionMsg};
use crate::shared::{Shared, add, add_many};
use crate::socket::Batch;
use crate::store::{Change, Refused};
use order::Obeyed;
pub(crate) use order::{Order, Wish};

/// What the endpoint takes.
#[derive(Debug)]
pub(crate) enum EndpointMsg {
    /// Datagrams from a socket.
    Received(Batch),
    /// A session answered, or dropped its request.
    Completed(Completion<Done>),
    /// The time has come that the protocol asked for.
    Due,
    /// More sessions of the store are to be started.
    Start,
    /// A session has something to report.
    Report(Outgoing),
    /// The owner of the node wants something of a peer.
    Order(Ask<Order>),
}

impl Accepts<Outgoing> for EndpointMsg {
    fn wrap(outgoing: Outgoing) -> Self {
        Self::Report(outgoing)
    }
}

impl Accepts<Batch> for EndpointMsg {
    fn wrap(batch: Batch) -> Self {
        Self::Received(batch)
    }
}

impl Accepts<Completion<Done>> for EndpointMsg {
    fn wrap(completion: Completion<Done>) -> Self {
        Self::Completed(completion)
    }
}

impl Accepts<Ask<Order>> for EndpointMsg {
    fn wrap(order: Ask<Order>) -> Self {
        Self::Order(order)
    }
}

/// The actor.
#[derive(Debug)]
pub(crate) struct Endpoint {
    shared: Arc<Shared>,
    protocol: Protocol,
    lane: Lane<Done>,
    members: FxHashMap<AssociationId, Members>,
    sessions: SeidMap<Entry>,
    /// Requests that a session works on, by the token of their reply.
    pending: FxHashMap<u64, Pending>,
    /// Session reports that wait for their answers.
    reports: Reports,
    /// Requests of ours that the owner of the node waits for.
    orders: FxHashMap<RequestId, Reply<Obeyed>>,
    timer: Option<(Instant, TimerKey)>,
    /// Sessions of the store whose actors are still to be started.
    unstarted: Vec<Seid>,
    /// What the store is to be told before anything is sent.
    news: Vec<Change>,
    /// What leaves together, and how many messages it has waited for.
    leaving: Vec<Transmit>,
    waited: usize,
    told: (EndpointStats, [u64; Discard::ALL.len()]),
}

/// Where a session is.
#[derive(Debug)]
struct Entry {
    /// `None` until it is started, which a request does if nothing else did.
    actor: Option<ActorRef<SessionMsg>>,
    association: AssociationId,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    seid: Seid,
    establishes: bool,
}

impl Actor for Endpoint {
    type Msg = EndpointMsg;
    type Args = Arc<Shared>;
    type Error = Infallible;

    /// Batches, so 64 times as many datagrams; beyond that they wait in the sockets.
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(64);

    async fn pre_start(shared: Arc<Shared>, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        let mut endpoint = Self {
            protocol: Protocol::new(protocol_config(&shared)),
            lane: cx.lane(),
            members: FxHashMap::default(),
            sessions: SeidMap::default(),
            pending: FxHashMap::default(),
            reports: Reports::default(),
            orders: FxHashMap::default(),
            timer: None,
            unstarted: Vec::new(),
            news: Vec::new(),
            leaving: Vec::new(),
            waited: 0,
            told: (EndpointStats::default(), [0; Discard::ALL.len()]),
            shared,
        };
        endpoint.shared.settle_all().await;
        *endpoint.shared.endpoint.lock() = Some(cx.me());
        // What was not written any more of the end of a session is void.
        endpoint.shared.ended.lock().clear();
        let holders = endpoint.shared.pool.holders();
        endpoint.shared.release_unknown(holders);
        endpoint.restore(cx);
        let waiting = std::mem::take(&mut *endpoint.shared.waiting.lock());
        for batch in waiting {
            endpoint.received(cx.now().into_std(), &batch);
        }
        for socket in 0..endpoint.shared.sockets.len() {
            endpoint.read(socket, cx);
        }
        endpoint.settle(cx).await;
        Ok(endpoint)
    }

    fn describe(message: &EndpointMsg) -> Cow<'static, str> {
        match message {
            EndpointMsg::Received(batch) => format!("{} datagrams", batch.count()).into(),
            EndpointMsg::Completed(_) => "the answer of a session".into(),
            EndpointMsg::Due => "a timer of the protocol".into(),
            EndpointMsg::Start => "sessions of the store to be started".into(),
            EndpointMsg::Report(_) => "the report of a session".into(),
            EndpointMsg::Order(_) => "an order of the owner".into(),
        }
    }

    async fn handle(
        &mut self,
        message: EndpointMsg,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        let now = cx.now().into_std();
        match message {
            EndpointMsg::Received(batch) => self.received(now, &batch),
            EndpointMsg::Completed(completion) => self.completed(now, completion).await,
            EndpointMsg::Due => {
                self.timer = None;
                self.protocol.handle_timeout(now);
            }
            EndpointMsg::Start => {
                // They start from what is stored.
                self.write_news().await;
                self.start_some(cx);
            }
            EndpointMsg::Report(outgoing) => self.report(now, &outgoing),
            EndpointMsg::Order(Ask { request, reply }) => self.order(now, request, reply),
        }
        self.settle(cx).await;
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), Infallible> {
        match signal {
            Signal::ChildEnded { key, .. } => self.supervisor_ended(&key, cx).await,
            Signal::TaskEnded { name } => {
                // Reading failed; the socket is still bound and may recover.
                if let Some(socket) = name.strip_prefix(READER).and_then(|at| at.parse().ok()) {
                    self.read(socket, cx);
                }
            }
            _ => {}
        }
        self.settle(cx).await;
        Ok(())
    }

    async fn post_stop(mut self, _: &Exit, _: &mut Context<Self>) {
        self.send().await;
    }
}

impl Endpoint {
    fn read(&self, socket: usize, cx: &mut Context<Self>) {
        let shared = Arc::clone(&self.shared);
        let named = move |seid| Some(shared.store.session(seid)?.peer_seid);
        let reader = self.shared.sockets.read_as_told(socket, cx.me(), named);
        cx.task(reader_name(socket), reader);
    }

    fn received(&mut self, now: Instant, batch: &Batch) {
        let local = self.shared.sockets.address(batch.socket);
        for (peer, octets) in batch.iter() {
            self.shared.tap.write(peer, local, octets);
            // A number that does not fit is that of none: the answer leaves from any address.
            let at = u16::try_from(batch.socket).ok();
            self.protocol.handle_datagram_at(now, peer, at, octets);
        }
    }

    /// Does all that the protocol asks for, until it asks for nothing. What there is to send waits
    /// for the messages that wait already, so that it leaves together.
    async fn settle(&mut self, cx: &mut Context<Self>) {
        let now = cx.now().into_std();
        while let Some(event) = self.protocol.poll_event() {
            self.event(now, event, cx);
        }
        let leaving = std::iter::from_fn(|| self.protocol.poll_transmit());
        self.leaving.extend(leaving);
        self.waited += 1;
        if cx.has_more() && self.leaving.len().max(self.waited) < TOGETHER {
            return;
        }
        self.send().await;
        self.tell_counters();
        self.arm(now, cx);
    }

    /// Sends what is to leave, after the store was told what is to be told before.
    async fn send(&mut self) {
        self.waited = 0;
        self.write_news().await;
        let sockets = &self.shared.sockets;
        for transmit in &self.leaving {
            let from = sockets.address(sockets.leaves_from(transmit));
            self.shared.tap.write(from, transmit.peer, &transmit.octets);
        }
        let unsent = sockets.send_all(&self.leaving);
        add_many(&self.shared.counters.unsent, unsent);
        self.leaving.clear();
        self.shared.tap.flush();
    }

    /// Writes what happened to associations before a peer is told.
    async fn write_news(&mut self) {
        if self.news.is_empty() {
            return;
        }
        let news = std::mem::take(&mut self.news);
        // Only sessions are refused for want of room, and there are none among these.
        while self.shared.store.write(news.clone()).settled().await == Err(Refused::Busy) {
            tokio::task::yield_now().await;
        }
        let mut ended = self.shared.ended.lock();
        for change in &news {
            if let Change::Remove(seid) = change {
                ended.remove(seid);
            }
        }
    }

    fn event(&mut self, now: Instant, event: Event, cx: &mut Context<Self>) {
        match event {
            Event::SessionRequest {
                transaction,
                peer,
                association,
                octets,
            } => {
                self.session_request(now, transaction, peer, association, &octets);
            }
            Event::AssociationUp { association, kept } => {
                self.association_up(association, kept, cx)
            }
            Event::NodeRequest {
                transaction,
                association,
                octets,
            } => {
                self.node_request(now, transaction, association, &octets);
                if !self.unstarted.is_empty() {
                    cx.send_after(Duration::ZERO, EndpointMsg::Start);
                }
            }
            Event::OverLimit {
                transaction,
                octets,
                overload,
            } => self.over_limit(transaction, &octets, &overload),
            Event::PeerRestarted { association } => self.peer_restarted(association),
            Event::RestartDenied { association, claim } => self.restart_denied(association, claim),
            Event::StampIgnored { association, stamp } => self.stamp_ignored(association, stamp),
            Event::AssociationReleased { association } => self.association_released(&association),
            Event::Response {
                request, octets, ..
            } => self.answered(request, Some(octets)),
            Event::RequestFailed { request, .. } => self.answered(request, None),
            Event::RequestWithdrawn { request, octets } => self.withdrawn(request, &octets),
            Event::PeerSilent { association } => {
                if let Some(association) = self.protocol.associations().get(association) {
                    let (node, address) = (&association.node, association.address);
                    tracing::warn!(%node, %address, "a peer does not answer heartbeats");
                }
            }
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

    /// Takes note of how a request of ours ended: the owner's, or a report.
    fn answered(&mut self, request: RequestId, answer: Option<Arc<[u8]>>) {
        if self.orders.contains_key(&request) {
            self.obeyed(request, answer.as_ref().ok_or(OrderError::NoAnswer));
        } else {
            self.reported(request, answer);
        }
    }

    /// Takes note of a request of ours that ended with its association.
    fn withdrawn(&mut self, request: RequestId, octets: &Arc<[u8]>) {
        self.recall(octets);
        if self.orders.contains_key(&request) {
            self.obeyed(request, Err(OrderError::AssociationEnded));
        } else if self.reports.forget(request) {
            add(&self.shared.counters.reports_withdrawn);
        }
    }

    /// Drops a request that was withdrawn from what is to leave.
    fn recall(&mut self, octets: &Arc<[u8]>) {
        self.leaving
            .retain(|transmit| !Arc::ptr_eq(&transmit.octets, octets));
    }

    fn tell_counters(&mut self) {
        let stats = self.protocol.stats();
        let discards = Discard::ALL.map(|kind| self.protocol.discarded(kind));
        let (before, discards_before) = std::mem::replace(&mut self.told, (stats, discards));
        let mut news = EndpointStats::default();
        news.datagrams = stats.datagrams - before.datagrams;
        news.repeated = stats.repeated - before.repeated;
        news.evicted = stats.evicted - before.evicted;
        news.limited = stats.limited - before.limited;
        news.restarts = stats.restarts - before.restarts;
        news.restarts_denied = stats.restarts_denied - before.restarts_denied;
        news.stamps_ignored = stats.stamps_ignored - before.stamps_ignored;
        let mut grown = discards;
        grown
            .iter_mut()
            .zip(discards_before)
            .for_each(|(count, before)| *count -= before);
        let counters = &self.shared.counters;
        counters.told(news, grown);
        for (gauge, count) in [
            (&counters.working, stats.working),
            (&counters.pending, self.pending.len()),
            (&counters.answers, stats.answers),
        ] {
            gauge.store(count as u64, Ordering::Relaxed);
        }
    }

    /// Sees to it that a timer ends when the protocol wants to be called.
    fn arm(&mut self, now: Instant, cx: &mut Context<Self>) {
        let Some(wanted) = self.protocol.poll_timeout() else {
            return;
        };
        match self.timer {
            Some((at, _)) if at <= wanted => return,
            Some((_, timer)) => _ = cx.cancel(timer),
            None => {}
        }
        let timer = cx.send_after(wanted.saturating_duration_since(now), EndpointMsg::Due);
        self.timer = Some((wanted, timer));
    }
}

/// So many datagrams, or what so many messages came to, leave at once though others wait.
const TOGETHER: usize = 64;

const READER: &str = "reader ";

fn reader_name(socket: usize) -> String {
    format!("{READER}{socket}")
}

fn protocol_config(shared: &Shared) -> EndpointConfig {
    let config = &shared.config;
    let mut protocol = EndpointConfig::new(Role::UserPlane, shared.name.clone(), shared.recovery);
    let retransmission = Retransmission {
        t1: config.timers.t1,
        n1: config.timers.n1,
    };
    protocol.release = config.release;
    protocol.features = config.feature_octets();
    protocol.allowed.clone_from(&config.peers);
    protocol.retransmission = retransmission;
    protocol.answers = AnswerLimits {
        hold: retransmission.span(),
        entries: config.limits.response_cache,
        ..AnswerLimits::default()
    };
    protocol.heartbeat = Some(config.timers.heartbeat).filter(|interval| !interval.is_zero());
    protocol.restarts.clone_from(&config.peer.restarts);
    protocol.associations = config.limits.associations;
    protocol.requests = config.limits.transactions;
    let peer = &config.peer;
    protocol.peer = PeerLimits {
        associations: peer.associations,
        transactions: peer.transactions,
        rate: peer.requests_per_second,
        burst: peer.burst,
    };
    protocol.datagram = config.limits.datagram;
    protocol.seed = shared.seed;
    protocol
}
