//! Seeded bugs, which the tests must find one at a time: `cargo xtask bugs`.

strowger_seeded_bug::bugs! {
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
