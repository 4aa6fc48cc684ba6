//! The search for rings in the wait graph.

use std::ops::ControlFlow;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::{AnswerGoal, AskRing, Goal, RingWait, Wait, Waits, above};
use crate::cell::{ActorId, Owner, Phase};
use crate::seeded_bug::{Bug, seeded};
use crate::system::SystemState;

/// A search for chains of waits that lead from an actor back to it.
pub(super) struct Search<'a> {
    waits: &'a Waits,
    shared: &'a SystemState,
    start: ActorId,
    /// The actors that were reached, from `start` on, breadth first.
    steps: Vec<Step<'a>>,
    /// The actors in `steps`, together with the fields on which the rest of the way depends.
    seen: FxHashSet<(ActorId, bool, bool)>,
}

#[derive(Clone, Copy)]
pub(super) struct Step<'a> {
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
    pub(super) fn is_ask(&self) -> bool {
        matches!(self.via, Via::Wait(wait) if wait.answer().is_some())
    }
}

impl<'a> Search<'a> {
    pub(super) fn new(waits: &'a Waits, shared: &'a SystemState, start: ActorId) -> Self {
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
    pub(super) fn last_ask(&self, last: &Step<'a>) -> Option<(&'a Wait, &'a AnswerGoal)> {
        let wait: &'a Wait = last.ask?;
        Some((wait, wait.answer()?))
    }

    /// Builds the ring that ends with a step, beginning with `first` if that is part of it.
    pub(super) fn ring(&self, last: &Step<'a>, first: Option<&ActorId>) -> AskRing {
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

    /// Adds the waits of an actor, and of all actors between it and one below it, for the end of
    /// the next of them.
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
