//! What can be read about an actor while it runs.

use std::fmt;
use std::time::Duration;

use crate::cell::{ActorId, Phase};
use crate::exit::Exit;
use crate::path::Path;

/// Whether figures are kept and actors can be traced: always, except where the compiler was given
/// `--cfg strowger_uncounted`, which `cargo xtask bench observe` does to measure what they cost.
pub(crate) const COUNTED: bool = !cfg!(strowger_uncounted);

/// Where an actor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum State {
    /// In `pre_start`.
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

impl From<Phase> for State {
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

impl fmt::Display for State {
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

/// The figures of one actor at one moment.
#[derive(Debug, Clone)]
pub struct ActorInfo {
    /// Where it lives.
    pub path: Path,
    /// Its identifier.
    pub id: ActorId,
    /// The name of its Rust type.
    pub kind: &'static str,
    /// Where it stands.
    pub state: State,
    /// How many messages wait.
    pub depth: usize,
    /// How many may wait; `None` without a bound.
    pub capacity: Option<usize>,
    /// The most that ever waited, to a sixteenth of it.
    pub high_water: usize,
    /// How many the overflow rule dropped.
    pub dropped: u64,
    /// How many were dropped because nobody wanted them any more; see [`Event::Expired`].
    ///
    /// [`Event::Expired`]: crate::Event::Expired
    pub expired: u64,
    /// How many were taken out to be handled.
    pub handled: u64,
    /// How long it was at work, with what its hooks waited for; an estimate from samples while
    /// its messages are short.
    pub busy: Duration,
    /// How long messages that it took out last can have waited.
    pub waited: Duration,
    /// How many octets it takes, estimated: its cell, the task of its incarnation with the value
    /// in it, and its mailbox by capacity. What the value and the messages hold on the heap is not
    /// counted.
    pub memory: usize,
    /// How often it was restarted.
    pub restarts: u32,
    /// Why its last incarnation ended.
    pub last_exit: Option<Exit>,
    /// How many children it has.
    pub children: usize,
}

/// An actor and all below it.
#[derive(Debug, Clone)]
pub struct TreeNode {
    /// The actor.
    pub info: ActorInfo,
    /// Its children, in the order of their start.
    pub children: Vec<Self>,
}
