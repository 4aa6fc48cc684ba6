//! The workload of durable actors that `chaos durable` kills and whose power `power-loss` cuts.
//!
//! It is a test of `crates/durable`, so that no further program is linked. The checks are here,
//! because they continue across the ends of its processes.

pub(crate) mod history;
pub(crate) mod kills;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::binaries::{self, Binary};
use crate::process::{self, Running};
use crate::project::{self, Project};
use crate::step::{self, LongRunArgs};
use history::{Violation, WorkloadHistory};

/// Number of entities.
pub(crate) const ENTITIES: usize = 5;
/// Number of clients of each entity.
pub(crate) const CLIENTS: usize = 2;

/// The failures that an acknowledged increment survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreDurability {
    /// The end of the process.
    Process,
    /// A loss of power too.
    Disk,
}

/// The parameters of a run of the workload.
#[derive(Debug, Clone)]
pub(crate) struct WorkloadPlan {
    pub(crate) durability: StoreDurability,
    /// Bytes of rows in memory before a table is written.
    pub(crate) buffer: u64,
    /// Bytes by which the state of an entity is longer than that of the one before.
    pub(crate) padding: usize,
    /// Number of times that the store is opened.
    pub(crate) openings: u64,
    /// Number of increments of each client after each opening.
    pub(crate) increments: u64,
    /// The next increment of each client, ordered by entity.
    pub(crate) next: Vec<u64>,
    /// `true` to end the process without closing the store, which leaves its journal as it is.
    pub(crate) leaves: bool,
}

impl WorkloadPlan {
    fn text(&self) -> String {
        let Self {
            buffer,
            padding,
            openings,
            increments,
            ..
        } = self;
        let durability = match self.durability {
            StoreDurability::Process => "process",
            StoreDurability::Disk => "disk",
        };
        let next: Vec<_> = self.next.iter().map(u64::to_string).collect();
        let next = next.join(",");
        let end = if self.leaves { "leave" } else { "close" };
        format!("{durability} {buffer} {padding} {openings} {increments} {next} {end}")
    }

    /// Adds the plan to a command that runs the workload, or that runs a program which does.
    pub(crate) fn configure(&self, command: &mut Command, folder: &Path) {
        command
            .args([TEST, "--exact", "--nocapture"])
            .env("STROWGER_DURABLE_WORKLOAD", folder)
            .env("STROWGER_DURABLE_PLAN", self.text());
    }
}

/// The test that is the workload.
const TEST: &str = "workload::workload_child";

/// Returns the prebuilt test program, or builds it.
pub(crate) fn binary(project: &Project, run: &LongRunArgs) -> Result<Binary, String> {
    match &run.binary {
        Some(path) => Ok(Binary::prebuilt(path, project.root())),
        None => build(project),
    }
}

/// Builds the tests of the crate, with the features of the workspace's tests, so that nothing is
/// built twice.
fn build(project: &Project) -> Result<Binary, String> {
    let mut cargo = project.cargo();
    cargo.args(["test", "--workspace", "--locked", "--test", "durable"]);
    let mut built = binaries::build(&mut cargo)?.into_iter();
    let found = built.find(|one| one.name == "durable");
    found.ok_or_else(|| "cargo built no test program `durable`".to_owned())
}

/// Runs the workload to its end, and returns what it wrote.
pub(crate) fn run_to_end(command: &mut Command) -> Result<String, String> {
    let shown = step::display(command);
    let Some(output) = process::output_within(command, RUN_LIMIT)? else {
        return Err(format!("`{shown}` ran for more than {RUN_LIMIT:?}"));
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(text);
    }
    let (status, errors) = (output.status, String::from_utf8_lossy(&output.stderr));
    Err(format!("`{shown}` ended with {status}:\n{text}{errors}"))
}

/// Runs the workload until the first journal of a new store is nearly full.
pub(crate) fn fill_journal(
    binary: &Binary,
    store: &Path,
    plan: &WorkloadPlan,
    history: &mut WorkloadHistory,
) -> Outcome {
    let journal = store.join("db/0.jnl");
    let states = (0..ENTITIES * plan.padding).step_by(plan.padding);
    let each = (CLIENTS * states.sum::<usize>()) as u64;
    for _ in 0..MAX_FILLS {
        let length = fs::metadata(&journal).map_or(0, |data| data.len());
        let increments = match JOURNAL_LENGTH.saturating_sub(length).checked_sub(MIN_LEFT) {
            // A new one has its full length, one that was opened again has its own.
            _ if length == JOURNAL_LENGTH => 40,
            None => return Ok(()),
            // Half of what is missing, so that the journal is not replaced now.
            Some(missing) => (missing / (2 * each)).clamp(1, 40),
        };
        history.restart();
        let mut command = binary.command();
        let plan = WorkloadPlan {
            durability: StoreDurability::Process,
            openings: 1,
            increments,
            next: history.next(|| false),
            // A clean stop would empty it.
            leaves: true,
            ..plan.clone()
        };
        plan.configure(&mut command, store);
        let lines = run_to_end(&mut command)?;
        history
            .add_lines(&lines)
            .map_err(|violation| violation.text())?;
        if !history.has_left {
            return Err(format!("the workload did not fill the journal:\n{lines}"));
        }
    }
    Err(format!("{} is not full", journal.display()))
}

/// The length of a new journal.
const JOURNAL_LENGTH: u64 = 64 << 20;
/// Bytes that a nearly full journal has left. The database replaces one that has 64 MB.
const MIN_LEFT: u64 = 5 << 20;
/// Maximum number of runs that fill a journal.
const MAX_FILLS: u64 = 40;

/// A run of the workload, which is ended when dropped.
#[derive(Debug)]
pub(crate) struct WorkloadProcess {
    running: Running,
    lines: Receiver<String>,
    log: PathBuf,
}

/// The reason why [`WorkloadProcess::follow`] stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Followed {
    /// The time is over.
    TimeOver,
    /// The history has what was waited for.
    Found,
    /// The process has closed its output.
    Ended,
}

impl WorkloadProcess {
    /// Starts the command without waiting. Its standard error replaces a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self, String> {
        let err = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let mut running = process::spawn(command.stdout(Stdio::piped()).stderr(err))?;
        let out = BufReader::new(running.take_stdout()?);
        let (written, lines) = mpsc::channel();
        // Ends with the output, which the process closes when it ends.
        thread::spawn(move || {
            let mut lines = out.lines().map_while(Result::ok);
            lines.try_for_each(|line| written.send(line))
        });
        let log = log.to_owned();
        Ok(Self {
            running,
            lines,
            log,
        })
    }

    /// Adds its output to a history for a while, or until the history has something.
    pub(crate) fn follow(
        &self,
        history: &mut WorkloadHistory,
        time: Duration,
        is_found: impl Fn(&WorkloadHistory) -> bool,
    ) -> Result<Followed, Violation> {
        let begun = Instant::now();
        loop {
            if is_found(history) {
                return Ok(Followed::Found);
            }
            match self
                .lines
                .recv_timeout(time.saturating_sub(begun.elapsed()))
            {
                Ok(line) => history.add(&line)?,
                Err(RecvTimeoutError::Timeout) => return Ok(Followed::TimeOver),
                Err(RecvTimeoutError::Disconnected) => return Ok(Followed::Ended),
            }
        }
    }

    /// Kills the process, and adds what it had still written.
    pub(crate) fn kill(mut self, history: &mut WorkloadHistory) -> Result<(), Violation> {
        self.running.kill();
        match self.follow(history, RUN_LIMIT, |_| false)? {
            Followed::Ended => Ok(()),
            _ => Err(Violation::Failed("its output has no end".to_owned())),
        }
    }

    /// Waits until it has closed the store and ended, or refused to open it.
    pub(crate) fn end(mut self, history: &mut WorkloadHistory) -> Result<(), Violation> {
        let failed = |detail: String| Err(Violation::Failed(detail));
        let log = |detail: &str| {
            let log = project::read(&self.log).unwrap_or_default();
            format!("{detail}:\n{log}")
        };
        match self.follow(history, RUN_LIMIT, |_| false)? {
            Followed::Ended => {}
            _ => {
                return failed(log(&format!(
                    "the workload ran for more than {RUN_LIMIT:?}"
                )));
            }
        }
        match self.running.wait_within(RUN_LIMIT) {
            Ok(Some(status)) if status.success() => Ok(()),
            Ok(status) => failed(log(&format!("the workload ended with {status:?}"))),
            Err(error) => failed(error),
        }
    }
}

/// Maximum time of a run that ends by itself, on a busy machine.
const RUN_LIMIT: Duration = Duration::from_secs(120);
