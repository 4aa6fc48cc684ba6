//! Seeded bugs, which the tests must find one at a time: `cargo xtask bugs`.

strowger_seeded_bug::bugs! {
    /// A request repeated while it is being processed is processed a second time.
    WorkedOnTwice,
    /// An answer is dropped as soon as it is given.
    AnswerForgotten,
    /// Kept answers stay when the peer restarts.
    AnswersOutliveRestart,
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
