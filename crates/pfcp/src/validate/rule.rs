//! The rules that elements belong to, for Failed Rule ID in an answer (TS 29.244 §8.2.80).

use crate::error::IePath;
use crate::ie::{BarId, FailedRuleId, FarId, IeType, PdrId, QerId, UrrId};
use crate::wire::{Header, Part, Tlvs};

/// Returns the element that identifies the rule of a group.
const fn name_of(group: IeType) -> Option<IeType> {
    match group {
        IeType::CREATE_PDR | IeType::UPDATE_PDR | IeType::REMOVE_PDR => Some(IeType::PDR_ID),
        IeType::CREATE_FAR | IeType::UPDATE_FAR | IeType::REMOVE_FAR => Some(IeType::FAR_ID),
        IeType::CREATE_URR | IeType::UPDATE_URR | IeType::REMOVE_URR | IeType::QUERY_URR => {
            Some(IeType::URR_ID)
        }
        IeType::CREATE_QER | IeType::UPDATE_QER | IeType::REMOVE_QER => Some(IeType::QER_ID),
        IeType::CREATE_BAR | IeType::UPDATE_BAR | IeType::REMOVE_BAR => Some(IeType::BAR_ID),
        _ => None,
    }
}

fn failed(name: IeType, value: &[u8]) -> Option<FailedRuleId> {
    let long = || value.first_chunk().map(|id| u32::from_be_bytes(*id));
    match name {
        IeType::PDR_ID => value
            .first_chunk()
            .map(|id| FailedRuleId::pdr(PdrId(u16::from_be_bytes(*id)))),
        IeType::FAR_ID => long().map(|id| FailedRuleId::far(FarId(id))),
        IeType::URR_ID => long().map(|id| FailedRuleId::urr(UrrId(id))),
        IeType::QER_ID => long().map(|id| FailedRuleId::qer(QerId(id))),
        IeType::BAR_ID => value.first().map(|id| FailedRuleId::bar(BarId(*id))),
        _ => None,
    }
}

/// Returns the identifier of the rule that a checked group describes.
pub(super) fn named_by(group: Part<'_>) -> Option<FailedRuleId> {
    let name = name_of(group.ie())?;
    failed(name, group.find(name)?.value())
}

/// Returns the identifier of the rule on a path. The message may be malformed further inside.
pub(super) fn of_path(path: &IePath, message: &[u8]) -> Option<FailedRuleId> {
    // Rules are members of the message, so the first step is the rule if any is.
    let step = path.steps().next()?;
    let name = name_of(step.ie)?;
    let (header, _) = Header::decode(message).ok()?;
    let group = Tlvs::new(message.get(header.encoded_len()..)?)
        .map_while(Result::ok)
        .filter(|tlv| tlv.ie == step.ie)
        .nth(step.index.unwrap_or(0))?;
    // The identifier is usually the first member, before the one at fault.
    let mut members = Tlvs::new(group.value).map_while(Result::ok);
    failed(name, members.find(|tlv| tlv.ie == name)?.value)
}
