//! Tables of measured rows: for the terminal, and `docs/performance.md` with the texts of
//! `bench/rows.toml`.

use std::collections::HashSet;
use std::fmt::Write;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::Outcome;
use crate::project::Project;

const OURS: &str = "strowger";
/// The subject of rows whose figures are stated in a document.
const DOCUMENT: &str = "document";

/// The contents of `bench/rows.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    preface: String,
    unit: Vec<Unit>,
    suffix: Vec<Suffix>,
    part: Vec<Part>,
}

/// The introductions of the tables of a unit.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unit {
    name: String,
    ratios: String,
    figures: String,
}

/// An ending that measured ids may have besides the id of their row.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Suffix {
    name: String,
    #[serde(default)]
    text: String,
}

/// A section of the page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    title: String,
    text: String,
    #[serde(default)]
    row: Vec<Row>,
}

/// The description of a row.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    // Checked after parsing, so that the error can name the row.
    #[serde(default)]
    text: String,
}

/// Writes `docs/performance.md` from all measured parts and `bench/rows.toml`.
pub(crate) fn write(project: &Project, all: &Map<String, Value>) -> Outcome {
    let file = project.root().join("bench/rows.toml");
    let text = std::fs::read_to_string(&file)
        .map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let page = Texts::parse(&text).and_then(|texts| texts.page(all));
    let page = page.map_err(|error| format!("bench/rows.toml: {error}"))?;
    let file = project.root().join("docs/performance.md");
    std::fs::write(&file, page).map_err(|error| format!("cannot write {}: {error}", file.display()))
}

impl Texts {
    fn parse(text: &str) -> Result<Self, String> {
        let texts: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for part in &texts.part {
            let mut known = HashSet::new();
            for Row { id, text } in &part.row {
                if text.trim().is_empty() {
                    return Err(format!("row `{id}` of part `{}` has no text", part.name));
                }
                if !known.insert(id) {
                    return Err(format!("part `{}` has row `{id}` twice", part.name));
                }
            }
        }
        Ok(texts)
    }

    /// Returns the page that shows all parts.
    fn page(&self, all: &Map<String, Value>) -> Result<String, String> {
        let mut page = format!("# Performance\n\n{}\n", wrapped(&self.preface));
        if let Some(name) = all
            .keys()
            .find(|name| !self.part.iter().any(|part| part.name == **name))
        {
            return Err(format!("no part `{name}`, which docs/performance.json has"));
        }
        for part in &self.part {
            let Some(measured) = all.get(&part.name) else {
                continue;
            };
            let rows = measured["rows"].as_array().map_or(&[][..], Vec::as_slice);
            let _ = write!(
                page,
                "\n## {}\n\n{}\n\n{}\n",
                part.title,
                run(&measured["run"]),
                wrapped(&format!("{}{}", part.text, machine(rows)))
            );
            let has_unit = |row: &&Value| self.unit.iter().any(|unit| row["unit"] == unit.name);
            if let Some(row) = rows.iter().find(|row| !has_unit(row)) {
                return Err(format!(
                    "no unit {}, which row {} has",
                    row["unit"], row["id"]
                ));
            }
            for unit in &self.unit {
                page.push_str(&unit_tables(unit, rows));
            }
            let _ = write!(page, "\n{}{}", self.legend(part, rows)?, reasons(rows));
        }
        Ok(page)
    }

    /// Describes each measured row, in the order of the file.
    fn legend(&self, part: &Part, rows: &[Value]) -> Result<String, String> {
        let ids = ids(rows);
        let mut used = HashSet::new();
        for id in &ids {
            let row = self.row_of(part, id).ok_or_else(|| {
                format!("part `{}` has no row `{id}`, which was measured", part.name)
            })?;
            used.insert(&row.id);
        }
        let rows = part.row.iter().filter(|row| used.contains(&row.id));
        let mut text: String = rows
            .map(|row| item(&format!("`{}`: {}.", row.id, row.text)))
            .collect();
        for Suffix { name, text: says } in &self.suffix {
            if !says.is_empty() && ids.iter().any(|id| id.ends_with(name)) {
                text.push_str(&item(&format!("`...{name}`: {says}.")));
            }
        }
        Ok(text)
    }

    /// Returns the description of a measured id: of the id itself, or without its endings and
    /// sizes.
    fn row_of<'a>(&self, part: &'a Part, id: &str) -> Option<&'a Row> {
        if let Some(row) = part.row.iter().find(|row| row.id == id) {
            return Some(row);
        }
        let mut suffixes = self.suffix.iter();
        let shorter = id.split_once('/').map(|(id, _)| id);
        let shorter = shorter.or_else(|| suffixes.find_map(|suffix| id.strip_suffix(&suffix.name)));
        let shorter = shorter.or_else(|| {
            let (id, size) = id.rsplit_once('_')?;
            size.parse::<u32>().is_ok().then_some(id)
        });
        self.row_of(part, shorter?)
    }
}

/// Returns the tables of the rows of a unit; empty if there are none.
fn unit_tables(unit: &Unit, rows: &[Value]) -> String {
    let rows: Vec<Value> = rows
        .iter()
        .filter(|row| row["unit"] == unit.name)
        .cloned()
        .collect();
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    for placement in [Placement::Pinned, Placement::Unpinned] {
        let ratios = ratio_table(&rows, placement);
        if !ratios.is_empty() {
            let _ = write!(text, "\n{}{}:\n\n{ratios}", unit.ratios, placement.says());
        }
    }
    let _ = write!(text, "\n{}:\n\n{}", unit.figures, figure_table(&rows));
    text + &circumstance_tables(&rows)
}

/// Formats an item of a list.
fn item(text: &str) -> String {
    format!("- {}\n", wrapped(text).replace('\n', "\n  "))
}

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
        text.push_str(&item(&format!("{what} ({}).", ids.join(", "))));
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

    /// Returns a file of texts with these rows.
    fn sample(rows: &str) -> String {
        let mut text = String::from("preface = \"Read.\"\n");
        for (name, figures) in [
            ("ns", "Nanoseconds for one operation"),
            ("allocations", "Allocations of one operation"),
        ] {
            let _ = write!(
                text,
                "[[unit]]\nname = \"{name}\"\nratios = \"Ratios\"\nfigures = \"{figures}\"\n"
            );
        }
        for name in ["_bounded", "_allocs"] {
            let _ = write!(text, "[[suffix]]\nname = \"{name}\"\n");
        }
        text.push_str("[[part]]\nname = \"runtime\"\ntitle = \"Runtime\"\ntext = \"Counters.\"\n");
        for id in rows.split(' ') {
            let _ = write!(text, "[[part.row]]\nid = \"{id}\"\ntext = \"described\"\n");
        }
        text
    }

    fn texts(rows: &str) -> Texts {
        Texts::parse(&sample(rows)).expect("the texts parse")
    }

    fn page(all: &Value) -> String {
        let texts = texts("tell decode_typed restart_err");
        texts
            .page(all.as_object().expect("an object"))
            .expect("each row has a text")
    }

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
        let page = page(&all);
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
        let page = page(&all);
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
        let page = page(&all);
        assert!(page.contains("| | strowger | tokio | document |"), "{page}");
        assert!(!page.contains("to document"), "{page}");
    }

    #[test]
    fn endings_and_sizes_of_an_id_are_ignored() {
        let texts = texts("decode_typed scatter_8 tell tell_4_to_1");
        let row = |id| texts.row_of(&texts.part[0], id).map(|row| row.id.as_str());
        assert_eq!(row("decode_typed_50"), Some("decode_typed"));
        assert_eq!(row("decode_typed_10_allocs"), Some("decode_typed"));
        assert_eq!(row("scatter_8"), Some("scatter_8"));
        assert_eq!(row("tell_4_to_1_bounded"), Some("tell_4_to_1"));
        assert_eq!(row("tell/1000"), Some("tell"));
        assert_eq!(row("tell_other"), None);
    }

    #[test]
    fn texts_in_use_are_complete() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/rows.toml");
        let texts = std::fs::read_to_string(file).expect("the file is there");
        let rows = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/performance.json");
        let rows = std::fs::read_to_string(rows).expect("the file is there");
        let rows: Value = serde_json::from_str(&rows).expect("it is JSON");
        let texts = Texts::parse(&texts).expect("each row has a text");
        texts
            .page(rows.as_object().expect("an object"))
            .expect("each measured row has a text");
    }

    #[test]
    fn bad_or_missing_row_is_named() {
        let error = |rows: &str| Texts::parse(&sample(rows)).err().unwrap_or_default();
        assert_eq!(error("tell tell"), "part `runtime` has row `tell` twice");
        let bare = format!("{}[[part.row]]\nid = \"ask\"\n", sample("tell"));
        let bare = Texts::parse(&bare).err();
        assert_eq!(
            bare.as_deref(),
            Some("row `ask` of part `runtime` has no text")
        );

        let all = json!({ "runtime": { "run": {}, "rows": rows() } });
        let all = all.as_object().expect("an object");
        assert_eq!(
            texts("tell").page(all).unwrap_err(),
            "part `runtime` has no row `decode_typed_10_allocs`, which was measured"
        );
        let odd = json!({ "runtime": { "run": {}, "rows": [{ "id": "tell", "unit": "miles" }] } });
        assert_eq!(
            texts("tell")
                .page(odd.as_object().expect("an object"))
                .unwrap_err(),
            "no unit \"miles\", which row \"tell\" has"
        );
        let part = json!({ "engine": { "run": {}, "rows": [] } });
        assert_eq!(
            texts("tell")
                .page(part.as_object().expect("an object"))
                .unwrap_err(),
            "no part `engine`, which docs/performance.json has"
        );
    }
}
