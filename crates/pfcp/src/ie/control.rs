//! Further control of nodes and sessions: flags of messages, tracing, buffering and capabilities.

use super::IeType;
use super::leaf::{flags, numbers, record, strings};

numbers! {
    /// The validity of a quota, in seconds, TS 29.244 §8.2.132.
    QuotaValidityTime: u32 = QUOTA_VALIDITY_TIME validity_time;
    /// Maximum number of reports, TS 29.244 §8.2.133.
    NumberOfReports: u16 = NUMBER_OF_REPORTS number_of_reports;
    /// The identifier of a session reporting rule, TS 29.244 §8.2.151.
    SrrId: u8 = SRR_ID srr_id;
    /// Number of bytes of downlink data waiting for a UE, TS 29.244 §8.2.173.
    DlDataPacketsSize: u16 = DL_DATA_PACKETS_SIZE dl_data_packets_size;
}

flags! {
    /// The packets that are replicated or also matched with other rules, TS 29.244 §8.2.130.
    PacketReplicationAndDetectionCarryOnInformation: u8, 1..1
        = PACKET_REPLICATION_AND_DETECTION_CARRY_ON_INFORMATION {
        PRIUEAI 5/1;
        PRIN19I 5/2;
        PRIN6I 5/3;
        DCARONI 5/4;
    }
    /// The flag that requests the size of downlink data for mobile-terminated early data
    /// transmission, TS 29.244 §8.2.172.
    MtEdtControlInformation: u8, 1..1 = MT_EDT_CONTROL_INFORMATION {
        RDSI 5/1;
    }
    /// The flag that requests the size of downlink data for mobile-terminated small data
    /// transmission, TS 29.244 §8.2.239.
    MtSdtControlInformation: u8, 1..1 = MT_SDT_CONTROL_INFORMATION {
        RDSI 5/1;
    }
    /// The flag for the reliable data service, TS 29.244 §8.2.180.
    RdsConfigurationInformation: u8, 1..1 = RDS_CONFIGURATION_INFORMATION {
        RDS 5/1;
    }
    /// Flags of a Session Deletion Response, TS 29.244 §8.2.215.
    PfcpsdrspFlags: u8, 1..1 = PFCPSDRSP_FLAGS {
        PURU 5/1;
    }
    /// The flag for repeated notifications about buffered packets, TS 29.244 §8.2.238.
    ExtendedDlBufferingNotificationPolicy: u8, 1..1
        = EXTENDED_DL_BUFFERING_NOTIFICATION_POLICY {
        EDBN 5/1;
    }
    /// The depth of packet inspection that a UP function supports, TS 29.244 §8.2.250.
    PacketInspectionFunctionality: u8, 1..1 = PACKET_INSPECTION_FUNCTIONALITY {
        IPBD 5/1;
        MACD 5/2;
        DPID 5/3;
    }
    /// The reason why another CP function takes over, TS 29.244 §8.2.267.
    SmfChangeReason: u8, 1..1 = SMF_CHANGE_REASON {
        MPSNR 5/1;
        MPSSF 5/2;
        MPSAI 5/3;
    }
}

strings! {
    /// Suggested number of packets to buffer, in one or two bytes, TS 29.244 §8.2.30.
    DlBufferingSuggestedPacketCount: bytes
        = DL_BUFFERING_SUGGESTED_PACKET_COUNT packet_count;
    /// The name of rules that are predefined in the UP function, TS 29.244 §8.2.205.
    PredefinedRulesName: text = PREDEFINED_RULES_NAME predefined_rules_name;
    /// The name of a capability, as configured by the operator, TS 29.244 §8.2.249.
    OperatorConfigurableUpfCapability: text
        = OPERATOR_CONFIGURABLE_UPF_CAPABILITY operator_configurable_upf_capability;
}

record! {
    /// MAC addresses that were detected behind a UE, TS 29.244 §8.2.103.
    MacAddressesDetected T = MAC_ADDRESSES_DETECTED, head 0 {} {
        /// MAC addresses that were detected.
        mac_addresses: (list mac counted);
        /// The customer VLAN tag. Empty if there is none.
        c_tag: bytes8 [more];
        /// The service VLAN tag. Empty if there is none.
        s_tag: bytes8 [more];
    }
}

record! {
    /// MAC addresses that are no longer used behind a UE, TS 29.244 §8.2.104.
    MacAddressesRemoved T = MAC_ADDRESSES_REMOVED, head 0 {} {
        /// MAC addresses that were removed.
        mac_addresses: (list mac counted);
        /// The customer VLAN tag. Empty if there is none.
        c_tag: bytes8 [more];
        /// The service VLAN tag. Empty if there is none.
        s_tag: bytes8 [more];
    }
}

record! {
    /// The parameters of a trace, TS 29.244 §8.2.108.
    TraceInformation T = TRACE_INFORMATION, head 3 {
        /// The first digit of the mobile country code.
        mcc_digit_1: 4 5/1;
        /// The second digit of the mobile country code.
        mcc_digit_2: 4 5/5;
        /// The third digit of the mobile country code.
        mcc_digit_3: 4 6/1;
        /// The third digit of the mobile network code, or 15 if there is none.
        mnc_digit_3: 4 6/5;
        /// The first digit of the mobile network code.
        mnc_digit_1: 4 7/1;
        /// The second digit of the mobile network code.
        mnc_digit_2: 4 7/5;
    } {
        /// The identifier of the trace.
        trace_id: u24;
        /// The events that trigger the trace, as in TS 32.422.
        triggering_events: bytes8;
        /// The depth of the trace.
        session_trace_depth: u8;
        /// The interfaces that are traced, as in TS 32.422.
        list_of_interfaces: bytes8;
        /// The address of the trace collection entity in four or sixteen bytes.
        trace_collection_entity: bytes8;
    }
}

record! {
    /// The information element at fault with its value, TS 29.244 §8.2.185.
    OffendingIeInformation T = OFFENDING_IE_INFORMATION, head 0 {} {
        /// The type of the element.
        type_of_the_offending_ie: u16;
        /// The value of the element.
        value_of_the_offending_ie: bytes;
    }
}

impl<T> OffendingIeInformation<T> {
    /// Returns the type of the element.
    #[must_use]
    pub const fn ie(&self) -> IeType {
        IeType(self.type_of_the_offending_ie)
    }
}

record! {
    /// The code points to which a paging policy applies, TS 29.244 §8.2.214.
    DscpToPpiMappingInformation T = DSCP_TO_PPI_MAPPING_INFORMATION, head 1 {
        /// The paging policy indicator.
        ppi: 3 5/1;
    } {
        /// The code points.
        dscps: (list u8 rest);
    }
}

record! {
    /// The type of a vendor-specific node report, TS 29.244 §8.2.217.
    VendorSpecificNodeReportType = VENDOR_SPECIFIC_NODE_REPORT_TYPE, head 0 {} {
        /// The enterprise number of the vendor.
        enterprise_id: u16;
        /// The flags, as defined by the vendor.
        report_type: u8;
    }
}
