//! Detection of ask rings: an actor waits, inside a hook, for an answer that cannot come.
//!
//! While a hook waits for an answer, its actor begins no other message. An ask from inside a hook
//! is therefore a *wait*, which is recorded until the ask completes or is dropped. Actor A waits
//! for itself if a chain of waits leads from A back to A in which each actor *owes* the answer to
//! the one before: it is handling the request at the moment, or has not begun it. A request whose
//! message has already been handled is not owed, because its reply may be held anywhere.
//!
//! Asks from outside of hooks (tasks, pipes, other programs) hold no actor and are not recorded.
//! All waits of a system are checked under one lock, so of the asks that form a ring exactly one
//! fails, the one that is recorded last, and the others go on. That need not be the ask that was
//! made last: on a multi-threaded runtime an ask is recorded only if it is still waiting when the
//! monitor looks, after about a millisecond. A ring through two systems is not detected; its asks
//! end at their deadlines.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::address::AskError;
use crate::cell::{ActorId, Node};
use crate::path::Path;
use crate::reply::AnswerPending;
use crate::schedule::strand::Current;
use crate::seeded_bug::{Bug, seeded};
use crate::system::SystemState;

thread_local! {
    /// The actor whose hook is running on this thread.
    static INSIDE: Current<Node> = const { Current::none() };
}

/// Runs a part of a hook.
#[inline(always)]
pub(crate) fn inside<R>(node: &Node, work: impl FnOnce() -> R) -> R {
    Current::enter(&INSIDE, node, work)
}

/// Returns the path of the actor whose hook is running on this thread.
pub(crate) fn path() -> Option<Path> {
    Current::with(&INSIDE, |node| node.map(Node::path))
}

/// The waits of all actors of a system.
#[derive(Default)]
pub(crate) struct WaitGraph(Mutex<FxHashMap<ActorId, Vec<Wait>>>);

struct Wait {
    on: ActorId,
    /// The number of the request in the mailbox of `on`.
    number: u64,
    /// The `first_unanswered` of the waiting actor when the wait began: the number of the first
    /// request that it owes.
    first_unanswered: u64,
    answer: Arc<AnswerPending>,
}

impl fmt::Debug for WaitGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitGraph")
            .field("actors", &self.0.lock().len())
            .finish_non_exhaustive()
    }
}

/// An ask that may be recorded as a wait. Dropping it removes the wait.
pub(crate) struct Asking<'a> {
    on: &'a Node,
    state: AskState,
}

enum AskState {
    Free,
    Waiting { from: ActorId, number: u64 },
}

impl<'a> Asking<'a> {
    pub(crate) const fn new(on: &'a Node) -> Self {
        Self {
            on,
            state: AskState::Free,
        }
    }

    /// Records that the ask is pending. Returns an error if the ask is part of a ring.
    #[inline]
    pub(crate) fn pending(
        &mut self,
        number: u64,
        answer: impl FnOnce() -> Arc<AnswerPending>,
    ) -> Result<(), AskError> {
        let shared = &self.on.shared;
        let from = Current::with(&INSIDE, |node| {
            let node = node.filter(|node| Arc::ptr_eq(&node.shared, shared));
            node.map(|node| node.id)
        });
        match (&self.state, from) {
            (AskState::Free, None) => Ok(()),
            (
                AskState::Waiting {
                    from,
                    number: before,
                },
                Some(now),
            ) if *from == now && *before == number => Ok(()),
            (_, from) => self.note(from, number, answer),
        }
    }

    #[cold]
    fn note(
        &mut self,
        from: Option<ActorId>,
        number: u64,
        answer: impl FnOnce() -> Arc<AnswerPending>,
    ) -> Result<(), AskError> {
        self.forget();
        let shared = &self.on.shared;
        let Some((from, first_unanswered)) =
            from.and_then(|id| Some((id, first_unanswered(shared, id)?)))
        else {
            return Ok(());
        };
        let answer = answer();
        let wait = Wait {
            on: self.on.id,
            number,
            first_unanswered,
            answer,
        };
        let mut waits = shared.waits.0.lock();
        waits.entry(from).or_default().push(wait);
        let ring = ring(&waits, shared, from).filter(|_| !seeded(Bug::RingUnnoticed));
        drop(waits);
        self.state = AskState::Waiting { from, number };
        match ring {
            None => Ok(()),
            Some(ring) => {
                let path = |id: &ActorId| shared.get(*id).map(|cell| cell.node().path());
                let path: Vec<Path> = ring.iter().filter_map(path).collect();
                Err(AskError::Ring {
                    path: Arc::new(path),
                })
            }
        }
    }

    fn forget(&mut self) {
        let AskState::Waiting { from, number } = std::mem::replace(&mut self.state, AskState::Free)
        else {
            return;
        };
        let mut waits = self.on.shared.waits.0.lock();
        let mut forgotten = None;
        if let Some(list) = waits.get_mut(&from) {
            let same = |wait: &Wait| wait.on == self.on.id && wait.number == number;
            forgotten = list
                .iter()
                .position(same)
                .map(|place| list.swap_remove(place));
            if list.is_empty() {
                waits.remove(&from);
            }
        }
        drop(waits);
        drop(forgotten);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Formats a ring.
pub(crate) fn show(path: &[Path]) -> String {
    let names: Vec<&str> = path.iter().map(Path::as_str).collect();
    names.join(" -> ")
}

/// Returns the number of the first request that an actor owes, if the actor is inside a hook.
fn first_unanswered(shared: &SystemState, id: ActorId) -> Option<u64> {
    shared.get(id)?.first_unanswered()
}

/// Returns the actors from `start` back to `start`, if a chain of waits leads there.
fn ring(
    waits: &FxHashMap<ActorId, Vec<Wait>>,
    shared: &SystemState,
    start: ActorId,
) -> Option<Vec<ActorId>> {
    let mut seen = vec![start];
    // For each actor in `seen`, the index in `seen` of the actor from which it was reached.
    let mut from = vec![0];
    let mut at = 0;
    while at < seen.len() {
        let actor = seen[at];
        let floor_here = first_unanswered(shared, actor);
        for wait in waits.get(&actor).into_iter().flatten() {
            // A wait is obsolete if its hook has ended or its answer has arrived.
            let waits = Some(wait.first_unanswered) == floor_here && wait.answer.is_open();
            let owed = || {
                first_unanswered(shared, wait.on)
                    .is_some_and(|first_unanswered| wait.number >= first_unanswered)
            };
            if !waits || !owed() {
                continue;
            }
            if wait.on == start {
                let mut back = vec![start];
                let mut place = at;
                while place != 0 {
                    back.push(seen[place]);
                    place = from[place];
                }
                back.push(start);
                back.reverse();
                return Some(back);
            }
            if !seen.contains(&wait.on) {
                seen.push(wait.on);
                from.push(at);
            }
        }
        at += 1;
    }
    None
}
