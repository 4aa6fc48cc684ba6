use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::RuleSet;
use super::kind::{RuleId, RuleKind, RuleOperation};
use super::merge::merged;
use super::refusal::Refusal;
use crate::ie::{Cause, IeType};
use crate::wire::{Frame, Tlv, Tlvs};

/// The type of a session parameter and, for one of a vendor, its enterprise.
type ParameterKey = (IeType, Option<u16>);

/// A rule set that is being changed. The unchanged parts are borrowed.
pub(super) struct RuleSetDraft<'a> {
    /// The session parameters.
    session: Vec<(ParameterKey, &'a [u8])>,
    /// The values of the rules.
    pub(super) rules: BTreeMap<RuleId, Cow<'a, [u8]>>,
    /// The rules that the message created or updated.
    pub(super) changed: Vec<RuleId>,
}

impl<'a> RuleSetDraft<'a> {
    pub(super) fn of(rules: &'a RuleSet) -> Self {
        let session = rules
            .session_elements()
            .map(|tlv| ((tlv.ie, tlv.enterprise), raw(&rules.bytes, &tlv)))
            .collect();
        Self {
            session,
            rules: rules
                .iter()
                .map(|rule| (rule.id, Cow::Borrowed(rule.value)))
                .collect(),
            changed: Vec::new(),
        }
    }

    /// Applies a message: removals, creations, then updates.
    pub(super) fn apply(&mut self, frame: &Frame<'a>) -> Result<(), Refusal> {
        let unknown = self.unknown_queries(frame)?;
        for operation in [
            RuleOperation::Remove,
            RuleOperation::Create,
            RuleOperation::Update,
        ] {
            for tlv in Tlvs::new(frame.body) {
                let tlv = tlv.map_err(|error| Refusal::of(&error, &[]))?;
                if let Some((kind, found)) = RuleKind::of(tlv.ie)
                    && found == operation
                {
                    self.rule(kind, operation, tlv.value)?;
                }
            }
        }
        if let Some(id) = unknown.iter().find(|id| !self.rules.contains_key(id)) {
            return Err(Refusal::new(Cause::RULE_FAILURE).rule(*id));
        }
        self.session_elements(frame.body);
        self.changed.sort_unstable();
        self.changed.dedup();
        Ok(())
    }

    /// Returns the queried URRs that did not exist before the message.
    fn unknown_queries(&self, frame: &Frame<'a>) -> Result<Vec<RuleId>, Refusal> {
        let elements = Tlvs::new(frame.body).map_while(Result::ok);
        let queries = elements.filter(|tlv| tlv.ie == IeType::QUERY_URR);
        let ids = queries.map(|tlv| RuleKind::Urr.find_id(tlv.value));
        ids.filter(|id| !matches!(id, Ok(id) if self.rules.contains_key(id)))
            .collect()
    }

    fn rule(
        &mut self,
        kind: RuleKind,
        operation: RuleOperation,
        value: &'a [u8],
    ) -> Result<(), Refusal> {
        let id = kind.find_id(value)?;
        match (operation, self.rules.entry(id)) {
            (RuleOperation::Create, Entry::Vacant(entry)) => {
                entry.insert(Cow::Borrowed(value));
                self.changed.push(id);
            }
            (RuleOperation::Update, Entry::Occupied(mut entry)) => {
                let after = merged(kind, entry.get(), value).map_err(|refusal| refusal.rule(id))?;
                kind.check(&after).map_err(|refusal| refusal.rule(id))?;
                entry.insert(Cow::Owned(after));
                self.changed.push(id);
            }
            (RuleOperation::Remove, Entry::Occupied(entry)) => {
                entry.remove();
            }
            (RuleOperation::Create, Entry::Occupied(_)) | (_, Entry::Vacant(_)) => {
                return Err(Refusal::new(Cause::RULE_FAILURE).rule(id));
            }
        }
        Ok(())
    }

    /// Stores the session parameters of a message, which replace the previous elements of the same
    /// types.
    fn session_elements(&mut self, body: &'a [u8]) {
        let new: Vec<_> = Tlvs::new(body)
            .map_while(Result::ok)
            .filter(|tlv| RuleKind::of(tlv.ie).is_none() && !TRANSIENT.contains(&tlv.ie))
            .map(|tlv| ((tlv.ie, tlv.enterprise), raw(body, &tlv)))
            .collect();
        if self.session.is_empty() {
            self.session = new;
        } else {
            let mut types: Vec<_> = new.iter().map(|(key, _)| *key).collect();
            types.sort_unstable();
            self.session
                .retain(|(key, _)| types.binary_search(key).is_err());
            self.session.extend(new);
        }
        self.session.sort_by_key(|(key, _)| *key);
    }

    /// Encodes the rule set.
    pub(super) fn finish(&self) -> Result<RuleSet, Refusal> {
        let session: usize = self.session.iter().map(|(_, bytes)| bytes.len()).sum();
        let rules: usize = self.rules.values().map(|value| 4 + value.len()).sum();
        let too_much = || Refusal::new(Cause::NO_RESOURCES_AVAILABLE);
        let length = u32::try_from(session + rules).map_err(|_| too_much())?;
        let mut bytes = Vec::with_capacity(length as usize);
        for (_, element) in &self.session {
            bytes.extend_from_slice(element);
        }
        for (id, value) in &self.rules {
            put(&mut bytes, id.kind.create(), value).map_err(|refusal| refusal.rule(*id))?;
        }
        Ok(RuleSet {
            bytes: bytes.into(),
        })
    }
}

/// Elements that take effect once and are not stored.
const TRANSIENT: [IeType; 9] = [
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

/// Returns the bytes of a complete element. `bytes` are the bytes that it was found in.
pub(super) fn raw<'a>(bytes: &'a [u8], tlv: &Tlv<'_>) -> &'a [u8] {
    &bytes[tlv.offset..tlv.value_offset() + tlv.value.len()]
}

/// Appends an element, if its length fits the length field.
pub(super) fn put(out: &mut Vec<u8>, ie: IeType, value: &[u8]) -> Result<(), Refusal> {
    let length = u16::try_from(value.len())
        .map_err(|_| Refusal::new(Cause::NO_RESOURCES_AVAILABLE).at(ie))?;
    out.extend_from_slice(&ie.0.to_be_bytes());
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(value);
    Ok(())
}
