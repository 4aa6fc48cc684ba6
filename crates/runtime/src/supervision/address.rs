//! The address of a supervisor, and the requests that can be sent to it.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{self, Poll};

use crate::address::{ActorRef, AnyRef, CancelOnDrop};
use crate::budget::charge_poll;
use crate::cell::ActorId;
use crate::exit::Exit;
use crate::path::{ActorPath, Key};
use crate::reply::{self, Reply};
use crate::supervision::child::ChildSpec;
use crate::supervision::spec::Restart;
use crate::supervision::supervisor::SupervisorMsg;
use crate::system::StartError;
use crate::wait_graph::{AskEdge, AskRing};

/// The error returned when a supervisor cannot carry out a request about a child.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// The supervisor has ended.
    #[error("the supervisor has ended")]
    Ended,
    /// The supervisor has no child with this key.
    #[error("there is no child {key:?}")]
    Unknown {
        /// The key of the request.
        key: Arc<str>,
    },
    /// The child is running, or is about to be restarted.
    #[error("the child {key:?} is running")]
    Running {
        /// The key of the child.
        key: Arc<str>,
    },
    /// The supervisor would have to wait for the caller, an actor that makes this request inside a
    /// hook: it is ending the caller, for example, or waits for it to start.
    #[error("request to the supervisor refused: it would deadlock ({path}); make it from a pipe")]
    Ring {
        /// The actors in the ring, each of which waits for the next: from the caller back to the
        /// caller.
        path: Arc<AskRing>,
    },
    /// The child could not be started.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// Information about a child of a supervisor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChildInfo {
    /// The key of the child.
    pub key: Arc<str>,
    /// The exits after which the child is restarted.
    pub restart: Restart,
    /// The child's actor; `None` if the child is stopped but still in the child table.
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
    /// Returns an error if the key is taken or if the child ends while it starts. The error is
    /// [`StartError::Ignored`] if the child chose not to run: it then stays in the child table,
    /// stopped, unless it is temporary.
    pub async fn start_child(&self, spec: ChildSpec) -> Result<AnyRef, ChildError> {
        self.call(|reply| SupervisorMsg::Start(Box::new(spec), reply))
            .await?
    }

    /// Adds several children in one call and starts them in order, each after the previous one has
    /// started or failed.
    ///
    /// Returns one result per child. A child that fails to start does not affect the others; to
    /// start all or none, use [`SupervisorRef::start_together`].
    ///
    /// # Errors
    /// Returns an error if the supervisor has ended. The individual results are those of
    /// [`SupervisorRef::start_child`].
    pub async fn start_children(
        &self,
        specs: impl IntoIterator<Item = ChildSpec>,
    ) -> Result<Vec<Result<AnyRef, ChildError>>, ChildError> {
        let specs = specs.into_iter().collect();
        self.call(|reply| SupervisorMsg::StartEach(specs, reply))
            .await
    }

    /// Adds several children in one call, all or none.
    ///
    /// The children start in order, as they do when a supervisor starts. If one fails, the children
    /// started before it are stopped, the latest first, and all of them are removed from the child
    /// table. A child that chooses not to run has not failed; it is left out of the returned list.
    ///
    /// # Errors
    /// Returns the error of the child that failed, as in [`SupervisorRef::start_child`].
    pub async fn start_together(
        &self,
        specs: impl IntoIterator<Item = ChildSpec>,
    ) -> Result<Vec<AnyRef>, ChildError> {
        let specs = specs.into_iter().collect();
        self.call(|reply| SupervisorMsg::StartAll(specs, reply))
            .await?
    }

    /// Starts a stopped child that is still in the child table.
    ///
    /// # Errors
    /// Returns an error if the child is running or ends while it starts. The error is
    /// [`StartError::Ignored`] if the child chose not to run.
    pub async fn restart_child(&self, key: &str) -> Result<AnyRef, ChildError> {
        self.call(|reply| SupervisorMsg::Restart(key.into(), reply))
            .await?
    }

    /// Stops a child and waits for it to end. It stays in the child table unless it is temporary.
    ///
    /// # Errors
    /// Returns an error if there is no such child.
    pub async fn terminate_child(&self, key: &str) -> Result<(), ChildError> {
        self.call(|reply| SupervisorMsg::Terminate(key.into(), reply))
            .await?
    }

    /// Removes a stopped child from the child table.
    ///
    /// # Errors
    /// Returns an error if there is no such child or if it is running.
    pub async fn delete_child(&self, key: &str) -> Result<(), ChildError> {
        self.call(|reply| SupervisorMsg::Delete(key.into(), reply))
            .await?
    }

    /// Returns the children in start order.
    ///
    /// # Errors
    /// Returns an error if the supervisor has ended.
    pub async fn which_children(&self) -> Result<Vec<ChildInfo>, ChildError> {
        self.call(SupervisorMsg::ListChildren).await
    }

    /// Returns the number of children in the child table, stopped ones included.
    ///
    /// # Errors
    /// Returns an error if the supervisor has ended.
    pub async fn count_children(&self) -> Result<usize, ChildError> {
        self.call(SupervisorMsg::Count).await
    }

    /// Returns the child with this key, if it has a cell and handles messages of type `M`.
    #[must_use]
    pub fn child<M: Send + 'static>(&self, key: &str) -> Option<ActorRef<M>> {
        self.any_child(key)?.downcast()
    }

    /// Returns the child with this key, whatever its message type.
    #[must_use]
    pub fn any_child(&self, key: &str) -> Option<AnyRef> {
        self.0.0.core.child(&Key::from(key)).map(AnyRef)
    }

    /// Asks the supervisor to stop, and with it everything below it in the tree.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Ends the supervisor and everything below it at their next await.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Waits until the supervisor has ended for good; restarts do not count as its end.
    pub async fn stopped(&self) -> Exit {
        self.0.stopped().await
    }

    /// Returns the identifier of the supervisor.
    #[must_use]
    pub fn id(&self) -> ActorId {
        self.0.id()
    }

    /// Returns the path of the supervisor in the tree.
    #[must_use]
    pub fn path(&self) -> ActorPath {
        self.0.path()
    }

    /// Returns the same address without its message type.
    #[must_use]
    pub fn erase(&self) -> AnyRef {
        self.0.erase()
    }

    /// Sends a request and waits for the answer, for as long as the supervisor lives: there is no
    /// deadline, since a child may take its time to start or to stop.
    async fn call<T: Send + 'static>(
        &self,
        message: impl FnOnce(Reply<T>) -> SupervisorMsg,
    ) -> Result<T, ChildError> {
        let cell = &self.0.0;
        let (reply, mut answer) = reply::reply_slot();
        let mut sending = pin!(self.0.send_expiring(message(reply), None));
        let mut asked = CancelOnDrop::new(&cell.mailbox);
        let mut asking = AskEdge::new(&cell.core);
        let mut deadline = cell.core.shared.alarms.unlimited_deadline();
        let mut poll = |cx: &mut task::Context<'_>| {
            if asked.number.is_none()
                && let Poll::Ready(sent) = sending.as_mut().poll(cx)
            {
                asked.number = Some(sent.map_err(|_| ChildError::Ended)?);
            }
            if asked.number.is_some()
                && let Poll::Ready(result) = answer.poll(cx)
            {
                asked.number = None;
                return Poll::Ready(result.map_err(|_| ChildError::Ended));
            }
            let number = asked.number.unwrap_or(u64::MAX);
            let noted = asking.on_pending(cx, number, || answer.pending_flag());
            noted.map_err(|path| ChildError::Ring { path })?;
            // An answer that has come since the poll has woken this task.
            deadline.poll_ask(cx, cell).map(|()| Err(ChildError::Ended))
        };
        poll_fn(|cx| charge_poll(cx, &mut poll)).await
    }
}

impl From<&SupervisorRef> for AnyRef {
    fn from(supervisor: &SupervisorRef) -> Self {
        supervisor.erase()
    }
}
