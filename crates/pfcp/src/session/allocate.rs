//! Allocation of the values that the UP function chooses: F-TEIDs and UE IP addresses.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::detection::{Detection, instance_of_ue, network_first};
use super::draft::{RuleSetDraft, put, raw};
use super::kind::{RuleId, RuleKind};
use super::refusal::Refusal;
use crate::ie::{Cause, FTeid, Ie, IeType, UeIpAddress};
use crate::wire::{Tlv, Tlvs};

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

    /// Allocates IP addresses for a UE. `network_instance` is the value of the Network Instance of
    /// its data network: that of the packets to the UE, if a rule for these asks, or else that to
    /// which packets from the UE are forwarded.
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

type Rules<'a> = BTreeMap<RuleId, Cow<'a, [u8]>>;

/// The values allocated so far for one message, so that equal requests get equal values.
struct Allocations<'a> {
    allocator: &'a mut dyn Allocator,
    tunnels: Vec<(u8, FTeid)>,
    /// `None` until a rule asks for an address.
    addresses: Option<SessionAddresses>,
}

/// The addresses of the UE of a session, each once.
///
/// The UE has one IPv4 address and one prefix of each length, however many rules ask for them, in
/// whichever messages, TS 29.244 §5.21. Only a PDI that asks several times gets several.
#[derive(Default)]
struct SessionAddresses {
    ipv4: Vec<Ipv4Addr>,
    /// The length of each prefix, and its first address.
    ipv6: Vec<(u8, Ipv6Addr)>,
}

/// The addresses that a PDI has asked for so far.
#[derive(Default)]
struct GroupRequests {
    ipv4: usize,
    /// The lengths of the prefixes.
    ipv6: Vec<u8>,
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
            addresses: None,
        };
        let mut created = BTreeMap::new();
        let mut changed = std::mem::take(&mut self.changed);
        network_first(&mut changed, &self.rules);
        for id in changed {
            let Some(value) = self.rules.get(&id) else {
                continue;
            };
            let filled = match id.kind {
                RuleKind::Pdr => allocations.fill_pdr(value, &self.rules),
                RuleKind::TrafficEndpoint => {
                    let of_ue = || Detection::of(value).network_instance;
                    allocations.fill(value, &of_ue, &self.rules)
                }
                _ => continue,
            };
            if let Some(filled) = filled.map_err(|refusal| refusal.rule(id))? {
                created.insert(id, filled.allocated);
                self.rules.insert(id, Cow::Owned(filled.value));
            }
        }
        let mut elements = Vec::new();
        for (id, allocated) in created {
            put_created(&mut elements, id, &allocated)?;
        }
        Ok(elements)
    }
}

impl SessionAddresses {
    fn of(rules: &Rules<'_>) -> Self {
        let mut addresses = Self::default();
        for (id, value) in rules {
            let elements = Tlvs::new(value).map_while(Result::ok);
            match id.kind {
                RuleKind::Pdr => {
                    for pdi in elements.filter(|tlv| tlv.ie == IeType::PDI) {
                        addresses.add_all(Tlvs::new(pdi.value).map_while(Result::ok));
                    }
                }
                RuleKind::TrafficEndpoint => addresses.add_all(elements),
                _ => {}
            }
        }
        addresses
    }

    fn add_all<'a>(&mut self, group: impl Iterator<Item = Tlv<'a>>) {
        let of_ue = group.filter(|tlv| tlv.ie == IeType::UE_IP_ADDRESS);
        for ue in of_ue.filter_map(|tlv| UeIpAddress::decode(tlv.value).ok()) {
            self.add(
                ue.ipv4.filter(|_| !ue.choose_v4),
                ue.ipv6.filter(|_| !ue.choose_v6),
                &ue,
            );
        }
    }

    fn add(&mut self, ipv4: Option<Ipv4Addr>, ipv6: Option<Ipv6Addr>, ue: &UeIpAddress) {
        let ipv6 = ue.prefix_length().zip(ipv6);
        self.ipv4
            .extend(ipv4.filter(|one| !self.ipv4.contains(one)));
        self.ipv6
            .extend(ipv6.filter(|one| !self.ipv6.contains(one)));
    }
}

impl Allocations<'_> {
    /// Fills in the PDI of a rule.
    fn fill_pdr(&mut self, rule: &[u8], rules: &Rules<'_>) -> Result<Option<FilledGroup>, Refusal> {
        let mut value = Vec::with_capacity(rule.len() + 16);
        let mut allocated = Vec::new();
        for tlv in Tlvs::new(rule).map_while(Result::ok) {
            let filled = match tlv.ie {
                IeType::PDI => self.fill(tlv.value, &|| instance_of_ue(rule, rules), rules)?,
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

    /// Fills in a PDI or a traffic endpoint. The UE belongs to the network instance that `of_ue`
    /// finds, which is only called if an address is allocated.
    fn fill<'a>(
        &mut self,
        group: &[u8],
        of_ue: &dyn Fn() -> Option<&'a [u8]>,
        rules: &Rules<'_>,
    ) -> Result<Option<FilledGroup>, Refusal> {
        let mut requests = GroupRequests::default();
        let mut value = Vec::with_capacity(group.len() + 16);
        let mut allocated = Vec::new();
        for tlv in Tlvs::new(group).map_while(Result::ok) {
            let start = value.len();
            let given = match tlv.ie {
                IeType::F_TEID => self.tunnel(tlv.value, group, &mut value)?,
                IeType::UE_IP_ADDRESS => {
                    self.address(tlv.value, (of_ue, rules), &mut requests, &mut value)?
                }
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

    /// Writes an allocated F-TEID of a group, if one is requested.
    fn tunnel(&mut self, value: &[u8], group: &[u8], out: &mut Vec<u8>) -> Result<bool, Refusal> {
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
                    .f_teid(&request, Detection::of(group).network_instance)
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
    fn address<'a>(
        &mut self,
        value: &[u8],
        (of_ue, rules): (&dyn Fn() -> Option<&'a [u8]>, &Rules<'_>),
        requests: &mut GroupRequests,
        out: &mut Vec<u8>,
    ) -> Result<bool, Refusal> {
        let mut asked = UeIpAddress::decode(value).map_err(|error| Refusal::of(&error, &[]))?;
        let length = asked.prefix_length();
        if length.is_none() && (asked.choose_v6 || asked.ipv6.is_some()) {
            return Err(Refusal::new(Cause::MANDATORY_IE_INCORRECT).at(IeType::UE_IP_ADDRESS));
        }
        if !asked.choose_v4 && !asked.choose_v6 {
            return Ok(false);
        }
        let length = length.unwrap_or(64);
        let known = self
            .addresses
            .get_or_insert_with(|| SessionAddresses::of(rules));
        let (mut ipv4, mut ipv6) = (None, None);
        if asked.choose_v4 {
            ipv4 = known.ipv4.get(requests.ipv4).copied();
            requests.ipv4 += 1;
        }
        if asked.choose_v6 {
            let asked_before = requests.ipv6.iter().filter(|one| **one == length).count();
            let mut of_length = known.ipv6.iter().filter(|(one, _)| *one == length);
            ipv6 = of_length.nth(asked_before).map(|(_, first)| *first);
            requests.ipv6.push(length);
        }
        let missing = UeAddressRequest {
            ipv4: asked.choose_v4 && ipv4.is_none(),
            ipv6: asked.choose_v6 && ipv6.is_none(),
            ipv6_prefix_length: length,
        };
        if missing.ipv4 || missing.ipv6 {
            let given = self
                .allocator
                .ue_address(missing, of_ue())
                .map_err(|cause| Refusal::new(cause).at(IeType::UE_IP_ADDRESS))?;
            known.add(given.0, given.1, &asked);
            (ipv4, ipv6) = (ipv4.or(given.0), ipv6.or(given.1));
        }
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
    put(&mut value, id.kind.id(), &id.bytes())?;
    value.extend_from_slice(allocated);
    put(out, ie, &value)
}
