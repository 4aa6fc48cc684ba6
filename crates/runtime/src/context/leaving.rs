//! How an actor ends itself, or learns that it is to end.

use super::Context;
use crate::actor::Actor;
use crate::exit::Exit;

impl<A: Actor> Context<A> {
    /// Ends the actor with [`Exit::Normal`] after this hook, before all that waits.
    ///
    /// In a `pre_start` that succeeds, it means that the actor chooses not to run: it handles
    /// nothing, `post_stop` gets the value with [`Exit::Ignored`], and no supervisor takes it for a
    /// failure or starts it again by itself. What waits for it is a dead letter.
    pub fn stop(&mut self) {
        self.leaving = true;
        if let Some(held) = &mut self.held {
            held.exit = None;
        }
    }

    /// Ends the actor with this exit after this hook.
    pub(crate) fn leave(&mut self, exit: &Exit) {
        self.leaving = true;
        self.held().exit = Some(exit.clone());
    }

    /// The exit that the actor itself asked for.
    #[inline]
    pub(crate) fn left(&self) -> Option<Exit> {
        self.leaving.then(|| {
            let held = self.held.as_ref();
            let exit = held.and_then(|held| held.exit.clone());
            exit.unwrap_or(Exit::Normal)
        })
    }

    /// Returns `true` if the actor was told to stop, and has not seen it yet.
    pub(crate) fn is_told_to_stop(&self) -> bool {
        self.cell.mailbox.is_told_to_stop()
    }
}
