//! Signals that an actor receives: the end of monitored actors, of children and of tasks, and
//! notifications.

use std::sync::Arc;

use crate::cell::ActorId;
use crate::context::PipeId;
use crate::exit::Exit;
use crate::path::ActorPath;

/// Identifies a monitor; unique within its system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonitorId(pub(crate) u64);

/// A notification that overtakes messages; see [`Actor::signal`](crate::Actor::signal).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Signal {
    /// A monitored actor ended. Sent exactly once for each monitor.
    ///
    /// A restart is not an end: the address remains valid.
    Down {
        /// The identifier of the monitor.
        id: MonitorId,
        /// The actor that ended.
        actor: ActorId,
        /// The path of the actor.
        path: ActorPath,
        /// The exit of the actor.
        exit: Exit,
    },
    /// A child of this actor ended.
    ChildEnded {
        /// The identifier of the child.
        actor: ActorId,
        /// The key of the child.
        key: Arc<str>,
        /// The exit of the child.
        exit: Exit,
    },
    /// A task of this actor returned.
    TaskEnded {
        /// The name that was given to the task.
        name: Arc<str>,
    },
    /// A pipe of this actor panicked. It sends no message.
    PipePanicked {
        /// The identifier of the pipe.
        pipe: PipeId,
        /// The panic message.
        panic: Arc<str>,
    },
    /// Somebody has called [`Notifier::notify`](crate::Notifier::notify), once or several times.
    Notified,
}
