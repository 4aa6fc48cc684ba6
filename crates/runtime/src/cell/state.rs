//! The state of an actor that changes as its incarnations come and go.

use std::any::Any;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};

use super::{ActorCore, ActorId, ErasedCell};
use crate::exit::Exit;
use crate::membership::WeakMembership;
use crate::monitor::MonitorId;
use crate::supervision::RestartPolicy;
use crate::sync::{AtomicU8, Ordering, Weakening, weaken, weakened};
use crate::wait_graph::PhaseEdge;

/// The phase of an actor in its lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    Starting,
    Running,
    Stopping,
    /// The incarnation ended; the owner decides what follows.
    Down,
    Ended,
}

impl Phase {
    /// Converts a number back into its phase.
    pub(super) const fn from_bits(bits: u8) -> Self {
        match bits {
            0 => Self::Starting,
            1 => Self::Running,
            2 => Self::Stopping,
            3 => Self::Down,
            _ => Self::Ended,
        }
    }
}

/// State that most actors do not need, allocated on first use.
#[derive(Default)]
pub(super) struct ActorState {
    pub(super) cold: Option<Box<ColdActorState>>,
}

#[derive(Default)]
pub(super) struct ColdActorState {
    /// The exit of the last incarnation, if its kind does not say everything.
    pub(super) last_exit: Option<Exit>,
    pub(super) restarts: u32,
    pub(super) phase_waiters: Vec<(u64, Waker)>,
    pub(super) next_wait: u64,
    pub(super) monitors: Vec<MonitorEntry>,
    pub(super) links: Vec<LinkEnd>,
    pub(super) names: Vec<Arc<str>>,
    pub(super) memberships: Vec<WeakMembership>,
    /// A value that the actor offers to code that knows its type.
    pub(super) extension: Option<Arc<dyn Any + Send + Sync>>,
    /// The span in which the incarnation runs.
    pub(super) span: Option<tracing::Span>,
    /// The policy that decides about the children of the actor when they end.
    pub(super) child_policy: Option<Arc<dyn RestartPolicy>>,
    /// The policy that decides about the actor itself, once it was looked up.
    pub(super) own_policy: Option<Arc<dyn RestartPolicy>>,
}

impl ActorState {
    /// Records why the incarnation ended. The exit that it replaces is moved to `earlier`, to be
    /// dropped without the lock.
    pub(super) fn set_last_exit(
        &mut self,
        phase_cell: &AtomicPhase,
        exit: Exit,
        earlier: &mut Option<Exit>,
    ) {
        if !phase_cell.set_last_kind(&exit) {
            *earlier = self.cold_mut().last_exit.replace(exit);
        }
    }

    /// Returns the exit of the last incarnation, if its kind does not say everything.
    pub(super) fn last_exit(&self) -> Option<Exit> {
        self.cold.as_ref()?.last_exit.clone()
    }

    pub(super) fn cold_mut(&mut self) -> &mut ColdActorState {
        self.cold.get_or_insert_default()
    }

    pub(super) fn stop_waiting(&mut self, ticket: u64) {
        if let Some(cold) = &mut self.cold {
            cold.phase_waiters.retain(|(waiting, _)| *waiting != ticket);
        }
    }
}

pub(super) struct MonitorEntry {
    pub(super) id: MonitorId,
    pub(super) cell: Weak<dyn ErasedCell>,
    pub(super) incarnation: u32,
}

/// The other end of a link.
pub(crate) struct LinkEnd {
    pub(crate) id: ActorId,
    pub(crate) cell: Weak<dyn ErasedCell>,
    pub(crate) incarnation: u32,
}

/// The phases that a caller of [`ActorCore::wait_for_phase`] waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhaseGoal {
    /// The end of the incarnation.
    Down,
    /// The end for good.
    Ended,
    /// The start was decided, one way or the other.
    StartDecided,
    /// An incarnation runs, or none ever will.
    Running,
    /// An incarnation has run, or none ever will.
    RanOnce,
}

impl PhaseGoal {
    pub(crate) const fn is_met(self, phase: Phase) -> bool {
        match self {
            Self::Down => matches!(phase, Phase::Down | Phase::Ended),
            Self::Ended => matches!(phase, Phase::Ended),
            Self::StartDecided => !matches!(phase, Phase::Starting),
            Self::Running => matches!(phase, Phase::Running | Phase::Ended),
            Self::RanOnce => matches!(phase, Phase::Running | Phase::Stopping | Phase::Ended),
        }
    }

    /// Returns `true` if the wait is for an end, and `false` if it is for a start.
    pub(crate) const fn is_end(self) -> bool {
        matches!(self, Self::Down | Self::Ended)
    }
}

pub(super) struct PhaseWait<'a> {
    pub(super) node: &'a ActorCore,
    pub(super) ticket: Option<u64>,
    pub(super) goal: PhaseGoal,
    /// The wait in the wait graph.
    pub(super) edge: PhaseEdge<'a>,
}

impl PhaseWait<'_> {
    pub(super) fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.ticket.is_none() && self.goal.is_met(self.node.phase()) {
            return Poll::Ready(());
        }
        let mut state = self.node.state.lock();
        if let Some(ticket) = self.ticket.take() {
            state.stop_waiting(ticket);
        }
        if self.goal.is_met(self.node.phase()) {
            return Poll::Ready(());
        }
        let cold = state.cold_mut();
        let ticket = cold.next_wait;
        cold.next_wait += 1;
        cold.phase_waiters.push((ticket, cx.waker().clone()));
        self.ticket = Some(ticket);
        drop(state);
        self.edge.on_pending();
        Poll::Pending
    }
}

impl Drop for PhaseWait<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.node.state.lock().stop_waiting(ticket);
        }
    }
}

/// The phase of an actor, the flag that its end for good has begun, and the kind of its last exit,
/// in one byte.
///
/// While there is an incarnation, only the code that runs it writes this. While the phase is
/// `Down`, and at the end for good, it changes only under the lock of the `ActorState`.
pub(super) struct AtomicPhase(AtomicU8);

/// The bits of the phase.
const PHASE_MASK: u8 = 7;
/// The bit that is set once the end for good has begun.
const ENDING_BIT: u8 = 8;
/// The position of the kind of the last exit.
const LAST_EXIT_SHIFT: u8 = 4;
/// The kind of every exit whose kind does not say everything.
const OTHER_EXIT_KIND: u8 = 5;

/// The error returned for an exit whose kind does not say everything.
pub(super) struct ExitHasPayload;

impl Default for AtomicPhase {
    fn default() -> Self {
        Self(AtomicU8::new(Phase::Starting as u8))
    }
}

impl AtomicPhase {
    /// Returns the phase. A reader that sees a phase also sees everything that was done before it
    /// was entered.
    pub(super) fn phase(&self) -> Phase {
        let acquire = weaken(Weakening::PhaseAcquire, Ordering::Acquire);
        Phase::from_bits(self.0.load(acquire) & PHASE_MASK)
    }

    pub(super) fn is_ending(&self) -> bool {
        self.0.load(Ordering::Acquire) & ENDING_BIT != 0
    }

    /// Returns the exit of the last incarnation, if there was one and its kind says everything.
    pub(super) fn last_exit_kind(&self) -> Result<Option<Exit>, ExitHasPayload> {
        match self.0.load(Ordering::Acquire) >> LAST_EXIT_SHIFT {
            0 => Ok(None),
            1 => Ok(Some(Exit::Normal)),
            2 => Ok(Some(Exit::Shutdown)),
            3 => Ok(Some(Exit::Killed)),
            4 => Ok(Some(Exit::Ignored)),
            _ => Err(ExitHasPayload),
        }
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.store_bits(PHASE_MASK, phase as u8);
    }

    /// Records that the end for good has begun.
    pub(super) fn set_ending(&self) {
        self.store_bits(ENDING_BIT, ENDING_BIT);
    }

    /// Records the kind of an exit; returns `false` if the kind does not say everything.
    pub(super) fn set_last_kind(&self, exit: &Exit) -> bool {
        let kind = match exit {
            Exit::Normal => 1,
            Exit::Shutdown => 2,
            Exit::Killed => 3,
            Exit::Ignored => 4,
            Exit::Failed(_) | Exit::Panicked(_) | Exit::Linked { .. } | Exit::Escalated { .. } => {
                OTHER_EXIT_KIND
            }
        };
        self.store_bits(u8::MAX << LAST_EXIT_SHIFT, kind << LAST_EXIT_SHIFT);
        kind < OTHER_EXIT_KIND
    }

    fn store_bits(&self, bits: u8, to: u8) {
        // A load and a store suffice, because there is only one writer at a time.
        let now = self.0.load(Ordering::Relaxed);
        let release = weaken(Weakening::PhaseRelease, Ordering::Release);
        self.0.store(now & !bits | to, release);
    }
}

/// A set of flags.
///
/// Each flag is set and cleared by a read-modify-write operation, so that none is lost to another.
/// No data is published by a flag: what belongs to a flag is behind the lock of the `ActorState`. A
/// reader of the flags therefore only has to see them soon.
#[derive(Default)]
pub(super) struct AtomicFlags(AtomicU8);

impl AtomicFlags {
    /// Returns `true` if any of these flags is set.
    #[inline(always)]
    pub(super) fn intersects(&self, flags: u8) -> bool {
        self.0.load(Ordering::Acquire) & flags != 0
    }

    pub(super) fn set(&self, flag: u8) {
        if weakened(Weakening::FlagSetAtomically) {
            let flags = self.0.load(Ordering::Acquire);
            return self.0.store(flags | flag, Ordering::Release);
        }
        self.0.fetch_or(flag, Ordering::Release);
    }

    pub(super) fn clear(&self, flag: u8) {
        if weakened(Weakening::FlagClearedAtomically) {
            let flags = self.0.load(Ordering::Acquire);
            return self.0.store(flags & !flag, Ordering::Release);
        }
        self.0.fetch_and(!flag, Ordering::Release);
    }
}
