//! `cargo xtask bugs`: seeded bugs, enabled one at a time, each of which the tests must find.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::binaries::{self, Binary};
use crate::project::{self, Project};
use crate::{Outcome, process, term};

/// A set of seeded bugs, and the tests that must find them, as `bugs.toml` describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BugSet {
    lists: Vec<String>,
    package: String,
    tests: Vec<String>,
    #[serde(default)]
    filter: HashMap<String, String>,
    seeds: Option<(String, String)>,
    real: Vec<String>,
    aimed: HashMap<String, String>,
}

/// Returns all sets.
fn read_sets() -> Result<Vec<BugSet>, String> {
    #[derive(Deserialize)]
    struct BugSets {
        set: Vec<BugSet>,
    }
    let sets: BugSets = toml::from_str(include_str!("bugs.toml"))
        .map_err(|error| format!("xtask/src/bugs.toml: {error}"))?;
    Ok(sets.set)
}

/// Time limit of a test binary. A timeout proves nothing: the machine may be slow.
const BINARY_TIMEOUT: Duration = Duration::from_secs(300);

/// Options of `cargo xtask bugs`.
#[derive(Debug, clap::Args)]
pub(crate) struct BugsArgs {
    /// Seed only these bugs
    bugs: Vec<String>,
    /// Print the names of the bugs
    #[arg(long)]
    list: bool,
}

/// Enables each bug, or those named by `args`, and reports which test found it.
pub(crate) fn run(project: &Project, args: &BugsArgs) -> Outcome {
    let mut known = Vec::new();
    for set in &read_sets()? {
        known.extend(bugs(project, set)?);
    }
    if args.list {
        known.iter().for_each(|bug| term::line(bug));
        return Ok(());
    }
    if let Some(unknown) = args.bugs.iter().find(|name| !known.contains(name)) {
        return Err(format!("no bug `{unknown}`: {}", known.join(", ")));
    }
    run_bugs(project, &args.bugs).map(|found| term::note(&found))
}

/// Enables all bugs and returns the phrase for the summary of `cargo xtask ci`.
pub(crate) fn all(project: &Project) -> Result<Option<String>, String> {
    run_bugs(project, &[]).map(Some)
}

/// Enables the wanted bugs, or all.
fn run_bugs(project: &Project, wanted: &[String]) -> Result<String, String> {
    let (mut count, mut missed) = (0, Vec::new());
    for set in &read_sets()? {
        let mut bugs = bugs(project, set)?;
        bugs.retain(|bug| wanted.is_empty() || wanted.contains(bug));
        if !bugs.is_empty() {
            count += bugs.len();
            missed.extend(run_set(project, set, &bugs)?);
        }
    }
    if missed.is_empty() {
        return Ok(format!("{count} of {count} seeded bugs found"));
    }
    let missed = missed.join(", ");
    Err(format!("no test finds {missed}"))
}

/// Enables bugs of one set and returns those that no test finds.
fn run_set(project: &Project, set: &BugSet, bugs: &[String]) -> Result<Vec<String>, String> {
    let binaries = test_binaries(project, set)?;
    let mut sound = HashSet::new();
    let mut missed = Vec::new();
    for bug in bugs {
        let begun = Instant::now();
        let mut found = None;
        for (at, only) in order(&binaries, set, bug) {
            let binary = &binaries[at];
            // A test that fails without a bug would find every bug.
            let whole = (at, Vec::new());
            if !sound.contains(&whole) && sound.insert((at, only.clone())) {
                first_finder(binary, set, "", &only)?;
            }
            found = first_finder(binary, set, bug, &only)?;
            if found.is_some() {
                break;
            }
        }
        let by = found.as_deref().unwrap_or("nothing");
        let took = term::format_duration(begun.elapsed());
        term::note(&format!("  {bug:<28} {took:>8}  found by {by}"));
        if found.is_none() {
            missed.push(bug.clone());
        }
    }
    Ok(missed)
}

/// Returns the binaries of a set, in its order. The build is that of `cargo xtask test`: the tests
/// contain the bugs, and none is active.
fn test_binaries(project: &Project, set: &BugSet) -> Result<Vec<Binary>, String> {
    let mut cargo = project.cargo();
    cargo.args(["test", "--workspace", "--locked"]);
    let built = binaries::build(&mut cargo)?;
    let folder = project.root().join(&set.package);
    let find = |name: &String| {
        let is_it = |one: &&Binary| one.name == *name && one.folder == folder;
        let found = built.iter().find(is_it).cloned();
        found.ok_or_else(|| format!("cargo built no test program `{name}`"))
    };
    set.tests.iter().map(find).collect()
}

/// Returns the binaries that look for a bug, in order, with their tests if not all run. The test
/// aimed at the bug comes first.
fn order(binaries: &[Binary], set: &BugSet, bug: &str) -> Vec<(usize, Vec<String>)> {
    let aimed = set.aimed.get(bug).and_then(|aim| {
        let (name, test) = aim.split_once(' ')?;
        let at = binaries.iter().position(|one| one.name == name)?;
        Some((at, vec![test.to_owned()]))
    });
    let all = (0..binaries.len()).map(|at| (at, Vec::new()));
    aimed.into_iter().chain(all).collect()
}

/// The result of running a binary.
#[derive(Debug, PartialEq, Eq)]
enum BinaryResult {
    Passed,
    /// The names of the failed tests, if the output has them, and a description.
    Failed(Vec<String>, String),
    /// The binary exceeded the time limit.
    TimedOut,
}

/// Runs tests of a binary, or all of them, with a bug and returns what found it. Without a bug, a
/// failure or an end by the time limit is an error: such tests would find every bug.
fn first_finder(
    binary: &Binary,
    set: &BugSet,
    bug: &str,
    only: &[String],
) -> Result<Option<String>, String> {
    let name = &binary.name;
    let mut endless = false;
    let found = verdict(set.real.contains(name), only, |tests| {
        let end = run_tests(binary, set, bug, tests)?;
        endless |= end == BinaryResult::TimedOut;
        Ok(end)
    })?;
    match found {
        Some(found) if bug.is_empty() => Err(format!("without any bug: {name}: {found}")),
        None if bug.is_empty() && endless => Err(format!(
            "without any bug: {name} takes longer than {BINARY_TIMEOUT:?}"
        )),
        found => Ok(found.map(|found| format!("{name}: {found}"))),
    }
}

/// Returns what a failure proves, if anything: a test on the real clock must fail twice. `run`
/// receives the tests that count, or none if all do; the first run receives `only`.
fn verdict(
    is_real: bool,
    only: &[String],
    mut run: impl FnMut(&[String]) -> Result<BinaryResult, String>,
) -> Result<Option<String>, String> {
    let BinaryResult::Failed(tests, found) = run(only)? else {
        return Ok(None);
    };
    if !is_real {
        return Ok(Some(found));
    }
    match run(&tests)? {
        BinaryResult::Failed(_, again) => Ok(Some(again)),
        BinaryResult::Passed | BinaryResult::TimedOut => Ok(None),
    }
}

/// Runs tests of a binary with a bug: the named ones, or those that count.
fn run_tests(
    binary: &Binary,
    set: &BugSet,
    bug: &str,
    tests: &[String],
) -> Result<BinaryResult, String> {
    let mut command = binary.command();
    if !tests.is_empty() {
        command.arg("--exact").args(tests);
    } else {
        command.args(set.filter.get(&binary.name));
    }
    command
        .env("STROWGER_BUG", bug)
        .envs(set.seeds.clone())
        .env("RUST_BACKTRACE", "0");
    let Some(output) = process::output_within(&mut command, BINARY_TIMEOUT)? else {
        return Ok(BinaryResult::TimedOut);
    };
    if output.status.success() {
        return Ok(BinaryResult::Passed);
    }
    let output_text = String::from_utf8_lossy(&output.stdout);
    let failed = failed_tests(&output_text);
    let seed = output_text
        .lines()
        .find_map(|line| line.split_once(" fails; replay it"));
    let found = seed
        .map(|(seed, _)| seed.to_owned())
        .or_else(|| failed.first().cloned());
    let found = found.unwrap_or_else(|| format!("it ended with {}", output.status));
    Ok(BinaryResult::Failed(failed, found))
}

/// Returns the failed tests.
fn failed_tests(output_text: &str) -> Vec<String> {
    let failed = output_text
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    failed.map(str::to_owned).collect()
}

/// Returns the names of the bugs of a set, from the sources.
fn bugs(project: &Project, set: &BugSet) -> Result<Vec<String>, String> {
    let mut bugs = Vec::new();
    for list in &set.lists {
        let found = variants(&project::read(&project.root().join(list))?);
        if found.is_empty() {
            return Err(format!("{list} has no `bugs!`"));
        }
        bugs.extend(found);
    }
    Ok(bugs)
}

fn variants(text: &str) -> Vec<String> {
    text.lines()
        .skip_while(|line| !line.contains("bugs! {"))
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

    /// Returns the verdict on runs with these results, and the tests that the last run received.
    fn judged(is_real: bool, ends: Vec<BinaryResult>) -> (Option<String>, Vec<String>) {
        let (mut ends, mut given) = (ends.into_iter(), Vec::new());
        let found = verdict(is_real, &[], |tests| {
            given = tests.to_vec();
            ends.next().ok_or_else(|| "one run too many".to_owned())
        });
        (found.expect("as many runs as there are ends"), given)
    }

    fn failed(test: &str) -> BinaryResult {
        BinaryResult::Failed(vec![test.to_owned()], test.to_owned())
    }

    #[test]
    fn real_clock_failure_counts_only_if_repeated() {
        let found = Some("one".to_owned());
        let twice = judged(true, vec![failed("one"), failed("one")]);
        assert_eq!(twice, (found.clone(), vec!["one".to_owned()]));
        assert_eq!(
            judged(true, vec![failed("one"), BinaryResult::Passed]).0,
            None
        );
        assert_eq!(
            judged(true, vec![failed("one"), BinaryResult::TimedOut]).0,
            None
        );
        assert_eq!(judged(false, vec![failed("one")]), (found, vec![]));
    }

    #[test]
    fn timed_out_run_finds_nothing() {
        for is_real in [false, true] {
            assert_eq!(judged(is_real, vec![BinaryResult::TimedOut]).0, None);
            assert_eq!(judged(is_real, vec![BinaryResult::Passed]).0, None);
        }
    }

    #[test]
    fn aimed_test_runs_first() {
        let sets = read_sets().expect("they are described");
        let set = &sets[1];
        let (bug, aim) = set.aimed.iter().next().expect("one is aimed at");
        let (binary, test) = aim.split_once(' ').expect("a test follows");
        let binaries = ["first", binary].map(Binary::named);
        let aimed = order(&binaries, set, bug);
        let all = [(0, vec![]), (1, vec![])];
        assert_eq!(aimed[0], (1, vec![test.to_owned()]));
        assert_eq!(aimed[1..], all);
        assert_eq!(order(&binaries, set, "Other"), all);
    }

    #[test]
    fn aimed_bugs_exist() {
        let project = Project::locate().expect("the repository");
        for set in read_sets().expect("they are described") {
            let known = bugs(&project, &set).expect("the sources list them");
            for (bug, aim) in &set.aimed {
                assert!(known.contains(bug), "{bug}");
                let runs = set
                    .tests
                    .iter()
                    .any(|name| aim.starts_with(&format!("{name} ")));
                assert!(runs, "no program for {aim}");
            }
        }
    }

    #[test]
    fn failed_tests_are_named() {
        let output_text = "test a::b ... ok\ntest a::c ... FAILED\ntest d ... FAILED\n";
        assert_eq!(failed_tests(output_text), ["a::c", "d"]);
    }

    #[test]
    fn bugs_are_the_enum_variants() {
        let text = "//! bugs\nstrowger_seeded_bug::bugs! {\n    /// One.\n    One,\n    Two,\n}\n\
                    fn x() {}\n";
        assert_eq!(variants(text), ["One", "Two"]);
    }
}
