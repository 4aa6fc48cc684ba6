//! Asks that wait for long, listed while they wait: an answer that is late, or never comes, is
//! seen.
//!
//! Only asks in the slow path are listed, those that the monitor has called: an ask that is
//! answered within a millisecond costs nothing here, nor does one whose deadline is shorter than
//! [`LATE`].

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::cell::{ActorId, AnyCell, Node};
use crate::info::COUNTED;
use crate::path::Path;
use crate::ring;
use crate::system::SystemState;

/// The age from which an ask is late.
const LATE: Duration = Duration::from_secs(1);

/// An ask that has been waiting for a second or longer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LateAsk {
    /// The actor that asks inside a hook; `None` if a task asks.
    pub asker: Option<Path>,
    /// The actor that was asked.
    pub callee: Path,
    /// The time since the ask was sent, less about a millisecond.
    pub age: Duration,
}

/// The asks of a system that are not answered yet, apart from the most recent ones.
#[derive(Default)]
pub(crate) struct WaitingAsks(Mutex<AskTable>);

#[derive(Default)]
struct AskTable {
    asks: FxHashMap<u64, WaitingAsk>,
    next: u64,
}

struct WaitingAsk {
    asker: Asker,
    /// Kept, because the reply may be held by an actor that outlives the callee.
    callee: Arc<dyn AnyCell>,
    since: Instant,
}

/// The origin of an ask. A path is built only for the few asks that are shown.
#[derive(Clone)]
enum Asker {
    Task,
    Actor(ActorId),
    /// An actor of another system.
    Foreign(Path),
}

impl WaitingAsks {
    /// Returns the asks that are late, the oldest first.
    pub(crate) fn late(&self, shared: &SystemState) -> Vec<LateAsk> {
        let now = shared.now();
        let table = self.0.lock();
        let asks = table.asks.iter().map(|(number, ask)| {
            let age = now.saturating_duration_since(ask.since);
            (age, *number, ask)
        });
        let late = asks.filter(|(age, ..)| *age >= LATE);
        let mut late: Vec<_> = late
            .map(|(age, number, ask)| (age, number, ask.asker.clone(), Arc::clone(&ask.callee)))
            .collect();
        drop(table);
        late.sort_unstable_by_key(|(age, number, ..)| (std::cmp::Reverse(*age), *number));
        let shown = late.into_iter().map(|(age, _, asker, callee)| LateAsk {
            asker: match asker {
                Asker::Task => None,
                Asker::Actor(id) => shared.get(id).map(|cell| cell.node().path()),
                Asker::Foreign(path) => Some(path),
            },
            callee: callee.node().path(),
            age,
        });
        shown.collect()
    }
}

/// The entry of an ask in the list, once it is there. Dropping it removes it.
pub(crate) struct WaitingEntry<'a> {
    callee: &'a Node,
    /// The number of the entry, or `UNLISTED`, or `NEVER`. One word, because every ask has it.
    number: u64,
}

/// The ask is not listed yet.
const UNLISTED: u64 = u64::MAX;

/// The ask is never listed, because its deadline comes before it is late.
const NEVER: u64 = u64::MAX - 1;

impl<'a> WaitingEntry<'a> {
    pub(crate) const fn new(callee: &'a Node, within: Duration) -> Self {
        let number = match COUNTED && within.as_secs() >= LATE.as_secs() {
            true => UNLISTED,
            false => NEVER,
        };
        Self { callee, number }
    }

    /// Lists the ask.
    #[inline]
    pub(crate) fn begin(&mut self) {
        if self.number == UNLISTED {
            self.add();
        }
    }

    #[cold]
    fn add(&mut self) {
        let shared = &self.callee.shared;
        let Some(callee) = shared.get(self.callee.id) else {
            // The callee has ended, and the answer is about to come, or an error.
            return;
        };
        let asker = ring::with_current(|node| match node {
            None => Asker::Task,
            Some(node) if Arc::ptr_eq(&node.shared, shared) => Asker::Actor(node.id),
            Some(node) => Asker::Foreign(node.path()),
        });
        let since = shared.now();
        let mut table = shared.waiting_asks.0.lock();
        let number = table.next;
        table.next += 1;
        let ask = WaitingAsk {
            asker,
            callee,
            since,
        };
        table.asks.insert(number, ask);
        self.number = number;
    }
}

impl Drop for WaitingEntry<'_> {
    fn drop(&mut self) {
        if self.number < NEVER {
            let mut table = self.callee.shared.waiting_asks.0.lock();
            let ask = table.asks.remove(&self.number);
            drop(table);
            // It may hold the last reference to the callee.
            drop(ask);
        }
    }
}
