//! Seeded bugs, which the simulation must find one at a time: `cargo xtask bugs`.
//!
//! They exist only if the compiler is given `--cfg strowger_bug`. The environment variable
//! `STROWGER_BUG` then names the active bug. In all other builds the check is a constant `false`.

/// A seeded bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A request repeated while it is being processed is processed a second time.
    WorkedOnTwice,
    /// An answer is dropped as soon as it is given.
    AnswerForgotten,
    /// A request whose processing was abandoned is never processed again.
    AbandonedForEver,
    /// Every fourth sequence number is reused as soon as its request is answered.
    NumberUsedTwice,
    /// A request outlives the association that it is about.
    AskedAfterTheEnd,
    /// The usage in an unanswered report is lost when its session is deleted.
    ReportDroppedAtTheEnd,
    /// A later stamp in a heartbeat is trusted without confirmation.
    ClaimBelieved,
    /// A later stamp in a heartbeat counts even if only a setup may signal a restart.
    StampBelieved,
    /// Sessions that late requests established after a restart stay when the new incarnation sets
    /// up its association.
    LateSessionsKept,
}

/// Returns `true` if `bug` is the active seeded bug.
#[cfg(strowger_bug)]
pub(crate) fn seeded(bug: Bug) -> bool {
    static CHOSEN: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("STROWGER_BUG").unwrap_or_default());
    format!("{bug:?}") == *CHOSEN
}

/// Returns `false`: no bug is seeded in this build.
#[cfg(not(strowger_bug))]
#[inline(always)]
pub(crate) const fn seeded(_: Bug) -> bool {
    false
}
