//! `cargo xtask chaos`: kills a node with SIGKILL again and again, and audits its state afterwards.
//!
//! ```text
//!   load ── asks ──▶ node ── kill -9 at a random point, also while it recovers or compacts
//!    │ journal               │
//!    └──▶ file ──▶ audit ◀── rules of all sessions, after each start
//! ```
//!
//! The load is a separate process that continues across the kills. It is stopped while the
//! restarted node is audited, so that the audit compares only what was recovered.
//!
//! In some rounds the store is damaged between two runs as well. Then the node may lose data if it
//! reports that: data lost without a report counts as lost.

mod damage;
mod process;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use fastrand::Rng;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::damage::Damage;
use self::process::{ChaosSetup, LoadProcess};
use crate::node::NodeProcess;
use crate::project::Project;
use crate::step::{self, LongRunArgs, Step};
use crate::{Outcome, durable, term};

/// Kills for one load and its journal.
const KILLS_PER_ROUND: u64 = 25;

/// Options of `cargo xtask chaos`.
#[derive(Debug, clap::Args)]
pub(crate) struct ChaosArgs {
    /// The process to kill: an N4 node, or one with durable actors
    #[arg(value_enum, default_value_t)]
    target: ChaosTarget,
    /// Kill it this many times
    #[arg(long, value_name = "NUMBER", default_value_t = 50)]
    pub(crate) kills: u64,
    /// Seed of the random moments
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) run: LongRunArgs,
}

/// A process that can be killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum ChaosTarget {
    #[default]
    N4,
    Durable,
}

impl ChaosArgs {
    /// Returns options for killing a process with durable actors.
    pub(crate) fn durable(kills: u64, run: LongRunArgs) -> Self {
        Self {
            target: ChaosTarget::Durable,
            kills,
            seed: 1,
            run,
        }
    }
}

/// The counters, including those of interrupted runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ChaosTally {
    kills: u64,
    /// Kills before the node had announced itself.
    in_recovery: u64,
    acknowledged: u64,
    audits: u64,
    /// Stores that were damaged, and nodes that reported a loss after that.
    damaged: u64,
    told: u64,
    lost: u64,
    wrong: u64,
}

/// Kills a process as often as requested.
pub(crate) fn run(project: &Project, plan: &ChaosArgs) -> Outcome {
    if plan.run.background {
        return step::background(project.root(), &project.folder("chaos")?);
    }
    if plan.target == ChaosTarget::Durable {
        return durable::kills::run(project, plan);
    }
    let tally = run_all(project, plan)?;
    term::note(&tally.text());
    if plan.run.json {
        term::line(&json!(tally).to_string());
    }
    tally.verdict()
}

/// Returns the step of `cargo xtask ci`.
pub(crate) fn step(project: &Project) -> Step<'_> {
    Step::new("chaos", "cargo xtask chaos --kills 50", || {
        let plan = ChaosArgs {
            target: ChaosTarget::N4,
            kills: 50,
            seed: 1,
            run: LongRunArgs::default(),
        };
        let tally = run_all(project, &plan)?;
        tally.verdict().map(|()| Some(tally.text()))
    })
}

impl ChaosTally {
    fn text(self) -> String {
        let Self {
            kills,
            in_recovery,
            acknowledged,
            audits,
            damaged,
            told,
            lost,
            wrong,
        } = self;
        format!(
            "{kills} kills, {in_recovery} of them in recovery; {acknowledged} sessions \
             acknowledged, compared {audits} times; {damaged} stores damaged, of which {told} \
             missed something and said so; {lost} lost, {wrong} wrong"
        )
    }

    fn verdict(self) -> Outcome {
        match (self.lost, self.wrong) {
            (0, 0) => Ok(()),
            _ => Err(self.text()),
        }
    }
}

/// Kills in rounds. An interrupted run resumes after its last round, as long as the binary is the
/// same.
fn run_all(project: &Project, plan: &ChaosArgs) -> Result<ChaosTally, String> {
    let binary = plan.run.binary.clone().map_or_else(|| build(project), Ok)?;
    let folder = project.folder("chaos")?;
    let built = std::fs::metadata(&binary).and_then(|data| data.modified());
    let mark = format!("{} {} {built:?}", plan.kills, plan.seed);
    let progress = project.progress("chaos", mark)?;
    let mut tally: ChaosTally = progress.read();
    if tally.kills > 0 {
        term::note(&format!("goes on after {} kills", tally.kills));
    }
    while tally.kills < plan.kills {
        let kills = KILLS_PER_ROUND.min(plan.kills - tally.kills);
        let mut random = Rng::with_seed(plan.seed ^ tally.kills << 32);
        let setup = ChaosSetup::new(&folder, &binary)?;
        run_round(&setup, kills, &mut random, &mut tally)?;
        progress.write(&tally)?;
        if tally.lost + tally.wrong > 0 {
            break;
        }
        term::note(&tally.text());
    }
    progress.remove()?;
    Ok(tally)
}

/// The kind of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundKind {
    Process,
    Disk,
    /// As `Disk`, and the files are damaged.
    Damage,
}

/// The kinds of the rounds, repeated.
const ROUND_KINDS: [RoundKind; 4] = [
    RoundKind::Process,
    RoundKind::Damage,
    RoundKind::Process,
    RoundKind::Disk,
];

/// Performs this many kills of one kind. After each loss that the node reported, a new store is
/// used.
fn run_round(setup: &ChaosSetup, kills: u64, random: &mut Rng, tally: &mut ChaosTally) -> Outcome {
    let round = usize::try_from(tally.kills / KILLS_PER_ROUND).unwrap_or_default();
    let kind = ROUND_KINDS[round % ROUND_KINDS.len()];
    let end = tally.kills + kills;
    while tally.kills < end && tally.lost + tally.wrong == 0 {
        run_store(setup, kind, end, random, tally)?;
    }
    Ok(())
}

/// Runs one load with one store and one journal.
fn run_store(
    setup: &ChaosSetup,
    kind: RoundKind,
    end: u64,
    random: &mut Rng,
    tally: &mut ChaosTally,
) -> Outcome {
    setup.clean(match kind {
        RoundKind::Process => "process",
        RoundKind::Disk | RoundKind::Damage => "disk",
    })?;
    let mut node = process::start(setup)?;
    node.object()?;
    let load = LoadProcess::start(setup)?;
    let mut acknowledged = 0;
    while tally.kills < end {
        std::thread::sleep(Duration::from_millis(20 + random.u64(..230)));
        node.kill();
        tally.kills += 1;
        load.pause()?;
        let said = setup.log()?.len();
        let damage = match kind {
            RoundKind::Damage => Some(Damage::inflict(&setup.store, random)?),
            RoundKind::Process | RoundKind::Disk => None,
        };
        tally.damaged += u64::from(damage.is_some());
        node = start_again(setup, end, random, tally)?;
        let told = damage.is_some() && setup.log()?[said..].contains(LOSS_REPORT);
        if told && damage != Some(Damage::Torn) {
            tally.told += 1;
            tally.acknowledged += acknowledged;
            return node.end(Signal::TERM).map(drop);
        }
        let audit = setup.audit()?;
        let number = |key: &str| audit[key].as_u64().unwrap_or(u64::MAX);
        acknowledged = number("acknowledged");
        tally.audits += 1;
        tally.lost += number("lost");
        // A torn group was never acknowledged: a node that reports a loss for it is wrong.
        tally.wrong += number("wrong") + u64::from(told);
        if tally.lost + tally.wrong > 0 {
            term::note(&format!("{audit}"));
            term::note(&format!(
                "{damage:?}; the store is in {}",
                setup.store.display()
            ));
            tally.acknowledged += acknowledged;
            return Ok(());
        }
        load.resume()?;
    }
    // The load deletes everything at its end, which the node must still know.
    let ended = load.end()?;
    tally.lost += ended["lost"].as_u64().unwrap_or(1);
    let left = setup.audit()?;
    tally.wrong += left["wrong"].as_u64().unwrap_or(1);
    tally.acknowledged += acknowledged.max(left["acknowledged"].as_u64().unwrap_or_default());
    node.end(Signal::TERM)?;
    let said = setup.log()?;
    // A database that reads damaged files may panic; the panic is caught.
    let panicked = said.contains("panicked") && kind != RoundKind::Damage;
    if said.contains(LOSS_REPORT) || panicked {
        tally.wrong += 1;
        term::note(&format!("the node said:\n{said}"));
    }
    Ok(())
}

/// Starts the node and waits until it runs. Some starts are killed as well, sometimes repeatedly.
fn start_again(
    setup: &ChaosSetup,
    end: u64,
    random: &mut Rng,
    tally: &mut ChaosTally,
) -> Result<NodeProcess, String> {
    let mut node = process::start(setup)?;
    while tally.kills < end && random.u8(..3) == 0 {
        std::thread::sleep(Duration::from_millis(random.u64(..60)));
        node.kill();
        tally.kills += 1;
        tally.in_recovery += 1;
        node = process::start(setup)?;
    }
    node.object()?;
    Ok(node)
}

/// The text that a node logs when its store has lost data.
const LOSS_REPORT: &str = "Recovery Time Stamp moves";

/// Builds the binary with the features of the workspace's tests, so that nothing is built twice.
pub(crate) fn build(project: &Project) -> Result<PathBuf, String> {
    let mut cargo = project.cargo();
    binary(cargo.args(["build", "--workspace", "--locked", "--bin", "strowger"]))
}

/// Runs a cargo command that builds the binary, and returns its path.
pub(crate) fn binary(cargo: &mut Command) -> Result<PathBuf, String> {
    let text = step::output(cargo.arg("--message-format=json"))?;
    let messages = text.lines();
    let messages = messages.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut built = messages.filter(|message| message["target"]["name"] == "strowger");
    let path = built.find_map(|message| message["executable"].as_str().map(PathBuf::from));
    path.ok_or_else(|| "cargo built no binary called `strowger`".to_owned())
}
