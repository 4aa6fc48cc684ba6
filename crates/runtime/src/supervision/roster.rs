//! The children of a supervisor, shared by it and by those of its children that end.
//!
//! A child that ends finds itself here by its place, without a search. Where its siblings do not
//! share its fate and the supervisor is not at work on its children, the decision is carried out
//! on the spot: the child starts again where it ended, and no message goes to and fro. In all
//! other cases the supervisor is told.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use crate::cell::{self, AnyCell, Node};
use crate::event::Event;
use crate::exit::Exit;
use crate::mailbox::Idle;
use crate::metric::Count;
use crate::supervision::child::ChildSpec;
use crate::supervision::spec::Strategy;
use crate::supervision::strategy::{Child, Policy, Verdict};

/// Decides about a child at the place where it ended.
pub(crate) trait Overseer: Send + Sync {
    /// Decides about a child that is about to be down: whether another incarnation begins at once
    /// where the last one ended. It is made from what `take` is shown, unless that says no. A
    /// child for which there is no such incarnation goes down, and its supervisor answers to that.
    fn succeeds(
        &self,
        supervisor: &Node,
        child: &Node,
        exit: &Exit,
        take: &mut dyn FnMut(&dyn Any) -> bool,
    ) -> bool;

    /// Returns `true` as long as the child is to run; `false` once somebody was asked to end it.
    fn keeps(&self, child: &Node) -> bool;

    /// Answers to the end of a child's incarnation.
    fn child_down(&self, supervisor: &Node, child: &Arc<dyn AnyCell>, exit: &Exit) -> Answer;
}

/// What follows the end of a child's incarnation.
pub(crate) enum Answer {
    /// Another one.
    Again(Idle),
    /// Nothing more.
    Done,
    /// What the supervisor decides, which must be told.
    Tell,
}

impl Answer {
    /// After an attempt to start another incarnation, which panicked if it failed: the supervisor
    /// tries again, and it is its panic then.
    pub(crate) fn to<E>(launched: Result<Option<Idle>, E>) -> Self {
        match launched {
            Ok(again) => again.map_or(Self::Done, Self::Again),
            Err(_) => Self::Tell,
        }
    }
}

/// The children of one incarnation of a supervisor.
pub(crate) struct Roster(Mutex<Entries>);

pub(crate) struct Entries {
    pub(crate) policy: Policy,
    /// Whether the supervisor starts or stops children: an exit in this time waits for it.
    pub(crate) busy: bool,
    by_place: BTreeMap<u64, Kept>,
    by_key: FxHashMap<Arc<str>, u64>,
}

/// What is kept of a child.
pub(crate) struct Kept {
    pub(crate) spec: ChildSpec,
    pub(crate) fact: Child,
    /// Absent while the child is stopped for good but keeps its place.
    pub(crate) cell: Option<Arc<dyn AnyCell>>,
    /// The restart that it waits for.
    pub(crate) waits_for: Option<u64>,
}

impl Roster {
    /// A roster without children, whose supervisor is about to start some.
    pub(crate) fn new(policy: Policy) -> Self {
        Self(Mutex::new(Entries {
            policy,
            busy: true,
            by_place: BTreeMap::new(),
            by_key: FxHashMap::default(),
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock()
    }
}

impl Entries {
    /// Adds a child, last; places never come twice, and grow.
    pub(crate) fn add(&mut self, place: u64, spec: ChildSpec) {
        self.by_key.insert(Arc::clone(&spec.key), place);
        let kept = Kept {
            fact: Child::new(spec.restart),
            spec,
            cell: None,
            waits_for: None,
        };
        self.by_place.insert(place, kept);
    }

    pub(crate) fn remove(&mut self, place: u64) -> Option<Kept> {
        let kept = self.by_place.remove(&place)?;
        self.by_key.remove(&kept.spec.key);
        Some(kept)
    }

    pub(crate) fn place(&self, key: &str) -> Option<u64> {
        self.by_key.get(key).copied()
    }

    pub(crate) fn get(&mut self, place: u64) -> Option<&mut Kept> {
        self.by_place.get_mut(&place)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Whether a decision may be carried out where a child ends: a pause is the supervisor's to
    /// wait for, and one that ends its children wants no new ones.
    fn decides(&self, supervisor: &Node) -> bool {
        let alone = self.policy.strategy == Strategy::OneForOne;
        !self.busy && alone && !self.policy.pauses() && !supervisor.children.is_shut()
    }

    /// The children in their order, with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Kept)> {
        self.by_place.iter().map(|(place, kept)| (*place, kept))
    }
}

impl Kept {
    /// Makes the next incarnation of a child that has a cell ready to run.
    pub(crate) fn relaunch(&mut self, cell: &Arc<dyn AnyCell>) -> Option<Idle> {
        let ready = self.spec.prepare(cell);
        self.fact.running = true;
        ready
    }
}

/// Shows arguments to one who clones them, which is foreign code; whether that went well.
pub(crate) fn taken(args: &dyn Any, take: &mut dyn FnMut(&dyn Any) -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(|| take(args))).unwrap_or(false)
}

impl Policy {
    /// Whether a child is started again without a pause; where it is not, nothing has changed.
    pub(crate) fn succeeds(&mut self, fact: &mut Child, exit: &Exit, child: &Node) -> bool {
        // Without a pause there is nothing to draw.
        let (now, seed) = (|| child.shared.now(), 0);
        let verdict = self.judge(fact, exit, now, seed);
        fact.running = true;
        let again = matches!(verdict, Verdict::Restart { .. });
        if again {
            restarted(child, Some(exit));
        }
        again
    }
}

/// Counts a restart, and tells it to those who want to know. The exit before it is the last one,
/// or one that has not been noted yet.
pub(crate) fn restarted(node: &Node, exit: Option<&Exit>) {
    let last = || node.last_exit().unwrap_or(Exit::Shutdown);
    let exit = || exit.cloned().unwrap_or_else(last);
    node.shared
        .events
        .emit(Count::Restarted, || Event::Restarted {
            path: node.path(),
            exit: exit(),
        });
    tracing::debug!(target: "strowger", path = %node.path(), exit = %exit(), "actor restarts");
}

impl Overseer for Roster {
    fn succeeds(
        &self,
        supervisor: &Node,
        child: &Node,
        exit: &Exit,
        take: &mut dyn FnMut(&dyn Any) -> bool,
    ) -> bool {
        let mut guard = self.lock();
        let entries = &mut *guard;
        if !entries.decides(supervisor) {
            return false;
        }
        let Some(kept) = entries.by_place.get_mut(&child.place) else {
            return false;
        };
        kept.fact.running
            && taken(kept.spec.args(), take)
            && entries.policy.succeeds(&mut kept.fact, exit, child)
    }

    fn keeps(&self, child: &Node) -> bool {
        let mut entries = self.lock();
        let kept = entries.get(child.place);
        kept.is_some_and(|kept| kept.fact.running)
    }

    fn child_down(&self, supervisor: &Node, child: &Arc<dyn AnyCell>, exit: &Exit) -> Answer {
        let mut guard = self.lock();
        let entries = &mut *guard;
        if !entries.decides(supervisor) {
            return Answer::Tell;
        }
        let node = child.node();
        let Some(kept) = entries.by_place.get_mut(&node.place) else {
            return Answer::Tell;
        };
        if !kept.fact.running {
            return Answer::Tell;
        }
        // Without a pause there is nothing to draw.
        let (now, seed) = (|| node.shared.now(), 0);
        match entries.policy.judge(&mut kept.fact, exit, now, seed) {
            Verdict::Restart { .. } => {
                restarted(node, Some(exit));
                // Arguments are cloned, which is foreign code.
                let launched = catch_unwind(AssertUnwindSafe(|| kept.relaunch(child)));
                kept.fact.running = true;
                drop(guard);
                Answer::to(launched)
            }
            Verdict::Escalate => {
                kept.fact.running = true;
                Answer::Tell
            }
            Verdict::Nothing => {
                let cell = kept.cell.take();
                drop(guard);
                drop(cell);
                cell::finish(child, exit, None);
                Answer::Done
            }
            Verdict::Remove => {
                let kept = entries.remove(node.place);
                drop(guard);
                drop(kept);
                cell::finish(child, exit, None);
                Answer::Done
            }
        }
    }
}
