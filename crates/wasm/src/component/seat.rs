//! What of a component outlives its lives.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{ActorRef, AnyRef, ChildSpec, MailboxSpec, Shutdown, Strategy, Supervisor};
use tokio::time::Instant;

use super::left::{Ended, Left, Leftovers, Stake};
use super::life::{Kept, Start};
use super::{ComponentActor, over_share};
use crate::contract::{Reason, Refusal};
use crate::digest::Digest;
use crate::directory::Directory;
use crate::fault::{Fault, FaultKind, Phase};
use crate::host::{Full, Host, Permit};
use crate::load::Image;
use crate::manifest::{Identity, StateMode};
use crate::message::{ComponentMsg, Inside};
use crate::metric;
use crate::usage::{Admission, Usage};

/// Where a component is in its life; told to [`ComponentArgs::on_stage`] in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// Before the Store is made and `init` is called.
    PreStart,
    /// After `init`.
    PostStart,
    /// Before `stop` is called; not after a fault.
    PreStop,
    /// After `stop`, or after a fault.
    PostStop,
}

type OnStage = Box<dyn Fn(Stage) + Send + Sync>;

/// A component to start, with room taken for it at its host: one actor at a time.
#[derive(Clone)]
pub struct ComponentArgs(pub(super) Arc<Seat>);

/// What of a component outlives its lives: its code, its state, its figures.
pub(super) struct Seat {
    host: Host,
    directory: Directory,
    name: Arc<str>,
    now: Mutex<Now>,
    left: Mutex<Leftovers>,
    figures: Figures,
    usage: Arc<Usage>,
    on_stage: Option<OnStage>,
}

/// What the next life begins with.
struct Now {
    image: Arc<Image>,
    /// The room that it has at its host; none while it sleeps.
    permit: Option<Permit>,
    lives: u32,
    kept: Option<Kept>,
    fault: Option<Fault>,
}

#[derive(Default)]
struct Figures {
    calls: AtomicU64,
    refused: AtomicU64,
    faults: AtomicU64,
    poison: AtomicU64,
    memory: AtomicUsize,
}

/// The figures of a component at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComponentInfo {
    /// Its name.
    pub name: Arc<str>,
    /// The hash of the version that runs.
    pub digest: Digest,
    /// The messages that it handled.
    pub calls: u64,
    /// Of these, how many it refused.
    pub refused: u64,
    /// How often it failed.
    pub faults: u64,
    /// How many messages were given up because each ended as many lives as it may.
    pub poison: u64,
    /// How many lives it has begun.
    pub lives: u32,
    /// The octets of its memories, after the latest call.
    pub memory: usize,
    /// Whether it is passivated: only its state is kept until the next message.
    pub passive: bool,
    /// The processor time of all its lives: measured on guest threads, and on workers where a call
    /// saw a tick, which then stands for those that saw none.
    pub cpu: Duration,
    /// Its calls run on guest threads, because they were long.
    pub heavy: bool,
    /// How often a call was delayed because it had used more than its share of a processor.
    pub throttled: u64,
    /// How long its calls were delayed altogether.
    pub delayed: Duration,
    /// The latest fault.
    pub fault: Option<Fault>,
}

impl fmt::Debug for ComponentArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Component({})", self.name)
    }
}

impl ComponentArgs {
    pub(crate) fn new(host: Host, image: Arc<Image>, directory: Directory) -> Result<Self, Full> {
        let permit = host.admit(image.waits())?;
        let Identity { name, .. } = &image.manifest().component;
        let usage = Usage::new(name, &image.manifest().limits, host.limits());
        Ok(Self(Arc::new(Seat {
            host,
            directory,
            usage: Arc::new(usage),
            name: Arc::from(image.manifest().component.name.as_str()),
            now: Mutex::new(Now {
                image,
                permit: Some(permit),
                lives: 0,
                kept: None,
                fault: None,
            }),
            left: Mutex::default(),
            figures: Figures::default(),
            on_stage: None,
        })))
    }

    /// Tells a function of each stage of each life. It runs in the component's turn: let it note
    /// the stage and do nothing else.
    ///
    /// # Panics
    /// When the component was started already.
    #[must_use]
    pub fn on_stage(mut self, tell: impl Fn(Stage) + Send + Sync + 'static) -> Self {
        let seat = Arc::get_mut(&mut self.0).expect("nobody has it before the start");
        seat.on_stage = Some(Box::new(tell));
        self
    }

    /// The component's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The component as a child of its own supervisor, which restarts it as its manifest says.
    ///
    /// A component that fails too often is in quarantine: its supervisor ends, and takes nobody
    /// along. Its address is then [`ComponentArgs::find`]'s no more.
    pub fn child(&self) -> ChildSpec {
        let image = self.0.image();
        let manifest = image.manifest();
        let rule = &manifest.restart;
        let actor = ChildSpec::new::<ComponentActor>(GUEST, self.clone())
            .restart(rule.restart())
            .mailbox(MailboxSpec::bounded(manifest.limits.mailbox))
            .shutdown(Shutdown::Graceful(manifest.limits.deadline * 4 + GRACE));
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(rule.intensity, rule.period)
            .backoff(rule.pauses())
            .child(actor);
        ChildSpec::supervisor(Arc::clone(&self.0.name), supervisor)
            .restart(strowger::Restart::Temporary)
    }

    /// The address of the actor below the supervisor that [`ComponentArgs::child`] started.
    #[must_use]
    pub fn find(system: &strowger::ActorSystem, child: &AnyRef) -> Option<ActorRef<ComponentMsg>> {
        let path = format!("{}/{GUEST}", child.path());
        system.find(path.as_str())?.downcast()
    }

    /// The figures.
    #[must_use]
    pub fn info(&self) -> ComponentInfo {
        let Figures {
            calls,
            refused,
            faults,
            poison,
            memory,
        } = &self.0.figures;
        let usage = &self.0.usage;
        let (throttled, delayed) = usage.throttled();
        let now = self.0.now.lock();
        ComponentInfo {
            name: Arc::clone(&self.0.name),
            digest: now.image.digest(),
            calls: calls.load(Ordering::Relaxed),
            refused: refused.load(Ordering::Relaxed),
            faults: faults.load(Ordering::Relaxed),
            poison: poison.load(Ordering::Relaxed),
            lives: now.lives,
            memory: memory.load(Ordering::Relaxed),
            passive: now.permit.is_none(),
            cpu: usage.cpu(),
            heavy: usage.is_heavy(),
            throttled,
            delayed,
            fault: now.fault.clone(),
        }
    }
}

/// The key of a component's actor below its supervisor.
const GUEST: &str = "guest";
/// How much longer than its calls may take a component has to end.
const GRACE: Duration = Duration::from_secs(1);

fn store_failed() -> FaultKind {
    FaultKind::Host {
        text: "its store does not work".to_owned(),
    }
}

impl Seat {
    pub(super) const fn host(&self) -> &Host {
        &self.host
    }

    pub(super) const fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    fn image(&self) -> Arc<Image> {
        Arc::clone(&self.now.lock().image)
    }

    pub(super) fn stage(&self, stage: Stage) {
        if let Some(tell) = &self.on_stage {
            tell(stage);
        }
    }

    /// Takes room at the host, if it has none.
    pub(super) async fn take_room(&self) {
        let image = {
            let now = self.now.lock();
            if now.permit.is_some() {
                return;
            }
            Arc::clone(&now.image)
        };
        let permit = match self.host.admit(image.waits()) {
            Ok(permit) => permit,
            Err(full) => {
                tracing::warn!(component = self.name(), %full, "waits for room");
                self.host.admitted(image.waits()).await
            }
        };
        self.now.lock().permit = Some(permit);
    }

    /// The processor time of all lives, for one more.
    pub(super) fn usage(&self) -> Result<Arc<Usage>, Fault> {
        if self.usage.is_banned() {
            return Err(over_share());
        }
        Ok(Arc::clone(&self.usage))
    }

    /// Asks whether the next call may begin.
    pub(super) fn admission(&self) -> Admission {
        self.usage.admission()
    }

    /// Gives its room back.
    pub(super) fn slept(&self) {
        let permit = self.now.lock().permit.take();
        drop(permit);
        self.measured(0);
        metric::passivated(&self.name);
    }

    /// Begins a life; the last number is where its tokens begin, which are no other life's.
    pub(super) fn next_life(&self) -> (Arc<Image>, Start, u64) {
        let mut now = self.now.lock();
        let reason = if now.lives == 0 {
            Reason::Fresh
        } else {
            Reason::Restart
        };
        let start = Start {
            reason,
            attempt: now.lives,
            kept: now.kept.clone(),
        };
        now.lives = now.lives.saturating_add(1);
        let tokens = (u64::from(now.lives) << 32) | 1;
        (Arc::clone(&now.image), start, tokens)
    }

    /// How a life begins that does not follow an end.
    pub(super) fn start(&self, reason: Reason, kept: Option<Kept>) -> Start {
        Start {
            reason,
            attempt: self.now.lock().lives,
            kept,
        }
    }

    /// What lives of an earlier run of the host kept, if the manifest says so.
    pub(super) fn recall(&self) -> Result<Option<Kept>, Fault> {
        let image = self.image();
        if image.manifest().state.mode != StateMode::Kv {
            return Ok(None);
        }
        let state = self.host.kv().space(&self.name).state();
        state.map_err(|_| Fault {
            phase: Phase::Init,
            kind: store_failed(),
        })
    }

    /// Keeps the state for the lives to come.
    pub(super) fn keep(&self, kept: Kept) -> Result<(), Fault> {
        let image = self.image();
        let manifest = image.manifest();
        let (version, state) = &kept;
        if let (StateMode::Kv, Some(quota)) = (manifest.state.mode, &manifest.grant.kv) {
            let space = self.host.kv().space(&self.name);
            let written = space.keep(*version, state, quota);
            written.map_err(|refusal| Fault {
                phase: Phase::Snapshot,
                kind: match refusal {
                    Refusal::Limit => FaultKind::Quota {
                        octets: state.len(),
                    },
                    _ => store_failed(),
                },
            })?;
        }
        self.now.lock().kept = Some(kept);
        Ok(())
    }

    /// Another version runs from now on.
    pub(super) fn upgraded(&self, image: Arc<Image>, permit: Permit) {
        let limits = &image.manifest().limits;
        self.usage.limit(limits, self.host.limits());
        let mut now = self.now.lock();
        now.image = image;
        now.permit = Some(permit);
        now.lives = now.lives.saturating_add(1);
    }

    /// Nothing is kept any more.
    pub(super) fn forget(&self) {
        self.now.lock().kept = None;
    }

    /// The fault ends a life. What it ended over is kept for the next one as far as the manifest
    /// says so; returns how many messages nobody will handle.
    pub(super) fn ended(
        &self,
        fault: &Fault,
        now: Instant,
        stake: Stake,
        waiting: Vec<Inside>,
    ) -> u64 {
        self.failed(fault);
        let image = self.image();
        let rule = &image.manifest().restart;
        let ended = self.left.lock().end(rule, now, stake, waiting);
        let Ended {
            lost,
            poison,
            dropped,
        } = ended;
        drop(dropped);
        // One that is never handled again is an ordinary dead letter.
        if rule.poison > 1 {
            for tried in &poison {
                let (component, lives) = (&*self.name, tried.kills);
                let octets = tried.envelope.payload.len();
                tracing::warn!(component, lives, octets, %fault, "gave up a message");
            }
            let count = poison.len() as u64;
            self.figures.poison.fetch_add(count, Ordering::Relaxed);
            metric::poison(&self.name, count);
        }
        lost
    }

    /// Whether lives before this one left something to handle.
    pub(super) fn is_behind(&self) -> bool {
        !self.left.lock().is_empty()
    }

    /// What comes next of what was left.
    pub(super) fn next_left(&self) -> Option<Left> {
        self.left.lock().next()
    }

    pub(super) fn put_back(&self, left: Left) {
        self.left.lock().put_back(left);
    }

    pub(super) fn failed(&self, fault: &Fault) {
        self.figures.faults.fetch_add(1, Ordering::Relaxed);
        metric::fault(&self.name, &fault.kind);
        self.now.lock().fault = Some(fault.clone());
    }

    pub(super) fn handled(&self, count: u32, refused: bool) {
        // Nobody writes them but the actor, in its turn.
        let more = |figure: &AtomicU64, by: u64| {
            figure.store(figure.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        };
        more(&self.figures.calls, count.into());
        if refused {
            more(&self.figures.refused, 1);
        }
    }

    pub(super) fn measured(&self, memory: usize) {
        self.figures.memory.store(memory, Ordering::Relaxed);
    }
}
