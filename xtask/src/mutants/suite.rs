//! The tests that have to notice a change, each with the changes that it comes by.
//!
//! Every test first runs alone and without a change, and notes which switches it reads. A change
//! then costs only the tests that come by it: a few at first, those that take the least time, and
//! more of them as long as none fails.

use std::collections::BTreeSet;
use std::iter;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::End;
use crate::binaries::{self, Binary};
use crate::{step, term};

/// Seeds of the storm that run on each change.
const SEEDS: &str = "0..40";

/// The least time that tests get on a change, however fast they are without.
const LEAST: Duration = Duration::from_secs(5);
/// How long all tests of a program may take that was built without optimisation, on a machine that
/// does other things as well.
const WHOLE: Duration = Duration::from_secs(120);

/// What the data of a test may grow to, in KiB: some changes lead to endless queues, and there is
/// a test for each processor. Not its addresses: components reserve more of these than there is
/// memory.
const MEMORY: &str = "4000000";

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
    /// Runs each test without a change, and notes what it meets; what an earlier run noted of the
    /// same programs still holds.
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
        numbers: Vec<usize>,
        mut each: impl FnMut(usize, End) -> Result<(), String>,
    ) -> Result<(), String> {
        let run = |number| (number, self.run(Some(number)));
        for_each(numbers, run, |(number, end)| each(number, end?))
    }

    /// What runs on a change, in this order.
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
        // Absent unless a run that was broken off left it.
        let _gone = std::fs::remove_file(met);
        let begun = Instant::now();
        let mut command = limited(of, &["--exact", name]);
        command.env("STROWGER_MUTANTS_MET", met);
        let limit = LEAST * 60;
        let Some(output) = binaries::output_within(&mut command, limit)? else {
            let limit = term::human(limit);
            let of = &of.name;
            return Err(format!(
                "{of}: {name} does not end within {limit}, without any change"
            ));
        };
        if !output.status.success() {
            return Err(format!("{}: {name} fails without any change", of.name));
        }
        // Absent if the test meets nothing.
        let text = std::fs::read_to_string(met).unwrap_or_default();
        let _gone = std::fs::remove_file(met);
        Ok(Self {
            binary,
            name: name.to_owned(),
            took: begun.elapsed(),
            meets: text.lines().filter_map(|line| line.parse().ok()).collect(),
        })
    }

    fn line(&self) -> String {
        let Self {
            binary,
            name,
            took,
            meets,
        } = self;
        let meets: Vec<_> = meets.iter().map(ToString::to_string).collect();
        let (took, meets) = (took.as_micros(), meets.join(" "));
        format!("{binary}\t{name}\t{took}\t{meets}")
    }

    fn read(line: &str) -> Option<Self> {
        let mut parts = line.split('\t');
        Some(Self {
            binary: parts.next()?.parse().ok()?,
            name: parts.next()?.to_owned(),
            took: Duration::from_micros(parts.next()?.parse().ok()?),
            meets: parts
                .next()?
                .split_whitespace()
                .map_while(|number| number.parse().ok())
                .collect(),
        })
    }
}

/// The tests that were noted under this mark.
fn noted(note: &Path, mark: &str) -> Option<Vec<Test>> {
    let text = std::fs::read_to_string(note).ok()?;
    let mut lines = text.lines();
    let same = lines.next()? == mark;
    same.then(|| lines.map(Test::read).collect())?
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

/// Does work on each of these numbers, as many at a time as there are processors, and hands over
/// what came of it, in the order in which it ends.
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
                    // Nobody listens any more after an error.
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

/// A command for tests that may run wild.
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
    fn what_is_noted_of_a_test_is_read_again() {
        let test = Test::read("1\tstorm::a\t12345\t3 17").expect("a note");
        assert_eq!((test.binary, test.name.as_str()), (1, "storm::a"));
        assert_eq!(test.took, Duration::from_micros(12345));
        assert_eq!(test.meets, BTreeSet::from([3, 17]));
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
