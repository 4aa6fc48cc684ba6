//! `cargo xtask ci`: all checks that must pass before review.

pub(crate) mod changes;
mod times;

use std::path::PathBuf;
use std::process::Command;

use crate::project::{self, Project};
use crate::step::{self, Step};
use crate::{
    Outcome, bench, benches, bugs, chaos, conformance, demo, dist, durable, fuzz, gate, loom, miri,
    mutants, package, power_loss, python, robustness, simulate, term, test, tidy, tools,
};
use times::RunRecord;

/// Options of `cargo xtask ci`.
#[derive(Debug, clap::Args)]
pub(crate) struct CiArgs {
    /// Run only these steps
    steps: Vec<String>,
    /// Run the long proofs as well
    #[arg(long)]
    full: bool,
    /// Print the names of the steps
    #[arg(long)]
    list: bool,
    /// Continue after a failure
    #[arg(long)]
    keep_going: bool,
    /// Skip the steps that have passed on this commit
    #[arg(long)]
    resume: bool,
}

/// Runs the everyday steps, the named ones, or with `--full` all steps.
pub(crate) fn run(project: &Project, args: &CiArgs) -> Outcome {
    if args.list {
        list("everyday steps", &everyday_steps(project));
        list("steps of --full, after these", &proof_steps(project));
        return Ok(());
    }
    let wanted: Vec<&str> = args.steps.iter().map(String::as_str).collect();
    let pulled = changes::needed_steps(project)?;
    let mut chosen = everyday_steps(project);
    let proofs = proof_steps(project);
    let all = chosen.iter().chain(&proofs);
    let unknown = |name: &&&str| !all.clone().any(|step| step.name == **name);
    if let Some(unknown) = wanted.iter().find(unknown) {
        return Err(format!(
            "there is no step `{unknown}`; `cargo xtask ci --list` shows the steps"
        ));
    }
    let is_wanted = |step: &Step<'_>| wanted.contains(&step.name);
    chosen.extend(
        proofs
            .into_iter()
            .filter(|step| args.full || is_wanted(step) || pulled.contains(&step.name)),
    );
    chosen.retain(|step| wanted.is_empty() || is_wanted(step));
    let is_everyday = !args.full && wanted.is_empty() && pulled.is_empty();
    let record = RunRecord::begin(project, args.resume)?;
    chosen.retain(|step| !record.has_passed(step.name));
    step::run_recorded(chosen, args.keep_going, |results| record.write(results))?;
    match is_everyday && project::strict() {
        true => record.check_budget(times::BUDGET),
        false => Ok(()),
    }
}

fn list(title: &str, steps: &[Step<'_>]) {
    term::line(&format!("{title}:"));
    for step in steps {
        term::line(&format!("  {:<12} {}", step.name, step.rerun));
    }
}

/// The lints of every workspace: warnings are errors.
const LINTS: [&str; 4] = ["--all-targets", "--", "-D", "warnings"];

/// Returns the steps that every change has to pass, the ones that fail soon first.
///
/// They share one build of the workspace. A step that needs a build of its own, or many minutes, is
/// one of the [`proof_steps`].
fn everyday_steps(project: &Project) -> Vec<Step<'_>> {
    let mut steps = vec![
        Step::new("fmt", "cargo fmt --all --check", || format(project)),
        Step::new("tidy", "cargo xtask tidy", || {
            tidy::run(project).map(|()| None)
        }),
    ];
    if is_installed("cargo-deny") {
        let checks = ["deny", "check", "licenses", "bans", "sources"];
        steps.push(Step::command("deny", move || cargo(project, &checks)));
    }
    steps.extend([
        Step::command("clippy", || {
            cargo(
                project,
                &[&["clippy", "--workspace", "--locked"][..], &LINTS].concat(),
            )
        }),
        Step::new("test", "cargo xtask test", || {
            test::run(project, &[]).map(Some)
        }),
        Step::command("doc", || {
            let mut doc = cargo(project, &["doc", "--no-deps", "--workspace", "--locked"]);
            doc.env("RUSTDOCFLAGS", "-D warnings");
            doc
        }),
        simulate::step(project),
        simulate::n4::step(project),
        Step::new("loom", "cargo xtask loom --weaken", || {
            loom::check(project, true).map(Some)
        }),
    ]);
    steps
}

/// Returns the steps that only `--full` runs: builds of other workspaces and profiles, proofs that
/// the proofs would notice a defect, and runs of the finished binary.
fn proof_steps(project: &Project) -> Vec<Step<'_>> {
    let mut steps = vec![
        Step::command("interop", || cargo(project, INTEROP)),
        python::step(project),
        Step::new("conformance", "cargo xtask conformance --check", || {
            conformance::run(project, true).map(|()| None)
        }),
        Step::new("figures", "cargo xtask ci figures", || {
            bench::check_age(project).map(|()| None)
        }),
        Step::new(
            "features",
            step::display(&cargo(project, &WITHOUT_FEATURES)),
            || without_features(project),
        ),
        Step::command("bench-clippy", || cargo(project, &[BENCH, &LINTS].concat())),
        Step::new(
            "benches",
            "cargo bench -p strowger-benches -- --list",
            || benches::check(project),
        ),
        Step::new("gate", "cargo xtask gate", || {
            gate::run(project, false).map(|()| None)
        }),
        Step::new("book", "mdbook build docs", || book(project)),
        Step::new("bugs", "cargo xtask bugs", || bugs::all(project)),
        durable::kills::step(project),
        power_loss::step(project),
        Step::new("miri", "cargo xtask miri --short", || {
            miri::check(project, true).map(Some)
        }),
        Step::new("mutants", "cargo xtask mutants", || {
            mutants::run(project, &[]).map(|()| None)
        }),
        Step::new("fuzz", "cargo xtask fuzz --for 15s", || {
            fuzz::quick(project).map(|()| fuzz::missing_requirement())
        }),
    ];
    steps.extend(simulate::proof_steps(project));
    steps.extend(package::steps(project));
    steps.push(Step::new("dist", "cargo xtask dist", || {
        dist::make(project, None).map(Some)
    }));
    steps.extend(binary_steps(project));
    steps
}

/// Returns the steps that run the finished binary.
fn binary_steps(project: &Project) -> [Step<'_>; 6] {
    [
        Step::new(
            "demo",
            step::display(&demo::demo_command(project, false)),
            || demo::demo(project, false),
        ),
        Step::new(
            "demo-chaos",
            step::display(&demo::demo_command(project, true)),
            || demo::demo(project, true),
        ),
        chaos::step(project),
        robustness::step(project),
        Step::new(
            "captures",
            "strowger pfcp decode FILE --check --json",
            || demo::captures(project),
        ),
        Step::command("mutations", || {
            let only = ["-p", "strowger-cli", "--test", "strowger", "mutations"];
            let mut test = cargo(project, &[&["test", "--locked"][..], &only].concat());
            test.env("STROWGER_MUTATIONS", "100000");
            test
        }),
    ]
}

/// Tests the program without its optional features.
const WITHOUT_FEATURES: [&str; 5] = [
    "test",
    "--locked",
    "-p",
    "strowger-cli",
    "--no-default-features",
];

/// Checks every set of features of the program that the other steps do not build, and tests the
/// smallest one.
fn without_features(project: &Project) -> Result<Option<String>, String> {
    for features in ["", "components"] {
        let package = ["clippy", "--locked", "-p", "strowger-cli"];
        let chosen = ["--no-default-features", "--features", features];
        step::run(&mut cargo(
            project,
            &[&package[..], &chosen, &LINTS].concat(),
        ))?;
    }
    let gateway = ["check", "--locked", "-p", "strowger-gateway"];
    let chosen = ["--no-default-features"];
    step::run(&mut cargo(project, &[&gateway[..], &chosen].concat()))?;
    step::run(&mut cargo(project, &WITHOUT_FEATURES)).map(|()| None)
}

/// Compares the codec with a peer that the product must not depend on.
const INTEROP: &[&str] = &[
    "test",
    "--locked",
    "--manifest-path",
    "interop/rs/Cargo.toml",
];

/// Checks the bench workspace.
const BENCH: &[&str] = &[
    "clippy",
    "--manifest-path",
    "bench/Cargo.toml",
    "--workspace",
];

const MANIFESTS: [&str; 4] = [
    "Cargo.toml",
    "bench/Cargo.toml",
    "fuzz/Cargo.toml",
    "interop/rs/Cargo.toml",
];

/// Checks the format of all four workspaces.
fn format(project: &Project) -> Result<Option<String>, String> {
    for manifest in MANIFESTS {
        let check = ["fmt", "--all", "--check", "--manifest-path", manifest];
        step::run(&mut cargo(project, &check))?;
    }
    Ok(None)
}

/// Builds the book; `tidy` has checked its links.
fn book(project: &Project) -> Result<Option<String>, String> {
    tools::need(&tools::MDBOOK)?;
    let mut build = Command::new("mdbook");
    build.arg("build").arg(project.root().join("docs"));
    build.arg("--dest-dir").arg(project.folder("book")?);
    step::run(&mut build).map(|()| None)
}

fn cargo(project: &Project, args: &[&str]) -> Command {
    let mut command = project.cargo();
    command.args(args);
    command
}

fn is_installed(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder: PathBuf| folder.join(program).is_file())
}
