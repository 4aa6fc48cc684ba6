//! Addresses of tunnels, sessions, nodes and UEs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::leaf::record;
use crate::wire::Seid;

record! {
    /// The endpoint of a tunnel (F-TEID), or the request that the UP function allocates one, TS
    /// 29.244 §8.2.3.
    FTeid = F_TEID, head 1 {
        /// An IPv4 address is present or requested.
        v4: flag 5/1;
        /// An IPv6 address is present or requested.
        v6: flag 5/2;
        /// The UP function allocates the F-TEID.
        choose: flag 5/3;
    } {
        /// The tunnel endpoint identifier (TEID).
        teid: u32 [if (!choose)];
        /// The IPv4 address.
        ipv4: ipv4 [if (v4 && !choose)];
        /// The IPv6 address.
        ipv6: ipv6 [if (v6 && !choose)];
        /// Rules of a session with the same CHOOSE ID get the same F-TEID.
        choose_id: u8 [if CHID 5/4];
    }
}

impl FTeid {
    const EMPTY: Self = Self {
        v4: false,
        v6: false,
        choose: false,
        teid: None,
        ipv4: None,
        ipv6: None,
        choose_id: None,
    };

    /// Creates the endpoint of a tunnel at an address.
    #[must_use]
    pub const fn new(teid: u32, address: IpAddr) -> Self {
        let mut value = Self::EMPTY;
        value.teid = Some(teid);
        match address {
            IpAddr::V4(address) => {
                value.v4 = true;
                value.ipv4 = Some(address);
            }
            IpAddr::V6(address) => {
                value.v6 = true;
                value.ipv6 = Some(address);
            }
        }
        value
    }

    /// Creates the endpoint of a tunnel at two addresses.
    #[must_use]
    pub const fn dual(teid: u32, ipv4: Ipv4Addr, ipv6: Ipv6Addr) -> Self {
        let mut value = Self::new(teid, IpAddr::V4(ipv4));
        value.v6 = true;
        value.ipv6 = Some(ipv6);
        value
    }

    /// Requests a tunnel endpoint over IPv4 from the UP function.
    #[must_use]
    pub const fn choose_ipv4() -> Self {
        let mut value = Self::EMPTY;
        value.choose = true;
        value.v4 = true;
        value
    }
}

impl From<(u32, IpAddr)> for FTeid {
    fn from((teid, address): (u32, IpAddr)) -> Self {
        Self::new(teid, address)
    }
}

impl From<(u32, Ipv4Addr)> for FTeid {
    fn from((teid, address): (u32, Ipv4Addr)) -> Self {
        Self::new(teid, address.into())
    }
}

record! {
    /// The endpoint of a session (F-SEID), TS 29.244 §8.2.37.
    FSeid = F_SEID, head 1 {} {
        /// The session endpoint identifier (SEID).
        seid: u64;
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/2];
        /// The IPv6 address.
        ipv6: ipv6 [if V6 5/1];
    }
}

impl FSeid {
    /// Creates the endpoint of a session at an address.
    #[must_use]
    pub const fn new(seid: Seid, address: IpAddr) -> Self {
        let (ipv4, ipv6) = split(address);
        Self {
            seid: seid.0,
            ipv4,
            ipv6,
        }
    }
}

impl From<(Seid, IpAddr)> for FSeid {
    fn from((seid, address): (Seid, IpAddr)) -> Self {
        Self::new(seid, address)
    }
}

impl From<(u64, IpAddr)> for FSeid {
    fn from((seid, address): (u64, IpAddr)) -> Self {
        Self::new(Seid(seid), address)
    }
}

const fn split(address: IpAddr) -> (Option<Ipv4Addr>, Option<Ipv6Addr>) {
    match address {
        IpAddr::V4(address) => (Some(address), None),
        IpAddr::V6(address) => (None, Some(address)),
    }
}

record! {
    /// The IP addresses of a UE, or the request that the UP function allocates them, TS 29.244
    /// §8.2.62.
    UeIpAddress = UE_IP_ADDRESS, head 1 {
        /// The address is matched with the destination of packets, not with the source.
        destination: flag 5/3;
        /// The UP function allocates an IPv4 address.
        choose_v4: flag 5/5;
        /// The UP function allocates an IPv6 address.
        choose_v6: flag 5/6;
    } {
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/2];
        /// The IPv6 address.
        ipv6: ipv6 [if V6 5/1];
        /// Number of bits by which a delegated prefix is shorter than 64 bits.
        ipv6_prefix_delegation_bits: u8 [if IPV6D 5/4];
        /// The length of the IPv6 prefix.
        ipv6_prefix_length: u8 [if IP6PL 5/7];
    }
}

impl UeIpAddress {
    /// Creates a match for packets from the address.
    #[must_use]
    pub const fn source(address: IpAddr) -> Self {
        let (ipv4, ipv6) = split(address);
        Self {
            destination: false,
            choose_v4: false,
            choose_v6: false,
            ipv4,
            ipv6,
            ipv6_prefix_delegation_bits: None,
            ipv6_prefix_length: None,
        }
    }

    /// Creates a match for packets to the address.
    #[must_use]
    pub const fn destination(address: IpAddr) -> Self {
        let mut value = Self::source(address);
        value.destination = true;
        value
    }

    /// Returns the length of the IPv6 prefix, or `None` if no prefix can have it: the length that
    /// is given (IP6PL), 64 less the bits that are delegated (IPv6D), or 64, for which an address
    /// without either stands, TS 29.244 §8.2.62.
    #[must_use]
    pub const fn prefix_length(&self) -> Option<u8> {
        match (self.ipv6_prefix_length, self.ipv6_prefix_delegation_bits) {
            (Some(length @ 1..=128), _) => Some(length),
            (None, Some(bits @ 0..=63)) => Some(64 - bits),
            (Some(_), _) | (None, Some(_)) => None,
            (None, None) => Some(64),
        }
    }
}

record! {
    /// The source address of a message, TS 29.244 §8.2.138.
    SourceIpAddress = SOURCE_IP_ADDRESS, head 1 {} {
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/2];
        /// The IPv6 address.
        ipv6: ipv6 [if V6 5/1];
        /// The length of the mask or prefix.
        mask_prefix_length: u8 [if MPL 5/3];
    }
}

impl From<IpAddr> for SourceIpAddress {
    fn from(address: IpAddr) -> Self {
        let (ipv4, ipv6) = split(address);
        Self {
            ipv4,
            ipv6,
            mask_prefix_length: None,
        }
    }
}

super::open::open_enum! {
    /// The type of a Node ID.
    NodeIdType(u8)
    0 IPV4 "IPv4 address";
    1 IPV6 "IPv6 address";
    2 FQDN "FQDN";
}

record! {
    /// The name of a node, TS 29.244 §8.2.38.
    NodeId T = NODE_ID, head 1 {
        /// The type of the Node ID.
        node_id_type: (NodeIdType 4) 5/1;
    } {
        /// The name as an IPv4 address.
        ipv4: ipv4 [if (node_id_type.0 == 0)];
        /// The name as an IPv6 address.
        ipv6: ipv6 [if (node_id_type.0 == 1)];
        /// The name as a domain name, encoded as labels.
        fqdn: labels [if (node_id_type.0 == 2)];
        /// The name of another type.
        other: bytes [if (node_id_type.0 > 2)];
    }
}

impl NodeId {
    const EMPTY: Self = Self {
        node_id_type: NodeIdType::IPV4,
        ipv4: None,
        ipv6: None,
        fqdn: None,
        other: None,
    };

    /// Creates a Node ID from a domain name.
    #[must_use]
    pub fn fqdn(name: &str) -> Self {
        let fqdn = Some(super::name::to_labels(name).into());
        Self {
            node_id_type: NodeIdType::FQDN,
            fqdn,
            ..Self::EMPTY
        }
    }
}

impl<T: AsRef<[u8]>> NodeId<T> {
    /// Returns the name if it is an IP address.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.ipv4
            .map(IpAddr::V4)
            .or_else(|| self.ipv6.map(IpAddr::V6))
    }

    /// Returns the name if it is a domain name, in dotted form.
    #[must_use]
    pub fn domain(&self) -> Option<String> {
        super::name::from_labels(self.fqdn.as_ref()?.as_ref())
    }
}

impl From<IpAddr> for NodeId {
    fn from(address: IpAddr) -> Self {
        let (ipv4, ipv6) = split(address);
        let node_id_type = if ipv4.is_some() {
            NodeIdType::IPV4
        } else {
            NodeIdType::IPV6
        };
        Self {
            node_id_type,
            ipv4,
            ipv6,
            ..Self::EMPTY
        }
    }
}

impl From<Ipv4Addr> for NodeId {
    fn from(address: Ipv4Addr) -> Self {
        IpAddr::V4(address).into()
    }
}

record! {
    /// A GTP-U peer of the user plane, TS 29.244 §8.2.70.
    RemoteGtpuPeer T = REMOTE_GTPU_PEER, head 1 {} {
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/2];
        /// The IPv6 address.
        ipv6: ipv6 [if V6 5/1];
        /// The interface towards the peer.
        destination_interface: bytes16 [if DI 5/3];
        /// The network instance of the peer.
        network_instance: text16 [if NI 5/4];
        /// The time at which the peer started.
        recovery_time_stamp: time [if RTS 5/5] R19;
    }
}

record! {
    /// The addresses and TEIDs of a user plane, IE 116 until release 16.3.
    UserPlaneIpResourceInformation T = USER_PLANE_IP_RESOURCE_INFORMATION, head 1 {
        /// Number of high bits of a TEID that are assigned.
        teid_range_indication: 3 5/3;
        /// A network instance is present.
        has_network_instance: flag 5/6;
        /// A source interface is present.
        has_source_interface: flag 5/7;
    } {
        /// The high bits of the TEIDs.
        teid_range: u8 [if (teid_range_indication != 0)];
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/1];
        /// The IPv6 address.
        ipv6: ipv6 [if V6 5/2];
        /// The network instance, if no source interface follows.
        network_instance: text [if (has_network_instance && !has_source_interface)];
        /// The network instance, if a source interface follows.
        network_instance_of_interface:
            text_but_last [if (has_network_instance && has_source_interface)];
        /// The source interface.
        source_interface: low4 [if (has_source_interface)];
    }
}

record! {
    /// An IP address of a PFCP entity of the CP function, TS 29.244 §8.2.135.
    CpPfcpEntityIpAddress = CP_PFCP_ENTITY_IP_ADDRESS, head 1 {} {
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/2];
        /// The IPv6 address.
        ipv6: ipv6 [if V6 5/1];
    }
}

super::open::open_enum! {
    /// The type of a node address in an FQ-CSID.
    CsidNodeType(u8)
    0 IPV4 "IPv4 address";
    1 IPV6 "IPv6 address";
    2 PLMN "MCC, MNC and a number of the operator";
}

super::open::open_enum! {
    /// The type of a node that assigns FQ-CSIDs.
    CsidNode(u8)
    0 MME "MME";
    1 SGW_C "SGW-C";
    2 PGW_C_SMF "PGW-C/SMF";
    3 EPDG "ePDG";
    4 TWAN "TWAN";
    5 USER_PLANE "PGW-U/SGW-U/UPF";
}

record! {
    /// A fully qualified set of PDN connections, TS 29.244 §8.2.43.
    FqCsid T = FQ_CSID, head 1 {
        /// Number of sets that follow the address.
        number_of_csids: 4 5/1;
        /// The type of the node address.
        node_id_type: (CsidNodeType 4) 5/5;
    } {
        /// The IPv4 address.
        ipv4: ipv4 [if (node_id_type.0 == 0)];
        /// The IPv6 address.
        ipv6: ipv6 [if (node_id_type.0 == 1)];
        /// The node address of another type.
        other: u32 [if (node_id_type.0 > 1)];
        /// The identifiers of the sets.
        csids: (list u16 counted number_of_csids);
        /// The type of the node.
        node_type: (CsidNode low4) [more];
    }
}
