//! Public crash classes: each input is answered as the specification demands, without side effects.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;
use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{
    BodyBuilder, Endpoint, EndpointConfig, Event, Role, answer_header, message,
};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::session::{NoAllocator, Refusal, RuleSet};
use strowger_pfcp::transaction::TransactionId;
use strowger_pfcp::{Frame, Header, IeType, MessageType, Seid, Sequence};

const PEER: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 7)),
    8805,
);

#[expect(
    clippy::disallowed_methods,
    reason = "virtual time has to start somewhere"
)]
fn start() -> Instant {
    Instant::now()
}

/// A user plane: an endpoint, and sessions as their owner keeps them.
struct User {
    now: Instant,
    endpoint: Endpoint,
    sessions: BTreeMap<Seid, (Seid, RuleSet)>,
    sequence: u32,
}

impl User {
    /// Creates a user plane with an association with the peer, and a session of it.
    fn new() -> Self {
        let node = std::net::IpAddr::from([127, 0, 0, 1]).into();
        let config = EndpointConfig::new(Role::UserPlane, node, Recovery(1));
        let mut user = Self {
            now: start(),
            endpoint: Endpoint::new(config),
            sessions: BTreeMap::new(),
            sequence: 0,
        };
        let body = BodyBuilder::new()
            .node(&PEER.ip().into())
            .recovery(Recovery(1));
        let answers = user.ask(&request(
            MessageType::ASSOCIATION_SETUP_REQUEST,
            None,
            body.as_slice(),
        ));
        assert_eq!(cause(&answers[0]), Some(1));
        user
    }

    /// Sends bytes with a fresh sequence number; returns the answers.
    fn ask(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.sequence += 1;
        let mut bytes = bytes.to_vec();
        let at = if bytes.first().is_some_and(|flags| flags & 1 == 1) {
            12
        } else {
            4
        };
        if let Some(place) = bytes.get_mut(at..at + 3) {
            place.copy_from_slice(&self.sequence.to_be_bytes()[1..]);
        }
        self.endpoint.handle_datagram(self.now, PEER, &bytes);
        while let Some(event) = self.endpoint.poll_event() {
            if let Event::SessionRequest {
                transaction, bytes, ..
            } = event
            {
                self.work(transaction, &bytes);
            }
        }
        std::iter::from_fn(|| self.endpoint.poll_transmit())
            .map(|transmit| transmit.bytes.to_vec())
            .collect()
    }

    fn work(&mut self, transaction: TransactionId, bytes: &[u8]) {
        let frame = Frame::decode(bytes).expect("it was admitted");
        let outcome = self.outcome(&frame);
        let (remote, body) = match outcome {
            Ok(remote) => (remote, BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED)),
            Err((remote, refusal)) => (remote, BodyBuilder::new().refusal(&refusal)),
        };
        let header = answer_header(&frame.header, Some(remote));
        let bytes = message(&header, body.as_slice()).expect("short");
        self.endpoint.respond(self.now, transaction, bytes.into());
    }

    fn outcome(&mut self, frame: &Frame<'_>) -> Result<Seid, (Seid, Refusal)> {
        let seid = frame.header.seid.expect("a session's message");
        if frame.header.message_type == MessageType::SESSION_ESTABLISHMENT_REQUEST {
            let remote = frame
                .tlvs()
                .flatten()
                .find(|tlv| tlv.ie == IeType::F_SEID)
                .and_then(|tlv| tlv.value.get(1..9)?.try_into().ok());
            let remote = Seid(remote.map_or(0, u64::from_be_bytes));
            let change = RuleSet::establish(frame, &mut NoAllocator);
            let rules = change.map_err(|refusal| (remote, refusal))?.rules;
            let local = Seid(100 + self.sessions.len() as u64);
            self.sessions.insert(local, (remote, rules));
            return Ok(remote);
        }
        let not_found = Refusal::new(Cause::SESSION_CONTEXT_NOT_FOUND);
        let session = self.sessions.get_mut(&seid);
        let (remote, rules) = session.ok_or((Seid(0), not_found))?;
        let change = rules.modify(frame, &mut NoAllocator);
        *rules = change.map_err(|refusal| (*remote, refusal))?.rules;
        Ok(*remote)
    }
}

fn request(message_type: MessageType, seid: Option<Seid>, body: &[u8]) -> Vec<u8> {
    let mut header = Header::node(message_type, Sequence::new(0));
    header.seid = seid;
    message(&header, body).expect("short")
}

fn element(bytes: &[u8], ie: IeType) -> Option<Vec<u8>> {
    let frame = Frame::decode(bytes).expect("our own");
    let found = frame.tlvs().flatten().find(|tlv| tlv.ie == ie)?;
    Some(found.value.to_vec())
}

fn cause(bytes: &[u8]) -> Option<u64> {
    element(bytes, IeType::CAUSE).map(|value| value[0].into())
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|one| one.to_digit(16)).collect();
    let byte = |pair: &[u32]| u8::try_from(pair[0] << 4 | pair[1]).expect("two digits");
    digits.chunks_exact(2).map(byte).collect()
}

/// Returns `true` if the answers are as expected.
fn fits(answers: &[Vec<u8>], expected: &Value) -> bool {
    if let Some(any) = expected["any"].as_array() {
        return any.iter().any(|one| fits(answers, one));
    }
    if let Some(types) = expected["answers"].as_array() {
        return answers
            .iter()
            .map(|one| u64::from(one[1]))
            .eq(types.iter().map(|one| one.as_u64().expect("a type")));
    }
    if expected["answer"] == "none" {
        return answers.is_empty();
    }
    let [answer] = answers else { return false };
    let listed = |list: &Value, value: Option<u64>| {
        list.as_array().is_none_or(|list| {
            value.is_some_and(|value| list.iter().any(|one| one.as_u64() == Some(value)))
        })
    };
    let offending = element(answer, IeType::OFFENDING_IE)
        .map(|value| u64::from(u16::from_be_bytes([value[0], value[1]])));
    let header = Frame::decode(answer).expect("our own").header;
    expected["answer"].as_u64() == Some(answer[1].into())
        && listed(&expected["cause"], cause(answer))
        && listed(&expected["offending_ie"], offending)
        && expected["seid"]
            .as_u64()
            .is_none_or(|seid| header.seid == Some(Seid(seid)))
}

#[test]
fn bad_inputs_get_expected_answers() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/pfcp/bad-inputs.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        assert!(
            std::env::var("CI").as_deref() != Ok("true"),
            "no bad inputs in {}",
            path.display()
        );
        println!("left out: no bad inputs in {}", path.display());
        return;
    };
    let file: Value = serde_json::from_str(&text).expect("JSON");
    let mut user = User::new();
    let mut wrong = Vec::new();
    for case in file["cases"].as_array().expect("cases") {
        let bytes = hex(case["hex"].as_str().expect("octets"));
        let before = user.sessions.clone();
        let mut answers = user.ask(&bytes);
        // A heartbeat with a later stamp is answered, and the peer is asked for its stamp.
        answers.retain(|one| one[1] != MessageType::HEARTBEAT_REQUEST.0);
        if !fits(&answers, &case["expect"]) {
            let answers: Vec<_> = answers.iter().map(|one| format!("{one:02x?}")).collect();
            wrong.push(format!("{}: {answers:?}", case["name"]));
        }
        for (seid, session) in &before {
            assert_eq!(user.sessions.get(seid), Some(session), "{}", case["name"]);
        }
        let recovery = BodyBuilder::new().recovery(Recovery(1));
        let beat = request(MessageType::HEARTBEAT_REQUEST, None, recovery.as_slice());
        assert_eq!(user.ask(&beat)[0][1], 2, "after {}", case["name"]);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Sends the bad rules again, as modifications of a live session.
#[test]
fn bad_rules_leave_session_unchanged() {
    let mut user = User::new();
    let f_seid = [&[2][..], &9u64.to_be_bytes(), &[127, 0, 0, 7]].concat();
    let pdr = |id: u8| {
        let pdi = BodyBuilder::new().with(IeType::SOURCE_INTERFACE, &[0]);
        BodyBuilder::new()
            .with(IeType::PDR_ID, &[0, id])
            .with(IeType::PRECEDENCE, &[0, 0, 0, 1])
            .with(IeType::PDI, pdi.as_slice())
            .with(IeType::FAR_ID, &[0, 0, 0, 1])
    };
    let far = BodyBuilder::new()
        .with(IeType::FAR_ID, &[0, 0, 0, 1])
        .with(IeType::APPLY_ACTION, &[1]);
    let body = BodyBuilder::new()
        .node(&PEER.ip().into())
        .with(IeType::F_SEID, &f_seid)
        .with(IeType::CREATE_PDR, pdr(1).as_slice())
        .with(IeType::CREATE_FAR, far.as_slice());
    let establish = MessageType::SESSION_ESTABLISHMENT_REQUEST;
    user.ask(&request(establish, Some(Seid(0)), body.as_slice()));
    let live = *user.sessions.keys().next().expect("a session");
    let before = user.sessions.clone();
    let modify = |user: &mut User, body: &BodyBuilder| {
        let message_type = MessageType::SESSION_MODIFICATION_REQUEST;
        user.ask(&request(message_type, Some(live), body.as_slice()))
            .pop()
            .expect("an answer")
    };
    let pair =
        |ie, count| (0..count).fold(BodyBuilder::new(), |all, _| all.with(ie, pdr(1).as_slice()));
    let empty = (0..5000).fold(BodyBuilder::new(), |all, _| {
        all.with(IeType::CREATE_PDR, &[])
    });
    let nested = (0..8000).fold(Vec::new(), |inner, _| {
        let keep = inner.len().min(60_000);
        BodyBuilder::new()
            .with(IeType::PDI, &inner[..keep])
            .as_slice()
            .to_vec()
    });
    for bad in [
        empty,
        pair(IeType::CREATE_PDR, 1000),
        pair(IeType::REMOVE_PDR, 2),
        BodyBuilder::new().with(IeType::CREATE_PDR, &nested[..nested.len().min(60_000)]),
        BodyBuilder::new().with(IeType::CREATE_FAR, &[]),
        BodyBuilder::new().with(IeType::REMOVE_FAR, &[0, 108, 0, 4, 0, 0, 0, 1]),
        BodyBuilder::new().with(IeType::UPDATE_PDR, &[0, 56, 0, 2, 0xff, 0xff]),
    ] {
        let answer = modify(&mut user, &bad);
        assert!(cause(&answer).is_some_and(|cause| cause >= 64));
        let header = Frame::decode(&answer).expect("our own").header;
        assert_eq!(header.seid, Some(Seid(9)));
        assert_eq!(user.sessions, before);
    }
    let good = BodyBuilder::new().with(IeType::CREATE_PDR, pdr(2).as_slice());
    assert_eq!(cause(&modify(&mut user, &good)), Some(1));
}
