//! Random elements, right or wrong.

use proptest::prelude::{Just, Strategy, any, prop, proptest};
use proptest::{prop_assert, prop_assert_eq, prop_oneof};
use strowger_pfcp::IeType;
use strowger_pfcp::ie::FarId;
use strowger_pfcp::session::{RuleKind, RuleSet};

use crate::session::choose_flag::Counter;
use crate::session::parts::{
    far_id, group, modify, modify_with, pdi, pdr, tlv, tunnel, two_and_two,
};

/// An element of a modification, right or wrong.
fn any_element() -> impl Strategy<Value = Vec<u8>> {
    let pdr_id = (0u16..5).prop_map(|id| tlv(IeType::PDR_ID, &id.to_be_bytes()));
    let far_id = (0u32..5).prop_map(|id| tlv(IeType::FAR_ID, &id.to_be_bytes()));
    let part = prop_oneof![
        pdr_id,
        far_id,
        Just(pdi(&[])),
        Just(pdi(&[tunnel(9)])),
        Just(pdi(&[tlv(IeType::F_TEID, &[5])])),
        Just(tlv(IeType::APPLY_ACTION, &[2])),
        Just(tlv(IeType::QER_ID, &[0, 0, 0, 1])),
        (any::<u16>(), prop::collection::vec(any::<u8>(), 0..12))
            .prop_map(|(ie, value)| tlv(IeType(ie % 0x8000), &value)),
    ];
    let outer = prop_oneof![
        Just(IeType::CREATE_PDR),
        Just(IeType::UPDATE_PDR),
        Just(IeType::REMOVE_PDR),
        Just(IeType::CREATE_FAR),
        Just(IeType::UPDATE_FAR),
        Just(IeType::REMOVE_FAR),
        Just(IeType::CREATE_QER),
        Just(IeType::REMOVE_QER),
    ];
    (outer, prop::collection::vec(part, 0..5)).prop_map(|(ie, parts)| group(ie, &parts))
}

proptest! {
    #[test]
    fn refused_modification_leaves_rules_unchanged(
        good in prop::collection::vec(any_element(), 0..3),
        elements in prop::collection::vec(any_element(), 0..6),
        wrong in 0usize..4,
    ) {
        let rules = modify(&two_and_two(), &good).unwrap_or_else(|_| two_and_two());
        let before = rules.clone();
        let bytes = before.bytes().to_vec();
        // One of these is always wrong, whatever else the message contains.
        let wrong = match wrong {
            0 => tlv(IeType::CREATE_PDR, &[]),
            1 => group(IeType::REMOVE_PDR, &[tlv(IeType::PDR_ID, &[0xff, 0xff])]),
            2 => pdr(77, &[pdi(&[]), far_id(0xffff_ffff)]),
            _ => group(IeType::UPDATE_FAR, &[far_id(1), tlv(IeType::APPLY_ACTION, &[])]),
        };
        let elements = [elements, vec![wrong]].concat();
        let outcome = modify_with(&rules, &elements, &mut Counter::default());
        prop_assert!(outcome.is_err());
        prop_assert_eq!(rules.bytes(), &bytes[..]);
        prop_assert_eq!(&rules, &before);
    }

    #[test]
    fn accepted_rule_set_is_storable_and_consistent(
        elements in prop::collection::vec(prop::collection::vec(any_element(), 0..4), 0..8),
    ) {
        let mut rules = two_and_two();
        let mut counter = Counter::default();
        for elements in elements {
            if let Ok(change) = modify_with(&rules, &elements, &mut counter) {
                rules = change.rules;
            }
        }
        prop_assert_eq!(&RuleSet::restore(rules.bytes()).expect("our own bytes"), &rules);
        for rule in rules.rules(RuleKind::Pdr) {
            for tlv in rule.tlvs().flatten().filter(|tlv| tlv.ie == IeType::FAR_ID) {
                let id = u32::from_be_bytes(*tlv.value.first_chunk().expect("checked"));
                prop_assert!(rules.rule(FarId(id).into()).is_some());
            }
        }
        prop_assert!(rules.f_teids().iter().all(|tunnel| !tunnel.choose));
    }
}
