//! The child table of a supervisor, shared with its children as they end.
//!
//! A child that ends finds its own entry by its place number, without a search. With the
//! one-for-one strategy, and if the supervisor is not busy starting or stopping children, the
//! decision is carried out where the child ended: it is restarted there, without a message to the
//! supervisor and back. In all other cases the supervisor is notified.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rustc_hash::FxHashMap;

use crate::actor::Actor;
use crate::cell::{self, AnyCell, Node};
use crate::context::Context;
use crate::event::Event;
use crate::exit::Exit;
use crate::mailbox::PlacedRunnable;
use crate::metric::Count;
use crate::path::Path;
use crate::supervision::child::ChildSpec;
use crate::supervision::spec::Strategy;
use crate::supervision::strategy::{ChildState, Policy, Verdict};

/// Decides about a child in the context where the child ended.
pub(crate) trait Overseer: Send + Sync {
    /// Decides whether another incarnation of a child that is about to go down begins at once,
    /// where the last one ended. The incarnation is made from the arguments passed to `take`,
    /// unless `take` returns `false`. If the result is `false`, the child goes down and its
    /// supervisor answers the exit.
    fn restarts_in_place(
        &self,
        supervisor: &Node,
        child: &Node,
        exit: &Exit,
        take: &mut dyn FnMut(&dyn Any) -> bool,
    ) -> bool;

    /// Returns `true` as long as the child is supposed to run, and `false` once it was asked to
    /// end.
    fn is_wanted(&self, child: &Node) -> bool;

    /// Answers the exit of a child's incarnation.
    fn child_down(&self, supervisor: &Node, child: &Arc<dyn AnyCell>, exit: &Exit) -> ExitOutcome;
}

/// The outcome of an exit of a child's incarnation.
pub(crate) enum ExitOutcome {
    /// Another incarnation, ready to be scheduled.
    Restart(PlacedRunnable),
    /// Nothing; the exit has been dealt with.
    Handled,
    /// A decision by the supervisor, which must be notified.
    NotifySupervisor,
}

impl ExitOutcome {
    /// Converts the outcome of an attempt to start another incarnation. If the attempt panicked,
    /// the supervisor is notified and tries again; a panic is then the supervisor's own.
    pub(crate) fn from_launch<E>(launched: Result<Option<PlacedRunnable>, E>) -> Self {
        match launched {
            Ok(again) => again.map_or(Self::Handled, Self::Restart),
            Err(_) => Self::NotifySupervisor,
        }
    }
}

/// The child table of one incarnation of a supervisor.
pub(crate) struct ChildTable(Mutex<Entries>);

pub(crate) struct Entries {
    pub(crate) policy: Policy,
    /// `true` while the supervisor starts or stops children. An exit during this time waits for the
    /// supervisor.
    pub(crate) busy: bool,
    by_place: BTreeMap<u64, ChildEntry>,
    by_key: FxHashMap<Arc<str>, u64>,
}

/// The entry of one child.
pub(crate) struct ChildEntry {
    pub(crate) spec: ChildSpec,
    pub(crate) state: ChildState,
    /// `None` while the child is stopped for good but stays in the table.
    pub(crate) cell: Option<Arc<dyn AnyCell>>,
    /// The number of the delayed restart that the child is waiting for.
    pub(crate) waits_for: Option<u64>,
}

impl ChildTable {
    /// Creates an empty table for a supervisor that is about to start children.
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
    /// Adds a child at the end. `place` must be greater than every earlier place; places are never
    /// reused.
    pub(crate) fn add(&mut self, place: u64, spec: ChildSpec) {
        self.by_key.insert(Arc::clone(&spec.key), place);
        let entry = ChildEntry {
            state: ChildState::new(spec.restart),
            spec,
            cell: None,
            waits_for: None,
        };
        self.by_place.insert(place, entry);
    }

    pub(crate) fn remove(&mut self, place: u64) -> Option<ChildEntry> {
        let entry = self.by_place.remove(&place)?;
        self.by_key.remove(&entry.spec.key);
        Some(entry)
    }

    pub(crate) fn place(&self, key: &str) -> Option<u64> {
        self.by_key.get(key).copied()
    }

    pub(crate) fn get(&mut self, place: u64) -> Option<&mut ChildEntry> {
        self.by_place.get_mut(&place)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_place.len()
    }

    /// Returns `true` if a decision may be carried out where a child ends. Only the supervisor
    /// itself can wait out a backoff, and a supervisor that is ending its children must not get new
    /// ones.
    fn decides(&self, supervisor: &Node) -> bool {
        let alone = self.policy.strategy == Strategy::OneForOne;
        !self.busy && alone && !self.policy.pauses() && !supervisor.children.is_closed()
    }

    /// Returns the places and entries of all children, in start order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &ChildEntry)> {
        self.by_place.iter().map(|(place, entry)| (*place, entry))
    }
}

impl ChildEntry {
    /// Prepares the next incarnation of a child that has a cell.
    pub(crate) fn relaunch(&mut self, cell: &Arc<dyn AnyCell>) -> Option<PlacedRunnable> {
        let ready = self.spec.prepare(cell);
        self.state.running = true;
        ready
    }
}

/// Passes arguments to `take`, which clones them and so runs user code. Returns `false` if `take`
/// declines or panics.
pub(crate) fn taken(args: &dyn Any, take: &mut dyn FnMut(&dyn Any) -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(|| take(args))).unwrap_or(false)
}

impl Policy {
    /// Returns `true` if a child is restarted without a delay.
    pub(crate) fn restarts_in_place(
        &mut self,
        state: &mut ChildState,
        exit: &Exit,
        child: &Node,
    ) -> bool {
        // The seed is only used for the jitter of a backoff, and there is none here.
        let (now, seed) = (|| child.shared.now(), 0);
        let verdict = self.judge(state, exit, now, seed);
        state.running = true;
        let again = matches!(verdict, Verdict::Restart { .. });
        if again {
            restarted(child, Some(exit));
        }
        again
    }
}

/// Counts a restart and publishes it as an event. `exit` is the exit before the restart; `None`
/// stands for the last exit that the node has recorded.
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

/// Ends a supervisor that gives up because of a child's exit.
pub(crate) fn escalate<A: Actor>(child: Path, exit: Exit, cx: &mut Context<A>) {
    let node = cx.node();
    node.shared
        .events
        .emit(Count::Escalated, || Event::Escalated {
            path: node.path(),
            exit: exit.clone(),
        });
    let exit = Arc::new(exit);
    cx.request_exit(&Exit::Escalated { child, exit });
}

impl Overseer for ChildTable {
    fn restarts_in_place(
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
        let Some(entry) = entries.by_place.get_mut(&child.place) else {
            return false;
        };
        entry.state.running
            && taken(entry.spec.args(), take)
            && entries
                .policy
                .restarts_in_place(&mut entry.state, exit, child)
    }

    fn is_wanted(&self, child: &Node) -> bool {
        let mut entries = self.lock();
        let entry = entries.get(child.place);
        entry.is_some_and(|entry| entry.state.running)
    }

    fn child_down(&self, supervisor: &Node, child: &Arc<dyn AnyCell>, exit: &Exit) -> ExitOutcome {
        let mut guard = self.lock();
        let entries = &mut *guard;
        if !entries.decides(supervisor) {
            return ExitOutcome::NotifySupervisor;
        }
        let node = child.node();
        let Some(entry) = entries.by_place.get_mut(&node.place) else {
            return ExitOutcome::NotifySupervisor;
        };
        if !entry.state.running {
            return ExitOutcome::NotifySupervisor;
        }
        // The seed is only used for the jitter of a backoff, and there is none here.
        let (now, seed) = (|| node.shared.now(), 0);
        match entries.policy.judge(&mut entry.state, exit, now, seed) {
            Verdict::Restart { .. } => {
                restarted(node, Some(exit));
                // Preparing clones the arguments, which is user code and may panic.
                let launched = catch_unwind(AssertUnwindSafe(|| entry.relaunch(child)));
                entry.state.running = true;
                drop(guard);
                ExitOutcome::from_launch(launched)
            }
            Verdict::Escalate => {
                entry.state.running = true;
                ExitOutcome::NotifySupervisor
            }
            Verdict::Nothing => {
                let cell = entry.cell.take();
                drop(guard);
                drop(cell);
                cell::finish(child, exit, None);
                ExitOutcome::Handled
            }
            Verdict::Remove => {
                let entry = entries.remove(node.place);
                drop(guard);
                drop(entry);
                cell::finish(child, exit, None);
                ExitOutcome::Handled
            }
        }
    }
}
