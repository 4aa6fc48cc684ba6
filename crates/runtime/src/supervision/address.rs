//! The address of a supervisor, and what can be asked of it.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;

use crate::address::{ActorRef, AnyRef};
use crate::budget::charged;
use crate::cell::ActorId;
use crate::exit::Exit;
use crate::path::{Key, Path};
use crate::reply::{self, Reply};
use crate::supervision::child::ChildSpec;
use crate::supervision::spec::Restart;
use crate::supervision::supervisor::SupervisorMsg;
use crate::system::StartError;

/// Why a supervisor did not do what was asked of one child.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// The supervisor has ended.
    #[error("the supervisor has ended")]
    Ended,
    /// It has no such child.
    #[error("there is no child {key:?}")]
    Unknown {
        /// The key.
        key: Arc<str>,
    },
    /// The child runs, or is about to be restarted.
    #[error("the child {key:?} is running")]
    Running {
        /// The key.
        key: Arc<str>,
    },
    /// The child was not started.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A child as its supervisor sees it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChildInfo {
    /// Its key.
    pub key: Arc<str>,
    /// After which exits it is started again.
    pub restart: Restart,
    /// The actor; `None` for a child that was stopped and kept its place.
    pub actor: Option<AnyRef>,
}

/// The address of a supervisor.
#[derive(Clone)]
pub struct SupervisorRef(ActorRef<SupervisorMsg>);

impl fmt::Debug for SupervisorRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SupervisorRef({})", self.path())
    }
}

impl SupervisorRef {
    pub(crate) const fn new(actor: ActorRef<SupervisorMsg>) -> Self {
        Self(actor)
    }

    /// Adds a child after all others and starts it.
    ///
    /// # Errors
    /// When the key is taken, or the child ends while it starts. [`StartError::Ignored`] when it
    /// chose not to run: then it keeps its place, stopped, unless it is temporary.
    pub async fn start_child(&self, spec: ChildSpec) -> Result<AnyRef, ChildError> {
        self.call(|reply| SupervisorMsg::Start(Box::new(spec), reply))
            .await?
    }

    /// Adds many children in one call, and starts them in this order, each when the one before
    /// has started or failed. Comes back with a result for each; one that fails changes nothing
    /// for the others. For all or none there is [`SupervisorRef::start_together`].
    ///
    /// # Errors
    /// When the supervisor has ended. A result is an error as in [`SupervisorRef::start_child`].
    pub async fn start_children(
        &self,
        specs: impl IntoIterator<Item = ChildSpec>,
    ) -> Result<Vec<Result<AnyRef, ChildError>>, ChildError> {
        let specs = specs.into_iter().collect();
        self.call(|reply| SupervisorMsg::StartEach(specs, reply))
            .await
    }

    /// Adds many children in one call, all or none: as when a supervisor starts, they start in
    /// this order up to the first that fails, which stops those before it, the latest first, and
    /// takes their places away. One that chose not to run has not failed, and is not among those
    /// that are returned.
    ///
    /// # Errors
    /// The error of the child that failed, as in [`SupervisorRef::start_child`].
    pub async fn start_together(
        &self,
        specs: impl IntoIterator<Item = ChildSpec>,
    ) -> Result<Vec<AnyRef>, ChildError> {
        let specs = specs.into_iter().collect();
        self.call(|reply| SupervisorMsg::StartAll(specs, reply))
            .await?
    }

    /// Starts a child again that was stopped and kept its place.
    ///
    /// # Errors
    /// When it runs, or ends while it starts. [`StartError::Ignored`] when it chose not to run.
    pub async fn restart_child(&self, key: &str) -> Result<AnyRef, ChildError> {
        self.call(|reply| SupervisorMsg::Restart(key.into(), reply))
            .await?
    }

    /// Stops a child; it keeps its place unless it is temporary.
    ///
    /// # Errors
    /// When there is no such child.
    pub async fn terminate_child(&self, key: &str) -> Result<(), ChildError> {
        self.call(|reply| SupervisorMsg::Terminate(key.into(), reply))
            .await?
    }

    /// Takes the place of a stopped child away.
    ///
    /// # Errors
    /// When there is no such child, or it runs.
    pub async fn delete_child(&self, key: &str) -> Result<(), ChildError> {
        self.call(|reply| SupervisorMsg::Delete(key.into(), reply))
            .await?
    }

    /// The children in their order.
    ///
    /// # Errors
    /// When the supervisor has ended.
    pub async fn which_children(&self) -> Result<Vec<ChildInfo>, ChildError> {
        self.call(SupervisorMsg::Which).await
    }

    /// How many children have a place.
    ///
    /// # Errors
    /// When the supervisor has ended.
    pub async fn count_children(&self) -> Result<usize, ChildError> {
        self.call(SupervisorMsg::Count).await
    }

    /// The child with this key, if it has a cell and its messages are of type `M`.
    #[must_use]
    pub fn child<M: Send + 'static>(&self, key: &str) -> Option<ActorRef<M>> {
        self.any_child(key)?.downcast()
    }

    /// The child with this key, of any type.
    #[must_use]
    pub fn any_child(&self, key: &str) -> Option<AnyRef> {
        self.0.0.node.child(&Key::from(key)).map(AnyRef)
    }

    /// Asks the supervisor to stop, and so all below it.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Ends the supervisor and all below it at their next await.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Waits for the supervisor's end, over all restarts.
    pub async fn stopped(&self) -> Exit {
        self.0.stopped().await
    }

    /// The supervisor's identifier.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.0.id()
    }

    /// Where the supervisor lives in the tree.
    #[must_use]
    pub fn path(&self) -> Path {
        self.0.path()
    }

    /// The same address without its type.
    #[must_use]
    pub fn erase(&self) -> AnyRef {
        self.0.erase()
    }

    /// Waits as long as the supervisor lives: a child may take its time to start or to stop.
    async fn call<T: Send + 'static>(
        &self,
        message: impl FnOnce(Reply<T>) -> SupervisorMsg,
    ) -> Result<T, ChildError> {
        let (reply, mut answer) = reply::slot();
        let told = self.0.tell(message(reply)).await;
        told.map_err(|_| ChildError::Ended)?;
        poll_fn(|cx| charged(cx, |cx| answer.poll(cx)))
            .await
            .map_err(|_| ChildError::Ended)
    }
}

impl From<&SupervisorRef> for AnyRef {
    fn from(supervisor: &SupervisorRef) -> Self {
        supervisor.erase()
    }
}
