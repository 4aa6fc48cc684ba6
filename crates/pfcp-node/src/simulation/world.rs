//! The storm of a seed: subscribers who want sessions, and all that happens meanwhile.

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

use super::belief::{Beliefs, judge_addresses};
use super::dice::Dice;
use super::platter::Platter;
use super::wire::{LONGEST, Weather, Wire};
use super::{Faults, N1, T1};
use crate::client::Identity;
use crate::config::NodeConfig;
use crate::node::{Kept, Node, NodeHandle, NodeParts, Parts, pool_of};
use crate::pool::Pool;
use crate::socket::Sockets;
use crate::tap::Tap;
use crate::{Association, Client, ClientConfig, ClientEvent, PeerLoss};

/// What a seed comes to: what is wrong, the faults, a digest, the trace.
pub(super) type Told = (Vec<String>, Faults, u64, Vec<String>);

#[derive(Debug)]
pub(super) struct World {
    pub(super) system: ActorSystem,
    pub(super) wire: Wire,
    pub(super) platter: Arc<Platter>,
    pub(super) config: NodeConfig,
    pub(super) seed: u64,
    pub(super) upf: Mutex<Option<Upf>>,
    pub(super) smf: Mutex<Smf>,
    pub(super) beliefs: Mutex<Beliefs>,
    pub(super) marks: AtomicU32,
    pub(super) losses: AtomicU32,
    /// Whether the UPF lost what it had acknowledged, and the SMF has not heard of that restart:
    /// what either believes of the other is settled only then.
    pub(super) unheard: AtomicBool,
    /// Whether answers may be forgotten before their time, so that little can be said.
    pub(super) forgetful: bool,
    pub(super) over: AtomicBool,
}

#[derive(Clone, Debug)]
pub(super) struct Upf {
    pub(super) node: NodeHandle,
    pub(super) pool: Arc<Pool>,
}

#[derive(Debug, Default)]
pub(super) struct Smf {
    pub(super) client: Option<Client>,
    pub(super) association: Option<Association>,
    pub(super) life: u32,
    /// The time stamp with which the user plane was last seen to have restarted.
    pub(super) noticed: Option<u32>,
}

/// Hears that the user plane restarted.
#[derive(Debug)]
struct Ear(Arc<World>);

#[derive(Debug)]
struct Heard(ClientEvent);

impl Accepts<ClientEvent> for Heard {
    fn wrap(event: ClientEvent) -> Self {
        Self(event)
    }
}

impl Actor for Ear {
    type Msg = Heard;
    type Args = Arc<World>;
    type Error = Infallible;

    async fn pre_start(world: Arc<World>, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(world))
    }

    async fn handle(&mut self, heard: Heard, _: &mut Context<Self>) -> Result<(), Infallible> {
        let world = &self.0;
        let ClientEvent::PeerLost {
            why: PeerLoss::Restarted(stamp),
            ..
        } = heard.0
        else {
            return Ok(());
        };
        world
            .wire
            .note(|| format!("the SMF hears of a restart, stamp {stamp}"));
        // Whatever it had there, also since that restart, is not to be relied upon.
        world.losses.fetch_add(1, Ordering::Relaxed);
        world.unheard.store(false, Ordering::Relaxed);
        world.beliefs.lock().doubt();
        let mut smf = world.smf.lock();
        (smf.association, smf.noticed) = (None, Some(stamp));
        Ok(())
    }
}

impl World {
    pub(super) fn new(system: ActorSystem, seed: u64, trace: bool) -> Arc<Self> {
        let mut dice = Dice(seed ^ 0x5eed);
        let forgetful = dice.percent(10);
        let mut config = NodeConfig {
            listen: vec![UPF],
            ..NodeConfig::default()
        };
        config.timers.t1 = T1;
        config.timers.n1 = N1;
        config.timers.heartbeat = Duration::from_secs(2);
        config.limits.response_cache = if forgetful { 4 } else { 4096 };
        let wire = Wire::new(dice.fork(), forgetful, trace);
        let answers = config.limits.response_cache;
        let platter = Platter::new(dice.fork(), wire.clone(), answers, forgetful);
        wire.watch(&platter);
        Arc::new(Self {
            system,
            wire,
            platter,
            config,
            seed: dice.next(),
            upf: Mutex::default(),
            smf: Mutex::default(),
            beliefs: Mutex::default(),
            marks: AtomicU32::new(1),
            losses: AtomicU32::new(0),
            unheard: AtomicBool::new(false),
            forgetful,
            over: AtomicBool::new(false),
        })
    }

    /// Lives through the storm and the calm after it.
    pub(super) async fn live(self: Arc<Self>) -> Told {
        let mut dice = Dice(self.seed);
        let carrier = tokio::spawn(self.wire.clone().carry());
        self.wire.weather(Weather {
            loss: dice.below(4) * 5,
            doubling: dice.below(4) * 5,
            jitter: match dice.below(3) {
                0 => 20,
                1 => 300,
                _ => u64::try_from(LONGEST.as_millis()).unwrap_or(0),
            },
        });
        self.start_upf().await;
        self.start_smf();
        let mut all = JoinSet::new();
        for _ in 0..USERS {
            all.spawn(Arc::clone(&self).user(dice.fork()));
        }
        all.spawn(Arc::clone(&self).keep_association());
        all.spawn(Arc::clone(&self).mischief(dice.fork()));
        // A few storms are long; many short ones meet more coincidences.
        tokio::time::sleep(if dice.percent(3) { STORM } else { STORM / 5 }).await;
        self.over.store(true, Ordering::Relaxed);
        while let Some(ended) = all.join_next().await {
            if let Err(error) = ended {
                self.wire
                    .wrong(format!("the simulation itself fails: {error}"));
            }
        }
        self.calm().await;
        self.end().await;
        carrier.abort();
        self.smf.lock().client = None;
        self.wire.finish()
    }

    pub(super) async fn start_upf(&self) {
        let found = self.platter.open();
        let sockets = Sockets::plugged(UPF, self.wire.plug(UPF));
        let pool = pool_of(&self.config, &sockets);
        let kept = Kept {
            store: Box::new(found.disk),
            recovery: Recovery(found.recovery),
            seed: self.seed,
            next_seid: found.next_seid,
        };
        kept.claim(&pool);
        let parts = Parts {
            config: self.config.clone(),
            name: UPF.ip().into(),
            sockets,
            tap: Tap::default(),
            pool: Arc::clone(&pool),
            kept,
            waiting: Vec::new(),
            given: NodeParts::default(),
        };
        self.wire
            .note(|| format!("the UPF starts, stamp {}", found.recovery));
        match Node::assemble(&self.system, parts).await {
            Ok(node) => *self.upf.lock() = Some(Upf { node, pool }),
            Err(error) => self.wire.wrong(format!("the UPF does not start: {error}")),
        }
    }

    pub(super) fn start_smf(self: &Arc<Self>) {
        let mut smf = self.smf.lock();
        smf.life += 1;
        let life = smf.life;
        self.wire.note(|| format!("the SMF starts, life {life}"));
        let ear = self
            .system
            .spawn::<Ear>(format!("ear-{life}"), Arc::clone(self));
        let config = ClientConfig {
            listen: SMF,
            t1: T1,
            n1: N1,
            heartbeat: Duration::from_secs(2),
            events: ear.ok().map(|ear| ear.recipient()),
            ..ClientConfig::default()
        };
        let sockets = Sockets::plugged(SMF, self.wire.plug(SMF));
        // The numbers wrap on the way in half of the seeds, and no life repeats those of another.
        let first = match self.seed % 2 {
            0 => 0x00ff_fff0,
            _ => self.seed >> 40,
        };
        let first = u32::try_from(first).unwrap_or(0) + (life - 1) * 0x1_0000;
        let identity = Identity {
            recovery: Recovery(u32::try_from(FIRST_STAMP).unwrap_or(0) + life),
            first_sequence: Sequence::new(first & Sequence::MAX.get()),
            first_seid: Seid(u64::from(life) << 32),
        };
        match Client::over(&self.system, config, sockets, identity) {
            Ok(client) => smf.client = Some(client),
            Err(error) => self.wire.wrong(format!("the SMF does not start: {error}")),
        }
    }

    /// Associates whenever there is no association.
    async fn keep_association(self: Arc<Self>) {
        while !self.over.load(Ordering::Relaxed) {
            self.associate().await;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    async fn associate(&self) {
        let (client, life) = {
            let smf = self.smf.lock();
            if smf.association.is_some() {
                return;
            }
            (smf.client.clone(), smf.life)
        };
        let Some(client) = client else {
            return;
        };
        if let Ok(association) = client.associate(UPF).await {
            let mut smf = self.smf.lock();
            if smf.life == life {
                smf.association = Some(association);
            }
        }
    }

    /// Waits until all is quiet, and compares.
    async fn calm(self: &Arc<Self>) {
        self.wire.note(|| "the storm is over".to_owned());
        self.wire.weather(Weather::default());
        // All requests end, and all answers are forgotten that could still be asked for.
        tokio::time::sleep(T1 * (2 * N1 + 2)).await;
        for _ in 0..20 {
            self.associate().await;
            tokio::time::sleep(T1).await;
            if self.smf.lock().association.is_some() {
                break;
            }
        }
        let Some(upf) = self.upf.lock().clone() else {
            return self.wire.wrong("there is no UPF".to_owned());
        };
        let recovery = self.platter.recovery();
        let smf = self.smf.lock();
        if smf.association.is_none() {
            self.wire
                .wrong("there is no association in the calm".to_owned());
        }
        if smf.noticed.is_some_and(|noticed| noticed != recovery) {
            let noticed = smf.noticed;
            self.wire
                .wrong(format!("the SMF knows stamp {noticed:?}, not {recovery}"));
        }
        drop(smf);
        if !self.forgetful {
            self.beliefs.lock().judge(&upf.node, &self.wire);
        }
        judge_addresses(upf.node.store_for_tests(), &upf.pool, &self.wire);
        self.judge_work(&upf.node);
    }

    /// Ends the association, after which nothing is left.
    async fn end(&self) {
        let association = self.smf.lock().association.take();
        let Some(association) = association else {
            return;
        };
        if let Err(error) = association.release().await {
            self.wire
                .wrong(format!("the association is not released: {error}"));
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
            self.wire.wrong(text);
        }
        let held = upf.pool.all();
        if !held.is_empty() {
            self.wire.wrong(format!("addresses are left: {held:?}"));
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
            self.wire.wrong(format!("actors are left: {left:?}"));
        }
        self.judge_work(&upf.node);
        upf.node.stop().await;
    }

    /// Nothing waits for anything, and no more answers are kept than may be.
    fn judge_work(&self, node: &NodeHandle) {
        let stats = node.stats();
        if (stats.working, stats.pending) != (0, 0) {
            let (working, pending) = (stats.working, stats.pending);
            let text = format!("{working} requests are worked on, sessions work on {pending}");
            self.wire.wrong(text);
        }
        let (kept, room) = (stats.answers, self.config.limits.response_cache);
        if kept > room as u64 {
            self.wire
                .wrong(format!("{kept} answers are kept, not {room}"));
        }
    }
}

pub(super) const UPF: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1)), 8805);
pub(super) const SMF: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2)), 8805);

/// The stamp of the control plane before its first life.
pub(super) const FIRST_STAMP: u64 = 100;

const USERS: usize = 3;
const STORM: Duration = Duration::from_secs(12);
