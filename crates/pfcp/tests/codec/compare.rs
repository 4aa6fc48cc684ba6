//! Comparisons of messages: the differences that count, and those that do not.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::Config as ProptestConfig;
use strowger_pfcp::compare::DifferenceKind;
use strowger_pfcp::ie::descriptor::{Descriptor, FieldKind, Group, Leaf, canonical, describe};
use strowger_pfcp::ie::{
    ApplyAction, Cause, CreateFar, CreatePdr, CreatedPdr, FTeid, Pdi, SourceInterface, UeIpAddress,
};
use strowger_pfcp::message::{SessionEstablishmentRequest, SessionEstablishmentResponse};
use strowger_pfcp::wire::{Part, Tlvs};
use strowger_pfcp::{
    Difference, IeType, Ignore, Index, Message, MessageType, MessageView, Seid, Sequence, compare,
};

use crate::bytes::{node_message, session_message, tlv};
use crate::values::{Choices, group};

fn differences(left: &[u8], right: &[u8], ignore: &Ignore) -> Vec<Difference> {
    let mut indexes = [Index::new(), Index::new()];
    let [first, second] = &mut indexes;
    let left = MessageView::decode(left, first).expect("well-formed");
    let right = MessageView::decode(right, second).expect("well-formed");
    compare(&left, &right, ignore)
}

fn lines(left: &Message, right: &Message, ignore: &Ignore) -> Vec<String> {
    let differences = left.differences(right, ignore).expect("short");
    differences.iter().map(ToString::to_string).collect()
}

fn pdr(id: u16, teid: u32) -> CreatePdr {
    let address: std::net::IpAddr = [127, 0, 0, 1].into();
    let pdi = Pdi::new(SourceInterface::ACCESS)
        .local_f_teid((teid, address))
        .ue_ip_addresses([UeIpAddress::source([10, 45, 0, 2].into())]);
    CreatePdr::new(id, pdi).precedence(100).far_id(1)
}

fn establishment(pdrs: impl IntoIterator<Item = CreatePdr>) -> Message {
    let address: std::net::IpAddr = [127, 0, 0, 1].into();
    let body = SessionEstablishmentRequest::new(address, (7, address))
        .create_pdrs(pdrs)
        .create_fars([CreateFar::new(1, ApplyAction::DROP)]);
    Message::session(Seid(0), Sequence::new(1), body)
}

#[test]
fn rules_are_paired_by_id_not_position() {
    let left = establishment([pdr(1, 1), pdr(2, 2), pdr(3, 3)]);
    let right = establishment([pdr(4, 4), pdr(3, 3), pdr(2, 9)]);
    assert_eq!(
        lines(&left, &right, &Ignore::nothing()),
        [
            "Session Establishment Request / Create PDR[0] (PDR ID 1): removed",
            "Session Establishment Request / Create PDR[1] (PDR ID 2) / PDI / F-TEID: \
             TEID 0x00000002 -> 0x00000009",
            "Session Establishment Request / Create PDR[0] (PDR ID 4): added",
        ]
    );
}

#[test]
fn added_or_removed_element_is_shown_with_value() {
    let left = establishment([pdr(1, 1)]);
    let right = establishment([pdr(1, 1).far_id(2).qer_ids([5])]);
    assert_eq!(
        lines(&left, &right, &Ignore::nothing()),
        [
            "Session Establishment Request / Create PDR[0] (PDR ID 1) / FAR ID: 1 -> 2",
            "Session Establishment Request / Create PDR[0] (PDR ID 1) / QER ID[0]: added 5",
        ]
    );
}

#[test]
fn long_identifier_is_not_repeated_per_difference() {
    const CONTEXTS: usize = 1500;
    let message = |text: u8| {
        let contents = tlv(IeType::PFD_CONTENTS.0, &[1, 0, 0, 1, text]);
        let context = tlv(IeType::PFD_CONTEXT.0, &contents);
        let name = tlv(IeType::APPLICATION_ID.0, &vec![b'n'; 30_000]);
        let members = [name, context.repeat(CONTEXTS)].concat();
        node_message(3, &tlv(IeType::APPLICATION_IDS_PFDS.0, &members))
    };
    let found = differences(&message(b'a'), &message(b'b'), &Ignore::nothing());
    assert_eq!(found.len(), CONTEXTS);
    let group = format!(
        "Application ID's PFDs[0] (Application ID {}…)",
        "n".repeat(64)
    );
    let last = format!("PFD Management Request / {group} / PFD context[1499] / PFD contents[0]: ");
    let text = found[CONTEXTS - 1].to_string();
    assert!(text.starts_with(&last), "{text}");
    let all: usize = found.iter().map(|one| one.to_string().len()).sum();
    assert!(all < CONTEXTS * 256, "{all} bytes");
}

#[test]
fn flag_set_compares_as_one_field() {
    let message = |action| {
        let address: std::net::IpAddr = [127, 0, 0, 1].into();
        let body = SessionEstablishmentRequest::new(address, (7, address))
            .create_pdrs([pdr(1, 1)])
            .create_fars([CreateFar::new(1, action)]);
        Message::session(Seid(0), Sequence::new(1), body)
    };
    let (left, right) = (
        message(ApplyAction::DROP),
        message(ApplyAction::BUFF | ApplyAction::NOCP),
    );
    assert_eq!(
        lines(&left, &right, &Ignore::nothing()),
        [
            "Session Establishment Request / Create FAR[0] (FAR ID 1) / Apply Action: \
          DROP -> BUFF, NOCP"
        ]
    );
}

#[test]
fn ignored_items_are_left_out() {
    let address: std::net::IpAddr = [127, 0, 0, 1].into();
    let body = SessionEstablishmentRequest::new(address, (8, address))
        .create_pdrs([pdr(1, 2)])
        .create_fars([CreateFar::new(1, ApplyAction::DROP)]);
    let left = establishment([pdr(1, 1)]);
    let right = Message::session(Seid(3), Sequence::new(2), body);
    let count = |ignore: Ignore| lines(&left, &right, &ignore).len();
    assert_eq!(count(Ignore::nothing()), 4);
    assert_eq!(count(Ignore::nothing().sequences()), 3);
    assert_eq!(count(Ignore::nothing().sequences().seids()), 1);
    assert_eq!(count(Ignore::runs()), 0);
    let rest = Ignore::nothing().sequences().seids();
    assert_eq!(count(rest.clone().ie(IeType::F_TEID)), 0);
    assert_eq!(count(rest.clone().ie(IeType::CREATE_PDR)), 0);
    assert_eq!(count(rest.clone().path(&[IeType::PDI, IeType::F_TEID])), 0);
    assert_eq!(
        count(rest.clone().path(&[IeType::CREATE_FAR, IeType::F_TEID])),
        1
    );
    assert_eq!(count(rest.path(&[])), 1);
}

#[test]
fn choose_flag_counts_when_addresses_are_ignored() {
    let mut asking = pdr(1, 1);
    asking.pdi = asking.pdi.local_f_teid(FTeid::choose_ipv4());
    let (left, right) = (establishment([pdr(1, 1)]), establishment([asking]));
    assert_eq!(
        lines(&left, &right, &Ignore::runs()),
        [
            "Session Establishment Request / Create PDR[0] (PDR ID 1) / PDI / F-TEID: \
          CHOOSE false -> true"
        ]
    );
}

#[test]
fn created_tunnels_are_paired_by_position() {
    let address: std::net::IpAddr = [127, 0, 0, 1].into();
    let message = |teids: [u32; 2]| {
        let created = CreatedPdr::new(1).f_teids(teids.map(|teid| FTeid::new(teid, address)));
        let body = SessionEstablishmentResponse::new(address, Cause(1)).created_pdrs([created]);
        Message::session(Seid(1), Sequence::new(1), body)
    };
    let count = |right| lines(&message([1, 2]), &message(right), &Ignore::nothing()).len();
    assert_eq!(count([1, 2]), 0);
    assert_eq!(count([2, 1]), 2);
}

#[test]
fn spare_bits_and_trailing_bytes_count_unless_ignored() {
    let message = |interface: &[u8]| {
        let pdi = tlv(2, &tlv(20, interface));
        session_message(50, &tlv(1, &[tlv(56, &[0, 1]), pdi].concat()))
    };
    let texts = |ignore: &Ignore| -> Vec<String> {
        let differences = differences(&message(&[0]), &message(&[0xf0, 7]), ignore);
        differences.iter().map(ToString::to_string).collect()
    };
    let place = "Session Establishment Request / Create PDR[0] (PDR ID 1) / PDI / Source Interface";
    assert_eq!(
        texts(&Ignore::nothing()),
        [
            format!("{place}: spare bits none -> 0xf0"),
            format!("{place}: trailing bytes none -> 0x07"),
        ]
    );
    assert!(texts(&Ignore::nothing().spare_bits()).is_empty());
}

#[test]
fn different_message_types_stop_comparison() {
    let bytes = [
        node_message(1, &tlv(96, &[0; 4])),
        node_message(2, &tlv(96, &[1; 4])),
    ];
    let differences = differences(&bytes[0], &bytes[1], &Ignore::nothing());
    let texts: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["Heartbeat Request: message Heartbeat Request -> Heartbeat Response"]
    );
}

#[test]
fn message_full_of_elements_is_compared() {
    let message = |ie: u16, byte: u8| {
        let element = tlv(ie, &[byte]);
        session_message(50, &element.repeat(65_500 / element.len()))
    };
    let count = |left: &[u8], right: &[u8]| differences(left, right, &Ignore::nothing()).len();
    let elements = 65_500 / 5;
    assert_eq!(count(&message(999, 1), &message(999, 2)), elements);
    assert_eq!(count(&message(999, 1), &message(998, 1)), 2 * elements);
    assert_eq!(count(&message(999, 1), &message(999, 1)), 0);
}

/// The elements in another order at every depth. Where the position of an element carries meaning,
/// the elements of its type stay in order.
fn shuffled(bytes: &[u8], table: Option<&Group>, choices: &mut Choices<'_>) -> Vec<u8> {
    let mut members: Vec<(u8, IeType, Vec<u8>)> = Tlvs::new(bytes)
        .map(|found| {
            let found = found.expect("well-formed");
            let inner = match table.and_then(|table| table.member(found.ie)) {
                Some(member) => member.descriptor,
                None => return (0, found.ie, tlv(found.ie.0, found.value)),
            };
            let value = match inner {
                Descriptor::Group(inner) => shuffled(found.value, Some(inner), choices),
                Descriptor::Leaf(_) => found.value.to_vec(),
            };
            let key = if found.ie == IeType::F_TEID {
                7
            } else {
                choices.byte()
            };
            (key, found.ie, tlv(found.ie.0, &value))
        })
        .collect();
    members.sort_by_key(|(key, ..)| *key);
    members.into_iter().flat_map(|(.., bytes)| bytes).collect()
}

fn message(message_type: MessageType, body: &[u8]) -> Vec<u8> {
    if message_type.is_session() {
        session_message(message_type.0, body)
    } else {
        node_message(message_type.0, body)
    }
}

/// Every leaf of a message, with the groups around it.
fn leaves<'a>(part: Part<'a>, way: &[IeType], out: &mut Vec<(Part<'a>, &'static Leaf, bool)>) {
    for part in part.parts() {
        let way = [way, &[part.ie()]].concat();
        match part.descriptor() {
            Some(Descriptor::Group(_)) => leaves(part, &way, out),
            Some(Descriptor::Leaf(leaf)) => {
                // A different identifier is a different rule: one is removed and one is added.
                let name = way.len() > 1 && part.ie() != IeType::F_TEID && !names_nothing(leaf);
                out.push((part, leaf, name));
            }
            None => {}
        }
    }
}

/// Elements that never identify the group that contains them.
fn names_nothing(leaf: &Leaf) -> bool {
    let name = leaf.ie.name().unwrap_or_default();
    ![
        "ID",
        "Time",
        "QFI",
        "Peer",
        "Number",
        "Address",
        "Identifier",
        "Id",
    ]
    .iter()
    .any(|end| name.ends_with(end))
}

/// The values of the fields, without the flags that only announce a field.
fn fields(leaf: &'static Leaf, bytes: &[u8]) -> Vec<(&'static str, String)> {
    let named = |name: &str| leaf.fields.iter().any(|field| field.name == name);
    leaf.read(bytes)
        .filter(|(name, ..)| named(name))
        .map(|(name, _, value)| (name, format!("{value:?}")))
        .collect()
}

/// The parts of a value that its fields do not cover: differing bits, and trailing bytes.
fn residue(ie: IeType, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let again = canonical(ie, bytes).expect("a row").expect("well-formed");
    let flip: Vec<u8> = bytes.iter().zip(&again).map(|(a, b)| a ^ b).collect();
    let used = flip
        .iter()
        .rposition(|bits| *bits != 0)
        .map_or(0, |last| last + 1);
    let tail = bytes.get(again.len()..).unwrap_or_default();
    (flip[..used].to_vec(), tail.to_vec())
}

fn mirrored(differences: &[Difference], swap: bool) -> Vec<String> {
    let mut texts: Vec<String> = differences
        .iter()
        .map(|difference| {
            let types: Vec<IeType> = difference.path.steps().map(|step| step.ie).collect();
            let kind = match (difference.kind.clone(), swap) {
                (DifferenceKind::Added { value }, true) => DifferenceKind::Removed { value },
                (DifferenceKind::Removed { value }, true) => DifferenceKind::Added { value },
                (DifferenceKind::Changed { field, left, right }, true) => DifferenceKind::Changed {
                    field,
                    left: right,
                    right: left,
                },
                (kind, _) => kind,
            };
            format!("{types:?} {kind:?}")
        })
        .collect();
    texts.sort();
    texts
}

proptest! {
    // One case covers a message of every type.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn element_order_does_not_matter(
        bytes in vec(any::<u8>(), 0..2048),
        order in vec(any::<u8>(), 512),
    ) {
        for message_type in MessageType::ALL {
            let table = message_type.table().expect("a table");
            let body = group(table, &mut Choices::new(&bytes));
            let other = shuffled(&body, Some(table), &mut Choices::new(&order));
            let found = differences(
                &message(*message_type, &body),
                &message(*message_type, &other),
                &Ignore::nothing(),
            );
            prop_assert!(found.is_empty(), "{}", found[0]);
        }
    }

    #[test]
    fn a_changed_field_is_one_difference(
        bytes in vec(any::<u8>(), 0..2048),
        at in any::<usize>(),
        bit in 0..8_u32,
    ) {
        for message_type in MessageType::ALL {
            let table = message_type.table().expect("a table");
            let left = message(*message_type, &group(table, &mut Choices::new(&bytes)));
            let mut index = Index::new();
            let view = MessageView::decode(&left, &mut index).expect("well-formed");
            let mut all = Vec::new();
            leaves(view.root(), &[], &mut all);
            all.retain(|(part, _, name)| !name && !part.value().is_empty());
            if all.is_empty() {
                continue;
            }
            let (part, leaf, _) = all[at % all.len()];
            let mut right = left.clone();
            right[part.offset() + at % part.value().len()] ^= 1_u8 << bit;
            let changed = &right[part.offset()..][..part.value().len()];
            let mut other = Index::new();
            if MessageView::decode(&right, &mut other).is_err() {
                continue;
            }
            let (was, is) = (fields(leaf, part.value()), fields(leaf, changed));
            let names = |fields: &[(&'static str, String)]| -> Vec<&str> {
                fields.iter().map(|(name, _)| *name).collect()
            };
            let apart = was.iter().zip(&is).filter(|(was, is)| was != is).count();
            let (spare, tail) = residue(part.ie(), part.value());
            let (other_spare, other_tail) = residue(part.ie(), changed);
            let residues = usize::from(spare != other_spare) + usize::from(tail != other_tail);
            if names(&was) != names(&is) || apart + residues != 1 {
                continue;
            }
            let found = differences(&left, &right, &Ignore::nothing());
            prop_assert_eq!(found.len(), 1, "{} to {:02x?}", part.ie(), changed);
            prop_assert_eq!(found[0].path.last(), Some(part.ie()));
            let none = differences(&left, &right, &Ignore::nothing().ie(part.ie()));
            prop_assert!(none.is_empty());
        }
    }

    #[test]
    fn comparison_is_symmetric(
        left in vec(any::<u8>(), 0..1024),
        right in vec(any::<u8>(), 0..1024),
    ) {
        for message_type in MessageType::ALL {
            let table = message_type.table().expect("a table");
            let [left, right] = [&left, &right]
                .map(|bytes| message(*message_type, &group(table, &mut Choices::new(bytes))));
            for ignore in [Ignore::nothing(), Ignore::runs().spare_bits()] {
                let there = differences(&left, &right, &ignore);
                let back = differences(&right, &left, &ignore);
                prop_assert_eq!(mirrored(&there, false), mirrored(&back, true));
                for difference in &there {
                    prop_assert!(difference.to_string().contains(": "));
                }
            }
        }
    }
}

#[test]
fn flag_of_flag_set_is_not_a_separate_field() {
    let is_flag = |kind| matches!(kind, FieldKind::Bits { width: 1, .. });
    let Some(Descriptor::Leaf(leaf)) = describe(IeType::APPLY_ACTION) else {
        panic!("a leaf");
    };
    assert!(leaf.fields.iter().all(|field| is_flag(field.kind)));
}
