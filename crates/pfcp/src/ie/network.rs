//! Addresses outside of sessions: other functions, N6 and pools; TS 29.244 §8.2.129, §8.2.198 to
//! §8.2.200, §8.2.242 to §8.2.244 and others.

use std::net::Ipv4Addr;

use super::leaf::{flags, numbers, record, strings};

numbers! {
    /// A period of validity, in minutes, TS 29.244 §8.2.184.
    ValidityTimer: u16 = VALIDITY_TIMER validity_timer;
}

flags! {
    /// The IP versions of a pool, TS 29.244 §8.2.177.
    IpVersion: u8, 1..1 = IP_VERSION {
        V4 5/1;
        V6 5/2;
    }
}

strings! {
    /// The identifier of an access to a data network, TS 29.244 §8.2.161.
    DataNetworkAccessIdentifier: text
        = DATA_NETWORK_ACCESS_IDENTIFIER data_network_access_identifier;
    /// The identifier of a group of sessions, TS 29.244 §8.2.198.
    GroupId: text = GROUP_ID group_id;
    /// The URI of a resource, TS 29.244 §8.2.244.
    Uri: text = URI uri;
}

record! {
    /// An alternative address of the CP function, TS 29.244 §8.2.129.
    AlternativeSmfIpAddress = ALTERNATIVE_SMF_IP_ADDRESS, head 1 {
        /// The address is the preferred one.
        ppe: flag 5/3;
    } {
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/2];
        /// The IPv6 address.
        ipv6: ipv6 [if V6 5/1];
    }
}

record! {
    /// The identifier of the SMF set that the CP function belongs to, TS 29.244 §8.2.131.
    SmfSetId T = SMF_SET_ID, head 1 {} {
        /// The name of the set.
        fqdn: labels;
    }
}

record! {
    /// The identifier of a network function instance, which is a UUID, TS 29.244 §8.2.175.
    NfInstanceId = NF_INSTANCE_ID, head 0 {} {
        /// The bytes of the UUID.
        nf_instance_id: fixed16;
    }
}

record! {
    /// The numbers of addresses in a pool, TS 29.244 §8.2.183.
    NumberOfUeIpAddresses = NUMBER_OF_UE_IP_ADDRESSES, head 1 {} {
        /// Number of IPv4 addresses.
        number_of_ue_ipv4_addresses: u32 [if IPV4 5/1];
        /// Number of IPv6 addresses.
        number_of_ue_ipv6_addresses: u32 [if IPV6 5/2];
    }
}

record! {
    /// An address of the CP function, TS 29.244 §8.2.199.
    CpIpAddress = CP_IP_ADDRESS, head 1 {} {
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/2];
        /// The IPv6 address.
        ipv6: ipv6 [if V6 5/1];
    }
}

record! {
    /// The addresses and ports that replace those of packets, TS 29.244 §8.2.200.
    IpAddressAndPortNumberReplacement
        = IP_ADDRESS_AND_PORT_NUMBER_REPLACEMENT, head 1 {
        /// The UP function takes the source from the mapped N6 address.
        umn6rs: flag 5/7 R19;
    } {
        /// The IPv4 address of the destination.
        destination_ipv4: ipv4 [if DIPV4 5/1];
        /// The IPv6 address of the destination.
        destination_ipv6: ipv6 [if DIPV6 5/2];
        /// The port of the destination.
        destination_port: u16 [if DPN 5/3];
        /// The IPv4 address of the source.
        source_ipv4: ipv4 [if SIPV4 5/4];
        /// The IPv6 address of the source.
        source_ipv6: ipv6 [if SIPV6 5/5];
        /// The port of the source.
        source_port: u16 [if SPN 5/6];
    }
}

record! {
    /// The address of the UE on N6, or the request that the UP function allocates it, TS 29.244
    /// §8.2.242.
    MappedN6IpAddress = MAPPED_N6_IP_ADDRESS, head 1 {
        /// The UP function allocates the address.
        choose_v4: flag 5/1;
    } {
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/2];
    }
}

impl From<Ipv4Addr> for MappedN6IpAddress {
    fn from(address: Ipv4Addr) -> Self {
        Self {
            choose_v4: false,
            ipv4: Some(address),
        }
    }
}

record! {
    /// A match for the N6 packets that belong to a session, TS 29.244 §8.2.243.
    N6RoutingInformation = N6_ROUTING_INFORMATION, head 1 {} {
        /// The IPv4 address of the source.
        source_ipv4: ipv4 [if SIPV4 5/1];
        /// The IPv6 address of the source.
        source_ipv6: ipv6 [if SIPV6 5/2];
        /// The port of the source.
        source_port: u16 [if SPO 5/3];
        /// The IPv4 address of the destination.
        destination_ipv4: ipv4 [if DIPV4 5/4];
        /// The IPv6 address of the destination.
        destination_ipv6: ipv6 [if DIPV6 5/5];
        /// The port of the destination.
        destination_port: u16 [if DPO 5/6];
    }
}

super::open::open_enum! {
    /// The signaling method of an N6 connection, TS 29.244 §8.2.261.
    SignalingMethod(u8)
    0 UNSPECIFIED "Unspecified";
    1 CONNECT_UDP "Connect-UDP";
}

record! {
    /// An N6 connection with on-path signaling, TS 29.244 §8.2.261.
    OnPathN6ConnectionInformation = ON_PATH_N6_CONNECTION_INFORMATION, head 1 {
        /// The signaling method.
        signaling_method: (SignalingMethod 3) 5/1;
    } {
        /// The IPv4 address of the peer.
        destination_ipv4: ipv4 [if V4 5/4];
        /// The IPv6 address of the peer.
        destination_ipv6: ipv6 [if V6 5/5];
        /// The port of the peer.
        port: u16 [if PN 5/6];
    }
}
