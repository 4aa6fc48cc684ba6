//! The address and port that session reports are sent to.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use strowger_pfcp::association::NodeName;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::{Cause, FSeid};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::{Frame, Message, MessageType, Seid, Sequence};
use strowger_pfcp_node::{NodeConfig, ReportPort};
use tokio::net::UdpSocket;

use crate::peer::{Bench, GUARD, Peer, cause, establishment};

/// The port of PFCP.
const PFCP: u16 = 8805;

/// A host for this test, on which no other test process has the port.
fn host(number: u8) -> IpAddr {
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, 100 + number, high, low).into()
}

fn report_port(text: &str) -> impl FnOnce(&mut NodeConfig) {
    let read: NodeConfig = toml::from_str(&format!("[peer]\nreport_port = {text}")).unwrap();
    move |config| config.peer.report_port = read.peer.report_port
}

/// Receives a report and accepts it.
async fn accept_report(socket: &UdpSocket, session: Seid) -> Seid {
    let mut buffer = [0; 2000];
    let received = tokio::time::timeout(GUARD, socket.recv_from(&mut buffer)).await;
    let (length, node) = received.expect("a report").unwrap();
    let header = Frame::decode(&buffer[..length]).unwrap().header;
    assert_eq!(header.message_type, MessageType::SESSION_REPORT_REQUEST);
    let body = BodyBuilder::new().cause(Cause::REQUEST_ACCEPTED);
    let answer = message(&answer_header(&header, Some(session)), body.as_slice());
    socket.send_to(&answer.unwrap(), node).await.unwrap();
    header.seid.unwrap()
}

impl Peer {
    /// Establishes a session whose CP F-SEID has another address than the peer's requests.
    async fn establish_at(&mut self, host: IpAddr, seid: u64) -> Seid {
        let body = establishment(host, seid, 1000, 1);
        // The Node ID comes first, and is that of the association.
        let length = 4 + NodeName::from(host).value().len();
        let body = BodyBuilder::new()
            .node(&self.name.into())
            .bytes(&body[length..]);
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let answer = self.ask(kind, Seid(0), body.as_slice()).await;
        crate::peer::established(&answer)
    }
}

async fn delivered(bench: &Bench) {
    let accepted = async {
        while bench.node.stats().usage.reports == 0 {
            tokio::task::yield_now().await;
        }
    };
    let accepted = tokio::time::timeout(Duration::from_secs(10), accepted).await;
    accepted.expect("the report is accepted");
}

/// TS 29.244 §4.3.2 and §4.2.2: to the address of the CP F-SEID, and to port 8805, from whichever
/// port the peer sends its own requests.
#[tokio::test]
async fn report_goes_to_the_cp_f_seid_and_the_registered_port() {
    let bench = Bench::with(report_port("8805")).await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let reports = UdpSocket::bind((host(1), PFCP)).await.unwrap();
    let session = peer.establish_at(host(1), 7).await;
    assert_eq!(accept_report(&reports, session).await, Seid(7));
    delivered(&bench).await;
    peer.hears_nothing().await;
    bench.end().await;
}

/// Also one that waits for its answer.
#[tokio::test]
async fn report_follows_the_cp_f_seid_of_a_modification() {
    let bench = Bench::with(report_port("8805")).await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let (old, new) = (
        UdpSocket::bind((host(2), PFCP)).await.unwrap(),
        UdpSocket::bind((host(3), PFCP)).await.unwrap(),
    );
    let session = peer.establish_at(host(2), 7).await;
    let mut buffer = [0; 2000];
    let first = tokio::time::timeout(GUARD, old.recv(&mut buffer)).await;
    assert!(first.is_ok(), "the report comes to the old address first");
    let moved = SessionModificationRequest::new().cp_f_seid(FSeid::new(Seid(7), host(3)));
    let bytes = Message::session(session, Sequence::new(0), moved).encode();
    let kind = MessageType::SESSION_MODIFICATION_REQUEST;
    let answer = peer.ask(kind, session, &bytes.unwrap()[16..]).await;
    assert_eq!(cause(&answer), Cause::REQUEST_ACCEPTED);
    assert_eq!(accept_report(&new, session).await, Seid(7));
    delivered(&bench).await;
    bench.end().await;
}

#[tokio::test]
async fn report_port_is_configurable() {
    let reports = UdpSocket::bind((host(4), 0)).await.unwrap();
    let port = reports.local_addr().unwrap().port();
    let bench = Bench::with(report_port(&port.to_string())).await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let session = peer.establish_at(host(4), 7).await;
    assert_eq!(accept_report(&reports, session).await, Seid(7));
    bench.end().await;
}

/// The port of a host that has sent nothing is not known.
#[tokio::test]
async fn source_port_is_that_of_the_association_alone() {
    let bench = Bench::with(report_port("\"source\"")).await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let reports = UdpSocket::bind((host(5), PFCP)).await.unwrap();
    let session = peer.establish_at(host(5), 7).await;
    assert_eq!(accept_report(&reports, session).await, Seid(7));
    delivered(&bench).await;
    peer.establish(8, 1_000_000).await;
    bench.end().await;
}

/// A peer cannot have reports sent to a host that is no peer.
#[tokio::test]
async fn report_address_must_be_allowed() {
    let bench = Bench::with(|config| {
        config.peers = vec!["127.0.0.0/24".parse().unwrap()];
        config.peer.report_port = ReportPort::Source;
    })
    .await;
    let mut peer = bench.peer(2).await;
    peer.set_up(1).await;
    let elsewhere = UdpSocket::bind((host(6), PFCP)).await.unwrap();
    peer.establish_at(host(6), 7).await;
    let refused = bench.node.stats().claims_refused;
    assert!(refused.contains(&("report_address", 1)), "{refused:?}");
    let bytes = peer.asked().await;
    let header = Frame::decode(&bytes).unwrap().header;
    assert_eq!(header.message_type, MessageType::SESSION_REPORT_REQUEST);
    let mut buffer = [0; 10];
    let wrong = tokio::time::timeout(Duration::from_millis(300), elsewhere.recv(&mut buffer)).await;
    assert!(wrong.is_err(), "a host that is not allowed gets a report");
    bench.end().await;
}
