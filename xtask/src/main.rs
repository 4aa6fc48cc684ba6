//! The project's own verbs: `cargo xtask <verb>`.
//!
//! Each verb is a module with a function `run`. All verbs start programs through [`step`], so that
//! every failure names its step, the time it took and the command to run it alone.

mod bench;
mod benches;
mod binaries;
mod bugs;
mod chaos;
mod ci;
mod components;
mod conformance;
mod demo;
mod dist;
mod durable;
// The same grammar as in configurations, without building the runtime for it.
#[allow(unreachable_pub, reason = "public in the runtime")]
#[path = "../../crates/runtime/src/duration.rs"]
mod duration;
mod fuzz;
mod gate;
mod loom;
mod miri;
mod mutants;
mod node;
mod observe;
mod package;
mod picture;
mod plots;
mod power_loss;
mod process;
mod project;
mod python;
mod report;
mod robustness;
mod runner;
mod setup;
mod simulate;
mod soak;
mod step;
mod term;
mod test;
mod tidy;
mod tools;
mod typescript;

use std::process::ExitCode;
use std::time::Duration;

use crate::project::Project;

/// The result of a verb: nothing, or an error message for the terminal.
type Outcome = Result<(), String>;

/// The project's own verbs.
#[derive(Debug, clap::Parser)]
#[command(bin_name = "cargo xtask", after_help = ENVIRONMENT)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

const ENVIRONMENT: &str = "\
Environment:
  CI=true                fail if a tool or a fixture is missing
  XTASK_LIMIT=2h         time limit of a run, including all programs that it started
  XTASK_STEP_LIMIT=30m   time limit of a step
  XTASK_TEST_LIMIT=10m   time limit of a test program

These are the default limits; slow machines may need higher ones.";

/// A verb, with the options of its module.
#[derive(Debug, clap::Subcommand)]
enum Verb {
    /// Install the tools that tests and proofs need, or print how to get them
    Setup(setup::SetupArgs),
    /// Run all tests that need only cargo, then the proof tools
    ///
    /// Installs nothing, always ends, and names the tests that hang.
    Test(test::TestArgs),
    /// Check layout, imports, wording and licences, beyond clippy
    Tidy,
    /// Run the everyday checks: format, lints, tests, docs, simulation, loom
    ///
    /// The target directory keeps the times in ci-times.json. STROWGER_CI_BASE=COMMIT adds the
    /// proofs that the files changed since then need.
    Ci(ci::CiArgs),
    /// Run benchmarks of this project and its peers, in one binary
    ///
    /// PART is runtime, scale (many actors and growing load, for the plots), pfcp, n4 (the node
    /// under load), wasm (components), messages (the actor model in TypeScript), tools, stress (all
    /// of the tools at once), or observe (the cost of observation, in instructions under
    /// callgrind).
    ///
    /// A whole run writes docs/performance.json and regenerates docs/performance.md.
    Bench(bench::BenchArgs),
    /// Generate docs/pfcp-conformance.md from test results
    Conformance(conformance::ConformanceArgs),
    /// Compare instruction counts under callgrind with bench/gate.json
    Gate(gate::GateArgs),
    /// Regenerate docs/performance.md and docs/*.svg from docs/performance.json
    Plots,
    /// Run the fuzz targets with `cargo fuzz`
    Fuzz(fuzz::FuzzArgs),
    /// Simulate the runtime, or with --n4 the N4 node, under random faults
    ///
    /// An interrupted run resumes. With --n4, both roles of the node run over a faulty network and
    /// disk, with crashes of either; a table counts how often each fault occurred.
    Simulate(simulate::SimulateArgs),
    /// Kill a node with SIGKILL under load, in recovery and in compaction
    ///
    /// The sessions of the restarted node are compared with those that it had acknowledged. With
    /// `durable`, a process with durable actors is killed, and their history is checked. An
    /// interrupted run resumes.
    Chaos(chaos::ChaosArgs),
    /// Open stores of durable actors as a loss of power may leave them
    ///
    /// The system calls of a run are recorded (needs strace). At random points among them, what was
    /// not synced is dropped, reordered, torn and damaged by chance.
    PowerLoss(power_loss::PowerLossArgs),
    /// Send malformed input to a node with a thousand sessions, and check its memory
    Robustness(robustness::RobustnessArgs),
    /// Run the demo with --chaos while components are deployed, upgraded and removed
    ///
    /// Memory, mappings and open files must stay constant.
    Soak(soak::SoakArgs),
    /// Rebuild the guests in components/ and compare them with fixtures/components
    Components(components::ComponentsArgs),
    /// Seed bugs in the runtime and the N4 node, one at a time; tests must find each
    Bugs(bugs::BugsArgs),
    /// Mutate the lines changed since STROWGER_CI_BASE or main; tests must catch each mutation
    Mutants(mutants::MutantsArgs),
    /// Check all interleavings of the runtime's lock-free parts with loom
    Loom(loom::LoomArgs),
    /// Check for undefined behaviour with Miri, AddressSanitizer and valgrind, if installed
    Miri(miri::MiriArgs),
    /// Run the runtime's tests under AddressSanitizer (needs a nightly toolchain)
    Asan,
    /// Make the files of a release: a tarball, a Debian package and their checksums
    ///
    /// They contain the binary, manual pages, shell completions, a systemd unit and a bill of
    /// materials (CycloneDX). Each file is unpacked again and checked.
    Dist(dist::DistArgs),
    /// Pack the crates and the npm package, and use them in fresh projects
    Package,
    /// Run the demo and draw its output as docs/demo.svg
    Picture,
}

/// The variable that sets the limit of a run.
const LIMIT_VARIABLE: &str = "XTASK_LIMIT";

/// Limits of whole runs, in minutes. They end what hangs: on two slow cores with empty caches, a
/// run takes a third of its limit or less.
const LIMITS: [(&str, u64); 9] = [
    ("asan", 180),
    ("ci", 480),
    ("conformance", 120),
    ("gate", 120),
    ("loom", 300),
    ("miri", 300),
    ("setup", 60),
    ("test", 240),
    ("tidy", 15),
];

/// The limit of other runs, in minutes: those that take as long as their options say.
const DEFAULT_LIMIT: u64 = 24 * 60;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let verb = args.first().map(String::as_str);
    // The arguments of `run-test` are those of a test program.
    let is_runner = verb == Some(runner::VERB);
    let cli = (!is_runner).then(<Cli as clap::Parser>::parse);
    let code = match (process::guard(), cli) {
        (Ok(()), None) => runner::run(&args[1..]),
        (Ok(()), Some(cli)) => {
            let limits = check_limits();
            report(limits.and_then(|()| within_limit(verb.unwrap_or_default(), cli.verb)))
        }
        (error, _) => report(error),
    };
    process::hold_if_interrupted();
    code
}

/// Checks the environment variables that set limits.
fn check_limits() -> Outcome {
    for variable in [LIMIT_VARIABLE, step::LIMIT_VARIABLE, runner::LIMIT_VARIABLE] {
        let given = std::env::var(variable).unwrap_or_default();
        if !given.is_empty() {
            duration::parse_duration(&given).map_err(|error| format!("{variable}: {error}"))?;
        }
    }
    Ok(())
}

/// Prints the error, if there is one.
fn report(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            term::error(&message);
            ExitCode::FAILURE
        }
    }
}

fn within_limit(name: &str, verb: Verb) -> Outcome {
    let own = LIMITS.iter().find(|(of, _)| *of == name);
    let minutes = own.map_or(DEFAULT_LIMIT, |(_, minutes)| *minutes);
    let limit = Duration::from_secs(minutes * 60);
    let what = format!("cargo xtask {name}");
    process::within(&what, limit, LIMIT_VARIABLE, || dispatch(verb))
}

fn dispatch(verb: Verb) -> Outcome {
    let project = &Project::locate()?;
    match verb {
        Verb::Setup(args) => setup::run(&args),
        Verb::Test(args) => test::run(project, &args.cargo).map(drop),
        Verb::Tidy => tidy::run(project),
        Verb::Ci(args) => ci::run(project, &args),
        Verb::Fuzz(args) => fuzz::run(project, &args),
        Verb::Dist(args) => dist::run(project, &args),
        Verb::Package => package::run(project),
        Verb::Picture => picture::run(project),
        Verb::Simulate(args) => simulate::run(project, &args),
        Verb::Loom(args) => loom::run(project, &args),
        Verb::Asan => miri::asan(project),
        Verb::Miri(args) => miri::run(project, &args),
        Verb::Mutants(args) => mutants::run(project, &args.options),
        Verb::Chaos(args) => chaos::run(project, &args),
        Verb::PowerLoss(args) => power_loss::run(project, &args),
        Verb::Robustness(args) => robustness::run(project, args),
        Verb::Soak(args) => soak::run(project, args),
        Verb::Components(args) => components::run(project, &args),
        Verb::Bugs(args) => bugs::run(project, &args),
        Verb::Bench(args) => bench::run(project, &args),
        Verb::Conformance(args) => conformance::run(project, args.check),
        Verb::Gate(args) => gate::run(project, args.save),
        Verb::Plots => plots::run(project),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;

    fn parsed(line: &str) -> Result<Verb, String> {
        let words = std::iter::once("xtask").chain(line.split_whitespace());
        let parsed = Cli::try_parse_from(words);
        parsed
            .map(|cli| cli.verb)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn unknown_verbs_options_and_values_are_refused() {
        for line in [
            "",
            "tidied",
            "tidy --all",
            "ci --fast",
            "loom --weak",
            "gate --saved",
            "asan --short",
            "simulate --seeds many",
            "simulate --seeds",
            "simulate --sed 3",
            "simulate --trace",
            "simulate --seed 3 --background",
            "simulate --n4 --durable",
            "simulate --durable --seed 3 --trace",
            "chaos --kills many",
            "chaos --kill 3",
            "chaos sessions",
            "power-loss --point 3",
            "power-loss --points many",
            "fuzz --fast",
            "fuzz --for soon",
            "fuzz view --keep cut-off",
            "soak --for 19s",
            "setup all",
            "mutants --file x",
            "bench",
            "bench tunring",
            "bench runtime tell",
            "bench runtime --only",
            "bench runtime --resume --only tell",
            "bench runtime --resume --quick",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn test_passes_options_on_and_has_its_own_help() {
        for (line, cargo) in [
            ("test -p strowger-pfcp", &["-p", "strowger-pfcp"][..]),
            ("test -- --lib", &["--lib"]),
            (
                "test --offline --test a -- --exact b",
                &["--offline", "--test", "a", "--", "--exact", "b"],
            ),
        ] {
            assert!(
                matches!(parsed(line), Ok(Verb::Test(args)) if args.cargo == cargo),
                "{line}"
            );
        }
        let help = parsed("test --help").expect_err("help");
        assert!(help.contains("Usage: cargo xtask test"), "{help}");
        let help = parsed("bench --help").expect_err("help");
        assert!(help.contains("--quick"), "{help}");
    }

    #[test]
    fn help_states_the_defaults() {
        assert!(matches!(parsed("fuzz"), Ok(Verb::Fuzz(args)) if args.time.as_secs() == 15));
        assert!(matches!(parsed("chaos"), Ok(Verb::Chaos(args)) if args.kills == 50));
        assert!(matches!(parsed("chaos durable --kills 3"),
            Ok(Verb::Chaos(args)) if args.kills == 3));
        assert!(matches!(parsed("simulate --seed 7 --trace"),
            Ok(Verb::Simulate(args)) if args.seeds == 1000 && args.seed == Some(7)));
        assert!(matches!(parsed("bench n4 --quick"),
            Ok(Verb::Bench(args)) if args.part == "n4" && args.quick));
    }
}
