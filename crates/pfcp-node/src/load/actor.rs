//! The actor that generates the load: one socket, one schedule, no waiting tasks.

mod answer;
mod probe;
mod report;
mod restore;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use strowger::{Actor, Ask, Context, MailboxSpec, Reply, TimerKey};
use strowger_pfcp::association::{AssociationId, NodeName, Recovery};
use strowger_pfcp::endpoint::{Endpoint as Protocol, EndpointConfig, Event, Role, Transmit};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::transaction::{RequestId, Retransmission};
use strowger_pfcp::{Header, MessageType, Seid, Sequence};

use super::message::LoadMsg;
use super::requests::Sessions;
use super::trouble::Trouble;
use super::{LoadFigures, LoadPlan, Pace, pacer};
use crate::client::ClientError;
use crate::ledger::Ledger;
use crate::restoration::{Backlog, Search};
use crate::socket::{Sockets, local_towards};
use pacer::Pacer;

#[derive(Clone, Debug)]
pub(super) struct LoadArgs {
    pub(super) sockets: Arc<Sockets>,
    pub(super) name: NodeName,
    pub(super) recovery: Recovery,
    pub(super) plan: Arc<LoadPlan>,
    pub(super) figures: Arc<Mutex<LoadFigures>>,
    pub(super) ledger: Option<Arc<Mutex<Ledger>>>,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct Flight {
    what: What,
    /// When it was meant to be sent.
    intended: Instant,
    /// By what the ledger knows it.
    number: u64,
    /// The epoch of the node in which it was sent.
    epoch: u64,
}

#[derive(Debug)]
enum What {
    Establish(Seid),
    Delete,
    /// A modification, with the number that its rules have.
    Modify(Seid, u64),
    Probe(Seid, Reply<Result<Option<Cause>, ClientError>>),
    /// The establishment of a session that the node lost.
    Restore(Seid),
    /// A modification that shows whether the node has a session, by the node's identifier.
    Check(Seid, Seid),
    /// The deletion of a session after the work has ended.
    Clear,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Associating,
    Working,
    /// Answers are waited for.
    Draining,
    /// Sessions are deleted.
    Clearing,
    Releasing,
}

#[derive(Debug)]
pub(super) struct LoadActor {
    sockets: Arc<Sockets>,
    plan: Arc<LoadPlan>,
    figures: Arc<Mutex<LoadFigures>>,
    protocol: Protocol,
    sessions: Sessions,
    phase: Phase,
    waiting: Vec<Reply<Result<(), ClientError>>>,
    association: Option<AssociationId>,
    flights: FxHashMap<RequestId, Flight>,
    establishing: usize,
    /// Sessions that are held, the oldest first; some may be gone from `remote`.
    order: VecDeque<Seid>,
    remote: FxHashMap<Seid, Seid>,
    next_seid: u64,
    began: Instant,
    /// Requests of the schedule, and panics, begun so far.
    slots: u64,
    panics: u64,
    turn: u64,
    /// Modifications that are due, in parts of one.
    modifications: f64,
    /// Sessions with a modification on its way.
    modifying: FxHashSet<Seid>,
    ledger: Option<Arc<Mutex<Ledger>>>,
    /// Requests so far.
    numbers: u64,
    /// How often the schedule is looked at.
    step: Duration,
    /// As long as there is one to keep.
    pacer: Option<Pacer>,
    timer: Option<(Instant, TimerKey)>,
    trouble: Trouble,
    /// What is about to leave.
    leaving: Vec<Transmit>,
    /// The attempts to find the node when it is lost.
    search: Search,
    /// The sessions that the node lost, with the attempts to restore each.
    lost: FxHashMap<Seid, u8>,
    backlog: Backlog,
    /// Grows when the node is lost and when it is found.
    epoch: u64,
    /// The Recovery Time Stamp with which the node was found last.
    recovery: u32,
    /// The last modification of each session that was acknowledged.
    modified: FxHashMap<Seid, u64>,
}

/// Deletions in flight after the work.
const CLEARING: usize = 64;

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
            figures,
            ledger,
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
        cx.task("reader", sockets.read(0, cx.me()));
        let step = pacer::step(plan.pace);
        let towards = local_towards(local.ip(), plan.to.ip());
        Ok(Self {
            sessions: Sessions::new(name, towards, plan.to.ip(), local.port())
                .with_usage(plan.usage)
                .with_rates(plan.rates),
            trouble: Trouble::of(&plan),
            search: Search::new(plan.restoration, local.port().into()),
            backlog: Backlog::new(&plan.restoration),
            lost: FxHashMap::default(),
            epoch: 0,
            recovery: 0,
            modified: FxHashMap::default(),
            leaving: Vec::new(),
            sockets,
            plan,
            figures,
            protocol: Protocol::new(protocol),
            phase: Phase::Associating,
            waiting: Vec::new(),
            association: None,
            flights: FxHashMap::default(),
            establishing: 0,
            order: VecDeque::new(),
            remote: FxHashMap::default(),
            next_seid: 1,
            began: cx.now().into_std(),
            slots: 0,
            panics: 0,
            turn: 0,
            modifications: 0.0,
            modifying: FxHashSet::default(),
            ledger,
            numbers: 0,
            step,
            pacer: None,
            timer: None,
        })
    }

    async fn handle(&mut self, message: LoadMsg, cx: &mut Context<Self>) -> Result<(), io::Error> {
        let now = cx.now().into_std();
        match message {
            LoadMsg::Received(batch) => {
                for (peer, octets) in batch.iter() {
                    if !self.trouble.loses() {
                        self.protocol.handle_datagram(now, peer, octets);
                    }
                }
            }
            LoadMsg::Due => {
                self.timer = None;
                self.protocol.handle_timeout(now);
            }
            LoadMsg::Tick => {
                if let Some(pacer) = &self.pacer {
                    pacer.seen();
                }
                self.trouble.let_go(now, &mut self.leaving);
            }
            LoadMsg::Begin(Ask { reply, .. }) => self.begin(now, reply),
            LoadMsg::Held(Ask { reply, .. }) => {
                let held = |seid| self.remote.get(seid).map(|&remote| (*seid, remote));
                reply.send(self.order.iter().filter_map(held).collect());
            }
            LoadMsg::Probe(Ask { request, reply }) => self.probe(now, request.seid, reply),
            LoadMsg::Stop if self.phase == Phase::Working => self.drain(now),
            LoadMsg::Stop => {}
        }
        self.settle(now, cx);
        if self.phase == Phase::Working && self.pacer.is_none() {
            self.pacer = Some(Pacer::start(self.step, cx.me())?);
        }
        Ok(())
    }
}

impl LoadActor {
    /// Associates for the first who waits for it: were it begun any earlier, it could fail, and
    /// the load end, before there is anybody to tell.
    fn begin(&mut self, now: Instant, reply: Reply<Result<(), ClientError>>) {
        if self.phase != Phase::Associating {
            return reply.send(Ok(()));
        }
        if self.waiting.is_empty() {
            // There is room for the first request.
            let _ = self.protocol.associate(now, self.plan.to);
        }
        self.waiting.push(reply);
    }

    /// Handles what happened, begins what is due, sends, and sees to the next wake-up.
    fn settle(&mut self, now: Instant, cx: &mut Context<Self>) {
        while let Some(event) = self.protocol.poll_event() {
            self.event(now, event, cx);
        }
        match self.phase {
            Phase::Working => {
                self.look_for_node(now);
                self.work(now);
                self.restore(now);
            }
            Phase::Draining if self.flights.is_empty() => self.drained(now, cx),
            Phase::Clearing => self.clear(now, cx),
            Phase::Associating | Phase::Draining | Phase::Releasing => {}
        }
        // What is asked is written down before it can be done.
        if let Some(ledger) = &self.ledger {
            ledger.lock().flush();
        }
        while let Some(transmit) = self.protocol.poll_transmit() {
            self.trouble.pass(now, transmit, &mut self.leaving);
        }
        // What the system does not take is sent again after T1, as if the network lost it.
        self.sockets.send_all(&self.leaving);
        self.leaving.clear();
        self.publish(now);
        let due = [self.protocol.poll_timeout(), self.due(now)];
        let Some(wanted) = due.into_iter().flatten().min() else {
            return;
        };
        match self.timer {
            Some((at, _)) if at <= wanted => return,
            Some((_, timer)) => _ = cx.cancel(timer),
            None => {}
        }
        let timer = cx.send_after(wanted.saturating_duration_since(now), LoadMsg::Due);
        self.timer = Some((wanted, timer));
    }

    fn publish(&self, now: Instant) {
        let mut figures = self.figures.lock();
        figures.retransmitted = self.protocol.stats().retransmitted;
        (figures.dropped, figures.overtaken) = self.trouble.injected;
        if self.phase == Phase::Working {
            figures.held = self.remote.len() as u64;
            figures.elapsed = now.saturating_duration_since(self.began);
        }
    }

    /// Begins all that the schedule wants by now.
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
        match self.plan.pace {
            Pace::Rate(rate) if rate > 0.0 => {
                while let Some(at) = due(self.began, self.slots, rate, now) {
                    // The lateness of our own timer is not charged to the peer.
                    let intended = now.min(at + 2 * self.step);
                    if self.taken() >= self.plan.sessions && !self.delete_oldest(now, intended) {
                        // The slot waits for an answer, and is charged for it.
                        break;
                    }
                    self.slots += 1;
                    self.establish(now, intended);
                }
            }
            Pace::Rate(_) => {}
            Pace::InFlight(most) => {
                while self.flights.len() < most.max(1) {
                    let before = self.flights.len();
                    if self.taken() < self.plan.sessions {
                        self.establish(now, now);
                    } else {
                        let _ = self.delete_oldest(now, now);
                    }
                    if self.flights.len() == before {
                        break;
                    }
                }
            }
        }
        if let Some(chaos) = &self.plan.chaos {
            let rate = chaos.rate;
            let before = self.panics;
            while rate > 0.0 && due(self.began, self.panics, rate, now).is_some() {
                self.panics += 1;
            }
            // One for all that a stall left out: at once, they would fill the queues of a few.
            if self.panics > before {
                self.hit(now);
            }
        }
    }

    fn establish(&mut self, now: Instant, intended: Instant) {
        let seid = Seid(self.next_seid);
        self.next_seid += 1;
        let Ok(body) = self.sessions.establishment(seid) else {
            return;
        };
        let message_type = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let what = What::Establish(seid);
        if self.send(now, intended, message_type, Seid(0), &body, what) {
            self.establishing += 1;
            self.figures.lock().sent += 1;
        }
        self.modifications += self.plan.modifications;
        while self.modifications >= 1.0 {
            self.modifications -= 1.0;
            self.modify(now, intended);
        }
    }

    /// Sessions that are held, asked for, or to be restored.
    fn taken(&self) -> usize {
        self.remote.len() + self.establishing + self.lost.len()
    }

    /// Changes a session that nothing else is being done to.
    fn modify(&mut self, now: Instant, intended: Instant) {
        let Some(seid) = self.pick().filter(|seid| !self.modifying.contains(seid)) else {
            return;
        };
        let number = self.numbers;
        let (Some(&remote), Ok(body)) = (self.remote.get(&seid), Sessions::modification(number))
        else {
            return;
        };
        let message_type = MessageType::SESSION_MODIFICATION_REQUEST;
        if self.send(
            now,
            intended,
            message_type,
            remote,
            &body,
            What::Modify(seid, number),
        ) {
            self.modifying.insert(seid);
            self.figures.lock().sent += 1;
        }
    }

    /// One of the sessions that are held.
    fn pick(&mut self) -> Option<Seid> {
        // A fixed stride visits all sessions without a source of randomness.
        self.turn = self.turn.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let place = self.turn.checked_rem(self.order.len() as u64)?;
        let place = usize::try_from(place).unwrap_or_default();
        self.order.get(place).copied()
    }

    /// Deletes the session that is held longest; false if none is.
    fn delete_oldest(&mut self, now: Instant, intended: Instant) -> bool {
        while let Some(seid) = self.order.pop_front() {
            if self.modifying.contains(&seid) {
                self.order.push_back(seid);
                if self.order.iter().all(|seid| self.modifying.contains(seid)) {
                    return false;
                }
                continue;
            }
            let Some(remote) = self.remote.remove(&seid) else {
                continue;
            };
            self.modified.remove(&seid);
            let message_type = MessageType::SESSION_DELETION_REQUEST;
            if self.send(now, intended, message_type, remote, &[], What::Delete) {
                self.figures.lock().sent += 1;
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
        what: What,
    ) -> bool {
        let asked = self
            .protocol
            .request(now, self.plan.to, message_type, seid, body);
        let Ok(request) = asked else {
            let mut figures = self.figures.lock();
            figures.lost += 1;
            figures.unanswered += 1;
            return false;
        };
        let number = self.numbers;
        self.numbers += 1;
        if let Some(ledger) = &self.ledger {
            let header = Header::session(message_type, seid, Sequence::default());
            let octets = strowger_pfcp::endpoint::message(&header, body).unwrap_or_default();
            ledger.lock().ask(number, &octets);
        }
        let flight = Flight {
            what,
            intended,
            number,
            epoch: self.epoch,
        };
        self.flights.insert(request, flight).is_none()
    }

    fn event(&mut self, now: Instant, event: Event, cx: &mut Context<Self>) {
        match event {
            Event::AssociationUp { association, .. } if self.phase != Phase::Associating => {
                self.found(now, association);
            }
            Event::AssociationUp { association, .. } => {
                self.found(now, association);
                self.phase = Phase::Working;
                self.began = now;
                self.figures.lock().began = Some(now);
                for reply in self.waiting.drain(..) {
                    reply.send(Ok(()));
                }
            }
            Event::AssociationFailed { cause, .. } if self.phase != Phase::Associating => {
                self.not_found(now, cause);
            }
            Event::AssociationFailed { peer, cause } => {
                for reply in self.waiting.drain(..) {
                    reply.send(Err(match cause {
                        Some(cause) => ClientError::Refused {
                            peer,
                            cause,
                            offending_ie: None,
                        },
                        None => ClientError::NoAnswer { peer },
                    }));
                }
                cx.stop();
            }
            Event::AssociationReleased { .. } => cx.stop(),
            Event::PeerSilent { .. } => self.silent(now),
            Event::PeerHeard { association } => self.heard(now, association),
            Event::PeerRestarted { association } => self.restarted(now, association),
            Event::Response {
                request, octets, ..
            } => {
                if let Some(flight) = self.flights.remove(&request) {
                    self.answered(now, flight, &octets);
                }
            }
            Event::RequestFailed { request, peer } => {
                if let Some(flight) = self.flights.remove(&request) {
                    self.unanswered(now, flight, peer);
                }
            }
            Event::SessionRequest {
                transaction,
                octets,
                ..
            } => self.report(now, transaction, &octets),
            _ => {}
        }
    }

    /// Ends new work.
    fn drain(&mut self, now: Instant) {
        self.publish(now);
        self.pacer = None;
        self.phase = Phase::Draining;
    }

    fn drained(&mut self, now: Instant, cx: &mut Context<Self>) {
        self.figures.lock().held = self.remote.len() as u64;
        if self.plan.keep {
            return cx.stop();
        }
        self.phase = Phase::Clearing;
        self.clear(now, cx);
    }

    /// Deletes what is held, then releases the association.
    fn clear(&mut self, now: Instant, cx: &mut Context<Self>) {
        while self.flights.len() < CLEARING {
            let Some(seid) = self.order.pop_front() else {
                break;
            };
            if let Some(remote) = self.remote.remove(&seid) {
                let message_type = MessageType::SESSION_DELETION_REQUEST;
                self.send(now, now, message_type, remote, &[], What::Clear);
            }
        }
        if !self.flights.is_empty() {
            return;
        }
        self.phase = Phase::Releasing;
        let released = self
            .association
            .map(|association| self.protocol.release(now, association));
        if !matches!(released, Some(Ok(()))) {
            cx.stop();
        }
    }
}

/// When a slot of a schedule is, if it is by now.
fn due(began: Instant, slot: u64, rate: f64, now: Instant) -> Option<Instant> {
    let after = Duration::from_secs(slot).as_secs_f64() / rate;
    let at = began + Duration::try_from_secs_f64(after).ok()?;
    (at <= now).then_some(at)
}
