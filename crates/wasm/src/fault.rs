//! Why a life of a component ended.

use std::fmt;
use std::time::Duration;

use wasmtime::Trap;

/// What the host was doing when a component failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Instantiation: memories, start functions.
    Instantiate,
    /// `actor.init`.
    Init,
    /// `actor.handle`.
    Handle,
    /// `batch.handle`.
    Batch,
    /// `stateful.snapshot` and `stateful.version`.
    Snapshot,
    /// `actor.health`.
    Health,
    /// `actor.stop`.
    Stop,
}

impl fmt::Display for Phase {
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

/// Why a life of a component ended. Its memory is gone with it: no Store is used after a fault.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{phase}: {kind}")]
pub struct Fault {
    /// What the host was doing.
    pub phase: Phase,
    /// What went wrong.
    pub kind: FaultKind,
}

/// What went wrong in a component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// A call used more of a processor than it may.
    #[error("computed for longer than {limit:?}")]
    Deadline {
        /// The limit.
        limit: Duration,
    },
    /// A call was not over after a generous time on the clock, though it used less of a processor
    /// than it may.
    #[error("was not done after {limit:?} on the clock")]
    Late {
        /// The time.
        limit: Duration,
    },
    /// A limit of the manifest was passed.
    #[error("passed limits.{limit}")]
    Budget {
        /// The key of the limit, in `[limits]`.
        limit: &'static str,
    },
    /// It was refused memory or room in a table, and gave up.
    #[error("was refused memory beyond limits.{limit} ({max})")]
    Memory {
        /// The key of the limit, in `[limits]`.
        limit: &'static str,
        /// Its value.
        max: usize,
    },
    /// It called itself too deeply.
    #[error("exhausted its stack")]
    Stack,
    /// It gave up by itself: `fault.fail`, or `unreachable`, which is what a panic is.
    #[error("gave up: {text}")]
    Panic {
        /// What it said, cut to 256 octets, or what else is known of it.
        text: String,
    },
    /// It did what the machine forbids: access out of bounds, division by zero, a bad cast.
    #[error("trapped: {text}")]
    Bug {
        /// What is known of it.
        text: String,
    },
    /// It broke the rules of the component model: a bad pointer, length, string or value.
    #[error("broke the component model: {text}")]
    Abi {
        /// What is known of it.
        text: String,
    },
    /// It said itself that it cannot go on: an error from `init` or `health`.
    #[error("refused: {text}")]
    Refused {
        /// What it said, cut to 256 octets.
        text: String,
    },
    /// The state that it gave to be kept is longer than `grant.kv` has room for.
    #[error("gave {octets} octets of state, more than grant.kv has room for")]
    Quota {
        /// The octets of its state.
        octets: usize,
    },
    /// The host could not do its part.
    #[error("the host failed: {text}")]
    Host {
        /// What is known of it.
        text: String,
    },
}

impl FaultKind {
    /// One word for the kind, for listings and labels.
    #[must_use]
    pub const fn word(&self) -> &'static str {
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
            Self::Host { .. } => "host",
        }
    }
}

/// What the host raised itself, inside a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("passed limits.{0}")]
pub(crate) struct Passed(pub(crate) &'static str);

/// What a component said when it gave up; cut.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct GaveUp(pub(crate) String);

/// What the host knows of a call that failed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Called {
    pub(crate) phase: Phase,
    pub(crate) limit: Duration,
    /// The bound on the clock, if that ended the call.
    pub(crate) late: Option<Duration>,
    /// The limit beyond which memory was refused in this life, and its value.
    pub(crate) refused: Option<(&'static str, usize)>,
}

impl Called {
    /// Names the fault behind an error of the engine.
    pub(crate) fn fault(&self, error: &wasmtime::Error) -> Fault {
        Fault {
            phase: self.phase,
            kind: self.kind(error),
        }
    }

    fn kind(&self, error: &wasmtime::Error) -> FaultKind {
        if let Some(Passed(limit)) = error.downcast_ref::<Passed>() {
            return FaultKind::Budget { limit };
        }
        if let Some(GaveUp(text)) = error.downcast_ref::<GaveUp>() {
            let text = text.clone();
            return match self.refused {
                Some((limit, max)) => FaultKind::Memory { limit, max },
                None => FaultKind::Panic { text },
            };
        }
        let trap = error.downcast_ref::<Trap>().copied();
        if let (Some(Trap::Interrupt), Some(limit)) = (trap, self.late) {
            return FaultKind::Late { limit };
        }
        match (trap, self.refused) {
            (Some(Trap::Interrupt), _) => FaultKind::Deadline { limit: self.limit },
            (Some(Trap::OutOfFuel), _) => FaultKind::Budget { limit: "fuel" },
            (Some(Trap::StackOverflow), _) => FaultKind::Stack,
            (Some(Trap::UnreachableCodeReached), Some((limit, max)))
            | (None, Some((limit, max)))
                if trap.is_some() || self.phase == Phase::Instantiate =>
            {
                FaultKind::Memory { limit, max }
            }
            (Some(Trap::UnreachableCodeReached), _) => FaultKind::Panic {
                text: cut(&root(error)),
            },
            (Some(trap), _) if is_abi(trap) => FaultKind::Abi {
                text: cut(&trap.to_string()),
            },
            (Some(trap), _) => FaultKind::Bug {
                text: cut(&trap.to_string()),
            },
            (None, _) if root(error).contains(PAYLOAD) => FaultKind::Budget { limit: "payload" },
            (None, _) if self.phase == Phase::Instantiate => FaultKind::Host {
                text: cut(&root(error)),
            },
            (None, _) => FaultKind::Abi {
                text: cut(&root(error)),
            },
        }
    }
}

/// Traps of the component model, not of the component's own code.
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

/// What the engine says when more octets cross than it was told to let through; it has no type
/// for it.
pub(crate) const PAYLOAD: &str = "fuel allocated for hostcalls";

fn root(error: &wasmtime::Error) -> String {
    error.root_cause().to_string()
}

/// Text of a component for people: at most 256 octets, without control characters.
pub(crate) fn cut(text: &str) -> String {
    let mut end = text.len().min(256);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].escape_debug().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(phase: Phase, refused: bool) -> Called {
        Called {
            phase,
            limit: Duration::from_millis(1),
            late: None,
            refused: refused.then_some(("memory", 9)),
        }
    }

    fn kind(phase: Phase, refused: bool, error: impl Into<wasmtime::Error>) -> FaultKind {
        called(phase, refused).fault(&error.into()).kind
    }

    #[test]
    fn traps_of_the_component_model_break_the_contract() {
        let text = || Trap::ListOutOfBounds.to_string();
        let said = kind(Phase::Handle, false, Trap::ListOutOfBounds);
        assert_eq!(said, FaultKind::Abi { text: text() });
        let said = kind(Phase::Handle, false, Trap::IntegerDivisionByZero);
        assert!(matches!(said, FaultKind::Bug { .. }), "{said:?}");
    }

    #[test]
    fn what_fails_without_a_trap_is_the_hosts_to_start_and_the_components_to_run() {
        let odd = || wasmtime::Error::msg("odd");
        let text = || "odd".to_owned();
        for (phase, refused, expected) in [
            (Phase::Instantiate, false, FaultKind::Host { text: text() }),
            (
                Phase::Instantiate,
                true,
                FaultKind::Memory {
                    limit: "memory",
                    max: 9,
                },
            ),
            (Phase::Handle, false, FaultKind::Abi { text: text() }),
            (Phase::Handle, true, FaultKind::Abi { text: text() }),
        ] {
            assert_eq!(kind(phase, refused, odd()), expected);
        }
    }

    #[test]
    fn text_is_cut_between_letters() {
        assert_eq!(cut(&"\u{20ac}".repeat(100)), "\u{20ac}".repeat(85));
        assert_eq!(cut("short"), "short");
    }
}
