//! `cargo xtask loom`: every interleaving of threads in the small state machines of the runtime.
//!
//! The models are beside the code (`src/**/loom.rs`) and check that very code, through
//! `crate::sync`. To prove that they notice errors, `--weaken` takes away one ordering or step at a
//! time (`crates/runtime/src/sync/weakening.rs`): the model that is listed with it must fail. The
//! models are built once, and read at run time which weakening is active.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use crate::binaries::{self, Binary};
use crate::process;
use crate::project::Project;
use crate::{Outcome, step, term};

/// Maximum number of preemptions by the scheduler; loom's authors find that two or three find
/// nearly every bug.
const PREEMPTIONS: &str = "3";

/// Time limit of all models together, which take less than half a minute.
const LIMIT: Duration = Duration::from_secs(1200);

/// Time limit of the model of a weakening, which fails within a second.
const WEAKENED_LIMIT: Duration = Duration::from_secs(120);

/// The test that lists the weakenings, each in a line that begins with this word.
const LISTING_TEST: &str = "sync::weakening::tests::each_weakening_has_a_model";
const LISTING_PREFIX: &str = "weakening ";

/// The variable that names the active weakening.
const ACTIVE_VARIABLE: &str = "STROWGER_WEAKEN";

/// The exit status of a test program in which a test failed.
const FAILED: i32 = 101;

/// The signal of a test program in which a test panicked while another panic unwound its stack.
const ABORTED: i32 = 6;

/// An ordering or step that can be taken away.
#[derive(Debug, PartialEq, Eq)]
struct Weakening {
    name: String,
    /// The full name of the model that must fail without it.
    model: String,
}

/// Options of `cargo xtask loom`.
#[derive(Debug, clap::Args)]
pub(crate) struct LoomArgs {
    /// Also remove one ordering or step at a time; a model must fail for each
    #[arg(long)]
    weaken: bool,
}

/// Runs the models; with `--weaken`, also the model of each weakening.
pub(crate) fn run(project: &Project, args: &LoomArgs) -> Outcome {
    check(project, args.weaken).map(|said| term::note(&said))
}

/// Runs the models, and returns a phrase with the number of those that hold.
pub(crate) fn check(project: &Project, weaken: bool) -> Result<String, String> {
    let program = build(project)?;
    let mut models = models_command(&program, None);
    models.arg("loom::");
    let output = process::output_within(&mut models, LIMIT)?;
    let output = output.ok_or_else(|| {
        let limit = term::format_duration(LIMIT);
        format!("the models do not end within {limit}")
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        term::note(&String::from_utf8_lossy(&output.stderr));
        term::note(&said);
        return Err(format!(
            "`{}` ended with {}",
            step::display(&models),
            output.status
        ));
    }
    let count = passed_models(&said);
    if count == 0 {
        return Err("no model ran: is there one below crates/runtime/src?".to_owned());
    }
    if !weaken {
        return Ok(format!("{count} models hold"));
    }
    let all = weakenings(&program)?;
    assert_detected(&program, &all)?;
    let weak = all.len();
    Ok(format!(
        "{count} models hold, and one fails for each of {weak} weakenings"
    ))
}

/// Builds the test program of the runtime with its models.
fn build(project: &Project) -> Result<Binary, String> {
    let mut cargo = project.cargo();
    cargo
        .env("RUSTFLAGS", "--cfg strowger_loom")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_TARGET_DIR", project.target().join("loom"))
        .args(["test", "--locked", "-p", "strowger", "--lib"]);
    let program = binaries::build(&mut cargo)?.into_iter().next();
    program.ok_or_else(|| "cargo built no models".to_owned())
}

/// Returns a command that runs models, with a weakening or without.
fn models_command(program: &Binary, weakening: Option<&Weakening>) -> Command {
    let mut command = program.command();
    command
        .env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS)
        .env("RUST_BACKTRACE", "0");
    match weakening {
        Some(weakening) => command.env(ACTIVE_VARIABLE, &weakening.name),
        None => command.env_remove(ACTIVE_VARIABLE),
    };
    command
}

/// Asks the test program for its weakenings.
fn weakenings(program: &Binary) -> Result<Vec<Weakening>, String> {
    let mut listing = models_command(program, None);
    listing.args([LISTING_TEST, "--exact", "--nocapture"]);
    let all = parse_listing(&step::output(&mut listing)?);
    if all.is_empty() {
        return Err(format!("`{LISTING_TEST}` lists no weakening"));
    }
    Ok(all)
}

fn parse_listing(said: &str) -> Vec<Weakening> {
    let lines = said.lines().filter_map(|line| {
        let (name, model) = line.strip_prefix(LISTING_PREFIX)?.split_once(' ')?;
        Some(Weakening {
            name: name.to_owned(),
            model: model.to_owned(),
        })
    });
    lines.collect()
}

/// Runs the model of each weakening, as many at a time as there are processors. Returns an error
/// unless all of them fail.
fn assert_detected(program: &Binary, all: &[Weakening]) -> Outcome {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (left, missed) = (Mutex::new(all.iter()), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let next = || left.lock().ok()?.next();
                while let Some(weakening) = next() {
                    let mut model = models_command(program, Some(weakening));
                    model.args([&weakening.model, "--exact", "--nocapture"]);
                    let output = process::output_within(&mut model, WEAKENED_LIMIT);
                    match output.and_then(|output| reason(weakening, output.as_ref())) {
                        Ok(reason) => term::note(&format!("  {:<26} {reason}", weakening.name)),
                        Err(error) => missed.lock().expect("no panic before").push(error),
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().expect("no panic before");
    if missed.is_empty() {
        return Ok(());
    }
    Err(missed.join("\n"))
}

/// Returns the reason for which a model failed, from the output of a run that did not capture it;
/// an error if the model did not fail.
fn reason(weakening: &Weakening, output: Option<&Output>) -> Result<String, String> {
    let Weakening { name, model } = weakening;
    // Loom ends a model that loops, so a timeout is no detection.
    let output = output.ok_or_else(|| {
        let limit = term::format_duration(WEAKENED_LIMIT);
        format!("{name}: `{model}` does not end within {limit}")
    })?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() {
        return Err(match passed_models(&said) {
            0 => format!("{name}: there is no model `{model}`"),
            _ => format!("{name}: `{model}` holds without it"),
        });
    }
    let why = String::from_utf8_lossy(&output.stderr);
    let failed = output.status.code() == Some(FAILED) && said.contains("test result: FAILED");
    // Loom aborts the process if it cannot unwind.
    let failed = failed || output.status.signal() == Some(ABORTED);
    match panic_message(&why) {
        Some(message) if failed => Ok(message),
        _ => Err(format!(
            "{name}: `{model}` ended with {}\n{why}",
            output.status
        )),
    }
}

/// Returns the beginning of the first panic's message.
fn panic_message(why: &str) -> Option<String> {
    let mut lines = why
        .lines()
        .skip_while(|line| !line.contains("panicked at "));
    let message = lines.nth(1)?;
    let message = message.split_once(';').map_or(message, |(start, _)| start);
    Some(message.chars().take(60).collect())
}

/// Returns the number of passed tests.
fn passed_models(said: &str) -> u64 {
    let counts = said.lines().filter_map(|line| {
        let rest = line.strip_prefix("test result: ok. ")?;
        rest.split(' ').next()?.parse::<u64>().ok()
    });
    counts.sum()
}

#[cfg(test)]
mod tests {
    use std::process::ExitStatus;

    use super::*;

    const PANIC: &str = "\nthread 'a' (7) panicked at b.rs:1:2:\ndeadlock; threads = [(1)]\n";

    fn weakening() -> Weakening {
        Weakening {
            name: "LockAcquire".to_owned(),
            model: "lock::loom::a".to_owned(),
        }
    }

    /// The reason that is found in the output of a run with this raw wait status.
    fn reason_in(status: i32, said: &str, why: &str) -> Result<String, String> {
        let output = Output {
            status: ExitStatus::from_raw(status),
            stdout: said.into(),
            stderr: why.into(),
        };
        reason(&weakening(), Some(&output))
    }

    #[test]
    fn models_are_counted() {
        let said = "running 3 tests\ntest result: ok. 3 passed; 0 failed; 0 ignored\n";
        assert_eq!(passed_models(said), 3);
        assert_eq!(
            passed_models("test result: FAILED. 1 passed; 1 failed\n"),
            0
        );
    }

    #[test]
    fn weakenings_are_read_from_the_listing() {
        let said = "running 1 test\n\nweakening LockAcquire lock::loom::a\ntest b ... ok\n";
        assert_eq!(parse_listing(said), [weakening()]);
    }

    #[test]
    fn only_a_failing_model_detects_a_weakening() {
        let failed = "test result: FAILED. 0 passed; 1 failed; 0 ignored\n";
        let deadlock = Ok("deadlock".to_owned());
        assert_eq!(reason_in(FAILED << 8, failed, PANIC), deadlock);
        assert_eq!(reason_in(ABORTED, "running 1 test\n", PANIC), deadlock);

        let message = |result: Result<String, String>| result.expect_err("it noticed nothing");
        let holds = reason_in(0, "test result: ok. 1 passed; 0 failed\n", "");
        assert!(message(holds).ends_with("`lock::loom::a` holds without it"));
        let absent = reason_in(0, "test result: ok. 0 passed; 0 failed\n", "");
        assert!(message(absent).contains("there is no model `lock::loom::a`"));
        let unknown = "STROWGER_WEAKEN: there is no weakening `LockAquire`\n";
        assert!(message(reason_in(2 << 8, "running 1 test\n", unknown)).contains(unknown));
        assert!(message(reason(&weakening(), None)).contains("does not end within"));
    }
}
