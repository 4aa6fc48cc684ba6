//! Changes that change nothing anybody can see, each with the reason.

use super::schema::Change;

/// A change that no test can find.
pub(super) struct Equivalent {
    /// The end of the file's path.
    file: &'static str,
    /// What cargo-mutants says of it, without the place.
    what: &'static str,
    /// A part of the line that is changed, where the same is said of others.
    line: &'static str,
    pub(super) reason: &'static str,
}

impl Equivalent {
    /// Whether it is this change, on this line.
    pub(super) fn is(&self, change: &Change, line: &str) -> bool {
        let named = change.file.ends_with(self.file) && change.what == self.what;
        named && line.contains(self.line)
    }
}

const SLOWER: &str = "the next one of a batch is then taken under the lock: the same, more slowly";

/// All of them; printed with each run.
pub(super) const EQUIVALENT: &[Equivalent] = &[
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
        what: "replace && with || in Receiver<M>::look_aside",
        line: "let aside = lanes.aside && !self.batch.is_empty();",
        reason: SLOWER,
    },
    Equivalent {
        file: "mailbox.rs",
        what: "replace Lanes<M>::has_work -> bool with true",
        line: "",
        reason: "asked where something was put in or called for: at worst a turn for nothing",
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
];
