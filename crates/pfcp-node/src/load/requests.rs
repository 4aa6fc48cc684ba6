//! The bodies of the requests of a load, and the decoding of the responses.

use std::net::{IpAddr, SocketAddr};

use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::{
    Cause, DestinationInterface, EthernetPduSessionInformation, FSeid, FTeid, ForwardingParameters,
    Ie as _, NetworkInstance, OuterHeaderCreation, Pdi, PdrId, Precedence, SourceInterface,
    UpdatePdr,
};
use strowger_pfcp::message::SessionModificationRequest;
use strowger_pfcp::{Error, Frame, IeType, Seid};

use super::LoadPlan;
use super::change::SessionChange;
use crate::client::{SessionRules, body_of};
use crate::profile::{Direction, SessionProfile};

/// A generator of sessions with distinct UE addresses and tunnels.
#[derive(Debug)]
pub(super) struct RequestBuilder {
    name: NodeName,
    /// Our address, where the tunnels of the access side end.
    local: IpAddr,
    /// The address where the tunnels of the user plane end.
    gateway: IpAddr,
    profile: SessionProfile,
    network: Option<NetworkInstance>,
    /// The encoded IEs of an establishment besides its rules.
    elements: Vec<u8>,
    /// The volume after which usage is reported, in bytes.
    threshold: Option<u64>,
    /// Set if the sessions request rates.
    rates: bool,
    /// Set if downlink packets are sent through a tunnel.
    tunnel: bool,
    /// An offset that makes it unlikely that two loads use the same UE addresses and tunnels.
    offset: u32,
}

/// The usage threshold of sessions whose usage is only queried, too large to be reached.
const UNREACHABLE_THRESHOLD: u64 = 1 << 40;

impl RequestBuilder {
    /// Creates the generator of a plan, with the rules that its modifications require.
    pub(super) fn new(name: NodeName, local: SocketAddr, plan: &LoadPlan) -> Result<Self, Error> {
        let port = u32::from(local.port());
        let mixed = (port ^ std::process::id().rotate_left(16)).wrapping_mul(0x9e37_79b1);
        let wants = |share: f64| plan.modifications > 0.0 && share > 0.0;
        let shares = &plan.shares;
        let usual = plan.rates.then(|| NetworkInstance::from("internet"));
        Ok(Self {
            name,
            local: local.ip(),
            gateway: plan.to.ip(),
            network: plan.profile.network_instance().or(usual),
            elements: plan.profile.elements()?,
            profile: plan.profile.clone(),
            threshold: plan
                .usage
                .or_else(|| wants(shares.report).then_some(UNREACHABLE_THRESHOLD)),
            rates: plan.rates || wants(shares.qos),
            tunnel: wants(shares.handover) || wants(shares.idle),
            offset: mixed,
        })
    }

    /// Returns `true` if the sessions measure usage.
    pub(super) fn count_usage(&self) -> bool {
        self.threshold.is_some()
    }

    /// Encodes the body of an establishment: two PDRs, two FARs, and the rules that the plan
    /// requires.
    pub(super) fn establishment(&self, seid: Seid) -> Result<Vec<u8>, Error> {
        let [.., a, b, c, d] = seid.0.to_be_bytes();
        let number = u32::from_be_bytes([a, b, c, d]).wrapping_add(self.offset);
        let rules = self.rules(number);
        let rules = match self.threshold {
            Some(bytes) => rules.counted(bytes),
            None => rules,
        };
        let rules = match self.rates {
            // From 20 to 80 Mbit/s uplink, and five times that rate downlink.
            true => rules.limited(20_000 * (1 + u64::from(number % 4))),
            false => rules,
        };
        let f_seid = FSeid::new(seid, self.local);
        rules.bytes(&self.elements).into_request(&self.name, f_seid)
    }

    fn rules(&self, number: u32) -> SessionRules {
        let tunnel = FTeid::new(number.max(1), self.gateway);
        let pdi = |interface, direction| {
            let mut pdi = Pdi::new(interface);
            if let Some(network) = &self.network {
                pdi = pdi.network_instance(network.clone());
            }
            match self.profile.ue(number, direction) {
                Some(ue) => pdi.ue_ip_addresses([ue]),
                None => pdi,
            }
        };
        let uplink = pdi(SourceInterface::ACCESS, Direction::Uplink).local_f_teid(tunnel);
        let mut downlink = pdi(SourceInterface::CORE, Direction::Downlink);
        if self.profile.is_ethernet() {
            let ethernet = EthernetPduSessionInformation::ETHI;
            downlink = downlink.ethernet_pdu_session_information(ethernet);
        }
        let mut access = ForwardingParameters::new(DestinationInterface::ACCESS);
        if self.tunnel {
            let header = OuterHeaderCreation::from((number.max(1), self.local));
            access = access.outer_header_creation(header);
        }
        let core = ForwardingParameters::new(DestinationInterface::CORE);
        SessionRules::detecting([uplink, downlink], [core, access])
    }

    /// Encodes the body of a modification.
    pub(super) fn modification(&self, change: SessionChange) -> Result<Vec<u8>, Error> {
        body_of(change.request(self.local))
    }

    /// Encodes the body of a modification that names a PDR but changes nothing: it is accepted if
    /// and only if the peer still has that PDR.
    pub(super) fn naming() -> Result<Vec<u8>, Error> {
        let update = UpdatePdr::new(PdrId(1)).precedence(Precedence(255));
        body_of(SessionModificationRequest::new().update_pdrs([update]))
    }
}

/// Returns the cause of a response, and the peer's SEID of the session if it has a usable F-SEID.
pub(crate) fn answer(bytes: &[u8]) -> (Cause, Option<Seid>) {
    let (mut cause, mut remote) = (Cause(0), None);
    if let Ok(frame) = Frame::decode(bytes) {
        for tlv in frame.tlvs().filter_map(Result::ok) {
            match tlv.ie {
                IeType::CAUSE => cause = tlv.value.first().map_or(cause, |&value| Cause(value)),
                IeType::F_SEID => {
                    let f_seid = FSeid::decode(tlv.value).ok();
                    let usable = f_seid
                        .filter(|one| one.seid != 0 && (one.ipv4.is_some() || one.ipv6.is_some()));
                    remote = usable.map(|one| Seid(one.seid));
                }
                _ => {}
            }
        }
    }
    (cause, remote)
}
