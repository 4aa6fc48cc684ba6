//! Child specifications.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::actor::Actor;
use crate::cell::{ActorCell, ErasedCell, Owner};
use crate::mailbox::{HomedRunnable, MailboxSpec};
use crate::path::Key;
use crate::run;
use crate::supervision::dynamic::{Dynamic, DynamicActor};
use crate::supervision::spec::{Restart, Shutdown};
use crate::supervision::supervisor::{Supervisor, SupervisorActor};
use crate::system::{CellSettings, StartError, SystemState};

/// The specification of one child: how its supervisor starts, restarts and stops it.
///
/// By default a child is [`Restart::Permanent`] and has five seconds to stop; a child that is
/// itself a supervisor has as long as its own children need.
///
/// A child that chooses not to run ([`Context::stop`](crate::Context::stop) in `pre_start`) does
/// not fail its supervisor, which goes on with the next child. The child stays in the child table,
/// stopped, until [`SupervisorRef::restart_child`](crate::SupervisorRef::restart_child) or
/// [`SupervisorRef::delete_child`](crate::SupervisorRef::delete_child) is called; a child that is
/// [`Restart::Temporary`] is removed.
#[derive(Clone)]
#[must_use = "a specification starts nothing by itself"]
pub struct ChildSpec {
    pub(crate) key: Arc<str>,
    pub(crate) restart: Restart,
    pub(crate) shutdown: Shutdown,
    mailbox: Option<MailboxSpec>,
    factory: Arc<dyn ChildFactory>,
}

impl ChildSpec {
    /// Describes a child that is an actor. Each incarnation is made from a clone of `args`.
    pub fn new<A: Actor>(key: impl Into<Arc<str>>, args: A::Args) -> Self {
        Self::with_factory::<A>(key.into(), Shutdown::default(), args)
    }

    /// Describes a child that is a supervisor.
    pub fn supervisor(key: impl Into<Arc<str>>, supervisor: Supervisor) -> Self {
        let shutdown = Shutdown::Infinity;
        Self::with_factory::<SupervisorActor>(key.into(), shutdown, Arc::new(supervisor))
    }

    /// Describes a child that is a dynamic supervisor. Its address is obtained with
    /// [`AnyRef::dynamic`](crate::AnyRef::dynamic).
    pub fn dynamic<A: Actor>(key: impl Into<Arc<str>>, dynamic: Dynamic<A>) -> Self {
        let shutdown = Shutdown::Infinity;
        Self::with_factory::<DynamicActor<A>>(key.into(), shutdown, dynamic.into_table())
    }

    fn with_factory<A: Actor>(key: Arc<str>, shutdown: Shutdown, args: A::Args) -> Self {
        let make = Arc::new(ActorFactory::<A>(args));
        Self {
            key,
            restart: Restart::default(),
            shutdown,
            mailbox: None,
            factory: make,
        }
    }

    /// Sets the exits after which the child is restarted.
    pub const fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// Sets how long the child may take to stop.
    pub const fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Replaces the mailbox that the actor type asks for.
    pub const fn mailbox(mut self, mailbox: MailboxSpec) -> Self {
        self.mailbox = Some(mailbox);
        self
    }

    /// Returns the key of the child.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Creates the cell of the child in the tree.
    pub(crate) fn create_cell(
        &self,
        shared: &Arc<SystemState>,
        owner: Owner,
        place: u64,
    ) -> Result<Arc<dyn ErasedCell>, StartError> {
        self.factory.cell(shared, owner, self, place)
    }

    /// Returns the arguments that each incarnation is made from.
    pub(crate) fn args(&self) -> &dyn Any {
        self.factory.args()
    }

    /// Prepares an incarnation in the child's cell, ready to be scheduled.
    pub(crate) fn prepare(&self, cell: &Arc<dyn ErasedCell>) -> Option<HomedRunnable> {
        self.factory.prepare(cell)
    }
}

impl fmt::Debug for ChildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildSpec")
            .field("key", &self.key)
            .field("restart", &self.restart)
            .field("shutdown", &self.shutdown)
            .finish_non_exhaustive()
    }
}

trait ChildFactory: Send + Sync {
    fn cell(
        &self,
        shared: &Arc<SystemState>,
        owner: Owner,
        spec: &ChildSpec,
        place: u64,
    ) -> Result<Arc<dyn ErasedCell>, StartError>;
    fn args(&self) -> &dyn Any;
    fn prepare(&self, cell: &Arc<dyn ErasedCell>) -> Option<HomedRunnable>;
}

struct ActorFactory<A: Actor>(A::Args);

impl<A: Actor> ChildFactory for ActorFactory<A> {
    fn cell(
        &self,
        shared: &Arc<SystemState>,
        owner: Owner,
        spec: &ChildSpec,
        place: u64,
    ) -> Result<Arc<dyn ErasedCell>, StartError> {
        let settings = CellSettings {
            shutdown: spec.shutdown,
            mailbox: spec.mailbox.unwrap_or(A::MAILBOX),
            limit: usize::MAX,
            place: Some(place),
        };
        Ok(shared.create_cell::<A>(owner, &Key::from(Arc::clone(&spec.key)), &settings)?)
    }

    fn args(&self) -> &dyn Any {
        &self.0
    }

    fn prepare(&self, cell: &Arc<dyn ErasedCell>) -> Option<HomedRunnable> {
        let cell: Arc<ActorCell<A::Msg>> = Arc::clone(cell)
            .into_any()
            .downcast()
            .expect("the cell was made by this maker");
        run::prepare::<A>(&cell, self.0.clone())
    }
}
