//! Usage reports of a live node to a client that answers them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger::ActorSystem;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, CreateUrr, FarId, MeasurementMethod, PdrId, PfcpsmreqFlags,
    ReportType, ReportingTriggers, UpdateFar, UpdateForwardingParameters, UrrId, VolumeQuota,
    VolumeThreshold,
};
use strowger_pfcp::message::{Body, SessionModificationRequest, SessionReportRequest};
use strowger_pfcp::usage::{DetectionRule, PacketBurst, ReportArrival, UsageTotals};
use strowger_pfcp::{Frame, Header, IeType, MessageType, Seid, Sequence};
use strowger_pfcp_node::{
    Client, ClientConfig, DataPath, DataPathKind, Node, NodeConfig, NodeHandle, NodeParts,
    ReportPort, Session, SessionReport, SessionRules, SimulatedTraffic, TimeSpan, TrafficModel,
};
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

const UE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 45, 0, 9));

/// A data path with `count` packets of `bytes` bytes for each detector, one per millisecond.
#[derive(Debug)]
struct Portions {
    start: Instant,
    count: u64,
    bytes: u64,
}

impl Portions {
    /// The time of a packet by its number.
    fn at(&self, place: u64) -> Instant {
        self.start + Duration::from_millis(place)
    }
}

impl DataPath for Portions {
    fn traffic(
        &self,
        _: Seid,
        detectors: &[DetectionRule],
        span: TimeSpan,
    ) -> Vec<(Instant, PacketBurst)> {
        let mut traffic = Vec::new();
        for place in 1..=self.count {
            let at = self.at(place);
            if at <= span.after || at > span.until {
                continue;
            }
            traffic.extend(detectors.iter().map(|one| {
                let portion = PacketBurst {
                    pdr: one.pdr,
                    packets: 1,
                    bytes: self.bytes,
                    events: 0,
                };
                (at, portion)
            }));
        }
        traffic
    }

    fn next(&self, _: Seid, _: &[DetectionRule], after: Instant) -> Option<Instant> {
        (1..=self.count)
            .map(|place| self.at(place))
            .find(|at| *at > after)
    }
}

struct Bench {
    system: ActorSystem,
    node: NodeHandle,
    client: Client,
    reports: UnboundedReceiver<SessionReport>,
    tally: UsageTotals,
}

mod collector {
    use std::convert::Infallible;

    use strowger::{Accepts, Actor, Context};
    use strowger_pfcp_node::SessionReport;
    use tokio::sync::mpsc::UnboundedSender;

    /// Forwards reports from the client to the test.
    pub(crate) struct Collector(UnboundedSender<SessionReport>);

    pub(crate) struct Msg(SessionReport);

    impl Accepts<SessionReport> for Msg {
        fn wrap(report: SessionReport) -> Self {
            Self(report)
        }
    }

    impl Actor for Collector {
        type Msg = Msg;
        type Args = UnboundedSender<SessionReport>;
        type Error = Infallible;

        async fn pre_start(
            args: UnboundedSender<SessionReport>,
            _: &mut Context<Self>,
        ) -> Result<Self, Infallible> {
            Ok(Self(args))
        }

        async fn handle(
            &mut self,
            Msg(report): Msg,
            _: &mut Context<Self>,
        ) -> Result<(), Infallible> {
            // A test that is finished no longer listens.
            let _ = self.0.send(report);
            Ok(())
        }
    }
}

/// The rules of a session whose packets these URRs count.
fn counted(urrs: Vec<CreateUrr>) -> SessionRules {
    let ids: Vec<UrrId> = urrs.iter().map(|urr| urr.urr_id).collect();
    let plain = SessionRules::pdu_session(UE);
    let mut rules = SessionRules::new();
    for pdr in plain.pdrs() {
        rules = rules.pdr(pdr.clone().urr_ids(ids.clone()));
    }
    for far in plain.fars() {
        rules = rules.far(far.clone());
    }
    urrs.into_iter().fold(rules, SessionRules::urr)
}

impl Bench {
    async fn new(path: impl DataPath) -> Self {
        let mut parts = NodeParts::default();
        parts.data_path = Some(Arc::new(path));
        Self::of(parts, |_| {}).await
    }

    async fn of(parts: NodeParts, change: impl FnOnce(&mut NodeConfig)) -> Self {
        let system = ActorSystem::new("test").unwrap();
        let mut config = NodeConfig::default();
        config.peer.report_port = ReportPort::Source;
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        config.timers.t1 = Duration::from_millis(100);
        config.timers.n1 = 100;
        change(&mut config);
        let node = Node::start_with(&system, config, parts).await.unwrap();
        let (sender, reports) = unbounded_channel();
        let collector = system
            .spawn::<collector::Collector>("collector", sender)
            .unwrap();
        let mut config = ClientConfig::default();
        config.t1 = Duration::from_millis(100);
        config.n1 = 300;
        config.reports = Some(collector.recipient());
        let client = Client::bind(&system, config).await.unwrap();
        Self {
            system,
            node,
            client,
            reports,
            tally: UsageTotals::default(),
        }
    }

    async fn establish(&self, rules: SessionRules) -> Session {
        let association = self.client.associate(self.node.local_addr()).await.unwrap();
        association.establish(rules).await.unwrap()
    }

    /// The next report; its usage is counted.
    async fn report(&mut self) -> SessionReportRequest {
        let report = self.reports.recv().await.unwrap();
        let Body::SessionReportRequest(request) = report.message().unwrap().body else {
            panic!("not a report");
        };
        for usage in &request.usage_reports {
            assert_ne!(self.tally.add(usage), ReportArrival::Repeated);
        }
        *request
    }

    /// Deletes the session and counts the usage in the answer, which repeats the reports in flight.
    async fn delete(&mut self, session: Session) {
        let answer = session.delete().await.unwrap();
        for usage in &answer.usage_reports {
            self.tally.add(usage);
        }
    }
}

fn threshold(bytes: u64) -> CreateUrr {
    CreateUrr::new(1, MeasurementMethod::VOLUM, ReportingTriggers::VOLTH)
        .volume_threshold(VolumeThreshold::total(bytes))
}

#[tokio::test]
async fn volume_threshold_is_reported_and_remainder_on_deletion() {
    let path = Portions {
        start: Instant::now() + Duration::from_millis(100),
        count: 20,
        bytes: 100,
    };
    let mut bench = Bench::new(path).await;
    let session = bench.establish(counted(vec![threshold(1000)])).await;
    while bench.tally.bytes(UrrId(1)).0 < 1500 {
        let request = bench.report().await;
        assert_eq!(request.report_type, ReportType::USAR);
    }
    bench.delete(session).await;
    // Reports that were in flight when the session ended may arrive after the answer.
    while bench.tally.missing() > 0 {
        bench.report().await;
    }
    let (up, down) = bench.tally.bytes(UrrId(1));
    assert_eq!(bench.node.stats().usage.forwarded, up + down);
    assert!((1500..=2000).contains(&up), "{up}");
    assert_eq!(bench.node.stats().usage.metered, 0);
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn session_panic_loses_no_counted_usage() {
    let path = Portions {
        start: Instant::now() + Duration::from_millis(100),
        count: 50,
        bytes: 100,
    };
    let mut bench = Bench::new(path).await;
    let session = bench.establish(counted(vec![threshold(2000)])).await;
    let query = || SessionModificationRequest::new().pfcpsmreq_flags(PfcpsmreqFlags::QAURR);
    while bench.node.stats().usage.forwarded < 10_000 {
        let _ = bench.node.panic_session(session.remote_seid(), "drill");
        let answer = session.modify(query()).await.unwrap();
        for usage in &answer.usage_reports {
            assert_ne!(bench.tally.add(usage), ReportArrival::Repeated);
        }
    }
    bench.delete(session).await;
    while bench.tally.missing() > 0 || bench.tally.bytes(UrrId(1)) != (5000, 5000) {
        bench.report().await;
    }
    assert!(bench.node.stats().restored > 0);
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn exhausted_quota_is_reported_and_new_grant_resumes_traffic() {
    let path = Portions {
        start: Instant::now() + Duration::from_millis(100),
        count: u64::from(u16::MAX),
        bytes: 10,
    };
    let mut bench = Bench::new(path).await;
    let urr = CreateUrr::new(1, MeasurementMethod::VOLUM, ReportingTriggers::VOLQU)
        .volume_quota(VolumeQuota::total(100));
    let session = bench.establish(counted(vec![urr])).await;
    let first = bench.report().await;
    assert_eq!(first.usage_reports.len(), 1);
    assert_eq!(bench.tally.bytes(UrrId(1)), (50, 50));
    let update = strowger_pfcp::ie::UpdateUrr::new(1).volume_quota(VolumeQuota::total(60));
    let grant = SessionModificationRequest::new().update_urrs([update]);
    session.modify(grant).await.unwrap();
    bench.report().await;
    assert_eq!(bench.tally.bytes(UrrId(1)), (80, 80));
    assert!(bench.node.stats().usage.dropped > 0 || bench.node.stats().usage.forwarded == 160);
    bench.delete(session).await;
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn buffered_packets_are_reported_and_forwarded_after_paging() {
    let path = Portions {
        start: Instant::now() + Duration::from_millis(100),
        count: 3,
        bytes: 10,
    };
    let mut bench = Bench::new(path).await;
    let mut rules = SessionRules::new();
    let plain = SessionRules::pdu_session(UE);
    for pdr in plain.pdrs() {
        rules = rules.pdr(pdr.clone());
    }
    let waits = CreateFar::new(FarId(2), ApplyAction::BUFF | ApplyAction::NOCP);
    let rules = rules.far(plain.fars()[0].clone()).far(waits);
    let session = bench.establish(rules).await;
    let request = bench.report().await;
    assert_eq!(request.report_type, ReportType::DLDR);
    assert!(request.downlink_data_report.is_some());
    while bench.node.stats().usage.buffered < 30 {
        tokio::task::yield_now().await;
    }
    let found = UpdateFar::new(FarId(2))
        .apply_action(ApplyAction::FORW)
        .update_forwarding_parameters(UpdateForwardingParameters::new());
    let page = SessionModificationRequest::new().update_fars([found]);
    session.modify(page).await.unwrap();
    bench.delete(session).await;
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test]
async fn simulated_traffic_is_fully_reported() {
    let simulated = |config: &mut NodeConfig| {
        config.data_path.kind = DataPathKind::Simulated;
        config.data_path.uplink = 1_000_000;
        config.data_path.downlink = 2_000_000;
        config.data_path.tick = Duration::from_millis(10);
    };
    let mut bench = Bench::of(NodeParts::default(), simulated).await;
    let session = bench.establish(counted(vec![threshold(20_000)])).await;
    while bench.tally.reports(UrrId(1)) < 3 {
        bench.report().await;
    }
    bench.delete(session).await;
    let passed = bench.node.stats().usage.forwarded;
    let told = |bench: &Bench| {
        let (up, down) = bench.tally.bytes(UrrId(1));
        up + down
    };
    while told(&bench) < passed {
        bench.report().await;
    }
    assert_eq!((told(&bench), bench.tally.missing()), (passed, 0));
    bench.system.shutdown(Duration::from_secs(1)).await;
}

#[test]
fn simulated_traffic_is_independent_of_query_steps() {
    let start = Instant::now();
    let model = TrafficModel {
        seed: 7,
        uplink: 3_000,
        downlink: 5_000_000,
        packet: 1200,
        tick: Duration::from_millis(100),
    };
    let path = SimulatedTraffic::new(start, model);
    let detectors = [(1, true), (2, false), (3, false)].map(|(pdr, uplink)| DetectionRule {
        pdr: PdrId(pdr),
        uplink,
    });
    for seid in [1, 2, 0xffff_ffff].map(Seid) {
        let end = start + Duration::from_secs(7);
        let whole = TimeSpan {
            after: start,
            until: end,
        };
        let whole = path.traffic(seid, &detectors, whole);
        assert!(whole.is_sorted_by_key(|(at, _)| *at));
        let (mut after, mut parts) = (start, Vec::new());
        for step in (1..).map(|step| Duration::from_micros(step * 977)) {
            let until = (after + step).min(end);
            parts.extend(path.traffic(seid, &detectors, TimeSpan { after, until }));
            after = until;
            if until == end {
                break;
            }
        }
        assert_eq!(parts, whole);
        assert!(path.next(seid, &detectors, start).is_some());
        assert_eq!(path.next(seid, &[], start), None);
    }
}

/// A user plane behind a plain socket, with one session of a client.
struct RawUserPlane {
    socket: UdpSocket,
    /// The SEID of the client.
    seid: Seid,
    sequence: u32,
}

impl RawUserPlane {
    /// Lets a client set up an association and a session; the session must be kept.
    async fn with_session(client: &Client) -> (Self, Session) {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let accepted = || {
            BodyBuilder::new()
                .with(IeType::NODE_ID, &[0, 127, 0, 0, 1])
                .cause(Cause::REQUEST_ACCEPTED)
        };
        let f_seid = [2, 0, 0, 0, 0, 0, 0, 0, 9, 127, 0, 0, 1];
        let bodies = [
            accepted().with(IeType::RECOVERY_TIME_STAMP, &[0, 0, 0, 1]),
            accepted().with(IeType::F_SEID, &f_seid),
        ];
        let answers = async {
            let mut seid = Seid(0);
            for body in bodies {
                let mut buffer = vec![0; 65_536];
                let (length, from) = socket.recv_from(&mut buffer).await.unwrap();
                socket.connect(from).await.unwrap();
                let frame = Frame::decode(&buffer[..length]).unwrap();
                let mut tlvs = frame.tlvs().map(Result::unwrap);
                if let Some(tlv) = tlvs.find(|tlv| tlv.ie == IeType::F_SEID) {
                    seid = Seid(u64::from_be_bytes(*tlv.value[1..].first_chunk().unwrap()));
                }
                let header = answer_header(&frame.header, frame.header.seid.map(|_| seid));
                let answer = message(&header, body.as_slice()).unwrap();
                socket.send(&answer).await.unwrap();
            }
            seid
        };
        let session = async {
            let association = client.associate(address).await.unwrap();
            let rules = SessionRules::pdu_session(UE);
            association.establish(rules).await.unwrap()
        };
        let (seid, session) = tokio::join!(answers, session);
        let sequence = 100;
        (
            Self {
                socket,
                seid,
                sequence,
            },
            session,
        )
    }

    /// Sends a report; returns SEID, Cause and Offending IE of the answer.
    async fn report(&mut self, body: &[u8]) -> (Option<Seid>, Cause, Option<Vec<u8>>) {
        self.sequence += 1;
        let kind = MessageType::SESSION_REPORT_REQUEST;
        let header = Header::session(kind, self.seid, Sequence::new(self.sequence));
        let report = message(&header, body).unwrap();
        self.socket.send(&report).await.unwrap();
        let mut buffer = vec![0; 65_536];
        loop {
            let length = self.socket.recv(&mut buffer).await.unwrap();
            let frame = Frame::decode(&buffer[..length]).unwrap();
            if frame.header.message_type != MessageType::SESSION_REPORT_RESPONSE
                || frame.header.sequence != Sequence::new(self.sequence)
            {
                continue;
            }
            let value = |ie| {
                let mut tlvs = frame.tlvs().map(Result::unwrap);
                tlvs.find(|tlv| tlv.ie == ie).map(|tlv| tlv.value.to_vec())
            };
            let cause = Cause(value(IeType::CAUSE).unwrap()[0]);
            return (frame.header.seid, cause, value(IeType::OFFENDING_IE));
        }
    }
}

const USAR: &[u8] = &[0, 39, 0, 1, 2];

/// A Usage Report with these elements.
fn usage_report(elements: &[&[u8]]) -> Vec<u8> {
    let group = BodyBuilder::new().with(IeType::USAGE_REPORT_REQUEST, &elements.concat());
    [USAR, group.as_slice()].concat()
}

const URR_ID: &[u8] = &[0, 81, 0, 4, 0, 0, 0, 1];
const UR_SEQN: &[u8] = &[0, 104, 0, 4, 0, 0, 0, 0];
const TRIGGER: &[u8] = &[0, 63, 0, 3, 2, 0, 0];

#[tokio::test]
async fn client_refuses_malformed_reports_and_keeps_the_session() {
    let system = ActorSystem::new("test").unwrap();
    let (sender, mut reports) = unbounded_channel();
    let collector = system.spawn::<collector::Collector>("collector", sender);
    let mut config = ClientConfig::default();
    config.reports = Some(collector.unwrap().recipient());
    let client = Client::bind(&system, config).await.unwrap();
    let (mut upf, _session) = RawUserPlane::with_session(&client).await;
    let malformed = [
        ("no Report Type", Vec::new()),
        ("empty Report Type", vec![0, 39, 0, 0]),
        ("USAR without Usage Report", USAR.to_vec()),
        ("DLDR without Downlink Data Report", vec![0, 39, 0, 1, 1]),
        ("no URR ID", usage_report(&[UR_SEQN, TRIGGER])),
        ("no UR-SEQN", usage_report(&[URR_ID, TRIGGER])),
        ("no trigger", usage_report(&[URR_ID, UR_SEQN])),
        (
            "short URR ID",
            usage_report(&[&[0, 81, 0, 2, 0, 1], UR_SEQN, TRIGGER]),
        ),
        ("element of no length", usage_report(&[URR_ID, &[0, 104]])),
    ];
    for (defect, body) in malformed {
        let (seid, cause, offending) = upf.report(&body).await;
        assert_eq!(seid, Some(Seid(9)), "{defect}");
        assert!((66..=69).contains(&cause.0), "{defect}: {cause}");
        assert!(offending.is_some(), "{defect}: {cause}");
    }
    let sound = usage_report(&[URR_ID, UR_SEQN, TRIGGER]);
    let (_, cause, _) = upf.report(&sound).await;
    assert_eq!(cause, Cause::REQUEST_ACCEPTED);
    let taken = reports.try_recv();
    let taken = match taken {
        Ok(report) => report,
        Err(_) => reports.recv().await.unwrap(),
    };
    assert_eq!(taken.bytes[16..], sound, "no other report was passed on");
    system.shutdown(Duration::from_secs(10)).await;
}

mod stuck {
    use std::convert::Infallible;
    use std::sync::Arc;

    use strowger::{Accepts, Actor, Context, MailboxSpec};
    use strowger_pfcp_node::SessionReport;
    use tokio::sync::Semaphore;

    /// Takes a report for each permit.
    pub(crate) struct Stuck(Arc<Semaphore>);

    pub(crate) struct Msg;

    impl Accepts<SessionReport> for Msg {
        fn wrap(_: SessionReport) -> Self {
            Self
        }
    }

    impl Actor for Stuck {
        type Msg = Msg;
        type Args = Arc<Semaphore>;
        type Error = Infallible;

        const MAILBOX: MailboxSpec = MailboxSpec::bounded(1);

        async fn pre_start(
            permits: Arc<Semaphore>,
            _: &mut Context<Self>,
        ) -> Result<Self, Infallible> {
            Ok(Self(permits))
        }

        async fn handle(&mut self, _: Msg, _: &mut Context<Self>) -> Result<(), Infallible> {
            if let Ok(permit) = self.0.acquire().await {
                permit.forget();
            }
            Ok(())
        }
    }
}

/// Cause 1 would make the user plane forget usage that its recipient had no room for.
#[tokio::test]
async fn client_acknowledges_usage_only_when_its_recipient_has_it() {
    let system = ActorSystem::new("test").unwrap();
    let permits = Arc::new(Semaphore::new(0));
    let stuck = system.spawn::<stuck::Stuck>("stuck", Arc::clone(&permits));
    let mut config = ClientConfig::default();
    config.reports = Some(stuck.unwrap().recipient());
    let client = Client::bind(&system, config).await.unwrap();
    let (mut upf, _session) = RawUserPlane::with_session(&client).await;
    let body = usage_report(&[URR_ID, UR_SEQN, TRIGGER]);
    let mut taken = 0;
    loop {
        match upf.report(&body).await.1 {
            Cause::REQUEST_ACCEPTED => taken += 1,
            cause => {
                assert_eq!(cause, Cause::CONGESTION);
                break;
            }
        }
    }
    assert!(
        (1..=2).contains(&taken),
        "one in work and one waiting: {taken}"
    );
    permits.add_permits(100);
    while upf.report(&body).await.1 != Cause::REQUEST_ACCEPTED {}
    system.shutdown(Duration::from_secs(10)).await;
}
