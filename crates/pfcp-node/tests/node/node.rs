//! A node and a client over real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use strowger::{ActorSystem, PathPattern, TraceLimits, TraceStep};
use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, FarId, PdrId, Precedence, RemovePdr, UpdatePdr,
};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::{IeType, Release};
use strowger_pfcp_node::{
    Association, Client, ClientConfig, ClientError, Node, NodeConfig, NodeHandle, SessionFilter,
    SessionRules,
};

const UE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 45, 0, 9));

struct Bench {
    system: ActorSystem,
    node: NodeHandle,
    client: Client,
}

impl Bench {
    async fn new(change: impl FnOnce(&mut NodeConfig)) -> Self {
        let system = ActorSystem::new("test").unwrap();
        let mut config = NodeConfig::default();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        change(&mut config);
        let node = Node::start(&system, config).await.unwrap();
        let client = Client::bind(&system, quick()).await.unwrap();
        Self {
            system,
            node,
            client,
        }
    }

    async fn associate(&self) -> Association {
        self.client.associate(self.node.local_addr()).await.unwrap()
    }
}

/// A client that retransmits soon, and for long enough on a slow machine.
fn quick() -> ClientConfig {
    let mut config = ClientConfig::default();
    config.t1 = Duration::from_millis(100);
    config.n1 = 300;
    config
}

fn ue(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 46, 0, number).into()
}

/// A request that only a session with the rules of `SessionRules::pdu_session` accepts.
fn naming() -> SessionModificationRequest {
    let update = UpdatePdr::new(PdrId(2)).precedence(Precedence(255));
    SessionModificationRequest::new().update_pdrs([update])
}

fn cause<T>(result: Result<T, ClientError>) -> Cause {
    result
        .err()
        .and_then(|error| error.cause())
        .expect("the peer refused")
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_frees_capacity_before_actor_exit() {
    let bench = Bench::new(|config| config.limits.sessions_per_association = 1).await;
    let association = bench.associate().await;
    for _ in 0..100 {
        let session = association
            .establish(SessionRules::pdu_session(UE))
            .await
            .unwrap();
        session.delete().await.unwrap();
    }
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn session_exists_from_establishment_to_deletion() {
    let bench = Bench::new(|_| {}).await;
    let association = bench.associate().await;
    let session = association
        .establish(SessionRules::pdu_session(UE))
        .await
        .unwrap();
    assert_eq!(session.created().len(), 1);

    let listed = bench.node.sessions(&SessionFilter::default());
    assert_eq!(listed.len(), 1);
    assert_eq!(
        (listed[0].seid, listed[0].peer_seid),
        (session.remote_seid(), session.seid())
    );
    assert_eq!(
        (&listed[0].pdrs[..], &listed[0].fars[..]),
        (&[1, 2][..], &[1, 2][..])
    );
    assert_eq!(
        (&listed[0].ue_addresses[..], listed[0].teids.len()),
        (&[UE][..], 1)
    );
    assert!(bench.system.find(listed[0].path.as_str()).is_some());

    session.modify(naming()).await.unwrap();
    session.delete().await.unwrap();
    assert_eq!(bench.node.sessions(&SessionFilter::default()), []);
    let stats = bench.node.stats();
    assert_eq!(
        (stats.established, stats.modified, stats.deleted),
        (1, 1, 1)
    );
    assert_eq!(stats.refused, []);
}

#[tokio::test]
async fn session_trace_shows_peer_requests() {
    let bench = Bench::new(|_| {}).await;
    let pattern = "**".parse::<PathPattern>().unwrap();
    let mut tracer = bench.system.trace(pattern, TraceLimits::default()).await;
    let association = bench.associate().await;
    let session = association
        .establish(SessionRules::pdu_session(UE))
        .await
        .unwrap();
    session.modify(naming()).await.unwrap();
    session.delete().await.unwrap();
    let mut wanted = ["an establishment, ", "a modification, ", "a deletion, "].into_iter();
    let mut next = wanted.next();
    while let Some(begins) = next {
        let record = tracer.next().await.expect("it is not over before");
        if matches!(&record.step, TraceStep::Message { name, .. } if name.starts_with(begins)) {
            next = wanted.next();
        }
    }
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn session_is_found_by_every_filter_key() {
    let bench = Bench::new(|_| {}).await;
    let association = bench.associate().await;
    let mut sessions = Vec::new();
    for number in 1..=3 {
        sessions.push(
            association
                .establish(SessionRules::pdu_session(ue(number)))
                .await
                .unwrap(),
        );
    }
    let wanted = bench.node.session(sessions[1].remote_seid()).unwrap();
    let filter = SessionFilter::default;
    for filter in [
        SessionFilter {
            seid: Some(wanted.seid),
            ..filter()
        },
        SessionFilter {
            ue_address: Some(ue(2)),
            ..filter()
        },
        SessionFilter {
            teid: Some(wanted.teids[0].0),
            ..filter()
        },
    ] {
        assert_eq!(
            bench.node.sessions(&filter),
            std::slice::from_ref(&wanted),
            "{filter:?}"
        );
    }
    let local = bench.client.local_addr().ip();
    assert_eq!(
        bench
            .node
            .sessions(&SessionFilter {
                peer: Some(local),
                ..filter()
            })
            .len(),
        3
    );
    let other = Some(ue(1));
    assert_eq!(
        bench
            .node
            .sessions(&SessionFilter {
                peer: other,
                ..filter()
            })
            .len(),
        0
    );
    let associations = bench.node.associations();
    assert_eq!((associations.len(), associations[0].sessions), (1, 3));
}

#[tokio::test]
async fn refused_modification_leaves_session_unchanged() {
    let bench = Bench::new(|_| {}).await;
    let session = bench
        .associate()
        .await
        .establish(SessionRules::pdu_session(UE))
        .await
        .unwrap();
    let before = bench.node.rules(session.remote_seid());
    let request = SessionModificationRequest::new()
        .remove_pdrs([RemovePdr::new(PdrId(1)), RemovePdr::new(PdrId(77))]);
    assert_eq!(cause(session.modify(request).await), Cause::RULE_FAILURE);
    assert_eq!(bench.node.rules(session.remote_seid()), before);
    session.modify(naming()).await.unwrap();
}

#[tokio::test]
async fn a_panic_in_a_session_keeps_its_rules_and_disturbs_no_other() {
    let bench = Bench::new(|_| {}).await;
    let association = bench.associate().await;
    let hit = association
        .establish(SessionRules::pdu_session(ue(1)))
        .await
        .unwrap();
    let other = association
        .establish(SessionRules::pdu_session(ue(2)))
        .await
        .unwrap();
    let before = bench.node.session(hit.remote_seid()).unwrap();
    for round in 1..=5 {
        assert!(bench.node.panic_session(hit.remote_seid(), "drill"));
        hit.modify(naming()).await.unwrap();
        other.modify(naming()).await.unwrap();
        assert_eq!(bench.node.stats().restored, round);
    }
    assert_eq!(
        bench.node.session(hit.remote_seid()).unwrap().pdrs,
        before.pdrs
    );
    let restarts = |path: &str| bench.system.find(path).unwrap().info().restarts;
    assert_eq!(restarts(&before.path), 5);
    assert_eq!(
        restarts(&bench.node.session(other.remote_seid()).unwrap().path),
        0
    );
    hit.delete().await.unwrap();
    other.delete().await.unwrap();
}

#[tokio::test]
async fn killed_session_restarts_with_its_rules() {
    let bench = Bench::new(|_| {}).await;
    let session = bench
        .associate()
        .await
        .establish(SessionRules::pdu_session(UE))
        .await
        .unwrap();
    let path = bench.node.session(session.remote_seid()).unwrap().path;
    bench.system.find(path.as_str()).unwrap().kill();
    session.modify(naming()).await.unwrap();
    bench.system.find(path.as_str()).unwrap().stop();
    session.modify(naming()).await.unwrap();
}

#[tokio::test]
async fn restarted_endpoint_keeps_associations_and_sessions() {
    let bench = Bench::new(|_| {}).await;
    let session = bench
        .associate()
        .await
        .establish(SessionRules::pdu_session(UE))
        .await
        .unwrap();
    let before = bench.node.sessions(&SessionFilter::default());
    bench.system.find("/node/n4").unwrap().inject_panic("drill");
    session.modify(naming()).await.unwrap();
    assert_eq!(
        bench.node.sessions(&SessionFilter::default()).len(),
        before.len()
    );
    assert_eq!(bench.node.associations().len(), 1);
    session.delete().await.unwrap();
    assert_eq!(bench.node.stats().sessions, 0);
}

#[tokio::test]
async fn association_supervisor_restarts_with_its_sessions() {
    let bench = Bench::new(|_| {}).await;
    let session = bench
        .associate()
        .await
        .establish(SessionRules::pdu_session(UE))
        .await
        .unwrap();
    let path = bench.node.associations()[0].path.clone();
    let supervisor = bench.system.find(path.as_str()).unwrap();
    supervisor.kill();
    supervisor.stopped().await;
    session.modify(naming()).await.unwrap();
}

#[tokio::test]
async fn without_an_association_no_session_is_established() {
    let bench = Bench::new(|_| {}).await;
    let association = bench.associate().await;
    association.clone().release().await.unwrap();
    assert_eq!(bench.node.associations(), []);
    let refused = association.establish(SessionRules::pdu_session(UE)).await;
    assert_eq!(cause(refused), Cause::NO_ESTABLISHED_ASSOCIATION);
}

#[tokio::test]
async fn a_release_ends_the_sessions() {
    let bench = Bench::new(|_| {}).await;
    let association = bench.associate().await;
    for number in 1..=10 {
        association
            .establish(SessionRules::pdu_session(ue(number)))
            .await
            .unwrap();
    }
    let path = bench.node.associations()[0].path.clone();
    let supervisor = bench.system.find(path.as_str()).unwrap();
    association.release().await.unwrap();
    assert_eq!(bench.node.stats().sessions, 0);
    supervisor.stopped().await;
    bench
        .associate()
        .await
        .establish(SessionRules::pdu_session(ue(1)))
        .await
        .unwrap();
}

#[tokio::test]
async fn exceeded_limit_is_answered_with_cause() {
    let bench = Bench::new(|config| config.limits.sessions = 2).await;
    let association = bench.associate().await;
    let first = association
        .establish(SessionRules::pdu_session(ue(1)))
        .await
        .unwrap();
    association
        .establish(SessionRules::pdu_session(ue(2)))
        .await
        .unwrap();
    let refused = association
        .establish(SessionRules::pdu_session(ue(3)))
        .await;
    assert_eq!(cause(refused), Cause::NO_RESOURCES_AVAILABLE);
    first.delete().await.unwrap();
    association
        .establish(SessionRules::pdu_session(ue(3)))
        .await
        .unwrap();
}

#[tokio::test]
async fn ue_addresses_and_tunnels_are_unique_per_session() {
    let bench = Bench::new(|_| {}).await;
    let association = bench.associate().await;
    let held = SessionRules::with_tunnel(7, Ipv4Addr::LOCALHOST, ue(1));
    let session = association.establish(held.clone()).await.unwrap();
    for (rules, ie) in [
        (
            SessionRules::with_tunnel(7, Ipv4Addr::LOCALHOST, ue(2)),
            IeType::F_TEID,
        ),
        (
            SessionRules::with_tunnel(8, Ipv4Addr::LOCALHOST, ue(1)),
            IeType::UE_IP_ADDRESS,
        ),
    ] {
        let refused = association.establish(rules).await.err();
        let Some(ClientError::Refused {
            cause,
            offending_ie,
            ..
        }) = refused
        else {
            panic!("not refused by the peer: {refused:?}");
        };
        assert_eq!((cause, offending_ie), (Cause::RULE_FAILURE, Some(ie)));
    }
    session.delete().await.unwrap();
    association.establish(held).await.unwrap();
}

#[tokio::test]
async fn an_address_in_use_is_refused_with_a_hint() {
    let bench = Bench::new(|_| {}).await;
    let mut config = NodeConfig::default();
    config.listen = vec![bench.node.local_addr()];
    let other = ActorSystem::new("other").unwrap();
    let error = Node::start(&other, config).await.unwrap_err().to_string();
    assert!(error.contains("another process has port"), "{error}");
    assert!(error.contains("give port 0"), "{error}");
}

#[tokio::test]
async fn node_works_over_ipv6() {
    let bench = Bench::new(|config| config.listen = vec!["[::1]:0".parse().unwrap()]).await;
    let mut config = quick();
    config.listen = "[::1]:0".parse().unwrap();
    let client = Client::bind(&bench.system, config).await.unwrap();
    let association = client.associate(bench.node.local_addr()).await.unwrap();
    let rules = SessionRules::with_tunnel(7, Ipv4Addr::LOCALHOST, "2001:db8::9".parse().unwrap());
    let session = association.establish(rules).await.unwrap();
    session.modify(naming()).await.unwrap();
    session.delete().await.unwrap();
}

/// The rules that a node keeps of a session with an element newer than release 17.
async fn kept_rules(node: Release, client: Release) -> (Vec<u8>, Vec<u8>) {
    let system = ActorSystem::new("test").unwrap();
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    config.release = node;
    let node = Node::start(&system, config).await.unwrap();
    let mut config = quick();
    config.release = client;
    let client = Client::bind(&system, config).await.unwrap();
    let association = client.associate(node.local_addr()).await.unwrap();
    let mut rules = SessionRules::pdu_session(UE);
    let plain = association.establish(rules.clone()).await.unwrap();
    let plain_rules = node.rules(plain.remote_seid()).unwrap();
    plain.delete().await.unwrap();
    let mut far = CreateFar::new(FarId(3), ApplyAction::DROP);
    far.rest.push(IeType::METADATA, [7, 7, 7]);
    rules = rules.far(far);
    let session = association.establish(rules).await.unwrap();
    let kept = node.rules(session.remote_seid()).unwrap();
    system.shutdown(Duration::from_secs(1)).await;
    (plain_rules, kept)
}

#[tokio::test]
async fn content_newer_than_release_is_neither_stored_nor_sent() {
    let metadata = [1, 66, 0, 3, 7, 7, 7];
    let (old, new) = (Release::R17, Release::R19);
    for (node, client, kept) in [(new, new, true), (old, new, false), (new, old, false)] {
        let (plain, rules) = kept_rules(node, client).await;
        assert!(rules.len() > plain.len());
        let found = rules.windows(metadata.len()).any(|part| part == metadata);
        assert_eq!(found, kept, "node {node}, client {client}");
    }
}
