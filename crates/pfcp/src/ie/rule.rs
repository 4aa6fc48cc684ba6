//! Identifiers of rules, and the parameters of detection and actions: TS 29.244 §8.2.2 to §8.2.12
//! and others.

use super::leaf::{codes, flags, numbers, record, strings};

numbers! {
    /// The identifier of a packet detection rule, TS 29.244 §8.2.36.
    PdrId: u16 = PDR_ID rule_id;
    /// The identifier of a forwarding action rule, TS 29.244 §8.2.74. The highest bit marks a rule
    /// that is predefined in the UP function.
    FarId: u32 = FAR_ID far_id;
    /// The identifier of a QoS enforcement rule, TS 29.244 §8.2.75.
    QerId: u32 = QER_ID qer_id;
    /// The identifier of a usage reporting rule, TS 29.244 §8.2.54.
    UrrId: u32 = URR_ID urr_id;
    /// The identifier of a usage reporting rule that this one is linked to, TS 29.244 §8.2.55.
    LinkedUrrId: u32 = LINKED_URR_ID linked_urr_id;
    /// The identifier of a usage reporting rule that shares a quota, TS 29.244 §8.2.85.
    AggregatedUrrId: u32 = AGGREGATED_URR_ID urr_id;
    /// The identifier of a buffering action rule, TS 29.244 §8.2.57.
    BarId: u8 = BAR_ID bar_id;
    /// The identifier of a traffic endpoint, TS 29.244 §8.2.92.
    TrafficEndpointId: u8 = TRAFFIC_ENDPOINT_ID traffic_endpoint_id;
    /// The precedence of a rule, where the lowest value is evaluated first, TS 29.244 §8.2.11.
    Precedence: u32 = PRECEDENCE precedence;
    /// The identifier that correlates QoS enforcement rules of several sessions, TS 29.244 §8.2.10.
    QerCorrelationId: u32 = QER_CORRELATION_ID qer_correlation_id;
    /// The ToS or traffic class and its mask, TS 29.244 §8.2.12.
    TransportLevelMarking: u16 = TRANSPORT_LEVEL_MARKING tos_traffic_class;
    /// The delay of a downlink data notification, in units of 50 ms, TS 29.244 §8.2.28.
    DownlinkDataNotificationDelay: u8 = DOWNLINK_DATA_NOTIFICATION_DELAY delay;
    /// Suggested number of packets to buffer, TS 29.244 §8.2.100.
    SuggestedBufferingPacketsCount: u8 = SUGGESTED_BUFFERING_PACKETS_COUNT packet_count;
    /// The identifier of a QoS flow, TS 29.244 §8.2.89.
    Qfi: low6 = QFI qfi;
    /// The paging policy indicator, TS 29.244 §8.2.116.
    PagingPolicyIndicator: low3 = PAGING_POLICY_INDICATOR ppi;
    /// The averaging window, in milliseconds, TS 29.244 §8.2.115.
    AveragingWindow: u32 = AVERAGING_WINDOW averaging_window;
    /// The type of an Ethernet frame, TS 29.244 §8.2.96.
    Ethertype: u16 = ETHERTYPE ethertype;
    /// The routing method of a UE, which tells if a routing protocol announces its routes, TS
    /// 29.244 §8.2.110.
    FramedRouting: u32 = FRAMED_ROUTING framed_routing;
    /// The identifier of an Ethernet filter, TS 29.244 §8.2.98.
    EthernetFilterId: u32 = ETHERNET_FILTER_ID ethernet_filter_id;
}

codes! {
    /// The interface that packets come from, TS 29.244 §8.2.2.
    SourceInterface: low4 = SOURCE_INTERFACE interface {
        0 ACCESS "Access";
        1 CORE "Core";
        2 SGI_N6_LAN "SGi-LAN/N6-LAN";
        3 CP_FUNCTION "CP-function";
        4 VN_INTERNAL "5G VN Internal";
    }
    /// The interface that packets are sent to, TS 29.244 §8.2.24.
    DestinationInterface: low4 = DESTINATION_INTERFACE interface {
        0 ACCESS "Access";
        1 CORE "Core";
        2 SGI_N6_LAN "SGi-LAN/N6-LAN";
        3 CP_FUNCTION "CP-function";
        4 LI_FUNCTION "LI Function";
        5 VN_INTERNAL "5G VN Internal";
    }
    /// The 3GPP reference point of an interface, TS 29.244 §8.2.118.
    TgppInterfaceType: low6 = TGPP_INTERFACE_TYPE interface_type {
        0 S1_U "S1-U";
        1 S5_S8_U "S5/S8-U";
        2 S4_U "S4-U";
        3 S11_U "S11-U";
        4 S12 "S12";
        5 GN_GP_U "Gn/Gp-U";
        6 S2A_U "S2a-U";
        7 S2B_U "S2b-U";
        8 ENODEB_DL_FORWARDING "eNodeB GTP-U interface for DL data forwarding";
        9 ENODEB_UL_FORWARDING "eNodeB GTP-U interface for UL data forwarding";
        10 SGW_UPF_DL_FORWARDING "SGW/UPF GTP-U interface for DL data forwarding";
        11 N3_TGPP_ACCESS "N3 3GPP Access";
        12 N3_TRUSTED "N3 Trusted Non-3GPP Access";
        13 N3_UNTRUSTED "N3 Untrusted Non-3GPP Access";
        14 N3_FORWARDING "N3 for data forwarding";
        15 N9 "N9";
        16 SGI "SGi";
        17 N6 "N6";
        18 N19 "N19";
        19 S8_U "S8-U";
        20 GP_U "Gp-U";
        21 N9_ROAMING "N9 for roaming";
        22 IU_U "Iu-U";
        23 N9_FORWARDING "N9 for data forwarding";
        24 SXA_U "Sxa-U";
        25 SXB_U "Sxb-U";
        26 SXC_U "Sxc-U";
        27 N4_U "N4-U";
        28 SGW_UPF_UL_FORWARDING "SGW/UPF GTP-U interface for UL data forwarding";
        29 N6MB_NMB9 "N6mb/Nmb9";
        30 N3MB "N3mb";
        31 N19MB "N19mb";
    }
}

super::open::open_enum! {
    /// The outer headers to remove, TS 29.244 §8.2.64.
    HeaderRemoval(u8)
    0 GTPU_UDP_IPV4 "GTP-U/UDP/IPv4";
    1 GTPU_UDP_IPV6 "GTP-U/UDP/IPv6";
    2 UDP_IPV4 "UDP/IPv4";
    3 UDP_IPV6 "UDP/IPv6";
    4 IPV4 "IPv4";
    5 IPV6 "IPv6";
    6 GTPU_UDP_IP "GTP-U/UDP/IP";
    7 VLAN_TAG_POP "VLAN TAG POP";
    8 VLAN_TAGS_POP_POP "VLAN TAGs POP-POP";
}

super::open::open_enum! {
    /// The state of a gate, TS 29.244 §8.2.7.
    Gate(u8)
    0 OPEN "OPEN";
    1 CLOSED "CLOSED";
}

super::open::open_enum! {
    /// The type of a redirect address, TS 29.244 §8.2.20.
    RedirectAddressType(u8)
    0 IPV4 "IPv4 address";
    1 IPV6 "IPv6 address";
    2 URL "URL";
    3 SIP_URI "SIP URI";
    4 IPV4_AND_IPV6 "IPv4 and IPv6 addresses";
    5 PORT "Port";
    6 IPV4_AND_PORT "IPv4 address and Port";
    7 IPV6_AND_PORT "IPv6 address and Port";
    8 IPV4_IPV6_AND_PORT "IPv4 and IPv6 addresses and Port";
}

super::open::open_enum! {
    /// The direction of a flow, TS 29.244 §8.2.61.
    FlowDirection(u8)
    0 UNSPECIFIED "Unspecified";
    1 DOWNLINK "Downlink (traffic to the UE)";
    2 UPLINK "Uplink (traffic from the UE)";
    3 BIDIRECTIONAL "Bidirectional";
}

flags! {
    /// The actions to apply to packets, TS 29.244 §8.2.26.
    ApplyAction: u16, 1..2 = APPLY_ACTION {
        DROP 5/1;
        FORW 5/2;
        BUFF 5/3;
        NOCP 5/4;
        DUPL 5/5;
        IPMA 5/6;
        IPMD 5/7;
        DFRT 5/8;
        EDRT 6/1;
        BDPN 6/2;
        DDPN 6/3;
        FSSM 6/4;
        MBSU 6/5;
    }
    /// The flag that requests a reflective QoS indication, TS 29.244 §8.2.88.
    Rqi: u8, 1..1 = RQI {
        RQI 5/1;
    }
    /// The ARP and IPv6 neighbour requests that the UP function answers, TS 29.244 §8.2.97.
    Proxying: u8, 1..1 = PROXYING {
        ARP 5/1;
        INS 5/2;
    }
    /// The flag that makes an Ethernet filter bidirectional, TS 29.244 §8.2.99.
    EthernetFilterProperties: u8, 1..1 = ETHERNET_FILTER_PROPERTIES {
        BIDE 5/1;
    }
    /// The flag for an Ethernet PDU session, TS 29.244 §8.2.102.
    EthernetPduSessionInformation: u8, 1..1 = ETHERNET_PDU_SESSION_INFORMATION {
        ETHI 5/1;
    }
}

strings! {
    /// The network instance: the name of a network, TS 29.244 §8.2.4.
    NetworkInstance: text = NETWORK_INSTANCE network_instance;
    /// The identifier of an application, TS 29.244 §8.2.6.
    ApplicationId: text = APPLICATION_ID application_identifier;
    /// The name of a rule or of several rules that are predefined in the UP function, TS 29.244
    /// §8.2.72.
    ActivatePredefinedRules: text = ACTIVATE_PREDEFINED_RULES predefined_rules_name;
    /// The identifier of an application instance, TS 29.244 §8.2.60.
    ApplicationInstanceId: text = APPLICATION_INSTANCE_ID application_instance_identifier;
    /// An IPv4 route to a network behind the UE, TS 29.244 §8.2.109.
    FramedRoute: text = FRAMED_ROUTE framed_route;
    /// An IPv6 route to a network behind the UE, TS 29.244 §8.2.111.
    FramedIpv6Route: text = FRAMED_IPV6_ROUTE framed_ipv6_route;
    /// The name of a predefined rule or of several rules to deactivate, TS 29.244 §8.2.73.
    DeactivatePredefinedRules: text = DEACTIVATE_PREDEFINED_RULES predefined_rules_name;
}

record! {
    /// A filter for the packets of a service data flow, TS 29.244 §8.2.5.
    SdfFilter T = SDF_FILTER, head 2 {} {
        /// An IPFilterRule of RFC 6733.
        flow_description: text16 [if FD 5/1];
        /// The ToS or traffic class and its mask.
        tos_traffic_class: u16 [if TTC 5/2];
        /// The security parameter index (SPI) of a security association.
        security_parameter_index: u32 [if SPI 5/3];
        /// The flow label of IPv6.
        flow_label: u24 [if FL 5/4];
        /// The identifier by which another filter refers to this bidirectional filter.
        sdf_filter_id: u32 [if BID 5/5];
        /// Identifications of multiplexed media, each encoded as the clause specifies.
        multiplexed_media: (list bytes counted) [if SMMII 5/6] R19;
    }
}

record! {
    /// The states of the gates in both directions, TS 29.244 §8.2.7.
    GateStatus = GATE_STATUS, head 1 {
        /// The downlink gate.
        dl_gate: (Gate 2) 5/1;
        /// The uplink gate.
        ul_gate: (Gate 2) 5/3;
    } {}
}

record! {
    /// The maximum bit rate, in kbit/s, TS 29.244 §8.2.8.
    Mbr = MBR, head 0 {} {
        /// The uplink rate.
        ul_mbr: u40;
        /// The downlink rate.
        dl_mbr: u40;
    }
}

record! {
    /// The guaranteed bit rate, in kbit/s, TS 29.244 §8.2.9.
    Gbr = GBR, head 0 {} {
        /// The uplink rate.
        ul_gbr: u40;
        /// The downlink rate.
        dl_gbr: u40;
    }
}

record! {
    /// The maximum packet rate, TS 29.244 §8.2.63.
    PacketRate = PACKET_RATE, head 1 {} {
        /// The time unit of the uplink rate.
        uplink_time_unit: low3 [if ULPR 5/1];
        /// Number of packets per time unit.
        maximum_uplink_packet_rate: u16 [if ULPR 5/1];
        /// The time unit of the downlink rate.
        downlink_time_unit: low3 [if DLPR 5/2];
        /// Number of packets per time unit.
        maximum_downlink_packet_rate: u16 [if DLPR 5/2];
        /// The time unit of the rate of additional uplink packets.
        additional_uplink_time_unit: low3 [if APRC 5/3];
        /// Number of packets per time unit.
        additional_maximum_uplink_packet_rate: u16 [if APRC 5/3];
        /// The time unit of the rate of additional downlink packets.
        additional_downlink_time_unit: low3 [if APRC 5/3];
        /// Number of packets per time unit.
        additional_maximum_downlink_packet_rate: u16 [if APRC 5/3];
    }
}

record! {
    /// The outer headers to remove, TS 29.244 §8.2.64.
    OuterHeaderRemoval = OUTER_HEADER_REMOVAL, head 0 {} {
        /// Headers that are removed from the packet.
        description: (HeaderRemoval u8);
        /// The GTP-U extension headers to remove as well.
        gtpu_extension_header_deletion: u8 [more];
    }
}

record! {
    /// The outer headers to create, TS 29.244 §8.2.56.
    OuterHeaderCreation = OUTER_HEADER_CREATION, head 2 {
        /// GTP-U over UDP over IPv4.
        gtpu_udp_ipv4: flag 5/1;
        /// GTP-U over UDP over IPv6.
        gtpu_udp_ipv6: flag 5/2;
        /// UDP over IPv4.
        udp_ipv4: flag 5/3;
        /// UDP over IPv6.
        udp_ipv6: flag 5/4;
        /// The rule applies to IPv4 packets only.
        only_ipv4: flag 5/5;
        /// The rule applies to IPv6 packets only.
        only_ipv6: flag 5/6;
        /// The packets are sent over N19.
        n19_indication: flag 6/1;
        /// The packets are sent over N6.
        n6_indication: flag 6/2;
        /// Low layer source-specific multicast towards access nodes.
        low_layer_ssm: flag 6/3;
    } {
        /// The TEID at the receiver.
        teid: u32 [if (gtpu_udp_ipv4 || gtpu_udp_ipv6 || low_layer_ssm)];
        /// The IPv4 address of the receiver.
        ipv4: ipv4 [if (gtpu_udp_ipv4 || udp_ipv4 || only_ipv4)];
        /// The IPv6 address of the receiver.
        ipv6: ipv6 [if (gtpu_udp_ipv6 || udp_ipv6 || only_ipv6)];
        /// The UDP port of the receiver.
        port: u16 [if (udp_ipv4 || udp_ipv6)];
        /// The customer VLAN tag.
        c_tag: u24 [if CTAG 5/7];
        /// The service VLAN tag.
        s_tag: u24 [if STAG 5/8];
    }
}

record! {
    /// A forwarding policy of the UP function, by name, TS 29.244 §8.2.23.
    ForwardingPolicy T = FORWARDING_POLICY, head 0 {} {
        /// The name of the policy.
        forwarding_policy_identifier: text8;
    }
}

record! {
    /// The destination of redirected packets, TS 29.244 §8.2.20.
    RedirectInformation T = REDIRECT_INFORMATION, head 1 {
        /// The type of the address.
        redirect_address_type: (RedirectAddressType 4) 5/1;
    } {
        /// Address of the server that traffic is redirected to.
        redirect_server_address: text16 [if (redirect_address_type.0 != 5)];
        /// The second address: an IPv6 address if the first is an IPv4 address.
        other_redirect_server_address: text16 [if (matches!(redirect_address_type.0, 4 | 8))];
        /// Port of the server that traffic is redirected to.
        redirect_port: u16 [if (matches!(redirect_address_type.0, 5..=8))];
    }
}

record! {
    /// A field to add to headers, TS 29.244 §8.2.67.
    HeaderEnrichment T = HEADER_ENRICHMENT, head 1 {
        /// The protocol; 0 is HTTP.
        header_type: 5 5/1;
    } {
        /// The name of the field.
        header_field_name: text8;
        /// The value of the field.
        header_field_value: text8;
    }
}

record! {
    /// A description of the packets of an application, TS 29.244 §8.2.39.
    PfdContents T = PFD_CONTENTS, head 2 {} {
        /// An IPFilterRule of RFC 6733.
        flow_description: text16 [if FD 5/1];
        /// A URL or a part of one.
        url: text16 [if URL 5/2];
        /// A domain name or a pattern of one.
        domain_name: text16 [if DN 5/3];
        /// Custom content of the operator.
        custom_pfd_content: bytes16 [if CP 5/4];
        /// The protocol in which the domain name is matched.
        domain_name_protocol: text16 [if DNP 5/5];
        /// Additional flow descriptions.
        additional_flow_description: (list text length16) [if AFD 5/6];
        /// URLs besides the first.
        additional_url: (list text length16) [if AURL 5/7];
        /// Additional domain names, each followed by its protocol.
        additional_domain_name_and_protocol: (list text length16) [if ADNP 5/8];
    }
}

record! {
    /// The marking of downlink packets, TS 29.244 §8.2.66.
    DlFlowLevelMarking = DL_FLOW_LEVEL_MARKING, head 1 {} {
        /// The ToS or traffic class and its mask.
        tos_traffic_class: u16 [if TTC 5/1];
        /// The service class indicator.
        service_class_indicator: u16 [if SCI 5/2];
    }
}

record! {
    /// The flow of a detected application, TS 29.244 §8.2.61.
    FlowInformation T = FLOW_INFORMATION, head 1 {
        /// The direction of the flow.
        flow_direction: (FlowDirection 3) 5/1;
    } {
        /// An IPFilterRule of RFC 6733.
        flow_description: text16;
    }
}

record! {
    /// Information about the downlink data that waits for a UE, TS 29.244 §8.2.27.
    DownlinkDataServiceInformation = DOWNLINK_DATA_SERVICE_INFORMATION, head 1 {} {
        /// The paging policy.
        paging_policy_indication: low6 [if PPI 5/1];
        /// The QoS flow.
        qfi: low6 [if QFII 5/2];
        /// The size of the packets.
        dl_data_packets_size: u16 [if DLPSI 5/3] R19;
    }
}

record! {
    /// The addresses of Ethernet frames to match, TS 29.244 §8.2.93.
    MacAddress = MAC_ADDRESS, head 1 {} {
        /// The source, or the lowest source of a range.
        source: mac [if SOUR 5/1];
        /// The destination, or the lowest destination of a range.
        destination: mac [if DEST 5/2];
        /// The highest source of a range.
        upper_source: mac [if USOU 5/3];
        /// The highest destination of a range.
        upper_destination: mac [if UDES 5/4];
    }
}

record! {
    /// The customer VLAN tag, TS 29.244 §8.2.94.
    CTag = C_TAG, head 3 {
        /// The priority is valid.
        has_pcp: flag 5/1;
        /// The drop eligibility is valid.
        has_dei: flag 5/2;
        /// The VLAN identifier is valid.
        has_vid: flag 5/3;
        /// The priority code point.
        pcp: 3 6/1;
        /// The drop eligibility indicator.
        dei: flag 6/4;
        /// The VLAN identifier.
        vid: 12 6/5;
    } {}
}

record! {
    /// The service VLAN tag, TS 29.244 §8.2.95.
    STag = S_TAG, head 3 {
        /// The priority is valid.
        has_pcp: flag 5/1;
        /// The drop eligibility is valid.
        has_dei: flag 5/2;
        /// The VLAN identifier is valid.
        has_vid: flag 5/3;
        /// The priority code point.
        pcp: 3 6/1;
        /// The drop eligibility indicator.
        dei: flag 6/4;
        /// The VLAN identifier.
        vid: 12 6/5;
    } {}
}
