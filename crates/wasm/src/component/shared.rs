//! The part of a component that outlives its incarnations.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use strowger::{ActorRef, AnyRef, ChildSpec, MailboxSpec, Shutdown, Strategy, Supervisor};
use tokio::time::Instant;

use super::backlog::{AtRisk, Backlog, Backlogged, LostMessages};
use super::incarnation::{SavedState, StartParams};
use super::{ComponentActor, over_share_fault};
use crate::contract::{Refusal, StartReason};
use crate::digest::Digest;
use crate::directory::Directory;
use crate::fault::{CallPhase, Fault, FaultKind};
use crate::guest::off_worker;
use crate::host::{CapacityError, CapacityPermit, Host};
use crate::load::Image;
use crate::manifest::{ComponentIdentity, StateMode};
use crate::message::{ComponentMsg, MsgBody};
use crate::metric;
use crate::usage::{Admission, ComponentUsage};

/// A stage in the lifecycle of an incarnation, reported to [`ComponentArgs::on_stage`] in this
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LifecycleStage {
    /// Before the Store is created and `init` is called.
    PreStart,
    /// The `init` of the component has returned.
    PostStart,
    /// Before `stop` is called; skipped after a fault.
    PreStop,
    /// After `stop`, or after a fault.
    PostStop,
}

type StageCallback = Box<dyn Fn(LifecycleStage) + Send + Sync>;

/// A component that is ready to start, with capacity reserved at its host. Only one actor at a time
/// can run it.
#[derive(Clone)]
pub struct ComponentArgs(pub(super) Arc<ComponentShared>);

/// The part of a component that outlives its incarnations: its code, state and stats.
pub(super) struct ComponentShared {
    host: Host,
    directory: Directory,
    name: Arc<str>,
    current: Mutex<CurrentVersion>,
    backlog: Mutex<Backlog>,
    stats: ComponentStats,
    usage: Arc<ComponentUsage>,
    on_stage: Option<StageCallback>,
}

/// The version, state and permit that the next incarnation starts with, and what ended the ones
/// before it.
struct CurrentVersion {
    image: Arc<Image>,
    /// The reserved capacity at the host; `None` while the component is passivated.
    permit: Option<CapacityPermit>,
    incarnations: u32,
    saved: Option<SavedState>,
    /// Number of faults.
    faults: u64,
    /// The latest fault. It is set together with the count, so that no reader sees one without the
    /// other.
    fault: Option<Fault>,
}

#[derive(Default)]
struct ComponentStats {
    calls: AtomicU64,
    refused: AtomicU64,
    poison: AtomicU64,
    memory: AtomicUsize,
}

/// The stats of a component at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ComponentInfo {
    /// Name of the component.
    pub name: Arc<str>,
    /// Hash of the running version.
    pub digest: Digest,
    /// Number of messages handled.
    pub calls: u64,
    /// Number of these messages that the component refused.
    pub refused: u64,
    /// Number of faults.
    pub faults: u64,
    /// Number of messages given up because each of them ended the maximum number of incarnations.
    pub poison: u64,
    /// Number of incarnations started.
    pub incarnations: u32,
    /// Size of all memories of the component after the latest call, in bytes.
    pub memory: usize,
    /// `true` if the component is passivated: only its state is kept until the next message.
    pub passivated: bool,
    /// Processor time of all incarnations. It is measured on guest threads. On workers it is
    /// sampled: a call that sees a tick stands for the calls before it that saw none.
    pub cpu: Duration,
    /// `true` if calls run on guest threads because they are long.
    pub heavy: bool,
    /// Number of calls that were delayed because the component had exceeded its share of a
    /// processor.
    pub throttled: u64,
    /// Total delay of these calls.
    pub delayed: Duration,
    /// The latest fault: the last of those that `faults` counts.
    pub fault: Option<Fault>,
}

impl fmt::Debug for ComponentArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl fmt::Debug for ComponentShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Component({})", self.name)
    }
}

impl ComponentArgs {
    pub(crate) fn new(
        host: Host,
        image: Arc<Image>,
        directory: Directory,
    ) -> Result<Self, CapacityError> {
        let permit = host.reserve_instance(image.waits())?;
        let ComponentIdentity { name, .. } = &image.manifest().component;
        let usage = ComponentUsage::new(name, &image.manifest().limits, host.limits());
        Ok(Self(Arc::new(ComponentShared {
            host,
            directory,
            usage: Arc::new(usage),
            name: Arc::from(image.manifest().component.name.as_str()),
            current: Mutex::new(CurrentVersion {
                image,
                permit: Some(permit),
                incarnations: 0,
                saved: None,
                faults: 0,
                fault: None,
            }),
            backlog: Mutex::default(),
            stats: ComponentStats::default(),
            on_stage: None,
        })))
    }

    /// Returns the running version, or the last one that ran.
    pub(crate) fn running_image(&self) -> Arc<Image> {
        self.0.image()
    }

    /// Sets a function that is called at each stage of each incarnation. It runs in the component's
    /// turn, so it should only record the stage.
    ///
    /// # Panics
    /// If the component was started already.
    #[must_use]
    pub fn on_stage(mut self, callback: impl Fn(LifecycleStage) + Send + Sync + 'static) -> Self {
        let shared = Arc::get_mut(&mut self.0).expect("not started yet");
        shared.on_stage = Some(Box::new(callback));
        self
    }

    /// Returns the component's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns a child specification: the component below its own supervisor, which restarts it as
    /// its manifest says.
    ///
    /// A component that fails too often is quarantined: its supervisor ends without affecting other
    /// children, and [`ComponentArgs::find`] no longer returns its address.
    pub fn child(&self) -> ChildSpec {
        let image = self.0.image();
        let manifest = image.manifest();
        let rule = &manifest.restart;
        let actor = ChildSpec::new::<ComponentActor>(ACTOR_KEY, self.clone())
            .restart(rule.restart())
            .mailbox(MailboxSpec::bounded(manifest.limits.mailbox))
            .shutdown(Shutdown::Graceful(
                manifest.limits.deadline * 4 + STOP_GRACE,
            ));
        let supervisor = Supervisor::new(Strategy::OneForOne)
            .intensity(rule.intensity, rule.period)
            .backoff(rule.backoff_spec())
            .child(actor);
        ChildSpec::supervisor(Arc::clone(&self.0.name), supervisor)
            .restart(strowger::Restart::Temporary)
    }

    /// Returns the address of the component's actor below the supervisor that
    /// [`ComponentArgs::child`] describes.
    #[must_use]
    pub fn find(system: &strowger::ActorSystem, child: &AnyRef) -> Option<ActorRef<ComponentMsg>> {
        let path = format!("{}/{ACTOR_KEY}", child.path());
        system.find(path.as_str())?.downcast()
    }

    /// Returns the current stats.
    #[must_use]
    pub fn info(&self) -> ComponentInfo {
        let ComponentStats {
            calls,
            refused,
            poison,
            memory,
        } = &self.0.stats;
        let usage = &self.0.usage;
        let (throttled, delayed) = usage.throttled();
        let current = self.0.current.lock();
        ComponentInfo {
            name: Arc::clone(&self.0.name),
            digest: current.image.digest(),
            calls: calls.load(Ordering::Relaxed),
            refused: refused.load(Ordering::Relaxed),
            faults: current.faults,
            poison: poison.load(Ordering::Relaxed),
            incarnations: current.incarnations,
            memory: memory.load(Ordering::Relaxed),
            passivated: current.permit.is_none(),
            cpu: usage.cpu(),
            heavy: usage.is_heavy(),
            throttled,
            delayed,
            fault: current.fault.clone(),
        }
    }
}

/// The key of a component's actor below its supervisor.
const ACTOR_KEY: &str = "guest";
/// Time that a component has to stop, in addition to the limits of its calls.
const STOP_GRACE: Duration = Duration::from_secs(1);

fn store_failed() -> FaultKind {
    FaultKind::Host {
        text: "component store failed".to_owned(),
    }
}

impl ComponentShared {
    pub(super) const fn host(&self) -> &Host {
        &self.host
    }

    pub(super) const fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the running version.
    pub(super) fn image(&self) -> Arc<Image> {
        Arc::clone(&self.current.lock().image)
    }

    pub(super) fn report_stage(&self, stage: LifecycleStage) {
        if let Some(callback) = &self.on_stage {
            callback(stage);
        }
    }

    /// Reserves capacity at the host, and waits for it if necessary. Does nothing if there is a
    /// permit.
    pub(super) async fn reserve_capacity(&self) {
        let image = {
            let current = self.current.lock();
            if current.permit.is_some() {
                return;
            }
            Arc::clone(&current.image)
        };
        let permit = match self.host.reserve_instance(image.waits()) {
            Ok(permit) => permit,
            Err(full) => {
                if let Some(omitted) = self.take_log_line() {
                    let component = self.name();
                    tracing::warn!(component, %full, omitted, "waiting for capacity at the host");
                }
                self.host.wait_for_capacity(image.waits()).await
            }
        };
        self.current.lock().permit = Some(permit);
    }

    /// Asks the rate limiter for a log line about a fault; returns the number of lines omitted
    /// before it.
    pub(super) fn take_log_line(&self) -> Option<u64> {
        self.usage.log_limits().faults.take(Instant::now())
    }

    /// Returns the processor usage of all incarnations, for a new one. Fails if the component is
    /// banned for exceeding its share.
    pub(super) fn usage(&self) -> Result<Arc<ComponentUsage>, Fault> {
        if self.usage.is_banned() {
            return Err(over_share_fault());
        }
        Ok(Arc::clone(&self.usage))
    }

    /// Asks whether the next call may begin.
    pub(super) fn admission(&self) -> Admission {
        self.usage.admission()
    }

    /// Releases the reserved capacity.
    pub(super) fn release_capacity(&self) {
        let permit = self.current.lock().permit.take();
        drop(permit);
        self.set_memory(0);
        metric::passivated(&self.name);
    }

    /// Starts an incarnation. The last number is its first token; no other incarnation uses the
    /// same tokens.
    pub(super) fn next_incarnation(&self) -> (Arc<Image>, StartParams, u64) {
        let mut current = self.current.lock();
        let reason = if current.incarnations == 0 {
            StartReason::Fresh
        } else {
            StartReason::Restart
        };
        let start = StartParams {
            reason,
            attempt: current.incarnations,
            saved: current.saved.clone(),
        };
        current.incarnations = current.incarnations.saturating_add(1);
        let tokens = (u64::from(current.incarnations) << 32) | 1;
        (Arc::clone(&current.image), start, tokens)
    }

    /// Returns the start parameters of an incarnation that does not follow a fault.
    pub(super) fn start_params(
        &self,
        reason: StartReason,
        saved: Option<SavedState>,
    ) -> StartParams {
        StartParams {
            reason,
            attempt: self.current.lock().incarnations,
            saved,
        }
    }

    /// Reads the state that an earlier run of the host saved, if the manifest says so.
    pub(super) fn load_state(&self) -> Result<Option<SavedState>, Fault> {
        let image = self.image();
        if image.manifest().state.mode != StateMode::Kv {
            return Ok(None);
        }
        let space = self.host.kv().space(&self.name);
        let state = match space.may_block() {
            true => off_worker(|| space.saved_state()),
            false => space.saved_state(),
        };
        state.map_err(|_| Fault {
            phase: CallPhase::Init,
            kind: store_failed(),
        })
    }

    /// Saves the state for later incarnations.
    pub(super) fn save_state(&self, saved: SavedState) -> Result<(), Fault> {
        let image = self.image();
        let manifest = image.manifest();
        let (version, state) = &saved;
        if let (StateMode::Kv, Some(quota)) = (manifest.state.mode, &manifest.grant.kv) {
            let space = self.host.kv().space(&self.name);
            let save = || space.save_state(*version, state, quota);
            let written = match space.may_block() {
                true => off_worker(save),
                false => save(),
            };
            written.map_err(|refusal| Fault {
                phase: CallPhase::Snapshot,
                kind: match refusal {
                    Refusal::Limit => FaultKind::Quota { size: state.len() },
                    _ => store_failed(),
                },
            })?;
        }
        self.current.lock().saved = Some(saved);
        Ok(())
    }

    /// Records that another version runs from now on.
    pub(super) fn set_version(&self, image: Arc<Image>, permit: CapacityPermit) {
        let limits = &image.manifest().limits;
        self.usage.set_limits(limits, self.host.limits());
        let mut current = self.current.lock();
        current.image = image;
        current.permit = Some(permit);
        current.incarnations = current.incarnations.saturating_add(1);
    }

    /// Discards the saved state.
    pub(super) fn discard_state(&self) {
        self.current.lock().saved = None;
    }

    /// Records a fault that ended an incarnation. The affected messages are kept for the next one
    /// as far as the manifest says so; returns the number of messages that are lost.
    pub(super) fn record_end(
        &self,
        fault: &Fault,
        now: Instant,
        at_risk: AtRisk,
        waiting: Vec<MsgBody>,
    ) -> u64 {
        self.record_fault(fault);
        let image = self.image();
        let rule = &image.manifest().restart;
        let ended = self
            .backlog
            .lock()
            .incarnation_failed(rule, now, at_risk, waiting);
        let LostMessages {
            lost,
            poison,
            dropped,
        } = ended;
        drop(dropped);
        // With a limit of 1 no message is ever handled again, and a lost one is an ordinary dead
        // letter.
        if rule.poison > 1 {
            for failed in &poison {
                let Some(omitted) = self.usage.log_limits().faults.take(now) else {
                    continue;
                };
                let (component, incarnations) = (&*self.name, failed.failures);
                let bytes = failed.envelope.payload.len();
                tracing::warn!(component, incarnations, bytes, %fault, omitted, "message dropped");
            }
            let count = poison.len() as u64;
            self.stats.poison.fetch_add(count, Ordering::Relaxed);
            metric::poison(&self.name, count);
        }
        lost
    }

    /// Returns `true` if earlier incarnations left messages to handle.
    pub(super) fn has_backlog(&self) -> bool {
        !self.backlog.lock().is_empty()
    }

    /// Takes the next message that was left.
    pub(super) fn next_backlogged(&self) -> Option<Backlogged> {
        self.backlog.lock().next()
    }

    pub(super) fn put_back(&self, backlogged: Backlogged) {
        self.backlog.lock().put_back(backlogged);
    }

    pub(super) fn record_fault(&self, fault: &Fault) {
        metric::fault(&self.name, &fault.kind);
        let fault = fault.clone();
        let mut current = self.current.lock();
        current.faults += 1;
        current.fault = Some(fault);
    }

    pub(super) fn count_handled(&self, count: u32, refused: bool) {
        // Only the actor writes these counters, in its turn, so load and store need no atomic
        // addition.
        let more = |counter: &AtomicU64, by: u64| {
            counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
        };
        more(&self.stats.calls, count.into());
        if refused {
            more(&self.stats.refused, 1);
        }
    }

    pub(super) fn set_memory(&self, memory: usize) {
        self.stats.memory.store(memory, Ordering::Relaxed);
    }
}
