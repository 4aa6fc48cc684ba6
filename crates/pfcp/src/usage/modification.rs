//! The usage-related parts of a modification.
//!
//! The rule set has only the outcome of a modification. A meter also needs the way there: which
//! rules were queried, which were removed and created again, and which members an update gave,
//! because a quota that is given again is a new one.

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
        // Several, because a policy may add a request of its own to that of the peer.
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
                // The values are in the rule set, merged; only the types are needed here.
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
                // Flags of all requests: each orders something once (TS 29.244 §8.2.31).
                self.flags = self.flags | flags;
                // QAURR queries all URRs (§8.2.31).
                self.all |= flags.contains(PfcpsmreqFlags::QAURR);
            }
            _ => {}
        }
    }
}
