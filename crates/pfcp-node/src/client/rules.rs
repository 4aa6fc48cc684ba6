//! The rules of a session.

use std::net::{IpAddr, Ipv4Addr};

use strowger_pfcp::Error;
use strowger_pfcp::association::NodeName;
use strowger_pfcp::ie::{
    ApplyAction, CreateFar, CreatePdr, CreateQer, CreateUrr, DestinationInterface, FSeid, FTeid,
    FarId, ForwardingParameters, GateStatus, Mbr, MeasurementMethod, Pdi, PdrId, Precedence, QerId,
    ReportingTriggers, SourceInterface, UeIpAddress, UrrId, VolumeThreshold,
};
use strowger_pfcp::message::SessionEstablishmentRequest;

use super::{body_of, empty_establishment};

/// The rules of a session to establish.
///
/// ```
/// use strowger_pfcp_node::SessionRules;
///
/// let rules = SessionRules::pdu_session("10.45.0.9".parse()?);
/// assert_eq!((rules.pdrs().len(), rules.fars().len()), (2, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionRules {
    pdrs: Vec<CreatePdr>,
    fars: Vec<CreateFar>,
    urrs: Vec<CreateUrr>,
    qers: Vec<CreateQer>,
    /// IEs that are already encoded.
    raw: Vec<u8>,
}

impl SessionRules {
    /// Creates an empty set of rules; a session needs at least one PDR and one FAR.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the rules of a PDU session for one UE: uplink from a tunnel that the UPF chooses,
    /// downlink to the address of the UE.
    #[must_use]
    pub fn pdu_session(ue: IpAddr) -> Self {
        Self::tunnelled(FTeid::choose_ipv4(), ue)
    }

    /// Creates the rules of a PDU session whose uplink uses a given tunnel.
    #[must_use]
    pub fn with_tunnel(teid: u32, address: Ipv4Addr, ue: IpAddr) -> Self {
        Self::tunnelled(FTeid::new(teid, address.into()), ue)
    }

    fn tunnelled(tunnel: FTeid, ue: IpAddr) -> Self {
        let uplink = Pdi::new(SourceInterface::ACCESS)
            .local_f_teid(tunnel)
            .ue_ip_addresses([UeIpAddress::source(ue)]);
        let downlink =
            Pdi::new(SourceInterface::CORE).ue_ip_addresses([UeIpAddress::destination(ue)]);
        let forward = |to| ForwardingParameters::new(to);
        Self::detecting(
            [uplink, downlink],
            [
                forward(DestinationInterface::CORE),
                forward(DestinationInterface::ACCESS),
            ],
        )
    }

    /// Creates two PDRs that detect uplink and downlink packets, and the FARs that forward them.
    pub(crate) fn detecting(pdis: [Pdi; 2], parameters: [ForwardingParameters; 2]) -> Self {
        let pdr = |id: u16, pdi| {
            CreatePdr::new(PdrId(id), pdi)
                .precedence(Precedence(255))
                .far_id(FarId(id.into()))
        };
        let far = |id, parameters| {
            CreateFar::new(FarId(id), ApplyAction::FORW).forwarding_parameters(parameters)
        };
        let [uplink, downlink] = pdis;
        let [to_core, to_access] = parameters;
        Self::new()
            .pdr(pdr(1, uplink))
            .pdr(pdr(2, downlink))
            .far(far(1, to_core))
            .far(far(2, to_access))
    }

    /// Attaches URR 1 to all PDRs; it measures volume and reports after `threshold` bytes.
    pub(crate) fn counted(mut self, threshold: u64) -> Self {
        let pdrs = self.pdrs.into_iter();
        self.pdrs = pdrs.map(|pdr| pdr.urr_ids([UrrId(1)])).collect();
        let urr = CreateUrr::new(1, MeasurementMethod::VOLUM, ReportingTriggers::VOLTH);
        self.urr(urr.volume_threshold(VolumeThreshold::total(threshold)))
    }

    /// Attaches QER 1 to all PDRs, with the given uplink rate in kbit/s and five times that rate
    /// for downlink.
    pub(crate) fn limited(mut self, uplink: u64) -> Self {
        let pdrs = self.pdrs.into_iter();
        self.pdrs = pdrs.map(|pdr| pdr.qer_ids([QerId(1)])).collect();
        let mbr = Mbr {
            ul_mbr: uplink,
            dl_mbr: 5 * uplink,
        };
        self.qer(CreateQer::new(1, GateStatus::default()).maximum_bitrate(mbr))
    }

    /// Adds a packet detection rule.
    #[must_use]
    pub fn pdr(mut self, pdr: CreatePdr) -> Self {
        self.pdrs.push(pdr);
        self
    }

    /// Adds a forwarding action rule.
    #[must_use]
    pub fn far(mut self, far: CreateFar) -> Self {
        self.fars.push(far);
        self
    }

    /// Adds a usage reporting rule.
    #[must_use]
    pub fn urr(mut self, urr: CreateUrr) -> Self {
        self.urrs.push(urr);
        self
    }

    /// Adds a QoS enforcement rule.
    #[must_use]
    pub fn qer(mut self, qer: CreateQer) -> Self {
        self.qers.push(qer);
        self
    }

    /// Adds IEs that are already encoded, after all others.
    #[must_use]
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.raw.extend_from_slice(bytes);
        self
    }

    /// Returns the packet detection rules.
    #[must_use]
    pub fn pdrs(&self) -> &[CreatePdr] {
        &self.pdrs
    }

    /// Returns the forwarding action rules.
    #[must_use]
    pub fn fars(&self) -> &[CreateFar] {
        &self.fars
    }

    /// Encodes the body of an establishment request.
    pub(crate) fn into_request(self, name: &NodeName, f_seid: FSeid) -> Result<Vec<u8>, Error> {
        let request: SessionEstablishmentRequest = empty_establishment(name, f_seid)?
            .create_pdrs(self.pdrs)
            .create_fars(self.fars)
            .create_urrs(self.urrs)
            .create_qers(self.qers);
        let mut body = body_of(request)?;
        body.extend_from_slice(&self.raw);
        Ok(body)
    }
}
