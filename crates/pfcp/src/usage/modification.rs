//! The usage-related parts of a modification.

use std::collections::BTreeSet;

use litemap::LiteMap;

use crate::ie::{Ie, IeType, PfcpsmreqFlags, QueryUrrReference, UpdateUrr};
use crate::wire::{Frame, Tlv, Tlvs};

/// The usage-related parts of a modification.
#[derive(Debug, Default)]
pub(super) struct UsageModification {
    pub(super) queried: BTreeSet<u32>,
    pub(super) all: bool,
    pub(super) reference: Option<QueryUrrReference>,
    pub(super) removed: BTreeSet<u32>,
    /// The types of the elements in each Update URR, by URR ID.
    pub(super) updated: LiteMap<u32, Vec<IeType>>,
    pub(super) flags: PfcpsmreqFlags,
}

impl UsageModification {
    pub(super) fn of(requests: &[&Frame<'_>]) -> Self {
        let mut modification = Self::default();
        for frame in requests {
            for tlv in Tlvs::new(frame.body).map_while(Result::ok) {
                modification.element(&tlv);
            }
        }
        modification
    }

    fn element(&mut self, tlv: &Tlv<'_>) {
        let id = || {
            let id = Tlvs::new(tlv.value)
                .map_while(Result::ok)
                .find(|member| member.ie == IeType::URR_ID)?;
            Some(u32::from_be_bytes(*id.value.first_chunk()?))
        };
        match tlv.ie {
            IeType::QUERY_URR => self.queried.extend(id()),
            IeType::REMOVE_URR => self.removed.extend(id()),
            UpdateUrr::TYPE => {
                let types = Tlvs::new(tlv.value)
                    .map_while(Result::ok)
                    .map(|member| member.ie);
                if let Some(id) = id() {
                    self.updated.entry(id).or_default().extend(types);
                }
            }
            IeType::QUERY_URR_REFERENCE => {
                self.reference = QueryUrrReference::decode(tlv.value).ok();
            }
            IeType::PFCPSMREQ_FLAGS => {
                let flags = PfcpsmreqFlags::decode(tlv.value).unwrap_or_default();
                self.flags = self.flags | flags;
                self.all |= flags.contains(PfcpsmreqFlags::QAURR);
            }
            _ => {}
        }
    }
}
