//! The network between the two roles: it drops, duplicates, delays and reorders datagrams, and
//! checks every message.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use strowger_pfcp::ie::{Cause, FSeid, Ie as _};
use strowger_pfcp::{Frame, IeType, MessageType};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::disk::SimulatedDisk;
use super::driver::{FIRST_STAMP, SMF};
use super::rng::SimulationRng;
use super::{Faults, N1, T1};

/// The faults of the network, as probabilities in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FaultRates {
    pub(super) loss: u64,
    pub(super) doubling: u64,
    /// The maximum delay, in milliseconds.
    pub(super) jitter: u64,
}

/// The network; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct SimulatedNetwork(Arc<NetworkShared>);

#[derive(Debug)]
struct NetworkShared {
    state: Mutex<NetworkState>,
    changed: Notify,
}

#[derive(Debug)]
struct NetworkState {
    rng: SimulationRng,
    rates: FaultRates,
    ports: BTreeMap<SocketAddr, Arc<NetworkPort>>,
    in_flight: BinaryHeap<Reverse<(Instant, u64, DatagramInFlight)>>,
    count: u64,
    start: Instant,
    log: MessageLog,
    faults: Faults,
    wrong: Vec<String>,
    digest: DefaultHasher,
    trace: Option<Vec<String>>,
    disk: Option<Arc<SimulatedDisk>>,
    /// Set if responses may be forgotten while their requests can still arrive.
    forgets_responses: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DatagramInFlight {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// The messages that passed, by sender, sequence number and type.
#[derive(Debug, Default)]
struct MessageLog {
    /// The incarnation that refusals of the user plane belong to. After a crash, or after the loss
    /// of its store, the user plane may answer the same request differently.
    incarnation: u32,
    losses: u32,
    sent: BTreeMap<(SocketAddr, u32, u8, u32), Vec<u8>>,
    /// Requests of the control plane, with the time of their first transmission.
    asked: BTreeMap<u32, Instant>,
    answered: BTreeSet<u32>,
    arrived: BTreeSet<u32>,
    /// Requests that no longer wait for a response: they were answered, or their sender crashed.
    closed: BTreeSet<u32>,
    last: Option<u32>,
    ended: EndedSessions,
}

/// The sessions that must not be reported any more.
#[derive(Debug, Default)]
struct EndedSessions {
    /// Accepted sessions by the SEID of the user plane, with the SEID of the control plane and a
    /// flag that is set when the session has ended. A user plane that forgot a response may create
    /// a session twice.
    accepted: BTreeMap<u64, (u64, bool)>,
    /// The SEIDs of the user plane in deletion requests, by sequence number.
    deletions: BTreeMap<u32, u64>,
    /// The incarnations that sent association setups, by sequence number; `None` once answered.
    setups: BTreeMap<u32, Option<u64>>,
    /// Set when the association is released, which ends all sessions.
    released: bool,
}

impl EndedSessions {
    /// Records a message of either role. Returns a description of the fault if the message is
    /// wrong.
    fn note(&mut self, frame: &Frame<'_>) -> Option<String> {
        let sequence = frame.header.sequence.get();
        let seid = frame.header.seid.map_or(0, |seid| seid.0);
        let accepted = cause(frame) == Some(Cause::REQUEST_ACCEPTED);
        match frame.header.message_type {
            MessageType::ASSOCIATION_SETUP_REQUEST => {
                let stamp = element(frame, IeType::RECOVERY_TIME_STAMP)?;
                let stamp = u32::from_be_bytes(*stamp.first_chunk()?);
                let incarnation = u64::from(stamp).saturating_sub(FIRST_STAMP);
                self.setups.entry(sequence).or_insert(Some(incarnation));
            }
            MessageType::ASSOCIATION_SETUP_RESPONSE if accepted => {
                // An establishment of an earlier incarnation may still be accepted later; it is not
                // among these.
                let incarnation = self.setups.get_mut(&sequence).and_then(Option::take)?;
                for (called, ended) in self.accepted.values_mut() {
                    *ended |= *called < incarnation << 32;
                }
            }
            MessageType::ASSOCIATION_RELEASE_RESPONSE if accepted => self.released = true,
            MessageType::SESSION_ESTABLISHMENT_RESPONSE if accepted => {
                let own = FSeid::decode(element(frame, IeType::F_SEID)?).ok()?;
                self.accepted.entry(own.seid).or_insert((seid, false));
            }
            MessageType::SESSION_DELETION_REQUEST => _ = self.deletions.insert(sequence, seid),
            MessageType::SESSION_DELETION_RESPONSE if accepted => {
                let deleted = *self.deletions.get(&sequence)?;
                self.accepted.insert(deleted, (seid, true));
            }
            MessageType::SESSION_REPORT_REQUEST => {
                let of_it = |(called, _): &&(u64, bool)| *called == seid;
                let mut found = self.accepted.values().filter(of_it).peekable();
                let has_ended = found.peek().is_some() && found.all(|(_, ended)| *ended);
                let is_over = self.released || has_ended;
                return is_over.then(|| format!("session {seid:#x} is over, and is reported"));
            }
            _ => {}
        }
        None
    }

    /// Records that the user plane may have ended sessions again.
    fn forget(&mut self) {
        self.accepted.clear();
        self.setups.clear();
        self.released = false;
    }
}

/// The connection of one incarnation of a role to the network.
#[derive(Clone, Debug)]
pub(crate) struct SimulatedSocket {
    network: SimulatedNetwork,
    address: SocketAddr,
    port: Arc<NetworkPort>,
}

#[derive(Debug, Default)]
struct NetworkPort(Mutex<PortQueue>);

#[derive(Debug, Default)]
struct PortQueue {
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    waker: Option<Waker>,
}

impl SimulatedNetwork {
    pub(super) fn new(rng: SimulationRng, forgets_responses: bool, trace: bool) -> Self {
        Self(Arc::new(NetworkShared {
            state: Mutex::new(NetworkState {
                rng,
                rates: FaultRates::default(),
                ports: BTreeMap::new(),
                in_flight: BinaryHeap::new(),
                count: 0,
                start: Instant::now(),
                log: MessageLog::default(),
                faults: Faults::default(),
                wrong: Vec::new(),
                digest: DefaultHasher::new(),
                trace: trace.then(Vec::new),
                disk: None,
                forgets_responses,
            }),
            changed: Notify::new(),
        }))
    }

    /// Connects a new incarnation in place of the previous one, which can no longer send or
    /// receive.
    pub(super) fn connect(&self, address: SocketAddr) -> SimulatedSocket {
        let port = Arc::new(NetworkPort::default());
        self.0.state.lock().ports.insert(address, Arc::clone(&port));
        SimulatedSocket {
            network: self.clone(),
            address,
            port,
        }
    }

    pub(super) fn disconnect(&self, address: SocketAddr) {
        let mut state = self.0.state.lock();
        state.ports.remove(&address);
        if address == SMF {
            let log = &mut state.log;
            log.closed = log.asked.keys().copied().collect();
            // The next incarnation is visible in the responses to it.
            log.incarnation += 1;
        }
    }

    /// Lets the network check that changes are written before they are acknowledged.
    pub(super) fn watch(&self, disk: &Arc<SimulatedDisk>) {
        self.0.state.lock().disk = Some(Arc::clone(disk));
    }

    pub(super) fn set_fault_rates(&self, rates: FaultRates) {
        self.0.state.lock().rates = rates;
    }

    /// Records that the user plane may refuse requests that it accepted, or vice versa.
    pub(super) fn forgets_refusals(&self) {
        self.0.state.lock().log.incarnation += 1;
    }

    /// Records that the user plane may have lost responses that it sent, and may have ended
    /// sessions again.
    pub(super) fn forgets_answers(&self) {
        let mut state = self.0.state.lock();
        state.log.losses += 1;
        state.log.ended.forget();
    }

    /// Records that the user plane dropped the responses to the previous incarnation of the control
    /// plane. A request of that incarnation may still arrive, and is answered anew.
    pub(super) fn forgets_answers_of_peer(&self) {
        let log = &mut self.0.state.lock().log;
        log.losses += 1;
        log.incarnation += 1;
    }

    /// Delivers a datagram from a sender that is neither of the roles.
    pub(super) fn spoof(&self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let mut state = self.0.state.lock();
        state.note(|| format!("{from} > {to} {} (spoofed)", describe(bytes)));
        state.schedule(from, to, bytes, Duration::ZERO);
        drop(state);
        self.0.changed.notify_one();
    }

    pub(super) fn note(&self, text: impl FnOnce() -> String) {
        self.0.state.lock().note(text);
    }

    pub(super) fn count(&self, fault: impl FnOnce(&mut Faults)) {
        fault(&mut self.0.state.lock().faults);
    }

    /// Records a violation.
    pub(super) fn record_violation(&self, text: String) {
        let mut state = self.0.state.lock();
        state.note(|| format!("WRONG: {text}"));
        state.wrong.push(text);
    }

    /// Returns the violations, the faults, a digest of all sent messages, and the trace.
    pub(super) fn finish(&self) -> (Vec<String>, Faults, u64, Vec<String>) {
        let mut state = self.0.state.lock();
        state.disk = None;
        (
            std::mem::take(&mut state.wrong),
            std::mem::take(&mut state.faults),
            state.digest.finish(),
            state.trace.take().unwrap_or_default(),
        )
    }

    /// Delivers datagrams when they are due; never returns.
    pub(super) async fn carry(self) {
        loop {
            let next = self.0.state.lock().deliver();
            match next {
                None => self.0.changed.notified().await,
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep_until(at) => {}
                        () = self.0.changed.notified() => {}
                    }
                }
            }
        }
    }
}

impl NetworkState {
    fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            let at = self.start.elapsed();
            trace.push(format!("{:>9.3} {}", at.as_secs_f64(), text()));
        }
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.check_sent(from, bytes);
        let at = self.start.elapsed();
        (at, bytes).hash(&mut self.digest);
        let copies = match self.rng.percent(self.rates.doubling) {
            true => 2,
            false => 1,
        };
        self.faults.doubled += copies - 1;
        for copy in 0..copies {
            let lost = self.rng.percent(self.rates.loss);
            let delay = self.rng.millis(self.rates.jitter + 1);
            self.note(|| {
                let fate = match (lost, copy) {
                    (true, _) => "lost".to_owned(),
                    (false, 0) => format!("+{} ms", delay.as_millis()),
                    (false, _) => format!("doubled, +{} ms", delay.as_millis()),
                };
                format!("{from} > {to} {} ({fate})", describe(bytes))
            });
            if lost {
                self.faults.lost += 1;
                continue;
            }
            self.faults.delayed += u64::from(delay > T1 / 2);
            self.schedule(from, to, bytes, delay);
        }
    }

    fn schedule(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], delay: Duration) {
        self.count += 1;
        let datagram = DatagramInFlight {
            from,
            to,
            bytes: bytes.to_vec(),
        };
        let due = Instant::now() + delay;
        let overtakes = |other: &Reverse<(Instant, u64, DatagramInFlight)>| {
            other.0.0 > due && other.0.2.to == to
        };
        self.faults.reordered += u64::from(self.in_flight.iter().any(overtakes));
        self.in_flight.push(Reverse((due, self.count, datagram)));
    }

    /// Checks that retransmissions are identical, and counts them.
    fn check_sent(&mut self, from: SocketAddr, bytes: &[u8]) {
        let Ok(frame) = Frame::decode(bytes) else {
            self.wrong.push(format!("{from} sends no message"));
            return;
        };
        let (kind, sequence) = (frame.header.message_type, frame.header.sequence.get());
        if let Some(text) = self.log.ended.note(&frame) {
            self.note(|| format!("WRONG: {text}"));
            self.wrong.push(text);
        }
        if is_report(&frame) {
            // Each incarnation of the user plane numbers its reports from the first number on.
            self.faults.reported += u64::from(kind.is_request());
            return;
        }
        let log = &mut self.log;
        if kind.is_request() && kind.is_session() {
            let first = log.asked.insert(sequence, Instant::now());
            match first {
                Some(first) => {
                    log.asked.insert(sequence, first);
                    self.faults.retransmitted += 1;
                }
                None => {
                    let wrapped = log.last.is_some_and(|last| sequence < last / 2);
                    self.faults.wrapped += u64::from(wrapped && sequence < 1000);
                    log.last = Some(sequence);
                }
            }
        }
        if !kind.is_request() && kind.is_session() {
            log.answered.insert(sequence);
        }
        // A refusal need not survive a crash; an acceptance must.
        let accepted = cause(&frame) == Some(Cause::REQUEST_ACCEPTED) && kind.is_session();
        if let Some(disk) = self.disk.as_ref().filter(|_| accepted)
            && !disk.has_written(sequence, kind.0 - 1)
        {
            let text = format!("{kind} {sequence} says accepted, and nothing was written");
            self.note(|| format!("WRONG: {text}"));
            self.wrong.push(text);
        }
        let log = &mut self.log;
        let incarnation = match (kind.is_request() && kind.is_session(), accepted) {
            (true, _) => 0,
            (false, true) => 1 + log.losses,
            // Refusals belong to an incarnation. So do the requests of the user plane, whose
            // sequence numbers start again with each incarnation.
            (false, false) => 1_000_000 + log.incarnation,
        };
        let key = (from, sequence, kind.0, incarnation);
        let first = log.sent.entry(key).or_insert_with(|| bytes.to_vec());
        if first != bytes && (kind.is_request() || !self.forgets_responses) {
            let (before, now) = (describe(first), describe(bytes));
            let text = format!("{kind} {sequence} is repeated with other bytes: {before}; {now}");
            self.note(|| format!("WRONG: {text}"));
            self.wrong.push(text);
        }
    }

    /// Delivers datagrams that are due. Returns the time of the next delivery.
    fn deliver(&mut self) -> Option<Instant> {
        loop {
            let at = self.in_flight.peek()?.0.0;
            if at > Instant::now() {
                return Some(at);
            }
            let Reverse((_, _, datagram)) = self.in_flight.pop()?;
            self.count_arrived(&datagram.bytes);
            let Some(port) = self.ports.get(&datagram.to) else {
                self.faults.nobody += 1;
                continue;
            };
            let mut queue = port.0.lock();
            queue.waiting.push_back((datagram.from, datagram.bytes));
            if let Some(waker) = queue.waker.take() {
                waker.wake();
            }
        }
    }

    fn count_arrived(&mut self, bytes: &[u8]) {
        let Ok(frame) = Frame::decode(bytes) else {
            return;
        };
        let (kind, sequence) = (frame.header.message_type, frame.header.sequence.get());
        let log = &mut self.log;
        let asks = kind.is_session() && !is_report(&frame);
        let Some(&asked) = log.asked.get(&sequence).filter(|_| asks) else {
            return;
        };
        if kind.is_request() {
            let again = !log.arrived.insert(sequence);
            let working = !log.answered.contains(&sequence);
            self.faults.repeated += u64::from(again);
            self.faults.repeated_at_work += u64::from(again && working);
        } else {
            let late = !log.closed.insert(sequence) || asked.elapsed() > T1 * N1;
            self.faults.late += u64::from(late);
        }
    }
}

impl SimulatedSocket {
    pub(crate) fn poll_ready(&self, cx: &Context<'_>) -> Poll<()> {
        let mut queue = self.port.0.lock();
        if !queue.waiting.is_empty() {
            return Poll::Ready(());
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(crate) fn take(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let (from, bytes) = self.port.0.lock().waiting.pop_front()?;
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        Some((length, from))
    }

    pub(crate) fn send(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        let mut state = self.network.0.state.lock();
        let connected = state.ports.get(&self.address);
        if !connected.is_some_and(|port| Arc::ptr_eq(port, &self.port)) {
            return Err(ErrorKind::NotConnected.into());
        }
        state.send(self.address, to, bytes);
        drop(state);
        self.network.0.changed.notify_one();
        Ok(bytes.len())
    }
}

/// Returns `true` if a message is a Session Report Request or Response.
fn is_report(frame: &Frame<'_>) -> bool {
    matches!(
        frame.header.message_type,
        MessageType::SESSION_REPORT_REQUEST | MessageType::SESSION_REPORT_RESPONSE
    )
}

fn cause(frame: &Frame<'_>) -> Option<Cause> {
    element(frame, IeType::CAUSE)?.first().copied().map(Cause)
}

/// Returns the value of the first IE of a type.
fn element<'a>(frame: &Frame<'a>, ie: IeType) -> Option<&'a [u8]> {
    let found = frame.tlvs().flatten().find(|tlv| tlv.ie == ie)?;
    Some(found.value)
}

/// Returns a short description of a message.
fn describe(bytes: &[u8]) -> String {
    let Ok(frame) = Frame::decode(bytes) else {
        return format!("{} bytes", bytes.len());
    };
    let mut digest = DefaultHasher::new();
    bytes.hash(&mut digest);
    let header = &frame.header;
    let kind = header.message_type.name().unwrap_or("?");
    let seid = header.seid.map(|seid| format!(" {seid}"));
    let cause = cause(&frame).map(|cause| format!(", {cause}"));
    format!(
        "{kind} {}{}{} [{:08x}]",
        header.sequence,
        seid.unwrap_or_default(),
        cause.unwrap_or_default(),
        digest.finish() >> 32
    )
}

/// The longest delay after which a copy of a request still finds the cached response.
pub(super) const MAX_DELAY: Duration = T1.saturating_sub(Duration::from_millis(50));

#[cfg(test)]
mod tests {
    use strowger_pfcp::endpoint::{BodyBuilder, message};
    use strowger_pfcp::{Header, Seid, Sequence};

    use super::super::driver::UPF;
    use super::*;

    /// Notes a message about the session with SEID 7 of the control plane. Returns `true` if it is
    /// wrong.
    fn note(ended: &mut EndedSessions, kind: MessageType, seid: u64, body: &BodyBuilder) -> bool {
        let header = Header::session(kind, Seid(seid), Sequence::new(2));
        let bytes = message(&header, body.as_slice()).expect("it is short");
        let frame = Frame::decode(&bytes).expect("it was just made");
        ended.note(&frame).is_some()
    }

    fn established(ended: &mut EndedSessions, own: u64) -> bool {
        let mut f_seid = Vec::new();
        let own = FSeid::new(Seid(own), UPF.ip());
        own.encode_into(&mut f_seid).expect("it is short");
        let body = BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED);
        let kind = MessageType::SESSION_ESTABLISHMENT_RESPONSE;
        note(ended, kind, 7, &body.bytes(&f_seid))
    }

    fn deleted(ended: &mut EndedSessions, own: u64) {
        let asks = MessageType::SESSION_DELETION_REQUEST;
        let answers = MessageType::SESSION_DELETION_RESPONSE;
        let accepted = BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED);
        assert!(!note(ended, asks, own, &BodyBuilder::new()));
        assert!(!note(ended, answers, 7, &accepted));
    }

    fn reported(ended: &mut EndedSessions) -> bool {
        let kind = MessageType::SESSION_REPORT_REQUEST;
        note(ended, kind, 7, &BodyBuilder::new())
    }

    #[test]
    fn session_ends_once_all_its_duplicates_are_deleted() {
        let mut ended = EndedSessions::default();
        assert!(!established(&mut ended, 1) && !reported(&mut ended));
        deleted(&mut ended, 1);
        assert!(reported(&mut ended));
        // The same response again changes nothing; another one shows that the request was executed
        // twice.
        assert!(!established(&mut ended, 1) && reported(&mut ended));
        assert!(!established(&mut ended, 2) && !reported(&mut ended));
        deleted(&mut ended, 1);
        assert!(!reported(&mut ended));
        deleted(&mut ended, 2);
        assert!(reported(&mut ended));
    }
}
