//! `cargo xtask miri`: undefined behaviour, leaks and races in the runtime.
//!
//! Runs Miri if the toolchain has it, which finds violations of the language rules. Without Miri,
//! AddressSanitizer and valgrind run, which find less: wrong accesses of the processor. The long
//! form runs all of them.

use std::process::Command;

use crate::binaries::{self, Binary};
use crate::project::{self, Project};
use crate::step::{self, Step};
use crate::tools::{self, ExternalTool};
use crate::{Outcome, term};

/// The parts of the library that own memory and wake others; the rest is built on them.
const UNITS: [&str; 4] = [
    "mailbox::",
    "reply::",
    "schedule::strand::",
    "schedule::seeded::tests::",
];

/// Starts, restarts, kills and exits of whole actors in virtual time: only few, because an
/// interpreter is slow.
const LIFECYCLE: [&str; 2] = [
    "hanging_hooks::hanging_handler",
    "hanging_hooks::hanging_dynamic_child",
];

/// The test of the storm that accounts for every message.
const STORM: &str = "messages_are_handled_once_in_order_or_reported";

/// The behaviour tests that are worth an interpreter's time.
const BEHAVIOUR: [&str; 2] = ["lifecycle::", "hanging_hooks::"];

/// The target of AddressSanitizer, named so that its flags do not reach build scripts.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Options of `cargo xtask miri`.
#[derive(Debug, clap::Args)]
pub(crate) struct MiriArgs {
    /// Run only Miri if it is installed
    #[arg(long)]
    short: bool,
}

/// Runs the tools that this machine has; `--short` omits what another tool has checked.
pub(crate) fn run(project: &Project, args: &MiriArgs) -> Outcome {
    check(project, args.short).map(|ran| term::note(&ran))
}

/// Runs the tools and returns their names.
pub(crate) fn check<'a>(project: &'a Project, short: bool) -> Result<String, String> {
    let (mut ran, mut steps) = (Vec::new(), Vec::new());
    let mut add =
        |tool: &ExternalTool, name, more: &dyn Fn() -> Vec<Step<'a>>| match tools::need(tool) {
            Ok(()) => {
                steps.extend(more());
                ran.push(name);
            }
            Err(missing) => term::note(&format!("left out {name}: {missing}")),
        };
    add(&tools::MIRI, "Miri", &|| miri_steps(project, short));
    // Miri finds more in what it runs, but is too slow for real threads.
    if !short || !tools::MIRI.is_here() {
        add(&tools::NIGHTLY, "AddressSanitizer", &|| {
            vec![asan_step(project)]
        });
        add(&tools::VALGRIND, "valgrind", &|| {
            vec![valgrind_step(project)]
        });
    }
    if ran.is_empty() && project::strict() {
        return Err("CI=true, and neither Miri nor AddressSanitizer nor valgrind".to_owned());
    }
    step::run_all(steps, true)?;
    Ok(match ran.as_slice() {
        [] => "nothing ran: no tool is here".to_owned(),
        ran => format!("ran {}", ran.join(", ")),
    })
}

/// Returns a cargo command of the nightly toolchain, with a target folder of this name.
fn nightly(project: &Project, folder: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(project.root())
        .env("CARGO_TARGET_DIR", project.target().join(folder))
        .arg("+nightly");
    cargo
}

/// Runs AddressSanitizer over the tests of the runtime: Miri finds more, but is too slow for real
/// threads and for a storm of any length.
pub(crate) fn asan(project: &Project) -> Outcome {
    tools::need(&tools::NIGHTLY)?;
    step::run_all(vec![asan_step(project)], true)
}

fn asan_step(project: &Project) -> Step<'_> {
    Step::command("asan", || {
        let mut cargo = nightly(project, "asan");
        cargo
            .env("RUSTFLAGS", "-Zsanitizer=address")
            // Miri and valgrind look for leaks: LeakSanitizer would need to trace the process.
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env("STROWGER_STORM_SEEDS", "0..100")
            .args(["test", "--locked", "-p", "strowger", "--all-features"])
            .args(["--target", PLATFORM, "--lib"])
            .args(
                ["behaviour", "parallel", "storm"]
                    .iter()
                    .flat_map(|test| ["--test", test]),
            );
        cargo
    })
}

fn miri_steps(project: &Project, short: bool) -> Vec<Step<'_>> {
    // The tests read their seeds from the environment.
    let flags = "-Zmiri-disable-isolation";
    let step = |name, flags: String, tests: Vec<&'static str>| {
        Step::command(name, move || {
            let mut cargo = nightly(project, "miri");
            cargo
                .env("MIRIFLAGS", &flags)
                .env("STROWGER_STORM_SEEDS", "0..3");
            cargo
                .args(["miri", "test", "--locked", "-p", "strowger"])
                .args(&tests);
            cargo
        })
    };
    let lifecycle = [&["--test", "behaviour", "--"][..], &LIFECYCLE].concat();
    let mut steps = vec![
        step(
            "miri units",
            flags.to_owned(),
            [&["--lib", "--"][..], &UNITS].concat(),
        ),
        step("miri lives", flags.to_owned(), lifecycle),
    ];
    if !short {
        let flags = format!("{flags} -Zmiri-ignore-leaks");
        steps.push(step("miri storm", flags, vec!["--test", "storm", STORM]));
    }
    steps
}

fn valgrind_step(project: &Project) -> Step<'_> {
    Step::new("valgrind", "cargo xtask miri", || {
        let mut cargo = project.cargo();
        cargo.args(["test", "--locked", "-p", "strowger", "--lib"]);
        cargo.args(["--test", "behaviour", "--test", "storm"]);
        let binaries = binaries::build(&mut cargo)?;
        for binary in &binaries {
            step::run(&mut under_valgrind(binary))?;
        }
        Ok(Some(format!("{} test binaries", binaries.len())))
    })
}

fn under_valgrind(binary: &Binary) -> Command {
    let flags = [
        "--quiet",
        "--error-exitcode=9",
        "--leak-check=full",
        "--errors-for-leak-kinds=definite",
        "--fair-sched=yes",
    ];
    let mut command = binary.run_by("valgrind", &flags);
    match binary.name.as_str() {
        "behaviour" => command.args(BEHAVIOUR),
        "storm" => command.env("STROWGER_STORM_SEEDS", "0..5").arg(STORM),
        _ => command.args(UNITS),
    };
    command
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Adds the text of all Rust sources below a folder.
    fn collect(folder: &Path, sources: &mut String) {
        for entry in std::fs::read_dir(folder).expect("the folder is there") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                collect(&path, sources);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                sources.push_str(&std::fs::read_to_string(&path).expect("it is text"));
            }
        }
    }

    #[test]
    fn every_filter_selects_a_test_or_a_module() {
        let runtime = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/runtime");
        let mut sources = String::new();
        for folder in ["src", "tests"] {
            collect(&runtime.join(folder), &mut sources);
        }
        for filter in UNITS
            .iter()
            .chain(&LIFECYCLE)
            .chain(&BEHAVIOUR)
            .chain([&STORM])
        {
            let name = filter
                .rsplit("::")
                .find(|part| !part.is_empty())
                .unwrap_or_default();
            let is_there = match filter.ends_with("::") {
                true => sources.contains(&format!("mod {name}")),
                false => sources.contains(&format!("fn {name}")),
            };
            assert!(is_there, "nothing is named `{filter}`");
        }
    }
}
