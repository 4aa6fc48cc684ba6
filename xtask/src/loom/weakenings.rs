//! The orderings and steps that are removed, so that models prove that they notice it.

/// An ordering, or a step, that the code depends on.
pub(super) struct Weakening {
    /// The property that is lost.
    pub(super) name: &'static str,
    /// The file, relative to `crates/runtime/src`.
    pub(super) file: &'static str,
    /// The code to replace, which must occur exactly once.
    pub(super) from: &'static str,
    pub(super) to: &'static str,
}

/// The weakenings, one for each ordering on which a model depends.
pub(super) const WEAKENINGS: &[Weakening] = &[
    Weakening {
        name: "what the last one did is seen",
        file: "schedule/strand/lock.rs",
        from: "let free = self
            .taken
            .compare_exchange(false, true, Ordering::Acquire",
        to: "let free = self
            .taken
            .compare_exchange(false, true, Ordering::Relaxed",
    },
    Weakening {
        name: "what the last one did is seen after a wait",
        file: "schedule/strand/lock.rs",
        from: ".compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()",
        to: ".compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()",
    },
    Weakening {
        name: "what was done is shown to the next one",
        file: "schedule/strand/lock.rs",
        from: "store(false, Ordering::Release)",
        to: "store(false, Ordering::Relaxed)",
    },
    Weakening {
        name: "a value is shown with the slot that is full",
        file: "schedule/strand/slot.rs",
        from: "slot.state.store(FULL, Ordering::Release)",
        to: "slot.state.store(FULL, Ordering::Relaxed)",
    },
    Weakening {
        name: "who looks for a value sees what was put in",
        file: "schedule/strand/slot.rs",
        from: "self.slot().state.load(Ordering::Acquire) == FULL",
        to: "self.slot().state.load(Ordering::Relaxed) == FULL",
    },
    Weakening {
        name: "who waits for a value is woken",
        file: "schedule/strand/slot.rs",
        from: "if now & WAITS != 0 {",
        to: "if now & WAITS == 8 {",
    },
    Weakening {
        name: "who frees a slot has seen the other leave it",
        file: "schedule/strand/slot.rs",
        from: "compare_exchange(empty, LEFT, Ordering::AcqRel, Ordering::Relaxed)",
        to: "compare_exchange(empty, LEFT, Ordering::Relaxed, Ordering::Relaxed)",
    },
    Weakening {
        name: "whoever found a task queued is seen in its turn",
        file: "schedule/seeded/queued.rs",
        from: "self.0.swap(false, Ordering::AcqRel);",
        to: "self.0.store(false, Ordering::Release);",
    },
    Weakening {
        name: "a phase is shown with what was done before it",
        file: "cell/phase_cell.rs",
        from: "self.0.store(now & !bits | to, Ordering::Release);",
        to: "self.0.store(now & !bits | to, Ordering::Relaxed);",
    },
    Weakening {
        name: "who sees a phase sees what was done before it",
        file: "cell/phase_cell.rs",
        from: "Phase::from_bits(self.0.load(Ordering::Acquire) & PHASE)",
        to: "Phase::from_bits(self.0.load(Ordering::Relaxed) & PHASE)",
    },
    Weakening {
        name: "a mark is set in one step",
        file: "cell/flags.rs",
        from: "self.0.fetch_or(flag, Ordering::Release);",
        to: "let flags = self.0.load(Ordering::Acquire);
        self.0.store(flags | flag, Ordering::Release);",
    },
    Weakening {
        name: "a mark is cleared in one step",
        file: "cell/flags.rs",
        from: "self.0.fetch_and(!flag, Ordering::Release);",
        to: "let flags = self.0.load(Ordering::Acquire);
        self.0.store(flags & !flag, Ordering::Release);",
    },
    Weakening {
        name: "who comes in sees that it was shut before",
        file: "children/closable_mutex.rs",
        from: "flags if flags & USED == 0 => self.state.fetch_or(USED, Ordering::AcqRel),",
        to: "flags if flags & USED == 0 => {
                self.state.fetch_or(USED, Ordering::AcqRel);
                flags
            }",
    },
    Weakening {
        name: "who shuts sees that somebody came in before",
        file: "children/closable_mutex.rs",
        from: "if flags & USED == 0 && close().is_ok() {",
        to: "let late = || self.state.fetch_or(CLOSED, Ordering::AcqRel) > 0;
        if flags & USED == 0 && (close().is_ok() || late()) {",
    },
    Weakening {
        name: "who is next is shown to who takes it",
        file: "schedule/strand/lifo_slot.rs",
        from: "self.place.state.store(FULL, Ordering::Release)",
        to: "self.place.state.store(FULL, Ordering::Relaxed)",
    },
    Weakening {
        name: "who takes the next one sees it",
        file: "schedule/strand/lifo_slot.rs",
        from: "compare_exchange(FULL, HELD, Ordering::Acquire,",
        to: "compare_exchange(FULL, HELD, Ordering::Relaxed,",
    },
    Weakening {
        name: "a place is left as it is shown",
        file: "schedule/strand/lifo_slot.rs",
        from: "place.state.store(EMPTY, Ordering::Release)",
        to: "place.state.store(EMPTY, Ordering::Relaxed)",
    },
    Weakening {
        name: "who fills a place sees that it was left",
        file: "schedule/strand/lifo_slot.rs",
        from: "if self.place.state.load(Ordering::Acquire) != EMPTY {",
        to: "if self.place.state.load(Ordering::Relaxed) != EMPTY {",
    },
    Weakening {
        name: "one that is held loses who is next as well",
        file: "schedule/pool/dispatcher.rs",
        from: "let next = if all { victim.next.take() } else { None };",
        to: "let next = None;",
    },
    Weakening {
        name: "a wake during the turn is noted",
        file: "schedule/strand.rs",
        from: "self.0.state = RunState::Woken",
        to: "self.0.state = RunState::Running",
    },
    Weakening {
        name: "a wake during the turn leads to another",
        file: "schedule/strand.rs",
        from: "if run.state == RunState::Woken {",
        to: "if run.state == RunState::Off {",
    },
    Weakening {
        name: "who finds the actor receiving wakes it",
        file: "mailbox.rs",
        from: "    if lanes.receiving {",
        to: "    if lanes.has_new_waiter {",
    },
    Weakening {
        name: "the actor says that it waits",
        file: "mailbox/receiver.rs",
        from: "self.receiving = rests;",
        to: "self.receiving = false;",
    },
    Weakening {
        name: "what came while the turn ended leads to another",
        file: "mailbox/receiver.rs",
        from: "let rests = self.user.is_empty() && !waits && !self.has_signals();",
        to: "let rests = !waits && !self.has_signals();",
    },
    Weakening {
        name: "a signal calls the receiver from its batch",
        file: "mailbox/life.rs",
        from: "    pub(super) fn notify(&self, lanes: StrandGuard<'_, MailboxState<M>>) {
        self.lock_needed.store(true, Ordering::Relaxed);",
        to: "    pub(super) fn notify(&self, lanes: StrandGuard<'_, MailboxState<M>>) {",
    },
    Weakening {
        name: "what is queued wakes the dispatcher",
        file: "schedule/pool/dispatcher.rs",
        from: "        self.note(&queue);
        let parked = self.parked.load(Ordering::Relaxed);",
        to: "        self.note(&queue);
        let parked = false;",
    },
    Weakening {
        name: "a dispatcher looks for an order before it parks",
        file: "schedule/pool/dispatcher.rs",
        from: "if self.steal_order.load(Ordering::Relaxed) != 0 {",
        to: "if self.steal_order.load(Ordering::Relaxed) == usize::MAX {",
    },
    Weakening {
        name: "who is sent to another is called",
        file: "schedule/pool/dispatcher.rs",
        from: "self.steal_order.store(steal_order, Ordering::Relaxed);
        self.unpark();",
        to: "self.steal_order.store(steal_order, Ordering::Relaxed);",
    },
    Weakening {
        name: "who closes a pool sees the last one end",
        file: "schedule/pool.rs",
        from: "self.live.fetch_add(0, Ordering::AcqRel) == 0",
        to: "self.live.load(Ordering::Acquire) == 0",
    },
    Weakening {
        name: "the last one to end sees that the pool is closed",
        file: "schedule/pool.rs",
        from: "self.live.fetch_sub(1, Ordering::AcqRel) == 1",
        to: "self.live.fetch_sub(1, Ordering::Release) == 1",
    },
    Weakening {
        name: "what is queued when all have left is ended",
        file: "schedule/pool.rs",
        from: "if self.down.load(Ordering::SeqCst) {
            dispatcher.clear();",
        to: "if self.down.load(Ordering::SeqCst) && home > 9 {
            dispatcher.clear();",
    },
    Weakening {
        name: "what waits when all have left is ended",
        file: "schedule/pool.rs",
        from: "            owner.abandon();",
        to: "            drop(owner);",
    },
    Weakening {
        name: "the thread of one actor is called",
        file: "schedule/pool/blocking.rs",
        from: "state.ready = Some(ready);
        drop(state);
        self.bell.notify_one();",
        to: "state.ready = Some(ready);
        drop(state);",
    },
    Weakening {
        name: "who begins to work sees that the monitor sleeps",
        file: "schedule/pool/monitor.rs",
        from: "busy.swap(true, Ordering::AcqRel);",
        to: "busy.swap(true, Ordering::Release);",
    },
    Weakening {
        name: "the monitor shows that it sleeps",
        file: "schedule/pool/monitor.rs",
        from: "busy.fetch_or(false, Ordering::AcqRel)",
        to: "busy.fetch_or(false, Ordering::Acquire)",
    },
    Weakening {
        name: "the monitor sees who works",
        file: "schedule/pool/monitor.rs",
        from: "        if !works() {
            park();
        }",
        to: "        let _ = works();
        park();",
    },
];

/// Weakenings that a single model notices, each with the name of that model. Several are applied at
/// a time, to different files and for different models, because building a copy takes long.
pub(super) const OF_ONE_MODEL: &[(&str, Weakening)] = &[
    (
        "reply::loom::answer_wakes_an_ask_that_becomes_watched",
        Weakening {
            name: "a slot is held while it becomes watched",
            file: "schedule/strand/slot.rs",
            from: "false => HELD,",
            to: "false => EMPTY,",
        },
    ),
    (
        "reply::loom::ask_that_is_polled_while_the_monitor_takes_it_keeps_its_deadline",
        Weakening {
            name: "an ask that counts on its list asks under the lock",
            file: "schedule/strand/recent_asks.rs",
            from: "let _head = list.head.lock();
        self.is_listed()",
            to: "let _head = list;
        self.is_listed()",
        },
    ),
    (
        "mailbox::loom::place_that_is_given_up_wakes_the_next_sender",
        Weakening {
            name: "a place that is given up wakes the next sender",
            file: "mailbox.rs",
            from: "drop(lanes);
        wakers.into_iter().for_each(Waker::wake);",
            to: "drop(lanes);
        drop(wakers);",
        },
    ),
    (
        "mailbox::loom::room_wakes_the_sender_that_waits_for_it",
        Weakening {
            name: "room wakes the sender that waits for it",
            file: "mailbox/receiver.rs",
            from: "wakers.into_iter().for_each(wake);",
            to: "drop(wakers);",
        },
    ),
    (
        "mailbox::loom::close_wakes_the_sender_that_waits_for_room",
        Weakening {
            name: "a close wakes the senders that wait for room",
            file: "mailbox/life.rs",
            from: "if let Some(waiting) = waiting {",
            to: "if let Some(waiting) = waiting.filter(|waiting| waiting.granted > 9) {",
        },
    ),
    (
        "reply::loom::ask_that_moves_to_another_task_while_the_monitor_takes_it_keeps_its_deadline",
        Weakening {
            name: "an ask that was in a list sets its deadline",
            file: "reply.rs",
            from: "DeadlineArming::Listed => self.slot.will_be_called(),",
            to: "DeadlineArming::Listed => true,",
        },
    ),
    (
        "strand::loom::who_leaves_while_it_is_called_is_not_touched_after_that",
        Weakening {
            name: "a list shows that it is done with an entry",
            file: "schedule/strand/recent_asks.rs",
            from: "entry.listed.store(false, Ordering::Release);",
            to: "entry.listed.store(false, Ordering::Relaxed);",
        },
    ),
    (
        "strand::loom::who_leaves_while_it_is_called_is_not_touched_after_that",
        Weakening {
            name: "who leaves sees that the list is done with it",
            file: "schedule/strand/recent_asks.rs",
            from: "self.listed.load(Ordering::Acquire)",
            to: "self.listed.load(Ordering::Relaxed)",
        },
    ),
    (
        "pool::loom::whose_question_is_listed_is_called_though_the_monitor_goes_to_sleep",
        Weakening {
            name: "a list is looked at once it is no more wanted",
            file: "schedule/pool/monitor.rs",
            from: "wakers.drain(..).for_each(Waker::wake);
    }
    wanted",
            to: "wakers.drain(..).for_each(Waker::wake);
    }
    list.wanted.store(false, Ordering::Release);
    wanted",
        },
    ),
    (
        "pool::loom::whose_question_is_listed_is_called_though_the_monitor_goes_to_sleep",
        Weakening {
            name: "who wants a list looked at wakes the monitor",
            file: "schedule/pool/monitor.rs",
            from: "!list.wanted.load(Ordering::Relaxed) && self.begin(&list.wanted)",
            to: "list.wanted.store(true, Ordering::Release);
        self.0.load(Ordering::Relaxed) && self.end()",
        },
    ),
    (
        "strand::loom::who_fills_a_place_next_sees_what_the_last_one_put_there",
        Weakening {
            name: "who fills next sees what the last one did",
            file: "schedule/strand/lifo_slot.rs",
            from: "self.0.filled.swap(true, Ordering::AcqRel)",
            to: "self.0.filled.swap(true, Ordering::Release)",
        },
    ),
    (
        "strand::loom::who_fills_a_place_next_sees_what_the_last_one_put_there",
        Weakening {
            name: "who fills no more shows what it did",
            file: "schedule/strand/lifo_slot.rs",
            from: "self.place.filled.store(false, Ordering::Release)",
            to: "self.place.filled.store(false, Ordering::Relaxed)",
        },
    ),
    (
        "pool::loom::a_watch_is_one_threads_and_the_next_one_counts_on",
        Weakening {
            name: "who claims a watch sees where it was left",
            file: "schedule/pool/watch.rs",
            from: ".compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)",
            to: ".compare_exchange(false, true, Ordering::Relaxed, Ordering::Relaxed)",
        },
    ),
    (
        "pool::loom::a_watch_is_one_threads_and_the_next_one_counts_on",
        Weakening {
            name: "a watch is given back as it is shown",
            file: "schedule/pool/watch.rs",
            from: "self.taken.store(false, Ordering::Release)",
            to: "self.taken.store(false, Ordering::Relaxed)",
        },
    ),
    (
        "turns::loom::a_call_has_a_turn_after_each_wake",
        Weakening {
            name: "who finds a call queued is read by its turn",
            file: "../../wasm/src/guest_threads/turns.rs",
            from: "let next = |state| Some(next(state));",
            to: "let next = |state| Some(next(state)).filter(|next| *next != state);",
        },
    ),
    (
        "turns::loom::a_call_has_a_turn_after_each_wake",
        Weakening {
            name: "a turn reads who found its call queued",
            file: "../../wasm/src/guest_threads/turns.rs",
            from: "self.0.swap(RUNNING, Ordering::AcqRel);",
            to: "self.0.store(RUNNING, Ordering::Release);",
        },
    ),
    (
        "turns::loom::a_call_has_a_turn_after_each_wake",
        Weakening {
            name: "the next turn reads who found it woken",
            file: "../../wasm/src/guest_threads/turns.rs",
            from: "self.0.swap(QUEUED, Ordering::AcqRel);",
            to: "self.0.store(QUEUED, Ordering::Release);",
        },
    ),
    (
        "turns::loom::a_call_has_a_turn_after_each_wake",
        Weakening {
            name: "a wake during the turn of a call is noted",
            file: "../../wasm/src/guest_threads/turns.rs",
            from: "RUNNING => WOKEN,",
            to: "RUNNING => RUNNING,",
        },
    ),
    (
        "calls::loom::the_thread_does_not_rest_while_a_call_is_under_way",
        Weakening {
            name: "who begins a call sees that the ticks rest",
            file: "../../wasm/src/engine/calls.rs",
            from: "begun.fetch_add(1, Ordering::AcqRel)",
            to: "begun.fetch_add(1, Ordering::Release)",
        },
    ),
    (
        "calls::loom::the_thread_does_not_rest_while_a_call_is_under_way",
        Weakening {
            name: "the ticks show that they rest",
            file: "../../wasm/src/engine/calls.rs",
            from: "begun.fetch_add(0, Ordering::AcqRel)",
            to: "begun.fetch_add(0, Ordering::Acquire)",
        },
    ),
    (
        "calls::loom::the_thread_does_not_rest_while_a_call_is_under_way",
        Weakening {
            name: "the ticks see the calls before they rest",
            file: "../../wasm/src/engine/calls.rs",
            from: "while self.count_by(look) == (before, false) && !is_over() {
            park();
        }",
            to: "let _ = self.count_by(look);
        if !is_over() {
            park();
        }",
        },
    ),
    (
        "calls::loom::of_no_call_only_the_end_is_seen",
        Weakening {
            name: "the end of a call shows its beginning",
            file: "../../wasm/src/engine/calls.rs",
            from: "ended.fetch_add(1, Ordering::Release)",
            to: "ended.fetch_add(1, Ordering::Relaxed)",
        },
    ),
];
