//! The rows of several processes combined into one: medians, and the spread between processes.
//!
//! A row about messages between threads depends on where the threads run and on which of them
//! sleeps when a message arrives. Much of that is settled when a process starts, so that rounds
//! within a process agree with each other but not with the next process. Ratios are taken within a
//! process, between subjects that took turns.

use serde_json::{Map, Value, json};

/// Number of processes that measure a part.
pub(super) const PROCESSES: usize = 5;

const OURS: &str = "strowger";

/// One of the processes that measure a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BenchProcess {
    /// The number among the processes with the same placement.
    pub(super) number: usize,
    /// `true` if each worker stays on a processor of its own.
    pub(super) pinned: bool,
}

impl BenchProcess {
    /// Returns all processes, alternating placements, so that a slow minute of the machine affects
    /// both.
    pub(super) fn all(placements: &[bool]) -> Vec<Self> {
        let of = |number| {
            placements
                .iter()
                .map(move |&pinned| Self { number, pinned })
        };
        (0..PROCESSES).flat_map(of).collect()
    }

    /// Returns the arguments for the program.
    pub(super) fn args(self) -> Vec<String> {
        let mut args = vec!["--process".to_owned(), self.number.to_string()];
        if !self.pinned {
            args.push("--unpinned".to_owned());
        }
        args
    }

    /// Marks a row with the process that measured it.
    pub(super) fn mark(self, row: &mut Value) {
        row["process"] = json!(self.number);
        row["pinned"] = json!(self.pinned);
    }

    /// Returns `true` for a row of this process.
    pub(super) fn has_measured(self, row: &Value) -> bool {
        row["process"] == self.number && row["pinned"] == self.pinned
    }
}

/// Combines the rows to one for each id and subject. Its figures are those of pinned workers; those
/// of workers placed by the system are under `unpinned`.
pub(super) fn combine(rows: &[Value]) -> Vec<Value> {
    let mut combined: Vec<Value> = Vec::new();
    for row in rows {
        let is_known = |known: &Value| is_same_row(known, row);
        if !combined.iter().any(is_known) {
            combined.push(combine_rows(rows, row));
        }
    }
    combined
}

fn is_same_row(one: &Value, other: &Value) -> bool {
    one["id"] == other["id"] && one["subject"] == other["subject"]
}

fn combine_rows(rows: &[Value], like: &Value) -> Value {
    let of = |pinned: bool| -> Vec<&Value> {
        let own = |row: &&Value| is_same_row(row, like) && row["pinned"] == pinned;
        rows.iter().filter(own).collect()
    };
    let (pinned, unpinned) = (of(true), of(false));
    let mut row = like.clone();
    if let Some(row) = row.as_object_mut() {
        row.retain(|key, _| !["process", "pinned", "reason"].contains(&key.as_str()));
        row.insert("processes".to_owned(), json!(pinned.len()));
        for count in ["iterations", "checked"] {
            let sum: u64 = pinned.iter().filter_map(|row| row[count].as_u64()).sum();
            if row.contains_key(count) {
                row.insert(count.to_owned(), json!(sum));
            }
        }
        row.extend(figures(rows, &pinned));
        for machine in ["crossing", "waking"] {
            let each = pinned.iter().filter_map(|row| row[machine].as_f64());
            if let Some([_, middle, _]) = spread(each.collect()) {
                row.insert(machine.to_owned(), json!(middle));
            }
        }
        if !unpinned.is_empty() {
            let figures = figures(rows, &unpinned);
            row.insert("unpinned".to_owned(), Value::Object(figures));
        }
    }
    row
}

/// Combines the figures of one subject from the processes of one placement.
fn figures(rows: &[Value], of: &[&Value]) -> Map<String, Value> {
    let mut figures = Map::new();
    let lacking = of.iter().filter(|row| row["value"].is_null()).count();
    if 2 * lacking >= of.len() {
        let reason = of.iter().find_map(|row| row["reason"].as_str());
        figures.insert("value".to_owned(), Value::Null);
        figures.insert("reason".to_owned(), json!(reason));
        return figures;
    }
    let numbers = |key: &str| of.iter().filter_map(|row| row[key].as_f64()).collect();
    let mut add = |name: &str, spread: Option<[f64; 3]>, digits: f64| {
        let Some([least, middle, most]) = spread else {
            return;
        };
        let rounded = |value: f64| json!((value * digits).round() / digits);
        figures.insert(name.to_owned(), rounded(middle));
        let (min, max) = match name {
            "value" => ("min".to_owned(), "max".to_owned()),
            name => (format!("{name}_min"), format!("{name}_max")),
        };
        figures.insert(min, rounded(least));
        figures.insert(max, rounded(most));
    };
    add("value", spread(numbers("value")), 10.0);
    let ratios = of.iter().filter_map(|row| ratio(rows, row));
    add("ratio", spread(ratios.collect()), 100.0);
    for (name, digits) in [("sleeps", 1e5), ("preemptions", 1e5), ("processors", 100.0)] {
        if let Some([_, middle, _]) = spread(numbers(name)) {
            let rounded = (middle * digits).round() / digits;
            figures.insert(name.to_owned(), json!(rounded));
        }
    }
    figures
}

/// Returns a figure as a multiple of ours in the same process.
fn ratio(rows: &[Value], row: &Value) -> Option<f64> {
    if row["subject"] == OURS {
        return None;
    }
    let beside = |other: &&Value| {
        other["subject"] == OURS
            && ["id", "process", "pinned"]
                .iter()
                .all(|key| other[*key] == row[*key])
    };
    let ours = rows.iter().find(beside)?["value"].as_f64();
    let ours = ours.filter(|ours| *ours > 0.0)?;
    Some(row["value"].as_f64()? / ours)
}

/// Returns the minimum, the median and the maximum.
fn spread(mut values: Vec<f64>) -> Option<[f64; 3]> {
    values.sort_by(f64::total_cmp);
    let (first, last) = (values.first()?, values.last()?);
    Some([*first, values[values.len() / 2], *last])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: &str, process: usize, pinned: bool, value: f64) -> Value {
        json!({ "part": "runtime", "id": "tell", "subject": subject, "value": value, "unit": "ns",
            "iterations": 10, "checked": 10, "sleeps": 0.5, "process": process, "pinned": pinned })
    }

    #[test]
    fn ratios_are_computed_within_a_process() {
        // A machine that is slow for one process is slow for all subjects in it.
        let mut rows = Vec::new();
        for (process, speed) in [(0, 1.0), (1, 10.0), (2, 1.0)] {
            rows.push(row("strowger", process, true, 20.0 * speed));
            rows.push(row("tokio", process, true, 60.0 * speed));
            rows.push(row("strowger", process, false, 30.0));
            rows.push(row("tokio", process, false, 30.0 * speed));
        }
        let combined = combine(&rows);
        assert_eq!(combined.len(), 2);
        let [ours, tokio] = &combined[..] else {
            panic!("{combined:?}");
        };
        assert_eq!(
            (&ours["value"], &ours["min"], &ours["max"]),
            (&json!(20.0), &json!(20.0), &json!(200.0))
        );
        assert_eq!(ours["ratio"], Value::Null, "to itself");
        assert_eq!(
            (&ours["processes"], &ours["iterations"]),
            (&json!(3), &json!(30))
        );
        assert_eq!(
            (&tokio["ratio"], &tokio["ratio_max"]),
            (&json!(3.0), &json!(3.0))
        );
        assert_eq!(
            (&tokio["unpinned"]["ratio"], &tokio["unpinned"]["ratio_max"]),
            (&json!(1.0), &json!(10.0))
        );
        assert_eq!(tokio["sleeps"], 0.5);
        assert_eq!(tokio["process"], Value::Null);
    }

    #[test]
    fn figure_missing_in_most_processes_is_null() {
        let lacking = json!({ "part": "scale", "id": "tell", "subject": "xtra", "value": null,
            "unit": "ns", "reason": "it does not keep up", "process": 0, "pinned": true });
        let mut other = lacking.clone();
        other["process"] = json!(1);
        let combined = combine(&[lacking, other, row("xtra", 2, true, 5.0)]);
        assert_eq!(combined[0]["value"], Value::Null);
        assert_eq!(combined[0]["reason"], "it does not keep up");
    }

    #[test]
    fn processes_alternate_placements_and_mark_their_rows() {
        let passes = BenchProcess::all(&[true, false]);
        assert_eq!(passes.len(), 2 * PROCESSES);
        assert_ne!(passes[0].pinned, passes[1].pinned);
        assert!(!passes[1].has_measured(&row("tokio", 0, true, 1.0)));
        assert!(passes[1].has_measured(&row("tokio", 0, false, 2.0)));
        assert_eq!(passes[1].args(), ["--process", "0", "--unpinned"]);
    }
}
