//! References between rules.

use super::draft::RuleSetDraft;
use super::kind::{RuleId, RuleKind};
use super::refusal::Refusal;
use crate::ie::{Cause, Group, IeType, Interfaces, Member, Presence};
use crate::wire::Tlvs;

/// An element of a rule that refers to another rule.
struct RuleReference {
    of: RuleKind,
    /// The group that contains the element, if it is not a direct member of the rule.
    within: Option<IeType>,
    ie: IeType,
    to: RuleKind,
}

const fn reference(
    of: RuleKind,
    within: Option<IeType>,
    ie: IeType,
    to: RuleKind,
) -> RuleReference {
    RuleReference { of, within, ie, to }
}

const REFERENCES: [RuleReference; 9] = {
    use IeType as I;
    use RuleKind::{Bar, Far, Mar, Pdr, Qer, TrafficEndpoint, Urr};
    [
        reference(Pdr, None, I::FAR_ID, Far),
        reference(Pdr, None, I::URR_ID, Urr),
        reference(Pdr, None, I::QER_ID, Qer),
        reference(Pdr, None, I::MAR_ID, Mar),
        reference(Pdr, Some(I::PDI), I::TRAFFIC_ENDPOINT_ID, TrafficEndpoint),
        reference(Far, None, I::BAR_ID, Bar),
        reference(Urr, None, I::LINKED_URR_ID, Urr),
        reference(
            Mar,
            Some(I::TGPP_ACCESS_FORWARDING_ACTION_INFORMATION),
            I::FAR_ID,
            Far,
        ),
        reference(
            Mar,
            Some(I::NON_3GPP_ACCESS_FORWARDING_ACTION_INFORMATION),
            I::FAR_ID,
            Far,
        ),
    ]
};

impl RuleSetDraft<'_> {
    /// Checks that all rules that are referred to exist.
    pub(super) fn check_references(&self) -> Result<(), Refusal> {
        for (id, value) in &self.rules {
            for tlv in Tlvs::new(value).map_while(Result::ok) {
                for reference in REFERENCES.iter().filter(|one| one.of == id.kind) {
                    if reference.within == Some(tlv.ie) {
                        for inner in Tlvs::new(tlv.value).map_while(Result::ok) {
                            if inner.ie == reference.ie {
                                self.check_reference(*id, reference, inner.value)?;
                            }
                        }
                    } else if reference.within.is_none() && reference.ie == tlv.ie {
                        self.check_reference(*id, reference, tlv.value)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn check_reference(
        &self,
        id: RuleId,
        reference: &RuleReference,
        value: &[u8],
    ) -> Result<(), Refusal> {
        let named = reference.to.read_id(value).ok_or_else(|| {
            Refusal::new(Cause::INVALID_LENGTH)
                .at(reference.ie)
                .rule(id)
        })?;
        let named = RuleId {
            kind: reference.to,
            id: named,
        };
        if self.rules.contains_key(&named) {
            return Ok(());
        }
        let refusal = Refusal::new(Cause::RULE_FAILURE);
        Err(refusal.at(reference.ie).rule(id))
    }
}

/// Checks that a group has the members that are mandatory on every interface.
pub(super) fn check_present(bytes: &[u8], group: &Group) -> Result<(), Refusal> {
    let required = |member: &&Member| {
        member.presence == Presence::Mandatory && member.on.contains(Interfaces::ALL)
    };
    let mut missing: Vec<&Member> = group.members.iter().filter(required).collect();
    for tlv in Tlvs::new(bytes).map_while(Result::ok) {
        missing.retain(|member| member.ie != tlv.ie);
    }
    match missing.first() {
        None => Ok(()),
        Some(member) => Err(Refusal::new(Cause::MANDATORY_IE_MISSING).at(member.ie)),
    }
}

/// Returns `true` if the bytes are a sequence of complete elements.
pub(super) fn is_well_formed(bytes: &[u8]) -> bool {
    Tlvs::new(bytes).all(|tlv| tlv.is_ok())
}
