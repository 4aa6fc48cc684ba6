//! What is changed, and the tests that have to notice.

/// A crate whose logic is changed.
pub(super) struct Subject {
    pub(super) package: &'static str,
    /// The root of its library, which gets the switches.
    pub(super) library: &'static str,
    /// What is changed unless files are named.
    pub(super) files: &'static [&'static str],
    /// What decides without doing: changed in the short form.
    pub(super) short: &'static [&'static str],
    /// The test programs besides the unit tests.
    pub(super) tests: &'static [&'static str],
    /// Parts of the names of the tests that run; all if there are none.
    pub(super) only: &'static [&'static str],
}

/// Mailboxes and supervision.
pub(super) const RUNTIME: Subject = Subject {
    package: "strowger",
    library: "crates/runtime/src/lib.rs",
    files: &[
        "crates/runtime/src/mailbox.rs",
        "crates/runtime/src/mailbox/batch.rs",
        "crates/runtime/src/mailbox/drain.rs",
        "crates/runtime/src/mailbox/figures.rs",
        "crates/runtime/src/mailbox/life.rs",
        "crates/runtime/src/mailbox/rare.rs",
        "crates/runtime/src/mailbox/receiver.rs",
        "crates/runtime/src/mailbox/spec.rs",
        "crates/runtime/src/mailbox/term.rs",
        "crates/runtime/src/schedule/strand/lane.rs",
        "crates/runtime/src/sending.rs",
        "crates/runtime/src/supervision/*.rs",
    ],
    short: &[
        "crates/runtime/src/supervision/intensity.rs",
        "crates/runtime/src/supervision/strategy.rs",
    ],
    tests: &["behaviour", "counters", "observation", "parallel", "storm"],
    only: &[],
};

/// What decides whether a PFCP message is as it should be.
pub(super) const PFCP: Subject = Subject {
    package: "strowger-pfcp",
    library: "crates/pfcp/src/lib.rs",
    files: &[
        "crates/pfcp/src/validate.rs",
        "crates/pfcp/src/validate/*.rs",
        "crates/pfcp/src/ie/condition.rs",
        "crates/pfcp/src/wire/index.rs",
        "crates/pfcp/src/wire/shape.rs",
        "crates/pfcp/src/wire/walk.rs",
    ],
    short: &["crates/pfcp/src/ie/condition.rs"],
    tests: &["bad_inputs", "codec", "peers"],
    // The others do not judge, or take long.
    only: &[
        "alike",
        "always",
        "answer",
        "bad_input",
        "conditions",
        "damage",
        "framing",
        "judg",
        "release",
        "roundtrip",
        "validat",
        "wire",
    ],
};

/// The limits of components: what counts, refuses and cuts off.
pub(super) const WASM: Subject = Subject {
    package: "strowger-wasm",
    library: "crates/wasm/src/lib.rs",
    files: &[
        "crates/wasm/src/cache.rs",
        "crates/wasm/src/fault.rs",
        "crates/wasm/src/guest/bucket.rs",
        "crates/wasm/src/guest/handles.rs",
        "crates/wasm/src/guest/memory.rs",
        "crates/wasm/src/guest/watch.rs",
        "crates/wasm/src/host.rs",
        "crates/wasm/src/kv.rs",
        "crates/wasm/src/manifest/*.rs",
    ],
    short: &[
        "crates/wasm/src/guest/bucket.rs",
        "crates/wasm/src/guest/handles.rs",
        "crates/wasm/src/guest/memory.rs",
        "crates/wasm/src/guest/watch.rs",
    ],
    tests: &["components"],
    only: &[],
};
