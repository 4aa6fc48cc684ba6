//! The actor that generates the load, with one socket, one schedule, and no tasks per request.

mod answer;
mod probe;
mod report;
mod restore;

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use strowger::{Actor, Ask, Context, EarliestTimer, MailboxSpec, Reply};
use strowger_pfcp::association::{AssociationId, NodeName, Recovery};
use strowger_pfcp::endpoint::{Endpoint as Protocol, EndpointConfig, Event, Role, Transmit};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::transaction::{RequestId, Retransmission};
use strowger_pfcp::{Header, MessageType, Seid, Sequence};

use super::change::{AppliedChanges, SessionChange};
use super::link_faults::LinkFaults;
use super::message::LoadMsg;
use super::mix::{ChangeKind, KindSequence};
use super::requests::RequestBuilder;
use super::{LoadPace, LoadPlan, LoadStats, pacer};
use crate::client::{ClientError, request_failed};
use crate::journal::Journal;
use crate::restoration::{PeerSearch, RestorationQueue};
use crate::socket::{Sockets, local_address_for};
use pacer::Pacer;

#[derive(Clone, Debug)]
pub(super) struct LoadArgs {
    pub(super) sockets: Arc<Sockets>,
    pub(super) name: NodeName,
    pub(super) recovery: Recovery,
    pub(super) plan: Arc<LoadPlan>,
    pub(super) stats: Arc<Mutex<LoadStats>>,
    pub(super) journal: Option<Arc<Mutex<Journal>>>,
}

/// A request that has not been answered yet.
#[derive(Debug)]
struct LoadRequest {
    kind: Operation,
    /// The time at which the request was meant to be sent.
    intended: Instant,
    /// The number of the request in the journal.
    number: u64,
    /// The epoch of the node in which the request was sent.
    epoch: u64,
}

#[derive(Debug)]
enum Operation {
    Establish(Seid),
    Delete,
    Modify(Seid, SessionChange),
    Probe(Seid, Reply<Result<Option<Cause>, ClientError>>),
    /// The establishment of a session that the node lost.
    Restore(Seid),
    /// A modification that shows whether the node has a session, with the node's SEID.
    Check(Seid, Seid),
    /// The deletion of a session at the end of the load.
    Clear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadPhase {
    Associating,
    Working,
    /// The load waits for responses.
    Draining,
    /// The load deletes its sessions.
    Clearing,
    Releasing,
}

#[derive(Debug)]
pub(super) struct LoadActor {
    sockets: Arc<Sockets>,
    plan: Arc<LoadPlan>,
    stats: Arc<Mutex<LoadStats>>,
    protocol: Protocol,
    requests: RequestBuilder,
    phase: LoadPhase,
    waiting: Vec<Reply<Result<(), ClientError>>>,
    association: Option<AssociationId>,
    pending: FxHashMap<RequestId, LoadRequest>,
    /// The number of new sessions of which it is not known yet whether the node has them.
    establishing: usize,
    /// The sessions that are held, oldest first; some may already be missing in `remote`.
    order: VecDeque<Seid>,
    remote: FxHashMap<Seid, Seid>,
    next_seid: u64,
    began: Instant,
    /// The numbers of scheduled requests and of panics so far.
    scheduled: u64,
    panics: u64,
    turn: u64,
    /// The number of modifications that are due, including fractions.
    modifications: f64,
    /// The number of modifications in progress, of the sessions that have any. They are not deleted
    /// until the answer: the deletion could overtake the modification.
    modifying: FxHashMap<Seid, usize>,
    journal: Option<Arc<Mutex<Journal>>>,
    /// Number of requests so far.
    numbers: u64,
    /// The interval at which the schedule is checked.
    step: Duration,
    /// `Some` while the load follows its schedule.
    pacer: Option<Pacer>,
    timer: EarliestTimer,
    link_faults: LinkFaults,
    /// Datagrams to be sent.
    outgoing: Vec<Transmit>,
    /// The schedule of attempts to find the node when it is lost.
    search: PeerSearch,
    /// The sessions that the node lost, with the number of attempts to restore each.
    lost: FxHashMap<Seid, u8>,
    backlog: RestorationQueue,
    /// Incremented when the node is lost and when it is found.
    epoch: u64,
    /// The Recovery Time Stamp with which the node was last found.
    recovery: u32,
    /// The cumulative effect of the acknowledged modifications of each session.
    modified: FxHashMap<Seid, AppliedChanges>,
    /// The sequence of the kinds of modifications.
    kinds: KindSequence,
}

/// The maximum number of deletions in flight at the end of the load.
const MAX_DELETIONS: usize = 64;

impl Actor for LoadActor {
    type Msg = LoadMsg;
    type Args = LoadArgs;
    type Error = io::Error;

    const MAILBOX: MailboxSpec = MailboxSpec::bounded(256);

    async fn pre_start(args: LoadArgs, cx: &mut Context<Self>) -> Result<Self, io::Error> {
        let LoadArgs {
            sockets,
            name,
            recovery,
            plan,
            stats,
            journal,
        } = args;
        let local = sockets.address(0);
        let mut protocol = EndpointConfig::new(Role::ControlPlane, name.clone(), recovery);
        protocol.allowed = vec![strowger_pfcp::endpoint::Network::host(plan.to.ip())];
        protocol.retransmission = Retransmission {
            t1: plan.t1,
            n1: plan.n1,
        };
        protocol.release = plan.release;
        protocol.heartbeat = Some(plan.heartbeat).filter(|interval| !interval.is_zero());
        cx.task("reader", sockets.read(0, cx.actor_ref()));
        let step = pacer::step(plan.pace);
        let towards = local_address_for(local.ip(), plan.to.ip());
        let towards = SocketAddr::new(towards, local.port());
        Ok(Self {
            requests: RequestBuilder::new(name, towards, &plan).map_err(io::Error::other)?,
            kinds: KindSequence::new(&plan.shares),
            link_faults: LinkFaults::of(&plan),
            search: PeerSearch::new(plan.restoration, local.port().into()),
            backlog: RestorationQueue::new(&plan.restoration),
            lost: FxHashMap::default(),
            epoch: 0,
            recovery: 0,
            modified: FxHashMap::default(),
            outgoing: Vec::new(),
            sockets,
            plan,
            stats,
            protocol: Protocol::new(protocol),
            phase: LoadPhase::Associating,
            waiting: Vec::new(),
            association: None,
            pending: FxHashMap::default(),
            establishing: 0,
            order: VecDeque::new(),
            remote: FxHashMap::default(),
            next_seid: 1,
            began: cx.now().into_std(),
            scheduled: 0,
            panics: 0,
            turn: 0,
            modifications: 0.0,
            modifying: FxHashMap::default(),
            journal,
            numbers: 0,
            step,
            pacer: None,
            timer: EarliestTimer::new(),
        })
    }

    async fn handle(&mut self, message: LoadMsg, cx: &mut Context<Self>) -> Result<(), io::Error> {
        let now = cx.now().into_std();
        match message {
            LoadMsg::Received(batch) => {
                for (peer, bytes) in batch.iter() {
                    if !self.link_faults.loses() {
                        self.protocol.handle_datagram(now, peer, bytes);
                    }
                }
            }
            LoadMsg::Due => {
                self.timer.clear();
                self.protocol.handle_timeout(now);
            }
            LoadMsg::Tick => {
                if let Some(pacer) = &self.pacer {
                    pacer.tick_handled();
                }
                self.link_faults.release_held(now, &mut self.outgoing);
            }
            LoadMsg::Begin(Ask { reply, .. }) => self.begin(now, reply),
            LoadMsg::ListHeld(Ask { reply, .. }) => {
                let held = |seid| self.remote.get(seid).map(|&remote| (*seid, remote));
                reply.send(self.order.iter().filter_map(held).collect());
            }
            LoadMsg::Probe(Ask { request, reply }) => self.probe(now, request.seid, reply),
            LoadMsg::Stop if self.phase == LoadPhase::Working => self.drain(now),
            LoadMsg::Stop => {}
        }
        self.process_events(now, cx);
        if self.phase == LoadPhase::Working && self.pacer.is_none() {
            self.pacer = Some(Pacer::start(self.step, cx.actor_ref())?);
        }
        Ok(())
    }
}

impl LoadActor {
    /// Sets up the association on behalf of the first caller. If this started earlier, it could
    /// fail and end the load before there is a caller to report to.
    fn begin(&mut self, now: Instant, reply: Reply<Result<(), ClientError>>) {
        if self.phase != LoadPhase::Associating {
            return reply.send(Ok(()));
        }
        if self.waiting.is_empty() {
            // The first request always fits into the limits.
            let _ = self.protocol.associate(now, self.plan.to);
        }
        self.waiting.push(reply);
    }

    /// Handles protocol events, starts requests that are due, sends datagrams, and sets the next
    /// timer.
    fn process_events(&mut self, now: Instant, cx: &mut Context<Self>) {
        while let Some(event) = self.protocol.poll_event() {
            self.event(now, event, cx);
        }
        match self.phase {
            LoadPhase::Working => {
                self.search_for_node(now);
                self.work(now);
                self.restore(now);
            }
            LoadPhase::Draining if self.pending.is_empty() => self.on_drained(now, cx),
            LoadPhase::Clearing => self.delete_held_sessions(now, cx),
            LoadPhase::Associating | LoadPhase::Draining | LoadPhase::Releasing => {}
        }
        // Requests are written to the journal before they can be executed.
        if let Some(journal) = &self.journal {
            journal.lock().flush();
        }
        while let Some(transmit) = self.protocol.poll_transmit() {
            self.link_faults.pass(now, transmit, &mut self.outgoing);
        }
        // A datagram that the system does not accept is retransmitted after T1, as if the network
        // had lost it.
        self.sockets.send_all(&self.outgoing);
        self.outgoing.clear();
        self.publish(now);
        let due = [self.protocol.poll_timeout(), self.due(now)];
        if let Some(at) = due.into_iter().flatten().min() {
            self.timer.arm(at, LoadMsg::Due, cx);
        }
    }

    fn publish(&self, now: Instant) {
        let mut stats = self.stats.lock();
        stats.retransmitted = self.protocol.stats().retransmitted;
        (stats.dropped, stats.datagrams_reordered) = self.link_faults.injected;
        if self.phase == LoadPhase::Working {
            stats.held = self.remote.len() as u64;
            stats.elapsed = now.saturating_duration_since(self.began);
        }
    }

    /// Injects the panic and starts all requests that the schedule has due.
    fn work(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.began);
        if self
            .plan
            .duration
            .is_some_and(|duration| elapsed >= duration)
        {
            return self.drain(now);
        }
        if !self.search.is_up() {
            return self.skip(now);
        }
        // Before the requests: a load that is behind its schedule deletes a session as soon as it
        // holds it.
        self.inject_due_panic(now);
        match self.plan.pace {
            LoadPace::Rate(rate) if rate > 0.0 => {
                while let Some(at) = due(self.began, self.scheduled, rate, now) {
                    // The delay of our own timer is not attributed to the peer.
                    let intended = now.min(at + 2 * self.step);
                    if self.occupied_sessions() >= self.plan.sessions
                        && !self.delete_oldest(now, intended)
                    {
                        // The request waits for a response, and this time counts as its latency.
                        break;
                    }
                    self.scheduled += 1;
                    self.establish(now, intended);
                }
            }
            LoadPace::Rate(_) => {}
            LoadPace::InFlight(most) => {
                while self.pending.len() < most.max(1) {
                    let before = self.pending.len();
                    if self.occupied_sessions() < self.plan.sessions {
                        self.establish(now, now);
                    } else {
                        let _ = self.delete_oldest(now, now);
                    }
                    if self.pending.len() == before {
                        break;
                    }
                }
            }
        }
    }

    fn establish(&mut self, now: Instant, intended: Instant) {
        let seid = Seid(self.next_seid);
        self.next_seid += 1;
        let Ok(body) = self.requests.establishment(seid) else {
            return;
        };
        let message_type = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let kind = Operation::Establish(seid);
        if self.send(now, intended, message_type, Seid(0), &body, kind) {
            self.establishing += 1;
            self.stats.lock().sent += 1;
        }
        self.modifications += self.plan.modifications;
        while self.modifications >= 1.0 {
            self.modifications -= 1.0;
            self.modify(now, intended);
        }
    }

    /// Returns the number of sessions that are held, requested, or to be restored.
    fn occupied_sessions(&self) -> usize {
        self.remote.len() + self.establishing + self.lost.len()
    }

    /// Modifies a session that has no modification in progress.
    fn modify(&mut self, now: Instant, intended: Instant) {
        let Some(seid) = self.pick_unmodified_session() else {
            return;
        };
        let applied = self.modified.get(&seid).copied().unwrap_or_default();
        let change = applied.next(self.kinds.next(), self.numbers);
        self.change(now, intended, seid, change);
    }

    /// Resumes an idle session that the peer has downlink data for.
    fn resume_idle_session(&mut self, now: Instant, seid: Seid) {
        self.stats.lock().downlink_reports += 1;
        let applied = self.modified.get(&seid).copied().unwrap_or_default();
        if applied.is_idle() && !self.modifying.contains_key(&seid) {
            self.change(now, now, seid, applied.next(ChangeKind::Idle, self.numbers));
        }
    }

    fn change(&mut self, now: Instant, intended: Instant, seid: Seid, change: SessionChange) {
        let (Some(&remote), Ok(body)) =
            (self.remote.get(&seid), self.requests.modification(change))
        else {
            return;
        };
        let message_type = MessageType::SESSION_MODIFICATION_REQUEST;
        let kind = Operation::Modify(seid, change);
        if self.send(now, intended, message_type, remote, &body, kind) {
            self.modification_started(seid);
            self.stats.lock().sent += 1;
        }
    }

    fn modification_started(&mut self, seid: Seid) {
        *self.modifying.entry(seid).or_default() += 1;
    }

    fn modification_ended(&mut self, seid: Seid) {
        if let Entry::Occupied(mut modifications) = self.modifying.entry(seid) {
            *modifications.get_mut() -= 1;
            if *modifications.get() == 0 {
                modifications.remove();
            }
        }
    }

    /// Returns one of the held sessions, or `None` if that session is being modified.
    fn pick_unmodified_session(&mut self) -> Option<Seid> {
        // A fixed stride visits all sessions without a source of randomness.
        self.turn = self.turn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let place = self.turn.checked_rem(self.order.len() as u64)?;
        let place = usize::try_from(place).unwrap_or_default();
        let seid = self.order.get(place).copied()?;
        (!self.modifying.contains_key(&seid)).then_some(seid)
    }

    /// Deletes the session that has been held longest. Returns `false` if there is none.
    fn delete_oldest(&mut self, now: Instant, intended: Instant) -> bool {
        while let Some(seid) = self.order.pop_front() {
            if self.modifying.contains_key(&seid) {
                self.order.push_back(seid);
                if self
                    .order
                    .iter()
                    .all(|seid| self.modifying.contains_key(seid))
                {
                    return false;
                }
                continue;
            }
            let Some(remote) = self.remote.remove(&seid) else {
                continue;
            };
            self.modified.remove(&seid);
            let message_type = MessageType::SESSION_DELETION_REQUEST;
            if self.send(now, intended, message_type, remote, &[], Operation::Delete) {
                self.stats.lock().sent += 1;
            }
            return true;
        }
        false
    }

    fn send(
        &mut self,
        now: Instant,
        intended: Instant,
        message_type: MessageType,
        seid: Seid,
        body: &[u8],
        kind: Operation,
    ) -> bool {
        let asked = self
            .protocol
            .request(now, self.plan.to, message_type, seid, body);
        let Ok(id) = asked else {
            let mut stats = self.stats.lock();
            stats.lost += 1;
            stats.unanswered += 1;
            return false;
        };
        let number = self.numbers;
        self.numbers += 1;
        if let Some(journal) = &self.journal {
            let header = Header::session(message_type, seid, Sequence::default());
            let bytes = strowger_pfcp::endpoint::message(&header, body).unwrap_or_default();
            journal.lock().ask(number, &bytes);
        }
        let request = LoadRequest {
            kind,
            intended,
            number,
            epoch: self.epoch,
        };
        self.pending.insert(id, request).is_none()
    }

    fn event(&mut self, now: Instant, event: Event, cx: &mut Context<Self>) {
        match event {
            Event::AssociationUp { association, .. } if self.phase != LoadPhase::Associating => {
                self.on_peer_found(now, association);
            }
            Event::AssociationUp { association, .. } => {
                self.on_peer_found(now, association);
                self.phase = LoadPhase::Working;
                self.began = now;
                self.stats.lock().began = Some(now);
                for reply in self.waiting.drain(..) {
                    reply.send(Ok(()));
                }
            }
            Event::AssociationFailed { cause, .. } if self.phase != LoadPhase::Associating => {
                self.not_found(now, cause);
            }
            Event::AssociationFailed {
                peer,
                cause,
                invalid,
            } => {
                let error = request_failed(peer, cause, invalid);
                for reply in self.waiting.drain(..) {
                    reply.send(Err(error.clone()));
                }
                cx.stop();
            }
            Event::AssociationReleased { .. } => cx.stop(),
            Event::PeerSilent { .. } => self.on_peer_silent(now),
            Event::PeerHeard { association } => self.on_peer_heard(now, association),
            Event::PeerRestarted { association } => self.restarted(now, association),
            Event::Response { request, bytes, .. } => {
                if let Some(request) = self.pending.remove(&request) {
                    self.answered(now, request, &bytes);
                }
            }
            Event::RequestFailed { request, peer } => {
                if let Some(request) = self.pending.remove(&request) {
                    self.unanswered(now, request, peer);
                }
            }
            Event::SessionRequest {
                transaction, bytes, ..
            } => self.report(now, transaction, &bytes),
            _ => {}
        }
    }

    /// Stops sending new requests.
    fn drain(&mut self, now: Instant) {
        self.publish(now);
        self.pacer = None;
        self.phase = LoadPhase::Draining;
    }

    fn on_drained(&mut self, now: Instant, cx: &mut Context<Self>) {
        self.stats.lock().held = self.remote.len() as u64;
        if self.plan.keep {
            return cx.stop();
        }
        self.phase = LoadPhase::Clearing;
        self.delete_held_sessions(now, cx);
    }

    /// Deletes the held sessions, then releases the association.
    fn delete_held_sessions(&mut self, now: Instant, cx: &mut Context<Self>) {
        while self.pending.len() < MAX_DELETIONS {
            let Some(seid) = self.order.pop_front() else {
                break;
            };
            if let Some(remote) = self.remote.remove(&seid) {
                let message_type = MessageType::SESSION_DELETION_REQUEST;
                self.send(now, now, message_type, remote, &[], Operation::Clear);
            }
        }
        if !self.pending.is_empty() {
            return;
        }
        self.phase = LoadPhase::Releasing;
        let released = self
            .association
            .map(|association| self.protocol.release(now, association));
        if !matches!(released, Some(Ok(()))) {
            cx.stop();
        }
    }
}

/// Returns the time of a slot in a schedule, if it is not later than `now`.
fn due(began: Instant, slot: u64, rate: f64, now: Instant) -> Option<Instant> {
    let after = Duration::from_secs(slot).as_secs_f64() / rate;
    let at = began + Duration::try_from_secs_f64(after).ok()?;
    (at <= now).then_some(at)
}
