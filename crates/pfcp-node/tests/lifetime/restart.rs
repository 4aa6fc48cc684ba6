//! The signs of a peer's restart that end its sessions.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use strowger::{Accepts, Actor, Context};
use strowger_pfcp::association::Recovery;
use strowger_pfcp::endpoint::{BodyBuilder, answer_header, message};
use strowger_pfcp::ie::Cause;
use strowger_pfcp::{Frame, Header, MessageType, Seid, Sequence};
use strowger_pfcp_node::{NodeHandle, PeerRestartEvent, SessionFilter};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::peer::{Bench, GUARD, Peer, T1, cause, established, establishment};

const SESSIONS: u64 = 50;

/// Forwards restarts from the topic to the test.
struct Listener(UnboundedSender<Arc<PeerRestartEvent>>);

struct Heard(Arc<PeerRestartEvent>);

impl Accepts<Arc<PeerRestartEvent>> for Heard {
    fn wrap(restart: Arc<PeerRestartEvent>) -> Self {
        Self(restart)
    }
}

impl Actor for Listener {
    type Msg = Heard;
    type Args = UnboundedSender<Arc<PeerRestartEvent>>;
    type Error = Infallible;

    async fn pre_start(args: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(args))
    }

    async fn handle(
        &mut self,
        Heard(restart): Heard,
        _: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        let _ = self.0.send(restart);
        Ok(())
    }
}

impl Peer {
    /// Sends a heartbeat with a stamp from this socket.
    pub(crate) async fn beats(&mut self, stamp: u32) {
        let body = BodyBuilder::new().recovery(Recovery(stamp));
        let kind = MessageType::HEARTBEAT_REQUEST;
        let answer = self.ask(kind, Seid(0), body.as_slice()).await;
        let answered = Frame::decode(&answer).unwrap().header.message_type;
        assert_eq!(answered, MessageType::HEARTBEAT_RESPONSE);
    }

    /// Answers the next heartbeat of the node with a stamp.
    pub(crate) async fn answers(&mut self, stamp: u32) {
        let asked = self.asked().await;
        let request = Frame::decode(&asked).unwrap().header;
        assert_eq!(request.message_type, MessageType::HEARTBEAT_REQUEST);
        let body = BodyBuilder::new().recovery(Recovery(stamp));
        let answer = message(&answer_header(&request, None), body.as_slice()).unwrap();
        self.socket.send(&answer).await.unwrap();
    }
}

async fn until(what: impl Fn() -> bool) {
    let waited = tokio::time::timeout(GUARD, async {
        while !what() {
            tokio::task::yield_now().await;
        }
    });
    waited.await.unwrap();
}

fn sessions(node: &NodeHandle) -> usize {
    node.sessions(&SessionFilter::default()).len()
}

/// A node with sessions of a peer that started at 7.
async fn peer_of(bench: &Bench) -> Peer {
    let mut peer = bench.peer(2).await;
    peer.set_up(7).await;
    for seid in 1..=SESSIONS {
        peer.establish(seid, 1_000_000).await;
    }
    peer
}

#[tokio::test]
async fn spoofed_heartbeat_ends_no_session() {
    let bench = Bench::new().await;
    let mut peer = peer_of(&bench).await;
    // Another socket of the same host.
    let mut other = bench.peer(2).await;
    other.beats(99).await;
    assert_eq!(sessions(&bench.node), 50);
    // It may also answer requests to the peer: such answers are ignored.
    let forged = Header::node(MessageType::HEARTBEAT_RESPONSE, Sequence::new(1));
    let body = BodyBuilder::new().recovery(Recovery(99));
    let forged = message(&forged, body.as_slice()).unwrap();
    other.socket.send(&forged).await.unwrap();
    peer.answers(7).await;
    until(|| bench.node.stats().restarts_denied == 1).await;
    // A flood of them costs one request per T1.
    for stamp in 100..200 {
        other.beats(stamp).await;
    }
    let questions = tokio::time::timeout(T1, async {
        loop {
            peer.answers(7).await;
        }
    });
    assert!(questions.await.is_err());
    other.beats(300).await;
    assert_eq!(
        (sessions(&bench.node), bench.node.stats().restarts),
        (50, 0)
    );
    assert_eq!(bench.node.associations()[0].recovery, 7);
    bench.end().await;
}

#[tokio::test]
async fn heartbeat_restart_ends_sessions_after_confirmation() {
    let bench = Bench::new().await;
    let (sender, mut heard) = unbounded_channel();
    let listener = bench.system.spawn::<Listener>("listener", sender).unwrap();
    let listener = listener.recipient::<Arc<PeerRestartEvent>>();
    bench
        .system
        .subscribe(PeerRestartEvent::TOPIC, listener)
        .unwrap();
    let mut peer = peer_of(&bench).await;
    peer.beats(8).await;
    assert_eq!(sessions(&bench.node), 50, "it is not confirmed yet");
    peer.answers(8).await;
    until(|| sessions(&bench.node) == 0).await;
    until(|| bench.node.stats().restarts == 1).await;
    assert_eq!(bench.node.associations()[0].recovery, 8);
    let heard = heard.recv().await.unwrap();
    assert_eq!((heard.before, heard.now, heard.sessions), (7, 8, 50));
    assert_eq!(heard.peer, peer.socket.local_addr().unwrap());
    // Messages with older stamps arrived late.
    peer.establish(1, 1_000_000).await;
    peer.beats(7).await;
    assert!(peer.asked.is_empty());
    assert_eq!(sessions(&bench.node), 1);
    bench.end().await;
}

#[tokio::test]
async fn restart_in_the_answer_to_a_heartbeat_is_confirmed_as_well() {
    let bench = Bench::with(|config| config.timers.heartbeat = Duration::from_millis(200)).await;
    let mut peer = peer_of(&bench).await;
    peer.answers(8).await;
    peer.answers(8).await;
    until(|| sessions(&bench.node) == 0).await;
    until(|| bench.node.stats().restarts == 1).await;
    bench.end().await;
}

/// The peer does not answer, so only the path is known to be broken, and the sessions stay.
#[tokio::test]
async fn unconfirmed_restart_claim_ends_no_session() {
    let bench = Bench::new().await;
    let mut peer = peer_of(&bench).await;
    peer.beats(8).await;
    assert!(!peer.hears().await.is_empty());
    assert_eq!(
        (sessions(&bench.node), bench.node.stats().restarts),
        (50, 0)
    );
    // The peer is asked again when it is back.
    peer.asked.clear();
    peer.beats(8).await;
    peer.answers(8).await;
    until(|| sessions(&bench.node) == 0).await;
    bench.end().await;
}

#[tokio::test]
async fn confirmed_stamp_change_ends_sessions() {
    let bench = Bench::new().await;
    let mut peer = peer_of(&bench).await;
    peer.beats(8).await;
    peer.answers(9).await;
    until(|| sessions(&bench.node) == 0).await;
    assert_eq!(bench.node.associations()[0].recovery, 9);
    bench.end().await;
}

#[tokio::test]
async fn stamp_change_is_ignored_when_only_setup_counts() {
    let table = "restarts = { \"127.0.0.2\" = \"association-setup\" }";
    let bench = Bench::with(|config| config.peer = toml::from_str(table).unwrap()).await;
    let mut peer = peer_of(&bench).await;
    for stamp in 8..28 {
        peer.beats(stamp).await;
    }
    assert!(peer.asked.is_empty(), "the peer is not asked");
    until(|| bench.node.stats().stamps_ignored == 20).await;
    assert_eq!(bench.node.stats().restarts, 0);
    assert_eq!(sessions(&bench.node), 50);
    peer.set_up(7).await;
    assert_eq!(sessions(&bench.node), 50, "the same setup again");
    peer.set_up(30).await;
    assert_eq!(sessions(&bench.node), 0);
    until(|| bench.node.stats().restarts == 1).await;
    bench.end().await;
}

#[tokio::test]
async fn setup_with_later_stamp_ends_sessions_immediately() {
    let bench = Bench::new().await;
    let mut peer = peer_of(&bench).await;
    peer.set_up(8).await;
    assert_eq!(sessions(&bench.node), 0);
    until(|| bench.node.stats().restarts == 1).await;
    assert!(peer.asked.is_empty(), "the peer is not asked");
    bench.end().await;
}

/// An establishment of the earlier incarnation arrives after the restart was noticed; the new
/// incarnation does not know the session, and may use its identifier.
#[tokio::test]
async fn late_established_session_ends_with_next_setup() {
    let bench = Bench::new().await;
    let mut peer = bench.peer(2).await;
    peer.set_up(7).await;
    peer.beats(8).await;
    peer.answers(8).await;
    until(|| bench.node.stats().restarts == 1).await;
    peer.establish(1, 600).await;
    peer.report(1).await;
    peer.set_up(8).await;
    peer.asked.clear();
    assert_eq!(sessions(&bench.node), 0);
    peer.establish(1, 1_000_000).await;
    peer.hears_nothing().await;
    // The twin: repeating the same setup keeps the sessions established since.
    peer.set_up(8).await;
    assert_eq!((sessions(&bench.node), bench.node.stats().restarts), (1, 1));
    bench.end().await;
}

/// A peer whose sequence numbers and session identifiers start from the same values with each of
/// its incarnations, as open5gs and free5gc do.
#[tokio::test]
async fn restarted_peer_may_send_the_same_bytes_again() {
    for by_heartbeat in [false, true] {
        let bench = Bench::new().await;
        let mut peer = bench.peer(2).await;
        peer.set_up(7).await;
        let kind = MessageType::SESSION_ESTABLISHMENT_REQUEST;
        let header = Header::session(kind, Seid(0), Sequence::new(50));
        let establish = message(&header, &establishment(peer.name, 1, 1_000_000, 1)).unwrap();
        let first = peer.exchange(&establish).await;
        assert_eq!(peer.exchange(&establish).await, first, "one incarnation");
        if by_heartbeat {
            peer.beats(8).await;
            peer.answers(8).await;
            until(|| bench.node.stats().restarts == 1).await;
        } else {
            peer.set_up(8).await;
        }
        let second = peer.exchange(&establish).await;
        assert_ne!(established(&second), established(&first));
        assert!(bench.node.session(established(&second)).is_some());
        assert_eq!(peer.exchange(&establish).await, second);
        assert_eq!(sessions(&bench.node), 1);

        let name = BodyBuilder::new().node(&peer.name.into());
        let header = Header::node(MessageType::ASSOCIATION_RELEASE_REQUEST, Sequence::new(51));
        let release = message(&header, name.as_slice()).unwrap();
        for stamp in [9, 10] {
            peer.set_up(stamp).await;
            let released = peer.exchange(&release).await;
            assert_eq!(cause(&released), Cause::REQUEST_ACCEPTED);
            assert_eq!(bench.node.associations(), []);
        }
        bench.end().await;
    }
}
