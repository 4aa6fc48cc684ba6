//! Stats of an actor, readable while it runs.

use std::fmt;
use std::time::Duration;

use crate::cell::{ActorId, Phase};
use crate::exit::Exit;
use crate::path::ActorPath;

/// `true` if stats are kept and actors can be traced. That is always so, unless the compiler is
/// given `--cfg strowger_uncounted`, which `cargo xtask bench observe` does to measure their cost.
pub(crate) const STATS_ENABLED: bool = !cfg!(strowger_uncounted);

/// The state of an actor in its lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ActorLifecycle {
    /// The actor runs its `pre_start`.
    Starting,
    /// Handling messages, or waiting for them.
    Running,
    /// Ending its children, or in `post_stop`.
    Stopping,
    /// Between two incarnations.
    Restarting,
    /// Ended; its address is closed.
    Ended,
}

impl From<Phase> for ActorLifecycle {
    fn from(phase: Phase) -> Self {
        match phase {
            Phase::Starting => Self::Starting,
            Phase::Running => Self::Running,
            Phase::Stopping => Self::Stopping,
            Phase::Down => Self::Restarting,
            Phase::Ended => Self::Ended,
        }
    }
}

impl fmt::Display for ActorLifecycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Stopping => "stopping",
            Self::Restarting => "restarting",
            Self::Ended => "ended",
        })
    }
}

/// Stats of one actor at one moment.
#[derive(Debug, Clone)]
pub struct ActorInfo {
    /// Path of the actor.
    pub path: ActorPath,
    /// Identifier of the actor.
    pub id: ActorId,
    /// Name of the actor's Rust type.
    pub type_name: &'static str,
    /// State of the actor in its lifecycle.
    pub state: ActorLifecycle,
    /// Number of messages that wait.
    pub mailbox_len: usize,
    /// Number of messages that may wait; `None` if there is no bound.
    pub capacity: Option<usize>,
    /// Highest number of messages that ever waited, to within a sixteenth.
    pub high_water: usize,
    /// Number of messages that the overflow rule dropped.
    pub dropped: u64,
    /// Number of messages that were dropped because nobody wanted them any more; see
    /// [`Event::Expired`].
    ///
    /// [`Event::Expired`]: crate::Event::Expired
    pub expired: u64,
    /// Number of messages that were taken out to be handled.
    pub handled: u64,
    /// Time that the actor was at work, including the time that its hooks waited; estimated from
    /// samples while its messages are short.
    pub busy_time: Duration,
    /// Longest time that the messages taken out last can have waited.
    pub queue_time: Duration,
    /// Estimated memory in bytes: the cell, the incarnation with the value in it, and the mailbox
    /// by capacity. What the value and the messages hold on the heap is not counted.
    pub memory: usize,
    /// Number of restarts.
    pub restarts: u32,
    /// Exit of the last incarnation.
    pub last_exit: Option<Exit>,
    /// Number of children.
    pub children: usize,
}

/// An actor and everything below it in the tree.
#[derive(Debug, Clone)]
pub struct TreeNode {
    /// Stats of the actor at this moment.
    pub info: ActorInfo,
    /// Its children, in the order of their start.
    pub children: Vec<Self>,
}
