//! Rings of asks: an actor that waits, inside a hook, for an answer that cannot come.
//!
//! While a hook waits for an answer, its actor begins no other message. So an ask from inside a
//! hook is a *wait*, kept from when it is noted until it is done or dropped. Actor A waits
//! for itself if a chain of waits leads from A back to A in which each actor *owes* the answer to
//! the one before: the request is the one that it is at, or it has not begun it. A request whose
//! message was handled before is not owed: its reply may be anywhere.
//!
//! Asks from outside of hooks (tasks, pipes, other programs) hold no actor and are not kept. All
//! waits of a system are judged under one lock, so of the asks that make a ring exactly one fails,
//! the one that is noted last, and the others go on. That need not be the ask that was made last:
//! on a runtime with several threads an ask is noted once it has waited for a look of the monitor,
//! about a millisecond. A ring through two systems is found by its deadline only.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rustc_hash::FxHashMap;

use crate::address::AskError;
use crate::cell::{ActorId, Node};
use crate::path::Path;
use crate::planted::{Bug, planted};
use crate::reply::Open;
use crate::schedule::strand::Current;
use crate::system::Shared;

thread_local! {
    /// The actor inside whose hook this thread is.
    static INSIDE: Current<Node> = const { Current::none() };
}

/// Does a part of a hook's work.
#[inline(always)]
pub(crate) fn inside<R>(node: &Node, work: impl FnOnce() -> R) -> R {
    Current::enter(&INSIDE, node, work)
}

/// The path of the actor inside whose hook this thread is.
pub(crate) fn path() -> Option<Path> {
    Current::with(&INSIDE, |node| node.map(Node::path))
}

/// The waits of all actors of a system.
#[derive(Default)]
pub(crate) struct Waits(Mutex<FxHashMap<ActorId, Vec<Wait>>>);

struct Wait {
    on: ActorId,
    /// The number of the request in the mailbox of `on`.
    number: u64,
    /// What the actor that waits had begun when the wait began.
    floor: u64,
    answer: Arc<Open>,
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waits")
            .field("actors", &self.0.lock().len())
            .finish_non_exhaustive()
    }
}

/// An ask that may be a wait; it is none any more when dropped.
pub(crate) struct Asking<'a> {
    on: &'a Node,
    state: State,
}

enum State {
    Free,
    Waiting { from: ActorId, number: u64 },
}

impl<'a> Asking<'a> {
    pub(crate) const fn new(on: &'a Node) -> Self {
        Self {
            on,
            state: State::Free,
        }
    }

    /// Takes note that the ask is pending; an error if its answer waits for the asker.
    #[inline]
    pub(crate) fn pending(
        &mut self,
        number: u64,
        answer: impl FnOnce() -> Arc<Open>,
    ) -> Result<(), AskError> {
        let shared = &self.on.shared;
        let from = Current::with(&INSIDE, |node| {
            let node = node.filter(|node| Arc::ptr_eq(&node.shared, shared));
            node.map(|node| node.id)
        });
        match (&self.state, from) {
            (State::Free, None) => Ok(()),
            (
                State::Waiting {
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
        answer: impl FnOnce() -> Arc<Open>,
    ) -> Result<(), AskError> {
        self.forget();
        let shared = &self.on.shared;
        let Some((from, floor)) = from.and_then(|id| Some((id, floor(shared, id)?))) else {
            return Ok(());
        };
        let answer = answer();
        let wait = Wait {
            on: self.on.id,
            number,
            floor,
            answer,
        };
        let mut waits = shared.waits.0.lock();
        waits.entry(from).or_default().push(wait);
        let ring = ring(&waits, shared, from).filter(|_| !planted(Bug::RingUnnoticed));
        drop(waits);
        self.state = State::Waiting { from, number };
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
        let State::Waiting { from, number } = std::mem::replace(&mut self.state, State::Free)
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

/// A ring, as text.
pub(crate) fn show(path: &[Path]) -> String {
    let names: Vec<&str> = path.iter().map(Path::as_str).collect();
    names.join(" -> ")
}

/// The number of the first request that an actor owes, if it is inside a hook.
fn floor(shared: &Shared, id: ActorId) -> Option<u64> {
    shared.get(id)?.floor()
}

/// The actors from `start` back to `start`, if a chain of waits leads there.
fn ring(
    waits: &FxHashMap<ActorId, Vec<Wait>>,
    shared: &Shared,
    start: ActorId,
) -> Option<Vec<ActorId>> {
    let mut seen = vec![start];
    // Each with the way to it: the place in `seen` from where it was reached.
    let mut from = vec![0];
    let mut at = 0;
    while at < seen.len() {
        let actor = seen[at];
        let floor_here = floor(shared, actor);
        for wait in waits.get(&actor).into_iter().flatten() {
            // A wait of a hook that has ended, or with an answer, is one no more.
            let waits = Some(wait.floor) == floor_here && wait.answer.is_open();
            let owed = || floor(shared, wait.on).is_some_and(|floor| wait.number >= floor);
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
