//! Tables from rows: plain ones for the terminal, and `docs/performance.md`.

mod words;

use std::fmt::Write;

use serde_json::{Map, Value, json};

use words::{COMPONENTS, IDS, MESSAGES, PARTS, PREFACE};

const OURS: &str = "strowger";
/// The subject of rows whose figures are stated in a document.
const DOCUMENT: &str = "document";

/// Formats rows as columns of subjects for a terminal, with the ratio of ours to the first peer at
/// the end.
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
        let beside = first_peer.and_then(|peer| ratio_cell(rows, id, peer, Placement::Pinned));
        let _ = write!(text, "  {:>10}", beside.unwrap_or_default());
        let beside = first_peer.and_then(|peer| ratio_cell(rows, id, peer, Placement::Unpinned));
        if let Some(beside) = beside {
            let _ = write!(text, "  unpinned {beside}");
        }
    }
    let _ = write!(text, "{}", plain_circumstances(rows, &subjects));
    match machine(rows) {
        says if says.is_empty() => text,
        says => format!("{text}\n\n{}", says.trim()),
    }
}

/// Formats the circumstances of the rows for a terminal; empty if the rows do not have any.
fn plain_circumstances(rows: &[Value], subjects: &[&str]) -> String {
    let mut text = String::new();
    for id in ids(rows) {
        let cell = |subject| circumstances(rows, id, subject, Placement::Pinned);
        if subjects.iter().all(|subject| cell(subject).is_none()) {
            continue;
        }
        let _ = write!(text, "\n{id:<30}");
        for subject in subjects {
            let cell = cell(subject).unwrap_or_else(|| "-".to_owned());
            let _ = write!(text, "{cell:>16}");
        }
    }
    if text.is_empty() {
        return text;
    }
    format!("\n\nsleeps of threads in an operation / processors in use{text}")
}

/// Returns the page that shows all parts.
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
            wrapped(&format!("{what}{}", machine(rows)))
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
            for placement in [Placement::Pinned, Placement::Unpinned] {
                let ratios = ratio_table(&of_unit, placement);
                if !ratios.is_empty() {
                    let _ = write!(text, "\n{}{}:\n\n{ratios}", says.ratios, placement.says());
                }
            }
            let _ = write!(text, "\n{}:\n\n{}", says.figures, figure_table(&of_unit));
            let _ = write!(text, "{}", circumstance_tables(&of_unit));
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

/// Describes the machine, from what the rows say about it.
fn machine(rows: &[Value]) -> String {
    let of = |key: &str| rows.iter().find_map(|row| row[key].as_f64());
    let (Some(crossing), Some(waking)) = (of("crossing"), of("waking")) else {
        return String::new();
    };
    format!(
        " On this machine a cache line takes {crossing:.0} ns to the other processor and back, and \
         a thread that sleeps runs there after {:.0} us.",
        waking / 1000.0
    )
}

/// The introductions of the tables of a unit.
struct Introduction {
    ratios: &'static str,
    figures: &'static str,
}

const UNITS: &[(&str, Introduction)] = &[
    (
        "ns",
        Introduction {
            ratios: "How many times faster `strowger` is",
            figures: "Nanoseconds for one operation",
        },
    ),
    (
        "us",
        Introduction {
            ratios: "How many times less late `strowger` is",
            figures: "Microseconds late",
        },
    ),
    (
        "1/s",
        Introduction {
            ratios: "How many times more `strowger` does",
            figures: "A second",
        },
    ),
    (
        "messages/s",
        Introduction {
            ratios: "What part of the messages of `strowger` others handle",
            figures: "Messages a second",
        },
    ),
    (
        "bytes",
        Introduction {
            ratios: "How many times less `strowger` takes",
            figures: "Bytes",
        },
    ),
    (
        "allocations",
        Introduction {
            ratios: "How many times fewer allocations `strowger` makes",
            figures: "Allocations of one operation",
        },
    ),
    (
        "instructions",
        Introduction {
            ratios: "How many times fewer instructions `strowger` takes",
            figures: "Instructions of one operation",
        },
    ),
    (
        "percent",
        Introduction {
            ratios: "How many times less `strowger` costs",
            figures: "Percent of the instructions of one operation",
        },
    ),
];

/// The placement of the workers of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Placement {
    /// Each worker on a processor of its own.
    Pinned,
    /// Workers placed by the system.
    Unpinned,
}

impl Placement {
    fn says(self) -> &'static str {
        match self {
            Self::Pinned => "",
            Self::Unpinned => ", with workers that the system places",
        }
    }

    /// Returns the part of a row for this placement.
    fn of(self, row: &Value) -> &Value {
        match self {
            Self::Pinned => row,
            Self::Unpinned => &row["unpinned"],
        }
    }
}

/// Returns a table with the ratios of the peers to ours; empty if there are none.
fn ratio_table(rows: &[Value], placement: Placement) -> String {
    let mut peers = subjects(rows);
    peers.retain(|name| *name != OURS);
    table(rows, &peers, "to ", |id, peer| {
        ratio_cell(rows, id, peer, placement)
    })
}

/// Returns the figure of a peer as a multiple of ours: the median of several processes with minimum
/// and maximum, or the ratio of one process.
fn ratio_cell(rows: &[Value], id: &str, peer: &str, placement: Placement) -> Option<String> {
    let row = placement.of(row_of(rows, id, peer)?);
    let Some(middle) = row["ratio"].as_f64() else {
        let one_process = placement == Placement::Pinned && row["processes"].is_null();
        return one_process.then(|| times(rows, id, peer).map(ratio))?;
    };
    let (least, most) = (row["ratio_min"].as_f64()?, row["ratio_max"].as_f64()?);
    let digits = |times: f64| ratio(times).trim_end_matches('x').to_owned();
    Some(format!(
        "{} ({}-{})",
        ratio(middle),
        digits(least),
        digits(most)
    ))
}

/// Describes how often a thread goes to sleep in an operation, and the number of processors that
/// the process uses.
fn circumstances(rows: &[Value], id: &str, subject: &str, placement: Placement) -> Option<String> {
    let row = placement.of(row_of(rows, id, subject)?);
    let (sleeps, processors) = (row["sleeps"].as_f64()?, row["processors"].as_f64()?);
    let sleeps = match sleeps {
        0.0..0.0005 => "0".to_owned(),
        0.0005..1.0 => format!("{sleeps:.3}"),
        _ => format!("{sleeps:.1}"),
    };
    Some(format!("{sleeps} / {processors:.1}"))
}

fn circumstance_tables(rows: &[Value]) -> String {
    let mut text = String::new();
    for placement in [Placement::Pinned, Placement::Unpinned] {
        let table = table(rows, &subjects(rows), "", |id, subject| {
            circumstances(rows, id, subject, placement)
        });
        if !table.is_empty() {
            let _ = write!(
                text,
                "\nTimes that a thread goes to sleep in one operation / processors in use{}:\n\n\
                 {table}",
                placement.says()
            );
        }
    }
    text
}

fn figure_table(rows: &[Value]) -> String {
    let rows = &with_document(rows);
    table(rows, &subjects(rows), "", |id, subject| {
        value(rows, id, subject).map(figure)
    })
}

/// Returns the rows, followed by those for figures that a document states.
fn with_document(rows: &[Value]) -> Vec<Value> {
    let said = rows.iter().filter(|row| row["document"].is_number());
    let said = said.map(|row| {
        let (id, value, unit) = (&row["id"], &row["document"], &row["unit"]);
        json!({ "id": id, "subject": DOCUMENT, "value": value, "unit": unit })
    });
    rows.iter().cloned().chain(said).collect()
}

/// Returns a table with a row for each id that has a cell.
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

/// Returns the figure of a peer as a multiple of ours.
fn times(rows: &[Value], id: &str, peer: &str) -> Option<f64> {
    let ours = value(rows, id, OURS).filter(|ours| *ours > 0.0)?;
    Some(value(rows, id, peer)? / ours)
}

/// Lists the reasons why subjects have no figure, each once.
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

/// Formats how many times faster (or slower) ours is.
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

/// Returns an id without its size and its bound.
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

/// Returns all subjects of the rows: ours first, then peers in the order of the rows.
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
    row_of(rows, id, subject)?["value"].as_f64()
}

fn row_of<'a>(rows: &'a [Value], id: &str, subject: &str) -> Option<&'a Value> {
    let mut rows = rows.iter();
    rows.find(|row| row["id"] == id && row["subject"] == subject)
}

fn figure(value: f64) -> String {
    if value < 100.0 && value.fract() != 0.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// Wraps a paragraph to lines of at most 100 columns.
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
    fn ratio_of_several_processes_shows_how_far_they_lie_apart() {
        let mut rows = rows();
        let tokio = &mut rows[0];
        tokio["processes"] = json!(5);
        tokio["ratio"] = json!(3.2);
        (tokio["ratio_min"], tokio["ratio_max"]) = (json!(2.8), json!(11.0));
        (tokio["sleeps"], tokio["processors"]) = (json!(0.25), json!(1.86));
        (tokio["crossing"], tokio["waking"]) = (json!(104.0), json!(52_400.0));
        tokio["unpinned"] = json!({ "ratio": 1.0, "ratio_min": 0.9, "ratio_max": 1.1 });
        let plain = plain_table(&rows);
        assert!(
            plain.contains("3.2x (2.8-11)  unpinned 1.0x (0.9-1.1)"),
            "{plain}"
        );
        assert!(plain.contains("0.250 / 1.9"), "{plain}");
        assert!(plain.contains("takes 104 ns to"), "{plain}");
        assert!(plain.contains("after 52 us"), "{plain}");
        let all = json!({ "runtime": { "run": {}, "rows": rows } });
        let page = page(all.as_object().expect("an object"));
        assert!(page.contains("| `tell` | 3.2x (2.8-11) |"), "{page}");
        assert!(page.contains("| `tell` | 1.0x (0.9-1.1) |"), "{page}");
        assert!(page.contains("| `tell` | 0.250 / 1.9 |"), "{page}");
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
