//! The search for rings in the wait graph.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{AnswerGoal, AskRing, RingWait, WaitEdge, WaitGoal, WaitMap, ancestors};
use crate::cell::{ActorId, Owner, Phase};
use crate::seeded_bug::{Bug, seeded};
use crate::system::SystemState;

/// A search for chains of waits that lead from an actor back to it.
pub(super) struct RingSearch<'a> {
    waits: &'a WaitMap,
    shared: &'a SystemState,
    start: ActorId,
    /// The actors that were reached, from `start` on, breadth first.
    steps: Vec<SearchStep<'a>>,
    /// The actors in `steps`, together with the fields on which the rest of the way depends.
    seen: FxHashSet<(ActorId, bool, bool)>,
}

#[derive(Clone, Copy)]
pub(super) struct SearchStep<'a> {
    actor: ActorId,
    via: StepKind<'a>,
    /// The index of the step before.
    before: usize,
    /// The last ask on the way.
    ask: Option<&'a Arc<WaitEdge>>,
    /// Set if the end of the actor is waited for, and not only its current hook.
    waits_for_exit: bool,
}

/// The kind of wait by which the search came from one actor to the next.
#[derive(Clone, Copy)]
enum StepKind<'a> {
    Wait(&'a Arc<WaitEdge>),
    /// The actor ends after everything below it.
    Descendant,
    /// The actor is down, and its supervisor decides about it.
    Supervisor,
}

impl SearchStep<'_> {
    pub(super) fn is_ask(&self) -> bool {
        matches!(self.via, StepKind::Wait(wait) if wait.answer().is_some())
    }
}

impl<'a> RingSearch<'a> {
    pub(super) fn new(waits: &'a WaitMap, shared: &'a SystemState, start: ActorId) -> Self {
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
    pub(super) fn run(
        &mut self,
        by: Option<&'a Arc<WaitEdge>>,
        mut found: impl FnMut(&Self, &SearchStep<'a>) -> ControlFlow<()>,
    ) {
        // Never looked at: the actor that the search begins with was reached by nothing.
        self.steps.push(SearchStep {
            actor: self.start,
            via: StepKind::Descendant,
            before: 0,
            ask: None,
            waits_for_exit: false,
        });
        let mut next = Vec::new();
        match by {
            Some(wait) => next.push((wait.on, StepKind::Wait(wait))),
            None => self.successors(0, &mut next),
        }
        let mut at = 0;
        loop {
            for (actor, via) in next.drain(..) {
                let (ask, ends) = match via {
                    StepKind::Wait(wait) if wait.answer().is_some() => (Some(wait), false),
                    StepKind::Wait(wait) => (self.steps[at].ask, wait.reason() == RingWait::End),
                    StepKind::Descendant | StepKind::Supervisor => (self.steps[at].ask, false),
                };
                let before = at;
                let step = SearchStep {
                    actor,
                    via,
                    before,
                    ask,
                    waits_for_exit: ends,
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
    fn successors(&self, at: usize, next: &mut Vec<(ActorId, StepKind<'a>)>) {
        let SearchStep {
            actor,
            waits_for_exit: ends,
            ..
        } = self.steps[at];
        let Some(cell) = self.shared.get(actor) else {
            return;
        };
        let node = cell.core();
        // The hook of an actor that was killed ends at its next await.
        if !node.is_killed() {
            let floor = cell.first_unanswered();
            let waiter = self.waits.get(&actor).into_iter();
            let waits = waiter.flat_map(|waiter| &waiter.waits);
            let waits = waits.filter(|wait| self.is_active(wait, floor));
            next.extend(waits.map(|wait| (wait.on, StepKind::Wait(wait))));
        }
        if (ends || node.children.is_closed()) && !seeded(Bug::ExitWaitNotInGraph) {
            // Only actors that wait can be on a way back. So does the actor that it leads to,
            // unless it is down.
            let below = self.waits.iter();
            let below = below.filter(|(_, waiter)| waiter.ancestors.contains(&actor));
            next.extend(below.map(|(one, _)| (*one, StepKind::Descendant)));
            if !self.waits.contains_key(&self.start)
                && let Some(cell) = self.shared.get(self.start)
                && ancestors(cell.core()).any(|node| node.id == actor)
            {
                next.push((self.start, StepKind::Descendant));
            }
        }
        if let Owner::Supervisor { cell, .. } = &node.owner
            && node.phase() == Phase::Down
        {
            next.push((cell.core().id, StepKind::Supervisor));
        }
    }

    /// Returns `true` unless the hook that waits has ended, or what it waits for has come. `floor`
    /// is the first request that the waiting actor owes now.
    fn is_active(&self, wait: &WaitEdge, floor: Option<u64>) -> bool {
        let Some(on) = self.shared.get(wait.on) else {
            return false;
        };
        Some(wait.first_unanswered) == floor
            && match &wait.goal {
                WaitGoal::Phase(goal) => !goal.is_met(on.core().phase()),
                WaitGoal::Answer(goal) => {
                    let owes = |first: u64| goal.number >= first;
                    goal.is_unanswered() && on.first_unanswered().is_some_and(owes)
                }
            }
    }

    /// Returns the last ask on the way to a step.
    pub(super) fn last_ask(&self, last: &SearchStep<'a>) -> Option<(&'a WaitEdge, &'a AnswerGoal)> {
        let wait: &'a WaitEdge = last.ask?;
        Some((wait, wait.answer()?))
    }

    /// Builds the ring that ends with a step, beginning with `first` if that is part of it.
    pub(super) fn ring(&self, last: &SearchStep<'a>, first: Option<&ActorId>) -> AskRing {
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
                StepKind::Wait(wait) => edges.push((from, wait.reason())),
                StepKind::Supervisor => edges.push((from, RingWait::Restart)),
                StepKind::Descendant => self.push_ancestors(from, step.actor, &mut edges),
            }
            from = step.actor;
        }
        let begin = first.and_then(|first| edges.iter().position(|(actor, _)| actor == first));
        edges.rotate_left(begin.unwrap_or(0));
        let mut actors = Vec::with_capacity(edges.len() + 1);
        let mut waits = Vec::with_capacity(edges.len());
        for (actor, wait) in edges {
            if let Some(cell) = self.shared.get(actor) {
                actors.push(cell.core().path());
                waits.push(wait);
            }
        }
        actors.extend(actors.first().cloned());
        AskRing { actors, waits }
    }

    /// Adds the waits of an actor, and of all actors between it and one below it, for the end of
    /// the next of them.
    fn push_ancestors(&self, from: ActorId, to: ActorId, edges: &mut Vec<(ActorId, RingWait)>) {
        let first = edges.len();
        if let Some(cell) = self.shared.get(to) {
            let above = ancestors(cell.core()).map(|node| node.id);
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
