//! `cargo xtask simulate --n4`: both roles of the N4 node over a bad network and a bad disk.

use std::collections::BTreeMap;
use std::ops::Range;
use std::process::{Command, Stdio};
use std::thread;

use crate::binaries::{self, Binary};
use crate::project::Project;
use crate::step::{self, Step};
use crate::{Outcome, process, term};

/// Number of seeds of the short form.
const SHORT: u64 = 4000;
/// Minimum number of times that each fault must be injected in the short form.
const OFTEN: u64 = 200;
/// Number of seeds that one process runs.
const CHUNK: u64 = 250;

const AGREE: &str = "simulation::both_roles_agree_whatever_is_lost_and_whoever_crashes";
const TWICE: &str = "simulation::a_seed_gives_the_same_run_twice";

/// Number of injections of each fault, in the order of declaration.
#[derive(Debug, Default)]
struct Faults {
    order: Vec<String>,
    counts: BTreeMap<String, u64>,
}

/// Runs all seeds below a number.
pub(super) fn all(project: &Project, seeds: u64) -> Outcome {
    let faults = storm(&simulation(project)?, 0..seeds)?;
    for name in &faults.order {
        term::line(&format!("  {name:<20} {:>10}", faults.counts[name]));
    }
    term::note(&format!("{seeds} seeds hold"));
    faults.are_enough(seeds)
}

/// Runs one seed twice, and prints its trace on request.
pub(super) fn one(project: &Project, seed: u64, trace: bool) -> Outcome {
    let binary = simulation(project)?;
    let (text, ran) = read_trace(project, &binary, seed)?;
    if trace {
        term::line(text.trim_end());
    }
    ran
}

/// Returns the step of `cargo xtask ci`.
pub(crate) fn step(project: &Project) -> Step<'_> {
    Step::new("n4", "cargo xtask simulate --n4 --seeds 4000", || {
        let binary = simulation(project)?;
        let faults = storm(&binary, 0..SHORT)?;
        faults.are_enough(SHORT)?;
        let (text, ran) = read_trace(project, &binary, 7)?;
        ran?;
        let least = faults.counts.iter().min_by_key(|(_, count)| **count);
        let (name, least) = least.ok_or("the simulation counts no faults")?;
        let (kinds, lines) = (faults.order.len(), text.lines().count());
        Ok(Some(format!(
            "{SHORT} seeds; {kinds} kinds of faults, each at least {least} times ({name}); a trace \
             of {lines} lines, twice the same"
        )))
    })
}

/// Builds the unit tests of the node with the features of the workspace's tests.
fn simulation(project: &Project) -> Result<Binary, String> {
    let mut cargo = project.cargo();
    cargo.args(["test", "--workspace", "--locked", "--lib"]);
    let built = binaries::build(&mut cargo)?;
    let found = built
        .into_iter()
        .find(|one| one.name == "strowger_pfcp_node");
    found.ok_or_else(|| "cargo built no tests of strowger-pfcp-node".to_owned())
}

/// Runs seeds on all processors.
fn storm(binary: &Binary, seeds: Range<u64>) -> Result<Faults, String> {
    let chunks: Vec<Range<u64>> = (seeds.start..seeds.end)
        .step_by(usize::try_from(CHUNK).unwrap_or(1))
        .map(|first| first..seeds.end.min(first + CHUNK))
        .collect();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut faults = Faults::default();
        loop {
            let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let Some(chunk) = chunks.get(at) else {
                return Ok(faults);
            };
            faults.read(&run(binary, chunk)?);
        }
    };
    let told: Vec<Result<Faults, String>> = thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|one| one.join());
        joined
            .map(|told| told.unwrap_or_else(|_| Err("a thread panicked".to_owned())))
            .collect()
    });
    let mut all = Faults::default();
    for told in told {
        all.add(&told?);
    }
    Ok(all)
}

fn run(binary: &Binary, seeds: &Range<u64>) -> Result<String, String> {
    let mut command = only(binary, AGREE);
    command.env(
        "STROWGER_N4_SEEDS",
        format!("{}..{}", seeds.start, seeds.end),
    );
    command.env("RUST_BACKTRACE", "0");
    let output = process::output(&mut command)?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(said);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{}\n{}\nreplay a seed: cargo xtask simulate --n4 --seed N --trace",
        complaint.trim(),
        said.trim()
    ))
}

/// Runs a seed twice. Returns its trace, and an error if the runs differed or failed.
fn read_trace(project: &Project, binary: &Binary, seed: u64) -> Result<(String, Outcome), String> {
    let file = project.folder("simulate")?.join(format!("n4-trace-{seed}"));
    let mut command = only(binary, TWICE);
    command.env("STROWGER_N4_SEED", seed.to_string());
    command.env("STROWGER_N4_TRACE", &file);
    // Standard output is for the trace alone.
    command.stdout(Stdio::null());
    let ran = step::run(&mut command);
    let text = std::fs::read_to_string(&file)
        .map_err(|error| format!("no trace at {}: {error}", file.display()))?;
    Ok((text, ran))
}

fn only(binary: &Binary, test: &str) -> Command {
    let mut command = binary.command();
    command.args([test, "--exact", "--nocapture"]);
    command
}

impl Faults {
    /// Adds the counts that a run printed: a name and a count in each line.
    fn read(&mut self, said: &str) {
        for line in said.lines().filter(|line| line.starts_with("  ")) {
            let mut words = line.split_whitespace();
            let (Some(name), Some(Ok(count)), None) =
                (words.next(), words.next().map(str::parse), words.next())
            else {
                continue;
            };
            self.count(name, count);
        }
    }

    fn count(&mut self, name: &str, count: u64) {
        if !self.counts.contains_key(name) {
            self.order.push(name.to_owned());
        }
        *self.counts.entry(name.to_owned()).or_default() += count;
    }

    fn add(&mut self, other: &Self) {
        for name in &other.order {
            self.count(name, other.counts[name]);
        }
    }

    /// Checks that each fault was injected often enough: otherwise the seeds prove nothing about
    /// it.
    fn are_enough(&self, seeds: u64) -> Outcome {
        let wanted = OFTEN * seeds / SHORT;
        let rare: Vec<_> = self
            .counts
            .iter()
            .filter(|(_, count)| **count < wanted)
            .collect();
        match (rare.is_empty(), self.counts.is_empty()) {
            (true, false) => Ok(()),
            (_, true) => Err("the simulation counts no faults".to_owned()),
            (false, _) => Err(format!("too rare, for at least {wanted} of each: {rare:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_runs_print_is_added() {
        let mut faults = Faults::default();
        faults.read("running 1 test\n250 seeds\n  lost      7\n  doubled   2\n");
        faults.read("  lost      3\n");
        assert_eq!(faults.order, ["lost", "doubled"]);
        assert_eq!(faults.counts["lost"], 10);
    }

    #[test]
    fn a_fault_that_hardly_strikes_is_told() {
        let mut faults = Faults::default();
        assert!(faults.are_enough(100).is_err());
        faults.read("  lost 10\n");
        assert!(faults.are_enough(100).is_ok());
        assert!(faults.are_enough(10_000).is_err());
    }
}
