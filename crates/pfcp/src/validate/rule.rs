//! The rules that elements belong to, for Failed Rule ID in an answer (TS 29.244 §8.2.80).

use crate::error::IePath;
use crate::ie::{FailedRuleId, IeType};
use crate::session::{RuleId, RuleKind};
use crate::wire::{Header, Part, Tlvs};

/// Returns the kind of the rule that an element of a message describes.
fn kind_of(group: IeType) -> Option<RuleKind> {
    match group {
        IeType::QUERY_URR => Some(RuleKind::Urr),
        _ => RuleKind::of(group).map(|(kind, _)| kind),
    }
}

fn failed(kind: RuleKind, value: &[u8]) -> Option<FailedRuleId> {
    let id = kind.read_id(value)?;
    RuleId { kind, id }.failed_rule_id()
}

/// Returns the identifier of the rule that a checked group describes.
pub(super) fn named_by(group: Part<'_>) -> Option<FailedRuleId> {
    let kind = kind_of(group.ie())?;
    failed(kind, group.find(kind.id())?.value())
}

/// Returns the identifier of the rule on a path. The message may be malformed further inside.
pub(super) fn of_path(path: &IePath, message: &[u8]) -> Option<FailedRuleId> {
    // Rules are members of the message, so the first step is the rule if any is.
    let step = path.steps().next()?;
    let kind = kind_of(step.ie)?;
    let (header, _) = Header::decode(message).ok()?;
    let group = Tlvs::new(message.get(header.encoded_len()..)?)
        .map_while(Result::ok)
        .filter(|tlv| tlv.ie == step.ie)
        .nth(step.index.unwrap_or(0))?;
    // The identifier is usually the first member, before the one at fault.
    let mut members = Tlvs::new(group.value).map_while(Result::ok);
    failed(kind, members.find(|tlv| tlv.ie == kind.id())?.value)
}
