//! `cargo xtask test`: every test that needs only cargo, then those that need proof tools.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::process;
use crate::project::{self, Project};
use crate::runner;
use crate::step::{self, Step};
use crate::term;
use crate::tools;
use crate::typescript;

const FIXTURES_PROVE: &str = "captures by others decode, agree with tshark and encode to the same \
                              bytes; the facts of the specification agree with ours";

/// Options of `cargo xtask test`.
#[derive(Debug, clap::Args)]
pub(crate) struct TestArgs {
    /// Options of `cargo test`, such as -p strowger; by default, all tests run
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CARGO_OPTIONS"
    )]
    pub(crate) cargo: Vec<String>,
}

/// Runs the tests and returns how many passed; `args` go to `cargo test` (`-p strowger`).
pub(crate) fn run(project: &Project, args: &[String]) -> Result<String, String> {
    let mut surroundings = Vec::new();
    let mut tally = TestCounts::default();
    let mut doc_tally = TestCounts::default();
    let mut in_typescript = 0;
    // Naming targets excludes doctests, which cargo otherwise runs for packages with a library.
    // `--all-targets` would link a test program for each target without tests as well.
    let suites: &[&str] = if args.is_empty() {
        &["--workspace", "--tests", "--benches"]
    } else {
        &[]
    };
    let suites = command(project, suites, args);
    let doctests = command(project, &["--workspace", "--doc"], &[]);
    let mut steps = vec![
        Step::new("surroundings", "cargo xtask test", || {
            surroundings = check_surroundings(project)?;
            Ok(None)
        }),
        Step::new("tests", step::display(&suites()), || {
            tally.run(runner::limited(&suites())?)
        }),
    ];
    if args.is_empty() {
        steps.push(Step::new("doctests", step::display(&doctests()), || {
            // Without the runner of test programs: rustdoc speaks to its programs in its own way.
            doc_tally.run(doctests())
        }));
        steps.push(Step::new("typescript", "npm test", || {
            let (passed, said) = typescript::test(project)?;
            in_typescript = passed;
            Ok(Some(said))
        }));
    }
    let result = step::run_all(steps, true);
    for line in &surroundings {
        term::note(line);
    }
    let total = tally.passed + doc_tally.passed + in_typescript;
    let failed = tally.failed + doc_tally.failed;
    let said = format!("{total} passed, {failed} failed");
    term::line(&format!("tests: {said}"));
    result.map(|()| said)
}

/// Lists the tools and fixtures that are present, and what stays unproven without the others.
fn check_surroundings(project: &Project) -> Result<Vec<String>, String> {
    let mut lines = tools::check_all()?;
    if project.shared().join("pfcp/captures").is_dir() {
        lines.push(format!("fixtures: {}", project.shared().display()));
    } else if project::strict() {
        return Err(format!(
            "CI=true and no fixtures at {}",
            project.shared().display()
        ));
    } else {
        let at = project.shared().display().to_string();
        lines.push(format!(
            "fixtures: none at {at}; not proven: {FIXTURES_PROVE}"
        ));
    }
    Ok(lines)
}

fn command<'a>(
    project: &'a Project,
    what: &'a [&'a str],
    more: &'a [String],
) -> impl Fn() -> Command + 'a {
    move || {
        let mut cargo = project.cargo();
        cargo
            .args(["test", "--locked", "--no-fail-fast"])
            .args(what)
            .args(more);
        cargo
    }
}

/// The results of the test harnesses, added up.
#[derive(Default)]
struct TestCounts {
    binaries: usize,
    passed: u64,
    failed: u64,
    ignored: u64,
    failures: Vec<String>,
}

impl TestCounts {
    /// Runs the tests, passes their output on, and counts.
    fn run(&mut self, mut command: Command) -> Result<Option<String>, String> {
        let mut running = process::spawn(command.stdout(Stdio::piped()))?;
        let stdout = running.take_stdout()?;
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            self.parse_line(&line);
            term::line(&line);
        }
        let status = running.wait()?;
        let said = format!("{} passed, {} test programs", self.passed, self.binaries);
        if self.ignored > 0 {
            return Err(format!(
                "{said}, but {} are ignored: mend or remove them",
                self.ignored
            ));
        }
        if status.success() {
            return Ok(Some(said));
        }
        let names = if self.failures.is_empty() {
            "something did not build".to_owned()
        } else {
            self.failures.join(", ")
        };
        Err(format!("{} failed: {names}", self.failed.max(1)))
    }

    fn parse_line(&mut self, line: &str) {
        if let Some(name) = line
            .strip_prefix("test ")
            .and_then(|l| l.strip_suffix(" ... FAILED"))
        {
            self.failures.push(name.to_owned());
        }
        let wrong = [runner::HUNG, runner::LEFT];
        if wrong.iter().any(|wrong| line.starts_with(wrong)) {
            self.failed += 1;
            self.failures.push(line.to_owned());
        }
        let Some(counts) = line.strip_prefix("test result: ") else {
            return;
        };
        self.binaries += 1;
        let number = |word: &str| {
            let before = counts
                .split_once(word)
                .map_or("", |(before, _)| before)
                .trim_end();
            before
                .rsplit(' ')
                .next()
                .and_then(|n| n.parse::<u64>().ok())
                .unwrap_or(0)
        };
        self.passed += number("passed");
        self.failed += number("failed;");
        self.ignored += number("ignored");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_harness() {
        let mut tally = TestCounts::default();
        tally.parse_line("running 3 tests");
        tally.parse_line("test late_answer_is_dropped ... ok");
        tally.parse_line("test capacity_is_exact ... FAILED");
        tally.parse_line(
            "test result: FAILED. 12 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out",
        );
        tally.parse_line(
            "test result: ok. 7 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
        );
        assert_eq!((tally.passed, tally.failed, tally.ignored), (19, 1, 2));
        assert_eq!(tally.binaries, 2);
        assert_eq!(tally.failures, ["capacity_is_exact"]);
        tally.parse_line("hung: storm, not over after 20 min 00 s; still running: a, b");
        assert_eq!(tally.failed, 2);
        assert!(tally.failures[1].contains("still running: a, b"));
    }
}
