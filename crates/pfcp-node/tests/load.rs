//! Load on a node in the same process.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp_node::{
    Chaos, ClientError, Load, LoadFigures, LoadHandle, LoadPlan, Node, NodeConfig, NodeHandle,
    Pace, SessionFilter,
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

/// Waits until the figures are as wanted.
async fn until(load: &LoadHandle, wanted: impl Fn(&LoadFigures) -> bool) {
    while !wanted(&load.snapshot()) {
        load.held().await.unwrap();
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_loop_holds_its_sessions_and_replaces_them() {
    let (system, node) = node().await;
    let mut plan = plan(&node);
    plan.pace = Pace::Rate(500.0);
    plan.sessions = 100;
    plan.keep = true;
    let load = Load::start(&system, plan).await.unwrap();
    until(&load, |figures| figures.established > 150).await;
    load.stop();
    let figures = load.finished().await;
    assert_eq!(
        (figures.held, figures.rejected, figures.lost),
        (100, 0, 0),
        "{figures:?}"
    );
    assert_eq!(figures.sent, figures.accepted);
    assert_eq!(figures.established, figures.deleted + 100);
    assert!(figures.established > 100);
    assert_eq!(node.sessions(&SessionFilter::default()).len(), 100);
    assert_eq!(figures.latency.len(), figures.answered);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_loop_ends_with_everything_deleted() {
    let (system, node) = node().await;
    let mut plan = plan(&node);
    plan.pace = Pace::InFlight(8);
    plan.sessions = 50;
    let load = Load::start(&system, plan).await.unwrap();
    until(&load, |figures| figures.established > 50).await;
    load.stop();
    let figures = load.finished().await;
    assert_eq!((figures.rejected, figures.lost), (0, 0), "{figures:?}");
    assert_eq!(node.stats().sessions, 0);
    assert_eq!(node.associations(), []);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn panics_under_load_lose_no_session() {
    let (system, node) = node().await;
    let mut plan = plan(&node);
    plan.pace = Pace::Rate(1000.0);
    plan.sessions = 100;
    plan.chaos = Some(Chaos {
        node: node.clone(),
        rate: 200.0,
    });
    let load = Load::start(&system, plan).await.unwrap();
    until(&load, |figures| figures.panics > 100).await;
    load.stop();
    let figures = load.finished().await;
    assert_eq!((figures.lost, figures.rejected), (0, 0), "{figures:?}");
    assert_eq!(figures.survived, figures.probes);
}

#[tokio::test]
async fn a_session_that_the_node_forgot_is_counted_as_lost() {
    let (system, node) = node().await;
    let mut plan = plan(&node);
    plan.pace = Pace::InFlight(1);
    plan.sessions = 3;
    let load = Load::start(&system, plan).await.unwrap();
    let held = loop {
        let held = load.held().await.unwrap();
        if held.len() == 2 {
            break held;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(
        load.modify(strowger_pfcp::Seid(u64::MAX)).await.unwrap(),
        None
    );
    let local = node.session(held[0].1).map(|session| session.peer_seid);
    assert_eq!(local, Some(held[0].0));
    load.stop();
    assert_eq!(load.finished().await.lost, 0);
}

#[tokio::test]
async fn a_load_without_a_peer_is_an_error() {
    let system = ActorSystem::new("test").unwrap();
    let silent = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut plan = LoadPlan::new(silent.local_addr().unwrap());
    plan.t1 = Duration::from_millis(10);
    let error = Load::start(&system, plan).await.unwrap_err();
    assert!(matches!(error, ClientError::NoAnswer { .. }), "{error}");
}
