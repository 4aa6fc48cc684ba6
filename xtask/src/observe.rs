//! `cargo xtask bench observe`: the cost of watching actors, in instructions.
//!
//! Time is too noisy for a difference of a percent; instructions under callgrind are the same on
//! every run of a thread that does not wait. The program runs twice with different numbers of
//! messages, and the difference is the cost of the messages.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::project::Project;
use crate::{step, tools};

const PACKAGE: &str = "strowger-bench-observe";

/// The observers, besides the stats that are always kept.
const OBSERVERS: [&str; 6] = ["alone", "recorder", "subscriber", "events", "top", "trace"];

const WORKLOADS: [&str; 2] = ["tell", "ask"];

/// Runs with every observer and makes the rows.
pub(crate) fn rows(project: &Project, quick: bool) -> Result<Vec<Value>, String> {
    tools::need(&tools::VALGRIND)?;
    let counted = build(project, true)?;
    let uncounted = build(project, false)?;
    let mut rows = Vec::new();
    for work in WORKLOADS {
        let bare = instructions_per_message(&uncounted, "alone", work, quick)?;
        rows.push(figure(&format!("without_figures/{work}"), bare));
        let mut alone = 0.0;
        for way in OBSERVERS {
            let cost = instructions_per_message(&counted, way, work, quick)?;
            let (name, before) = match way {
                "alone" => ("figures", bare),
                way => (way, alone),
            };
            if way == "alone" {
                alone = cost;
            }
            rows.push(figure(&format!("with_{name}/{work}"), cost));
            rows.push(share(&format!("cost_of_{name}/{work}"), cost, before));
        }
    }
    Ok(rows)
}

/// Builds the program with the stats of actors, or without them in a folder of its own.
fn build(project: &Project, counted: bool) -> Result<PathBuf, String> {
    let bench = project.root().join("bench");
    let target = match counted {
        true => bench.join("target"),
        false => bench.join("target/uncounted"),
    };
    let mut cargo = project.cargo();
    cargo.current_dir(&bench);
    cargo.args(["build", "--release", "--quiet", "--package", PACKAGE]);
    cargo.arg("--target-dir").arg(&target);
    if !counted {
        cargo.env("RUSTFLAGS", "--cfg strowger_uncounted");
    }
    step::run(&mut cargo)?;
    Ok(target.join("release").join(PACKAGE))
}

/// Returns the instructions of one message.
fn instructions_per_message(
    program: &Path,
    way: &str,
    work: &str,
    quick: bool,
) -> Result<f64, String> {
    // Both contain a whole number of readings by `top`.
    let (few, many) = match quick {
        true => (100_000_u32, 200_000),
        false => (100_000, 600_000),
    };
    let count = |messages: u32| tools::instructions(program, &[way, work, &messages.to_string()]);
    let cost = count(many)?.saturating_sub(count(few)?);
    Ok(cost as f64 / f64::from(many - few))
}

fn figure(id: &str, value: f64) -> Value {
    row(id, value, "instructions")
}

fn share(id: &str, cost: f64, before: f64) -> Value {
    row(id, 100.0 * (cost - before) / before, "percent")
}

fn row(id: &str, value: f64, unit: &str) -> Value {
    // Adding zero turns -0.0 into 0.0.
    let value = (value * 100.0).round() / 100.0 + 0.0;
    json!({ "part": "observe", "id": id, "subject": "strowger", "value": value, "unit": unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_is_relative_to_the_baseline() {
        let row = share("cost_of_top/tell", 103.0, 100.0);
        assert_eq!(
            (&row["value"], &row["unit"]),
            (&json!(3.0), &json!("percent"))
        );
        let nothing = share("cost_of_top/ask", 99.9999, 100.0);
        assert_eq!(nothing["value"].to_string(), "0.0");
    }
}
