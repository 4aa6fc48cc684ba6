//! Seeded bugs, which the simulation has to find one at a time: `cargo xtask bugs`.
//!
//! They are compiled only with `--cfg strowger_bug`; the environment variable `STROWGER_BUG` then
//! names the active bug. In all other builds [`seeded`] is constantly `false`.

/// A bug that can be seeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A request is accepted before the store has written the change.
    AnsweredBeforeWritten,
    /// A change is written without the response that a retransmission may request.
    AnswerNotWritten,
    /// A refused modification takes effect.
    RefusedStays,
    /// A deleted session keeps its addresses.
    AddressesLeak,
    /// A peer that restarted keeps its sessions.
    RestartIgnored,
    /// A request that a session dropped stays in the list of pending requests.
    DroppedStaysPending,
    /// A report is retransmitted after its session ended or was renamed.
    ReportOutlivesSession,
    /// A lost session is established again without its modifications.
    RestoredAsEstablished,
    /// A peer that stops answering is not noticed.
    SilenceUnnoticed,
    /// A restoration in progress is abandoned when the peer restarts again.
    RestorationForgotten,
    /// A session that the peer may have accepted before or after its restart counts as established.
    EitherLifeBelieved,
}

/// Returns `true` if `bug` is the active seeded bug.
#[cfg(strowger_bug)]
pub(crate) fn seeded(bug: Bug) -> bool {
    static CHOSEN: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("STROWGER_BUG").unwrap_or_default());
    format!("{bug:?}") == *CHOSEN
}

/// Returns `false`: this build contains no seeded bugs.
#[cfg(not(strowger_bug))]
#[inline(always)]
pub(crate) const fn seeded(_: Bug) -> bool {
    false
}
