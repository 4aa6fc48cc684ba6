//! Every element up to the last that tshark knows, every group and every message: its decoder reads
//! the output of our encoder.
//!
//! `fields.tsv` maps tshark's fields to ours, `unmapped.tsv` lists fields without a counterpart on
//! one side, and `verdicts.tsv` what tshark complains about or does not know; `labels.tsv` and
//! `wording.tsv` list names of fields and values that differ. All are closed: nothing else may
//! differ, and no row may be unused.

#[path = "tshark/compare.rs"]
mod compare;
#[path = "tshark/map.rs"]
mod map;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use strowger_pfcp::ie::descriptor::{Leaf, canonical, describe};
use strowger_pfcp::{IeType, Index, Message, MessageType, MessageView, to_json};

use self::map::{Compared, Map, Row};
use crate::bytes::{node_message, tlv};
use crate::pcap::{self, Datagram};
use crate::pdml;
use crate::proof::Proof;
use crate::values::{self, Choices};

const VERDICTS: &str = include_str!("tshark/verdicts.tsv");

/// One message of ours and tshark's view of it.
struct Pair {
    ours: Value,
    theirs: pdml::Message,
}

/// Lists the rows that matched nothing.
fn unmet(map: &Map, compared: &Compared) -> Vec<map::Pair> {
    let rows: BTreeSet<map::Pair> = map.rows.iter().map(Row::pair).collect();
    let unused = rows.difference(&compared.used);
    let stale = map.unmapped.difference(&compared.unmapped);
    let unsaid = map.wording.difference(&compared.worded);
    let unnamed = map.labels.difference(&compared.labelled);
    let unmet = unused.chain(stale).chain(unsaid).chain(unnamed);
    unmet.cloned().collect()
}

/// Passes messages to tshark, in the order of their sequence numbers.
fn shown(name: &str, messages: &[Vec<u8>]) -> Vec<Pair> {
    let numbered: Vec<Vec<u8>> = (1_u32..)
        .zip(messages)
        .map(|(sequence, bytes)| numbered(bytes, sequence))
        .collect();
    let json = |bytes: &Vec<u8>| {
        let mut index = Index::new();
        to_json(&MessageView::decode(bytes, &mut index).expect("our own"))
    };
    let pairs = numbered.iter().map(json).zip(told(name, &numbered));
    pairs.map(|(ours, theirs)| Pair { ours, theirs }).collect()
}

/// Asks tshark about datagrams of one message each.
pub(crate) fn told(name: &str, datagrams: &[Vec<u8>]) -> Vec<pdml::Message> {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("{name}-{}.pcap", std::process::id()));
    let sent: Vec<Datagram> = datagrams
        .iter()
        .map(|bytes| Datagram {
            bytes: bytes.clone(),
            answer: MessageType(bytes[1]).is_response(),
        })
        .collect();
    pcap::write(&path, &sent).expect("a capture can be written");
    let mut theirs = Vec::new();
    pdml::each_message(&path, |message| theirs.push(message));
    std::fs::remove_file(&path).expect("it was written");
    assert_eq!(theirs.len(), sent.len(), "tshark sees every message");
    theirs
}

/// Gives a message a sequence number, and one in three a priority; a response directly after its
/// request gets the same number.
fn numbered(bytes: &[u8], sequence: u32) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let session = bytes[0] & 1 == 1;
    let at = if session { 12 } else { 4 };
    let answer = u32::from(MessageType(bytes[1]).is_response());
    bytes[at..at + 3].copy_from_slice(&(sequence - answer).to_be_bytes()[1..]);
    if session && sequence.is_multiple_of(3) {
        bytes[0] |= 2;
        bytes[15] = 0x50;
    }
    bytes
}

/// Known complaints and gaps of tshark: element, complaint, the required fields of ours, reason.
struct Verdicts {
    rows: Vec<[&'static str; 4]>,
    met: BTreeSet<usize>,
}

impl Verdicts {
    fn read() -> Self {
        let cells = |cells: Vec<&'static str>| {
            <[&str; 4]>::try_from(cells).expect("verdicts.tsv has four cells")
        };
        Self {
            rows: map::rows(VERDICTS).map(cells).collect(),
            met: BTreeSet::new(),
        }
    }

    /// Returns `true` if every complaint about an element is listed.
    fn excuse(&mut self, element: &Value, complaints: &[String]) -> bool {
        let ie = element["type"].to_string();
        let listed = |complaint: &String| {
            self.rows.iter().position(|[of, what, fields, _]| {
                *of == ie
                    && complaint.starts_with(what)
                    && fields
                        .split('|')
                        .any(|field| holds(&element["value"], field))
            })
        };
        let found: Option<Vec<usize>> = complaints.iter().map(listed).collect();
        let excused = found.is_some();
        self.met.extend(found.into_iter().flatten());
        excused
    }
}

/// Reads `field`, `!field`, `field=number` or `*`.
fn holds(value: &Value, condition: &str) -> bool {
    let there = |field: &str| value.get(field).is_some_and(|value| *value != false);
    if let Some((field, is)) = condition.split_once('=') {
        let is: Option<u64> = is.parse().ok();
        return is.is_some() && value.get(field).and_then(Value::as_u64) == is;
    }
    match condition.strip_prefix('!') {
        Some(field) => !there(field),
        None => condition == "*" || there(condition),
    }
}

/// Values of every leaf whose number tshark knows.
fn leaves() -> Vec<(IeType, Vec<u8>)> {
    let mut values = Vec::new();
    for (ie, what) in values::leaves() {
        if ie.0 <= map::LAST {
            for value in values::leaf_variety(what, u64::from(ie.0) << 8) {
                let value = canonical(ie, &value).expect("a row").expect("well-formed");
                values.push((ie, value));
            }
        }
    }
    values
}

/// The values of each leaf that tshark reads to the end.
type Clean = BTreeMap<IeType, Vec<Vec<u8>>>;

fn compare_leaves(map: &Map, compared: &mut Compared) -> Clean {
    let mut verdicts = Verdicts::read();
    let mut clean = Clean::new();
    let values = leaves();
    // A heartbeat leaves an element unchanged.
    let alone = |(ie, value): &(IeType, Vec<u8>)| node_message(1, &tlv(ie.0, value));
    let messages: Vec<Vec<u8>> = values.iter().map(alone).collect();
    for ((ie, value), Pair { ours, theirs }) in values.into_iter().zip(shown("leaves", &messages)) {
        let at = format!("{ie} {value:02x?}");
        let element = &ours["ies"][0];
        let complaints = &theirs.complaints;
        if complaints.is_empty() {
            clean.entry(ie).or_default().push(value);
            compare::message(map, &at, &ours, &theirs, compared);
        } else if !verdicts.excuse(element, complaints) {
            let wrong = format!("{at}: tshark says {complaints:?} of {element}");
            compared.wrong.push(wrong);
        }
    }
    let idle = (0..verdicts.rows.len()).filter(|row| !verdicts.met.contains(row));
    let idle = idle.map(|row| format!("no value meets {:?}", verdicts.rows[row]));
    compared.wrong.extend(idle);
    clean
}

/// Makes a leaf of a group: one of the values that tshark reads to the end.
fn clean_leaf(clean: &Clean, leaf: &Leaf, choices: &mut Choices<'_>) -> Vec<u8> {
    match clean.get(&leaf.ie) {
        Some(values) => values[usize::from(choices.byte()) % values.len()].clone(),
        None => values::leaf(leaf, choices),
    }
}

/// Returns `true` if the elements include, at any depth, one of which tshark reads no value to the
/// end.
fn has_unread(clean: &Clean, elements: &Value) -> bool {
    elements.as_array().into_iter().flatten().any(|element| {
        let ie = element["type"]
            .as_u64()
            .and_then(|ie| u16::try_from(ie).ok());
        let unread = |ie: u16| ie <= map::LAST && !clean.contains_key(&IeType(ie));
        match element.get("ies") {
            Some(inner) => has_unread(clean, inner),
            None => ie.is_some_and(unread),
        }
    })
}

/// Every group in a message that may contain it, then every message.
fn groups_and_messages(clean: &Clean) -> Vec<Vec<u8>> {
    let mut messages = Vec::new();
    let leaf = |leaf: &Leaf, choices: &mut Choices<'_>| clean_leaf(clean, leaf, choices);
    for (ie, (message, way)) in values::groups() {
        for round in 0..6 {
            let noise = values::noise(u64::from(ie.0) << 8 | round, 8192);
            let mut choices = Choices::readable(&noise);
            messages.push(values::message_with(message, &way, &leaf, &mut choices));
        }
    }
    for round in 0..4 {
        for message in MessageType::ALL {
            let noise = values::noise(u64::from(message.0) << 8 | round, 1 << 16);
            let mut choices = Choices::readable(&noise);
            messages.push(values::message_of(*message, &leaf, &mut choices));
        }
    }
    for bytes in &messages {
        let again = Message::decode(bytes).and_then(|message| message.encode());
        assert_eq!(again.as_ref(), Ok(bytes), "our encoder");
    }
    messages
}

#[test]
fn tshark_dissects_every_element_group_and_message_alike() {
    if !crate::tools::is_here("tshark") {
        return;
    }
    let map = Map::read();
    let mut compared = Compared::default();
    let clean = compare_leaves(&map, &mut compared);
    for Pair { ours, theirs } in shown("groups", &groups_and_messages(&clean)) {
        let at = format!("{} {}", ours["name"], theirs.frame);
        let late = |complaint: &String| complaint.contains("IE id too large");
        let complaints: Vec<_> = theirs.complaints.iter().filter(|one| !late(one)).collect();
        if complaints.is_empty() {
            compare::message(&map, &at, &ours, &theirs, &mut compared);
        } else if !has_unread(&clean, &ours["ies"]) {
            compared
                .wrong
                .push(format!("{at}: {complaints:?} of {ours}"));
        }
    }
    map.check(&compared);
    let unmet = unmet(&map, &compared);
    assert!(unmet.is_empty(), "no value meets {unmet:#?}");
    let mut proof = Proof::by("tshark");
    let mut unproven = Vec::new();
    for ie in known() {
        if compared.agreed.contains(&ie.0.to_string()) {
            proof.element(ie);
        } else {
            unproven.push(ie);
        }
    }
    assert_eq!(unproven, UNPROVEN, "verdicts.tsv and unmapped.tsv say why");
    MessageType::ALL
        .iter()
        .for_each(|message| proof.message(*message));
    proof.record();
    eprintln!(
        "{} values in {} elements agree",
        compared.values, compared.elements
    );
}

/// The elements of which tshark shows no field unchanged.
const UNPROVEN: [IeType; 3] = [
    IeType::ACCESS_AVAILABILITY_INFORMATION,
    IeType::NOTIFICATION_CORRELATION_ID,
    IeType::MULTICAST_TRANSPORT_INFORMATION,
];

/// The elements that tshark may know.
fn known() -> impl Iterator<Item = IeType> {
    let all = IeType::ALL.iter().copied();
    all.filter(|ie| ie.0 <= map::LAST && describe(*ie).is_some())
}
