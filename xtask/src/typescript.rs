//! The TypeScript package: installed from its lock file, compiled, tested and measured on Node and
//! on Bun.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::project::{self, Project};
use crate::{Outcome, process, step, term};

const SKIPPED: &str = "no npm, so nothing is proven about packages/strowger: install Node 20 or \
                        later";

/// Tests the package. Returns the number of tests that passed on both together, or zero if left
/// out.
///
/// # Errors
/// Returns an error if a test fails, if the two ran different tests, or if npm is missing and
/// `CI=true`.
pub(crate) fn test(project: &Project) -> Result<(u64, String), String> {
    let folder = project.root().join("packages/strowger");
    let npm = process::output(Command::new("npm").arg("--version"));
    if !npm.is_ok_and(|output| output.status.success()) {
        return if project::strict() {
            Err(format!("CI=true and {SKIPPED}"))
        } else {
            Ok((0, format!("left out: {SKIPPED}")))
        };
    }
    prepare(&folder)?;
    // The tests of the command line have built it.
    let program = project.target().join("debug/strowger");
    if !program.is_file() {
        let at = program.display();
        return Err(format!(
            "no node at {at} to test with: cargo build --workspace"
        ));
    }
    // Node 20 has WebSocket behind a flag; later versions accept the flag and need none.
    let options = ["--experimental-websocket"];
    let files = test_files(&folder)?;
    let (on_node, suites) = run_on_node(&folder, &files, &options, &program)?;
    let mut bun = Command::new(folder.join("node_modules/.bin/bun"));
    bun.args(["test", "--timeout", "120000", "./dist/test/"])
        .env("STROWGER_BIN", &program)
        .current_dir(&folder);
    let (on_bun, same) = run_tests(&mut bun, TOTAL_LIMIT, |line| {
        line.trim().strip_suffix(" pass")
    })?;
    if on_node != on_bun {
        return Err(format!(
            "{on_node} tests passed on Node and {on_bun} on Bun"
        ));
    }
    if suites.is_empty() || suites != same {
        return Err(format!(
            "the conformance suite was run as {suites:?} on Node and as {same:?} on Bun"
        ));
    }
    let agents = test_mcp_client(project, &program)?;
    let suites = suites.join(", ");
    let said = format!(
        "{on_node} passed on Node, {on_bun} on Bun; conformance: {suites}; {agents} with the \
         official client of agents"
    );
    Ok((on_node + on_bun + agents, said))
}

/// Limit of a file of tests, and of a run of all of them.
const FILE_LIMIT: Duration = Duration::from_secs(900);
const TOTAL_LIMIT: Duration = Duration::from_secs(1800);

/// Runs files of tests on Node, one after the other, and returns the number of passed tests and
/// what they reported.
///
/// Not by `node --test`, which waits for the end of each program that a test left running, if that
/// has inherited its output.
fn run_on_node(
    folder: &Path,
    files: &[PathBuf],
    options: &[&str],
    program: &Path,
) -> Result<(u64, Vec<String>), String> {
    let (mut count, mut suites) = (0, Vec::new());
    for file in files {
        let mut node = Command::new("node");
        // It ends after its tests, even when something keeps it alive.
        node.args(["--test-force-exit", "--test-reporter=tap"])
            .args(options)
            .arg(file)
            .env("STROWGER_BIN", program)
            .current_dir(folder);
        let (more, said) = run_tests(&mut node, FILE_LIMIT, |line| line.strip_prefix("# pass "))?;
        count += more;
        suites.extend(said);
    }
    // Files run in any order.
    suites.sort();
    Ok((count, suites))
}

/// Tests a node with the official client of the Model Context Protocol, and returns the number of
/// passed tests.
fn test_mcp_client(project: &Project, program: &Path) -> Result<u64, String> {
    let folder = project.root().join("interop/mcp");
    step::run(Command::new("npm").arg("ci").current_dir(&folder))?;
    let file = folder.join("client.test.js");
    run_on_node(&folder, &[file], &[], program).map(|(passed, _)| passed)
}

/// Installs the packages of the lock file, and compiles.
pub(crate) fn prepare(folder: &Path) -> Outcome {
    step::run(Command::new("npm").arg("ci").current_dir(folder))?;
    let mut tsc = Command::new("node");
    step::run(
        tsc.arg("node_modules/typescript/bin/tsc")
            .current_dir(folder),
    )
}

/// Returns the programs that print the rows of the part `messages`, on Node and on Bun.
///
/// # Errors
/// Returns an error if the package or the node that it connects to cannot be built.
pub(crate) fn benches(project: &Project) -> Result<Vec<Command>, String> {
    let folder = project.root().join("packages/strowger");
    prepare(&folder)?;
    let mut cargo = project.cargo();
    // Components and tools for agents take no part, and most of the build.
    step::run(cargo.args([
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--package",
        "strowger-cli",
        "--no-default-features",
    ]))?;
    let node = project.target().join("release/strowger");
    let bun = folder.join("node_modules/.bin/bun");
    let mut rust = crate::bench::bench_cargo(project);
    step::run(rust.args(["build", "--release", "--quiet", "--bin", "messages"]))?;
    let mut rust = crate::bench::bench_cargo(project);
    rust.args(["run", "--release", "--quiet", "--bin", "messages", "--"]);
    rust.env("STROWGER_BIN", &node);
    let mut benches = vec![rust];
    let mut add = |args: &[&str]| {
        let mut on_node = Command::new("node");
        on_node.arg("--expose-gc");
        for mut command in [on_node, Command::new(&bun)] {
            command.args(args).current_dir(&folder);
            command.env("STROWGER_BIN", &node);
            benches.push(command);
        }
    };
    add(&["dist/bench/messages.js"]);
    for subject in ["strowger", "nact"] {
        for what in ["actors", "messages", "process"] {
            add(&["dist/bench/memory.js", subject, what]);
        }
    }
    Ok(benches)
}

/// Returns the versions, without which the figures mean nothing.
pub(crate) fn versions(project: &Project) -> Value {
    let folder = project.root().join("packages/strowger");
    let mut versions = Map::new();
    let bun = folder.join("node_modules/.bin/bun");
    for (name, program) in [("Node", Path::new("node")), ("Bun", &bun)] {
        if let Ok(said) = step::output(Command::new(program).arg("--version")) {
            let version = said.trim().trim_start_matches('v');
            versions.insert(name.to_owned(), json!(version));
        }
    }
    let lock = std::fs::read_to_string(folder.join("package-lock.json")).unwrap_or_default();
    let lock: Value = serde_json::from_str(&lock).unwrap_or_default();
    let nact = &lock["packages"]["node_modules/nact"]["version"];
    versions.insert("nact".to_owned(), nact.clone());
    Value::Object(versions)
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

/// Runs tests. Returns how many passed, and the lines with the cases of the conformance suite. If a
/// test fails, prints the output. Tests that exceed the limit are killed.
fn run_tests(
    command: &mut Command,
    limit: Duration,
    count: impl Fn(&str) -> Option<&str>,
) -> Result<(u64, Vec<String>), String> {
    let shown = step::display(command);
    let output = process::output_within(command, limit)?;
    let Some(output) = output else {
        let limit = term::format_duration(limit);
        return Err(format!(
            "hung: `{shown}` was not over after {limit}, and was ended"
        ));
    };
    // Bun reports on one stream, Node on the other.
    let said =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let said = said.join("\n");
    if !output.status.success() {
        said.lines().for_each(term::line);
        return Err(format!("`{shown}` ended with {}", output.status));
    }
    let passed = said
        .lines()
        .rev()
        .find_map(|line| count(line)?.parse().ok())
        .filter(|&count| count > 0)
        .ok_or_else(|| format!("`{shown}` does not say that a test passed"))?;
    let mut suites: Vec<String> = said
        .lines()
        .filter_map(|line| Some(line.split_once("conformance: ")?.1.trim().to_owned()))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_digit()))
        .collect();
    // Files run in parallel, in any order.
    suites.sort();
    Ok((passed, suites))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A failing test that leaves a program with open output, and a test that never ends.
    const TESTS: &str = r#"
        import { spawn } from "node:child_process";
        import { writeFileSync } from "node:fs";
        import { test } from "node:test";
        test("fails", () => {
          const { pid } = spawn("sleep", ["1000"], { stdio: "inherit" });
          writeFileSync("pid", String(pid));
          throw new Error("on purpose");
        });
        test("hangs", { timeout: 1000 }, () => new Promise(() => setInterval(() => {}, 1000)));
    "#;

    #[test]
    fn failed_tests_and_their_leftovers_do_not_block_the_run() {
        if step::output(Command::new("node").arg("--version")).is_err() {
            assert!(!project::strict(), "CI=true and no node");
            return;
        }
        let name = format!("xtask-{}-typescript", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a temporary folder");
        std::fs::write(folder.join("left.test.mjs"), TESTS).expect("the file is accessible");
        let begun = Instant::now();
        let file = folder.join("left.test.mjs");
        let error = run_on_node(&folder, &[file], &[], Path::new("no-node"));
        let error = error.expect_err("it fails");
        assert!(error.contains("ended with exit status: 1"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(60));
        let pid = std::fs::read_to_string(folder.join("pid")).expect("the test wrote it");
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(stat.is_empty() || stat.contains(") Z "), "{stat}");
        std::fs::remove_dir_all(folder).expect("the file is accessible");
    }
}
