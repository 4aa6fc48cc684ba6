//! Host operations of the current call that may take long.
//!
//! A call on a worker frees the worker for the time of the operation. The processor time of the
//! operation is that of the call, although no tick interrupts it: operations check the call between
//! their steps, and so does the end of each.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wasmtime::Trap;

use super::StoreData;
use super::cpu_meter::ThreadInstant;
use super::tick::{CallPlace, is_worker};
use crate::host_call::HostCall;
use crate::seeded_bug::{Bug, seeded};

/// Interval at which a call that waits for work aside checks whether its actor was killed.
const KILL_CHECK_INTERVAL: Duration = Duration::from_millis(10);

impl StoreData {
    /// Performs a host operation that may take long. The error ends the call, whose limit is
    /// exceeded or whose actor was killed.
    pub(super) fn host_work<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> T,
    ) -> wasmtime::Result<T> {
        self.begin_host_work();
        let done = match self.call_place() {
            CallPlace::Worker => off_worker(|| work(self)),
            CallPlace::Thread { .. } => work(self),
        };
        match self.may_continue() {
            true => Ok(done),
            false => Err(Trap::Interrupt.into()),
        }
    }
}

/// Runs work while another thread does the other work of this worker, if this thread is one.
pub(crate) fn off_worker<T>(work: impl FnOnce() -> T) -> T {
    match is_worker() && !seeded(Bug::HostWorkHoldsWorker) {
        true => tokio::task::block_in_place(work),
        false => work(),
    }
}

impl HostCall for StoreData {
    fn may_continue(&mut self) -> bool {
        self.check_time()
    }

    fn run_aside(&mut self, work: &mut (dyn FnMut(&AtomicBool) + Send)) {
        // With virtual time, everything stays on the only thread.
        if self.call_place() == CallPlace::Worker && !is_worker() {
            return work(&AtomicBool::new(false));
        }
        self.pause_for_host();
        let began = Instant::now();
        let (stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let waiter = thread::current();
        let cpu = thread::scope(|scope| {
            let work = || {
                let began = ThreadInstant::now();
                work(&stop);
                done.store(true, Ordering::Release);
                waiter.unpark();
                ThreadInstant::now().since(began).cpu
            };
            let thread = thread::Builder::new().name("component-work".to_owned());
            let Ok(thread) = thread.spawn_scoped(scope, work) else {
                return None;
            };
            while !done.load(Ordering::Acquire) && !thread.is_finished() {
                thread::park_timeout(KILL_CHECK_INTERVAL);
                if self.is_unwanted() {
                    stop.store(true, Ordering::Relaxed);
                }
            }
            thread.join().ok()
        });
        match cpu {
            Some(cpu) => self.usage.charge_measured(cpu),
            // Without a thread the work was not done, and the operation fails.
            None => {
                let now = tokio::time::Instant::now();
                if let Some(omitted) = self.usage.log_limits().faults.take(now) {
                    tracing::warn!(omitted, "no thread for work of a component");
                }
            }
        }
        self.resume_after_host(began.elapsed());
    }
}
