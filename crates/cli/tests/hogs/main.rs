//! Nodes with components that compute all the time or name what cannot be read: real processes on
//! the real clock. One test at a time, in a program of their own, because they are about time.

#[path = "../strowger/binary.rs"]
mod binary;
mod files;
mod plain_files;
#[path = "../strowger/running.rs"]
#[expect(dead_code, reason = "most of it is for other tests of the binary")]
mod running;
mod time;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The machine, for one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static MACHINE: Mutex<()> = Mutex::new(());
    MACHINE.lock().unwrap_or_else(PoisonError::into_inner)
}
