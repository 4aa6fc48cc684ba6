//! The tests that must notice a change, each with the changes that it reaches.
//!
//! Every test first runs alone and without a change, and records which switches it reads. A change
//! then costs only the tests that reach it: first a few, the fastest, and then more of them as long
//! as none fails.

use std::collections::BTreeSet;
use std::iter;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::MutantResult;
use crate::binaries::Binary;
use crate::{process, step, term};

/// Seeds of the storm that run on each change.
const SEEDS: &str = "0..40";

/// Minimum time limit of tests on a change, however fast they are without it.
const LEAST: Duration = Duration::from_secs(5);
/// Time limit for all tests of a binary built without optimization, on a machine with other load.
const WHOLE: Duration = Duration::from_secs(120);

/// Maximum size of the data of a test, in KiB: some changes cause endless queues, and one test runs
/// for each processor. The address space is not limited, because components reserve more of it than
/// there is memory.
const MEMORY: &str = "4000000";

/// Number of tests of a binary that run first, and the factor for each further batch.
const GROWTH: usize = 4;

pub(super) struct Suite {
    binaries: Vec<Binary>,
    only: &'static [&'static str],
    /// `None` if the tests were not run alone before.
    tests: Option<Vec<Test>>,
}

struct Test {
    /// The index of the binary.
    binary: usize,
    name: String,
    took: Duration,
    reaches: BTreeSet<usize>,
}

/// Tests of one binary that run together.
struct Batch<'a> {
    binary: &'a Binary,
    /// The names of the tests, or none for all of them.
    names: Vec<&'a str>,
    /// Time that they take without a change.
    took: Duration,
}

impl Suite {
    /// Runs each test without a change, and records the switches that it reads. The records of an
    /// earlier run are used if the binaries are the same.
    pub(super) fn new(
        binaries: Vec<Binary>,
        only: &'static [&'static str],
        folder: &Path,
    ) -> Result<Self, String> {
        let begun = Instant::now();
        let note = folder.join("asked");
        let stamps = binaries.iter().map(Binary::stamp);
        let mark = stamps.chain([only.join(" ")]).collect::<Vec<_>>().join(" ");
        if let Some(tests) = noted(&note, &mark) {
            let count = tests.len();
            term::note(&format!("  {count} tests, asked before what they come by"));
            let tests = Some(tests);
            return Ok(Self {
                binaries,
                only,
                tests,
            });
        }
        let mut names = Vec::new();
        for (number, binary) in binaries.iter().enumerate() {
            let args = [&["--list", "--format", "terse"][..], only].concat();
            let listed = step::output(&mut limited(binary, &args))?;
            let listed = listed.lines();
            let of_binary = listed.filter_map(|line| line.strip_suffix(": test"));
            names.extend(of_binary.map(|name| (number, name.to_owned())));
        }
        let mut tests = Vec::with_capacity(names.len());
        let ask = |at: usize| {
            let (number, name) = &names[at];
            let met = folder.join(format!("met-{at}"));
            Test::alone(*number, &binaries[*number], name, &met)
        };
        for_each((0..names.len()).collect(), ask, |test| {
            tests.push(test?);
            Ok(())
        })?;
        let (count, took) = (tests.len(), term::human(begun.elapsed()));
        term::note(&format!(
            "  {count} tests, asked in {took} what they come by"
        ));
        tests.sort_by_key(|test: &Test| test.took);
        let lines = tests.iter().map(Test::line);
        let text = iter::once(mark).chain(lines).collect::<Vec<_>>().join("\n");
        std::fs::write(&note, text).map_err(|error| format!("{}: {error}", note.display()))?;
        Ok(Self {
            binaries,
            only,
            tests: Some(tests),
        })
    }

    /// Returns a suite that knows nothing about its tests.
    pub(super) const fn all(binaries: Vec<Binary>, only: &'static [&'static str]) -> Self {
        Self {
            binaries,
            only,
            tests: None,
        }
    }

    /// Runs the tests that reach a change until one fails.
    pub(super) fn run(&self, number: Option<usize>) -> Result<MutantResult, String> {
        for batch in self.batches(number) {
            let name = &batch.binary.name;
            let Some(output) = batch.run(number, self.only)? else {
                return Ok(MutantResult::Caught(format!("{name}, which does not end")));
            };
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stdout);
                let failed = said
                    .lines()
                    .find_map(|line| line.strip_prefix("---- ")?.strip_suffix(" stdout ----"));
                let failed = failed.unwrap_or("it breaks off");
                return Ok(MutantResult::Caught(format!("{name}: {failed}")));
            }
        }
        Ok(MutantResult::Missed)
    }

    /// Runs the tests on each of these changes, one for each processor at a time, and passes on the
    /// results in the order in which they arrive.
    pub(super) fn run_each(
        &self,
        numbers: Vec<usize>,
        mut each: impl FnMut(usize, MutantResult) -> Result<(), String>,
    ) -> Result<(), String> {
        let run = |number| (number, self.run(Some(number)));
        for_each(numbers, run, |(number, end)| each(number, end?))
    }

    /// Returns the batches to run on a change, in order.
    fn batches(&self, number: Option<usize>) -> Vec<Batch<'_>> {
        let mut batches = Vec::new();
        let (Some(tests), Some(number)) = (&self.tests, number) else {
            let whole = |binary| Batch {
                binary,
                names: Vec::new(),
                took: WHOLE,
            };
            return self.binaries.iter().map(whole).collect();
        };
        for (at, binary) in self.binaries.iter().enumerate() {
            let reaches = |test: &&Test| test.binary == at && test.reaches.contains(&number);
            let reaching: Vec<&Test> = tests.iter().filter(reaches).collect();
            let (mut left, mut size) = (reaching.as_slice(), GROWTH);
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
        // The file exists only if an interrupted run left it.
        let _gone = std::fs::remove_file(met);
        let begun = Instant::now();
        let mut command = limited(of, &["--exact", name]);
        command.env("STROWGER_MUTANTS_MET", met);
        let limit = LEAST * 60;
        let Some(output) = process::output_within(&mut command, limit)? else {
            let limit = term::human(limit);
            let of = &of.name;
            return Err(format!(
                "{of}: {name} does not end within {limit}, without any change"
            ));
        };
        if !output.status.success() {
            return Err(format!("{}: {name} fails without any change", of.name));
        }
        // The file does not exist if the test reads no switch.
        let text = std::fs::read_to_string(met).unwrap_or_default();
        let _gone = std::fs::remove_file(met);
        Ok(Self {
            binary,
            name: name.to_owned(),
            took: begun.elapsed(),
            reaches: text.lines().filter_map(|line| line.parse().ok()).collect(),
        })
    }

    fn line(&self) -> String {
        let Self {
            binary,
            name,
            took,
            reaches,
        } = self;
        let reaches: Vec<_> = reaches.iter().map(ToString::to_string).collect();
        let (took, reaches) = (took.as_micros(), reaches.join(" "));
        format!("{binary}\t{name}\t{took}\t{reaches}")
    }

    fn read(line: &str) -> Option<Self> {
        let mut parts = line.split('\t');
        Some(Self {
            binary: parts.next()?.parse().ok()?,
            name: parts.next()?.to_owned(),
            took: Duration::from_micros(parts.next()?.parse().ok()?),
            reaches: parts
                .next()?
                .split_whitespace()
                .map_while(|number| number.parse().ok())
                .collect(),
        })
    }
}

/// Returns the tests recorded under this mark.
fn noted(note: &Path, mark: &str) -> Option<Vec<Test>> {
    let text = std::fs::read_to_string(note).ok()?;
    let mut lines = text.lines();
    let same = lines.next()? == mark;
    same.then(|| lines.map(Test::read).collect())?
}

impl Batch<'_> {
    /// Runs the batch with a change. Returns `None` if it does not end.
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
            let output = process::output_within(&mut command, limit)?;
            if output.is_some() || number.is_none() {
                return Ok(output);
            }
            // The machine may have become slow, not the change: measure again without it.
            let begun = Instant::now();
            process::output_within(&mut limited(self.binary, &args), limit * 4)?;
            let needed = begun.elapsed() * 5;
            if needed <= limit {
                return Ok(None);
            }
            limit = needed;
        }
    }
}

/// Does work on each of these numbers, one for each processor at a time, and passes on the results
/// in the order in which they arrive.
fn for_each<R: Send>(
    numbers: Vec<usize>,
    work: impl Fn(usize) -> R + Sync,
    mut each: impl FnMut(R) -> Result<(), String>,
) -> Result<(), String> {
    let numbers = Mutex::new(numbers.into_iter());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..workers {
            let (numbers, work, sender) = (&numbers, &work, sender.clone());
            let next = || numbers.lock().ok()?.next();
            scope.spawn(move || {
                while let Some(number) = next() {
                    // After an error, nobody receives results.
                    if sender.send(work(number)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        results.into_iter().try_for_each(&mut each)
    })
}

/// Returns a command for tests whose memory is limited.
fn limited(binary: &Binary, args: &[&str]) -> Command {
    let limit = format!("ulimit -d {MEMORY}; exec \"$0\" --quiet \"$@\"");
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
                reaches: BTreeSet::from([7]),
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
    fn what_is_noted_of_a_test_is_read_again() {
        let test = Test::read("1\tstorm::a\t12345\t3 17").expect("a note");
        assert_eq!((test.binary, test.name.as_str()), (1, "storm::a"));
        assert_eq!(test.took, Duration::from_micros(12345));
        assert_eq!(test.reaches, BTreeSet::from([3, 17]));
        assert_eq!(test.line(), "1\tstorm::a\t12345\t3 17");
    }

    #[test]
    fn tests_of_which_nothing_is_known_all_run() {
        let suite = Suite::all(vec![Binary::named("unit")], &[]);
        let batches = suite.batches(None);
        assert_eq!(batches.len(), 1);
        assert!(batches[0].names.is_empty());
    }
}
