//! The cell behind an address: the part of an actor that survives its restarts.

mod end;
#[cfg(all(test, strowger_loom))]
mod loom;
mod state;

use std::any::Any;
use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, Weak};

use crate::budget::charge_poll;
use crate::children::Children;
use tracing::level_filters::LevelFilter;

use crate::event::Event;
use crate::exit::{Exit, drop_caught};
use crate::info::{ActorInfo, ActorLifecycle, STATS_ENABLED};
use crate::mailbox::{Mailbox, MailboxSpec, MailboxStats, SystemMessage};
use crate::membership::WeakMembership;
use crate::metric::MetricEvent;
use crate::monitor::MonitorId;
use crate::path::{ActorPath, Key};
use crate::reply::{Completion, CompletionSink};
use crate::schedule::strand::{self, SpinLock};
use crate::schedule::wake::wake;
use crate::supervision::{RestartPolicy, Shutdown, ShutdownLimit};
use crate::system::SystemState;
use crate::wait_graph::PhaseEdge;
pub(crate) use end::{down_signal, end_actor, end_if_down, end_supervised_if_down, notify_links};
use state::{ActorState, AtomicFlags, AtomicPhase, MonitorEntry, PhaseWait};
pub(crate) use state::{LinkEnd, Phase, PhaseGoal};

/// The identifier of an actor in its system, valid for as long as its address.
///
/// A slot is used again after the actor's end, with another generation, so an identifier never
/// names two actors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActorId {
    /// Slot in the system's table.
    pub slot: u32,
    /// Number of times that the slot was used before.
    pub generation: u32,
}

impl ActorId {
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves are taken")]
    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self {
            slot: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

impl std::fmt::Display for ActorId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.slot, self.generation)
    }
}

/// The cell of an actor that takes messages of type `M`.
pub(crate) struct ActorCell<M> {
    pub(crate) core: ActorCore,
    pub(crate) mailbox: Mailbox<M>,
}

/// A cell without its message type, as the tree, supervisors and the registry see it.
pub(crate) trait ErasedCell: Send + Sync {
    fn core(&self) -> &ActorCore;
    fn push_system(&self, system: SystemMessage, incarnation: Option<u32>) -> bool;
    fn incarnation(&self) -> u32;
    fn first_unanswered(&self) -> Option<u64>;
    fn stats(&self) -> MailboxStats;
    fn spec(&self) -> MailboxSpec;
    fn close(&self) -> u64;
    /// Returns an estimate of the memory that it takes, in bytes.
    fn memory(&self, stats: &MailboxStats) -> usize;
    /// Returns a number that changes with every message that is taken.
    fn handled_count(&self) -> u64;
    /// Asks the incarnation to stop, ahead of all messages that wait.
    fn stop(&self);
    /// Ends the incarnation at its next await.
    fn kill(&self);
    /// Ends an incarnation that nothing will run any more.
    fn end_if_parked(&self);
    /// Records that nobody wants the message with this number any more.
    #[cfg(feature = "messages")]
    fn cancel_message(&self, number: u64);
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<M: Send + 'static> ErasedCell for ActorCell<M> {
    fn core(&self) -> &ActorCore {
        &self.core
    }

    fn push_system(&self, system: SystemMessage, incarnation: Option<u32>) -> bool {
        self.mailbox.push_system(system, incarnation)
    }

    fn incarnation(&self) -> u32 {
        self.mailbox.incarnation()
    }

    #[cfg(feature = "messages")]
    fn cancel_message(&self, number: u64) {
        self.mailbox.cancel_message(number);
    }

    fn first_unanswered(&self) -> Option<u64> {
        self.mailbox.first_unanswered()
    }

    fn stats(&self) -> MailboxStats {
        self.mailbox.stats()
    }

    fn spec(&self) -> MailboxSpec {
        self.mailbox.spec()
    }

    fn close(&self) -> u64 {
        self.mailbox.close()
    }

    fn memory(&self, stats: &MailboxStats) -> usize {
        let counts = 2 * size_of::<usize>();
        size_of::<Self>() + counts + stats.bytes + (self.core.type_info)().heap_bytes
    }

    fn handled_count(&self) -> u64 {
        self.mailbox.progress()
    }

    fn stop(&self) {
        if let Some((ready, place)) = self.mailbox.stop() {
            self.core.shared.scheduler.push_local(ready, place);
        }
    }

    fn kill(&self) {
        if self.core.kill() {
            self.mailbox.strand().wake();
        }
    }

    fn end_if_parked(&self) {
        strand::end_if_parked(self);
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// The way of a lane into a cell: the wrapping of completions is fixed when the lane is created.
pub(crate) struct LaneSink<M, T> {
    pub(crate) cell: Weak<ActorCell<M>>,
    pub(crate) incarnation: u32,
    pub(crate) wrap: fn(Completion<T>) -> M,
}

impl<M: Send + 'static, T> CompletionSink<T> for LaneSink<M, T> {
    fn complete(&self, completion: Completion<T>) {
        if let Some(cell) = self.cell.upgrade() {
            cell.mailbox
                .push_completion(self.incarnation, (self.wrap)(completion), None);
        }
    }
}

/// The properties that all actors of one type share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ActorTypeInfo {
    /// The name of the Rust type.
    pub(crate) name: &'static str,
    /// Bytes of an incarnation that have no room in its cell, the actor's value among them.
    pub(crate) heap_bytes: usize,
}

/// The part of a cell that does not depend on the message type.
pub(crate) struct ActorCore {
    pub(crate) id: ActorId,
    pub(crate) key: Key,
    /// Number of the actor among its siblings, in the order of their start.
    pub(crate) start_index: u64,
    pub(crate) type_info: fn() -> ActorTypeInfo,
    pub(crate) owner: Owner,
    pub(crate) shared: Arc<SystemState>,
    pub(crate) children: Children,
    /// The time that the actor may take to stop.
    pub(crate) shutdown_limit: ShutdownLimit,
    /// `KILLED`, `SPANNED`, `TRACED`.
    flags: AtomicFlags,
    phase_cell: AtomicPhase,
    state: SpinLock<ActorState>,
}

/// The owner of an actor.
pub(crate) enum Owner {
    /// The system: the actor is at the top of the tree.
    System,
    /// An actor that does not restart its children, and is told when they end.
    Parent {
        cell: Arc<dyn ErasedCell>,
        incarnation: u32,
    },
    /// A dynamic supervisor that does not restart its children, and need not be told when they end.
    Dynamic { cell: Arc<dyn ErasedCell> },
    /// A supervisor, which decides after each exit.
    Supervisor {
        cell: Arc<dyn ErasedCell>,
        incarnation: u32,
    },
}

impl Owner {
    pub(crate) fn cell(&self) -> Option<&Arc<dyn ErasedCell>> {
        match self {
            Self::System => None,
            Self::Parent { cell, .. } | Self::Dynamic { cell } | Self::Supervisor { cell, .. } => {
                Some(cell)
            }
        }
    }
}

/// The flag of an incarnation that ends at its next await.
const KILLED: u8 = 1;
/// The flag of an actor that has a span, because a subscriber listens to spans.
const SPANNED: u8 = 4;
/// The flag of an actor that is traced, or was a moment ago.
const TRACED: u8 = 2;

/// The parts of which a node is built.
pub(crate) struct ActorCoreParts {
    pub(crate) id: ActorId,
    pub(crate) key: Key,
    pub(crate) start_index: u64,
    pub(crate) kind: fn() -> ActorTypeInfo,
    pub(crate) owner: Owner,
    pub(crate) shared: Arc<SystemState>,
    pub(crate) shutdown: Shutdown,
}

impl ActorCore {
    #[inline(always)]
    pub(crate) fn new(parts: ActorCoreParts) -> Self {
        let ActorCoreParts {
            id,
            key,
            start_index: place,
            kind,
            owner,
            shared,
            shutdown,
        } = parts;
        Self {
            id,
            key,
            start_index: place,
            type_info: kind,
            owner,
            shared,
            shutdown_limit: shutdown.into(),
            children: Children::default(),
            flags: AtomicFlags::default(),
            phase_cell: AtomicPhase::default(),
            state: SpinLock::new(ActorState::default()),
        }
    }

    pub(crate) fn path(&self) -> ActorPath {
        let mut keys = vec![&self.key];
        let mut above = self.owner.cell();
        while let Some(cell) = above {
            keys.push(&cell.core().key);
            above = cell.core().owner.cell();
        }
        ActorPath::from_keys_upward(&keys)
    }

    /// Returns the child with this key.
    pub(crate) fn child(&self, key: &Key) -> Option<Arc<dyn ErasedCell>> {
        self.children.get(&self.shared.cells, key)
    }

    /// Returns the children in the order of their start.
    pub(crate) fn children(&self) -> Vec<Arc<dyn ErasedCell>> {
        self.children.collect(&self.shared.cells)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase_cell.phase()
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.phase_cell.is_ending()
    }

    /// Returns the exit of the last incarnation.
    pub(crate) fn last_exit(&self) -> Option<Exit> {
        match self.phase_cell.last_exit_kind() {
            Ok(exit) => exit,
            Err(_) => self.state.lock().last_exit(),
        }
    }

    pub(crate) fn is_killed(&self) -> bool {
        self.flags.intersects(KILLED)
    }

    /// Returns `true` if the actor is killed, or may be traced; read for each message.
    #[inline(always)]
    pub(crate) fn needs_slow_path(&self) -> bool {
        let seen = if STATS_ENABLED {
            KILLED | TRACED
        } else {
            KILLED
        };
        self.flags.intersects(seen)
    }

    /// Returns `true` if this actor may be traced.
    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        STATS_ENABLED && self.flags.intersects(TRACED)
    }

    pub(crate) fn set_traced(&self, traced: bool) {
        if traced {
            self.flags.set(TRACED);
        } else {
            self.flags.clear(TRACED);
        }
    }

    /// Marks the incarnation as killed; returns `false` if there is none.
    fn kill(&self) -> bool {
        let state = self.state.lock();
        let lives = !self.is_ending() && self.phase() != Phase::Down;
        if lives {
            self.flags.set(KILLED);
        }
        drop(state);
        lives
    }

    /// Prepares the node for another incarnation. Returns how many there were before; `None` if the
    /// actor has ended.
    pub(crate) fn begin_incarnation(&self) -> Option<u32> {
        if self.phase() == Phase::Starting {
            return Some(0);
        }
        let mut state = self.state.lock();
        if self.is_ending() {
            return None;
        }
        if self.is_killed() {
            self.flags.clear(KILLED);
        }
        let cold = state.cold_mut();
        cold.restarts += 1;
        let restarts = cold.restarts;
        self.phase_cell.enter(Phase::Starting);
        drop(state);
        self.children.open();
        Some(restarts)
    }

    /// Records the end of an incarnation, and prepares the node for the one that follows at once,
    /// without being down in between: a kill from now on is meant for that one. Returns the links
    /// of the incarnation that ended.
    pub(crate) fn restart_in_place(
        &self,
        exit: Exit,
        overseen: Arc<dyn RestartPolicy>,
    ) -> Vec<LinkEnd> {
        let mut earlier = None;
        let mut state = self.state.lock();
        state.set_last_exit(&self.phase_cell, exit, &mut earlier);
        let cold = state.cold_mut();
        cold.restarts += 1;
        let policies = (cold.child_policy.take(), cold.own_policy.replace(overseen));
        let links = mem::take(&mut cold.links);
        self.phase_cell.enter(Phase::Starting);
        drop(state);
        drop(policies);
        drop_caught(earlier);
        self.children.open();
        links
    }

    /// Enters a phase, and wakes the tasks that wait for it; called by the code that runs the
    /// incarnation.
    pub(crate) fn enter(&self, phase: Phase) {
        if phase == Phase::Stopping && self.phase() == Phase::Running {
            // No task waits for this transition.
            return self.phase_cell.enter(phase);
        }
        let mut state = self.state.lock();
        self.phase_cell.enter(phase);
        let Some(cold) = &mut state.cold else { return };
        if cold.phase_waiters.is_empty() {
            return;
        }
        let waiting = mem::take(&mut cold.phase_waiters);
        drop(state);
        waiting.into_iter().for_each(|(_, waker)| wake(waker));
    }

    /// Records the end of an incarnation; returns the links that it had.
    pub(crate) fn record_exit(&self, exit: &Exit) -> Vec<LinkEnd> {
        self.end_span();
        let mut earlier = None;
        let mut state = self.state.lock();
        state.set_last_exit(&self.phase_cell, exit.clone(), &mut earlier);
        let Some(cold) = &mut state.cold else {
            return Vec::new();
        };
        let policy = cold.child_policy.take();
        let links = mem::take(&mut cold.links);
        drop(state);
        drop(policy);
        drop_caught(earlier);
        links
    }

    /// Waits until the actor is in one of these phases.
    ///
    /// Every wait of the runtime for the end or the start of an actor is one of these, so that none
    /// is missing in the wait graph.
    pub(crate) async fn wait_for_phase(&self, goal: PhaseGoal) {
        let mut wait = PhaseWait {
            node: self,
            ticket: None,
            goal,
            edge: PhaseEdge::new(self, goal),
        };
        poll_fn(|cx| charge_poll(cx, |cx| wait.poll(cx))).await;
    }

    /// Adds a monitor; returns the exit instead if the actor has ended.
    pub(crate) fn add_monitor(
        &self,
        id: MonitorId,
        cell: Weak<dyn ErasedCell>,
        incarnation: u32,
    ) -> Option<Exit> {
        let mut state = self.state.lock();
        if self.is_ending() {
            drop(state);
            return self.last_exit();
        }
        state.cold_mut().monitors.push(MonitorEntry {
            id,
            cell,
            incarnation,
        });
        None
    }

    pub(crate) fn remove_monitor(&self, id: MonitorId) {
        if let Some(cold) = &mut self.state.lock().cold {
            cold.monitors.retain(|watcher| watcher.id != id);
        }
    }

    /// Adds a link; returns the exit instead if the actor has ended.
    pub(crate) fn link(&self, link: LinkEnd) -> Option<Exit> {
        let mut state = self.state.lock();
        if self.is_ending() {
            drop(state);
            return self.last_exit();
        }
        state.cold_mut().links.push(link);
        None
    }

    pub(crate) fn unlink(&self, id: ActorId) {
        if let Some(cold) = &mut self.state.lock().cold {
            cold.links.retain(|link| link.id != id);
        }
    }

    /// Records a registered name, to be freed at the end; returns `false` if the actor has ended.
    pub(crate) fn add_registered_name(&self, name: Arc<str>) -> bool {
        let mut state = self.state.lock();
        let alive = !self.is_ending();
        if alive {
            state.cold_mut().names.push(name);
        }
        alive
    }

    /// Records a membership, to be left at the end; returns `false` if the actor has ended.
    pub(crate) fn add_membership(&self, membership: WeakMembership) -> bool {
        let mut state = self.state.lock();
        if self.is_ending() {
            return false;
        }
        let memberships = &mut state.cold_mut().memberships;
        if !memberships.iter().any(|one| one.ptr_eq(&membership)) {
            memberships.push(membership);
        }
        true
    }

    pub(crate) fn set_extension(&self, value: Arc<dyn Any + Send + Sync>) {
        self.state.lock().cold_mut().extension = Some(value);
    }

    pub(crate) fn extension(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.state.lock().cold.as_ref()?.extension.clone()
    }

    /// Sets the policy that decides about the children of this actor.
    pub(crate) fn set_child_policy(&self, policy: Arc<dyn RestartPolicy>) {
        self.state.lock().cold_mut().child_policy = Some(policy);
    }

    pub(crate) fn child_policy(&self) -> Option<Arc<dyn RestartPolicy>> {
        self.state.lock().cold.as_ref()?.child_policy.clone()
    }

    /// Returns the policy that decides about this actor, which has this parent. It stays the same
    /// for as long as the actor exists, so it is kept after the first restart.
    pub(crate) fn own_policy(&self, parent: &Self) -> Option<Arc<dyn RestartPolicy>> {
        let mut state = self.state.lock();
        let cold = state.cold.as_mut();
        let kept = cold.and_then(|cold| cold.own_policy.take());
        drop(state);
        kept.or_else(|| parent.child_policy())
    }

    /// Counts the first start, and reports it.
    pub(crate) fn report_started(&self) {
        self.shared
            .events
            .emit(MetricEvent::Started, || Event::Started {
                path: self.path(),
            });
        tracing::debug!(target: "strowger", path = %self.path(), "actor starts");
    }

    pub(crate) fn restarts(&self) -> u32 {
        let state = self.state.lock();
        state.cold.as_ref().map_or(0, |cold| cold.restarts)
    }

    pub(crate) fn info(&self, stats: MailboxStats, spec: MailboxSpec, memory: usize) -> ActorInfo {
        ActorInfo {
            path: self.path(),
            id: self.id,
            type_name: (self.type_info)().name,
            state: ActorLifecycle::from(self.phase()),
            mailbox_len: stats.depth,
            capacity: spec.capacity(),
            high_water: stats.high_water,
            dropped: stats.dropped,
            expired: stats.expired,
            handled: stats.handled,
            busy_time: stats.busy,
            queue_time: stats.waited,
            memory,
            restarts: self.restarts(),
            last_exit: self.last_exit(),
            children: self.children.len(),
        }
    }
}

/// The span of an incarnation.
impl ActorCore {
    /// Creates the span of an incarnation, if a subscriber listens. It is a root; otherwise spans
    /// would nest for as long as actors start actors.
    #[inline]
    pub(crate) fn open_span(&self) {
        // Checked first: without a subscriber, this is all there is to do.
        if LevelFilter::current() >= LevelFilter::DEBUG {
            self.make_span();
        }
    }

    #[cold]
    fn make_span(&self) {
        let span = tracing::debug_span!(
            target: "strowger",
            parent: None,
            "actor",
            path = %self.path(),
            id = %self.id,
            restarts = self.restarts(),
        );
        if !span.is_disabled() {
            self.state.lock().cold_mut().span = Some(span);
            self.flags.set(SPANNED);
        }
    }

    /// Returns `true` if the incarnation has a span.
    pub(crate) fn has_span(&self) -> bool {
        self.flags.intersects(SPANNED)
    }

    /// Returns the span to enter while the incarnation runs. Without a subscriber, this costs a
    /// look at a word that is read anyway.
    #[inline(always)]
    pub(crate) fn span(&self) -> Option<tracing::Span> {
        match self.flags.intersects(SPANNED) {
            false => None,
            true => self.stored_span(),
        }
    }

    #[cold]
    fn stored_span(&self) -> Option<tracing::Span> {
        self.state.lock().cold.as_ref()?.span.clone()
    }

    /// Ends the span together with its incarnation.
    pub(super) fn end_span(&self) {
        if self.flags.intersects(SPANNED) {
            drop(self.close_span());
        }
    }

    fn close_span(&self) -> Option<tracing::Span> {
        self.flags.clear(SPANNED);
        self.state.lock().cold.as_mut()?.span.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actor_cell_with_message_fits_in_512_bytes() {
        let counts = 2 * size_of::<usize>();
        assert!(size_of::<ActorCell<[u64; 4]>>() + counts + 32 <= 512);
    }
}
