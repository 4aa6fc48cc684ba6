//! What a supervisor keeps of a child.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::actor::Actor;
use crate::cell::{AnyCell, Cell, Owner};
use crate::mailbox::{Idle, MailboxSpec};
use crate::path::Key;
use crate::run;
use crate::supervision::dynamic::{Dynamic, DynamicActor};
use crate::supervision::spec::{Restart, Shutdown};
use crate::supervision::supervisor::{Supervisor, SupervisorActor};
use crate::system::{CellSettings, Shared, StartError};

/// How a supervisor starts, restarts and ends one child.
///
/// Unless said otherwise an actor is [`Restart::Permanent`] and gets five seconds to stop, a
/// supervisor as long as its own children need.
///
/// A child that chooses not to run ([`Context::stop`](crate::Context::stop) in `pre_start`) does
/// not fail its supervisor, which goes on with the next child. It keeps its place, stopped, until
/// [`SupervisorRef::restart_child`](crate::SupervisorRef::restart_child) or
/// [`SupervisorRef::delete_child`](crate::SupervisorRef::delete_child); one that is
/// [`Restart::Temporary`] gives it up.
#[derive(Clone)]
#[must_use = "a specification starts nothing by itself"]
pub struct ChildSpec {
    pub(crate) key: Arc<str>,
    pub(crate) restart: Restart,
    pub(crate) shutdown: Shutdown,
    mailbox: Option<MailboxSpec>,
    make: Arc<dyn Make>,
}

impl ChildSpec {
    /// A child that is an actor, each incarnation made from a clone of these arguments.
    pub fn new<A: Actor>(key: impl Into<Arc<str>>, args: A::Args) -> Self {
        Self::made_by::<A>(key.into(), Shutdown::default(), args)
    }

    /// A child that is a supervisor.
    pub fn supervisor(key: impl Into<Arc<str>>, supervisor: Supervisor) -> Self {
        let shutdown = Shutdown::Infinity;
        Self::made_by::<SupervisorActor>(key.into(), shutdown, Arc::new(supervisor))
    }

    /// A child that is a dynamic supervisor; reached by
    /// [`AnyRef::dynamic`](crate::AnyRef::dynamic).
    pub fn dynamic<A: Actor>(key: impl Into<Arc<str>>, dynamic: Dynamic<A>) -> Self {
        let shutdown = Shutdown::Infinity;
        Self::made_by::<DynamicActor<A>>(key.into(), shutdown, dynamic.into_table())
    }

    fn made_by<A: Actor>(key: Arc<str>, shutdown: Shutdown, args: A::Args) -> Self {
        let make = Arc::new(Maker::<A>(args));
        Self {
            key,
            restart: Restart::default(),
            shutdown,
            mailbox: None,
            make,
        }
    }

    /// Says after which exits the child is started again.
    pub const fn restart(mut self, restart: Restart) -> Self {
        self.restart = restart;
        self
    }

    /// Says how long the child may take to stop.
    pub const fn shutdown(mut self, shutdown: Shutdown) -> Self {
        self.shutdown = shutdown;
        self
    }

    /// Gives the child another mailbox than its type asks for.
    pub const fn mailbox(mut self, mailbox: MailboxSpec) -> Self {
        self.mailbox = Some(mailbox);
        self
    }

    /// The key under which the child is found.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Makes the child's cell in the tree.
    pub(crate) fn cell(
        &self,
        shared: &Arc<Shared>,
        owner: Owner,
        place: u64,
    ) -> Result<Arc<dyn AnyCell>, StartError> {
        self.make.cell(shared, owner, self, place)
    }

    /// What every incarnation is made from.
    pub(crate) fn args(&self) -> &dyn Any {
        self.make.args()
    }

    /// Makes an incarnation at the child's cell ready to run.
    pub(crate) fn prepare(&self, cell: &Arc<dyn AnyCell>) -> Option<Idle> {
        self.make.prepare(cell)
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

trait Make: Send + Sync {
    fn cell(
        &self,
        shared: &Arc<Shared>,
        owner: Owner,
        spec: &ChildSpec,
        place: u64,
    ) -> Result<Arc<dyn AnyCell>, StartError>;
    fn args(&self) -> &dyn Any;
    fn prepare(&self, cell: &Arc<dyn AnyCell>) -> Option<Idle>;
}

struct Maker<A: Actor>(A::Args);

impl<A: Actor> Make for Maker<A> {
    fn cell(
        &self,
        shared: &Arc<Shared>,
        owner: Owner,
        spec: &ChildSpec,
        place: u64,
    ) -> Result<Arc<dyn AnyCell>, StartError> {
        let settings = CellSettings {
            shutdown: spec.shutdown,
            mailbox: spec.mailbox.unwrap_or(A::MAILBOX),
            limit: usize::MAX,
            place: Some(place),
        };
        Ok(shared.cell::<A>(owner, &Key::from(Arc::clone(&spec.key)), &settings)?)
    }

    fn args(&self) -> &dyn Any {
        &self.0
    }

    fn prepare(&self, cell: &Arc<dyn AnyCell>) -> Option<Idle> {
        let cell: Arc<Cell<A::Msg>> = Arc::clone(cell)
            .into_any()
            .downcast()
            .expect("the cell was made by this maker");
        run::prepare::<A>(&cell, self.0.clone())
    }
}
