//! The TypeScript package: installed from its lock file, compiled, and tested on Node and on Bun.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::project::{self, Project};
use crate::step;
use crate::term;

const LEFT_OUT: &str = "no npm, so nothing is proven about packages/strowger: install Node 20 or \
                        later";

/// Tests the package; returns how many tests passed on both together, or none if left out.
///
/// # Errors
/// When a test fails, when the two ran different tests, or when npm is missing and `CI=true`.
pub(crate) fn test(project: &Project) -> Result<(u64, String), String> {
    let folder = project.root().join("packages/strowger");
    let npm = Command::new("npm")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !npm.is_ok_and(|status| status.success()) {
        return if project::strict() {
            Err(format!("CI=true and {LEFT_OUT}"))
        } else {
            Ok((0, format!("left out: {LEFT_OUT}")))
        };
    }
    step::run(Command::new("npm").arg("ci").current_dir(&folder))?;
    let mut tsc = Command::new("node");
    step::run(
        tsc.arg("node_modules/typescript/bin/tsc")
            .current_dir(&folder),
    )?;
    let mut node = Command::new("node");
    node.args(["--test", "--test-reporter=tap"])
        .args(test_files(&folder)?)
        .current_dir(&folder);
    let on_node = passed(&mut node, |line| line.strip_prefix("# pass "))?;
    let mut bun = Command::new(folder.join("node_modules/.bin/bun"));
    bun.args(["test", "--timeout", "120000", "./dist/test/"])
        .current_dir(&folder);
    let on_bun = passed(&mut bun, |line| line.trim().strip_suffix(" pass"))?;
    if on_node != on_bun {
        return Err(format!(
            "{on_node} tests passed on Node and {on_bun} on Bun"
        ));
    }
    let said = format!("{on_node} passed on Node, {on_bun} on Bun");
    Ok((on_node + on_bun, said))
}

fn test_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let tests = folder.join("dist/test");
    let failed = |error: std::io::Error| format!("{}: {error}", tests.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&tests).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.to_string_lossy().ends_with(".test.js") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Runs tests and reads how many passed; what they said is shown if one failed.
fn passed(command: &mut Command, count: impl Fn(&str) -> Option<&str>) -> Result<u64, String> {
    let shown = step::shown(command);
    let output = command
        .output()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    // Bun reports on the one stream, Node on the other.
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let said = said.join("\n");
    if !output.status.success() {
        said.lines().for_each(term::line);
        return Err(format!("`{shown}` ended with {}", output.status));
    }
    said.lines()
        .rev()
        .find_map(|line| count(line)?.parse().ok())
        .filter(|&count| count > 0)
        .ok_or_else(|| format!("`{shown}` does not say that a test passed"))
}
