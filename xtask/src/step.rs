//! Steps: named tasks, run one after the other, timed, and summarized at the end.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::duration::parse_duration;
use crate::process;
use crate::project::Project;
use crate::term::{self, TextStyle};

/// The variable that sets the limit of each step.
pub(crate) const LIMIT_VARIABLE: &str = "XTASK_STEP_LIMIT";

/// Limits of steps, in minutes. They end what hangs: on two slow cores with empty caches, a step
/// takes a third of its limit or less.
const LIMITS: [(&str, u64); 10] = [
    ("asan", 120),
    ("bugs", 120),
    ("dist", 120),
    ("loom", 180),
    ("miri", 240),
    ("mutants", 240),
    ("package", 180),
    ("test", 240),
    ("tests", 180),
    ("valgrind", 120),
];

/// The limit of other steps, in minutes.
const DEFAULT_LIMIT: u64 = 60;

/// A task that can pass, fail or have a reason not to run.
pub(crate) struct Step<'a> {
    /// The name by which it can be run alone.
    pub(crate) name: &'static str,
    /// The command that runs only this step.
    pub(crate) rerun: String,
    /// The time after which the step counts as hung, and what it started is ended.
    limit: Duration,
    /// The work. `Ok(Some(..))` is a phrase about the result, or about what was left out.
    pub(crate) work: Box<dyn FnMut() -> Result<Option<String>, String> + 'a>,
}

impl<'a> Step<'a> {
    pub(crate) fn new(
        name: &'static str,
        rerun: impl Into<String>,
        work: impl FnMut() -> Result<Option<String>, String> + 'a,
    ) -> Self {
        let own = LIMITS.iter().find(|(of, _)| *of == name);
        Self {
            name,
            rerun: rerun.into(),
            limit: Duration::from_secs(own.map_or(DEFAULT_LIMIT, |(_, minutes)| *minutes) * 60),
            work: Box::new(work),
        }
    }

    /// Gives the step more time, for work that is meant to take it.
    pub(crate) fn with_time(mut self, time: Duration) -> Self {
        self.limit += time;
        self
    }

    /// Creates a step of one command, with its output passed through.
    pub(crate) fn command(name: &'static str, make: impl Fn() -> Command + 'a) -> Self {
        let rerun = display(&make());
        Self::new(name, rerun, move || run(&mut make()).map(|()| None))
    }
}

/// Parses a time that is at least `least`.
pub(crate) fn time_from(least: Duration, text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(time) if time < least => Err(format!("{text} is too short: at least {least:?}")),
        parsed => parsed.map_err(|error| error.to_string()),
    }
}

/// Options of long runs of a binary.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct LongRunArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Run detached from the terminal, with output to a file
    #[arg(long)]
    pub(crate) background: bool,
    /// Use this prebuilt binary
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Option<PathBuf>,
}

/// Starts this program again, detached from this terminal and without `--background`; its output
/// goes to `log` in `folder`.
pub(crate) fn background(root: &Path, folder: &Path) -> Outcome {
    use std::os::unix::process::CommandExt;

    let log = folder.join("log");
    let failed = |error: std::io::Error| format!("{}: {error}", log.display());
    std::fs::create_dir_all(folder).map_err(failed)?;
    let out = std::fs::File::create(&log).map_err(failed)?;
    let err = out.try_clone().map_err(failed)?;
    let me = std::env::current_exe().map_err(|error| format!("who am I: {error}"))?;
    let child = Command::new(me)
        .args(
            std::env::args_os()
                .skip(1)
                .filter(|arg| arg != "--background"),
        )
        .current_dir(root)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start in the background: {error}"))?;
    let (id, log) = (child.id(), log.display());
    term::note(&format!("runs as process {id}; what it finds is in {log}"));
    Ok(())
}

/// A step that has run.
pub(crate) struct StepResult {
    pub(crate) name: &'static str,
    pub(crate) took: Duration,
    pub(crate) result: Result<Option<String>, String>,
    rerun: String,
}

/// Runs the steps in order and prints the summary.
///
/// Stops at the first failure unless `keep_going`.
pub(crate) fn run_all(steps: Vec<Step<'_>>, keep_going: bool) -> Outcome {
    run_recorded(steps, keep_going, |_| ())
}

/// Runs the steps as [`run_all`] does, and passes all results so far to `record` after each step.
pub(crate) fn run_recorded(
    steps: Vec<Step<'_>>,
    keep_going: bool,
    mut record: impl FnMut(&[StepResult]),
) -> Outcome {
    let total = steps.len();
    let begun = Instant::now();
    let mut done: Vec<StepResult> = Vec::new();
    for (at, mut step) in steps.into_iter().enumerate() {
        let place = format!("[{}/{total}]", at + 1);
        let title = paint_title(&place, step.name);
        term::note(&format!("\n{title}  {}", step.rerun));
        let start = Instant::now();
        let result = process::within(step.name, step.limit, LIMIT_VARIABLE, &mut step.work);
        let result = result.map_err(|error| match full_disk() {
            Some(advice) => format!("{error}\n  {advice}"),
            None => error,
        });
        let took = start.elapsed();
        let word = verdict(&result);
        term::note(&format!(
            "{title}  {word} in {}",
            term::format_duration(took)
        ));
        let failed = result.is_err();
        done.push(StepResult {
            name: step.name,
            took,
            result,
            rerun: step.rerun,
        });
        record(&done);
        if failed && !keep_going {
            break;
        }
    }
    summary(&done, total, begun.elapsed())
}

/// Free space in the target folder below which a failure is taken for that of a full disk.
const MIN_FREE_KIB: u64 = 4 << 20;

/// Returns the folder that has no room, and a remedy, if the disk of the target folder is full.
fn full_disk() -> Option<String> {
    let target = Project::locate().ok()?.target();
    let disk = rustix::fs::statvfs(&target).ok()?;
    let free = disk.f_bavail * disk.f_frsize;
    let target = target.display();
    (free < MIN_FREE_KIB).then(|| {
        format!(
            "the disk of {target} is full, {} KiB are free: make room, or set CARGO_TARGET_DIR to \
             a folder on another disk",
            free >> 10
        )
    })
}

fn paint_title(place: &str, name: &str) -> String {
    term::paint(TextStyle::Bold, &format!("{place} {name}"))
}

fn verdict(result: &Result<Option<String>, String>) -> String {
    match result {
        Ok(_) => term::paint(TextStyle::Green, "ok"),
        Err(_) => term::paint(TextStyle::Red, "FAILED"),
    }
}

fn summary(done: &[StepResult], total: usize, took: Duration) -> Outcome {
    term::note("");
    let mut failures = Vec::new();
    for step in done {
        let word = verdict(&step.result);
        let pad = if step.result.is_ok() { "    " } else { "" };
        let said = match &step.result {
            Ok(Some(said)) => said.as_str(),
            Ok(None) => "",
            Err(why) => why.lines().next().unwrap_or_default(),
        };
        let time = term::format_duration(step.took);
        let row = format!("  {:<14} {word}{pad} {time:>12}  {said}", step.name);
        term::note(row.trim_end());
        if let Err(why) = &step.result {
            failures.push(format!(
                "step `{}`: {why}\n  alone: {}",
                step.name, step.rerun
            ));
        }
    }
    for _ in done.len()..total {
        failures.push(String::new());
    }
    let not_run = total - done.len();
    failures.retain(|text| !text.is_empty());
    let all = term::format_duration(took);
    if failures.is_empty() {
        term::note(&format!("\nall {total} steps passed in {all}"));
        return Ok(());
    }
    let rest = if not_run > 0 {
        format!(", {not_run} not run")
    } else {
        String::new()
    };
    let count = failures.len();
    Err(format!(
        "{count} of {total} steps failed in {all}{rest}\n{}",
        failures.join("\n")
    ))
}

/// Runs a command with its output passed through. An error names the command.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let status = process::status(command)?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`{}` ended with {status}", display(command)))
    }
}

/// Runs a command and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let output = process::stdout(command)?;
    let shown = display(command);
    if !output.status.success() {
        return Err(format!("`{shown}` ended with {}", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("`{shown}` wrote no UTF-8"))
}

/// Formats a command as one would type it, with the environment it was given.
pub(crate) fn display(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(key, value)| {
            let value = quoted(&value?.to_string_lossy());
            Some(format!("{}={value}", key.to_string_lossy()))
        })
        .collect();
    words.push(command.get_program().to_string_lossy().into_owned());
    words.extend(command.get_args().map(|arg| quoted(&arg.to_string_lossy())));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    if word.contains([' ', '*', '$', '"']) {
        format!("'{word}'")
    } else {
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passing(name: &'static str) -> Step<'static> {
        Step::new(name, format!("cargo {name}"), || Ok(None))
    }

    fn failing(name: &'static str) -> Step<'static> {
        Step::new(name, format!("cargo {name}"), || {
            Err("two things are wrong".to_owned())
        })
    }

    #[test]
    fn failure_names_the_step_and_how_to_run_it_alone() {
        let error = run_all(vec![passing("fmt"), failing("tidy"), passing("doc")], false)
            .expect_err("a step failed");
        assert!(error.contains("1 of 3 steps failed"), "{error}");
        assert!(error.contains("1 not run"), "{error}");
        assert!(
            error.contains("step `tidy`: two things are wrong"),
            "{error}"
        );
        assert!(error.contains("alone: cargo tidy"), "{error}");
    }

    #[test]
    fn keep_going_reports_every_failure() {
        let error = run_all(vec![failing("fmt"), failing("tidy")], true).expect_err("both failed");
        assert!(error.contains("2 of 2 steps failed"), "{error}");
    }

    #[test]
    fn commands_are_shown_as_typed() {
        let mut command = Command::new("cargo");
        command
            .env("RUSTDOCFLAGS", "-D warnings")
            .args(["doc", "--no-deps"]);
        assert_eq!(
            display(&command),
            "RUSTDOCFLAGS='-D warnings' cargo doc --no-deps"
        );
    }
}
