//! Pinning of threads and tokio workers to processors.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use tokio::runtime::{Builder, Runtime};

/// `true` if threads run wherever the system puts them.
static UNPINNED: AtomicBool = AtomicBool::new(false);

/// Turns [`pin`] into a no-op from now on.
pub(crate) fn disable_pinning() {
    UNPINNED.store(true, Ordering::Relaxed);
}

/// Restricts the calling thread to one processor, if the machine has it.
///
/// A scheduler that puts two workers on one processor turns a row about two processors into a row
/// about one, and does so only for some subjects and some rounds.
pub fn pin(processor: usize) {
    if UNPINNED.load(Ordering::Relaxed) {
        return;
    }
    let mut set = CpuSet::new();
    if set.set(processor).is_ok() {
        // On a machine with fewer processors, the thread stays unpinned.
        let _ = sched_setaffinity(Pid::from_raw(0), &set);
    }
}

/// Starts a tokio runtime with `count` workers, each pinned to its own processor, beginning with
/// `first`.
///
/// # Panics
/// If the system cannot start the threads.
#[must_use]
pub fn workers(first: usize, count: usize) -> Runtime {
    let started = AtomicUsize::new(0);
    Builder::new_multi_thread()
        .worker_threads(count)
        // Workers start first; later threads are for blocking work and run anywhere.
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
