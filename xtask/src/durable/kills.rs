//! `cargo xtask chaos durable`: kills a process with durable actors with SIGKILL, again and again.
//!
//! ```text
//!   open ─▶ read all counters ─▶ increment ─▶ kill -9 at a random moment, also while it opens
//!     ▲                              │ lines                 │
//!     └──── unanswered ones again ───┴──▶ history ◀── check ◀┘
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::history::{Violation, WorkloadHistory};
use super::{Followed, RUN_LIMIT, StoreDurability, WorkloadPlan, WorkloadProcess, fill_journal};
use crate::binaries::Binary;
use crate::chaos::ChaosArgs;
use crate::project::Project;
use crate::step::{LongRunArgs, Step};
use crate::{Outcome, term};

/// Kills for one store, and how many of them come first while it is created.
const KILLS_PER_ROUND: u64 = 50;
const CREATIONS: u64 = 5;

/// The counters, including those of interrupted runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct KillTally {
    kills: u64,
    /// Kills before the store was open.
    in_opening: u64,
    acknowledged: u64,
    /// Increments that were repeated, and got the answer of the first time.
    repeated: u64,
    /// Tables that were written from memory or by compaction.
    tables: u64,
    /// Journals that were full.
    journals: u64,
    lost: u64,
    doubled: u64,
    failed: u64,
}

/// Kills the workload as often as requested.
pub(crate) fn run(project: &Project, args: &ChaosArgs) -> Outcome {
    let tally = run_all(project, args)?;
    term::note(&tally.text());
    if args.run.json {
        term::line(&json!(tally).to_string());
    }
    tally.verdict()
}

/// Returns the step of `cargo xtask ci --full`.
pub(crate) fn step(project: &Project) -> Step<'_> {
    let rerun = "cargo xtask chaos durable --kills 200";
    Step::new("chaos-durable", rerun, || {
        let args = ChaosArgs::durable(200, LongRunArgs::default());
        let tally = run_all(project, &args)?;
        tally.verdict().map(|()| Some(tally.text()))
    })
}

impl KillTally {
    fn text(&self) -> String {
        let Self {
            kills,
            in_opening,
            acknowledged,
            repeated,
            tables,
            journals,
            lost,
            doubled,
            failed,
        } = self;
        format!(
            "{kills} kills, {in_opening} of them while opening; {acknowledged} increments \
             acknowledged, {repeated} answered again; {tables} tables, {journals} full journals; \
             {lost} lost, {doubled} doubled, {failed} failed"
        )
    }

    fn verdict(&self) -> Outcome {
        match (self.lost, self.doubled, self.failed) {
            (0, 0, 0) => Ok(()),
            _ => Err(self.text()),
        }
    }

    fn count(&mut self, violation: &Violation) {
        match violation {
            Violation::Lost(_) => self.lost += 1,
            Violation::Doubled(_) => self.doubled += 1,
            Violation::Failed(_) => self.failed += 1,
        }
    }
}

/// Kills in rounds. An interrupted run resumes after its last round, as long as the binary is the
/// same.
fn run_all(project: &Project, args: &ChaosArgs) -> Result<KillTally, String> {
    let binary = super::binary(project, &args.run)?;
    let mark = format!("{} {} {}", args.kills, args.seed, binary.stamp());
    let progress = project.progress("chaos-durable", mark)?;
    let mut tally: KillTally = progress.read();
    if tally.kills > 0 {
        term::note(&format!("goes on after {} kills", tally.kills));
    }
    let folder = project.folder("chaos-durable")?;
    while tally.kills < args.kills {
        let mut random = Rng::with_seed(args.seed ^ tally.kills << 32);
        let mut round = KillRound::new(&binary, &folder, tally.kills / KILLS_PER_ROUND)?;
        let kills = KILLS_PER_ROUND.min(args.kills - tally.kills);
        let ran = round.run(kills, &mut random, &mut tally);
        round.count(&mut tally);
        match ran {
            Ok(Ok(())) => progress.write(&tally)?,
            Ok(Err(violation)) => {
                tally.count(&violation);
                term::note(&violation.text());
                term::note(&format!("the store is in {}", round.store.display()));
                break;
            }
            Err(error) => return Err(error),
        }
        term::note(&tally.text());
    }
    // There is none after a violation in the first round.
    let _ = progress.remove();
    Ok(tally)
}

/// The kinds of the rounds, repeated: durability, bytes in memory, growth of the states. Those with
/// long states fill a journal before their kills.
const ROUNDS: [(StoreDurability, u64, usize); 4] = [
    (StoreDurability::Process, 1 << 20, 16 << 10),
    (StoreDurability::Disk, 64 << 10, 1 << 10),
    (StoreDurability::Process, 64 << 10, 1 << 10),
    (StoreDurability::Disk, 1 << 20, 16 << 10),
];

/// Growth of the states from which on they are long.
const LONG_STATES: usize = 16 << 10;

/// The kills of one store.
struct KillRound<'a> {
    binary: &'a Binary,
    store: PathBuf,
    log: PathBuf,
    plan: WorkloadPlan,
    history: WorkloadHistory,
    /// The time that the last process took until its store was open.
    opening: Duration,
}

impl<'a> KillRound<'a> {
    fn new(binary: &'a Binary, folder: &Path, number: u64) -> Result<Self, String> {
        let kind = usize::try_from(number).unwrap_or_default() % ROUNDS.len();
        let (durability, buffer, padding) = ROUNDS[kind];
        let store = folder.join("store");
        if store.exists() {
            fs::remove_dir_all(&store).map_err(|error| format!("{}: {error}", store.display()))?;
        }
        Ok(Self {
            binary,
            store,
            log: folder.join("log"),
            plan: WorkloadPlan {
                durability,
                buffer,
                padding,
                openings: 1,
                increments: u64::MAX,
                next: Vec::new(),
                leaves: false,
            },
            history: WorkloadHistory::default(),
            opening: Duration::from_millis(50),
        })
    }

    fn run(
        &mut self,
        kills: u64,
        random: &mut Rng,
        tally: &mut KillTally,
    ) -> Result<Result<(), Violation>, String> {
        for number in 0..kills {
            if number == CREATIONS && self.plan.padding >= LONG_STATES {
                self.history.restart();
                fill_journal(self.binary, &self.store, &self.plan, &mut self.history)?;
            }
            let process = self.start(random)?;
            // The first ones are killed while they create the store.
            let in_opening = number < CREATIONS || random.u8(..3) == 0;
            let survived = self.kill(process, in_opening, random);
            tally.kills += 1;
            tally.in_opening += u64::from(!self.history.is_open);
            if survived.is_err() {
                return Ok(survived);
            }
        }
        // The last one ends by itself, and its second opening reads what the first one wrote.
        (self.plan.openings, self.plan.increments) = (2, 3);
        let process = self.start(random)?;
        Ok(process.end(&mut self.history).and_then(|()| {
            match (&self.history.refused, self.history.is_closed) {
                (None, true) => Ok(()),
                (refused, _) => Err(lost(refused.as_deref())),
            }
        }))
    }

    fn start(&mut self, random: &mut Rng) -> Result<WorkloadProcess, String> {
        self.history.restart();
        self.plan.next = self.history.next(|| random.u8(..4) == 0);
        let mut command = self.binary.command();
        self.plan.configure(&mut command, &self.store);
        WorkloadProcess::start(&mut command, &self.log)
    }

    /// Kills a process at a random moment.
    fn kill(
        &mut self,
        process: WorkloadProcess,
        in_opening: bool,
        random: &mut Rng,
    ) -> Result<(), Violation> {
        let history = &mut self.history;
        let begun = Instant::now();
        let mut followed = Followed::TimeOver;
        if in_opening {
            let opening = u64::try_from(self.opening.as_micros()).unwrap_or(u64::MAX);
            let time = Duration::from_micros(random.u64(..=opening));
            followed = process.follow(history, time, |_| false)?;
        } else {
            let is_ready = |now: &WorkloadHistory| now.is_open || now.refused.is_some();
            if process.follow(history, RUN_LIMIT, is_ready)? == Followed::TimeOver {
                let detail = format!("the store did not open within {RUN_LIMIT:?}");
                return Err(Violation::Failed(detail));
            }
            self.opening = begun.elapsed();
            if history.is_open {
                let time = Duration::from_micros(random.u64(1..300_000));
                followed = process.follow(history, time, |_| false)?;
            }
        }
        process.kill(history)?;
        match (&history.refused, followed) {
            (None, Followed::Ended) => Err(Violation::Failed("it ended by itself".to_owned())),
            (None, _) => Ok(()),
            (refused, _) => Err(lost(refused.as_deref())),
        }
    }

    /// Adds the numbers of the round.
    fn count(&self, tally: &mut KillTally) {
        tally.acknowledged += self.history.acknowledged;
        tally.repeated += self.history.repeated;
        let highest = |folder: &str, suffix: &str| {
            let files = fs::read_dir(self.store.join(folder));
            let numbers = files.into_iter().flatten().filter_map(|file| {
                let name = file.ok()?.file_name().into_string().ok()?;
                name.strip_suffix(suffix)?.parse::<u64>().ok()
            });
            numbers.max().unwrap_or_default()
        };
        tally.tables += highest("db/keyspaces/1/tables", "");
        tally.journals += highest("db", ".jnl");
    }
}

/// A store that does not open has lost what it acknowledged.
fn lost(refused: Option<&str>) -> Violation {
    Violation::Lost(refused.unwrap_or("the store was not closed").to_owned())
}
