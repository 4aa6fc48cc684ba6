//! Every tolerated difference in a comparison is justified by a clause, not by a deficiency of the
//! other side: such a reason can hide a mistake of ours.

use std::collections::BTreeSet;

use strowger_pfcp::{IeType, MessageType};

use crate::bytes::shared_json;
use crate::facts::{CORRECTIONS, NAMES};
use crate::go_pfcp;
use crate::rows::{LENGTHS, ROWLESS};
use crate::values::tables;

/// A list of permitted differences: its name, its text and the column of the reasons. The first
/// column is the number of an element, if it is one.
const LISTS: [(&str, &str, usize); 5] = [
    ("corrections.tsv", CORRECTIONS, 2),
    ("go_pfcp.tsv", go_pfcp::DIFFERENT, 2),
    (
        "rs_pfcp.tsv",
        include_str!("../../../../interop/rs/tests/rs_pfcp.tsv"),
        2,
    ),
    (
        "unmapped.tsv",
        include_str!("../others/tshark/unmapped.tsv"),
        3,
    ),
    (
        "verdicts.tsv",
        include_str!("../others/tshark/verdicts.tsv"),
        3,
    ),
];

/// Reasons that describe a deficiency of the other side instead of a clause.
const EXCUSES: [&str; 4] = ["it has no ", "it have no ", "it lacks ", "ours has no "];

/// A tolerated difference.
struct Waiver {
    list: &'static str,
    row: String,
    ie: Option<IeType>,
    reason: String,
}

fn waivers() -> Vec<Waiver> {
    let mut waivers = Vec::new();
    for (list, text, column) in LISTS {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('\t').collect();
            assert_eq!(cells.len(), column + 1, "{list}: {line}");
            waivers.push(Waiver {
                list,
                row: line.to_owned(),
                ie: cells[0].parse().ok().map(IeType),
                reason: cells[column].to_owned(),
            });
        }
    }
    for line in NAMES.lines() {
        let (ie, name) = line.split_once('\t').expect("three columns");
        if let Some((_, reason)) = name.split_once("\t- ") {
            waivers.push(Waiver {
                list: "names.tsv",
                row: line.to_owned(),
                ie: ie.parse().ok().map(IeType),
                reason: reason.to_owned(),
            });
        }
    }
    let lengths = LENGTHS.iter().map(|row| (row.0, row.3));
    for (ie, reason) in ROWLESS.iter().copied().chain(lengths) {
        waivers.push(Waiver {
            list: "rows.rs",
            row: format!("{ie}: {reason}"),
            ie: Some(IeType(ie)).filter(|ie| ie.clause().is_some()),
            reason: reason.to_owned(),
        });
    }
    waivers
}

/// The clauses and tables that a text names.
fn named(text: &str) -> Vec<String> {
    let numbers = text.split(['§', ' ', ',', ';', ':', '(', ')']);
    let is_number = |word: &&str| {
        word.starts_with(|first: char| first.is_ascii_digit())
            && word.contains('.')
            && word
                .chars()
                .all(|one| one.is_ascii_digit() || one == '.' || one == '-')
    };
    let numbers = numbers.filter(is_number);
    let named = numbers.filter(|number| {
        text.contains(&format!("§{number}")) || text.contains(&format!("Table {number}"))
    });
    named.map(str::to_owned).collect()
}

/// Every clause and table that defines an element, a message or a drawing.
fn known() -> BTreeSet<String> {
    // The header, the list of elements, and an element of release 15.
    let mut known: BTreeSet<String> = ["7.2.2.1", "8.1.2-1", "8.2.82", "7.4.4.7"]
        .map(str::to_owned)
        .into();
    known.extend(tables().map(|(.., table)| table.table.to_owned()));
    let messages = MessageType::ALL.iter().filter_map(|one| one.table());
    known.extend(messages.map(|table| table.table.to_owned()));
    let clauses = IeType::ALL.iter().filter_map(|ie| ie.clause());
    known.extend(clauses.flat_map(|clause| named(&format!("§{clause}"))));
    for release in ["r17", "r19"] {
        let layouts = shared_json(&format!("pfcp/spec/spec_{release}_layouts.json"));
        let layouts = layouts.iter().flat_map(|all| all["layouts"].as_array());
        let clauses = layouts.flatten().filter_map(|one| one["clause"].as_str());
        known.extend(clauses.map(str::to_owned));
    }
    known
}

#[test]
fn every_waiver_cites_a_clause() {
    let known = known();
    let mut wrong = Vec::new();
    let waivers = waivers();
    for Waiver {
        list,
        row,
        ie,
        reason,
    } in &waivers
    {
        let clauses = named(reason);
        let unknown = clauses.iter().find(|clause| !known.contains(*clause));
        if let Some(unknown) = unknown {
            wrong.push(format!("{list}: {row}: there is no {unknown}"));
        }
        let own = ie.and_then(IeType::clause);
        let is_own = own.is_none_or(|own| clauses.iter().any(|clause| own.ends_with(clause)));
        if clauses.is_empty() || !is_own {
            wrong.push(format!("{list}: {row}: name {}", own.unwrap_or("a clause")));
        }
        if EXCUSES.iter().any(|excuse| reason.contains(excuse)) {
            wrong.push(format!("{list}: {row}: what does the clause say?"));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(waivers.len() > 500, "only {} waivers", waivers.len());
}

#[test]
fn clauses_are_extracted_from_waiver_reason() {
    assert!(named("it is so").is_empty());
    assert!(named("tshark 4.0 reads 8.2.3 so").is_empty());
    assert_eq!(named("a port (§8.2.209)"), ["8.2.209"]);
    let reason = "Table 7.5.2.2-1, and §8.2.3: one";
    assert_eq!(named(reason), ["7.5.2.2-1", "8.2.3"]);
}
