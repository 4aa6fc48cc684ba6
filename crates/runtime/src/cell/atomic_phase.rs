//! The phase of an actor, which can be read without a lock.

use super::Phase;
use crate::exit::Exit;
use crate::sync::{AtomicU8, Ordering, Weakening, weaken};

/// The phase of an actor, the flag that its end for good has begun, and the kind of its last exit,
/// in one byte.
///
/// While there is an incarnation, only the code that runs it writes this. While the phase is
/// `Down`, and at the end for good, it changes only under the lock of the `NodeState`.
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
