//! `cargo xtask mutants`: changes in the logic of the runtime, in the validation of PFCP messages,
//! or in the limits of components, each of which a test must notice.
//!
//! `cargo-mutants` lists the changes. All of them are built into one copy of the crate, each behind
//! a switch ([`schema`]), so that a change costs no build but only the tests that reach it
//! ([`suite`]). The few changes that cannot be switched, such as those in code that runs at compile
//! time, are built one at a time.
//!
//! A later run skips changes that an earlier one saw caught, as long as the function is the same.
//! An interrupted run therefore resumes where it was.

mod equivalent;
mod run;
mod schema;
mod suite;
mod target;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::mutants::equivalent::{EQUIVALENT, Equivalent};
use crate::mutants::run::MutationRun;
use crate::mutants::schema::Change;
use crate::mutants::target::{MutatedCrate, PFCP, RUNTIME, WASM};
use crate::project::Project;
use crate::{Outcome, process, step, term};

const VERSION: &str = "27.1.0";

/// Changes that are excluded: an opaque future has no other value, and formatting decides nothing.
const LEFT_OUT: [&str; 2] = ["impl fmt::", "impl std::fmt::"];

/// The result of a change.
enum MutantResult {
    Caught(String),
    Missed,
    /// The change does not compile, which counts as caught by the compiler.
    Unviable,
}

/// Changes the files that `args` name (`--file GLOB`), or all, or those of `--short`; those of the
/// runtime unless `--pfcp` or `--wasm` is given.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    let mut files = Vec::new();
    let (mut short, mut list, mut afresh) = (false, false, false);
    let mut subject = &RUNTIME;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--file" => files.push(args.next().ok_or("--file needs a value")?.as_str()),
            "--list" => list = true,
            "--afresh" => afresh = true,
            "--short" => short = true,
            "--pfcp" => subject = &PFCP,
            "--wasm" => subject = &WASM,
            other => return Err(format!("mutants does not know `{other}`")),
        }
    }
    if files.is_empty() {
        files = if short {
            subject.short.to_vec()
        } else {
            subject.files.to_vec()
        };
    }
    let changes = changes(project, subject, &files)?;
    if list {
        changes.iter().for_each(|change| term::line(&change.name));
        return Ok(());
    }
    let count = changes.len();
    let changes = without_equivalent(project, changes)?;
    let equivalent = count - changes.len();
    let said = MutationRun::new(project, subject, changes, afresh)?.run()?;
    let left_out = match equivalent {
        0 => String::new(),
        count => format!(", {count} left out as they change nothing"),
    };
    term::note(&format!("{said}{left_out}"));
    Ok(())
}

/// Removes equivalent changes and prints the reasons. Each listed one must be among the changes.
fn without_equivalent(project: &Project, changes: Vec<Change>) -> Result<Vec<Change>, String> {
    let mut left = Vec::new();
    let of_changes = |one: &&Equivalent| changes.iter().any(|change| one.is_in(change));
    let mut unseen: Vec<_> = EQUIVALENT.iter().filter(of_changes).collect();
    for change in changes {
        let text = std::fs::read_to_string(project.root().join(&change.file));
        let text = text.map_err(|error| format!("{}: {error}", change.file))?;
        let line = text.lines().nth(change.start.0.saturating_sub(1));
        let line = line.unwrap_or_default();
        match EQUIVALENT.iter().find(|one| one.is(&change, line)) {
            Some(one) => {
                term::note(&format!("  left out: {}: {}", change.name, one.reason));
                unseen.retain(|other| !std::ptr::eq(*other, one));
            }
            None => left.push(change),
        }
    }
    match unseen.first() {
        Some(one) => Err(format!(
            "listed as one that changes nothing, and not there: {one}"
        )),
        None => Ok(left),
    }
}

/// Returns all changes of these files, as cargo-mutants lists them.
fn changes(
    project: &Project,
    subject: &MutatedCrate,
    files: &[&str],
) -> Result<Vec<Change>, String> {
    let mut command = Command::new(installed(project)?);
    command.current_dir(project.root());
    command.args(["mutants", "--package", subject.package, "--list", "--json"]);
    command.args(["--gitignore", "true"]);
    for text in LEFT_OUT {
        command.args(["--exclude-re", text]);
    }
    for file in files {
        command.args(["--file", file]);
    }
    let text = step::output(&mut command)?;
    let entries: Vec<Value> =
        serde_json::from_str(&text).map_err(|error| format!("the list of changes: {error}"))?;
    let changes: Option<Vec<_>> = entries.iter().map(Change::read).collect();
    let changes = changes.ok_or("cargo-mutants lists changes in a form of its own")?;
    if changes.is_empty() {
        return Err(format!("there is nothing to change in {}", files.join(" ")));
    }
    Ok(changes)
}

fn folder(project: &Project) -> PathBuf {
    project.target().join("mutants")
}

/// Returns the path of the tool, built if it is missing.
fn installed(project: &Project) -> Result<PathBuf, String> {
    let root = project.target().join("tools");
    let tool = root.join("bin/cargo-mutants");
    if version(&tool).is_some_and(|text| text.contains(VERSION)) {
        return Ok(tool);
    }
    term::note(&format!("builds cargo-mutants {VERSION}, once"));
    let mut install = project.cargo();
    install.args(["install", "cargo-mutants", "--version", VERSION, "--locked"]);
    // The tool only lists here: optimizing it would cost more time than it saves.
    install
        .args(["--debug", "--force"])
        .arg("--root")
        .arg(&root);
    step::run(&mut install)?;
    Ok(tool)
}

fn version(tool: &Path) -> Option<String> {
    let mut command = Command::new(tool);
    let output = process::output(command.args(["mutants", "--version"])).ok()?;
    String::from_utf8(output.stdout).ok()
}
