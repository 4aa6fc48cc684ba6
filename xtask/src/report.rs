//! Tables from rows: plain ones for the terminal, and `docs/performance.md`.

use std::fmt::Write;

use serde_json::{Map, Value};

const OURS: &str = "strowger";

const PREFACE: &str = "Written by `cargo xtask bench` from `performance.json`; figures are never \
                       typed by hand. Read ratios rather than times: all subjects of a table ran \
                       in turns, in one process, so that whatever slowed the machine slowed all of \
                       them.";

/// What each part and each row times, in words.
const PARTS: &[(&str, &str, &str)] = &[
    (
        "runtime",
        "Runtime",
        "Counters that add numbers, on two workers of one tokio runtime; every subject runs the \
         same work, and the sums are compared. Each figure is the median of interleaved rounds, in \
         nanoseconds for one operation. `tokio` is a task and a channel written by hand, without \
         supervision, names or deadlines.",
    ),
    (
        "pfcp",
        "PFCP codec",
        "A Session Establishment Request with N Create PDR and N Create FAR (94, 302, 562 and 2642 \
         octets for N = 1, 5, 10 and 50), and a Heartbeat Request (16 octets). Every leaf of every \
         rule is folded into a checksum that has to come out right; a message without a mandatory \
         element is refused by every subject in the same binary. What `strowger` reads is also \
         checked for multiplicity, conditions and the N4 interface. Each figure is the least of \
         interleaved rounds on one thread, in nanoseconds for one message.",
    ),
];

const IDS: &[(&str, &str)] = &[
    (
        "tell",
        "one task sends numbers to one actor, until it handled the last one; unbounded",
    ),
    ("tell_4_to_1", "the same with four sending tasks"),
    (
        "ask",
        "one task asks and waits for the answer, one question at a time",
    ),
    ("hop", "two actors pass a token to and fro"),
    (
        "spawn_until_answered",
        "an actor is spawned and answers its first question",
    ),
    (
        "decode_typed",
        "octets to checked, typed reads of every leaf, the cheapest way there is",
    ),
    ("decode_owned", "octets to owned, typed values"),
    (
        "encode",
        "typed values to octets in a buffer that is used again",
    ),
    ("decode_heartbeat", "octets to the Recovery Time Stamp"),
    (
        "encode_heartbeat",
        "a time to octets in a buffer that is used again",
    ),
];

/// Rows as columns of subjects, for a terminal.
pub(crate) fn plain_table(rows: &[Value]) -> String {
    let subjects = subjects(rows);
    let mut text = format!("{:<26}", "");
    for subject in &subjects {
        let _ = write!(text, "{subject:>12}");
    }
    for id in ids(rows) {
        let _ = write!(text, "\n{id:<26}");
        for subject in &subjects {
            let cell = value(rows, id, subject).map_or_else(|| "-".to_owned(), figure);
            let _ = write!(text, "{cell:>12}");
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
        let (counted, timed): (Vec<Value>, Vec<Value>) = rows
            .iter()
            .cloned()
            .partition(|row| row["unit"] == "allocations");
        let _ = write!(text, "\n{}", markdown(&timed, true));
        if !counted.is_empty() {
            let _ = write!(
                text,
                "
Allocations of one operation:

"
            );
            text.push_str(&markdown(&counted, false));
        }
        let _ = write!(text, "\n{}", legend(&timed));
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
    wrapped(&format!(
        "`{}` on {}, commit {}; {}, {} cores, {}, load {} at the end; {}; {versions}.",
        get("command"),
        get("date"),
        get("commit"),
        get("processor"),
        run["cores"],
        get("system"),
        get("load"),
        get("rustc"),
    ))
}

/// A table with a row for each id and, if asked for, ours as a ratio to each peer.
fn markdown(rows: &[Value], ratios: bool) -> String {
    let subjects = subjects(rows);
    let peers: Vec<&str> = subjects
        .iter()
        .copied()
        .filter(|name| *name != OURS)
        .collect();
    let has_ratios = ratios && subjects.contains(&OURS);
    let mut heads: Vec<String> = subjects.iter().map(|name| format!("{name} |")).collect();
    if has_ratios {
        heads.extend(peers.iter().map(|peer| format!("to {peer} |")));
    }
    let mut text = format!(
        "| | {}\n|---|{}\n",
        heads.join(" "),
        "---:|".repeat(heads.len())
    );
    for id in ids(rows) {
        let _ = write!(text, "| `{id}` |");
        for subject in &subjects {
            let cell = value(rows, id, subject).map_or_else(String::new, figure);
            let _ = write!(text, " {cell} |");
        }
        for peer in peers.iter().filter(|_| has_ratios) {
            let cell = match (value(rows, id, OURS), value(rows, id, peer)) {
                (Some(ours), Some(theirs)) if ours > 0.0 => ratio(theirs / ours),
                _ => String::new(),
            };
            let _ = write!(text, " {cell} |");
        }
        text.push('\n');
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

fn legend(rows: &[Value]) -> String {
    let known = |id: &str| ids(rows).iter().any(|have| family(have) == id);
    let mut text = String::new();
    for (id, what) in IDS.iter().filter(|(id, _)| known(id)) {
        let _ = writeln!(text, "- `{id}`: {what}.");
    }
    if ids(rows).iter().any(|id| id.ends_with("_bounded")) {
        text.push_str("- `..._bounded`: the same with a mailbox of 1024.\n");
    }
    text
}

/// An id without its size and its bound.
fn family(id: &str) -> &str {
    let id = id.strip_suffix("_bounded").unwrap_or(id);
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
            .is_some_and(|line| line.len() + word.len() + 1 > 100);
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
    use serde_json::json;

    fn rows() -> Vec<Value> {
        fn row(id: &str, subject: &str, value: f64, unit: &str) -> Value {
            json!({ "id": id, "subject": subject, "value": value, "unit": unit })
        }
        vec![
            row("tell", "tokio", 60.0, "ns"),
            row("tell", "strowger", 20.0, "ns"),
            row("tell_bounded", "tokio", 92.0, "ns"),
            row("decode_typed_10_allocs", "rs-pfcp", 98.0, "allocations"),
        ]
    }

    #[test]
    fn ours_comes_first_and_ratios_say_how_much_faster() {
        let all = json!({ "runtime": { "run": { "command": "cargo xtask bench runtime" },
            "rows": rows() } });
        let page = page(all.as_object().expect("an object"));
        assert!(page.contains("| | strowger | tokio | to tokio |"), "{page}");
        assert!(page.contains("| `tell` | 20 | 60 | 3.0x |"), "{page}");
        assert!(page.contains("| `tell_bounded` |  | 92 |  |"), "{page}");
        assert!(page.contains("Allocations of one operation"), "{page}");
        assert!(
            page.lines().all(|line| line.chars().count() <= 100),
            "{page}"
        );
    }

    #[test]
    fn families_have_no_size() {
        assert_eq!(family("decode_typed_50"), "decode_typed");
        assert_eq!(family("encode_1"), "encode");
        assert_eq!(family("encode_heartbeat"), "encode_heartbeat");
        assert_eq!(family("tell_4_to_1_bounded"), "tell_4_to_1");
        assert_eq!(family("tell_4_to_1"), "tell_4_to_1");
    }
}
