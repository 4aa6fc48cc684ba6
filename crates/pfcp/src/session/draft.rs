use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;

use super::RuleSet;
use super::kind::{Deed, RuleId, RuleKind};
use super::merge::merged;
use super::refusal::Refusal;
use crate::ie::{Cause, IeType};
use crate::wire::{Frame, Tlv, Tlvs};

/// A rule set that is being changed. What does not change is borrowed.
pub(super) struct Draft<'a> {
    /// What is said about the session itself.
    session: Vec<(IeType, &'a [u8])>,
    /// The values of the rules.
    pub(super) rules: BTreeMap<RuleId, Cow<'a, [u8]>>,
    /// The rules that this message created or updated.
    pub(super) touched: Vec<RuleId>,
}

impl<'a> Draft<'a> {
    pub(super) fn of(rules: &'a RuleSet) -> Self {
        let session = rules
            .session_elements()
            .map(|tlv| (tlv.ie, raw(&rules.octets, &tlv)))
            .collect();
        Self {
            session,
            rules: rules
                .iter()
                .map(|rule| (rule.id, Cow::Borrowed(rule.value)))
                .collect(),
            touched: Vec::new(),
        }
    }

    /// Does what a message says: removals, creations, updates.
    pub(super) fn apply(&mut self, frame: &Frame<'a>) -> Result<(), Refusal> {
        let unknown = self.unknown_queries(frame)?;
        for deed in [Deed::Remove, Deed::Create, Deed::Update] {
            for tlv in Tlvs::new(frame.body) {
                let tlv = tlv.map_err(|error| Refusal::of(&error, &[]))?;
                if let Some((kind, found)) = RuleKind::of(tlv.ie)
                    && found == deed
                {
                    self.rule(kind, deed, tlv.value)?;
                }
            }
        }
        if let Some(id) = unknown.iter().find(|id| !self.rules.contains_key(id)) {
            return Err(Refusal::new(Cause::RULE_FAILURE).rule(*id));
        }
        self.session_elements(frame.body);
        self.touched.sort_unstable();
        self.touched.dedup();
        Ok(())
    }

    /// The rules whose usage is asked for and that there are not yet.
    fn unknown_queries(&self, frame: &Frame<'a>) -> Result<Vec<RuleId>, Refusal> {
        let elements = Tlvs::new(frame.body).map_while(Result::ok);
        let queries = elements.filter(|tlv| tlv.ie == IeType::QUERY_URR);
        let ids = queries.map(|tlv| RuleKind::Urr.find_id(tlv.value));
        ids.filter(|id| !matches!(id, Ok(id) if self.rules.contains_key(id)))
            .collect()
    }

    fn rule(&mut self, kind: RuleKind, deed: Deed, value: &'a [u8]) -> Result<(), Refusal> {
        let id = kind.find_id(value)?;
        let failed = Refusal::new(Cause::RULE_FAILURE).rule(id);
        match (deed, self.rules.entry(id)) {
            (Deed::Create, Place::Vacant(place)) => {
                place.insert(Cow::Borrowed(value));
                self.touched.push(id);
            }
            (Deed::Update, Place::Occupied(mut place)) => {
                let after = merged(kind, place.get(), value).map_err(|refusal| refusal.rule(id))?;
                kind.check(&after).map_err(|refusal| refusal.rule(id))?;
                place.insert(Cow::Owned(after));
                self.touched.push(id);
            }
            (Deed::Remove, Place::Occupied(place)) => {
                place.remove();
            }
            (Deed::Create, Place::Occupied(_)) | (_, Place::Vacant(_)) => return Err(failed),
        }
        Ok(())
    }

    /// Takes over what is said about the session itself; it replaces what was said before.
    fn session_elements(&mut self, body: &'a [u8]) {
        let new: Vec<_> = Tlvs::new(body)
            .map_while(Result::ok)
            .filter(|tlv| RuleKind::of(tlv.ie).is_none() && !PASSING.contains(&tlv.ie))
            .map(|tlv| (tlv.ie, raw(body, &tlv)))
            .collect();
        let mut types: Vec<IeType> = new.iter().map(|(ie, _)| *ie).collect();
        types.sort_unstable();
        self.session
            .retain(|(ie, _)| types.binary_search(ie).is_err());
        self.session.extend(new);
        self.session.sort_by_key(|(ie, _)| *ie);
    }

    /// Writes the rules down.
    pub(super) fn finish(&self) -> Result<RuleSet, Refusal> {
        let session: usize = self.session.iter().map(|(_, octets)| octets.len()).sum();
        let rules: usize = self.rules.values().map(|value| 4 + value.len()).sum();
        let too_much = || Refusal::new(Cause::NO_RESOURCES_AVAILABLE);
        let whole = u32::try_from(session + rules).map_err(|_| too_much())?;
        let mut octets = Vec::with_capacity(whole as usize);
        for (_, element) in &self.session {
            octets.extend_from_slice(element);
        }
        for (id, value) in &self.rules {
            put(&mut octets, id.kind.create(), value).map_err(|refusal| refusal.rule(*id))?;
        }
        Ok(RuleSet {
            octets: octets.into(),
        })
    }
}

/// What a message says for once, and nobody keeps.
const PASSING: [IeType; 9] = [
    IeType::PFCPSMREQ_FLAGS,
    IeType::PFCPSEREQ_FLAGS,
    IeType::QUERY_URR,
    IeType::QUERY_URR_REFERENCE,
    IeType::QUERY_PACKET_RATE_STATUS_IE_WITHIN_PFCP_SESSION_MODIFICATION_REQUEST,
    IeType::TL_CONTAINER,
    IeType::TSC_MANAGEMENT_INFORMATION_IE_WITHIN_PFCP_SESSION_MODIFICATION_REQUEST,
    IeType::ETHERNET_CONTEXT_INFORMATION,
    IeType::ACCESS_AVAILABILITY_INFORMATION,
];

/// Returns the octets of a whole element, given those that it was found in.
pub(super) fn raw<'a>(octets: &'a [u8], tlv: &Tlv<'_>) -> &'a [u8] {
    &octets[tlv.offset..tlv.value_offset() + tlv.value.len()]
}

/// Appends an element, if its length can be said.
pub(super) fn put(out: &mut Vec<u8>, ie: IeType, value: &[u8]) -> Result<(), Refusal> {
    let length = u16::try_from(value.len())
        .map_err(|_| Refusal::new(Cause::NO_RESOURCES_AVAILABLE).at(ie))?;
    out.extend_from_slice(&ie.0.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(value);
    Ok(())
}
