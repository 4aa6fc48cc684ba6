//! `cargo xtask simulate`: the storm of the runtime's tests, for any number of seeds.

pub(crate) mod n4;

use std::process::{Command, Stdio};

use crate::binaries::{self, Binary};
use crate::project::Project;
use crate::step::{self, Step};
use crate::{Outcome, term};

/// Seeds between two progress notes.
const CHUNK: u64 = 1000;

const STORM: &str =
    "no_letter_is_handled_twice_or_lost_without_report_and_each_sender_keeps_its_order";
const TWICE: &str = "one_seed_gives_the_same_storm_twice";

/// Options of `cargo xtask simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// Run the seeds below this number
    #[arg(long, value_name = "NUMBER", default_value_t = CHUNK)]
    pub(crate) seeds: u64,
    /// Run only this seed
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Print which actor ran when
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Run without this terminal; the output goes to a file
    #[arg(long, conflicts_with = "seed")]
    background: bool,
    /// Run both roles of the N4 node instead of the runtime's actors
    #[arg(long)]
    n4: bool,
}

/// Runs the storm for many seeds or for one, and prints its trace on request.
pub(crate) fn run(project: &Project, plan: &SimulateArgs) -> Outcome {
    if plan.background {
        return step::background(project.root(), &project.folder("simulate")?);
    }
    if plan.n4 {
        return match plan.seed {
            Some(seed) => n4::one(project, seed, plan.trace),
            None => n4::all(project, plan.seeds),
        };
    }
    let storm = binaries::storm(project)?;
    match plan.seed {
        Some(seed) if plan.trace => trace(project, &storm, seed),
        Some(seed) => {
            let mut command = only(&storm, STORM);
            step::run(command.env("STROWGER_SEED", seed.to_string()))
        }
        None => all(project, &storm, plan.seeds),
    }
}

/// Runs the short form: seeds that the tests do not run, and the same trace twice.
pub(crate) fn short(project: &Project) -> Result<Option<String>, String> {
    let storm = binaries::storm(project)?;
    let mut command = only(&storm, STORM);
    step::run(command.env("STROWGER_STORM_SEEDS", "1000..1200"))?;
    let (first, second) = (
        read_trace(project, &storm, 7)?,
        read_trace(project, &storm, 7)?,
    );
    if first != second {
        return Err("seed 7 gave two traces".to_owned());
    }
    let turns = first.lines().count();
    Ok(Some(format!(
        "200 seeds; a trace of {turns} lines, twice the same"
    )))
}

fn only(storm: &Binary, test: &str) -> Command {
    let mut command = storm.command();
    command.args([test, "--exact", "--nocapture"]);
    command
}

/// Runs all seeds below a number. An interrupted run resumes where it was, as long as the storm is
/// the same.
fn all(project: &Project, storm: &Binary, seeds: u64) -> Outcome {
    let note = project.folder("simulate")?.join("progress");
    let mark = format!("{} {seeds}", storm.stamp());
    let kept = std::fs::read_to_string(&note).unwrap_or_default();
    let mut next = resumed(&kept, &mark);
    if next > 0 {
        term::note(&format!("goes on at seed {next}, where the last run ended"));
    }
    while next < seeds {
        let end = seeds.min(next + CHUNK);
        let mut command = only(storm, STORM);
        step::run(command.env("STROWGER_STORM_SEEDS", format!("{next}..{end}")))
            .map_err(|error| format!("{error}; the seed and how to replay it stand above"))?;
        next = end;
        std::fs::write(&note, format!("{mark}\n{next}"))
            .map_err(|error| format!("cannot write {}: {error}", note.display()))?;
        term::note(&format!("{next} of {seeds} seeds hold"));
    }
    // The next run starts from the first seed again.
    std::fs::remove_file(&note).map_err(|error| format!("{}: {error}", note.display()))
}

/// Returns the seed at which a run with this mark resumes.
fn resumed(kept: &str, mark: &str) -> u64 {
    match kept.split_once('\n') {
        Some((of, next)) if of == mark => next.trim().parse().unwrap_or(0),
        _ => 0,
    }
}

fn trace(project: &Project, storm: &Binary, seed: u64) -> Outcome {
    let text = read_trace(project, storm, seed)?;
    term::line(text.trim_end());
    Ok(())
}

/// Runs a seed twice and returns its trace. Returns an error if the two differ, or the seed fails.
fn read_trace(project: &Project, storm: &Binary, seed: u64) -> Result<String, String> {
    let file = project.folder("simulate")?.join(format!("trace-{seed}"));
    let mut command = only(storm, TWICE);
    command.env("STROWGER_SEED", seed.to_string());
    command.env("STROWGER_STORM_TRACE", &file);
    // Standard output is for the trace alone.
    command.stdout(Stdio::null());
    let ran = step::run(&mut command);
    let text = std::fs::read_to_string(&file)
        .map_err(|error| format!("no trace at {}: {error}", file.display()))?;
    match ran {
        Ok(()) => Ok(text),
        Err(error) => Err(format!("{error}; its trace is {}", file.display())),
    }
}

/// Returns the step of `cargo xtask ci`.
pub(crate) fn step(project: &Project) -> Step<'_> {
    Step::new("simulate", "cargo xtask simulate --seeds 2000", || {
        short(project)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_only_where_the_storm_is_the_same() {
        assert_eq!(resumed("a 5000\n3000", "a 5000"), 3000);
        assert_eq!(resumed("a 5000\n3000", "b 5000"), 0);
        assert_eq!(resumed("", "a 5000"), 0);
    }
}
