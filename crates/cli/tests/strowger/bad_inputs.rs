//! Inputs that crashed other stacks, sent to a running node.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, IeType, Seid};

use crate::captures::report_skipped;
use crate::peer::{Peer, f_seid_of, value};
use crate::running::Running;

/// The time within which actors must end.
const END_TIMEOUT: Duration = Duration::from_secs(60);

/// Cases that the node answers differently, each with the reason. The list is closed: it may only
/// get shorter.
const KNOWN_DEVIATIONS: [(&str, &str); 0] = [];

/// A case of the input file.
#[derive(Debug)]
struct Case {
    name: String,
    bytes: Vec<u8>,
    expect: Value,
}

fn cases() -> Vec<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pfcp/bad-inputs.json");
    let Ok(text) = fs::read_to_string(&path) else {
        return report_skipped("bad inputs", &format!("{} is not there", path.display()));
    };
    let file: Value = serde_json::from_str(&text).expect("the file is JSON");
    let text = |case: &Value, key: &str| case[key].as_str().expect("a text").to_owned();
    let cases = file["cases"].as_array().expect("a list");
    cases
        .iter()
        .map(|case| Case {
            name: text(case, "name"),
            bytes: parse_hex(&text(case, "hex")),
            expect: case["expect"].clone(),
        })
        .collect()
}

fn parse_hex(hex: &str) -> Vec<u8> {
    let pair = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len()).step_by(2).map(pair).collect()
}

/// The sequence number of a message, at the place that its header flags give.
fn sequence_number(bytes: &mut [u8]) -> Option<&mut [u8]> {
    let at = if bytes[0] & 1 == 1 { 12 } else { 4 };
    bytes.get_mut(at..at + 3)
}

/// Gives every message of a case a fresh sequence number.
fn renumber(case: &Case, peer: &mut Peer) -> Vec<u8> {
    let mut bytes = case.bytes.clone();
    let mut start = 0;
    while let Some(rest) = bytes.get_mut(start..).filter(|rest| rest.len() >= 4) {
        let length = 4 + usize::from(u16::from_be_bytes([rest[2], rest[3]]));
        let bundled = rest[0] & 4 == 4;
        let sequence = peer.next_sequence().get().to_be_bytes();
        if let Some(place) = sequence_number(rest) {
            place.copy_from_slice(&sequence[1..]);
        }
        if !bundled {
            break;
        }
        start += length;
    }
    bytes
}

/// Describes how the answers deviate from the expectation; `None` if they do not.
fn deviation(expect: &Value, answers: &[Vec<u8>]) -> Option<String> {
    if let Some(any) = expect["any"].as_array() {
        let faults: Option<Vec<String>> = any.iter().map(|one| deviation(one, answers)).collect();
        return faults.map(|faults| faults.join("; or "));
    }
    let types: Vec<u64> = answers.iter().map(|bytes| bytes[1].into()).collect();
    if let Some(wanted) = expect["answers"].as_array() {
        let wanted: Vec<u64> = wanted.iter().filter_map(Value::as_u64).collect();
        return (types != wanted).then(|| format!("answers {types:?}, expected {wanted:?}"));
    }
    if expect["answer"] == "none" {
        return (!types.is_empty()).then(|| format!("answers {types:?}, expected none"));
    }
    let [answer] = answers else {
        return Some(format!("answers {types:?}, expected one"));
    };
    if expect["answer"] != types[0] {
        return Some(format!(
            "answer {}, expected {}",
            types[0], expect["answer"]
        ));
    }
    let listed = |key: &str, given: Option<u64>| {
        let wanted = expect[key].as_array()?;
        let fits = given.is_some_and(|given| wanted.iter().any(|one| *one == given));
        (!fits).then(|| format!("{key} {given:?}, expected {}", expect[key]))
    };
    let number = |ie| {
        let bytes = value(answer, ie)?.iter();
        Some(bytes.fold(0, |number: u64, byte| number << 8 | u64::from(*byte)))
    };
    let seid = Frame::decode(answer).expect("a message").header.seid;
    let wrong_seid = expect
        .get("seid")
        .filter(|wanted| seid.map(|seid| seid.0) != wanted.as_u64());
    listed("cause", number(IeType::CAUSE))
        .or_else(|| listed("offending_ie", number(IeType::OFFENDING_IE)))
        .or_else(|| wrong_seid.map(|wanted| format!("SEID {seid:?}, expected {wanted}")))
}

/// A node with two peers: one that sends bad inputs, and an uninvolved one.
struct Setup {
    live: Running,
    bad: Peer,
    own: Seid,
    good: Peer,
    other: Seid,
    actors: usize,
}

impl Setup {
    fn start(config: &str) -> Self {
        let live = Running::start(config);
        let mut good = Peer::associated(8, &live.n4);
        let mut bad = Peer::associated(7, &live.n4);
        // The first session has SEID 1, which some cases name: for their sender it is unknown.
        let other = good
            .establish(Ipv4Addr::new(10, 200, 0, 8))
            .expect("accepted");
        let own = bad
            .establish(Ipv4Addr::new(10, 200, 0, 7))
            .expect("accepted");
        let actors = live.actors().len();
        Self {
            live,
            bad,
            own,
            good,
            other,
            actors,
        }
    }

    /// Sends a case and returns the answers.
    fn answers(&mut self, case: &Case) -> Vec<Vec<u8>> {
        let bytes = renumber(case, &mut self.bad);
        self.bad.send(&bytes);
        // The first heartbeat is answered when the case has been read, the others when a session
        // has had its turn.
        self.bad.heartbeat();
        assert_eq!(self.bad.modify(self.own), Cause::REQUEST_ACCEPTED);
        self.bad.heartbeat();
        let mut answers = self.bad.take_unread();
        if answers.is_empty() && deviation(&case.expect, &[]).is_some() {
            answers.extend(self.bad.next());
        } else if answers.is_empty() && case.expect["any"].is_array() {
            // A session that refuses a request has answered by the time it is gone.
            self.count();
            self.bad.heartbeat();
            answers = self.bad.take_unread();
        }
        answers
    }

    /// Waits until there are as many actors as at the start, since a deleted or refused session may
    /// end after its answer. Returns their number.
    fn count(&self) -> usize {
        let since = Instant::now();
        loop {
            let actors = self.live.actors().len();
            if actors == self.actors || since.elapsed() > END_TIMEOUT {
                return actors;
            }
        }
    }

    /// Deletes the sessions that a case established.
    fn delete_sessions(&mut self, answers: &[Vec<u8>]) {
        for answer in answers {
            if let Some(seid) = f_seid_of(answer) {
                assert_eq!(self.bad.delete(seid), Cause::REQUEST_ACCEPTED);
            }
        }
    }

    /// Describes other effects of a case; `None` if there are none.
    fn side_effects(&mut self) -> Option<String> {
        let causes = (self.bad.modify(self.own), self.good.modify(self.other));
        self.live.assert_unharmed();
        let actors = self.count();
        let unharmed = (Cause::REQUEST_ACCEPTED, Cause::REQUEST_ACCEPTED);
        (causes != unharmed || actors != self.actors).then(|| {
            format!(
                "modifications {causes:?}, {actors} actors, were {}",
                self.actors
            )
        })
    }
}

#[test]
fn bad_inputs_are_answered_as_expected_and_harm_no_session() {
    let cases = cases();
    let mut bench = Setup::start("");
    let mut faults = Vec::new();
    for case in &cases {
        let answers = bench.answers(case);
        bench.delete_sessions(&answers);
        let wrong = deviation(&case.expect, &answers).or_else(|| bench.side_effects());
        faults.extend(wrong.map(|wrong| (case.name.as_str(), wrong)));
    }
    for (name, reason) in KNOWN_DEVIATIONS {
        let found = faults.iter().position(|(case, _)| *case == name);
        let found = found.unwrap_or_else(|| panic!("{name}: holds, so it needs no excuse"));
        let (_, wrong) = faults.remove(found);
        eprintln!("excused: {name}: {wrong}; {reason}");
    }
    let table: Vec<String> = faults
        .iter()
        .map(|(name, wrong)| format!("{name}: {wrong}"))
        .collect();
    let (held, count) = (cases.len() - table.len(), cases.len());
    assert!(
        table.is_empty(),
        "{held} of {count} hold; not these:\n{}",
        table.join("\n")
    );
    assert_eq!(bench.bad.drain(), Vec::<Vec<u8>>::new(), "late answers");
    let summary = bench.live.end();
    assert_eq!(summary["not_stopped"], serde_json::json!([]), "{summary}");
}

#[test]
fn bad_inputs_leak_no_memory() {
    let cases = cases();
    // Answers are kept for retransmitted requests; with room for only a few of them, memory soon
    // stays constant.
    let mut bench = Setup::start("[n4.limits]\nresponse_cache = 64");
    let mut peak = || {
        let round = |_| {
            for case in &cases {
                let answers = bench.answers(case);
                bench.delete_sessions(&answers);
            }
            bench.live.resident()
        };
        (0..10).map(round).max().expect("rounds")
    };
    let (_warm, first, second) = (peak(), peak(), peak());
    assert!(
        second * 100 <= first * 102,
        "{first} KiB in the first rounds, {second} KiB in the second"
    );
    assert_eq!(bench.side_effects(), None);
}
