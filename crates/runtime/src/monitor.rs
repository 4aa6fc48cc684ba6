//! What an actor is told about others: downs, ends of children and of tasks.

use std::sync::Arc;

use crate::cell::ActorId;
use crate::context::PipeId;
use crate::exit::Exit;
use crate::path::Path;

/// Names a monitor; unique in its system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MonitorId(pub(crate) u64);

/// News that overtakes every message; see [`Actor::signal`](crate::Actor::signal).
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Signal {
    /// A monitored actor ended. Comes exactly once for each monitor.
    ///
    /// A restart is not an end: the address is still valid.
    Down {
        /// The monitor.
        id: MonitorId,
        /// The actor that ended.
        actor: ActorId,
        /// Where it lived.
        path: Path,
        /// Why it ended.
        exit: Exit,
    },
    /// A child of this actor ended.
    ChildEnded {
        /// The child.
        actor: ActorId,
        /// The key under which it was started.
        key: Arc<str>,
        /// Why it ended.
        exit: Exit,
    },
    /// A task of this actor returned.
    TaskEnded {
        /// The name with which the task was started.
        name: Arc<str>,
    },
    /// A pipe of this actor panicked; no message comes from it.
    PipePanicked {
        /// The pipe.
        pipe: PipeId,
        /// The message of the panic.
        panic: Arc<str>,
    },
}
