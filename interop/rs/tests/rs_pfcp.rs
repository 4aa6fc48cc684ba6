//! Every element and message that `rs-pfcp` knows: it reads everything that we encode, and encodes
//! it into the same bytes again.
//!
//! Known differences are listed in `rs_pfcp.tsv`: nothing else may differ, and every row must
//! apply.

#[path = "../../../crates/pfcp/tests/codec/bytes.rs"]
#[allow(
    dead_code,
    reason = "the tests of the codec, whose module it is, use all that stands in it here and there"
)]
mod bytes;
#[path = "../../../crates/pfcp/tests/codec/proof.rs"]
mod proof;
#[path = "../../../crates/pfcp/tests/codec/values.rs"]
#[allow(
    dead_code,
    reason = "the tests of the codec, whose module it is, use all that stands in it here and there"
)]
mod values;

use std::collections::{BTreeMap, BTreeSet};

use strowger_interop::ELEMENTS;
use strowger_pfcp::ie::descriptor::{Descriptor, Leaf, canonical, describe};
use strowger_pfcp::{IeType, Ignore, Index, Message, MessageType, MessageView, compare};

use crate::proof::Proof;
use crate::values::Choices;

const DIFFERENT: &str = include_str!("rs_pfcp.tsv");

/// Returns values of an element: leaves without spare bits, and groups of such leaves.
fn generate_values(ie: IeType) -> Vec<Vec<u8>> {
    match describe(ie) {
        Some(Descriptor::Leaf(leaf)) => {
            let values = values::leaf_variety(leaf, u64::from(ie.0) << 8);
            let canonical = |value: &Vec<u8>| canonical(ie, value)?.ok();
            values.iter().filter_map(canonical).collect()
        }
        Some(Descriptor::Group(group)) => (0..6)
            .map(|round| {
                let noise = values::noise(u64::from(ie.0) << 8 | round, 4096);
                let mut choices = Choices::readable(&noise);
                values::group_of(group, &without_spare_bits, &mut choices)
            })
            .collect(),
        None => Vec::new(),
    }
}

fn without_spare_bits(leaf: &Leaf, choices: &mut Choices<'_>) -> Vec<u8> {
    let value = values::leaf(leaf, choices);
    let value = canonical(leaf.ie, &value).expect("a row");
    value.expect("well-formed")
}

/// The results of `rs-pfcp` for the values of one element.
#[derive(Default)]
struct Outcome {
    same: usize,
    refused: usize,
    changed: usize,
    example: String,
}

fn read_known_differences() -> BTreeSet<(String, String)> {
    let lines = DIFFERENT.lines().filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let mut cells = line.split('\t').map(str::to_owned);
        cells
            .next()
            .zip(cells.next())
            .expect("rs_pfcp.tsv has three cells")
    };
    lines.map(pair).collect()
}

#[test]
fn rs_pfcp_reads_and_encodes_what_we_encode() {
    let mut different = BTreeMap::new();
    let mut proof = Proof::by("rs-pfcp");
    for (ie, again) in ELEMENTS {
        let mut outcome = Outcome::default();
        for value in generate_values(*ie) {
            // `rs-pfcp` panics on some values.
            let said = std::panic::catch_unwind(|| again(&value));
            match said {
                Ok(Ok(bytes)) if bytes == value => outcome.same += 1,
                Ok(Ok(bytes)) => {
                    outcome.changed += 1;
                    outcome.example = format!("{bytes:02x?} for {value:02x?}");
                }
                Ok(Err(error)) => {
                    outcome.refused += 1;
                    outcome.example = format!("{error}: {value:02x?}");
                }
                Err(_) => {
                    outcome.refused += 1;
                    outcome.example = format!("panic: {value:02x?}");
                }
            }
        }
        if outcome.same > 0 {
            proof.element(*ie);
        }
        for (what, count) in [("refused", outcome.refused), ("changed", outcome.changed)] {
            if count > 0 {
                different.insert((ie.0.to_string(), what.to_owned()), outcome.example.clone());
            }
        }
    }
    for message in MessageType::ALL {
        for round in 0..6 {
            let noise = values::noise(u64::from(message.0) << 8 | round, 1 << 15);
            let mut choices = Choices::readable(&noise);
            let bytes = values::message_of(*message, &without_spare_bits, &mut choices);
            let own = Message::decode(&bytes).and_then(|message| message.encode());
            assert_eq!(own.as_ref(), Ok(&bytes), "our encoder");
            let key = |what: &str| (message.to_string(), what.to_owned());
            match rs_pfcp::message::parse(&bytes).map(|message| message.marshal()) {
                Err(error) => drop(different.insert(key("refused"), error.to_string())),
                Ok(again) => match difference(&bytes, &again) {
                    None => proof.message(*message),
                    Some(what) => drop(different.insert(key("changed"), what)),
                },
            }
        }
    }
    let listed = read_known_differences();
    let new = different.iter().filter(|(key, _)| !listed.contains(key));
    let new: Vec<_> = new
        .map(|((of, what), example)| format!("{of}\t{what}\t{example:.160}"))
        .collect();
    assert!(new.is_empty(), "{} differ:\n{}", new.len(), new.join("\n"));
    let idle: Vec<_> = listed
        .iter()
        .filter(|key| !different.contains_key(*key))
        .collect();
    assert!(idle.is_empty(), "nothing meets {idle:?}");
    proof.record();
}

/// Returns the first difference, regardless of the order of the elements.
fn difference(left: &[u8], right: &[u8]) -> Option<String> {
    let mut indexes = [Index::new(), Index::new()];
    let [first, second] = &mut indexes;
    let left = MessageView::decode(left, first).expect("our own");
    match MessageView::decode(right, second) {
        Ok(right) => compare(&left, &right, &Ignore::nothing())
            .first()
            .map(ToString::to_string),
        Err(error) => Some(error.to_string()),
    }
}
