//! Detection of rings: an actor waits, inside a hook, for something that cannot come.
//!
//! While a hook waits, its actor begins no other message and does not end. The wait graph of a
//! system therefore has an edge from actor A to actor B while a hook of A waits
//!
//! - for an answer that B *owes*: it is handling the request at the moment, or has not begun it. A
//!   request whose message has already been handled is not owed, because its reply may be held
//!   anywhere;
//! - for the end or the start of B: a supervisor that stops or starts a child, a caller of
//!   `stopped`, `started`, `supervise`, `drain`, `terminate_child` or `shutdown`. All of these wait
//!   for a phase with [`ActorCore::wait_for_phase`] or for the end of a drain, and both record the
//!   wait.
//!
//! Some edges are read from the state of the actors instead of being recorded:
//!
//! - an actor that ends its children waits for the end of everything below it in the tree, from the
//!   moment at which it takes no more children, whichever child it stops first. So does an actor
//!   whose end something waits for, because its children end before it;
//! - an actor that is down waits for its supervisor, which decides about the next incarnation and
//!   may be inside a hook.
//!
//! These edges appear without a call of the actors in the ring, so [`on_children_closing`] and
//! [`on_actor_down`] look for rings when they do.
//!
//! Of the waits that form a ring at least one must be an ask (or a call of a supervisor), because
//! only an ask can be refused. If the ask is recorded last, it fails itself. If another edge
//! completes the ring, the last ask on the way back to its actor is refused and woken. A ring
//! without any ask is logged.
//!
//! Waits from outside of hooks (tasks, pipes, other programs) hold no actor and are not recorded.
//! Nor is a wait of an actor that is killed: its hook ends at the next await. An actor waits for
//! its tasks and pipes before it ends, too, but aborts them first, so they wait for nothing.
//!
//! All waits of a system are checked under one lock, so of the asks that form a ring exactly one
//! fails and the others go on. It need not be the ask that was made last: on a multi-threaded
//! runtime an ask is recorded only if it is still waiting when the monitor looks, after about a
//! millisecond. A ring through two systems is not detected; its asks end at their deadlines. A
//! sender that waits for room in a mailbox is not an edge either.

mod ask_ring;
mod search;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use crate::cell::{ActorCore, ActorId, PhaseGoal};
use crate::path::ActorPath;
use crate::reply::PendingFlag;
use crate::schedule::strand::CurrentRef;
use crate::schedule::wake::wake;
use crate::seeded_bug::{Bug, seeded};
use crate::system::SystemState;
pub use ask_ring::{AskRing, RingWait};
use search::RingSearch;

thread_local! {
    /// The actor whose hook is running on this thread.
    static CURRENT_ACTOR: CurrentRef<ActorCore> = const { CurrentRef::new() };
}

/// Runs a part of a hook.
#[inline(always)]
pub(crate) fn with_actor<R>(node: &ActorCore, work: impl FnOnce() -> R) -> R {
    CurrentRef::enter(&CURRENT_ACTOR, node, work)
}

/// Returns the path of the actor whose hook is running on this thread.
pub(crate) fn current_path() -> Option<ActorPath> {
    CurrentRef::with(&CURRENT_ACTOR, |node| node.map(ActorCore::path))
}

/// Passes the actor whose hook is running on this thread to `look`.
pub(crate) fn with_current<R>(look: impl FnOnce(Option<&ActorCore>) -> R) -> R {
    CurrentRef::with(&CURRENT_ACTOR, look)
}

/// The recorded waits of all actors of a system, by the actor that waits.
#[derive(Default)]
pub(crate) struct WaitGraph(Mutex<WaitMap>);

type WaitMap = FxHashMap<ActorId, Waiter>;

/// An actor that waits.
struct Waiter {
    waits: Vec<Arc<WaitEdge>>,
    /// The actors above it in the tree, which change as little as its address. A search that comes
    /// to an actor that ends goes through all waiters for those below it.
    ancestors: Box<[ActorId]>,
}

impl Waiter {
    fn new(shared: &SystemState, id: ActorId) -> Self {
        let cell = shared.get(id);
        let above = cell.iter().flat_map(|cell| ancestors(cell.core()));
        Self {
            waits: Vec::new(),
            ancestors: above.map(|node| node.id).collect(),
        }
    }
}

impl fmt::Debug for WaitGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WaitGraph")
            .field("actors", &self.0.lock().len())
            .finish_non_exhaustive()
    }
}

/// A recorded wait.
struct WaitEdge {
    from: ActorId,
    on: ActorId,
    /// The `first_unanswered` of the waiting actor when the wait began, which identifies the hook.
    first_unanswered: u64,
    goal: WaitGoal,
}

enum WaitGoal {
    Answer(AnswerGoal),
    Phase(PhaseGoal),
}

/// The answer that an ask waits for.
struct AnswerGoal {
    /// The number of the request in the mailbox of the callee.
    number: u64,
    answer: Arc<PendingFlag>,
    /// The ring because of which the ask is refused.
    ring: OnceLock<Arc<AskRing>>,
    waker: Mutex<Waker>,
}

impl AnswerGoal {
    fn is_unanswered(&self) -> bool {
        self.answer.is_open() && self.ring.get().is_none()
    }

    /// Refuses the ask; returns the waker of its asker.
    fn refuse(&self, ring: AskRing) -> Waker {
        let _first = self.ring.set(Arc::new(ring));
        // Read after the ring was set, and `check` stores the waker before it reads the ring: one
        // of the two comes second and sees the other.
        self.waker.lock().clone()
    }

    /// Returns an error if the ask was refused; otherwise its asker will be woken if it is.
    fn check(&self, cx: &Context<'_>) -> Result<(), Arc<AskRing>> {
        self.waker.lock().clone_from(cx.waker());
        match self.ring.get() {
            // An answer that came after all is better than an error.
            Some(ring) if self.answer.is_open() => Err(Arc::clone(ring)),
            _ => Ok(()),
        }
    }
}

impl WaitEdge {
    fn answer(&self) -> Option<&AnswerGoal> {
        match &self.goal {
            WaitGoal::Answer(goal) => Some(goal),
            WaitGoal::Phase(_) => None,
        }
    }

    fn reason(&self) -> RingWait {
        match &self.goal {
            WaitGoal::Answer(_) => RingWait::Answer,
            WaitGoal::Phase(goal) if goal.is_end() => RingWait::End,
            WaitGoal::Phase(_) => RingWait::Start,
        }
    }
}

/// A wait for an actor that is recorded while it is polled inside a hook. Dropping it removes it.
struct EdgeGuard<'a> {
    on: &'a ActorCore,
    wait: Option<Arc<WaitEdge>>,
}

impl<'a> EdgeGuard<'a> {
    const fn new(on: &'a ActorCore) -> Self {
        Self { on, wait: None }
    }

    /// Returns the actor whose hook is polling, if it is one of this system.
    fn waiting_actor(&self) -> Option<ActorId> {
        CurrentRef::with(&CURRENT_ACTOR, |node| {
            let node = node.filter(|node| Arc::ptr_eq(&node.shared, &self.on.shared));
            node.filter(|node| !waits_for_exit(node, self.on))
                .map(|node| node.id)
        })
    }

    /// Returns the wait, if this actor is known to be waiting.
    fn recorded_for(&self, from: Option<ActorId>) -> Option<&WaitEdge> {
        self.wait.as_deref().filter(|wait| Some(wait.from) == from)
    }

    /// Records the wait of an actor inside a hook. The graph stays locked, so that of two waits
    /// that form a ring the second one finds it.
    fn record(
        &mut self,
        from: Option<ActorId>,
        goal: impl FnOnce() -> WaitGoal,
    ) -> Option<(MutexGuard<'a, WaitMap>, Arc<WaitEdge>)> {
        self.remove();
        let shared = &self.on.shared;
        let from = from?;
        let wait = Arc::new(WaitEdge {
            from,
            on: self.on.id,
            first_unanswered: first_unanswered(shared, from)?,
            goal: goal(),
        });
        let mut waits = shared.wait_graph.0.lock();
        let waiter = waits.entry(from);
        let waiter = waiter.or_insert_with(|| Waiter::new(shared, from));
        waiter.waits.push(Arc::clone(&wait));
        self.wait = Some(Arc::clone(&wait));
        Some((waits, wait))
    }

    fn remove(&mut self) {
        let Some(wait) = self.wait.take() else { return };
        let mut waits = self.on.shared.wait_graph.0.lock();
        if let Some(waiter) = waits.get_mut(&wait.from) {
            waiter.waits.retain(|one| !Arc::ptr_eq(one, &wait));
            if waiter.waits.is_empty() {
                waits.remove(&wait.from);
            }
        }
        drop(waits);
    }
}

impl Drop for EdgeGuard<'_> {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns `true` if the state of an actor says that it waits for the end of another one.
fn waits_for_exit(from: &ActorCore, on: &ActorCore) -> bool {
    let parent = on.owner.cell();
    from.children.is_closed() && parent.is_some_and(|parent| parent.core().id == from.id)
}

/// An ask, which is recorded while it waits inside a hook.
pub(crate) struct AskEdge<'a> {
    edge: EdgeGuard<'a>,
}

impl<'a> AskEdge<'a> {
    pub(crate) const fn new(on: &'a ActorCore) -> Self {
        Self {
            edge: EdgeGuard::new(on),
        }
    }

    /// Records that the ask is pending. Returns an error if the ask is part of a ring, now or as
    /// soon as it becomes part of one: then the asker is woken.
    #[inline]
    pub(crate) fn on_pending(
        &mut self,
        cx: &Context<'_>,
        number: u64,
        answer: impl FnOnce() -> Arc<PendingFlag>,
    ) -> Result<(), Arc<AskRing>> {
        let from = self.edge.waiting_actor();
        if from.is_none() && self.edge.wait.is_none() {
            return Ok(());
        }
        let known = self.edge.recorded_for(from).and_then(WaitEdge::answer);
        match known.filter(|goal| goal.number == number) {
            Some(goal) => goal.check(cx),
            None => self.record(cx, from, number, answer),
        }
    }

    #[cold]
    fn record(
        &mut self,
        cx: &Context<'_>,
        from: Option<ActorId>,
        number: u64,
        answer: impl FnOnce() -> Arc<PendingFlag>,
    ) -> Result<(), Arc<AskRing>> {
        let goal = || {
            WaitGoal::Answer(AnswerGoal {
                number,
                answer: answer(),
                ring: OnceLock::new(),
                waker: Mutex::new(cx.waker().clone()),
            })
        };
        let Some((waits, wait)) = self.edge.record(from, goal) else {
            return Ok(());
        };
        let mut search = RingSearch::new(&waits, &self.edge.on.shared, wait.from);
        let mut found = None;
        search.run(Some(&wait), |search, last| {
            found = Some(search.ring(last, Some(&wait.from)));
            ControlFlow::Break(())
        });
        drop(search);
        drop(waits);
        match found.filter(|_| !seeded(Bug::AskRingNotDetected)) {
            None => Ok(()),
            // Other actors look for rings from now on as if it were gone.
            Some(ring) => match wait.answer() {
                Some(goal) => Err(Arc::clone(goal.ring.get_or_init(|| Arc::new(ring)))),
                None => Ok(()),
            },
        }
    }
}

/// A wait for the phase of another actor, which is recorded while it is polled inside a hook.
pub(crate) struct PhaseEdge<'a> {
    edge: EdgeGuard<'a>,
    goal: PhaseGoal,
}

impl<'a> PhaseEdge<'a> {
    pub(crate) const fn new(on: &'a ActorCore, goal: PhaseGoal) -> Self {
        Self {
            edge: EdgeGuard::new(on),
            goal,
        }
    }

    /// Records that the phase was not reached yet, and refuses the asks that this makes part of a
    /// ring.
    #[inline]
    pub(crate) fn on_pending(&mut self) {
        let from = self.edge.waiting_actor();
        if self.edge.wait.is_none() && from.is_none() || self.edge.recorded_for(from).is_some() {
            return;
        }
        self.record(from);
    }

    #[cold]
    fn record(&mut self, from: Option<ActorId>) {
        let goal = self.goal;
        if seeded(Bug::ExitWaitNotInGraph) {
            return;
        }
        if let Some((waits, wait)) = self.edge.record(from, || WaitGoal::Phase(goal)) {
            refuse_rings(waits, &self.edge.on.shared, wait.from, Some(&wait));
        }
    }
}

/// Refuses asks of which the answer would have to wait for an actor that begins to end its
/// children, and that these keep from ending.
pub(crate) fn on_children_closing(node: &ActorCore) {
    refuse_rings(node.shared.wait_graph.0.lock(), &node.shared, node.id, None);
}

/// Refuses asks that wait for an actor that is down now, and that keep its supervisor from
/// restarting it.
pub(crate) fn on_actor_down(node: &ActorCore) {
    refuse_rings(node.shared.wait_graph.0.lock(), &node.shared, node.id, None);
}

/// Refuses an ask of each ring through an actor: through this wait of it, if one is given.
fn refuse_rings(
    waits: MutexGuard<'_, WaitMap>,
    shared: &SystemState,
    from: ActorId,
    by: Option<&Arc<WaitEdge>>,
) {
    if waits.is_empty() {
        return;
    }
    let (mut wakers, mut silent, mut again) = (Vec::new(), None, true);
    while again {
        again = false;
        RingSearch::new(&waits, shared, from).run(by, |search, last| {
            let Some((victim, goal)) = search.last_ask(last) else {
                silent = Some(search.ring(last, None));
                return ControlFlow::Continue(());
            };
            wakers.push(goal.refuse(search.ring(last, Some(&victim.from))));
            // Actors beyond the refused ask were reached by a wait that is over, unless it was the
            // last one on the way.
            again = !last.is_ask();
            match again {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
    }
    drop(waits);
    wakers.into_iter().for_each(wake);
    if let Some(ring) = silent {
        tracing::warn!(
            %ring,
            "hooks wait for each other, and none of them asks, so none can be refused: do not wait \
             for the end or start of an actor inside a hook that it waits for"
        );
    }
}

/// Returns the number of the first request that an actor owes, if the actor is inside a hook.
fn first_unanswered(shared: &SystemState, id: ActorId) -> Option<u64> {
    shared.get(id)?.first_unanswered()
}

/// Returns the nodes above an actor in the tree, from its parent up.
fn ancestors(node: &ActorCore) -> impl Iterator<Item = &ActorCore> {
    std::iter::successors(node.owner.cell(), |cell| cell.core().owner.cell())
        .map(|cell| cell.core())
}
