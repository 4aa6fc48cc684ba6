//! A user plane without a store that crashes repeatedly, and a control plane that restores its
//! sessions: in the end both have the same sessions, as last acknowledged.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strowger::testing::TestSystem;
use strowger::{Accepts, Actor, ActorSystem, Context};
use strowger_pfcp::association::Recovery;
use strowger_pfcp::ie::{
    ApplyAction, CreateFar, CreatePdr, FTeid, FarId, Pdi, PdrId, RemoveFar, SourceInterface,
};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::{Seid, Sequence};

use super::driver::{SMF, UPF};
use super::network::{FaultRates, SimulatedNetwork};
use super::rng::SimulationRng;
use super::{N1, T1};
use crate::capture_file::CaptureFile;
use crate::client::ClientIdentity;
use crate::config::NodeConfig;
use crate::node::{Node, NodeHandle, NodeParts, NodeSetup, NodeState, pool_of};
use crate::restoration::{OnLoss, Restoration};
use crate::socket::Sockets;
use crate::store::MemoryStore;
use crate::{Association, Client, ClientConfig, ClientEvent, Session, SessionRules};

/// The control plane's knowledge of one session.
#[derive(Debug)]
struct ExpectedSession {
    session: Session,
    /// FARs that the session certainly has, and those that it may have.
    certain: BTreeSet<u32>,
    maybe: BTreeSet<u32>,
}

#[derive(Debug)]
struct StatelessUpfRun {
    system: ActorSystem,
    network: SimulatedNetwork,
    config: NodeConfig,
    sessions: Mutex<BTreeMap<Seid, ExpectedSession>>,
    given_up: Arc<Mutex<BTreeSet<Seid>>>,
    incarnations: Mutex<u32>,
}

/// An actor that records the sessions that the client gave up.
#[derive(Debug)]
struct GivenUpRecorder(Arc<Mutex<BTreeSet<Seid>>>);

#[derive(Debug)]
struct RecordedEvent(ClientEvent);

impl Accepts<ClientEvent> for RecordedEvent {
    fn wrap(event: ClientEvent) -> Self {
        Self(event)
    }
}

impl Actor for GivenUpRecorder {
    type Msg = RecordedEvent;
    type Args = Arc<Mutex<BTreeSet<Seid>>>;
    type Error = Infallible;

    async fn pre_start(event: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(event))
    }

    async fn handle(
        &mut self,
        event: RecordedEvent,
        _: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        if let ClientEvent::SessionRefused { seid, .. } | ClientEvent::SessionGone { seid, .. } =
            event.0
        {
            self.0.lock().insert(seid);
        }
        Ok(())
    }
}

/// Runs a seed. Returns the violations, and the numbers of sessions that were restored and given
/// up.
pub(super) fn run(seed: u64) -> (Vec<String>, u64, usize) {
    let system = TestSystem::new(seed);
    let outcome = system.run(async {
        let mut rng = SimulationRng::new(seed ^ 0xf0_96e7);
        let run = Arc::new(StatelessUpfRun::new(system.system().clone(), &mut rng));
        Arc::clone(&run).execute(rng).await
    });
    system.shutdown(Duration::from_secs(5));
    outcome
}

impl StatelessUpfRun {
    fn new(system: ActorSystem, rng: &mut SimulationRng) -> Self {
        let mut config = NodeConfig {
            listen: vec![UPF],
            ..NodeConfig::default()
        };
        config.timers.t1 = T1;
        config.timers.n1 = N1;
        Self {
            system,
            network: SimulatedNetwork::new(rng.fork(), true, false),
            config,
            sessions: Mutex::default(),
            given_up: Arc::default(),
            incarnations: Mutex::new(0),
        }
    }

    async fn start_upf(&self) -> Option<NodeHandle> {
        let incarnation = {
            let mut incarnations = self.incarnations.lock();
            *incarnations += 1;
            *incarnations
        };
        let sockets = Sockets::simulated(UPF, self.network.connect(UPF));
        let state = NodeState {
            store: Box::new(MemoryStore::new(self.config.limits.response_cache)),
            recovery: Recovery(1000 + incarnation),
            seed: incarnation.into(),
            // Sessions of different incarnations have different SEIDs.
            next_seid: u64::from(incarnation) << 32,
        };
        let parts = NodeSetup {
            config: self.config.clone(),
            name: UPF.ip().into(),
            pool: pool_of(&self.config, &sockets),
            sockets,
            capture: CaptureFile::default(),
            state,
            waiting: Vec::new(),
            host_parts: NodeParts::default(),
        };
        let started = Node::assemble(&self.system, parts).await;
        started
            .map_err(|error| {
                self.network
                    .record_violation(format!("the UPF does not start: {error}"))
            })
            .ok()
    }

    fn start_smf(&self, rng: &mut SimulationRng) -> Option<Client> {
        let recorder = self
            .system
            .spawn::<GivenUpRecorder>("forgetful-ear", Arc::clone(&self.given_up));
        let restoration = Restoration {
            backoff: Duration::from_millis(200),
            backoff_max: Duration::from_secs(2),
            rate: 5 + u32::try_from(rng.below(50)).unwrap_or(0),
            in_flight: 1 + usize::try_from(rng.below(8)).unwrap_or(0),
        };
        let config = ClientConfig {
            listen: SMF,
            t1: T1,
            n1: N1,
            heartbeat: Duration::from_millis(300),
            on_loss: OnLoss::Restore,
            restoration,
            events: recorder.ok().map(|recorder| recorder.recipient()),
            ..ClientConfig::default()
        };
        let sockets = Sockets::simulated(SMF, self.network.connect(SMF));
        let identity = ClientIdentity {
            recovery: Recovery(100),
            first_sequence: Sequence::new(1),
            first_seid: Seid(1),
        };
        let client = Client::over(&self.system, config, sockets, identity);
        client
            .map_err(|error| {
                self.network
                    .record_violation(format!("the SMF does not start: {error}"))
            })
            .ok()
    }

    async fn execute(self: Arc<Self>, mut rng: SimulationRng) -> (Vec<String>, u64, usize) {
        let carrier = tokio::spawn(self.network.clone().carry());
        let (Some(mut node), Some(client)) = (self.start_upf().await, self.start_smf(&mut rng))
        else {
            return (self.network.finish().0, 0, 0);
        };
        if let Ok(association) = client.associate(UPF).await {
            for number in 1..=4 + u32::try_from(rng.below(12)).unwrap_or(0) {
                self.establish(&association, number, &mut rng).await;
            }
        }
        self.network.set_fault_rates(FaultRates {
            loss: rng.below(2) * 2,
            doubling: rng.below(3) * 5,
            jitter: [20, 150, 400][usize::try_from(rng.below(3)).unwrap_or(0)],
        });
        let user = tokio::spawn(Arc::clone(&self).change(rng.fork()));
        for _ in 0..1 + rng.below(4) {
            // Often in the middle of a restoration.
            tokio::time::sleep(rng.millis(2500)).await;
            self.network.disconnect(UPF);
            self.network.forgets_answers();
            self.network.forgets_refusals();
            node.stop().await;
            let short = rng.percent(50);
            tokio::time::sleep(rng.millis(if short { 40 } else { 4000 })).await;
            match self.start_upf().await {
                Some(started) => node = started,
                None => return (self.network.finish().0, 0, 0),
            }
        }
        user.abort();
        self.network.set_fault_rates(FaultRates::default());
        tokio::time::sleep(T1 * (8 * N1)).await;
        self.check(&node);
        let restored = client.stats().sessions_restored;
        node.stop().await;
        carrier.abort();
        let given_up = self.given_up.lock().len();
        (self.network.finish().0, restored, given_up)
    }

    async fn establish(&self, association: &Association, number: u32, rng: &mut SimulationRng) {
        let tunnel = match rng.percent(50) {
            true => FTeid::choose_ipv4(),
            false => FTeid::new(0x5000_0000 + number, UPF.ip()),
        };
        let ue = IpAddr::V4(Ipv4Addr::from_bits(0x0a65_0000 + number));
        let pdi = Pdi::new(SourceInterface::ACCESS)
            .local_f_teid(tunnel)
            .ue_ip_addresses([strowger_pfcp::ie::UeIpAddress::source(ue)]);
        let rules = SessionRules::new()
            .pdr(
                CreatePdr::new(PdrId(1), pdi)
                    .precedence(255)
                    .far_id(FarId(1)),
            )
            .far(CreateFar::new(FarId(1), ApplyAction::DROP));
        match association.establish(rules).await {
            Ok(session) => {
                let expected = ExpectedSession {
                    session: session.clone(),
                    certain: [1].into(),
                    maybe: BTreeSet::new(),
                };
                self.sessions.lock().insert(session.seid(), expected);
            }
            Err(error) => self
                .network
                .record_violation(format!("no session in the calm: {error}")),
        }
    }

    /// Adds and removes FARs until it is aborted.
    async fn change(self: Arc<Self>, mut rng: SimulationRng) {
        for far in 10.. {
            tokio::time::sleep(rng.millis(150)).await;
            let chosen = {
                let sessions = self.sessions.lock();
                let at = usize::try_from(rng.below(sessions.len() as u64)).unwrap_or(0);
                let expected = sessions.values().nth(at);
                expected.map(|expected| {
                    let old = expected.certain.iter().copied().find(|far| *far >= 10);
                    (expected.session.clone(), old)
                })
            };
            let Some((session, old)) = chosen else {
                return;
            };
            let old = old.filter(|_| rng.percent(40));
            let request = SessionModificationRequest::new();
            let request = match old {
                Some(old) => request.remove_fars([RemoveFar::new(FarId(old))]),
                None => request.create_fars([CreateFar::new(FarId(far), ApplyAction::DROP)]),
            };
            let number = old.unwrap_or(far);
            self.about(&session, |expected| {
                expected.certain.remove(&number);
                expected.maybe.insert(number);
            });
            if session.modify(request).await.is_ok() {
                self.about(&session, |expected| {
                    expected.maybe.remove(&number);
                    if old.is_none() {
                        expected.certain.insert(number);
                    }
                });
            }
        }
    }

    fn about(&self, session: &Session, change: impl FnOnce(&mut ExpectedSession)) {
        if let Some(expected) = self.sessions.lock().get_mut(&session.seid()) {
            change(expected);
        }
    }

    fn check(&self, node: &NodeHandle) {
        let given_up = self.given_up.lock().clone();
        let mut there: BTreeMap<Seid, Vec<(Seid, BTreeSet<u32>)>> = BTreeMap::new();
        for found in node.sessions(&Default::default()) {
            let fars = found.fars.iter().copied().collect();
            let same = there.entry(found.peer_seid).or_default();
            same.push((found.seid, fars));
        }
        for (seid, expected) in &*self.sessions.lock() {
            if given_up.contains(seid) {
                continue;
            }
            let remote = expected.session.remote_seid();
            let found = there.remove(seid).unwrap_or_default();
            let [(here, fars)] = &found[..] else {
                self.network
                    .record_violation(format!("{seid} is there {} times, not once", found.len()));
                continue;
            };
            if *here != remote {
                self.network
                    .record_violation(format!("{seid} is {remote} for one, {here} for the other"));
            }
            let possible: BTreeSet<u32> =
                expected.certain.union(&expected.maybe).copied().collect();
            if !expected.certain.is_subset(fars) || !fars.is_subset(&possible) {
                let text = format!("{seid} has FARs {fars:?}, not {expected:?}");
                self.network.record_violation(text);
            }
        }
    }
}
