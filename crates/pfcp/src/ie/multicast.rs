//! Multicast and broadcast: TS 29.244 §8.2.137 and §8.2.206 to §8.2.213.

use super::leaf::{flags, numbers, record};

numbers! {
    /// The identifier of the parameters of a receiver, TS 29.244 §8.2.210.
    MbsUnicastParametersId: u16 = MBS_UNICAST_PARAMETERS_ID mbs_unicast_parameters_id;
    /// The area of a session that differs between areas, TS 29.244 §8.2.213.
    AreaSessionId: u16 = AREA_SESSION_ID area_session_id;
}

flags! {
    /// Wishes of a multicast session, TS 29.244 §8.2.208.
    Mbsn4mbreqFlags: u8, 1..1 = MBSN4MBREQ_FLAGS {
        PLLSSM 5/1;
        JMBSSM 5/2;
        MBS_RESTI 5/3;
    }
    /// Facts about a multicast session, TS 29.244 §8.2.211.
    Mbsn4respFlags: u8, 1..1 = MBSN4RESP_FLAGS {
        NN19DT 5/1;
        JMTI 5/2;
        N19DTR 5/3;
    }
}

record! {
    /// A multicast address, a range of them, or any, TS 29.244 §8.2.137.
    IpMulticastAddress = IP_MULTICAST_ADDRESS, head 1 {
        /// It is of IPv6.
        v6: flag 5/1;
        /// It is of IPv4.
        v4: flag 5/2;
        /// It is a range.
        range: flag 5/3;
        /// It is any address.
        any: flag 5/4;
    } {
        /// The address, or the lowest of the range.
        start_ipv4: ipv4 [if (v4 && !any)];
        /// The address, or the lowest of the range.
        start_ipv6: ipv6 [if (v6 && !any)];
        /// The highest address of the range.
        end_ipv4: ipv4 [if (v4 && range && !any)];
        /// The highest address of the range.
        end_ipv6: ipv6 [if (v6 && range && !any)];
    }
}

record! {
    /// The name of a multicast session, TS 29.244 §8.2.206.
    MbsSessionIdentifier T = MBS_SESSION_IDENTIFIER, head 1 {} {
        /// The temporary identity of the group, as in TS 24.008.
        tmgi: fixed6 [if TMGI 5/1];
        /// The source that sends to the group.
        source_address: address [if SSMI 5/2];
        /// The group that the source sends to.
        distribution_address: address [if SSMI 5/2];
        /// The network where it is not a public one.
        nid: fixed6 [if NIDI 5/3];
    }
}

record! {
    /// The tunnel that a multicast session arrives in, TS 29.244 §8.2.207.
    MulticastTransportInformation T = MULTICAST_TRANSPORT_INFORMATION, head 1 {} {
        /// The identifier of the tunnel, the same for all receivers.
        common_tunnel_endpoint_identifier: u32;
        /// The group that the source sends to.
        distribution_address: address;
        /// The source.
        source_address: address;
    }
}

record! {
    /// Where a multicast session arrives, or the wish that the UP function chooses it,
    /// TS 29.244 §8.2.209.
    LocalIngressTunnel = LOCAL_INGRESS_TUNNEL, head 1 {
        /// There is an IPv4 address, or one is to be chosen.
        v4: flag 5/1;
        /// There is an IPv6 address, or one is to be chosen.
        v6: flag 5/2;
        /// The UP function chooses.
        choose: flag 5/3;
    } {
        /// The port.
        udp_port: u16 [if (!choose)];
        /// The address.
        ipv4: ipv4 [if (v4 && !choose)];
        /// The address.
        ipv6: ipv6 [if (v6 && !choose)];
    }
}
