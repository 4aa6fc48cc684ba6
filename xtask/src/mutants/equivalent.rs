//! Changes that change nothing anybody can see, each with the reason.

use super::schema::Change;

/// A change that no test can find.
pub(super) struct Equivalent {
    /// The end of the file's path.
    file: &'static str,
    /// What cargo-mutants says of it, without the place.
    what: &'static str,
    pub(super) reason: &'static str,
}

impl Equivalent {
    pub(super) fn is(&self, change: &Change) -> bool {
        change.file.ends_with(self.file) && change.what == self.what
    }
}

/// All of them; printed with each run.
pub(super) const EQUIVALENT: &[Equivalent] = &[
    Equivalent {
        file: "supervision/dynamic.rs",
        what: "replace || with && in DynamicActor<A>::child_ended",
        reason: "the news of an end comes once, and nobody starts the child before it is heard",
    },
    Equivalent {
        file: "mailbox.rs",
        what: "replace Lanes<M>::has_work -> bool with true",
        reason: "asked where something was put in or called for: at worst a turn for nothing",
    },
    Equivalent {
        file: "supervision/backoff.rs",
        what: "replace > with >= in Backoff::factor",
        reason: "a factor of one becomes one",
    },
    Equivalent {
        file: "supervision/backoff.rs",
        what: "replace > with >= in Backoff::jitter",
        reason: "a jitter of one becomes one, and one of zero zero",
    },
];
