//! `cargo xtask bugs`: bugs planted one at a time, each of which must be found.

use std::process::{Command, Output};
use std::time::Duration;

use crate::binaries::{self, Binary};
use crate::project::Project;
use crate::{Outcome, term};

/// Where bugs are planted, and what is to find them.
struct Field {
    /// The sources that list them, as the variants of an enum.
    lists: &'static [&'static str],
    /// What `cargo test` builds.
    tests: &'static [&'static str],
    /// The binary that runs first, and the tests of it that count.
    first: (&'static str, &'static str),
    /// The variable for the seeds that run with each bug, and its value; none where the clock is
    /// real.
    seeds: Option<(&'static str, &'static str)>,
}

const FIELDS: [Field; 3] = [
    Field {
        lists: &["crates/runtime/src/planted.rs"],
        tests: &[
            "-p",
            "strowger",
            "--lib",
            "--test",
            "storm",
            "--test",
            "behaviour",
            "--test",
            "parallel",
            "--test",
            "promises",
        ],
        first: ("storm", "no_letter"),
        seeds: Some(("STROWGER_STORM_SEEDS", "0..200")),
    },
    Field {
        lists: &[
            "crates/pfcp/src/planted.rs",
            "crates/pfcp-node/src/planted.rs",
        ],
        tests: &["-p", "strowger-pfcp-node", "--lib", "--test", "lifetime"],
        first: ("strowger_pfcp_node", "simulation::both"),
        seeds: Some(("STROWGER_N4_SEEDS", "0..400")),
    },
    Field {
        lists: &["crates/wasm/src/planted.rs"],
        tests: &["-p", "strowger-wasm", "--test", "fairness"],
        first: ("fairness", ""),
        seeds: None,
    },
];

/// No test takes so long.
const LIMIT: Duration = Duration::from_secs(300);

/// Plants each bug, or those that `args` name, and says what found it.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    let mut known = Vec::new();
    for field in &FIELDS {
        known.extend(bugs(project, field)?);
    }
    if args.iter().any(|arg| arg == "--list") {
        known.iter().for_each(|bug| term::line(bug));
        return Ok(());
    }
    if let Some(unknown) = args.iter().find(|name| !known.contains(name)) {
        return Err(format!("no bug `{unknown}`: {}", known.join(", ")));
    }
    hunt(project, args).map(|found| term::note(&found))
}

/// Plants all of them; the phrase for the summary of `cargo xtask ci`.
pub(crate) fn all(project: &Project) -> Result<Option<String>, String> {
    hunt(project, &[]).map(Some)
}

/// Plants bugs: those wanted, or all.
fn hunt(project: &Project, wanted: &[String]) -> Result<String, String> {
    let (mut count, mut missed) = (0, Vec::new());
    for field in &FIELDS {
        let mut bugs = bugs(project, field)?;
        bugs.retain(|bug| wanted.is_empty() || wanted.contains(bug));
        if !bugs.is_empty() {
            count += bugs.len();
            missed.extend(hunt_in(project, field, &bugs)?);
        }
    }
    if missed.is_empty() {
        return Ok(format!("{count} of {count} planted bugs found"));
    }
    let missed = missed.join(", ");
    Err(format!("no test finds {missed}"))
}

/// Plants the bugs of one field; returns those that nothing finds.
fn hunt_in(project: &Project, field: &Field, bugs: &[String]) -> Result<Vec<String>, String> {
    let mut cargo = project.cargo();
    cargo
        .env("RUSTFLAGS", "--cfg strowger_bug")
        .env("CARGO_TARGET_DIR", project.target().join("bugs"))
        .args(["test", "--locked"])
        .args(field.tests);
    let mut binaries = binaries::build(&mut cargo)?;
    // The simulation first: it is the one that is to find them.
    binaries.sort_by_key(|one| one.name != field.first.0);
    let first = binaries.first().ok_or("cargo built no tests")?;
    if let Some(found) = finds(first, field, "")? {
        return Err(format!("without any bug: {found}"));
    }
    let mut missed = Vec::new();
    for bug in bugs {
        let mut found = None;
        for binary in &binaries {
            found = finds(binary, field, bug)?;
            if found.is_some() {
                break;
            }
        }
        let by = found.as_deref().unwrap_or("nothing");
        term::note(&format!("  {bug:<28} found by {by}"));
        if found.is_none() {
            missed.push(bug.clone());
        }
    }
    Ok(missed)
}

/// Runs the tests of a binary with a bug; what found it.
fn finds(binary: &Binary, field: &Field, bug: &str) -> Result<Option<String>, String> {
    let mut command: Command = binary.command();
    if binary.name == field.first.0 && !field.first.1.is_empty() {
        command.arg(field.first.1);
    }
    command
        .env("STROWGER_BUG", bug)
        .envs(field.seeds)
        .env("RUST_BACKTRACE", "0");
    let Some(output) = binaries::output_within(&mut command, LIMIT)? else {
        return Ok(Some(format!("{}, which does not end", binary.name)));
    };
    Ok((!output.status.success()).then(|| format!("{}: {}", binary.name, first_failure(&output))))
}

/// Which test failed; for the storm, at which seed.
fn first_failure(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stdout);
    let seed = said
        .lines()
        .find_map(|line| line.split_once(" fails; replay it"))
        .map(|(seed, _)| seed.to_owned());
    let failed = said
        .lines()
        .find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .map(str::to_owned);
    seed.or(failed)
        .unwrap_or_else(|| format!("it ended with {}", output.status))
}

/// The names of the bugs of a field, from the sources.
fn bugs(project: &Project, field: &Field) -> Result<Vec<String>, String> {
    let mut bugs = Vec::new();
    for list in field.lists {
        let text = std::fs::read_to_string(project.root().join(list))
            .map_err(|error| format!("cannot read {list}: {error}"))?;
        let found = variants(&text);
        if found.is_empty() {
            return Err(format!("{list} has no `enum Bug`"));
        }
        bugs.extend(found);
    }
    Ok(bugs)
}

fn variants(text: &str) -> Vec<String> {
    text.lines()
        .skip_while(|line| !line.contains("enum Bug {"))
        .skip(1)
        .take_while(|line| *line != "}")
        .map(str::trim)
        .filter(|line| !line.starts_with("//"))
        .map(|line| line.trim_end_matches(',').to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_are_the_variants() {
        let text = "//! enum\npub(crate) enum Bug {\n    /// One.\n    One,\n    Two,\n}\n\
                    fn x() {}\n";
        assert_eq!(variants(text), ["One", "Two"]);
    }
}
