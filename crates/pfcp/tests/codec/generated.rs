//! Values generated from the descriptors alone: every leaf, every group, every message.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use proptest::test_runner::{Config as ProptestConfig, TestCaseError};
use strowger_pfcp::ie::Value;
use strowger_pfcp::ie::descriptor::{Descriptor, Leaf, canonical, describe};
use strowger_pfcp::validate::findings;
use strowger_pfcp::{
    IeType, Index, Interfaces, Message, MessageType, MessageView, from_json, to_json, validate,
};

use crate::bytes::{node_message, tlv};
use crate::proof::Proof;
use crate::values::{Choices, group, leaf, leaves, message};

/// Checks that a message is accepted on the interfaces that no finding rules out, one at a time and
/// all at once.
fn is_judged_by_its_findings(bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut index = Index::new();
    let Ok(view) = MessageView::decode(bytes, &mut index) else {
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
            bytes
        );
        // An accepted message can be decoded in full.
        let owned = view.to_message();
        prop_assert!(
            accepted.is_empty() || owned.is_ok(),
            "{:?} on {}: {:02x?}",
            owned,
            on,
            bytes
        );
    }
    Ok(())
}

/// The fields of a value by name.
fn fields<'a>(leaf: &'static Leaf, value: &'a [u8]) -> Vec<(&'static str, Value<'a>)> {
    let fields = leaf.read(value);
    fields.map(|(name, _, value)| (name, value)).collect()
}

fn survives(bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut index = Index::new();
    let view = MessageView::decode(bytes, &mut index).expect("well-formed");
    prop_assert!(!view.to_string().is_empty());
    let message = Message::decode(bytes).expect("complete");
    prop_assert_eq!(&message.encode().expect("as short as it was"), bytes);
    let json = to_json(&view);
    prop_assert_eq!(from_json(&json).expect("its own"), bytes);
    Ok(())
}

proptest! {
    // One case covers a value of every row.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_leaf_round_trips(bytes in vec(any::<u8>(), 0..96)) {
        let mut proof = Proof::by("property");
        for (ie, what) in leaves() {
            let value = leaf(what, &mut Choices::new(&bytes));
            let once = canonical(ie, &value).expect("a row").expect("well-formed");
            let twice = canonical(ie, &once).expect("a row").expect("well-formed");
            prop_assert_eq!(&once, &twice, "{}", ie);
            prop_assert_eq!(fields(what, &value), fields(what, &once), "{}", ie);
            prop_assert!(once.len() <= value.len(), "{}", ie);
            // A heartbeat does not know the element: its bytes are kept, and its fields are shown.
            let known = tlv(96, &[0; 4]);
            survives(&node_message(1, &[known, tlv(ie.0, &value)].concat()))?;
            proof.element(ie);
        }
        proof.record();
    }

    #[test]
    fn every_group_round_trips(bytes in vec(any::<u8>(), 0..1024)) {
        let mut proof = Proof::by("property");
        for ie in IeType::ALL {
            if let Some(Descriptor::Group(table)) = describe(*ie) {
                let value = group(table, &mut Choices::new(&bytes));
                let again = canonical(*ie, &value).expect("a row").expect("complete");
                prop_assert_eq!(again, value, "{}", ie);
                proof.element(*ie);
            }
        }
        proof.record();
    }

    #[test]
    fn every_message_round_trips(bytes in vec(any::<u8>(), 0..4096)) {
        let mut proof = Proof::by("property");
        for kind in MessageType::ALL {
            survives(&message(*kind, &mut Choices::new(&bytes)))?;
            proof.message(*kind);
        }
        proof.record();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn validity_agrees_with_findings(
        bytes in vec(any::<u8>(), 0..1024),
        changes in vec((any::<u16>(), any::<u8>()), 0..3),
    ) {
        for kind in MessageType::ALL {
            let mut bytes = message(*kind, &mut Choices::new(&bytes));
            // Another type makes a member missing, and another value changes the requirements.
            for (place, byte) in &changes {
                let place = 4 + usize::from(*place) % (bytes.len() - 4);
                bytes[place] ^= byte;
            }
            is_judged_by_its_findings(&bytes)?;
        }
    }
}

#[test]
fn truncated_value_error_points_inside_value() {
    let bytes: Vec<u8> = (0..=255).cycle().skip(7).step_by(3).take(96).collect();
    for (ie, what) in leaves() {
        let value = leaf(what, &mut Choices::new(&bytes));
        for cut in 0..value.len() {
            if let Some(Err(error)) = canonical(ie, &value[..cut]) {
                assert!(error.offset() <= cut, "{ie}: {error}");
                assert_eq!(error.path().steps().count(), 1, "{ie}: {error}");
            }
        }
    }
}
