//! A client and a load whose user plane is lost or restarted, or is reported as such by another
//! sender.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use strowger::{Accepts, Actor, ActorSystem, Context};
use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, FSeid, FarId, Ie as _, PdrId, Precedence, RemoveFar, UpdatePdr,
};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::{Frame, Header, IeType, MessageType, Seid};
use strowger_pfcp_node::{
    Association, Client, ClientConfig, ClientError, ClientEvent, Load, LoadPace, LoadPlan, Node,
    NodeConfig, NodeHandle, OnLoss, PeerLoss, Restoration, Session, SessionFilter, SessionInfo,
    SessionRules,
};
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::peer::cause;

/// A guard against hanging.
const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A user plane in this process.
struct Upf {
    system: ActorSystem,
    node: NodeHandle,
    config: NodeConfig,
}

impl Upf {
    async fn start(change: impl FnOnce(&mut NodeConfig)) -> Self {
        let mut config = NodeConfig::default();
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        change(&mut config);
        Self::with(config).await
    }

    async fn with(mut config: NodeConfig) -> Self {
        let system = ActorSystem::new("upf").unwrap();
        let node = Node::start(&system, config.clone()).await.unwrap();
        config.listen = node.local_addrs();
        Self {
            system,
            node,
            config,
        }
    }

    /// Ends the node without notifying its peers, and starts it again after a while: Recovery Time
    /// Stamps count in seconds.
    async fn restart(self, after: Duration) -> Self {
        let config = self.end().await;
        real(after).await;
        Self::with(config).await
    }

    async fn end(self) -> NodeConfig {
        self.node.stop().await;
        drop(self.node);
        self.system.shutdown(Duration::from_secs(5)).await;
        self.config
    }

    fn sessions(&self) -> Vec<SessionInfo> {
        self.node.sessions(&SessionFilter::default())
    }
}

/// Waits on the real clock, which drives time stamps and the pauses between attempts.
async fn real(time: Duration) {
    tokio::time::sleep(time).await;
}

/// Longer than a second, so that the time stamp changes.
const QUIET_PERIOD: Duration = Duration::from_millis(1200);

/// Forwards events to a test.
struct EventCollector(UnboundedSender<ClientEvent>);

#[derive(Debug)]
struct Heard(ClientEvent);

impl Accepts<ClientEvent> for Heard {
    fn wrap(event: ClientEvent) -> Self {
        Self(event)
    }
}

impl Actor for EventCollector {
    type Msg = Heard;
    type Args = UnboundedSender<ClientEvent>;
    type Error = Infallible;

    async fn pre_start(sender: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(sender))
    }

    async fn handle(&mut self, heard: Heard, _: &mut Context<Self>) -> Result<(), Infallible> {
        // A test that has ended receives nothing.
        let _ = self.0.send(heard.0);
        Ok(())
    }
}

struct Smf {
    system: ActorSystem,
    client: Client,
    events: UnboundedReceiver<ClientEvent>,
}

impl Smf {
    async fn new(change: impl FnOnce(&mut ClientConfig)) -> Self {
        let system = ActorSystem::new("smf").unwrap();
        let (sender, events) = unbounded_channel();
        let mut config = ClientConfig::default();
        config.t1 = Duration::from_millis(200);
        config.n1 = 5;
        config.heartbeat = Duration::from_millis(200);
        config.on_loss = OnLoss::Restore;
        config.restoration = quick();
        config.events = Some(
            system
                .spawn::<EventCollector>("ear", sender)
                .unwrap()
                .recipient(),
        );
        change(&mut config);
        let client = Client::bind(&system, config).await.unwrap();
        Self {
            system,
            client,
            events,
        }
    }

    /// Waits for an event, and returns all events up to it.
    async fn until(&mut self, wanted: impl Fn(&ClientEvent) -> bool) -> Vec<ClientEvent> {
        let mut all = Vec::new();
        loop {
            let next = tokio::time::timeout(TEST_TIMEOUT, self.events.recv()).await;
            let event = next.unwrap_or_else(|_| panic!("it does not come after {all:?}"));
            all.push(event.unwrap());
            if wanted(&all[all.len() - 1]) {
                return all;
            }
        }
    }

    /// Fails if an event arrives while all pending requests are answered.
    async fn hears_nothing(&mut self, for_now: Duration) {
        let next = tokio::time::timeout(for_now, self.events.recv()).await;
        assert!(next.is_err(), "{next:?}");
    }
}

fn quick() -> Restoration {
    let mut restoration = Restoration::default();
    restoration.backoff = Duration::from_millis(50);
    restoration.backoff_max = Duration::from_millis(500);
    restoration
}

fn is_done(event: &ClientEvent) -> bool {
    matches!(event, ClientEvent::RestorationDone { .. })
}

fn ue(number: u8) -> IpAddr {
    Ipv4Addr::new(10, 48, 0, number).into()
}

fn fixed(number: u8) -> SessionRules {
    let teid = 0x4000_0000 + u32::from(number);
    SessionRules::with_tunnel(teid, Ipv4Addr::LOCALHOST, ue(number))
}

/// Changes rules of `fixed` in all three ways.
async fn change(session: &Session) {
    let request = SessionModificationRequest::new()
        .create_fars([
            CreateFar::new(FarId(8), ApplyAction::DROP),
            CreateFar::new(FarId(9), ApplyAction::DROP),
        ])
        .update_pdrs([UpdatePdr::new(PdrId(2)).precedence(Precedence(77))]);
    session.modify(request).await.unwrap();
    let request = SessionModificationRequest::new().remove_fars([RemoveFar::new(FarId(8))]);
    session.modify(request).await.unwrap();
    let unsound = SessionModificationRequest::new().remove_fars([RemoveFar::new(FarId(4711))]);
    assert!(session.modify(unsound).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_are_restored_unchanged_after_upf_restart() {
    let upf = Upf::start(|_| {}).await;
    let mut smf = Smf::new(|_| {}).await;
    let association = smf.client.associate(upf.node.local_addr()).await.unwrap();
    let first = association.establish(fixed(1)).await.unwrap();
    let changed = association.establish(fixed(2)).await.unwrap();
    change(&changed).await;
    let chosen = association
        .establish(SessionRules::pdu_session(ue(3)))
        .await
        .unwrap();
    let deleted = association.establish(fixed(4)).await.unwrap();
    let forgotten = association.establish_with(fixed(5), OnLoss::Forget).await;
    let forgotten = forgotten.unwrap();
    deleted.delete().await.unwrap();
    let rules = |upf: &Upf, session: &Session| upf.node.rules(session.remote_seid()).unwrap();
    let before = [rules(&upf, &first), rules(&upf, &changed)];

    let upf = upf.restart(QUIET_PERIOD).await;
    let events = smf.until(is_done).await;
    let after = [rules(&upf, &first), rules(&upf, &changed)];
    assert_eq!(after, before);
    let sessions = upf.sessions();
    let seids: BTreeSet<Seid> = sessions.iter().map(|session| session.peer_seid).collect();
    assert_eq!(seids, [&first, &changed, &chosen].map(Session::seid).into());
    let addresses = upf.node.session(chosen.remote_seid()).unwrap().ue_addresses;
    assert_eq!(addresses, [ue(3)]);
    // The choices of the peer at this attempt are reported.
    assert_eq!(chosen.created().len(), 1);
    for session in [&first, &changed, &chosen] {
        let told = events.iter().any(|event| {
            matches!(event, ClientEvent::SessionRestored { seid, remote, .. }
                if *seid == session.seid() && *remote == session.remote_seid())
        });
        assert!(told, "{events:?}");
        assert!(session.audit().await.unwrap());
    }
    let gone = ClientEvent::SessionGone {
        seid: forgotten.seid(),
        peer: upf.node.local_addr(),
    };
    assert!(events.contains(&gone), "{events:?}");
    let error = forgotten.modify(SessionModificationRequest::new()).await;
    assert_eq!(
        error.unwrap_err().cause(),
        Some(Cause::SESSION_CONTEXT_NOT_FOUND)
    );
    let found = |event: &ClientEvent| matches!(event, ClientEvent::PeerFound { sessions: 3, .. });
    assert!(events.iter().any(found), "{events:?}");
    let stats = smf.client.stats();
    assert_eq!(
        (
            stats.sessions_lost,
            stats.sessions_restored,
            stats.sessions_gone
        ),
        (4, 3, 1)
    );
    assert_eq!(stats.peers_found, 1);
    for session in [first, changed, chosen] {
        session.delete().await.unwrap();
    }
    assert_eq!(upf.sessions(), []);
    smf.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restoration_survives_second_restart_and_keeps_rate() {
    let upf = Upf::start(|_| {}).await;
    let mut smf = Smf::new(|config| {
        config.restoration.rate = 20;
        config.restoration.in_flight = 4;
    })
    .await;
    let association = smf.client.associate(upf.node.local_addr()).await.unwrap();
    let mut sessions = Vec::new();
    for number in 1..=40 {
        sessions.push(association.establish(fixed(number)).await.unwrap());
    }
    let upf = upf.restart(QUIET_PERIOD).await;
    smf.until(|event| matches!(event, ClientEvent::SessionRestored { .. }))
        .await;
    // The rest would take two seconds.
    assert!(upf.sessions().len() < 40);
    let waiting = sessions.last().unwrap();
    let error = waiting.modify(SessionModificationRequest::new()).await;
    assert!(
        matches!(error, Err(ClientError::Restoring { .. })),
        "{error:?}"
    );
    // A session that its owner deletes is not restored.
    let unwanted = sessions.pop().unwrap();
    let error = unwanted.delete().await;
    assert!(matches!(error, Err(ClientError::Lost { .. })), "{error:?}");
    let upf = upf.restart(QUIET_PERIOD).await;
    let begun = tokio::time::Instant::now();
    smf.until(is_done).await;
    assert!(begun.elapsed() > Duration::from_millis(500), "it is paced");
    let there: BTreeSet<Seid> = upf.sessions().iter().map(|one| one.peer_seid).collect();
    assert_eq!(there, sessions.iter().map(Session::seid).collect());
    assert_eq!(upf.sessions().len(), 39);
    for session in &sessions {
        assert!(session.audit().await.unwrap());
    }
    smf.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stateful_upf_keeps_sessions_while_down() {
    let folder = tempfile::tempdir().unwrap();
    let upf = Upf::start(|config| config.store.path = Some(folder.path().to_owned())).await;
    let mut smf = Smf::new(|config| config.n1 = 2).await;
    let association = smf.client.associate(upf.node.local_addr()).await.unwrap();
    let session = association.establish(fixed(1)).await.unwrap();
    let remote = session.remote_seid();
    let upf = upf.restart(Duration::from_secs(2)).await;
    let events = smf
        .until(|event| matches!(event, ClientEvent::PeerFound { .. }))
        .await;
    let lost = ClientEvent::PeerLost {
        peer: upf.node.local_addr(),
        why: PeerLoss::Silent,
    };
    assert_eq!(events[0], lost);
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(session.audit().await.unwrap());
    assert_eq!(session.remote_seid(), remote);
    assert_eq!(smf.client.stats().sessions_lost, 0);
    smf.hears_nothing(Duration::from_millis(500)).await;
    smf.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn released_association_is_not_searched_for() {
    let upf = Upf::start(|_| {}).await;
    let mut smf = Smf::new(|_| {}).await;
    let association = smf.client.associate(upf.node.local_addr()).await.unwrap();
    association.establish(fixed(1)).await.unwrap();
    association.release().await.unwrap();
    let upf = upf.restart(QUIET_PERIOD).await;
    smf.hears_nothing(Duration::from_secs(1)).await;
    assert_eq!(
        (upf.sessions().len(), upf.node.associations().len()),
        (0, 0)
    );
    smf.system.shutdown(Duration::from_secs(1)).await;
}

/// A user plane that answers as it is told.
struct Scripted {
    socket: Arc<UdpSocket>,
    told: Arc<ScriptedAnswers>,
}

#[derive(Default)]
struct ScriptedAnswers {
    stamp: AtomicU32,
    /// The cause of answers about existing sessions; 0 stands for acceptance.
    modifications: AtomicU8,
    establishments: AtomicU8,
    /// If set, answers nothing.
    mute: AtomicBool,
    /// The type of the requests whose answers are withheld; 0 is none.
    withheld_type: AtomicU8,
    withheld: Mutex<Vec<Vec<u8>>>,
    setups: AtomicU32,
    heartbeats: AtomicU32,
    established: AtomicU32,
    /// The SEIDs of the client, by those that this peer gave its sessions.
    seids: Mutex<BTreeMap<u64, Seid>>,
}

impl Scripted {
    async fn start() -> Self {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        let told = Arc::new(ScriptedAnswers::default());
        told.stamp.store(STAMP, Ordering::Relaxed);
        let (ours, theirs) = (Arc::clone(&socket), Arc::clone(&told));
        tokio::spawn(async move {
            let mut buffer = vec![0; 65_536];
            while let Ok((length, peer)) = ours.recv_from(&mut buffer).await {
                if let Some(answer) = theirs.answer(&buffer[..length]) {
                    let _ = ours.send_to(&answer, peer).await;
                }
            }
        });
        Self { socket, told }
    }

    fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// Waits until this many answers are withheld, and returns them.
    async fn withheld(&self, count: usize) -> Vec<Vec<u8>> {
        let begun = tokio::time::Instant::now();
        while self.told.withheld.lock().unwrap().len() < count {
            assert!(begun.elapsed() < TEST_TIMEOUT, "too few requests");
            real(Duration::from_millis(5)).await;
        }
        std::mem::take(&mut *self.told.withheld.lock().unwrap())
    }

    async fn send(&self, answers: &[Vec<u8>], to: SocketAddr) {
        for answer in answers {
            self.socket.send_to(answer, to).await.unwrap();
        }
    }
}

const STAMP: u32 = 3_900_000_000;

impl ScriptedAnswers {
    fn answer(&self, request: &[u8]) -> Option<Vec<u8>> {
        let frame = Frame::decode(request).ok()?;
        let kind = frame.header.message_type;
        let get = |value: &AtomicU8| value.load(Ordering::Relaxed).max(1);
        let stamp = self.stamp.load(Ordering::Relaxed).to_be_bytes();
        let recovery = [&[0, 96, 0, 4][..], &stamp].concat();
        let node = [0, 60, 0, 5, 0, 127, 0, 0, 1];
        let mut client = frame
            .header
            .seid
            .and_then(|seid| self.seids.lock().unwrap().get(&seid.0).copied());
        let body = match kind {
            MessageType::HEARTBEAT_REQUEST => {
                self.heartbeats.fetch_add(1, Ordering::Relaxed);
                recovery
            }
            MessageType::ASSOCIATION_SETUP_REQUEST => {
                self.setups.fetch_add(1, Ordering::Relaxed);
                [&node[..], &[0, 19, 0, 1, 1], &recovery].concat()
            }
            MessageType::SESSION_ESTABLISHMENT_REQUEST => {
                let mut tlvs = frame.tlvs().map_while(Result::ok);
                let f_seid = tlvs.find(|tlv| tlv.ie == IeType::F_SEID)?;
                client = Some(FSeid::decode(f_seid.value).ok()?.seid.into());
                let cause = get(&self.establishments);
                let mut body = [&node[..], &[0, 19, 0, 1, cause]].concat();
                if cause == 1 {
                    let number = 1 + self.established.fetch_add(1, Ordering::Relaxed);
                    let number = u64::from(number);
                    self.seids
                        .lock()
                        .unwrap()
                        .extend(client.map(|client| (number, client)));
                    body.extend_from_slice(&[0, 57, 0, 13, 2]);
                    body.extend_from_slice(&number.to_be_bytes());
                    body.extend_from_slice(&[127, 0, 0, 1]);
                }
                body
            }
            kind if kind.is_request() => vec![0, 19, 0, 1, get(&self.modifications)],
            _ => return None,
        };
        if self.mute.load(Ordering::Relaxed) {
            return None;
        }
        let header = Header {
            message_type: kind.response()?,
            seid: frame.header.seid.map(|_| client.unwrap_or_default()),
            ..frame.header
        };
        let mut bytes = Vec::new();
        header.encode(body.len(), &mut bytes).ok()?;
        bytes.extend_from_slice(&body);
        if kind.0 == self.withheld_type.load(Ordering::Relaxed) {
            self.withheld.lock().unwrap().push(bytes);
            return None;
        }
        Some(bytes)
    }
}

async fn held(smf: &Smf, upf: &Scripted, count: u8) -> (Association, Vec<Session>) {
    let association = smf.client.associate(upf.address()).await.unwrap();
    let mut sessions = Vec::new();
    for number in 1..=count {
        sessions.push(association.establish(fixed(number)).await.unwrap());
    }
    (association, sessions)
}

fn heartbeat(kind: MessageType, stamp: u32, sequence: u8) -> Vec<u8> {
    let [a, b, c, d] = stamp.to_be_bytes();
    vec![
        0x20, kind.0, 0, 12, 0, 0, sequence, 0, 0, 96, 0, 4, a, b, c, d,
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spoofed_or_older_restart_claim_is_ignored() {
    let upf = Scripted::start().await;
    let mut smf = Smf::new(|_| {}).await;
    let (_association, _sessions) = held(&smf, &upf, 3).await;
    let stranger = UdpSocket::bind("127.0.0.9:0").await.unwrap();
    let to = smf.client.local_addr();
    for sequence in 0..=255 {
        for kind in [
            MessageType::HEARTBEAT_REQUEST,
            MessageType::HEARTBEAT_RESPONSE,
        ] {
            let bytes = heartbeat(kind, STAMP + 1000, sequence);
            stranger.send_to(&bytes, to).await.unwrap();
        }
    }
    // From the peer itself, but late.
    let late = heartbeat(MessageType::HEARTBEAT_REQUEST, STAMP - 1000, 7);
    upf.socket.send_to(&late, to).await.unwrap();
    upf.told.stamp.store(STAMP - 1, Ordering::Relaxed);
    let asked = upf.told.heartbeats.load(Ordering::Relaxed);
    while upf.told.heartbeats.load(Ordering::Relaxed) < asked + 3 {
        real(Duration::from_millis(20)).await;
    }
    smf.hears_nothing(Duration::from_millis(200)).await;
    assert_eq!(upf.told.setups.load(Ordering::Relaxed), 1);
    assert_eq!(upf.told.established.load(Ordering::Relaxed), 3);

    // The twin: a true restart.
    upf.told.stamp.store(STAMP + 5, Ordering::Relaxed);
    let events = smf.until(is_done).await;
    let lost = ClientEvent::PeerLost {
        peer: upf.address(),
        why: PeerLoss::Restarted(STAMP + 5),
    };
    assert_eq!(events[0], lost);
    assert_eq!(upf.told.established.load(Ordering::Relaxed), 6);
    smf.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_unknown_session_is_restored_alone() {
    let upf = Scripted::start().await;
    let mut smf = Smf::new(|_| {}).await;
    let (_association, sessions) = held(&smf, &upf, 3).await;
    upf.told.modifications.store(65, Ordering::Relaxed);
    let error = sessions[1].modify(SessionModificationRequest::new()).await;
    assert_eq!(
        error.unwrap_err().cause(),
        Some(Cause::SESSION_CONTEXT_NOT_FOUND)
    );
    upf.told.modifications.store(0, Ordering::Relaxed);
    let events = smf.until(is_done).await;
    let restored = events.iter().find_map(|event| match event {
        ClientEvent::SessionRestored { seid, .. } => Some(*seid),
        _ => None,
    });
    assert_eq!(restored, Some(sessions[1].seid()), "{events:?}");
    assert_eq!(sessions[1].remote_seid(), Seid(4));
    assert!(sessions[1].audit().await.unwrap());
    assert_eq!(upf.told.setups.load(Ordering::Relaxed), 1);
    assert_eq!(upf.told.established.load(Ordering::Relaxed), 4);
    smf.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeatedly_refused_session_is_reported_with_cause() {
    let upf = Scripted::start().await;
    let mut smf = Smf::new(|_| {}).await;
    let (_association, sessions) = held(&smf, &upf, 2).await;
    upf.told.establishments.store(75, Ordering::Relaxed);
    upf.told.stamp.store(STAMP + 5, Ordering::Relaxed);
    let events = smf.until(is_done).await;
    for session in &sessions {
        let refused = ClientEvent::SessionRefused {
            seid: session.seid(),
            peer: upf.address(),
            cause: Cause::NO_RESOURCES_AVAILABLE,
        };
        assert!(events.contains(&refused), "{events:?}");
    }
    assert_eq!(smf.client.stats().sessions_refused, 2);
    smf.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forgetful_peer_is_retried_with_backoff() {
    let upf = Scripted::start().await;
    let mut smf = Smf::new(|_| {}).await;
    let (_association, _sessions) = held(&smf, &upf, 3).await;
    // It accepts each association, and knows none of them.
    upf.told.establishments.store(72, Ordering::Relaxed);
    upf.told.stamp.store(STAMP + 5, Ordering::Relaxed);
    smf.until(|event| {
        matches!(
            event,
            ClientEvent::PeerLost {
                why: PeerLoss::NoAssociation,
                ..
            }
        )
    })
    .await;
    let before = upf.told.setups.load(Ordering::Relaxed);
    real(Duration::from_secs(3)).await;
    let setups = upf.told.setups.load(Ordering::Relaxed) - before;
    // At an interval of 500 ms, shortened by up to a half, there are at most twelve.
    assert!((1..=20).contains(&setups), "{setups}");
    upf.told.establishments.store(0, Ordering::Relaxed);
    smf.until(is_done).await;
    assert_eq!(upf.told.established.load(Ordering::Relaxed), 6);
    smf.system.shutdown(Duration::from_secs(1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_peer_gets_heartbeats_until_it_answers() {
    let upf = Scripted::start().await;
    let mut smf = Smf::new(|config| {
        config.n1 = 2;
        // The heartbeat would notice it only after an hour.
        config.heartbeat = Duration::from_secs(3600);
    })
    .await;
    let (_association, sessions) = held(&smf, &upf, 1).await;
    upf.told.mute.store(true, Ordering::Relaxed);
    let error = sessions[0].modify(SessionModificationRequest::new()).await;
    assert!(
        matches!(error, Err(ClientError::NoAnswer { .. })),
        "{error:?}"
    );
    let events = smf.until(|_| true).await;
    let why = PeerLoss::Silent;
    let peer = upf.address();
    assert_eq!(events, [ClientEvent::PeerLost { peer, why }]);
    upf.told.mute.store(false, Ordering::Relaxed);
    let events = smf.until(|_| true).await;
    assert!(matches!(
        events[..],
        [ClientEvent::PeerFound { sessions: 0, .. }]
    ));
    // No new setup, which would have ended existing sessions.
    assert_eq!(upf.told.setups.load(Ordering::Relaxed), 1);
    assert!(sessions[0].audit().await.unwrap());
    smf.system.shutdown(Duration::from_secs(1)).await;
}

/// A control plane may repeat a deletion to a node that has restarted meanwhile without its state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_to_the_previous_incarnation_reaches_no_session() {
    let folder = tempfile::tempdir().unwrap();
    for store in [None, Some(folder.path())] {
        let upf = Upf::start(|config| config.store.path = store.map(Path::to_owned)).await;
        let mut smf = Smf::new(|_| {}).await;
        let association = smf.client.associate(upf.node.local_addr()).await.unwrap();
        let session = association.establish(fixed(1)).await.unwrap();
        let previous = session.remote_seid();
        let config = upf.end().await;
        if let Some(store) = store {
            std::fs::remove_dir_all(store).unwrap();
        }
        real(QUIET_PERIOD).await;
        let _upf = Upf::with(config).await;
        smf.until(is_done).await;
        let kind = MessageType::SESSION_DELETION_REQUEST;
        let answer = association.send(kind, previous, &[]).await.unwrap();
        let cause = cause(&answer.encode().unwrap());
        assert_eq!(cause, Cause::SESSION_CONTEXT_NOT_FOUND);
        assert!(session.audit().await.unwrap());
        smf.system.shutdown(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_continues_after_node_restart() {
    let upf = Upf::start(|_| {}).await;
    let system = ActorSystem::new("load").unwrap();
    let mut plan = LoadPlan::new(upf.node.local_addr());
    plan.pace = LoadPace::Rate(100.0);
    plan.sessions = 50;
    plan.modifications = 0.5;
    plan.t1 = Duration::from_millis(200);
    plan.n1 = 5;
    plan.heartbeat = Duration::from_millis(100);
    plan.restoration = quick();
    plan.keep = true;
    let load = Load::start(&system, plan).await.unwrap();
    let stats = until(&load, |stats| stats.held == 50).await;
    assert_eq!((stats.lost, stats.rejected), (0, 0));
    let upf = upf.restart(QUIET_PERIOD).await;
    let restored = until(&load, |stats| stats.peers_found > 0 && stats.held == 50).await;
    let goes_on = restored.established + 50;
    until(&load, |stats| stats.established > goes_on).await;
    load.stop();
    let stats = load.finished().await;
    assert_eq!(stats.held, 50, "{stats:?}");
    assert!((1..=50).contains(&stats.sessions_restored), "{stats:?}");
    assert_eq!(stats.sessions_refused, 0, "{stats:?}");
    assert!(stats.skipped > 0, "{stats:?}");
    assert_eq!(stats.lost, stats.sessions_lost + stats.unanswered);
    let there: BTreeSet<Seid> = upf.sessions().iter().map(|one| one.peer_seid).collect();
    assert_eq!((there.len(), upf.sessions().len()), (50, 50));
    system.shutdown(Duration::from_secs(1)).await;
}

/// A session that was accepted before a restart is checked; until the peer answers, it counts
/// towards the maximum.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn load_counts_sessions_that_it_checks() {
    const SESSIONS: usize = 10;
    let upf = Scripted::start().await;
    let withhold = |kind: MessageType| upf.told.withheld_type.store(kind.0, Ordering::Relaxed);
    withhold(MessageType::SESSION_ESTABLISHMENT_REQUEST);
    let system = ActorSystem::new("load").unwrap();
    let mut plan = LoadPlan::new(upf.address());
    plan.pace = LoadPace::Rate(1000.0);
    plan.sessions = SESSIONS;
    plan.t1 = TEST_TIMEOUT;
    plan.heartbeat = Duration::from_millis(50);
    plan.keep = true;
    let load = Load::start(&system, plan).await.unwrap();
    let accepted = upf.withheld(SESSIONS).await;
    upf.told.stamp.store(STAMP + 5, Ordering::Relaxed);
    until(&load, |stats| stats.peers_found == 1).await;
    withhold(MessageType::SESSION_MODIFICATION_REQUEST);
    upf.send(&accepted, load.local_addr()).await;
    let checked = upf.withheld(SESSIONS).await;
    real(Duration::from_millis(200)).await;
    let established = upf.told.established.load(Ordering::Relaxed);
    assert_eq!(usize::try_from(established), Ok(SESSIONS));

    // The load goes on with the sessions that the peer has.
    upf.send(&checked, load.local_addr()).await;
    until(&load, |stats| stats.established > 2 * SESSIONS as u64).await;
    load.stop();
    let stats = load.finished().await;
    assert_eq!(stats.held, SESSIONS as u64, "{stats:?}");
    assert_eq!((stats.lost, stats.rejected), (0, 0), "{stats:?}");
    system.shutdown(Duration::from_secs(1)).await;
}

async fn until(
    load: &strowger_pfcp_node::LoadHandle,
    wanted: impl Fn(&strowger_pfcp_node::LoadStats) -> bool,
) -> strowger_pfcp_node::LoadStats {
    let begun = tokio::time::Instant::now();
    loop {
        let stats = load.snapshot();
        if wanted(&stats) {
            return stats;
        }
        assert!(begun.elapsed() < TEST_TIMEOUT, "{stats:?}");
        real(Duration::from_millis(20)).await;
    }
}
