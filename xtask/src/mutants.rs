//! `cargo xtask mutants`: changes in the logic of the runtime that no test may miss.
//!
//! `cargo-mutants` works on a copy of the tree, builds each change and runs the tests of the
//! runtime. A later run leaves out what an earlier one has seen caught, so one that was broken
//! off goes on where it was.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::project::Project;
use crate::{Outcome, step, term};

const VERSION: &str = "27.1.0";

/// What is changed unless files are named.
const FILES: [&str; 3] = [
    "crates/runtime/src/mailbox.rs",
    "crates/runtime/src/mailbox/receiver.rs",
    "crates/runtime/src/supervision/*.rs",
];

/// What decides without doing: changed in the short form, where the unit tests suffice.
const SHORT: [&str; 2] = [
    "crates/runtime/src/supervision/intensity.rs",
    "crates/runtime/src/supervision/strategy.rs",
];

/// The tests that look at these files, the quickest first.
const TESTS: [&str; 9] = [
    "mailbox",
    "strategies",
    "supervision",
    "dynamic",
    "escalation",
    "hanging",
    "lifecycle",
    "shutdown",
    "storm",
];

/// Seeds of the storm that run on each change.
const SEEDS: &str = "0..40";

/// Changes the files that `args` name (`--file GLOB`), or all, or those of `--short`.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    let mut files = Vec::new();
    let mut short = false;
    let mut passed = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--file" => files.push(value()?.as_str()),
            "--shard" => passed.extend(["--shard", value()?.as_str()]),
            "--list" => passed.push("--list"),
            "--short" => short = true,
            other => return Err(format!("mutants does not know `{other}`")),
        }
    }
    if files.is_empty() {
        files = if short {
            SHORT.to_vec()
        } else {
            FILES.to_vec()
        };
    }
    let mut command = mutants(project, &files, short)?;
    command.args(passed);
    command.arg("--").args(tests(short));
    step::run(&mut command).map_err(|error| {
        let missed = folder(project).join("mutants.out/missed.txt");
        format!("{error}; what was missed is listed in {}", missed.display())
    })
}

fn mutants(project: &Project, files: &[&str], short: bool) -> Result<Command, String> {
    let tool = installed(project)?;
    let folder = folder(project);
    std::fs::create_dir_all(&folder)
        .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut command = Command::new(tool);
    command.current_dir(project.root());
    command
        .env("STROWGER_STORM_SEEDS", SEEDS)
        // Linking is most of the work on a change.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_INCREMENTAL", "1")
        // One job, so one folder: what others wrote is built once for all changes.
        .env("CARGO_TARGET_DIR", folder.join("target"));
    command.args([
        "mutants",
        "--package",
        "strowger",
        "--iterate",
        "--no-shuffle",
    ]);
    command.args(["--gitignore", "true", "--colors", "never", "--caught"]);
    let least = if short { "20" } else { "60" };
    command.args(["--jobs", "1", "--minimum-test-timeout", least]);
    command.arg("--output").arg(folder);
    // An opaque future has no other value, and what only prints decides nothing.
    command.args([
        "--exclude-re",
        "impl fmt::",
        "--exclude-re",
        "impl std::fmt::",
    ]);
    for file in files {
        command.args(["--file", file]);
    }
    Ok(command)
}

fn tests(short: bool) -> Vec<&'static str> {
    let mut args = vec!["--lib"];
    if !short {
        args.extend(TESTS.iter().flat_map(|test| ["--test", test]));
    }
    args
}

fn folder(project: &Project) -> PathBuf {
    project.target().join("mutants")
}

/// The tool, built if it is not there.
fn installed(project: &Project) -> Result<PathBuf, String> {
    let root = project.target().join("tools");
    let tool = root.join("bin/cargo-mutants");
    if version(&tool).is_some_and(|text| text.contains(VERSION)) {
        return Ok(tool);
    }
    term::note(&format!("builds cargo-mutants {VERSION}, once"));
    let mut install = project.cargo();
    install.args(["install", "cargo-mutants", "--version", VERSION, "--locked"]);
    install.arg("--force").arg("--root").arg(&root);
    step::run(&mut install)?;
    Ok(tool)
}

fn version(tool: &Path) -> Option<String> {
    let output = Command::new(tool)
        .args(["mutants", "--version"])
        .output()
        .ok()?;
    String::from_utf8(output.stdout).ok()
}
