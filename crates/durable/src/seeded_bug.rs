//! Seeded bugs, which the tests must find one at a time: `cargo xtask bugs`.

strowger_seeded_bug::bugs! {
    /// A store accepts a write of a holder that was replaced.
    FenceIgnored,
    /// A store accepts a write that does not follow the last one.
    SequenceIgnored,
}
