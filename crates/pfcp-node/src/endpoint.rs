//! The endpoint: the actor that owns the sockets, the transactions and the map of sessions.
//!
//! ```text
//!   socket ─ batch ─▶ endpoint ─ request ─▶ session        one queue each way:
//!   socket ◀─ send ── endpoint ◀─ answer ── session        a mailbox, a completion lane
//! ```
//!
//! The endpoint does not interpret the rules of a session and never waits for a session: if a
//! session drops a request without a response, the dropped reply arrives as a completion too. When
//! the endpoint panics, its next incarnation finds sockets, associations and sessions in the shared
//! state, and starts their actors again.

mod dispatch;
mod node_report;
mod node_requests;
mod peers;
mod release;
mod report;
mod superseded;

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use strowger::{
    Accepts, Actor, ActorRef, Ask, Completion, Context, EarliestTimer, Exit, MailboxSpec, Reply,
    ReplyLane, Signal,
};
use strowger_pfcp::association::{AssociationId, Recovery};
use strowger_pfcp::endpoint::{
    DiscardReason, Endpoint as Protocol, EndpointConfig, EndpointStats, Event, PeerLimits, Role,
    Transmit,
};
use strowger_pfcp::transaction::{RequestId, ResponseCacheLimits, Retransmission};
use strowger_pfcp::{MessageType, Seid, Sequence};

pub(crate) use report::OutgoingReport;
use report::PendingReports;

use crate::association::AssociationSessions;
use crate::node::NodeRequestError;
use crate::paged_map::SeidMap;
use crate::session::{SessionMsg, SessionResponse};
use crate::shared::{Shared, add, add_many};
use crate::socket::Batch;
use crate::store::{StoreChange, WriteRefused};
use node_report::NodeReportResult;
pub(crate) use node_report::SendNodeReport;
use release::ReleaseWaiters;
pub(crate) use release::RequestRelease;

/// The messages that the endpoint accepts.
#[derive(Debug)]
pub(crate) enum EndpointMsg {
    /// Datagrams from a socket.
    Received(Batch),
    /// A session answered or dropped its request.
    Completed(Completion<SessionResponse>),
    /// A timer of the protocol has expired.
    Due,
    /// More sessions of the store have to be started.
    Start,
    /// A session has a report to send.
    Report(OutgoingReport),
    /// The owner of the node sends a report to a peer.
    NodeReport(Ask<SendNodeReport>),
    /// The owner of the node asks a peer to release its association.
    Release(Ask<RequestRelease>),
    /// The time limit for the release of an association is over.
    ReleaseDue,
}

impl Accepts<OutgoingReport> for EndpointMsg {
    fn wrap(outgoing: OutgoingReport) -> Self {
        Self::Report(outgoing)
    }
}

impl Accepts<Batch> for EndpointMsg {
    fn wrap(batch: Batch) -> Self {
        Self::Received(batch)
    }
}

impl Accepts<Completion<SessionResponse>> for EndpointMsg {
    fn wrap(completion: Completion<SessionResponse>) -> Self {
        Self::Completed(completion)
    }
}

impl Accepts<Ask<SendNodeReport>> for EndpointMsg {
    fn wrap(request: Ask<SendNodeReport>) -> Self {
        Self::NodeReport(request)
    }
}

impl Accepts<Ask<RequestRelease>> for EndpointMsg {
    fn wrap(request: Ask<RequestRelease>) -> Self {
        Self::Release(request)
    }
}

/// The actor that owns sockets, transactions and the map of sessions.
#[derive(Debug)]
pub(crate) struct Endpoint {
    shared: Arc<Shared>,
    protocol: Protocol,
    lane: ReplyLane<SessionResponse>,
    association_sessions: FxHashMap<AssociationId, AssociationSessions>,
    sessions: SeidMap<SessionEntry>,
    /// Requests in progress at a session, by the token of their reply.
    pending: FxHashMap<u64, ForwardedRequest>,
    /// Session reports that wait for their responses.
    reports: PendingReports,
    /// Requests to peers that the owner of the node waits for.
    node_reports: FxHashMap<RequestId, Reply<NodeReportResult>>,
    /// Peers that were asked to release their associations.
    releases: ReleaseWaiters,
    timer: EarliestTimer,
    /// Sessions of the store whose actors have not been started yet.
    unstarted: Vec<Seid>,
    /// Changes that the store has to write before anything is sent.
    changes: Vec<StoreChange>,
    /// Messages to be sent together, and the number of actor messages that were handled since the
    /// last send.
    outgoing: Vec<Transmit>,
    handled_since_send: usize,
    reported_stats: (EndpointStats, [u64; DiscardReason::ALL.len()]),
}

/// A session in the map of the endpoint.
#[derive(Debug)]
struct SessionEntry {
    /// `None` until the actor is started, at the latest by a request.
    actor: Option<ActorRef<SessionMsg>>,
    association: AssociationId,
    /// The SEID of the peer, by which [`AssociationSessions`] finds the session. 0 if it cannot.
    peer_seid: Seid,
    /// The sequence number of the establishment; `None` for a restored or moved session.
    sequence: Option<Sequence>,
}

#[derive(Clone, Copy, Debug)]
struct ForwardedRequest {
    seid: Seid,
    establishes: bool,
    /// The incarnation of the peer that sent the request.
    recovery: Option<Recovery>,
}

impl Actor for Endpoint {
    type Msg = EndpointMsg;
    type Args = Arc<Shared>;
    type Error = Infallible;

    /// The unit is batches of up to 64 datagrams; further datagrams wait in the socket buffers.
    const MAILBOX: MailboxSpec = MailboxSpec::bounded(64);

    async fn pre_start(shared: Arc<Shared>, cx: &mut Context<Self>) -> Result<Self, Infallible> {
        let mut endpoint = Self {
            protocol: Protocol::new(protocol_config(&shared)),
            lane: cx.lane(),
            association_sessions: FxHashMap::default(),
            sessions: SeidMap::default(),
            pending: FxHashMap::default(),
            reports: PendingReports::default(),
            node_reports: FxHashMap::default(),
            releases: ReleaseWaiters::default(),
            timer: EarliestTimer::new(),
            unstarted: Vec::new(),
            changes: Vec::new(),
            outgoing: Vec::new(),
            handled_since_send: 0,
            reported_stats: (EndpointStats::default(), [0; DiscardReason::ALL.len()]),
            shared,
        };
        endpoint.shared.wait_for_all_writes().await;
        *endpoint.shared.endpoint.lock() = Some(cx.actor_ref());
        // The previous incarnation may not have written the end of these sessions; the store
        // decides.
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
        endpoint.process_events(cx).await;
        Ok(endpoint)
    }

    fn describe(message: &EndpointMsg) -> Cow<'static, str> {
        match message {
            EndpointMsg::Received(batch) => format!("{} datagrams", batch.count()).into(),
            EndpointMsg::Completed(_) => "the answer of a session".into(),
            EndpointMsg::Due => "a timer of the protocol".into(),
            EndpointMsg::Start => "sessions of the store to be started".into(),
            EndpointMsg::Report(_) => "the report of a session".into(),
            EndpointMsg::NodeReport(_) | EndpointMsg::Release(_) => "an order of the owner".into(),
            EndpointMsg::ReleaseDue => "the end of a wait for a release".into(),
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
                self.timer.clear();
                self.protocol.handle_timeout(now);
            }
            EndpointMsg::Start => {
                // Sessions start from the store, so it has to be up to date.
                self.write_changes().await;
                self.start_some(cx);
            }
            EndpointMsg::Report(outgoing) => self.report(now, &outgoing),
            EndpointMsg::NodeReport(Ask { request, reply }) => {
                self.send_node_report(now, request, reply)
            }
            EndpointMsg::Release(Ask { request, reply }) => self.release(now, &request, reply, cx),
            EndpointMsg::ReleaseDue => self.releases_due(now),
        }
        self.process_events(cx).await;
        Ok(())
    }

    async fn signal(&mut self, signal: Signal, cx: &mut Context<Self>) -> Result<(), Infallible> {
        match signal {
            Signal::ChildEnded { key, .. } => self.supervisor_ended(&key, cx).await,
            Signal::TaskEnded { name } => {
                // Receiving failed; the socket is still bound and may recover.
                if let Some(socket) = name.strip_prefix(READER).and_then(|at| at.parse().ok()) {
                    self.read(socket, cx);
                }
            }
            _ => {}
        }
        self.process_events(cx).await;
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
        let reader = self
            .shared
            .sockets
            .read_with_faults(socket, cx.actor_ref(), named);
        cx.task(reader_name(socket), reader);
    }

    fn received(&mut self, now: Instant, batch: &Batch) {
        let local = self.shared.sockets.address(batch.socket);
        for (peer, bytes) in batch.iter() {
            self.shared.capture.write(peer, local, bytes);
            // A socket number that does not fit in 16 bits counts as unknown: the response may
            // leave from any address.
            let at = u16::try_from(batch.socket).ok();
            self.protocol.handle_datagram_at(now, peer, at, bytes);
        }
    }

    /// Handles all events of the protocol. Messages to be sent are held back while more actor
    /// messages are queued, so that they leave in one batch.
    async fn process_events(&mut self, cx: &mut Context<Self>) {
        let now = cx.now().into_std();
        while let Some(event) = self.protocol.poll_event() {
            self.event(now, event, cx);
        }
        let outgoing = std::iter::from_fn(|| self.protocol.poll_transmit());
        self.outgoing.extend(outgoing);
        self.handled_since_send += 1;
        if cx.has_messages() && self.outgoing.len().max(self.handled_since_send) < SEND_BATCH {
            return;
        }
        self.send().await;
        self.update_counters();
        if let Some(at) = self.protocol.poll_timeout() {
            self.timer.arm(at, EndpointMsg::Due, cx);
        }
    }

    /// Sends the pending messages, after the store has written the changes that must precede them.
    async fn send(&mut self) {
        self.handled_since_send = 0;
        self.write_changes().await;
        let sockets = &self.shared.sockets;
        for transmit in &self.outgoing {
            let from = sockets.address(sockets.socket_for(transmit));
            self.shared
                .capture
                .write(from, transmit.peer, &transmit.bytes);
        }
        let unsent = sockets.send_all(&self.outgoing);
        add_many(&self.shared.counters.unsent, unsent);
        self.outgoing.clear();
        self.shared.capture.flush();
    }

    /// Writes changes of associations before a peer is told about them.
    async fn write_changes(&mut self) {
        if self.changes.is_empty() {
            return;
        }
        let changes = std::mem::take(&mut self.changes);
        // The store refuses only changes of sessions for lack of room, and there are none among
        // these.
        while self.shared.store.write(changes.clone()).outcome().await == Err(WriteRefused::Busy) {
            tokio::task::yield_now().await;
        }
        let mut ended = self.shared.ended.lock();
        for change in &changes {
            if let StoreChange::Remove(seid) = change {
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
                bytes,
            } => {
                self.session_request(now, transaction, peer, association, &bytes);
            }
            Event::AssociationUp { association, kept } => {
                self.association_up(association, kept, cx)
            }
            Event::NodeRequest {
                transaction,
                association,
                bytes,
            } => {
                self.node_request(now, transaction, association, &bytes);
                if !self.unstarted.is_empty() {
                    cx.send_after(Duration::ZERO, EndpointMsg::Start);
                }
            }
            Event::OverLimit {
                transaction,
                bytes,
                overload,
            } => self.over_limit(transaction, &bytes, &overload),
            Event::PeerRestarted { association } => {
                self.peer_restarted(association);
                self.releases.withdraw(association);
            }
            Event::ReleaseAnswered {
                association,
                peer,
                cause,
                invalid,
            } => {
                if let Some(reason) = &invalid {
                    tracing::warn!(%peer, reason, "invalid answer to the request for a release");
                }
                self.release_answered(association, cause, invalid);
            }
            Event::SetupRefused {
                peer,
                node,
                count,
                reason,
            } => {
                tracing::warn!(%peer, %node, count, reason, "association setup refused");
            }
            Event::ClaimRefused {
                peer,
                node,
                owner,
                count,
            } => tracing::warn!(
                %peer,
                %node,
                %owner,
                count,
                "request refused with cause 72: its Node ID belongs to another peer"
            ),
            Event::RestartDenied { association, claim } => self.restart_denied(association, claim),
            Event::StampIgnored { association, stamp } => self.stamp_ignored(association, stamp),
            Event::AssociationReleased { association } => self.association_released(&association),
            Event::Response { request, bytes, .. } => self.answered(now, request, Some(bytes)),
            Event::RequestFailed { request, .. } => self.answered(now, request, None),
            Event::RequestWithdrawn { request, bytes } => self.withdrawn(request, &bytes),
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

    /// Handles the outcome of a request of ours: one of the owner, or a session report.
    fn answered(&mut self, now: Instant, request: RequestId, answer: Option<Arc<[u8]>>) {
        if self.node_reports.contains_key(&request) {
            self.node_report_completed(request, answer.as_ref().ok_or(NodeRequestError::NoAnswer));
        } else {
            self.reported(now, request, answer);
        }
    }

    /// Handles a request of ours that ended with its association.
    fn withdrawn(&mut self, request: RequestId, bytes: &Arc<[u8]>) {
        self.discard_unsent(bytes);
        if self.node_reports.contains_key(&request) {
            self.node_report_completed(request, Err(NodeRequestError::AssociationEnded));
        } else if self.reports.forget(request) {
            add(&self.shared.counters.reports_withdrawn);
        }
    }

    /// Removes a withdrawn request from the messages to be sent.
    fn discard_unsent(&mut self, bytes: &Arc<[u8]>) {
        self.outgoing
            .retain(|transmit| !Arc::ptr_eq(&transmit.bytes, bytes));
    }

    fn update_counters(&mut self) {
        let stats = self.protocol.stats();
        let discards = DiscardReason::ALL.map(|kind| self.protocol.discarded(kind));
        let (before, discards_before) =
            std::mem::replace(&mut self.reported_stats, (stats, discards));
        let mut increase = EndpointStats::default();
        increase.datagrams = stats.datagrams - before.datagrams;
        increase.repeated = stats.repeated - before.repeated;
        increase.evicted = stats.evicted - before.evicted;
        increase.limited = stats.limited - before.limited;
        increase.restarts = stats.restarts - before.restarts;
        increase.restarts_denied = stats.restarts_denied - before.restarts_denied;
        increase.stamps_ignored = stats.stamps_ignored - before.stamps_ignored;
        increase.claims_refused = stats.claims_refused - before.claims_refused;
        increase.setups_refused = stats.setups_refused - before.setups_refused;
        let mut grown = discards;
        grown
            .iter_mut()
            .zip(discards_before)
            .for_each(|(count, before)| *count -= before);
        let counters = &self.shared.counters;
        counters.add_stats(increase, grown);
        for (gauge, count) in [
            (&counters.working, stats.working),
            (&counters.pending, self.pending.len()),
            (&counters.answers, stats.answers),
        ] {
            gauge.store(count as u64, Ordering::Relaxed);
        }
    }
}

/// The number of pending datagrams, or of handled actor messages, at which everything is sent even
/// if more actor messages are queued.
const SEND_BATCH: usize = 64;

/// The requests that a node in the UPF role sends to its peers.
pub const NODE_REQUESTS: &[MessageType] = &[
    MessageType::HEARTBEAT_REQUEST,
    MessageType::ASSOCIATION_UPDATE_REQUEST,
    MessageType::NODE_REPORT_REQUEST,
    MessageType::SESSION_REPORT_REQUEST,
];

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
    protocol.features = config.feature_bytes();
    protocol.sends = NODE_REQUESTS;
    protocol.allowed.clone_from(&config.peers);
    protocol.retransmission = retransmission;
    protocol.answers = ResponseCacheLimits {
        hold: retransmission.span(),
        entries: config.limits.response_cache,
        ..ResponseCacheLimits::default()
    };
    protocol.heartbeat = Some(config.timers.heartbeat).filter(|interval| !interval.is_zero());
    protocol.restarts.clone_from(&config.peer.restarts);
    protocol.named.clone_from(&config.peer.named);
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
