//! The tests that have to notice a change, each with the changes that it comes by.
//!
//! Every test first runs alone and without a change, and notes which switches it reads. A change
//! then costs only the tests that come by it: a few at first, those that take the least time, and
//! more of them as long as none fails.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::End;
use crate::binaries::{self, Binary};
use crate::{step, term};

/// Seeds of the storm that run on each change.
const SEEDS: &str = "0..40";

/// The least time that tests get on a change, however fast they are without.
const LEAST: Duration = Duration::from_secs(5);

/// What the address space of a test may grow to, in KiB: some changes lead to endless queues.
const MEMORY: &str = "16000000";

/// How many tests of a program run at first; each further time it is this many times more.
const GROWTH: usize = 4;

pub(super) struct Suite {
    binaries: Vec<Binary>,
    only: &'static [&'static str],
    /// Nothing is known of the tests where they were not asked.
    tests: Option<Vec<Test>>,
}

struct Test {
    /// The program, by its number.
    binary: usize,
    name: String,
    took: Duration,
    meets: BTreeSet<usize>,
}

/// Tests of one program that run together.
struct Batch<'a> {
    binary: &'a Binary,
    /// All of them, if there are none.
    names: Vec<&'a str>,
    /// How long they take without a change.
    took: Duration,
}

impl Suite {
    /// Runs each test without a change, and notes what it meets.
    pub(super) fn new(
        binaries: Vec<Binary>,
        only: &'static [&'static str],
        folder: &Path,
    ) -> Result<Self, String> {
        let met = folder.join("met");
        let begun = Instant::now();
        let mut tests = Vec::new();
        for (number, binary) in binaries.iter().enumerate() {
            let args = [&["--list", "--format", "terse"][..], only].concat();
            let listed = step::output(&mut limited(binary, &args))?;
            for name in listed
                .lines()
                .filter_map(|line| line.strip_suffix(": test"))
            {
                tests.push(Test::alone(number, binary, name, &met)?);
            }
        }
        let (count, took) = (tests.len(), term::human(begun.elapsed()));
        term::note(&format!(
            "  {count} tests, asked in {took} what they come by"
        ));
        tests.sort_by_key(|test| test.took);
        Ok(Self {
            binaries,
            only,
            tests: Some(tests),
        })
    }

    /// Tests of which nothing is known.
    pub(super) const fn all(binaries: Vec<Binary>, only: &'static [&'static str]) -> Self {
        Self {
            binaries,
            only,
            tests: None,
        }
    }

    /// Runs the tests that come by a change until one fails.
    pub(super) fn run(&self, number: Option<usize>) -> Result<End, String> {
        for batch in self.batches(number) {
            let name = &batch.binary.name;
            let Some(output) = batch.run(number, self.only)? else {
                return Ok(End::Caught(format!("{name}, which does not end")));
            };
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stdout);
                let failed = said
                    .lines()
                    .find_map(|line| line.strip_prefix("---- ")?.strip_suffix(" stdout ----"));
                let failed = failed.unwrap_or("it breaks off");
                return Ok(End::Caught(format!("{name}: {failed}")));
            }
        }
        Ok(End::Missed)
    }

    /// Runs the tests on each of these changes, as many at a time as there are processors, and
    /// hands over what came of it, in the order in which they end.
    pub(super) fn run_each(
        &self,
        numbers: &[usize],
        mut each: impl FnMut(usize, End) -> Result<(), String>,
    ) -> Result<(), String> {
        let next = AtomicUsize::new(0);
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let (sender, ends) = mpsc::channel();
        thread::scope(|scope| {
            for _ in 0..workers {
                let (next, sender) = (&next, sender.clone());
                scope.spawn(move || {
                    while let Some(&number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // Nobody listens any more after an error.
                        if sender.send((number, self.run(Some(number)))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            ends.into_iter()
                .try_for_each(|(number, end)| each(number, end?))
        })
    }

    /// What runs on a change, in this order.
    fn batches(&self, number: Option<usize>) -> Vec<Batch<'_>> {
        let mut batches = Vec::new();
        let (Some(tests), Some(number)) = (&self.tests, number) else {
            let whole = |binary| Batch {
                binary,
                names: Vec::new(),
                took: LEAST,
            };
            return self.binaries.iter().map(whole).collect();
        };
        for (at, binary) in self.binaries.iter().enumerate() {
            let meets = |test: &&Test| test.binary == at && test.meets.contains(&number);
            let meeting: Vec<&Test> = tests.iter().filter(meets).collect();
            let (mut left, mut size) = (meeting.as_slice(), GROWTH);
            while !left.is_empty() {
                let (now, later) = left.split_at(size.min(left.len()));
                batches.push(Batch {
                    binary,
                    names: now.iter().map(|test| test.name.as_str()).collect(),
                    took: now.iter().map(|test| test.took).sum(),
                });
                (left, size) = (later, size * GROWTH);
            }
        }
        batches.sort_by_key(|batch| batch.took);
        batches
    }
}

impl Test {
    fn alone(binary: usize, of: &Binary, name: &str, met: &Path) -> Result<Self, String> {
        // Absent unless an earlier test left it.
        let _gone = std::fs::remove_file(met);
        let begun = Instant::now();
        let mut command = limited(of, &["--exact", name]);
        command.env("STROWGER_MUTANTS_MET", met);
        let output = binaries::output_within(&mut command, LEAST * 60)?;
        if !output.is_some_and(|output| output.status.success()) {
            return Err(format!("{}: {name} fails without any change", of.name));
        }
        let text = std::fs::read_to_string(met).unwrap_or_default();
        Ok(Self {
            binary,
            name: name.to_owned(),
            took: begun.elapsed(),
            meets: text.lines().filter_map(|line| line.parse().ok()).collect(),
        })
    }
}

impl Batch<'_> {
    /// Runs it with a change; nothing when it does not end.
    fn run(&self, number: Option<usize>, only: &[&str]) -> Result<Option<Output>, String> {
        let args = match self.names.as_slice() {
            [] => only.to_vec(),
            names => [&["--exact"][..], names].concat(),
        };
        let mut limit = LEAST.max(self.took * 5);
        loop {
            let mut command = limited(self.binary, &args);
            if let Some(number) = number {
                command.env("STROWGER_MUTANT", number.to_string());
            }
            let output = binaries::output_within(&mut command, limit)?;
            if output.is_some() || number.is_none() {
                return Ok(output);
            }
            // It may be the machine that has become slow, not the change.
            let begun = Instant::now();
            binaries::output_within(&mut limited(self.binary, &args), limit * 4)?;
            let needed = begun.elapsed() * 5;
            if needed <= limit {
                return Ok(None);
            }
            limit = needed;
        }
    }
}

/// A command for tests that may run wild.
fn limited(binary: &Binary, args: &[&str]) -> Command {
    let limit = format!("ulimit -v {MEMORY}; exec \"$0\" --quiet \"$@\"");
    let mut command = binary.under("sh", &["-c", &limit]);
    command
        .args(args)
        .env("STROWGER_STORM_SEEDS", SEEDS)
        .env("RUST_BACKTRACE", "0");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suite(took: &[(usize, u64)]) -> Suite {
        let binaries = vec![Binary::named("unit"), Binary::named("storm")];
        let tests = took
            .iter()
            .enumerate()
            .map(|(number, &(binary, took))| Test {
                binary,
                name: number.to_string(),
                took: Duration::from_millis(took),
                meets: BTreeSet::from([7]),
            });
        Suite {
            binaries,
            only: &[],
            tests: Some(tests.collect()),
        }
    }

    #[test]
    fn what_comes_by_a_change_runs_in_growing_batches_the_fastest_first() {
        let mut took = vec![(0, 1); 25];
        took.push((1, 10));
        let suite = suite(&took);
        let batches = suite.batches(Some(7));
        let sizes: Vec<_> = batches
            .iter()
            .map(|batch| (batch.binary.name.as_str(), batch.names.len()))
            .collect();
        assert_eq!(
            sizes,
            [("unit", 4), ("unit", 5), ("storm", 1), ("unit", 16)]
        );
        assert!(suite.batches(Some(8)).is_empty());
    }

    #[test]
    fn tests_of_which_nothing_is_known_all_run() {
        let suite = Suite::all(vec![Binary::named("unit")], &[]);
        let batches = suite.batches(None);
        assert_eq!(batches.len(), 1);
        assert!(batches[0].names.is_empty());
    }
}
