//! Where an actor stands, to be read without a lock.

use super::Phase;
use crate::exit::Exit;
use crate::sync::{AtomicU8, Ordering};

/// The phase of an actor, whether somebody sees to its end for good, and the kind of its last
/// exit, in one octet.
///
/// Who runs an incarnation writes it, and nobody else while there is one. When the phase is `Down`
/// it changes under the lock of the life only, and so it does at the end for good.
pub(super) struct Stand(AtomicU8);

/// The octets of a phase.
const PHASE: u8 = 7;
/// Somebody sees to the end for good.
const OVER: u8 = 8;
/// Where the kind of the last exit stands.
const LAST: u8 = 4;
/// The kind of an exit of which the kind does not say everything.
const WORDY: u8 = 5;

/// An exit of which the kind does not say everything.
pub(super) struct Wordy;

impl Default for Stand {
    fn default() -> Self {
        Self(AtomicU8::new(Phase::Starting as u8))
    }
}

impl Stand {
    /// The phase. Whoever sees one sees all that was done before it was entered.
    pub(super) fn phase(&self) -> Phase {
        Phase::from_bits(self.0.load(Ordering::Acquire) & PHASE)
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Acquire) & OVER != 0
    }

    /// Why the last incarnation ended, if there was one and the kind of it says everything.
    pub(super) fn last(&self) -> Result<Option<Exit>, Wordy> {
        match self.0.load(Ordering::Acquire) >> LAST {
            0 => Ok(None),
            1 => Ok(Some(Exit::Normal)),
            2 => Ok(Some(Exit::Shutdown)),
            3 => Ok(Some(Exit::Killed)),
            4 => Ok(Some(Exit::Ignored)),
            _ => Err(Wordy),
        }
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.change(PHASE, phase as u8);
    }

    /// Notes that somebody sees to the end for good.
    pub(super) fn set_over(&self) {
        self.change(OVER, OVER);
    }

    /// Notes the kind of an exit; false if it does not say everything.
    pub(super) fn set_last(&self, exit: &Exit) -> bool {
        let kind = match exit {
            Exit::Normal => 1,
            Exit::Shutdown => 2,
            Exit::Killed => 3,
            Exit::Ignored => 4,
            Exit::Failed(_) | Exit::Panicked(_) | Exit::Linked { .. } | Exit::Escalated { .. } => {
                WORDY
            }
        };
        self.change(u8::MAX << LAST, kind << LAST);
        kind < WORDY
    }

    fn change(&self, bits: u8, to: u8) {
        let now = self.0.load(Ordering::Relaxed);
        self.0.store(now & !bits | to, Ordering::Release);
    }
}
