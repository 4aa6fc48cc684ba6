//! Messages with a time to live.

use std::time::Duration;

use tokio::time::Instant;

use crate::address::{Accepts, ActorRef, SendError};
use crate::cell::ActorCore;
use crate::clock;
use crate::event::Event;
use crate::metric::MetricEvent;

impl<M: Send + 'static> ActorRef<M> {
    /// Sends a message that expires after `ttl`. If the mailbox is full and its rule is to wait,
    /// waits in turn for room, for as long.
    ///
    /// A message that the actor has not begun to handle when its time has passed is dropped instead
    /// of being handled, even after a restart of the actor. It is reported as [`Event::Expired`]
    /// and counted in [`ActorInfo::expired`](crate::ActorInfo::expired). Until its turn comes, it
    /// takes up its place.
    ///
    /// ```
    /// use std::time::Duration;
    /// use strowger::testing::{ScriptCommand, ScriptedActor, RecordedEvent, TestSystem};
    ///
    /// let system = TestSystem::new(1);
    /// let probe = system.probe::<RecordedEvent>();
    /// let puppet = system.spawn::<ScriptedActor>("p", probe.recipient());
    /// let second = Duration::from_secs(1);
    /// puppet.try_tell(ScriptCommand::Sleep(5 * second)).expect("there is room");
    /// puppet.try_tell_within(ScriptCommand::Note(1), 4 * second).expect("there is room");
    /// puppet.try_tell_within(ScriptCommand::Note(2), 6 * second).expect("there is room");
    /// system.advance(5 * second);
    /// assert_eq!(probe.event_lines(), ["/p started", "/p noted 2"]);
    /// ```
    ///
    /// # Errors
    /// Hands the message back, as [`ActorRef::tell`] does, and with `Expired` if its time passes
    /// before there is room.
    pub async fn tell_within<T>(&self, message: T, ttl: Duration) -> Result<(), SendError<T>>
    where
        M: Accepts<T>,
    {
        let until = clock::saturating_add(self.0.core.shared.now(), ttl);
        self.send_expiring(message, Some(until)).await.map(drop)
    }

    /// Sends a message that expires after `ttl`, without waiting; see [`ActorRef::tell_within`].
    ///
    /// # Errors
    /// Hands the message back, as [`ActorRef::try_tell`] does.
    pub fn try_tell_within<T>(&self, message: T, ttl: Duration) -> Result<(), SendError<T>>
    where
        M: Accepts<T>,
    {
        let until = clock::saturating_add(self.0.core.shared.now(), ttl);
        self.0.try_send(message, Some(until)).map(drop)
    }
}

/// Returns the time that remains until `until`.
pub(crate) fn remaining(until: Instant) -> Duration {
    until.saturating_duration_since(clock::now())
}

/// Reports messages that expired.
#[cold]
pub(crate) fn report_expired(node: &ActorCore, count: u64) {
    node.shared
        .events
        .emit(MetricEvent::Expired(count), || Event::Expired {
            path: node.path(),
            count,
        });
}
