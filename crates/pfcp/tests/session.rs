//! Rules of a session: what establishments and modifications make of them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::{Just, Strategy, any, prop, proptest};
use proptest::{prop_assert, prop_assert_eq, prop_oneof};
use strowger_pfcp::endpoint::message;
use strowger_pfcp::ie::{Cause, FTeid, FailedRuleId, FarId, PdrId, QerId, UrrId};
use strowger_pfcp::session::{
    Allocator, Change, NoAllocator, Refusal, RuleId, RuleKind, RuleSet, UeWish,
};
use strowger_pfcp::{Frame, Header, IeType, MessageType, Seid, Sequence};

fn tlv(ie: IeType, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("a short value");
    [&ie.0.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
}

fn group(ie: IeType, members: &[Vec<u8>]) -> Vec<u8> {
    tlv(ie, &members.concat())
}

fn session(message_type: MessageType, body: &[u8]) -> Vec<u8> {
    let header = Header::session(message_type, Seid(1), Sequence::new(1));
    message(&header, body).expect("a short body")
}

fn pdi(members: &[Vec<u8>]) -> Vec<u8> {
    group(
        IeType::PDI,
        &[vec![tlv(IeType::SOURCE_INTERFACE, &[0])], members.to_vec()].concat(),
    )
}

fn pdr(id: u16, members: &[Vec<u8>]) -> Vec<u8> {
    let head = vec![
        tlv(IeType::PDR_ID, &id.to_be_bytes()),
        tlv(IeType::PRECEDENCE, &[0, 0, 0, 100]),
    ];
    group(IeType::CREATE_PDR, &[head, members.to_vec()].concat())
}

fn far_id(id: u32) -> Vec<u8> {
    tlv(IeType::FAR_ID, &id.to_be_bytes())
}

fn far(id: u32) -> Vec<u8> {
    group(
        IeType::CREATE_FAR,
        &[
            far_id(id),
            tlv(IeType::APPLY_ACTION, &[2]),
            group(
                IeType::FORWARDING_PARAMETERS,
                &[
                    tlv(IeType::DESTINATION_INTERFACE, &[1]),
                    tlv(IeType::NETWORK_INSTANCE, b"internet"),
                ],
            ),
        ],
    )
}

fn tunnel(teid: u32) -> Vec<u8> {
    tlv(
        IeType::F_TEID,
        &[&[1][..], &teid.to_be_bytes(), &[10, 0, 0, 1]].concat(),
    )
}

fn establishment(rules: &[Vec<u8>]) -> Vec<u8> {
    let f_seid = [&[2][..], &7u64.to_be_bytes(), &[127, 0, 0, 7]].concat();
    let head = [
        tlv(IeType::NODE_ID, &[0, 127, 0, 0, 7]),
        tlv(IeType::F_SEID, &f_seid),
    ];
    let body = [head.concat(), rules.concat()].concat();
    session(MessageType::SESSION_ESTABLISHMENT_REQUEST, &body)
}

fn two_and_two() -> RuleSet {
    let octets = establishment(&[
        pdr(1, &[pdi(&[tunnel(7)]), far_id(1)]),
        pdr(2, &[pdi(&[]), far_id(2)]),
        far(1),
        far(2),
    ]);
    establish(&octets, &mut NoAllocator)
        .expect("sound rules")
        .rules
}

fn establish(octets: &[u8], allocator: &mut dyn Allocator) -> Result<Change, Refusal> {
    RuleSet::establish(&Frame::decode(octets).expect("a message"), allocator)
}

fn modify(rules: &RuleSet, elements: &[Vec<u8>]) -> Result<RuleSet, Refusal> {
    modify_with(rules, elements, &mut NoAllocator).map(|change| change.rules)
}

fn modify_with(
    rules: &RuleSet,
    elements: &[Vec<u8>],
    allocator: &mut dyn Allocator,
) -> Result<Change, Refusal> {
    let octets = session(
        MessageType::SESSION_MODIFICATION_REQUEST,
        &elements.concat(),
    );
    rules.modify(&Frame::decode(&octets).expect("a message"), allocator)
}

fn refused(outcome: Result<RuleSet, Refusal>) -> (Cause, Option<IeType>, Option<FailedRuleId>) {
    let refusal = outcome.expect_err("a refusal");
    (refusal.cause, refusal.offending_ie, refusal.failed_rule)
}

/// Gives tunnels and addresses in turn.
#[derive(Default)]
struct Counter(u8);

impl Allocator for Counter {
    fn f_teid(&mut self, wish: &FTeid, _: Option<&[u8]>) -> Result<FTeid, Cause> {
        assert!(wish.choose, "only what is to be chosen is asked for");
        self.0 += 1;
        Ok(FTeid::new(
            u32::from(self.0) << 8,
            IpAddr::from([10, 0, 0, 9]),
        ))
    }

    fn ue_address(
        &mut self,
        wish: UeWish,
        _: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause> {
        self.0 += 1;
        let ipv4 = Ipv4Addr::new(172, 16, 0, self.0);
        Ok((wish.ipv4.then_some(ipv4), None))
    }
}

#[test]
fn rules_are_found_by_kind_and_number() {
    let rules = two_and_two();
    assert_eq!(rules.len(), 4);
    assert_eq!(rules.rules(RuleKind::Pdr).len(), 2);
    assert_eq!(rules.rules(RuleKind::Qer).len(), 0);
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
fn two_and_two_rules_take_less_than_a_kibibyte() {
    let rules = two_and_two();
    let taken = size_of::<RuleSet>() + rules.octets().len() + 16 * rules.len();
    assert!(taken < 1024, "{taken} octets");
}

#[test]
fn octets_give_the_same_rules_back() {
    let rules = two_and_two();
    let again = RuleSet::restore(rules.octets()).expect("our own octets");
    assert_eq!(again, rules);
}

#[test]
fn torn_octets_are_no_rules() {
    let octets = two_and_two().octets().to_vec();
    for end in 0..octets.len() {
        if let Ok(rules) = RuleSet::restore(&octets[..end]) {
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
    assert!(!far.value.windows(8).any(|octets| octets == b"internet"));
}

#[test]
fn predefined_rules_are_switched_on_and_off_one_by_one() {
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
fn a_number_can_be_used_again_in_the_message_that_frees_it() {
    let remove = group(IeType::REMOVE_FAR, &[far_id(1)]);
    let rules = modify(&two_and_two(), &[far(1), remove]).expect("removals come first");
    assert_eq!(rules, two_and_two());
}

#[test]
fn equal_rules_have_equal_octets() {
    let other = establishment(&[
        far(2),
        pdr(2, &[pdi(&[]), far_id(2)]),
        far(1),
        pdr(1, &[pdi(&[tunnel(7)]), far_id(1)]),
    ]);
    let other = establish(&other, &mut NoAllocator).expect("sound").rules;
    assert_eq!(other.octets(), two_and_two().octets());
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
fn what_is_left_to_choose_is_chosen_and_told() {
    let choose = tlv(IeType::F_TEID, &[0x05]);
    let address = tlv(IeType::UE_IP_ADDRESS, &[0x10]);
    let octets = establishment(&[
        pdr(1, &[pdi(&[choose, address.clone()]), far_id(1)]),
        pdr(2, &[pdi(&[address]), far_id(1)]),
        far(1),
    ]);
    let change = establish(&octets, &mut Counter::default()).expect("sound rules");
    let tunnel = FTeid::new(0x100, IpAddr::from([10, 0, 0, 9]));
    assert_eq!(change.rules.f_teids(), [tunnel]);
    let addresses = change.rules.ue_addresses();
    assert_eq!(addresses.len(), 2);
    assert_eq!(addresses[0].ipv4, Some(Ipv4Addr::new(172, 16, 0, 2)));
    assert_eq!(addresses[0], addresses[1], "one user, one address");
    assert!(!addresses[0].choose_v4);
    let created = [
        group(
            IeType::CREATED_PDR,
            &[
                tlv(IeType::PDR_ID, &[0, 1]),
                tlv(IeType::F_TEID, &[1, 0, 0, 1, 0, 10, 0, 0, 9]),
                tlv(IeType::UE_IP_ADDRESS, &[2, 172, 16, 0, 2]),
            ],
        ),
        group(
            IeType::CREATED_PDR,
            &[
                tlv(IeType::PDR_ID, &[0, 2]),
                tlv(IeType::UE_IP_ADDRESS, &[2, 172, 16, 0, 2]),
            ],
        ),
    ];
    assert_eq!(change.created, created.concat());
}

#[test]
fn the_same_choose_id_gives_the_same_tunnel() {
    let choose = |id| pdi(&[tlv(IeType::F_TEID, &[0x0d, id])]);
    let octets = establishment(&[
        pdr(1, &[choose(1), far_id(1)]),
        pdr(2, &[choose(2), far_id(1)]),
        pdr(3, &[choose(1), far_id(1)]),
        far(1),
    ]);
    let change = establish(&octets, &mut Counter::default()).expect("sound rules");
    let tunnels = change.rules.f_teids();
    assert_eq!(tunnels[0], tunnels[2]);
    assert_ne!(tunnels[0], tunnels[1]);
}

#[test]
fn nothing_is_chosen_for_rules_that_are_refused() {
    let mut counter = Counter::default();
    let choose = pdi(&[tlv(IeType::F_TEID, &[0x05])]);
    let create = pdr(3, &[choose, far_id(9)]);
    modify_with(&two_and_two(), &[create], &mut counter).expect_err("no FAR 9");
    assert_eq!(counter.0, 0);
}

#[test]
fn an_allocator_that_has_nothing_is_the_cause() {
    let create = pdr(3, &[pdi(&[tlv(IeType::F_TEID, &[0x05])]), far_id(1)]);
    let (cause, ie, rule) = refused(modify(&two_and_two(), &[create]));
    assert_eq!(cause, Cause::INVALID_F_TEID_ALLOCATION);
    assert_eq!(ie, Some(IeType::F_TEID));
    assert_eq!(rule, RuleId::from(PdrId(3)).failed_rule_id());
}

#[test]
fn every_kind_of_rule_is_created_updated_and_removed() {
    for kind in RuleKind::ALL {
        let octets = match kind {
            RuleKind::Pdr | RuleKind::Mar => 2,
            RuleKind::Far | RuleKind::Urr | RuleKind::Qer => 4,
            RuleKind::Bar | RuleKind::Srr | RuleKind::TrafficEndpoint => 1,
        };
        let id = tlv(kind.id(), &200u32.to_be_bytes()[4 - octets..]);
        let unknown = tlv(IeType(9999), &[1, 2, 3]);
        let parts = match kind {
            RuleKind::Pdr => vec![pdi(&[]), tlv(IeType::PRECEDENCE, &[0; 4]), far_id(1)],
            RuleKind::Far => vec![tlv(IeType::APPLY_ACTION, &[1])],
            RuleKind::Urr => vec![
                tlv(IeType::MEASUREMENT_METHOD, &[2]),
                tlv(IeType::REPORTING_TRIGGERS, &[0, 0, 0]),
            ],
            RuleKind::Qer => vec![tlv(IeType::GATE_STATUS, &[0])],
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
        assert!(after.windows(5).any(|octets| octets == change));
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
    let octets = bars.concat();
    let frame = session(
        MessageType::SESSION_MODIFICATION_REQUEST,
        &octets[..60_000 / bars[0].len() * bars[0].len()],
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
    fn a_refused_modification_leaves_the_rules_as_they_were(
        good in prop::collection::vec(any_element(), 0..3),
        elements in prop::collection::vec(any_element(), 0..6),
        wrong in 0usize..4,
    ) {
        let rules = modify(&two_and_two(), &good).unwrap_or_else(|_| two_and_two());
        let before = rules.clone();
        let octets = before.octets().to_vec();
        // One of these is never right, whatever stands beside it.
        let wrong = match wrong {
            0 => tlv(IeType::CREATE_PDR, &[]),
            1 => group(IeType::REMOVE_PDR, &[tlv(IeType::PDR_ID, &[0xff, 0xff])]),
            2 => pdr(77, &[pdi(&[]), far_id(0xffff_ffff)]),
            _ => group(IeType::UPDATE_FAR, &[far_id(1), tlv(IeType::APPLY_ACTION, &[])]),
        };
        let elements = [elements, vec![wrong]].concat();
        let outcome = modify_with(&rules, &elements, &mut Counter::default());
        prop_assert!(outcome.is_err());
        prop_assert_eq!(rules.octets(), &octets[..]);
        prop_assert_eq!(&rules, &before);
    }

    #[test]
    fn whatever_is_accepted_can_be_stored_and_names_only_what_exists(
        elements in prop::collection::vec(prop::collection::vec(any_element(), 0..4), 0..8),
    ) {
        let mut rules = two_and_two();
        let mut counter = Counter::default();
        for elements in elements {
            if let Ok(change) = modify_with(&rules, &elements, &mut counter) {
                rules = change.rules;
            }
        }
        prop_assert_eq!(&RuleSet::restore(rules.octets()).expect("our own octets"), &rules);
        for rule in rules.rules(RuleKind::Pdr) {
            for tlv in rule.tlvs().flatten().filter(|tlv| tlv.ie == IeType::FAR_ID) {
                let id = u32::from_be_bytes(*tlv.value.first_chunk().expect("checked"));
                prop_assert!(rules.rule(FarId(id).into()).is_some());
            }
        }
        prop_assert!(rules.f_teids().iter().all(|tunnel| !tunnel.choose));
    }
}

#[test]
fn a_urr_may_name_only_a_urr_that_exists() {
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
