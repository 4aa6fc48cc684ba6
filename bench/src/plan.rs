//! Which cases run, how long, in which order, and which of their samples counts.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use crate::Row;

/// What one run of a case did.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// The time of the operations alone.
    pub time: Duration,
    /// Operations done.
    pub done: u64,
    /// Operations checked.
    pub checked: u64,
}

/// One subject at one kind of work.
pub struct Case {
    id: String,
    subject: &'static str,
    run: Box<dyn FnMut(u64) -> Sample>,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.id, self.subject)
    }
}

impl Case {
    /// Makes a case; `run` does about as many operations as it is asked for, and checks them.
    pub fn new(
        id: impl Into<String>,
        subject: &'static str,
        run: impl FnMut(u64) -> Sample + 'static,
    ) -> Self {
        Self {
            id: id.into(),
            subject,
            run: Box::new(run),
        }
    }

    fn nanoseconds(&mut self, operations: u64) -> (f64, Sample) {
        let sample = (self.run)(operations);
        assert!(sample.checked > 0, "{self:?}: nothing was checked");
        (sample.time.as_nanos() as f64 / sample.done as f64, sample)
    }

    /// How many operations fill the time.
    fn size(&mut self, fill: Duration) -> u64 {
        let mut operations = 64;
        loop {
            let (_, sample) = self.nanoseconds(operations);
            if sample.time * 4 >= fill {
                let more = fill.as_secs_f64() / sample.time.as_secs_f64();
                return ((sample.done as f64 * more) as u64).max(1);
            }
            operations *= 4;
        }
    }
}

/// Which sample of a case stands for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// The least: for work on one thread, where noise only adds.
    Least,
    /// The middle: for work on several threads, where luck subtracts too.
    Median,
}

/// How a part is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    part: &'static str,
    pick: Pick,
    rounds: usize,
    fill: Duration,
    only: Option<String>,
}

impl Plan {
    /// Reads `--quick` and a filter on ids from the command line.
    #[must_use]
    pub fn from_args(part: &'static str, pick: Pick) -> Self {
        let mut plan = Self {
            part,
            pick,
            rounds: 15,
            fill: Duration::from_millis(150),
            only: None,
        };
        for arg in std::env::args().skip(1) {
            if arg == "--quick" {
                plan.rounds = 5;
                plan.fill = Duration::from_millis(40);
            } else {
                plan.only = Some(arg);
            }
        }
        plan
    }

    /// Whether the filter of the command line lets this id through.
    #[must_use]
    pub fn wants(&self, id: &str) -> bool {
        self.only.as_deref().is_none_or(|only| id.contains(only))
    }

    /// Prints a row.
    pub fn print(&self, row: &Row) {
        if self.wants(&row.id) {
            println!("{}", row.to_json());
        }
    }

    /// Shows on a terminal what is running.
    fn progress(&self, what: &str) {
        let mut terminal = std::io::stderr();
        if terminal.is_terminal() {
            let head = if what.is_empty() { "" } else { self.part };
            // Whoever closed the terminal does not watch.
            let _ = write!(terminal, "\r\x1b[2K{head} {what}");
        }
    }

    /// Runs all cases in turns and prints a row for each.
    pub fn run(&self, cases: Vec<Case>) {
        let mut cases: Vec<Case> = cases
            .into_iter()
            .filter(|case| self.wants(&case.id))
            .collect();
        let sizes: Vec<u64> = cases
            .iter_mut()
            .map(|case| {
                self.progress(&format!("sizing {case:?}"));
                case.size(self.fill)
            })
            .collect();
        let mut samples: Vec<Vec<(f64, Sample)>> = cases.iter().map(|_| Vec::new()).collect();
        for round in 1..=self.rounds {
            for (at, case) in cases.iter_mut().enumerate() {
                self.progress(&format!("round {round} of {}, {case:?}", self.rounds));
                samples[at].push(case.nanoseconds(sizes[at]));
            }
        }
        self.progress("");
        for (case, mut samples) in cases.into_iter().zip(samples) {
            samples.sort_by(|a, b| a.0.total_cmp(&b.0));
            let at = if self.pick == Pick::Least {
                0
            } else {
                samples.len() / 2
            };
            self.print(&Row {
                part: self.part,
                id: case.id,
                subject: case.subject,
                value: samples[at].0,
                unit: "ns",
                iterations: samples.iter().map(|(_, sample)| sample.done).sum(),
                checked: samples.iter().map(|(_, sample)| sample.checked).sum(),
            });
        }
    }
}
