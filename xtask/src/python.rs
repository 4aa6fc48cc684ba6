//! The official Python client of the Model Context Protocol, against the program.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::project::{self, Project};
use crate::step::{self, Step};
use crate::tools::PYTHON;
use crate::{Outcome, process, term, tools};

/// Limit of the tests.
const LIMIT: Duration = Duration::from_secs(900);

/// The step that tests the program with the client.
pub(crate) fn step(project: &Project) -> Step<'_> {
    let rerun = "cargo xtask ci interop-python";
    Step::new("interop-python", rerun, || test(project).map(Some))
}

/// Returns how many tests passed, or why they were left out.
///
/// # Errors
/// Returns an error if a test fails, or if Python is missing and `CI=true`.
fn test(project: &Project) -> Result<String, String> {
    if let Err(missing) = tools::need(&PYTHON) {
        return match project::strict() {
            true => Err(format!("CI=true and {missing}")),
            false => Ok(format!("left out: {missing}")),
        };
    }
    let folder = project.root().join("interop/python");
    let place = project.target().join("interop-python");
    prepare(&folder, &place)?;
    let mut cargo = project.cargo();
    step::run(cargo.args(["build", "--locked", "--quiet", "--bin", "strowger"]))?;
    let mut python = Command::new(place.join("bin/python"));
    // `-B`: no compiled files among the sources.
    python
        .arg("-B")
        .arg(folder.join("client_test.py"))
        .env("STROWGER_BIN", project.target().join("debug/strowger"));
    let shown = step::display(&python);
    let Some(output) = process::output_within(&mut python, LIMIT)? else {
        let limit = term::format_duration(LIMIT);
        return Err(format!("hung: `{shown}` was not over after {limit}"));
    };
    let text = String::from_utf8_lossy(&output.stderr);
    let passed = passed_tests(&text).filter(|_| output.status.success());
    match passed {
        Some(count) => Ok(format!("{count} passed")),
        None => {
            text.lines().for_each(term::line);
            Err(format!("`{shown}` ended with {}", output.status))
        }
    }
}

/// Installs the packages of the requirements in an environment of their own, unless they are there.
fn prepare(folder: &Path, place: &Path) -> Outcome {
    let failed = |error: std::io::Error| format!("{}: {error}", place.display());
    let requirements = folder.join("requirements.txt");
    let wanted = fs::read(&requirements).map_err(failed)?;
    let installed = place.join("installed.txt");
    if fs::read(&installed).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    let mut venv = Command::new("python3");
    step::run(venv.args(["-m", "venv", "--clear"]).arg(place))?;
    let mut pip = Command::new(place.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "-r"]);
    step::run(pip.arg(&requirements))?;
    fs::write(&installed, wanted).map_err(failed)
}

/// Parses the number of tests in the line `Ran 2 tests in 3.1s`, unless there were none.
fn passed_tests(text: &str) -> Option<u64> {
    let mut ran = text.lines().filter_map(|line| line.strip_prefix("Ran "));
    let count = ran.next_back()?.split(' ').next()?.parse().ok()?;
    (count > 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn count_of_tests_is_parsed() {
        let text = "..\n-----\nRan 2 tests in 10.332s\n\nOK\n";
        assert_eq!(passed_tests(text), Some(2));
        assert_eq!(passed_tests("Ran 0 tests in 0.000s\n\nNO TESTS RAN"), None);
        assert_eq!(passed_tests("Traceback"), None);
    }
}
