//! Waiting until an actor runs.

use std::sync::Arc;

use crate::address::{ActorRef, AnyRef};
use crate::cell::{Phase, PhaseGoal};
use crate::exit::Exit;
use crate::system::StartError;

impl<M: Send + 'static> ActorRef<M> {
    /// Waits until the actor runs, over all restarts: until a `pre_start` has returned a value.
    ///
    /// The code that starts an actor need not wait for this, because messages wait. It is for code
    /// that has to know that the actor started, or why it did not.
    ///
    /// ```
    /// use strowger::{Actor, ActorSystem, BoxError, Context, StartError};
    ///
    /// /// Runs only where there is something to do.
    /// struct Sweeper;
    ///
    /// impl Actor for Sweeper {
    ///     type Msg = ();
    ///     type Args = bool;
    ///     type Error = BoxError;
    ///
    ///     async fn pre_start(dirty: bool, cx: &mut Context<Self>) -> Result<Self, BoxError> {
    ///         if !dirty {
    ///             cx.stop();
    ///         }
    ///         Ok(Self)
    ///     }
    ///
    ///     async fn handle(&mut self, (): (), _: &mut Context<Self>) -> Result<(), BoxError> {
    ///         Ok(())
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// let system = ActorSystem::new("house")?;
    /// system.spawn::<Sweeper>("attic", true)?.started().await?;
    /// let cellar = system.spawn::<Sweeper>("cellar", false)?;
    /// assert!(matches!(cellar.started().await, Err(StartError::Ignored { .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`StartError::Ignored`] if the actor chose not to run, [`StartError::Failed`] if it has
    /// ended otherwise. An actor that its supervisor is going to restart has not ended.
    pub async fn started(&self) -> Result<(), StartError> {
        self.erase().started().await
    }
}

impl AnyRef {
    /// Waits until the actor runs, as [`ActorRef::started`] does.
    ///
    /// # Errors
    /// As for [`ActorRef::started`].
    pub async fn started(&self) -> Result<(), StartError> {
        let cell = Arc::clone(&self.0);
        let node = cell.core();
        node.wait_for_phase(PhaseGoal::RanOnce).await;
        if node.phase() != Phase::Ended {
            return Ok(());
        }
        let path = node.path();
        Err(match node.last_exit().unwrap_or(Exit::Shutdown) {
            Exit::Ignored => StartError::Ignored { path },
            exit => StartError::Failed { path, exit },
        })
    }
}
