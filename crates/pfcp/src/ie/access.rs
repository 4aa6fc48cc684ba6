//! Multi-access sessions: steering, its control and its addresses, TS 29.244 §8.2.123 to §8.2.160
//! and others.

use super::leaf::{codes, flags, numbers, record};

numbers! {
    /// The identifier of a multi-access rule, TS 29.244 §8.2.123.
    MarId: u16 = MAR_ID mar_id;
    /// The share of an access, in percent, TS 29.244 §8.2.126.
    Weight: u8 = WEIGHT weight;
}

codes! {
    /// The function that steers packets, TS 29.244 §8.2.124.
    SteeringFunctionality: low4 = STEERING_FUNCTIONALITY steering_functionality {
        0 ATSSS_LL "ATSSS-LL";
        1 MPTCP "MPTCP";
        2 MPQUIC_UDP "MPQUIC-UDP" R19;
        3 MPQUIC_IP "MPQUIC-IP" R19;
        4 MPQUIC_E "MPQUIC-E" R19;
    }
    /// The mode of steering, TS 29.244 §8.2.125.
    SteeringMode: low4 = STEERING_MODE steering_mode {
        0 ACTIVE_STANDBY "Active-Standby";
        1 SMALLEST_DELAY "Smallest Delay";
        2 LOAD_BALANCING "Load Balancing";
        3 PRIORITY_BASED "Priority-based";
        4 REDUNDANT "Redundant" R19;
    }
    /// The priority of an access, TS 29.244 §8.2.127.
    Priority: low4 = PRIORITY priority {
        0 ACTIVE "Active";
        1 STANDBY "Standby";
        2 NO_STANDBY "No Standby";
        3 HIGH "High";
        4 LOW "Low";
        5 PRIMARY "Primary" R19;
        6 SECONDARY "Secondary" R19;
    }
    /// The radio access technology, TS 29.244 §8.2.186.
    RatType: u8 = RAT_TYPE rat_type {
        0 RESERVED "Reserved";
        1 UTRAN "UTRAN";
        2 GERAN "GERAN";
        3 WLAN "WLAN";
        4 GAN "GAN";
        5 HSPA_EVOLUTION "HSPA Evolution";
        6 EUTRAN "EUTRAN (WB-E-UTRAN)";
        7 VIRTUAL "Virtual";
        8 EUTRAN_NB_IOT "EUTRAN-NB-IoT";
        9 LTE_M "LTE-M";
        10 NR "NR";
        11 WB_E_UTRAN_LEO "WB-E-UTRAN (LEO)" R19;
        12 WB_E_UTRAN_MEO "WB-E-UTRAN (MEO)" R19;
        13 WB_E_UTRAN_GEO "WB-E-UTRAN (GEO)" R19;
        14 WB_E_UTRAN_OTHERSAT "WB-E-UTRAN (OTHERSAT)" R19;
        15 EUTRAN_NB_IOT_LEO "EUTRAN-NB-IoT (LEO)" R19;
        16 EUTRAN_NB_IOT_MEO "EUTRAN-NB-IoT (MEO)" R19;
        17 EUTRAN_NB_IOT_GEO "EUTRAN-NB-IoT (GEO)" R19;
        18 EUTRAN_NB_IOT_OTHERSAT "EUTRAN-NB-IoT (OTHERSAT)" R19;
        19 LTE_M_LEO "LTE-M (LEO)" R19;
        20 LTE_M_MEO "LTE-M (MEO)" R19;
        21 LTE_M_GEO "LTE-M (GEO)" R19;
        22 LTE_M_OTHERSAT "LTE-M (OTHERSAT)" R19;
        23 NR_LEO "NR (LEO)" R19;
        24 NR_MEO "NR (MEO)" R19;
        25 NR_GEO "NR (GEO)" R19;
        26 NR_OTHERSAT "NR (OTHERSAT)" R19;
        27 NR_REDCAP "NR-REDCAP" R19;
        28 NR_EREDCAP "NR-EREDCAP" R19;
    }
    /// The transport mode of MPQUIC, TS 29.244 §8.2.227.
    TransportMode: low4 = TRANSPORT_MODE transport_mode {
        0 DATAGRAM_1 "Datagram mode 1";
        1 DATAGRAM_2 "Datagram mode 2";
        2 STREAM "Stream mode";
    }
}

flags! {
    /// The flag that requests reports about the availability of an access, TS 29.244 §8.2.152.
    RequestedAccessAvailabilityInformation: u8, 1..1
        = REQUESTED_ACCESS_AVAILABILITY_INFORMATION {
        RRCA 5/1;
    }
    /// The flag that requests MPTCP, TS 29.244 §8.2.154.
    MptcpControlInformation: u8, 1..1 = MPTCP_CONTROL_INFORMATION {
        TCI 5/1;
    }
    /// The flag that requests lower-layer steering (ATSSS-LL), TS 29.244 §8.2.155.
    AtsssLlControlInformation: u8, 1..1 = ATSSS_LL_CONTROL_INFORMATION {
        LLI 5/1;
    }
    /// The flag that confirms lower-layer steering (ATSSS-LL), TS 29.244 §8.2.160.
    AtsssLlInformation: u8, 1..1 = ATSSS_LL_INFORMATION {
        LLI 5/1;
    }
    /// The rules that a multi-access rule applies to, TS 29.244 §8.2.181.
    MultipathApplicableIndication: u8, 1..1 = MULTIPATH_APPLICABLE_INDICATION {
        MTAI 5/1;
        MQAI 5/2 R19;
    }
    /// The permissions to choose the split of load, TS 29.244 §8.2.197.
    SteeringModeIndicator: u8, 1..1 = STEERING_MODE_INDICATOR {
        ALBI 5/1;
        UEAI 5/2;
    }
    /// The kinds of MPQUIC that are requested, TS 29.244 §8.2.225.
    MpquicControlInformation: u8, 1..1 = MPQUIC_CONTROL_INFORMATION {
        CUDP 5/1;
        CIP 5/2;
        CETH 5/3;
    }
}

super::open::open_enum! {
    /// The type of an access, TS 29.244 §8.2.153.
    AccessType(u8)
    0 TGPP "3GPP access type";
    1 NON_TGPP "Non-3GPP access type";
}

super::open::open_enum! {
    /// The change of the availability of an access, TS 29.244 §8.2.153.
    AvailabilityStatus(u8)
    0 UNAVAILABLE "Access has become unavailable";
    1 AVAILABLE "Access has become available";
}

record! {
    /// A change of the availability of an access, TS 29.244 §8.2.153.
    AccessAvailabilityInformation = ACCESS_AVAILABILITY_INFORMATION, head 1 {
        /// Access to which the information applies (3GPP or not).
        access_type: (AccessType 2) 5/1;
        /// The change of its availability.
        availability_status: (AvailabilityStatus 2) 5/3;
    } {}
}

record! {
    /// The parameters of the performance measurement function (PMF), TS 29.244 §8.2.156.
    PmfControlInformation T = PMF_CONTROL_INFORMATION, head 1 {
        /// The function is required.
        pmfi: flag 5/1;
        /// The function does not measure round trip times.
        drtti: flag 5/2;
    } {
        /// The QoS flows that are measured separately.
        qfis: (list u8 length8) [if PQPM 5/3];
    }
}

record! {
    /// The address of the MPTCP proxy, TS 29.244 §8.2.157.
    MptcpAddressInformation = MPTCP_ADDRESS_INFORMATION, head 1 {} {
        /// The type of the proxy.
        mptcp_proxy_type: u8;
        /// The port of the proxy.
        mptcp_proxy_port: u16;
        /// The IPv4 address of the proxy.
        ipv4: ipv4 [if V4 5/1];
        /// The IPv6 address of the proxy.
        ipv6: ipv6 [if V6 5/2];
    }
}

record! {
    /// The address of the MPQUIC proxy, TS 29.244 §8.2.226.
    MpquicAddressInformation = MPQUIC_ADDRESS_INFORMATION, head 1 {} {
        /// The type of the proxy.
        mpquic_proxy_type: u8;
        /// The port of the proxy.
        mpquic_proxy_port: u16;
        /// The IPv4 address of the proxy.
        ipv4: ipv4 [if V4 5/1];
        /// The IPv6 address of the proxy.
        ipv6: ipv6 [if V6 5/2];
    }
}

record! {
    /// The addresses of the UE on each access, TS 29.244 §8.2.158.
    LinkSpecificMultipathIpAddress = LINK_SPECIFIC_MULTIPATH_IP_ADDRESS, head 1 {} {
        /// The IPv4 address on 3GPP access.
        tgpp_ipv4: ipv4 [if V4 5/1];
        /// The IPv6 address on 3GPP access.
        tgpp_ipv6: ipv6 [if V6 5/2];
        /// The IPv4 address on non-3GPP access.
        non_tgpp_ipv4: ipv4 [if NV4 5/3];
        /// The IPv6 address on non-3GPP access.
        non_tgpp_ipv6: ipv6 [if NV6 5/4];
    }
}

record! {
    /// The address of the performance measurement function (PMF), TS 29.244 §8.2.159.
    PmfAddressInformation = PMF_ADDRESS_INFORMATION, head 1 {
        /// An IPv4 address is present.
        v4: flag 5/1;
        /// An IPv6 address is present.
        v6: flag 5/2;
    } {
        /// The IPv4 address.
        ipv4: ipv4 [if (v4)];
        /// The IPv6 address.
        ipv6: ipv6 [if (v6)];
        /// The port for 3GPP access.
        tgpp_port: u16 [if (v4 || v6)];
        /// The port for non-3GPP access.
        non_tgpp_port: u16 [if (v4 || v6)];
        /// The MAC address for 3GPP access.
        tgpp_mac: mac [if MAC 5/3];
        /// The MAC address for non-3GPP access.
        non_tgpp_mac: mac [if MAC 5/3];
    }
}

record! {
    /// The thresholds beyond which an access is not used, TS 29.244 §8.2.196.
    Thresholds = THRESHOLDS, head 1 {} {
        /// The round trip time, in milliseconds.
        rtt: u16 [if RTT 5/1];
        /// The packet loss rate, in percent.
        packet_loss_rate: u8 [if PLR 5/2];
    }
}
