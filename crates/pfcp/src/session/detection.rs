//! The side from which the packets of a rule come, and the network instance of its UE.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::kind::{RuleId, RuleKind};
use super::{RuleSet, of_type};
use crate::ie::{Ie as _, IeType, SourceInterface, UeIpAddress};
use crate::wire::Tlvs;

/// A UE IP address to which packets come from the core side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UeDestination<'a> {
    /// The PDR or traffic endpoint that has the address.
    pub rule: RuleId,
    /// The value of the Network Instance in which the address is one of a UE.
    pub network_instance: Option<&'a [u8]>,
    /// The address as the rule has it, with its flags.
    pub address: UeIpAddress,
}

/// The elements of a PDI or a traffic endpoint that tell where packets come from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Detection<'a> {
    source: Option<SourceInterface>,
    has_tunnel: bool,
    pub(super) network_instance: Option<&'a [u8]>,
}

impl<'a> Detection<'a> {
    pub(super) fn of(group: &'a [u8]) -> Self {
        let mut found = Self::default();
        for tlv in Tlvs::new(group).map_while(Result::ok) {
            match tlv.ie {
                IeType::SOURCE_INTERFACE => found.source = SourceInterface::decode(tlv.value).ok(),
                IeType::F_TEID => found.has_tunnel = true,
                IeType::NETWORK_INSTANCE => found.network_instance = Some(tlv.value),
                _ => {}
            }
        }
        found
    }

    /// Returns `true` if the packets come from a data network, and not through a tunnel from
    /// another user plane node, which has the address then. The flag S/D is not consulted: traffic
    /// endpoints serve both directions, and some SMFs do not set it.
    fn is_from_network(&self) -> bool {
        let beside = [SourceInterface::ACCESS, SourceInterface::CP_FUNCTION];
        !self.has_tunnel && self.source.is_some_and(|source| !beside.contains(&source))
    }
}

/// Returns the traffic endpoints that a PDI refers to.
fn endpoints_of(pdi: &[u8]) -> impl Iterator<Item = RuleId> {
    of_type(Tlvs::new(pdi), IeType::TRAFFIC_ENDPOINT_ID).filter_map(|tlv| {
        let kind = RuleKind::TrafficEndpoint;
        let id = kind.read_id(tlv.value)?;
        Some(RuleId { kind, id })
    })
}

fn pdi_of(pdr: &[u8]) -> Option<&[u8]> {
    let pdi = of_type(Tlvs::new(pdr), IeType::PDI).next()?;
    Some(pdi.value)
}

impl RuleSet {
    /// Decodes the UE IP addresses to which packets come from a data network: those of PDRs on the
    /// core side, in the PDI or in a traffic endpoint. The sources of packets from the access side
    /// are not among them, nor are addresses behind a local F-TEID: the network of the UE routes
    /// them to another user plane node.
    #[must_use]
    pub fn ue_destinations(&self) -> Vec<UeDestination<'_>> {
        let mut found = Vec::new();
        let mut endpoints = BTreeMap::new();
        for pdr in self.rules(RuleKind::Pdr) {
            let Some(pdi) = pdi_of(pdr.value) else {
                continue;
            };
            let detection = Detection::of(pdi);
            if detection.is_from_network() {
                for id in endpoints_of(pdi) {
                    endpoints.entry(id).or_insert(detection.network_instance);
                }
                add_addresses(&mut found, pdr.id, pdi, detection.network_instance);
            }
        }
        if endpoints.is_empty() {
            return found;
        }
        for endpoint in self.rules(RuleKind::TrafficEndpoint) {
            let detection = Detection::of(endpoint.value);
            if let Some(of_pdi) = endpoints.get(&endpoint.id)
                && !detection.has_tunnel
            {
                let instance = detection.network_instance.or(*of_pdi);
                add_addresses(&mut found, endpoint.id, endpoint.value, instance);
            }
        }
        found
    }
}

fn add_addresses<'a>(
    found: &mut Vec<UeDestination<'a>>,
    rule: RuleId,
    group: &'a [u8],
    network_instance: Option<&'a [u8]>,
) {
    let addresses = of_type(Tlvs::new(group), IeType::UE_IP_ADDRESS);
    found.extend(addresses.filter_map(|tlv| {
        let address = UeIpAddress::decode(tlv.value).ok()?;
        Some(UeDestination {
            rule,
            network_instance,
            address,
        })
    }));
}

/// Sorts rules so that those whose packets come from a data network are first: an address that they
/// share with the other direction comes from the pool of that network.
pub(super) fn network_first(ids: &mut [RuleId], rules: &BTreeMap<RuleId, Cow<'_, [u8]>>) {
    let pdrs = rules.iter().filter(|(id, _)| id.kind == RuleKind::Pdr);
    let pdis = pdrs.filter_map(|(id, value)| Some((*id, pdi_of(value)?)));
    let mut first: Vec<RuleId> = Vec::new();
    for (id, pdi) in pdis.filter(|(_, pdi)| Detection::of(pdi).is_from_network()) {
        first.push(id);
        first.extend(endpoints_of(pdi));
    }
    first.sort_unstable();
    ids.sort_by_key(|id| first.binary_search(id).is_err());
}

/// Returns the network instance of the UE of a PDR: for packets from the access side the one that
/// they are forwarded to, otherwise the one that they come from.
pub(super) fn instance_of_ue<'a>(
    pdr: &'a [u8],
    rules: &'a BTreeMap<RuleId, Cow<'_, [u8]>>,
) -> Option<&'a [u8]> {
    let detection = Detection::of(pdi_of(pdr)?);
    let forwarded_to = || {
        let far = of_type(Tlvs::new(pdr), IeType::FAR_ID).next()?;
        let kind = RuleKind::Far;
        let id = kind.read_id(far.value)?;
        let far = rules.get(&RuleId { kind, id })?;
        let forwarding = of_type(Tlvs::new(far), IeType::FORWARDING_PARAMETERS).next()?;
        Detection::of(forwarding.value).network_instance
    };
    let to = match detection.source {
        Some(SourceInterface::ACCESS) => forwarded_to(),
        _ => None,
    };
    to.or(detection.network_instance)
}
