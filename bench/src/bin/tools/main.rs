//! Tools through their actors, beside the system's own calls.
//!
//! Every call has other arguments than the one before, and every result is looked at.

mod files;
mod streams;

use strowger_bench::{Pick, Plan};

fn main() {
    let plan = Plan::from_args(&["tools"], Pick::Median);
    let folder = tempfile::tempdir().expect("a folder of our own");
    let mut cases = files::cases(folder.path());
    cases.extend(streams::cases());
    plan.run(cases);
}
