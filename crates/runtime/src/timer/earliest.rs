//! A timer for the earliest of several times.

use tokio::time::Instant;

use super::TimerKey;
use crate::actor::Actor;
use crate::address::Accepts;
use crate::context::Context;

/// A timer of an actor that fires at the earliest time that it has been armed for.
///
/// For state machines that ask to be called at some time and change their mind: the actor arms the
/// timer after each message, and clears it when the timer's message arrives.
#[derive(Debug, Default)]
pub struct EarliestTimer(Option<(Instant, TimerKey)>);

impl EarliestTimer {
    /// Creates a timer that is not armed.
    #[must_use]
    pub const fn new() -> Self {
        Self(None)
    }

    /// Sends the message to this incarnation at the given time, unless the timer is already armed
    /// for that time or an earlier one.
    pub fn arm<A, T>(&mut self, at: impl Into<Instant>, message: T, cx: &mut Context<A>)
    where
        A: Actor,
        A::Msg: Accepts<T>,
    {
        let at = at.into();
        match self.0 {
            Some((earlier, _)) if earlier <= at => return,
            Some((_, timer)) => _ = cx.cancel(timer),
            None => {}
        }
        let after = at.saturating_duration_since(cx.now());
        self.0 = Some((at, cx.send_after(after, message)));
    }

    /// Records that the message has arrived.
    pub const fn clear(&mut self) {
        self.0 = None;
    }
}
