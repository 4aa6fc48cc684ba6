//! What else steers nodes and sessions: flags of messages, tracing, buffering, capabilities.

use super::IeType;
use super::leaf::{flags, numbers, record, strings};

numbers! {
    /// Seconds that a quota holds, TS 29.244 §8.2.132.
    QuotaValidityTime: u32 = QUOTA_VALIDITY_TIME validity_time;
    /// How many reports are sent, TS 29.244 §8.2.133.
    NumberOfReports: u16 = NUMBER_OF_REPORTS number_of_reports;
    /// The identifier of a session reporting rule, TS 29.244 §8.2.151.
    SrrId: u8 = SRR_ID srr_id;
    /// Octets that wait for a UE, TS 29.244 §8.2.173.
    DlDataPacketsSize: u16 = DL_DATA_PACKETS_SIZE dl_data_packets_size;
}

flags! {
    /// Which packets are copied or also meet other rules, TS 29.244 §8.2.130.
    PacketReplicationAndDetectionCarryOnInformation: u8, 1..1
        = PACKET_REPLICATION_AND_DETECTION_CARRY_ON_INFORMATION {
        PRIUEAI 5/1;
        PRIN19I 5/2;
        PRIN6I 5/3;
        DCARONI 5/4;
    }
    /// Whether data to the UE fits early transmission, TS 29.244 §8.2.172.
    MtEdtControlInformation: u8, 1..1 = MT_EDT_CONTROL_INFORMATION {
        RDSI 5/1;
    }
    /// Whether data to the UE fits small transmission, TS 29.244 §8.2.239.
    MtSdtControlInformation: u8, 1..1 = MT_SDT_CONTROL_INFORMATION {
        RDSI 5/1;
    }
    /// Whether reliable data service is there, TS 29.244 §8.2.180.
    RdsConfigurationInformation: u8, 1..1 = RDS_CONFIGURATION_INFORMATION {
        RDS 5/1;
    }
    /// Facts of a session deletion response, TS 29.244 §8.2.215.
    PfcpsdrspFlags: u8, 1..1 = PFCPSDRSP_FLAGS {
        PURU 5/1;
    }
    /// Whether packets that are buffered are told again, TS 29.244 §8.2.238.
    ExtendedDlBufferingNotificationPolicy: u8, 1..1
        = EXTENDED_DL_BUFFERING_NOTIFICATION_POLICY {
        EDBN 5/1;
    }
    /// How deep packets may be looked into, TS 29.244 §8.2.250.
    PacketInspectionFunctionality: u8, 1..1 = PACKET_INSPECTION_FUNCTIONALITY {
        IPBD 5/1;
        MACD 5/2;
        DPID 5/3;
    }
    /// Why another CP function takes over, TS 29.244 §8.2.267.
    SmfChangeReason: u8, 1..1 = SMF_CHANGE_REASON {
        MPSNR 5/1;
        MPSSF 5/2;
        MPSAI 5/3;
    }
}

strings! {
    /// How many packets to buffer, one octet or two, TS 29.244 §8.2.30.
    DlBufferingSuggestedPacketCount: octets
        = DL_BUFFERING_SUGGESTED_PACKET_COUNT packet_count;
    /// The name of rules known to the UP function, TS 29.244 §8.2.205.
    PredefinedRulesName: text = PREDEFINED_RULES_NAME predefined_rules_name;
    /// What the operator calls a capability, TS 29.244 §8.2.249.
    OperatorConfigurableUpfCapability: text
        = OPERATOR_CONFIGURABLE_UPF_CAPABILITY operator_configurable_upf_capability;
}

record! {
    /// MAC addresses that appeared behind a UE, TS 29.244 §8.2.103.
    MacAddressesDetected T = MAC_ADDRESSES_DETECTED, head 0 {} {
        /// The addresses.
        mac_addresses: (list mac counted);
        /// The customer's VLAN tag, empty where there is none.
        c_tag: octets8 [more];
        /// The provider's VLAN tag, empty where there is none.
        s_tag: octets8 [more];
    }
}

record! {
    /// MAC addresses that left a UE, TS 29.244 §8.2.104.
    MacAddressesRemoved T = MAC_ADDRESSES_REMOVED, head 0 {} {
        /// The addresses.
        mac_addresses: (list mac counted);
        /// The customer's VLAN tag, empty where there is none.
        c_tag: octets8 [more];
        /// The provider's VLAN tag, empty where there is none.
        s_tag: octets8 [more];
    }
}

record! {
    /// What is traced and where it is told, TS 29.244 §8.2.108.
    TraceInformation T = TRACE_INFORMATION, head 3 {
        /// The first digit of the country.
        mcc_digit_1: 4 5/1;
        /// The second digit of the country.
        mcc_digit_2: 4 5/5;
        /// The third digit of the country.
        mcc_digit_3: 4 6/1;
        /// The third digit of the network, 15 where there is none.
        mnc_digit_3: 4 6/5;
        /// The first digit of the network.
        mnc_digit_1: 4 7/1;
        /// The second digit of the network.
        mnc_digit_2: 4 7/5;
    } {
        /// The identifier of the trace.
        trace_id: u24;
        /// The events that start it, as in TS 32.422.
        triggering_events: octets8;
        /// How much is told.
        session_trace_depth: u8;
        /// The interfaces that are traced, as in TS 32.422.
        list_of_interfaces: octets8;
        /// The address of the collector, four octets or sixteen.
        trace_collection_entity: octets8;
    }
}

record! {
    /// The element at fault with its value, TS 29.244 §8.2.185.
    OffendingIeInformation T = OFFENDING_IE_INFORMATION, head 0 {} {
        /// The type of the element.
        type_of_the_offending_ie: u16;
        /// The value of the element.
        value_of_the_offending_ie: octets;
    }
}

impl<T> OffendingIeInformation<T> {
    /// Returns the type.
    #[must_use]
    pub const fn ie(&self) -> IeType {
        IeType(self.type_of_the_offending_ie)
    }
}

record! {
    /// Which paging policies go with which code points, TS 29.244 §8.2.214.
    DscpToPpiMappingInformation T = DSCP_TO_PPI_MAPPING_INFORMATION, head 1 {
        /// The paging policy.
        ppi: 3 5/1;
    } {
        /// The code points.
        dscps: (list u8 rest);
    }
}

record! {
    /// What a vendor's node report is about, TS 29.244 §8.2.217.
    VendorSpecificNodeReportType = VENDOR_SPECIFIC_NODE_REPORT_TYPE, head 0 {} {
        /// The vendor.
        enterprise_id: u16;
        /// The vendor's flags.
        report_type: u8;
    }
}
