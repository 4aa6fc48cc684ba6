//! What the UP function chooses: ends of tunnels and addresses of users.

use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::draft::{Draft, put, raw};
use super::kind::{RuleId, RuleKind};
use super::refusal::Refusal;
use crate::ie::{Cause, FTeid, Ie, IeType, UeIpAddress};
use crate::wire::Tlvs;

/// Gives what a peer leaves to be chosen.
pub trait Allocator {
    /// Gives the end of a tunnel.
    ///
    /// `wish` says which kinds of addresses it needs; `network_instance` is the value of the
    /// Network Instance that stands beside it.
    ///
    /// # Errors
    /// The cause to answer with.
    fn f_teid(&mut self, wish: &FTeid, network_instance: Option<&[u8]>) -> Result<FTeid, Cause>;

    /// Gives addresses to a user.
    ///
    /// # Errors
    /// The cause to answer with.
    fn ue_address(
        &mut self,
        wish: UeWish,
        network_instance: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause>;
}

/// Which addresses a user needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UeWish {
    /// An IPv4 address.
    pub ipv4: bool,
    /// An IPv6 address or prefix.
    pub ipv6: bool,
}

/// An [`Allocator`] that has nothing to give.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoAllocator;

impl Allocator for NoAllocator {
    fn f_teid(&mut self, _: &FTeid, _: Option<&[u8]>) -> Result<FTeid, Cause> {
        Err(Cause::INVALID_F_TEID_ALLOCATION)
    }

    fn ue_address(
        &mut self,
        _: UeWish,
        _: Option<&[u8]>,
    ) -> Result<(Option<Ipv4Addr>, Option<Ipv6Addr>), Cause> {
        Err(Cause::ALL_DYNAMIC_ADDRESSES_OCCUPIED)
    }
}

/// An IPv4 and an IPv6 address.
type UeAddresses = (Option<Ipv4Addr>, Option<Ipv6Addr>);

/// What one message had chosen so far, so that equal wishes get equal answers.
struct Chosen<'a> {
    allocator: &'a mut dyn Allocator,
    tunnels: Vec<(u8, FTeid)>,
    addresses: Vec<(Vec<u8>, UeWish, UeAddresses)>,
}

/// A group whose wishes are fulfilled.
struct Filled {
    value: Vec<u8>,
    /// What was chosen, as elements.
    chosen: Vec<u8>,
}

impl Draft<'_> {
    /// Chooses what the touched rules leave to be chosen, and puts it into them. Returns the
    /// elements that tell the peer.
    pub(super) fn choose(&mut self, allocator: &mut dyn Allocator) -> Result<Vec<u8>, Refusal> {
        let mut chosen = Chosen {
            allocator,
            tunnels: Vec::new(),
            addresses: Vec::new(),
        };
        let mut created = Vec::new();
        for id in std::mem::take(&mut self.touched) {
            let Some(value) = self.rules.get(&id) else {
                continue;
            };
            let filled = match id.kind {
                RuleKind::Pdr => chosen.fill_pdr(value),
                RuleKind::TrafficEndpoint => chosen.fill(value),
                _ => continue,
            };
            if let Some(filled) = filled.map_err(|refusal| refusal.rule(id))? {
                tell(&mut created, id, &filled.chosen)?;
                self.rules.insert(id, Cow::Owned(filled.value));
            }
        }
        Ok(created)
    }
}

impl Chosen<'_> {
    /// Fulfils the wishes of the PDI of a rule.
    fn fill_pdr(&mut self, rule: &[u8]) -> Result<Option<Filled>, Refusal> {
        let mut value = Vec::with_capacity(rule.len() + 16);
        let mut chosen = Vec::new();
        for tlv in Tlvs::new(rule).map_while(Result::ok) {
            let filled = match tlv.ie {
                IeType::PDI => self.fill(tlv.value)?,
                _ => None,
            };
            match filled {
                Some(filled) => {
                    put(&mut value, IeType::PDI, &filled.value)?;
                    chosen.extend_from_slice(&filled.chosen);
                }
                None => value.extend_from_slice(raw(rule, &tlv)),
            }
        }
        Ok((!chosen.is_empty()).then_some(Filled { value, chosen }))
    }

    /// Fulfils the wishes of a PDI or a traffic endpoint.
    fn fill(&mut self, group: &[u8]) -> Result<Option<Filled>, Refusal> {
        let instance = Tlvs::new(group)
            .map_while(Result::ok)
            .find(|tlv| tlv.ie == IeType::NETWORK_INSTANCE)
            .map(|tlv| tlv.value);
        let mut value = Vec::with_capacity(group.len() + 16);
        let mut chosen = Vec::new();
        for tlv in Tlvs::new(group).map_while(Result::ok) {
            let start = value.len();
            let given = match tlv.ie {
                IeType::F_TEID => self.tunnel(tlv.value, instance, &mut value)?,
                IeType::UE_IP_ADDRESS => self.address(tlv.value, instance, &mut value)?,
                _ => false,
            };
            if given {
                chosen.extend_from_slice(&value[start..]);
            } else {
                value.extend_from_slice(raw(group, &tlv));
            }
        }
        Ok((!chosen.is_empty()).then_some(Filled { value, chosen }))
    }

    /// Writes the end of a tunnel if one is to be chosen.
    fn tunnel(
        &mut self,
        value: &[u8],
        instance: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Refusal> {
        let wish = FTeid::decode(value).map_err(|error| Refusal::of(&error, &[]))?;
        if !wish.choose {
            return Ok(false);
        }
        let known = wish.choose_id.and_then(|id| {
            let same = self.tunnels.iter().find(|(one, _)| *one == id)?;
            Some(same.1)
        });
        let given = match known {
            Some(given) => given,
            None => {
                let given = self
                    .allocator
                    .f_teid(&wish, instance)
                    .map_err(|cause| Refusal::new(cause).at(IeType::F_TEID))?;
                if let Some(id) = wish.choose_id {
                    self.tunnels.push((id, given));
                }
                given
            }
        };
        write(&given, out)?;
        Ok(true)
    }

    /// Writes the address of a user if one is to be chosen.
    fn address(
        &mut self,
        value: &[u8],
        instance: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<bool, Refusal> {
        let mut asked = UeIpAddress::decode(value).map_err(|error| Refusal::of(&error, &[]))?;
        let wish = UeWish {
            ipv4: asked.choose_v4,
            ipv6: asked.choose_v6,
        };
        if !wish.ipv4 && !wish.ipv6 {
            return Ok(false);
        }
        let key = instance.unwrap_or_default();
        let known = self
            .addresses
            .iter()
            .find(|(instance, same, _)| instance == key && *same == wish)
            .map(|(_, _, given)| *given);
        let (ipv4, ipv6) = match known {
            Some(given) => given,
            None => {
                let given = self
                    .allocator
                    .ue_address(wish, instance)
                    .map_err(|cause| Refusal::new(cause).at(IeType::UE_IP_ADDRESS))?;
                self.addresses.push((key.to_vec(), wish, given));
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
fn tell(out: &mut Vec<u8>, id: RuleId, chosen: &[u8]) -> Result<(), Refusal> {
    let ie = match id.kind {
        RuleKind::Pdr => IeType::CREATED_PDR,
        _ => IeType::CREATED_TRAFFIC_ENDPOINT,
    };
    let mut value = Vec::with_capacity(chosen.len() + 8);
    put(&mut value, id.kind.id(), &id.octets())?;
    value.extend_from_slice(chosen);
    put(out, ie, &value)
}
