//! The bodies of a load's requests.

use std::net::{IpAddr, Ipv4Addr};

use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::{FSeid, PdrId, Precedence, UpdatePdr};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::{Error, Seid};

use crate::client::{Rules, body_of};

/// Makes sessions that differ in all that must differ.
#[derive(Debug)]
pub(super) struct Sessions {
    name: NodeName,
    local: IpAddr,
    gateway: Ipv4Addr,
    /// So that two loads rarely use the same UE addresses and tunnels.
    offset: u32,
}

impl Sessions {
    pub(super) fn new(name: NodeName, local: IpAddr, peer: IpAddr, port: u16) -> Self {
        let gateway = match peer {
            IpAddr::V4(address) => address,
            IpAddr::V6(_) => Ipv4Addr::LOCALHOST,
        };
        let mixed =
            (u32::from(port) ^ std::process::id().rotate_left(16)).wrapping_mul(0x9e37_79b1);
        Self {
            name,
            local,
            gateway,
            offset: mixed,
        }
    }

    /// The body of an establishment: two PDRs and two FARs.
    pub(super) fn establishment(&self, seid: Seid) -> Result<Vec<u8>, Error> {
        let [.., a, b, c, d] = seid.0.to_be_bytes();
        let number = u32::from_be_bytes([a, b, c, d]).wrapping_add(self.offset);
        let [_, high, middle, low] = number.to_be_bytes();
        let ue = Ipv4Addr::new(10, high, middle, low);
        let rules = Rules::with_tunnel(number.max(1), self.gateway, ue.into());
        rules.into_request(&self.name, FSeid::new(seid, self.local))
    }

    /// The body of a modification that names a PDR and changes nothing: it is accepted if, and only
    /// if, the peer still has that PDR.
    pub(super) fn naming() -> Result<Vec<u8>, Error> {
        let update = UpdatePdr::new(PdrId(1)).precedence(Precedence(255));
        body_of(SessionModificationRequest::new().update_pdrs([update]))
    }
}
