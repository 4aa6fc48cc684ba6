//! Values that a clause forbids are rejected with Cause 69 wherever the element may occur, and
//! neighbouring values are not.

use strowger_pfcp::ie::Cause;
use strowger_pfcp::ie::descriptor::{Descriptor, Group, Presence};
use strowger_pfcp::validate::{FindingKind, findings};
use strowger_pfcp::{IeType, Index, Interfaces, MessageType, MessageView, validate};

use crate::bytes::{hex, session_message, tlv};
use crate::values::{framed, leaves, tables, zeros};

/// An element, the clause, values that it forbids, and neighbouring values that it allows.
type Row = (
    IeType,
    &'static str,
    &'static [&'static str],
    &'static [&'static str],
);

const FORBIDDEN: [Row; 15] = [
    (IeType::CAUSE, "8.2.1", &["00"], &["01", "40", "ff"]),
    (IeType::SOURCE_INTERFACE, "8.2.2", &["0f"], &["00", "03"]),
    (
        IeType::F_TEID,
        "8.2.3",
        &["0000000001", "04", "0c07"],
        &["01000000017f000001", "05", "06", "0d07"],
    ),
    (
        IeType::SDF_FILTER,
        "8.2.5",
        &["01000000"],
        &["0100000161", "100000000001"],
    ),
    (
        IeType::REPORT_TYPE,
        "8.2.21",
        &["00", "80"],
        &["01", "40", "81"],
    ),
    (
        IeType::DESTINATION_INTERFACE,
        "8.2.24",
        &["0f"],
        &["00", "03"],
    ),
    (
        IeType::APPLY_ACTION,
        "8.2.26",
        &[
            "00", "0000", "03", "05", "06", "07", "08", "10", "21", "61", "0001", "0300",
        ],
        &[
            "01", "02", "04", "0c", "12", "20", "40", "82", "0008", "0018", "0201", "0407",
        ],
    ),
    (
        IeType::F_SEID,
        "8.2.37",
        &["000000000000000001", "fc0000000000000001"],
        &["0200000000000000017f000001", "06000000000000000100000001"],
    ),
    (
        IeType::NODE_ID,
        "8.2.38",
        &["02", "0300"],
        &["007f000001", "020161", "02016100", "0200"],
    ),
    (
        IeType::MEASUREMENT_METHOD,
        "8.2.40",
        &["00", "f8"],
        &["01", "04"],
    ),
    (
        IeType::OUTER_HEADER_CREATION,
        "8.2.56",
        &["0000"],
        &["0100000000017f000001", "0002", "10007f000001"],
    ),
    (
        IeType::UE_IP_ADDRESS,
        "8.2.62",
        &["00", "04", "80"],
        &["027f000001", "067f000001", "10", "20", "14"],
    ),
    (
        IeType::NODE_REPORT_TYPE,
        "8.2.69",
        &["00", "80"],
        &["01", "20"],
    ),
    (IeType::PDN_TYPE, "8.2.79", &["00", "07"], &["01", "05"]),
    (IeType::CAUSE, "8.2.1", &["0001"], &["0100"]),
];

/// The shortest body of a table and of the groups on the path, with a leaf's value in the last
/// group.
fn body(table: &Group, way: &[IeType], leaf: (IeType, &[u8])) -> Vec<u8> {
    let members = table.members.iter().filter_map(|member| {
        let value = match (way.split_first(), member.descriptor) {
            (Some((next, way)), Descriptor::Group(inner)) if *next == member.ie => {
                body(inner, way, leaf)
            }
            (None, Descriptor::Leaf(_)) if leaf.0 == member.ie => leaf.1.to_vec(),
            (_, what) if member.presence == Presence::Mandatory => match what {
                Descriptor::Group(inner) => body(inner, &[], (IeType::RESERVED, &[])),
                Descriptor::Leaf(_) => zeros(member.ie.0),
            },
            _ => return None,
        };
        Some(tlv(member.ie.0, &value))
    });
    members.collect::<Vec<_>>().concat()
}

/// The clauses that the values of an element violate, in the last group of the path.
fn clauses(bytes: &[u8], ie: IeType, way: &[IeType]) -> Vec<&'static str> {
    let mut index = Index::new();
    let view = MessageView::decode(bytes, &mut index).expect("well-formed");
    let found = findings(&view, view.message_type().interfaces());
    let mut left = view.message_type().interfaces();
    let mut clauses = Vec::new();
    for finding in found {
        if let Some(cause) = finding.kind.cause() {
            left = left.without(finding.on);
            if let FindingKind::Incorrect(clause) = finding.kind
                && finding.ie == ie
                && finding
                    .path
                    .steps()
                    .map(|step| step.ie)
                    .eq(way.iter().copied())
            {
                assert_eq!(cause, Cause::MANDATORY_IE_INCORRECT);
                clauses.push(clause);
            }
        }
    }
    // The findings equal those of the walk, with a new index and with a used one.
    let mut used = Index::new();
    for _ in 0..4 {
        let view = MessageView::decode(bytes, &mut used).expect("well-formed");
        let accepted = validate(&view, Interfaces::ALL).unwrap_or(Interfaces::NONE);
        assert_eq!(accepted, left, "{view}");
    }
    clauses
}

#[test]
fn forbidden_value_is_refused_at_every_position() {
    let mut places = 0;
    for (message, way, table) in tables() {
        let top = message.table().expect("a table");
        for (ie, clause, forbidden, allowed) in FORBIDDEN {
            let is_leaf = |what| matches!(what, Descriptor::Leaf(_));
            if !table
                .member(ie)
                .is_some_and(|member| is_leaf(member.descriptor))
            {
                continue;
            }
            places += 1;
            let of = |value: &str| {
                let bytes = framed(message, &body(top, &way, (ie, &hex(value))));
                clauses(&bytes, ie, &way)
            };
            for value in forbidden {
                assert_eq!(of(value), [clause], "{message} {way:?} {ie} {value}");
            }
            for value in allowed {
                assert!(of(value).is_empty(), "{message} {way:?} {ie} {value}");
            }
        }
    }
    assert!(places > 60, "only {places} places");
}

#[test]
fn the_cause_names_the_element_and_its_rule() {
    let far = |action: &[u8]| {
        let members = [tlv(108, &[0, 0, 0, 7]), tlv(44, action)];
        session_message(52, &tlv(3, &members.concat()))
    };
    for (action, is_right) in [(&[0][..], false), (&[5], false), (&[1], true)] {
        let bytes = far(action);
        let mut index = Index::new();
        let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
        let judged = validate(&view, Interfaces::N4);
        assert_eq!(judged.is_ok(), is_right);
        if let Err(rejection) = judged {
            assert_eq!(rejection.cause, Cause::MANDATORY_IE_INCORRECT);
            assert_eq!(rejection.offending_ie, Some(IeType::APPLY_ACTION));
            assert!(rejection.failed_rule.is_some(), "the FAR is named");
        }
    }
}

#[test]
fn no_other_element_has_forbidden_values() {
    // Each value of the first byte, in the shortest value and with more bytes after it.
    for (ie, leaf) in leaves() {
        let listed = FORBIDDEN.iter().any(|row| row.0 == ie);
        let Some((message, way, top)) = tables().find_map(|(message, way, table)| {
            let is_leaf = matches!(table.member(ie)?.descriptor, Descriptor::Leaf(_));
            is_leaf.then_some((message, way, message.table()?))
        }) else {
            continue;
        };
        let mut refused = 0;
        for first in 0..=255 {
            for more in 0..40 {
                let value = [&[first][..], &vec![0; more]].concat();
                if strowger_pfcp::ie::descriptor::canonical(ie, &value)
                    .is_none_or(|read| read.is_err())
                {
                    continue;
                }
                let bytes = framed(message, &body(top, &way, (ie, &value)));
                refused += clauses(&bytes, ie, &way).len();
                break;
            }
        }
        assert_eq!(refused > 0, listed, "{ie} {:?}", leaf.fields);
    }
    assert!(MessageType::ALL.len() > 20);
}
