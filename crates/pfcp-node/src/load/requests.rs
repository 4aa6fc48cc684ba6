//! The bodies of a load's requests, and what it reads of their answers.

use std::net::{IpAddr, Ipv4Addr};

use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::{Cause, FSeid, PdrId, Precedence, UpdatePdr};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::{Error, Frame, IeType, Seid};

use crate::client::{Rules, body_of};

/// Makes sessions that differ in all that must differ.
#[derive(Debug)]
pub(super) struct Sessions {
    name: NodeName,
    local: IpAddr,
    gateway: Ipv4Addr,
    /// The volume after which usage is reported.
    threshold: Option<u64>,
    /// Whether rates are asked for.
    rates: bool,
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
            threshold: None,
            rates: false,
            offset: mixed,
        }
    }

    /// Has usage reported after so many octets.
    pub(super) fn with_usage(mut self, threshold: Option<u64>) -> Self {
        self.threshold = threshold;
        self
    }

    /// Asks for rates, of a network with a name.
    pub(super) const fn with_rates(mut self, rates: bool) -> Self {
        self.rates = rates;
        self
    }

    /// The body of an establishment: two PDRs and two FARs.
    pub(super) fn establishment(&self, seid: Seid) -> Result<Vec<u8>, Error> {
        let [.., a, b, c, d] = seid.0.to_be_bytes();
        let number = u32::from_be_bytes([a, b, c, d]).wrapping_add(self.offset);
        let [_, high, middle, low] = number.to_be_bytes();
        let ue = Ipv4Addr::new(10, high, middle, low);
        let rules = Rules::with_tunnel(number.max(1), self.gateway, ue.into());
        let rules = match self.threshold {
            Some(octets) => rules.counted(octets),
            None => rules,
        };
        let rules = match self.rates {
            // From 20 to 80 Mbit/s from the user, and five times as much to the user.
            true => rules.limited("internet", 20_000 * (1 + u64::from(number % 4))),
            false => rules,
        };
        rules.into_request(&self.name, FSeid::new(seid, self.local))
    }

    /// The body of a modification that makes rules which tell one from another.
    pub(super) fn modification(number: u64) -> Result<Vec<u8>, Error> {
        let [.., a, b, c, d] = number.to_be_bytes();
        let update =
            UpdatePdr::new(PdrId(2)).precedence(Precedence(u32::from_be_bytes([a, b, c, d])));
        body_of(SessionModificationRequest::new().update_pdrs([update]))
    }

    /// The body of a modification that names a PDR and changes nothing: it is accepted if, and only
    /// if, the peer still has that PDR.
    pub(super) fn naming() -> Result<Vec<u8>, Error> {
        let update = UpdatePdr::new(PdrId(1)).precedence(Precedence(255));
        body_of(SessionModificationRequest::new().update_pdrs([update]))
    }
}

/// The cause of an answer, and the peer's identifier of the session where it has one.
pub(crate) fn answer(octets: &[u8]) -> (Cause, Option<Seid>) {
    let (mut cause, mut remote) = (Cause(0), None);
    if let Ok(frame) = Frame::decode(octets) {
        for tlv in frame.tlvs().filter_map(Result::ok) {
            match tlv.ie {
                IeType::CAUSE => cause = tlv.value.first().map_or(cause, |&value| Cause(value)),
                IeType::F_SEID => {
                    let seid = tlv.value.get(1..9).and_then(|seid| seid.first_chunk());
                    remote = seid.map(|seid| Seid(u64::from_be_bytes(*seid)));
                }
                _ => {}
            }
        }
    }
    (cause, remote)
}
