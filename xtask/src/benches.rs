//! `cargo bench` as a user runs it: listing the benchmarks, and with a filter.
//!
//! A filter skips most of the closures of every file. A file that checks what a skipped closure
//! should have done would fail for everyone who asks for something else.

use std::process::Command;

use crate::project::{self, Project};
use crate::step;

/// An id of each file, so that a file that lists nothing is noticed.
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

/// The page on which users find the ids.
const PAGE: &str = "docs/benchmarking.md";

/// A short benchmark of one file; the others have nothing to run.
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
    let page = project::read(&project.root().join(PAGE))?;
    let unknown = unknown(&page, &ids);
    if !unknown.is_empty() {
        return Err(format!(
            "the table of {PAGE} names what `cargo bench -- --list` does not: {}",
            unknown.join(", ")
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
        "--package",
        "strowger-benches",
    ]);
    // This checks that benchmarks list and run, not their speed.
    cargo.args(["--profile", "dev", "--"]).args(args);
    cargo
}

/// Parses the ids from the output of criterion's `--list`.
fn ids(listed: &str) -> Vec<&str> {
    let ids = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": benchmark"));
    ids.collect()
}

/// Returns the ids in the page's table that do not exist. `...` stands for anything, `N` for a
/// number, and a name that begins with `/` or `...` for the end of an id.
fn unknown<'a>(page: &'a str, ids: &[&str]) -> Vec<&'a str> {
    let rows = page.lines();
    let rows = rows.skip_while(|line| !line.starts_with("| name in the documents | id here |"));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let names = rows.flat_map(|row| {
        let (theirs, ours) = row.trim_matches('|').split_once('|').unwrap_or((row, ""));
        let the_same = ours.trim_start().starts_with("the same");
        // Files follow the ids.
        let ours = ours.split(", in `").next().unwrap_or_default();
        let theirs = if the_same { theirs } else { "" };
        [theirs, ours].map(|cell| cell.split('`').skip(1).step_by(2))
    });
    let is_known = |name: &&str| {
        let name = name
            .strip_suffix("/N")
            .map_or_else(|| (*name).to_owned(), |name| format!("{name}/..."));
        let name = match name.strip_prefix('/') {
            Some(end) => format!(".../{end}"),
            None => name,
        };
        let (start, end) = name.split_once("...").unwrap_or((&name, ""));
        let is_whole = !name.contains("...");
        ids.iter()
            .any(|id| id.starts_with(start) && id.ends_with(end) && (!is_whole || *id == name))
    };
    names.flatten().filter(|name| !is_known(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_read() {
        let listed = "actor_spawn_single: benchmark\nie/pdi/marshal: benchmark\n\n0 tests\n";
        assert_eq!(ids(listed), ["actor_spawn_single", "ie/pdi/marshal"]);
    }

    #[test]
    fn ids_that_the_page_makes_up_are_found() {
        let ids = [
            "message_send",
            "spawn/10",
            "spawn/100",
            "one_panic",
            "marshal/a",
        ];
        let page = "| name in the documents | id here |\n|---|---|\n\
                    | `message_send` | the same: there and back |\n\
                    | `other` | `spawn/N`, `/100`, `..._panic` |\n\
                    | `marshal/...` | the same, in `message_operations` |\n";
        assert_eq!(unknown(page, &ids), [""; 0]);
        let page = "| name in the documents | id here |\n|---|---|\n\
                    | `message` | the same |\n| `a` | `view/...`, `/7`, `spawn/10` |\n\n`b`\n";
        assert_eq!(unknown(page, &ids), ["message", "view/...", "/7"]);
    }
}
