//! The network that the sessions of a load or a robustness test belong to, and the addresses of
//! their UEs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use strowger_pfcp::Error;
use strowger_pfcp::association::NodeName;
use strowger_pfcp::endpoint::Network;
use strowger_pfcp::ie::{ApnDnn, Ie as _, NetworkInstance, PdnType, SNssai, UeIpAddress};

/// The network that the sessions of an SMF belong to, as stated in their requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionProfile {
    /// The data network: the APN/DNN of each session and the Network Instance of its PDRs. Both are
    /// encoded as labels, as deployed peers do.
    pub dnn: Option<String>,
    /// The network slice.
    pub s_nssai: Option<SNssai>,
    /// The PDN type of the sessions.
    pub pdn_type: PdnType,
    /// The networks of the UE IP addresses, at most one of each family.
    pub ue_pools: Vec<Network>,
}

/// The error returned when a profile does not describe valid sessions.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The name of the data network does not fit into the IE.
    #[error(
        "\"{0}\" is not a DNN: use labels of 1 to 63 bytes with dots between them, 100 bytes in all"
    )]
    Dnn(String),
    /// Two pools have the same family.
    #[error("{first} and {second} are pools of one family: give at most one of each")]
    TwoPools {
        /// The first pool.
        first: Network,
        /// The second pool.
        second: Network,
    },
    /// The PDN type needs addresses of a family that no pool has.
    #[error("PDN type {pdn_type} needs a pool of {family} addresses for UEs")]
    NoPool {
        /// The PDN type.
        pdn_type: PdnType,
        /// The address family.
        family: &'static str,
    },
    /// The PDN type does not use addresses of a pool.
    #[error("sessions of PDN type {pdn_type} take no address from {pool}")]
    UnusedPool {
        /// The PDN type.
        pdn_type: PdnType,
        /// The pool that no rule uses.
        pool: Network,
    },
    /// A pool has fewer addresses than there are sessions.
    #[error("{pool} has {addresses} addresses for UEs, too few for {sessions} sessions")]
    SmallPool {
        /// The pool that is too small.
        pool: Network,
        /// Number of UEs that the pool has addresses for.
        addresses: u64,
        /// Number of concurrent sessions.
        sessions: usize,
    },
}

/// The maximum length of the name of a data network, TS 23.003 §9.1.
const DNN: usize = 100;

impl Default for SessionProfile {
    /// Returns a profile of IPv4 sessions with addresses from 10.0.0.0/8, without a data network or
    /// slice.
    fn default() -> Self {
        Self {
            dnn: None,
            s_nssai: None,
            pdn_type: PdnType::IPV4,
            ue_pools: Self::pools_of(PdnType::IPV4),
        }
    }
}

impl SessionProfile {
    /// Returns the default pools of a PDN type: 10.0.0.0/8 and 2001:db8::/32.
    #[must_use]
    pub fn pools_of(pdn_type: PdnType) -> Vec<Network> {
        let mut pools = Vec::new();
        let usual = [
            (has_ipv4(pdn_type), "10.0.0.0/8"),
            (has_ipv6(pdn_type), "2001:db8::/32"),
        ];
        for (is_needed, pool) in usual {
            pools.extend(pool.parse().ok().filter(|_: &Network| is_needed));
        }
        pools
    }

    /// Returns the PDN type of sessions with addresses from these pools.
    #[must_use]
    pub fn type_of(pools: &[Network]) -> PdnType {
        let has = |ipv4| pools.iter().any(|pool| pool.address().is_ipv4() == ipv4);
        match (has(true), has(false)) {
            (true, true) => PdnType::IPV4V6,
            (false, true) => PdnType::IPV6,
            _ => PdnType::IPV4,
        }
    }

    /// Checks that the profile is valid for `sessions` concurrent sessions.
    ///
    /// # Errors
    /// Returns an error if the DNN is invalid, or if the pools do not fit the PDN type or the
    /// number of sessions.
    pub fn check(&self, sessions: usize) -> Result<(), ProfileError> {
        if let Some(dnn) = &self.dnn
            && (dnn.len() > DNN || NodeName::from_fqdn(dnn).is_none())
        {
            return Err(ProfileError::Dnn(dnn.clone()));
        }
        let pdn_type = self.pdn_type;
        for (at, &pool) in self.ue_pools.iter().enumerate() {
            let is_ipv4 = pool.address().is_ipv4();
            let mut before = self.ue_pools.iter().take(at);
            if let Some(&first) = before.find(|one| one.address().is_ipv4() == is_ipv4) {
                let second = pool;
                return Err(ProfileError::TwoPools { first, second });
            }
            let is_used = match is_ipv4 {
                true => has_ipv4(pdn_type),
                false => has_ipv6(pdn_type),
            };
            if !is_used {
                return Err(ProfileError::UnusedPool { pdn_type, pool });
            }
            let addresses = ue_capacity(&pool);
            // `usize::MAX` stands for no bound: such sessions share the addresses of the pool.
            if sessions != usize::MAX && addresses < sessions as u64 {
                return Err(ProfileError::SmallPool {
                    pool,
                    addresses,
                    sessions,
                });
            }
        }
        for (is_needed, is_ipv4, family) in [
            (has_ipv4(pdn_type), true, "IPv4"),
            (has_ipv6(pdn_type), false, "IPv6"),
        ] {
            if is_needed && self.pool(is_ipv4).is_none() {
                return Err(ProfileError::NoPool { pdn_type, family });
            }
        }
        Ok(())
    }

    fn pool(&self, ipv4: bool) -> Option<&Network> {
        let mut pools = self.ue_pools.iter();
        pools.find(|pool| pool.address().is_ipv4() == ipv4)
    }

    /// Returns the addresses of the UE with a number, as matched in one direction; `None` for
    /// sessions without addresses.
    pub(crate) fn ue(&self, number: u32, direction: Direction) -> Option<UeIpAddress> {
        let ipv4 = self.pool(true).and_then(|pool| ipv4_of(pool, number));
        let ipv6 = self.pool(false).and_then(|pool| ipv6_of(pool, number));
        (ipv4.is_some() || ipv6.is_some()).then(|| UeIpAddress {
            destination: direction == Direction::Downlink,
            ipv4,
            ipv6,
            ..UeIpAddress::default()
        })
    }

    pub(crate) fn is_ethernet(&self) -> bool {
        self.pdn_type == PdnType::ETHERNET
    }

    /// Returns the Network Instance of the PDRs, encoded as the labels of the DNN.
    pub(crate) fn network_instance(&self) -> Option<NetworkInstance> {
        let dnn = self.dnn.as_deref().map(ApnDnn::from);
        dnn.map(|dnn| NetworkInstance::from(dnn.as_bytes().to_vec()))
    }

    /// Returns the encoded IEs of an establishment request besides its rules.
    pub(crate) fn elements(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.pdn_type.encode_into(&mut bytes)?;
        if let Some(dnn) = &self.dnn {
            ApnDnn::from(dnn.as_str()).encode_into(&mut bytes)?;
        }
        if let Some(s_nssai) = &self.s_nssai {
            s_nssai.encode_into(&mut bytes)?;
        }
        Ok(bytes)
    }
}

/// The direction of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Uplink,
    Downlink,
}

fn has_ipv4(pdn_type: PdnType) -> bool {
    matches!(pdn_type, PdnType::IPV4 | PdnType::IPV4V6)
}

fn has_ipv6(pdn_type: PdnType) -> bool {
    matches!(pdn_type, PdnType::IPV6 | PdnType::IPV4V6)
}

/// Returns the number of bits of a pool that distinguish UEs: the host bits of IPv4 addresses, or
/// the bits of IPv6 prefixes of 64 bits if the pool is large enough.
fn ue_bits(pool: &Network) -> u32 {
    let prefix = u32::from(pool.prefix());
    match pool.address() {
        IpAddr::V4(_) => 32 - prefix,
        IpAddr::V6(_) if prefix < 64 => 64 - prefix,
        IpAddr::V6(_) => 128 - prefix,
    }
}

/// Returns the number of UEs that a pool has addresses for. The first and the last address of an
/// IPv4 network are not assigned to UEs.
fn ue_capacity(pool: &Network) -> u64 {
    let all = 1u64.checked_shl(ue_bits(pool)).unwrap_or(u64::MAX);
    match pool.address() {
        IpAddr::V4(_) if all > 2 => all - 2,
        _ => all,
    }
}

fn ipv4_of(pool: &Network, number: u32) -> Option<Ipv4Addr> {
    let IpAddr::V4(address) = pool.address() else {
        return None;
    };
    let own = ue_bits(pool);
    let network = address.to_bits() & u32::MAX.checked_shl(own).unwrap_or_default();
    let place = u64::from(number).checked_rem(ue_capacity(pool))?;
    let first = u64::from(own > 1);
    let host = u32::try_from(place + first).unwrap_or(u32::MAX);
    Some(Ipv4Addr::from_bits(network | host))
}

fn ipv6_of(pool: &Network, number: u32) -> Option<Ipv6Addr> {
    let IpAddr::V6(address) = pool.address() else {
        return None;
    };
    let bits = 128 - u32::from(pool.prefix());
    let network = address.to_bits() & u128::MAX.checked_shl(bits).unwrap_or_default();
    let place = u128::from(u64::from(number).checked_rem(ue_capacity(pool))?);
    let host = match pool.prefix() < 64 {
        // The first interface identifier of the UE's own prefix.
        true => place << 64 | 1,
        false => place,
    };
    Some(Ipv6Addr::from_bits(network | host))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn profile(pdn_type: PdnType, pools: &[&str]) -> SessionProfile {
        SessionProfile {
            pdn_type,
            ue_pools: pools.iter().map(|pool| pool.parse().unwrap()).collect(),
            ..SessionProfile::default()
        }
    }

    #[test]
    fn sessions_get_distinct_pool_addresses() {
        for (pool, room) in [
            ("10.45.0.0/28", 14),
            ("10.45.0.128/25", 126),
            ("10.45.0.7/32", 1),
            ("10.45.0.6/31", 2),
            ("2001:db8:cafe::/60", 16),
            ("2001:db8:cafe::40/122", 64),
        ] {
            let network: Network = pool.parse().unwrap();
            let profile = profile(SessionProfile::type_of(&[network]), &[pool]);
            assert_eq!(profile.check(room), Ok(()), "{pool}");
            let small = profile.check(room + 1);
            assert!(
                matches!(small, Err(ProfileError::SmallPool { .. })),
                "{pool}"
            );
            // Session numbers continue beyond the size of the pool.
            let numbers = (0..u32::try_from(room).unwrap()).map(|at| 5 + at);
            let mut seen = HashSet::new();
            for number in numbers {
                let ue = profile.ue(number, Direction::Downlink).unwrap();
                let address = match (ue.ipv4, ue.ipv6) {
                    (Some(address), None) => IpAddr::V4(address),
                    (None, Some(address)) => IpAddr::V6(address),
                    both => panic!("{both:?}"),
                };
                assert!(network.contains(address), "{address} in {pool}");
                assert!(seen.insert(address), "{address} twice");
            }
        }
    }

    #[test]
    fn largest_pools_do_not_overflow() {
        for (pool, pdn_type) in [("0.0.0.0/0", PdnType::IPV4), ("::/0", PdnType::IPV6)] {
            let profile = profile(pdn_type, &[pool]);
            assert_eq!(profile.check(1_000_000), Ok(()));
            assert!(profile.ue(u32::MAX, Direction::Uplink).is_some());
        }
    }

    #[test]
    fn unusable_profile_is_refused() {
        let ipv4 = "10.0.0.0/8";
        assert!(matches!(
            profile(PdnType::IPV4V6, &[ipv4]).check(1),
            Err(ProfileError::NoPool { family: "IPv6", .. })
        ));
        assert!(matches!(
            profile(PdnType::IPV4, &[ipv4, "11.0.0.0/8"]).check(1),
            Err(ProfileError::TwoPools { .. })
        ));
        for pdn_type in [PdnType::IPV6, PdnType::ETHERNET, PdnType::NON_IP] {
            let pools = profile(pdn_type, &[ipv4]);
            assert!(matches!(
                pools.check(1),
                Err(ProfileError::UnusedPool { .. })
            ));
        }
        assert_eq!(profile(PdnType::ETHERNET, &[]).check(9), Ok(()));
        for dnn in ["", "a..b", &"x".repeat(64), &"ab.".repeat(40)] {
            let named = SessionProfile {
                dnn: Some(dnn.to_owned()),
                ..SessionProfile::default()
            };
            assert!(matches!(named.check(1), Err(ProfileError::Dnn(_))), "{dnn}");
        }
    }
}
