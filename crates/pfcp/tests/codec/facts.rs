//! Every row as lines of text, compared with the same lines made from the facts of releases 17 and
//! 19.
//!
//! Both sides are sets of lines, and the sets must be equal: a row that changes in anything that a
//! line contains is found, and `changed_row_is_detected` changes every row in every such way. Where
//! the facts are wrong or silent, `corrections.tsv` removes a line (`-`) or adds one (`+`), with
//! the reason.

#[path = "facts/fact.rs"]
mod fact;
#[path = "facts/row.rs"]
mod row;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use strowger_pfcp::ie::descriptor::{
    Descriptor, Field, FieldExtent, FieldKind, FieldPresence, Group, Leaf, Member, Presence,
    describe,
};
use strowger_pfcp::{IeType, Interfaces, MessageType, Release};

use crate::bytes::shared_json;

/// The lines of the facts that are wrong, and the correct lines that the facts lack.
pub(crate) const CORRECTIONS: &str = include_str!("corrections.tsv");

/// Fields whose names differ from those in the drawing of their element: type, our name, and the
/// name in the drawing, or `-` and the reason why it has none.
pub(crate) const NAMES: &str = include_str!("names.tsv");

/// Bytes with bit fields whose widths in the facts do not add up to eight, and that are not one
/// bit each: type, byte, widths from bit 1 up.
const WIDE: [(u16, usize, &[usize]); 3] =
    [(134, 6, &[3, 1, 4]), (135, 6, &[3, 1, 4]), (160, 5, &[6])];

/// Tables of values: their number, and the type and the field to which they belong.
const VALUES: [(&str, u16, &str); 31] = [
    ("8.2.2-1", 20, "interface"),
    ("8.2.7-1", 25, "ul_gate"),
    ("8.2.7-2", 25, "dl_gate"),
    ("8.2.20-1", 38, "redirect_address_type"),
    ("8.2.24-1", 42, "interface"),
    ("8.2.38-2", 60, "node_id_type"),
    ("8.2.43-2", 65, "node_type"),
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

/// Tables of features that define the bits of a type: clause and type.
const FEATURES: [(&str, u16); 3] = [("8.2.25", 43), ("8.2.56", 84), ("8.2.58", 89)];

fn plain(name: &str) -> String {
    let letters = name.chars().filter(char::is_ascii_alphanumeric);
    letters.map(|letter| letter.to_ascii_lowercase()).collect()
}

/// The name without its self-evident words.
fn short(name: &str) -> String {
    let shorter = |all: String, word: &str| match all.strip_suffix(word) {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => all,
    };
    ["value", "address", "number"]
        .into_iter()
        .fold(plain(name), shorter)
}

/// Every table that is reachable from a message or an element.
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
            waiting.extend(
                table
                    .members
                    .iter()
                    .filter_map(|member| match member.descriptor {
                        Descriptor::Group(table) => Some(table),
                        Descriptor::Leaf(_) => None,
                    }),
            );
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

/// The facts with their corrections; `None` if the facts are not available.
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
fn tables_match_specification_facts_of_both_releases() {
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

/// Types and those of their fields whose names no drawing has, as listed in [`NAMES`].
fn named_otherwise() -> BTreeMap<(u16, &'static str), &'static str> {
    let row = |line: &'static str| {
        let [ie, ours, theirs] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("`{line}` has not three columns");
        };
        ((ie.parse().expect("a type"), ours), theirs)
    };
    NAMES.lines().map(row).collect()
}

#[test]
fn field_names_match_specification_figures() {
    let Some(drawn) = fact::drawn() else { return };
    let listed = named_otherwise();
    let mut other = BTreeSet::new();
    for leaf in leaves() {
        for field in leaf.fields {
            // The names of flags are checked with the bits.
            let is_flag = matches!(field.kind, FieldKind::Bits { width: 1, .. });
            if !is_flag && !drawn.contains(&(leaf.ie.0, short(field.name))) {
                other.insert((leaf.ie.0, field.name));
            }
        }
    }
    let known: BTreeSet<_> = listed.keys().copied().collect();
    let new: Vec<_> = other.difference(&known).collect();
    let idle: Vec<_> = known.difference(&other).collect();
    assert!(new.is_empty() && idle.is_empty(), "{new:?}; {idle:?}");
    for ((ie, ours), theirs) in listed {
        let is_drawn = theirs.starts_with("- ") || drawn.contains(&(ie, short(theirs)));
        assert!(is_drawn, "{ie} {ours}: the drawing has no {theirs}");
    }
}

#[test]
fn changed_row_is_detected() {
    let Some(facts) = facts() else { return };
    let mut changes = 0;
    let mut found = |line: String| {
        changes += 1;
        assert!(!facts.contains(&line), "{line}");
    };
    for table in tables() {
        for member in table.members {
            let role = Some("another name");
            found(row::role(table.table, &Member { role, ..*member }));
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

/// The field with another number of bytes or bits.
fn resized(field: &Field) -> Vec<Field> {
    let kinds = match field.kind {
        FieldKind::Bits {
            shift,
            width,
            names,
        } => vec![FieldKind::Bits {
            shift,
            width: width + 1,
            names,
        }],
        FieldKind::Number {
            bytes,
            width,
            names,
        } => vec![
            FieldKind::Number {
                bytes: bytes + 1,
                width: width + 8,
                names,
            },
            FieldKind::Number {
                bytes: bytes + 1,
                width,
                names,
            },
        ],
        _ => vec![FieldKind::Number {
            bytes: 11,
            width: 88,
            names: None,
        }],
    };
    kinds
        .into_iter()
        .map(|kind| Field { kind, ..*field })
        .collect()
}

/// The field with its bit, or the flag that announces it, in another position or under another
/// name.
fn moved(field: &Field) -> Vec<Field> {
    let mut changed = Vec::new();
    if let FieldPresence::Flag { name, shift } = field.when {
        let when = FieldPresence::Flag {
            name,
            shift: shift ^ 8,
        };
        changed.push(Field { when, ..*field });
        let when = FieldPresence::Flag {
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
    if let FieldKind::Bits {
        shift,
        width,
        names,
    } = field.kind
    {
        let kind = FieldKind::Bits {
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
