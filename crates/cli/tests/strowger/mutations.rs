//! Messages captured from other implementations, changed at random and sent to a running node.

mod mutate;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::Ipv4Addr;
use std::str::FromStr;

use strowger_pfcp::ie::Cause;
use strowger_pfcp::{IeType, MessageType, Seid};
use strowger_pfcp_node::CaptureReader;

use self::mutate::{Mutator, Random};
use crate::captures::captures;
use crate::peer::{Peer, STARTED, f_seid_of, value};
use crate::running::Running;

/// Number of mutations that are sent, unless `STROWGER_MUTATIONS` is set.
const MUTATIONS: usize = 3000;
/// Number of mutations between two valid establishments.
const ROUND: usize = 100;
/// Number of mutations after which the sender waits until all were read, so that the socket does
/// not overflow.
const BURST: usize = 20;
/// Number of sessions that the valid peer holds.
const HELD_SESSIONS: usize = 100;
/// Number of mutations after which memory use must be stable.
const WARM_UP: usize = 2000;

/// Limits bound the memory: small limits are reached soon, and then memory must not grow.
const CONFIG: &str = "
[n4.limits]
associations = 32
response_cache = 256
sessions = 2000
sessions_per_association = 200
session_bytes = 16384
[n4.timers]
heartbeat = \"0s\"
";

/// Captured messages, grouped by file.
fn corpus() -> Vec<Vec<Vec<u8>>> {
    let files = captures().into_iter().map(|path| {
        let datagrams = CaptureReader::open(&path).expect("the capture can be read");
        let datagrams = datagrams.map(|datagram| datagram.expect("the capture is whole"));
        datagrams
            .filter(|datagram| datagram.is_pfcp() && !datagram.quoted && !datagram.truncated)
            .map(|datagram| datagram.payload.to_vec())
            .collect()
    });
    let files: Vec<Vec<Vec<u8>>> = files.collect();
    if files.is_empty() {
        vec![mutate::handmade_messages()]
    } else {
        files
    }
}

/// The peer that sends mutations.
struct MutatingPeer {
    peer: Peer,
    mutator: Mutator,
    /// Association setups found in the captures.
    setups: Vec<Vec<u8>>,
    recovery: u32,
    answers: BTreeMap<(u8, u8), usize>,
}

impl MutatingPeer {
    fn new(seed: u64, live: &Running) -> Self {
        let corpus = corpus();
        let is_setup = |bytes: &&Vec<u8>| bytes[1] == MessageType::ASSOCIATION_SETUP_REQUEST.0;
        let mut setups: Vec<Vec<u8>> = corpus.iter().flatten().filter(is_setup).cloned().collect();
        setups.sort_by_key(|bytes| value(bytes, IeType::NODE_ID).map(<[u8]>::to_vec));
        setups.dedup_by_key(|bytes| value(bytes, IeType::NODE_ID).map(<[u8]>::to_vec));
        Self {
            peer: Peer::bind(66, &live.n4),
            mutator: Mutator::new(seed, corpus),
            setups,
            recovery: STARTED,
            answers: BTreeMap::new(),
        }
    }

    /// Associates under every Node ID of the captures, as a node that has restarted: the sessions
    /// of the last round are gone.
    fn associate_all(&mut self) {
        self.recovery += 1;
        for setup in &mut self.setups {
            let stamp = [0, 96, 0, 4];
            let place = setup.windows(4).position(|bytes| bytes == stamp);
            let at = 4 + place.expect("a setup has a time stamp");
            setup[at..at + 4].copy_from_slice(&self.recovery.to_be_bytes());
            setup[5..8].copy_from_slice(&self.recovery.to_be_bytes()[1..]);
            self.peer.send(setup);
        }
        self.mutator.forget_sessions();
    }

    /// Sends mutations, which may name sessions of another peer.
    fn send_burst(&mut self, others: &[Seid]) {
        for _ in 0..BURST {
            let bytes = self.mutator.next(others);
            self.peer.send(&bytes);
        }
    }

    /// Reads the answers: established sessions deserve mutations of their own.
    fn read(&mut self) {
        for bytes in self.peer.drain() {
            let message_type = bytes[1];
            let cause = value(&bytes, IeType::CAUSE).map_or(0, |value| value[0]);
            *self.answers.entry((message_type, cause)).or_default() += 1;
            if cause == Cause::REQUEST_ACCEPTED.0 {
                self.mutator.add_session(f_seid_of(&bytes));
            }
        }
    }
}

/// The peer whose requests must all be accepted.
struct ValidPeer {
    peer: Peer,
    held: Vec<Seid>,
    established: u16,
}

impl ValidPeer {
    fn new(live: &Running) -> Self {
        let mut valid = Self {
            peer: Peer::associated(2, &live.n4),
            held: Vec::new(),
            established: 0,
        };
        while valid.held.len() < HELD_SESSIONS {
            valid.establish();
        }
        valid
    }

    fn establish(&mut self) {
        self.established = self.established.wrapping_add(1);
        let [high, low] = self.established.to_be_bytes();
        let seid = self.peer.establish(Ipv4Addr::new(10, 200, high, low));
        self.held
            .push(seid.expect("a valid establishment is accepted"));
    }

    /// Deletes a session of any age.
    fn delete(&mut self, random: &mut Random) {
        let seid = self.held.swap_remove(random.below(self.held.len()));
        assert_eq!(self.peer.delete(seid), Cause::REQUEST_ACCEPTED, "{seid}");
    }
}

fn number<T: FromStr<Err: Display>>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|error| panic!("{name}={text}: {error}")),
    )
}

/// Prints the seed when a test fails.
struct SeedReport(u64);

impl Drop for SeedReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("run it again with STROWGER_SEED={}", self.0);
        }
    }
}

#[test]
fn mutated_messages_harm_no_session_and_leak_no_memory() {
    let count = number("STROWGER_MUTATIONS").unwrap_or(MUTATIONS);
    let seed = number("STROWGER_SEED").unwrap_or(1_u64);
    let _report = SeedReport(seed);
    let mut random = Random::new(!seed);
    let live = Running::start(CONFIG);
    let mut valid = ValidPeer::new(&live);
    let mut hostile = MutatingPeer::new(seed, &live);
    let mut resident = Vec::new();
    for sent in (0..WARM_UP + count).step_by(BURST) {
        if sent % ROUND == 0 {
            hostile.associate_all();
            valid.establish();
            valid.delete(&mut random);
            if sent >= WARM_UP {
                resident.push(live.resident());
            }
        }
        hostile.send_burst(&valid.held);
        valid.peer.heartbeat();
        hostile.read();
    }
    for &seid in &valid.held {
        assert_eq!(valid.peer.modify(seid), Cause::REQUEST_ACCEPTED, "{seid}");
    }
    live.assert_unharmed();
    let (first, second) = resident.split_at(resident.len() / 2);
    let peak = |half: &[u64]| half.iter().copied().max().unwrap_or(0);
    let (first, second) = (peak(first), peak(second));
    let summary = live.end();
    eprintln!("answers by type and cause: {:?}", hostile.answers);
    eprintln!("resident: at most {first} KiB, then {second} KiB; {summary}");
    assert!(
        second * 100 <= first * 102,
        "{first} KiB in the first half, {second} KiB in the second"
    );
    assert_eq!(
        summary["sessions"]
            .as_u64()
            .map(|all| all >= HELD_SESSIONS as u64),
        Some(true)
    );
}
