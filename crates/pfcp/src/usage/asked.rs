//! What a modification says about usage.

use std::collections::BTreeSet;

use litemap::LiteMap;

use crate::ie::{Ie, IeType, PfcpsmreqFlags, QueryUrrReference, UpdateUrr};
use crate::wire::{Frame, Tlv, Tlvs};

/// What a modification says about usage.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) queried: BTreeSet<u32>,
    pub(super) all: bool,
    pub(super) reference: Option<QueryUrrReference>,
    pub(super) removed: BTreeSet<u32>,
    /// The types of the elements that an update has.
    pub(super) updated: LiteMap<u32, Vec<IeType>>,
    pub(super) flags: PfcpsmreqFlags,
}

impl Asked {
    pub(super) fn of(requests: &[&Frame<'_>]) -> Self {
        let mut asked = Self::default();
        for frame in requests {
            for tlv in Tlvs::new(frame.body).map_while(Result::ok) {
                asked.element(&tlv);
            }
        }
        asked
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
