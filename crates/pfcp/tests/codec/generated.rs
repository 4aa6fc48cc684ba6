//! Values made from the descriptors alone: every leaf, every group, every message.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::{Config as ProptestConfig, TestCaseError};
use strowger_pfcp::ie::descriptor::{
    Descriptor, Group, Kind, Leaf, Presence, Span, When, canonical, describe,
};
use strowger_pfcp::validate::findings;
use strowger_pfcp::{IeType, Index, Interfaces, Message, MessageType, MessageView, validate};

use crate::octets::{node_message, session_message, tlv};
use crate::proof::Proof;

/// Choices, octet by octet; zeros when they are used up.
pub(crate) struct Choices<'a>(std::slice::Iter<'a, u8>);

impl<'a> Choices<'a> {
    pub(crate) fn new(octets: &'a [u8]) -> Self {
        Self(octets.iter())
    }

    pub(crate) fn octet(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn octets(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.octet()).collect()
    }

    /// A length that is short most of the time.
    fn length(&mut self) -> u8 {
        self.octet() % 9
    }
}

fn span(span: Span, choices: &mut Choices<'_>) -> Vec<u8> {
    let length = match span {
        Span::Fixed(octets) => return choices.octets(usize::from(octets)),
        Span::RestButLast | Span::Rest | Span::Length8 | Span::Length16 => choices.length(),
        Span::Address => [4, 16][usize::from(choices.octet() & 1)],
        Span::MacAddresses => 6 * (choices.octet() & 3),
    };
    let value = choices.octets(usize::from(length));
    let before = match span {
        Span::Length8 => vec![length],
        Span::Length16 => vec![0, length],
        Span::Address if length == 16 => vec![0x50],
        Span::Address => vec![4],
        Span::MacAddresses => vec![length / 6],
        _ => Vec::new(),
    };
    [before, value].concat()
}

/// Makes a well-formed value: any bits of the head, then the fields that they ask for.
pub(crate) fn leaf(leaf: &Leaf, choices: &mut Choices<'_>) -> Vec<u8> {
    let mut value = choices.octets(leaf.head);
    let mut head = [0; 16];
    head[..leaf.head].copy_from_slice(&value);
    let head = u128::from_le_bytes(head);
    let mut more = true;
    for field in leaf.fields {
        let there = match field.when {
            When::Always => true,
            When::Flag { shift, .. } => head >> shift & 1 == 1,
            When::Head { holds, .. } => holds(head),
            When::More => {
                more &= choices.octet() & 1 == 1;
                more
            }
        };
        if there {
            value.extend(match field.kind {
                Kind::Number { octets, .. } => choices.octets(octets),
                Kind::Time | Kind::Ipv4 => choices.octets(4),
                Kind::Ipv6 => choices.octets(16),
                Kind::Mac => choices.octets(6),
                Kind::Text(at) | Kind::Octets(at) | Kind::Labels(at) | Kind::Digits(at) => {
                    span(at, choices)
                }
                _ => Vec::new(),
            });
        }
    }
    value
}

/// Makes the members of a table: those that have to be there, and some of the others.
pub(crate) fn group(table: &Group, choices: &mut Choices<'_>) -> Vec<u8> {
    let mut members = Vec::new();
    for member in table.members {
        let wanted = choices.octet();
        let mandatory = member.presence == Presence::Mandatory;
        let count = match (mandatory, member.many) {
            (true, false) => 1,
            (true, true) => 1 + wanted % 2,
            (false, true) => wanted % 3,
            (false, false) => wanted % 2,
        };
        for _ in 0..count {
            let value = match member.what {
                Descriptor::Leaf(what) => leaf(what, choices),
                Descriptor::Group(what) => group(what, choices),
            };
            members.push(tlv(member.ie.0, &value));
        }
    }
    if !members.is_empty() {
        let start = usize::from(choices.octet()) % members.len();
        members.rotate_left(start);
    }
    members.concat()
}

/// Accepts for the interfaces that no finding rules out, one at a time and all at once.
fn is_judged_by_its_findings(octets: &[u8]) -> Result<(), TestCaseError> {
    let mut index = Index::new();
    let Ok(view) = MessageView::decode(octets, &mut index) else {
        return Ok(());
    };
    for on in Interfaces::ALL.iter().chain([Interfaces::ALL]) {
        let left = findings(&view, on)
            .iter()
            .filter(|finding| finding.kind.cause().is_some())
            .fold(on, |left, finding| left.without(finding.on));
        let accepted = validate(&view, on).unwrap_or(Interfaces::NONE);
        prop_assert_eq!(
            accepted,
            left,
            "{} on {}: {:02x?}",
            view.message_type(),
            on,
            octets
        );
    }
    Ok(())
}

fn survives(octets: &[u8]) -> Result<(), TestCaseError> {
    let mut index = Index::new();
    let view = MessageView::decode(octets, &mut index).expect("well-formed");
    prop_assert!(!view.to_string().is_empty());
    let message = Message::decode(octets).expect("complete");
    prop_assert_eq!(&message.encode().expect("as short as it was"), octets);
    #[cfg(feature = "serde")]
    {
        let json = strowger_pfcp::to_json(&view);
        prop_assert_eq!(strowger_pfcp::from_json(&json).expect("its own"), octets);
    }
    Ok(())
}

/// Every leaf that a table or the registry knows.
fn leaves() -> BTreeMap<IeType, &'static Leaf> {
    let known = IeType::ALL.iter().filter_map(|ie| match describe(*ie) {
        Some(Descriptor::Leaf(leaf)) => Some((*ie, leaf)),
        _ => None,
    });
    known.collect()
}

proptest! {
    // One case is a value of every row.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_leaf_survives(octets in vec(any::<u8>(), 0..96)) {
        let mut proof = Proof::by("property");
        for (ie, what) in leaves() {
            let value = leaf(what, &mut Choices::new(&octets));
            let once = canonical(ie, &value).expect("a row").expect("well-formed");
            let twice = canonical(ie, &once).expect("a row").expect("well-formed");
            prop_assert_eq!(&once, &twice, "{}", ie);
            prop_assert!(once.len() <= value.len(), "{}", ie);
            // A heartbeat does not know it: its octets stay, its fields are told.
            let known = tlv(96, &[0; 4]);
            survives(&node_message(1, &[known, tlv(ie.0, &value)].concat()))?;
            proof.element(ie);
        }
        proof.record();
    }

    #[test]
    fn every_group_survives(octets in vec(any::<u8>(), 0..1024)) {
        let mut proof = Proof::by("property");
        for ie in IeType::ALL {
            if let Some(Descriptor::Group(table)) = describe(*ie) {
                let value = group(table, &mut Choices::new(&octets));
                let again = canonical(*ie, &value).expect("a row").expect("complete");
                prop_assert_eq!(again, value, "{}", ie);
                proof.element(*ie);
            }
        }
        proof.record();
    }

    #[test]
    fn every_message_survives(octets in vec(any::<u8>(), 0..4096)) {
        let mut proof = Proof::by("property");
        for message in MessageType::ALL {
            let table = message.table().expect("a table");
            let body = group(table, &mut Choices::new(&octets));
            if message.is_session() {
                survives(&session_message(message.0, &body))?;
            } else {
                survives(&node_message(message.0, &body))?;
            }
            proof.message(*message);
        }
        proof.record();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn every_message_is_judged_by_its_findings(
        octets in vec(any::<u8>(), 0..1024),
        changes in vec((any::<u16>(), any::<u8>()), 0..3),
    ) {
        for message in MessageType::ALL {
            let table = message.table().expect("a table");
            let body = group(table, &mut Choices::new(&octets));
            let mut octets = if message.is_session() {
                session_message(message.0, &body)
            } else {
                node_message(message.0, &body)
            };
            // Another type makes a member missing, another value changes what is asked for.
            for (place, octet) in &changes {
                let place = 4 + usize::from(*place) % (octets.len() - 4);
                octets[place] ^= octet;
            }
            is_judged_by_its_findings(&octets)?;
        }
    }
}

#[test]
fn a_value_cut_short_is_an_error_inside_of_it() {
    let octets: Vec<u8> = (0..=255).cycle().skip(7).step_by(3).take(96).collect();
    for (ie, what) in leaves() {
        let value = leaf(what, &mut Choices::new(&octets));
        for cut in 0..value.len() {
            if let Some(Err(error)) = canonical(ie, &value[..cut]) {
                assert!(error.offset() <= cut, "{ie}: {error}");
                assert_eq!(error.path().steps().count(), 1, "{ie}: {error}");
            }
        }
    }
}
