//! Constructors from common types: addresses, texts and numbers.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::address::{CpPfcpEntityIpAddress, CsidNodeType, FqCsid, RemoteGtpuPeer};
use super::network::{AlternativeSmfIpAddress, CpIpAddress};
use super::rule::{OuterHeaderCreation, PfdContents, SdfFilter};
use super::usage::{VolumeQuota, VolumeThreshold};

/// Implements the conversion from an IP address of either version.
macro_rules! from_address {
    ($($name:ident)*) => { $(
        impl From<IpAddr> for $name {
            fn from(address: IpAddr) -> Self {
                match address {
                    IpAddr::V4(address) => address.into(),
                    IpAddr::V6(address) => address.into(),
                }
            }
        }

        impl From<Ipv4Addr> for $name {
            fn from(address: Ipv4Addr) -> Self {
                Self {
                    ipv4: Some(address),
                    ..Self::default()
                }
            }
        }

        impl From<Ipv6Addr> for $name {
            fn from(address: Ipv6Addr) -> Self {
                Self {
                    ipv6: Some(address),
                    ..Self::default()
                }
            }
        }
    )* };
}

from_address! { RemoteGtpuPeer CpPfcpEntityIpAddress CpIpAddress AlternativeSmfIpAddress }

/// Creates a GTP-U tunnel from its TEID and address.
impl From<(u32, IpAddr)> for OuterHeaderCreation {
    fn from((teid, address): (u32, IpAddr)) -> Self {
        let tunnel = Self {
            teid: Some(teid),
            ..Self::default()
        };
        match address {
            IpAddr::V4(address) => Self {
                gtpu_udp_ipv4: true,
                ipv4: Some(address),
                ..tunnel
            },
            IpAddr::V6(address) => Self {
                gtpu_udp_ipv6: true,
                ipv6: Some(address),
                ..tunnel
            },
        }
    }
}

impl FqCsid {
    /// Creates an identifier of sets of connections from the address of the node that assigned
    /// their numbers.
    #[must_use]
    pub fn of(node: IpAddr, csids: &[u16]) -> Self {
        let number_of_csids = u8::try_from(csids.len()).unwrap_or(u8::MAX);
        let named = Self {
            number_of_csids,
            csids: csids.iter().copied().collect(),
            ..Self::default()
        };
        match node {
            IpAddr::V4(address) => Self {
                node_id_type: CsidNodeType::IPV4,
                ipv4: Some(address),
                ..named
            },
            IpAddr::V6(address) => Self {
                node_id_type: CsidNodeType::IPV6,
                ipv6: Some(address),
                ..named
            },
        }
    }
}

impl SdfFilter {
    /// Creates a filter for a flow given by an IPFilterRule of RFC 6733.
    #[must_use]
    pub fn flow(rule: &str) -> Self {
        Self {
            flow_description: Some(rule.as_bytes().into()),
            ..Self::default()
        }
    }
}

impl PfdContents {
    /// Creates the description of a flow given by an IPFilterRule of RFC 6733.
    #[must_use]
    pub fn flow(rule: &str) -> Self {
        Self {
            flow_description: Some(rule.as_bytes().into()),
            ..Self::default()
        }
    }

    /// Creates the description of packets with a URL or a part of one.
    #[must_use]
    pub fn url(url: &str) -> Self {
        Self {
            url: Some(url.as_bytes().into()),
            ..Self::default()
        }
    }

    /// Creates the description of packets with a domain name or a pattern of one.
    #[must_use]
    pub fn domain(name: &str) -> Self {
        Self {
            domain_name: Some(name.as_bytes().into()),
            ..Self::default()
        }
    }
}

impl VolumeThreshold {
    /// Creates a threshold for the bytes of both directions together.
    #[must_use]
    pub fn total(bytes: u64) -> Self {
        Self {
            total_volume: Some(bytes),
            ..Self::default()
        }
    }
}

impl VolumeQuota {
    /// Creates a quota for the bytes of both directions together.
    #[must_use]
    pub fn total(bytes: u64) -> Self {
        Self {
            total_volume: Some(bytes),
            ..Self::default()
        }
    }
}
