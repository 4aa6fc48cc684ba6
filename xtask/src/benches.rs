//! `cargo bench` as a user runs it: listed, and with a filter.
//!
//! A filter leaves out most of the closures of every target. One that checks what a left-out
//! closure should have done fails for everybody who asks for something else.

use std::process::Command;

use crate::project::Project;
use crate::step;

/// An id of each target, so that a target that lists nothing is noticed.
const LISTED: &[&str] = &[
    "actor_spawn_single",
    "actor_state_read_access",
    "builder/far",
    "marshal/heartbeat_minimal",
    "message_send_receive",
    "message_pubsub_fanout/10",
    "resource_memory_per_actor/1",
    "registry_lookup_scale/10",
    "supervisor_tree_small",
];

/// One that is short and in one target; the others have nothing to do.
const FILTER: &str = "supervisor_tree_small_as_documented";

/// Lists all benchmarks, then runs one.
pub(crate) fn check(project: &Project) -> Result<Option<String>, String> {
    let listed = step::output(&mut bench(project, &["--list"]))?;
    let ids = ids(&listed);
    let missing: Vec<&str> = LISTED
        .iter()
        .filter(|id| !ids.contains(id))
        .copied()
        .collect();
    if !missing.is_empty() {
        return Err(format!(
            "`cargo bench -- --list` names no {}: update the benchmarks, or `LISTED` in \
             xtask/src/benches.rs and the table in docs/benchmarking.md",
            missing.join(", ")
        ));
    }
    let said = step::output(&mut bench(project, &[FILTER, "--quick"]))?;
    let figures = said.lines().filter(|line| line.contains("time:")).count();
    if figures != 1 {
        return Err(format!(
            "`cargo bench -- {FILTER}` printed {figures} figures instead of one:\n{said}"
        ));
    }
    Ok(Some(format!("{} benchmarks", ids.len())))
}

fn bench(project: &Project, args: &[&str]) -> Command {
    let mut cargo = project.cargo();
    // Without the binary, which has no benchmarks and takes minutes to build.
    cargo.args([
        "bench",
        "--quiet",
        "--locked",
        // Whether they list and run is asked here, not how fast: without the optimised build.
        "--profile",
        "dev",
        "--package",
        "strowger-benches",
        "--",
    ]);
    cargo.args(args);
    cargo
}

/// The ids in the output of criterion's `--list`.
fn ids(listed: &str) -> Vec<&str> {
    let ids = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": benchmark"));
    ids.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_read() {
        let listed = "actor_spawn_single: benchmark\nie/pdi/marshal: benchmark\n\n0 tests\n";
        assert_eq!(ids(listed), ["actor_spawn_single", "ie/pdi/marshal"]);
    }
}
