//! Tools through their actors, beside the system's own calls and a plain engine for scripts.
//!
//! Every call has other arguments than the one before, and every result is looked at.

mod code;
mod files;
mod programs;
#[path = "../../../crates/cli/src/compose/sandbox.rs"]
mod sandbox;
mod streams;
mod stress;

use strowger_bench::{Pick, Plan};

fn main() {
    let plan = Plan::from_args(&["tools", "stress"], Pick::Median);
    let folder = tempfile::tempdir().expect("a folder of our own");
    if plan.part() == "stress" {
        stress::run(&plan, folder.path());
        return;
    }
    let mut cases = files::cases(folder.path());
    cases.extend(code::cases(plan.is_quick()));
    cases.extend(programs::cases(plan.is_quick()));
    cases.extend(streams::cases());
    plan.run(cases);
}
