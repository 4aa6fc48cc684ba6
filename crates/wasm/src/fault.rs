//! The faults that end an incarnation of a component.

use std::fmt;
use std::time::Duration;

use wasmtime::Trap;

use crate::engine::explain_refused_memory;

/// The operation during which a component failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallPhase {
    /// Instantiation: memories and start functions.
    Instantiate,
    /// The export `actor.init`.
    Init,
    /// The export `actor.handle`.
    Handle,
    /// The export `batch.handle`.
    Batch,
    /// `stateful.snapshot` and `stateful.version`.
    Snapshot,
    /// The export `actor.health`.
    Health,
    /// The export `actor.stop`.
    Stop,
}

impl fmt::Display for CallPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instantiate => "instantiate",
            Self::Init => "init",
            Self::Handle => "handle",
            Self::Batch => "batch",
            Self::Snapshot => "snapshot",
            Self::Health => "health",
            Self::Stop => "stop",
        })
    }
}

/// The reason why an incarnation of a component ended. Its memory is lost: no Store is used after a
/// fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{phase}: {kind}")]
pub struct Fault {
    /// The operation that failed.
    pub phase: CallPhase,
    /// The kind of the fault.
    pub kind: FaultKind,
}

/// The kind of a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// A call used more processor time than its limit.
    #[error("used more than {limit:?} of CPU time")]
    Deadline {
        /// The limit of processor time.
        limit: Duration,
    },
    /// A call exceeded its limit on the wall clock, although it used less processor time than its
    /// limit.
    #[error("did not return within {limit:?}")]
    Late {
        /// The limit on the wall clock.
        limit: Duration,
    },
    /// A call exceeded a limit of the manifest.
    #[error("exceeded limits.{limit}")]
    Budget {
        /// The key of the limit, in `[limits]`.
        limit: &'static str,
    },
    /// The component was refused memory or table elements, and aborted.
    #[error("exceeded limits.{limit} ({max})")]
    Memory {
        /// The key of the limit, in `[limits]`.
        limit: &'static str,
        /// The value of the limit.
        max: usize,
    },
    /// The component overflowed its stack.
    #[error("stack overflow")]
    Stack,
    /// The component aborted: `fault.fail`, or `unreachable`, which is how panics end.
    #[error("aborted: {text}")]
    Panic {
        /// The message of the component, truncated to 256 bytes; or another description, with the
        /// last line that it logged in the call.
        text: String,
    },
    /// The component trapped: access out of bounds, division by zero, a bad cast.
    #[error("trapped: {text}")]
    Bug {
        /// A description, with the last line that the component logged in the call.
        text: String,
    },
    /// The component broke the rules of the component model: a bad pointer, length, string or
    /// value.
    #[error("violated the component model: {text}")]
    Abi {
        /// Description of the violation.
        text: String,
    },
    /// The component reported that it cannot continue: an error from `init` or `health`.
    #[error("refused: {text}")]
    Refused {
        /// The message of the component, truncated to 256 bytes.
        text: String,
    },
    /// The state to be saved is larger than `grant.kv` allows.
    #[error("state of {size} bytes exceeds grant.kv")]
    Quota {
        /// Size of the state in bytes.
        size: usize,
    },
    /// Its actor was killed during the call. The incarnation ends with [`strowger::Exit::Killed`]
    /// instead of this fault, which is neither counted nor reported.
    #[error("killed")]
    Killed,
    /// The host could not do its part.
    #[error("host error: {text}")]
    Host {
        /// Description of the failure.
        text: String,
    },
}

impl FaultKind {
    /// Returns one word for the kind, for listings and metric labels.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Deadline { .. } => "deadline",
            Self::Late { .. } => "late",
            Self::Budget { .. } => "budget",
            Self::Memory { .. } => "memory",
            Self::Stack => "stack",
            Self::Panic { .. } => "panic",
            Self::Bug { .. } => "bug",
            Self::Abi { .. } => "abi",
            Self::Refused { .. } => "refused",
            Self::Quota { .. } => "quota",
            Self::Killed => "killed",
            Self::Host { .. } => "host",
        }
    }
}

/// An error that the host raises inside a call when a limit is exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("exceeded limits.{0}")]
pub(crate) struct LimitExceeded(pub(crate) &'static str);

/// The error of `fault.fail`: the message of a component that aborted, truncated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct GuestAborted(pub(crate) String);

/// The circumstances of a call that failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FailedCall {
    pub(crate) phase: CallPhase,
    pub(crate) limit: Duration,
    /// The bound on the clock, if it ended the call.
    pub(crate) late: Option<Duration>,
    /// `true` if a kill ended the call.
    pub(crate) killed: bool,
    /// The limit at which this incarnation was refused memory, with its value.
    pub(crate) refused: Option<(&'static str, usize)>,
}

impl FailedCall {
    /// Classifies an error of the engine.
    pub(crate) fn fault(&self, error: &wasmtime::Error) -> Fault {
        Fault {
            phase: self.phase,
            kind: self.classify(error),
        }
    }

    fn classify(&self, error: &wasmtime::Error) -> FaultKind {
        if let Some(LimitExceeded(limit)) = error.downcast_ref::<LimitExceeded>() {
            return FaultKind::Budget { limit };
        }
        if let Some(GuestAborted(text)) = error.downcast_ref::<GuestAborted>() {
            let text = text.clone();
            return match self.refused {
                Some((limit, max)) => FaultKind::Memory { limit, max },
                None => FaultKind::Panic { text },
            };
        }
        let trap = error.downcast_ref::<Trap>().copied();
        if trap == Some(Trap::Interrupt) && self.killed {
            return FaultKind::Killed;
        }
        if let (Some(Trap::Interrupt), Some(limit)) = (trap, self.late) {
            return FaultKind::Late { limit };
        }
        match (trap, self.refused) {
            (Some(Trap::Interrupt), _) => FaultKind::Deadline { limit: self.limit },
            (Some(Trap::OutOfFuel), _) => FaultKind::Budget { limit: "fuel" },
            (Some(Trap::StackOverflow), _) => FaultKind::Stack,
            (Some(Trap::UnreachableCodeReached), Some((limit, max)))
            | (None, Some((limit, max)))
                if trap.is_some() || self.phase == CallPhase::Instantiate =>
            {
                FaultKind::Memory { limit, max }
            }
            (Some(Trap::UnreachableCodeReached), _) => FaultKind::Panic {
                text: printable(&root_cause(error)),
            },
            (Some(trap), _) if is_abi(trap) => FaultKind::Abi {
                text: printable(&trap.to_string()),
            },
            (Some(trap), _) => FaultKind::Bug {
                text: printable(&trap.to_string()),
            },
            (None, _) if root_cause(error).contains(HOSTCALL_BUDGET_TEXT) => {
                FaultKind::Budget { limit: "payload" }
            }
            (None, _) if self.phase == CallPhase::Instantiate => FaultKind::Host {
                text: explain_refused_memory(error)
                    .unwrap_or_else(|| printable(&root_cause(error))),
            },
            (None, _) => FaultKind::Abi {
                text: printable(&root_cause(error)),
            },
        }
    }
}

/// Returns `true` for traps of the component model, as opposed to those of the component's own
/// code.
const fn is_abi(trap: Trap) -> bool {
    matches!(
        trap,
        Trap::CannotEnterComponent
            | Trap::CannotLeaveComponent
            | Trap::InvalidChar
            | Trap::InvalidDiscriminant
            | Trap::ListOutOfBounds
            | Trap::StringOutOfBounds
            | Trap::UnalignedPointer
    )
}

/// Part of wasmtime's message when more bytes cross the boundary than allowed; the error has no
/// type of its own.
pub(crate) const HOSTCALL_BUDGET_TEXT: &str = "fuel allocated for hostcalls";

fn root_cause(error: &wasmtime::Error) -> String {
    error.root_cause().to_string()
}

/// Makes the text of a component safe to print: at most 256 bytes, control characters escaped.
pub(crate) fn printable(text: &str) -> String {
    let mut end = text.len().min(256);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(phase: CallPhase, refused: bool) -> FailedCall {
        FailedCall {
            phase,
            limit: Duration::from_millis(1),
            late: None,
            killed: false,
            refused: refused.then_some(("memory", 9)),
        }
    }

    fn kind(phase: CallPhase, refused: bool, error: impl Into<wasmtime::Error>) -> FaultKind {
        called(phase, refused).fault(&error.into()).kind
    }

    #[test]
    fn component_model_traps_are_abi_faults() {
        let text = || Trap::ListOutOfBounds.to_string();
        let kind_of_trap = kind(CallPhase::Handle, false, Trap::ListOutOfBounds);
        assert_eq!(kind_of_trap, FaultKind::Abi { text: text() });
        let kind_of_trap = kind(CallPhase::Handle, false, Trap::IntegerDivisionByZero);
        assert!(
            matches!(kind_of_trap, FaultKind::Bug { .. }),
            "{kind_of_trap:?}"
        );
    }

    #[test]
    fn error_without_trap_is_host_at_instantiation_and_abi_later() {
        let odd = || wasmtime::Error::msg("odd");
        let text = || "odd".to_owned();
        for (phase, refused, expected) in [
            (
                CallPhase::Instantiate,
                false,
                FaultKind::Host { text: text() },
            ),
            (
                CallPhase::Instantiate,
                true,
                FaultKind::Memory {
                    limit: "memory",
                    max: 9,
                },
            ),
            (CallPhase::Handle, false, FaultKind::Abi { text: text() }),
            (CallPhase::Handle, true, FaultKind::Abi { text: text() }),
        ] {
            assert_eq!(kind(phase, refused, odd()), expected);
        }
    }

    #[test]
    fn text_is_truncated_at_a_char_boundary() {
        assert_eq!(printable(&"\u{20ac}".repeat(100)), "\u{20ac}".repeat(85));
        assert_eq!(printable("short"), "short");
    }
}
