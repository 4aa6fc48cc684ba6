//! `cargo xtask simulate`: the storm of the runtime's tests, that of the N4 node, or the
//! simulations of durable actors, for any number of seeds.

pub(crate) mod durable;
pub(crate) mod n4;

use std::ops::Range;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use crate::binaries::{self, Binary};
use crate::project::{self, Project};
use crate::step::{self, Step};
use crate::{Outcome, term};

/// Seeds between two progress notes.
const CHUNK: u64 = 1000;
/// Number of seeds of each step of `cargo xtask ci --full`.
const MANY_SEEDS: u64 = 10_000;

/// Options of `cargo xtask simulate`.
#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    /// Run the seeds below this number
    #[arg(long, value_name = "NUMBER", default_value_t = CHUNK)]
    pub(crate) seeds: u64,
    /// Run only this seed
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Print the schedule of actors
    #[arg(long, requires = "seed", conflicts_with = "durable")]
    trace: bool,
    /// Run detached from the terminal, with output to a file
    #[arg(long, conflicts_with = "seed")]
    background: bool,
    /// Run both roles of the N4 node instead of the runtime's actors
    #[arg(long)]
    n4: bool,
    /// Run durable actors, their events and their messages to one another
    #[arg(long, conflicts_with = "n4")]
    durable: bool,
}

/// The tests that simulate something.
struct Simulation {
    /// The target of `cargo test`, and the name of its binary.
    target: &'static [&'static str],
    binary: &'static str,
    /// The test of many seeds, and that of one seed that runs twice.
    many: &'static str,
    twice: &'static str,
    /// The variables for the seeds, for the one seed, and for the file of its trace.
    seeds: &'static str,
    seed: &'static str,
    trace: &'static str,
}

const RUNTIME: Simulation = Simulation {
    target: &["--test", "storm"],
    binary: "storm",
    many: "messages_are_handled_once_in_order_or_reported",
    twice: "same_seed_reproduces_the_storm",
    seeds: "STROWGER_STORM_SEEDS",
    seed: "STROWGER_SEED",
    trace: "STROWGER_STORM_TRACE",
};

/// Runs the storm for many seeds or for one, and prints its trace on request.
pub(crate) fn run(project: &Project, plan: &SimulateArgs) -> Outcome {
    if plan.background {
        return step::background(project.root(), &project.folder("simulate")?);
    }
    if plan.durable {
        let seeds = plan.seed.map_or(0..plan.seeds, |seed| seed..seed + 1);
        return durable::run(project, &seeds);
    }
    let simulation = if plan.n4 { &n4::N4 } else { &RUNTIME };
    let binary = simulation.build(project)?;
    match plan.seed {
        Some(seed) if plan.trace || plan.n4 => {
            let (text, ran) = simulation.trace(project, &binary, seed)?;
            if plan.trace {
                term::line(text.trim_end());
            }
            ran
        }
        Some(seed) => {
            let mut command = only(&binary, simulation.many);
            step::run(command.env(simulation.seed, seed.to_string()))
        }
        None if plan.n4 => n4::run_all(&binary, plan.seeds),
        None => run_all(project, &binary, plan.seeds),
    }
}

/// Returns the step of `cargo xtask ci`: seeds that the tests do not run, and the same trace twice.
pub(crate) fn step(project: &Project) -> Step<'_> {
    Step::new("simulate", "cargo xtask simulate --seeds 2000", || {
        let storm = RUNTIME.build(project)?;
        step::run(only(&storm, RUNTIME.many).env(RUNTIME.seeds, "1000..1200"))?;
        let trace = || {
            RUNTIME
                .trace(project, &storm, 7)
                .and_then(|(text, ran)| ran.map(|()| text))
        };
        let (first, second) = (trace()?, trace()?);
        if first != second {
            return Err("seed 7 gave two traces".to_owned());
        }
        let turns = first.lines().count();
        Ok(Some(format!(
            "200 seeds; a trace of {turns} lines, twice the same"
        )))
    })
}

/// Returns the steps of `cargo xtask ci --full`: many seeds of each simulation.
pub(crate) fn proof_steps(project: &Project) -> [Step<'_>; 3] {
    [
        Step::new("storm-seeds", "cargo xtask simulate --seeds 10000", || {
            run_all(project, &RUNTIME.build(project)?, MANY_SEEDS)?;
            Ok(Some(format!("{MANY_SEEDS} seeds")))
        }),
        Step::new(
            "n4-seeds",
            "cargo xtask simulate --n4 --seeds 10000",
            || {
                n4::run_all(&n4::N4.build(project)?, MANY_SEEDS)?;
                Ok(Some(format!("{MANY_SEEDS} seeds")))
            },
        ),
        durable::step(project),
    ]
}

impl Simulation {
    fn build(&self, project: &Project) -> Result<Binary, String> {
        build(project, self.target, self.binary)
    }

    /// Runs a seed twice. Returns its trace, and an error if the runs differed or failed.
    fn trace(
        &self,
        project: &Project,
        binary: &Binary,
        seed: u64,
    ) -> Result<(String, Outcome), String> {
        let name = format!("{}-trace-{seed}", self.binary);
        let file = project.folder("simulate")?.join(name);
        let mut command = only(binary, self.twice);
        command
            .env(self.seed, seed.to_string())
            .env(self.trace, &file);
        // Standard output is for the trace alone.
        let ran = step::run(command.stdout(Stdio::null()));
        let ran = ran.map_err(|error| format!("{error}; its trace is {}", file.display()));
        Ok((project::read(&file)?, ran))
    }
}

/// Builds a test program with the features of the workspace's tests, so that nothing is built
/// twice.
fn build(project: &Project, target: &[&str], program: &str) -> Result<Binary, String> {
    let mut cargo = project.cargo();
    cargo.args(["test", "--workspace", "--locked"]).args(target);
    let mut built = binaries::build(&mut cargo)?.into_iter();
    let found = built.find(|one| one.name == program);
    found.ok_or_else(|| format!("cargo built no test program `{program}`"))
}

/// Runs seeds in chunks on all processors, until a chunk fails. Returns the results of all chunks,
/// in no order.
fn run_parallel<T: Send>(
    seeds: Range<u64>,
    chunk: u64,
    run: impl Fn(Range<u64>) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let state = Mutex::new((seeds.start, Ok(Vec::new())));
    let next = || {
        let (next, results) = &mut *state.lock().ok()?;
        let first = *next;
        *next = seeds.end.min(first + chunk);
        (results.is_ok() && first < *next).then_some(first..*next)
    };
    let work = || {
        while let Some(chunk) = next() {
            let result = run(chunk);
            let (_, results) = &mut *state.lock().expect("no panic before");
            match (results.as_mut(), result) {
                (Ok(results), Ok(result)) => results.push(result),
                (_, Err(error)) => *results = Err(error),
                (Err(_), Ok(_)) => (),
            }
        }
    };
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
    state.into_inner().expect("no panic before").1
}

fn only(binary: &Binary, test: &str) -> Command {
    let mut command = binary.command();
    command.args([test, "--exact", "--nocapture"]);
    command
}

/// Runs all seeds below a number. An interrupted run resumes where it was, as long as the storm is
/// the same.
fn run_all(project: &Project, storm: &Binary, seeds: u64) -> Outcome {
    let progress = project.progress("simulate", format!("{} {seeds}", storm.stamp()))?;
    let mut next: u64 = progress.read();
    if next > 0 {
        term::note(&format!("goes on at seed {next}, where the last run ended"));
    }
    while next < seeds {
        let end = seeds.min(next + CHUNK);
        let mut command = only(storm, RUNTIME.many);
        step::run(command.env(RUNTIME.seeds, format!("{next}..{end}")))
            .map_err(|error| format!("{error}; the seed and how to replay it stand above"))?;
        next = end;
        progress.write(&next)?;
        term::note(&format!("{next} of {seeds} seeds hold"));
    }
    progress.remove()
}
