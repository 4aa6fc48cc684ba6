//! The mapping of tshark's fields to ours, and the way in which each pair is compared.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::slice::from_ref;

use serde_json::{Value, json};

use crate::pdml::Field;

const FIELDS: &str = include_str!("fields.tsv");
const UNMAPPED: &str = include_str!("unmapped.tsv");
const WORDING: &str = include_str!("wording.tsv");
const LABELS: &str = include_str!("labels.tsv");

/// The last element that tshark knows.
pub(crate) const LAST: u16 = 320;

/// One row: an element, our field and tshark's field.
pub(crate) type Pair = (String, String, String);

/// The rows of `fields.tsv`; the fields that have no row according to `unmapped.tsv`; the names of
/// values that may differ according to `wording.tsv`, and those of fields according to
/// `labels.tsv`: element, our name and tshark's.
pub(crate) struct Map {
    pub(super) rows: Vec<Row>,
    pub(super) unmapped: BTreeSet<Pair>,
    pub(super) wording: BTreeSet<Pair>,
    pub(super) labels: BTreeSet<Pair>,
}

pub(super) struct Row {
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
    /// Our field is present when tshark's flag is set.
    Present,
    Address,
    Text,
    /// The bytes of our text, which tshark shows in another form.
    Utf8,
    /// True where a bit of tshark's integer is set.
    Bit(u32),
    /// Tshark's integer is a part of ours: the lowest bit and the number of bits.
    Cut(u32, u32),
    /// The same integer, from the bytes; tshark shows a date.
    Raw,
    /// The same bytes.
    Bytes,
    /// The next item of our list.
    Parts,
    /// Bytes that occur in one of our fields.
    Among,
    /// The names of an element differ in the two texts.
    Name,
}

/// The results of the comparison so far.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) values: u64,
    pub(crate) elements: u64,
    pub(crate) used: BTreeSet<Pair>,
    /// The differences.
    pub(crate) wrong: Vec<String>,
    /// The elements of which some field was compared.
    pub(crate) agreed: BTreeSet<String>,
    /// Element, side and field of fields without a row.
    pub(crate) unmapped: BTreeSet<Pair>,
    /// Element, our name and tshark's of values that are equal and have different names.
    pub(crate) worded: BTreeSet<Pair>,
    /// Element, our name and tshark's of fields that have different names.
    pub(crate) labelled: BTreeSet<Pair>,
}

impl Map {
    pub(crate) fn read() -> Self {
        let pair = |cells: Vec<&str>| match &cells[..] {
            [element, side, field, _] => (
                (*element).to_owned(),
                (*side).to_owned(),
                (*field).to_owned(),
            ),
            _ => panic!("unmapped.tsv: four cells, not {cells:?}"),
        };
        let words = |cells: Vec<&str>| match &cells[..] {
            [element, ours, theirs] => {
                let [element, ours, theirs] = [element, ours, theirs].map(|&cell| cell.to_owned());
                (element, ours, theirs)
            }
            _ => panic!("wording.tsv and labels.tsv: three cells, not {cells:?}"),
        };
        Self {
            rows: rows(FIELDS).map(|cells| Row::read(&cells)).collect(),
            unmapped: rows(UNMAPPED).map(pair).collect(),
            wording: rows(WORDING).map(words).collect(),
            labels: rows(LABELS).map(words).collect(),
        }
    }

    /// Fails if something differs, or has no counterpart and is not listed.
    pub(crate) fn check(&self, compared: &Compared) {
        let (count, wrong) = (compared.wrong.len(), &compared.wrong);
        let first: Vec<&str> = wrong.iter().map(String::as_str).take(2000).collect();
        assert!(first.is_empty(), "{count} differ:\n{}", first.join("\n"));
        let unmapped: Vec<_> = compared.unmapped.difference(&self.unmapped).collect();
        assert!(
            unmapped.is_empty(),
            "unmapped.tsv lists what has no counterpart: {unmapped:#?}"
        );
        let named = [
            ("wording.tsv", &compared.worded, &self.wording),
            ("labels.tsv", &compared.labelled, &self.labels),
        ];
        for (list, met, known) in named {
            let new = met.difference(known);
            let new = new.map(|(element, ours, theirs)| format!("{element}\t{ours}\t{theirs}\n"));
            let new: String = new.collect();
            assert!(new.is_empty(), "{list} has what is named otherwise:\n{new}");
        }
    }

    /// Compares the name of an element; a row tells which names mean the same.
    pub(crate) fn compare_name(&self, at: &str, ours: &Value, theirs: &str, done: &mut Compared) {
        let element = ours["type"].to_string();
        let ours = ours["name"].as_str().unwrap_or_default();
        let row = self
            .rows
            .iter()
            .find(|row| row.how == How::Name && row.element == element);
        let agree = match row {
            Some(row) => {
                done.used.insert(row.pair());
                (row.ours, row.theirs) == (ours, theirs)
            }
            None => ours == theirs,
        };
        if !agree {
            let wrong = format!("{at}: the name is {ours}, tshark says {theirs} ({element})");
            done.wrong.push(wrong);
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
        let before = done.values;
        let no_field = serde_json::Map::new();
        let members = ours.as_object().unwrap_or(&no_field);
        let mut leaves = Vec::new();
        flatten(theirs, &mut leaves);
        let mine: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.element == element)
            .collect();
        let mut seen = BTreeSet::new();
        let mut parts: BTreeMap<&str, &[Value]> = BTreeMap::new();
        for leaf in leaves {
            if is_spare(&leaf.name) {
                continue;
            }
            let mut rows = mine.iter().filter(|row| row.theirs == leaf.name).peekable();
            if rows.peek().is_none() {
                done.unmapped
                    .insert((element.to_owned(), "tshark".to_owned(), leaf.name.clone()));
            }
            for row in rows {
                let value = members.get(row.ours);
                let agrees = match row.how {
                    How::Among => row.holds(members, &leaf.bytes),
                    How::Parts => {
                        let all = value.and_then(Value::as_array);
                        let left = parts.entry(row.theirs);
                        let left = left.or_insert_with(|| all.map_or(&[], Vec::as_slice));
                        let next = left.split_off_first();
                        next.is_some_and(|part| is_part(part, leaf))
                    }
                    _ => row.how.agrees(value, leaf),
                };
                if !agrees {
                    let (ours, theirs) = (row.ours, row.theirs);
                    let (show, bytes) = (&leaf.show, &leaf.bytes);
                    let value = json!(value);
                    done.wrong.push(format!(
                        "{at}: {ours} is {value}, {theirs} shows {show} ({bytes})"
                    ));
                }
                let name = members.get(&format!("{}_name", row.ours));
                if let (How::Number, Some(name)) = (row.how, name.and_then(Value::as_str)) {
                    let theirs = words(&leaf.label);
                    // Spaces that tshark omits are ignored.
                    let bare = |text: &str| text.replace(' ', "");
                    if bare(name) != bare(theirs) {
                        let pair = (element.to_owned(), name.to_owned(), theirs.to_owned());
                        done.worded.insert(pair);
                    }
                }
                row.compare_label(leaf, done);
                seen.extend(row.ours.split('+'));
                done.values += 1;
                done.used.insert(row.pair());
            }
        }
        let left: Vec<_> = parts.iter().filter(|(_, left)| !left.is_empty()).collect();
        if !left.is_empty() {
            done.wrong
                .push(format!("{at}: tshark does not show {left:?}"));
        }
        for name in unseen(members, &seen) {
            done.unmapped
                .insert((element.to_owned(), "ours".to_owned(), name));
        }
        if done.values > before {
            done.agreed.insert(element.to_owned());
        }
    }
}

/// Lists the fields of ours that carry information and that no row has compared.
fn unseen<'a>(
    members: &'a serde_json::Map<String, Value>,
    seen: &'a BTreeSet<&str>,
) -> impl Iterator<Item = String> + 'a {
    let said = members.iter().filter(|(name, value)| {
        // A flag that is not set carries no information, since its byte may be absent; nor do empty
        // bytes. The name of a number adds nothing to the number.
        let number = name.strip_suffix("_name").unwrap_or_default();
        **value != false && **value != "" && **value != json!([]) && !members.contains_key(number)
    });
    let names = said.map(|(name, _)| name);
    names.filter(|name| !seen.contains(name.as_str())).cloned()
}

/// Collects the fields of an element without those of the elements inside it.
fn flatten<'a>(field: &'a Field, leaves: &mut Vec<&'a Field>) {
    for inner in &field.fields {
        let outside = matches!(inner.name.as_str(), "pfcp.ie_type" | "pfcp.ie_len");
        if outside || inner.name.starts_with("_ws.") {
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
            "octets" => How::Bytes,
            "parts" => How::Parts,
            "among" => How::Among,
            "name" => How::Name,
            other => How::of_bits(other)
                .unwrap_or_else(|| panic!("fields.tsv: {other} is no way to compare")),
        };
        Self {
            element,
            ours,
            theirs,
            how,
        }
    }

    /// Returns `true` if the bytes occur in one of our fields, as hexadecimal digits or as text.
    fn holds(&self, members: &serde_json::Map<String, Value>, bytes: &str) -> bool {
        let values = self.ours.split('+').filter_map(|name| members.get(name));
        let each = values.flat_map(|value| {
            value
                .as_array()
                .map_or_else(|| from_ref(value), Vec::as_slice)
        });
        let texts = each.filter_map(Value::as_str);
        let mut either = texts.flat_map(|text| [text.to_owned(), hex(text)]);
        either.any(|digits| digits.contains(bytes))
    }

    /// Notes a label that differs from our name.
    fn compare_label(&self, field: &Field, done: &mut Compared) {
        let label = label_of(&field.label);
        let names = self.ours.split('+').any(|ours| is_named(ours, label));
        // For a number of flags tshark shows the label of the number.
        if !names && !matches!(self.how, How::Bit(_)) {
            let pair = (
                self.element.to_owned(),
                self.ours.to_owned(),
                label.to_owned(),
            );
            done.labelled.insert(pair);
        }
    }

    pub(super) fn pair(&self) -> Pair {
        (
            self.element.to_owned(),
            self.ours.to_owned(),
            self.theirs.to_owned(),
        )
    }
}

impl How {
    fn of_bits(text: &str) -> Option<Self> {
        if let Some(bit) = text.strip_prefix("bit") {
            return bit.parse().ok().map(Self::Bit);
        }
        let (shift, width) = text.strip_prefix("cut")?.split_once('+')?;
        Some(Self::Cut(shift.parse().ok()?, width.parse().ok()?))
    }

    fn agrees(self, ours: Option<&Value>, theirs: &Field) -> bool {
        let shown = || integer(&theirs.show);
        let raw = || u128::from_str_radix(&theirs.bytes, 16).ok();
        match (self, ours) {
            (Self::Present, ours) => Some(u128::from(ours.is_some())) == shown(),
            // An absent flag is not set.
            (Self::Flag, None) => shown() == Some(0),
            // A field with the name of its flag replaces the flag.
            (Self::Flag, Some(ours)) => Some(u128::from(*ours != false)) == shown(),
            // tshark shows some negative numbers as their two's complement.
            (Self::Number, Some(ours)) if ours.as_i64().is_some_and(i64::is_negative) => {
                let bits = 4 * theirs.bytes.len().min(16);
                let number = ours.as_i64().unwrap_or_default();
                let complement = u128::from(number.cast_unsigned()) & ((1 << bits) - 1);
                theirs.show.parse() == Ok(number) || shown() == Some(complement)
            }
            (Self::Number, Some(ours)) => number(ours).is_some() && number(ours) == shown(),
            (Self::Cut(shift, width), Some(ours)) => {
                let cut = number(ours).map(|ours| ours >> shift & ((1 << width) - 1));
                cut.is_some() && cut == shown()
            }
            (Self::Bytes, Some(ours)) => *ours == bytes_of(theirs),
            (Self::Raw, Some(ours)) => number(ours).is_some() && number(ours) == raw(),
            (Self::Address, Some(ours)) => {
                let ours = ours.as_str().and_then(|text| text.parse::<IpAddr>().ok());
                ours.is_some() && ours == theirs.show.parse().ok()
            }
            (Self::Text, Some(ours)) => *ours == theirs.show,
            (Self::Utf8, Some(ours)) => hex(ours.as_str().unwrap_or_default()) == theirs.bytes,
            (Self::Bit(bit), Some(ours)) => {
                shown().map(|shown| shown >> bit & 1) == Some(u128::from(*ours == true))
            }
            (Self::Name, _) => true,
            (Self::Parts | Self::Among, _) | (_, None) => false,
        }
    }
}

/// Reads our integers: numbers, and longer ones as text.
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

/// Returns `true` if a number or a MAC address equals the bytes of a field.
fn is_part(ours: &Value, theirs: &Field) -> bool {
    let bytes = bytes_of(theirs);
    match ours {
        Value::String(text) => text.replace(':', "") == bytes,
        ours => number(ours).is_some() && number(ours) == u128::from_str_radix(&bytes, 16).ok(),
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of a field, with two digits even if a mask left one.
fn bytes_of(field: &Field) -> String {
    let digits = field.bytes.to_lowercase();
    let width = digits.len().next_multiple_of(2);
    format!("{digits:0>width$}")
}

/// Takes the name of the field out of `.... 0001 = Interface: Core (1)`.
fn label_of(label: &str) -> &str {
    let is_bits = |text: &str| {
        text.chars()
            .all(|next| matches!(next, '.' | '0' | '1' | ' '))
    };
    let label = match label.split_once(" = ") {
        Some((bits, rest)) if is_bits(bits) => rest,
        _ => label,
    };
    label.split_once(": ").map_or(label, |(name, _)| name)
}

/// Returns `true` if a label contains our name of the field, alone or beside an explanation: `FORW
/// (Forward)`. Words such as value, address or number may be omitted.
fn is_named(ours: &str, label: &str) -> bool {
    let letters = |text: &str| -> String {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        let all: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
        let shorter = |all: String, word: &str| match all.strip_suffix(word) {
            Some(rest) if !rest.is_empty() => rest.to_owned(),
            _ => all,
        };
        ["value", "address", "number"]
            .into_iter()
            .fold(all, shorter)
    };
    let (short, long) = label.split_once('(').unwrap_or((label, label));
    let names = [label, short, long];
    names.iter().any(|name| letters(name) == letters(ours))
}

/// Takes the name out of `.... 0001 = Interface: Core (1)`, `-` if there is none.
fn words(label: &str) -> &str {
    let value = label.split_once(": ").map_or(label, |(_, value)| value);
    value.rsplit_once(" (").map_or("-", |(name, _)| name)
}

/// Returns `true` for bits without meaning: ours shows only those that are set.
fn is_spare(name: &str) -> bool {
    name.split(['.', '_']).any(|word| word == "spare")
}

/// Takes the name out of `IE Type: Node ID (60)`.
pub(crate) fn named(label: &str, before: &str) -> String {
    let name = label.strip_prefix(before).unwrap_or(label);
    name.rsplit_once(" (")
        .map_or(name, |(name, _)| name)
        .to_owned()
}

pub(crate) fn rows(table: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    let lines = table
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split('\t').collect())
}
