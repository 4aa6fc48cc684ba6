//! `cargo xtask soak`: a node under load, faults and upgrades for a long time, and the resources
//! that it takes.
//!
//! The node is the demo with `--chaos`: sessions come and go, some panic, and the component that
//! decides about each of them traps. At the same time, components are deployed, asked, upgraded,
//! rolled back and removed, one after another. Memory, mappings and file descriptors must stay as
//! they were in the second quarter of the time, by when all caches are full.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::node::NodeProcess;
use crate::project::{self, Project};
use crate::step::{self, LongRunArgs};
use crate::{Outcome, chaos, process, term};

/// Options of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
pub(crate) struct SoakArgs {
    /// Run for this time, at least 20s
    #[arg(long = "for", value_name = "DURATION", default_value = "20m", value_parser = parse_time)]
    time: Duration,
    #[command(flatten)]
    run: LongRunArgs,
}

fn parse_time(text: &str) -> Result<Duration, String> {
    step::time_from(MIN_TIME, text)
}

/// Runs a soak and reports the result.
pub(crate) fn run(project: &Project, args: SoakArgs) -> Outcome {
    if args.run.background {
        return step::background(project.root(), &project.folder("soak")?);
    }
    let time = args.time;
    let limit = time + BUILD_TIME;
    let report = process::within("soak", limit, step::LIMIT_VARIABLE, || {
        soak(project, args.run.binary, time)
    })?;
    if args.run.json {
        term::line(&report.to_string());
    } else {
        term::line(&text(&report));
    }
    verdict(&report)
}

/// Time for the build, the start and the end.
const BUILD_TIME: Duration = Duration::from_secs(3600);

/// Minimum duration. The caches of the node fill up in half of this.
const MIN_TIME: Duration = Duration::from_secs(20);

/// The resources of a process: KiB, mappings, files. Each with the part of it, as a divisor, and
/// the number by which it may fluctuate.
const RESOURCES: [(&str, u64, u64); 3] = [("kib", 20, 8192), ("maps", 20, 32), ("files", 20, 4)];

fn soak(project: &Project, binary: Option<PathBuf>, time: Duration) -> Result<Value, String> {
    let binary = binary.map_or_else(|| chaos::build(project), Ok)?;
    let folder = project.folder("soak")?;
    let manifest = manifest(project, &folder)?;
    let mut node = DemoProcess::start(&binary, &folder)?;
    let start = Instant::now();
    let (mut samples, mut rounds) = (Vec::new(), 0_u64);
    while start.elapsed() < time {
        round(&node, &manifest)?;
        rounds += 1;
        samples.push(node.resources()?);
        node.node.assert_alive()?;
        // Pause, so that the node is measured instead of the starting of programs.
        thread::sleep(Duration::from_millis(200));
    }
    let quarter = samples.len() / 4;
    let middle = |samples: &[[u64; 3]], at: usize| {
        let mut values: Vec<u64> = samples.iter().map(|sample| sample[at]).collect();
        values.sort_unstable();
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    let mut report = json!({ "seconds": start.elapsed().as_secs(), "rounds": rounds });
    for (at, (key, ..)) in RESOURCES.iter().enumerate() {
        let before = middle(&samples[quarter..2 * quarter], at);
        report[key] = json!([before, middle(&samples[3 * quarter..], at)]);
    }
    report["demo"] = node.end()?;
    Ok(report)
}

/// Writes the manifest of a component that is deployed again and again.
fn manifest(project: &Project, folder: &Path) -> Result<PathBuf, String> {
    let fixture = project.root().join("fixtures/components/counter.wasm");
    let text = format!(
        "[component]\nname = \"soak\"\nfile = {fixture:?}\n[limits]\ndeadline = \"1s\"\n\
         init = \"5s\"\n[state]\nmode = \"snapshot\"\n"
    );
    let manifest = folder.join("soak.toml");
    project::write(&manifest, text)?;
    Ok(manifest)
}

/// Takes a component from its deployment to its removal.
fn round(node: &DemoProcess, manifest: &Path) -> Outcome {
    let manifest = manifest.to_str().ok_or("the folder is no text")?;
    let expected = |answer: &str, what: &str| match answer.trim() {
        found if found == what => Ok(()),
        found => Err(format!("the component answered {found}, not {what}")),
    };
    node.ask(&["component", "deploy", manifest, "--expose"])?;
    expected(&node.ask(&["ask", "components/soak", "\"a\""])?, "1")?;
    node.ask(&["component", "upgrade", manifest])?;
    expected(&node.ask(&["ask", "components/soak", "\"b\""])?, "2")?;
    node.ask(&["component", "rollback", "soak"])?;
    expected(&node.ask(&["ask", "components/soak", "\"c\""])?, "3")?;
    node.ask(&["component", "remove", "soak"]).map(drop)
}

fn text(report: &Value) -> String {
    let pair = |key: &str| format!("{} then {}", report[key][0], report[key][1]);
    let demo = &report["demo"];
    format!(
        "{} s, {} lives of a component, {} sessions, {} panics, {} traps: {} KiB, {} mappings, {} \
         files",
        report["seconds"],
        report["rounds"],
        demo["established"],
        demo["panics"],
        demo["policy_traps"],
        pair("kib"),
        pair("maps"),
        pair("files"),
    )
}

/// Checks that all resources are as before, except for the fluctuations of an allocator.
fn verdict(report: &Value) -> Outcome {
    let demo = &report["demo"];
    if demo["lost"] != 0 || demo["rejected"] != 0 {
        return Err(format!("sessions were lost or rejected: {demo}"));
    }
    for (key, part, free) in RESOURCES {
        let number = |at: usize| report[key][at].as_u64().unwrap_or(u64::MAX / 2);
        let (before, after) = (number(0), number(1));
        if after > before + before / part + free {
            return Err(format!("{key} grows: {}", text(report)));
        }
    }
    Ok(())
}

/// A demo with chaos; ended on drop.
struct DemoProcess {
    node: NodeProcess,
    binary: PathBuf,
    control: String,
}

impl DemoProcess {
    fn start(binary: &Path, folder: &Path) -> Result<Self, String> {
        let mut command = Command::new(binary);
        command.args(["demo", "--chaos", "--json", "--port", "0", "--control"]);
        command.arg(folder.join("control.sock"));
        let (node, first) = NodeProcess::announced(&mut command, &folder.join("node.log"))?;
        let control = first["control"].as_str();
        let control = control.ok_or_else(|| format!("the demo announced {first}"))?;
        Ok(Self {
            binary: binary.to_owned(),
            control: control.to_owned(),
            node,
        })
    }

    /// Runs a command against the node, and returns its output.
    fn ask(&self, args: &[&str]) -> Result<String, String> {
        let mut command = Command::new(&self.binary);
        step::output(command.args(args).args(["--control", &self.control]))
    }

    fn resources(&self) -> Result<[u64; 3], String> {
        let place = PathBuf::from(format!("/proc/{}", self.node.id()));
        let maps = project::read(&place.join("maps"))?.lines().count();
        let files = fs::read_dir(place.join("fd"));
        let files = files.map_err(|error| format!("{}: {error}", place.display()))?;
        Ok([self.node.resident()?, maps as u64, files.count() as u64])
    }

    /// Ends the node as ctrl-c does, and returns its summary.
    fn end(&mut self) -> Result<Value, String> {
        let ended = self.node.end(Signal::INT)?;
        let summary = self.node.object()?;
        if ended.success() {
            return Ok(summary);
        }
        Err(format!("the demo ended with {ended}: {summary}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(kib: [u64; 2], files: [u64; 2]) -> Value {
        let demo = json!({ "lost": 0, "rejected": 0 });
        json!({ "kib": kib, "maps": [700, 700], "files": files, "demo": demo })
    }

    #[test]
    fn growth_is_found_and_noise_is_not() {
        assert!(verdict(&report([100_000, 101_000], [30, 31])).is_ok());
        assert!(verdict(&report([100_000, 120_000], [30, 30])).is_err());
        assert!(verdict(&report([100_000, 100_000], [30, 40])).is_err());
        let mut lost = report([1, 1], [1, 1]);
        lost["demo"]["lost"] = json!(1);
        assert!(verdict(&lost).is_err());
    }
}
