//! Durable actors beside embedded databases by hand, with the same durability.
//!
//! All databases are on the disk, below the folder of this program. What was acknowledged is read
//! back from a database that was closed and opened again.

mod database;
mod latency;
mod memory;
mod peer;
mod register;
mod save;
mod start;

use std::path::PathBuf;

use strowger_bench::{CountingAllocator, Estimate, Plan};
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Maximum number of writes in a group, for all subjects.
const GROUP: usize = 1024;

fn main() {
    let plan = Plan::from_args(&["durable"], Estimate::Median);
    let databases = Databases::create();
    save::measure(&plan, &databases);
    latency::measure(&plan, &databases);
    start::measure(&plan, &databases);
    memory::measure(&plan, &databases);
}

/// The folder of all databases, which is removed at the end.
struct Databases(TempDir);

impl Databases {
    /// Creates the folder beside the program: the folder for temporary files may be in memory.
    fn create() -> Self {
        let program = std::env::current_exe().expect("the program has a path");
        let beside = program.parent().expect("the program is in a folder");
        Self(tempfile::tempdir_in(beside).expect("the folder of the program is writable"))
    }

    /// Returns the path of a database that does not exist yet.
    fn path(&self, row: &str, subject: &str) -> PathBuf {
        self.0.path().join(format!("{row}-{subject}"))
    }
}

/// Returns a value of 100 bytes that no other number has.
fn value(number: u64) -> String {
    format!("{number:0100}")
}

/// Returns the key of a register.
fn key(number: u64) -> String {
    format!("register-{number}")
}
