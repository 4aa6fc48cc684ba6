//! `cargo xtask bugs`: bugs planted one at a time in the runtime, each of which must be found.

use std::process::{Command, Output};
use std::time::Duration;

use crate::binaries::{self, Binary};
use crate::project::Project;
use crate::{Outcome, term};

/// Where the bugs are listed, as the variants of an enum.
const LIST: &str = "crates/runtime/src/planted.rs";

/// Seeds of the storm that run with each bug.
const SEEDS: &str = "0..200";

/// No test takes so long.
const LIMIT: Duration = Duration::from_secs(300);

/// Plants each bug, or those that `args` name, and says what found it.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    let bugs = bugs(project)?;
    if args.iter().any(|arg| arg == "--list") {
        bugs.iter().for_each(|bug| term::line(bug));
        return Ok(());
    }
    if let Some(unknown) = args.iter().find(|name| !bugs.contains(name)) {
        return Err(format!("no bug `{unknown}`: {}", bugs.join(", ")));
    }
    let wanted = if args.is_empty() { &bugs } else { args };
    hunt(project, wanted).map(|found| term::note(&found))
}

/// Plants all of them; the phrase for the summary of `cargo xtask ci`.
pub(crate) fn all(project: &Project) -> Result<Option<String>, String> {
    hunt(project, &bugs(project)?).map(Some)
}

fn hunt(project: &Project, bugs: &[String]) -> Result<String, String> {
    let mut cargo = project.cargo();
    cargo
        .env("RUSTFLAGS", "--cfg strowger_bug")
        .env("CARGO_TARGET_DIR", project.target().join("bugs"))
        .args([
            "test", "--locked", "-p", "strowger", "--lib", "--test", "storm",
        ]);
    let mut binaries = binaries::build(&mut cargo)?;
    // The storm first: it is the one that is to find them.
    binaries.sort_by_key(|one| one.name != "storm");
    let storm = binaries.first().ok_or("cargo built no tests")?;
    if let Some(found) = finds(storm, "")? {
        return Err(format!("without any bug: {found}"));
    }
    let mut missed = Vec::new();
    for bug in bugs {
        let mut found = None;
        for binary in &binaries {
            found = finds(binary, bug)?;
            if found.is_some() {
                break;
            }
        }
        let by = found.as_deref().unwrap_or("nothing");
        term::note(&format!("  {bug:<28} found by {by}"));
        if found.is_none() {
            missed.push(bug.as_str());
        }
    }
    let count = bugs.len();
    if missed.is_empty() {
        return Ok(format!("{count} of {count} planted bugs found"));
    }
    let missed = missed.join(", ");
    Err(format!("no test finds {missed}"))
}

/// Runs the tests of a binary with a bug; what found it.
fn finds(binary: &Binary, bug: &str) -> Result<Option<String>, String> {
    let mut command: Command = binary.command();
    command
        .env("STROWGER_BUG", bug)
        .env("STROWGER_STORM_SEEDS", SEEDS)
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

/// The names of the bugs, from the source.
fn bugs(project: &Project) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(project.root().join(LIST))
        .map_err(|error| format!("cannot read {LIST}: {error}"))?;
    let bugs = variants(&text);
    if bugs.is_empty() {
        return Err(format!("{LIST} has no `enum Bug`"));
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
