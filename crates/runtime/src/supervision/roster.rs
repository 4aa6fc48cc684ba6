//! The children of a supervisor, shared by it and by those of its children that end.
//!
//! A child that ends finds itself here by its place, without a search. Where its siblings do not
//! share its fate and the supervisor is not at work on its children, the decision is carried out
//! on the spot: the child starts again where it ended, and no message goes to and fro. In all
//! other cases the supervisor is told.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use crate::cell::{self, AnyCell, Node};
use crate::event::Event;
use crate::exit::Exit;
use crate::metric::Count;
use crate::supervision::child::ChildSpec;
use crate::supervision::spec::Strategy;
use crate::supervision::strategy::{Child, Policy, Verdict};

/// Decides about a child at the place where it ended.
pub(crate) trait Overseer: Send + Sync {
    /// Answers to the end of a child's incarnation; false if the supervisor must be told.
    fn child_down(&self, supervisor: &Node, child: &Arc<dyn AnyCell>, exit: &Exit) -> bool;
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

    /// The children in their order, with their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Kept)> {
        self.by_place.iter().map(|(place, kept)| (*place, kept))
    }
}

impl Kept {
    /// Starts the next incarnation of a child that has a cell.
    pub(crate) fn relaunch(&mut self, cell: &Arc<dyn AnyCell>) {
        self.spec.launch(cell);
        self.fact.running = true;
    }
}

/// Counts a restart, and tells it to those who want to know.
pub(crate) fn restarted(node: &Node) {
    let exit = || node.last_exit().unwrap_or(Exit::Shutdown);
    node.shared
        .events
        .emit(Count::Restarted, || Event::Restarted {
            path: node.path(),
            exit: exit(),
        });
    tracing::debug!(target: "strowger", path = %node.path(), exit = %exit(), "actor restarts");
}

impl Overseer for Roster {
    fn child_down(&self, supervisor: &Node, child: &Arc<dyn AnyCell>, exit: &Exit) -> bool {
        let mut guard = self.lock();
        let entries = &mut *guard;
        let alone = entries.policy.strategy == Strategy::OneForOne;
        // A pause is the supervisor's to wait for; one that ends its children wants no new ones.
        if entries.busy || !alone || entries.policy.pauses() || supervisor.children.is_shut() {
            return false;
        }
        let node = child.node();
        let Some(kept) = entries.by_place.get_mut(&node.place) else {
            return false;
        };
        if !kept.fact.running {
            return false;
        }
        let (now, seed) = (node.shared.now(), node.shared.next_seed());
        match entries.policy.judge(&mut kept.fact, exit, now, seed) {
            Verdict::Restart { .. } => {
                restarted(node);
                // Arguments are cloned, which is foreign code. If that panics, the supervisor
                // tries again, and it is its panic then.
                let launched = catch_unwind(AssertUnwindSafe(|| kept.relaunch(child))).is_ok();
                kept.fact.running = true;
                launched
            }
            Verdict::Escalate => {
                kept.fact.running = true;
                false
            }
            Verdict::Nothing => {
                let cell = kept.cell.take();
                drop(guard);
                drop(cell);
                cell::finish(child, exit);
                true
            }
            Verdict::Remove => {
                let kept = entries.remove(node.place);
                drop(guard);
                drop(kept);
                cell::finish(child, exit);
                true
            }
        }
    }
}
