//! The system: the root of the tree and what all actors share.

mod cells;
mod shared;

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::actor::Actor;
use crate::address::{ActorRef, AnyRef};
use crate::cell::{ActorId, AnyCell, Owner};
use crate::event::EventStream;
use crate::group::{Directories, Group, GroupInfo};
use crate::info::{ActorInfo, TreeNode};
#[cfg(feature = "messages")]
use crate::message::Directory;
use crate::metric;
use crate::path::{Key, Path, PathPattern};
use crate::recipient::Recipient;
use crate::registry::RegisterError;
use crate::schedule::Scheduler;
use crate::schedule::pool::Residents;
use crate::supervision::{Dynamic, DynamicRef, Supervisor, SupervisorRef};
use crate::top::{Observer, pass_on};
use crate::topic::{Exchanges, Subscription, Topic, TopicError, TopicInfo, TopicLimits};
use crate::trace::{TraceLimits, Tracer};
pub(crate) use cells::Cells;
pub use shared::StartError;
pub(crate) use shared::{CellSettings, Shared};

/// Why a system was not built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Actors need a running tokio runtime.
    #[error("an actor system must be built inside a tokio runtime")]
    NoRuntime,
    /// The program aborts on panic, so nothing could be restarted.
    #[error("the program is built with panic = \"abort\": supervision needs panic = \"unwind\"")]
    PanicAborts,
}

/// Settings of a system, from [`ActorSystem::builder`].
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct Builder {
    name: Arc<str>,
    ask_deadline: Duration,
    handler_limit: Duration,
    seed: u64,
    topic_limits: TopicLimits,
}

impl Builder {
    /// How long [`ActorRef::ask`] waits; five seconds unless set.
    pub const fn ask_deadline(mut self, deadline: Duration) -> Self {
        self.ask_deadline = deadline;
        self
    }

    /// How long a hook may hold its worker before [`Event::LongHandler`](crate::Event::LongHandler)
    /// tells of it; 50 milliseconds unless set.
    ///
    /// What counts is the time without an await that has to wait. Actors that have a thread of
    /// their own ([`Actor::BLOCKING`]) have no limit.
    pub const fn handler_limit(mut self, limit: Duration) -> Self {
        self.handler_limit = limit;
        self
    }

    /// Where random choices (the jitter of backoffs) start from; different for each system unless
    /// set.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How long and deep names of topics may be, and how many topics and subscriptions there may
    /// be.
    pub const fn topic_limits(mut self, limits: TopicLimits) -> Self {
        self.topic_limits = limits;
        self
    }

    /// Builds the system on the tokio runtime that the caller is in.
    ///
    /// # Errors
    /// Outside of a runtime, and in a program that aborts on panic.
    pub fn build(self) -> Result<ActorSystem, BuildError> {
        can_unwind(cfg!(panic = "unwind"))?;
        let scheduler = Scheduler::current().ok_or(BuildError::NoRuntime)?;
        Ok(ActorSystem::with_scheduler(self, scheduler))
    }
}

/// A system of actors: the root of one tree.
///
/// A clone is the same system. When the last clone is dropped without
/// [`ActorSystem::shutdown`], all actors are killed: no task outlives its system.
#[derive(Clone)]
pub struct ActorSystem {
    shared: Arc<Shared>,
    /// Absent in handles that actors made, which do not keep the system up.
    _up: Option<Arc<Up>>,
}

struct Up(Arc<Shared>);

impl Drop for Up {
    fn drop(&mut self) {
        for cell in self.0.root.shut(&self.0.cells) {
            cell.kill();
        }
        self.0.alarms.close();
        self.0.scheduler.close();
        self.0.events.close();
    }
}

/// What an ordered end of a system came to.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// How many actors ended.
    pub stopped: usize,
    /// Those that had not ended within the limit.
    pub not_stopped: Vec<Path>,
}

impl ActorSystem {
    /// Builds a system with default settings on the tokio runtime that the caller is in.
    ///
    /// # Errors
    /// Outside of a runtime, and in a program that aborts on panic.
    pub fn new(name: impl Into<Arc<str>>) -> Result<Self, BuildError> {
        Self::builder(name).build()
    }

    /// Starts from default settings.
    pub fn builder(name: impl Into<Arc<str>>) -> Builder {
        Builder {
            name: name.into(),
            ask_deadline: Duration::from_secs(5),
            handler_limit: Duration::from_millis(50),
            seed: RandomState::new().hash_one(()),
            topic_limits: TopicLimits::DEFAULT,
        }
    }

    pub(crate) fn with_scheduler(settings: Builder, scheduler: Scheduler) -> Self {
        metric::describe();
        let shared = Arc::new(Shared::new(settings, scheduler));
        shared
            .scheduler
            .open(Arc::downgrade(&shared) as Weak<dyn Residents>);
        Self {
            _up: Some(Arc::new(Up(Arc::clone(&shared)))),
            shared,
        }
    }

    pub(crate) fn from_shared(shared: &Arc<Shared>) -> Self {
        Self {
            shared: Arc::clone(shared),
            _up: None,
        }
    }

    /// The system's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The time of the system's clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.shared.now()
    }

    /// Starts an actor at the top of the tree. It is not restarted; for that, give it a
    /// supervisor. Messages that are sent before it has started wait.
    ///
    /// # Errors
    /// When the key is taken, or the system is shutting down.
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
    /// When the key is taken, the system is shutting down, or a child ends while it starts.
    pub async fn supervise(
        &self,
        key: impl Into<Key>,
        supervisor: Supervisor,
    ) -> Result<SupervisorRef, StartError> {
        self.shared
            .supervise(Owner::System, &key.into(), supervisor)
            .await
    }

    /// Starts a supervisor of many children of one kind at the top of the tree.
    ///
    /// # Errors
    /// When the key is taken, or the system is shutting down.
    pub fn dynamic<A: Actor>(
        &self,
        key: impl Into<Key>,
        dynamic: Dynamic<A>,
    ) -> Result<DynamicRef<A>, StartError> {
        DynamicRef::start(&self.shared, Owner::System, &key.into(), dynamic)
    }

    /// Gives an actor a name in the registry, until the actor ends.
    ///
    /// # Errors
    /// When the name is taken, or the actor has ended.
    pub fn register(
        &self,
        name: impl Into<Arc<str>>,
        actor: impl Into<AnyRef>,
    ) -> Result<(), RegisterError> {
        self.shared.registry.register(name.into(), actor.into())
    }

    /// Frees a name; whether it was taken.
    #[must_use]
    pub fn unregister(&self, name: &str) -> bool {
        self.shared.registry.unregister(name)
    }

    /// The actor that has this name, if its messages are of type `M`.
    #[must_use]
    pub fn whereis<M: Send + 'static>(&self, name: &str) -> Option<ActorRef<M>> {
        self.shared.registry.get(name)?.downcast()
    }

    /// All names that are taken, in order.
    #[must_use]
    pub fn registered(&self) -> Vec<Arc<str>> {
        self.shared.registry.names()
    }

    /// The actor at this path.
    #[must_use]
    pub fn find(&self, path: impl Into<Path>) -> Option<AnyRef> {
        let path = path.into();
        let mut keys = path.keys();
        let cells = &self.shared.cells;
        let mut cell = self.shared.root.get(cells, &Key::from(keys.next()?))?;
        for key in keys {
            cell = cell.node().children.get(cells, &Key::from(key))?;
        }
        Some(AnyRef(cell))
    }

    /// The actor with this identifier.
    #[must_use]
    pub fn get(&self, id: ActorId) -> Option<AnyRef> {
        self.shared.get(id).map(AnyRef)
    }

    /// The figures of all actors: each parent before its children, siblings as they started.
    #[must_use]
    pub fn actors(&self) -> Vec<ActorInfo> {
        let mut list = Vec::new();
        let mut left = self.shared.root.all(&self.shared.cells);
        left.reverse();
        while let Some(cell) = left.pop() {
            left.extend(cell.node().children().into_iter().rev());
            list.push(AnyRef(cell).info());
        }
        list
    }

    /// The tree of all actors.
    #[must_use]
    pub fn tree(&self) -> Vec<TreeNode> {
        let all = self.shared.root.all(&self.shared.cells);
        all.into_iter().map(branch).collect()
    }

    /// The topic of this name for messages of type `T`; it is made when first asked for. The
    /// same name with another type is another topic. One that nobody holds and nobody subscribes
    /// to may be forgotten, with its figures.
    ///
    /// # Errors
    /// When the name is none, or there are as many topics as there may be.
    pub fn topic<T: Send + Sync + 'static>(&self, name: &str) -> Result<Topic<T>, TopicError> {
        self.shared.exchange::<T>().open(name)
    }

    /// Subscribes to all topics whose names match a pattern: `*` stands for one segment, `**` for
    /// any number of them, also none. Also to those of which nobody has heard yet.
    ///
    /// # Errors
    /// When the pattern is none, the actor has ended, or there are as many subscriptions as there
    /// may be.
    pub fn subscribe<T: Send + Sync + 'static>(
        &self,
        pattern: &str,
        recipient: Recipient<Arc<T>>,
    ) -> Result<Subscription, TopicError> {
        let exchange = self.shared.exchange::<T>();
        exchange.subscribe(pattern, recipient, None)
    }

    /// Subscribes to the messages that a filter accepts, in all topics whose names match a
    /// pattern. The filter runs in the publisher's turn.
    ///
    /// # Errors
    /// As [`ActorSystem::subscribe`].
    pub fn subscribe_where<T: Send + Sync + 'static>(
        &self,
        pattern: &str,
        recipient: Recipient<Arc<T>>,
        filter: impl Fn(&T) -> bool + Send + Sync + 'static,
    ) -> Result<Subscription, TopicError> {
        let exchange = self.shared.exchange::<T>();
        exchange.subscribe(pattern, recipient, Some(Arc::new(filter)))
    }

    /// The figures of all topics, by name and type.
    #[must_use]
    pub fn topics(&self) -> Vec<TopicInfo> {
        self.shared.extension::<Exchanges>().infos()
    }

    /// The group of this name for messages of type `T`. It needs no making and no ending.
    #[must_use]
    pub fn group<T: Send + 'static>(&self, name: impl Into<Arc<str>>) -> Group<T> {
        self.shared.extension::<Directories>().group(name.into())
    }

    /// The groups that have members, by name and type.
    #[must_use]
    pub fn groups(&self) -> Vec<GroupInfo> {
        self.shared.extension::<Directories>().infos()
    }

    #[cfg(feature = "messages")]
    pub(crate) fn directory(&self) -> Arc<Directory> {
        self.shared.extension()
    }

    #[cfg(feature = "testing")]
    pub(crate) fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.shared)
    }

    #[cfg(feature = "testing")]
    pub(crate) fn faults(&self) -> &crate::testing::Faults {
        &self.shared.faults
    }

    /// Makes an observer of all actors: for the busiest of them, and for rates.
    #[must_use]
    pub fn observer(&self) -> Observer {
        Observer::new(Arc::clone(&self.shared))
    }

    /// Whether [`ActorSystem::shutdown`] was called, or all handles were dropped.
    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.shared.root.is_shut()
    }

    /// Writes down what the actors do whose path matches, those that start later among them, until
    /// a limit is reached or the tracer is dropped.
    pub async fn trace(&self, pattern: PathPattern, limits: TraceLimits) -> Tracer {
        let shared = &self.shared;
        let tracer = Tracer::attach(&shared.events, pattern, limits, shared.now());
        let mut page = Vec::new();
        let mut slot = Some(0);
        while let Some(from) = slot {
            slot = shared.page(from, &mut page);
            page.drain(..).for_each(|cell| tracer.mark(cell.node()));
            pass_on().await;
        }
        tracer
    }

    /// Subscribes to events from now on.
    #[must_use]
    pub fn events(&self) -> EventStream {
        self.shared.events.subscribe()
    }

    /// Ends all actors: the last started first, each within its own limit, all within this one.
    /// What has not ended then is killed; what does not even end so, within a second, because it
    /// blocks its thread, is named in the report.
    pub async fn shutdown(&self, limit: Duration) -> ShutdownReport {
        self.shared.shutdown(limit).await
    }
}

fn branch(cell: Arc<dyn AnyCell>) -> TreeNode {
    let children = cell.node().children().into_iter().map(branch).collect();
    TreeNode {
        info: AnyRef(cell).info(),
        children,
    }
}

/// Refuses a program in which a panic is the end of all actors: nothing could be restarted.
const fn can_unwind(unwinds: bool) -> Result<(), BuildError> {
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
    fn a_program_that_aborts_on_panic_is_refused_with_what_to_change() {
        let refused = can_unwind(false).expect_err("nothing could be restarted");
        let text = refused.to_string();
        assert!(text.contains("panic = \"abort\"") && text.contains("panic = \"unwind\""));
        assert!(can_unwind(cfg!(panic = "unwind")).is_ok());
    }
}
