//! Weakenings: the orderings and steps that the loom models depend on, each of which can be taken
//! away to prove that a model notices it: `cargo xtask loom --weaken`.
//!
//! Under `--cfg strowger_loom`, `STROWGER_WEAKEN` names the one that is active. In all other builds
//! none is: [`weakened`] and [`weaken`] are constant, and nothing is left of them.

use super::Ordering;

#[cfg(not(strowger_loom))]
pub(crate) use plain::*;

#[cfg(strowger_loom)]
pub(crate) use checked::*;

/// Defines [`Weakening`], with the model that notices each of its variants.
macro_rules! weakenings {
    ($($(#[$attribute:meta])+ $name:ident => $model:literal,)+) => {
        /// An ordering or a step that can be taken away. The description of each tells the property
        /// that is lost with it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Weakening {
            $($(#[$attribute])+ $name,)+
        }

        #[cfg(strowger_loom)]
        impl Weakening {
            /// Every weakening, with its name and the model that notices it.
            const ALL: &[(Self, &str, &str)] = &[
                $((Self::$name, stringify!($name), $model),)+
            ];
        }
    };
}

weakenings! {
    /// A thread that takes a free lock sees everything that its last holder did.
    LockAcquire => "schedule::strand::loom::spin_lock_is_exclusive_and_publishes_writes",
    /// A thread that takes the lock after a wait sees everything that its last holder did.
    ContendedLockAcquire =>
        "schedule::strand::loom::spin_lock_is_exclusive_and_publishes_writes",
    /// The release of a lock publishes everything that its holder did.
    LockRelease => "schedule::strand::loom::spin_lock_is_exclusive_and_publishes_writes",

    /// The state `FULL` of a slot publishes the value in it.
    SlotFullRelease => "schedule::strand::loom::value_wakes_the_last_polling_task",
    /// A receiver that finds the slot full sees the value in it.
    SlotFullAcquire =>
        "schedule::strand::loom::value_wakes_a_receiver_that_sets_a_watch",
    /// A value wakes the receiver that waits for it.
    ValueWakesTaker =>
        "schedule::strand::loom::value_wakes_a_receiver_that_sets_a_watch",
    /// The sender that frees a slot sees everything that the receiver did before it left.
    SlotDropRelease => "schedule::strand::loom::value_without_receiver_is_dropped_with_the_slot",
    /// A slot is held while it becomes watched, so that a sender waits instead of finding no waker.
    SlotHeldForWatch => "reply::loom::answer_wakes_an_ask_that_becomes_watched",

    /// The turn of a task sees what was done before a wake that found the task queued.
    #[cfg(any(feature = "testing", strowger_loom))]
    QueuedAcquire => "schedule::seeded::loom::writes_before_a_wake_are_seen_by_the_next_turn",

    /// The phase of an actor publishes what was done before it was entered.
    PhaseRelease => "cell::loom::phase_publishes_earlier_writes",
    /// A reader of the phase sees what was done before it was entered.
    PhaseAcquire => "cell::loom::phase_publishes_earlier_writes",
    /// A flag is set in one step, so that no other flag is lost.
    FlagSetAtomically => "cell::loom::concurrent_flag_updates_are_not_lost",
    /// A flag is cleared in one step, so that no other flag is lost.
    FlagClearedAtomically => "cell::loom::concurrent_flag_updates_are_not_lost",

    /// A thread that enters the mutex as the first one sees that it was closed just before.
    EntrySeesClose => "children::loom::no_entry_after_close_if_empty",
    /// A thread that closes an unused mutex sees that another one has just entered it.
    CloseSeesEntry => "children::loom::no_entry_after_close_if_empty",

    /// The state `FULL` of a LIFO slot publishes the value in it.
    LifoFullRelease => "schedule::strand::loom::lifo_slot_value_is_taken_once",
    /// A thread that takes the value of a LIFO slot sees all of it.
    LifoFullAcquire => "schedule::strand::loom::lifo_slot_value_is_taken_once",
    /// The state `EMPTY` of a LIFO slot publishes that its value has been taken out.
    LifoEmptyRelease => "schedule::strand::loom::lifo_slot_value_is_taken_once",
    /// The writer of an empty LIFO slot sees that the last value has been taken out.
    LifoEmptyAcquire => "schedule::strand::loom::lifo_slot_value_is_taken_once",
    /// The next writer of a LIFO slot sees what the last one did.
    LifoWriterAcquire =>
        "schedule::strand::loom::next_lifo_writer_sees_the_previous_value",
    /// The writer of a LIFO slot publishes what it did to the next one.
    LifoWriterRelease =>
        "schedule::strand::loom::next_lifo_writer_sees_the_previous_value",

    /// A wake during the turn of a strand is recorded.
    WakeDuringTurnRecorded => "schedule::strand::loom::no_wakeup_is_lost_while_parking",
    /// A strand that was woken during its turn has another one.
    WakeDuringTurnRequeues =>
        "schedule::strand::loom::no_wakeup_is_lost_while_parking",

    /// A push wakes the actor that waits for it.
    PushWakesReceiver => "mailbox::loom::every_push_wakes_and_sender_order_holds",
    /// An actor that rests records that a push has to wake it.
    RestMarksReceiving => "mailbox::loom::every_push_wakes_and_sender_order_holds",
    /// An actor does not rest if a message arrived as its turn ended.
    RestChecksMessages => "mailbox::loom::every_push_wakes_and_sender_order_holds",
    /// A signal interrupts the batch that the receiver handles without the lock.
    SignalInterruptsBatch => "mailbox::loom::stop_wakes_and_interrupts_the_batch",
    /// A sender that gives up its place wakes the next one.
    GivenUpPlaceWakesSender => "mailbox::loom::released_place_wakes_the_next_sender",
    /// Room in the mailbox wakes the sender that waits for it.
    RoomWakesSender => "mailbox::loom::freed_place_wakes_the_waiting_sender",
    /// The close of a mailbox wakes the senders that wait for room.
    CloseWakesSenders => "mailbox::loom::close_wakes_the_waiting_sender",

    /// An order to take everything from a dispatcher includes its LIFO slot.
    StealTakesLifoSlot =>
        "schedule::pool::loom::relieving_a_blocked_dispatcher_takes_its_lifo_slot",
    /// An actor that is queued wakes the dispatcher that is parked.
    PushWakesDispatcher =>
        "schedule::pool::loom::remotely_woken_actor_runs_and_closed_pool_drains",
    /// A dispatcher checks for an order to steal before it parks.
    ParkChecksStealOrder =>
        "schedule::pool::loom::steal_request_takes_the_victims_queue",
    /// An order to steal wakes the dispatcher that is parked.
    StealOrderWakesDispatcher =>
        "schedule::pool::loom::steal_request_takes_the_victims_queue",
    /// The close of a pool is visible to the incarnation that ends last.
    PoolCloseRelease =>
        "schedule::pool::loom::remotely_woken_actor_runs_and_closed_pool_drains",
    /// The end of the last incarnation sees that the pool is closed.
    LastExitAcquire =>
        "schedule::pool::loom::remotely_woken_actor_runs_and_closed_pool_drains",
    /// An actor that is queued after the last dispatcher left is ended.
    PoolDownEndsQueuedActor =>
        "schedule::pool::loom::queued_actor_is_ended_when_the_last_dispatcher_leaves",
    /// The last dispatcher that leaves ends the actors that are parked.
    PoolDownEndsParkedActors =>
        "schedule::pool::loom::parked_actor_is_ended_when_the_last_dispatcher_leaves",
    /// An actor that is queued on a thread of its own wakes that thread.
    PushWakesBlockingThread =>
        "schedule::pool::loom::blocking_thread_runs_its_actor_and_ends",
    /// The next owner of a watch sees how far the last one counted.
    WatchClaimAcquire => "schedule::pool::loom::watch_has_one_owner_and_keeps_counting",
    /// The owner of a watch publishes how far it counted when it gives the watch back.
    WatchGiveBackRelease =>
        "schedule::pool::loom::watch_has_one_owner_and_keeps_counting",

    /// A dispatcher that begins to work sees that the monitor sleeps.
    BusyAcquire => "schedule::pool::loom::monitor_does_not_sleep_while_a_dispatcher_is_busy",
    /// The monitor publishes that it sleeps before it checks if a dispatcher works.
    BusyCheckRelease => "schedule::pool::loom::monitor_does_not_sleep_while_a_dispatcher_is_busy",
    /// The monitor checks for work once more before it sleeps.
    SleepChecksForWork =>
        "schedule::pool::loom::monitor_does_not_sleep_while_a_dispatcher_is_busy",
    /// An asker whose list becomes wanted sees that the monitor sleeps.
    WantedAcquire =>
        "schedule::pool::loom::listed_ask_is_woken_while_the_monitor_goes_to_sleep",
    /// The monitor clears the flag of a list before it empties the list, and not after it.
    WantedClearedFirst =>
        "schedule::pool::loom::listed_ask_is_woken_while_the_monitor_goes_to_sleep",

    /// A list of recent asks publishes what it did to an entry when it is done with it.
    UnlistedRelease =>
        "schedule::strand::loom::dropped_waiter_is_not_touched_by_the_list",
    /// The owner of an entry sees what the list did to it.
    UnlistedAcquire =>
        "schedule::strand::loom::dropped_waiter_is_not_touched_by_the_list",
    /// An ask reads under the lock of its list that the list will call it.
    ListedCheckedUnderLock =>
        "reply::loom::ask_polled_while_unlisted_keeps_its_deadline",
    /// An ask that was taken from its list sets its deadline.
    UnlistedAskArmsDeadline =>
        "reply::loom::ask_moved_while_unlisted_keeps_its_deadline",

    // The steps of `strowger-wasm`, whose models are built as part of this crate.

    /// A wake that finds a call queued is written, so that the turn of the call reads it.
    #[cfg(strowger_loom)]
    RepeatedCallWakeWritten => "turns::loom::call_gets_a_turn_after_each_wake",
    /// A wake during the turn of a call is recorded.
    #[cfg(strowger_loom)]
    CallWakeDuringTurnNoted => "turns::loom::call_gets_a_turn_after_each_wake",
    /// The turn of a call sees what was done before the wakes that found the call queued.
    #[cfg(strowger_loom)]
    CallTurnAcquire => "turns::loom::call_gets_a_turn_after_each_wake",
    /// A call that was woken during its turn is queued in one step, so that its next turn sees what
    /// was done before a wake in between.
    #[cfg(strowger_loom)]
    CallRequeuedAtomically => "turns::loom::call_gets_a_turn_after_each_wake",

    /// A call that begins sees that the ticker is parked.
    #[cfg(strowger_loom)]
    CallBeginAcquire => "calls::loom::ticker_does_not_park_during_a_call",
    /// The end of a call publishes its beginning.
    #[cfg(strowger_loom)]
    CallEndRelease => "calls::loom::call_end_is_never_counted_before_its_begin",
    /// The ticker publishes that it is parked before it counts the calls.
    #[cfg(strowger_loom)]
    TickerParkRelease => "calls::loom::ticker_does_not_park_during_a_call",
    /// The ticker counts the calls once more before it parks.
    #[cfg(strowger_loom)]
    TickerParkChecksCalls => "calls::loom::ticker_does_not_park_during_a_call",
}

#[cfg(not(strowger_loom))]
mod plain {
    use super::{Ordering, Weakening};

    /// Returns `false`: no weakening is active.
    #[inline(always)]
    pub(crate) const fn weakened(_: Weakening) -> bool {
        false
    }

    /// Returns the ordering.
    #[inline(always)]
    pub(crate) const fn weaken(_: Weakening, ordering: Ordering) -> Ordering {
        ordering
    }

    /// Returns the first ordering.
    #[inline(always)]
    pub(crate) const fn weaken_or(_: Weakening, ordering: Ordering, _: Ordering) -> Ordering {
        ordering
    }
}

#[cfg(strowger_loom)]
mod checked {
    use std::io::Write as _;
    use std::sync::LazyLock;

    use super::{Ordering, Weakening};

    /// The active weakening, which `STROWGER_WEAKEN` names.
    static ACTIVE: LazyLock<Option<Weakening>> = LazyLock::new(|| {
        let name = std::env::var("STROWGER_WEAKEN").unwrap_or_default();
        if name.is_empty() {
            return None;
        }
        let known = Weakening::ALL.iter().find(|(_, known, _)| *known == name);
        let Some((weakening, ..)) = known else {
            // A typing error must not look like a weakening that a model noticed: no model that
            // fails ends the process with this status. Not `eprintln`: what a test prints with it
            // is lost if the process exits in the test.
            let _ = writeln!(
                std::io::stderr(),
                "STROWGER_WEAKEN: there is no weakening `{name}`"
            );
            std::process::exit(2);
        };
        Some(*weakening)
    });

    /// Returns `true` if this is the active weakening.
    pub(crate) fn weakened(weakening: Weakening) -> bool {
        *ACTIVE == Some(weakening)
    }

    /// Returns the ordering, which is relaxed if this is the active weakening.
    pub(crate) fn weaken(weakening: Weakening, ordering: Ordering) -> Ordering {
        weaken_or(weakening, ordering, Ordering::Relaxed)
    }

    /// Returns the first ordering, or the second, weaker one if this is the active weakening.
    pub(crate) fn weaken_or(weakening: Weakening, strong: Ordering, weak: Ordering) -> Ordering {
        match weakened(weakening) {
            true => weak,
            false => strong,
        }
    }
}

#[cfg(all(test, strowger_loom))]
mod tests {
    use super::Weakening;

    /// Lists the weakenings and their models, for `cargo xtask loom`.
    #[test]
    fn each_weakening_has_a_model() {
        println!();
        for (_, name, model) in Weakening::ALL {
            assert!(model.contains("loom::"), "{name}: no model");
            println!("weakening {name} {model}");
        }
    }
}
