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
use crate::cell::{self, ActorCore, ErasedCell};
use crate::context::Context;
use crate::event::Event;
use crate::exit::Exit;
use crate::mailbox::HomedRunnable;
use crate::metric::MetricEvent;
use crate::path::ActorPath;
use crate::supervision::child::ChildSpec;
use crate::supervision::spec::Strategy;
use crate::supervision::strategy::{ChildState, ChildVerdict, SupervisionPolicy};

/// Decides about a child in the context where the child ended.
pub(crate) trait RestartPolicy: Send + Sync {
    /// Decides whether another incarnation of a child that is about to go down begins at once,
    /// where the last one ended. The incarnation is made from the arguments passed to `take`,
    /// unless `take` returns `false`. If the result is `false`, the child goes down and its
    /// supervisor answers the exit.
    fn restart_in_place(
        &self,
        supervisor: &ActorCore,
        child: &ActorCore,
        exit: &Exit,
        take: &mut dyn FnMut(&dyn Any) -> bool,
    ) -> bool;

    /// Returns `true` as long as the child is supposed to run, and `false` once it was asked to
    /// end.
    fn still_wanted(&self, child: &ActorCore) -> bool;

    /// Answers the exit of a child's incarnation.
    fn on_child_exit(
        &self,
        supervisor: &ActorCore,
        child: &Arc<dyn ErasedCell>,
        exit: &Exit,
    ) -> ExitOutcome;
}

/// The outcome of an exit of a child's incarnation.
pub(crate) enum ExitOutcome {
    /// Another incarnation, ready to be scheduled.
    Restart(HomedRunnable),
    /// Nothing; the exit has been dealt with.
    Done,
    /// A decision by the supervisor, which must be notified.
    NotifySupervisor,
}

impl ExitOutcome {
    /// Converts the outcome of an attempt to start another incarnation. If the attempt panicked,
    /// the supervisor is notified and tries again; a panic is then the supervisor's own.
    pub(crate) fn from_launch<E>(launched: Result<Option<HomedRunnable>, E>) -> Self {
        match launched {
            Ok(again) => again.map_or(Self::Done, Self::Restart),
            Err(_) => Self::NotifySupervisor,
        }
    }
}

/// The child table of one incarnation of a supervisor.
pub(crate) struct ChildTable(Mutex<ChildTableState>);

pub(crate) struct ChildTableState {
    pub(crate) policy: SupervisionPolicy,
    /// `true` while the supervisor starts or stops children. An exit during this time waits for the
    /// supervisor.
    pub(crate) supervisor_busy: bool,
    by_start_index: BTreeMap<u64, ChildEntry>,
    by_key: FxHashMap<Arc<str>, u64>,
}

/// The entry of one child.
pub(crate) struct ChildEntry {
    pub(crate) spec: ChildSpec,
    pub(crate) state: ChildState,
    /// `None` while the child is stopped for good but stays in the table.
    pub(crate) cell: Option<Arc<dyn ErasedCell>>,
    /// The number of the delayed restart that the child is waiting for.
    pub(crate) pending_restart: Option<u64>,
}

impl ChildTable {
    /// Creates an empty table for a supervisor that is about to start children.
    pub(crate) fn new(policy: SupervisionPolicy) -> Self {
        Self(Mutex::new(ChildTableState {
            policy,
            supervisor_busy: true,
            by_start_index: BTreeMap::new(),
            by_key: FxHashMap::default(),
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ChildTableState> {
        self.0.lock()
    }
}

impl ChildTableState {
    /// Adds a child at the end. `place` must be greater than every earlier place; places are never
    /// reused.
    pub(crate) fn add(&mut self, place: u64, spec: ChildSpec) {
        self.by_key.insert(Arc::clone(&spec.key), place);
        let entry = ChildEntry {
            state: ChildState::new(spec.restart),
            spec,
            cell: None,
            pending_restart: None,
        };
        self.by_start_index.insert(place, entry);
    }

    pub(crate) fn remove(&mut self, place: u64) -> Option<ChildEntry> {
        let entry = self.by_start_index.remove(&place)?;
        self.by_key.remove(&entry.spec.key);
        Some(entry)
    }

    pub(crate) fn index_of(&self, key: &str) -> Option<u64> {
        self.by_key.get(key).copied()
    }

    pub(crate) fn get(&mut self, place: u64) -> Option<&mut ChildEntry> {
        self.by_start_index.get_mut(&place)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_start_index.len()
    }

    /// Returns `true` if a decision may be carried out where a child ends. Only the supervisor
    /// itself can wait out a backoff, and a supervisor that is ending its children must not get new
    /// ones.
    fn can_decide_inline(&self, supervisor: &ActorCore) -> bool {
        let alone = self.policy.strategy == Strategy::OneForOne;
        !self.supervisor_busy
            && alone
            && !self.policy.has_backoff()
            && !supervisor.children.is_closed()
    }

    /// Returns the places and entries of all children, in start order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &ChildEntry)> {
        self.by_start_index
            .iter()
            .map(|(place, entry)| (*place, entry))
    }
}

impl ChildEntry {
    /// Prepares the next incarnation of a child that has a cell.
    pub(crate) fn prepare_restart(&mut self, cell: &Arc<dyn ErasedCell>) -> Option<HomedRunnable> {
        let ready = self.spec.prepare(cell);
        self.state.running = true;
        ready
    }
}

/// Passes arguments to `take`, which clones them and so runs user code. Returns `false` if `take`
/// declines or panics.
pub(crate) fn pass_args(args: &dyn Any, take: &mut dyn FnMut(&dyn Any) -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(|| take(args))).unwrap_or(false)
}

impl SupervisionPolicy {
    /// Returns `true` if a child is restarted without a delay.
    pub(crate) fn restart_in_place(
        &mut self,
        state: &mut ChildState,
        exit: &Exit,
        child: &ActorCore,
    ) -> bool {
        // The seed is only used for the jitter of a backoff, and there is none here.
        let (now, seed) = (|| child.shared.now(), 0);
        let verdict = self.decide_child(state, exit, now, seed);
        state.running = true;
        let again = matches!(verdict, ChildVerdict::Restart { .. });
        if again {
            report_restart(child, Some(exit));
        }
        again
    }
}

/// Counts a restart and publishes it as an event. `exit` is the exit before the restart; `None`
/// stands for the last exit that the node has recorded.
pub(crate) fn report_restart(node: &ActorCore, exit: Option<&Exit>) {
    let last = || node.last_exit().unwrap_or(Exit::Shutdown);
    let exit = || exit.cloned().unwrap_or_else(last);
    node.shared
        .events
        .emit(MetricEvent::Restarted, || Event::Restarted {
            path: node.path(),
            exit: exit(),
        });
    tracing::debug!(target: "strowger", path = %node.path(), exit = %exit(), "actor restarts");
}

/// Ends a supervisor that gives up because of a child's exit.
pub(crate) fn escalate<A: Actor>(child: ActorPath, exit: Exit, cx: &mut Context<A>) {
    let node = cx.node();
    node.shared
        .events
        .emit(MetricEvent::Escalated, || Event::Escalated {
            path: node.path(),
            exit: exit.clone(),
        });
    let exit = Arc::new(exit);
    cx.request_exit(&Exit::Escalated { child, exit });
}

impl RestartPolicy for ChildTable {
    fn restart_in_place(
        &self,
        supervisor: &ActorCore,
        child: &ActorCore,
        exit: &Exit,
        take: &mut dyn FnMut(&dyn Any) -> bool,
    ) -> bool {
        let mut guard = self.lock();
        let entries = &mut *guard;
        if !entries.can_decide_inline(supervisor) {
            return false;
        }
        let Some(entry) = entries.by_start_index.get_mut(&child.start_index) else {
            return false;
        };
        entry.state.running
            && pass_args(entry.spec.args(), take)
            && entries
                .policy
                .restart_in_place(&mut entry.state, exit, child)
    }

    fn still_wanted(&self, child: &ActorCore) -> bool {
        let mut entries = self.lock();
        let entry = entries.get(child.start_index);
        entry.is_some_and(|entry| entry.state.running)
    }

    fn on_child_exit(
        &self,
        supervisor: &ActorCore,
        child: &Arc<dyn ErasedCell>,
        exit: &Exit,
    ) -> ExitOutcome {
        let mut guard = self.lock();
        let entries = &mut *guard;
        if !entries.can_decide_inline(supervisor) {
            return ExitOutcome::NotifySupervisor;
        }
        let node = child.core();
        let Some(entry) = entries.by_start_index.get_mut(&node.start_index) else {
            return ExitOutcome::NotifySupervisor;
        };
        if !entry.state.running {
            return ExitOutcome::NotifySupervisor;
        }
        // The seed is only used for the jitter of a backoff, and there is none here.
        let (now, seed) = (|| node.shared.now(), 0);
        match entries
            .policy
            .decide_child(&mut entry.state, exit, now, seed)
        {
            ChildVerdict::Restart { .. } => {
                report_restart(node, Some(exit));
                // Preparing clones the arguments, which is user code and may panic.
                let launched = catch_unwind(AssertUnwindSafe(|| entry.prepare_restart(child)));
                entry.state.running = true;
                drop(guard);
                ExitOutcome::from_launch(launched)
            }
            ChildVerdict::Escalate => {
                entry.state.running = true;
                ExitOutcome::NotifySupervisor
            }
            ChildVerdict::LeaveStopped => {
                let cell = entry.cell.take();
                drop(guard);
                drop(cell);
                cell::end_actor(child, exit, None);
                ExitOutcome::Done
            }
            ChildVerdict::Remove => {
                let entry = entries.remove(node.start_index);
                drop(guard);
                drop(entry);
                cell::end_actor(child, exit, None);
                ExitOutcome::Done
            }
        }
    }
}
