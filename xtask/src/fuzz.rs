//! `cargo xtask fuzz`: libFuzzer over all code that reads bytes of others, from a network or from a
//! component.
//!
//! This does not need `cargo-fuzz`, only compiler flags and the `libfuzzer-sys` crate on a nightly
//! toolchain. New inputs are kept in the target folder, so that a later run continues where this
//! one ended. The repository has only named regression inputs, which also run as plain tests;
//! `--keep NAME FILE` adds one.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::project::{self, Project};
use crate::step::{self, Step};
use crate::{Outcome, process, term};

/// Named explicitly, so that the flags below do not reach build scripts.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Coverage for libFuzzer, and AddressSanitizer.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Zsanitizer=address -Ccodegen-units=1";

/// Seconds between two progress notes of a target.
const SLICE: u64 = 60;

/// The folder of `fuzz/corpus` for the targets that read datagrams; the others have their own.
const MESSAGES: &str = "message";
const READ_MESSAGES: [&str; 4] = ["datagram", "owned", "round_trip", "view"];

/// Maximum size of an input in the repository.
const LONGEST: u64 = 512;

/// The target whose seeds are the guests of the repository, and the maximum size of a guest that it
/// takes. It runs only when it is named, because it takes minutes to build.
const COMPONENT: &str = "component";
const LONGEST_COMPONENT: usize = 64 << 10;

#[derive(Debug, Default, PartialEq, Eq)]
struct FuzzPlan {
    seconds: u64,
    wanted: Vec<String>,
    list: bool,
    background: bool,
    /// Counts the time that earlier runs spent.
    resume: bool,
    /// The name and the file of an input to add to the repository.
    keep: Option<(String, String)>,
}

impl FuzzPlan {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut plan = Self {
            seconds: 15,
            ..Self::default()
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--for" => {
                    let time = args.next().ok_or("--for needs a time: 15s, 20m, 1h")?;
                    plan.seconds = parse_time(time)?;
                }
                "--list" => plan.list = true,
                "--background" => plan.background = true,
                "--resume" => plan.resume = true,
                "--keep" => {
                    let pair = args.next().cloned().zip(args.next().cloned());
                    plan.keep = Some(pair.ok_or("--keep needs a name and a file")?);
                }
                option if option.starts_with('-') => {
                    return Err(format!("fuzz does not know `{option}`"));
                }
                name => plan.wanted.push(name.to_owned()),
            }
        }
        Ok(plan)
    }
}

/// Fuzzes the named targets, or all that build quickly.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    let plan = FuzzPlan::parse(args)?;
    let targets = targets(project)?;
    if plan.list {
        targets.iter().for_each(|target| term::line(target));
        return Ok(());
    }
    if let Some(unknown) = plan.wanted.iter().find(|name| !targets.contains(name)) {
        return Err(format!("no target `{unknown}`: {}", targets.join(", ")));
    }
    if let Some((name, file)) = &plan.keep {
        let [target] = &plan.wanted[..] else {
            return Err("--keep needs the one target that reads the file".to_owned());
        };
        return keep(project, target, name, Path::new(file));
    }
    if let Some(reason) = impossible() {
        let left_out = format!("fuzzing left out: {reason}");
        if project::strict() {
            return Err(left_out);
        }
        term::note(&left_out);
        return Ok(());
    }
    if plan.background {
        return detach(project, args);
    }
    let mut chosen = plan.wanted.clone();
    if chosen.is_empty() {
        chosen = targets;
        chosen.retain(|target| target != COMPONENT);
    }
    let plan = &plan;
    let steps = chosen
        .into_iter()
        .map(|target| {
            let rerun = format!("cargo xtask fuzz {target} --for {}s", plan.seconds);
            let step = Step::new("fuzz", rerun, move || {
                let target = FuzzTarget::new(project, &target)?;
                target.fuzz(plan.seconds, plan.resume).map(Some)
            });
            step.with_time(Duration::from_secs(plan.seconds))
        })
        .collect();
    step::run_all(steps, true)
}

/// Starts the verb again, detached from this terminal.
fn detach(project: &Project, args: &[String]) -> Outcome {
    let args = args.iter().filter(|arg| *arg != "--background");
    let verb = std::iter::once("fuzz").chain(args.map(String::as_str));
    step::background(project.root(), &project.root().join("fuzz/target"), verb)
}

/// Returns the reason why this machine cannot fuzz, if there is one.
pub(crate) fn impossible() -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some(format!("the flags are those of {PLATFORM}"));
    }
    let mut rustc = Command::new("rustc");
    rustc.args(["+nightly", "--version"]);
    let nightly = process::output(&mut rustc).is_ok_and(|output| output.status.success());
    (!nightly).then(|| "no nightly toolchain (rustup toolchain install nightly)".to_owned())
}

/// A built target, and its folders.
struct FuzzTarget {
    name: String,
    program: PathBuf,
    /// Inputs found by runs on this machine.
    found: PathBuf,
    crashes: PathBuf,
    /// Inputs of the repository.
    seeds: PathBuf,
    /// The file with the seconds and runs so far.
    progress: PathBuf,
}

impl FuzzTarget {
    fn new(project: &Project, name: &str) -> Result<Self, String> {
        let fuzz = project.root().join("fuzz");
        let out = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| fuzz.join("target"), |path| project.root().join(path));
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&fuzz)
            .env("RUSTFLAGS", FLAGS)
            .env("CARGO_TARGET_DIR", &out);
        cargo.args(["+nightly", "build", "--quiet", "--release"]);
        cargo.args(["--workspace", "--target", PLATFORM, "--bin", name]);
        step::run(&mut cargo)?;
        let target = Self {
            name: name.to_owned(),
            program: out.join(PLATFORM).join("release").join(name),
            found: fuzz.join("target/corpus").join(name),
            crashes: fuzz.join("target/artifacts").join(name),
            seeds: seeds(project, name),
            progress: fuzz.join("target/progress").join(name),
        };
        let progress = fuzz.join("target/progress");
        let mut folders = vec![&target.found, &target.crashes, &progress];
        // The seeds of components are made from the guests.
        folders.extend((name != COMPONENT).then_some(&target.seeds));
        for folder in folders {
            std::fs::create_dir_all(folder)
                .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        }
        if name == COMPONENT {
            target.seed(project)?;
        }
        Ok(target)
    }

    /// Makes seeds from the guests: a manifest, a zero byte, and a component of limited size.
    fn seed(&self, project: &Project) -> Outcome {
        let fixtures = project.root().join("fixtures/components");
        let guests = project.root().join("components");
        let failed = |path: &Path| {
            let path = path.display().to_string();
            move |error: std::io::Error| format!("{path}: {error}")
        };
        for entry in std::fs::read_dir(&fixtures).map_err(failed(&fixtures))? {
            let path = entry.map_err(failed(&fixtures))?.path();
            let Some(name) = path.file_stem().and_then(|name| name.to_str()) else {
                continue;
            };
            let manifest = guests.join(name).join(name).with_extension("toml");
            if !manifest.is_file() {
                continue;
            }
            let octets = std::fs::read(&path).map_err(failed(&path))?;
            let mut seed = std::fs::read(&manifest).map_err(failed(&manifest))?;
            seed.push(0);
            seed.extend(&octets);
            if octets.len() <= LONGEST_COMPONENT {
                let place = self.found.join(format!("fixture-{name}"));
                std::fs::write(&place, &seed).map_err(failed(&place))?;
            }
        }
        Ok(())
    }

    /// Runs for this many seconds, including those of an earlier run if `resume` is set.
    fn fuzz(&self, seconds: u64, resume: bool) -> Result<String, String> {
        let kept = std::fs::read_to_string(&self.progress).unwrap_or_default();
        let (mut spent, mut runs) = if resume { progress(&kept) } else { (0, 0) };
        let mut covered = "?".to_owned();
        while spent < seconds {
            let slice = SLICE.min(seconds - spent);
            let said = self.slice(slice)?;
            spent += slice;
            runs += executed(&said);
            covered = edges(&said);
            std::fs::write(&self.progress, format!("{spent} {runs}"))
                .map_err(|error| format!("cannot write {}: {error}", self.progress.display()))?;
        }
        let name = &self.name;
        Ok(format!("{name}: {runs} runs in {spent} s, {covered} edges"))
    }

    fn slice(&self, seconds: u64) -> Result<String, String> {
        let mut command = Command::new(&self.program);
        command.env("RUST_BACKTRACE", "0");
        command.arg(format!("-max_total_time={seconds}"));
        command.arg(format!("-artifact_prefix={}/", self.crashes.display()));
        command.args(["-timeout=5", "-rss_limit_mb=2048", "-print_final_stats=1"]);
        command.arg(&self.found);
        command.args(self.seeds.is_dir().then_some(&self.seeds));
        let output = process::output(&mut command)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Ok(said);
        }
        term::note(&said);
        let (name, crashes) = (&self.name, self.crashes.display());
        Err(format!("{name} found something; the input is in {crashes}"))
    }
}

/// Returns the folder of the repository's inputs for a target.
fn seeds(project: &Project, target: &str) -> PathBuf {
    let folder = if READ_MESSAGES.contains(&target) {
        MESSAGES
    } else {
        target
    };
    project.root().join("fuzz/corpus").join(folder)
}

/// Copies an input into the repository, where it is named after its content.
fn keep(project: &Project, target: &str, name: &str, file: &Path) -> Outcome {
    if target == COMPONENT {
        return Err(
            "a component is a fixture or a test of crates/wasm, not an input here".to_owned(),
        );
    }
    if !is_speaking(name) {
        return Err(format!(
            "`{name}` names no content: small letters, digits and hyphens, as `repeated-element`"
        ));
    }
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let octets = file.metadata().map_err(failed)?.len();
    if octets > LONGEST {
        return Err(format!(
            "{} has {octets} octets, at most {LONGEST} are kept: minimize it (-minimize_crash=1)",
            file.display()
        ));
    }
    let place = seeds(project, target).join(name);
    if place.exists() {
        return Err(format!("{} is there already", place.display()));
    }
    std::fs::copy(file, &place).map_err(failed)?;
    term::note(&format!("{}: the tests replay it", place.display()));
    Ok(())
}

/// Returns whether a name has words, and is not the hash that libFuzzer gives to an input.
fn is_speaking(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_hash = name.len() >= 16 && name.chars().all(|c| c.is_ascii_hexdigit());
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(allowed) && !is_hash
}

/// Parses the seconds and runs of an earlier run.
fn progress(kept: &str) -> (u64, u64) {
    let mut numbers = kept.split_whitespace().map_while(|text| text.parse().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

/// Parses the number of inputs that libFuzzer ran from its closing lines.
fn executed(said: &str) -> u64 {
    let done = said.lines().find_map(|line| line.strip_prefix("Done "));
    done.and_then(|done| done.split(' ').next()?.parse().ok())
        .unwrap_or(0)
}

/// Parses the coverage.
fn edges(said: &str) -> String {
    let covered = said
        .lines()
        .rev()
        .find_map(|line| line.split_once(" cov: "));
    covered
        .and_then(|(_, rest)| rest.split(' ').next())
        .unwrap_or("?")
        .to_owned()
}

/// Returns the binaries of the fuzz workspace.
fn targets(project: &Project) -> Result<Vec<String>, String> {
    let read = |folder: &str| {
        let path = project.root().join(folder).join("Cargo.toml");
        let text = std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let manifest = text.parse::<toml::Table>();
        manifest.map_err(|error| format!("{} does not parse: {error}", path.display()))
    };
    let list = |value: Option<&toml::Value>| value.and_then(toml::Value::as_array).cloned();
    let root = read("fuzz")?;
    let members = list(root.get("workspace").and_then(|table| table.get("members")));
    let mut manifests = vec![root];
    for member in members.unwrap_or_default() {
        let member = member.as_str().ok_or("a member of fuzz has no name")?;
        manifests.push(read(&format!("fuzz/{member}"))?);
    }
    let binaries = manifests
        .iter()
        .filter_map(|manifest| list(manifest.get("bin")));
    let names = binaries
        .flatten()
        .filter_map(|one| one.get("name")?.as_str().map(str::to_owned));
    Ok(names.collect())
}

pub(crate) fn parse_time(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is no time: 15s, 20m, 1h");
    let split = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match unit {
        "" | "s" => Ok(number),
        "m" => Ok(number * 60),
        "h" => Ok(number * 3600),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("15s"), Ok(15));
        assert_eq!(parse_time("20m"), Ok(1200));
        assert_eq!(parse_time("7"), Ok(7));
        assert!(parse_time("soon").is_err());
        assert!(parse_time("3d").is_err());
    }

    #[test]
    fn closing_lines_are_read() {
        let said = "#2 INITED cov: 7 ft: 8\n#99 NEW    cov: 41 ft: 60 corp: 3\nDone 99 runs in 2 \
                    second(s)\n";
        assert_eq!(executed(said), 99);
        assert_eq!(edges(said), "41");
        assert_eq!(executed("nothing"), 0);
    }

    #[test]
    fn time_that_was_spent_is_read_again() {
        assert_eq!(progress("120 4711"), (120, 4711));
        assert_eq!(progress(""), (0, 0));
        assert_eq!(progress("half"), (0, 0));
    }

    #[test]
    fn an_unknown_option_is_no_target() {
        let parse = |text: &str| {
            let args: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            FuzzPlan::parse(&args)
        };
        assert!(parse("--fast").is_err());
        let plan = parse("view --for 2m --resume").expect("complete");
        assert_eq!((plan.seconds, plan.resume), (120, true));
        assert_eq!(plan.wanted, ["view"]);
        assert!(parse("view --keep cut-off").is_err());
        let plan = parse("view --keep cut-off crash-1").expect("complete");
        let kept = ("cut-off".to_owned(), "crash-1".to_owned());
        assert_eq!(plan.keep, Some(kept));
    }

    #[test]
    fn inputs_are_named_after_their_content() {
        assert!(is_speaking("flags-of-six-octets"));
        assert!(is_speaking("two"));
        assert!(!is_speaking("da4e049b6080b50eb5f34a19d4ad942b0b6b696d"));
        assert!(!is_speaking("../view"));
        assert!(!is_speaking("Two"));
        assert!(!is_speaking(""));
    }
}
