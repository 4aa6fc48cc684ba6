use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use tokio::runtime::{Builder, Runtime};

/// Says that threads run where the system puts them.
static UNPINNED: AtomicBool = AtomicBool::new(false);

/// Makes [`pin`] do nothing from here on.
pub(crate) fn leave_to_the_system() {
    UNPINNED.store(true, Ordering::Relaxed);
}

/// Lets the calling thread run on one processor only; where that is not possible, on any.
///
/// A scheduler that packs two workers on one processor turns a row about two into one about one,
/// and does so for some subjects and some rounds.
pub fn pin(processor: usize) {
    if UNPINNED.load(Ordering::Relaxed) {
        return;
    }
    let mut set = CpuSet::new();
    if set.set(processor).is_ok() {
        // A machine with fewer processors runs them as it can.
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// Starts tokio with `count` workers, each on a processor of its own, the first on `first`.
///
/// # Panics
/// When the system starts no threads.
#[must_use]
pub fn workers(first: usize, count: usize) -> Runtime {
    let started = AtomicUsize::new(0);
    Builder::new_multi_thread()
        .worker_threads(count)
        // Workers come first; threads for blocking work run anywhere.
        .on_thread_start(move || {
            let worker = started.fetch_add(1, Ordering::Relaxed);
            if worker < count {
                pin(first + worker);
            }
        })
        .enable_all()
        .build()
        .expect("tokio starts its workers")
}
