//! The project's own verbs: `cargo xtask <verb>`.
//!
//! Each verb is a module with a function `run`. All verbs start programs through [`step`], so that
//! every failure names its step, the time it took and the command to run it alone.

mod asan;
mod bench;
mod benches;
mod binaries;
mod bugs;
mod chaos;
mod ci;
mod components;
mod conformance;
mod demo;
mod fuzz;
mod gate;
mod loom;
mod miri;
mod mutants;
mod node;
mod observe;
mod picture;
mod plots;
mod process;
mod project;
mod report;
mod runner;
mod setup;
mod simulate;
mod soak;
mod step;
mod term;
mod test;
mod tidy;
mod tools;
mod torture;
mod typescript;

use std::process::ExitCode;
use std::time::Duration;

use crate::project::Project;

/// The result of a verb: nothing, or an error message for the terminal.
type Outcome = Result<(), String>;

const HELP: &str = "\
The project's own verbs.

Usage: cargo xtask <VERB> [OPTIONS]

  setup                    install what proofs need, or say how to get it (--short: without what
                           only `ci --full` needs; guests: the compilers of components)
  test                     every test that needs only cargo, then the proof tools; it installs
                           nothing, always ends, and names the tests that hang
  tidy                     layout, imports, words and licences that clippy does not check
  ci [STEP...]             the everyday checks: format, lints, tests, docs, simulation, loom
                           (--full: all proofs as well; --list: the names of the steps;
                           --keep-going: run on after a failure; --resume: leave out the steps
                           that have passed on this commit). The target folder keeps the times
                           in ci-times.json. STROWGER_CI_BASE=COMMIT adds the proofs that the
                           files changed since then need
  bench PART               ours beside its peers, in one binary; PART is runtime, scale (many
                           actors and growing load, for the plots), pfcp, n4 (the node under
                           load), wasm (components), messages (the actor model in TypeScript),
                           tools or stress (all of the tools at once)
                           (--quick: short; --only ROWS: separated by commas, with a * at the end
                           for all that begin so; --json: rows only; a whole run goes to
                           docs/performance.json and docs/performance.md is written anew;
                           --resume goes on with one that was cut off)
  bench observe            what it costs to watch actors, in instructions under callgrind
                           (--quick, --json as above)
  conformance              docs/pfcp-conformance.md from what tests compared and found right
                           (--check: says whether the page is current)
  gate [--save]            instructions under callgrind beside those accepted in bench/gate.json
  plots                    docs/performance.md and docs/*.svg again from docs/performance.json
  fuzz [TARGET...]         coverage-guided fuzzing by `cargo fuzz` (--for 15s; --list names the
                           targets; TARGET --keep NAME FILE adds a regression input, replayed by the tests)
  simulate                 the storm of the runtime's tests (--seeds 1000; a run that was broken
                           off goes on where it was; --background; --seed 7 runs one, and with
                           --trace prints which actor ran when)
  simulate --n4            both roles of the N4 node over a bad network and a bad disk, with crashes
                           of either; how often each fault struck (--seeds, --seed, --trace and
                           --background as above)
  chaos                    kill a node with -9 under load, in recovery and in compaction, and
                           compare what it has then with what was acknowledged (--kills 50;
                           --seed 1; --json; --background; --binary FILE runs one that is built;
                           a run that was broken off goes on)
  torture                  bad input to a node with a thousand sessions, a table of what passed,
                           and its memory after it (--json; --binary FILE runs one that is built)
  soak                     the demo under chaos while components come, are upgraded and go; memory,
                           mappings and files have to stay as they were (--for 20m; --json;
                           --background; --binary FILE runs one that is built)
  components [GUEST...]    build the guests of components/ anew; the result has to be what is in
                           fixtures/components (--save: puts it there)
  bugs [BUG...]            plant bugs in the runtime and in the N4 node, one at a time; each must be
                           found (--list)
  mutants [-- OPTIONS]     `cargo mutants` on the lines that differ from STROWGER_CI_BASE or main;
                           a test must notice each mutation (-- --file GLOB mutates other files;
                           all options after -- are those of cargo mutants)
  loom                     all interleavings of the runtime's small machines (--weaken: and for
                           each ordering or step that is taken away, a model must fail)
  miri                     undefined behaviour: Miri, AddressSanitizer and valgrind, whichever are
                           here; it says which (--short: Miri alone where it is)
  asan                     the runtime's tests under AddressSanitizer (needs a nightly toolchain)
  picture                  run the demo and draw what it printed as docs/demo.svg

Environment: CI=true makes a missing tool or missing fixtures a failure. XTASK_LIMIT=2h is the time
after which a run is ended with all programs that it started, XTASK_STEP_LIMIT=30m that of each step
and XTASK_TEST_LIMIT=10m that of each test program; a slow machine may need more than the defaults.
";

/// The variable that sets the limit of a run.
const LIMIT: &str = "XTASK_LIMIT";

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
const LONGEST: u64 = 24 * 60;

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let verb = args.next();
    let rest: Vec<String> = args.collect();
    let code = match process::guard() {
        Ok(()) if verb.as_deref() == Some(runner::VERB) => runner::run(&rest),
        Ok(()) => reported(within_limit(verb.as_deref(), &rest)),
        error => reported(error),
    };
    process::hold_if_interrupted();
    code
}

/// Prints the error, if there is one.
fn reported(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            term::error(&message);
            ExitCode::FAILURE
        }
    }
}

fn within_limit(verb: Option<&str>, rest: &[String]) -> Outcome {
    let name = verb.unwrap_or("help");
    let own = LIMITS.iter().find(|(of, _)| *of == name);
    let minutes = own.map_or(LONGEST, |(_, minutes)| *minutes);
    let limit = Duration::from_secs(minutes * 60);
    let what = format!("cargo xtask {name}");
    process::within(&what, limit, LIMIT, || dispatch(verb, rest))
}

fn dispatch(verb: Option<&str>, rest: &[String]) -> Outcome {
    let project = &Project::locate()?;
    match verb {
        Some("setup") => setup::run(rest),
        Some("test") => test::run(project, rest).map(drop),
        Some("tidy") => tidy::run(project),
        Some("ci") => ci::run(project, rest),
        Some("fuzz") => fuzz::run(project, rest),
        Some("picture") => picture::run(project),
        Some("simulate") => simulate::run(project, rest),
        Some("loom") => loom::run(project, rest),
        Some("asan") => asan::run(project, rest),
        Some("miri") => miri::run(project, rest),
        Some("mutants") => mutants::run(
            project,
            rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest),
        ),
        Some("chaos") => chaos::run(project, rest),
        Some("torture") => torture::run(project, rest),
        Some("soak") => soak::run(project, rest),
        Some("components") => components::run(project, rest),
        Some("bugs") => bugs::run(project, rest),
        Some("bench") => bench::run(project, rest),
        Some("conformance") => conformance::run(project, rest),
        Some("gate") => gate::run(project, rest),
        Some("plots") => plots::run(project),
        None | Some("help" | "--help" | "-h") => {
            term::line(HELP);
            Ok(())
        }
        Some(other) => Err(format!("there is no verb `{other}`\n\n{HELP}")),
    }
}
