//! The parts of a message, and their results.

use strowger_pfcp::endpoint::message;
use strowger_pfcp::ie::{Cause, FailedRuleId};
use strowger_pfcp::session::{Allocator, NoAllocator, Refusal, RuleChange, RuleSet};
use strowger_pfcp::{Frame, Header, IeType, MessageType, Seid, Sequence};

pub(crate) fn tlv(ie: IeType, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("a short value");
    [&ie.0.to_be_bytes()[..], &length.to_be_bytes(), value].concat()
}

pub(crate) fn group(ie: IeType, members: &[Vec<u8>]) -> Vec<u8> {
    tlv(ie, &members.concat())
}

pub(crate) fn session(message_type: MessageType, body: &[u8]) -> Vec<u8> {
    let header = Header::session(message_type, Seid(1), Sequence::new(1));
    message(&header, body).expect("a short body")
}

pub(crate) fn pdi(members: &[Vec<u8>]) -> Vec<u8> {
    group(
        IeType::PDI,
        &[vec![tlv(IeType::SOURCE_INTERFACE, &[0])], members.to_vec()].concat(),
    )
}

pub(crate) fn pdr(id: u16, members: &[Vec<u8>]) -> Vec<u8> {
    let head = vec![
        tlv(IeType::PDR_ID, &id.to_be_bytes()),
        tlv(IeType::PRECEDENCE, &[0, 0, 0, 100]),
    ];
    group(IeType::CREATE_PDR, &[head, members.to_vec()].concat())
}

pub(crate) fn far_id(id: u32) -> Vec<u8> {
    tlv(IeType::FAR_ID, &id.to_be_bytes())
}

pub(crate) fn far(id: u32) -> Vec<u8> {
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

pub(crate) fn tunnel(teid: u32) -> Vec<u8> {
    tlv(
        IeType::F_TEID,
        &[&[1][..], &teid.to_be_bytes(), &[10, 0, 0, 1]].concat(),
    )
}

pub(crate) fn establishment(rules: &[Vec<u8>]) -> Vec<u8> {
    let f_seid = [&[2][..], &7u64.to_be_bytes(), &[127, 0, 0, 7]].concat();
    let head = [
        tlv(IeType::NODE_ID, &[0, 127, 0, 0, 7]),
        tlv(IeType::F_SEID, &f_seid),
    ];
    let body = [head.concat(), rules.concat()].concat();
    session(MessageType::SESSION_ESTABLISHMENT_REQUEST, &body)
}

pub(crate) fn two_and_two() -> RuleSet {
    let bytes = establishment(&[
        pdr(1, &[pdi(&[tunnel(7)]), far_id(1)]),
        pdr(2, &[pdi(&[]), far_id(2)]),
        far(1),
        far(2),
    ]);
    establish(&bytes, &mut NoAllocator)
        .expect("sound rules")
        .rules
}

pub(crate) fn establish(
    bytes: &[u8],
    allocator: &mut dyn Allocator,
) -> Result<RuleChange, Refusal> {
    RuleSet::establish(&Frame::decode(bytes).expect("a message"), allocator)
}

pub(crate) fn modify(rules: &RuleSet, elements: &[Vec<u8>]) -> Result<RuleSet, Refusal> {
    modify_with(rules, elements, &mut NoAllocator).map(|change| change.rules)
}

pub(crate) fn modify_with(
    rules: &RuleSet,
    elements: &[Vec<u8>],
    allocator: &mut dyn Allocator,
) -> Result<RuleChange, Refusal> {
    let bytes = session(
        MessageType::SESSION_MODIFICATION_REQUEST,
        &elements.concat(),
    );
    rules.modify(&Frame::decode(&bytes).expect("a message"), allocator)
}

pub(crate) fn refused(
    outcome: Result<RuleSet, Refusal>,
) -> (Cause, Option<IeType>, Option<FailedRuleId>) {
    let refusal = outcome.expect_err("a refusal");
    (refusal.cause, refusal.offending_ie, refusal.failed_rule)
}
