//! Draining: an orderly end that hands back what was not handled.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use crate::address::ActorRef;
use crate::cell::{Cell, Phase};
use crate::exit::{Exit, discard};
use crate::mailbox::{Drain, System};

impl<M: Send + 'static> ActorRef<M> {
    /// Refuses new messages, lets the actor handle what waits, and stops it; what was not handled
    /// within the limit is handed back, in order.
    ///
    /// From the first poll on, messages are refused with
    /// [`SendError::Draining`](crate::SendError::Draining), those that wait for room too. When
    /// nothing waits any more, or the limit has passed, the actor stops as with
    /// [`ActorRef::stop`]: with [`Exit::Shutdown`], once it has handled the message that it is at,
    /// its children before it. After the limit it has its [`Shutdown`](crate::Shutdown) time for
    /// that, then it is killed. If it ends on the way, by a panic for example, the drain is over
    /// too, and what waits is handed back; only the message that it was at is a dead letter.
    ///
    /// A supervisor sees an exit like any other: it starts a permanent child again, and the new
    /// incarnation takes messages again; a transient or temporary one has ended. Answers and
    /// outputs of pipes that have not come when nothing else waits are not waited for.
    ///
    /// Of several drains at once, the first that is polled after the end gets what was not
    /// handled. Dropping this future lets the actor drain on, without a limit; what is left then
    /// stays for the next incarnation, or is a dead letter.
    ///
    /// ```
    /// use std::time::Duration;
    /// use strowger::testing::{Order, Puppet, Story, TestSystem};
    ///
    /// let system = TestSystem::new(1);
    /// let probe = system.probe::<Story>();
    /// let puppet = system.spawn::<Puppet>("p", probe.recipient());
    /// for order in [Order::Note(1), Order::Wait(Duration::from_secs(9)), Order::Note(2)] {
    ///     puppet.try_tell(order).expect("there is room");
    /// }
    /// let left = system.run(puppet.drain(Duration::from_secs(5)));
    /// assert!(matches!(left[..], [Order::Note(2)]));
    /// assert!(!puppet.is_alive());
    /// ```
    pub async fn drain(&self, within: Duration) -> Vec<M> {
        let cell = &*self.0;
        let Some(drain) = cell.mailbox.drain() else {
            return Vec::new();
        };
        let drainer = Drainer { cell, drain };
        let node = &cell.node;
        let alarms = &node.shared.alarms;
        if let Some(left) = alarms.within(within, drainer.left()).await {
            return left;
        }
        if node.phase() == Phase::Down {
            // Nobody runs who could handle or stop.
            cell.mailbox.end_drain();
        } else {
            cell.mailbox.system(System::Stop(Exit::Shutdown), None);
        }
        let Some(limit) = node.limit.get() else {
            return drainer.left().await;
        };
        if let Some(left) = alarms.within(limit, drainer.left()).await {
            return left;
        }
        self.kill();
        drainer.left().await
    }
}

/// One who waits for the end of a drain.
struct Drainer<'a, M: Send + 'static> {
    cell: &'a Cell<M>,
    drain: Arc<Drain<M>>,
}

impl<M: Send + 'static> Drainer<'_, M> {
    async fn left(&self) -> Vec<M> {
        poll_fn(|cx| self.drain.poll_left(cx.waker())).await
    }
}

impl<M: Send + 'static> Drop for Drainer<'_, M> {
    fn drop(&mut self) {
        let left = self.drain.leave();
        if !left.is_empty() {
            self.cell.lost(left.len() as u64);
            discard(left);
        }
    }
}
