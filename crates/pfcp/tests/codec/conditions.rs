//! Every conditional member of every table: its condition is either decided from the message, or
//! listed with the reason why it cannot be.
//!
//! `conditions.tsv` has a line for each: table, type, and `decided` or one of [`REASONS`].

use std::collections::{BTreeMap, BTreeSet};

use strowger_pfcp::ie::descriptor::{Descriptor, Group, Presence, describe};
use strowger_pfcp::validate::{FindingKind, findings};
use strowger_pfcp::{IeType, Index, Interfaces, MessageType, MessageView, Release};

use crate::bytes::tlv;
use crate::values::{framed, zeros};

const LIST: &str = include_str!("conditions.tsv");

const DECIDED: &str = "decided";

/// The reasons why a condition cannot be decided from the message.
const REASONS: [(&str, &str); 5] = [
    (
        "asked",
        "it depends on what the request asked for, or on the features of both",
    ),
    (
        "changed",
        "only the sender knows what of an earlier message it changes",
    ),
    (
        "deployment",
        "it depends on features, roles and restoration sets of the nodes",
    ),
    (
        "happened",
        "only the sender knows what it measured or saw, and for which rule",
    ),
    (
        "used",
        "only the sender knows which function the session or the node is to use",
    ),
];

/// The conditional members of all tables.
fn conditional() -> BTreeSet<(&'static str, u16)> {
    fn collect(group: &'static Group, seen: &mut BTreeMap<&'static str, Vec<u16>>) {
        if group.table.is_empty() || seen.contains_key(group.table) {
            return;
        }
        let members = group.members.iter();
        let conditional = members.filter(|member| member.presence == Presence::Conditional);
        seen.insert(group.table, conditional.map(|member| member.ie.0).collect());
        for member in group.members {
            if let Descriptor::Group(inner) = member.descriptor {
                collect(inner, seen);
            }
        }
    }
    let mut seen = BTreeMap::new();
    for message in MessageType::ALL {
        collect(message.table().expect("a message has a table"), &mut seen);
    }
    for ie in IeType::ALL {
        if let Some(Descriptor::Group(group)) = describe(*ie) {
            collect(group, &mut seen);
        }
    }
    let pairs = seen.into_iter();
    pairs
        .flat_map(|(table, ies)| ies.into_iter().map(move |ie| (table, ie)))
        .collect()
}

fn listed() -> BTreeMap<(&'static str, u16), &'static str> {
    let line = |line: &'static str| {
        let mut words = line.split('\t');
        let table = words.next()?;
        Some(((table, words.next()?.parse().ok()?), words.next()?))
    };
    LIST.lines()
        .map(|text| line(text).unwrap_or_else(|| panic!("{text}")))
        .collect()
}

#[test]
fn every_conditional_member_is_checked_or_excused() {
    let (known, listed) = (conditional(), listed());
    let ours: BTreeSet<_> = listed.keys().copied().collect();
    let missing: Vec<_> = known.difference(&ours).collect();
    let surplus: Vec<_> = ours.difference(&known).collect();
    assert!(
        missing.is_empty() && surplus.is_empty(),
        "{missing:?} {surplus:?}"
    );
    for ((table, ie), word) in listed {
        let reason = REASONS.iter().find(|(name, _)| *name == word);
        assert!(word == DECIDED || reason.is_some(), "{table} {ie}: {word}");
    }
}

/// A condition: its location, an element that fulfils it, an element that does not, and the members
/// that it requires, of which one is enough.
struct Case {
    message: MessageType,
    /// The groups around it, outermost first.
    way: &'static [u16],
    table: &'static str,
    holds: Vec<u8>,
    rests: Vec<u8>,
    any: Vec<u16>,
}

fn by_flags(
    message: MessageType,
    way: &'static [u16],
    table: &'static str,
    watch: (u16, usize),
    asked: &[(u8, &[u16])],
) -> Vec<Case> {
    let value = |bit: Option<u8>| {
        let mut bytes = vec![0; watch.1];
        if let Some(bit) = bit {
            bytes[usize::from(bit / 8)] = 1 << (bit % 8);
        }
        tlv(watch.0, &bytes)
    };
    let case = |(bit, any): &(u8, &[u16])| Case {
        message,
        way,
        table,
        holds: value(Some(*bit)),
        rests: value(None),
        any: any.to_vec(),
    };
    asked.iter().map(case).collect()
}

fn by_cause(message: MessageType, table: &'static str, asked: &[(u8, u16)]) -> Vec<Case> {
    let case = |(cause, ie): &(u8, u16)| Case {
        message,
        way: &[],
        table,
        holds: tlv(19, &[*cause]),
        rests: tlv(19, &[64]),
        any: vec![*ie],
    };
    asked.iter().map(case).collect()
}

fn cases() -> Vec<Case> {
    use MessageType as M;

    let (establishment, report) = (M::SESSION_ESTABLISHMENT_REQUEST, M::SESSION_REPORT_REQUEST);
    let triggers: [(u8, &[u16]); 12] = [
        (0, &[64]),
        (1, &[31]),
        (2, &[32]),
        (3, &[71]),
        (6, &[72]),
        (7, &[82]),
        (8, &[73]),
        (9, &[74]),
        (12, &[149]),
        (13, &[148]),
        (15, &[181]),
        (17, &[117]),
    ];
    let node: [(u8, &[u16]); 7] = [
        (0, &[102]),
        (1, &[187]),
        (2, &[205]),
        (3, &[239]),
        (4, &[315]),
        (5, &[320]),
        (6, &[356]),
    ];
    let session: [(u8, &[u16]); 5] = [(0, &[83]), (1, &[80]), (2, &[99]), (4, &[201]), (5, &[214])];
    let far: [(u8, &[u16]); 2] = [(1, &[4, 301, 302]), (4, &[5])];
    let period: [(u8, &[u16]); 1] = [(0, &[64])];
    let setup = M::ASSOCIATION_SETUP_REQUEST;
    let faulty = [(66, 40), (67, 40), (69, 40)];
    let rules = [(66, 40), (67, 40), (69, 40), (73, 114), (3, 272)];
    let mut cases = vec![Case {
        message: establishment,
        way: &[1],
        table: "7.5.2.2-1",
        holds: Vec::new(),
        rests: tlv(108, &[0; 4]),
        any: vec![108, 106, 170],
    }];
    cases.extend(
        [
            by_flags(establishment, &[3], "7.5.2.3-1", (44, 2), &far),
            by_flags(establishment, &[6], "7.5.2.4-1", (37, 3), &triggers),
            by_flags(
                establishment,
                &[212, 242],
                "7.5.2.9-3",
                (244, 1),
                &[(1, &[64])],
            ),
            by_flags(setup, &[238], "7.4.4.1.3-1", (237, 1), &period),
            by_flags(setup, &[355], "7.4.4.1.4-1", (375, 1), &period),
            by_flags(report, &[80], "7.5.8.3-1", (63, 3), &[(18, &[189, 190])]),
            by_flags(report, &[], "7.5.8.1-1", (39, 1), &session),
            by_flags(M::NODE_REPORT_REQUEST, &[], "7.4.5.1.1-1", (101, 1), &node),
            by_cause(M::SESSION_ESTABLISHMENT_RESPONSE, "7.5.3.1-1", &[(1, 57)]),
            by_cause(M::SESSION_ESTABLISHMENT_RESPONSE, "7.5.3.1-1", &rules),
            by_cause(M::SESSION_MODIFICATION_RESPONSE, "7.5.5.1-1", &rules),
            by_cause(M::PFD_MANAGEMENT_RESPONSE, "7.4.3.2-1", &faulty),
            by_cause(M::PFD_MANAGEMENT_RESPONSE, "7.4.3.2-1", &[(3, 397)]),
            by_cause(M::NODE_REPORT_RESPONSE, "7.4.5.2.1-1", &faulty),
            by_cause(M::SESSION_SET_DELETION_RESPONSE, "7.4.6.2-1", &faulty),
            by_cause(M::SESSION_SET_MODIFICATION_RESPONSE, "7.4.7.2-1", &faulty),
            by_cause(M::SESSION_DELETION_RESPONSE, "7.5.7.1-1", &faulty),
            by_cause(M::SESSION_REPORT_RESPONSE, "7.5.9.1-1", &faulty),
        ]
        .into_iter()
        .flatten(),
    );
    cases
}

/// The members that a condition misses in a body, limited to those of `case`.
fn missing(case: &Case, inner: &[u8]) -> Vec<(u16, &'static str)> {
    let wrap = |body: Vec<u8>, ie: &u16| tlv(*ie, &body);
    let body = case.way.iter().rev().fold(inner.to_vec(), wrap);
    let bytes = framed(case.message, &body);
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    let found = findings(&view, Interfaces::ALL.in_release(Release::R19));
    let depth = case.way.len();
    let of_case = found
        .iter()
        .filter(|finding| finding.path.steps().count() == depth);
    let clause = of_case.filter_map(|finding| match finding.kind {
        FindingKind::ConditionalMissing(clause) => Some((finding.ie.0, clause)),
        _ => None,
    });
    clause.filter(|(ie, _)| case.any.contains(ie)).collect()
}

#[test]
fn member_is_required_exactly_when_its_condition_holds() {
    for case in cases() {
        let name = format!("{} {:?}", case.table, case.any);
        let (clause, _) = case.table.rsplit_once('-').expect("a table has a number");
        assert_eq!(
            missing(&case, &case.holds),
            [(case.any[0], clause)],
            "{name}"
        );
        assert_eq!(missing(&case, &case.rests), [], "{name} rests");
        for ie in &case.any {
            let met = [case.holds.clone(), tlv(*ie, &zeros(*ie))].concat();
            assert_eq!(missing(&case, &met), [], "{name} met by {ie}");
        }
    }
}

#[test]
fn every_checked_condition_is_tested_true_and_false() {
    let listed = listed();
    let decided = listed
        .iter()
        .filter(|(_, word)| **word == DECIDED)
        .map(|(at, _)| *at);
    let tried = cases();
    let tried = tried
        .iter()
        .flat_map(|case| case.any.iter().map(|ie| (case.table, *ie)));
    assert_eq!(decided.collect::<BTreeSet<_>>(), tried.collect());
}
