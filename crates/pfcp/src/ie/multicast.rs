//! Multicast and broadcast sessions: TS 29.244 §8.2.137 and §8.2.206 to §8.2.213.

use super::leaf::{flags, numbers, record};

numbers! {
    /// The identifier of the unicast parameters of a receiver, TS 29.244 §8.2.210.
    MbsUnicastParametersId: u16 = MBS_UNICAST_PARAMETERS_ID mbs_unicast_parameters_id;
    /// The identifier of the area of a location-dependent session, TS 29.244 §8.2.213.
    AreaSessionId: u16 = AREA_SESSION_ID area_session_id;
}

flags! {
    /// Flags of requests about a multicast session, TS 29.244 §8.2.208.
    Mbsn4mbreqFlags: u8, 1..1 = MBSN4MBREQ_FLAGS {
        PLLSSM 5/1;
        JMBSSM 5/2;
        MBS_RESTI 5/3;
    }
    /// Flags of responses about a multicast session, TS 29.244 §8.2.211.
    Mbsn4respFlags: u8, 1..1 = MBSN4RESP_FLAGS {
        NN19DT 5/1;
        JMTI 5/2;
        N19DTR 5/3;
    }
}

record! {
    /// An IP multicast address, a range of addresses, or any address, TS 29.244 §8.2.137.
    IpMulticastAddress = IP_MULTICAST_ADDRESS, head 1 {
        /// The address is an IPv6 address.
        v6: flag 5/1;
        /// The address is an IPv4 address.
        v4: flag 5/2;
        /// The element is a range of addresses.
        range: flag 5/3;
        /// The element matches any address.
        any: flag 5/4;
    } {
        /// The IPv4 address, or the lowest one of the range.
        start_ipv4: ipv4 [if (v4 && !any)];
        /// The IPv6 address, or the lowest one of the range.
        start_ipv6: ipv6 [if (v6 && !any)];
        /// The highest IPv4 address of the range.
        end_ipv4: ipv4 [if (v4 && range && !any)];
        /// The highest IPv6 address of the range.
        end_ipv6: ipv6 [if (v6 && range && !any)];
    }
}

record! {
    /// The identifier of a multicast session, TS 29.244 §8.2.206.
    MbsSessionIdentifier T = MBS_SESSION_IDENTIFIER, head 1 {} {
        /// The temporary mobile group identity, as in TS 24.008.
        tmgi: fixed6 [if TMGI 5/1];
        /// The address of the source of the group.
        source_address: address [if SSMI 5/2];
        /// The address of the group.
        distribution_address: address [if SSMI 5/2];
        /// The network identifier of a non-public network.
        nid: fixed6 [if NIDI 5/3];
    }
}

record! {
    /// The transport tunnel of a multicast session, TS 29.244 §8.2.207.
    MulticastTransportInformation T = MULTICAST_TRANSPORT_INFORMATION, head 1 {} {
        /// The common TEID of all receivers.
        common_tunnel_endpoint_identifier: u32;
        /// The address of the group.
        distribution_address: address;
        /// The address of the source.
        source_address: address;
    }
}

record! {
    /// The local endpoint at which a multicast session arrives, or the request that the UP function
    /// allocates it, TS 29.244 §8.2.209.
    LocalIngressTunnel = LOCAL_INGRESS_TUNNEL, head 1 {
        /// An IPv4 address is present or requested.
        v4: flag 5/1;
        /// An IPv6 address is present or requested.
        v6: flag 5/2;
        /// The UP function allocates the endpoint.
        choose: flag 5/3;
    } {
        /// The UDP port.
        udp_port: u16 [if (!choose)];
        /// The IPv4 address.
        ipv4: ipv4 [if (v4 && !choose)];
        /// The IPv6 address.
        ipv6: ipv6 [if (v6 && !choose)];
    }
}
