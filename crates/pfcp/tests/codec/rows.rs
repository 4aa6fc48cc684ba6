//! The rows against the facts of the specification, which lie beside the repository.

use std::collections::BTreeMap;

use strowger_pfcp::ie::Cause;
use strowger_pfcp::ie::descriptor::{Descriptor, Group, Kind, Leaf, Presence, When, describe};
use strowger_pfcp::{IeType, Interfaces, MessageType};

use crate::octets::shared_json;

/// Where a row differs from the facts on purpose: table, type, reason.
const CORRECTIONS: &[(&str, u16, &str)] = &[
    (
        "7.5.3.1-1",
        8,
        "a response has a Created PDR for each rule; real peers send several",
    ),
    ("7.5.5.1-1", 8, "as in the establishment response"),
    (
        "7.5.5.1-1",
        252,
        "table 7.5.5.4-1 gives this report in this message the type 264; only the name is that \
         of 252",
    ),
    (
        "7.5.5.1-1",
        264,
        "the type that stands there instead of 252",
    ),
    ("7.4.4.1-1", 116, "release 15 has it, and peers send it"),
    ("7.4.4.2-1", 116, "as in the request"),
    ("7.4.4.3-1", 116, "as in the setup"),
];

/// Types without a row, and why.
const ROWLESS: &[(u16, &str)] = &[
    (0, "reserved"),
    (273, "spare"),
    (381, "not given to an element yet"),
];

/// Tables under another number than that of the facts: theirs, ours, reason.
const RENUMBERED: &[(&str, &str, &str)] = &[(
    "7.4.2.2-1",
    "7.4.7.2-1",
    "message 17 has the label of message 2 in the specification",
)];

/// Values of zeros that are longer or shorter than the octets that the specification counts:
/// type, ours, theirs, reason.
const LENGTHS: &[(u16, usize, usize, &str)] = &[
    (21, 5, 1, "without CHOOSE there is a TEID"),
    (43, 2, 1, "features have two octets at least, §8.2.25"),
    (60, 5, 1, "a node named by an IPv4 address"),
    (65, 5, 1, "a node named by an IPv4 address"),
    (98, 3, 1, "a type, then a length or two"),
    (114, 3, 1, "a packet detection rule"),
    (115, 5, 1, "the interval has four octets"),
    (144, 1, 7, "no address"),
    (145, 1, 7, "no address"),
    (
        152,
        10,
        7,
        "three lengths, a depth and an identifier of three octets",
    ),
    (278, 3, 1, "a type and flags come first"),
    (280, 0, 4, "the length says which version of IP it is"),
    (293, 1, 2, "one octet of flags; tshark reads it so"),
    (306, 7, 5, "two lengths of addresses"),
    (308, 3, 1, "without CHOOSE there is a port"),
    (317, 1, 2, "no code point"),
    (357, 5, 1, "the average is always there"),
    (393, 2, 1, "two lengths"),
];

fn interfaces(value: &serde_json::Value) -> Interfaces {
    value
        .as_array()
        .into_iter()
        .flatten()
        .fold(Interfaces::NONE, |on, name| {
            on.with(match name.as_str() {
                Some("Sxa") => Interfaces::SXA,
                Some("Sxb") => Interfaces::SXB,
                Some("Sxc") => Interfaces::SXC,
                Some("N4") => Interfaces::N4,
                Some("N4mb") => Interfaces::N4MB,
                other => panic!("interface {other:?}"),
            })
        })
}

/// What a table says about a type: presence, whether several, interfaces.
type Row = (Option<Presence>, bool, Interfaces);

/// Reads the facts of a table; rows of one type at several places are taken together.
fn facts(members: &serde_json::Value) -> BTreeMap<u16, Row> {
    let mut rows: BTreeMap<u16, Row> = BTreeMap::new();
    for member in members.as_array().expect("members") {
        let ie = member["ie_type"]
            .as_u64()
            .and_then(|ie| u16::try_from(ie).ok());
        let presence = match member["presence"].as_str() {
            Some("M") => Some(Presence::Mandatory),
            Some("C") => Some(Presence::Conditional),
            Some("O") => Some(Presence::Optional),
            _ => None,
        };
        let many = member["multiple"].as_bool().expect("a flag");
        let on = interfaces(&member["appl"]);
        rows.entry(ie.expect("a type"))
            .and_modify(|row| {
                if row.0 != presence {
                    row.0 = None;
                }
                row.1 = true;
                row.2 = row.2.with(on);
            })
            .or_insert((presence, many, on));
    }
    rows
}

fn compare(table: &Group, facts: &BTreeMap<u16, Row>, differences: &mut Vec<String>) {
    let corrected = |ie: u16| {
        CORRECTIONS
            .iter()
            .any(|(at, number, _)| *at == table.table && *number == ie)
    };
    for member in table.members {
        let same = facts.get(&member.ie.0).is_some_and(|(presence, many, on)| {
            presence.is_none_or(|presence| presence == member.presence)
                && *many == member.many
                && *on == member.on
        });
        if !same && !corrected(member.ie.0) {
            differences.push(format!("{}: {} differs", table.table, member.ie));
        }
    }
    for ie in facts
        .keys()
        .filter(|ie| table.member(IeType(**ie)).is_none() && !corrected(**ie))
    {
        differences.push(format!("{}: {} is missing", table.table, IeType(*ie)));
    }
}

/// Every table that a message or an element leads to, by number.
fn tables() -> BTreeMap<&'static str, &'static Group> {
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
    tables
}

#[test]
fn members_are_those_of_the_tables() {
    let (Some(messages), Some(groups)) = (
        shared_json("pfcp/spec/spec_r19_messages.json"),
        shared_json("pfcp/spec/spec_r19_grouped.json"),
    ) else {
        return;
    };
    let tables = tables();
    let mut differences = Vec::new();
    for message in messages["messages"].as_array().expect("messages") {
        let number = message["type"]
            .as_u64()
            .and_then(|number| u8::try_from(number).ok());
        let table = MessageType(number.expect("a type")).table();
        let table = table.expect("every message has a table");
        // Version Not Supported Response has no table.
        let label = message["table"].as_str().unwrap_or(table.table);
        let renumbered = RENUMBERED.contains(&(label, table.table, RENUMBERED[0].2));
        assert!(label == table.table || renumbered, "{label}");
        compare(table, &facts(&message["members"]), &mut differences);
    }
    for group in groups["grouped"].as_array().expect("groups") {
        let label = group["table"].as_str().expect("a label");
        match tables.get(label) {
            Some(table) => {
                assert_eq!(
                    table.ie.map(|ie| u64::from(ie.0)),
                    group["ie_type"].as_u64()
                );
                compare(table, &facts(&group["members"]), &mut differences);
            }
            None => differences.push(format!("{label} is missing")),
        }
    }
    assert_eq!(differences, Vec::<String>::new());
}

#[test]
fn every_element_has_a_row() {
    let rowless: Vec<u16> = IeType::ALL
        .iter()
        .filter(|ie| describe(**ie).is_none())
        .map(|ie| ie.0)
        .collect();
    let expected: Vec<u16> = ROWLESS.iter().map(|(ie, _)| *ie).collect();
    assert_eq!(rowless, expected);
}

#[test]
fn names_are_those_of_the_specification() {
    let Some(types) = shared_json("pfcp/spec/spec_r19_ie_types.json") else {
        return;
    };
    let types = types["ie_types"].as_array().expect("types");
    for fact in types {
        let number = fact["type"]
            .as_u64()
            .and_then(|number| u16::try_from(number).ok());
        let ie = IeType(number.expect("a type"));
        // Reserved numbers keep what peers use them for.
        if ie != IeType::USER_PLANE_IP_RESOURCE_INFORMATION {
            assert_eq!(ie.name(), fact["name"].as_str(), "{ie:?}");
        }
    }
    assert_eq!(
        IeType::ALL.len(),
        types
            .iter()
            .filter(|fact| fact["type"].as_u64() < Some(0x8000))
            .count()
    );
    let Some(causes) = shared_json("pfcp/spec/spec_r19_causes_enums.json") else {
        return;
    };
    for fact in causes["causes"].as_array().expect("causes") {
        let number = fact["value"]
            .as_u64()
            .and_then(|number| u8::try_from(number).ok());
        let name = fact["name"].as_str().map(|name| name.trim_end_matches('.'));
        assert_eq!(Cause(number.expect("a value")).name(), name);
    }
}

#[test]
fn leaves_need_the_octets_that_the_specification_fixes() {
    let Some(types) = shared_json("pfcp/spec/spec_r19_ie_types.json") else {
        return;
    };
    let mut differences = Vec::new();
    for fact in types["ie_types"].as_array().expect("types") {
        let number = fact["type"]
            .as_u64()
            .and_then(|number| u16::try_from(number).ok());
        let ie = IeType(number.expect("a type"));
        let Some(Descriptor::Leaf(leaf)) = describe(ie) else {
            continue;
        };
        let fixed = fact["min_fixed_octets"]
            .as_str()
            .and_then(|octets| octets.parse().ok());
        if fixed.is_some_and(|fixed: usize| fixed != least(leaf)) {
            differences.push((ie.0, least(leaf), fixed.unwrap_or(0)));
        }
    }
    let expected: Vec<(u16, usize, usize)> = LENGTHS
        .iter()
        .map(|(ie, ours, theirs, _)| (*ie, *ours, *theirs))
        .collect();
    assert_eq!(differences, expected);
}

/// Finds the shortest value of zeros that is well-formed.
fn least(leaf: &Leaf) -> usize {
    let zeros = [0; 64];
    let fits = |octets: &usize| {
        strowger_pfcp::ie::descriptor::canonical(leaf.ie, &zeros[..*octets])
            .is_some_and(|value| value.is_ok())
    };
    (0..zeros.len()).find(fits).unwrap_or(zeros.len())
}

/// Octets whose bits the specification draws with a sum other than eight: type and octet.
const MISDRAWN: &[(u16, u64)] = &[
    (39, 5),
    (90, 5),
    (100, 5),
    (133, 5),
    (134, 5),
    (134, 6),
    (135, 5),
    (135, 6),
    (137, 5),
    (160, 5),
    (179, 5),
    (194, 5),
    (204, 5),
    (224, 5),
    (289, 5),
];

/// Bits that are no fields: type, name, reason.
const NO_FIELDS: &[(u16, &str, &str)] = &[
    (
        306,
        "Address Type",
        "follows from the length of the address",
    ),
    (306, "Address Length", "is that of the address"),
    (317, "DSCP Value 1", "one of a list"),
    (317, "DSCP Value 2", "one of a list"),
];

/// Bits of a leaf at a shift: those of its head, its flags, or a number in its first octet.
fn has_bits(leaf: &Leaf, shift: u64, width: u64) -> bool {
    leaf.fields.iter().any(|field| {
        let flag = matches!(field.when, When::Flag { shift: at, .. } if u64::from(at) == shift);
        let bits = match field.kind {
            Kind::Bits {
                shift: at,
                width: bits,
                ..
            } => u64::from(at) == shift && u64::from(bits) == width,
            Kind::Number {
                octets: 1,
                width: bits,
                ..
            } => leaf.head == 0 && shift == 0 && u64::from(bits) == width,
            _ => false,
        };
        bits || (flag && width == 1)
    })
}

#[test]
fn bits_are_those_of_the_layouts() {
    let Some(layouts) = shared_json("pfcp/spec/spec_r19_layouts.json") else {
        return;
    };
    let (mut differences, mut misdrawn) = (Vec::new(), Vec::new());
    for layout in layouts["layouts"].as_array().expect("layouts") {
        let ie = layout["type"]
            .as_u64()
            .and_then(|ie| u16::try_from(ie).ok());
        let Some(Descriptor::Leaf(leaf)) = ie.and_then(|ie| describe(IeType(ie))) else {
            continue;
        };
        for row in layout["rows"].as_array().expect("rows") {
            let octet = row["octets"].as_str().and_then(|at| at.parse::<u64>().ok());
            let fields = row["fields"].as_array().map_or(&[][..], Vec::as_slice);
            let width = |field: &serde_json::Value| field["bits"].as_u64().unwrap_or(0);
            let Some(octet) = octet.filter(|_| fields.len() > 1) else {
                continue;
            };
            if fields.iter().map(width).sum::<u64>() != 8 {
                misdrawn.push((leaf.ie.0, octet));
                continue;
            }
            let mut shift = 8 * (octet - 5) + 8;
            for field in fields {
                shift -= width(field);
                let name = field["name"].as_str().unwrap_or_default();
                let named = !name.starts_with("Spare") && name != "Reserved";
                if named && !has_bits(leaf, shift, width(field)) {
                    differences.push((leaf.ie.0, name));
                }
            }
        }
    }
    let expected: Vec<(u16, &str)> = NO_FIELDS.iter().map(|(ie, name, _)| (*ie, *name)).collect();
    assert_eq!(differences, expected);
    assert_eq!(misdrawn, MISDRAWN);
}
