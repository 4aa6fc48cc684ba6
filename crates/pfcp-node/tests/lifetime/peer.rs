//! A node, and a peer that reuses its identifiers as soon as it may.
//!
//! It answers no report unless a test does, and reads the socket in the order in which the node
//! wrote to it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger::ActorSystem;
use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, CreatePdr, CreateUrr, DestinationInterface, FSeid,
    ForwardingParameters, FqCsid, Ie, MeasurementMethod, NodeId, Pdi, Precedence,
    ReportingTriggers, SourceInterface, UrrId, VolumeThreshold,
};
use strowger_pfcp::message::{Body, SessionDeletionResponse, SessionEstablishmentRequest};
use strowger_pfcp::usage::{DetectionRule, PacketBurst, ReportArrival, UsageTotals};
use strowger_pfcp::{Frame, Header, IeType, Message, MessageType, Seid, Sequence};
use strowger_pfcp_node::{DataPath, Node, NodeConfig, NodeHandle, NodeParts, ReportPort, TimeSpan};
use tokio::net::UdpSocket;

pub(crate) const T1: Duration = Duration::from_millis(100);
pub(crate) const N1: u32 = 4;
/// The time for all retransmissions of a request, the pause before it is sent again, and the
/// retransmissions that follow.
pub(crate) const LONG: Duration = Duration::from_millis(2000);
/// The time after which the peer retransmits a request.
const AGAIN: Duration = Duration::from_millis(500);
/// A guard against hanging.
pub(crate) const GUARD: Duration = Duration::from_secs(30);

/// One packet of 1000 bytes that each rule of a session detects soon after the start.
#[derive(Debug)]
struct Burst(Instant);

impl DataPath for Burst {
    fn traffic(
        &self,
        _: Seid,
        detectors: &[DetectionRule],
        span: TimeSpan,
    ) -> Vec<(Instant, PacketBurst)> {
        if self.0 <= span.after || self.0 > span.until {
            return Vec::new();
        }
        let packet = |one: &DetectionRule| (self.0, packet_of(one));
        detectors.iter().map(packet).collect()
    }

    fn next(&self, _: Seid, _: &[DetectionRule], after: Instant) -> Option<Instant> {
        (self.0 > after).then_some(self.0)
    }
}

/// One packet of 1000 bytes.
pub(crate) fn packet_of(detector: &DetectionRule) -> PacketBurst {
    PacketBurst {
        pdr: detector.pdr,
        packets: 1,
        bytes: 1000,
        events: 0,
    }
}

pub(crate) struct Bench {
    pub(crate) system: ActorSystem,
    pub(crate) node: NodeHandle,
}

impl Bench {
    /// A node whose sessions see a packet half a second after the start.
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut NodeConfig)) -> Self {
        let system = ActorSystem::new("test").unwrap();
        let soon = Instant::now() + Duration::from_millis(500);
        Self::over(system, Arc::new(Burst(soon)), change).await
    }

    /// A node with this data path.
    pub(crate) async fn over(
        system: ActorSystem,
        data_path: Arc<dyn DataPath>,
        change: impl FnOnce(&mut NodeConfig),
    ) -> Self {
        let mut config = NodeConfig::default();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        (config.timers.t1, config.timers.n1) = (T1, N1);
        config.timers.heartbeat = Duration::ZERO;
        config.peer.report_port = ReportPort::Source;
        change(&mut config);
        let mut parts = NodeParts::default();
        parts.data_path = Some(data_path);
        let node = Node::start_with(&system, config, parts).await.unwrap();
        Self { system, node }
    }

    pub(crate) async fn peer(&self, host: u8) -> Peer {
        self.peer_at(Ipv4Addr::new(127, 0, 0, host)).await
    }

    pub(crate) async fn peer_at(&self, address: Ipv4Addr) -> Peer {
        let socket = UdpSocket::bind((address, 0)).await.unwrap();
        socket.connect(self.node.local_addr()).await.unwrap();
        Peer {
            socket,
            name: address.into(),
            sequence: 0,
            asked: Vec::new(),
        }
    }

    pub(crate) async fn end(self) {
        self.system.shutdown(Duration::from_secs(10)).await;
    }
}

pub(crate) struct Peer {
    pub(crate) socket: UdpSocket,
    pub(crate) name: IpAddr,
    sequence: u32,
    /// Requests of the node that no test has read yet.
    pub(crate) asked: Vec<Vec<u8>>,
}

impl Peer {
    pub(crate) async fn receive(&self, within: Duration) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 65_535];
        let received = tokio::time::timeout(within, self.socket.recv(&mut buffer)).await;
        let length = received.ok()?.unwrap();
        buffer.truncate(length);
        Some(buffer)
    }

    /// Sends a request and returns its answer; keeps the requests that the node sends meanwhile.
    pub(crate) async fn ask(&mut self, kind: MessageType, seid: Seid, body: &[u8]) -> Vec<u8> {
        self.ask_every(GUARD, kind, seid, body).await
    }

    /// Sends a request, and retransmits it after each pause without an answer.
    pub(crate) async fn ask_every(
        &mut self,
        pause: Duration,
        kind: MessageType,
        seid: Seid,
        body: &[u8],
    ) -> Vec<u8> {
        self.sequence += 1;
        let sequence = Sequence::new(self.sequence);
        let header = match kind.is_session() {
            true => Header::session(kind, seid, sequence),
            false => Header::node(kind, sequence),
        };
        let request = message(&header, body).unwrap();
        self.socket.send(&request).await.unwrap();
        let (start, mut sent) = (Instant::now(), Instant::now());
        loop {
            assert!(start.elapsed() < 2 * GUARD, "no answer to {kind}");
            let Some(bytes) = self.receive(pause.saturating_sub(sent.elapsed())).await else {
                self.socket.send(&request).await.unwrap();
                sent = Instant::now();
                continue;
            };
            let got = Frame::decode(&bytes).unwrap().header;
            if got.message_type.is_request() {
                self.asked.push(bytes);
            } else if got.sequence == sequence {
                return bytes;
            }
        }
    }

    pub(crate) async fn set_up(&mut self, stamp: u32) {
        let node = self.name.into();
        assert_eq!(self.claim(&node, stamp).await, Cause::REQUEST_ACCEPTED);
    }

    /// Sets up an association under any Node ID.
    pub(crate) async fn claim(&mut self, node: &NodeName, stamp: u32) -> Cause {
        self.claim_value(node.value(), stamp).await
    }

    /// Sets up an association under a Node ID with an arbitrary value.
    pub(crate) async fn claim_value(&mut self, node: &[u8], stamp: u32) -> Cause {
        let body = BodyBuilder::new()
            .with(IeType::NODE_ID, node)
            .recovery(Recovery(stamp));
        let kind = MessageType::ASSOCIATION_SETUP_REQUEST;
        cause(&self.ask(kind, Seid(0), body.as_slice()).await)
    }

    /// Establishes a session with the peer's identifier `seid`, whose usage is reported after
    /// `bytes` bytes; returns the node's identifier.
    pub(crate) async fn establish(&mut self, seid: u64, bytes: u64) -> Seid {
        self.establish_with(seid, bytes, 1).await
    }

    /// Establishes a session in an association with any Node ID.
    pub(crate) async fn establish_as(&mut self, node: &NodeName, seid: u64) -> Seid {
        let body = establishment(self.name, seid, 1_000_000, 1);
        // The Node ID comes first.
        let own = 4 + NodeName::from(self.name).value().len();
        let renamed = BodyBuilder::new().node(node).bytes(&body[own..]);
        self.establish_body(renamed.as_slice()).await
    }

    /// Establishes a session whose packets are counted by `urrs` rules.
    pub(crate) async fn establish_with(&mut self, seid: u64, bytes: u64, urrs: u32) -> Seid {
        let body = establishment(self.name, seid, bytes, urrs);
        self.establish_body(&body).await
    }

    async fn establish_body(&mut self, body: &[u8]) -> Seid {
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        // A node that is still restarting actors makes the peer ask again.
        let answer = self.ask_every(AGAIN, kind, Seid(0), body).await;
        established(&answer)
    }

    /// Sends bytes and returns the answer; drops the requests that the node sends meanwhile.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        self.socket.send(bytes).await.unwrap();
        loop {
            let answer = self.receive(GUARD).await.unwrap();
            let kind = Frame::decode(&answer).unwrap().header.message_type;
            if !kind.is_request() {
                return answer;
            }
        }
    }

    /// The next request of the node.
    pub(crate) async fn asked(&mut self) -> Vec<u8> {
        match self.asked.is_empty() {
            true => self.receive(GUARD).await.unwrap(),
            false => self.asked.remove(0),
        }
    }

    /// The next report of the session with the peer's identifier `seid`, which must be about usage.
    pub(crate) async fn report(&mut self, seid: u64) -> (Vec<u8>, UsageTotals) {
        let bytes = self.asked().await;
        let report = Message::decode(&bytes).unwrap();
        assert_eq!(report.header.seid, Some(Seid(seid)));
        let Body::SessionReportRequest(report) = report.body else {
            panic!("not a report");
        };
        let mut tally = UsageTotals::default();
        for usage in &report.usage_reports {
            assert_eq!(tally.add(usage), ReportArrival::New);
        }
        (bytes, tally)
    }

    /// The requests that the node sends from now on, within a time in which all retransmissions
    /// happen.
    pub(crate) async fn hears(&self) -> Vec<Vec<u8>> {
        let until = Instant::now() + LONG;
        let mut heard = Vec::new();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return heard;
            }
            heard.extend(self.receive(left).await);
        }
    }

    /// The identifier of the session that the next report is about.
    pub(crate) async fn next_reported(&mut self) -> Seid {
        let bytes = self.asked().await;
        let header = Frame::decode(&bytes).unwrap().header;
        assert_eq!(header.message_type, MessageType::SESSION_REPORT_REQUEST);
        header.seid.unwrap()
    }

    /// Fails if the node sends a request.
    pub(crate) async fn hears_nothing(&self) {
        let heard = self.hears().await;
        let told: Vec<_> = heard
            .iter()
            .map(|bytes| Message::decode(bytes).unwrap().to_string())
            .collect();
        assert!(told.is_empty(), "{told:#?}");
    }

    pub(crate) async fn answer(&self, request: &[u8], seid: Seid, cause: Cause) {
        let request = Frame::decode(request).unwrap().header;
        let body = match request.message_type.is_session() {
            true => BodyBuilder::new(),
            false => BodyBuilder::new().node(&self.name.into()),
        };
        let body = body.cause(cause);
        let answer = message(&answer_header(&request, Some(seid)), body.as_slice()).unwrap();
        self.socket.send(&answer).await.unwrap();
    }

    pub(crate) async fn delete(&mut self, seid: Seid) -> SessionDeletionResponse {
        let kind = MessageType::SESSION_DELETION_REQUEST;
        let answer = self.ask(kind, seid, &[]).await;
        // Requests that arrived before the answer were also sent before it.
        self.asked.clear();
        match Message::decode(&answer).unwrap().body {
            Body::SessionDeletionResponse(answer) => *answer,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn release(&mut self) {
        let body = BodyBuilder::new().node(&self.name.into());
        let kind = MessageType::ASSOCIATION_RELEASE_REQUEST;
        let answer = self.ask(kind, Seid(0), body.as_slice()).await;
        assert_eq!(cause(&answer), Cause::REQUEST_ACCEPTED);
        self.asked.clear();
    }
}

pub(crate) fn cause(bytes: &[u8]) -> Cause {
    let frame = Frame::decode(bytes).unwrap();
    let mut tlvs = frame.tlvs().map(Result::unwrap);
    Cause(tlvs.find(|tlv| tlv.ie == IeType::CAUSE).unwrap().value[0])
}

/// The node's identifier of the session that an answer accepts.
pub(crate) fn established(answer: &[u8]) -> Seid {
    assert_eq!(cause(answer), Cause::REQUEST_ACCEPTED);
    let frame = Frame::decode(answer).unwrap();
    let mut tlvs = frame.tlvs().map(Result::unwrap);
    let own = tlvs.find(|tlv| tlv.ie == IeType::F_SEID).unwrap();
    FSeid::decode(own.value).unwrap().seid.into()
}

/// The body of an establishment: one rule for packets from the user, counted by `urrs` rules.
pub(crate) fn establishment(name: IpAddr, seid: u64, bytes: u64, urrs: u32) -> Vec<u8> {
    let forward = ForwardingParameters::new(DestinationInterface::CORE);
    let far = CreateFar::new(1, ApplyAction::FORW).forwarding_parameters(forward);
    let pdr = CreatePdr::new(1, Pdi::new(SourceInterface::ACCESS))
        .precedence(Precedence(255))
        .far_id(1)
        .urr_ids((1..=urrs).map(UrrId).collect::<Vec<_>>());
    let urr = |id| {
        CreateUrr::new(id, MeasurementMethod::VOLUM, ReportingTriggers::VOLTH)
            .volume_threshold(VolumeThreshold::total(bytes))
    };
    let set = FqCsid::of(Ipv4Addr::LOCALHOST.into(), &[7]);
    let body = SessionEstablishmentRequest::new(NodeId::from(name), FSeid::new(Seid(seid), name))
        .create_pdrs([pdr])
        .create_fars([far])
        .create_urrs((1..=urrs).map(urr).collect::<Vec<_>>());
    let bytes = Message::session(Seid(0), Sequence::new(0), body)
        .encode()
        .unwrap();
    let mut body = bytes[16..].to_vec();
    set.encode_into(&mut body).unwrap();
    body
}
