//! Tools through their actors, beside the system's own calls and a plain script engine.
//!
//! Every call has different arguments from the one before, and every result is checked.

mod code;
mod files;
mod folders;
mod mcp;
mod programs;
#[path = "../../../crates/cli/src/compose/agents/sandbox.rs"]
mod sandbox;
mod streams;
mod stress;

use strowger_bench::{Estimate, Plan};

fn main() {
    if folders::is_search_alone() {
        return;
    }
    let plan = Plan::from_args(&["tools", "stress"], Estimate::Median);
    let folder = tempfile::tempdir().expect("a temporary folder");
    if plan.part() == "stress" {
        stress::run(&plan, folder.path());
        return;
    }
    let mut cases = files::cases(folder.path());
    cases.extend(folders::cases(&plan, folder.path()));
    cases.extend(code::cases(plan.is_quick()));
    cases.extend(programs::cases(plan.is_quick()));
    cases.extend(streams::cases());
    cases.extend(mcp::cases());
    plan.run(cases);
}
