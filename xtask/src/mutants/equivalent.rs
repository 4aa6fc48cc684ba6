//! Changes without a visible effect, each with the reason.

use std::fmt;

use super::schema::Change;

/// A change that no test can notice.
pub(super) struct Equivalent {
    /// The end of the file's path.
    file: &'static str,
    /// The description by cargo-mutants, without the place.
    what: &'static str,
    /// A part of the changed line, if the description fits others too.
    line: &'static str,
    pub(super) reason: &'static str,
}

impl Equivalent {
    /// Returns `true` if this is the given change, on this line.
    pub(super) fn is(&self, change: &Change, line: &str) -> bool {
        self.is_in(change) && change.what == self.what && line.contains(self.line)
    }

    /// Returns `true` if this concerns the file of the given change.
    pub(super) fn is_in(&self, change: &Change) -> bool {
        change.file.ends_with(self.file)
    }
}

impl fmt::Display for Equivalent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.what)
    }
}

const SLOWER: &str = "the next one of a batch is then taken under the lock: the same, more slowly";

const ANEW: &str = "a child that is not renewed in its turn is started anew: the same, more slowly";

const DISJOINT: &str = "no bit is in both";

const ROOM: &str = "there is more room than elements";

const NONE_LACKS: &str = "where nothing is missing, no interface is taken away";

const SHALLOW: &str = "no table goes as deep as a walk may";

const LOOKED: &str = "the closer look finds that all is met where the quick one does";

/// All equivalent changes; printed with each run.
pub(super) const EQUIVALENT: &[Equivalent] = &[
    Equivalent {
        file: "schedule/strand/message_queue.rs",
        what: "replace && with || in <impl Drop for MessageQueue<T>>::drop",
        line: "",
        reason: "an empty queue drops nothing, and what needs no drop is not missed",
    },
    Equivalent {
        file: "supervision/dynamic.rs",
        what: "replace || with && in DynamicActor<A>::child_ended",
        line: "",
        reason: "the news of an end comes once, and nobody starts the child before it is heard",
    },
    Equivalent {
        file: "mailbox/receiver.rs",
        what: "replace Receiver<M>::is_ready -> bool with false",
        line: "",
        reason: SLOWER,
    },
    Equivalent {
        file: "mailbox/receiver.rs",
        what: "replace > with < in Receiver<M>::is_ready",
        line: "",
        reason: SLOWER,
    },
    Equivalent {
        file: "mailbox/receiver.rs",
        what: "replace Receiver<M>::make_ready with ()",
        line: "",
        reason: SLOWER,
    },
    Equivalent {
        file: "mailbox/receiver.rs",
        what: "delete ! in Receiver<M>::look",
        line: "        if !self.batch.is_empty() {",
        reason: SLOWER,
    },
    Equivalent {
        file: "mailbox/receiver.rs",
        what: "replace && with || in Receiver<M>::look_closer",
        line: "let other_work = lanes.other_work && !self.batch.is_empty();",
        reason: SLOWER,
    },
    Equivalent {
        file: "mailbox.rs",
        what: "replace MailboxState<M>::has_work -> bool with true",
        line: "",
        reason: "asked where something was put in or called for: at worst a turn for nothing",
    },
    Equivalent {
        file: "mailbox.rs",
        what: "replace MailboxState<M>::needs_lock -> bool with true",
        line: "",
        reason: SLOWER,
    },
    Equivalent {
        file: "mailbox.rs",
        what: "replace MailboxState<M>::take_stop -> bool with false",
        line: "",
        reason: "the order to stop is then found among the news",
    },
    Equivalent {
        file: "mailbox/stats.rs",
        what: "replace > with < in Mailbox<M>::has_more",
        line: "let has_batch = ",
        reason: "the count of all that waits says it too",
    },
    Equivalent {
        file: "mailbox/life.rs",
        what: "replace > with >= in Mailbox<M>::close_locked",
        line: "",
        reason: "of nothing, nothing is dropped",
    },
    Equivalent {
        file: "mailbox/rare.rs",
        what: "replace > with >= in MailboxState<M>::note_gone",
        line: "",
        reason: "a count is made sooner than it is needed",
    },
    Equivalent {
        file: "mailbox/receiver.rs",
        what: "delete match arm 0 in Receiver<M>::look",
        line: "",
        reason: "an empty lane gives no message: only the rest counts as work, of which one in \
            64 is measured",
    },
    Equivalent {
        file: "mailbox/receiver.rs",
        what: "delete match arm 1 in Receiver<M>::look",
        line: "",
        reason: "one alone is then a batch of one",
    },
    Equivalent {
        file: "mailbox/expiry.rs",
        what: "replace MailboxState<M>::free -> u64 with 0",
        line: "",
        reason: SLOWER,
    },
    Equivalent {
        file: "supervision/dynamic.rs",
        what: "replace <impl Overseer for DynamicTable<A>>::restarts_in_place -> bool with false",
        line: "",
        reason: ANEW,
    },
    Equivalent {
        file: "supervision/dynamic.rs",
        what: "replace <impl Overseer for DynamicTable<A>>::restarts_in_place -> bool with true",
        line: "",
        reason: ANEW,
    },
    Equivalent {
        file: "supervision/dynamic.rs",
        what: "replace match guard after.is_zero() with false in DynamicActor<A>::child_ended",
        line: "",
        reason: "a timer of no time fires at once",
    },
    Equivalent {
        file: "supervision/child_table.rs",
        what: "replace taken -> bool with false",
        line: "",
        reason: ANEW,
    },
    Equivalent {
        file: "supervision/child_table.rs",
        what: "replace Policy::restarts_in_place -> bool with false",
        line: "",
        reason: ANEW,
    },
    Equivalent {
        file: "supervision/child_table.rs",
        what: "replace <impl Overseer for ChildTable>::restarts_in_place -> bool with false",
        line: "",
        reason: ANEW,
    },
    Equivalent {
        file: "supervision/child_table.rs",
        what: "replace <impl Overseer for ChildTable>::restarts_in_place -> bool with true",
        line: "",
        reason: ANEW,
    },
    Equivalent {
        file: "supervision/backoff.rs",
        what: "replace > with >= in Backoff::factor",
        line: "",
        reason: "a factor of one becomes one",
    },
    Equivalent {
        file: "supervision/backoff.rs",
        what: "replace > with >= in Backoff::jitter",
        line: "",
        reason: "a jitter of one becomes one, and one of zero zero",
    },
    Equivalent {
        file: "wire/index.rs",
        what: "replace | with ^ in Node::with_members",
        line: "",
        reason: DISJOINT,
    },
    Equivalent {
        file: "wire/index.rs",
        what: "replace - with + in Index::walk_all",
        line: "let most = ",
        reason: ROOM,
    },
    Equivalent {
        file: "wire/index.rs",
        what: "replace / with * in Index::walk_all",
        line: "let most = ",
        reason: ROOM,
    },
    Equivalent {
        file: "wire/index.rs",
        what: "replace < with <= in Index::walk_all",
        line: "if self.nodes.len() < most {",
        reason: "what is long enough is made as long as it is",
    },
    Equivalent {
        file: "wire/walk.rs",
        what: "replace & with | in IndexWalk<'_>::close",
        line: "group.wanted & !seen.slots",
        reason: NONE_LACKS,
    },
    Equivalent {
        file: "wire/walk.rs",
        what: "replace & with ^ in IndexWalk<'_>::close",
        line: "group.wanted & !seen.slots",
        reason: NONE_LACKS,
    },
    Equivalent {
        file: "ie/condition.rs",
        what: "replace Conditions::may_be_unmet -> bool with true",
        line: "",
        reason: LOOKED,
    },
    Equivalent {
        file: "ie/condition.rs",
        what: "replace && with || in Conditions::may_be_unmet",
        line: "",
        reason: LOOKED,
    },
    Equivalent {
        file: "validate/condition.rs",
        what: "replace is_judged_by_head -> bool with true",
        line: "",
        reason: "what else is judged has fields of which all octets decide",
    },
    Equivalent {
        file: "wire/walk.rs",
        what: "replace > with >= in IndexWalk<'_>::examine_top_level",
        line: "",
        reason: "what is out of order is kept as odd, and read as if it were not kept",
    },
    Equivalent {
        file: "wire/walk.rs",
        what: "replace > with == in IndexWalk<'_>::walk_below",
        line: "",
        reason: SHALLOW,
    },
    Equivalent {
        file: "wire/walk.rs",
        what: "replace > with >= in IndexWalk<'_>::walk_below",
        line: "",
        reason: SHALLOW,
    },
    Equivalent {
        file: "wire/walk.rs",
        what: "replace + with * in IndexWalk<'_>::walk_below",
        line: "pending.depth + 1",
        reason: SHALLOW,
    },
    Equivalent {
        file: "wire/walk.rs",
        what: "replace | with ^ in key",
        line: "",
        reason: DISJOINT,
    },
    Equivalent {
        file: "wasm/src/kv.rs",
        what: "replace match guard old.is_some() with true in Space::write",
        line: "",
        reason: "to remove what is not there changes nothing",
    },
    Equivalent {
        file: "guest/handles.rs",
        what: "replace | with ^ in number",
        line: "",
        reason: DISJOINT,
    },
    Equivalent {
        file: "guest/stopwatch.rs",
        what: "replace waited -> Duration with Default::default()",
        line: "Duration::ZERO",
        reason: "so it is where the system does not tell",
    },
    Equivalent {
        file: "manifest/grant.rs",
        what: "replace match guard cfg!(unix) with true in Grant::missing",
        line: "",
        reason: "so it is on every system that this is tested on",
    },
];
