//! Bugs that the simulation must find, one at a time: `cargo xtask bugs`.
//!
//! They exist only where the compiler was given `--cfg strowger_bug`; `STROWGER_BUG` then names the
//! one that bites. Everywhere else the question has a constant answer.

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A request that comes again while it is worked on is worked on once more.
    WorkedOnTwice,
    /// An answer is forgotten as soon as it is given.
    AnswerForgotten,
    /// A request whose work was given up is never worked on again.
    AbandonedForEver,
    /// Every fourth number is used again as soon as its request is answered.
    NumberUsedTwice,
    /// A request outlives the association that it is about.
    AskedAfterTheEnd,
    /// The usage in a report that is not answered is lost when its session is deleted.
    ReportDroppedAtTheEnd,
    /// A later stamp in a heartbeat is believed without a question.
    ClaimBelieved,
    /// A later stamp in a heartbeat counts where only a setup may.
    StampBelieved,
    /// Sessions that late requests established after a restart stay when the new life sets up.
    LateSessionsKept,
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
