//! The main job, as a newcomer runs it: the demo, and decoding captures of other stacks.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::project::{self, Project};
use crate::step;

/// Number of sessions that the demo holds by default.
const HELD_SESSIONS: u64 = 1000;
/// Number of panics below which ten seconds of chaos prove nothing, however slow the machine is; on
/// a quiet one there are 120.
const MIN_PANICS: u64 = 20;

/// Returns a command that runs the binary in the profile that the README names.
fn strowger(project: &Project, args: &[&str]) -> Command {
    let mut cargo = project.cargo();
    cargo
        .args([
            "run",
            "--release",
            "--locked",
            "--quiet",
            "--bin",
            "strowger",
            "--",
        ])
        .args(args);
    cargo
}

/// Runs the demo for ten seconds and checks its final stats.
pub(crate) fn demo(project: &Project, chaos: bool) -> Result<Option<String>, String> {
    build(project)?;
    let lines = json_lines(&mut demo_command(project, chaos))?;
    let end = lines.last().ok_or("the demo printed nothing")?;
    let figure = |key: &str| {
        end[key]
            .as_u64()
            .ok_or_else(|| format!("the demo ended without `{key}`"))
    };
    let (held, rejected, lost) = (figure("held")?, figure("rejected")?, figure("lost")?);
    let restarts = figure("restarts")?;
    let mut wrong = Vec::new();
    if !chaos && held != HELD_SESSIONS {
        wrong.push(format!("held {held}, not {HELD_SESSIONS}"));
    }
    if !chaos && rejected != 0 {
        wrong.push(format!("rejected {rejected}, not 0"));
    }
    if lost != 0 {
        wrong.push(format!("lost {lost}, not 0"));
    }
    if chaos {
        let panics = figure("panics")?;
        if panics < MIN_PANICS {
            wrong.push(format!("panics {panics}, not at least {MIN_PANICS}"));
        }
        // A session that panics while it is being deleted is not restarted.
        if restarts < panics * 9 / 10 {
            wrong.push(format!("restarts {restarts} after {panics} panics"));
        }
    }
    if wrong.is_empty() {
        let (p50, p99) = (&end["p50_us"], &end["p99_us"]);
        return Ok(Some(format!(
            "held {held}, restarts {restarts}, lost {lost}, p50 {p50} us, p99 {p99} us"
        )));
    }
    Err(format!("{}: {end}", wrong.join(", ")))
}

/// Builds the binary with visible progress.
fn build(project: &Project) -> Result<(), String> {
    let what = ["build", "--release", "--locked", "--bin", "strowger"];
    step::run(project.cargo().args(what))
}

/// Returns the demo command as it is typed.
pub(crate) fn demo_command(project: &Project, chaos: bool) -> Command {
    let plain = ["demo", "--for", "10s", "--json", "--port", "0"];
    let chaotic = [&plain[..], &["--chaos"]].concat();
    strowger(project, if chaos { &chaotic } else { &plain })
}

/// Decodes every capture: no error, nothing opaque, and the same bytes when encoded again.
pub(crate) fn captures(project: &Project) -> Result<Option<String>, String> {
    let folder = project.shared().join("pfcp/captures");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        let absent = format!("no captures at {}", folder.display());
        return if project::strict() {
            Err(absent)
        } else {
            Ok(Some(absent))
        };
    };
    build(project)?;
    let mut files: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "pcap" || end == "pcapng")
        })
        .collect();
    files.sort();
    let mut messages = 0;
    for file in &files {
        let name = file.display().to_string();
        let mut decode = strowger(project, &["pfcp", "decode", &name, "--check", "--json"]);
        let lines = json_lines(&mut decode).map_err(|error| format!("{name}: {error}"))?;
        let end = lines
            .last()
            .ok_or_else(|| format!("{name}: nothing decoded"))?;
        let figure = |key: &str| end[key].as_u64().unwrap_or(u64::MAX);
        let all = figure("messages");
        let right = figure("decoded") == all && figure("identical") == all;
        if !right || figure("errors") != 0 || figure("opaque") != 0 {
            return Err(format!("{name}: {end}"));
        }
        messages += all;
    }
    Ok(Some(format!(
        "{messages} messages in {} captures, all identical",
        files.len()
    )))
}

fn json_lines(command: &mut Command) -> Result<Vec<Value>, String> {
    let text = step::output(command.stdin(Stdio::null()))?;
    Ok(text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect())
}
