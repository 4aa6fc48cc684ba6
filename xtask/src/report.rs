//! Tables from rows: plain ones for the terminal, and `docs/performance.md`.

mod words;

use std::fmt::Write;

use serde_json::{Map, Value, json};

use words::{COMPONENTS, IDS, MESSAGES, PARTS, PREFACE};

const OURS: &str = "strowger";
/// Who says what the rows of a document say.
const DOCUMENT: &str = "document";

/// Rows as columns of subjects, for a terminal, with ours beside the first peer at the end.
pub(crate) fn plain_table(rows: &[Value]) -> String {
    let rows = &with_document(rows);
    let subjects = subjects(rows);
    let mut peers = subjects.iter();
    let first_peer = peers.find(|name| ![OURS, DOCUMENT].contains(name));
    let mut text = format!("{:<30}", "");
    for subject in &subjects {
        let _ = write!(text, "{subject:>10}");
    }
    if let Some(peer) = first_peer {
        let _ = write!(text, "{:>12}", format!("to {peer}"));
    }
    for id in ids(rows) {
        let _ = write!(text, "\n{id:<30}");
        for subject in &subjects {
            let cell = value(rows, id, subject).map_or_else(|| "-".to_owned(), figure);
            let _ = write!(text, "{cell:>10}");
        }
        if let Some(times) = first_peer.and_then(|peer| times(rows, id, peer)) {
            let _ = write!(text, "{:>12}", ratio(times));
        }
    }
    text
}

/// The page that shows all parts.
pub(crate) fn page(all: &Map<String, Value>) -> String {
    let preface = wrapped(PREFACE);
    let mut text = format!("# Performance\n\n{preface}\n");
    for (part, title, what) in PARTS {
        let Some(held) = all.get(*part) else { continue };
        let rows = held["rows"].as_array().map_or(&[][..], Vec::as_slice);
        let _ = write!(
            text,
            "\n## {title}\n\n{}\n\n{}\n",
            run(&held["run"]),
            wrapped(what)
        );
        for (unit, says) in UNITS {
            let of_unit: Vec<Value> = rows
                .iter()
                .filter(|row| row["unit"] == *unit)
                .cloned()
                .collect();
            if of_unit.is_empty() {
                continue;
            }
            let ratios = ratio_table(&of_unit);
            if !ratios.is_empty() {
                let _ = write!(text, "\n{}:\n\n{ratios}", says.ratios);
            }
            let _ = write!(text, "\n{}:\n\n{}", says.figures, figure_table(&of_unit));
        }
        let _ = write!(text, "\n{}{}", legend(part, rows), reasons(rows));
    }
    text
}

fn run(run: &Value) -> String {
    let get = |key: &str| run[key].as_str().unwrap_or("unknown");
    let versions = run["versions"]
        .as_object()
        .map_or_else(String::new, |versions| {
            let each: Vec<String> = versions
                .iter()
                .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or_default()))
                .collect();
            each.join(", ")
        });
    let idle = run["idle"]
        .as_str()
        .map_or_else(String::new, |idle| format!(" (idle: {idle})"));
    wrapped(&format!(
        "`{}` on {}, commit {}; {}, {} cores, {}{}, load {} at the end; {}; {versions}.",
        get("command"),
        get("date"),
        get("commit"),
        get("processor"),
        run["cores"],
        get("system"),
        idle,
        get("load"),
        get("rustc"),
    ))
}

/// How the tables of a unit are introduced.
struct Says {
    ratios: &'static str,
    figures: &'static str,
}

const UNITS: &[(&str, Says)] = &[
    (
        "ns",
        Says {
            ratios: "How many times faster `strowger` is",
            figures: "Nanoseconds for one operation",
        },
    ),
    (
        "1/s",
        Says {
            ratios: "How many times more `strowger` does",
            figures: "A second",
        },
    ),
    (
        "messages/s",
        Says {
            ratios: "What part of the messages of `strowger` others handle",
            figures: "Messages a second",
        },
    ),
    (
        "bytes",
        Says {
            ratios: "How many times less `strowger` takes",
            figures: "Bytes",
        },
    ),
    (
        "allocations",
        Says {
            ratios: "How many times fewer allocations `strowger` makes",
            figures: "Allocations of one operation",
        },
    ),
    (
        "instructions",
        Says {
            ratios: "How many times fewer instructions `strowger` takes",
            figures: "Instructions of one operation",
        },
    ),
    (
        "percent",
        Says {
            ratios: "How many times less `strowger` costs",
            figures: "Percent of the instructions of one operation",
        },
    ),
];

/// Ours as a ratio to each peer; nothing when there is no ratio.
fn ratio_table(rows: &[Value]) -> String {
    let mut peers = subjects(rows);
    peers.retain(|name| *name != OURS);
    table(rows, &peers, "to ", |id, peer| {
        times(rows, id, peer).map(ratio)
    })
}

fn figure_table(rows: &[Value]) -> String {
    let rows = &with_document(rows);
    table(rows, &subjects(rows), "", |id, subject| {
        value(rows, id, subject).map(figure)
    })
}

/// The rows, and at the end those of a document that says what they take.
fn with_document(rows: &[Value]) -> Vec<Value> {
    let said = rows.iter().filter(|row| row["document"].is_number());
    let said = said.map(|row| {
        let (id, value, unit) = (&row["id"], &row["document"], &row["unit"]);
        json!({ "id": id, "subject": DOCUMENT, "value": value, "unit": unit })
    });
    rows.iter().cloned().chain(said).collect()
}

/// A table with a row for each id that has a cell.
fn table(
    rows: &[Value],
    columns: &[&str],
    prefix: &str,
    cell: impl Fn(&str, &str) -> Option<String>,
) -> String {
    let ids_here = ids(rows);
    let has_cells = |column: &&str| ids_here.iter().any(|id| cell(id, column).is_some());
    let columns: Vec<&str> = columns.iter().copied().filter(has_cells).collect();
    let mut body = String::new();
    for id in &ids_here {
        let cells: Vec<Option<String>> = columns.iter().map(|column| cell(id, column)).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(body, "| `{id}` |");
        for cell in cells {
            let _ = write!(body, " {} |", cell.unwrap_or_default());
        }
        body.push('\n');
    }
    if body.is_empty() {
        return body;
    }
    let heads: Vec<String> = columns
        .iter()
        .map(|name| format!("{prefix}{name} |"))
        .collect();
    format!(
        "| | {}\n|---|{}\n{body}",
        heads.join(" "),
        "---:|".repeat(columns.len())
    )
}

/// How many times the figure of a peer is ours.
fn times(rows: &[Value], id: &str, peer: &str) -> Option<f64> {
    let ours = value(rows, id, OURS).filter(|ours| *ours > 0.0)?;
    Some(value(rows, id, peer)? / ours)
}

/// Why a subject has no figure, each reason once.
fn reasons(rows: &[Value]) -> String {
    let mut said: Vec<(String, Vec<String>)> = Vec::new();
    for row in rows {
        let (Some(reason), Some(subject)) = (row["reason"].as_str(), row["subject"].as_str())
        else {
            continue;
        };
        let id = format!("`{}`", row["id"].as_str().unwrap_or_default());
        let what = format!("{subject}: {reason}");
        match said.iter_mut().find(|(known, _)| *known == what) {
            Some((_, ids)) => ids.push(id),
            None => said.push((what, vec![id])),
        }
    }
    if said.is_empty() {
        return String::new();
    }
    let mut text = String::from("\nNo figure:\n\n");
    for (what, ids) in said {
        let line = wrapped(&format!("{what} ({}).", ids.join(", ")));
        let _ = writeln!(text, "- {}", line.replace('\n', "\n  "));
    }
    text
}

/// How many times faster (or slower) ours is.
fn ratio(times: f64) -> String {
    if times >= 10.0 {
        format!("{times:.0}x")
    } else {
        format!("{times:.1}x")
    }
}

fn legend(part: &str, rows: &[Value]) -> String {
    let known = |id: &str| ids(rows).iter().any(|have| family(have) == id);
    let mut text = String::new();
    let says = match part {
        "messages" => MESSAGES,
        "wasm" => COMPONENTS,
        _ => IDS,
    };
    for (id, what) in says.iter().filter(|(id, _)| known(id)) {
        let line = wrapped(&format!("`{id}`: {what}."));
        let _ = writeln!(text, "- {}", line.replace('\n', "\n  "));
    }
    if ids(rows).iter().any(|id| id.ends_with("_bounded")) {
        text.push_str(
            "- `..._bounded`: the same with mailboxes of 1024, where tellers wait for room;\n  \
             without the suffix there is no bound on either side.\n",
        );
    }
    text
}

/// An id without its size and its bound.
fn family(id: &str) -> &str {
    let id = id.strip_suffix("_bounded").unwrap_or(id);
    let id = id.strip_suffix("_bun").unwrap_or(id);
    let id = id.strip_suffix("_rust").unwrap_or(id);
    if let Some((family, _)) = id.split_once('/') {
        return family;
    }
    match id.rsplit_once('_') {
        Some((family, size)) if family.starts_with("decode") || family.starts_with("encode") => {
            if size.parse::<u32>().is_ok() {
                family
            } else {
                id
            }
        }
        _ => id,
    }
}

fn ids(rows: &[Value]) -> Vec<&str> {
    let mut ids = Vec::new();
    for id in rows.iter().filter_map(|row| row["id"].as_str()) {
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    ids
}

/// Everybody who has a row: ours first, then peers in the order of the rows.
fn subjects(rows: &[Value]) -> Vec<&str> {
    let mut subjects = Vec::new();
    for subject in rows.iter().filter_map(|row| row["subject"].as_str()) {
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    subjects.sort_by_key(|subject| *subject != OURS);
    subjects
}

fn value(rows: &[Value], id: &str, subject: &str) -> Option<f64> {
    let row = rows
        .iter()
        .find(|row| row["id"] == id && row["subject"] == subject)?;
    row["value"].as_f64()
}

fn figure(value: f64) -> String {
    if value < 100.0 && value.fract() != 0.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Breaks a paragraph into lines of at most 100 columns.
fn wrapped(paragraph: &str) -> String {
    let mut lines = vec![String::new()];
    for word in paragraph.split_whitespace() {
        let full = lines
            .last()
            .is_some_and(|line| line.len() + word.len() + 1 > 98);
        if full {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Value> {
        fn row(id: &str, subject: &str, value: f64, unit: &str) -> Value {
            json!({ "id": id, "subject": subject, "value": value, "unit": unit })
        }
        vec![
            row("tell", "tokio", 60.0, "ns"),
            row("tell", "strowger", 20.0, "ns"),
            row("tell_bounded", "tokio", 92.0, "ns"),
            row("decode_typed_10_allocs", "rs-pfcp", 98.0, "allocations"),
            json!({ "id": "restart_err", "subject": "xtra", "value": null, "unit": "ns",
                "reason": "it has no supervision" }),
        ]
    }

    #[test]
    fn ours_comes_first_and_ratios_say_how_much_faster() {
        let all = json!({ "runtime": { "run": { "command": "cargo xtask bench runtime" },
            "rows": rows() } });
        let page = page(all.as_object().expect("an object"));
        assert!(page.contains("| | to tokio |"), "{page}");
        assert!(page.contains("| `tell` | 3.0x |"), "{page}");
        assert!(page.contains("| | strowger | tokio |"), "{page}");
        assert!(page.contains("| `tell` | 20 | 60 |"), "{page}");
        assert!(page.contains("| `tell_bounded` |  | 92 |"), "{page}");
        assert!(
            page.contains("- xtra: it has no supervision (`restart_err`)."),
            "{page}"
        );
        assert!(page.contains("Allocations of one operation"), "{page}");
        assert!(
            page.lines().all(|line| line.chars().count() <= 100),
            "{page}"
        );
    }

    #[test]
    fn what_a_document_says_stands_beside_and_is_no_peer() {
        let mut rows = rows();
        rows[1]["document"] = json!(40);
        let plain = plain_table(&rows);
        assert!(plain.contains("  document"), "{plain}");
        assert!(plain.contains("to tokio"), "{plain}");
        let all = json!({ "runtime": { "run": {}, "rows": rows } });
        let page = page(all.as_object().expect("an object"));
        assert!(page.contains("| | strowger | tokio | document |"), "{page}");
        assert!(!page.contains("to document"), "{page}");
    }

    #[test]
    fn families_have_no_size() {
        assert_eq!(family("decode_typed_50"), "decode_typed");
        assert_eq!(family("encode_1"), "encode");
        assert_eq!(family("encode_heartbeat"), "encode_heartbeat");
        assert_eq!(family("tell_4_to_1_bounded"), "tell_4_to_1");
        assert_eq!(family("tell_4_to_1"), "tell_4_to_1");
        assert_eq!(family("throughput/1000"), "throughput");
        assert_eq!(family("ring_hop_bun"), "ring_hop");
    }
}
