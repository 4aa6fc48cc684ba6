//! The actor that generates the load: one socket, one schedule, no waiting tasks.

mod probe;
mod report;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
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
use super::requests::{Sessions, answer};
use super::trouble::Trouble;
use super::{LoadFigures, LoadPlan, Pace, pacer};
use crate::client::ClientError;
use crate::ledger::Ledger;
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
}

#[derive(Debug)]
enum What {
    Establish(Seid),
    Delete,
    Modify(Seid),
    Probe(Seid, Reply<Result<Option<Cause>, ClientError>>),
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
        protocol.heartbeat = None;
        cx.task("reader", sockets.read(0, cx.me()));
        let step = pacer::step(plan.pace);
        let towards = local_towards(local.ip(), plan.to.ip());
        Ok(Self {
            sessions: Sessions::new(name, towards, plan.to.ip(), local.port())
                .with_usage(plan.usage)
                .with_rates(plan.rates),
            trouble: Trouble::of(&plan),
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
            Phase::Working => self.work(now),
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
        let Some(wanted) = self.protocol.poll_timeout() else {
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
        match self.plan.pace {
            Pace::Rate(rate) if rate > 0.0 => {
                while let Some(at) = due(self.began, self.slots, rate, now) {
                    // The lateness of our own timer is not charged to the peer.
                    let intended = now.min(at + 2 * self.step);
                    if self.remote.len() + self.establishing >= self.plan.sessions
                        && !self.delete_oldest(now, intended)
                    {
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
                    if self.remote.len() + self.establishing < self.plan.sessions {
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

    /// Changes a session that nothing else is being done to.
    fn modify(&mut self, now: Instant, intended: Instant) {
        let Some(seid) = self.pick().filter(|seid| !self.modifying.contains(seid)) else {
            return;
        };
        let (Some(&remote), Ok(body)) =
            (self.remote.get(&seid), Sessions::modification(self.numbers))
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
            What::Modify(seid),
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
        };
        self.flights.insert(request, flight).is_none()
    }

    fn event(&mut self, now: Instant, event: Event, cx: &mut Context<Self>) {
        match event {
            Event::AssociationUp { association, .. } => {
                self.association = Some(association);
                self.phase = Phase::Working;
                self.began = now;
                self.figures.lock().began = Some(now);
                for reply in self.waiting.drain(..) {
                    reply.send(Ok(()));
                }
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
            Event::Response {
                request, octets, ..
            } => {
                if let Some(flight) = self.flights.remove(&request) {
                    self.answered(now, flight, &octets);
                }
            }
            Event::RequestFailed { request, peer } => {
                if let Some(flight) = self.flights.remove(&request) {
                    self.unanswered(flight, peer);
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

    fn answered(&mut self, now: Instant, flight: Flight, octets: &[u8]) {
        let (cause, remote) = answer(octets);
        let accepted = cause.is_acceptance();
        let latency = now.saturating_duration_since(flight.intended);
        if let Some(ledger) = &self.ledger {
            ledger.lock().answer(flight.number, accepted, octets);
        }
        if self.plan.usage.is_some() && matches!(flight.what, What::Delete | What::Clear) {
            self.count_usage(octets);
        }
        let mut figures = self.figures.lock();
        match flight.what {
            What::Establish(seid) => {
                figures.answer(cause, latency);
                self.establishing -= 1;
                if let Some(remote) = remote.filter(|_| accepted) {
                    figures.established += 1;
                    self.remote.insert(seid, remote);
                    self.order.push_back(seid);
                }
            }
            What::Delete => {
                figures.answer(cause, latency);
                figures.deleted += u64::from(accepted);
                figures.lost += u64::from(cause == Cause::SESSION_CONTEXT_NOT_FOUND);
            }
            What::Modify(seid) => {
                figures.answer(cause, latency);
                figures.modified += u64::from(accepted);
                figures.lost += u64::from(cause == Cause::SESSION_CONTEXT_NOT_FOUND);
                self.modifying.remove(&seid);
            }
            What::Probe(seid, reply) => {
                if accepted {
                    figures.survived += 1;
                } else {
                    figures.lost += 1;
                    // Counted once: it is not deleted later.
                    self.remote.remove(&seid);
                }
                reply.send(Ok(Some(cause)));
            }
            What::Clear => figures.lost += u64::from(!accepted),
        }
    }

    fn unanswered(&mut self, flight: Flight, peer: SocketAddr) {
        if let Some(ledger) = &self.ledger {
            ledger.lock().end(flight.number);
        }
        let mut figures = self.figures.lock();
        figures.lost += 1;
        figures.unanswered += 1;
        match flight.what {
            What::Establish(_) => self.establishing -= 1,
            What::Modify(seid) => _ = self.modifying.remove(&seid),
            What::Probe(_, reply) => reply.send(Err(ClientError::NoAnswer { peer })),
            What::Delete | What::Clear => {}
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
