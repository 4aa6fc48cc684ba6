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
//!   for a phase with [`Node::reached`] or for the end of a drain, and both record the wait.
//!
//! Some edges are read from the state of the actors instead of being recorded:
//!
//! - an actor that ends its children waits for the end of everything below it in the tree, from the
//!   moment at which it takes no more children, whichever child it stops first. So does an actor
//!   whose end something waits for, because its children end before it;
//! - an actor that is down waits for its supervisor, which decides about the next incarnation and
//!   may be inside a hook.
//!
//! These edges appear without a call of the actors in the ring, so [`closing`] and [`went_down`]
//! look for rings when they do.
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

use std::fmt;
use std::ops::{ControlFlow, Deref};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::cell::{ActorId, Node, Owner, Phase, PhaseGoal};
use crate::late::WaitingEntry;
use crate::path::Path;
use crate::reply::AnswerPending;
use crate::schedule::strand::Current;
use crate::schedule::wake::wake;
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

/// A ring of actors, each of which waits for the next: from the asker back to the asker.
///
/// It dereferences to the paths of the actors; the first and the last are the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskRing {
    actors: Vec<Path>,
    waits: Vec<RingWait>,
}

/// The event that an actor in an [`AskRing`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RingWait {
    /// An answer of the next actor.
    Answer,
    /// The end of the next actor.
    End,
    /// The start of the next actor.
    Start,
    /// A decision of the next actor, its supervisor, about its restart.
    Restart,
}

impl AskRing {
    /// Returns the events that the actors wait for: one less than there are paths.
    #[must_use]
    pub fn waits(&self) -> &[RingWait] {
        &self.waits
    }
}

impl Deref for AskRing {
    type Target = [Path];

    fn deref(&self) -> &[Path] {
        &self.actors
    }
}

impl fmt::Display for AskRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.actors.iter().map(Path::as_str).collect();
        f.write_str(&names.join(" -> "))?;
        // A reader expects asks; other waits explain why there is a ring.
        let mut before = ", because";
        for (pair, wait) in self.actors.windows(2).zip(&self.waits) {
            let (from, on) = (&pair[0], &pair[1]);
            match wait {
                RingWait::Answer => continue,
                RingWait::End => write!(f, "{before} {from} waits for the end of {on}")?,
                RingWait::Start => write!(f, "{before} {from} waits for the start of {on}")?,
                RingWait::Restart => write!(f, "{before} {from} waits for its restart by {on}")?,
            }
            before = " and";
        }
        Ok(())
    }
}

/// Passes the actor whose hook is running on this thread to `look`.
pub(crate) fn with_current<R>(look: impl FnOnce(Option<&Node>) -> R) -> R {
    Current::with(&INSIDE, look)
}

/// The recorded waits of all actors of a system, by the actor that waits.
#[derive(Default)]
pub(crate) struct WaitGraph(Mutex<Waits>);

type Waits = FxHashMap<ActorId, Waiter>;

/// An actor that waits.
struct Waiter {
    waits: Vec<Arc<Wait>>,
    /// The actors above it in the tree, which change as little as its address. A search that comes
    /// to an actor that ends goes through all waiters for those below it.
    above: Box<[ActorId]>,
}

impl Waiter {
    fn new(shared: &SystemState, id: ActorId) -> Self {
        let cell = shared.get(id);
        let above = cell.iter().flat_map(|cell| above(cell.node()));
        Self {
            waits: Vec::new(),
            above: above.map(|node| node.id).collect(),
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
struct Wait {
    from: ActorId,
    on: ActorId,
    /// The `first_unanswered` of the waiting actor when the wait began, which identifies the hook.
    first_unanswered: u64,
    goal: Goal,
}

enum Goal {
    Answer(AnswerGoal),
    Phase(PhaseGoal),
}

/// The answer that an ask waits for.
struct AnswerGoal {
    /// The number of the request in the mailbox of the callee.
    number: u64,
    answer: Arc<AnswerPending>,
    /// The ring because of which the ask is refused.
    ring: OnceLock<Arc<AskRing>>,
    waker: Mutex<Waker>,
}

impl AnswerGoal {
    fn is_open(&self) -> bool {
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

impl Wait {
    fn answer(&self) -> Option<&AnswerGoal> {
        match &self.goal {
            Goal::Answer(goal) => Some(goal),
            Goal::Phase(_) => None,
        }
    }

    fn reason(&self) -> RingWait {
        match &self.goal {
            Goal::Answer(_) => RingWait::Answer,
            Goal::Phase(goal) if goal.is_end() => RingWait::End,
            Goal::Phase(_) => RingWait::Start,
        }
    }
}

/// A wait for an actor that is recorded while it is polled inside a hook. Dropping it removes it.
struct Edge<'a> {
    on: &'a Node,
    wait: Option<Arc<Wait>>,
}

impl<'a> Edge<'a> {
    const fn new(on: &'a Node) -> Self {
        Self { on, wait: None }
    }

    /// Returns the actor whose hook is polling, if it is one of this system.
    fn waiting_actor(&self) -> Option<ActorId> {
        Current::with(&INSIDE, |node| {
            let node = node.filter(|node| Arc::ptr_eq(&node.shared, &self.on.shared));
            node.filter(|node| !implies(node, self.on))
                .map(|node| node.id)
        })
    }

    /// Returns the wait, if this actor is known to be waiting.
    fn known(&self, from: Option<ActorId>) -> Option<&Wait> {
        self.wait.as_deref().filter(|wait| Some(wait.from) == from)
    }

    /// Records the wait of an actor inside a hook. The graph stays locked, so that of two waits that
    /// form a ring the second one finds it.
    fn record(
        &mut self,
        from: Option<ActorId>,
        goal: impl FnOnce() -> Goal,
    ) -> Option<(MutexGuard<'a, Waits>, Arc<Wait>)> {
        self.forget();
        let shared = &self.on.shared;
        let from = from?;
        let wait = Arc::new(Wait {
            from,
            on: self.on.id,
            first_unanswered: first_unanswered(shared, from)?,
            goal: goal(),
        });
        let mut waits = shared.waits.0.lock();
        let waiter = waits.entry(from);
        let waiter = waiter.or_insert_with(|| Waiter::new(shared, from));
        waiter.waits.push(Arc::clone(&wait));
        self.wait = Some(Arc::clone(&wait));
        Some((waits, wait))
    }

    fn forget(&mut self) {
        let Some(wait) = self.wait.take() else { return };
        let mut waits = self.on.shared.waits.0.lock();
        if let Some(waiter) = waits.get_mut(&wait.from) {
            waiter.waits.retain(|one| !Arc::ptr_eq(one, &wait));
            if waiter.waits.is_empty() {
                waits.remove(&wait.from);
            }
        }
        drop(waits);
    }
}

impl Drop for Edge<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}

/// Returns `true` if the state of an actor says that it waits for the end of another one.
fn implies(from: &Node, on: &Node) -> bool {
    let parent = on.owner.cell();
    from.children.is_closed() && parent.is_some_and(|parent| parent.node().id == from.id)
}

/// An ask, which is recorded while it waits inside a hook, and listed wherever it waits.
pub(crate) struct Asking<'a> {
    edge: Edge<'a>,
    entry: WaitingEntry<'a>,
}

impl<'a> Asking<'a> {
    pub(crate) const fn new(on: &'a Node, within: Duration) -> Self {
        Self {
            edge: Edge::new(on),
            entry: WaitingEntry::new(on, within),
        }
    }

    /// Records that the ask is pending. Returns an error if the ask is part of a ring, now or as
    /// soon as it becomes part of one: then the asker is woken.
    #[inline]
    pub(crate) fn pending(
        &mut self,
        cx: &Context<'_>,
        number: u64,
        answer: impl FnOnce() -> Arc<AnswerPending>,
    ) -> Result<(), Arc<AskRing>> {
        self.entry.begin();
        let from = self.edge.waiting_actor();
        if from.is_none() && self.edge.wait.is_none() {
            return Ok(());
        }
        let known = self.edge.known(from).and_then(Wait::answer);
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
        answer: impl FnOnce() -> Arc<AnswerPending>,
    ) -> Result<(), Arc<AskRing>> {
        let goal = || {
            Goal::Answer(AnswerGoal {
                number,
                answer: answer(),
                ring: OnceLock::new(),
                waker: Mutex::new(cx.waker().clone()),
            })
        };
        let Some((waits, wait)) = self.edge.record(from, goal) else {
            return Ok(());
        };
        let mut search = Search::new(&waits, &self.edge.on.shared, wait.from);
        let mut found = None;
        search.run(Some(&wait), |search, last| {
            found = Some(search.ring(last, Some(&wait.from)));
            ControlFlow::Break(())
        });
        drop(search);
        drop(waits);
        match found.filter(|_| !seeded(Bug::RingUnnoticed)) {
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
    edge: Edge<'a>,
    goal: PhaseGoal,
}

impl<'a> PhaseEdge<'a> {
    pub(crate) const fn new(on: &'a Node, goal: PhaseGoal) -> Self {
        Self {
            edge: Edge::new(on),
            goal,
        }
    }

    /// Records that the phase was not reached yet, and refuses the asks that this makes part of a
    /// ring.
    #[inline]
    pub(crate) fn pending(&mut self) {
        let from = self.edge.waiting_actor();
        if self.edge.wait.is_none() && from.is_none() || self.edge.known(from).is_some() {
            return;
        }
        self.record(from);
    }

    #[cold]
    fn record(&mut self, from: Option<ActorId>) {
        let goal = self.goal;
        if seeded(Bug::EndIsNoWait) {
            return;
        }
        if let Some((waits, wait)) = self.edge.record(from, || Goal::Phase(goal)) {
            refuse_rings(waits, &self.edge.on.shared, wait.from, Some(&wait));
        }
    }
}

/// Refuses asks of which the answer would have to wait for an actor that begins to end its
/// children, and that these keep from ending.
pub(crate) fn closing(node: &Node) {
    refuse_rings(node.shared.waits.0.lock(), &node.shared, node.id, None);
}

/// Refuses asks that wait for an actor that is down now, and that keep its supervisor from
/// restarting it.
pub(crate) fn went_down(node: &Node) {
    refuse_rings(node.shared.waits.0.lock(), &node.shared, node.id, None);
}

/// Refuses an ask of each ring through an actor: through this wait of it, if one is given.
fn refuse_rings(
    waits: MutexGuard<'_, Waits>,
    shared: &SystemState,
    from: ActorId,
    by: Option<&Arc<Wait>>,
) {
    if waits.is_empty() {
        return;
    }
    let (mut wakers, mut silent, mut again) = (Vec::new(), None, true);
    while again {
        again = false;
        Search::new(&waits, shared, from).run(by, |search, last| {
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
fn above(node: &Node) -> impl Iterator<Item = &Node> {
    std::iter::successors(node.owner.cell(), |cell| cell.node().owner.cell())
        .map(|cell| cell.node())
}

/// A search for chains of waits that lead from an actor back to it.
struct Search<'a> {
    waits: &'a Waits,
    shared: &'a SystemState,
    start: ActorId,
    /// The actors that were reached, from `start` on, breadth first.
    steps: Vec<Step<'a>>,
    /// The actors in `steps`, together with the fields on which the rest of the way depends.
    seen: FxHashSet<(ActorId, bool, bool)>,
}

#[derive(Clone, Copy)]
struct Step<'a> {
    actor: ActorId,
    via: Via<'a>,
    /// The index of the step before.
    before: usize,
    /// The last ask on the way.
    ask: Option<&'a Arc<Wait>>,
    /// Set if the end of the actor is waited for, and not only its current hook.
    ends: bool,
}

/// The kind of wait by which the search came from one actor to the next.
#[derive(Clone, Copy)]
enum Via<'a> {
    Wait(&'a Arc<Wait>),
    /// The actor ends after everything below it.
    Below,
    /// The actor is down, and its supervisor decides about it.
    Supervisor,
}

impl Step<'_> {
    fn is_ask(&self) -> bool {
        matches!(self.via, Via::Wait(wait) if wait.answer().is_some())
    }
}

impl<'a> Search<'a> {
    fn new(waits: &'a Waits, shared: &'a SystemState, start: ActorId) -> Self {
        Self {
            waits,
            shared,
            start,
            steps: Vec::new(),
            seen: FxHashSet::default(),
        }
    }

    /// Passes the last step of each chain that leads back to `found`, until that breaks. If `by` is
    /// given, the chains begin with this wait.
    fn run(
        &mut self,
        by: Option<&'a Arc<Wait>>,
        mut found: impl FnMut(&Self, &Step<'a>) -> ControlFlow<()>,
    ) {
        // Never looked at: the actor that the search begins with was reached by nothing.
        self.steps.push(Step {
            actor: self.start,
            via: Via::Below,
            before: 0,
            ask: None,
            ends: false,
        });
        let mut next = Vec::new();
        match by {
            Some(wait) => next.push((wait.on, Via::Wait(wait))),
            None => self.successors(0, &mut next),
        }
        let mut at = 0;
        loop {
            for (actor, via) in next.drain(..) {
                let (ask, ends) = match via {
                    Via::Wait(wait) if wait.answer().is_some() => (Some(wait), false),
                    Via::Wait(wait) => (self.steps[at].ask, wait.reason() == RingWait::End),
                    Via::Below | Via::Supervisor => (self.steps[at].ask, false),
                };
                let before = at;
                let step = Step {
                    actor,
                    via,
                    before,
                    ask,
                    ends,
                };
                if actor == self.start {
                    if found(self, &step).is_break() {
                        return;
                    }
                } else if self.seen.insert((actor, ask.is_some(), ends)) {
                    self.steps.push(step);
                }
            }
            at += 1;
            if at == self.steps.len() {
                return;
            }
            self.successors(at, &mut next);
        }
    }

    /// Collects the actors that an actor waits for.
    fn successors(&self, at: usize, next: &mut Vec<(ActorId, Via<'a>)>) {
        let Step { actor, ends, .. } = self.steps[at];
        let Some(cell) = self.shared.get(actor) else {
            return;
        };
        let node = cell.node();
        // The hook of an actor that was killed ends at its next await.
        if !node.is_killed() {
            let floor = cell.first_unanswered();
            let waiter = self.waits.get(&actor).into_iter();
            let waits = waiter.flat_map(|waiter| &waiter.waits);
            let waits = waits.filter(|wait| self.is_active(wait, floor));
            next.extend(waits.map(|wait| (wait.on, Via::Wait(wait))));
        }
        if (ends || node.children.is_closed()) && !seeded(Bug::EndIsNoWait) {
            // Only actors that wait can be on a way back. So does the actor that it leads to,
            // unless it is down.
            let below = self.waits.iter();
            let below = below.filter(|(_, waiter)| waiter.above.contains(&actor));
            next.extend(below.map(|(one, _)| (*one, Via::Below)));
            if !self.waits.contains_key(&self.start)
                && let Some(cell) = self.shared.get(self.start)
                && above(cell.node()).any(|node| node.id == actor)
            {
                next.push((self.start, Via::Below));
            }
        }
        if let Owner::Supervisor { cell, .. } = &node.owner
            && node.phase() == Phase::Down
        {
            next.push((cell.node().id, Via::Supervisor));
        }
    }

    /// Returns `true` unless the hook that waits has ended, or what it waits for has come. `floor`
    /// is the first request that the waiting actor owes now.
    fn is_active(&self, wait: &Wait, floor: Option<u64>) -> bool {
        let Some(on) = self.shared.get(wait.on) else {
            return false;
        };
        Some(wait.first_unanswered) == floor
            && match &wait.goal {
                Goal::Phase(goal) => !goal.is_met(on.node().phase()),
                Goal::Answer(goal) => {
                    let owes = |first: u64| goal.number >= first;
                    goal.is_open() && on.first_unanswered().is_some_and(owes)
                }
            }
    }

    /// Returns the last ask on the way to a step.
    fn last_ask(&self, last: &Step<'a>) -> Option<(&'a Wait, &'a AnswerGoal)> {
        let wait: &'a Wait = last.ask?;
        Some((wait, wait.answer()?))
    }

    /// Builds the ring that ends with a step, beginning with `first` if that is part of it.
    fn ring(&self, last: &Step<'a>, first: Option<&ActorId>) -> AskRing {
        let mut way = vec![*last];
        let mut at = last.before;
        while at != 0 {
            way.push(self.steps[at]);
            at = self.steps[at].before;
        }
        let mut edges = Vec::new();
        let mut from = self.start;
        for step in way.iter().rev() {
            match step.via {
                Via::Wait(wait) => edges.push((from, wait.reason())),
                Via::Supervisor => edges.push((from, RingWait::Restart)),
                Via::Below => self.generations(from, step.actor, &mut edges),
            }
            from = step.actor;
        }
        let begin = first.and_then(|first| edges.iter().position(|(actor, _)| actor == first));
        edges.rotate_left(begin.unwrap_or(0));
        let mut actors = Vec::with_capacity(edges.len() + 1);
        let mut waits = Vec::with_capacity(edges.len());
        for (actor, wait) in edges {
            if let Some(cell) = self.shared.get(actor) {
                actors.push(cell.node().path());
                waits.push(wait);
            }
        }
        actors.extend(actors.first().cloned());
        AskRing { actors, waits }
    }

    /// Adds the waits of an actor, and of all actors between it and one below it, for the end of the
    /// next of them.
    fn generations(&self, from: ActorId, to: ActorId, edges: &mut Vec<(ActorId, RingWait)>) {
        let first = edges.len();
        if let Some(cell) = self.shared.get(to) {
            let above = above(cell.node()).map(|node| node.id);
            edges.extend(
                above
                    .take_while(|id| *id != from)
                    .map(|id| (id, RingWait::End)),
            );
        }
        edges.push((from, RingWait::End));
        edges[first..].reverse();
    }
}
