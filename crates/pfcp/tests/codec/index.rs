//! The index of elements at the head of `ie`: every element once, in the family that contains its
//! row.
//!
//! With `STROWGER_BLESS=1` in the environment the index is written instead of compared.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use strowger_pfcp::{IeType, MessageType};

/// The subject of each family, and the files of its rows.
const FAMILIES: &[(&str, &[&str])] = &[
    ("Rules: what creates them", &["group/create"]),
    ("Rules: what changes them", &["group/update"]),
    ("Rules: what removes them, queries", &["group/remove"]),
    ("Rules: what was made of them", &["group/created"]),
    ("Rules: identifiers, what they detect and do", &["rule"]),
    (
        "Addresses of tunnels, sessions, nodes and users",
        &["address"],
    ),
    ("Usage: measuring, thresholds, quotas", &["usage"]),
    ("Reports", &["group/report"]),
    (
        "Quality: rates, delays, monitoring",
        &["group/quality", "quality"],
    ),
    (
        "Nodes: features, causes, load, times",
        &["group/node", "node", "cause"],
    ),
    (
        "Control: flags, buffering, tracing",
        &["group/session", "control"],
    ),
    (
        "Several accesses: steering, ATSSS",
        &["group/access", "access"],
    ),
    ("Bridges and clocks", &["group/bridge", "bridge"]),
    ("Multicast and broadcast", &["group/multicast", "multicast"]),
    ("Media, headers looked into", &["group/media", "media"]),
    ("L2TP", &["group/tunnel", "tunnel"]),
    ("Other functions, N6, pools", &["network"]),
];

/// Numbers without an element.
const EMPTY: [IeType; 3] = [IeType::RESERVED, IeType::SPARE_273, IeType::UNUSED_381];

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ie")
}

/// Reads the code of a file without its comments.
fn code(name: &str) -> String {
    let path = sources().join(name).with_extension("rs");
    let text = fs::read_to_string(path).expect("a file of rows");
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.flat_map(|line| [line, "\n"]).collect()
}

/// Reads the number of each constant of [`IeType`].
fn constants() -> BTreeMap<String, IeType> {
    let text = code("number");
    let words: Vec<&str> = text.split_whitespace().collect();
    let row = |pair: &[&str]| Some((pair[1].to_owned(), IeType(pair[0].parse().ok()?)));
    words.windows(2).filter_map(row).collect()
}

/// Reads the rows of a file: the element, and its type in Rust.
fn rows(text: &str, constants: &BTreeMap<String, IeType>) -> BTreeMap<IeType, String> {
    let mut rows = BTreeMap::new();
    for (at, _) in text.match_indices("= ") {
        let end = |next: char| next != '_' && !next.is_ascii_alphanumeric();
        let constant = text[at + 2..].split(end).next().unwrap_or_default();
        let before = text[..at].rsplit(['{', '}', ';']).next();
        let name = before.and_then(|row| row.split_whitespace().next());
        if let (Some(ie), Some(name)) = (constants.get(constant), name) {
            // An element that a response repeats has its first row under the plain name.
            let shortest = rows.entry(*ie).or_insert_with(|| name.to_owned());
            if name.len() < shortest.len() {
                name.clone_into(shortest);
            }
        }
    }
    rows.into_iter()
        .map(|(ie, name)| (ie, name.trim_end_matches(':').to_owned()))
        .collect()
}

/// Generates the index, and returns it with its elements.
fn index() -> (String, Vec<IeType>) {
    let constants = constants();
    let mut text = String::from("# Index\n\n");
    let mut all = Vec::new();
    for (title, files) in FAMILIES {
        let found: BTreeMap<IeType, String> = files
            .iter()
            .flat_map(|file| rows(&code(file), &constants))
            .collect();
        let mut found: Vec<(IeType, String)> = found.into_iter().collect();
        found.sort_by_key(|(ie, _)| ie.name());
        let _ = write!(
            text,
            "## {title}\n\n| Type | Element | Number | TS 29.244 |\n|---|---|--:|---|\n"
        );
        for (ie, name) in found {
            let clause = ie.clause().unwrap_or_default();
            let table = if clause.contains('-') { "Table " } else { "§" };
            let _ = writeln!(text, "| [`{name}`] | {ie} | {} | {table}{clause} |", ie.0);
            all.push(ie);
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len() + 1);
    (text, all)
}

/// Records the rows for the page on conformance.
#[test]
fn every_row_has_a_name_and_a_clause() {
    let messages = MessageType::ALL.iter().map(|message| {
        let table = message.table().map(|table| table.table);
        ("message", message.0.into(), message.name(), table)
    });
    let elements = IeType::ALL.iter().filter(|ie| !EMPTY.contains(ie));
    let elements = elements.map(|ie| ("ie", ie.0, ie.name(), ie.clause()));
    let mut lines = String::new();
    for (what, number, name, clause) in messages.chain(elements) {
        let name = name.expect("a name");
        // User Plane IP Resource Information has been reserved since release 16.
        let clause = clause.unwrap_or("8.2.82 of V15");
        let place = if clause.contains('-') { "Table " } else { "§" };
        let _ = writeln!(lines, "{what}\t{number}\t{name}\t{place}{clause}");
    }
    if let Some(folder) = std::env::var_os("STROWGER_CONFORMANCE") {
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(Path::new(&folder).join("rows.tsv"), lines).expect("a place to write");
    }
}

#[test]
fn every_element_is_in_the_index_once() {
    let (text, mut all) = index();
    all.sort();
    let expected: Vec<IeType> = IeType::ALL
        .iter()
        .copied()
        .filter(|ie| !EMPTY.contains(ie))
        .collect();
    assert_eq!(all, expected);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("INDEX.md");
    if std::env::var_os("STROWGER_BLESS").is_some() {
        fs::write(&path, &text).expect("a place to write");
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == text,
        "INDEX.md is not current: set STROWGER_BLESS=1 to write it"
    );
}
