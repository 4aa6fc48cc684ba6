//! Policies that admit, change, refuse, hang and panic, called by a live node.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp::ie::{Cause, CreateQer, GateStatus, Mbr, UpdateQer};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::session::RuleSet;
use strowger_pfcp_node::{
    Association, Client, ClientConfig, ClientError, DecisionFuture, Node, NodeConfig, NodeHandle,
    NodeParts, OnFailure, Policy, PolicyDecision, PolicyKind, PolicyRequest, PolicyRequestKind,
    Session, SessionRules,
};

/// A policy that does what it is told.
#[derive(Debug, Default)]
struct Scripted(AtomicU8);

const ADMIT: u8 = 0;
const REFUSE: u8 = 1;
const HANG: u8 = 2;
const PANIC: u8 = 3;
const UNSOUND: u8 = 4;

impl Scripted {
    fn now(&self, mood: u8) {
        self.0.store(mood, Ordering::Relaxed);
    }
}

impl Policy for Scripted {
    fn decide<'a>(&'a self, question: &'a PolicyRequest) -> DecisionFuture<'a> {
        Box::pin(async move {
            assert_eq!(
                question.before.is_none(),
                question.kind == PolicyRequestKind::Establish
            );
            match self.0.load(Ordering::Relaxed) {
                REFUSE => PolicyDecision::Refuse(Cause::NO_RESOURCES_AVAILABLE),
                HANG => std::future::pending().await,
                // Unlike panic!, this prints nothing.
                PANIC => std::panic::resume_unwind(Box::new("a drill")),
                UNSOUND => {
                    let update = UpdateQer::new(77).maximum_bitrate(rate(1, 1));
                    let change = SessionModificationRequest::new().update_qers([update]);
                    PolicyDecision::Change(Box::new(change))
                }
                _ => PolicyDecision::Admit,
            }
        })
    }
}

struct Bench {
    system: ActorSystem,
    node: NodeHandle,
    association: Association,
}

impl Bench {
    async fn new(policy: Option<Arc<dyn Policy>>, change: impl FnOnce(&mut NodeConfig)) -> Self {
        let system = ActorSystem::new("test").unwrap();
        let mut config = NodeConfig::default();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        // Long enough for a policy that answers, on any machine.
        config.policy.budget = Duration::from_secs(10);
        change(&mut config);
        let mut parts = NodeParts::default();
        parts.policy = policy;
        let node = Node::start_with(&system, config, parts).await.unwrap();
        let mut config = ClientConfig::default();
        config.t1 = Duration::from_millis(100);
        config.n1 = 300;
        let client = Client::bind(&system, config).await.unwrap();
        let association = client.associate(node.local_addr()).await.unwrap();
        Self {
            system,
            node,
            association,
        }
    }

    async fn establish(&self, number: u8) -> Result<Session, ClientError> {
        self.association.establish(rules(number)).await
    }
}

fn rate(uplink: u64, downlink: u64) -> Mbr {
    Mbr {
        ul_mbr: uplink,
        dl_mbr: downlink,
    }
}

fn rules(number: u8) -> SessionRules {
    let ue = IpAddr::from(Ipv4Addr::new(10, 46, 0, number));
    let qer = CreateQer::new(1, GateStatus::default()).maximum_bitrate(rate(90_000, 90_000));
    SessionRules::pdu_session(ue).qer(qer)
}

fn faster() -> SessionModificationRequest {
    let update = UpdateQer::new(1).maximum_bitrate(rate(80_000, 10));
    SessionModificationRequest::new().update_qers([update])
}

fn cause<T>(result: Result<T, ClientError>) -> Cause {
    result
        .err()
        .and_then(|error| error.cause())
        .expect("the peer refused")
}

fn rate_of(node: &NodeHandle, session: &Session) -> (u64, u64) {
    let rules = RuleSet::restore(&node.rules(session.remote_seid()).unwrap()).unwrap();
    let qer = rules.qers().next().unwrap().unwrap();
    let Mbr { ul_mbr, dl_mbr, .. } = qer.maximum_bitrate.unwrap();
    (ul_mbr, dl_mbr)
}

#[tokio::test]
async fn qos_cap_limits_rates_and_session_count() {
    let bench = Bench::new(None, |config| {
        config.policy.kind = PolicyKind::QosCap;
        config.policy.uplink = Some(50_000);
        config.policy.sessions = Some(2);
    })
    .await;
    assert!(bench.system.find("/node/policy").is_some());
    let first = bench.establish(1).await.unwrap();
    assert_eq!(rate_of(&bench.node, &first), (50_000, 90_000));
    first.modify(faster()).await.unwrap();
    assert_eq!(rate_of(&bench.node, &first), (50_000, 10));
    let _second = bench.establish(2).await.unwrap();
    let third = bench.establish(3).await;
    assert_eq!(cause(third), Cause::NO_RESOURCES_AVAILABLE);
    first.delete().await.unwrap();
    bench.establish(4).await.unwrap();
    let stats = bench.node.stats().policy;
    assert_eq!((stats.changed, stats.refused, stats.failed), (4, 1, 0));
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn policy_refusal_leaves_session_unchanged() {
    let policy = Arc::new(Scripted::default());
    let bench = Bench::new(Some(policy.clone()), |_| {}).await;
    let session = bench.establish(1).await.unwrap();
    let before = bench.node.rules(session.remote_seid());
    policy.now(REFUSE);
    let refused = session.modify(faster()).await;
    assert_eq!(cause(refused), Cause::NO_RESOURCES_AVAILABLE);
    let refused = bench.establish(2).await;
    assert_eq!(cause(refused), Cause::NO_RESOURCES_AVAILABLE);
    assert_eq!(bench.node.rules(session.remote_seid()), before);
    policy.now(ADMIT);
    session.modify(faster()).await.unwrap();
    bench.establish(2).await.expect("its address is free again");
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn faulty_policy_denies_by_default() {
    let policy = Arc::new(Scripted::default());
    let short = |config: &mut NodeConfig| config.policy.budget = Duration::from_millis(20);
    let bench = Bench::new(Some(policy.clone()), short).await;
    policy.now(PANIC);
    assert_eq!(cause(bench.establish(1).await), Cause::SYSTEM_FAILURE);
    policy.now(HANG);
    assert_eq!(cause(bench.establish(1).await), Cause::SYSTEM_FAILURE);
    policy.now(UNSOUND);
    assert_eq!(cause(bench.establish(1).await), Cause::SYSTEM_FAILURE);
    let stats = bench.node.stats().policy;
    assert!(
        stats.timed_out >= 1 && stats.timed_out + stats.failed >= 3,
        "{stats:?}"
    );
    assert_eq!(bench.node.stats().sessions, 0);
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn on_failure_allow_admits_without_decision() {
    let policy = Arc::new(Scripted::default());
    policy.now(PANIC);
    let allow = |config: &mut NodeConfig| config.policy.on_failure = OnFailure::Allow;
    let bench = Bench::new(Some(policy), allow).await;
    let session = bench.establish(1).await.unwrap();
    session.modify(faster()).await.unwrap();
    assert_eq!(bench.node.stats().policy.failed, 2);
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn on_failure_last_good_reuses_decision() {
    let policy = Arc::new(Scripted::default());
    let last = |config: &mut NodeConfig| config.policy.on_failure = OnFailure::LastGood;
    let bench = Bench::new(Some(policy.clone()), last).await;
    policy.now(PANIC);
    assert_eq!(cause(bench.establish(1).await), Cause::SYSTEM_FAILURE);
    policy.now(ADMIT);
    bench.establish(1).await.unwrap();
    policy.now(PANIC);
    bench.establish(2).await.unwrap();
    policy.now(REFUSE);
    assert_eq!(
        cause(bench.establish(3).await),
        Cause::NO_RESOURCES_AVAILABLE
    );
    policy.now(PANIC);
    assert_eq!(
        cause(bench.establish(3).await),
        Cause::NO_RESOURCES_AVAILABLE
    );
    bench.system.shutdown(Duration::from_secs(1)).await;
}
