//! `cargo xtask robustness`: robustness tests against our node with a thousand sessions, and its
//! memory.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::node::NodeProcess;
use crate::project::{self, Project};
use crate::step::Step;
use crate::{Outcome, chaos, process, term};

/// Number of sessions that exist the whole time.
const SESSIONS: &str = "1000";
/// Maximum number of rounds of all cases until memory must be stable: allocators and caches fill in
/// the first few, whereas a leak never ends.
const ROUNDS: usize = 10;
/// Maximum growth of memory in two successive rounds once it is stable, in KiB: less than a hundred
/// bytes a case.
const MAX_GROWTH: u64 = 512;

/// Options of `cargo xtask robustness`.
#[derive(Debug, clap::Args)]
pub(crate) struct RobustnessArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Use this prebuilt binary
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
}

/// Runs the robustness tests against a node and prints the table.
pub(crate) fn run(project: &Project, args: RobustnessArgs) -> Outcome {
    let report = run_rounds(project, args.binary)?;
    if args.json {
        term::line(&report.to_string());
    } else {
        table(&report);
    }
    verdict(&report)
}

/// Returns the step of `cargo xtask ci`.
pub(crate) fn step(project: &Project) -> Step<'_> {
    Step::new("robustness", "cargo xtask robustness", || {
        let report = run_rounds(project, None)?;
        if verdict(&report).is_err() {
            table(&report);
        }
        verdict(&report).map(|()| Some(text(&report)))
    })
}

/// Returns the report of the last round, with the memory at the start and at the end of the last
/// two.
fn run_rounds(project: &Project, binary: Option<PathBuf>) -> Result<Value, String> {
    let binary = binary.map_or_else(|| chaos::build(project), Ok)?;
    let folder = project.folder("robustness")?;
    // Limit the cache of responses, so that it fills in the first round and takes no more after
    // that.
    let config = folder.join("node.toml");
    project::write(&config, "[n4.limits]\nresponse_cache = 1024\n")?;
    let (mut node, address) = start(&binary, &folder)?;
    let cases = project.shared().join("pfcp/bad-inputs.json");
    let mut memory = Vec::new();
    let mut last = Value::Null;
    for _ in 0..ROUNDS {
        let mut robustness = Command::new(&binary);
        robustness.args(["pfcp", "robustness", &address, "--json"]);
        robustness.args(["--from", "127.0.0.7:0", "--sessions", SESSIONS]);
        if cases.is_file() {
            robustness.arg("--cases").arg(&cases);
        }
        last = process::json(&mut robustness)?;
        if verdict(&last).is_err() {
            return Ok(last);
        }
        memory.push(node.resident()?);
        if let [.., before, _, after] = memory[..] {
            last["kib_before"] = before.into();
            last["kib_after"] = after.into();
            if is_stable(&last) {
                break;
            }
        }
    }
    last["rounds"] = memory.len().into();
    node.assert_alive()?;
    Ok(last)
}

fn number(report: &Value, key: &str) -> u64 {
    report[key].as_u64().unwrap_or_default()
}

fn text(report: &Value) -> String {
    format!(
        "{} cases, {} passed, {} of {} sessions unharmed; after round {} {} KiB, two before {} KiB",
        number(report, "sent"),
        number(report, "passed"),
        number(report, "unharmed"),
        number(report, "sessions"),
        number(report, "rounds"),
        number(report, "kib_after"),
        number(report, "kib_before"),
    )
}

/// Returns `true` if the last two rounds took no significant memory.
fn is_stable(report: &Value) -> bool {
    number(report, "kib_after") <= number(report, "kib_before") + MAX_GROWTH
}

fn verdict(report: &Value) -> Outcome {
    let harmed = number(report, "sessions") - number(report, "unharmed");
    if number(report, "failed") + harmed > 0 || report["silent"] != false {
        return Err(text(report));
    }
    if !is_stable(report) {
        return Err(format!("memory grows: {}", text(report)));
    }
    Ok(())
}

fn table(report: &Value) {
    let items = |value: &Value| value.as_array().cloned().unwrap_or_default();
    term::line(&format!(
        "{:<28} {:>6} {:>6} {:>6}  TS 29.244",
        "cases", "sent", "passed", "failed"
    ));
    for row in items(&report["rows"]) {
        let clauses = items(&row["clauses"]);
        let clauses: Vec<&str> = clauses.iter().filter_map(Value::as_str).collect();
        let [sent, passed, failed] = ["sent", "passed", "failed"].map(|key| number(&row, key));
        let family = row["family"].as_str().unwrap_or_default();
        let clauses = clauses.join(", ");
        term::line(&format!(
            "{family:<28} {sent:>6} {passed:>6} {failed:>6}  {clauses}"
        ));
    }
    for failure in items(&report["failures"]) {
        term::line(&failure.to_string());
    }
    term::line(&text(report));
}

/// Starts a node on a port that the system chooses, and returns it with its address.
fn start(binary: &Path, folder: &Path) -> Result<(NodeProcess, String), String> {
    let mut command = Command::new(binary);
    command.args(["run", "--json", "--port", "0", "--config"]);
    command.arg(folder.join("node.toml"));
    command.arg("--control").arg(folder.join("control.sock"));
    let (node, said) = NodeProcess::announced(&mut command, &folder.join("node.log"))?;
    let address = said["n4"].as_str();
    let address = address.ok_or_else(|| format!("the node said {said}"))?;
    Ok((node, address.to_owned()))
}
