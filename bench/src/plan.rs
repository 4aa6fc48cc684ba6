//! The cases that run, for how long and in which order, and the sample that stands for each.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::Value;

use crate::usage::Usage;
use crate::{Machine, Row, pin};

/// The result of one run of a case.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// The time of the operations alone.
    pub time: Duration,
    /// Number of operations done.
    pub done: u64,
    /// Number of operations whose result was checked.
    pub checked: u64,
}

/// One subject doing one kind of work.
pub struct Case {
    id: String,
    subject: &'static str,
    unit: &'static str,
    run: Run,
    /// `true` if another process does the work, of whose resources this process knows nothing.
    is_remote: bool,
    notes: Vec<(&'static str, Value)>,
}

/// A figure and the number of operations behind it, or the reason why there is none.
pub type Counted = Result<(f64, u64), &'static str>;

enum Run {
    /// Runs about the requested number of operations and times them.
    Timed(Box<dyn FnMut(u64) -> Sample>),
    /// Computes its figure itself.
    Counted(Box<dyn FnMut() -> Counted>),
    /// The reason why the subject cannot do the work.
    Lacking(&'static str),
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.id, self.subject)
    }
}

impl Case {
    /// Creates a case. `run` does about the requested number of operations and checks them.
    pub fn new(
        id: impl Into<String>,
        subject: &'static str,
        run: impl FnMut(u64) -> Sample + 'static,
    ) -> Self {
        Self {
            id: id.into(),
            subject,
            unit: "ns",
            run: Run::Timed(Box::new(run)),
            is_remote: false,
            notes: Vec::new(),
        }
    }

    /// Creates a case that computes its figure itself and returns the number of operations behind
    /// it.
    pub fn counted(
        id: impl Into<String>,
        subject: &'static str,
        unit: &'static str,
        count: impl FnMut() -> Counted + 'static,
    ) -> Self {
        Self {
            id: id.into(),
            subject,
            unit,
            run: Run::Counted(Box::new(count)),
            is_remote: false,
            notes: Vec::new(),
        }
    }

    /// Creates a case without a figure, and gives the reason.
    pub fn lacking(
        id: impl Into<String>,
        subject: &'static str,
        unit: &'static str,
        reason: &'static str,
    ) -> Self {
        Self {
            id: id.into(),
            subject,
            unit,
            run: Run::Lacking(reason),
            is_remote: false,
            notes: Vec::new(),
        }
    }

    /// Declares that another process does the work: the row has no sleeps and no processors, which
    /// would be those of this process.
    #[must_use]
    pub fn in_another_process(mut self) -> Self {
        self.is_remote = true;
        self
    }

    /// Adds a note to the row, under its own key.
    #[must_use]
    pub fn with_note(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.notes.push((key, value.into()));
        self
    }
}

/// The sample that stands for a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Estimate {
    /// The smallest: for work on one thread, where noise can only add time.
    Least,
    /// The median: for work on several threads, where luck can also take time away.
    Median,
}

/// The way a part is measured.
#[derive(Debug, Clone)]
pub struct Plan {
    part: &'static str,
    estimate: Estimate,
    quick: bool,
    rounds: usize,
    fill: Duration,
    only: Vec<String>,
    except: Vec<String>,
    /// The number of this process, if several processes measure the same rows.
    process: Option<usize>,
    /// Notes that every row carries.
    notes: Vec<(&'static str, Value)>,
}

impl Plan {
    /// Reads `--quick`, `--part PART`, `--only ROWS` and `--except ROWS` from the command line.
    /// Rows are separated by commas, and a trailing `*` matches any rest of an id. The default is
    /// the first part.
    ///
    /// `--process N` says that this process is one of several, counted from 0: it measures less,
    /// and each process begins with a different subject. `--unpinned` lets the system choose the
    /// processor of each worker.
    ///
    /// # Panics
    /// If the command line contains anything else.
    #[must_use]
    pub fn from_args(parts: &[&'static str], estimate: Estimate) -> Self {
        let mut plan = Self {
            part: parts[0],
            estimate,
            quick: false,
            rounds: 0,
            fill: Duration::ZERO,
            only: Vec::new(),
            except: Vec::new(),
            process: None,
            notes: Vec::new(),
        };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().unwrap_or_else(|| panic!("{arg} needs a value"));
            match arg.as_str() {
                "--quick" => plan.quick = true,
                "--unpinned" => pin::disable_pinning(),
                "--process" => {
                    let number = value().parse();
                    plan.process = Some(number.expect("--process needs a number from 0"));
                }
                "--only" => plan.only = value().split(',').map(str::to_owned).collect(),
                "--except" => plan.except = value().split(',').map(str::to_owned).collect(),
                "--part" => {
                    let name = value();
                    let part = parts.iter().find(|part| **part == name);
                    plan.part = part.unwrap_or_else(|| panic!("no part {name}: {parts:?}"));
                }
                _ => panic!(
                    "unknown argument {arg}: --quick, --part, --only, --except, --process, \
                     --unpinned"
                ),
            }
        }
        (plan.rounds, plan.fill) = match (plan.process, plan.quick) {
            (None, false) => (15, Duration::from_millis(150)),
            (None, true) => (5, Duration::from_millis(30)),
            (Some(_), false) => (3, Duration::from_millis(75)),
            (Some(_), true) => (1, Duration::from_millis(30)),
        };
        plan
    }

    /// Adds the properties of the machine to every row: `crossing` and `waking`, in nanoseconds.
    #[must_use]
    pub fn with_machine(mut self, machine: Machine) -> Self {
        let nanoseconds = |time: Duration| Value::from(time.as_nanos() as u64);
        self.notes = vec![
            ("crossing", nanoseconds(machine.crossing)),
            ("waking", nanoseconds(machine.waking)),
        ];
        self
    }

    /// Returns the part that is measured.
    #[must_use]
    pub fn part(&self) -> &'static str {
        self.part
    }

    /// Returns `true` if the command line selects this id.
    #[must_use]
    pub fn wants(&self, id: &str) -> bool {
        let is = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => id.starts_with(beginning),
            None => id == pattern,
        };
        (self.only.is_empty() || self.only.iter().any(is)) && !self.except.iter().any(is)
    }

    /// Returns `true` if a quick, less precise run was requested.
    #[must_use]
    pub fn is_quick(&self) -> bool {
        self.quick
    }

    /// Prints a row.
    pub fn print(&self, row: &Row) {
        if self.wants(&row.id) {
            println!("{}", row.to_json());
        }
    }

    /// Shows on a terminal which case is running.
    pub fn progress(&self, what: &str) {
        let mut terminal = std::io::stderr();
        if terminal.is_terminal() {
            let head = if what.is_empty() { "" } else { self.part };
            // Progress is lost if the terminal is closed.
            let _ = write!(terminal, "\r\x1b[2K{head} {what}");
        }
    }

    /// Runs all cases in turns and prints a row for each.
    pub fn run(&self, cases: Vec<Case>) {
        let wanted = cases.into_iter().filter(|case| self.wants(&case.id));
        let mut turns: Vec<SizedCase> = wanted.map(|case| self.warm_up(case)).collect();
        for round in 1..=self.rounds {
            // Each round begins with another subject, so that the same subject does not always run
            // right after a subject that leaves the machine busy.
            let first = self.process.unwrap_or(0) + round - 1;
            for turn in 0..turns.len() {
                let at = (first + turn) % turns.len();
                let turn = &mut turns[at];
                let case = &turn.case;
                self.progress(&format!("round {round} of {}, {case:?}", self.rounds));
                turn.sample(self.sample_count());
            }
        }
        self.progress("");
        for turn in turns {
            self.print(&turn.row(self));
        }
    }

    /// Number of samples of a case that computes its figure itself. Counts are reproducible: a few
    /// samples, or the other processes, show that they are.
    fn sample_count(&self) -> usize {
        if self.process.is_some() { 1 } else { 3 }
    }

    /// Warms a case up and finds the number of operations that fills the sample time.
    fn warm_up(&self, mut case: Case) -> SizedCase {
        self.progress(&format!("sizing {case:?}"));
        let mut operations = 64;
        if let Run::Timed(run) = &mut case.run {
            loop {
                let sample = run(operations);
                if sample.time * 4 >= self.fill {
                    let more = self.fill.as_secs_f64() / sample.time.as_secs_f64();
                    operations = ((sample.done as f64 * more) as u64).max(1);
                    break;
                }
                operations *= 4;
            }
        }
        SizedCase {
            case,
            operations,
            samples: Vec::new(),
            usage: Usage::default(),
        }
    }
}

/// A case with the samples taken so far.
struct SizedCase {
    case: Case,
    operations: u64,
    samples: Vec<(f64, u64, u64)>,
    /// The resources used by all timed samples together.
    usage: Usage,
}

impl SizedCase {
    fn sample(&mut self, counts: usize) {
        match &mut self.case.run {
            Run::Timed(run) => {
                let before = Usage::now();
                let sample = run(self.operations);
                self.usage += Usage::now() - before;
                assert!(sample.checked > 0, "{:?}: nothing was checked", self.case);
                let each = sample.time.as_nanos() as f64 / sample.done as f64;
                self.samples.push((each, sample.done, sample.checked));
            }
            Run::Counted(count) if self.samples.len() < counts => match count() {
                Ok((figure, of)) => self.samples.push((figure, of, of)),
                Err(reason) => self.case.run = Run::Lacking(reason),
            },
            Run::Counted(_) | Run::Lacking(_) => {}
        }
    }

    fn row(mut self, plan: &Plan) -> Row {
        self.samples.sort_by(|a, b| a.0.total_cmp(&b.0));
        let at = match plan.estimate {
            Estimate::Least => 0,
            Estimate::Median => self.samples.len() / 2,
        };
        let value = match self.case.run {
            Run::Lacking(reason) => Err(reason),
            Run::Timed(_) | Run::Counted(_) => Ok(self.samples[at].0),
        };
        let iterations = self.samples.iter().map(|(_, done, _)| done).sum();
        let mut notes = self.case.notes;
        notes.extend(plan.notes.iter().cloned());
        if let (Run::Timed(_), Estimate::Median, false) =
            (&self.case.run, plan.estimate, self.case.is_remote)
        {
            notes.extend(self.usage.notes(iterations));
        }
        Row {
            part: plan.part,
            id: self.case.id,
            subject: self.case.subject,
            value,
            unit: self.case.unit,
            iterations,
            checked: self.samples.iter().map(|(_, _, checked)| checked).sum(),
            notes,
        }
    }
}
