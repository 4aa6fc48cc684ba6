//! The record of a run: `ci-times.json` in the target folder.
//!
//! It has the time of each step, so that a slow one is found without reading the log, and the
//! commit, so that `--resume` can leave out the steps that have already passed. Its calibration
//! says how fast the machine was: only on a machine as fast as the reference does a run that takes
//! too long fail.

use std::collections::BTreeSet;
use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Outcome;
use crate::project::Project;
use crate::step::{self, StepResult};

/// The time that the everyday steps may take on the reference machine, from an empty cache.
pub(super) const BUDGET: Duration = Duration::from_secs(30 * 60);

/// The result of [`calibrate`] on the reference machine, two idle cores, with a margin of a tenth.
const REFERENCE: Duration = Duration::from_millis(165);

/// Repetitions of the calibration loop.
const ROUNDS: u32 = 20_000_000;

/// The record of a run, which is written after each step.
pub(super) struct RunRecord {
    path: PathBuf,
    commit: String,
    /// `true` if the tree has no changes, so that the commit says what ran.
    is_clean: bool,
    calibration: Duration,
    begun: Instant,
    /// Steps of an interrupted run of this commit that passed.
    passed_before: BTreeSet<String>,
}

impl RunRecord {
    /// Begins a run. With `resume`, takes over the steps that passed on this commit before.
    pub(super) fn begin(project: &Project, resume: bool) -> Result<Self, String> {
        let git = |args: &[&str]| {
            let mut git = Command::new("git");
            step::output(git.current_dir(project.root()).args(args))
        };
        let commit = git(&["rev-parse", "HEAD"])?.trim().to_owned();
        let is_clean = git(&["status", "--porcelain"])?.trim().is_empty();
        let path = project.target().join("ci-times.json");
        let before = fs::read_to_string(&path).unwrap_or_default();
        let before = serde_json::from_str(&before).unwrap_or(Value::Null);
        if resume && !is_clean {
            return Err(
                "--resume needs a tree without changes: commit them, so that a step that \
                        passed stays valid"
                    .to_owned(),
            );
        }
        let passed_before = match resume {
            true => passed_steps(&before, &commit),
            false => BTreeSet::new(),
        };
        Ok(Self {
            path,
            commit,
            is_clean,
            calibration: calibrate(),
            begun: Instant::now(),
            passed_before,
        })
    }

    /// Returns `true` if the step has passed in an interrupted run of this commit.
    pub(super) fn has_passed(&self, name: &str) -> bool {
        self.passed_before.contains(name)
    }

    /// Writes the results so far. A failure to write the record does not fail the run.
    pub(super) fn write(&self, results: &[StepResult]) {
        let before = self.passed_before.iter();
        let before = before.map(|name| json!({ "name": name, "ok": true, "before": true }));
        let steps = results.iter().map(|step| {
            json!({
                "name": step.name,
                "seconds": step.took.as_secs_f64(),
                "ok": step.result.is_ok(),
            })
        });
        let record = json!({
            "commit": self.commit,
            "clean": self.is_clean,
            "calibration_ms": self.calibration.as_secs_f64() * 1e3,
            "seconds": self.begun.elapsed().as_secs_f64(),
            "steps": before.chain(steps).collect::<Vec<_>>(),
        });
        let _unwritten = fs::write(&self.path, format!("{record:#}\n"));
    }

    /// Fails if the run took longer than `budget` on a machine as fast as the reference. A second
    /// calibration notices a machine that other programs have kept busy meanwhile.
    pub(super) fn check_budget(&self, budget: Duration) -> Outcome {
        let calibration = self.calibration.max(calibrate());
        check_time(self.begun.elapsed(), budget, calibration)
    }
}

fn check_time(took: Duration, budget: Duration, calibration: Duration) -> Outcome {
    if took <= budget || calibration > REFERENCE {
        return Ok(());
    }
    Err(format!(
        "the steps took {} min, the budget is {} min: make room in a step, or move a proof to \
         `cargo xtask ci --full`; ci-times.json in the target folder has the time of each step",
        took.as_secs().div_ceil(60),
        budget.as_secs() / 60
    ))
}

/// Returns the steps of a record of this commit that passed.
fn passed_steps(record: &Value, commit: &str) -> BTreeSet<String> {
    if record["commit"] != commit || record["clean"] != true {
        return BTreeSet::new();
    }
    let steps = record["steps"].as_array().into_iter().flatten();
    let passed = steps.filter(|step| step["ok"] == true);
    passed
        .filter_map(|step| step["name"].as_str().map(str::to_owned))
        .collect()
}

/// Returns the best time of a loop that runs on all processors at once.
fn calibrate() -> Duration {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let times = (0..3).map(|_| {
        let begun = Instant::now();
        thread::scope(|scope| {
            for _ in 0..processors {
                scope.spawn(calibration_loop);
            }
        });
        begun.elapsed()
    });
    times.min().unwrap_or_default()
}

fn calibration_loop() {
    let mut state = 1_u64;
    for round in 0..ROUNDS {
        state = state.rotate_left(5) ^ u64::from(round);
    }
    black_box(state);
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn run_over_budget_fails_on_a_machine_as_fast_as_the_reference() {
        let fast = REFERENCE / 2;
        let error = check_time(31 * MINUTE, 30 * MINUTE, fast).expect_err("it took too long");
        assert!(error.contains("31 min, the budget is 30 min"), "{error}");
        assert_eq!(check_time(30 * MINUTE, 30 * MINUTE, fast), Ok(()));
        assert_eq!(check_time(90 * MINUTE, 30 * MINUTE, 2 * REFERENCE), Ok(()));
    }

    #[test]
    fn resume_skips_steps_that_passed_on_the_same_commit() {
        let record = json!({
            "commit": "abc", "clean": true,
            "steps": [{ "name": "fmt", "ok": true }, { "name": "test", "ok": false }],
        });
        assert_eq!(
            passed_steps(&record, "abc"),
            BTreeSet::from(["fmt".to_owned()])
        );
        assert!(passed_steps(&record, "def").is_empty());
        let changed = json!({ "commit": "abc", "clean": false, "steps": record["steps"] });
        assert!(passed_steps(&changed, "abc").is_empty());
    }
}
