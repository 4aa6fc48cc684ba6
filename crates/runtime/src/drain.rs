//! Draining: an orderly end that hands back the messages that were not handled.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use crate::address::ActorRef;
use crate::cell::{ActorCell, Phase, PhaseGoal};
use crate::exit::{Exit, drop_all_caught};
use crate::mailbox::{Drain, SystemMessage};
use crate::wait_graph::PhaseEdge;

impl<M: Send + 'static> ActorRef<M> {
    /// Refuses new messages, lets the actor handle those that wait, and stops it. Messages that
    /// were not handled within the limit are handed back, in order.
    ///
    /// From the first poll on, messages are refused with
    /// [`SendError::Draining`](crate::SendError::Draining), including those whose senders wait for
    /// room. When no message waits any more, or the limit has passed, the actor stops as with
    /// [`ActorRef::stop`]: with [`Exit::Shutdown`], once it has handled its current message. Its
    /// children stop before it. After the limit, it has its [`Shutdown`](crate::Shutdown) time for
    /// that, and is then killed. If it ends earlier, by a panic for example, the drain is over too,
    /// and the messages that wait are handed back; only the message that was being handled is a
    /// dead letter.
    ///
    /// A supervisor sees an exit like any other: it restarts a permanent child, and the new
    /// incarnation takes messages again; a transient or temporary child has ended. The drain does
    /// not wait for answers and outputs of pipes that have not arrived when nothing else waits.
    ///
    /// If there are several drains at once, the first one that is polled after the end gets the
    /// messages that were not handled. If this future is dropped, the actor continues to drain,
    /// without a limit; messages left over then stay for the next incarnation, or become dead
    /// letters.
    ///
    /// ```
    /// use std::time::Duration;
    /// use strowger::testing::{ScriptCommand, ScriptedActor, RecordedEvent, TestSystem};
    ///
    /// let system = TestSystem::new(1);
    /// let probe = system.probe::<RecordedEvent>();
    /// let puppet = system.spawn::<ScriptedActor>("p", probe.recipient());
    /// let sleep = ScriptCommand::Sleep(Duration::from_secs(9));
    /// for order in [ScriptCommand::Note(1), sleep, ScriptCommand::Note(2)] {
    ///     puppet.try_tell(order).expect("there is room");
    /// }
    /// let left = system.run(puppet.drain(Duration::from_secs(5)));
    /// assert!(matches!(left[..], [ScriptCommand::Note(2)]));
    /// assert!(!puppet.is_alive());
    /// ```
    pub async fn drain(&self, within: Duration) -> Vec<M> {
        let cell = &*self.0;
        let Some(drain) = cell.mailbox.drain() else {
            return Vec::new();
        };
        let drainer = DrainWaiter { cell, drain };
        let node = &cell.core;
        let alarms = &node.shared.alarms;
        if let Some(left) = alarms.timeout(within, drainer.unhandled()).await {
            return left;
        }
        if node.phase() == Phase::Down {
            // No incarnation runs that could handle messages or stop.
            cell.mailbox.end_drain();
        } else {
            cell.mailbox
                .push_system(SystemMessage::Stop(Exit::Shutdown), None);
        }
        let Some(limit) = node.shutdown_limit.get() else {
            return drainer.unhandled().await;
        };
        if let Some(left) = alarms.timeout(limit, drainer.unhandled()).await {
            return left;
        }
        self.kill();
        drainer.unhandled().await
    }
}

/// A caller that waits for the end of a drain.
struct DrainWaiter<'a, M: Send + 'static> {
    cell: &'a ActorCell<M>,
    drain: Arc<Drain<M>>,
}

impl<M: Send + 'static> DrainWaiter<'_, M> {
    async fn unhandled(&self) -> Vec<M> {
        // A drain is over at the end of the incarnation, at the latest.
        let mut edge = PhaseEdge::new(&self.cell.core, PhaseGoal::Down);
        poll_fn(|cx| {
            let left = self.drain.poll_unhandled(cx.waker());
            if left.is_pending() {
                edge.on_pending();
            }
            left
        })
        .await
    }
}

impl<M: Send + 'static> Drop for DrainWaiter<'_, M> {
    fn drop(&mut self) {
        let left = self.drain.remove_waiter();
        if !left.is_empty() {
            self.cell.report_dead_letters(left.len() as u64);
            drop_all_caught(left);
        }
    }
}
