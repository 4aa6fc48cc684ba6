//! Bugs that the simulation must find, one at a time: `cargo xtask bugs`.
//!
//! They exist only where the compiler was given `--cfg strowger_bug`; `STROWGER_BUG` then names the
//! one that bites. Everywhere else the question has a constant answer.

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// An acceptance is given before the store has it.
    AnsweredBeforeWritten,
    /// What was accepted is written without the answer that may be asked for again.
    AnswerNotWritten,
    /// A modification that is refused stays in force.
    RefusedStays,
    /// A deleted session keeps its addresses.
    AddressesLeak,
    /// A peer that restarted keeps its sessions.
    RestartIgnored,
    /// Work that a session dropped stays on the list.
    DroppedStaysPending,
    /// A report is repeated when its session has ended or is called otherwise.
    ReportOutlivesSession,
    /// A lost session is established again without its modifications.
    RestoredAsEstablished,
    /// A restoration that is under way is given up when the peer restarts once more.
    RestorationForgotten,
    /// A session that either life of a peer may have accepted counts as established.
    EitherLifeBelieved,
}

/// Whether this bug is the one that was planted.
#[cfg(strowger_bug)]
pub(crate) fn planted(bug: Bug) -> bool {
    static CHOSEN: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("STROWGER_BUG").unwrap_or_default());
    format!("{bug:?}") == *CHOSEN
}

/// Whether this bug is the one that was planted: none is.
#[cfg(not(strowger_bug))]
#[inline(always)]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}
