//! `cargo xtask power-loss`: opens stores of durable actors as a loss of power may leave them.
//!
//! ```text
//!  workload under strace ──▶ recording: writes, syncs, renames, lines of output
//!                                │ a point, a seed
//!                                ▼
//!        what was synced for certain, the rest by chance ──▶ image of the folder
//!                                                              │
//!        history of the lines before the point ──▶ check ◀── workload on the image
//! ```
//!
//! In `disk` mode, the store must open with every increment that was acknowledged before the point,
//! and continue from there. In `process` mode, it may refuse, and each counter may have lost its
//! last increments; that some are lost shows that the check would find it.

mod image;
mod trace;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;
use serde::Serialize;
use serde_json::json;

use self::image::SURVIVALS;
use self::trace::{Effect, Recording};
use crate::binaries::Binary;
use crate::durable::history::{Violation, WorkloadHistory};
use crate::durable::{self, StoreDurability, WorkloadPlan};
use crate::project::Project;
use crate::step::{LongRunArgs, Step};
use crate::{Outcome, process, project, step, term, tools};

/// Options of `cargo xtask power-loss`.
#[derive(Debug, clap::Args)]
pub(crate) struct PowerLossArgs {
    /// Cut the power at this many points
    #[arg(long, value_name = "NUMBER", default_value_t = 300)]
    points: u64,
    /// Seed of the points, and of what survives
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    run: LongRunArgs,
}

/// The results, which are counted at each point.
#[derive(Debug, Clone, Default, Serialize)]
struct PowerLossTally {
    points: u64,
    /// System calls that were recorded.
    calls: u64,
    /// Points at which increments had been acknowledged in disk mode.
    acknowledged: u64,
    lost: u64,
    doubled: u64,
    failed: u64,
    /// Points in process mode.
    process_points: u64,
    /// Points in process mode at which increments were lost, and at which that was reported.
    process_lost: u64,
    process_reported: u64,
}

/// Cuts the power as often as requested.
pub(crate) fn run(project: &Project, args: &PowerLossArgs) -> Outcome {
    if args.run.background {
        return step::background(project.root(), &project.folder("power-loss")?);
    }
    let tally = run_all(project, args)?;
    term::note(&tally.text());
    if args.run.json {
        term::line(&json!(tally).to_string());
    }
    tally.verdict()
}

/// Returns the step of `cargo xtask ci --full`.
pub(crate) fn step(project: &Project) -> Step<'_> {
    Step::new("power-loss", "cargo xtask power-loss --points 300", || {
        let args = PowerLossArgs {
            points: 300,
            seed: 1,
            run: LongRunArgs::default(),
        };
        let tally = run_all(project, &args)?;
        tally.verdict().map(|()| Some(tally.text()))
    })
}

impl PowerLossTally {
    fn text(&self) -> String {
        let Self {
            points,
            calls,
            acknowledged,
            lost,
            doubled,
            failed,
            process_points,
            process_lost,
            process_reported,
        } = self;
        format!(
            "{points} losses of power among {calls} system calls, {acknowledged} of them after \
             increments were acknowledged in disk mode: {lost} lost, {doubled} doubled, {failed} \
             failed; of {process_points} in process mode, {process_lost} lost increments and \
             {process_reported} said so"
        )
    }

    fn verdict(&self) -> Outcome {
        if self.lost + self.doubled + self.failed > 0 {
            return Err(self.text());
        }
        // The check of the disk mode is the same.
        match self.process_points >= MIN_CONTROL && self.process_lost == 0 {
            true => Err(format!(
                "{}: a check that finds no loss there finds none",
                self.text()
            )),
            false => Ok(()),
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

/// Number of points in process mode of which some must lose an increment.
const MIN_CONTROL: u64 = 20;

/// A kind of recording, and its share of the points.
#[derive(Debug, Clone, Copy)]
struct RecordingKind {
    name: &'static str,
    durability: StoreDurability,
    padding: usize,
    buffer: u64,
    /// Increments of each client after each of two openings.
    increments: u64,
    /// `true` to begin with a store whose journal is nearly full, so that it is replaced.
    is_filled: bool,
    /// Points of each hundred.
    share: u64,
}

const KINDS: [RecordingKind; 4] = [
    RecordingKind {
        name: "disk mode, short states",
        durability: StoreDurability::Disk,
        padding: 100,
        buffer: 8 << 10,
        increments: 10,
        is_filled: false,
        share: 35,
    },
    RecordingKind {
        name: "disk mode, long states",
        durability: StoreDurability::Disk,
        padding: 2 << 10,
        buffer: 64 << 10,
        increments: 10,
        is_filled: false,
        share: 35,
    },
    RecordingKind {
        name: "process mode",
        durability: StoreDurability::Process,
        padding: 1 << 10,
        buffer: 32 << 10,
        increments: 10,
        is_filled: false,
        share: 25,
    },
    RecordingKind {
        name: "disk mode, full journal",
        durability: StoreDurability::Disk,
        padding: 16 << 10,
        buffer: 512 << 10,
        increments: 6,
        is_filled: true,
        share: 5,
    },
];

fn run_all(project: &Project, args: &PowerLossArgs) -> Result<PowerLossTally, String> {
    tools::need(&tools::STRACE)?;
    let binary = durable::binary(project, &args.run)?;
    let mut tally = PowerLossTally::default();
    let mut left = args.points;
    for (number, kind) in KINDS.iter().enumerate() {
        let is_last = number + 1 == KINDS.len();
        let points = match is_last {
            true => left,
            false => (args.points * kind.share).div_ceil(100).min(left),
        };
        left -= points;
        if points > 0 {
            let folder = project.folder("power-loss")?;
            let lab = PowerLab::new(&binary, &folder, *kind)?;
            let recorded = lab.record()?;
            let mut random = Rng::with_seed(args.seed ^ (number as u64) << 32);
            lab.cut_all(&recorded, points, &mut random, &mut tally)?;
        }
    }
    Ok(tally)
}

/// The folders in which a workload is recorded and its images are opened.
struct PowerLab<'a> {
    binary: &'a Binary,
    kind: RecordingKind,
    /// The folder that is recorded, which has the store.
    run: PathBuf,
    /// Its contents before the recording.
    before: PathBuf,
    image: PathBuf,
    failures: PathBuf,
    trace: PathBuf,
}

/// A recording, and the history before it.
struct RecordedRun {
    recording: Recording,
    before: WorkloadHistory,
    /// The lines before which the power may be lost, by the kind of call there.
    points: Vec<Vec<usize>>,
}

impl<'a> PowerLab<'a> {
    fn new(binary: &'a Binary, folder: &Path, kind: RecordingKind) -> Result<Self, String> {
        let lab = Self {
            binary,
            kind,
            run: folder.join("run"),
            before: folder.join("before"),
            image: folder.join("image"),
            failures: folder.join("failures"),
            trace: folder.join("trace"),
        };
        for folder in [&lab.run, &lab.before, &lab.image] {
            empty(folder)?;
        }
        Ok(lab)
    }

    fn plan(&self, history: &WorkloadHistory, openings: u64, increments: u64) -> WorkloadPlan {
        WorkloadPlan {
            durability: self.kind.durability,
            buffer: self.kind.buffer,
            padding: self.kind.padding,
            openings,
            increments,
            next: history.next(|| false),
            leaves: false,
        }
    }

    /// Runs the workload under `strace`.
    fn record(&self) -> Result<RecordedRun, String> {
        let mut before = WorkloadHistory::default();
        if self.kind.is_filled {
            let plan = self.plan(&before, 1, 0);
            durable::fill_journal(self.binary, &self.run.join("store"), &plan, &mut before)?;
            copy_folder(&self.run, &self.before)?;
        }
        let strace = ["-f", "-q", "-xx", "--seccomp-bpf", "-s", "2000000", "-e"];
        let calls = format!("trace={}", trace::CALLS);
        let trace_file = self.trace.display().to_string();
        let args = [&strace[..], &[&calls, "-o", &trace_file]].concat();
        let mut command = self.binary.run_by("strace", &args);
        before.restart();
        let plan = self.plan(&before, 2, self.kind.increments);
        plan.configure(&mut command, &self.run.join("store"));
        let ended = durable::run_to_end(&mut command)?;
        let mut history = before.clone();
        history
            .add_lines(&ended)
            .map_err(|violation| violation.text())?;
        if !history.is_closed {
            return Err(format!("the recorded workload did not end:\n{ended}"));
        }
        let text = project::read(&self.trace)?;
        let recording = trace::read(&text, &self.run, &self.before)?;
        self.check_recording(&recording)?;
        let points = points(&recording);
        let (calls, data) = (text.lines().count(), text.len() >> 10);
        term::note(&format!(
            "{}: {calls} calls recorded in {data} KiB, {} of them changes and {} syncs",
            self.kind.name,
            recording.changes.len(),
            recording.syncs.len()
        ));
        Ok(RecordedRun {
            recording,
            before,
            points,
        })
    }

    /// Checks that all changes were recorded: together they must lead to the files that are there.
    fn check_recording(&self, recording: &Recording) -> Outcome {
        empty(&self.image)?;
        let everything = image::Survival::Everything;
        let random = &mut Rng::with_seed(0);
        image::write_image(
            recording,
            usize::MAX,
            everything,
            false,
            random,
            &self.image,
        )
        .map_err(|error| format!("{}: {error}", self.image.display()))?;
        let mut differ = Command::new("diff");
        differ.arg("-rq").arg(&self.run).arg(&self.image);
        let output = process::output(&mut differ)?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "the recorded calls do not lead to the files that are there:\n{}",
                String::from_utf8_lossy(&output.stdout)
            )),
        }
    }

    /// Cuts the power at random points.
    fn cut_all(
        &self,
        recorded: &RecordedRun,
        points: u64,
        random: &mut Rng,
        tally: &mut PowerLossTally,
    ) -> Outcome {
        let mut reports: BTreeMap<String, u64> = BTreeMap::new();
        tally.calls += (recorded.recording.changes.len() + recorded.recording.syncs.len()) as u64;
        for number in 0..points {
            let kind = random
                .choice(&recorded.points)
                .ok_or("nothing is recorded")?;
            let cut = *random.choice(kind).ok_or("nothing is recorded")?;
            let survival = *random.choice(&SURVIVALS).ok_or("no way to survive")?;
            let flips = random.u8(..4) == 0;
            empty(&self.image)?;
            image::write_image(
                &recorded.recording,
                cut,
                survival,
                flips,
                random,
                &self.image,
            )
            .map_err(|error| format!("{}: {error}", self.image.display()))?;
            let checked = self.check_image(recorded, cut, tally, &mut reports)?;
            tally.points += 1;
            if let Err(violation) = checked {
                tally.count(&violation);
                let kept = self.failures.join(format!("{}-{cut}", tally.points));
                let flips = if flips { ", with flipped bits" } else { "" };
                term::note(&format!(
                    "{}, line {cut} of the trace, {survival:?}{flips}: {}",
                    self.kind.name,
                    violation.text()
                ));
                if tally.lost + tally.doubled + tally.failed <= MAX_KEPT {
                    empty(&kept)?;
                    image::write_image(&recorded.recording, cut, survival, false, random, &kept)
                        .map_err(|error| format!("{}: {error}", kept.display()))?;
                    let trace = kept.join("trace");
                    fs::copy(&self.trace, &trace)
                        .map_err(|error| format!("{}: {error}", trace.display()))?;
                }
            }
            if (number + 1) % 50 == 0 {
                term::note(&tally.text());
            }
        }
        for (report, count) in reports {
            term::note(&format!("  {count:>4} times: {report}"));
        }
        Ok(())
    }

    /// Opens the store of an image, twice, and compares its counters with the history.
    fn check_image(
        &self,
        recorded: &RecordedRun,
        cut: usize,
        tally: &mut PowerLossTally,
        reports: &mut BTreeMap<String, u64>,
    ) -> Result<Result<(), Violation>, String> {
        let outputs = recorded.recording.outputs.iter();
        let told = outputs.filter(|(begin, _)| *begin < cut);
        let told: String = told.map(|(_, text)| text.as_str()).collect();
        let mut history = recorded.before.clone();
        history
            .add_lines(&told)
            .map_err(|violation| violation.text())?;
        let had_acknowledged = history.acknowledged > 0;
        history.restart();
        let mut plan = self.plan(&history, 2, 1);
        let mut random = Rng::with_seed(cut as u64);
        plan.next = history.next(|| random.bool());
        let mut command = self.binary.command();
        plan.configure(&mut command, &self.image.join("store"));
        let lines = match durable::run_to_end(&mut command) {
            Ok(lines) => lines,
            Err(error) => return Ok(Err(Violation::Failed(error))),
        };
        let strict = check_lines(history.clone(), &lines);
        if self.kind.durability == StoreDurability::Disk {
            tally.acknowledged += u64::from(had_acknowledged);
            return Ok(strict.map(drop));
        }
        tally.process_points += 1;
        history.accept_loss();
        let lenient = check_lines(history, &lines);
        tally.process_lost += u64::from(matches!(strict, Err(Violation::Lost(_))));
        let report = lines.lines().find_map(|line| {
            let told = line.split('@').nth(1)?;
            let said = ["refused", "damaged"];
            said.iter()
                .any(|word| told.starts_with(word))
                .then_some(told)
        });
        match report {
            // It says that something is missing. A state of two writes would be no report.
            Some(report) if !report.contains(MIXED_STATE) => {
                tally.process_reported += 1;
                let is_special =
                    |word: &str| word.contains(|it: char| it == '/' || it.is_ascii_digit());
                let words = report.split(' ');
                let words = words.map(|word| if is_special(word) { "…" } else { word });
                let report = words.collect::<Vec<_>>().join(" ");
                *reports.entry(report).or_default() += 1;
                Ok(Ok(()))
            }
            _ => Ok(lenient.map(drop)),
        }
    }
}

/// Words of the workload for a state that was never written.
const MIXED_STATE: &str = "a state of two writes";

/// Adds the lines of a workload that must run to its end.
fn check_lines(mut history: WorkloadHistory, lines: &str) -> Result<WorkloadHistory, Violation> {
    history.add_lines(lines)?;
    match (&history.refused, history.is_closed) {
        (Some(refused), _) => Err(Violation::Lost(refused.clone())),
        (None, true) => Ok(history),
        (None, false) => Err(Violation::Failed(format!("it did not end:\n{lines}"))),
    }
}

/// Returns the places at which something changes: at syncs, at entries of folders, at writes, and
/// at output.
fn points(recording: &Recording) -> Vec<Vec<usize>> {
    let mut kinds = vec![Vec::new(); 4];
    for sync in &recording.syncs {
        kinds[0].extend([sync.begin + 1, sync.end, sync.end + 1]);
    }
    for change in &recording.changes {
        let kind = match change.effect {
            Effect::Write { .. } | Effect::Resize { .. } => 2,
            _ => 1,
        };
        kinds[kind].extend([change.begin + 1, change.end + 1]);
    }
    for (begin, _) in &recording.outputs {
        kinds[3].push(begin + 1);
    }
    kinds.retain(|points| !points.is_empty());
    kinds
}

/// Removes a folder, and creates it again.
fn empty(folder: &Path) -> Outcome {
    let failed = |error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    fs::create_dir_all(folder).map_err(failed)
}

fn copy_folder(from: &Path, to: &Path) -> Outcome {
    let mut copy = Command::new("cp");
    copy.args(["-a", "--sparse=always"]);
    step::run(copy.arg(from.join(".")).arg(to))
}

/// Number of images that are kept because a check failed.
const MAX_KEPT: u64 = 3;
