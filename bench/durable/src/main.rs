//! Durable actors beside embedded databases by hand, with the same durability.
//!
//! By hand, callers await a thread that writes what waits as one transaction: what a service does
//! that must not block its workers. Every value that was acknowledged is read back from a database
//! that was opened again.

mod database;
mod latency;
mod memory;
mod register;
mod save;

use std::path::PathBuf;

use strowger_bench::{CountingAllocator, Estimate, Plan};
use strowger_durable::store::Durability;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Maximum number of writes in a transaction, for all subjects.
const GROUP: usize = 1024;

fn main() {
    let plan = Plan::from_args(&["durable"], Estimate::Median);
    // Below the current folder, because the folder for temporary files may be memory.
    let folder = tempfile::tempdir_in(".").expect("the current folder is writable");
    let place = Place(folder.path().to_owned());
    plan.run(save::cases("save", Durability::Process, 1, 1, &place));
    plan.run(save::cases(
        "save_10k",
        Durability::Process,
        10_000,
        256,
        &place,
    ));
    plan.run(save::cases(
        "save_10k_disk",
        Durability::Disk,
        10_000,
        256,
        &place,
    ));
    latency::run(&plan, &place);
    let entities = if plan.is_quick() { 20_000 } else { 1_000_000 };
    plan.run(memory::cases(entities, &place));
}

/// The folder for databases.
#[derive(Clone)]
pub struct Place(PathBuf);

impl Place {
    /// Returns the path of a database that does not exist yet.
    #[must_use]
    pub fn new_path(&self) -> PathBuf {
        let number = (0..).find(|number| !self.0.join(number.to_string()).exists());
        self.0.join(number.unwrap_or_default().to_string())
    }
}

/// Returns a value of 100 bytes that no other number has.
#[must_use]
pub fn value(number: u64) -> String {
    format!("{number:0100}")
}
