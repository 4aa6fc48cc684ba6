//! A node, and a peer that uses its identifiers again as soon as it may.
//!
//! It answers no report unless a test does, and reads the socket in the order in which the node
//! wrote to it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use strowger::ActorSystem;
use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{Elements, answer_header, message};
use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, CreatePdr, CreateUrr, DestinationInterface, FSeid,
    ForwardingParameters, FqCsid, Ie, MeasurementMethod, NodeId, Pdi, Precedence,
    ReportingTriggers, SourceInterface, UrrId, VolumeThreshold,
};
use strowger_pfcp::message::{Body, SessionDeletionResponse, SessionEstablishmentRequest};
use strowger_pfcp::usage::{Arrival, Detector, Tally, Traffic};
use strowger_pfcp::{Frame, Header, IeType, Message, MessageType, Seid, Sequence};
use strowger_pfcp_node::{DataPath, Node, NodeConfig, NodeHandle, NodeParts, Span};
use tokio::net::UdpSocket;

pub(crate) const T1: Duration = Duration::from_millis(100);
pub(crate) const N1: u32 = 4;
/// All retransmissions of a request, the pause before it is told again, and those that follow.
pub(crate) const LONG: Duration = Duration::from_millis(2000);
/// The peer's own pause before it asks again.
const AGAIN: Duration = Duration::from_millis(500);
/// A guard against hanging.
pub(crate) const GUARD: Duration = Duration::from_secs(60);

/// One packet of 1000 bytes that each rule of a session detects soon after the start.
#[derive(Debug)]
struct Burst(Instant);

impl DataPath for Burst {
    fn traffic(&self, _: Seid, detectors: &[Detector], span: Span) -> Vec<(Instant, Traffic)> {
        if self.0 <= span.after || self.0 > span.until {
            return Vec::new();
        }
        let packet = |one: &Detector| (self.0, packet_of(one));
        detectors.iter().map(packet).collect()
    }

    fn next(&self, _: Seid, _: &[Detector], after: Instant) -> Option<Instant> {
        (self.0 > after).then_some(self.0)
    }
}

/// One packet of 1000 bytes.
pub(crate) fn packet_of(detector: &Detector) -> Traffic {
    Traffic {
        pdr: detector.pdr,
        packets: 1,
        octets: 1000,
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

    /// A node over a data path.
    pub(crate) async fn over(
        system: ActorSystem,
        data_path: Arc<dyn DataPath>,
        change: impl FnOnce(&mut NodeConfig),
    ) -> Self {
        let mut config = NodeConfig::default();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        (config.timers.t1, config.timers.n1) = (T1, N1);
        config.timers.heartbeat = Duration::ZERO;
        change(&mut config);
        let mut parts = NodeParts::default();
        parts.data_path = Some(data_path);
        let node = Node::start_with(&system, config, parts).await.unwrap();
        Self { system, node }
    }

    pub(crate) async fn peer(&self, host: u8) -> Peer {
        let address = Ipv4Addr::new(127, 0, 0, host);
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
    /// What the node asked for and nobody has looked at.
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

    /// Sends a request and returns its answer; what the node asks for meanwhile is kept.
    pub(crate) async fn ask(&mut self, kind: MessageType, seid: Seid, body: &[u8]) -> Vec<u8> {
        self.ask_every(GUARD, kind, seid, body).await
    }

    /// Sends a request, again after each pause in which no answer came.
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
            let Some(octets) = self.receive(pause.saturating_sub(sent.elapsed())).await else {
                self.socket.send(&request).await.unwrap();
                sent = Instant::now();
                continue;
            };
            let got = Frame::decode(&octets).unwrap().header;
            if got.message_type.is_request() {
                self.asked.push(octets);
            } else if got.sequence == sequence {
                return octets;
            }
        }
    }

    pub(crate) async fn set_up(&mut self, stamp: u32) {
        let body = Elements::new()
            .node(&self.name.into())
            .recovery(Recovery(stamp));
        let kind = MessageType::ASSOCIATION_SETUP_REQUEST;
        let answer = self.ask(kind, Seid(0), body.as_slice()).await;
        assert_eq!(cause(&answer), Cause::REQUEST_ACCEPTED);
    }

    /// Establishes a session that the peer calls `seid`, whose usage is told after so many bytes;
    /// returns the identifier that the node gives it.
    pub(crate) async fn establish(&mut self, seid: u64, octets: u64) -> Seid {
        self.establish_with(seid, octets, 1).await
    }

    /// Establishes a session whose packets are counted by so many rules.
    pub(crate) async fn establish_with(&mut self, seid: u64, octets: u64, urrs: u32) -> Seid {
        let body = establishment(self.name, seid, octets, urrs);
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        // A node that is still starting actors anew lets the peer ask again.
        let answer = self.ask_every(AGAIN, kind, Seid(0), &body).await;
        assert_eq!(cause(&answer), Cause::REQUEST_ACCEPTED);
        let frame = Frame::decode(&answer).unwrap();
        let mut tlvs = frame.tlvs().map(Result::unwrap);
        let own = tlvs.find(|tlv| tlv.ie == IeType::F_SEID).unwrap();
        FSeid::decode(own.value).unwrap().seid.into()
    }

    /// The next request of the node.
    pub(crate) async fn asked(&mut self) -> Vec<u8> {
        match self.asked.is_empty() {
            true => self.receive(GUARD).await.unwrap(),
            false => self.asked.remove(0),
        }
    }

    /// The next report of the session that the peer calls `seid`, which must be about usage.
    pub(crate) async fn report(&mut self, seid: u64) -> (Vec<u8>, Tally) {
        let octets = self.asked().await;
        let report = Message::decode(&octets).unwrap();
        assert_eq!(report.header.seid, Some(Seid(seid)));
        let Body::SessionReportRequest(report) = report.body else {
            panic!("not a report");
        };
        let mut tally = Tally::default();
        for usage in &report.usage_reports {
            assert_eq!(tally.add(usage), Arrival::New);
        }
        (octets, tally)
    }

    /// What the node asks for from now on, for a time in which it would repeat all that it may.
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
        let octets = self.asked().await;
        let header = Frame::decode(&octets).unwrap().header;
        assert_eq!(header.message_type, MessageType::SESSION_REPORT_REQUEST);
        header.seid.unwrap()
    }

    /// Fails if the node asks for anything.
    pub(crate) async fn hears_nothing(&self) {
        let heard = self.hears().await;
        let told: Vec<_> = heard
            .iter()
            .map(|octets| Message::decode(octets).unwrap().to_string())
            .collect();
        assert!(told.is_empty(), "{told:#?}");
    }

    pub(crate) async fn answer(&self, request: &[u8], seid: Seid, cause: Cause) {
        let request = Frame::decode(request).unwrap().header;
        let body = Elements::new().cause(cause);
        let answer = message(&answer_header(&request, Some(seid)), body.as_slice()).unwrap();
        self.socket.send(&answer).await.unwrap();
    }

    pub(crate) async fn delete(&mut self, seid: Seid) -> SessionDeletionResponse {
        let kind = MessageType::SESSION_DELETION_REQUEST;
        let answer = self.ask(kind, seid, &[]).await;
        // What came before the answer was sent before it.
        self.asked.clear();
        match Message::decode(&answer).unwrap().body {
            Body::SessionDeletionResponse(answer) => *answer,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn release(&mut self) {
        let body = Elements::new().node(&self.name.into());
        let kind = MessageType::ASSOCIATION_RELEASE_REQUEST;
        let answer = self.ask(kind, Seid(0), body.as_slice()).await;
        assert_eq!(cause(&answer), Cause::REQUEST_ACCEPTED);
        self.asked.clear();
    }
}

pub(crate) fn cause(octets: &[u8]) -> Cause {
    let frame = Frame::decode(octets).unwrap();
    let mut tlvs = frame.tlvs().map(Result::unwrap);
    Cause(tlvs.find(|tlv| tlv.ie == IeType::CAUSE).unwrap().value[0])
}

/// The body of an establishment: one rule for packets from the user, and so many that count them.
fn establishment(name: IpAddr, seid: u64, octets: u64, urrs: u32) -> Vec<u8> {
    let forward = ForwardingParameters::new(DestinationInterface::CORE);
    let far = CreateFar::new(1, ApplyAction::FORW).forwarding_parameters(forward);
    let pdr = CreatePdr::new(1, Pdi::new(SourceInterface::ACCESS))
        .precedence(Precedence(255))
        .far_id(1)
        .urr_ids((1..=urrs).map(UrrId).collect::<Vec<_>>());
    let urr = |id| {
        CreateUrr::new(id, MeasurementMethod::VOLUM, ReportingTriggers::VOLTH)
            .volume_threshold(VolumeThreshold::total(octets))
    };
    let set = FqCsid::of(Ipv4Addr::LOCALHOST.into(), &[7]);
    let body = SessionEstablishmentRequest::new(NodeId::from(name), FSeid::new(Seid(seid), name))
        .create_pdrs([pdr])
        .create_fars([far])
        .create_urrs((1..=urrs).map(urr).collect::<Vec<_>>());
    let octets = Message::session(Seid(0), Sequence::new(0), body)
        .encode()
        .unwrap();
    let mut body = octets[16..].to_vec();
    set.encode_into(&mut body).unwrap();
    body
}
