//! Asks that wait for long, listed while they wait: an answer that is late, or never comes, is
//! seen.
//!
//! An ask is listed with its deadline, which only asks in the slow path set: on a multi-threaded
//! runtime an ask that is answered within a millisecond costs nothing here. Nor does one whose
//! deadline is shorter than [`LATE_AFTER`].

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::cell::{ActorId, ErasedCell};
use crate::info::STATS_ENABLED;
use crate::path::ActorPath;
use crate::system::SystemState;
use crate::wait_graph;

/// The age from which an ask is late.
const LATE_AFTER: Duration = Duration::from_secs(1);

/// An ask that has been waiting for a second or longer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LateAsk {
    /// The actor that asks inside a hook; `None` if a task asks.
    pub asker: Option<ActorPath>,
    /// The actor that was asked.
    pub callee: ActorPath,
    /// The time since the ask was sent, less about a millisecond.
    pub age: Duration,
}

/// An ask that waits for its answer, late or not.
#[derive(Clone)]
pub(crate) struct TrackedAsk {
    asker: Asker,
    /// Kept, because the reply may be held by an actor that outlives the callee.
    callee: Arc<dyn ErasedCell>,
    since: Instant,
}

/// The origin of an ask. A path is built only for the few asks that are shown.
#[derive(Clone)]
enum Asker {
    Task,
    Actor(ActorId),
    /// An actor of another system.
    Foreign(ActorPath),
}

impl TrackedAsk {
    /// Describes an ask that waits from now on, if it is late before its deadline.
    #[inline]
    pub(crate) fn new(
        callee: Arc<dyn ErasedCell>,
        since: Instant,
        within: Duration,
    ) -> Option<Self> {
        if !STATS_ENABLED || within < LATE_AFTER {
            return None;
        }
        let shared = &callee.core().shared;
        let asker = wait_graph::with_current(|node| match node {
            None => Asker::Task,
            Some(node) if Arc::ptr_eq(&node.shared, shared) => Asker::Actor(node.id),
            Some(node) => Asker::Foreign(node.path()),
        });
        Some(Self {
            asker,
            callee,
            since,
        })
    }
}

/// Returns the asks of a system that are late, the oldest first.
pub(crate) fn late_asks(shared: &SystemState) -> Vec<LateAsk> {
    let now = shared.now();
    let age = |ask: &TrackedAsk| now.saturating_duration_since(ask.since);
    let mut late = shared.alarms.waiting_asks(|ask| age(ask) >= LATE_AFTER);
    late.sort_by_key(|ask| Reverse(age(ask)));
    let shown = late.into_iter().map(|ask| LateAsk {
        age: age(&ask),
        asker: match ask.asker {
            Asker::Task => None,
            Asker::Actor(id) => shared.get(id).map(|cell| cell.core().path()),
            Asker::Foreign(path) => Some(path),
        },
        callee: ask.callee.core().path(),
    });
    shown.collect()
}
