//! `cargo bench` as a user runs it: listing the benchmarks, and with a filter.
//!
//! A filter skips most of the closures of every file. A file that checks what a skipped closure
//! should have done would fail for everyone who asks for something else.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::project::{self, Project};
use crate::{Outcome, report, step};

/// An id of each file, so that a file that lists nothing is noticed.
const SAMPLE_IDS: &[&str] = &[
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
    // This checks that benchmarks list and run, not their speed.
    let unoptimized = &["--profile", "dev"];
    let listed = step::output(&mut bench_command(project, unoptimized, &["--list"]))?;
    let ids = parse_ids(&listed);
    let missing: Vec<&str> = SAMPLE_IDS
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
    let documented = report::documented(project, "documents")?;
    let unmeasured: Vec<&str> = documented
        .iter()
        .filter(|one| !ids.iter().any(|id| measures(id, one)))
        .map(String::as_str)
        .collect();
    if !unmeasured.is_empty() {
        return Err(format!(
            "bench/rows.toml has figures of {}, which `cargo bench -- --list` does not name",
            unmeasured.join(", ")
        ));
    }
    let page = project::read(&project.root().join(PAGE))?;
    let unknown = unknown_ids(&page, &ids);
    if !unknown.is_empty() {
        return Err(format!(
            "the table of {PAGE} names what `cargo bench -- --list` does not: {}",
            unknown.join(", ")
        ));
    }
    let said = step::output(&mut bench_command(
        project,
        unoptimized,
        &[FILTER, "--quick"],
    ))?;
    let figures = said.lines().filter(|line| line.contains("time:")).count();
    if figures != 1 {
        return Err(format!(
            "`cargo bench -- {FILTER}` printed {figures} figures instead of one:\n{said}"
        ));
    }
    Ok(Some(format!("{} benchmarks", ids.len())))
}

/// Measures the benchmarks for which a document states a figure.
pub(crate) fn rows(project: &Project, quick: bool) -> Result<Vec<Value>, String> {
    let known = report::documented(project, "documents")?;
    let folder = project.folder("bench")?.join("criterion");
    // Results of earlier runs may be of benchmarks that are gone.
    let _ = std::fs::remove_dir_all(&folder);
    let mut cargo = bench_command(project, &["--bench", "benchmarks"], &["--noplot"]);
    cargo.args(quick.then_some("--quick"));
    step::run(cargo.env("CRITERION_HOME", &folder))?;
    let mut results = Vec::new();
    collect(&folder, &mut results)?;
    let mut rows = Vec::new();
    for (id, value) in results {
        let (id, subject) = match id.strip_suffix("_as_documented") {
            Some(id) => (id, "as documented"),
            None => (&*id, "strowger"),
        };
        let ids = known.iter().filter(|one| measures(id, one));
        rows.extend(
            ids.map(|id| json!({ "id": id, "subject": subject, "value": value, "unit": "ns" })),
        );
    }
    let of = |row: &Value| (row["id"].to_string(), row["subject"].to_string());
    rows.sort_by_key(of);
    let measured = |id: &&String| rows.iter().any(|row| row["id"] == **id);
    let missing: Vec<&str> = known
        .iter()
        .filter(|id| !measured(id))
        .map(|id| &**id)
        .collect();
    match missing.as_slice() {
        [] => Ok(rows),
        ids => Err(format!(
            "`cargo bench` measured no {}, which bench/rows.toml has",
            ids.join(", ")
        )),
    }
}

/// Returns `true` if the benchmark `id` measures what a document calls `documented`. The time
/// measured for one size represents all sizes.
fn measures(id: &str, documented: &str) -> bool {
    documented == id || documented.split('/').next() == Some(id)
}

/// Reads the results below a folder of criterion: ids and medians in nanoseconds.
fn collect(folder: &Path, results: &mut Vec<(String, f64)>) -> Outcome {
    let read = |name: &str| -> Result<Value, String> {
        let file = folder.join("new").join(name);
        let wrong = |error| format!("{} is no JSON: {error}", file.display());
        serde_json::from_str(&project::read(&file)?).map_err(wrong)
    };
    if folder.join("new").is_dir() {
        let (about, estimates) = (read("benchmark.json")?, read("estimates.json")?);
        let id = about["full_id"].as_str().unwrap_or_default().to_owned();
        let median = estimates["median"]["point_estimate"].as_f64();
        let median = median.ok_or_else(|| format!("no median of {id}"))?;
        results.push((id, (median * 10.0).round() / 10.0));
        return Ok(());
    }
    let unreadable = |error| format!("cannot read {}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?.path();
        if entry.is_dir() {
            collect(&entry, results)?;
        }
    }
    Ok(())
}

/// Returns the command that runs benchmarks, with options of cargo and of criterion.
fn bench_command(project: &Project, options: &[&str], args: &[&str]) -> Command {
    let mut cargo = project.cargo();
    // Without the binary, which has no benchmarks and takes minutes to build.
    cargo.args([
        "bench",
        "--quiet",
        "--locked",
        "--package",
        "strowger-benches",
    ]);
    cargo.args(options).arg("--").args(args);
    cargo
}

/// Parses the ids from the output of criterion's `--list`.
fn parse_ids(listed: &str) -> Vec<&str> {
    let ids = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": benchmark"));
    ids.collect()
}

/// Returns the ids in the page's table that do not exist. `...` stands for anything, `N` for a
/// number, and a name that begins with `/` or `...` for the end of an id.
fn unknown_ids<'a>(page: &'a str, ids: &[&str]) -> Vec<&'a str> {
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
    fn benchmark_list_is_parsed() {
        let listed = "actor_spawn_single: benchmark\nie/pdi/marshal: benchmark\n\n0 tests\n";
        assert_eq!(parse_ids(listed), ["actor_spawn_single", "ie/pdi/marshal"]);
    }

    #[test]
    fn unknown_documented_ids_are_found() {
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
        assert_eq!(unknown_ids(page, &ids), [""; 0]);
        let page = "| name in the documents | id here |\n|---|---|\n\
                    | `message` | the same |\n| `a` | `view/...`, `/7`, `spawn/10` |\n\n`b`\n";
        assert_eq!(unknown_ids(page, &ids), ["message", "view/...", "/7"]);
    }
}
