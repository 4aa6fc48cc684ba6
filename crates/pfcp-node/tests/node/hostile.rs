//! A node among untrusted peers.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use strowger::ActorSystem;
use strowger_pfcp::association::{NodeName, Recovery};
use strowger_pfcp::endpoint::{BodyBuilder, DiscardReason, message};
use strowger_pfcp::ie::{Cause, PdrId, Precedence, UpdatePdr};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::{Frame, Header, IeType, Message, MessageType, Seid, Sequence};
use strowger_pfcp_node::{
    Client, ClientConfig, Node, NodeConfig, NodeHandle, Session, SessionRules,
};
use tokio::net::UdpSocket;

async fn node(change: impl FnOnce(&mut NodeConfig)) -> (ActorSystem, NodeHandle) {
    let system = ActorSystem::new("test").unwrap();
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    change(&mut config);
    let node = Node::start(&system, config).await.unwrap();
    (system, node)
}

/// A peer that sends arbitrary bytes from a loopback address of its own.
struct Peer {
    socket: UdpSocket,
    sequence: u32,
}

impl Peer {
    async fn new(host: u8, to: SocketAddr) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 0, host), 0))
            .await
            .unwrap();
        socket.connect(to).await.unwrap();
        Self {
            socket,
            sequence: 0,
        }
    }

    fn next(&mut self) -> Sequence {
        self.sequence += 1;
        Sequence::new(self.sequence)
    }

    async fn send(&self, bytes: &[u8]) {
        self.socket.send(bytes).await.unwrap();
    }

    /// Waits for the next datagram.
    async fn receive(&self) -> Vec<u8> {
        let mut buffer = vec![0; 65_535];
        let received = self.socket.recv(&mut buffer);
        let length = tokio::time::timeout(Duration::from_secs(60), received)
            .await
            .unwrap();
        buffer.truncate(length.unwrap());
        buffer
    }

    /// Sends a heartbeat and waits for the answer, which shows that everything before it was
    /// handled.
    async fn heartbeat(&mut self) {
        let header = Header::node(MessageType::HEARTBEAT_REQUEST, self.next());
        let body = BodyBuilder::new().recovery(Recovery(1));
        self.send(&message(&header, body.as_slice()).unwrap()).await;
        loop {
            let answer = self.receive().await;
            let frame = Frame::decode(&answer).unwrap();
            let fits = frame.header.sequence == header.sequence;
            if fits && frame.header.message_type == MessageType::HEARTBEAT_RESPONSE {
                return;
            }
        }
    }

    async fn associate(&mut self, name: &str) -> Cause {
        self.associate_since(name, 1).await
    }

    /// Associates as a node with this start time.
    async fn associate_since(&mut self, name: &str, start: usize) -> Cause {
        let header = Header::node(MessageType::ASSOCIATION_SETUP_REQUEST, self.next());
        let start = Recovery(u32::try_from(start).unwrap());
        let body = BodyBuilder::new()
            .node(&NodeName::from_fqdn(name).unwrap())
            .recovery(start);
        self.send(&message(&header, body.as_slice()).unwrap()).await;
        loop {
            let answer = self.receive().await;
            if Frame::decode(&answer).unwrap().header.sequence == header.sequence {
                return cause_of(&answer);
            }
        }
    }

    async fn session_request(&mut self, kind: MessageType, seid: Seid, body: &[u8]) -> Vec<u8> {
        let header = Header::session(kind, seid, self.next());
        self.send(&message(&header, body).unwrap()).await;
        self.receive().await
    }
}

fn cause_of(bytes: &[u8]) -> Cause {
    let frame = Frame::decode(bytes).unwrap();
    let cause = frame
        .tlvs()
        .map(Result::unwrap)
        .find(|tlv| tlv.ie == IeType::CAUSE)
        .unwrap();
    Cause(cause.value[0])
}

fn naming() -> SessionModificationRequest {
    let update = UpdatePdr::new(PdrId(2)).precedence(Precedence(255));
    SessionModificationRequest::new().update_pdrs([update])
}

fn body_of(request: SessionModificationRequest) -> Vec<u8> {
    Message::session(Seid(0), Sequence::new(0), request)
        .encode()
        .unwrap()
        .split_off(16)
}

fn discarded(node: &NodeHandle, kind: DiscardReason) -> u64 {
    let discarded = node.stats().discarded;
    discarded.iter().find(|(one, _)| *one == kind).unwrap().1
}

#[tokio::test]
async fn a_peer_that_is_not_allowed_is_discarded_unanswered() {
    let (_system, node) = node(|config| config.peers = vec!["127.0.0.1/32".parse().unwrap()]).await;
    let mut stranger = Peer::new(9, node.local_addr()).await;
    let mut friend = Peer::new(1, node.local_addr()).await;
    let header = Header::node(MessageType::HEARTBEAT_REQUEST, stranger.next());
    let body = BodyBuilder::new().recovery(Recovery(1));
    stranger
        .send(&message(&header, body.as_slice()).unwrap())
        .await;
    friend.heartbeat().await;
    assert_eq!(discarded(&node, DiscardReason::UnknownPeer), 1);
    assert!(stranger.socket.try_recv(&mut [0; 64]).is_err());
}

#[tokio::test]
async fn an_oversized_datagram_is_discarded() {
    let (_system, node) = node(|config| config.limits.datagram = 1000).await;
    let mut peer = Peer::new(7, node.local_addr()).await;
    peer.send(&[0x20; 1001]).await;
    peer.send(&[0x20; 60_000]).await;
    peer.heartbeat().await;
    assert_eq!(discarded(&node, DiscardReason::Oversized), 2);
    assert_eq!(discarded(&node, DiscardReason::Malformed), 0);
}

#[tokio::test]
async fn malformed_datagrams_are_counted_and_harmless() {
    let (_system, node) = node(|_| {}).await;
    let mut peer = Peer::new(7, node.local_addr()).await;
    for bytes in [
        &b"\x20"[..],
        &[0x20, 50, 0xff, 0xff, 0, 0, 0, 0],
        &[0; 3],
        &[0x21; 15],
        b"hello",
    ] {
        peer.send(bytes).await;
    }
    peer.heartbeat().await;
    assert!(
        discarded(&node, DiscardReason::Malformed) >= 4,
        "{:?}",
        node.stats()
    );
}

#[tokio::test]
async fn another_peer_cannot_touch_a_session() {
    let (system, node) = node(|_| {}).await;
    let client = Client::bind(&system, ClientConfig::default())
        .await
        .unwrap();
    let association = client.associate(node.local_addr()).await.unwrap();
    let ue: IpAddr = "10.45.0.9".parse().unwrap();
    let session = association
        .establish(SessionRules::pdu_session(ue))
        .await
        .unwrap();

    let mut thief = Peer::new(7, node.local_addr()).await;
    assert_eq!(
        thief.associate("thief.example.org").await,
        Cause::REQUEST_ACCEPTED
    );
    let seid = session.remote_seid();
    for (kind, body) in [
        (MessageType::SESSION_MODIFICATION_REQUEST, body_of(naming())),
        (MessageType::SESSION_DELETION_REQUEST, Vec::new()),
    ] {
        let answer = thief.session_request(kind, seid, &body).await;
        assert_eq!(cause_of(&answer), Cause::SESSION_CONTEXT_NOT_FOUND);
        assert_eq!(Frame::decode(&answer).unwrap().header.seid, Some(Seid(0)));
    }
    session.modify(naming()).await.unwrap();
}

#[tokio::test]
async fn a_node_id_of_another_address_is_refused() {
    let (_system, node) = node(|_| {}).await;
    let mut first = Peer::new(7, node.local_addr()).await;
    let mut second = Peer::new(8, node.local_addr()).await;
    assert_eq!(
        first.associate("smf.example.org").await,
        Cause::REQUEST_ACCEPTED
    );
    assert_eq!(
        second.associate("smf.example.org").await,
        Cause::REQUEST_REJECTED
    );
    assert_eq!(
        first.associate("smf.example.org").await,
        Cause::REQUEST_ACCEPTED
    );
}

#[tokio::test]
async fn retransmitted_request_runs_once_and_gets_same_bytes() {
    let (_system, node) = node(|_| {}).await;
    let mut peer = Peer::new(7, node.local_addr()).await;
    assert_eq!(
        peer.associate("smf.example.org").await,
        Cause::REQUEST_ACCEPTED
    );
    let request = establishment(7, peer.next());
    let mut answers = Vec::new();
    for _ in 0..3 {
        peer.send(&request).await;
        answers.push(peer.receive().await);
    }
    assert_eq!(cause_of(&answers[0]), Cause::REQUEST_ACCEPTED);
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    assert_eq!(node.stats().established, 1);
}

/// An establishment that a client would send.
fn establishment(number: u8, sequence: Sequence) -> Vec<u8> {
    let ue: IpAddr = Ipv4Addr::new(10, 60, 0, number).into();
    let rules = SessionRules::with_tunnel(1000 + u32::from(number), Ipv4Addr::LOCALHOST, ue);
    let node = strowger_pfcp::ie::NodeId::fqdn("smf.example.org");
    let f_seid = (Seid(number.into()), IpAddr::from([127, 0, 0, 7]));
    let request = strowger_pfcp::message::SessionEstablishmentRequest::new(node, f_seid)
        .create_pdrs(rules.pdrs().to_vec())
        .create_fars(rules.fars().to_vec());
    Message::session(Seid(0), sequence, request)
        .encode()
        .unwrap()
}

/// A small random number generator, so that a failure can be reproduced.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes[at] = u8::try_from(random.below(256)).unwrap(),
            1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes.truncate(at.max(1)),
            3 => bytes.insert(at, 0xff),
            4 => {
                let copy = bytes[at..].to_vec();
                bytes.extend(copy);
            }
            _ => _ = bytes.remove(at),
        }
        if bytes.is_empty() {
            bytes.push(0x20);
        }
    }
}

/// The resident memory of this process, in kibibytes.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

async fn accepts(session: &Session) {
    session.modify(naming()).await.unwrap();
}

/// Sends random mutations of valid messages, and one valid establishment after every hundred. Their
/// number is that of `STROWGER_HOSTILE`, or else a few thousand; with a hundred thousand and no
/// other test beside it, memory must stay constant.
#[tokio::test]
async fn mutated_messages_are_harmless() {
    let mutations: usize =
        std::env::var("STROWGER_HOSTILE").map_or(4000, |text| text.parse().unwrap());
    // The cache of responses must be full before memory can stay constant.
    let (system, node) = node(|config| config.limits.response_cache = 1000).await;
    let client = Client::bind(&system, ClientConfig::default())
        .await
        .unwrap();
    let association = client.associate(node.local_addr()).await.unwrap();
    let ue: IpAddr = "10.45.0.9".parse().unwrap();
    let held = association
        .establish(SessionRules::pdu_session(ue))
        .await
        .unwrap();

    let mut peer = Peer::new(7, node.local_addr()).await;
    assert_eq!(
        peer.associate("smf.example.org").await,
        Cause::REQUEST_ACCEPTED
    );
    // The SEID of the first session that the peer establishes.
    let own = Seid(held.remote_seid().0 + 1);
    let seeds: Vec<Vec<u8>> = vec![
        establishment(200, Sequence::new(1)),
        message(
            &Header::session(
                MessageType::SESSION_MODIFICATION_REQUEST,
                own,
                Sequence::new(1),
            ),
            &body_of(naming()),
        )
        .unwrap(),
        message(
            &Header::node(MessageType::HEARTBEAT_REQUEST, Sequence::new(1)),
            BodyBuilder::new().recovery(Recovery(1)).as_slice(),
        )
        .unwrap(),
    ];
    let mut random = Random(1);
    let mut middle = None;
    let rounds = mutations.div_ceil(100);
    for round in 0..rounds {
        if round % 50 == 0 {
            // Many mutations are valid messages: this ends the sessions that they established.
            let again = peer.associate_since("smf.example.org", 2 + round).await;
            assert_eq!(again, Cause::REQUEST_ACCEPTED);
        }
        if round == rounds / 2 {
            middle = resident();
        }
        for _ in 0..100 {
            let mut bytes = seeds[random.below(seeds.len())].clone();
            mutate(&mut random, &mut bytes);
            peer.send(&bytes).await;
        }
        let ue: IpAddr = Ipv4Addr::new(10, 61, 0, 1).into();
        let rules = SessionRules::with_tunnel(0x7fff_0005, Ipv4Addr::LOCALHOST, ue);
        let valid = association.establish(rules).await.unwrap();
        valid.delete().await.unwrap();
        // Discards the answers to the mutations.
        while peer.socket.try_recv(&mut [0; 2048]).is_ok() {}
    }
    accepts(&held).await;
    let again = peer.associate_since("smf.example.org", 2 + rounds).await;
    assert_eq!(again, Cause::REQUEST_ACCEPTED);
    let restarts = system.find("/node/n4").unwrap().info().restarts;
    assert_eq!((restarts, node.stats().restored), (0, 0));
    if let (true, Some(middle), Some(end)) = (mutations >= 100_000, middle, resident()) {
        assert!(
            end <= middle + middle / 50,
            "{middle} KiB at half time, {end} KiB at the end"
        );
    }
}
