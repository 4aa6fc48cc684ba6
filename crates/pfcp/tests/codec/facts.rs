//! Every row as lines of text, against the same lines made from the facts of releases 17 and 19.
//!
//! Both sides are sets of lines, and the sets have to be equal: a row that changes in anything
//! that a line says is found, and `a_changed_row_is_found` changes every row in every such way.
//! Where the facts are wrong or silent, `corrections.tsv` takes a line away (`-`) or adds one
//! (`+`), with the reason.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use strowger_pfcp::ie::descriptor::{
    Descriptor, Field, Group, Kind, Leaf, Member, Presence, Span, When, describe,
};
use strowger_pfcp::{IeType, Interfaces, MessageType, Release};

use crate::octets::shared_json;

/// The lines of the facts that do not hold, and those that hold without a fact.
const CORRECTIONS: &str = include_str!("corrections.tsv");

/// Octets with bit fields whose widths the facts draw with a sum other than eight, and that are
/// not one bit each: type, octet, widths from bit 1 up.
const WIDE: [(u16, usize, &[usize]); 3] =
    [(134, 6, &[3, 1, 4]), (135, 6, &[3, 1, 4]), (160, 5, &[6])];

/// Tables of values: their number, the type and the field that they are of.
const VALUES: [(&str, u16, &str); 30] = [
    ("8.2.2-1", 20, "interface"),
    ("8.2.7-1", 25, "ul_gate"),
    ("8.2.7-2", 25, "dl_gate"),
    ("8.2.20-1", 38, "redirect_address_type"),
    ("8.2.24-1", 42, "interface"),
    ("8.2.38-2", 60, "node_id_type"),
    ("8.2.61-1", 92, "flow_direction"),
    ("8.2.64-1", 95, "description"),
    ("8.2.79-1", 113, "pdn_type"),
    ("8.2.80-1", 114, "rule_id_type"),
    ("8.2.118-1", 160, "interface_type"),
    ("8.2.124-1", 171, "steering_functionality"),
    ("8.2.125-1", 172, "steering_mode"),
    ("8.2.127-1", 174, "priority"),
    ("8.2.153-1", 219, "access_type"),
    ("8.2.153-2", 219, "availability_status"),
    ("8.2.186-1", 275, "rat_type"),
    ("8.2.227-1", 333, "transport_mode"),
    ("8.2.229-1", 335, "reporting_urgency"),
    ("8.2.233-1", 339, "media_transport_protocol"),
    ("8.2.234-1", 342, "rtp_header_extension_type"),
    ("8.2.237-1", 345, "payload_format"),
    ("8.2.241-1", 349, "format"),
    ("8.2.245-1", 353, "job_type"),
    ("8.2.255-2", 368, "action"),
    ("8.2.258-2", 371, "condition"),
    ("8.2.261-1", 374, "signaling_method"),
    ("8.2.263-1", 376, "failure_cause"),
    ("8.2.271-1", 388, "transferring_method"),
    ("8.2.277-1", 394, "remaining_data_reporting_indication"),
];

/// Tables of features that lay out the bits of a type: clause and type.
const FEATURES: [(&str, u16); 3] = [("8.2.25", 43), ("8.2.56", 84), ("8.2.58", 89)];

fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

mod row {
    //! The lines of the rows.

    use super::*;

    pub(super) fn member(table: &str, member: &Member) -> String {
        let many = if member.many { "many" } else { "once" };
        let Member {
            ie,
            presence,
            on,
            on_r17,
            ..
        } = member;
        format!(
            "member {table} {} {presence:?} {many} [{on}] R17 [{on_r17}]",
            ie.0
        )
    }

    /// A line for the bits of a field; a field of one bit has its name there.
    fn bit(ie: IeType, shift: u8, width: u32, name: &str, since: Release) -> String {
        let (octet, bit) = (shift / 8 + 5, shift % 8 + 1);
        let name = if width == 1 {
            plain(name)
        } else {
            "-".to_owned()
        };
        format!("bits {} {octet}/{bit} width {width} {name} {since}", ie.0)
    }

    /// What a field says: its bits and the flag that brings it, or its names of values.
    pub(super) fn field(leaf: &Leaf, field: &Field) -> Vec<String> {
        let mut lines = Vec::new();
        if let When::Flag { name, shift } = field.when {
            lines.push(bit(leaf.ie, shift, 1, name, field.since));
        }
        let names = match field.kind {
            Kind::Bits {
                shift,
                width,
                names,
            } => {
                lines.push(bit(leaf.ie, shift, width, field.name, field.since));
                names
            }
            Kind::Number {
                octets: 1,
                width,
                names,
            } => {
                if width < 8 && leaf.head == 0 && field.name == leaf.fields[0].name {
                    lines.push(bit(leaf.ie, 0, width, field.name, field.since));
                }
                names
            }
            _ => None,
        };
        for value in 0..=255 {
            if let Some(text) = names.and_then(|names| names(value)) {
                let since = field.values.map_or(field.since, |since| since(value));
                let since = since.max(field.since);
                let (ie, text) = (leaf.ie.0, plain(text));
                lines.push(format!("value {ie} {} {value} {text} {since}", field.name));
            }
        }
        lines
    }

    /// The octets of the fields after the head, `*` for as many as there are.
    pub(super) fn sizes(ie: IeType, head: usize, fields: &[Field]) -> String {
        let mut line = format!("octets {} {head}:", ie.0);
        for field in fields {
            let size = match field.kind {
                Kind::Number { octets, width, .. } if octets * 8 == width as usize => {
                    format!(" {octets}")
                }
                Kind::Number { octets: 1, .. } => " 1".to_owned(),
                Kind::Number { octets, width, .. } => format!(" {octets}/{width}"),
                Kind::Time | Kind::Ipv4 => " 4".to_owned(),
                Kind::Ipv6 => " 16".to_owned(),
                Kind::Mac => " 6".to_owned(),
                Kind::Text(span) | Kind::Octets(span) | Kind::Labels(span) | Kind::Digits(span) => {
                    match span {
                        Span::Length8 | Span::Address | Span::MacAddresses => " 1 *".to_owned(),
                        Span::Length16 => " 2 *".to_owned(),
                        Span::Fixed(octets) => format!(" {octets}"),
                        Span::Rest | Span::RestButLast => " *".to_owned(),
                    }
                }
                _ => String::new(),
            };
            line.push_str(&size);
        }
        line
    }

    pub(super) fn all() -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        for table in tables() {
            lines.extend(table.members.iter().map(|one| member(table.table, one)));
        }
        for ie in IeType::ALL {
            let (name, clause) = (ie.name().unwrap_or(""), ie.clause().unwrap_or(""));
            lines.insert(format!("element {} {name}, {clause} {}", ie.0, ie.since()));
        }
        for message in MessageType::ALL {
            let (name, table) = (
                message.name().unwrap_or(""),
                message.table().map(|one| one.table),
            );
            lines.insert(format!(
                "message {} {name}, {}",
                message.0,
                table.unwrap_or("")
            ));
        }
        for leaf in leaves() {
            lines.insert(sizes(leaf.ie, leaf.head, leaf.fields));
            lines.extend(leaf.fields.iter().flat_map(|one| field(leaf, one)));
        }
        lines
    }
}

/// Every table that a message or an element leads to.
fn tables() -> Vec<&'static Group> {
    let messages = MessageType::ALL.iter().filter_map(|ty| ty.table());
    let elements = IeType::ALL.iter().filter_map(|ie| match describe(*ie) {
        Some(Descriptor::Group(table)) => Some(table),
        _ => None,
    });
    let mut waiting: Vec<&'static Group> = messages.chain(elements).collect();
    let mut tables = BTreeMap::new();
    while let Some(table) = waiting.pop() {
        if tables.insert(table.table, table).is_none() {
            waiting.extend(table.members.iter().filter_map(|member| match member.what {
                Descriptor::Group(table) => Some(table),
                Descriptor::Leaf(_) => None,
            }));
        }
    }
    tables.into_values().collect()
}

fn leaves() -> impl Iterator<Item = &'static Leaf> {
    IeType::ALL.iter().filter_map(|ie| match describe(*ie) {
        Some(Descriptor::Leaf(leaf)) => Some(leaf),
        _ => None,
    })
}

mod fact {
    //! The lines of the facts.

    use super::*;

    fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
        value[key].as_array().map_or(&[], Vec::as_slice)
    }

    fn text<'a>(value: &'a Value, key: &str) -> &'a str {
        value[key].as_str().unwrap_or_default()
    }

    fn number(value: &Value, key: &str) -> u16 {
        let number = value[key]
            .as_u64()
            .and_then(|number| number.try_into().ok());
        number.unwrap_or(u16::MAX)
    }

    fn interfaces(value: &Value) -> Interfaces {
        let named = |name: &Value| {
            let named = |on: &Interfaces| Some(on.to_string().as_str()) == name.as_str();
            Interfaces::ALL.iter().find(named).expect("an interface")
        };
        let names = value["appl"].as_array().into_iter().flatten();
        names.map(named).fold(Interfaces::NONE, Interfaces::with)
    }

    /// What a table says of a type; rows of one type at several places are taken together.
    fn members(table: &Value) -> BTreeMap<u16, (&str, bool, Interfaces)> {
        let mut rows = BTreeMap::new();
        for member in list(table, "members") {
            let presence = match text(member, "presence") {
                "M" => "Mandatory",
                "C" => "Conditional",
                "O" => "Optional",
                _ => "-",
            };
            let many = member["multiple"] == Value::Bool(true);
            let on = interfaces(member);
            rows.entry(number(member, "ie_type"))
                .and_modify(|row: &mut (&str, bool, Interfaces)| {
                    *row = (row.0, true, row.2.with(on))
                })
                .or_insert((presence, many, on));
        }
        rows
    }

    /// The members of the tables, those of release 17 beside those of release 19.
    fn tables(old: &Value, new: &Value, key: &str, lines: &mut BTreeSet<String>) {
        let same = |one: &Value, other: &Value| {
            ["type", "ie_type", "context"]
                .iter()
                .all(|key| one[key] == other[key])
        };
        for table in list(new, key) {
            let before = list(old, key).iter().find(|before| same(before, table));
            let before = before.map(members).unwrap_or_default();
            let label = text(table, "table");
            for (ie, (presence, many, on)) in members(table) {
                let many = if many { "many" } else { "once" };
                let then = before.get(&ie).map_or(Interfaces::NONE, |row| row.2);
                lines.insert(format!(
                    "member {label} {ie} {presence} {many} [{on}] R17 [{then}]"
                ));
            }
            if key == "messages" {
                let name = text(table, "name").trim_start_matches("PFCP ");
                lines.insert(format!("message {} {name}, {label}", number(table, "type")));
            }
        }
    }

    fn since(old: bool) -> Release {
        if old { Release::R17 } else { Release::R19 }
    }

    fn elements(old: &Value, new: &Value, lines: &mut BTreeSet<String>) {
        let old: BTreeSet<u16> = list(old, "ie_types")
            .iter()
            .map(|ie| number(ie, "type"))
            .collect();
        for fact in list(new, "ie_types") {
            let ie = number(fact, "type");
            let clause = text(fact, "ref")
                .split_whitespace()
                .next_back()
                .unwrap_or_default();
            let clause = clause.trim_end_matches('.');
            let since = since(old.contains(&ie));
            if ie & 0x8000 == 0 {
                lines.insert(format!(
                    "element {ie} {}, {clause} {since}",
                    text(fact, "name")
                ));
            }
        }
    }

    /// The bit fields of a layout that are no spare ones: octet and bit, width, name.
    fn bits(layout: &Value) -> BTreeMap<(usize, usize), (usize, String)> {
        let mut found = BTreeMap::new();
        for row in list(layout, "rows") {
            let fields = list(row, "fields");
            let octet = text(row, "octets")
                .split(' ')
                .next()
                .and_then(|at| at.parse().ok());
            let Some(octet) = octet.filter(|_| fields.len() > 1) else {
                continue;
            };
            let drawn = |field: &Value| usize::from(number(field, "bits"));
            let right = fields.iter().map(drawn).sum::<usize>() == 8;
            let wide = WIDE
                .iter()
                .find(|(ie, at, _)| *ie == number(layout, "type") && *at == octet && !right);
            let mut bit = 1;
            for (place, field) in fields.iter().rev().enumerate() {
                let width = match wide {
                    Some((.., widths)) => widths.get(place).copied().unwrap_or(0),
                    None if right => drawn(field),
                    None => 1,
                };
                let name = plain(text(field, "name"));
                if !name.starts_with("spare") && name != "reserved" {
                    found.insert((octet, bit), (width, name));
                }
                bit += width;
            }
        }
        found
    }

    /// The octets of the fields behind a head.
    fn sizes(layout: &Value, head: usize) -> String {
        let mut line = String::new();
        for row in list(layout, "rows")
            .iter()
            .filter(|row| !list(row, "fields").is_empty())
        {
            let octets: String = text(row, "octets").split_whitespace().collect();
            let ends: Vec<Option<(String, usize)>> = octets.split("to").map(place).collect();
            let size = match &ends[..] {
                [Some((letter, at))] if letter.is_empty() && *at < head + 5 => continue,
                [Some(_)] => " 1".to_owned(),
                [Some((letter, from)), Some((same, to))] if letter == same => {
                    if letter.is_empty() && *to < head + 5 {
                        continue;
                    }
                    format!(" {}", to - from + 1)
                }
                _ => " *".to_owned(),
            };
            line.push_str(&size);
        }
        line
    }

    /// Reads `7`, `m` or `(m+3)`: the letter and the number.
    fn place(text: &str) -> Option<(String, usize)> {
        let text = text.trim_matches(['(', ')']);
        let (letter, number) = text.split_once('+').unwrap_or_else(|| {
            text.split_at(
                text.find(|next: char| next.is_ascii_digit())
                    .unwrap_or(text.len()),
            )
        });
        let known = letter.chars().all(|next| next.is_ascii_lowercase());
        let number = if number.is_empty() {
            Some(0)
        } else {
            number.parse().ok()
        };
        number
            .filter(|_| known)
            .map(|number| (letter.to_owned(), number))
    }

    fn layouts(old: &Value, new: &Value, lines: &mut BTreeSet<String>) {
        let of = |ie: u16| {
            list(old, "layouts")
                .iter()
                .find(move |one| number(one, "type") == ie)
        };
        for layout in list(new, "layouts") {
            let ie = number(layout, "type");
            let Some(Descriptor::Leaf(leaf)) = describe(IeType(ie)) else {
                continue;
            };
            let before = of(ie).map(bits);
            for ((octet, bit), (width, name)) in bits(layout) {
                let since = since(
                    before
                        .as_ref()
                        .is_some_and(|old| old.contains_key(&(octet, bit))),
                );
                let name = if width == 1 { &name } else { "-" };
                lines.insert(format!(
                    "bits {ie} {octet}/{bit} width {width} {name} {since}"
                ));
            }
            lines.insert(format!(
                "octets {ie} {}:{}",
                leaf.head,
                sizes(layout, leaf.head)
            ));
        }
    }

    /// A name as the row has it, where that is the name without what the table explains.
    fn named(name: &str, leaf: Option<&Leaf>, field: &str, value: u64) -> String {
        let row = leaf.and_then(|leaf| leaf.fields.iter().find(|one| one.name == field));
        let ours = row.and_then(|row| match row.kind {
            Kind::Bits { names, .. } | Kind::Number { names, .. } => names?(value),
            _ => None,
        });
        let shorter = [" (", " - see"]
            .iter()
            .filter_map(|cut| Some(name.split_once(cut)?.0));
        let mut all = shorter.chain([name]).map(plain);
        let fits = |short: &String| ours.is_some_and(|ours| plain(ours) == *short);
        all.find(fits).unwrap_or_else(|| plain(name))
    }

    fn values(old: &Value, new: &Value, lines: &mut BTreeSet<String>) {
        let all = |facts: &Value| -> BTreeSet<(String, String)> {
            let tables = list(facts, "enums").iter();
            let rows = tables.flat_map(|table| {
                let at =
                    text(&table["table"], "").to_owned() + table["table"][0].as_str().unwrap_or("");
                let at = if at.is_empty() {
                    text(table, "clause").to_owned()
                } else {
                    at
                };
                list(table, "values")
                    .iter()
                    .chain(list(table, "features"))
                    .map(move |row| {
                        (
                            at.clone(),
                            text(row, "value").to_owned() + text(row, "octet_bit"),
                        )
                    })
            });
            rows.collect()
        };
        let before = all(old);
        for table in list(new, "enums") {
            let at = table["table"][0].as_str().unwrap_or_default();
            for (_, ie, field) in VALUES.iter().filter(|(label, ..)| *label == at) {
                let leaf = leaves().find(|leaf| leaf.ie.0 == *ie);
                for row in list(table, "values") {
                    let (value, name) = (text(row, "value"), text(row, "name"));
                    let (Ok(number), false) = (value.parse(), plain(name).starts_with("spare"))
                    else {
                        continue;
                    };
                    let since = since(before.contains(&(at.to_owned(), value.to_owned())));
                    let since = since.max(IeType(*ie).since());
                    let name = named(name, leaf, field, number);
                    lines.insert(format!("value {ie} {field} {number} {name} {since}"));
                }
            }
            let clause = text(table, "clause");
            for (_, ie) in FEATURES.iter().filter(|(label, _)| *label == clause) {
                for row in list(table, "features") {
                    let (bit, name) = (text(row, "octet_bit"), plain(text(row, "feature")));
                    let since = since(before.contains(&(clause.to_owned(), bit.to_owned())));
                    lines.insert(format!("bits {ie} {bit} width 1 {name} {since}"));
                }
            }
        }
        let causes: BTreeSet<u16> = list(old, "causes")
            .iter()
            .map(|one| number(one, "value"))
            .collect();
        for cause in list(new, "causes") {
            let (value, name) = (number(cause, "value"), plain(text(cause, "name")));
            let since = since(causes.contains(&value));
            lines.insert(format!("value 19 cause {value} {name} {since}"));
        }
    }

    pub(super) fn all() -> Option<BTreeSet<String>> {
        let read = |release: &str, name: &str| {
            shared_json(&format!("pfcp/spec/spec_{release}_{name}.json"))
        };
        let both = |name| Some((read("r17", name)?, read("r19", name)?));
        let mut lines = BTreeSet::new();
        for (name, key) in [("messages", "messages"), ("grouped", "grouped")] {
            let (old, new) = both(name)?;
            tables(&old, &new, key, &mut lines);
        }
        let (old, new) = both("ie_types")?;
        elements(&old, &new, &mut lines);
        let (old, new) = both("layouts")?;
        layouts(&old, &new, &mut lines);
        let (old, new) = both("causes_enums")?;
        values(&old, &new, &mut lines);
        Some(lines)
    }
}

/// The facts with their corrections; none where the facts are not at hand.
fn facts() -> Option<BTreeSet<String>> {
    let mut lines = fact::all()?;
    for correction in CORRECTIONS.lines() {
        let [sign, line, reason] = correction.split('\t').collect::<Vec<_>>()[..] else {
            panic!("`{correction}` has not three columns");
        };
        assert!(!reason.is_empty(), "{line}: no reason");
        let changed = match sign {
            "-" => lines.remove(line),
            "+" => lines.insert(line.to_owned()),
            _ => panic!("`{sign}` is neither - nor +"),
        };
        assert!(changed, "`{sign} {line}` corrects nothing");
    }
    Some(lines)
}

#[test]
fn rows_are_the_facts_of_both_releases() {
    let Some(facts) = facts() else { return };
    let rows = row::all();
    let wrong: Vec<String> = facts
        .difference(&rows)
        .map(|line| format!("-\t{line}"))
        .collect();
    let more: Vec<String> = rows
        .difference(&facts)
        .map(|line| format!("+\t{line}"))
        .collect();
    let differences = [wrong, more].concat();
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

#[test]
fn a_changed_row_is_found() {
    let Some(facts) = facts() else { return };
    let mut changes = 0;
    let mut found = |line: String| {
        changes += 1;
        assert!(!facts.contains(&line), "{line}");
    };
    for table in tables() {
        for member in table.members {
            let others = [
                Presence::Mandatory,
                Presence::Conditional,
                Presence::Optional,
            ];
            for presence in others.into_iter().filter(|other| *other != member.presence) {
                found(row::member(
                    table.table,
                    &Member {
                        presence,
                        ..*member
                    },
                ));
            }
            found(row::member(
                table.table,
                &Member {
                    many: !member.many,
                    ..*member
                },
            ));
            for one in Interfaces::ALL.iter() {
                let toggled = |on: Interfaces| {
                    if on.contains(one) {
                        on.without(one)
                    } else {
                        on.with(one)
                    }
                };
                let (on, on_r17) = (toggled(member.on), toggled(member.on_r17));
                found(row::member(table.table, &Member { on, ..*member }));
                found(row::member(table.table, &Member { on_r17, ..*member }));
            }
        }
    }
    for leaf in leaves() {
        for (place, field) in leaf.fields.iter().enumerate() {
            let own = row::field(leaf, field);
            let mut changed: Vec<Field> = resized(field);
            changed.extend(moved(field));
            for change in changed {
                let lines = row::field(leaf, &change);
                let mut fields = leaf.fields.to_vec();
                fields[place] = change;
                let sizes = row::sizes(leaf.ie, leaf.head, &fields);
                let missed =
                    facts.contains(&sizes) && lines.iter().all(|line| facts.contains(line));
                assert!(!missed || lines.len() < own.len(), "{}: {field:?}", leaf.ie);
                changes += 1;
            }
        }
    }
    assert!(changes > 10_000, "only {changes} changes");
}

/// The field with another number of octets or bits.
fn resized(field: &Field) -> Vec<Field> {
    let kinds = match field.kind {
        Kind::Bits {
            shift,
            width,
            names,
        } => vec![Kind::Bits {
            shift,
            width: width + 1,
            names,
        }],
        Kind::Number {
            octets,
            width,
            names,
        } => vec![
            Kind::Number {
                octets: octets + 1,
                width: width + 8,
                names,
            },
            Kind::Number {
                octets: octets + 1,
                width,
                names,
            },
        ],
        _ => vec![Kind::Number {
            octets: 11,
            width: 88,
            names: None,
        }],
    };
    kinds
        .into_iter()
        .map(|kind| Field { kind, ..*field })
        .collect()
}

/// The field with its bit, or the flag that brings it, elsewhere or under another name.
fn moved(field: &Field) -> Vec<Field> {
    let mut changed = Vec::new();
    if let When::Flag { name, shift } = field.when {
        let when = When::Flag {
            name,
            shift: shift ^ 8,
        };
        changed.push(Field { when, ..*field });
        let when = When::Flag {
            name: "OTHER",
            shift,
        };
        changed.push(Field { when, ..*field });
        let since = if field.since == Release::R17 {
            Release::R19
        } else {
            Release::R17
        };
        changed.push(Field { since, ..*field });
    }
    if let Kind::Bits {
        shift,
        width,
        names,
    } = field.kind
    {
        let kind = Kind::Bits {
            shift: shift ^ 64,
            width,
            names,
        };
        changed.push(Field { kind, ..*field });
        let since = if field.since == Release::R17 {
            Release::R19
        } else {
            Release::R17
        };
        changed.push(Field { since, ..*field });
    }
    changed
}
