//! Host operations that may take long, and the guest calls that they belong to.

use std::sync::atomic::AtomicBool;

/// The guest call that a host operation belongs to.
pub(crate) trait HostCall {
    /// Returns `true` if the operation may take another step: its call has time left, and its actor
    /// was not killed. Otherwise the call ends when the operation returns.
    fn may_continue(&mut self) -> bool;

    /// Runs work whose duration the guest cannot foresee, and waits for it. It counts against the
    /// component's share of a processor, but not against the limits of the call. The work gets a
    /// flag that is set when it should stop.
    fn run_aside(&mut self, work: &mut (dyn FnMut(&AtomicBool) + Send));
}

/// Work outside a guest call, which nothing limits.
#[derive(Debug)]
pub(crate) struct NoCall;

impl HostCall for NoCall {
    fn may_continue(&mut self) -> bool {
        true
    }

    fn run_aside(&mut self, work: &mut (dyn FnMut(&AtomicBool) + Send)) {
        work(&AtomicBool::new(false));
    }
}
