//! Bugs that the tests must find, one at a time: `cargo xtask bugs`.
//!
//! They exist only where the compiler was given `--cfg strowger_bug`, which no manifest can do
//! for a dependency and no feature turns on; `STROWGER_BUG` then names the one that bites.
//! Everywhere else the question has a constant answer, and nothing of it is left in the program.

/// A bug that can be planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A call goes on after it has used up its processor time.
    CpuLimitIgnored,
    /// A manifest may ask for more than the node allows.
    CapIgnored,
    /// A component whose calls are long stays on the workers.
    HogStaysOnWorker,
    /// All guests have the same weight.
    WeightIgnored,
    /// A component beyond its share of a processor goes on at once.
    ShareIgnored,
}

/// Whether this bug is the one that was planted.
#[cfg(strowger_bug)]
pub(crate) fn planted(bug: Bug) -> bool {
    static CHOSEN: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("STROWGER_BUG").unwrap_or_default());
    format!("{bug:?}") == *CHOSEN
}

/// Whether this bug is the one that was planted: none is.
#[cfg(not(strowger_bug))]
#[inline(always)]
pub(crate) const fn planted(_: Bug) -> bool {
    false
}
