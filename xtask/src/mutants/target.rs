//! The crates to change, and the tests that must notice.

/// A crate whose logic is changed.
pub(super) struct MutatedCrate {
    pub(super) package: &'static str,
    /// The root of the library, to which the switches are added.
    pub(super) library: &'static str,
    /// The files that are changed by default.
    pub(super) files: &'static [&'static str],
    /// The files changed in the short form: decisions without side effects.
    pub(super) short: &'static [&'static str],
    /// The test binaries besides the unit tests.
    pub(super) tests: &'static [&'static str],
    /// Parts of the names of the tests to run; all tests if empty.
    pub(super) only: &'static [&'static str],
}

/// Mailboxes and supervision.
pub(super) const RUNTIME: MutatedCrate = MutatedCrate {
    package: "strowger",
    library: "crates/runtime/src/lib.rs",
    files: &[
        "crates/runtime/src/mailbox.rs",
        "crates/runtime/src/mailbox/batch.rs",
        "crates/runtime/src/mailbox/drain.rs",
        "crates/runtime/src/mailbox/stats.rs",
        "crates/runtime/src/mailbox/life.rs",
        "crates/runtime/src/mailbox/rare.rs",
        "crates/runtime/src/mailbox/receiver.rs",
        "crates/runtime/src/mailbox/spec.rs",
        "crates/runtime/src/mailbox/expiry.rs",
        "crates/runtime/src/schedule/strand/message_queue.rs",
        "crates/runtime/src/sending.rs",
        "crates/runtime/src/supervision/*.rs",
    ],
    short: &[
        "crates/runtime/src/supervision/intensity.rs",
        "crates/runtime/src/supervision/strategy.rs",
    ],
    tests: &["behaviour", "observation", "parallel", "storm"],
    only: &[],
};

/// The validation of PFCP messages.
pub(super) const PFCP: MutatedCrate = MutatedCrate {
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
    tests: &["codec", "protocol"],
    // The other tests do not validate, or take long.
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

/// The limits of components: counting, refusing and cutting off.
pub(super) const WASM: MutatedCrate = MutatedCrate {
    package: "strowger-wasm",
    library: "crates/wasm/src/lib.rs",
    files: &[
        "crates/wasm/src/cache.rs",
        "crates/wasm/src/fault.rs",
        "crates/wasm/src/bucket.rs",
        "crates/wasm/src/guest/handles.rs",
        "crates/wasm/src/guest/memory.rs",
        "crates/wasm/src/guest/stopwatch.rs",
        "crates/wasm/src/host.rs",
        "crates/wasm/src/kv.rs",
        "crates/wasm/src/manifest/*.rs",
    ],
    short: &[
        "crates/wasm/src/bucket.rs",
        "crates/wasm/src/guest/handles.rs",
        "crates/wasm/src/guest/memory.rs",
        "crates/wasm/src/guest/stopwatch.rs",
    ],
    tests: &["components"],
    only: &[],
};
