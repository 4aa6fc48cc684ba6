//! The behaviour of a node towards its peers, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp::endpoint::BodyBuilder;
use strowger_pfcp::ie::{
    Cause, FqCsid, Ie, NodeId, NodeReportType, PdrId, PfdContents, Precedence, RemoteGtpuPeer,
    UpdatePdr, UserPlanePathFailureReport,
};
use strowger_pfcp::message::{NodeReportRequest, SessionModificationRequest};
use strowger_pfcp::{IeType, Message, MessageType, Seid};
use strowger_pfcp_node::{
    Association, Client, ClientConfig, ClientError, Node, NodeConfig, NodeHandle, NodeRequestError,
    ReleaseOutcome, SessionFilter, SessionRules,
};

struct Bench {
    system: ActorSystem,
    node: NodeHandle,
}

impl Bench {
    async fn new(change: impl FnOnce(&mut NodeConfig)) -> Self {
        let system = ActorSystem::new("test").unwrap();
        let mut config = NodeConfig::default();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        config.timers.n1 = 100;
        change(&mut config);
        let node = Node::start(&system, config).await.unwrap();
        Self { system, node }
    }

    /// A peer at an address of its own.
    async fn peer(&self, last: u8) -> Association {
        self.peer_with(last, |_| {}).await.unwrap()
    }

    async fn peer_with(
        &self,
        last: u8,
        change: impl FnOnce(&mut ClientConfig),
    ) -> Result<Association, ClientError> {
        let mut config = ClientConfig::default();
        config.listen = (Ipv4Addr::new(127, 0, 0, last), 0).into();
        // The client retransmits soon, and for long enough on a slow machine.
        (config.t1, config.n1) = (Duration::from_millis(100), 300);
        change(&mut config);
        let client = Client::bind(&self.system, config).await.unwrap();
        client.associate(self.node.local_addr()).await
    }

    async fn end(self) {
        self.system.shutdown(Duration::from_secs(10)).await;
    }
}

fn ue(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 46, 0, number).into()
}

/// A request that only a session with the rules of `SessionRules::pdu_session` accepts.
fn naming() -> SessionModificationRequest {
    let update = UpdatePdr::new(PdrId(2)).precedence(Precedence(255));
    SessionModificationRequest::new().update_pdrs([update])
}

/// An element with its header.
fn element<T: Ie>(value: &T) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode_into(&mut out).unwrap();
    out
}

fn cause_of(answer: &Message) -> Cause {
    let bytes = answer.encode().unwrap();
    let frame = strowger_pfcp::Frame::decode(&bytes).unwrap();
    let mut tlvs = frame.tlvs().map(Result::unwrap);
    Cause(tlvs.find(|tlv| tlv.ie == IeType::CAUSE).unwrap().value[0])
}

async fn told(peer: &Association, message_type: MessageType, body: &[u8]) -> Cause {
    let answer = peer.send(message_type, Seid(0), body).await.unwrap();
    cause_of(&answer)
}

fn pfds(application: &[u8], flows: &[&str]) -> Vec<u8> {
    let mut contexts = BodyBuilder::new().with(IeType::APPLICATION_ID, application);
    for flow in flows {
        let contents = element(&PfdContents::flow(flow));
        contexts = contexts.with(IeType::PFD_CONTEXT, &contents);
    }
    let of_one = BodyBuilder::new().with(IeType::APPLICATION_IDS_PFDS, contexts.as_slice());
    of_one.as_slice().to_vec()
}

#[tokio::test]
async fn packet_flow_descriptions_are_kept_replaced_and_removed() {
    let bench = Bench::new(|config| config.limits.pfd_bytes = 300).await;
    let peer = bench.peer(2).await;
    let kind = MessageType::PFD_MANAGEMENT_REQUEST;
    let both = [
        pfds(b"video", &["permit out ip from any to any"]),
        pfds(
            b"voice",
            &[
                "permit out 17 from any to any",
                "deny out ip from any to any",
            ],
        ),
    ];
    assert_eq!(
        told(&peer, kind, &both.concat()).await,
        Cause::REQUEST_ACCEPTED
    );
    let listed = bench.node.pfds();
    let names: Vec<_> = listed.iter().map(|row| row.application.as_str()).collect();
    assert_eq!(names, ["video", "voice"]);
    assert_eq!(listed[1].contents.len(), 2);

    let large = pfds(b"games", &["permit out ip from any to any"; 20]);
    assert_eq!(
        told(&peer, kind, &large).await,
        Cause::NO_RESOURCES_AVAILABLE
    );
    assert_eq!(
        bench.node.pfds(),
        listed,
        "nothing of a refused request is kept"
    );

    assert_eq!(
        told(&peer, kind, &pfds(b"video", &[])).await,
        Cause::REQUEST_ACCEPTED
    );
    assert_eq!(bench.node.pfds(), listed[1..]);
    assert_eq!(told(&peer, kind, &[]).await, Cause::REQUEST_ACCEPTED);
    assert_eq!(bench.node.pfds(), []);
    bench.end().await;
}

#[tokio::test]
async fn packet_flow_descriptions_survive_restart() {
    let folder = tempfile::tempdir().unwrap();
    let stored = |config: &mut NodeConfig| {
        config.store.path = Some(folder.path().join("store"));
        config.store.reserve = 1 << 20;
    };
    let bench = Bench::new(stored).await;
    let peer = bench.peer(2).await;
    let kind = MessageType::PFD_MANAGEMENT_REQUEST;
    for (application, flows) in [
        (&b"video"[..], &["permit out ip from any to any"][..]),
        (b"voice", &["permit out 17 from any to any"]),
        (b"video", &[]),
    ] {
        let request = pfds(application, flows);
        assert_eq!(told(&peer, kind, &request).await, Cause::REQUEST_ACCEPTED);
    }
    let listed = bench.node.pfds();
    assert_eq!(listed[0].application, "voice");
    bench.node.stop().await;
    bench.end().await;

    let bench = Bench::new(stored).await;
    assert_eq!(bench.node.pfds(), listed);
    let peer = bench.peer(2).await;
    assert_eq!(told(&peer, kind, &[]).await, Cause::REQUEST_ACCEPTED);
    assert_eq!(bench.node.pfds(), []);
    bench.end().await;
}

#[tokio::test]
async fn a_peer_is_held_to_the_interface_that_it_speaks() {
    let table = "interfaces = { \"127.0.0.2\" = \"N4\", \"127.0.0.0/30\" = \"N4mb\" }";
    let bench = Bench::new(|config| config.peer = toml::from_str(table).unwrap()).await;
    // On Sxa alone a rule needs no precedence. The second peer has no configured interface.
    let pdi = BodyBuilder::new().with(IeType::SOURCE_INTERFACE, &[0]);
    let pdr = BodyBuilder::new()
        .with(IeType::PDR_ID, &[0, 77])
        .with(IeType::PDI, pdi.as_slice())
        .with(IeType::FAR_ID, &[0, 0, 0, 1]);
    let request = BodyBuilder::new().with(IeType::CREATE_PDR, pdr.as_slice());
    let kind = MessageType::SESSION_MODIFICATION_REQUEST;
    for (last, cause) in [
        (2, Cause::MANDATORY_IE_MISSING),
        (4, Cause::REQUEST_ACCEPTED),
    ] {
        let peer = bench.peer(last).await;
        let session = peer
            .establish(SessionRules::pdu_session(ue(last)))
            .await
            .unwrap();
        let answer = peer.send(kind, session.remote_seid(), request.as_slice());
        assert_eq!(cause_of(&answer.await.unwrap()), cause, "{last}");
    }
    bench.end().await;
}

fn of_set(number: u8, set: u16) -> SessionRules {
    let csid = element(&FqCsid::of(Ipv4Addr::LOCALHOST.into(), &[set]));
    SessionRules::pdu_session(ue(number)).bytes(&csid)
}

#[tokio::test]
async fn session_set_deletion_leaves_other_sessions() {
    let bench = Bench::new(|_| {}).await;
    let (peer, other) = (bench.peer(2).await, bench.peer(3).await);
    let first = peer.establish(of_set(1, 7)).await.unwrap();
    let second = peer.establish(of_set(2, 8)).await.unwrap();
    let of_other = other.establish(of_set(3, 7)).await.unwrap();
    let node = strowger_pfcp::association::NodeName::from(IpAddr::from([127, 0, 0, 2]));
    let csid = element(&FqCsid::of(Ipv4Addr::LOCALHOST.into(), &[9, 7]));
    let body = BodyBuilder::new().node(&node).bytes(&csid);
    let kind = MessageType::SESSION_SET_DELETION_REQUEST;
    assert_eq!(
        told(&peer, kind, body.as_slice()).await,
        Cause::REQUEST_ACCEPTED
    );
    assert!(!first.audit().await.unwrap());
    assert!(second.audit().await.unwrap());
    assert!(of_other.audit().await.unwrap());
    bench.end().await;
}

#[tokio::test]
async fn session_set_modification_changes_owner() {
    let bench = Bench::new(|_| {}).await;
    let (peer, heir) = (bench.peer(2).await, bench.peer(3).await);
    let moved = peer.establish(of_set(1, 7)).await.unwrap();
    let stays = peer.establish(of_set(2, 8)).await.unwrap();
    let node = strowger_pfcp::association::NodeName::from(IpAddr::from([127, 0, 0, 2]));
    let to = |last| {
        let csid = element(&FqCsid::of(Ipv4Addr::LOCALHOST.into(), &[7]));
        let change = BodyBuilder::new()
            .bytes(&csid)
            .with(IeType::ALTERNATIVE_SMF_IP_ADDRESS, &[2, 127, 0, 0, last]);
        let info = IeType::PFCP_SESSION_CHANGE_INFO;
        BodyBuilder::new().node(&node).with(info, change.as_slice())
    };
    let kind = MessageType::SESSION_SET_MODIFICATION_REQUEST;
    let nobody = told(&peer, kind, to(9).as_slice()).await;
    assert_eq!(nobody, Cause::NO_ESTABLISHED_ASSOCIATION);
    assert!(moved.modify(naming()).await.is_ok());

    assert_eq!(
        told(&peer, kind, to(3).as_slice()).await,
        Cause::REQUEST_ACCEPTED
    );
    assert!(!moved.audit().await.unwrap(), "it is not the old owner's");
    assert!(stays.modify(naming()).await.is_ok());
    let update = element(&UpdatePdr::new(PdrId(2)).precedence(Precedence(255)));
    let kind = MessageType::SESSION_MODIFICATION_REQUEST;
    let answer = heir.send(kind, moved.remote_seid(), &update).await.unwrap();
    assert_eq!(cause_of(&answer), Cause::REQUEST_ACCEPTED);
    let listed = bench.node.session(moved.remote_seid()).unwrap();
    assert_eq!(listed.node, "127.0.0.3");
    bench.end().await;
}

#[tokio::test]
async fn rate_limit_refusal_carries_peer_seid() {
    let bench = Bench::new(|config| {
        (config.peer.requests_per_second, config.peer.burst) = (1, 3);
    })
    .await;
    let peer = bench.peer(2).await;
    let session = peer
        .establish(SessionRules::pdu_session(ue(1)))
        .await
        .unwrap();
    let update = element(&UpdatePdr::new(PdrId(2)).precedence(Precedence(255)));
    let kind = MessageType::SESSION_MODIFICATION_REQUEST;
    // However slow the machine is, it occasionally manages more than one request per second.
    let refused = loop {
        let answer = peer
            .send(kind, session.remote_seid(), &update)
            .await
            .unwrap();
        if cause_of(&answer) != Cause::REQUEST_ACCEPTED {
            break answer;
        }
    };
    assert_eq!(cause_of(&refused), Cause::CONGESTION);
    assert_eq!(refused.header.seid, Some(session.seid()));
    assert!(bench.node.stats().limited > 0);
    bench.end().await;
}

#[tokio::test]
async fn node_answers_from_requested_address() {
    let bench = Bench::new(|config| {
        let listen = ["127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0"];
        config.listen = listen.map(|text| text.parse().unwrap()).to_vec();
    })
    .await;
    let asking = bench.node.local_addrs();
    let asked = tokio::task::spawn_blocking(move || {
        for address in asking {
            let socket = UdpSocket::bind("127.0.0.9:0").unwrap();
            // A connected socket receives from this address only.
            socket.connect(address).unwrap();
            socket
                .set_read_timeout(Some(Duration::from_secs(30)))
                .unwrap();
            let heartbeat = [0x20, 1, 0, 12, 0, 0, 1, 0, 0, 96, 0, 4, 0, 0, 0, 1];
            socket.send(&heartbeat).unwrap();
            let mut buffer = [0; 64];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!((length, buffer[1]), (16, 2), "{address}");
        }
    });
    asked.await.unwrap();
    bench.end().await;
}

#[tokio::test]
async fn peer_gets_path_report_and_releases_on_request() {
    let bench = Bench::new(|_| {}).await;
    let peer = bench.peer(2).await;
    let session = peer
        .establish(SessionRules::pdu_session(ue(1)))
        .await
        .unwrap();
    let failed = UserPlanePathFailureReport::new()
        .remote_gtpu_peers([RemoteGtpuPeer::from(Ipv4Addr::new(10, 0, 0, 9))]);
    let report = |kind| NodeReportRequest::new(NodeId::fqdn("replaced"), kind);
    let whole = report(NodeReportType::UPFR).user_plane_path_failure_report(failed);
    assert_eq!(bench.node.report("127.0.0.2", whole.clone()).await, Ok(()));
    let unknown = bench.node.report("127.0.0.9", whole).await;
    assert!(matches!(unknown, Err(NodeRequestError::UnknownPeer { .. })));

    let within = Some(Duration::from_secs(10));
    let report = bench
        .node
        .request_release("127.0.0.2", within)
        .await
        .unwrap();
    let (outcome, sessions) = (report.outcome, report.sessions);
    assert_eq!((outcome, sessions), (ReleaseOutcome::Released, 1));
    // The session is gone when the peer has released it; until then it is found.
    loop {
        match session.audit().await {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => assert!(matches!(error, ClientError::NoAnswer { .. }), "{error}"),
        }
    }
    assert_eq!(bench.node.sessions(&SessionFilter::default()), []);
    assert_eq!(bench.node.associations(), []);
    bench.end().await;
}

#[tokio::test]
async fn peer_lookup_is_case_insensitive() {
    let bench = Bench::new(|_| {}).await;
    let named = |name: &'static str| {
        move |config: &mut ClientConfig| config.node_id = Some(name.to_owned())
    };
    let peer = bench.peer_with(2, named("SMF-C.lab")).await.unwrap();
    peer.establish(SessionRules::pdu_session(ue(1)))
        .await
        .unwrap();
    let refused = bench.peer_with(3, named("smf-c.LAB")).await.unwrap_err();
    assert_eq!(refused.cause(), Some(Cause::REQUEST_REJECTED));
    let listed = bench.node.associations();
    let names: Vec<_> = listed.iter().map(|one| one.node.as_str()).collect();
    assert_eq!(names, ["smf-c.lab"]);
    let sessions_of = |name: &str| {
        let filter = SessionFilter {
            node: Some(name.to_owned()),
            ..SessionFilter::default()
        };
        bench.node.sessions(&filter).len()
    };
    assert_eq!((sessions_of("SMF-C.LAB"), sessions_of("SMF-D.LAB")), (1, 0));
    let report = bench.node.request_release("SMF-C.LAB", None).await.unwrap();
    // The peer releases at once: its answer and its release cross each other.
    let outcomes = [ReleaseOutcome::Agreed, ReleaseOutcome::Released];
    assert!(outcomes.contains(&report.outcome), "{report:?}");
    bench.end().await;
}
