//! Seeded bugs that the tests must find, one at a time: `cargo xtask bugs`.
//!
//! They exist only if the compiler is given `--cfg strowger_bug`, which neither a feature nor a
//! manifest of a dependent crate can do; `STROWGER_BUG` then names the active bug. In all other
//! builds [`is_seeded`] is a constant, and no trace of it remains in the program.

/// A bug that can be seeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A call continues after it has used up its processor time.
    CpuLimitIgnored,
    /// A manifest may ask for more than the node allows.
    CapIgnored,
    /// A component whose calls are long stays on the workers.
    HogStaysOnWorker,
    /// All guests have the same weight.
    WeightIgnored,
    /// A component that exceeds its share of a processor continues at once.
    ShareIgnored,
    /// A call on a guest thread never yields to others that wait.
    WayNotMade,
    /// A call that exceeds its slice does not hand over the other work of its worker.
    WorkerNotHandedOver,
    /// A component that keeps exceeding its share is delayed where the node demands quarantine.
    QuarantineIgnored,
    /// Guest threads have the same priority as all others.
    GuestsAsUrgent,
    /// The call of a killed component continues until its limit.
    KilledComputesOn,
}

/// Returns `true` if this bug is the seeded one.
#[cfg(strowger_bug)]
pub(crate) fn is_seeded(bug: Bug) -> bool {
    static CHOSEN: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| std::env::var("STROWGER_BUG").unwrap_or_default());
    format!("{bug:?}") == *CHOSEN
}

/// Returns `false`: no bug is seeded.
#[cfg(not(strowger_bug))]
#[inline(always)]
pub(crate) const fn is_seeded(_: Bug) -> bool {
    false
}
