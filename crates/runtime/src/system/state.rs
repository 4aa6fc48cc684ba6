//! The state that all actors of a system share.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::cells::ActorSlab;
use super::{ActorSystemBuilder, ShutdownReport};
use crate::actor::Actor;
use crate::address::ActorRef;
use crate::budget::charge;
use crate::cell::{
    self, ActorCell, ActorCore, ActorCoreParts, ActorId, ErasedCell, Owner, Phase, PhaseGoal,
};
use crate::children::{ChildInsertError, Children};
use crate::event::{Event, EventBus};
use crate::exit::Exit;
use crate::mailbox::{Mailbox, MailboxSpec};
use crate::metric::MetricEvent;
use crate::monitor::MonitorId;
use crate::path::{ActorPath, Key};
use crate::registry::Registry;
use crate::run;
use crate::schedule::Scheduler;
use crate::schedule::pool::SchedulerHost;
use crate::schedule::strand::UniqueArc;
use crate::supervision::{Shutdown, Supervisor, SupervisorActor, SupervisorRef};
use crate::sync::{AtomicU64, Ordering};
use crate::timer::Alarms;
use crate::topic::{Exchange, Exchanges, TopicLimits};
use crate::wait_graph::WaitGraph;

/// The error returned when an actor cannot be started.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another child of the same parent has this key.
    #[error("{path} already exists")]
    KeyTaken {
        /// The path that the actor would have had.
        path: ActorPath,
    },
    /// The key is empty or contains a slash.
    #[error("invalid key {key:?}: it must not be empty or contain a slash")]
    InvalidKey {
        /// The rejected key.
        key: Arc<str>,
    },
    /// The parent is stopping or has ended.
    #[error("cannot start {path}: its parent is stopping")]
    ParentEnding {
        /// The path that the actor would have had.
        path: ActorPath,
    },
    /// The parent has reached its limit of children.
    #[error("cannot start {path}: its parent has reached the limit of {limit} children")]
    TooManyChildren {
        /// The path that the actor would have had.
        path: ActorPath,
        /// Maximum number of children of the actor.
        limit: usize,
    },
    /// The actor chose not to run: it called [`Context::stop`](crate::Context::stop) in
    /// `pre_start`.
    #[error("{path} stopped itself in `pre_start`")]
    Ignored {
        /// The path of the actor.
        path: ActorPath,
    },
    /// The actor ended while it started.
    #[error("{path} did not start: {exit}")]
    Failed {
        /// The path of the actor.
        path: ActorPath,
        /// The exit of the actor.
        exit: Exit,
    },
}

/// The state that all actors of a system share.
pub(crate) struct SystemState {
    pub(crate) name: Arc<str>,
    pub(crate) scheduler: Scheduler,
    pub(crate) alarms: Arc<Alarms>,
    pub(crate) wait_graph: WaitGraph,
    pub(crate) ask_deadline: Duration,
    handler_limit: Duration,
    pub(crate) root: Children,
    pub(crate) events: Arc<EventBus>,
    topic_limits: TopicLimits,
    pub(super) registry: Registry,
    /// All actors that have not ended.
    pub(crate) cells: ActorSlab,
    /// Incremented atomically, so each number is unique. No other memory is published through it,
    /// so relaxed ordering is enough.
    monitors: AtomicU64,
    /// Relaxed for the same reason as `monitors`.
    seed: AtomicU64,
    extensions: Mutex<FxHashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
    #[cfg(feature = "testing")]
    pub(crate) faults: crate::testing::FaultPlan,
}

/// The time that killed actors have to reach their next await.
const KILL_GRACE: Duration = Duration::from_secs(1);

impl SystemState {
    pub(super) fn new(settings: ActorSystemBuilder, scheduler: Scheduler) -> Self {
        Self {
            name: settings.name,
            alarms: Alarms::new(scheduler.clone()),
            wait_graph: WaitGraph::default(),
            scheduler,
            ask_deadline: settings.ask_deadline,
            handler_limit: settings.handler_limit,
            root: Children::default(),
            events: Arc::default(),
            topic_limits: settings.topic_limits,
            registry: Registry::default(),
            cells: ActorSlab::new(),
            monitors: AtomicU64::new(0),
            seed: AtomicU64::new(settings.seed),
            extensions: Mutex::default(),
            #[cfg(feature = "testing")]
            faults: crate::testing::FaultPlan::default(),
        }
    }

    /// Returns the time of the system's clock.
    pub(crate) fn now(&self) -> Instant {
        self.scheduler.now()
    }

    pub(crate) fn next_monitor(&self) -> MonitorId {
        MonitorId(self.monitors.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the system-wide value of type `T`, creating it on first use.
    pub(crate) fn extension<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut extensions = self.extensions.lock();
        let any = extensions
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Arc::new(T::default()));
        Arc::clone(any)
            .downcast()
            .expect("stored under its own type")
    }

    /// Returns the topics and subscriptions for messages of type `T`.
    pub(super) fn exchange<T: Send + Sync + 'static>(&self) -> Arc<Exchange<T>> {
        let exchanges = self.extension::<Exchanges>();
        exchanges.exchange_for(&self.events, self.topic_limits)
    }

    /// Creates a cell in the tree, without an incarnation.
    pub(crate) fn create_cell<A: Actor>(
        self: &Arc<Self>,
        owner: Owner,
        key: &Key,
        settings: &CellSettings,
    ) -> Result<Arc<ActorCell<A::Msg>>, StartError> {
        if !key.is_valid() {
            let key = key.to_shared();
            return Err(StartError::InvalidKey { key });
        }
        let parent = owner.cell().cloned();
        let children = parent
            .as_ref()
            .map_or(&self.root, |cell| &cell.core().children);
        let &CellSettings {
            shutdown,
            mailbox,
            limit,
            place,
        } = settings;
        // Allocated before any lock is taken, because allocating may be slow.
        let unique = UniqueArc::new();
        let made = children.insert(&self.cells, key, limit, place, |place| {
            self.cells.insert_with(unique, |id| ActorCell {
                core: ActorCore::new(ActorCoreParts {
                    id,
                    key: key.clone(),
                    start_index: place,
                    kind: run::type_info::<A>,
                    owner,
                    shared: Arc::clone(self),
                    shutdown,
                }),
                mailbox: Mailbox::new(mailbox),
            })
        });
        if let Ok(cell) = &made
            && self.events.traces().any_matches(|| cell.core.path())
        {
            cell.core.set_traced(true);
        }
        made.map_err(|unfit| {
            let above = parent.map_or_else(ActorPath::root, |cell| cell.core().path());
            let path = above.child(key);
            match unfit {
                ChildInsertError::Taken => StartError::KeyTaken { path },
                ChildInsertError::Closed => StartError::ParentEnding { path },
                ChildInsertError::TooMany => StartError::TooManyChildren { path, limit },
            }
        })
    }

    pub(crate) fn spawn<A: Actor>(
        self: &Arc<Self>,
        owner: Owner,
        key: &Key,
        args: A::Args,
    ) -> Result<ActorRef<A::Msg>, StartError> {
        charge();
        let settings = CellSettings {
            shutdown: Shutdown::default(),
            mailbox: A::MAILBOX,
            limit: usize::MAX,
            place: None,
        };
        let cell = self.create_cell::<A>(owner, key, &settings)?;
        cell.core.report_started();
        run::launch_local::<A>(&cell, args);
        Ok(ActorRef(cell))
    }

    pub(crate) async fn supervise(
        self: &Arc<Self>,
        owner: Owner,
        key: &Key,
        supervisor: Supervisor,
    ) -> Result<SupervisorRef, StartError> {
        let settings = CellSettings {
            shutdown: Shutdown::Infinity,
            mailbox: SupervisorActor::MAILBOX,
            limit: usize::MAX,
            place: None,
        };
        let cell = self.create_cell::<SupervisorActor>(owner, key, &settings)?;
        cell.core.report_started();
        run::launch::<SupervisorActor>(&cell, Arc::new(supervisor));
        let node = &cell.core;
        node.wait_for_phase(PhaseGoal::Running).await;
        if node.phase() == Phase::Ended {
            let exit = node.last_exit().unwrap_or(Exit::Shutdown);
            return Err(StartError::Failed {
                path: node.path(),
                exit,
            });
        }
        Ok(SupervisorRef::new(ActorRef(cell)))
    }

    /// Returns the next seed for jitter. The sequence depends only on the seed of the system.
    pub(crate) fn next_seed(&self) -> u64 {
        self.seed
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed)
    }

    pub(crate) fn get(&self, id: ActorId) -> Option<Arc<dyn ErasedCell>> {
        self.cells.get(id)
    }

    /// Appends the actors of one page, which begins at `slot`, and returns where the next page
    /// begins.
    pub(crate) fn page(&self, slot: usize, into: &mut Vec<Arc<dyn ErasedCell>>) -> Option<usize> {
        self.cells.page(slot, into)
    }

    /// Frees the registered names and the identifier of an actor that has ended.
    pub(crate) fn remove_actor(&self, id: ActorId, names: &[Arc<str>]) {
        self.registry.remove_all(id, names);
        let removed = self.cells.remove(id);
        drop(removed);
    }

    pub(super) async fn shutdown(&self, limit: Duration) -> ShutdownReport {
        let before = self.cells.len();
        let ordered = async {
            for cell in self.root.close(&self.cells).iter().rev() {
                run::stop_root_actor(cell).await;
            }
        };
        if self.alarms.timeout(limit, ordered).await.is_none() {
            let cells = self.root.close(&self.cells);
            cells.iter().for_each(|cell| cell.kill());
            let killed = async {
                for cell in &cells {
                    cell.core().wait_for_phase(PhaseGoal::Ended).await;
                }
            };
            let _all_ended = self.alarms.timeout(KILL_GRACE, killed).await;
        }
        self.alarms.close();
        self.alarms.ended().await;
        let left = self.cells.all();
        let not_stopped: Vec<ActorPath> = left.iter().map(|cell| cell.core().path()).collect();
        self.scheduler.close();
        self.events.close();
        ShutdownReport {
            stopped: before.saturating_sub(not_stopped.len()),
            not_stopped,
        }
    }
}

impl SchedulerHost for SystemState {
    fn end_parked_actors(&self) {
        let all = self.cells.all();
        for cell in &all {
            cell.end_if_parked();
            // An actor between two incarnations has no future to drop, and its next incarnation
            // will never be started, so its cell is ended here.
            cell::end_if_down(cell);
        }
    }

    fn handler_limit(&self) -> Duration {
        self.handler_limit
    }

    fn progress(&self, actor: u64) -> Option<u64> {
        Some(self.get(ActorId::from_bits(actor))?.handled_count())
    }

    fn report_blocked(&self, actor: u64, held: Duration) {
        let Some(cell) = self.get(ActorId::from_bits(actor)) else {
            return;
        };
        let path = cell.core().path();
        tracing::warn!(%path, ?held, "a handler blocks its worker");
        self.events
            .emit(MetricEvent::LongHandler, || Event::LongHandler {
                path,
                held,
            });
    }
}

/// Settings of a child's cell, given by its parent.
pub(crate) struct CellSettings {
    pub(crate) shutdown: Shutdown,
    pub(crate) mailbox: MailboxSpec,
    /// The most children the parent may have.
    pub(crate) limit: usize,
    /// The place among its siblings that was reserved for the child.
    pub(crate) place: Option<u64>,
}
