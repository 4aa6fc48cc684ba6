//! Each rule of validation by itself: the values on both sides of its boundary.

use strowger_pfcp::ie::{Cause, FailedRuleId};
use strowger_pfcp::session::{RuleId, RuleKind, RuleSet};
use strowger_pfcp::validate::{Finding, FindingKind, findings};
use strowger_pfcp::{
    IeType, Index, Interfaces, Message, MessageType, MessageView, Rejection, validate,
};

use crate::bytes::tlv;
use crate::values::framed;

fn found(message: MessageType, body: &[u8]) -> Vec<Finding> {
    let bytes = framed(message, body);
    let mut index = Index::new();
    let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
    findings(&view, Interfaces::N4)
}

/// The elements that are missing or wrong according to a clause.
fn by_clause(message: MessageType, body: &[u8]) -> Vec<(IeType, &'static str)> {
    let clause = |finding: &Finding| match finding.kind {
        FindingKind::ConditionalMissing(clause) | FindingKind::Incorrect(clause) => {
            Some((finding.ie, clause))
        }
        _ => None,
    };
    found(message, body).iter().filter_map(clause).collect()
}

fn rejection(message: MessageType, body: &[u8]) -> Option<Rejection> {
    let bytes = framed(message, body);
    let error = Message::decode(&bytes).expect_err("malformed");
    Rejection::of(&error, &bytes)
}

const MODIFICATION: MessageType = MessageType::SESSION_MODIFICATION_REQUEST;

/// Groups that are rules: the type, the element that identifies one, its bytes, and the identifier.
fn rules() -> Vec<(IeType, IeType, Vec<u8>, FailedRuleId)> {
    let long = vec![0, 0, 1, 2];
    let [far, urr, qer] = [
        FailedRuleId::far(0x102.into()),
        FailedRuleId::urr(0x102.into()),
        FailedRuleId::qer(0x102.into()),
    ];
    let (pdr, bar) = (FailedRuleId::pdr(0x102.into()), FailedRuleId::bar(7.into()));
    let mut rules = Vec::new();
    for ie in [IeType::CREATE_PDR, IeType::UPDATE_PDR, IeType::REMOVE_PDR] {
        rules.push((ie, IeType::PDR_ID, vec![1, 2], pdr.clone()));
    }
    for ie in [IeType::CREATE_FAR, IeType::UPDATE_FAR, IeType::REMOVE_FAR] {
        rules.push((ie, IeType::FAR_ID, long.clone(), far.clone()));
    }
    let urrs = [
        IeType::CREATE_URR,
        IeType::UPDATE_URR,
        IeType::REMOVE_URR,
        IeType::QUERY_URR,
    ];
    for ie in urrs {
        rules.push((ie, IeType::URR_ID, long.clone(), urr.clone()));
    }
    for ie in [IeType::CREATE_QER, IeType::UPDATE_QER, IeType::REMOVE_QER] {
        rules.push((ie, IeType::QER_ID, long.clone(), qer.clone()));
    }
    for ie in [IeType::CREATE_BAR, IeType::UPDATE_BAR, IeType::REMOVE_BAR] {
        rules.push((ie, IeType::BAR_ID, vec![7], bar.clone()));
    }
    let failed = |kind, id| RuleId { kind, id }.failed_rule_id().expect("a rule");
    let (mar, srr) = (failed(RuleKind::Mar, 0x102), failed(RuleKind::Srr, 7));
    for ie in [IeType::CREATE_MAR, IeType::UPDATE_MAR, IeType::REMOVE_MAR] {
        rules.push((ie, IeType::MAR_ID, vec![1, 2], mar.clone()));
    }
    for ie in [IeType::CREATE_SRR, IeType::UPDATE_SRR, IeType::REMOVE_SRR] {
        rules.push((ie, IeType::SRR_ID, vec![7], srr.clone()));
    }
    rules
}

#[test]
fn rejection_names_failed_rule_of_every_kind() {
    for (group, name, id, rule) in rules() {
        let id = tlv(name.0, &id);
        // An element that no table has, in a group that identifies its rule.
        let body = tlv(group.0, &[id.clone(), tlv(999, &[])].concat());
        let found = found(MODIFICATION, &body);
        let unexpected = found.iter().find(|one| one.ie == IeType(999));
        let named = unexpected.and_then(|finding| finding.failed_rule.clone());
        assert_eq!(named.as_ref(), Some(&rule), "{group}");
        // A group that ends in the middle of a header, after an intact one with another identifier.
        let other = tlv(group.0, &tlv(name.0, &vec![9; id.len() - 4]));
        let cut = tlv(group.0, &[id, vec![0, 20, 0]].concat());
        let many = MODIFICATION
            .table()
            .and_then(|table| Some(table.member(group)?.many));
        let body = if many == Some(true) {
            [other, cut].concat()
        } else {
            cut
        };
        let rejection = rejection(MODIFICATION, &body).expect("answered");
        assert_eq!(rejection.cause, Cause::INVALID_LENGTH, "{group}");
        assert_eq!(rejection.failed_rule, Some(rule), "{group}");
    }
}

#[test]
fn broken_framing_is_answered_only_inside_an_element() {
    let header = vec![0, 20, 0];
    let overrun = vec![0, 20, 0, 9, 0];
    let vendors = [tlv(0x8001, &[1]), tlv(0x8001, &[])];
    for bad in [header, overrun].into_iter().chain(vendors) {
        assert_eq!(rejection(MODIFICATION, &bad), None, "{bad:02x?}");
        let inside = tlv(1, &bad);
        let rejection = rejection(MODIFICATION, &inside).expect("answered");
        assert_eq!(rejection.cause, Cause::INVALID_LENGTH, "{bad:02x?}");
    }
    let short = tlv(1, &tlv(56, &[1]));
    let length = rejection(MODIFICATION, &short).expect("answered");
    assert_eq!(length.cause, Cause::INVALID_LENGTH);
    assert_eq!(length.offending_ie, Some(IeType::PDR_ID));
    let missing = tlv(1, &tlv(56, &[0, 1]));
    let missing = rejection(MODIFICATION, &missing).expect("answered");
    assert_eq!(missing.cause, Cause::MANDATORY_IE_MISSING);
    assert_eq!(missing.offending_ie, Some(IeType::PDI));
}

#[test]
fn truncated_stored_rule_is_answered_as_incorrect() {
    // A rule that is restored from a store, and that ends in the middle of a header.
    let bytes = tlv(1, &[0]);
    let error = RuleSet::restore(&bytes).expect_err("no rule");
    let rejection = Rejection::of(&error, &bytes).expect("answered");
    assert_eq!(rejection.cause, Cause::MANDATORY_IE_INCORRECT);
}

#[test]
fn boundary_values_follow_their_clause() {
    let of = |ie: u16, value: &[u8]| {
        let interface = if ie == 20 { value } else { &[0] };
        let mut pdi = tlv(20, interface);
        if ie != 20 {
            pdi.extend(tlv(ie, value));
        }
        let pdr = [
            tlv(56, &[0, 1]),
            tlv(29, &[0; 4]),
            tlv(2, &pdi),
            tlv(108, &[0; 4]),
        ];
        by_clause(MODIFICATION, &tlv(1, &pdr.concat()))
    };
    assert_eq!(of(20, &[0]), []);
    assert_eq!(of(20, &[15]), [(IeType::SOURCE_INTERFACE, "8.2.2")]);
    assert_eq!(of(21, &[1, 0, 0, 0, 7, 127, 0, 0, 1]), []);
    assert_eq!(
        of(21, &[[2, 0, 0, 0, 7].to_vec(), vec![1; 16]].concat()),
        []
    );
    assert_eq!(of(21, &[0, 0, 0, 0, 7]), [(IeType::F_TEID, "8.2.3")]);
    assert_eq!(of(23, &[1, 0, 0, 1, b'a']), []);
    assert_eq!(of(23, &[1, 0, 0, 0]), [(IeType::SDF_FILTER, "8.2.5")]);
    let action = [tlv(108, &[0; 4]), tlv(44, &[2])].concat();
    let far = |destination: u8| {
        let parameters = tlv(4, &tlv(42, &[destination]));
        by_clause(MODIFICATION, &tlv(3, &[&action[..], &parameters].concat()))
    };
    assert_eq!(far(1), []);
    assert_eq!(far(15), [(IeType::DESTINATION_INTERFACE, "8.2.24")]);
    let setup = |node: &[u8]| {
        let body = [tlv(60, node), tlv(96, &[0; 4])].concat();
        by_clause(MessageType::ASSOCIATION_SETUP_REQUEST, &body)
    };
    assert_eq!(setup(&[0, 127, 0, 0, 1]), []);
    assert_eq!(setup(&[2, 1, b'a']), []);
    assert_eq!(setup(&[3, 1, b'a']), [(IeType::NODE_ID, "8.2.38")]);
    let pdn = |kind: u8| {
        let node = tlv(60, &[0, 127, 0, 0, 7]);
        let f_seid = tlv(57, &[2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 7]);
        let body = [node, f_seid, tlv(113, &[kind])].concat();
        by_clause(MessageType::SESSION_ESTABLISHMENT_REQUEST, &body)
    };
    assert_eq!(pdn(1), []);
    assert_eq!(pdn(0), [(IeType::PDN_TYPE, "8.2.79")]);
}

#[test]
fn accepting_response_requires_f_seid() {
    let node = tlv(60, &[0, 127, 0, 0, 7]);
    let f_seid = tlv(57, &[2, 0, 0, 0, 0, 0, 0, 0, 1, 127, 0, 0, 7]);
    let answer = |cause: u8, more: &[u8]| {
        let body = [&node[..], &tlv(19, &[cause]), more].concat();
        by_clause(MessageType::SESSION_ESTABLISHMENT_RESPONSE, &body)
    };
    assert_eq!(answer(1, &[]), [(IeType::F_SEID, "7.5.3.1")]);
    assert_eq!(answer(1, &f_seid), []);
    assert_eq!(answer(64, &[]), []);
}

#[test]
fn report_requires_content_of_its_type() {
    let parts = [
        (1, IeType::DOWNLINK_DATA_REPORT),
        (2, IeType::USAGE_REPORT_REQUEST),
        (4, IeType::ERROR_INDICATION_REPORT),
    ];
    for flags in 0..8_u8 {
        for there in 0..8_u8 {
            let mut body = tlv(39, &[flags]);
            let mut expected = Vec::new();
            for (bit, ie) in parts {
                if there & bit != 0 {
                    body.extend(tlv(ie.0, &[]));
                } else if flags & bit != 0 {
                    expected.push((ie, "7.5.8.1"));
                }
            }
            if flags == 0 {
                expected.push((IeType::REPORT_TYPE, "8.2.21"));
            }
            let all = by_clause(MessageType::SESSION_REPORT_REQUEST, &body);
            assert_eq!(all, expected, "{flags:03b} with {there:03b}");
        }
    }
}

#[test]
fn flag_requires_its_members() {
    let far = |action: &[u8], more: &[u16]| {
        let more = more.iter().flat_map(|ie| tlv(*ie, &tlv(42, &[1])));
        let group = [tlv(108, &[0; 4]), tlv(44, action), more.collect()].concat();
        by_clause(MODIFICATION, &tlv(3, &group))
    };
    let forward = (IeType::FORWARDING_PARAMETERS, "7.5.2.3");
    let duplicate = (IeType::DUPLICATING_PARAMETERS, "7.5.2.3");
    assert_eq!(far(&[1], &[]), []);
    assert_eq!(far(&[2], &[]), [forward]);
    assert_eq!(far(&[2, 0], &[]), [forward]);
    assert_eq!(far(&[2], &[4]), []);
    assert_eq!(far(&[0x11], &[]), [duplicate]);
    assert_eq!(far(&[0x11], &[4]), [duplicate]);
    assert_eq!(far(&[0x12], &[]), [forward, duplicate]);
    assert_eq!(far(&[0x12], &[4, 5]), []);
    let triggers: [(&[u8], IeType); 5] = [
        (&[1, 0], IeType::MEASUREMENT_PERIOD),
        (&[2, 0], IeType::VOLUME_THRESHOLD),
        (&[4, 0], IeType::TIME_THRESHOLD),
        (&[0, 1, 0], IeType::VOLUME_QUOTA),
        (&[0, 2, 0], IeType::TIME_QUOTA),
    ];
    for (trigger, ie) in triggers {
        let urr = |more: Vec<u8>| {
            let group = [tlv(81, &[0; 4]), tlv(62, &[1]), tlv(37, trigger), more].concat();
            by_clause(MODIFICATION, &tlv(6, &group))
        };
        assert_eq!(urr(Vec::new()), [(ie, "7.5.2.4")], "{ie}");
        assert_eq!(urr(tlv(ie.0, &[0; 9])), [], "{ie}");
        // The elements required by the other triggers do not satisfy this one.
        let others = triggers.iter().filter(|(_, other)| *other != ie);
        let others = others
            .flat_map(|(_, other)| tlv(other.0, &[0; 9]))
            .collect();
        assert_eq!(urr(others), [(ie, "7.5.2.4")], "{ie}");
    }
    for ie in [
        IeType::FAR_ID,
        IeType::ACTIVATE_PREDEFINED_RULES,
        IeType::MAR_ID,
    ] {
        let pdr = |more: Vec<u8>| {
            let pdi = tlv(2, &tlv(20, &[0]));
            let group = [tlv(56, &[0, 1]), tlv(29, &[0; 4]), pdi, more].concat();
            by_clause(MODIFICATION, &tlv(1, &group))
        };
        assert_eq!(pdr(Vec::new()), [(IeType::FAR_ID, "7.5.2.2")]);
        assert_eq!(pdr(tlv(ie.0, &[0; 4])), [], "{ie}");
    }
}

#[test]
fn empty_message_lacks_every_mandatory_member() {
    for message in MessageType::ALL {
        let bytes = framed(*message, &[]);
        let mut index = Index::new();
        let view = MessageView::decode(&bytes, &mut index).expect("well-formed");
        let table = message.table().expect("a table");
        for on in Interfaces::ALL.iter() {
            let mandatory = table.members.iter().filter(|member| {
                member.presence == strowger_pfcp::ie::descriptor::Presence::Mandatory
                    && member.on.contains(on)
            });
            let missing = findings(&view, on);
            let missing = missing
                .iter()
                .filter(|one| one.kind == FindingKind::Missing);
            let missing: Vec<IeType> = missing.map(|finding| finding.ie).collect();
            let mandatory: Vec<IeType> = mandatory.map(|member| member.ie).collect();
            assert_eq!(missing, mandatory, "{message} on {on}");
            let is_foreign = !message.interfaces().contains(on);
            assert_eq!(
                validate(&view, on).is_err(),
                is_foreign || !mandatory.is_empty(),
                "{message} on {on}"
            );
        }
    }
}

#[test]
fn vendor_element_yields_no_finding() {
    // The second has nothing after the enterprise number.
    for vendor in [tlv(0x8001, &[0, 9, 1]), tlv(0x8001, &[0, 9])] {
        assert_eq!(found(MODIFICATION, &vendor), []);
    }
    let unknown = found(MODIFICATION, &tlv(999, &[]));
    assert_eq!(unknown.len(), 1);
    assert_eq!(unknown[0].kind, FindingKind::Unexpected);
}

#[test]
fn path_index_counts_elements_of_same_type() {
    let good = tlv(17, &tlv(81, &[0; 4]));
    let lacking = tlv(17, &[]);
    let body = [good.clone(), tlv(16, &tlv(108, &[0; 4])), good, lacking].concat();
    let found = found(MODIFICATION, &body);
    let text: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        text,
        ["Session Modification Request / Remove URR[2]: URR ID is missing"]
    );
}
