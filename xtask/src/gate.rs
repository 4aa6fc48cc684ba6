//! `cargo xtask gate`: checks whether a change made the runtime slower or heavier.
//!
//! Times on a shared machine differ by more than a regression; instructions under callgrind repeat.
//! Each workload runs with two numbers of operations: the difference is the cost of the operations
//! between them. `bench/gate.json` has the counts of the last accepted state.
//!
//! A count may differ from the accepted one by its limit, in both directions. A count below that
//! range makes the accepted count stale, which is refused as well: a later regression would be
//! measured from a state that the code has left, and even a large one would pass.

use std::path::Path;
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::project::{self, Project};
use crate::term::{self, TextStyle};
use crate::{Outcome, step, tools};

/// The rows: id, operations of the short run, and the permitted difference.
const ROWS: &[(&str, u64, f64)] = &[
    ("tell", 20_000, 0.05),
    ("ask", 10_000, 0.05),
    ("hop", 10_000, 0.05),
    ("spawn_and_stop", 2000, 0.10),
    ("restart_err", 1000, 0.15),
];

/// The permitted difference of the memory of an idle actor.
const HEAP_ROW: (&str, f64) = ("heap_per_idle_actor", 0.10);

/// Options of `cargo xtask gate`.
#[derive(Debug, clap::Args)]
pub(crate) struct GateArgs {
    /// Accept the current counts
    #[arg(long)]
    pub(crate) save: bool,
}

/// Counts, and compares with the accepted counts; `save` accepts the current counts.
pub(crate) fn run(project: &Project, save: bool) -> Outcome {
    tools::need(&tools::VALGRIND)?;
    let program = build(project)?;
    let mut counts = Map::new();
    for (id, operations, _) in ROWS {
        let count =
            |operations: u64| tools::instructions(&program, &[*id, &operations.to_string()]);
        let (short, long) = (count(*operations)?, count(2 * operations)?);
        let each = long.saturating_sub(short) / operations;
        counts.insert((*id).to_owned(), json!(each));
    }
    let bytes = step::output(Command::new(&program).arg("heap"))?;
    let bytes: u64 = bytes
        .trim()
        .parse()
        .map_err(|_| format!("`gate heap` printed `{bytes}`"))?;
    counts.insert(HEAP_ROW.0.to_owned(), json!(bytes));
    let file = project.root().join("bench/gate.json");
    let now = json!({ "rustc": rustc()?, "processor": std::env::consts::ARCH, "counts": counts });
    if save {
        let text = serde_json::to_string_pretty(&now).map_err(|error| error.to_string())?;
        return project::write(&file, format!("{text}\n"));
    }
    let accepted: Value = serde_json::from_str(&project::read(&file)?)
        .map_err(|error| format!("{} is no JSON: {error}", file.display()))?;
    let compared = compare(&accepted, &now);
    for line in &compared.lines {
        term::line(line);
    }
    if accepted["rustc"] != now["rustc"] || accepted["processor"] != now["processor"] {
        // Another compiler or processor gives other counts: the table shows the differences, but
        // they are not necessarily those of the code.
        term::note(&format!(
            "{}: accepted with {}, counted with {}; nothing is refused",
            term::paint(TextStyle::Yellow, "not comparable"),
            accepted["rustc"],
            now["rustc"]
        ));
        return Ok(());
    }
    compared.verdict()
}

fn build(project: &Project) -> Result<std::path::PathBuf, String> {
    let folder = project.root().join("bench");
    let mut cargo = project.cargo();
    cargo.current_dir(&folder);
    cargo.args(["build", "--release", "--bin", "gate", "--quiet"]);
    // The counts are those of the profile as it is. `.ci/run` optimises less, to build faster.
    for changed in [
        "CARGO_PROFILE_RELEASE_DEBUG",
        "CARGO_PROFILE_RELEASE_OPT_LEVEL",
    ] {
        cargo.env_remove(changed);
    }
    step::run(&mut cargo)?;
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| folder.join("target"), Into::into);
    Ok(Path::new(&target).join("release/gate"))
}

fn rustc() -> Result<String, String> {
    Ok(step::output(Command::new("rustc").arg("--version"))?
        .trim()
        .to_owned())
}

/// The counts compared with the accepted ones.
#[derive(Debug, Default, PartialEq)]
struct Comparison {
    /// The lines of a table.
    lines: Vec<String>,
    /// The rows that grew beyond their limit, or have no accepted count.
    worse: Vec<String>,
    /// The rows that fell beyond their limit.
    stale: Vec<String>,
}

impl Comparison {
    /// Refuses growth and stale accepted counts.
    fn verdict(&self) -> Outcome {
        if !self.worse.is_empty() {
            return Err(format!(
                "worse than accepted: {}; if it is worth it, `cargo xtask gate --save` and say why",
                self.worse.join(", ")
            ));
        }
        if !self.stale.is_empty() {
            return Err(format!(
                "the accepted counts in bench/gate.json are stale: {}; lower them with \
                 `cargo xtask gate --save` and commit the file, so that a later regression is \
                 measured from here",
                self.stale.join(", ")
            ));
        }
        Ok(())
    }
}

fn compare(accepted: &Value, now: &Value) -> Comparison {
    let limits = ROWS.iter().map(|(id, _, limit)| (*id, *limit));
    let mut compared = Comparison::default();
    compared.lines.push(format!(
        "{:<22}{:>12}{:>12}{:>10}{:>10}",
        "", "accepted", "now", "change", "limit"
    ));
    for (id, limit) in limits.chain([HEAP_ROW]) {
        let (Some(before), Some(after)) =
            (accepted["counts"][id].as_f64(), now["counts"][id].as_f64())
        else {
            compared.worse.push(format!("{id} was never accepted"));
            continue;
        };
        let change = after / before.max(1.0) - 1.0;
        let percent = change * 100.0;
        compared.lines.push(format!(
            "{id:<22}{before:>12.0}{after:>12.0}{percent:>9.1}%{:>8}",
            format!("±{:.0}%", limit * 100.0)
        ));
        if change > limit {
            compared.worse.push(format!("{id} by {percent:.1} %"));
        } else if change < -limit {
            compared
                .stale
                .push(format!("{id} fell by {:.1} %", -percent));
        }
    }
    compared
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(tell: u64) -> Value {
        let mut counts = Map::new();
        for (id, _, _) in ROWS {
            counts.insert((*id).to_owned(), json!(100));
        }
        counts.insert(HEAP_ROW.0.to_owned(), json!(500));
        counts.insert("tell".to_owned(), json!(tell));
        json!({ "counts": counts })
    }

    #[test]
    fn documented_thresholds_match() {
        let page = include_str!("../../docs/benchmarking.md");
        let limit = |id: &str| ROWS.iter().find(|row| row.0 == id).expect("a row").2;
        for (what, limit) in [
            ("spawning", limit("spawn_and_stop")),
            ("a message", limit("tell")),
            ("a message", limit("ask")),
            ("a message", limit("hop")),
            ("supervision", limit("restart_err")),
            ("memory", HEAP_ROW.1),
        ] {
            let row = format!("| {what} | {:.0} % |", 100.0 * limit);
            assert!(page.contains(&row), "docs/benchmarking.md has no {row}");
        }
    }

    #[test]
    fn growth_beyond_the_limit_is_refused() {
        let compared = compare(&counts(100), &counts(106));
        assert_eq!(compared.worse, ["tell by 6.0 %"]);
        assert_eq!(compared.lines.len(), ROWS.len() + 2);
        assert!(compared.verdict().is_err());
        assert_eq!(compare(&counts(100), &counts(104)).verdict(), Ok(()));
    }

    #[test]
    fn stale_accepted_count_is_refused() {
        assert_eq!(compare(&counts(100), &counts(96)).verdict(), Ok(()));
        let compared = compare(&counts(100), &counts(71));
        assert_eq!(compared.stale, ["tell fell by 29.0 %"]);
        let said = compared
            .verdict()
            .expect_err("a regression of 40 % would pass");
        assert!(said.contains("cargo xtask gate --save"), "{said}");
    }

    #[test]
    fn row_without_an_accepted_count_is_refused() {
        let compared = compare(&json!({ "counts": {} }), &counts(100));
        assert_eq!(compared.worse.len(), ROWS.len() + 1);
        assert!(compared.verdict().is_err());
    }
}
