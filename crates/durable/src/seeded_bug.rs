//! Seeded bugs, which the tests must find one at a time: `cargo xtask bugs`.

strowger_seeded_bug::bugs! {
    /// A store accepts a write of a holder that was replaced.
    FenceIgnored,
    /// A store accepts a write that does not follow the last one.
    SequenceIgnored,
    /// Replies, messages and timers leave before the state is written.
    OutputsLeaveBeforeAppend,
    /// Replies, messages and timers leave although the state was not written.
    OutputsLeaveAfterFailedAppend,
    /// The state is written without the answers to repeated requests.
    AnswersNotStored,
    /// An entity is activated again while its last activation still ends.
    TwoActivations,
    /// An activation that is put to sleep does not handle the messages that wait.
    PassivationLosesMessage,
    /// A reminder that has fired stays stored.
    ReminderFiresTwice,
    /// The store is not told when a sleeping entity has to be awake.
    WakeNotStored,
    /// A snapshot is written before the events that it covers.
    SnapshotAheadOfJournal,
    /// The last event that a snapshot covers is applied again when events are replayed.
    EventReplayedTwice,
    /// The events of a message are stored under one number.
    EventsShareNumber,
    /// Events are converted to the next version only.
    UpcasterLeftOut,
    /// A message to another entity is not stored, only its number.
    OutboxMessageNotStored,
    /// The number of a message that was taken is not stored with its effect.
    InboxNumberNotStored,
    /// A message is acknowledged, and so removed by its sender, before its effect is stored.
    DeliveryAcknowledgedEarly,
    /// A delivery that is not acknowledged is not repeated by the same activation.
    FailedDeliveryNotRepeated,
    /// The database opens damaged journals, and removes what is behind the damage.
    DamagedJournalOpened,
    /// A write that does not end is not reported.
    StallNotReported,
    /// A clean stop empties the journal without writing its rows to tables.
    JournalEmptiedEarly,
    /// A backup reads the latest state of each row.
    BackupNotOfOneMoment,
    /// An entity whose rows are in the quarantine starts empty.
    QuarantineForgotten,
}
