//! Rules of a session: the effects of establishments and modifications.

mod choose_flag;
mod parts;
mod random;

use std::net::IpAddr;

use strowger_pfcp::ie::{Cause, FTeid, FarId, PdrId, QerId, UrrId};
use strowger_pfcp::session::{NoAllocator, RuleId, RuleKind, RuleSet};
use strowger_pfcp::{Frame, IeType, MessageType};

use crate::session::parts::{
    establish, establishment, far, far_id, group, modify, pdi, pdr, refused, session, tlv, tunnel,
    two_and_two,
};

#[test]
fn rules_are_found_by_kind_and_number() {
    let rules = two_and_two();
    assert_eq!(rules.len(), 4);
    assert_eq!(rules.rules(RuleKind::Pdr).count(), 2);
    assert_eq!(rules.rules(RuleKind::Qer).count(), 0);
    assert!(rules.rule(PdrId(2).into()).is_some());
    assert!(rules.rule(PdrId(3).into()).is_none());
    assert!(rules.rule(QerId(1).into()).is_none());
    let pdrs: Vec<_> = rules.pdrs().collect::<Result<_, _>>().expect("typed");
    assert_eq!(pdrs[0].far_id, Some(FarId(1)));
    let fars: Vec<_> = rules.fars().collect::<Result<_, _>>().expect("typed");
    assert_eq!(fars[1].far_id, FarId(2));
    assert_eq!(
        rules.f_teids(),
        [FTeid::new(7, IpAddr::from([10, 0, 0, 1]))]
    );
}

#[test]
fn rule_is_found_by_what_it_detects() {
    let rules = two_and_two();
    let address = IpAddr::from([10, 0, 0, 1]);
    assert_eq!(rules.rule_at(7, address), Some(PdrId(1).into()));
    assert_eq!(rules.rule_at(8, address), None);
    assert_eq!(rules.rule_at(7, IpAddr::from([10, 0, 0, 2])), None);
    assert_eq!(rules.rule_of_ue(|_| true), None);
}

#[test]
fn small_session_takes_less_than_a_kibibyte() {
    let rules = two_and_two();
    let taken = size_of::<RuleSet>() + rules.bytes().len() + 16 * rules.len();
    assert!(taken < 1024, "{taken} bytes");
}

#[test]
fn rule_set_round_trips_through_bytes() {
    let rules = two_and_two();
    let again = RuleSet::restore(rules.bytes()).expect("our own bytes");
    assert_eq!(again, rules);
}

#[test]
fn truncated_rule_set_is_refused() {
    let bytes = two_and_two().bytes().to_vec();
    for end in 0..bytes.len() {
        if let Ok(rules) = RuleSet::restore(&bytes[..end]) {
            assert!(rules.len() < 4, "a whole row of elements, but not all");
        }
    }
    let swapped = [far(1), pdr(1, &[pdi(&[])])].concat();
    assert!(RuleSet::restore(&swapped).is_err());
}

#[test]
fn an_update_replaces_members_of_its_types_only() {
    let update = group(
        IeType::UPDATE_FAR,
        &[
            far_id(1),
            tlv(IeType::APPLY_ACTION, &[4]),
            group(
                IeType::UPDATE_FORWARDING_PARAMETERS,
                &[
                    tlv(IeType::NETWORK_INSTANCE, b"ims"),
                    tlv(IeType::PFCPSMREQ_FLAGS, &[2]),
                    tlv(
                        IeType::OUTER_HEADER_CREATION,
                        &[1, 0, 0, 0, 0, 9, 10, 0, 0, 2],
                    ),
                ],
            ),
        ],
    );
    let before = two_and_two();
    let rules = modify(&before, &[update]).expect("a sound update");
    let far = rules.rule(FarId(1).into()).expect("FAR 1");
    let expected = [
        far_id(1),
        tlv(IeType::APPLY_ACTION, &[4]),
        group(
            IeType::FORWARDING_PARAMETERS,
            &[
                tlv(IeType::DESTINATION_INTERFACE, &[1]),
                tlv(IeType::NETWORK_INSTANCE, b"ims"),
                tlv(
                    IeType::OUTER_HEADER_CREATION,
                    &[1, 0, 0, 0, 0, 9, 10, 0, 0, 2],
                ),
            ],
        ),
    ];
    assert_eq!(far.value, expected.concat());
    let other = RuleId::from(FarId(2));
    assert_eq!(rules.rule(other), before.rule(other));
}

/// Two vendors use one number for different elements.
#[test]
fn update_keeps_elements_of_other_vendors() {
    let vendor = |enterprise: u16, value: &[u8]| {
        let value = [&enterprise.to_be_bytes()[..], value].concat();
        tlv(IeType(0x8001), &value)
    };
    let far = |members: &[Vec<u8>]| {
        let head = vec![far_id(1), tlv(IeType::APPLY_ACTION, &[1])];
        group(IeType::CREATE_FAR, &[head, members.to_vec()].concat())
    };
    let bytes = establishment(&[
        pdr(1, &[pdi(&[tunnel(7)]), far_id(1)]),
        far(&[vendor(10, b"ten"), vendor(20, b"twenty")]),
        vendor(10, b"X"),
        vendor(20, b"Y"),
    ]);
    let before = establish(&bytes, &mut NoAllocator).expect("sound rules");
    let update = |members: &[Vec<u8>]| {
        let head = vec![far_id(1)];
        group(IeType::UPDATE_FAR, &[head, members.to_vec()].concat())
    };
    let value = |rules: &RuleSet| rules.rule(FarId(1).into()).expect("FAR 1").value.to_vec();
    let expected = |members: &[Vec<u8>]| far(members)[4..].to_vec();
    let rules = modify(&before.rules, &[update(&[vendor(20, b"XX")])]).expect("a sound update");
    assert_eq!(
        value(&rules),
        expected(&[vendor(10, b"ten"), vendor(20, b"XX")])
    );
    let rules = modify(&rules, &[update(&[vendor(10, b"")])]).expect("a sound update");
    assert_eq!(value(&rules), expected(&[vendor(20, b"XX")]));
    let rules = modify(&rules, &[vendor(20, b"Z")]).expect("a sound change");
    let session: Vec<_> = rules
        .session_elements()
        .filter_map(|tlv| Some((tlv.enterprise?, tlv.value.to_vec())))
        .collect();
    assert_eq!(session, [(10, b"X".to_vec()), (20, b"Z".to_vec())]);
}

#[test]
fn an_element_without_a_value_is_removed_by_an_update() {
    let update = group(
        IeType::UPDATE_FAR,
        &[
            far_id(1),
            group(
                IeType::UPDATE_FORWARDING_PARAMETERS,
                &[tlv(IeType::NETWORK_INSTANCE, &[])],
            ),
        ],
    );
    let rules = modify(&two_and_two(), &[update]).expect("a sound update");
    let far = rules.rule(FarId(1).into()).expect("FAR 1");
    assert!(!far.value.windows(8).any(|bytes| bytes == b"internet"));
}

#[test]
fn predefined_rules_are_activated_individually() {
    let on = |name: &[u8]| tlv(IeType::ACTIVATE_PREDEFINED_RULES, name);
    let off = |name: &[u8]| tlv(IeType::DEACTIVATE_PREDEFINED_RULES, name);
    let update = |members: &[Vec<u8>]| {
        let id = vec![tlv(IeType::PDR_ID, &[0, 1])];
        group(IeType::UPDATE_PDR, &[id, members.to_vec()].concat())
    };
    let rules = two_and_two();
    let rules = modify(&rules, &[update(&[on(b"a"), on(b"b")])]).expect("on");
    let rules = modify(&rules, &[update(&[off(b"a"), on(b"c"), on(b"b")])]).expect("off");
    let names: Vec<_> = rules
        .rule(PdrId(1).into())
        .expect("PDR 1")
        .tlvs()
        .flatten()
        .filter(|tlv| tlv.ie == IeType::ACTIVATE_PREDEFINED_RULES)
        .map(|tlv| tlv.value.to_vec())
        .collect();
    assert_eq!(names, [b"b", b"c"]);
}

#[test]
fn rule_id_can_be_reused_in_same_message() {
    let remove = group(IeType::REMOVE_FAR, &[far_id(1)]);
    let rules = modify(&two_and_two(), &[far(1), remove]).expect("removals come first");
    assert_eq!(rules, two_and_two());
}

#[test]
fn equal_rules_have_equal_bytes() {
    let other = establishment(&[
        far(2),
        pdr(2, &[pdi(&[]), far_id(2)]),
        far(1),
        pdr(1, &[pdi(&[tunnel(7)]), far_id(1)]),
    ]);
    let other = establish(&other, &mut NoAllocator).expect("sound").rules;
    assert_eq!(other.bytes(), two_and_two().bytes());
}

#[test]
fn wrong_rules_are_refused_with_the_rule() {
    let rules = two_and_two();
    let failed = |id: RuleId, ie: Option<IeType>| (Cause::RULE_FAILURE, ie, id.failed_rule_id());
    let id = |id: u16| tlv(IeType::PDR_ID, &id.to_be_bytes());

    assert_eq!(
        refused(modify(&rules, &[far(1)])),
        failed(FarId(1).into(), None)
    );
    let remove = group(IeType::REMOVE_PDR, &[id(9)]);
    assert_eq!(
        refused(modify(&rules, &[remove])),
        failed(PdrId(9).into(), None)
    );
    let update = group(IeType::UPDATE_PDR, &[id(9)]);
    assert_eq!(
        refused(modify(&rules, &[update])),
        failed(PdrId(9).into(), None)
    );
    for (ie, named) in [
        (IeType::FAR_ID, vec![far_id(9)]),
        (
            IeType::URR_ID,
            vec![far_id(1), tlv(IeType::URR_ID, &[0x80, 0, 0xff, 0xff])],
        ),
        (
            IeType::QER_ID,
            vec![far_id(1), tlv(IeType::QER_ID, &[0, 0, 0, 5])],
        ),
    ] {
        let create = pdr(3, &[vec![pdi(&[])], named].concat());
        assert_eq!(
            refused(modify(&rules, &[create])),
            failed(PdrId(3).into(), Some(ie))
        );
    }
    let remove = group(IeType::REMOVE_FAR, &[far_id(2)]);
    assert_eq!(
        refused(modify(&rules, &[remove])),
        failed(PdrId(2).into(), Some(IeType::FAR_ID))
    );
}

#[test]
fn missing_elements_are_named() {
    let rules = two_and_two();
    let missing = |ie| (Cause::MANDATORY_IE_MISSING, Some(ie));
    let what = |outcome| {
        let (cause, ie, _) = refused(outcome);
        (cause, ie)
    };
    let empty = tlv(IeType::CREATE_FAR, &[]);
    assert_eq!(what(modify(&rules, &[empty])), missing(IeType::FAR_ID));
    let empty = tlv(IeType::CREATE_PDR, &[]);
    assert_eq!(what(modify(&rules, &[empty])), missing(IeType::PDR_ID));
    let bare = pdr(5, &[]);
    assert_eq!(what(modify(&rules, &[bare])), missing(IeType::PDI));
    let bare = group(IeType::CREATE_FAR, &[far_id(5)]);
    assert_eq!(what(modify(&rules, &[bare])), missing(IeType::APPLY_ACTION));
    let nothing = session(MessageType::SESSION_ESTABLISHMENT_REQUEST, &[]);
    let refusal = establish(&nothing, &mut NoAllocator).expect_err("nothing in it");
    assert_eq!(refusal.offending_ie, Some(IeType::NODE_ID));
}

#[test]
fn malformed_elements_deep_inside_are_named() {
    let create = |value: &[u8]| pdr(5, &[pdi(&[tlv(IeType::F_TEID, value)]), far_id(1)]);
    for value in [&[][..], &[1, 0, 0], &[1, 0, 0, 0, 1, 127]] {
        let refusal = modify(&two_and_two(), &[create(value)]).expect_err("too short");
        assert_eq!(refusal.cause, Cause::INVALID_LENGTH);
        assert_eq!(refusal.offending_ie, Some(IeType::F_TEID));
    }
}

#[test]
fn every_kind_of_rule_is_created_updated_and_removed() {
    for kind in RuleKind::ALL {
        let bytes = match kind {
            RuleKind::Pdr | RuleKind::Mar => 2,
            RuleKind::Far | RuleKind::Urr | RuleKind::Qer => 4,
            RuleKind::Bar | RuleKind::Srr | RuleKind::TrafficEndpoint => 1,
        };
        let id = tlv(kind.id(), &200u32.to_be_bytes()[4 - bytes..]);
        let unknown = tlv(IeType(9999), &[1, 2, 3]);
        let parts = match kind {
            RuleKind::Pdr => vec![pdi(&[]), tlv(IeType::PRECEDENCE, &[0; 4]), far_id(1)],
            RuleKind::Far => vec![tlv(IeType::APPLY_ACTION, &[1])],
            RuleKind::Urr => vec![
                tlv(IeType::MEASUREMENT_METHOD, &[2]),
                tlv(IeType::REPORTING_TRIGGERS, &[0, 0, 0]),
            ],
            RuleKind::Qer => vec![tlv(IeType::GATE_STATUS, &[0])],
            RuleKind::Mar => vec![
                tlv(IeType::STEERING_FUNCTIONALITY, &[0]),
                tlv(IeType::STEERING_MODE, &[0]),
            ],
            _ => vec![],
        };
        let create = group(
            kind.create(),
            &[vec![id.clone(), unknown.clone()], parts].concat(),
        );
        let rules = modify(&two_and_two(), &[create]).expect("a new rule");
        let name = RuleId { kind, id: 200 };
        let before = rules.rule(name).expect("it is there").value.to_vec();
        let change = tlv(IeType(9999), &[4]);
        let update = group(kind.update(), &[id.clone(), change.clone()]);
        let rules = modify(&rules, &[update]).expect("an update");
        let after = rules.rule(name).expect("it is there").value.to_vec();
        assert_eq!(after.len() + 2, before.len());
        assert!(after.windows(5).any(|bytes| bytes == change));
        let rules = modify(&rules, &[group(kind.remove(), &[id])]).expect("a removal");
        assert_eq!(rules, two_and_two());
    }
}

#[test]
fn session_elements_are_replaced_and_flags_are_not_kept() {
    let timer = |seconds| tlv(IeType::USER_PLANE_INACTIVITY_TIMER, &[0, 0, 0, seconds]);
    let rules = modify(&two_and_two(), &[timer(1)]).expect("a timer");
    let flags = tlv(IeType::PFCPSMREQ_FLAGS, &[1]);
    let rules = modify(&rules, &[timer(2), flags]).expect("a timer");
    let timers: Vec<_> = rules
        .session_elements()
        .filter(|tlv| tlv.ie == IeType::USER_PLANE_INACTIVITY_TIMER)
        .map(|tlv| tlv.value.to_vec())
        .collect();
    assert_eq!(timers, [[0, 0, 0, 2]]);
    assert!(
        rules
            .session_elements()
            .all(|tlv| tlv.ie != IeType::PFCPSMREQ_FLAGS)
    );
}

#[test]
fn thousands_of_rules_in_one_message_take_linear_time() {
    let bars: Vec<_> = (0..10_000).map(|_| pdr(1, &[])).collect();
    let bytes = bars.concat();
    let frame = session(
        MessageType::SESSION_MODIFICATION_REQUEST,
        &bytes[..60_000 / bars[0].len() * bars[0].len()],
    );
    let frame = Frame::decode(&frame).expect("a message");
    two_and_two()
        .modify(&frame, &mut NoAllocator)
        .expect_err("PDR 1 exists");
    let types: Vec<_> = (0..14_000).map(|ie| tlv(IeType(ie + 1000), &[])).collect();
    let update = |parts: &[Vec<u8>]| {
        group(
            IeType::UPDATE_PDR,
            &[vec![tlv(IeType::PDR_ID, &[0, 1])], parts.to_vec()].concat(),
        )
    };
    let rules = modify(&two_and_two(), &[update(&types)]).expect("unknown elements");
    assert_eq!(rules, two_and_two());
}

#[test]
fn query_urr_requires_existing_urr() {
    let urr_id = || tlv(IeType::URR_ID, &[0, 0, 0, 3]);
    let query = || group(IeType::QUERY_URR, &[urr_id()]);
    let unknown = (
        Cause::RULE_FAILURE,
        None,
        RuleId::from(UrrId(3)).failed_rule_id(),
    );
    assert_eq!(refused(modify(&two_and_two(), &[query()])), unknown);
    let urr = group(
        IeType::CREATE_URR,
        &[
            urr_id(),
            tlv(IeType::MEASUREMENT_METHOD, &[2]),
            tlv(IeType::REPORTING_TRIGGERS, &[0, 0, 0]),
        ],
    );
    let rules = modify(&two_and_two(), &[urr]).expect("sound");
    assert_eq!(modify(&rules, &[query()]).as_ref(), Ok(&rules));
    let remove = group(IeType::REMOVE_URR, &[urr_id()]);
    let without = modify(&rules, &[query(), remove]).expect("its last usage is asked for");
    assert_eq!(without, two_and_two());
}

#[test]
fn linked_urr_must_exist() {
    let urr = |id: u32, linked: u32| {
        group(
            IeType::CREATE_URR,
            &[
                tlv(IeType::URR_ID, &id.to_be_bytes()),
                tlv(IeType::MEASUREMENT_METHOD, &[2]),
                tlv(IeType::REPORTING_TRIGGERS, &[0, 0, 0]),
                tlv(IeType::LINKED_URR_ID, &linked.to_be_bytes()),
            ],
        )
    };
    modify(&two_and_two(), &[urr(1, 2), urr(2, 1)]).expect("they name each other");
    let (_, ie, rule) = refused(modify(&two_and_two(), &[urr(1, 65_535)]));
    assert_eq!(ie, Some(IeType::LINKED_URR_ID));
    assert_eq!(rule, RuleId::from(UrrId(1)).failed_rule_id());
}
