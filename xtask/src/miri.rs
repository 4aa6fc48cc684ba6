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
use crate::{Outcome, asan, process, term};

const VALGRIND: ExternalTool = ExternalTool {
    program: "valgrind",
    version_flag: "--version",
    package: "valgrind",
    proves: "no octet is read before it was written, and none is leaked",
};

/// The parts of the library that own memory and wake others; the rest is built on them.
const UNITS: [&str; 4] = [
    "mailbox::",
    "reply::",
    "schedule::strand::",
    "schedule::seeded::tests::a_",
];

/// Starts, restarts, kills and exits of whole actors in virtual time: only few, because an
/// interpreter is slow.
const LIVES: [&str; 2] = [
    "hanging::a_handler_that_hangs",
    "hanging::one_child_that_hangs",
];

/// The behaviour tests that are worth an interpreter's time.
const BEHAVIOUR: [&str; 2] = ["lifecycle::", "hanging::"];

/// Options of `cargo xtask miri`.
#[derive(Debug, clap::Args)]
pub(crate) struct MiriArgs {
    /// Run Miri alone where it is here
    #[arg(long)]
    short: bool,
}

/// Runs the tools that this machine has; `--short` omits what another tool has checked.
pub(crate) fn run(project: &Project, args: &MiriArgs) -> Outcome {
    check(project, args.short).map(|ran| term::note(&ran))
}

/// Runs the tools and returns their names.
pub(crate) fn check(project: &Project, short: bool) -> Result<String, String> {
    let mut ran = Vec::new();
    let mut left_out = Vec::new();
    let mut steps = Vec::new();
    if has_miri() {
        steps.extend(miri(project, short));
        ran.push("Miri");
    } else {
        left_out.push("Miri (rustup toolchain install nightly, cargo xtask setup)");
    }
    // Miri finds more in what it runs, but is too slow for real threads.
    if !short || ran.is_empty() {
        if has_nightly() {
            steps.push(asan::step(project));
            ran.push("AddressSanitizer");
        } else {
            left_out.push("AddressSanitizer (rustup toolchain install nightly)");
        }
        if tools::is_here(&VALGRIND) {
            steps.push(valgrind(project));
            ran.push("valgrind");
        } else {
            left_out.push("valgrind (cargo xtask setup)");
        }
    }
    for missing in &left_out {
        term::note(&format!("left out: {missing}"));
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

fn answers(command: &mut Command) -> bool {
    process::output(command).is_ok_and(|output| output.status.success())
}

/// Returns `true` if a nightly toolchain is installed.
pub(crate) fn has_nightly() -> bool {
    answers(Command::new("rustc").args(["+nightly", "--version"]))
}

/// Returns `true` if Miri is installed.
pub(crate) fn has_miri() -> bool {
    answers(Command::new("cargo").args(["+nightly", "miri", "--version"]))
}

/// Adds Miri to the nightly toolchain, if there is one.
pub(crate) fn install() {
    let add = ["component", "add", "--toolchain", "nightly", "miri"];
    if has_nightly() && !has_miri() {
        answers(Command::new("rustup").args(add).arg("rust-src"));
    }
}

/// Returns a cargo command of the nightly toolchain, with a target folder of this name.
pub(crate) fn nightly(project: &Project, folder: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(project.root())
        .env("CARGO_TARGET_DIR", project.target().join(folder))
        .arg("+nightly");
    cargo
}

fn miri(project: &Project, short: bool) -> Vec<Step<'_>> {
    let command = move || {
        let mut cargo = nightly(project, "miri");
        // The tests read their seeds from the environment.
        cargo.env("MIRIFLAGS", "-Zmiri-disable-isolation");
        cargo.args(["miri", "test", "--locked", "-p", "strowger"]);
        cargo
    };
    let mut steps = vec![
        Step::command("miri units", move || {
            let mut cargo = command();
            cargo.args(["--lib", "--"]).args(UNITS);
            cargo
        }),
        Step::command("miri lives", move || {
            let mut cargo = command();
            cargo.args(["--test", "behaviour", "--"]).args(LIVES);
            cargo
        }),
    ];
    if !short {
        steps.push(Step::command("miri storm", move || {
            let mut cargo = command();
            cargo.env("STROWGER_STORM_SEEDS", "0..3");
            cargo.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-ignore-leaks");
            cargo.args(["--test", "storm", "no_letter"]);
            cargo
        }));
    }
    steps
}

fn valgrind(project: &Project) -> Step<'_> {
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
    let mut command = binary.under("valgrind", &flags);
    match binary.name.as_str() {
        "behaviour" => command.args(BEHAVIOUR),
        "storm" => command.env("STROWGER_STORM_SEEDS", "0..5").arg("no_letter"),
        _ => command.args(UNITS),
    };
    command
}
