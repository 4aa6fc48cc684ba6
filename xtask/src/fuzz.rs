//! `cargo xtask fuzz`: libFuzzer over everything that reads octets from a network.
//!
//! `cargo-fuzz` is not needed: the compiler's own flags and the `libfuzzer-sys` crate do it, on a
//! nightly toolchain. What was found so far is kept under the target folder, so that a later run
//! goes on where this one ended; small seeds are part of the repository.

use std::process::{Command, Stdio};

use crate::project::{self, Project};
use crate::step::{self, Step};
use crate::{Outcome, term};

/// The platform is named so that the flags below do not reach build scripts.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Coverage for libFuzzer, and AddressSanitizer.
const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Zsanitizer=address -Ccodegen-units=1";

/// Fuzzes one target, or each in turn.
pub(crate) fn run(project: &Project, args: &[String]) -> Outcome {
    let mut seconds = 15;
    let mut wanted = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--for" => {
                let time = args.next().ok_or("--for needs a time: 15s, 20m, 1h")?;
                seconds = parse_time(time)?;
            }
            "--list" => {
                for target in targets(project)? {
                    term::line(&target);
                }
                return Ok(());
            }
            name => wanted.push(name.to_owned()),
        }
    }
    let targets = targets(project)?;
    if let Some(unknown) = wanted.iter().find(|name| !targets.contains(name)) {
        return Err(format!("no target `{unknown}`: {}", targets.join(", ")));
    }
    if let Some(reason) = impossible() {
        let left_out = format!("fuzzing left out: {reason}");
        if project::strict() {
            return Err(left_out);
        }
        term::note(&left_out);
        return Ok(());
    }
    let chosen = if wanted.is_empty() { targets } else { wanted };
    let steps = chosen
        .into_iter()
        .map(|target| fuzz(project, target, seconds))
        .collect();
    step::run_all(steps, true)
}

/// Why this machine cannot fuzz.
pub(crate) fn impossible() -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some(format!("the flags are those of {PLATFORM}"));
    }
    let mut rustc = Command::new("rustc");
    rustc.args(["+nightly", "--version"]).stderr(Stdio::null());
    let nightly = rustc.output().is_ok_and(|output| output.status.success());
    (!nightly).then(|| "no nightly toolchain (rustup toolchain install nightly)".to_owned())
}

fn fuzz(project: &Project, target: String, seconds: u64) -> Step<'_> {
    let rerun = format!("cargo xtask fuzz {target} --for {seconds}s");
    Step::new("fuzz", rerun, move || {
        let fuzz = project.root().join("fuzz");
        let found = fuzz.join("target/corpus").join(&target);
        let crashes = fuzz.join("target/artifacts").join(&target);
        for folder in [&found, &crashes] {
            std::fs::create_dir_all(folder)
                .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        }
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&fuzz)
            .env("RUSTFLAGS", FLAGS)
            .env("RUST_BACKTRACE", "0");
        cargo.args(["+nightly", "run", "--quiet", "--release"]);
        cargo.args(["--target", PLATFORM, "--bin", &target, "--"]);
        cargo.arg(format!("-max_total_time={seconds}"));
        cargo.arg(format!("-artifact_prefix={}/", crashes.display()));
        cargo.args(["-timeout=5", "-rss_limit_mb=2048", "-print_final_stats=1"]);
        cargo.arg(&found);
        let seeds = fuzz.join("corpus").join(&target);
        if seeds.is_dir() {
            cargo.arg(seeds);
        }
        let output = cargo
            .output()
            .map_err(|error| format!("cannot start cargo: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.success() {
            return Ok(Some(format!("{target}: {}", runs(&said))));
        }
        term::note(&said);
        Err(format!(
            "{target} found something; the input is in {}",
            crashes.display()
        ))
    })
}

/// What libFuzzer said at its end: how many inputs, how much covered.
fn runs(said: &str) -> String {
    let done = said
        .lines()
        .find(|line| line.starts_with("Done "))
        .unwrap_or("no end");
    let covered = said
        .lines()
        .rev()
        .find_map(|line| line.split_once(" cov: "));
    let covered = covered
        .and_then(|(_, rest)| rest.split(' ').next())
        .unwrap_or("?");
    format!("{}, {covered} edges", done.trim_start_matches("Done "))
}

/// The binaries of the fuzz workspace.
fn targets(project: &Project) -> Result<Vec<String>, String> {
    let manifest = std::fs::read_to_string(project.root().join("fuzz/Cargo.toml"))
        .map_err(|error| format!("cannot read fuzz/Cargo.toml: {error}"))?;
    let manifest: toml::Table = manifest
        .parse()
        .map_err(|error| format!("fuzz/Cargo.toml does not parse: {error}"))?;
    let binaries = manifest.get("bin").and_then(toml::Value::as_array);
    Ok(binaries
        .into_iter()
        .flatten()
        .filter_map(|one| one.get("name")?.as_str().map(str::to_owned))
        .collect())
}

fn parse_time(text: &str) -> Result<u64, String> {
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
        assert_eq!(runs(said), "99 runs in 2 second(s), 41 edges");
    }
}
