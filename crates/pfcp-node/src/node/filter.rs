//! The choice of sessions to list.

use std::net::IpAddr;

use strowger_pfcp::Seid;

use super::SessionInfo;
use crate::store::SessionRecord;

/// A filter for listing sessions; fields that are `None` match every session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// The SEID of the node or of the peer.
    pub seid: Option<Seid>,
    /// A UE IP address.
    pub ue_address: Option<IpAddr>,
    /// A TEID at the node.
    pub teid: Option<u32>,
    /// The address of the peer.
    pub peer: Option<IpAddr>,
    /// The Node ID of the peer.
    pub node: Option<String>,
}

impl SessionFilter {
    /// Checks the criteria that do not require decoding the rules.
    pub(super) fn may_pass(&self, record: &SessionRecord) -> bool {
        self.seid
            .is_none_or(|seid| [record.seid, record.peer_seid].contains(&seid))
            && self
                .peer
                .is_none_or(|peer| record.owner.address.ip() == peer)
    }

    pub(super) fn passes(&self, info: &SessionInfo) -> bool {
        self.ue_address
            .is_none_or(|address| info.ue_addresses.contains(&address))
            && self
                .teid
                .is_none_or(|teid| info.teids.iter().any(|&(one, _)| one == teid))
            && self
                .node
                .as_ref()
                .is_none_or(|node| info.node.eq_ignore_ascii_case(node))
    }
}
