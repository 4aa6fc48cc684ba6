//! `cargo xtask fuzz`: `cargo fuzz` over all code that reads bytes of others, from a network or
//! from a component.
//!
//! New inputs are kept in the target folder, so that a later run continues where this one ended.
//! The repository has only named regression inputs, which also run as plain tests; `--keep NAME
//! FILE` adds one.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::project::{self, Project};
use crate::step::{self, Step};
use crate::{Outcome, process, term, tools};

/// The folder of `fuzz/corpus` for the targets that read datagrams; the others have their own.
const MESSAGES: &str = "message";
const READ_MESSAGES: [&str; 4] = ["datagram", "owned", "round_trip", "view"];

/// Maximum size of an input in the repository.
const MAX_INPUT: u64 = 512;

/// The target whose seeds are the guests of the repository, and the maximum size of a guest that it
/// takes. It runs only when it is named, because it takes minutes to build.
const COMPONENT: &str = "component";
const MAX_COMPONENT: usize = 64 << 10;

/// Options of `cargo xtask fuzz`.
#[derive(Debug, clap::Args)]
pub(crate) struct FuzzArgs {
    /// Run only these targets
    targets: Vec<String>,
    /// Run each target for this time, such as 15s, 20m or 1h; at least 1s
    #[arg(long = "for", value_name = "DURATION", default_value = "15s", value_parser = parse_time)]
    pub(crate) time: Duration,
    /// Print the names of the targets
    #[arg(long)]
    list: bool,
    /// Add FILE to the regression inputs of the target, which the tests replay
    #[arg(long, num_args = 2, value_names = ["NAME", "FILE"])]
    keep: Option<Vec<String>>,
}

/// Fuzzes the named targets, or all that build quickly.
pub(crate) fn run(project: &Project, args: &FuzzArgs) -> Outcome {
    let targets = targets(project)?;
    if args.list {
        targets.iter().for_each(|target| term::line(target));
        return Ok(());
    }
    if let Some(unknown) = args.targets.iter().find(|name| !targets.contains(name)) {
        return Err(format!("no target `{unknown}`: {}", targets.join(", ")));
    }
    if let Some([name, file]) = args.keep.as_deref() {
        let [target] = &args.targets[..] else {
            return Err("--keep needs the one target that reads the file".to_owned());
        };
        return keep(project, target, name, Path::new(file));
    }
    if let Some(reason) = missing_requirement() {
        let left_out = format!("fuzzing left out: {reason}");
        if project::strict() {
            return Err(left_out);
        }
        term::note(&left_out);
        return Ok(());
    }
    let mut chosen = args.targets.clone();
    if chosen.is_empty() {
        chosen = targets;
        chosen.retain(|target| target != COMPONENT);
    }
    let time = args.time;
    let steps = chosen
        .into_iter()
        .map(|target| {
            let rerun = format!("cargo xtask fuzz {target} --for {time:?}");
            let step = Step::new("fuzz", rerun, move || {
                fuzz(project, &target, time).map(Some)
            });
            step.with_time(time)
        })
        .collect();
    step::run_all(steps, true)
}

/// Fuzzes all targets for a short time, as a step of `cargo xtask ci --full`.
pub(crate) fn quick(project: &Project) -> Outcome {
    let args = FuzzArgs {
        targets: Vec::new(),
        time: Duration::from_secs(15),
        list: false,
        keep: None,
    };
    run(project, &args)
}

/// Returns the reason why this machine cannot fuzz, if there is one.
pub(crate) fn missing_requirement() -> Option<String> {
    let needed = tools::need(&tools::NIGHTLY).and_then(|()| tools::need(&tools::FUZZ));
    needed.err()
}

/// Builds a target and runs it.
fn fuzz(project: &Project, target: &str, time: Duration) -> Result<String, String> {
    let fuzz = project.root().join("fuzz");
    // Inputs found by runs on this machine.
    let found = fuzz.join("target/corpus").join(target);
    std::fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
    let mut cargo = project.cargo();
    cargo
        .args(["+nightly", "fuzz", "run"])
        .env("RUST_BACKTRACE", "0");
    if target == COMPONENT {
        write_seeds(project, &found)?;
        cargo.arg("--fuzz-dir").arg(fuzz.join(COMPONENT));
    }
    cargo.arg(target).arg(found);
    let seeds = seed_folder(project, target);
    cargo.args(seeds.is_dir().then_some(seeds));
    cargo.args([
        "--",
        &format!("-max_total_time={}", time.as_secs()),
        "-timeout=5",
    ]);
    let output = process::output(&mut cargo)?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        term::note(&text);
        return Err(format!(
            "`{}` ended with {}",
            step::display(&cargo),
            output.status
        ));
    }
    let done = text.lines().rev().find(|line| line.starts_with("Done "));
    Ok(format!("{target}: {}", done.unwrap_or("no run")))
}

/// Makes inputs from the guests: a manifest, a zero byte, and a component of limited size.
fn write_seeds(project: &Project, folder: &Path) -> Outcome {
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
        let bytes = std::fs::read(&path).map_err(failed(&path))?;
        let mut seed = std::fs::read(&manifest).map_err(failed(&manifest))?;
        seed.push(0);
        seed.extend(&bytes);
        if bytes.len() <= MAX_COMPONENT {
            let place = folder.join(format!("fixture-{name}"));
            std::fs::write(&place, &seed).map_err(failed(&place))?;
        }
    }
    Ok(())
}

/// Returns the folder of the repository's inputs for a target.
fn seed_folder(project: &Project, target: &str) -> PathBuf {
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
    if !is_descriptive(name) {
        return Err(format!(
            "`{name}` names no content: small letters, digits and hyphens, as `repeated-element`"
        ));
    }
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    let bytes = file.metadata().map_err(failed)?.len();
    if bytes > MAX_INPUT {
        return Err(format!(
            "{} has {bytes} bytes, at most {MAX_INPUT} are kept: minimize it with \
             `cargo +nightly fuzz tmin {target} FILE`",
            file.display()
        ));
    }
    let place = seed_folder(project, target).join(name);
    if place.exists() {
        return Err(format!("{} is there already", place.display()));
    }
    std::fs::copy(file, &place).map_err(failed)?;
    term::note(&format!("{}: the tests replay it", place.display()));
    Ok(())
}

/// Returns whether a name has words, and is not the hash that libFuzzer gives to an input.
fn is_descriptive(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_hash = name.len() >= 16 && name.chars().all(|c| c.is_ascii_hexdigit());
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(allowed) && !is_hash
}

/// Returns the targets: those in the folder of the sources, and the one of components.
fn targets(project: &Project) -> Result<Vec<String>, String> {
    let folder = project.root().join("fuzz/fuzz_targets");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut names = vec![COMPONENT.to_owned()];
    for entry in std::fs::read_dir(&folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        names.extend(
            path.file_stem()
                .and_then(|name| Some(name.to_str()?.to_owned())),
        );
    }
    names.sort();
    Ok(names)
}

/// libFuzzer counts in seconds, and takes 0 for no limit.
fn parse_time(text: &str) -> Result<Duration, String> {
    step::time_from(Duration::from_secs(1), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_a_minimum() {
        assert_eq!(parse_time("20m"), Ok(Duration::from_secs(1200)));
        let refused = |text| parse_time(text).unwrap_err();
        assert!(refused("soon").starts_with("invalid duration \"soon\""));
        assert_eq!(refused("500ms"), "500ms is too short: at least 1s");
    }

    #[test]
    fn inputs_are_named_after_their_content() {
        assert!(is_descriptive("flags-of-six-octets"));
        assert!(is_descriptive("two"));
        assert!(!is_descriptive("da4e049b6080b50eb5f34a19d4ad942b0b6b696d"));
        assert!(!is_descriptive("../view"));
        assert!(!is_descriptive("Two"));
        assert!(!is_descriptive(""));
    }
}
