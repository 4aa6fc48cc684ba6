//! Text for people: every element by its name, every field by its own.

use std::collections::{BTreeMap, BTreeSet};

use strowger_pfcp::ie::descriptor::{
    Descriptor, Field, FieldExtent, FieldKind, FieldPresence, Group, Leaf, ListItemKind, canonical,
    describe,
};
use strowger_pfcp::{IeType, Index, MessageType, MessageView};

use crate::bytes::{node_message, session_message, tlv};

/// Makes a value with the bits of a head and every field that they announce.
fn value(leaf: &Leaf, head: &[u8]) -> Vec<u8> {
    let mut bytes = head.to_vec();
    let mut bits = [0; 16];
    bits[..head.len()].copy_from_slice(head);
    let bits = u128::from_le_bytes(bits);
    for field in leaf.fields {
        let there = match field.when {
            FieldPresence::Always | FieldPresence::IfBytesRemain => true,
            FieldPresence::Flag { shift, .. } => bits >> shift & 1 == 1,
            FieldPresence::Head { holds, .. } => holds(bits),
        };
        if there {
            bytes.extend(filling(field, bits));
        }
    }
    bytes
}

fn filling(field: &Field, head: u128) -> Vec<u8> {
    match field.kind {
        FieldKind::Number { bytes, .. } | FieldKind::Signed { bytes } => vec![1; bytes],
        FieldKind::Time | FieldKind::Ipv4 => vec![1; 4],
        FieldKind::Ipv6 => vec![1; 16],
        FieldKind::Mac => vec![1; 6],
        FieldKind::List(ListItemKind::Text, _) => vec![0, 3, 0, 1, b'a'],
        FieldKind::List(ListItemKind::Bytes, _) => vec![1, 0, 1, 1],
        FieldKind::Text(span)
        | FieldKind::Bytes(span)
        | FieldKind::Labels(span)
        | FieldKind::Digits(span)
        | FieldKind::List(_, span) => match span {
            FieldExtent::Fixed(bytes) => vec![1; usize::from(bytes)],
            FieldExtent::Length8 => vec![2, 1, 1],
            FieldExtent::Length16 => vec![0, 2, 1, 1],
            FieldExtent::Address => vec![4, 1, 1, 1, 1],
            FieldExtent::MacAddresses => vec![1, 1, 1, 1, 1, 1, 1],
            FieldExtent::CountedItems => vec![1, 0, 0],
            FieldExtent::Rest => vec![1, b'a'],
            FieldExtent::RestButLast => vec![1],
            FieldExtent::Counted => [0, 1].repeat(usize::from(head.to_le_bytes()[0] & 0xf)),
        },
        _ => Vec::new(),
    }
}

/// Heads that together announce every field: all values of the first byte with the others empty,
/// each bit of the others, and all bits.
fn heads(bytes: usize) -> Vec<Vec<u8>> {
    if bytes == 0 {
        return vec![Vec::new()];
    }
    let mut heads = vec![vec![0xff; bytes]];
    for first in 0..=255 {
        let mut head = vec![0; bytes];
        head[0] = first;
        heads.push(head);
    }
    for bit in 8..8 * bytes {
        let mut head = vec![0; bytes];
        head[bit / 8] = 1 << (bit % 8);
        heads.push(head);
    }
    heads
}

/// Only the letters and digits, which the name of a field and its words have in common.
fn plain(text: &str) -> String {
    let text = text.replace("tgpp", "3gpp");
    text.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}

/// The line of an element in a message without elements, and its fields in JSON.
fn shown(ie: IeType, value: &[u8]) -> (String, Vec<String>) {
    let bytes = node_message(11, &tlv(ie.0, value));
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    let text = view.to_string();
    let line = text.lines().nth(1).expect("a line for each element");
    (line.trim().to_owned(), json_fields(&view, ie))
}

#[cfg(feature = "serde")]
fn json_fields(view: &MessageView<'_>, ie: IeType) -> Vec<String> {
    let json = strowger_pfcp::to_json(view);
    let element = &json["ies"][0];
    assert_eq!(element["name"], ie.to_string());
    let value = element["value"].as_object().expect("fields");
    value.keys().cloned().collect()
}

#[cfg(not(feature = "serde"))]
fn json_fields(_: &MessageView<'_>, _: IeType) -> Vec<String> {
    Vec::new()
}

#[test]
fn every_leaf_is_shown_by_name_and_by_the_names_of_its_fields() {
    for ie in IeType::ALL {
        let Some(Descriptor::Leaf(leaf)) = describe(*ie) else {
            continue;
        };
        let mut missing: BTreeMap<&str, (bool, bool)> = leaf
            .fields
            .iter()
            .map(|field| (field.name, (true, cfg!(feature = "serde"))))
            .collect();
        for head in heads(leaf.head) {
            let value = value(leaf, &head);
            if canonical(*ie, &value).expect("a row").is_err() {
                continue;
            }
            let (line, keys) = shown(*ie, &value);
            let start = format!("{ie} ({}) (unexpected): ", ie.0);
            let fields = line.strip_prefix(&start);
            let fields = fields.unwrap_or_else(|| panic!("{ie}: {line}"));
            assert!(!fields.is_empty(), "{ie}: {line}");
            let fields = plain(fields);
            for (name, (text, json)) in &mut missing {
                // A field without siblings is shown without its name.
                let alone = leaf.fields.len() == 1;
                *text &= !alone && !fields.contains(&plain(name));
                *json &= !keys.iter().any(|key| key.eq_ignore_ascii_case(name));
            }
        }
        missing.retain(|_, (text, json)| *text || *json);
        assert!(missing.is_empty(), "{ie}: {missing:?}");
    }
}

/// Makes every member of a table once, at every depth.
fn members(table: &Group, seen: &mut BTreeSet<IeType>) -> Vec<u8> {
    let member = |member: &strowger_pfcp::ie::descriptor::Member| {
        seen.insert(member.ie);
        let value = match member.descriptor {
            Descriptor::Group(inner) => members(inner, seen),
            Descriptor::Leaf(leaf) => {
                let mut values = heads(leaf.head).into_iter().map(|head| value(leaf, &head));
                let well_formed =
                    |value: &Vec<u8>| canonical(leaf.ie, value).is_some_and(|v| v.is_ok());
                values.find(well_formed).expect("some head is right")
            }
        };
        tlv(member.ie.0, &value)
    };
    table.members.iter().flat_map(member).collect()
}

#[test]
fn every_message_is_shown_with_each_of_its_members() {
    let mut all = BTreeSet::new();
    for message in MessageType::ALL {
        let mut seen = BTreeSet::new();
        let body = members(message.table().expect("a table"), &mut seen);
        let bytes = if message.is_session() {
            session_message(message.0, &body)
        } else {
            node_message(message.0, &body)
        };
        let mut index = Index::new();
        let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
        let text = view.to_string();
        for ie in &seen {
            let line = format!(" {ie} ({})", ie.0);
            assert!(text.contains(&line), "{message}: {ie}");
        }
        assert!(
            !text.contains("unexpected") && !text.contains("again"),
            "{text}"
        );
        #[cfg(feature = "serde")]
        {
            let json = strowger_pfcp::to_json(&view);
            let text = json.to_string();
            for ie in &seen {
                assert!(
                    text.contains(&format!("\"name\":\"{ie}\"")),
                    "{message}: {ie}"
                );
            }
            assert!(!text.contains("\"hex\""), "{message}: {text}");
            assert_eq!(strowger_pfcp::from_json(&json).expect("its own"), bytes);
        }
        all.extend(seen);
    }
    let left: Vec<IeType> = IeType::ALL
        .iter()
        .filter(|ie| !all.contains(ie) && !matches!(describe(**ie), Some(Descriptor::Leaf(_))))
        .copied()
        .collect();
    // The remaining elements have neither fields nor members: each is shown by its name and bytes.
    assert!(left.iter().all(|ie| describe(*ie).is_none()), "{left:?}");
    for ie in left {
        let bytes = node_message(11, &tlv(ie.0, &[1, 2]));
        let mut index = Index::new();
        let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
        let text = view.to_string();
        let line = text.lines().nth(1).unwrap_or_default().trim();
        assert_eq!(
            line,
            format!("{ie} ({}) (unexpected): 0x0102, 2 bytes", ie.0)
        );
    }
}

#[test]
fn text_shows_units_names_and_flags() {
    for (ie, value, wanted) in [
        (
            26,
            &[0, 0, 0, 3, 0xe8, 0, 0, 0, 7, 0xd0][..],
            "UL MBR 1000 kbit/s, DL MBR 2000 kbit/s",
        ),
        (31, &[1, 0, 0, 0, 0, 0, 0, 4, 0], "total volume 1024 bytes"),
        (32, &[0, 0, 0, 60], "60 s"),
        (44, &[0x0c], "BUFF, NOCP"),
        (44, &[0, 0], "none"),
        (46, &[4], "4 (200 ms)"),
        (53, &[50], "50 %"),
        (108, &[0x80, 0, 0, 7], "2147483655 (predefined rule 7)"),
        (136, &[0x08, 0x00], "0x0800"),
        (IeType::AVERAGE_PACKET_DELAY.0, &[0, 0, 0, 9], "9 ms"),
        (20, &[1], "Core (1)"),
        (22, b"internet", "internet"),
        (22, b"\x08internet\x03ims", "internet.ims (as labels)"),
        (20, &[9], "9"),
        (
            21,
            &[1, 0, 0, 0, 7, 127, 0, 0, 1],
            "V4, TEID 0x00000007, IPv4 127.0.0.1",
        ),
        (21, &[0x0d, 5], "V4, CHOOSE, CHOOSE ID 5"),
        (
            60,
            &[2, 3, b's', b'm', b'f'],
            "node ID type FQDN (2), FQDN smf",
        ),
        (96, &[0xe8, 0x1f, 0xe7, 0xb4], "2023-05-30T03:10:44Z"),
    ] {
        let name = IeType(ie);
        let (line, _) = shown(name, value);
        let (_, fields) = line.split_once(": ").expect("a value");
        assert_eq!(fields, wanted, "{name}");
    }
}

#[test]
fn unknown_elements_are_shown_as_hex_with_length() {
    let vendor = tlv(0x8001, &[0, 9, 0xab]);
    let bytes = node_message(1, &[tlv(96, &[0; 4]), tlv(999, &[]), vendor].concat());
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    let text = view.to_string();
    let lines: Vec<&str> = text.lines().skip(2).map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "IE 999 (999) (unexpected): 0x, 0 bytes",
            "IE 32769 (32769) of enterprise 9 (unexpected): 0xab, 1 byte",
        ]
    );
}
