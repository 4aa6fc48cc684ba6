//! Seeded bugs, which the tests must find one at a time: `cargo xtask bugs`.

strowger_seeded_bug::bugs! {
    /// The message that was being handled when its actor failed is not reported as a dead letter.
    DeadLetterNotReported,
    /// An overflow that drops messages reports one too few.
    OverflowMiscounted,
    /// Messages that an incarnation took out and did not handle are put behind newer ones.
    BatchReturnedToBack,
    /// Messages that an actor took out and has not handled do not count against its capacity.
    BatchNotCountedInCapacity,
    /// A cancelled timer fires nevertheless.
    CancelledTimerFires,
    /// The monitor that was added first is not notified of the exit.
    MonitorNotNotified,
    /// A supervisor carries out one restart more than the intensity allows.
    IntensityOffByOne,
    /// The exit of an actor by a panic is not propagated to the actors linked to it.
    LinkNotNotified,
    /// A killed actor does not end its children.
    KilledParentLeavesChildren,
    /// A sibling is restarted while it is still running.
    IncarnationsOverlap,
    /// A supervisor answers all exits before it serves a request.
    ExitsStarveRequests,
    /// A child that is asked to stop while it is being restarted goes on running.
    StopLostInRestart,
    /// An actor that chose not to run is treated as one that ran and ended.
    IgnoredStartTreatedAsExit,
    /// Actors that ask each other in a ring wait for each other.
    AskRingNotDetected,
    /// A wait for the end of an actor is not an edge of the wait graph.
    ExitWaitNotInGraph,
    /// A turn goes on when its time slice is over.
    TurnIgnoresBeat,
    /// An actor whose turn was ended by its time slice is put at the front of the run queue.
    PreemptedActorQueuedFirst,
    /// An ask that has been waiting for a while is not woken by the monitor, and so has no
    /// deadline.
    StalledAskNotWoken,
    /// The run queue of a dispatcher whose thread is held by a handler is not taken over by
    /// another.
    BlockedDispatcherNotRelieved,
    /// A wait that completes at once is not charged to the task's budget.
    ReadyWaitNotCharged,
    /// Starting an actor is not charged to the task that starts it.
    SpawnNotCharged,
    /// A message that finds room is not charged to the task that sends it.
    TellNotCharged,
    /// A dispatcher that was woken and has not begun may be chosen to relieve itself.
    WokenDispatcherRelievesItself,
    /// A dispatcher that another runtime has asked once never parks again.
    DispatcherSpinsForever,
    /// An actor that has ended remains a member of its groups.
    EndedActorStaysInGroup,
    /// An answer that arrives while its ask becomes watched is not noticed.
    AnswerLostWhileWatchIsSet,
    /// One answer of many wakes nothing.
    OneAnswerLosesItsWakeup,
    /// A request is handled although its asker has dropped it.
    CancelledAskHandled,
    /// An actor that receives a message from a task runs on the stack of that task.
    TellRunsInline,
    /// An actor starts on the stack of the task that spawns it.
    SpawnRunsInline,
    /// A dispatcher goes on for as long as it has work.
    DispatcherNeverYields,
    /// A task that was woken by an actor waits until the dispatcher pauses for another reason.
    DispatcherIgnoresWokenTasks,
    /// A turn handles all messages that there are, without a limit.
    TurnHasNoMessageLimit,
    /// Timers that are due are handled although the turn is over.
    TimersIgnoreTurnEnd,
    /// Timers that are due come before messages, without a limit.
    TimersStarveMessages,
    /// Signals come before all other sources, without a limit.
    SignalsStarveMessages,
    /// Answers and outputs of pipes come before messages, without a limit.
    CompletionsStarveMessages,
    /// An order to end waits for the signals that were there before it.
    StopWaitsForSignals,
    /// The monitor wakes up every millisecond although nothing is running.
    MonitorNeverSleeps,
}

/// Returns `true` once, in the thousandth call, if this bug is the active one.
#[inline(always)]
pub(crate) fn seeded_once(bug: Bug) -> bool {
    static CALLS: parking_lot::Mutex<u32> = parking_lot::Mutex::new(0);
    if !seeded(bug) {
        return false;
    }
    let mut calls = CALLS.lock();
    *calls += 1;
    *calls == 1000
}

/// Prolongs the window in which the bug has an effect, if it is the active one.
#[inline(always)]
pub(crate) fn linger(bug: Bug) {
    if seeded(bug) {
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
}
