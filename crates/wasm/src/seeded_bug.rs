//! Seeded bugs, which the tests must find one at a time: `cargo xtask bugs`.

strowger_seeded_bug::bugs! {
    /// A call continues after it has used up its processor time.
    CpuLimitIgnored,
    /// A manifest may ask for more than the node allows.
    CapIgnored,
    /// A component whose calls are long stays on the workers.
    HeavyStaysOnWorker,
    /// All guests have the same weight.
    WeightIgnored,
    /// A component that exceeds its share of a processor continues at once.
    ShareIgnored,
    /// A call on a guest thread never yields to others that wait.
    GuestCallNeverYields,
    /// A call that exceeds its slice does not hand over the other work of its worker.
    WorkerNotHandedOver,
    /// A component that keeps exceeding its share is delayed where the node demands quarantine.
    QuarantineIgnored,
    /// Guest threads have the same priority as all others.
    GuestThreadsNotNiced,
    /// The call of a killed component continues until its limit.
    KilledCallContinues,
    /// A host operation that takes long holds the worker of its call.
    HostWorkHoldsWorker,
    /// A host operation does not count against its call.
    HostWorkNotCounted,
    /// A call on a worker does not count from its last tick to its end.
    CallEndNotCounted,
    /// Each write that grows a granted directory measures it.
    FolderMeasuredAtEachWrite,
}
