//! The run of a seed: subscribers that use sessions, and faults that occur meanwhile.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{Accepts, Actor, ActorSystem, Context};
use strowger_pfcp::association::Recovery;
use strowger_pfcp::{Seid, Sequence};
use tokio::task::JoinSet;

use super::disk::SimulatedDisk;
use super::model::{SessionModels, check_addresses};
use super::network::{FaultRates, MAX_DELAY, SimulatedNetwork};
use super::rng::SimulationRng;
use super::{Faults, N1, T1};
use crate::capture_file::CaptureFile;
use crate::client::ClientIdentity;
use crate::config::NodeConfig;
use crate::node::{Node, NodeHandle, NodeParts, NodeSetup, NodeState, pool_of};
use crate::pool::AddressPool;
use crate::socket::Sockets;
use crate::{Association, Client, ClientConfig, ClientEvent, PeerLoss};

/// The result of a run: the violations, the faults, a digest, the trace.
pub(super) type RunResult = (Vec<String>, Faults, u64, Vec<String>);

#[derive(Debug)]
pub(super) struct Simulation {
    pub(super) system: ActorSystem,
    pub(super) network: SimulatedNetwork,
    pub(super) disk: Arc<SimulatedDisk>,
    pub(super) config: NodeConfig,
    pub(super) seed: u64,
    pub(super) upf: Mutex<Option<Upf>>,
    pub(super) smf: Mutex<Smf>,
    pub(super) models: Mutex<SessionModels>,
    pub(super) marks: AtomicU32,
    pub(super) losses: AtomicU32,
    /// Set if the UPF lost acknowledged state, and the SMF has not yet noticed the restart. Until
    /// then, neither side's view of the other is reliable.
    pub(super) restart_unnoticed: AtomicBool,
    /// Set if responses may be forgotten early, so that few properties can be checked.
    pub(super) forgets_responses: bool,
    pub(super) finished: AtomicBool,
}

#[derive(Clone, Debug)]
pub(super) struct Upf {
    pub(super) node: NodeHandle,
    pub(super) pool: Arc<AddressPool>,
}

#[derive(Debug, Default)]
pub(super) struct Smf {
    pub(super) client: Option<Client>,
    pub(super) association: Option<Association>,
    pub(super) incarnation: u32,
    /// The Recovery Time Stamp of the last restart of the user plane that the SMF noticed.
    pub(super) noticed: Option<u32>,
}

/// An actor that is notified of restarts of the user plane.
#[derive(Debug)]
struct RestartRecorder(Arc<Simulation>);

#[derive(Debug)]
struct ObservedEvent(ClientEvent);

impl Accepts<ClientEvent> for ObservedEvent {
    fn wrap(event: ClientEvent) -> Self {
        Self(event)
    }
}

impl Actor for RestartRecorder {
    type Msg = ObservedEvent;
    type Args = Arc<Simulation>;
    type Error = Infallible;

    async fn pre_start(
        simulation: Arc<Simulation>,
        _: &mut Context<Self>,
    ) -> Result<Self, Infallible> {
        Ok(Self(simulation))
    }

    async fn handle(
        &mut self,
        event: ObservedEvent,
        _: &mut Context<Self>,
    ) -> Result<(), Infallible> {
        let simulation = &self.0;
        let ClientEvent::PeerLost {
            why: PeerLoss::Restarted(stamp),
            ..
        } = event.0
        else {
            return Ok(());
        };
        simulation
            .network
            .note(|| format!("the SMF hears of a restart, stamp {stamp}"));
        // The state of any session, even one established since that restart, is unknown.
        simulation.losses.fetch_add(1, Ordering::Relaxed);
        simulation.restart_unnoticed.store(false, Ordering::Relaxed);
        simulation.models.lock().forget_state();
        let mut smf = simulation.smf.lock();
        (smf.association, smf.noticed) = (None, Some(stamp));
        Ok(())
    }
}

impl Simulation {
    pub(super) fn new(system: ActorSystem, seed: u64, trace: bool) -> Arc<Self> {
        let mut rng = SimulationRng::new(seed ^ 0x5eed);
        let forgets_responses = rng.percent(10);
        let mut config = NodeConfig {
            listen: vec![UPF],
            ..NodeConfig::default()
        };
        config.timers.t1 = T1;
        config.timers.n1 = N1;
        config.timers.heartbeat = Duration::from_secs(2);
        config.limits.response_cache = if forgets_responses { 4 } else { 4096 };
        let network = SimulatedNetwork::new(rng.fork(), forgets_responses, trace);
        let answers = config.limits.response_cache;
        let disk = SimulatedDisk::new(rng.fork(), network.clone(), answers, forgets_responses);
        network.watch(&disk);
        Arc::new(Self {
            system,
            network,
            disk,
            config,
            seed: rng.next(),
            upf: Mutex::default(),
            smf: Mutex::default(),
            models: Mutex::default(),
            marks: AtomicU32::new(1),
            losses: AtomicU32::new(0),
            restart_unnoticed: AtomicBool::new(false),
            forgets_responses,
            finished: AtomicBool::new(false),
        })
    }

    /// Runs the phase with faults and the calm phase after it.
    pub(super) async fn run(self: Arc<Self>) -> RunResult {
        let mut rng = SimulationRng::new(self.seed);
        let carrier = tokio::spawn(self.network.clone().carry());
        self.network.set_fault_rates(FaultRates {
            loss: rng.below(4) * 5,
            doubling: rng.below(4) * 5,
            jitter: match rng.below(3) {
                0 => 20,
                1 => 300,
                _ => u64::try_from(MAX_DELAY.as_millis()).unwrap_or(0),
            },
        });
        self.start_upf().await;
        self.start_smf();
        let mut all = JoinSet::new();
        for _ in 0..USERS {
            all.spawn(Arc::clone(&self).subscriber(rng.fork()));
        }
        all.spawn(Arc::clone(&self).keep_association());
        all.spawn(Arc::clone(&self).inject_faults(rng.fork()));
        // A few runs are long; many short ones meet more coincidences.
        tokio::time::sleep(if rng.percent(3) {
            FAULT_PHASE
        } else {
            FAULT_PHASE / 5
        })
        .await;
        self.finished.store(true, Ordering::Relaxed);
        while let Some(ended) = all.join_next().await {
            if let Err(error) = ended {
                self.network
                    .record_violation(format!("the simulation itself fails: {error}"));
            }
        }
        self.check_phase().await;
        self.release_and_check().await;
        carrier.abort();
        self.smf.lock().client = None;
        self.network.finish()
    }

    pub(super) async fn start_upf(&self) {
        let found = self.disk.open();
        let sockets = Sockets::simulated(UPF, self.network.connect(UPF));
        let pool = pool_of(&self.config, &sockets);
        let state = NodeState {
            store: Box::new(found.store),
            recovery: Recovery(found.recovery),
            seed: self.seed,
            next_seid: found.next_seid,
        };
        state.claim(&pool);
        let parts = NodeSetup {
            config: self.config.clone(),
            name: UPF.ip().into(),
            sockets,
            capture: CaptureFile::default(),
            pool: Arc::clone(&pool),
            state,
            waiting: Vec::new(),
            host_parts: NodeParts::default(),
        };
        self.network
            .note(|| format!("the UPF starts, stamp {}", found.recovery));
        match Node::assemble(&self.system, parts).await {
            Ok(node) => *self.upf.lock() = Some(Upf { node, pool }),
            Err(error) => self
                .network
                .record_violation(format!("the UPF does not start: {error}")),
        }
    }

    pub(super) fn start_smf(self: &Arc<Self>) {
        let mut smf = self.smf.lock();
        smf.incarnation += 1;
        let incarnation = smf.incarnation;
        self.network
            .note(|| format!("the SMF starts, life {incarnation}"));
        let recorder = self
            .system
            .spawn::<RestartRecorder>(format!("ear-{incarnation}"), Arc::clone(self));
        let config = ClientConfig {
            listen: SMF,
            t1: T1,
            n1: N1,
            heartbeat: Duration::from_secs(2),
            events: recorder.ok().map(|recorder| recorder.recipient()),
            ..ClientConfig::default()
        };
        let sockets = Sockets::simulated(SMF, self.network.connect(SMF));
        // In half of the seeds the sequence numbers wrap around, and no incarnation repeats the
        // numbers of another.
        let first = match self.seed % 2 {
            0 => 0x00ff_fff0,
            _ => self.seed >> 40,
        };
        let first = u32::try_from(first).unwrap_or(0) + (incarnation - 1) * 0x1_0000;
        let identity = ClientIdentity {
            recovery: Recovery(u32::try_from(FIRST_STAMP).unwrap_or(0) + incarnation),
            first_sequence: Sequence::new(first & Sequence::MAX.get()),
            first_seid: Seid(u64::from(incarnation) << 32),
        };
        match Client::over(&self.system, config, sockets, identity) {
            Ok(client) => smf.client = Some(client),
            Err(error) => self
                .network
                .record_violation(format!("the SMF does not start: {error}")),
        }
    }

    /// Sets up the association whenever there is none.
    async fn keep_association(self: Arc<Self>) {
        while !self.finished.load(Ordering::Relaxed) {
            self.associate().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn associate(&self) {
        let (client, incarnation) = {
            let smf = self.smf.lock();
            if smf.association.is_some() {
                return;
            }
            (smf.client.clone(), smf.incarnation)
        };
        let Some(client) = client else {
            return;
        };
        if let Ok(association) = client.associate(UPF).await {
            let mut smf = self.smf.lock();
            if smf.incarnation == incarnation {
                smf.association = Some(association);
            }
        }
    }

    /// Waits until all activity has ended, and compares both sides.
    async fn check_phase(self: &Arc<Self>) {
        self.network.note(|| "the storm is over".to_owned());
        self.network.set_fault_rates(FaultRates::default());
        // All requests end, and all responses that could still be requested are forgotten.
        tokio::time::sleep(T1 * (2 * N1 + 2)).await;
        for _ in 0..20 {
            self.associate().await;
            tokio::time::sleep(T1).await;
            if self.smf.lock().association.is_some() {
                break;
            }
        }
        let Some(upf) = self.upf.lock().clone() else {
            return self.network.record_violation("there is no UPF".to_owned());
        };
        let recovery = self.disk.recovery();
        let smf = self.smf.lock();
        if smf.association.is_none() {
            self.network
                .record_violation("there is no association in the calm".to_owned());
        }
        if smf.noticed.is_some_and(|noticed| noticed != recovery) {
            let noticed = smf.noticed;
            self.network
                .record_violation(format!("the SMF knows stamp {noticed:?}, not {recovery}"));
        }
        drop(smf);
        if !self.forgets_responses {
            self.models.lock().check(&upf.node, &self.network);
        }
        check_addresses(upf.node.store_for_tests(), &upf.pool, &self.network);
        self.check_idle(&upf.node);
    }

    /// Releases the association, and checks that nothing remains.
    async fn release_and_check(&self) {
        let association = self.smf.lock().association.take();
        let Some(association) = association else {
            return;
        };
        if let Err(error) = association.release().await {
            self.network
                .record_violation(format!("the association is not released: {error}"));
        }
        tokio::time::sleep(T1).await;
        let upf = self.upf.lock().take();
        let Some(upf) = upf else {
            return;
        };
        let stats = upf.node.stats();
        if (stats.sessions, stats.associations) != (0, 0) {
            let (sessions, associations) = (stats.sessions, stats.associations);
            let text = format!("{sessions} sessions and {associations} associations are left");
            self.network.record_violation(text);
        }
        let held = upf.pool.all();
        if !held.is_empty() {
            self.network
                .record_violation(format!("addresses are left: {held:?}"));
        }
        let actors: Vec<_> = self
            .system
            .actors()
            .into_iter()
            .map(|one| one.path.to_string())
            .collect();
        let left: Vec<_> = actors
            .iter()
            .filter(|path| path.starts_with("/node/n4/"))
            .collect();
        if !left.is_empty() {
            self.network
                .record_violation(format!("actors are left: {left:?}"));
        }
        self.check_idle(&upf.node);
        upf.node.stop().await;
    }

    /// Checks that no request is in progress, and that no more responses are kept than allowed.
    fn check_idle(&self, node: &NodeHandle) {
        let stats = node.stats();
        if (stats.working, stats.pending) != (0, 0) {
            let (working, pending) = (stats.working, stats.pending);
            let text = format!("{working} requests are worked on, sessions work on {pending}");
            self.network.record_violation(text);
        }
        let (kept, room) = (stats.answers, self.config.limits.response_cache);
        if kept > room as u64 {
            self.network
                .record_violation(format!("{kept} answers are kept, not {room}"));
        }
    }
}

pub(super) const UPF: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1)), 8805);
pub(super) const SMF: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 8805);

/// The Recovery Time Stamp of the control plane before its first incarnation.
pub(super) const FIRST_STAMP: u64 = 100;

const USERS: usize = 3;
const FAULT_PHASE: Duration = Duration::from_secs(12);
