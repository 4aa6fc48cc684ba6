//! A field occupies its own bytes and no others: changing any of its bits changes the value of that
//! field only, and the owned value encodes to bytes that differ in that place only.

use std::ops::Range;

use strowger_pfcp::IeType;
use strowger_pfcp::ie::Value;
use strowger_pfcp::ie::descriptor::{
    Field, FieldExtent, FieldKind, FieldPresence, Leaf, ListItemKind, canonical,
};

use crate::values::{leaf_variety, leaves};

/// The fields of a value: name, kind and value.
fn fields<'a>(leaf: &'static Leaf, value: &'a [u8]) -> Vec<(&'static str, FieldKind, Value<'a>)> {
    leaf.read(value).collect()
}

/// The bits of each field that is present, counted from the lowest bit of the first byte.
fn places(leaf: &'static Leaf, value: &[u8]) -> Vec<(&'static str, Vec<usize>)> {
    let mut at = leaf.head.min(value.len());
    let mut places = Vec::new();
    for (name, kind, says) in fields(leaf, value) {
        let bits = match (kind, says) {
            (FieldKind::Bits { shift, width, .. }, _) => of_head(shift.into(), width as usize),
            (FieldKind::Number { bytes, width, .. }, _) => {
                let all = bytes_at(&mut at, 0, bytes);
                // The lowest bits count, and those are in the last bytes.
                let counts = |bit: &usize| {
                    let below = (all.end - 1 - bit / 8) * 8 + bit % 8;
                    below < width as usize
                };
                (8 * all.start..8 * all.end).filter(counts).collect()
            }
            (_, Value::Bytes(bytes)) => {
                let before = match kind {
                    FieldKind::Text(span)
                    | FieldKind::Bytes(span)
                    | FieldKind::Labels(span)
                    | FieldKind::Digits(span)
                    | FieldKind::List(_, span) => prefix(span),
                    _ => 0,
                };
                let all = bytes_at(&mut at, before, bytes.len());
                // A length within a list is not part of its value.
                let whole = !matches!(
                    kind,
                    FieldKind::List(ListItemKind::Text | ListItemKind::Bytes, _)
                );
                (8 * all.start..8 * all.end).filter(|_| whole).collect()
            }
            (FieldKind::Signed { bytes }, _) => bits(bytes_at(&mut at, 0, bytes)),
            (FieldKind::Ipv6, _) => bits(bytes_at(&mut at, 0, 16)),
            (FieldKind::Mac, _) => bits(bytes_at(&mut at, 0, 6)),
            _ => bits(bytes_at(&mut at, 0, 4)),
        };
        places.push((name, bits));
    }
    places
}

fn bits(bytes: Range<usize>) -> Vec<usize> {
    (8 * bytes.start..8 * bytes.end).collect()
}

fn of_head(shift: usize, width: usize) -> Vec<usize> {
    let above = if width > 8 { width - 8 } else { width };
    let low = (shift / 8 + 1) * 8;
    let low = low..low + width - above;
    (shift..shift + above).chain(low).collect()
}

fn bytes_at(at: &mut usize, before: usize, bytes: usize) -> Range<usize> {
    let start = *at + before;
    *at = start + bytes;
    start..*at
}

/// The bytes before a value of variable length.
const fn prefix(span: FieldExtent) -> usize {
    match span {
        FieldExtent::Rest
        | FieldExtent::RestButLast
        | FieldExtent::Fixed(_)
        | FieldExtent::Counted => 0,
        FieldExtent::Length8
        | FieldExtent::Address
        | FieldExtent::MacAddresses
        | FieldExtent::CountedItems => 1,
        FieldExtent::Length16 => 2,
    }
}

/// Returns `true` if other fields depend on the field: their length, or their presence.
fn decides(leaf: &'static Leaf, value: &[u8], name: &str, changed: &[u8]) -> bool {
    let there = |value: &[u8]| -> Vec<bool> {
        let mut head = [0; 16];
        let bytes = leaf.head.min(value.len());
        head[..bytes].copy_from_slice(&value[..bytes]);
        let head = u128::from_le_bytes(head);
        let is_there = |field: &Field| match field.when {
            FieldPresence::Always | FieldPresence::IfBytesRemain => true,
            FieldPresence::Flag { shift, .. } => head >> shift & 1 == 1,
            FieldPresence::Head { holds, .. } => holds(head),
        };
        leaf.fields.iter().map(is_there).collect()
    };
    let counts = (leaf.ie, name) == (IeType::FQ_CSID, "number_of_csids");
    counts || there(value) != there(changed)
}

#[test]
fn changing_field_changes_only_its_bytes() {
    let mut changes = 0;
    for (ie, what) in leaves() {
        for value in leaf_variety(what, u64::from(ie.0)) {
            let value = canonical(ie, &value).expect("a row").expect("well-formed");
            for (name, bits) in places(what, &value) {
                for bit in bits {
                    let mut changed = value.clone();
                    // A flag in an omitted byte is not set.
                    let Some(byte) = changed.get_mut(bit / 8) else {
                        continue;
                    };
                    *byte ^= 1 << (bit % 8);
                    if decides(what, &value, name, &changed) {
                        continue;
                    }
                    let again = canonical(ie, &changed).expect("a row");
                    let again = again.unwrap_or_else(|error| panic!("{ie}, {name}: {error}"));
                    // Trailing bytes of flags that are not set are omitted.
                    let same = again.len().min(changed.len());
                    assert_eq!(again[..same], changed[..same], "{ie}, {name}, bit {bit}");
                    let (before, after) = (fields(what, &value), fields(what, &changed));
                    let differ = before.iter().zip(&after).filter(|(a, b)| a.2 != b.2);
                    let differ: Vec<&str> = differ.map(|(field, _)| field.0).collect();
                    assert_eq!(differ, [name], "{ie}, bit {bit}");
                    changes += 1;
                }
            }
        }
    }
    assert!(changes > 100_000, "only {changes} changes");
}
