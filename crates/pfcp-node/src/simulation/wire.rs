//! The network between the two roles: it loses, doubles, delays and overtakes, and looks at all
//! that passes.

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

use super::dice::Dice;
use super::platter::Platter;
use super::world::{FIRST_STAMP, SMF};
use super::{Faults, N1, T1};

/// What the network does to datagrams, in hundredths.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weather {
    pub(super) loss: u64,
    pub(super) doubling: u64,
    /// The longest delay, in milliseconds.
    pub(super) jitter: u64,
}

/// The network; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Wire(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    dice: Dice,
    weather: Weather,
    ports: BTreeMap<SocketAddr, Arc<Port>>,
    flying: BinaryHeap<Reverse<(Instant, u64, Flight)>>,
    count: u64,
    start: Instant,
    book: Book,
    faults: Faults,
    wrong: Vec<String>,
    digest: DefaultHasher,
    trace: Option<Vec<String>>,
    platter: Option<Arc<Platter>>,
    /// Whether answers may be forgotten while their requests can still come.
    forgetful: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Flight {
    from: SocketAddr,
    to: SocketAddr,
    octets: Vec<u8>,
}

/// What passed, by sender, sequence number and type.
#[derive(Debug, Default)]
struct Book {
    /// Which incarnation of the user plane's answers counts: what it refused before it crashed,
    /// or answered before it lost its store, it may answer otherwise now.
    incarnation: u32,
    losses: u32,
    sent: BTreeMap<(SocketAddr, u32, u8, u32), Vec<u8>>,
    /// Requests of the control plane: when each was first sent.
    asked: BTreeMap<u32, Instant>,
    answered: BTreeSet<u32>,
    arrived: BTreeSet<u32>,
    /// Requests that wait for no answer: they have one, or who sent them has crashed.
    closed: BTreeSet<u32>,
    last: Option<u32>,
    over: Over,
}

/// The sessions of which nothing may be reported any more.
#[derive(Debug, Default)]
struct Over {
    /// Those that were accepted, by how the user plane calls them: how the control plane does, and
    /// whether they have ended. A user plane that has forgotten an answer makes two of one.
    accepted: BTreeMap<u64, (u64, bool)>,
    /// What is to be deleted, as the user plane calls it, by the sequence number of the request.
    deletions: BTreeMap<u32, u64>,
    /// The lives that sent setups, by the sequence numbers of these; `None` once it is answered.
    setups: BTreeMap<u32, Option<u64>>,
    /// The association was released, which is the end.
    released: bool,
}

impl Over {
    /// Takes note of a message of either role; returns what is wrong with it.
    fn note(&mut self, frame: &Frame<'_>) -> Option<String> {
        let sequence = frame.header.sequence.get();
        let seid = frame.header.seid.map_or(0, |seid| seid.0);
        let accepted = cause(frame) == Some(Cause::REQUEST_ACCEPTED);
        match frame.header.message_type {
            MessageType::ASSOCIATION_SETUP_REQUEST => {
                let stamp = element(frame, IeType::RECOVERY_TIME_STAMP)?;
                let stamp = u32::from_be_bytes(*stamp.first_chunk()?);
                let life = u64::from(stamp).saturating_sub(FIRST_STAMP);
                self.setups.entry(sequence).or_insert(Some(life));
            }
            MessageType::ASSOCIATION_SETUP_RESPONSE if accepted => {
                // An establishment of an earlier life may come later still; it is none of these.
                let life = self.setups.get_mut(&sequence).and_then(Option::take)?;
                for (called, ended) in self.accepted.values_mut() {
                    *ended |= *called < life << 32;
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

    /// Notes that the user plane may have again what was over.
    fn forget(&mut self) {
        self.accepted.clear();
        self.setups.clear();
        self.released = false;
    }
}

/// Where a role is plugged in, in one of its lives.
#[derive(Clone, Debug)]
pub(crate) struct Plug {
    wire: Wire,
    address: SocketAddr,
    port: Arc<Port>,
}

#[derive(Debug, Default)]
struct Port(Mutex<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    waiting: VecDeque<(SocketAddr, Vec<u8>)>,
    waker: Option<Waker>,
}

impl Wire {
    pub(super) fn new(dice: Dice, forgetful: bool, trace: bool) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                dice,
                weather: Weather::default(),
                ports: BTreeMap::new(),
                flying: BinaryHeap::new(),
                count: 0,
                start: Instant::now(),
                book: Book::default(),
                faults: Faults::default(),
                wrong: Vec::new(),
                digest: DefaultHasher::new(),
                trace: trace.then(Vec::new),
                platter: None,
                forgetful,
            }),
            changed: Notify::new(),
        }))
    }

    /// Plugs a new life in where the last one was, which hears and says nothing any more.
    pub(super) fn plug(&self, address: SocketAddr) -> Plug {
        let port = Arc::new(Port::default());
        self.0.state.lock().ports.insert(address, Arc::clone(&port));
        Plug {
            wire: self.clone(),
            address,
            port,
        }
    }

    pub(super) fn unplug(&self, address: SocketAddr) {
        let mut state = self.0.state.lock();
        state.ports.remove(&address);
        if address == SMF {
            let book = &mut state.book;
            book.closed = book.asked.keys().copied().collect();
            // The next life says so in its answers.
            book.incarnation += 1;
        }
    }

    /// Lets the network see what was written before it is answered.
    pub(super) fn watch(&self, platter: &Arc<Platter>) {
        self.0.state.lock().platter = Some(Arc::clone(platter));
    }

    pub(super) fn weather(&self, weather: Weather) {
        self.0.state.lock().weather = weather;
    }

    /// Notes that the user plane may refuse what it accepted, or the other way round.
    pub(super) fn forgets_refusals(&self) {
        self.0.state.lock().book.incarnation += 1;
    }

    /// Notes that the user plane may have lost answers that it gave, and have again what was over.
    pub(super) fn forgets_answers(&self) {
        let mut state = self.0.state.lock();
        state.book.losses += 1;
        state.book.over.forget();
    }

    /// Delivers what somebody sends who is none of the roles.
    pub(super) fn spoof(&self, from: SocketAddr, to: SocketAddr, octets: &[u8]) {
        let mut state = self.0.state.lock();
        state.note(|| format!("{from} > {to} {} (spoofed)", told(octets)));
        state.fly(from, to, octets, Duration::ZERO);
        drop(state);
        self.0.changed.notify_one();
    }

    pub(super) fn note(&self, text: impl FnOnce() -> String) {
        self.0.state.lock().note(text);
    }

    pub(super) fn count(&self, fault: impl FnOnce(&mut Faults)) {
        fault(&mut self.0.state.lock().faults);
    }

    /// Notes something that must not be.
    pub(super) fn wrong(&self, text: String) {
        let mut state = self.0.state.lock();
        state.note(|| format!("WRONG: {text}"));
        state.wrong.push(text);
    }

    /// Takes out what was found wrong, the faults, a digest of all that was sent, and the trace.
    pub(super) fn finish(&self) -> (Vec<String>, Faults, u64, Vec<String>) {
        let mut state = self.0.state.lock();
        state.platter = None;
        (
            std::mem::take(&mut state.wrong),
            std::mem::take(&mut state.faults),
            state.digest.finish(),
            state.trace.take().unwrap_or_default(),
        )
    }

    /// Delivers what is due, for ever.
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

impl State {
    fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            let at = self.start.elapsed();
            trace.push(format!("{:>9.3} {}", at.as_secs_f64(), text()));
        }
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, octets: &[u8]) {
        self.book_sent(from, octets);
        let at = self.start.elapsed();
        (at, octets).hash(&mut self.digest);
        let copies = match self.dice.percent(self.weather.doubling) {
            true => 2,
            false => 1,
        };
        self.faults.doubled += copies - 1;
        for copy in 0..copies {
            let lost = self.dice.percent(self.weather.loss);
            let delay = self.dice.millis(self.weather.jitter + 1);
            self.note(|| {
                let fate = match (lost, copy) {
                    (true, _) => "lost".to_owned(),
                    (false, 0) => format!("+{} ms", delay.as_millis()),
                    (false, _) => format!("doubled, +{} ms", delay.as_millis()),
                };
                format!("{from} > {to} {} ({fate})", told(octets))
            });
            if lost {
                self.faults.lost += 1;
                continue;
            }
            self.faults.delayed += u64::from(delay > T1 / 2);
            self.fly(from, to, octets, delay);
        }
    }

    fn fly(&mut self, from: SocketAddr, to: SocketAddr, octets: &[u8], delay: Duration) {
        self.count += 1;
        let flight = Flight {
            from,
            to,
            octets: octets.to_vec(),
        };
        let due = Instant::now() + delay;
        let overtakes =
            |other: &Reverse<(Instant, u64, Flight)>| other.0.0 > due && other.0.2.to == to;
        self.faults.reordered += u64::from(self.flying.iter().any(overtakes));
        self.flying.push(Reverse((due, self.count, flight)));
    }

    /// Checks that repetitions are identical, and counts them.
    fn book_sent(&mut self, from: SocketAddr, octets: &[u8]) {
        let Ok(frame) = Frame::decode(octets) else {
            self.wrong.push(format!("{from} sends no message"));
            return;
        };
        let (kind, sequence) = (frame.header.message_type, frame.header.sequence.get());
        if let Some(text) = self.book.over.note(&frame) {
            self.note(|| format!("WRONG: {text}"));
            self.wrong.push(text);
        }
        if is_report(&frame) {
            // Each life of the user plane numbers its reports from the first number on.
            self.faults.reported += u64::from(kind.is_request());
            return;
        }
        let book = &mut self.book;
        if kind.is_request() && kind.is_session() {
            let first = book.asked.insert(sequence, Instant::now());
            match first {
                Some(first) => {
                    book.asked.insert(sequence, first);
                    self.faults.retransmitted += 1;
                }
                None => {
                    let wrapped = book.last.is_some_and(|last| sequence < last / 2);
                    self.faults.wrapped += u64::from(wrapped && sequence < 1000);
                    book.last = Some(sequence);
                }
            }
        }
        if !kind.is_request() && kind.is_session() {
            book.answered.insert(sequence);
        }
        // A refusal need not survive a crash; an acceptance must.
        let accepted = cause(&frame) == Some(Cause::REQUEST_ACCEPTED) && kind.is_session();
        if let Some(platter) = self.platter.as_ref().filter(|_| accepted)
            && !platter.has_written(sequence, kind.0 - 1)
        {
            let text = format!("{kind} {sequence} says accepted, and nothing was written");
            self.note(|| format!("WRONG: {text}"));
            self.wrong.push(text);
        }
        let book = &mut self.book;
        let life = match (kind.is_request() && kind.is_session(), accepted) {
            (true, _) => 0,
            (false, true) => 1 + book.losses,
            // As are the user plane's own requests, which start again from the first number.
            (false, false) => 1_000_000 + book.incarnation,
        };
        let key = (from, sequence, kind.0, life);
        let first = book.sent.entry(key).or_insert_with(|| octets.to_vec());
        if first != octets && (kind.is_request() || !self.forgetful) {
            let (before, now) = (told(first), told(octets));
            let text = format!("{kind} {sequence} is repeated with other octets: {before}; {now}");
            self.note(|| format!("WRONG: {text}"));
            self.wrong.push(text);
        }
    }

    /// Delivers what is due, and says when there is more.
    fn deliver(&mut self) -> Option<Instant> {
        loop {
            let at = self.flying.peek()?.0.0;
            if at > Instant::now() {
                return Some(at);
            }
            let Reverse((_, _, flight)) = self.flying.pop()?;
            self.book_arrived(&flight.octets);
            let Some(port) = self.ports.get(&flight.to) else {
                self.faults.nobody += 1;
                continue;
            };
            let mut inbox = port.0.lock();
            inbox.waiting.push_back((flight.from, flight.octets));
            if let Some(waker) = inbox.waker.take() {
                waker.wake();
            }
        }
    }

    fn book_arrived(&mut self, octets: &[u8]) {
        let Ok(frame) = Frame::decode(octets) else {
            return;
        };
        let (kind, sequence) = (frame.header.message_type, frame.header.sequence.get());
        let book = &mut self.book;
        let asks = kind.is_session() && !is_report(&frame);
        let Some(&asked) = book.asked.get(&sequence).filter(|_| asks) else {
            return;
        };
        if kind.is_request() {
            let again = !book.arrived.insert(sequence);
            let working = !book.answered.contains(&sequence);
            self.faults.repeated += u64::from(again);
            self.faults.repeated_at_work += u64::from(again && working);
        } else {
            let late = !book.closed.insert(sequence) || asked.elapsed() > T1 * N1;
            self.faults.late += u64::from(late);
        }
    }
}

impl Plug {
    pub(crate) fn poll_ready(&self, cx: &Context<'_>) -> Poll<()> {
        let mut inbox = self.port.0.lock();
        if !inbox.waiting.is_empty() {
            return Poll::Ready(());
        }
        inbox.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    pub(crate) fn take(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let (from, octets) = self.port.0.lock().waiting.pop_front()?;
        let length = octets.len().min(buffer.len());
        buffer[..length].copy_from_slice(&octets[..length]);
        Some((length, from))
    }

    pub(crate) fn send(&self, octets: &[u8], to: SocketAddr) -> io::Result<usize> {
        let mut state = self.wire.0.state.lock();
        let plugged = state.ports.get(&self.address);
        if !plugged.is_some_and(|port| Arc::ptr_eq(port, &self.port)) {
            return Err(ErrorKind::NotConnected.into());
        }
        state.send(self.address, to, octets);
        drop(state);
        self.wire.0.changed.notify_one();
        Ok(octets.len())
    }
}

/// Returns `true` if a message is a session report, or the answer to one.
fn is_report(frame: &Frame<'_>) -> bool {
    matches!(
        frame.header.message_type,
        MessageType::SESSION_REPORT_REQUEST | MessageType::SESSION_REPORT_RESPONSE
    )
}

fn cause(frame: &Frame<'_>) -> Option<Cause> {
    element(frame, IeType::CAUSE)?.first().copied().map(Cause)
}

/// The value of the first element of a type.
fn element<'a>(frame: &Frame<'a>, ie: IeType) -> Option<&'a [u8]> {
    let found = frame.tlvs().flatten().find(|tlv| tlv.ie == ie)?;
    Some(found.value)
}

/// A message in a few words.
fn told(octets: &[u8]) -> String {
    let Ok(frame) = Frame::decode(octets) else {
        return format!("{} octets", octets.len());
    };
    let mut digest = DefaultHasher::new();
    octets.hash(&mut digest);
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

/// The longest delay after which a copy of a request still meets the answer that is kept.
pub(super) const LONGEST: Duration = T1.saturating_sub(Duration::from_millis(50));

#[cfg(test)]
mod tests {
    use strowger_pfcp::endpoint::{Elements, message};
    use strowger_pfcp::{Header, Seid, Sequence};

    use super::super::world::UPF;
    use super::*;

    /// What is wrong with a message about the session that the control plane calls 7.
    fn note(over: &mut Over, kind: MessageType, seid: u64, body: &Elements) -> bool {
        let header = Header::session(kind, Seid(seid), Sequence::new(2));
        let octets = message(&header, body.as_slice()).expect("it is short");
        let frame = Frame::decode(&octets).expect("it was just made");
        over.note(&frame).is_some()
    }

    fn established(over: &mut Over, own: u64) -> bool {
        let mut f_seid = Vec::new();
        let own = FSeid::new(Seid(own), UPF.ip());
        own.encode_into(&mut f_seid).expect("it is short");
        let body = Elements::new().cause(Cause::REQUEST_ACCEPTED);
        let kind = MessageType::SESSION_ESTABLISHMENT_RESPONSE;
        note(over, kind, 7, &body.octets(&f_seid))
    }

    fn deleted(over: &mut Over, own: u64) {
        let asks = MessageType::SESSION_DELETION_REQUEST;
        let answers = MessageType::SESSION_DELETION_RESPONSE;
        let accepted = Elements::new().cause(Cause::REQUEST_ACCEPTED);
        assert!(!note(over, asks, own, &Elements::new()));
        assert!(!note(over, answers, 7, &accepted));
    }

    fn reported(over: &mut Over) -> bool {
        let kind = MessageType::SESSION_REPORT_REQUEST;
        note(over, kind, 7, &Elements::new())
    }

    #[test]
    fn session_is_over_once_all_that_were_made_of_it_are_deleted() {
        let mut over = Over::default();
        assert!(!established(&mut over, 1) && !reported(&mut over));
        deleted(&mut over, 1);
        assert!(reported(&mut over));
        // The same answer again says nothing new; another one says that it was done again.
        assert!(!established(&mut over, 1) && reported(&mut over));
        assert!(!established(&mut over, 2) && !reported(&mut over));
        deleted(&mut over, 1);
        assert!(!reported(&mut over));
        deleted(&mut over, 2);
        assert!(reported(&mut over));
    }
}
