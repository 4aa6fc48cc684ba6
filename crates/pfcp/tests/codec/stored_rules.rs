//! Rules of every kind, generated from the tables alone: a session keeps them in full, including
//! the elements that no data path uses.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert_eq, proptest};
use proptest::test_runner::Config as ProptestConfig;
use strowger_pfcp::ie::descriptor::{Descriptor, Presence, describe};
use strowger_pfcp::session::{NoAllocator, Refusal, RuleId, RuleKind, RuleSet};
use strowger_pfcp::wire::Tlvs;
use strowger_pfcp::{Frame, IeType, Interfaces};

use crate::bytes::{session_message, tlv};
use crate::values::{Choices, group, leaf};

/// Elements that refer to other rules, or leave something to be chosen: separate tests cover them.
const APART: [IeType; 10] = [
    IeType::FAR_ID,
    IeType::URR_ID,
    IeType::QER_ID,
    IeType::MAR_ID,
    IeType::BAR_ID,
    IeType::LINKED_URR_ID,
    IeType::TRAFFIC_ENDPOINT_ID,
    IeType::F_TEID,
    IeType::UE_IP_ADDRESS,
    IeType::ACTIVATE_PREDEFINED_RULES,
];

fn id(kind: RuleKind, number: u32) -> Vec<u8> {
    let bytes = match kind {
        RuleKind::Pdr | RuleKind::Mar => 2,
        RuleKind::Far | RuleKind::Urr | RuleKind::Qer => 4,
        RuleKind::Bar | RuleKind::Srr | RuleKind::TrafficEndpoint => 1,
    };
    tlv(kind.id().0, &number.to_be_bytes()[4 - bytes..])
}

/// The minimal members of a rule of a kind.
fn least(kind: RuleKind) -> Vec<u8> {
    let ie = |ie: IeType, value: &[u8]| tlv(ie.0, value);
    match kind {
        RuleKind::Pdr => [
            ie(IeType::PRECEDENCE, &[0, 0, 0, 9]),
            ie(IeType::PDI, &ie(IeType::SOURCE_INTERFACE, &[1])),
            ie(IeType::FAR_ID, &[0, 0, 0, 1]),
        ]
        .concat(),
        RuleKind::Far => ie(IeType::APPLY_ACTION, &[1, 0]),
        RuleKind::Urr => [
            ie(IeType::MEASUREMENT_METHOD, &[2]),
            ie(IeType::REPORTING_TRIGGERS, &[0, 0, 0]),
        ]
        .concat(),
        RuleKind::Qer => ie(IeType::GATE_STATUS, &[0]),
        RuleKind::Mar => [
            ie(IeType::STEERING_FUNCTIONALITY, &[0]),
            ie(IeType::STEERING_MODE, &[0]),
        ]
        .concat(),
        RuleKind::Bar | RuleKind::Srr | RuleKind::TrafficEndpoint => Vec::new(),
    }
}

/// Returns `true` if separate tests cover an element, or one inside it.
fn is_apart(bytes: &[u8]) -> bool {
    Tlvs::new(bytes).map_while(Result::ok).any(|tlv| {
        let inner = matches!(describe(tlv.ie), Some(Descriptor::Group(_)));
        APART.contains(&tlv.ie) || inner && is_apart(tlv.value)
    })
}

/// The optional members of an element, each with a value, as bytes.
fn optional(ie: IeType, choices: &mut Choices<'_>) -> Vec<Vec<u8>> {
    let Some(Descriptor::Group(table)) = describe(ie) else {
        panic!("{ie} is a group");
    };
    let rows = table.members.iter();
    rows.filter(|row| row.presence != Presence::Mandatory && row.on.contains(Interfaces::N4))
        .filter_map(|row| {
            let value = match row.descriptor {
                Descriptor::Leaf(what) => leaf(what, choices),
                Descriptor::Group(what) => group(what, choices),
            };
            let bytes = tlv(row.ie.0, &value);
            // In an update an empty value removes the element, which a separate test covers.
            (!is_apart(&bytes) && !value.is_empty()).then_some(bytes)
        })
        .collect()
}

/// Establishes a session with rule 200 of a kind, with these additional members.
fn established(kind: RuleKind, rows: &[u8]) -> Result<RuleSet, Refusal> {
    let value = [&id(kind, 200)[..], &least(kind), rows].concat();
    let body = [head(), tlv(kind.create().0, &value)].concat();
    let message = session_message(50, &body);
    let frame = Frame::decode(&message).expect("a message");
    RuleSet::establish(&frame, &mut NoAllocator).map(|change| change.rules)
}

/// The establishment of a session with one packet detection rule.
fn head() -> Vec<u8> {
    let far = [id(RuleKind::Far, 1), least(RuleKind::Far)].concat();
    let far = tlv(RuleKind::Far.create().0, &far);
    let pdr = [id(RuleKind::Pdr, 1), least(RuleKind::Pdr)].concat();
    let pdr = tlv(RuleKind::Pdr.create().0, &pdr);
    let f_seid = [&[2][..], &7u64.to_be_bytes(), &[127, 0, 0, 7]].concat();
    let node = tlv(IeType::NODE_ID.0, &[0, 127, 0, 0, 7]);
    let f_seid = tlv(IeType::F_SEID.0, &f_seid);
    [node, f_seid, pdr, far].concat()
}

proptest! {
    // One case covers a rule of every kind with a value for every row of its table.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn stored_rules_of_every_kind_are_complete(bytes in vec(any::<u8>(), 0..2048)) {
        let mut choices = Choices::new(&bytes);
        for kind in RuleKind::ALL {
            let name = RuleId { kind, id: 200 };
            let mut rows = optional(kind.create(), &mut choices);
            // A value that the specification does not define is refused, and tested elsewhere.
            rows.retain(|row| established(kind, row).is_ok());
            rows.push(tlv(9999, &[1, 2, 3]));
            let value = [id(kind, 200), least(kind), rows.concat()].concat();
            let rules = match established(kind, &rows.concat()) {
                Ok(rules) => rules,
                Err(refusal) => panic!("{kind}: {refusal}"),
            };
            rows.pop();
            let kept = rules.rule(name).map(|rule| rule.value);
            prop_assert_eq!(kept, Some(&value[..]), "{}", kind);
            let again = RuleSet::restore(rules.bytes()).expect("its own bytes");
            prop_assert_eq!(&again, &rules);

            // Elements that an update does not name stay byte for byte the same.
            let update = [id(kind, 200), tlv(9999, &[7])].concat();
            let message = session_message(52, &tlv(kind.update().0, &update));
            let frame = Frame::decode(&message).expect("a message");
            let rules = match rules.modify(&frame, &mut NoAllocator) {
                Ok(change) => change.rules,
                Err(refusal) => panic!("{kind}: {refusal}"),
            };
            let kept = rules.rule(name).map(|rule| rule.value.to_vec());
            let value = [id(kind, 200), least(kind), rows.concat(), tlv(9999, &[7])].concat();
            prop_assert_eq!(kept, Some(value), "{}", kind);
        }
    }
}
