//! Which field of tshark is which field of ours, and how the two are compared.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use crate::pdml::Field;

const FIELDS: &str = include_str!("fields.tsv");
const UNMAPPED: &str = include_str!("unmapped.tsv");

/// One row: an element, our field and tshark's field.
pub(crate) type Pair = (String, String, String);

/// The rows of `fields.tsv`.
pub(crate) struct Map(Vec<Row>);

struct Row {
    element: &'static str,
    ours: &'static str,
    theirs: &'static str,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// The same integer.
    Number,
    /// True where tshark has 1.
    Flag,
    /// Ours is there when tshark's flag is set.
    Present,
    Address,
    Text,
    /// The octets of our text; tshark shows them otherwise.
    Utf8,
    /// True where a bit of tshark's integer is set.
    Bit(u32),
    /// The same integer, from the octets; tshark shows a date.
    Raw,
    /// The names of an element differ in the two texts.
    Name,
}

/// What was compared so far.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) values: u64,
    pub(crate) elements: u64,
    pub(crate) used: BTreeSet<Pair>,
    /// Element, side and field of what has no row.
    pub(crate) unmapped: BTreeSet<Pair>,
}

impl Map {
    pub(crate) fn read() -> Self {
        Self(rows(FIELDS).map(|cells| Row::read(&cells)).collect())
    }

    /// Lists the rows as pairs.
    pub(crate) fn rows(&self) -> BTreeSet<Pair> {
        self.0.iter().map(Row::pair).collect()
    }

    /// Lists what may have no row.
    pub(crate) fn unmapped(&self) -> BTreeSet<Pair> {
        rows(UNMAPPED)
            .map(|cells| {
                (
                    cells[0].to_owned(),
                    cells[1].to_owned(),
                    cells[2].to_owned(),
                )
            })
            .collect()
    }

    /// Compares the name of an element; a row says which names mean the same.
    pub(crate) fn compare_name(&self, at: &str, ours: &Value, theirs: &str, done: &mut Compared) {
        let element = ours["type"].to_string();
        let ours = ours["name"].as_str().unwrap_or_default();
        let row = self
            .0
            .iter()
            .find(|row| row.how == How::Name && row.element == element);
        match row {
            Some(row) => {
                assert_eq!((row.ours, row.theirs), (ours, theirs), "{at}: name");
                done.used.insert(row.pair());
            }
            None => assert_eq!(ours, theirs, "{at}: name"),
        }
    }

    /// Compares the fields of an element (or of the header) on both sides.
    pub(crate) fn compare(
        &self,
        element: &str,
        at: &str,
        ours: &Value,
        theirs: &Field,
        done: &mut Compared,
    ) {
        let no_field = serde_json::Map::new();
        let members = ours.as_object().unwrap_or(&no_field);
        let mut leaves = Vec::new();
        flatten(theirs, &mut leaves);
        let mine: Vec<&Row> = self.0.iter().filter(|row| row.element == element).collect();
        let mut seen = BTreeSet::new();
        for leaf in leaves {
            let mut rows = mine.iter().filter(|row| row.theirs == leaf.name).peekable();
            if rows.peek().is_none() {
                done.unmapped
                    .insert((element.to_owned(), "tshark".to_owned(), leaf.name.clone()));
            }
            for row in rows {
                let value = members.get(row.ours);
                assert!(
                    row.how.agrees(value, leaf),
                    "{at}: {} is {value:?}, {} shows {:?} ({})",
                    row.ours,
                    row.theirs,
                    leaf.show,
                    leaf.octets
                );
                seen.insert(row.ours);
                done.values += 1;
                done.used.insert(row.pair());
            }
        }
        for (name, value) in members {
            // A flag that is not set says nothing, perhaps because its octet is not there; the name
            // of a number says nothing new.
            let number = name.strip_suffix("_name").unwrap_or_default();
            let silent = *value == false || members.contains_key(number);
            if !silent && !seen.contains(name.as_str()) {
                done.unmapped
                    .insert((element.to_owned(), "ours".to_owned(), name.clone()));
            }
        }
    }
}

/// Collects what stands in an element but not in the elements inside it.
fn flatten<'a>(field: &'a Field, leaves: &mut Vec<&'a Field>) {
    for inner in &field.fields {
        if matches!(inner.name.as_str(), "pfcp.ie_type" | "pfcp.ie_len") {
            continue;
        }
        if !inner.name.is_empty() {
            leaves.push(inner);
        }
        flatten(inner, leaves);
    }
}

impl Row {
    fn read(cells: &[&'static str]) -> Self {
        let [element, ours, theirs, how] = cells else {
            panic!("fields.tsv: four cells, not {cells:?}");
        };
        let how = match *how {
            "number" => How::Number,
            "flag" => How::Flag,
            "present" => How::Present,
            "address" => How::Address,
            "text" => How::Text,
            "utf8" => How::Utf8,
            "raw" => How::Raw,
            "name" => How::Name,
            other => match other.strip_prefix("bit").map(str::parse) {
                Some(Ok(bit)) => How::Bit(bit),
                _ => panic!("fields.tsv: {other} is no way to compare"),
            },
        };
        Self {
            element,
            ours,
            theirs,
            how,
        }
    }

    fn pair(&self) -> Pair {
        (
            self.element.to_owned(),
            self.ours.to_owned(),
            self.theirs.to_owned(),
        )
    }
}

impl How {
    fn agrees(self, ours: Option<&Value>, theirs: &Field) -> bool {
        let shown = || integer(&theirs.show);
        let raw = || u128::from_str_radix(&theirs.octets, 16).ok();
        match (self, ours) {
            (Self::Present, ours) => Some(u128::from(ours.is_some())) == shown(),
            // What is not said is not set.
            (Self::Flag, None) => shown() == Some(0),
            (Self::Flag, Some(ours)) => Some(u128::from(*ours == true)) == shown(),
            (Self::Number, Some(ours)) => number(ours).is_some() && number(ours) == shown(),
            (Self::Raw, Some(ours)) => number(ours).is_some() && number(ours) == raw(),
            (Self::Address, Some(ours)) => {
                let ours = ours.as_str().and_then(|text| text.parse::<IpAddr>().ok());
                ours.is_some() && ours == theirs.show.parse().ok()
            }
            (Self::Text, Some(ours)) => *ours == theirs.show,
            (Self::Utf8, Some(ours)) => {
                let octets = ours.as_str().unwrap_or_default().bytes();
                octets
                    .map(|octet| format!("{octet:02x}"))
                    .collect::<String>()
                    == theirs.octets
            }
            (Self::Bit(bit), Some(ours)) => {
                shown().map(|shown| shown >> bit & 1) == Some(u128::from(*ours == true))
            }
            (Self::Name, _) => true,
            (_, None) => false,
        }
    }
}

/// Reads our integers: numbers, and what is too long for them as text.
fn number(value: &Value) -> Option<u128> {
    match value {
        Value::Number(number) => number.as_u64().map(u128::from),
        Value::String(text) => integer(text),
        _ => None,
    }
}

fn integer(text: &str) -> Option<u128> {
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Takes the name out of `IE Type: Node ID (60)`.
pub(crate) fn named(label: &str, before: &str) -> String {
    let name = label.strip_prefix(before).unwrap_or(label);
    name.rsplit_once(" (")
        .map_or(name, |(name, _)| name)
        .to_owned()
}

fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split('\t').collect())
}
