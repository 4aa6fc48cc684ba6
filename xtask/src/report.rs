//! Tables of measured rows: for the terminal, and `docs/performance.md` with the texts of
//! `bench/rows.toml`.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::project::{self, Project};
use crate::{Outcome, bench};

const OURS: &str = "strowger";
/// The column of figures that a document states.
const DOCUMENT: &str = "document";
/// The ratio below which a peer is faster, beyond noise.
const NOISE_RATIO: f64 = 0.95;
const SLEEPS: &str = "Times that a thread goes to sleep in one operation / processors in use";

/// The contents of `bench/rows.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Texts {
    preface: String,
    /// Subjects that do less than ours, such as a bare function call.
    #[serde(default)]
    floors: Vec<String>,
    unit: Vec<Unit>,
    suffix: Vec<Described>,
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

/// A section of the page, or a page of its own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    name: String,
    title: String,
    /// The name of the page in `docs`, if it is a page of its own.
    page: Option<String>,
    text: String,
    /// The figures that a document states, by id.
    #[serde(default)]
    document: HashMap<String, f64>,
    #[serde(default)]
    row: Vec<Described>,
}

/// The description of a row, or of an ending that measured ids may have besides that of their row.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    #[serde(alias = "name")]
    id: String,
    // Checked after parsing, so that the error can name the row.
    #[serde(default)]
    text: String,
}

/// A measured row.
#[derive(Deserialize)]
struct Row {
    id: String,
    subject: String,
    unit: String,
    /// The reason why there is no figure.
    reason: Option<String>,
    document: Option<f64>,
    crossing: Option<f64>,
    waking: Option<f64>,
    /// The number of processes that measured the row, if there were several.
    processes: Option<u64>,
    /// The figures of workers that stay on a processor of their own.
    #[serde(flatten)]
    pinned: Figures,
    /// The figures of workers that the system places.
    #[serde(default)]
    unpinned: Figures,
}

/// Medians of several processes, or the value of one.
#[derive(Default, Deserialize)]
struct Figures {
    value: Option<f64>,
    /// The figure as a multiple of ours.
    ratio: Option<f64>,
    ratio_min: Option<f64>,
    ratio_max: Option<f64>,
    /// The number of times that a thread goes to sleep in an operation.
    sleeps: Option<f64>,
    /// The number of processors that the process uses.
    processors: Option<f64>,
}

/// Figures of one placement of workers, and what a title says about it.
type Placement = (&'static str, fn(&Row) -> &Figures);
const PLACEMENTS: [Placement; 2] = [
    ("", |row| &row.pinned),
    (", with workers that the system places", |row| &row.unpinned),
];

/// Writes `docs/performance.md`, and the pages of some parts, from all measured parts and
/// `bench/rows.toml`.
pub(crate) fn write(project: &Project, all: &Map<String, Value>) -> Outcome {
    let changed = |part: &str, run: &Value| bench::changed(project, part, run);
    let texts = Texts::read(project)?;
    let pages = texts.pages(all, changed);
    for (name, page) in pages.map_err(|error| format!("bench/rows.toml: {error}"))? {
        project::write(&project.root().join("docs").join(name), page)?;
    }
    Ok(())
}

/// Returns the ids for which a document states a figure.
pub(crate) fn documented(project: &Project, part: &str) -> Result<HashSet<String>, String> {
    let parts = Texts::read(project)?.part;
    let part = parts.into_iter().find(|one| one.name == part);
    Ok(part.map_or_else(HashSet::new, |part| part.document.into_keys().collect()))
}

/// Returns the tables of some rows, for a terminal.
pub(crate) fn tables(project: &Project, rows: &[Value]) -> Result<String, String> {
    Texts::read(project)?.terminal(&parsed(rows)?)
}

fn parsed(rows: &[Value]) -> Result<Vec<Row>, String> {
    let parse = |row| Row::deserialize(row).map_err(|error| format!("row `{row}`: {error}"));
    rows.iter().map(parse).collect()
}

impl Texts {
    fn read(project: &Project) -> Result<Self, String> {
        let text = project::read(&project.root().join("bench/rows.toml"))?;
        Self::parse(&text).map_err(|error| format!("bench/rows.toml: {error}"))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let texts: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for part in &texts.part {
            let mut known = HashSet::new();
            for Described { id, text } in &part.row {
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

    /// Returns the pages that show all parts, by name. `changed` lists the folders that changed
    /// after a part was measured.
    fn pages(
        &self,
        all: &Map<String, Value>,
        changed: impl Fn(&str, &Value) -> Vec<&'static str>,
    ) -> Result<Vec<(&str, String)>, String> {
        let is_known = |name: &&String| self.part.iter().any(|part| part.name == **name);
        if let Some(name) = all.keys().find(|name| !is_known(name)) {
            return Err(format!("no part `{name}`, which docs/performance.json has"));
        }
        let first = format!("# Performance\n\n{}\n", wrap(&self.preface));
        let mut pages = vec![("performance.md", first)];
        for part in &self.part {
            let Some(measured) = all.get(&part.name) else {
                continue;
            };
            let changed = changed(&part.name, &measured["run"]);
            let mut rows = parsed(measured["rows"].as_array().map_or(&[], Vec::as_slice))?;
            for row in rows.iter_mut().filter(|row| row.document.is_none()) {
                row.document = part.document.get(&row.id).copied();
            }
            let section = format!(
                " {}\n\n{}{}{}\n\n{}\n{}\n{}{}",
                part.title,
                staleness_note(&part.name, &changed),
                self.winners(&rows),
                wrap(&describe_run(&measured["run"])),
                wrap(&format!("{} {}", part.text, describe_machine(&rows))),
                self.tables(&rows)?,
                self.legend(part, &rows)?,
                list_reasons(&rows)
            );
            match &part.page {
                Some(page) => pages.push((page, format!("#{section}"))),
                None => pages[0].1 += &format!("\n##{section}"),
            }
        }
        Ok(pages)
    }

    /// Returns the tables of rows with columns of equal width.
    fn terminal(&self, rows: &[Row]) -> Result<String, String> {
        let text = format!(
            "{}{}\n{}",
            self.tables(rows)?,
            list_reasons(rows),
            describe_machine(rows)
        );
        let cells = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
        let (is_row, mut widths) = (|line: &&str| line.starts_with('|'), Vec::new());
        for line in text.lines().filter(is_row) {
            for (at, cell) in cells(line).iter().enumerate() {
                widths.resize(widths.len().max(at + 1), 0);
                widths[at] = cell.len().max(widths[at]);
            }
        }
        let pad = |(cell, width): (&String, &usize)| format!("{cell:<width$}");
        let lines = text.trim().lines().map(|line| match is_row(&line) {
            false => line.to_owned(),
            true => {
                let padded: Vec<_> = cells(line).iter().zip(&widths).map(pad).collect();
                padded.join("|").trim_end().to_owned()
            }
        });
        Ok(lines.collect::<Vec<_>>().join("\n"))
    }

    /// Returns the tables of rows, by unit.
    fn tables(&self, rows: &[Row]) -> Result<String, String> {
        let has_unit = |row: &&Row| self.unit.iter().any(|unit| unit.name == row.unit);
        if let Some(Row { id, unit, .. }) = rows.iter().find(|row| !has_unit(row)) {
            return Err(format!("no unit `{unit}`, which row `{id}` has"));
        }
        let mut text = String::new();
        for unit in &self.unit {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.unit == unit.name).collect();
            let ids = unique(rows.iter().map(|row| row.id.as_str()));
            let mut subjects = unique(rows.iter().map(|row| row.subject.as_str()));
            subjects.sort_by_key(|subject| *subject != OURS);
            let of = |id: &str, subject: &str| {
                let mut rows = rows.iter().copied();
                rows.find(|row| row.id == id && row.subject == subject)
            };
            for (says, figures) in PLACEMENTS {
                let peers = subjects.iter().copied().filter(|subject| *subject != OURS);
                let title = format!("{}{says}", unit.ratios);
                text += &table(&title, &ids, "to ", peers.collect(), |id, peer| {
                    let row = of(id, peer)?;
                    ratio_cell(figures(row)).or_else(|| {
                        let ours = ours(&rows, id)?;
                        let is_one_process = says.is_empty() && row.processes.is_none();
                        is_one_process.then_some(format_ratio(row.pinned.value? / ours))
                    })
                });
            }
            let columns = [&subjects[..], &[DOCUMENT]].concat();
            text += &table(&unit.figures, &ids, "", columns, |id, subject| {
                let document = || {
                    rows.iter()
                        .find_map(|row| row.document.filter(|_| row.id == id))
                };
                let value = match subject {
                    DOCUMENT => document(),
                    _ => of(id, subject)?.pinned.value,
                };
                value.map(format_figure)
            });
            for (says, figures) in PLACEMENTS {
                let title = format!("{SLEEPS}{says}");
                text += &table(&title, &ids, "", subjects.clone(), |id, subject| {
                    describe_sleeps(figures(of(id, subject)?))
                });
            }
        }
        Ok(text)
    }

    /// Lists the rows in which a peer is better, by peer; empty if there are none.
    fn winners(&self, rows: &[Row]) -> String {
        let is_peer =
            |subject: &&str| *subject != OURS && !self.floors.iter().any(|f| f == subject);
        // Of such a figure, more is better.
        let rows: Vec<&Row> = rows
            .iter()
            .filter(|row| !row.unit.ends_with("/s"))
            .collect();
        let mut text = String::new();
        for peer in unique(rows.iter().map(|row| row.subject.as_str()))
            .into_iter()
            .filter(is_peer)
        {
            let won = rows
                .iter()
                .filter(|row| row.subject == peer)
                .filter_map(|row| {
                    let of_one = || Some(row.pinned.value? / ours(&rows, &row.id)?);
                    let of_one = of_one().filter(|_| row.processes.is_none());
                    let each = [row.pinned.ratio.or(of_one), row.unpinned.ratio];
                    let each = each
                        .into_iter()
                        .flatten()
                        .filter(|times| *times < NOISE_RATIO);
                    let each: Vec<String> = each.map(format_ratio).collect();
                    (!each.is_empty()).then(|| format!("`{}` ({})", row.id, each.join(", ")))
                });
            let won: Vec<String> = won.collect();
            if !won.is_empty() {
                text += &list_item(&format!("{peer}: {}.", won.join(", ")));
            }
        }
        match text.is_empty() {
            true => text,
            false => format!("Where a peer is better than `{OURS}`:\n\n{text}\n"),
        }
    }

    /// Describes each measured row, in the order of the file.
    fn legend(&self, part: &Part, rows: &[Row]) -> Result<String, String> {
        let mut used = HashSet::new();
        for Row { id, .. } in rows {
            let row = self.row_of(part, id).ok_or_else(|| {
                format!("part `{}` has no row `{id}`, which was measured", part.name)
            })?;
            used.insert(&row.id);
        }
        let described = part.row.iter().filter(|row| used.contains(&row.id));
        let mut text: String = described
            .map(|row| list_item(&format!("`{}`: {}.", row.id, row.text)))
            .collect();
        for Described {
            id: end,
            text: says,
        } in &self.suffix
        {
            if !says.is_empty() && rows.iter().any(|row| row.id.ends_with(end)) {
                text += &list_item(&format!("`...{end}`: {says}."));
            }
        }
        Ok(text)
    }

    /// Returns the description of a measured id: of the id itself, or without its endings and
    /// sizes.
    fn row_of<'a>(&self, part: &'a Part, id: &str) -> Option<&'a Described> {
        if let Some(row) = part.row.iter().find(|row| row.id == id) {
            return Some(row);
        }
        let mut suffixes = self.suffix.iter();
        let shorter = id.split_once('/').map(|(id, _)| id);
        let shorter = shorter.or_else(|| suffixes.find_map(|suffix| id.strip_suffix(&suffix.id)));
        let shorter = shorter.or_else(|| {
            let (id, size) = id.rsplit_once('_')?;
            size.parse::<u32>().is_ok().then_some(id)
        });
        self.row_of(part, shorter?)
    }
}

/// Returns our figure of a row, unless it is zero.
fn ours(rows: &[&Row], id: &str) -> Option<f64> {
    let row = rows
        .iter()
        .find(|row| row.id == id && row.subject == OURS)?;
    row.pinned.value.filter(|ours| *ours > 0.0)
}

/// Returns a table of the ids and columns that have a cell, or nothing if none has.
fn table(
    title: &str,
    ids: &[&str],
    prefix: &str,
    mut columns: Vec<&str>,
    cell: impl Fn(&str, &str) -> Option<String>,
) -> String {
    columns.retain(|column| ids.iter().any(|id| cell(id, column).is_some()));
    if columns.is_empty() {
        return String::new();
    }
    let heads: String = columns
        .iter()
        .map(|head| format!(" {prefix}{head} |"))
        .collect();
    let mut text = format!(
        "\n{title}:\n\n| |{heads}\n|---|{}\n",
        "---:|".repeat(columns.len())
    );
    for id in ids {
        let cells: Vec<_> = columns.iter().map(|column| cell(id, column)).collect();
        if cells.iter().any(Option::is_some) {
            let cells = cells
                .into_iter()
                .map(|cell| format!(" {} |", cell.unwrap_or_default()));
            let _ = writeln!(text, "| `{id}` |{}", cells.collect::<String>());
        }
    }
    text
}

/// Says that figures are older than the code; empty if they are not.
fn staleness_note(part: &str, changed: &[&str]) -> String {
    if changed.is_empty() {
        return String::new();
    }
    let changed: Vec<String> = changed.iter().map(|path| format!("`{path}`")).collect();
    let says = format!(
        "**Older than the code**: {} changed after this was measured; `cargo xtask bench {part}` \
         measures it again.",
        changed.join(", ")
    );
    format!("{}\n\n", wrap(&says))
}

/// Describes the run that measured a part.
fn describe_run(run: &Value) -> String {
    let get = |key: &str| run[key].as_str().unwrap_or("unknown");
    let versions = run["versions"].as_object().into_iter().flatten();
    let versions: Vec<String> = versions
        .map(|(name, version)| format!("{name} {}", version.as_str().unwrap_or_default()))
        .collect();
    let idle = run["idle"].as_str();
    format!(
        "`{}` on {}, commit {}; {}, {} cores, {}{}, load {} at the end; {}; {}.",
        get("command"),
        get("date"),
        get("commit"),
        get("processor"),
        run["cores"],
        get("system"),
        idle.map_or_else(String::new, |idle| format!(" (idle: {idle})")),
        get("load"),
        get("rustc"),
        versions.join(", ")
    )
}

/// Describes the machine, from what the rows say about it.
fn describe_machine(rows: &[Row]) -> String {
    let crossing = rows.iter().find_map(|row| row.crossing);
    let waking = rows.iter().find_map(|row| row.waking);
    let (Some(crossing), Some(waking)) = (crossing, waking) else {
        return String::new();
    };
    format!(
        "On this machine a cache line takes {crossing:.0} ns to the other processor and back, and \
         a thread that sleeps runs there after {:.0} us.",
        waking / 1000.0
    )
}

/// Formats the ratio of several processes with its minimum and maximum.
fn ratio_cell(figures: &Figures) -> Option<String> {
    let [least, most] = [figures.ratio_min?, figures.ratio_max?].map(format_ratio);
    let (least, most) = (least.trim_end_matches('x'), most.trim_end_matches('x'));
    Some(format!("{} ({least}-{most})", format_ratio(figures.ratio?)))
}

/// Formats how many times faster (or slower) ours is.
fn format_ratio(times: f64) -> String {
    let digits = match times {
        ..0.1 => 2,
        0.1..10.0 => 1,
        _ => 0,
    };
    format!("{times:.digits$}x")
}

fn format_figure(value: f64) -> String {
    let digits = usize::from(value < 100.0 && value.fract() != 0.0);
    format!("{value:.digits$}")
}

/// Formats how often a thread goes to sleep in an operation, and the number of processors in use.
fn describe_sleeps(figures: &Figures) -> Option<String> {
    let (sleeps, processors) = (figures.sleeps?, figures.processors?);
    let digits = match sleeps {
        ..0.0005 => 0,
        0.0005..1.0 => 3,
        _ => 1,
    };
    Some(format!("{sleeps:.digits$} / {processors:.1}"))
}

/// Lists the reasons why subjects have no figure, each once.
fn list_reasons(rows: &[Row]) -> String {
    let lacking = |row: &Row| Some(format!("{}: {}", row.subject, row.reason.as_ref()?));
    let all: Vec<_> = rows.iter().map(|row| (lacking(row), &row.id)).collect();
    let mut text = String::new();
    for reason in unique(all.iter().filter_map(|(reason, _)| reason.as_deref())) {
        let ids = all.iter().filter(|(of, _)| of.as_deref() == Some(reason));
        let ids: Vec<String> = ids.map(|(_, id)| format!("`{id}`")).collect();
        text += &list_item(&format!("{reason} ({}).", ids.join(", ")));
    }
    match text.is_empty() {
        true => text,
        false => format!("\nNo figure:\n\n{text}"),
    }
}

fn unique<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known = HashSet::new();
    texts.filter(|text| known.insert(*text)).collect()
}

/// Formats an item of a list.
fn list_item(text: &str) -> String {
    format!("- {}\n", wrap(text).replace('\n', "\n  "))
}

/// Wraps a paragraph to lines of at most 98 columns, so that an item of a list has 100.
fn wrap(paragraph: &str) -> String {
    let (mut text, mut width) = (String::new(), 0);
    for word in paragraph.split_whitespace() {
        if width + word.len() > 98 {
            text.push('\n');
            width = 0;
        } else if width > 0 {
            text.push(' ');
        }
        text += word;
        width += word.len() + 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the texts with these rows.
    fn texts(rows: &str) -> Result<Texts, String> {
        let mut text = String::from(
            "preface = \"Read.\"\nsuffix = [{ name = \"_bounded\" }, { name = \"_allocs\" }]\n",
        );
        for name in ["ns", "allocations"] {
            let _ = write!(
                text,
                "[[unit]]\nname = {name:?}\nratios = \"Ratios\"\nfigures = \"Figures in {name}\"\n"
            );
        }
        text.push_str("[[part]]\nname = \"runtime\"\ntitle = \"Runtime\"\ntext = \"Counters.\"\n");
        for id in rows.split(' ') {
            let described = id
                .strip_suffix('!')
                .map_or((id, "described"), |id| (id, ""));
            let _ = write!(
                text,
                "[[part.row]]\nid = {:?}\ntext = {:?}\n",
                described.0, described.1
            );
        }
        Texts::parse(&text)
    }

    fn page(part: &str, rows: &Value) -> Result<String, String> {
        let all = json!({ part: { "run": { "command": "cargo xtask bench" }, "rows": rows } });
        let all = all.as_object().expect("an object");
        let texts = texts("tell decode_typed restart_err")?;
        let mut pages = texts.pages(all, |_, _| Vec::new())?;
        Ok(pages.remove(0).1)
    }

    fn rows() -> Value {
        json!([
            { "id": "tell", "subject": "tokio", "value": 60, "unit": "ns" },
            { "id": "tell", "subject": "strowger", "value": 20, "unit": "ns", "document": 40 },
            { "id": "tell_bounded", "subject": "tokio", "value": 92, "unit": "ns" },
            { "id": "decode_typed_10_allocs", "subject": "rs-pfcp", "value": 98.0,
                "unit": "allocations" },
            { "id": "restart_err", "subject": "xtra", "value": null, "unit": "ns",
                "reason": "it has no supervision" },
        ])
    }

    #[test]
    fn strowger_comes_first_with_its_ratios() {
        let page = page("runtime", &rows()).expect("each row has a text");
        for text in [
            "| | to tokio |\n",
            "| `tell` | 3.0x |\n",
            "| | strowger | tokio | document |\n",
            "| `tell` | 20 | 60 | 40 |\n",
            "| `tell_bounded` |  | 92 |  |\n",
            "- xtra: it has no supervision (`restart_err`).",
            "Figures in allocations:\n",
        ] {
            assert!(page.contains(text), "{text}: {page}");
        }
        assert!(
            page.lines().all(|line| line.chars().count() <= 100),
            "{page}"
        );
    }

    #[test]
    fn ratio_keeps_a_digit_that_is_not_zero() {
        let ratios = [0.042, 0.42, 4.2, 42.0].map(format_ratio);
        assert_eq!(ratios, ["0.04x", "0.4x", "4.2x", "42x"]);
    }

    #[test]
    fn ratio_shows_the_spread_between_processes() {
        let mut rows = rows();
        let several = json!({ "processes": 5, "ratio": 3.2, "ratio_min": 2.8, "ratio_max": 11.0,
            "sleeps": 0.25, "processors": 1.86, "crossing": 104.0, "waking": 52_400.0,
            "unpinned": { "ratio": 1.0, "ratio_min": 0.9, "ratio_max": 1.1 } });
        let tokio = rows[0].as_object_mut().expect("a row");
        tokio.extend(several.as_object().expect("fields").clone());
        let page = page("runtime", &rows).expect("each row has a text");
        let rows = parsed(rows.as_array().expect("rows")).expect("they are rows");
        let terminal = texts("tell").and_then(|texts| texts.terminal(&rows));
        let terminal = terminal.expect("their units are known");
        for (on_page, on_terminal) in [
            (
                "| `tell` | 3.2x (2.8-11) |",
                "| `tell`                   | 3.2x (2.8-11)  |",
            ),
            (
                "| `tell` | 1.0x (0.9-1.1) |",
                "| `tell`                   | 1.0x (0.9-1.1) |",
            ),
            (
                "| `tell` | 0.250 / 1.9 |",
                "| `tell`                   | 0.250 / 1.9 ",
            ),
            ("takes 104 ns to", "after 52 us"),
        ] {
            assert!(page.contains(on_page), "{page}");
            assert!(terminal.contains(on_terminal), "{terminal}");
        }
    }

    #[test]
    fn page_begins_with_its_age_and_the_winning_peers() {
        let rows = json!([
            { "id": "tell", "subject": "strowger", "value": 20, "unit": "ns" },
            { "id": "tell", "subject": "tokio", "value": 10, "unit": "ns" },
            { "id": "tell", "subject": "floor", "value": 1, "unit": "ns" },
            { "id": "tell", "subject": "xtra", "value": 30, "unit": "ns", "processes": 5,
                "ratio": 1.5, "unpinned": { "ratio": 0.9 } },
            { "id": "tell", "subject": "kameo", "value": 19.5, "unit": "ns" },
        ]);
        let all = json!({ "runtime": { "run": {}, "rows": rows } });
        let all = all.as_object().expect("an object");
        let mut texts = texts("tell").expect("it parses");
        texts.floors = vec!["floor".to_owned()];
        let pages = texts.pages(all, |_, _| vec!["crates/runtime/src", "bench/wasm"]);
        let page = &pages.expect("the row has a text")[0].1;
        let begin = "## Runtime\n\n**Older than the code**: `crates/runtime/src`, `bench/wasm` \
                     changed after this was measured;\n`cargo xtask bench runtime` measures it \
                     again.\n\nWhere a peer is better than `strowger`:\n\n\
                     - tokio: `tell` (0.5x).\n- xtra: `tell` (0.9x).\n\n";
        assert!(page.contains(begin), "{page}");
    }

    #[test]
    fn suffixes_and_sizes_of_an_id_are_ignored() {
        let texts = texts("decode_typed scatter_8 tell tell_4_to_1").expect("they parse");
        for (id, row) in [
            ("decode_typed_50", Some("decode_typed")),
            ("decode_typed_10_allocs", Some("decode_typed")),
            ("scatter_8", Some("scatter_8")),
            ("tell_4_to_1_bounded", Some("tell_4_to_1")),
            ("tell/1000", Some("tell")),
            ("tell_other", None),
        ] {
            let found = texts.row_of(&texts.part[0], id);
            assert_eq!(found.map(|row| row.id.as_str()), row, "{id}");
        }
    }

    #[test]
    fn texts_in_use_are_complete() {
        let project = Project::locate().expect("the repository");
        let rows = project::read(&project.root().join("docs/performance.json")).expect("it exists");
        let rows = serde_json::from_str(&rows).expect("it is JSON");
        let texts = Texts::read(&project).expect("each row has a text");
        let pages = texts.pages(&rows, |_, _| vec!["crates/runtime/src"]);
        pages.expect("each measured row has a text");
    }

    #[test]
    fn bad_or_missing_row_is_named() {
        for (rows, error) in [
            ("tell tell", "part `runtime` has row `tell` twice"),
            ("tell ask!", "row `ask` of part `runtime` has no text"),
        ] {
            assert_eq!(texts(rows).err().as_deref(), Some(error));
        }
        let row = |id: &str, unit: &str| json!([{ "id": id, "subject": "tokio", "unit": unit }]);
        for (part, rows, error) in [
            (
                "runtime",
                row("ask", "ns"),
                "part `runtime` has no row `ask`, which was measured",
            ),
            (
                "runtime",
                row("tell", "miles"),
                "no unit `miles`, which row `tell` has",
            ),
            (
                "engine",
                row("tell", "ns"),
                "no part `engine`, which docs/performance.json has",
            ),
        ] {
            assert_eq!(page(part, &rows).err().as_deref(), Some(error));
        }
    }
}
