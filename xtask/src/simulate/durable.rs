//! `cargo xtask simulate --durable`: durable actors, their events and their messages, over a store
//! that fails and loses its connection.

use std::ops::Range;

use super::{MANY_SEEDS, build, only, run_parallel};
use crate::binaries::Binary;
use crate::project::Project;
use crate::step::Step;
use crate::{Outcome, process, term};

/// The test program, and its tests that take seeds.
const PROGRAM: &str = "durable";
const TESTS: [&str; 3] = [
    "simulation::no_acknowledged_increment_is_lost_or_doubled",
    "event_simulation::no_acknowledged_event_is_lost_doubled_or_reordered",
    "outbox::simulation::no_transfer_is_lost_doubled_or_reordered",
];

/// The variable for the seeds.
const SEEDS: &str = "STROWGER_DURABLE_SEEDS";
/// Number of seeds that one process runs.
const CHUNK: u64 = 50;

/// Runs the seeds with each test.
pub(super) fn run(project: &Project, seeds: &Range<u64>) -> Outcome {
    let binary = build(project, &["--test", PROGRAM], PROGRAM)?;
    for test in TESTS {
        let run = |chunk| run_chunk(&binary, test, &chunk);
        run_parallel(seeds.clone(), CHUNK, run)?;
        let count = seeds.end - seeds.start;
        term::note(&format!("{count} seeds hold: {test}"));
    }
    Ok(())
}

/// Returns the step of `cargo xtask ci --full`.
pub(super) fn step(project: &Project) -> Step<'_> {
    let rerun = "cargo xtask simulate --durable --seeds 10000";
    Step::new("durable-seeds", rerun, || {
        run(project, &(0..MANY_SEEDS))?;
        Ok(Some(format!("{MANY_SEEDS} seeds of {} tests", TESTS.len())))
    })
}

fn run_chunk(binary: &Binary, test: &str, seeds: &Range<u64>) -> Outcome {
    let mut command = only(binary, test);
    command.env(SEEDS, format!("{}..{}", seeds.start, seeds.end));
    let output = process::output(&mut command)?;
    let text = String::from_utf8_lossy(&output.stdout);
    // A test that was renamed would pass without having run.
    if output.status.success() && text.contains("1 passed") {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "{test}, seeds {seeds:?}:\n{}\n{}\nreplay a seed: cargo xtask simulate --durable --seed N",
        complaint.trim(),
        text.trim()
    ))
}
