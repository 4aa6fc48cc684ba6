//! The world of a seed: two endpoints, the network between them, and their users.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use strowger_pfcp::association::{AssociationId, Recovery};
use strowger_pfcp::endpoint::{
    BodyBuilder, Endpoint, EndpointConfig, Event, Role, answer_header, message,
};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::session::{NoAllocator, RuleSet};
use strowger_pfcp::transaction::{RequestId, TransactionId};
use strowger_pfcp::{Frame, IeType, MessageType, Seid, Sequence};

use crate::simulation::rng::SimulationRng;
use crate::simulation::{END, SESSIONS};
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Side {
    Smf,
    Upf,
}

impl Side {
    pub(crate) fn address(self) -> SocketAddr {
        let host = match self {
            Self::Smf => 2,
            Self::Upf => 1,
        };
        SocketAddr::from(([127, 0, 0, host], 8805))
    }

    fn other(self) -> Self {
        match self {
            Self::Smf => Self::Upf,
            Self::Upf => Self::Smf,
        }
    }
}

/// A scheduled event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WorldEvent {
    Datagram(Side, Vec<u8>),
    /// The worker of a request is done, in this incarnation of the user plane.
    Worked(u32, TransactionId, Vec<u8>),
    Crash,
}

/// Number of times that each fault occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Faults {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) delayed: u64,
    pub(crate) panics: u64,
    pub(crate) crashes: u64,
    pub(crate) retransmitted: u64,
    pub(crate) unanswered: u64,
    pub(crate) repeated: u64,
}

/// An action of the control plane on one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Establish,
    Modify,
    Delete,
}

#[derive(Debug)]
struct Asked {
    session: u64,
    step: Step,
    life: u32,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Control {
    association: Option<AssociationId>,
    asked: BTreeMap<RequestId, Asked>,
    /// The sessions that should exist: SEID at the peer, and rules.
    sessions: BTreeMap<u64, (Seid, RuleSet)>,
    /// The sessions whose state is unknown.
    unsure: BTreeSet<u64>,
    started: u64,
    ended: u64,
    life: u32,
}

#[derive(Debug, Default)]
struct User {
    sessions: BTreeMap<Seid, (u64, RuleSet)>,
    next: u64,
    done: BTreeSet<Vec<u8>>,
    life: u32,
}

pub(crate) struct World {
    rng: SimulationRng,
    origin: Instant,
    now: Duration,
    pending: BinaryHeap<std::cmp::Reverse<(Duration, u64, WorldEvent)>>,
    count: u64,
    loss: u64,
    doubling: u64,
    jitter: u64,
    panics: u64,
    smf: Endpoint,
    upf: Endpoint,
    control: Control,
    user: User,
    /// The bytes of each sequence number and type from each side, in each incarnation of the user
    /// plane.
    sent: BTreeMap<(Side, u32, u8, u32), Vec<u8>>,
    faults: Faults,
    trace: DefaultHasher,
}

#[expect(
    clippy::disallowed_methods,
    reason = "virtual time has to start somewhere"
)]
pub(crate) fn origin() -> Instant {
    Instant::now()
}

pub(crate) fn endpoint(side: Side, life: u32) -> Endpoint {
    let role = match side {
        Side::Smf => Role::ControlPlane,
        Side::Upf => Role::UserPlane,
    };
    let config = EndpointConfig::new(role, side.address().ip().into(), Recovery(100 + life));
    // The numbers wrap during the run, and differ between incarnations.
    let first_sequence = Sequence::new(0x00ff_fff0 + 0x0001_0000 * life);
    Endpoint::new(EndpointConfig {
        first_sequence,
        ..config
    })
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = SimulationRng::new(seed);
        Self {
            loss: rng.below(20),
            doubling: rng.below(20),
            jitter: 1 + rng.below(2000),
            panics: rng.below(15),
            rng,
            origin: origin(),
            now: Duration::ZERO,
            pending: BinaryHeap::new(),
            count: 0,
            smf: endpoint(Side::Smf, 0),
            upf: endpoint(Side::Upf, 0),
            control: Control::default(),
            user: User::default(),
            sent: BTreeMap::new(),
            faults: Faults::default(),
            trace: DefaultHasher::new(),
        }
    }

    fn at(&self) -> Instant {
        self.origin + self.now
    }

    fn later(&mut self, after: Duration, event: WorldEvent) {
        self.count += 1;
        let entry = (self.now + after, self.count, event);
        self.pending.push(std::cmp::Reverse(entry));
    }

    fn endpoint(&mut self, side: Side) -> &mut Endpoint {
        match side {
            Side::Smf => &mut self.smf,
            Side::Upf => &mut self.upf,
        }
    }

    /// Runs to the end; returns the faults and a digest of everything that was sent.
    pub(crate) fn run(mut self) -> (Faults, u64) {
        if self.rng.percent(50) {
            let after = Duration::from_millis(5000 + self.rng.below(25_000));
            self.later(after, WorldEvent::Crash);
        }
        self.smf
            .associate(self.at(), Side::Upf.address())
            .expect("room");
        self.settle();
        while self.now < END {
            let timer = [self.smf.poll_timeout(), self.upf.poll_timeout()];
            let timer = timer.into_iter().flatten().min();
            let timer = timer.map(|at| at.saturating_duration_since(self.origin));
            let next = self.pending.peek().map(|entry| entry.0.0);
            let Some(at) = timer.into_iter().chain(next).min() else {
                break;
            };
            self.now = self.now.max(at);
            if next.is_some_and(|next| next <= self.now) {
                let entry = self.pending.pop().expect("it was there");
                self.happen(entry.0.2);
            } else {
                let now = self.at();
                self.smf.handle_timeout(now);
                self.upf.handle_timeout(now);
            }
            self.settle();
        }
        self.judge();
        for endpoint in [&self.smf, &self.upf] {
            let stats = endpoint.stats();
            self.faults.retransmitted += stats.retransmitted;
            self.faults.unanswered += stats.unanswered;
            self.faults.repeated += stats.repeated;
        }
        (self.faults, self.trace.finish())
    }

    fn happen(&mut self, event: WorldEvent) {
        let now = self.at();
        match event {
            WorldEvent::Datagram(to, bytes) => {
                let from = to.other().address();
                self.endpoint(to).handle_datagram(now, from, &bytes);
            }
            WorldEvent::Worked(life, transaction, bytes) if life == self.user.life => {
                if self.rng.percent(self.panics) {
                    self.faults.panics += 1;
                    self.upf.abandon(now, transaction);
                } else {
                    self.work(transaction, &bytes);
                }
            }
            WorldEvent::Worked(..) => {}
            WorldEvent::Crash => {
                self.faults.crashes += 1;
                let life = self.user.life + 1;
                self.upf = endpoint(Side::Upf, life);
                self.user = User {
                    life,
                    next: u64::from(life) << 32,
                    ..User::default()
                };
            }
        }
    }

    /// Takes the outputs of the endpoints until there are no more.
    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            for side in [Side::Smf, Side::Upf] {
                while let Some(transmit) = self.endpoint(side).poll_transmit() {
                    quiet = false;
                    assert_eq!(transmit.peer, side.other().address());
                    self.carry(side, &transmit.bytes);
                }
                while let Some(event) = self.endpoint(side).poll_event() {
                    quiet = false;
                    match side {
                        Side::Smf => self.control_event(event),
                        Side::Upf => self.user_event(event),
                    }
                }
            }
            self.start_sessions();
            if quiet {
                return;
            }
        }
    }

    fn carry(&mut self, from: Side, bytes: &[u8]) {
        (self.now, from, bytes).hash(&mut self.trace);
        let header = Frame::decode(bytes).expect("sound bytes").header;
        let life = match from {
            Side::Smf => 0,
            Side::Upf => self.user.life,
        };
        let key = (from, header.sequence.get(), header.message_type.0, life);
        let first = self.sent.entry(key).or_insert_with(|| bytes.to_vec());
        assert_eq!(first, bytes, "repetitions are identical");
        let copies = if self.rng.percent(self.doubling) {
            self.faults.doubled += 1;
            2
        } else {
            1
        };
        for _ in 0..copies {
            if self.rng.percent(self.loss) {
                self.faults.lost += 1;
                continue;
            }
            let delay = self.rng.millis(self.jitter);
            self.faults.delayed += u64::from(delay > Duration::from_secs(1));
            self.later(delay, WorldEvent::Datagram(from.other(), bytes.to_vec()));
        }
    }

    fn user_event(&mut self, event: Event) {
        let Event::SessionRequest {
            transaction,
            association,
            bytes,
            ..
        } = event
        else {
            return;
        };
        if association.is_none() {
            return self.refuse(transaction, &bytes, Cause::NO_ESTABLISHED_ASSOCIATION);
        }
        let after = self.rng.millis(400);
        let worked = WorldEvent::Worked(self.user.life, transaction, bytes.to_vec());
        self.later(after, worked);
    }

    fn refuse(&mut self, transaction: TransactionId, bytes: &[u8], cause: Cause) {
        let body = BodyBuilder::new().cause(cause);
        self.respond(transaction, bytes, Seid(0), &body);
    }

    fn respond(&mut self, id: TransactionId, request: &[u8], remote: Seid, body: &BodyBuilder) {
        let request = Frame::decode(request).expect("it was admitted").header;
        let header = answer_header(&request, Some(remote));
        let bytes = message(&header, body.as_slice()).expect("short");
        let now = self.at();
        self.upf.respond(now, id, bytes.into());
    }

    /// The user plane executes a request.
    fn work(&mut self, transaction: TransactionId, bytes: &[u8]) {
        let frame = Frame::decode(bytes).expect("it was admitted");
        let seid = frame.header.seid.expect("a session's message");
        let accepted = BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED);
        let (remote, body) = match frame.header.message_type {
            MessageType::SESSION_ESTABLISHMENT_REQUEST => {
                let change = RuleSet::establish(&frame, &mut NoAllocator).expect("sound rules");
                self.user.next += 1;
                let local = Seid(self.user.next);
                let remote = session_of(&frame);
                self.user.sessions.insert(local, (remote, change.rules));
                let f_seid = [&[2][..], &local.0.to_be_bytes(), &[127, 0, 0, 1]].concat();
                (remote, accepted.with(IeType::F_SEID, &f_seid))
            }
            MessageType::SESSION_MODIFICATION_REQUEST => {
                let Some((remote, rules)) = self.user.sessions.get_mut(&seid) else {
                    return self.refuse(transaction, bytes, Cause::SESSION_CONTEXT_NOT_FOUND);
                };
                let change = rules.modify(&frame, &mut NoAllocator).expect("sound rules");
                *rules = change.rules;
                (*remote, accepted)
            }
            _ => {
                let Some((remote, _)) = self.user.sessions.remove(&seid) else {
                    return self.refuse(transaction, bytes, Cause::SESSION_CONTEXT_NOT_FOUND);
                };
                (remote, accepted)
            }
        };
        let fresh = self.user.done.insert(bytes.to_vec());
        assert!(fresh, "nothing is done twice");
        self.respond(transaction, bytes, Seid(remote), &body);
    }

    fn control_event(&mut self, event: Event) {
        match event {
            Event::AssociationUp { association, .. } => {
                self.control.association = Some(association);
            }
            Event::AssociationFailed { .. } => self.associate(),
            Event::PeerRestarted { .. } => {
                self.control.life += 1;
                self.control.sessions.clear();
                self.control.association = None;
                self.associate();
            }
            Event::Response { request, bytes, .. } => self.answered(request, &bytes),
            Event::RequestFailed { request, .. } => {
                let asked = self.control.asked.remove(&request).expect("one outcome");
                self.control.unsure.insert(asked.session);
                self.control.sessions.remove(&asked.session);
                self.control.ended += 1;
            }
            _ => {}
        }
    }

    fn associate(&mut self) {
        let now = self.at();
        self.smf.associate(now, Side::Upf.address()).expect("room");
    }

    fn start_sessions(&mut self) {
        while self.control.association.is_some()
            && self.control.asked.len() < 6
            && self.control.started < SESSIONS
        {
            self.control.started += 1;
            let session = self.control.started;
            self.ask(session, Step::Establish, Seid(0), &establishment(session));
        }
    }

    fn ask(&mut self, session: u64, step: Step, seid: Seid, body: &[u8]) {
        let message_type = match step {
            Step::Establish => MessageType::SESSION_ESTABLISHMENT_REQUEST,
            Step::Modify => MessageType::SESSION_MODIFICATION_REQUEST,
            Step::Delete => MessageType::SESSION_DELETION_REQUEST,
        };
        let (now, peer) = (self.at(), Side::Upf.address());
        let request = self.smf.request(now, peer, message_type, seid, body);
        let header = strowger_pfcp::Header::session(message_type, seid, Sequence::new(0));
        let asked = Asked {
            session,
            step,
            life: self.control.life,
            bytes: message(&header, body).expect("short"),
        };
        let before = self.control.asked.insert(request.expect("room"), asked);
        assert!(before.is_none(), "requests have names of their own");
    }

    fn answered(&mut self, request: RequestId, bytes: &[u8]) {
        let asked = self.control.asked.remove(&request).expect("one outcome");
        let session = asked.session;
        if asked.life != self.control.life {
            // The request went to an earlier incarnation of the peer.
            self.control.unsure.insert(session);
            self.control.ended += 1;
            return;
        }
        let answer = Frame::decode(bytes).expect("sound bytes");
        let cause = answer.tlvs().flatten().find(|tlv| tlv.ie == IeType::CAUSE);
        if Cause(cause.expect("a cause").value[0]) != Cause::REQUEST_ACCEPTED {
            // The peer panicked too often, or no longer knows us.
            self.control.unsure.insert(session);
            self.control.sessions.remove(&session);
            self.control.ended += 1;
            return;
        }
        let asked_frame = Frame::decode(&asked.bytes).expect("our own");
        match asked.step {
            Step::Establish => {
                let change = RuleSet::establish(&asked_frame, &mut NoAllocator).expect("sound");
                let local = Seid(session_of(&answer));
                self.control.sessions.insert(session, (local, change.rules));
                self.ask(session, Step::Modify, local, &modification(session));
            }
            Step::Modify => {
                let (local, rules) = self.control.sessions.get_mut(&session).expect("known");
                let change = rules.modify(&asked_frame, &mut NoAllocator).expect("sound");
                *rules = change.rules;
                let local = *local;
                if session.is_multiple_of(2) {
                    self.ask(session, Step::Delete, local, &[]);
                } else {
                    self.control.ended += 1;
                }
            }
            Step::Delete => {
                self.control.sessions.remove(&session);
                self.control.ended += 1;
            }
        }
    }

    /// Checks that both sides agree on every session whose state the control plane knows.
    fn judge(&self) {
        let Control {
            asked,
            sessions,
            unsure,
            started,
            ended,
            life,
            ..
        } = &self.control;
        assert!(asked.is_empty(), "every request has an outcome");
        assert_eq!(*started, SESSIONS, "all were tried");
        assert_eq!(started, ended);
        assert_eq!(*life, self.user.life, "a restart is noticed");
        for (session, (seid, rules)) in sessions {
            let known = self.user.sessions.get(seid);
            let (remote, theirs) = known.expect("what was accepted is there");
            assert_eq!(remote, session);
            assert_eq!(theirs, rules, "with all its rules");
        }
        for (session, _) in self.user.sessions.values() {
            let known = sessions.contains_key(session) || unsure.contains(session);
            assert!(known, "session {session} was deleted");
        }
    }
}

fn session_of(frame: &Frame<'_>) -> u64 {
    let f_seid = frame.tlvs().flatten().find(|tlv| tlv.ie == IeType::F_SEID);
    let seid = f_seid.expect("an F-SEID").value[1..9].try_into();
    u64::from_be_bytes(seid.expect("eight bytes"))
}

pub(crate) fn establishment(session: u64) -> Vec<u8> {
    let number = u32::try_from(session).expect("a few").to_be_bytes();
    let f_seid = [&[2][..], &session.to_be_bytes(), &[127, 0, 0, 2]].concat();
    let f_teid = [&[1][..], &number, &[127, 0, 0, 1]].concat();
    let pdi = BodyBuilder::new()
        .with(IeType::SOURCE_INTERFACE, &[0])
        .with(IeType::F_TEID, &f_teid);
    let pdr = BodyBuilder::new()
        .with(IeType::PDR_ID, &[0, 1])
        .with(IeType::PRECEDENCE, &[0, 0, 0, 1])
        .with(IeType::PDI, pdi.as_slice())
        .with(IeType::FAR_ID, &[0, 0, 0, 1]);
    let far = BodyBuilder::new()
        .with(IeType::FAR_ID, &[0, 0, 0, 1])
        .with(IeType::APPLY_ACTION, &[1]);
    BodyBuilder::new()
        .node(&Side::Smf.address().ip().into())
        .with(IeType::F_SEID, &f_seid)
        .with(IeType::CREATE_PDR, pdr.as_slice())
        .with(IeType::CREATE_FAR, far.as_slice())
        .as_slice()
        .to_vec()
}

/// Adds a rule, so that executing it twice would be noticed.
fn modification(session: u64) -> Vec<u8> {
    let number = u32::try_from(session + 1).expect("a few").to_be_bytes();
    let far = BodyBuilder::new()
        .with(IeType::FAR_ID, &number)
        .with(IeType::APPLY_ACTION, &[1]);
    BodyBuilder::new()
        .with(IeType::CREATE_FAR, far.as_slice())
        .as_slice()
        .to_vec()
}
