//! Associations: setup in both directions, heartbeats, restarts, ownership of Node IDs, and bad
//! input.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger_pfcp::association::{NodeName, Recovery, RestartSign};
use strowger_pfcp::endpoint::{
    BodyBuilder, DiscardReason, Endpoint, EndpointConfig, Event, Role, Transmit, message,
};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, Header, IeType, MessageType, Seid, Sequence};

#[expect(
    clippy::disallowed_methods,
    reason = "virtual time has to start somewhere"
)]
fn start() -> Instant {
    Instant::now()
}

fn at(host: u8) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, host], 8805))
}

fn config(role: Role, host: u8) -> EndpointConfig {
    EndpointConfig::new(role, at(host).ip().into(), Recovery(100))
}

fn upf() -> Endpoint {
    Endpoint::new(config(Role::UserPlane, 1))
}

fn smf() -> Endpoint {
    Endpoint::new(config(Role::ControlPlane, 2))
}

/// Carries datagrams in both directions until none is left.
fn exchange(now: Instant, smf: &mut Endpoint, upf: &mut Endpoint) {
    loop {
        let there = std::iter::from_fn(|| smf.poll_transmit()).collect::<Vec<_>>();
        let back = std::iter::from_fn(|| upf.poll_transmit()).collect::<Vec<_>>();
        if there.is_empty() && back.is_empty() {
            return;
        }
        for Transmit { bytes, .. } in there {
            upf.handle_datagram(now, at(2), &bytes);
        }
        for Transmit { bytes, .. } in back {
            smf.handle_datagram(now, at(1), &bytes);
        }
    }
}

fn events(endpoint: &mut Endpoint) -> Vec<Event> {
    std::iter::from_fn(|| endpoint.poll_event()).collect()
}

fn sent(endpoint: &mut Endpoint) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| endpoint.poll_transmit())
        .map(|transmit| transmit.bytes.to_vec())
        .collect()
}

fn setup(node: &NodeName, recovery: u32, sequence: u32) -> Vec<u8> {
    let body = BodyBuilder::new().node(node).recovery(Recovery(recovery));
    request(
        MessageType::ASSOCIATION_SETUP_REQUEST,
        sequence,
        body.as_slice(),
    )
}

fn request(message_type: MessageType, sequence: u32, body: &[u8]) -> Vec<u8> {
    let sequence = Sequence::new(sequence);
    let header = if message_type.is_session() {
        Header::session(message_type, Seid(1), sequence)
    } else {
        Header::node(message_type, sequence)
    };
    message(&header, body).expect("short")
}

/// Sends one datagram and returns the only answer, if there is one.
fn ask(now: Instant, endpoint: &mut Endpoint, host: u8, bytes: &[u8]) -> Option<Vec<u8>> {
    endpoint.handle_datagram(now, at(host), bytes);
    let mut answers = sent(endpoint);
    assert!(answers.len() <= 1);
    answers.pop()
}

fn cause(answer: Option<Vec<u8>>) -> Cause {
    let bytes = answer.expect("an answer");
    let frame = Frame::decode(&bytes).expect("a message");
    let cause = frame.tlvs().flatten().find(|tlv| tlv.ie == IeType::CAUSE);
    Cause(cause.expect("a cause").value[0])
}

fn associated() -> (Instant, Endpoint, Endpoint) {
    let (now, mut smf, mut upf) = (start(), smf(), upf());
    smf.associate(now, at(1)).expect("room");
    exchange(now, &mut smf, &mut upf);
    for endpoint in [&mut smf, &mut upf] {
        let events = events(endpoint);
        assert!(matches!(
            events[..],
            [Event::AssociationUp { kept: false, .. }]
        ));
    }
    (now, smf, upf)
}

#[test]
fn either_side_can_set_an_association_up() {
    associated();
    let (now, mut smf, mut upf) = (start(), smf(), upf());
    upf.associate(now, at(2)).expect("room");
    exchange(now, &mut smf, &mut upf);
    assert_eq!(smf.associations().len(), 1);
    assert_eq!(upf.associations().len(), 1);
}

#[test]
fn unanswered_setup_fails() {
    let (mut now, mut smf) = (start(), smf());
    smf.associate(now, at(1)).expect("room");
    let mut tries = sent(&mut smf);
    while let Some(due) = smf.poll_timeout() {
        now = due;
        smf.handle_timeout(now);
        tries.extend(sent(&mut smf));
    }
    assert_eq!(tries.len(), 3);
    assert!(tries.iter().all(|one| *one == tries[0]));
    let events = events(&mut smf);
    assert!(matches!(
        events[..],
        [Event::AssociationFailed {
            cause: None,
            invalid: None,
            ..
        }]
    ));
}

#[test]
fn repeated_setup_keeps_association() {
    let (now, mut upf) = (start(), upf());
    let node = NodeName::from(at(2).ip());
    assert_eq!(
        cause(ask(now, &mut upf, 2, &setup(&node, 7, 1))),
        Cause::REQUEST_ACCEPTED
    );
    let first = upf.associations().iter().next().expect("one").id;
    events(&mut upf);
    ask(now, &mut upf, 2, &setup(&node, 7, 2));
    let again = events(&mut upf);
    assert_eq!(
        again,
        [Event::AssociationUp {
            association: first,
            kept: true
        }]
    );
}

fn beat(recovery: u32, sequence: u32) -> Vec<u8> {
    let body = BodyBuilder::new().recovery(Recovery(recovery));
    request(MessageType::HEARTBEAT_REQUEST, sequence, body.as_slice())
}

/// The response to the heartbeat among these requests, by a node that started at `recovery`.
fn beat_back(asked: &[Transmit], recovery: u32) -> Vec<u8> {
    let frames = asked.iter().map(|one| Frame::decode(&one.bytes));
    let mut headers = frames.map(|frame| frame.expect("a message").header);
    let asked = headers.find(|header| header.message_type == MessageType::HEARTBEAT_REQUEST);
    let sequence = asked.expect("a heartbeat").sequence;
    let body = BodyBuilder::new().recovery(Recovery(recovery));
    let header = Header::node(MessageType::HEARTBEAT_RESPONSE, sequence);
    message(&header, body.as_slice()).expect("short")
}

fn transmits(endpoint: &mut Endpoint) -> Vec<Transmit> {
    std::iter::from_fn(|| endpoint.poll_transmit()).collect()
}

/// A user plane whose peer started at 7, without pending events.
fn upf_of_7(change: impl FnOnce(&mut EndpointConfig)) -> (Instant, Endpoint) {
    let mut config = config(Role::UserPlane, 1);
    change(&mut config);
    let (now, mut upf) = (start(), Endpoint::new(config));
    let node = NodeName::from(at(2).ip());
    ask(now, &mut upf, 2, &setup(&node, 7, 1));
    events(&mut upf);
    (now, upf)
}

fn stamp_of(upf: &Endpoint) -> Recovery {
    let known = upf.associations().iter().next();
    known.expect("it is there").recovery
}

#[test]
fn setup_with_new_recovery_stamp_is_restart() {
    let (now, mut upf) = upf_of_7(|_| {});
    let node = NodeName::from(at(2).ip());
    ask(now, &mut upf, 2, &setup(&node, 8, 2));
    assert!(matches!(
        events(&mut upf)[..],
        [
            Event::PeerRestarted { .. },
            Event::AssociationUp { kept: false, .. }
        ]
    ));
    assert_eq!(upf.stats().restarts, 1);
}

/// Requests of the earlier incarnation may have arrived since the heartbeat: the new incarnation
/// does not know the sessions that they established.
#[test]
fn first_setup_after_heartbeat_restart_drops_sessions() {
    let (now, mut upf) = upf_of_7(|_| {});
    upf.handle_datagram(now, at(2), &beat(8, 3));
    let asked = transmits(&mut upf);
    upf.handle_datagram(now, at(2), &beat_back(&asked, 8));
    assert!(matches!(
        events(&mut upf)[..],
        [Event::PeerRestarted { .. }]
    ));
    let node = NodeName::from(at(2).ip());
    for (sequence, again) in [(4, false), (5, true)] {
        ask(now, &mut upf, 2, &setup(&node, 8, sequence));
        let events = events(&mut upf);
        assert!(
            matches!(events[..], [Event::AssociationUp { kept, .. }] if kept == again),
            "{events:?}"
        );
    }
    assert_eq!(upf.stats().restarts, 1);
}

#[test]
fn heartbeat_restart_is_confirmed_before_accepted() {
    let (now, mut upf) = upf_of_7(|_| {});
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], 40_000));
    upf.handle_datagram(now, elsewhere, &beat(9, 3));
    let asked = transmits(&mut upf);
    assert!(events(&mut upf).is_empty(), "nothing has ended yet");
    let heartbeat = asked.iter().find(|one| one.bytes[1] == 1);
    let heartbeat = heartbeat.expect("the peer is asked");
    assert_eq!(heartbeat.peer, at(2), "where its association is");

    let yes = beat_back(&asked, 9);
    upf.handle_datagram(now, elsewhere, &yes);
    assert!(
        !events(&mut upf)
            .iter()
            .any(|event| matches!(event, Event::PeerRestarted { .. })),
        "nobody else answers for the peer"
    );
    upf.handle_datagram(now, at(2), &yes);
    assert!(matches!(
        events(&mut upf)[..],
        [Event::PeerRestarted { .. }]
    ));
    assert_eq!((stamp_of(&upf), upf.stats().restarts), (Recovery(9), 1));
    upf.handle_datagram(now, at(2), &beat(8, 4));
    assert_eq!(transmits(&mut upf).len(), 1, "only the answer: it is older");
    assert!(events(&mut upf).is_empty());
}

#[test]
fn a_restart_in_the_answer_to_a_heartbeat_is_confirmed_as_well() {
    let (_, mut upf) = upf_of_7(|_| {});
    let due = upf.poll_timeout().expect("a heartbeat");
    upf.handle_timeout(due);
    let asked = transmits(&mut upf);
    upf.handle_datagram(due, at(2), &beat_back(&asked, 10));
    assert!(events(&mut upf).is_empty());
    let asked = transmits(&mut upf);
    // A stamp that changes with each heartbeat is confirmed by a still later one.
    upf.handle_datagram(due, at(2), &beat_back(&asked, 11));
    assert!(matches!(
        events(&mut upf)[..],
        [Event::PeerRestarted { .. }]
    ));
    assert_eq!(stamp_of(&upf), Recovery(11));
}

#[test]
fn denied_restart_claims_change_nothing_and_cost_one_heartbeat_per_t1() {
    let (now, mut upf) = upf_of_7(|_| {});
    let t1 = upf.config().retransmission.t1;
    let mut asked = 0;
    for round in 0..30 {
        let now = now + t1 * round / 10;
        upf.handle_datagram(now, at(2), &beat(100 + round, 10 + round));
        let out = transmits(&mut upf);
        if out.iter().any(|one| one.bytes[1] == 1) {
            asked += 1;
            upf.handle_datagram(now, at(2), &beat_back(&out, 7));
            let told = events(&mut upf);
            let [Event::RestartDenied { claim, .. }] = told[..] else {
                panic!("{told:?}");
            };
            assert_eq!(claim, Recovery(100 + round));
        }
        assert!(events(&mut upf).is_empty());
    }
    assert_eq!((asked, upf.stats().restarts_denied), (3, 3));
    assert_eq!((stamp_of(&upf), upf.stats().restarts), (Recovery(7), 0));
}

#[test]
fn unconfirmed_restart_claim_is_path_failure() {
    let (mut now, mut upf) = upf_of_7(|_| {});
    upf.handle_datagram(now, at(2), &beat(9, 3));
    let mut asked = transmits(&mut upf).len() - 1;
    let mut told = Vec::new();
    while told.is_empty() {
        now = upf.poll_timeout().expect("it is repeated");
        upf.handle_timeout(now);
        asked += transmits(&mut upf).len();
        told = events(&mut upf);
    }
    assert!(matches!(told[..], [Event::PeerSilent { .. }]), "{told:?}");
    assert_eq!((asked, stamp_of(&upf)), (3, Recovery(7)));
    // A new request for the stamp may be sent.
    upf.handle_datagram(now, at(2), &beat(9, 4));
    assert_eq!(transmits(&mut upf).len(), 2);
}

#[test]
fn setup_supersedes_pending_restart_inquiry() {
    let (now, mut upf) = upf_of_7(|_| {});
    upf.handle_datagram(now, at(2), &beat(9, 3));
    let asked = transmits(&mut upf);
    let node = NodeName::from(at(2).ip());
    ask(now, &mut upf, 2, &setup(&node, 9, 4));
    assert!(matches!(
        events(&mut upf)[..],
        [Event::PeerRestarted { .. }, Event::AssociationUp { .. }]
    ));
    upf.handle_datagram(now, at(2), &beat_back(&asked, 9));
    assert!(events(&mut upf).is_empty(), "once");
    assert_eq!(upf.stats().restarts, 1);
}

#[test]
fn changing_stamp_is_ignored_when_only_setup_counts() {
    let (now, mut upf) = upf_of_7(|config| {
        let of_peer = "127.0.0.2".parse().expect("a network");
        let of_all = "127.0.0.0/8".parse().expect("a network");
        config.restarts = vec![
            (of_peer, RestartSign::AssociationSetup),
            (of_all, RestartSign::Heartbeat),
        ];
    });
    for round in 0..10 {
        upf.handle_datagram(now, at(2), &beat(100 + round, 10 + round));
        assert_eq!(transmits(&mut upf).len(), 1, "only the answer");
        let told = events(&mut upf);
        match round {
            0 => assert!(matches!(told[..], [Event::StampIgnored { .. }])),
            _ => assert!(told.is_empty(), "it is said once"),
        }
    }
    assert_eq!(
        (stamp_of(&upf), upf.stats().stamps_ignored),
        (Recovery(7), 10)
    );
    let node = NodeName::from(at(2).ip());
    ask(now, &mut upf, 2, &setup(&node, 7, 30));
    assert!(matches!(
        events(&mut upf)[..],
        [Event::AssociationUp { kept: true, .. }]
    ));
    ask(now, &mut upf, 2, &setup(&node, 120, 31));
    assert!(matches!(
        events(&mut upf)[..],
        [Event::PeerRestarted { .. }, Event::AssociationUp { .. }]
    ));

    // Another peer must send heartbeats.
    let other = NodeName::from(at(3).ip());
    ask(now, &mut upf, 3, &setup(&other, 7, 1));
    events(&mut upf);
    upf.handle_datagram(now, at(3), &beat(9, 2));
    let asked = transmits(&mut upf);
    upf.handle_datagram(now, at(3), &beat_back(&asked, 9));
    assert!(matches!(
        events(&mut upf)[..],
        [Event::PeerRestarted { .. }]
    ));
}

/// Requests about an association end with it: on a release and on a restart, but not on a
/// repetition of the same setup.
#[test]
fn requests_are_withdrawn_with_their_association() {
    let node = NodeName::from(at(2).ip());
    let release = BodyBuilder::new().node(&node);
    let release = request(
        MessageType::ASSOCIATION_RELEASE_REQUEST,
        2,
        release.as_slice(),
    );
    for (ends, datagram) in [
        (true, release),
        (true, setup(&node, 8, 2)),
        (false, setup(&node, 7, 2)),
    ] {
        let (mut now, mut upf) = upf_of_7(|config| config.heartbeat = None);
        let id = upf.associations().iter().next().expect("one").id;
        let kind = MessageType::SESSION_REPORT_REQUEST;
        let report = upf.request_about(now, id, kind, Seid(7), &[]);
        let report = report.expect("room");
        upf.request_release(now, id, None).expect("room");
        let first = sent(&mut upf);
        assert_eq!(first.len(), 2);
        ask(now, &mut upf, 2, &datagram);
        let withdrawn = events(&mut upf).into_iter().find_map(|event| match event {
            Event::RequestWithdrawn { request, bytes } => Some((request, bytes)),
            _ => None,
        });
        let bytes = Arc::from(first[0].as_slice());
        assert_eq!(withdrawn, ends.then_some((report.request, bytes)));
        let mut again = Vec::new();
        while let Some(due) = upf.poll_timeout() {
            now = due;
            upf.handle_timeout(now);
            again.extend(sent(&mut upf));
        }
        let expected = if ends { 0 } else { 4 };
        assert_eq!(again.len(), expected, "each is sent three times in all");
        let failed = Event::RequestFailed {
            request: report.request,
            peer: at(2),
        };
        let unanswered = Event::ReleaseAnswered {
            association: id,
            peer: at(2),
            cause: None,
            invalid: None,
        };
        let expected = if ends {
            vec![]
        } else {
            vec![failed, unanswered]
        };
        assert_eq!(events(&mut upf), expected);
    }
}

#[test]
fn answer_to_withdrawn_request_is_ignored() {
    let (now, mut upf) = upf_of_7(|_| {});
    let id = upf.associations().iter().next().expect("one").id;
    let kind = MessageType::SESSION_REPORT_REQUEST;
    let report = upf.request_about(now, id, kind, Seid(7), &[]);
    let report = report.expect("room");
    assert!(upf.withdraw(report).is_some());
    assert!(sent(&mut upf).is_empty(), "it was not sent yet, and is not");
    let header = Header::session(kind.response().expect("one"), Seid(1), report.sequence);
    let body = BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED);
    let answer = message(&header, body.as_slice()).expect("short");
    upf.handle_datagram(now, at(2), &answer);
    assert!(events(&mut upf).is_empty());
    assert_eq!(upf.discarded(DiscardReason::Unexpected), 0);
    upf.handle_datagram(now, at(3), &answer);
    assert_eq!(
        upf.discarded(DiscardReason::Unexpected),
        1,
        "from anybody else"
    );
}

#[test]
fn late_setup_of_earlier_incarnation_is_ignored() {
    let (now, mut upf) = (start(), upf());
    let node = NodeName::from(at(2).ip());
    ask(now, &mut upf, 2, &setup(&node, 8, 1));
    events(&mut upf);
    let t1 = upf.config().retransmission.t1;
    let late = now + t1 - Duration::from_millis(1);
    assert_eq!(ask(late, &mut upf, 2, &setup(&node, 7, 2)), None);
    assert!(matches!(
        events(&mut upf)[..],
        [Event::Discarded {
            kind: DiscardReason::Late,
            ..
        }]
    ));
    let known = upf.associations().get_by_node(&node).expect("it is there");
    assert_eq!(known.recovery, Recovery(8));

    // A peer that asks again has had its clock set back.
    let answer = ask(late + t1, &mut upf, 2, &setup(&node, 7, 2));
    assert_eq!(cause(answer), Cause::REQUEST_ACCEPTED);
    assert!(matches!(
        events(&mut upf)[..],
        [Event::PeerRestarted { .. }, Event::AssociationUp { .. }]
    ));
}

#[test]
fn silent_peer_is_reported_once_and_keeps_association() {
    let (_, mut smf, _) = associated();
    let mut told = Vec::new();
    let mut now = start();
    for _ in 0..20 {
        now = now.max(smf.poll_timeout().expect("heartbeats go on"));
        smf.handle_timeout(now);
        sent(&mut smf);
        told.extend(events(&mut smf));
    }
    assert!(matches!(told[..], [Event::PeerSilent { .. }]));
    assert!(smf.associations().iter().all(|one| one.silent));
    let body = BodyBuilder::new().recovery(Recovery(100));
    let beat = request(MessageType::HEARTBEAT_REQUEST, 77, body.as_slice());
    smf.handle_datagram(now, at(1), &beat);
    assert!(matches!(events(&mut smf)[..], [Event::PeerHeard { .. }]));
}

#[test]
fn peer_check_sends_one_heartbeat_at_once() {
    let mut config = config(Role::ControlPlane, 2);
    config.heartbeat = None;
    let (now, mut smf, mut upf) = (start(), Endpoint::new(config), upf());
    smf.associate(now, at(1)).expect("room");
    exchange(now, &mut smf, &mut upf);
    events(&mut smf);
    let id = smf.associations().iter().next().expect("it is up").id;
    let is_heartbeat = |bytes: &Vec<u8>| bytes[1] == MessageType::HEARTBEAT_REQUEST.0;
    for _ in 0..3 {
        assert_eq!(smf.poll_timeout(), None, "none are sent by themselves");
        smf.check_peer(now, id);
        assert_eq!(smf.poll_timeout(), Some(now));
        smf.handle_timeout(now);
        smf.check_peer(now, id);
        smf.handle_timeout(now);
        let bytes = sent(&mut smf);
        assert_eq!(bytes.iter().filter(|one| is_heartbeat(one)).count(), 1);
        upf.handle_datagram(now, at(2), &bytes[0]);
        exchange(now, &mut smf, &mut upf);
    }
    assert_eq!(events(&mut smf), []);
}

#[test]
fn answered_heartbeats_raise_no_event() {
    let (mut now, mut smf, mut upf) = associated();
    for _ in 0..50 {
        now += Duration::from_secs(1);
        smf.handle_timeout(now);
        upf.handle_timeout(now);
        exchange(now, &mut smf, &mut upf);
    }
    assert!(events(&mut smf).is_empty());
    assert!(events(&mut upf).is_empty());
    assert_eq!(smf.stats().unanswered, 0);
}

#[test]
fn node_name_belongs_to_first_claimant() {
    let (now, mut upf) = (start(), upf());
    let node = NodeName::from_fqdn("smf.example").expect("a name");
    ask(now, &mut upf, 2, &setup(&node, 7, 1));
    let other = ask(now, &mut upf, 3, &setup(&node, 7, 2));
    assert_eq!(cause(other), Cause::REQUEST_REJECTED);
    let body = BodyBuilder::new().node(&node);
    let release = |sequence| {
        let message_type = MessageType::ASSOCIATION_RELEASE_REQUEST;
        request(message_type, sequence, body.as_slice())
    };
    let other = ask(now, &mut upf, 3, &release(3));
    assert_eq!(cause(other), Cause::NO_ESTABLISHED_ASSOCIATION);
    assert_eq!(upf.associations().len(), 1);
    let owner = ask(now, &mut upf, 2, &release(4));
    assert_eq!(cause(owner), Cause::REQUEST_ACCEPTED);
    assert_eq!(upf.associations().len(), 0);
}

/// Letters of domain names compare without case (RFC 4343).
#[test]
fn node_name_is_case_insensitive() {
    let (now, mut upf) = (start(), upf());
    let name = |text| NodeName::from_fqdn(text).expect("a name");
    let value = |text: &[u8]| NodeName::from_value(text).expect("a Node ID");
    ask(now, &mut upf, 2, &setup(&name("smf-c.lab"), 7, 1));
    events(&mut upf);
    let other = ask(now, &mut upf, 3, &setup(&name("SMF-C.LAB"), 7, 2));
    assert_eq!(cause(other), Cause::REQUEST_REJECTED);
    let again = ask(now, &mut upf, 2, &setup(&name("Smf-C.Lab"), 7, 3));
    assert_eq!(cause(again), Cause::REQUEST_ACCEPTED);
    assert!(matches!(
        events(&mut upf)[..],
        [
            Event::SetupRefused { .. },
            Event::AssociationUp { kept: true, .. }
        ]
    ));
    assert_eq!(upf.associations().len(), 1);
    assert_eq!(value(b"\x02\x05SMF-C\x03LAB"), name("smf-c.lab"));
    // The name as text without labels, which real peers send as well; and a value that is no name,
    // in which letter case matters.
    assert_eq!(value(b"\x02SMF-C.LAB"), value(b"\x02smf-c.lab"));
    assert_ne!(value(b"\x00ABCD"), value(b"\x00abcd"));
    // The twin: another name.
    let other = ask(now, &mut upf, 3, &setup(&name("smf-d.lab"), 7, 4));
    assert_eq!(cause(other), Cause::REQUEST_ACCEPTED);
}

#[test]
fn associations_are_bounded() {
    let now = start();
    let mut upf = Endpoint::new(EndpointConfig {
        associations: 3,
        ..config(Role::UserPlane, 1)
    });
    for host in 2..=4 {
        let node = NodeName::from(at(host).ip());
        let answer = ask(now, &mut upf, host, &setup(&node, 1, 1));
        assert_eq!(cause(answer), Cause::REQUEST_ACCEPTED);
    }
    let node = NodeName::from(at(5).ip());
    let answer = ask(now, &mut upf, 5, &setup(&node, 1, 1));
    assert_eq!(cause(answer), Cause::NO_RESOURCES_AVAILABLE);
}

#[test]
fn a_release_ends_the_association_on_both_sides() {
    let (now, mut smf, mut upf) = associated();
    let id = smf.associations().iter().next().expect("one").id;
    smf.release(now, id).expect("room");
    exchange(now, &mut smf, &mut upf);
    assert!(matches!(
        events(&mut smf)[..],
        [
            Event::ReleaseAnswered {
                cause: Some(Cause::REQUEST_ACCEPTED),
                ..
            },
            Event::AssociationReleased { .. }
        ]
    ));
    assert!(matches!(
        events(&mut upf)[..],
        [Event::AssociationReleased { .. }]
    ));
    assert!(smf.associations().is_empty() && upf.associations().is_empty());
}

#[test]
fn an_update_reaches_the_owner() {
    let (now, _, mut upf) = associated();
    let body = BodyBuilder::new().node(&at(2).ip().into());
    let update = request(MessageType::ASSOCIATION_UPDATE_REQUEST, 9, body.as_slice());
    let answer = ask(now, &mut upf, 2, &update);
    assert_eq!(cause(answer), Cause::REQUEST_ACCEPTED);
    let [Event::AssociationUpdated { bytes, .. }] = &events(&mut upf)[..] else {
        panic!("an update");
    };
    assert_eq!(bytes[..], update[..]);
}

#[test]
fn requests_in_the_wrong_direction_are_not_supported() {
    let (now, mut smf, mut upf) = associated();
    for message_type in [
        MessageType::SESSION_ESTABLISHMENT_REQUEST,
        MessageType::SESSION_MODIFICATION_REQUEST,
        MessageType::SESSION_DELETION_REQUEST,
    ] {
        let answer = ask(now, &mut smf, 1, &request(message_type, 50, &[]));
        assert_eq!(cause(answer), Cause::SERVICE_NOT_SUPPORTED);
    }
    let report = request(MessageType::SESSION_REPORT_REQUEST, 51, &[]);
    let answer = ask(now, &mut upf, 2, &report);
    assert_eq!(cause(answer), Cause::SERVICE_NOT_SUPPORTED);
}

#[test]
fn disallowed_peer_is_not_answered_and_reported_once() {
    let now = start();
    let mut upf = Endpoint::new(EndpointConfig {
        allowed: vec!["127.0.0.2".parse().expect("an address")],
        ..config(Role::UserPlane, 1)
    });
    let node = NodeName::from(at(3).ip());
    for sequence in 0..100 {
        assert_eq!(ask(now, &mut upf, 3, &setup(&node, 1, sequence)), None);
    }
    assert_eq!(upf.discarded(DiscardReason::UnknownPeer), 100);
    assert_eq!(events(&mut upf).len(), 1);
}

#[test]
fn third_panic_answers_system_failure() {
    let (now, _, mut upf) = associated();
    let modification = request(MessageType::SESSION_MODIFICATION_REQUEST, 9, &[]);
    for round in 1..=3 {
        let answer = ask(now, &mut upf, 2, &modification);
        assert_eq!(answer, None);
        let [Event::SessionRequest { transaction, .. }] = events(&mut upf)[..] else {
            panic!("round {round} is worked on afresh");
        };
        upf.abandon(now, transaction);
    }
    let answer = sent(&mut upf).pop();
    assert_eq!(cause(answer.clone()), Cause::SYSTEM_FAILURE);
    assert_eq!(ask(now, &mut upf, 2, &modification), answer);
    assert!(events(&mut upf).is_empty());
}

/// Datagrams that are no messages, or cannot be answered, are discarded; the sender still gets
/// heartbeats.
#[test]
fn bad_datagrams_are_discarded() {
    let (now, _, mut upf) = associated();
    for bad in [
        &[][..],
        &[
            0x20, 1, 0, 12, 0, 0, 2, 0, 0, 0x60, 0, 0, 0xe8, 0x1f, 0xe7, 0xb4,
        ],
        &[0x20, 1, 0, 4, 0, 0, 1, 0],
        &[0x20, 1, 0, 4],
        &[0x20, 1, 0, 0, 0, 0, 1, 0],
        &[0x20, 1, 0xff, 0xff, 0, 0, 1, 0],
        &[0x21, 50, 0, 4, 0, 0, 1, 0],
        &[0x20, 200, 0, 4, 0, 0, 1, 0],
        &[0x20, 1, 0, 9, 0, 0, 1, 0, 0, 0x60, 0xff, 0xff, 1],
        &[0x20, 1, 0, 7, 0, 0, 1, 0, 0, 0x60, 0],
        &[0x20, 1, 0, 9, 0, 0, 1, 0, 0x80, 1, 0, 1, 9],
        &[
            0x21, 57, 0, 17, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 1, 0, 0, 0x13, 0, 1, 1,
        ],
    ] {
        assert_eq!(ask(now, &mut upf, 2, bad), None, "{bad:02x?}");
    }
    let two = [
        0x24, 1, 0, 12, 0, 0, 1, 0, 0, 0x60, 0, 4, 1, 2, 3, 4, 0x20, 1, 0, 12, 0, 0, 2, 0, 0, 0x60,
        0, 4, 1, 2, 3, 4,
    ];
    upf.handle_datagram(now, at(2), &two);
    let mut answers = sent(&mut upf);
    // Besides, the peer is asked for its stamp, because this one is later than the known one.
    answers.retain(|bytes| bytes[1] == 2);
    assert_eq!(answers.len(), 2);
}

#[test]
fn unsupported_version_is_answered_with_version_response() {
    let (now, _, mut upf) = associated();
    let bytes = [0xe0, 1, 0, 12, 0, 0, 1, 0, 0, 0x60, 0, 4, 1, 2, 3, 4];
    let answer = ask(now, &mut upf, 2, &bytes).expect("an answer");
    assert_eq!(answer, [0x20, 11, 0, 4, 0, 0, 1, 0]);
    assert_eq!(
        ask(now, &mut upf, 2, &[0xe0, 11, 0, 4, 0, 0, 1, 0]),
        None,
        "no answer to an answer"
    );
}

#[test]
fn setup_without_mandatory_elements_is_refused() {
    let (now, mut upf) = (start(), upf());
    let message_type = MessageType::ASSOCIATION_SETUP_REQUEST;
    let nameless = BodyBuilder::new().recovery(Recovery(1));
    let answer = ask(
        now,
        &mut upf,
        2,
        &request(message_type, 1, nameless.as_slice()),
    );
    assert_eq!(cause(answer), Cause::MANDATORY_IE_MISSING);
    let timeless = BodyBuilder::new().node(&at(2).ip().into());
    let answer = ask(
        now,
        &mut upf,
        2,
        &request(message_type, 2, timeless.as_slice()),
    );
    assert_eq!(cause(answer), Cause::MANDATORY_IE_MISSING);
    assert!(upf.associations().is_empty());
}

/// A peer that is started at another address, as a container is, has its Node ID back as soon as
/// the previous address does not answer a heartbeat.
#[test]
fn silent_peer_loses_its_node_id_to_another_address() {
    let (mut now, mut upf) = (start(), upf());
    let node = NodeName::from_fqdn("smf.lab").expect("a name");
    let yes = Cause::REQUEST_ACCEPTED;
    assert_eq!(cause(ask(now, &mut upf, 2, &setup(&node, 1, 1))), yes);
    let id = upf.associations().iter().next().expect("associated").id;
    events(&mut upf);

    let no = Cause::REQUEST_REJECTED;
    assert_eq!(cause(ask(now, &mut upf, 3, &setup(&node, 2, 1))), no);
    let mut heartbeats = 0;
    while upf.associations().iter().any(|one| !one.silent) {
        now = upf.poll_timeout().expect("a heartbeat");
        upf.handle_timeout(now);
        heartbeats += sent(&mut upf).len();
    }
    assert_eq!(heartbeats, 3, "N1 times, at once");
    assert_eq!(cause(ask(now, &mut upf, 3, &setup(&node, 2, 2))), yes);
    let moved = upf.associations().iter().next().expect("associated");
    assert_eq!((moved.id, moved.address), (id, at(3)));
    let restarted = |event: &Event| matches!(event, Event::PeerRestarted { .. });
    assert!(events(&mut upf).iter().any(restarted), "its stamp moved");
}

#[test]
fn answering_peer_keeps_its_node_id() {
    let (mut now, mut upf) = (start(), upf());
    let node = NodeName::from_fqdn("smf.lab").expect("a name");
    ask(now, &mut upf, 2, &setup(&node, 1, 1));
    let heartbeat = BodyBuilder::new().recovery(Recovery(1));
    let mut asked = 0;
    for sequence in 1..=100 {
        // A flood of claims costs the peer one heartbeat in each T1.
        now += Duration::from_millis(100);
        let claim = setup(&node, 2, sequence);
        assert_eq!(
            cause(ask(now, &mut upf, 3, &claim)),
            Cause::REQUEST_REJECTED
        );
        upf.handle_timeout(now);
        for bytes in sent(&mut upf) {
            asked += 1;
            let header = Frame::decode(&bytes).expect("a message").header;
            let answer = strowger_pfcp::endpoint::answer_header(&header, None);
            let answer = message(&answer, heartbeat.as_slice()).expect("short");
            upf.handle_datagram(now, at(2), &answer);
        }
    }
    assert!((1..=5).contains(&asked), "{asked}");
}
