//! The requests that peers may send, and their statements about themselves, on virtual time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::endpoint::{
    BodyBuilder, Endpoint, EndpointConfig, Event, PeerLimits, Role, Transmit, answer_header,
    message,
};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::transaction::TransactionId;
use strowger_pfcp::{Frame, Header, IeType, MessageType, Release, Seid, Sequence};

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

fn node(role: Role, host: u8, change: impl FnOnce(&mut EndpointConfig)) -> Endpoint {
    let mut config = EndpointConfig::new(role, at(host).ip().into(), Recovery(100));
    change(&mut config);
    Endpoint::new(config)
}

/// A user plane node whose peers may send two requests, then ten per second.
fn limited() -> Endpoint {
    node(Role::UserPlane, 1, |config| {
        config.peer = PeerLimits {
            associations: 2,
            transactions: 3,
            rate: 10,
            burst: 2,
        };
    })
}

fn request(message_type: MessageType, sequence: u32, body: &BodyBuilder) -> Vec<u8> {
    let mut header = Header::node(message_type, Sequence::new(sequence));
    header.seid = message_type.is_session().then_some(Seid(1));
    message(&header, body.as_slice()).expect("short")
}

fn setup(host: u8, recovery: u32, sequence: u32, more: &BodyBuilder) -> Vec<u8> {
    setup_as(&at(host).ip().into(), recovery, sequence, more)
}

fn setup_as(node: &NodeName, recovery: u32, sequence: u32, more: &BodyBuilder) -> Vec<u8> {
    let body = BodyBuilder::new().node(node);
    let body = body.recovery(Recovery(recovery)).bytes(more.as_slice());
    request(MessageType::ASSOCIATION_SETUP_REQUEST, sequence, &body)
}

fn heartbeat(sequence: u32) -> Vec<u8> {
    let body = BodyBuilder::new().recovery(Recovery(1));
    request(MessageType::HEARTBEAT_REQUEST, sequence, &body)
}

fn deletion(sequence: u32) -> Vec<u8> {
    let kind = MessageType::SESSION_DELETION_REQUEST;
    request(kind, sequence, &BodyBuilder::new())
}

fn events(endpoint: &mut Endpoint) -> Vec<Event> {
    std::iter::from_fn(|| endpoint.poll_event()).collect()
}

fn sent(endpoint: &mut Endpoint) -> Vec<Transmit> {
    std::iter::from_fn(|| endpoint.poll_transmit()).collect()
}

/// Sends one datagram and returns the only answer, if there is one.
fn ask(now: Instant, endpoint: &mut Endpoint, host: u8, bytes: &[u8]) -> Option<Vec<u8>> {
    endpoint.handle_datagram(now, at(host), bytes);
    let mut answers = sent(endpoint);
    assert!(answers.len() <= 1);
    answers.pop().map(|transmit| transmit.bytes.to_vec())
}

fn element(bytes: &[u8], ie: IeType) -> Option<Vec<u8>> {
    let frame = Frame::decode(bytes).expect("a message");
    let found = frame.tlvs().flatten().find(|tlv| tlv.ie == ie);
    found.map(|tlv| tlv.value.to_vec())
}

fn cause(answer: Option<Vec<u8>>) -> Cause {
    Cause(element(&answer.expect("an answer"), IeType::CAUSE).expect("a cause")[0])
}

const OVRL: &[u8] = &[2];

fn features(value: &[u8]) -> BodyBuilder {
    BodyBuilder::new().with(IeType::CP_FUNCTION_FEATURES, value)
}

/// The transaction of the only event, if it exceeds a limit, and the elements of its answer.
fn over(endpoint: &mut Endpoint) -> Option<(TransactionId, BodyBuilder)> {
    match &events(endpoint)[..] {
        [
            Event::OverLimit {
                transaction,
                overload,
                ..
            },
        ] => Some((*transaction, overload.clone())),
        _ => None,
    }
}

/// Answers the request of the only event as the owner of the sessions does.
fn work(now: Instant, endpoint: &mut Endpoint) -> bool {
    let [
        Event::SessionRequest {
            transaction, bytes, ..
        },
    ] = &events(endpoint)[..]
    else {
        return false;
    };
    let frame = Frame::decode(bytes).expect("a message");
    let body = BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED);
    let answer = message(&answer_header(&frame.header, None), body.as_slice());
    endpoint.respond(now, *transaction, answer.expect("short").into());
    true
}

#[test]
fn peer_over_its_rate_is_refused_and_still_gets_heartbeats() {
    let (now, mut upf) = (start(), limited());
    let accepted = ask(now, &mut upf, 2, &setup(2, 1, 1, &features(OVRL)));
    assert_eq!(cause(accepted), Cause::REQUEST_ACCEPTED);
    events(&mut upf);
    upf.handle_datagram(now, at(2), &deletion(2));
    assert!(work(now, &mut upf));
    sent(&mut upf);
    upf.handle_datagram(now, at(2), &deletion(3));
    let (transaction, overload) = over(&mut upf).expect("the third request is one too many");
    let metric = [0, 53, 0, 1, 34];
    assert!(
        overload.as_slice().windows(5).any(|part| part == metric),
        "{overload:?}"
    );
    upf.refuse(transaction, [0x21, 55].as_slice().into());
    assert_eq!(sent(&mut upf).len(), 1);
    for sequence in 10..20 {
        assert!(ask(now, &mut upf, 2, &heartbeat(sequence)).is_some());
    }
    assert_eq!(upf.stats().limited, 1);
}

#[test]
fn flooding_peer_does_not_affect_others() {
    let (now, mut upf) = (start(), limited());
    for sequence in 0..100 {
        upf.handle_datagram(now, at(2), &deletion(sequence));
    }
    events(&mut upf);
    sent(&mut upf);
    upf.handle_datagram(now, at(3), &deletion(1));
    assert!(work(now, &mut upf));
}

#[test]
fn rate_credit_refills_over_time() {
    let (mut now, mut upf) = (start(), limited());
    for sequence in 0..2 {
        upf.handle_datagram(now, at(2), &deletion(sequence));
        assert!(work(now, &mut upf));
    }
    now += Duration::from_millis(99);
    upf.handle_datagram(now, at(2), &deletion(2));
    assert!(over(&mut upf).is_some());
    now += Duration::from_millis(1);
    upf.handle_datagram(now, at(2), &deletion(3));
    assert!(work(now, &mut upf));
    // A long silence saves no more than the burst.
    now += Duration::from_secs(3600);
    for sequence in 4..7 {
        upf.handle_datagram(now, at(2), &deletion(sequence));
        assert_eq!(work(now, &mut upf), sequence < 6, "{sequence}");
    }
}

#[test]
fn retransmission_is_free_and_gets_same_bytes() {
    let (now, mut upf) = (start(), limited());
    upf.handle_datagram(now, at(2), &deletion(1));
    assert!(work(now, &mut upf));
    let first = sent(&mut upf);
    for _ in 0..10 {
        upf.handle_datagram(now, at(2), &deletion(1));
        assert_eq!(sent(&mut upf), first);
    }
    upf.handle_datagram(now, at(2), &deletion(2));
    assert!(work(now, &mut upf));
}

#[test]
fn rate_limit_refusal_is_not_cached() {
    let (mut now, mut upf) = (start(), limited());
    for sequence in 0..2 {
        upf.handle_datagram(now, at(2), &deletion(sequence));
        assert!(work(now, &mut upf));
    }
    upf.handle_datagram(now, at(2), &deletion(9));
    let (transaction, _) = over(&mut upf).expect("one too many");
    upf.refuse(transaction, [0x21, 55].as_slice().into());
    now += Duration::from_secs(1);
    upf.handle_datagram(now, at(2), &deletion(9));
    assert!(work(now, &mut upf), "the repetition is worked on");
}

#[test]
fn pending_requests_are_bounded_per_peer() {
    let (mut now, mut upf) = (start(), limited());
    let mut working = Vec::new();
    for sequence in 0..4 {
        now += Duration::from_secs(1);
        upf.handle_datagram(now, at(2), &deletion(sequence));
        for event in events(&mut upf) {
            if let Event::SessionRequest { transaction, .. } = event {
                working.push(transaction);
            }
        }
    }
    assert_eq!(working.len(), 3, "the fourth has no room");
    upf.abandon(now, working[0]);
    now += Duration::from_secs(1);
    upf.handle_datagram(now, at(2), &deletion(7));
    assert!(work(now, &mut upf), "what was abandoned makes room");
}

#[test]
fn associations_of_one_host_are_bounded() {
    let (mut now, mut upf) = (start(), limited());
    let mut causes = Vec::new();
    // A host may have many domain names, and one address.
    let named = |name: u32| NodeName::from_fqdn(&format!("smf-{name}")).expect("a name");
    for name in 10..14 {
        now += Duration::from_secs(1);
        let bytes = setup_as(&named(name), 1, name, &BodyBuilder::new());
        causes.push(cause(ask(now, &mut upf, 2, &bytes)));
    }
    let (yes, no) = (Cause::REQUEST_ACCEPTED, Cause::NO_RESOURCES_AVAILABLE);
    assert_eq!(causes, [yes, yes, no, no]);
    let again = setup_as(&named(10), 1, 99, &BodyBuilder::new());
    assert_eq!(
        cause(ask(now, &mut upf, 2, &again)),
        yes,
        "it is there already"
    );
}

#[test]
fn node_request_over_a_rate_is_refused_by_the_endpoint() {
    let (now, mut upf) = (start(), limited());
    let mut ask = |sequence| {
        cause(ask(
            now,
            &mut upf,
            2,
            &setup(2, 1, sequence, &features(OVRL)),
        ))
    };
    assert_eq!(ask(1), Cause::REQUEST_ACCEPTED);
    assert_eq!(ask(2), Cause::REQUEST_ACCEPTED);
    assert_eq!(ask(3), Cause::CONGESTION);
}

#[test]
fn peer_that_restarts_and_retains_keeps_its_sessions() {
    let retains =
        |value: &[u8]| BodyBuilder::new().with(IeType::PFCP_SESSION_RETENTION_INFORMATION, value);
    let of_others = [0, 185, 0, 5, 2, 10, 0, 0, 1];
    for (value, kept) in [(&[][..], true), (&of_others, false)] {
        let (now, mut upf) = (start(), node(Role::UserPlane, 1, |_| {}));
        ask(now, &mut upf, 2, &setup(2, 1, 1, &BodyBuilder::new()));
        events(&mut upf);
        let answer = ask(now, &mut upf, 2, &setup(2, 9, 2, &retains(value)));
        let flags = element(&answer.expect("an answer"), IeType::PFCPASRSP_FLAGS);
        assert_eq!(flags, kept.then(|| vec![1]));
        let restarted = events(&mut upf)
            .iter()
            .any(|event| matches!(event, Event::PeerRestarted { .. }));
        assert_eq!(restarted, !kept);
    }
}

/// Carries datagrams in both directions until none is left.
fn exchange(now: Instant, smf: &mut Endpoint, upf: &mut Endpoint) {
    loop {
        let (there, back) = (sent(smf), sent(upf));
        if there.is_empty() && back.is_empty() {
            return;
        }
        for transmit in there {
            upf.handle_datagram(now, at(2), &transmit.bytes);
        }
        for transmit in back {
            smf.handle_datagram(now, at(1), &transmit.bytes);
        }
    }
}

#[test]
fn control_plane_releases_on_user_plane_request() {
    let now = start();
    let mut upf = node(Role::UserPlane, 1, |_| {});
    let mut smf = node(Role::ControlPlane, 2, |_| {});
    smf.associate(now, at(1)).expect("room");
    exchange(now, &mut smf, &mut upf);
    events(&mut smf);
    events(&mut upf);
    let of_upf = upf.associations().iter().next().expect("associated").id;
    let within = Duration::from_secs(300);
    upf.request_release(now, of_upf, Some(within))
        .expect("room");
    exchange(now, &mut smf, &mut upf);
    assert_eq!(upf.associations().len(), 1, "nothing is released yet");
    let wanted = events(&mut smf).into_iter().find_map(|event| match event {
        Event::ReleaseWanted {
            association,
            within,
        } => Some((association, within)),
        _ => None,
    });
    let (association, told) = wanted.expect("the wish has come");
    assert_eq!(told, Some(within));
    smf.release(now, association).expect("room");
    exchange(now, &mut smf, &mut upf);
    assert!(upf.associations().is_empty() && smf.associations().is_empty());
}

#[test]
fn graceful_release_period_is_never_rounded_down() {
    let now = start();
    for (given, told) in [(1, 2), (62, 62), (63, 120), (1860, 1860), (1861, 2400)] {
        let mut upf = node(Role::UserPlane, 1, |_| {});
        let mut smf = node(Role::ControlPlane, 2, |_| {});
        smf.associate(now, at(1)).expect("room");
        exchange(now, &mut smf, &mut upf);
        events(&mut smf);
        let association = upf.associations().iter().next().expect("associated").id;
        let within = Duration::from_secs(given);
        upf.request_release(now, association, Some(within))
            .expect("room");
        exchange(now, &mut smf, &mut upf);
        let told = Duration::from_secs(told);
        let heard = events(&mut smf).into_iter().any(
            |event| matches!(event, Event::ReleaseWanted { within, .. } if within == Some(told)),
        );
        assert!(heard, "{given} s");
    }
}

#[test]
fn answer_is_sent_from_requested_address() {
    let (now, mut upf) = (start(), node(Role::UserPlane, 1, |_| {}));
    let setup = setup(2, 1, 1, &BodyBuilder::new());
    upf.handle_datagram_at(now, at(2), Some(3), &setup);
    assert_eq!(sent(&mut upf)[0].local, Some(3));
    upf.handle_datagram_at(now, at(2), Some(5), &setup);
    assert_eq!(
        sent(&mut upf)[0].local,
        Some(5),
        "a repetition came elsewhere"
    );
    events(&mut upf);
    upf.handle_datagram_at(now, at(2), Some(7), &deletion(2));
    assert!(work(now, &mut upf));
    assert_eq!(sent(&mut upf)[0].local, Some(7));
    let later = upf.poll_timeout().expect("a heartbeat is due");
    upf.handle_timeout(later);
    assert_eq!(
        sent(&mut upf)[0].local,
        Some(3),
        "as the association was set up"
    );
}

#[test]
fn node_requests_reach_owner_of_matching_role() {
    let now = start();
    let owned = [
        (MessageType::PFD_MANAGEMENT_REQUEST, Role::UserPlane),
        (MessageType::SESSION_SET_DELETION_REQUEST, Role::UserPlane),
        (
            MessageType::SESSION_SET_MODIFICATION_REQUEST,
            Role::UserPlane,
        ),
        (MessageType::NODE_REPORT_REQUEST, Role::ControlPlane),
    ];
    let body = BodyBuilder::new().node(&at(2).ip().into());
    for (message_type, owner) in owned {
        for role in [Role::UserPlane, Role::ControlPlane] {
            let mut node = node(role, 1, |_| {});
            let alone = ask(now, &mut node, 2, &request(message_type, 1, &body));
            if role == owner {
                assert_eq!(cause(alone), Cause::NO_ESTABLISHED_ASSOCIATION);
            }
            ask(now, &mut node, 2, &setup(2, 1, 2, &BodyBuilder::new()));
            events(&mut node);
            let answer = ask(now, &mut node, 2, &request(message_type, 3, &body));
            match role == owner {
                true => assert!(matches!(events(&mut node)[..], [Event::NodeRequest { .. }])),
                false => assert_eq!(cause(answer), Cause::SERVICE_NOT_SUPPORTED),
            }
        }
    }
}

/// FTUP, and MOQ of release 19.
const OLD_AND_NEW: [u8; 11] = [0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2];

/// A user plane node that speaks a release.
fn speaking(release: Release) -> Endpoint {
    node(Role::UserPlane, 1, |config| {
        config.release = release;
        config.features = OLD_AND_NEW.to_vec();
    })
}

#[test]
fn node_sends_nothing_newer_than_its_release() {
    let now = start();
    for (release, said) in [
        (Release::R17, &[0x10, 0][..]),
        (Release::R19, &OLD_AND_NEW[..]),
    ] {
        let mut upf = speaking(release);
        let answer = ask(now, &mut upf, 2, &setup(2, 1, 1, &BodyBuilder::new()));
        let answered = element(&answer.expect("an answer"), IeType::UP_FUNCTION_FEATURES);
        assert_eq!(answered.as_deref(), Some(said), "{release}");
        upf.associate(now, at(3)).expect("room");
        let asked = sent(&mut upf).pop().expect("a request");
        let asked = element(&asked.bytes, IeType::UP_FUNCTION_FEATURES);
        assert_eq!(asked.as_deref(), Some(said), "{release}");
    }
}

#[test]
fn node_ignores_content_newer_than_its_release() {
    let now = start();
    let kind = MessageType::SESSION_MODIFICATION_REQUEST;
    let old = BodyBuilder::new().with(IeType::USER_PLANE_INACTIVITY_TIMER, &[0, 0, 0, 9]);
    let new = old.clone().with(IeType::URI, b"u");
    for (release, sent, heard) in [
        (Release::R17, &new, &old),
        (Release::R17, &old, &old),
        (Release::R19, &new, &new),
    ] {
        let mut upf = speaking(release);
        ask(now, &mut upf, 2, &setup(2, 1, 1, &BodyBuilder::new()));
        events(&mut upf);
        upf.handle_datagram(now, at(2), &request(kind, 2, sent));
        let [Event::SessionRequest { bytes, .. }] = &events(&mut upf)[..] else {
            panic!("no request of a session");
        };
        assert_eq!(bytes[..], request(kind, 2, heard), "{release}");
    }
}

/// The requests that a peer sends to a node of a role, apart from setup and heartbeat.
fn requests_to(role: Role) -> &'static [MessageType] {
    match role {
        Role::UserPlane => &[
            MessageType::SESSION_ESTABLISHMENT_REQUEST,
            MessageType::SESSION_MODIFICATION_REQUEST,
            MessageType::SESSION_DELETION_REQUEST,
            MessageType::SESSION_SET_DELETION_REQUEST,
            MessageType::SESSION_SET_MODIFICATION_REQUEST,
            MessageType::PFD_MANAGEMENT_REQUEST,
            MessageType::ASSOCIATION_UPDATE_REQUEST,
            MessageType::ASSOCIATION_RELEASE_REQUEST,
        ],
        Role::ControlPlane => &[
            MessageType::SESSION_REPORT_REQUEST,
            MessageType::NODE_REPORT_REQUEST,
            MessageType::ASSOCIATION_UPDATE_REQUEST,
            MessageType::ASSOCIATION_RELEASE_REQUEST,
        ],
    }
}

/// Answers the requests that are left to the owner, and returns all datagrams that are sent.
fn serve(now: Instant, endpoint: &mut Endpoint) -> Vec<Transmit> {
    for event in events(endpoint) {
        if let Event::SessionRequest {
            transaction, bytes, ..
        }
        | Event::NodeRequest {
            transaction, bytes, ..
        } = event
        {
            let header = Frame::decode(&bytes).expect("a message").header;
            let body = BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED);
            let answer = message(&answer_header(&header, None), body.as_slice());
            endpoint.respond(now, transaction, answer.expect("short").into());
        }
    }
    sent(endpoint)
}

/// The ways in which a node learns that a peer has restarted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RestartWay {
    Setup,
    SetupThatRetainsSessions,
    ConfirmedHeartbeat,
    AnswerToOurSetup,
}

impl RestartWay {
    const ALL: [Self; 4] = [
        Self::Setup,
        Self::SetupThatRetainsSessions,
        Self::ConfirmedHeartbeat,
        Self::AnswerToOurSetup,
    ];

    /// Lets the peer at host 2 restart, with the stamp 9.
    fn take(self, now: Instant, endpoint: &mut Endpoint) {
        let none = BodyBuilder::new();
        match self {
            Self::Setup => _ = ask(now, endpoint, 2, &setup(2, 9, 1, &none)),
            Self::SetupThatRetainsSessions => {
                let retains = none.with(IeType::PFCP_SESSION_RETENTION_INFORMATION, &[]);
                ask(now, endpoint, 2, &setup(2, 9, 1, &retains));
            }
            Self::ConfirmedHeartbeat => {
                let body = BodyBuilder::new().recovery(Recovery(9));
                let claim = request(MessageType::HEARTBEAT_REQUEST, 1, &body);
                endpoint.handle_datagram(now, at(2), &claim);
                answer_each(now, endpoint, &body);
            }
            Self::AnswerToOurSetup => {
                endpoint.associate(now, at(2)).expect("room");
                let body = BodyBuilder::new()
                    .node(&at(2).ip().into())
                    .cause(Cause::REQUEST_ACCEPTED)
                    .recovery(Recovery(9));
                answer_each(now, endpoint, &body);
            }
        }
    }
}

/// Answers the requests of an endpoint as its peer.
fn answer_each(now: Instant, endpoint: &mut Endpoint, body: &BodyBuilder) {
    for transmit in sent(endpoint) {
        let header = Frame::decode(&transmit.bytes).expect("a message").header;
        if header.message_type.is_request() {
            let answer = message(&answer_header(&header, None), body.as_slice());
            endpoint.handle_datagram(now, transmit.peer, &answer.expect("short"));
        }
    }
}

/// The restarted peer counts from the same sequence number, and its requests have the same bytes.
#[test]
fn restarted_peer_gets_no_answer_of_its_previous_incarnation() {
    let now = start();
    for role in [Role::UserPlane, Role::ControlPlane] {
        for (&kind, way) in requests_to(role)
            .iter()
            .flat_map(|kind| RestartWay::ALL.map(|way| (kind, way)))
        {
            let releases = kind == MessageType::ASSOCIATION_RELEASE_REQUEST;
            if releases && way == RestartWay::ConfirmedHeartbeat {
                // There is no association whose stamp could move.
                continue;
            }
            let mut node = node(role, 1, |_| {});
            ask(now, &mut node, 2, &setup(2, 1, 1, &BodyBuilder::new()));
            let body = BodyBuilder::new().node(&at(2).ip().into());
            let bytes = request(kind, 5, &body);
            node.handle_datagram(now, at(2), &bytes);
            let first = serve(now, &mut node);
            assert_eq!(first.len(), 1, "{kind} {way:?}");
            // The same setup again is the same incarnation.
            ask(now, &mut node, 2, &setup(2, 1, 6, &BodyBuilder::new()));
            node.handle_datagram(now, at(2), &bytes);
            assert_eq!(serve(now, &mut node), first, "{kind} {way:?}: repeated");
            assert_eq!(node.stats().repeated, 1);

            way.take(now, &mut node);
            serve(now, &mut node);
            node.handle_datagram(now, at(2), &bytes);
            assert_eq!(serve(now, &mut node).len(), 1, "{kind} {way:?}");
            assert_eq!(node.stats().repeated, 1, "{kind} {way:?} is a new request");
            assert_eq!(node.associations().is_empty(), releases);
            node.handle_datagram(now, at(2), &bytes);
            assert_eq!(serve(now, &mut node).len(), 1, "{kind} {way:?}");
            assert_eq!(node.stats().repeated, 2, "{kind} {way:?} is repeated");
        }
    }
}

#[test]
fn request_in_progress_ends_with_the_incarnation_that_sent_it() {
    for way in RestartWay::ALL {
        let (now, mut upf) = (start(), node(Role::UserPlane, 1, |_| {}));
        ask(now, &mut upf, 2, &setup(2, 1, 1, &BodyBuilder::new()));
        events(&mut upf);
        upf.handle_datagram(now, at(2), &deletion(5));
        let [Event::SessionRequest { transaction, .. }] = events(&mut upf)[..] else {
            panic!("no request of a session");
        };
        way.take(now, &mut upf);
        serve(now, &mut upf);
        assert_eq!(upf.stats().working, 0, "{way:?}");
        upf.respond(now, transaction, [0x21, 55].as_slice().into());
        assert_eq!(sent(&mut upf), [], "{way:?}");
        upf.handle_datagram(now, at(2), &deletion(5));
        assert!(work(now, &mut upf), "{way:?}");
    }
}

/// Another peer of the same host, with its own port, has not restarted.
#[test]
fn restart_keeps_answers_to_other_peers_of_the_host() {
    let (now, mut upf) = (start(), node(Role::UserPlane, 1, |_| {}));
    let other = SocketAddr::new(at(2).ip(), 9000);
    let name = NodeName::from_fqdn("other.lab").expect("a name");
    ask(now, &mut upf, 2, &setup(2, 1, 1, &BodyBuilder::new()));
    upf.handle_datagram(now, other, &setup_as(&name, 1, 1, &BodyBuilder::new()));
    events(&mut upf);
    upf.handle_datagram(now, other, &deletion(5));
    let first = serve(now, &mut upf);
    RestartWay::Setup.take(now, &mut upf);
    upf.handle_datagram(now, other, &deletion(5));
    assert_eq!(serve(now, &mut upf), first[1..]);
    assert_eq!(upf.stats().repeated, 1);
}

/// A report is acknowledged by an answer with a Cause about its own session alone.
#[test]
fn answer_about_another_session_acknowledges_nothing() {
    let (own, none, other) = (Seid(5), Seid(0), Seid(6));
    let yes = BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED);
    let no = BodyBuilder::new().cause(Cause::SESSION_CONTEXT_NOT_FOUND);
    let without = BodyBuilder::new();
    let empty = BodyBuilder::new().with(IeType::CAUSE, &[]);
    let reserved = BodyBuilder::new().cause(Cause(0));
    for (seid, body, counts) in [
        (own, &yes, true),
        (own, &no, true),
        (none, &no, true),
        (none, &yes, false),
        (other, &yes, false),
        (other, &no, false),
        (own, &without, false),
        (own, &empty, false),
        (own, &reserved, false),
    ] {
        let (now, mut upf) = (start(), node(Role::UserPlane, 1, |_| {}));
        ask(now, &mut upf, 2, &setup(2, 1, 1, &BodyBuilder::new()));
        events(&mut upf);
        let association = upf.associations().iter().next().expect("associated").id;
        let kind = MessageType::SESSION_REPORT_REQUEST;
        let report = upf.request_about(now, association, kind, Seid(7), &[]);
        upf.expect_seid(report.expect("room"), own);
        let first = sent(&mut upf);
        let header = Frame::decode(&first[0].bytes).expect("a message").header;
        let answer = message(&answer_header(&header, Some(seid)), body.as_slice());
        upf.handle_datagram(now, at(2), &answer.expect("short"));
        match &events(&mut upf)[..] {
            [Event::Response { .. }] => assert!(counts, "{seid} {body:?}"),
            [Event::Discarded { .. }] => assert!(!counts, "{seid} {body:?}"),
            other => panic!("{other:?}"),
        }
        upf.handle_timeout(now + Duration::from_secs(3));
        let again = sent(&mut upf);
        assert_eq!(again == first, !counts, "{seid} {body:?}: {again:?}");
    }
}
