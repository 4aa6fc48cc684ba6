//! Ending an actor from within, and noticing an order to stop.

use super::Context;
use crate::actor::Actor;
use crate::exit::Exit;

impl<A: Actor> Context<A> {
    /// Ends the actor with [`Exit::Normal`] after this hook, ahead of all messages that wait.
    ///
    /// In a `pre_start` that succeeds, it means that the actor chooses not to run: it handles
    /// nothing, `post_stop` gets the value with [`Exit::Ignored`], and no supervisor counts this as
    /// a failure or restarts the actor on its own. Messages that wait for it become dead letters.
    pub fn stop(&mut self) {
        self.exit_requested = true;
        if let Some(state) = &mut self.state {
            state.exit = None;
        }
    }

    /// Ends the actor with this exit after this hook.
    pub(crate) fn request_exit(&mut self, exit: &Exit) {
        self.exit_requested = true;
        self.state().exit = Some(exit.clone());
    }

    /// Returns the exit that the actor itself asked for.
    #[inline]
    pub(crate) fn requested_exit(&self) -> Option<Exit> {
        self.exit_requested.then(|| {
            let state = self.state.as_ref();
            let exit = state.and_then(|state| state.exit.clone());
            exit.unwrap_or(Exit::Normal)
        })
    }

    /// Returns `true` if the actor was told to stop and has not seen the order yet.
    pub(crate) fn has_stop_request(&self) -> bool {
        self.cell.mailbox.is_told_to_stop()
    }
}
