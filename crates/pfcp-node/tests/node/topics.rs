//! The messages that a node publishes on the topics of its tree.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use strowger::{Accepts, Actor, ActorSystem, Context};
use strowger_pfcp::ie::{
    CreateUrr, MeasurementMethod, PfcpsmreqFlags, ReportingTriggers, UrrId, UsageReportTrigger,
    VolumeThreshold,
};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp_node::{
    Client, ClientConfig, Node, NodeConfig, NodeHandle, SessionEvent, SessionEventKind,
    SessionRules, UsageReported,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const UE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 45, 0, 9));

/// Forwards the messages that it receives to the test.
struct Listener(UnboundedSender<TopicEvent>);

#[derive(Debug)]
enum TopicEvent {
    Session(Arc<SessionEvent>),
    Usage(Arc<UsageReported>),
}

impl Accepts<Arc<SessionEvent>> for TopicEvent {
    fn wrap(event: Arc<SessionEvent>) -> Self {
        Self::Session(event)
    }
}

impl Accepts<Arc<UsageReported>> for TopicEvent {
    fn wrap(usage: Arc<UsageReported>) -> Self {
        Self::Usage(usage)
    }
}

impl Actor for Listener {
    type Msg = TopicEvent;
    type Args = UnboundedSender<TopicEvent>;
    type Error = Infallible;

    async fn pre_start(
        to: UnboundedSender<TopicEvent>,
        _: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        Ok(Self(to))
    }

    async fn handle(&mut self, heard: TopicEvent, _: &mut Context<Self>) -> Result<(), Infallible> {
        // A test that is finished no longer listens.
        let _ = self.0.send(heard);
        Ok(())
    }
}

struct Bench {
    system: ActorSystem,
    node: NodeHandle,
    heard: UnboundedReceiver<TopicEvent>,
}

impl Bench {
    async fn new() -> Self {
        let system = ActorSystem::new("test").unwrap();
        let (sender, heard) = unbounded_channel();
        let listener = system.spawn::<Listener>("listener", sender).unwrap();
        let sessions = listener.recipient::<Arc<SessionEvent>>();
        system.subscribe(SessionEvent::TOPIC, sessions).unwrap();
        let usage = listener.recipient::<Arc<UsageReported>>();
        system.subscribe(UsageReported::TOPIC, usage).unwrap();
        let mut config = NodeConfig::default();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        let node = Node::start(&system, config).await.unwrap();
        Self {
            system,
            node,
            heard,
        }
    }

    async fn client(&self) -> Client {
        let mut config = ClientConfig::default();
        (config.t1, config.n1) = (Duration::from_millis(100), 300);
        Client::bind(&self.system, config).await.unwrap()
    }

    async fn session(&mut self) -> Arc<SessionEvent> {
        match self.heard.recv().await.unwrap() {
            TopicEvent::Session(event) => event,
            TopicEvent::Usage(usage) => panic!("{usage:?}"),
        }
    }

    async fn usage(&mut self) -> Arc<UsageReported> {
        match self.heard.recv().await.unwrap() {
            TopicEvent::Usage(usage) => usage,
            TopicEvent::Session(event) => panic!("{event:?}"),
        }
    }
}

#[tokio::test]
async fn session_events_are_published_in_order() {
    let mut bench = Bench::new().await;
    let client = bench.client().await;
    let association = client.associate(bench.node.local_addr()).await.unwrap();
    let urr = CreateUrr::new(1, MeasurementMethod::VOLUM, ReportingTriggers::VOLTH)
        .volume_threshold(VolumeThreshold::total(1000));
    let rules = SessionRules::pdu_session(UE).urr(urr);
    let session = association.establish(rules).await.unwrap();
    let established = bench.session().await;
    assert_eq!(established.kind, SessionEventKind::Established);
    assert_eq!(established.seid, session.remote_seid());
    assert_eq!(established.node.to_string(), "127.0.0.1");

    let query = SessionModificationRequest::new().pfcpsmreq_flags(PfcpsmreqFlags::QAURR);
    session.modify(query).await.unwrap();
    let queried = bench.usage().await;
    let [report] = queried.reports.as_slice() else {
        panic!("{queried:?}");
    };
    assert_eq!(
        (report.urr, report.trigger),
        (UrrId(1), UsageReportTrigger::IMMER)
    );
    assert_eq!(bench.session().await.kind, SessionEventKind::Modified);

    session.delete().await.unwrap();
    let last = bench.usage().await;
    assert_eq!(last.reports[0].trigger, UsageReportTrigger::TERMR);
    assert!(last.reports[0].number > report.number);
    let deleted = bench.session().await;
    assert_eq!(deleted.kind, SessionEventKind::Deleted);
    assert_eq!(deleted.seid, established.seid);
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn association_release_publishes_session_ends() {
    let mut bench = Bench::new().await;
    let client = bench.client().await;
    let association = client.associate(bench.node.local_addr()).await.unwrap();
    let session = association
        .establish(SessionRules::pdu_session(UE))
        .await
        .unwrap();
    association.release().await.unwrap();
    assert_eq!(bench.session().await.kind, SessionEventKind::Established);
    let ended = bench.session().await;
    assert_eq!(ended.kind, SessionEventKind::Ended);
    assert_eq!(ended.seid, session.remote_seid());
    bench.system.shutdown(Duration::from_secs(1)).await;
}
