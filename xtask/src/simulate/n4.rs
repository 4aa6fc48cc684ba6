//! `cargo xtask simulate --n4`: both roles of the N4 node over a bad network and a bad disk.

use std::ops::Range;

use super::{Simulation, only, run_parallel};
use crate::binaries::Binary;
use crate::project::Project;
use crate::step::Step;
use crate::{Outcome, process, term};

/// Number of seeds of the short form.
const FEW_SEEDS: u64 = 2000;
/// Minimum number of times that each fault must be injected in the short form.
const MIN_COUNT: u64 = 200;
/// Number of seeds that one process runs.
const CHUNK: u64 = 250;

pub(super) const N4: Simulation = Simulation {
    target: &["--lib"],
    binary: "strowger_pfcp_node",
    many: "simulation::roles_agree_despite_loss_and_crashes",
    twice: "simulation::same_seed_gives_same_run",
    seeds: "STROWGER_N4_SEEDS",
    seed: "STROWGER_N4_SEED",
    trace: "STROWGER_N4_TRACE",
};

/// Number of injections of each fault, in the order of declaration.
#[derive(Debug, Default)]
struct Faults(Vec<(String, u64)>);

/// Runs all seeds below a number.
pub(super) fn run_all(binary: &Binary, seeds: u64) -> Outcome {
    let faults = storm(binary, 0..seeds)?;
    for (name, count) in &faults.0 {
        term::line(&format!("  {name:<20} {count:>10}"));
    }
    term::note(&format!("{seeds} seeds hold"));
    faults.are_enough(seeds)
}

/// Returns the step of `cargo xtask ci`.
pub(crate) fn step(project: &Project) -> Step<'_> {
    Step::new("n4", "cargo xtask simulate --n4 --seeds 2000", || {
        let binary = N4.build(project)?;
        let faults = storm(&binary, 0..FEW_SEEDS)?;
        faults.are_enough(FEW_SEEDS)?;
        let (text, ran) = N4.trace(project, &binary, 7)?;
        ran?;
        let least = faults.0.iter().min_by_key(|(_, count)| *count);
        let (name, least) = least.ok_or("the simulation counts no faults")?;
        let (kinds, lines) = (faults.0.len(), text.lines().count());
        Ok(Some(format!(
            "{FEW_SEEDS} seeds; {kinds} kinds of faults, each at least {least} times ({name}); a \
             trace of {lines} lines, twice the same"
        )))
    })
}

/// Runs seeds, and counts the faults that were injected.
fn storm(binary: &Binary, seeds: Range<u64>) -> Result<Faults, String> {
    let outputs = run_parallel(seeds, CHUNK, |chunk| run(binary, &chunk))?;
    let mut faults = Faults::default();
    outputs.iter().for_each(|output| faults.add(output));
    Ok(faults)
}

fn run(binary: &Binary, seeds: &Range<u64>) -> Result<String, String> {
    let mut command = only(binary, N4.many);
    command.env(N4.seeds, format!("{}..{}", seeds.start, seeds.end));
    let output = process::output(command.env("RUST_BACKTRACE", "0"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{}\n{}\nreplay a seed: cargo xtask simulate --n4 --seed N --trace",
        complaint.trim(),
        text.trim()
    ))
}

impl Faults {
    /// Adds the counts that a run printed: a name and a count in each line.
    fn add(&mut self, output: &str) {
        for line in output.lines().filter(|line| line.starts_with("  ")) {
            let [name, count] = line.split_whitespace().collect::<Vec<_>>()[..] else {
                continue;
            };
            let Ok(count) = count.parse::<u64>() else {
                continue;
            };
            match self.0.iter_mut().find(|(known, _)| known == name) {
                Some((_, all)) => *all += count,
                None => self.0.push((name.to_owned(), count)),
            }
        }
    }

    /// Checks that each fault was injected often enough: otherwise the seeds prove nothing about
    /// it.
    fn are_enough(&self, seeds: u64) -> Outcome {
        let wanted = MIN_COUNT * seeds / FEW_SEEDS;
        let rare = self.0.iter().filter(|(_, count)| *count < wanted);
        match (rare.collect::<Vec<_>>(), self.0.is_empty()) {
            (_, true) => Err("the simulation counts no faults".to_owned()),
            (rare, _) if rare.is_empty() => Ok(()),
            (rare, _) => Err(format!("too rare, for at least {wanted} of each: {rare:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_counts_are_added_and_rare_faults_are_refused() {
        let mut faults = Faults::default();
        assert!(faults.are_enough(100).is_err());
        faults.add("running 1 test\n250 seeds\n  lost      7\n  doubled   12\n");
        faults.add("  lost      3\n");
        assert_eq!(
            faults.0,
            [("lost".to_owned(), 10), ("doubled".to_owned(), 12)]
        );
        assert!(faults.are_enough(100).is_ok());
        assert!(faults.are_enough(10_000).is_err());
    }
}
