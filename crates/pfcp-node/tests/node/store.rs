//! A node whose process ends and starts again, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{Actor, ActorSystem, Context};
use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::{Cause, PdrId, Precedence, UpdatePdr};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::{Message, MessageType, Seid, Sequence};
use strowger_pfcp_node::{
    Client, ClientConfig, Durability, Node, NodeConfig, NodeError, NodeHandle, SessionFilter,
    SessionInfo, SessionRules, StateLost, StoreError,
};

/// One incarnation of a node; the contents of the directory outlive it.
struct NodeRun {
    system: ActorSystem,
    node: NodeHandle,
}

impl NodeRun {
    async fn begin(config: &NodeConfig) -> Self {
        let system = ActorSystem::new("life").unwrap();
        let node = Node::start(&system, config.clone()).await.unwrap();
        Self { system, node }
    }

    async fn end(self) {
        self.node.stop().await;
        self.system.shutdown(Duration::from_secs(60)).await;
    }

    fn listed(&self) -> Vec<(SessionInfo, Option<Vec<u8>>)> {
        let sessions = self.node.sessions(&SessionFilter::default());
        let with_rules = |info: SessionInfo| {
            let rules = self.node.rules(info.seid);
            (info, rules)
        };
        sessions.into_iter().map(with_rules).collect()
    }
}

fn config(folder: &Path, durability: Durability) -> NodeConfig {
    let mut config = NodeConfig::default();
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    config.store.path = Some(folder.join("store"));
    config.store.durability = durability;
    config.store.reserve = 1 << 20;
    config
}

/// A client that retransmits soon, and for long enough on a slow machine.
async fn client(system: &ActorSystem) -> Client {
    let mut config = ClientConfig::default();
    config.t1 = Duration::from_millis(100);
    config.n1 = 300;
    Client::bind(system, config).await.unwrap()
}

fn ue(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 46, 0, number).into()
}

fn precedence(value: u32) -> SessionModificationRequest {
    let update = UpdatePdr::new(PdrId(2)).precedence(Precedence(value));
    SessionModificationRequest::new().update_pdrs([update])
}

#[tokio::test]
async fn acknowledged_state_survives_restart() {
    for durability in [Durability::Process, Durability::Disk] {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path(), durability);
        let peers = ActorSystem::new("peers").unwrap();
        let client = client(&peers).await;

        let life = NodeRun::begin(&config).await;
        let recovery = life.node.recovery();
        let association = client.associate(life.node.local_addr()).await.unwrap();
        let mut sessions = Vec::new();
        for number in 1..=20 {
            let rules = SessionRules::pdu_session(ue(number));
            sessions.push(association.establish(rules).await.unwrap());
        }
        for session in &sessions[..10] {
            session.modify(precedence(9)).await.unwrap();
        }
        for session in sessions.drain(..5) {
            session.delete().await.unwrap();
        }
        let before = life.listed();
        assert_eq!(before.len(), 15);
        life.end().await;

        let life = NodeRun::begin(&config).await;
        assert_eq!(life.node.recovery(), recovery);
        assert_eq!(life.node.store().loss, None);
        assert_eq!(life.listed(), before);
        assert_eq!(life.node.associations().len(), 1);
        // The peer has not restarted, so its sessions stay, and it continues to use them.
        let association = client.associate(life.node.local_addr()).await.unwrap();
        assert_eq!(life.listed(), before);
        for (info, _) in &before {
            let body = bytes(precedence(7));
            let answer = association
                .send(MessageType::SESSION_MODIFICATION_REQUEST, info.seid, &body)
                .await
                .unwrap();
            assert_eq!(cause(&answer.encode().unwrap()), Cause::REQUEST_ACCEPTED);
        }
        // Identifiers and addresses of existing sessions are not allocated again.
        let new = association
            .establish(SessionRules::pdu_session(ue(99)))
            .await
            .unwrap();
        assert!(before.iter().all(|(info, _)| info.seid < new.remote_seid()));
        life.end().await;
        peers.shutdown(Duration::from_secs(60)).await;
    }
}

fn bytes(request: SessionModificationRequest) -> Vec<u8> {
    let message = Message::session(Seid(0), Sequence::new(0), request);
    let mut bytes = message.encode().unwrap();
    bytes.drain(..message.header.encoded_len());
    bytes
}

fn cause(answer: &[u8]) -> Cause {
    let frame = strowger_pfcp::Frame::decode(answer).unwrap();
    let mut tlvs = frame.tlvs().filter_map(Result::ok);
    let cause = tlvs.find(|tlv| tlv.ie == strowger_pfcp::IeType::CAUSE);
    Cause(cause.unwrap().value[0])
}

/// A peer that sends arbitrary bytes and reads the answers.
struct RawPeer(UdpSocket);

impl RawPeer {
    fn new() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self(socket)
    }

    async fn ask(&self, to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
        let (socket, bytes) = (self.0.try_clone().unwrap(), bytes.to_vec());
        let exchange = move || {
            socket.send_to(&bytes, to).unwrap();
            let mut answer = vec![0; 65_536];
            let length = socket.recv(&mut answer).unwrap();
            answer.truncate(length);
            answer
        };
        tokio::task::spawn_blocking(exchange).await.unwrap()
    }
}

fn setup(sequence: u32, stamp: u32) -> Vec<u8> {
    use strowger_pfcp::Header;
    use strowger_pfcp::association::Recovery;
    use strowger_pfcp::endpoint::{BodyBuilder, message};
    let header = Header::node(
        MessageType::ASSOCIATION_SETUP_REQUEST,
        Sequence::new(sequence),
    );
    let name: NodeName = IpAddr::from([127, 0, 0, 1]).into();
    let body = BodyBuilder::new().node(&name).recovery(Recovery(stamp));
    message(&header, body.as_slice()).unwrap()
}

fn establishment() -> Vec<u8> {
    use strowger_pfcp::ie::{
        ApplyAction, CreateFar, CreatePdr, FSeid, FTeid, NodeId, Pdi, SourceInterface,
    };
    use strowger_pfcp::message::SessionEstablishmentRequest;
    let address = IpAddr::from([127, 0, 0, 1]);
    let pdi = Pdi::new(SourceInterface::ACCESS).local_f_teid(FTeid::choose_ipv4());
    let name = NodeId::from(address);
    let body = SessionEstablishmentRequest::new(name, FSeid::new(Seid(5), address))
        .create_pdrs([CreatePdr::new(1, pdi).far_id(1)])
        .create_fars([CreateFar::new(1, ApplyAction::DROP)]);
    let establish = Message::session(Seid(0), Sequence::new(2), body);
    establish.encode().unwrap()
}

#[tokio::test]
async fn retransmission_across_restart_gets_same_bytes() {
    use strowger_pfcp::message::SessionDeletionRequest;
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path(), Durability::Process);
    let life = NodeRun::begin(&config).await;
    let node = life.node.local_addr();
    config.listen = vec![node];
    let peer = RawPeer::new();
    peer.ask(node, &setup(1, 1)).await;
    let establish = establishment();
    let first = peer.ask(node, &establish).await;
    assert_eq!(cause(&first), Cause::REQUEST_ACCEPTED);
    let seid = life.listed()[0].0.seid;
    let delete = Message::session(seid, Sequence::new(3), SessionDeletionRequest::new());
    let delete = delete.encode().unwrap();
    life.end().await;

    let life = NodeRun::begin(&config).await;
    assert_eq!(peer.ask(node, &establish).await, first);
    assert_eq!(life.listed().len(), 1);
    let deleted = peer.ask(node, &delete).await;
    assert_eq!(cause(&deleted), Cause::REQUEST_ACCEPTED);
    life.end().await;

    let life = NodeRun::begin(&config).await;
    assert_eq!(peer.ask(node, &delete).await, deleted);
    assert_eq!(peer.ask(node, &establish).await, first);
    assert_eq!(life.listed().len(), 0);
    assert_eq!(life.node.stats().repeated, 2);
    life.end().await;
}

/// The peer restarts first, and the node before the peer sends the same bytes again.
#[tokio::test]
async fn stored_response_ends_with_the_incarnation_of_its_peer() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(folder.path(), Durability::Process);
    let life = NodeRun::begin(&config).await;
    let node = life.node.local_addr();
    config.listen = vec![node];
    let (peer, establish) = (RawPeer::new(), establishment());
    peer.ask(node, &setup(1, 1)).await;
    let first = peer.ask(node, &establish).await;
    peer.ask(node, &setup(1, 2)).await;
    life.end().await;

    let life = NodeRun::begin(&config).await;
    let second = peer.ask(node, &establish).await;
    assert_eq!(cause(&second), Cause::REQUEST_ACCEPTED);
    assert_ne!(second, first);
    assert_eq!(life.listed().len(), 1);
    life.end().await;

    let life = NodeRun::begin(&config).await;
    assert_eq!(peer.ask(node, &establish).await, second);
    life.end().await;
}

#[tokio::test]
async fn store_is_locked_and_foreign_folder_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), Durability::Process);
    let life = NodeRun::begin(&config).await;
    let other = ActorSystem::new("other").unwrap();
    let error = Node::start(&other, config.clone()).await.unwrap_err();
    assert!(
        matches!(error, NodeError::Store(StoreError::Locked { .. })),
        "{error}"
    );
    life.end().await;
    NodeRun::begin(&config).await.end().await;

    let format = folder.path().join("store/format");
    let newer = "strowger store 2";
    let sum = xxhash_rust::xxh3::xxh3_64(newer.as_bytes());
    std::fs::write(&format, format!("{newer}\n{sum:016x}\n")).unwrap();
    let error = Node::start(&other, config.clone()).await.unwrap_err();
    assert!(error.to_string().contains("has format 2"), "{error}");
    std::fs::remove_file(&format).unwrap();
    let error = Node::start(&other, config.clone()).await.unwrap_err();
    assert!(error.to_string().contains("is not a store"), "{error}");
}

/// Collects the messages that it receives.
struct Listener(Arc<Mutex<Vec<Arc<StateLost>>>>);

impl Actor for Listener {
    type Msg = Arc<StateLost>;
    type Args = Arc<Mutex<Vec<Arc<StateLost>>>>;
    type Error = Infallible;

    async fn pre_start(heard: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(heard))
    }

    async fn handle(
        &mut self,
        lost: Arc<StateLost>,
        cx: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        self.0.lock().push(lost);
        cx.stop();
        Ok(())
    }
}

#[tokio::test]
async fn node_reports_lost_state() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), Durability::Process);
    let peers = ActorSystem::new("peers").unwrap();
    let client = client(&peers).await;
    let life = NodeRun::begin(&config).await;
    let before = life.node.recovery();
    let association = client.associate(life.node.local_addr()).await.unwrap();
    for number in 1..=9 {
        let rules = SessionRules::pdu_session(ue(number));
        association.establish(rules).await.unwrap();
    }
    life.end().await;
    let journal = folder.path().join("store/db/0.jnl");
    let mut bytes = std::fs::read(&journal).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap();
    bytes.truncate(end - 400);
    std::fs::write(&journal, bytes).unwrap();

    let system = ActorSystem::new("life").unwrap();
    let heard = Arc::<Mutex<Vec<_>>>::default();
    let listener = system
        .spawn::<Listener>("listener", Arc::clone(&heard))
        .unwrap();
    let recipient = listener.recipient::<Arc<StateLost>>();
    system.subscribe(StateLost::TOPIC, recipient).unwrap();
    let node = Node::start(&system, config).await.unwrap();
    listener.stopped().await;
    let heard = heard.lock().clone();
    assert_eq!(heard.len(), 1);
    assert_eq!(heard[0].recovery, node.recovery());
    assert_ne!(node.recovery(), before);
    assert!(heard[0].loss.groups_missing > 0, "{:?}", heard[0]);
    assert!((7..9).contains(&node.sessions(&SessionFilter::default()).len()));
}

/// The facts of `kind` in the text file beside a fixture, each split at its tabs.
fn facts<'a>(text: &'a str, kind: &str) -> Vec<Vec<&'a str>> {
    let lines = text.lines().map(|line| line.split('\t').collect());
    let mut facts: Vec<Vec<&str>> = lines.collect();
    facts.retain(|fact| fact[0] == kind);
    facts
}

#[tokio::test]
async fn store_of_earlier_build_opens_unchanged() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/stores/format-1");
    for (name, durability) in [("process", Durability::Process), ("disk", Durability::Disk)] {
        let folder = tempfile::tempdir().unwrap();
        let unpacked = std::process::Command::new("tar")
            .arg("-xzf")
            .arg(fixtures.join(format!("{name}.tar.gz")))
            .arg("-C")
            .arg(folder.path())
            .status();
        assert!(unpacked.unwrap().success());
        let text = std::fs::read_to_string(fixtures.join(format!("{name}.tsv"))).unwrap();
        let sessions = facts(&text, "session");
        assert_eq!(sessions.len(), 6);

        // The second incarnation reads what the first one rewrote.
        for _ in 0..2 {
            let life = NodeRun::begin(&config(folder.path(), durability)).await;
            assert_eq!(life.node.store().loss, None);
            let recovery = life.node.recovery().to_string();
            assert_eq!(facts(&text, "recovery"), [["recovery", &recovery]]);
            let described = life.node.pfds();
            assert_eq!(described.len(), 1);
            assert_eq!(described[0].application, "video");
            let flow = "permit out ip from 198.51.100.0/24 to assigned";
            assert!(described[0].contents[0].ends_with(flow), "{described:?}");
            let listed = life.listed();
            assert_eq!(listed.len(), sessions.len());
            for ((info, rules), fact) in listed.iter().zip(&sessions) {
                let rules = rules.as_ref().unwrap();
                let hex: String = rules.iter().map(|byte| format!("{byte:02x}")).collect();
                let (seid, peer_seid) = (info.seid.0.to_string(), info.peer_seid.0.to_string());
                assert_eq!(&fact[1..], [&seid, &peer_seid, &info.node, &hex]);
                assert!(life.system.find(info.path.as_str()).is_some(), "{info:?}");
            }
            // The session with a QER and a URR, and the session whose rules were replaced.
            assert_eq!(
                (&listed[1].0.urrs[..], &listed[1].0.qers[..]),
                (&[1][..], &[1][..])
            );
            assert_eq!(
                (&listed[4].0.pdrs[..], &listed[4].0.fars[..]),
                (&[1, 3][..], &[1, 2, 3][..])
            );
            let peers = life.node.associations();
            let peers: Vec<_> = peers
                .iter()
                .map(|peer| (&*peer.node, peer.sessions))
                .collect();
            assert_eq!(peers, [("127.0.0.2", 5), ("127.0.0.3", 1)]);
            life.end().await;
        }
    }
}
