//! A user plane without a store that crashes again and again, and a control plane that keeps its
//! sessions: in the end both have the same ones, as they were last acknowledged.

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

use super::dice::Dice;
use super::wire::{Weather, Wire};
use super::world::{SMF, UPF};
use super::{N1, T1};
use crate::client::Identity;
use crate::config::NodeConfig;
use crate::node::{Kept, Node, NodeHandle, NodeParts, Parts, pool_of};
use crate::restoration::{OnLoss, Restoration};
use crate::socket::Sockets;
use crate::store::Memory;
use crate::tap::Tap;
use crate::{Association, Client, ClientConfig, ClientEvent, Rules, Session};

/// What the control plane was told of one session.
#[derive(Debug)]
struct Known {
    session: Session,
    /// FARs that the session has for certain, and those that it may have.
    certain: BTreeSet<u32>,
    maybe: BTreeSet<u32>,
}

#[derive(Debug)]
struct Scene {
    system: ActorSystem,
    wire: Wire,
    config: NodeConfig,
    sessions: Mutex<BTreeMap<Seid, Known>>,
    given_up: Arc<Mutex<BTreeSet<Seid>>>,
    lives: Mutex<u32>,
}

/// Hears which sessions are given up.
#[derive(Debug)]
struct Ear(Arc<Mutex<BTreeSet<Seid>>>);

#[derive(Debug)]
struct Heard(ClientEvent);

impl Accepts<ClientEvent> for Heard {
    fn wrap(event: ClientEvent) -> Self {
        Self(event)
    }
}

impl Actor for Ear {
    type Msg = Heard;
    type Args = Arc<Mutex<BTreeSet<Seid>>>;
    type Error = Infallible;

    async fn pre_start(heard: Self::Args, _: &mut Context<Self>) -> Result<Self, Infallible> {
        Ok(Self(heard))
    }

    async fn handle(&mut self, heard: Heard, _: &mut Context<Self>) -> Result<(), Infallible> {
        if let ClientEvent::SessionRefused { seid, .. } | ClientEvent::SessionGone { seid, .. } =
            heard.0
        {
            self.0.lock().insert(seid);
        }
        Ok(())
    }
}

/// Runs a seed; what is wrong, and how many sessions were restored and given up.
pub(super) fn run(seed: u64) -> (Vec<String>, u64, usize) {
    let system = TestSystem::new(seed);
    let outcome = system.run(async {
        let mut dice = Dice(seed ^ 0xf0_96e7);
        let scene = Arc::new(Scene::new(system.system().clone(), &mut dice));
        Arc::clone(&scene).live(dice).await
    });
    system.shutdown(Duration::from_secs(5));
    outcome
}

impl Scene {
    fn new(system: ActorSystem, dice: &mut Dice) -> Self {
        let mut config = NodeConfig {
            listen: vec![UPF],
            ..NodeConfig::default()
        };
        config.timers.t1 = T1;
        config.timers.n1 = N1;
        Self {
            system,
            wire: Wire::new(dice.fork(), true, false),
            config,
            sessions: Mutex::default(),
            given_up: Arc::default(),
            lives: Mutex::new(0),
        }
    }

    async fn start_upf(&self) -> Option<NodeHandle> {
        let life = {
            let mut lives = self.lives.lock();
            *lives += 1;
            *lives
        };
        let sockets = Sockets::plugged(UPF, self.wire.plug(UPF));
        let kept = Kept {
            store: Box::new(Memory::new(self.config.limits.response_cache)),
            recovery: Recovery(1000 + life),
            seed: life.into(),
            // Nobody takes a session of one life for one of another.
            next_seid: u64::from(life) << 32,
        };
        let parts = Parts {
            config: self.config.clone(),
            name: UPF.ip().into(),
            pool: pool_of(&self.config, &sockets),
            sockets,
            tap: Tap::default(),
            kept,
            waiting: Vec::new(),
            given: NodeParts::default(),
        };
        let started = Node::assemble(&self.system, parts).await;
        started
            .map_err(|error| self.wire.wrong(format!("the UPF does not start: {error}")))
            .ok()
    }

    fn start_smf(&self, dice: &mut Dice) -> Option<Client> {
        let ear = self
            .system
            .spawn::<Ear>("forgetful-ear", Arc::clone(&self.given_up));
        let restoration = Restoration {
            backoff: Duration::from_millis(200),
            backoff_max: Duration::from_secs(2),
            rate: 5 + u32::try_from(dice.below(50)).unwrap_or(0),
            in_flight: 1 + usize::try_from(dice.below(8)).unwrap_or(0),
        };
        let config = ClientConfig {
            listen: SMF,
            t1: T1,
            n1: N1,
            heartbeat: Duration::from_millis(300),
            on_loss: OnLoss::Restore,
            restoration,
            events: ear.ok().map(|ear| ear.recipient()),
            ..ClientConfig::default()
        };
        let sockets = Sockets::plugged(SMF, self.wire.plug(SMF));
        let identity = Identity {
            recovery: Recovery(100),
            first_sequence: Sequence::new(1),
            first_seid: Seid(1),
        };
        let client = Client::over(&self.system, config, sockets, identity);
        client
            .map_err(|error| self.wire.wrong(format!("the SMF does not start: {error}")))
            .ok()
    }

    async fn live(self: Arc<Self>, mut dice: Dice) -> (Vec<String>, u64, usize) {
        let carrier = tokio::spawn(self.wire.clone().carry());
        let (Some(mut node), Some(client)) = (self.start_upf().await, self.start_smf(&mut dice))
        else {
            return (self.wire.finish().0, 0, 0);
        };
        if let Ok(association) = client.associate(UPF).await {
            for number in 1..=4 + u32::try_from(dice.below(12)).unwrap_or(0) {
                self.establish(&association, number, &mut dice).await;
            }
        }
        self.wire.weather(Weather {
            loss: dice.below(2) * 2,
            doubling: dice.below(3) * 5,
            jitter: [20, 150, 400][usize::try_from(dice.below(3)).unwrap_or(0)],
        });
        let user = tokio::spawn(Arc::clone(&self).change(dice.fork()));
        for _ in 0..1 + dice.below(4) {
            // Often in the middle of a restoration.
            tokio::time::sleep(dice.millis(2500)).await;
            self.wire.unplug(UPF);
            self.wire.forgets_answers();
            self.wire.forgets_refusals();
            node.stop().await;
            let short = dice.percent(50);
            tokio::time::sleep(dice.millis(if short { 40 } else { 4000 })).await;
            match self.start_upf().await {
                Some(started) => node = started,
                None => return (self.wire.finish().0, 0, 0),
            }
        }
        user.abort();
        self.wire.weather(Weather::default());
        tokio::time::sleep(T1 * (8 * N1)).await;
        self.judge(&node);
        let restored = client.stats().sessions_restored;
        node.stop().await;
        carrier.abort();
        let given_up = self.given_up.lock().len();
        (self.wire.finish().0, restored, given_up)
    }

    async fn establish(&self, association: &Association, number: u32, dice: &mut Dice) {
        let tunnel = match dice.percent(50) {
            true => FTeid::choose_ipv4(),
            false => FTeid::new(0x5000_0000 + number, UPF.ip()),
        };
        let ue = IpAddr::V4(Ipv4Addr::from_bits(0x0a65_0000 + number));
        let pdi = Pdi::new(SourceInterface::ACCESS)
            .local_f_teid(tunnel)
            .ue_ip_addresses([strowger_pfcp::ie::UeIpAddress::source(ue)]);
        let rules = Rules::new()
            .pdr(
                CreatePdr::new(PdrId(1), pdi)
                    .precedence(255)
                    .far_id(FarId(1)),
            )
            .far(CreateFar::new(FarId(1), ApplyAction::DROP));
        match association.establish(rules).await {
            Ok(session) => {
                let known = Known {
                    session: session.clone(),
                    certain: [1].into(),
                    maybe: BTreeSet::new(),
                };
                self.sessions.lock().insert(session.seid(), known);
            }
            Err(error) => self.wire.wrong(format!("no session in the calm: {error}")),
        }
    }

    /// Adds and removes FARs, until it is ended.
    async fn change(self: Arc<Self>, mut dice: Dice) {
        for far in 10.. {
            tokio::time::sleep(dice.millis(150)).await;
            let chosen = {
                let sessions = self.sessions.lock();
                let at = usize::try_from(dice.below(sessions.len() as u64)).unwrap_or(0);
                let known = sessions.values().nth(at);
                known.map(|known| {
                    let old = known.certain.iter().copied().find(|far| *far >= 10);
                    (known.session.clone(), old)
                })
            };
            let Some((session, old)) = chosen else {
                return;
            };
            let old = old.filter(|_| dice.percent(40));
            let request = SessionModificationRequest::new();
            let request = match old {
                Some(old) => request.remove_fars([RemoveFar::new(FarId(old))]),
                None => request.create_fars([CreateFar::new(FarId(far), ApplyAction::DROP)]),
            };
            let number = old.unwrap_or(far);
            self.about(&session, |known| {
                known.certain.remove(&number);
                known.maybe.insert(number);
            });
            if session.modify(request).await.is_ok() {
                self.about(&session, |known| {
                    known.maybe.remove(&number);
                    if old.is_none() {
                        known.certain.insert(number);
                    }
                });
            }
        }
    }

    fn about(&self, session: &Session, change: impl FnOnce(&mut Known)) {
        if let Some(known) = self.sessions.lock().get_mut(&session.seid()) {
            change(known);
        }
    }

    fn judge(&self, node: &NodeHandle) {
        let given_up = self.given_up.lock().clone();
        let mut there: BTreeMap<Seid, Vec<(Seid, BTreeSet<u32>)>> = BTreeMap::new();
        for found in node.sessions(&Default::default()) {
            let fars = found.fars.iter().copied().collect();
            let same = there.entry(found.peer_seid).or_default();
            same.push((found.seid, fars));
        }
        for (seid, known) in &*self.sessions.lock() {
            if given_up.contains(seid) {
                continue;
            }
            let remote = known.session.remote_seid();
            let found = there.remove(seid).unwrap_or_default();
            let [(here, fars)] = &found[..] else {
                self.wire
                    .wrong(format!("{seid} is there {} times, not once", found.len()));
                continue;
            };
            if *here != remote {
                self.wire
                    .wrong(format!("{seid} is {remote} for one, {here} for the other"));
            }
            let possible: BTreeSet<u32> = known.certain.union(&known.maybe).copied().collect();
            if !known.certain.is_subset(fars) || !fars.is_subset(&possible) {
                let text = format!("{seid} has FARs {fars:?}, not {known:?}");
                self.wire.wrong(text);
            }
        }
    }
}
