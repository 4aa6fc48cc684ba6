//! Allocation of TEIDs and UE IP addresses that a peer asks the node to choose.

use std::net::{Ipv4Addr, Ipv6Addr};

use strowger_pfcp::Seid;
use strowger_pfcp::ie::{Cause, FTeid};
use strowger_pfcp::session::{Allocator, UeAddressRequest};

use crate::pool::InstanceKey;
use crate::shared::Shared;

/// An allocator that takes addresses from the pools of the node for one session.
#[derive(Debug)]
pub(super) struct PoolAllocator<'a> {
    pub(super) shared: &'a Shared,
    pub(super) seid: Seid,
}

impl Allocator for PoolAllocator<'_> {
    fn f_teid(&mut self, request: &FTeid, _: Option<&[u8]>) -> Result<FTeid, Cause> {
        let (v4, v6) = self.shared.pool.gtpu();
        let addresses = match (request.v4, request.v6) {
            // A deviation: neither flag is set, so the node chooses the address family.
            (false, false) => (v4, v6.filter(|_| v4.is_none())),
            (is_v4, is_v6) => (v4.filter(|_| is_v4), v6.filter(|_| is_v6)),
        };
        if !self.shared.config.offers("ftup") || addresses == (None, None) {
            return Err(Cause::INVALID_F_TEID_ALLOCATION);
        }
        let teid = self.shared.pool.allocate_teid(self.seid);
        let teid = teid.ok_or(Cause::NO_RESOURCES_AVAILABLE)?;
        match addresses {
            (Some(v4), Some(v6)) => Ok(FTeid::dual(teid, v4, v6)),
            (Some(v4), None) => Ok(FTeid::new(teid, v4.into())),
            (None, Some(v6)) => Ok(FTeid::new(teid, v6.into())),
            (None, None) => Err(Cause::INVALID_F_TEID_ALLOCATION),
        }
    }

    fn ue_address(
        &mut self,
        request: UeAddressRequest,
        network_instance: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause> {
        if !self.shared.config.offers("ueip") {
            return Err(Cause::SERVICE_NOT_SUPPORTED);
        }
        let instance = InstanceKey::of(network_instance.unwrap_or_default());
        let pool = &self.shared.pool;
        let (mut v4, mut v6) = (None, None);
        if request.ipv4 {
            v4 = pool.allocate_v4(self.seid, instance);
        }
        if request.ipv6 {
            v6 = pool.allocate_v6(self.seid, instance, request.ipv6_prefix_length);
        }
        if (request.ipv4 && v4.is_none()) || (request.ipv6 && v6.is_none()) {
            return Err(Cause::ALL_DYNAMIC_ADDRESSES_OCCUPIED);
        }
        Ok((v4, v6))
    }
}
