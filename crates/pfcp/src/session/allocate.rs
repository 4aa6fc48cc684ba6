//! Allocation of the values that the UP function chooses: F-TEIDs and UE IP addresses.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::draft::{RuleSetDraft, put, raw};
use super::kind::{RuleId, RuleKind};
use super::refusal::Refusal;
use crate::ie::{Cause, FTeid, Ie, IeType, UeIpAddress};
use crate::wire::Tlvs;

/// Allocates the values that a peer leaves to the UP function.
pub trait Allocator {
    /// Allocates an F-TEID.
    ///
    /// `request` specifies the required kinds of addresses. `network_instance` is the value of the
    /// Network Instance in the same group.
    ///
    /// # Errors
    /// Returns the cause to answer with.
    fn f_teid(&mut self, request: &FTeid, network_instance: Option<&[u8]>) -> Result<FTeid, Cause>;

    /// Allocates IP addresses for a UE.
    ///
    /// # Errors
    /// Returns the cause to answer with.
    fn ue_address(
        &mut self,
        request: UeAddressRequest,
        network_instance: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause>;
}

/// The kinds of addresses that a UE needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UeAddressRequest {
    /// An IPv4 address.
    pub ipv4: bool,
    /// An IPv6 address or prefix.
    pub ipv6: bool,
    /// The length of the IPv6 prefix.
    pub ipv6_prefix_length: u8,
}

/// An [`Allocator`] that refuses every allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAllocator;

impl Allocator for NoAllocator {
    fn f_teid(&mut self, _: &FTeid, _: Option<&[u8]>) -> Result<FTeid, Cause> {
        Err(Cause::INVALID_F_TEID_ALLOCATION)
    }

    fn ue_address(
        &mut self,
        _: UeAddressRequest,
        _: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause> {
        Err(Cause::ALL_DYNAMIC_ADDRESSES_OCCUPIED)
    }
}

/// An IPv4 and an IPv6 address.
type UeAddresses = (Option<Ipv4Addr>, Option<Ipv6Addr>);

/// The values allocated so far for one message, so that equal requests get equal values.
struct Allocations<'a> {
    allocator: &'a mut dyn Allocator,
    tunnels: Vec<(u8, FTeid)>,
    addresses: Vec<(Vec<u8>, UeAddressRequest, UeAddresses)>,
}

/// A group in which the allocated values have been filled in.
struct FilledGroup {
    value: Vec<u8>,
    /// The allocated values, as elements.
    allocated: Vec<u8>,
}

impl RuleSetDraft<'_> {
    /// Allocates the values that the changed rules ask for, and fills them in. Returns the elements
    /// that report the values to the peer.
    pub(super) fn allocate(&mut self, allocator: &mut dyn Allocator) -> Result<Vec<u8>, Refusal> {
        let mut allocations = Allocations {
            allocator,
            tunnels: Vec::new(),
            addresses: Vec::new(),
        };
        let mut created = Vec::new();
        for id in std::mem::take(&mut self.changed) {
            let Some(value) = self.rules.get(&id) else {
                continue;
            };
            let filled = match id.kind {
                RuleKind::Pdr => allocations.fill_pdr(value),
                RuleKind::TrafficEndpoint => allocations.fill(value),
                _ => continue,
            };
            if let Some(filled) = filled.map_err(|refusal| refusal.rule(id))? {
                put_created(&mut created, id, &filled.allocated)?;
                self.rules.insert(id, Cow::Owned(filled.value));
            }
        }
        Ok(created)
    }
}

impl Allocations<'_> {
    /// Fills in the PDI of a rule.
    fn fill_pdr(&mut self, rule: &[u8]) -> Result<Option<FilledGroup>, Refusal> {
        let mut value = Vec::with_capacity(rule.len() + 16);
        let mut allocated = Vec::new();
        for tlv in Tlvs::new(rule).map_while(Result::ok) {
            let filled = match tlv.ie {
                IeType::PDI => self.fill(tlv.value)?,
                _ => None,
            };
            match filled {
                Some(filled) => {
                    put(&mut value, IeType::PDI, &filled.value)?;
                    allocated.extend_from_slice(&filled.allocated);
                }
                None => value.extend_from_slice(raw(rule, &tlv)),
            }
        }
        Ok((!allocated.is_empty()).then_some(FilledGroup { value, allocated }))
    }

    /// Fills in a PDI or a traffic endpoint.
    fn fill(&mut self, group: &[u8]) -> Result<Option<FilledGroup>, Refusal> {
        let instance = Tlvs::new(group)
            .map_while(Result::ok)
            .find(|tlv| tlv.ie == IeType::NETWORK_INSTANCE)
            .map(|tlv| tlv.value);
        let mut value = Vec::with_capacity(group.len() + 16);
        let mut allocated = Vec::new();
        for tlv in Tlvs::new(group).map_while(Result::ok) {
            let start = value.len();
            let given = match tlv.ie {
                IeType::F_TEID => self.tunnel(tlv.value, instance, &mut value)?,
                IeType::UE_IP_ADDRESS => self.address(tlv.value, instance, &mut value)?,
                _ => false,
            };
            if given {
                allocated.extend_from_slice(&value[start..]);
            } else {
                value.extend_from_slice(raw(group, &tlv));
            }
        }
        Ok((!allocated.is_empty()).then_some(FilledGroup { value, allocated }))
    }

    /// Writes an allocated F-TEID, if one is requested.
    fn tunnel(
        &mut self,
        value: &[u8],
        instance: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Refusal> {
        let request = FTeid::decode(value).map_err(|error| Refusal::of(&error, &[]))?;
        if !request.choose {
            return Ok(false);
        }
        let known = request.choose_id.and_then(|id| {
            let same = self.tunnels.iter().find(|(one, _)| *one == id)?;
            Some(same.1)
        });
        let given = match known {
            Some(given) => given,
            None => {
                let given = self
                    .allocator
                    .f_teid(&request, instance)
                    .map_err(|cause| Refusal::new(cause).at(IeType::F_TEID))?;
                if let Some(id) = request.choose_id {
                    self.tunnels.push((id, given));
                }
                given
            }
        };
        write(&given, out)?;
        Ok(true)
    }

    /// Writes an allocated UE IP address, if one is requested.
    fn address(
        &mut self,
        value: &[u8],
        instance: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Refusal> {
        let mut asked = UeIpAddress::decode(value).map_err(|error| Refusal::of(&error, &[]))?;
        let length = asked.prefix_length();
        if length.is_none() && (asked.choose_v6 || asked.ipv6.is_some()) {
            return Err(Refusal::new(Cause::MANDATORY_IE_INCORRECT).at(IeType::UE_IP_ADDRESS));
        }
        let request = UeAddressRequest {
            ipv4: asked.choose_v4,
            ipv6: asked.choose_v6,
            ipv6_prefix_length: length.unwrap_or(64),
        };
        if !request.ipv4 && !request.ipv6 {
            return Ok(false);
        }
        let key = instance.unwrap_or_default();
        let known = self
            .addresses
            .iter()
            .find(|(instance, same, _)| instance == key && *same == request)
            .map(|(_, _, given)| *given);
        let (ipv4, ipv6) = match known {
            Some(given) => given,
            None => {
                let given = self
                    .allocator
                    .ue_address(request, instance)
                    .map_err(|cause| Refusal::new(cause).at(IeType::UE_IP_ADDRESS))?;
                self.addresses.push((key.to_vec(), request, given));
                given
            }
        };
        asked.choose_v4 = false;
        asked.choose_v6 = false;
        asked.ipv4 = ipv4.or(asked.ipv4);
        asked.ipv6 = ipv6.or(asked.ipv6);
        write(&asked, out)?;
        Ok(true)
    }
}

fn write<T: Ie>(value: &T, out: &mut Vec<u8>) -> Result<(), Refusal> {
    value
        .encode_into(out)
        .map_err(|_| Refusal::new(Cause::SYSTEM_FAILURE).at(T::TYPE))
}

/// Writes a Created PDR or a Created Traffic Endpoint.
fn put_created(out: &mut Vec<u8>, id: RuleId, allocated: &[u8]) -> Result<(), Refusal> {
    let ie = match id.kind {
        RuleKind::Pdr => IeType::CREATED_PDR,
        _ => IeType::CREATED_TRAFFIC_ENDPOINT,
    };
    let mut value = Vec::with_capacity(allocated.len() + 8);
    put(&mut value, id.kind.id(), &id.octets())?;
    value.extend_from_slice(allocated);
    put(out, ie, &value)
}
