//! The actor system: the root of the tree, and the state that all actors share.

mod cells;
mod state;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::actor::Actor;
use crate::address::{ActorRef, AnyRef};
use crate::cell::{ActorId, ErasedCell, Owner};
use crate::event::EventStream;
use crate::group::{Group, GroupDirectories, GroupInfo};
use crate::info::{ActorInfo, TreeNode};
use crate::late_ask::{self, LateAsk};
#[cfg(feature = "messages")]
use crate::message::ExportRegistry;
use crate::metric;
use crate::path::{ActorPath, Key, PathPattern};
use crate::recipient::Recipient;
use crate::registry::RegisterError;
use crate::schedule::Scheduler;
use crate::schedule::pool::SchedulerHost;
use crate::supervision::{Dynamic, DynamicRef, Supervisor, SupervisorRef};
use crate::top::{SystemObserver, yield_now};
use crate::topic::{Exchanges, Subscription, Topic, TopicError, TopicInfo, TopicLimits};
use crate::trace::{TraceLimits, TraceReader};
pub(crate) use cells::ActorSlab;
pub use state::StartError;
pub(crate) use state::{CellSettings, SystemState};

/// The error returned when a system cannot be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// There is no running tokio runtime.
    #[error("an actor system must be built inside a tokio runtime")]
    NoRuntime,
    /// The program aborts on panic, so a supervisor could not restart anything.
    #[error("the program is built with panic = \"abort\": supervision needs panic = \"unwind\"")]
    PanicAborts,
}

/// Settings of a system, created by [`ActorSystem::builder`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct ActorSystemBuilder {
    name: Arc<str>,
    ask_deadline: Duration,
    handler_limit: Duration,
    seed: u64,
    topic_limits: TopicLimits,
}

impl ActorSystemBuilder {
    /// Sets how long [`ActorRef::ask`] waits for an answer. The default is five seconds.
    pub const fn ask_deadline(mut self, deadline: Duration) -> Self {
        self.ask_deadline = deadline;
        self
    }

    /// Sets how long a hook may hold its worker before
    /// [`Event::LongHandler`](crate::Event::LongHandler) is emitted. The default is 50
    /// milliseconds.
    ///
    /// Only the time between two awaits that are pending counts. Actors with a thread of their own
    /// ([`Actor::BLOCKING`]) have no limit.
    pub const fn handler_limit(mut self, limit: Duration) -> Self {
        self.handler_limit = limit;
        self
    }

    /// Sets the seed of random choices (the jitter of backoffs). By default each system has a seed
    /// of its own.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the limits on topics: the length and depth of their names, the number of topics, and
    /// the number of subscriptions.
    pub const fn topic_limits(mut self, limits: TopicLimits) -> Self {
        self.topic_limits = limits;
        self
    }

    /// Builds the system on the tokio runtime of the caller.
    ///
    /// # Errors
    /// Returns an error outside of a tokio runtime, and in a program that aborts on panic.
    pub fn build(self) -> Result<ActorSystem, BuildError> {
        check_unwind(cfg!(panic = "unwind"))?;
        let scheduler = Scheduler::current().ok_or(BuildError::NoRuntime)?;
        Ok(ActorSystem::with_scheduler(self, scheduler))
    }
}

/// An actor system: the root of one tree of actors.
///
/// Clones refer to the same system. If the last clone is dropped without a call of
/// [`ActorSystem::shutdown`], all actors are killed: no task outlives its system.
#[derive(Clone)]
pub struct ActorSystem {
    shared: Arc<SystemState>,
    /// `None` in handles that actors obtained from their context; those do not keep the system up.
    _up: Option<Arc<SystemGuard>>,
}

struct SystemGuard(Arc<SystemState>);

impl Drop for SystemGuard {
    fn drop(&mut self) {
        for cell in self.0.root.close(&self.0.cells) {
            cell.kill();
        }
        self.0.alarms.close();
        self.0.scheduler.close();
        self.0.events.close();
    }
}

/// The outcome of [`ActorSystem::shutdown`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Number of actors that ended.
    pub stopped: usize,
    /// The actors that had not ended within the limit.
    pub not_stopped: Vec<ActorPath>,
}

impl ActorSystem {
    /// Builds a system with default settings on the tokio runtime of the caller.
    ///
    /// # Errors
    /// Returns an error outside of a tokio runtime, and in a program that aborts on panic.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, BuildError> {
        Self::builder(name).build()
    }

    /// Returns a builder with default settings.
    pub fn builder(name: impl Into<Arc<str>>) -> ActorSystemBuilder {
        ActorSystemBuilder {
            name: name.into(),
            ask_deadline: Duration::from_secs(5),
            handler_limit: Duration::from_millis(50),
            seed: RandomState::new().hash_one(()),
            topic_limits: TopicLimits::DEFAULT,
        }
    }

    pub(crate) fn with_scheduler(settings: ActorSystemBuilder, scheduler: Scheduler) -> Self {
        metric::describe();
        let shared = Arc::new(SystemState::new(settings, scheduler));
        shared
            .scheduler
            .open(Arc::downgrade(&shared) as Weak<dyn SchedulerHost>);
        Self {
            _up: Some(Arc::new(SystemGuard(Arc::clone(&shared)))),
            shared,
        }
    }

    pub(crate) fn from_shared(shared: &Arc<SystemState>) -> Self {
        Self {
            shared: Arc::clone(shared),
            _up: None,
        }
    }

    /// Returns the name of the system.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Returns the current time of the system's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Starts an actor at the top of the tree. Messages that are sent to it before it has started
    /// wait in its mailbox.
    ///
    /// The actor is not restarted; to have it restarted, start it under a supervisor.
    ///
    /// # Errors
    /// Returns an error if the key is invalid or taken, or if the system is shutting down.
    pub fn spawn<A: Actor>(
        &self,
        key: impl Into<Key>,
        args: A::Args,
    ) -> Result<ActorRef<A::Msg>, StartError> {
        self.shared.spawn::<A>(Owner::System, &key.into(), args)
    }

    /// Starts a supervisor at the top of the tree and waits until its children have started.
    ///
    /// # Errors
    /// Returns an error if the key is invalid or taken, the system is shutting down, or a child
    /// ends while it starts.
    pub async fn supervise(
        &self,
        key: impl Into<Key>,
        supervisor: Supervisor,
    ) -> Result<SupervisorRef, StartError> {
        self.shared
            .supervise(Owner::System, &key.into(), supervisor)
            .await
    }

    /// Starts a dynamic supervisor at the top of the tree.
    ///
    /// # Errors
    /// Returns an error if the key is invalid or taken, or if the system is shutting down.
    pub fn dynamic<A: Actor>(
        &self,
        key: impl Into<Key>,
        dynamic: Dynamic<A>,
    ) -> Result<DynamicRef<A>, StartError> {
        DynamicRef::start(&self.shared, Owner::System, &key.into(), dynamic)
    }

    /// Registers an actor under a name until the actor ends.
    ///
    /// # Errors
    /// Returns an error if the name is taken or the actor has ended.
    pub fn register(
        &self,
        name: impl Into<Arc<str>>,
        actor: impl Into<AnyRef>,
    ) -> Result<(), RegisterError> {
        self.shared.registry.register(name.into(), actor.into())
    }

    /// Frees a registered name. Returns `true` if the name was taken.
    #[must_use]
    pub fn unregister(&self, name: &str) -> bool {
        self.shared.registry.unregister(name)
    }

    /// Returns the actor registered under this name, if it handles messages of type `M`.
    #[must_use]
    pub fn whereis<M: Send + 'static>(&self, name: &str) -> Option<ActorRef<M>> {
        self.shared.registry.get(name)?.downcast()
    }

    /// Returns all registered names, sorted.
    #[must_use]
    pub fn registered(&self) -> Vec<Arc<str>> {
        self.shared.registry.names()
    }

    /// Returns the actor at this path.
    #[must_use]
    pub fn find(&self, path: impl Into<ActorPath>) -> Option<AnyRef> {
        let path = path.into();
        let mut keys = path.keys();
        let cells = &self.shared.cells;
        let mut cell = self.shared.root.get(cells, &Key::from(keys.next()?))?;
        for key in keys {
            cell = cell.core().children.get(cells, &Key::from(key))?;
        }
        Some(AnyRef(cell))
    }

    /// Returns the actor with this identifier.
    #[must_use]
    pub fn get(&self, id: ActorId) -> Option<AnyRef> {
        self.shared.get(id).map(AnyRef)
    }

    /// Returns information about all actors: each parent before its children, siblings in start
    /// order.
    #[must_use]
    pub fn actors(&self) -> Vec<ActorInfo> {
        let mut list = Vec::new();
        let mut left = self.shared.root.collect(&self.shared.cells);
        left.reverse();
        while let Some(cell) = left.pop() {
            left.extend(cell.core().children().into_iter().rev());
            list.push(AnyRef(cell).info());
        }
        list
    }

    /// Returns the tree of all actors.
    #[must_use]
    pub fn tree(&self) -> Vec<TreeNode> {
        let all = self.shared.root.collect(&self.shared.cells);
        all.into_iter().map(tree_node).collect()
    }

    /// Returns the topic with this name for messages of type `T`, and creates it on first use.
    ///
    /// The same name with another type is another topic. A topic that has neither handles nor
    /// subscribers may be dropped, together with its counters.
    ///
    /// # Errors
    /// Returns an error if the name is not valid or the limit on topics is reached.
    pub fn topic<T: Send + Sync + 'static>(&self, name: &str) -> Result<Topic<T>, TopicError> {
        self.shared.exchange::<T>().open(name)
    }

    /// Subscribes to all topics whose names match a pattern, those that do not exist yet included.
    /// `*` matches one segment, `**` any number of segments, including none.
    ///
    /// # Errors
    /// Returns an error if the pattern is not valid, the actor has ended, or the limit on
    /// subscriptions is reached.
    pub fn subscribe<T: Send + Sync + 'static>(
        &self,
        pattern: &str,
        recipient: Recipient<Arc<T>>,
    ) -> Result<Subscription, TopicError> {
        let exchange = self.shared.exchange::<T>();
        exchange.subscribe(pattern, recipient, None)
    }

    /// Subscribes to the messages that a filter accepts, in all topics whose names match a pattern.
    /// The filter runs in the publisher's turn.
    ///
    /// # Errors
    /// The same as [`ActorSystem::subscribe`].
    pub fn subscribe_where<T: Send + Sync + 'static>(
        &self,
        pattern: &str,
        recipient: Recipient<Arc<T>>,
        filter: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Result<Subscription, TopicError> {
        let exchange = self.shared.exchange::<T>();
        exchange.subscribe(pattern, recipient, Some(Arc::new(filter)))
    }

    /// Returns the stats of all topics, sorted by name and type.
    #[must_use]
    pub fn topics(&self) -> Vec<TopicInfo> {
        self.shared.extension::<Exchanges>().infos()
    }

    /// Returns the group with this name for messages of type `T`. Groups need not be created or
    /// deleted.
    #[must_use]
    pub fn group<T: Send + 'static>(&self, name: impl Into<Arc<str>>) -> Group<T> {
        self.shared
            .extension::<GroupDirectories>()
            .group(name.into())
    }

    /// Returns the groups that have members, sorted by name and type.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupInfo> {
        self.shared.extension::<GroupDirectories>().infos()
    }

    #[cfg(feature = "messages")]
    pub(crate) fn export_registry(&self) -> Arc<ExportRegistry> {
        self.shared.extension()
    }

    #[cfg(feature = "testing")]
    pub(crate) fn downgrade(&self) -> Weak<SystemState> {
        Arc::downgrade(&self.shared)
    }

    #[cfg(feature = "testing")]
    pub(crate) fn faults(&self) -> &crate::testing::FaultPlan {
        &self.shared.faults
    }

    /// Creates an observer of all actors, which finds the busiest of them and computes rates.
    #[must_use]
    pub fn observer(&self) -> SystemObserver {
        SystemObserver::new(Arc::clone(&self.shared))
    }

    /// Returns the asks that have been waiting for a second or longer, the oldest first: an actor
    /// that is too slow or never answers shows here. Asks whose deadline is shorter than that are
    /// left out.
    #[must_use]
    pub fn late_asks(&self) -> Vec<LateAsk> {
        late_ask::late_asks(&self.shared)
    }

    /// Returns `true` if [`ActorSystem::shutdown`] was called or all handles were dropped.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.shared.root.is_closed()
    }

    /// Records what the actors with matching paths do, including actors that start later, until a
    /// limit is reached or the tracer is dropped.
    pub async fn trace(&self, pattern: PathPattern, limits: TraceLimits) -> TraceReader {
        let shared = &self.shared;
        let tracer = TraceReader::attach(&shared.events, pattern, limits, shared.now());
        let mut page = Vec::new();
        let mut slot = Some(0);
        while let Some(from) = slot {
            slot = shared.page(from, &mut page);
            page.drain(..).for_each(|cell| tracer.mark(cell.core()));
            yield_now().await;
        }
        tracer
    }

    /// Subscribes to events from now on.
    #[must_use]
    pub fn events(&self) -> EventStream {
        self.shared.events.subscribe()
    }

    /// Ends all actors, the last started first, each within its own shutdown limit and all within
    /// `limit`.
    ///
    /// Actors that have not ended by then are killed. An actor that does not end within another
    /// second, because it blocks its thread, is named in the report.
    pub async fn shutdown(&self, limit: Duration) -> ShutdownReport {
        self.shared.shutdown(limit).await
    }
}

fn tree_node(cell: Arc<dyn ErasedCell>) -> TreeNode {
    let children = cell.core().children().into_iter().map(tree_node).collect();
    TreeNode {
        info: AnyRef(cell).info(),
        children,
    }
}

/// Rejects a program in which a panic aborts the process: no actor could be restarted.
const fn check_unwind(unwinds: bool) -> Result<(), BuildError> {
    if unwinds {
        Ok(())
    } else {
        Err(BuildError::PanicAborts)
    }
}

impl fmt::Debug for ActorSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ActorSystem({})", self.shared.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_abort_build_is_rejected_with_advice() {
        let refused = check_unwind(false).expect_err("nothing could be restarted");
        let text = refused.to_string();
        assert!(text.contains("panic = \"abort\"") && text.contains("panic = \"unwind\""));
        assert!(check_unwind(cfg!(panic = "unwind")).is_ok());
    }
}
