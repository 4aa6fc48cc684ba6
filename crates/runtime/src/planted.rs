//! Bugs that the tests must find, one at a time: `cargo xtask bugs`.
//!
//! They exist only where the compiler was given `--cfg strowger_bug`, which no manifest can do
//! for a dependency and no feature turns on; `STROWGER_BUG` then names the one that bites.
//! Everywhere else the question has a constant answer, and nothing of it is left in the program.

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// The message that was being handled when its actor failed is not reported.
    DeadLetterUnreported,
    /// One message too few is reported when an overflow drops some.
    OverflowMiscounted,
    /// What an incarnation took out and did not handle goes behind what came since.
    BatchGoesBehind,
    /// What an actor took out and has not handled does not count against its capacity.
    CapacityForgetsBatch,
    /// A timer that was cancelled comes all the same.
    CancelledTimerComes,
    /// The monitor that was set first is not told of the end.
    DownForgotten,
    /// A supervisor carries out one restart more than it may.
    IntensityOffByOne,
    /// The end of an actor by a panic does not reach those that are linked to it.
    LinkForgotten,
    /// A killed actor does not end its children.
    ChildrenOutliveTheirParent,
    /// A sibling is started again while it still runs.
    IncarnationsOverlap,
    /// A supervisor answers to all exits before it looks at a request.
    ExitsStarveRequests,
    /// A child that is told to stop while it is started again runs on.
    StopLostInRestart,
    /// An actor that chose not to run counts as one that ran and ended.
    IgnoredStartIsAnEnd,
    /// Those who ask in a ring wait for each other.
    RingUnnoticed,
    /// A turn goes on when its beat is over.
    TurnOutlivesItsBeat,
    /// An actor whose turn was ended by the beat comes before its neighbours.
    HogComesFirst,
    /// A question that waits for long is not called, and so has no deadline.
    WaitingIsNotCalled,
    /// What a dispatcher has whose thread a handler holds stays with it.
    HeldIsNotRelieved,
    /// A wait that is over at once costs its task nothing.
    WaitIsFree,
    /// To start an actor costs the task that does it nothing.
    StartIsFree,
    /// A dispatcher that another runtime asked once never parks again.
    LooksForEver,
    /// Who ended stays in its groups.
    MemberOutlivesItsEnd,
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
