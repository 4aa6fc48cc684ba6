//! Load on a node in the same process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use strowger::ActorSystem;
use strowger_pfcp::endpoint::message;
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Header, MessageType, Seid, Sequence};
use strowger_pfcp_node::{
    ClientError, DataPathKind, Load, LoadHandle, LoadPace, LoadPlan, LoadStats, Node, NodeConfig,
    NodeHandle, OnLoss, PanicInjection, ReportPort, SessionFilter,
};

async fn node() -> (ActorSystem, NodeHandle) {
    let system = ActorSystem::new("test").unwrap();
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    let node = Node::start(&system, config).await.unwrap();
    (system, node)
}

/// A plan for a node that may be slow to answer.
fn plan(node: &NodeHandle) -> LoadPlan {
    let mut plan = LoadPlan::new(node.local_addr());
    plan.n1 = 60;
    plan
}

/// Far longer than any wait of these tests takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// Waits until the statistics satisfy a condition.
async fn until(load: &LoadHandle, wanted: impl Fn(&LoadStats) -> bool) {
    let start = Instant::now();
    while !wanted(&load.snapshot()) {
        assert!(start.elapsed() < LIMIT, "{:?}", load.snapshot());
        load.held().await.unwrap();
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_loop_holds_and_replaces_sessions() {
    let (system, node) = node().await;
    let mut plan = plan(&node);
    plan.pace = LoadPace::Rate(500.0);
    plan.sessions = 100;
    plan.keep = true;
    let load = Load::start(&system, plan).await.unwrap();
    until(&load, |stats| stats.established > 150).await;
    load.stop();
    let stats = load.finished().await;
    assert_eq!(
        (stats.held, stats.rejected, stats.lost),
        (100, 0, 0),
        "{stats:?}"
    );
    assert_eq!(stats.sent, stats.accepted);
    assert_eq!(stats.established, stats.deleted + 100);
    assert!(stats.established > 100);
    assert_eq!(node.sessions(&SessionFilter::default()).len(), 100);
    assert_eq!(stats.latency.len(), stats.answered);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn closed_loop_deletes_all_sessions_at_end() {
    let (system, node) = node().await;
    let mut plan = plan(&node);
    plan.pace = LoadPace::InFlight(8);
    plan.sessions = 50;
    let load = Load::start(&system, plan).await.unwrap();
    until(&load, |stats| stats.established > 50).await;
    load.stop();
    let stats = load.finished().await;
    assert_eq!((stats.rejected, stats.lost), (0, 0), "{stats:?}");
    assert_eq!(node.stats().sessions, 0);
    assert_eq!(node.associations(), []);
}

/// Runs a load on a node whose sessions panic 200 times a second, until there were 100 panics.
async fn lose_no_session_to_panics(change: impl FnOnce(&mut LoadPlan)) {
    let (system, node) = node().await;
    let mut plan = plan(&node);
    plan.panic_injection = Some(PanicInjection {
        node: node.clone(),
        rate: 200.0,
    });
    change(&mut plan);
    let load = Load::start(&system, plan).await.unwrap();
    until(&load, |stats| stats.panics > 100).await;
    load.stop();
    let stats = load.finished().await;
    assert_eq!((stats.lost, stats.rejected), (0, 0), "{stats:?}");
    assert_eq!(stats.probes_accepted, stats.probes);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panics_under_load_lose_no_session() {
    lose_no_session_to_panics(|plan| {
        plan.pace = LoadPace::Rate(1000.0);
        plan.sessions = 100;
    })
    .await;
}

/// The load replaces every session as soon as it holds it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panics_at_rate_above_capacity_of_node_lose_no_session() {
    lose_no_session_to_panics(|plan| {
        plan.pace = LoadPace::Rate(10_000_000.0);
        plan.sessions = 10;
    })
    .await;
}

/// The load sends a dropped probe again; a deletion sent in the meantime would overtake it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probe_that_is_sent_again_is_not_overtaken_by_deletion() {
    lose_no_session_to_panics(|plan| {
        plan.pace = LoadPace::Rate(10_000_000.0);
        plan.sessions = 10;
        plan.loss = 0.1;
        plan.t1 = Duration::from_millis(50);
        plan.n1 = 1000;
    })
    .await;
}

/// Every kind of modification on sessions with traffic: an idle session is connected again as soon
/// as the node reports data for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mix_of_modifications_is_accepted_and_pages_idle_sessions() {
    let system = ActorSystem::new("test").unwrap();
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    config.data_path.kind = DataPathKind::Simulated;
    config.peer.report_port = ReportPort::Source;
    config.data_path.tick = Duration::from_millis(10);
    let node = Node::start(&system, config).await.unwrap();
    let mut plan = plan(&node);
    plan.pace = LoadPace::Rate(100.0);
    plan.sessions = 20;
    plan.modifications = 2.0;
    plan.shares =
        toml::from_str("handover = 1\nidle = 1\nqos = 1\nreport = 1\nprecedence = 1").unwrap();
    let load = Load::start(&system, plan).await.unwrap();
    until(&load, |stats| {
        let changes = stats.changes;
        let all = [
            changes.handover,
            changes.idle,
            changes.resume,
            changes.qos,
            changes.report,
            changes.precedence,
            stats.downlink_reports,
            stats.usage_reports,
        ];
        all.iter().all(|count| *count > 0)
    })
    .await;
    load.stop();
    let stats = load.finished().await;
    assert_eq!((stats.rejected, stats.lost), (0, 0), "{stats:?}");
    let changes = stats.changes;
    let sum = changes.handover
        + changes.idle
        + changes.resume
        + changes.qos
        + changes.report
        + changes.precedence;
    assert_eq!(sum, stats.modified, "{changes:?}");
}

/// The sessions of a load have only the rules that the activities in its mix need.
#[tokio::test]
async fn sessions_contain_only_rules_the_mix_changes() {
    for (shares, qers, urrs) in [("qos = 1", 1, 0), ("report = 1", 0, 1), ("idle = 1", 0, 0)] {
        let (system, node) = node().await;
        let mut plan = plan(&node);
        plan.pace = LoadPace::InFlight(1);
        plan.sessions = usize::MAX;
        plan.keep = true;
        plan.modifications = 1.0;
        plan.shares = toml::from_str(shares).unwrap();
        let load = Load::start(&system, plan).await.unwrap();
        until(&load, |stats| stats.held > 0).await;
        load.stop();
        load.finished().await;
        let sessions = node.sessions(&SessionFilter::default());
        let session = sessions.first().unwrap();
        let found = (session.qers.len(), session.urrs.len());
        assert_eq!(found, (qers, urrs), "{shares}");
    }
}

/// A load that has established a session, and deletes none during the test.
async fn holding(node: &NodeHandle, system: &ActorSystem) -> (LoadHandle, (Seid, Seid)) {
    let mut plan = plan(node);
    plan.pace = LoadPace::InFlight(1);
    plan.sessions = usize::MAX;
    plan.keep = true;
    plan.on_loss = OnLoss::Forget;
    let load = Load::start(system, plan).await.unwrap();
    until(&load, |stats| stats.held > 0).await;
    let first = load.held().await.unwrap().first().copied().unwrap();
    (load, first)
}

#[tokio::test]
async fn modify_reaches_known_session_and_skips_unheld_one() {
    let (system, node) = node().await;
    let (load, (local, remote)) = holding(&node, &system).await;
    let peer_seid = node.session(remote).map(|session| session.peer_seid);
    assert_eq!(peer_seid, Some(local));
    let answer = load.modify(local).await.unwrap();
    assert_eq!(answer, Some(Cause::REQUEST_ACCEPTED));
    assert_eq!(load.modify(Seid(u64::MAX)).await.unwrap(), None);
    load.stop();
    let stats = load.finished().await;
    assert_eq!((stats.probes, stats.probes_accepted), (1, 1), "{stats:?}");
    assert_eq!((stats.lost, stats.rejected), (0, 0), "{stats:?}");
}

/// Another program on the host of the load deletes one of its sessions.
#[tokio::test]
async fn modify_counts_missing_session_as_lost() {
    let (system, node) = node().await;
    let (load, (local, remote)) = holding(&node, &system).await;
    let kind = MessageType::SESSION_DELETION_REQUEST;
    let request = message(&Header::session(kind, remote, Sequence::new(1)), &[]).unwrap();
    let other = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    other.send_to(&request, node.local_addr()).await.unwrap();
    let start = Instant::now();
    while node.session(remote).is_some() {
        assert!(start.elapsed() < LIMIT, "the session is not deleted");
        tokio::task::yield_now().await;
    }
    let answer = load.modify(local).await.unwrap();
    assert_eq!(answer, Some(Cause::SESSION_CONTEXT_NOT_FOUND));
    load.stop();
    let stats = load.finished().await;
    assert_eq!((stats.probes, stats.probes_accepted), (1, 0), "{stats:?}");
    assert_eq!((stats.lost, stats.sessions_lost), (1, 1), "{stats:?}");
}

#[tokio::test]
async fn load_without_peer_fails_to_start() {
    let system = ActorSystem::new("test").unwrap();
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut plan = LoadPlan::new(silent.local_addr().unwrap());
    plan.t1 = Duration::from_millis(10);
    let error = Load::start(&system, plan).await.unwrap_err();
    assert!(matches!(error, ClientError::NoAnswer { .. }), "{error}");
}
