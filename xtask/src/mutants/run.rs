//! Building changes and running the tests on each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::MutantResult;
use super::schema::{self, Change};
use super::suite::Suite;
use super::target::MutatedCrate;
use crate::binaries::{self, Binary};
use crate::project::Project;
use crate::{process, term};

/// The compiler's error for a call in a constant that cannot be evaluated.
const NOT_CONST: &str = "E0015";

/// Maximum number of times that the compiler may name changes that do not build.
const ROUNDS: usize = 20;

/// The function added to the copy of the crate, which returns `true` if a change is switched on.
/// With `STROWGER_MUTANTS_MET` it records which switches were read.
const SWITCH: &str = r#"
#[doc(hidden)]
pub(crate) fn mutant(number: u32) -> bool {
    use std::io::Write;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicBool, Ordering};

    static CHOSEN: OnceLock<u32> = OnceLock::new();
    static MET: OnceLock<Option<std::fs::File>> = OnceLock::new();
    static SEEN: [AtomicBool; 4096] = [const { AtomicBool::new(false) }; 4096];
    let met = MET.get_or_init(|| {
        let path = std::env::var_os("STROWGER_MUTANTS_MET")?;
        std::fs::File::options().create(true).append(true).open(path).ok()
    });
    if let Some(mut file) = met.as_ref()
        && !SEEN[number as usize].swap(true, Ordering::Relaxed)
    {
        let _ = file.write_all(format!("{number}\n").as_bytes());
    }
    let chosen = CHOSEN.get_or_init(|| {
        let chosen = std::env::var("STROWGER_MUTANT").ok();
        chosen.and_then(|text| text.parse().ok()).unwrap_or(u32::MAX)
    });
    *chosen == number
}
"#;

pub(super) struct MutationRun<'a> {
    project: &'a Project,
    subject: &'a MutatedCrate,
    changes: Vec<Change>,
    copy: PathBuf,
    /// The files to change, in their original form.
    texts: BTreeMap<String, String>,
    outcomes: RecordedResults,
}

/// The use of the copy of the crate, which decides how it is built.
#[derive(Clone, Copy)]
enum BuildUse {
    /// Built once or twice; its tests run hundreds of times.
    Often,
    /// Built or checked with each change; its tests run once.
    Once,
}

/// The numbers of changes, by how they can be built.
struct BuildGroups {
    /// Changes built as branches.
    switched: Vec<usize>,
    /// Changes built one at a time.
    alone: Vec<usize>,
    /// Changes that do not build.
    dead: Vec<usize>,
}

#[derive(Default)]
struct MutantCounts {
    caught: usize,
    unviable: usize,
    before: usize,
    missed: Vec<String>,
}

impl<'a> MutationRun<'a> {
    pub(super) fn new(
        project: &'a Project,
        subject: &'a MutatedCrate,
        changes: Vec<Change>,
        afresh: bool,
    ) -> Result<Self, String> {
        let mut texts = BTreeMap::new();
        for change in &changes {
            if !texts.contains_key(&change.file) {
                let text = read(&project.root().join(&change.file))?;
                texts.insert(change.file.clone(), text);
            }
        }
        // Keep the files that an earlier run changed: this run most likely writes the same text.
        let switched = |file: &str| file == subject.library || texts.contains_key(file);
        let copy = project.copied("mutants/copy", switched)?;
        beside(project, &super::folder(project))?;
        let outcomes = RecordedResults::open(super::folder(project).join("outcomes"), afresh)?;
        Ok(Self {
            project,
            subject,
            changes,
            copy,
            texts,
            outcomes,
        })
    }

    /// Runs all changes. Returns a phrase with the result, or an error with the missed changes.
    pub(super) fn run(self) -> Result<String, String> {
        let begun = Instant::now();
        let mut tally = MutantCounts::default();
        let open = |number: &usize| self.outcomes.of(&self.stamp(*number)).is_none();
        tally.before = self.changes.len() - (0..self.changes.len()).filter(open).count();
        if tally.before > 0 {
            let before = tally.before;
            term::note(&format!("  {before} were caught before, in this very code"));
        }
        let BuildGroups {
            mut switched,
            mut alone,
            dead,
        } = self.switch_all()?;
        for number in dead {
            self.enter(number, MutantResult::Unviable, &mut tally)?;
        }
        switched.retain(open);
        alone.retain(open);
        if !switched.is_empty() {
            let suite = Suite::new(
                self.build(BuildUse::Often, self.subject.tests)?,
                self.subject.only,
                &super::folder(self.project),
            )?;
            suite.run_each(switched, |number, end| self.enter(number, end, &mut tally))?;
        }
        self.restore(self.subject.library)?;
        for number in alone {
            let end = self.run_alone(number)?;
            self.enter(number, end, &mut tally)?;
        }
        tally.told(self.changes.len(), begun.elapsed())
    }

    fn stamp(&self, number: usize) -> String {
        let change = &self.changes[number];
        change.stamp(&self.texts[&change.file])
    }

    fn enter(
        &self,
        number: usize,
        end: MutantResult,
        tally: &mut MutantCounts,
    ) -> Result<(), String> {
        let name = &self.changes[number].name;
        match end {
            MutantResult::Caught(by) => {
                term::note(&format!("  caught by {by}: {name}"));
                tally.caught += 1;
                self.outcomes.add(&self.stamp(number), &by)?;
            }
            MutantResult::Unviable => {
                tally.unviable += 1;
                self.outcomes.add(&self.stamp(number), COMPILER)?;
            }
            MutantResult::Missed => {
                let word = term::paint(term::TextStyle::Red, "MISSED");
                term::note(&format!("  {word}: {name}"));
                tally.missed.push(name.clone());
            }
        }
        Ok(())
    }

    /// Writes all changes that build as branches, including those that were caught before: cargo
    /// does not rebuild files that are written with the same text. Returns them, those that must be
    /// built alone, and those that turn out not to build.
    fn switch_all(&self) -> Result<BuildGroups, String> {
        let library = self.subject.library;
        let text = read(&self.project.root().join(library))?;
        write(&self.copy.join(library), &format!("{text}{SWITCH}"))?;
        let builds = |number: &usize| self.outcomes.of(&self.stamp(*number)) != Some(COMPILER);
        let mut left: BTreeSet<usize> = (0..self.changes.len()).filter(builds).collect();
        let (mut alone, mut dead) = (Vec::new(), Vec::new());
        let mut constant = self.outcomes.constant();
        for _ in 0..ROUNDS {
            let mut parts = BTreeMap::new();
            for (file, text) in &self.texts {
                let of_file = left.iter().map(|&number| (number, &self.changes[number]));
                let of_file: Vec<_> = of_file.filter(|(_, one)| one.file == *file).collect();
                let branched = schema::branch(text, &of_file, &constant)
                    .map_err(|error| format!("{file}: {error}"))?;
                write(&self.copy.join(file), &branched.text)?;
                for number in branched.alone.iter().chain(&branched.dead) {
                    left.remove(number);
                }
                alone.extend(branched.alone);
                dead.extend(branched.dead);
                parts.insert(file.clone(), branched.parts);
            }
            let mut errors = self.errors()?;
            if errors.is_empty() {
                return Ok(BuildGroups {
                    switched: left.into_iter().collect(),
                    alone,
                    dead,
                });
            }
            let before = (left.len(), constant.len());
            let mut said = Vec::new();
            while let Some(error) = errors.pop() {
                if let Some(name) = error.needs_const()
                    && constant.insert(name.clone())
                {
                    self.outcomes.add(&format!("{CONSTANT}{name}"), COMPILER)?;
                }
                let Diagnostic { code, places, text } = error;
                let named = places.iter().find_map(|(file, at)| {
                    let mut within = parts.get(file)?.iter();
                    within.find(|(range, _)| range.start <= *at && *at <= range.end)
                });
                match named {
                    // A switch in code that runs at compile time, where it cannot be read.
                    Some((_, number)) if code == NOT_CONST && left.remove(number) => {
                        alone.push(*number);
                    }
                    Some((_, number)) if left.remove(number) => dead.push(*number),
                    Some(_) => {}
                    None => said.push(text),
                }
            }
            if (left.len(), constant.len()) == before {
                return Err(format!("the copy does not build\n{}", said.join("\n")));
            }
        }
        Err("the copy still does not build".to_owned())
    }

    /// Returns the errors of the compiler in the library and in the tests, which have constants
    /// too.
    fn errors(&self) -> Result<Vec<Diagnostic>, String> {
        let mut cargo = self.cargo(BuildUse::Once);
        cargo.args([
            "check",
            "-p",
            self.subject.package,
            "--all-features",
            "--lib",
        ]);
        let tests = self.subject.tests.iter();
        cargo.args(tests.flat_map(|test| ["--test", test]));
        cargo.args(["--locked", "--message-format=json"]);
        let output = process::output(&mut cargo)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let errors: Vec<_> = text.lines().filter_map(Diagnostic::read).collect();
        if errors.is_empty() && !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(errors)
    }

    fn cargo(&self, usage: BuildUse) -> Command {
        let (optimised, incremental) = match usage {
            BuildUse::Often => ("1", "0"),
            BuildUse::Once => ("0", "1"),
        };
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&self.copy)
            // A separate folder: in that of the workspace, cargo would confuse the copy with the
            // original.
            .env(
                "CARGO_TARGET_DIR",
                super::folder(self.project).join("target"),
            )
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", optimised)
            .env("CARGO_INCREMENTAL", incremental);
        cargo
    }

    /// Builds the unit tests, and the given test binaries.
    fn build(&self, usage: BuildUse, tests: &[&str]) -> Result<Vec<Binary>, String> {
        let mut cargo = self.cargo(usage);
        cargo.args([
            "test",
            "--locked",
            "-p",
            self.subject.package,
            "--all-features",
            "--lib",
        ]);
        cargo.args(tests.iter().flat_map(|test| ["--test", test]));
        cargo.arg("--quiet");
        binaries::build(&mut cargo)
    }

    fn restore(&self, file: &str) -> Result<(), String> {
        write(
            &self.copy.join(file),
            &read(&self.project.root().join(file))?,
        )
    }

    /// Builds a change that has no switch, and runs the tests.
    fn run_alone(&self, number: usize) -> Result<MutantResult, String> {
        for file in self.texts.keys() {
            self.restore(file)?;
        }
        let change = &self.changes[number];
        let text = change.alone(&self.texts[&change.file]);
        let text = text.ok_or_else(|| format!("{} is nowhere", change.name))?;
        write(&self.copy.join(&change.file), &text)?;
        // The unit tests, which build quickly, notice most of the changes that cannot be branches.
        let only = self.subject.only;
        let unit = match self.build(BuildUse::Once, &[]) {
            Ok(unit) => unit,
            Err(_) if !self.errors()?.is_empty() => return Ok(MutantResult::Unviable),
            Err(error) => return Err(error),
        };
        match Suite::all(unit, only).run(None)? {
            MutantResult::Missed => {
                let all = self.build(BuildUse::Once, self.subject.tests)?;
                Suite::all(all, only).run(None)
            }
            end => Ok(end),
        }
    }
}

impl MutantCounts {
    fn told(self, all: usize, took: Duration) -> Result<String, String> {
        let Self {
            caught,
            unviable,
            before,
            missed,
        } = self;
        let took = term::human(took);
        if missed.is_empty() {
            return Ok(format!(
                "{all} changes, none missed: {caught} caught, {unviable} do not compile, \
                 {before} known from before; {took}"
            ));
        }
        let count = missed.len();
        let missed = missed.join("\n  ");
        Err(format!(
            "{count} of {all} changes were missed, in {took}\n  {missed}"
        ))
    }
}

/// An error of the compiler: its places, and its rendered text.
struct Diagnostic {
    code: String,
    places: Vec<(String, usize)>,
    text: String,
}

impl Diagnostic {
    fn read(line: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(line).ok()?;
        let message = &message["message"];
        if message["level"].as_str()? != "error" {
            return None;
        }
        let mut spans: Vec<&Value> = message["spans"].as_array()?.iter().collect();
        spans.sort_by_key(|span| !span["is_primary"].as_bool().unwrap_or(false));
        let place = |span: &&Value| {
            let at = usize::try_from(span["byte_start"].as_u64()?).ok()?;
            Some((span["file_name"].as_str()?.to_owned(), at))
        };
        Some(Self {
            code: message["code"]["code"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            places: spans.iter().filter_map(place).collect(),
            text: message["rendered"].as_str().unwrap_or_default().to_owned(),
        })
        // The last line only counts the errors before it.
        .filter(|this| !this.places.is_empty())
    }

    /// Returns the name of the function that the compiler must evaluate and cannot.
    fn needs_const(&self) -> Option<String> {
        let mut quoted = self.text.split('`');
        let path = quoted.nth(1).filter(|_| self.code == NOT_CONST)?;
        let name = path.rsplit("::").next();
        name.filter(|name| *name != "mutant").map(str::to_owned)
    }
}

/// The finder of changes that do not build.
const COMPILER: &str = "the compiler";

/// Prefix of the names of functions that must stay `const fn`.
const CONSTANT: &str = "const fn ";

/// The finder of each caught change, by stamp, on disk.
struct RecordedResults {
    path: PathBuf,
    caught: BTreeMap<String, String>,
}

impl RecordedResults {
    fn open(path: PathBuf, afresh: bool) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if afresh && path.exists() {
            std::fs::remove_file(&path).map_err(failed)?;
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let line = |line: &str| {
            let (stamp, by) = line.split_once('\t')?;
            Some((stamp.to_owned(), by.to_owned()))
        };
        let caught = text.lines().filter_map(line).collect();
        Ok(Self { path, caught })
    }

    fn of(&self, stamp: &str) -> Option<&str> {
        self.caught.get(stamp).map(String::as_str)
    }

    fn constant(&self) -> BTreeSet<String> {
        let names = self.caught.keys();
        let names = names.filter_map(|stamp| stamp.strip_prefix(CONSTANT));
        names.map(str::to_owned).collect()
    }

    fn add(&self, stamp: &str, by: &str) -> Result<(), String> {
        use std::io::Write;

        let failed = |error: std::io::Error| format!("{}: {error}", self.path.display());
        let mut options = std::fs::File::options();
        let mut file = options
            .create(true)
            .append(true)
            .open(&self.path)
            .map_err(failed)?;
        file.write_all(format!("{stamp}\t{by}\n").as_bytes())
            .map_err(failed)
    }
}

/// Links the folder beside the repository to the same place beside the copy, because tests read it.
fn beside(project: &Project, folder: &Path) -> Result<(), String> {
    let (shared, link) = (project.shared(), folder.join("shared"));
    if !shared.is_dir() || link.exists() {
        return Ok(());
    }
    std::os::unix::fs::symlink(shared, &link)
        .map_err(|error| format!("{}: {error}", link.display()))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes a file unless its contents are the same: cargo rebuilds newer files.
fn write(path: &Path, text: &str) -> Result<(), String> {
    if std::fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
