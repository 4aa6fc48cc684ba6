//! Bridges, routers and clocks of time-sensitive networks, TS 29.244 §8.2.140 to §8.2.150 and
//! others.

use super::leaf::{flags, numbers, record, strings};

numbers! {
    /// A port on the device side, TS 29.244 §8.2.141.
    PortNumber: u32 = PORT_NUMBER port_number;
    /// A port on the network side, TS 29.244 §8.2.142.
    NwTtPortNumber: u32 = NW_TT_PORT_NUMBER port_number;
    /// The number of a time domain, TS 29.244 §8.2.146.
    TimeDomainNumber: u8 = TIME_DOMAIN_NUMBER time_domain_number;
    /// The time offset beyond which a report is due, in nanoseconds, TS 29.244 §8.2.147.
    TimeOffsetThreshold: i64 = TIME_OFFSET_THRESHOLD time_offset_threshold;
    /// The cumulative rate ratio beyond which a report is due, TS 29.244 §8.2.148.
    CumulativeRateratioThreshold: i32
        = CUMULATIVE_RATERATIO_THRESHOLD cumulative_rate_ratio_threshold;
    /// The measured time offset of two clocks, in nanoseconds, TS 29.244 §8.2.149.
    TimeOffsetMeasurement: i64 = TIME_OFFSET_MEASUREMENT time_offset_measurement;
    /// The measured ratio of the rates of two clocks, TS 29.244 §8.2.150.
    CumulativeRateratioMeasurement: i32
        = CUMULATIVE_RATERATIO_MEASUREMENT cumulative_rate_ratio_measurement;
}

flags! {
    /// The flag that requests a bridge or router, TS 29.244 §8.2.140.
    CreateBridgeRouterInfo: u8, 1..1 = CREATE_BRIDGE_ROUTER_INFO {
        BII 5/1;
        RII 5/2 R19;
    }
    /// The clock drift information to report, TS 29.244 §8.2.145.
    RequestedClockDriftInformation: u8, 1..1 = REQUESTED_CLOCK_DRIFT_INFORMATION {
        RRTO 5/1;
        RRCR 5/2;
    }
    /// The flag for a configured time domain, TS 29.244 §8.2.218.
    ConfiguredTimeDomain: u8, 1..1 = CONFIGURED_TIME_DOMAIN {
        CTDI 5/1;
    }
}

strings! {
    /// The management information of a port, TS 29.244 §8.2.144.
    PortManagementInformationContainer: bytes
        = PORT_MANAGEMENT_INFORMATION_CONTAINER port_management_information;
    /// The management information of a bridge or router, TS 29.244 §8.2.182.
    UserPlaneNodeManagementInformationContainer: bytes
        = USER_PLANE_NODE_MANAGEMENT_INFORMATION_CONTAINER user_plane_node_management_information;
    /// Information of the talkers and listeners of a transport network, TS 29.244 §8.2.230.
    TlContainer: bytes = TL_CONTAINER tl_container_information;
}

record! {
    /// The identifier of a bridge or router, TS 29.244 §8.2.143.
    FiveGsUserPlaneNodeId = FIVE_GS_USER_PLANE_NODE_ID, head 1 {} {
        /// Identifier of the user plane node, present with BID.
        user_plane_node_id: u64 [if BID 5/1];
    }
}
