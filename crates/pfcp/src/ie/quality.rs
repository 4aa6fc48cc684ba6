//! Delays, rates and their measurement: TS 29.244 §8.2.162 to §8.2.171, §8.2.220 to §8.2.224 and
//! others.

use super::leaf::{codes, flags, numbers, record, strings};

numbers! {
    /// The average packet delay, in milliseconds, TS 29.244 §8.2.162.
    AveragePacketDelay: u32 = AVERAGE_PACKET_DELAY delay;
    /// The minimum packet delay, in milliseconds, TS 29.244 §8.2.163.
    MinimumPacketDelay: u32 = MINIMUM_PACKET_DELAY delay;
    /// The maximum packet delay, in milliseconds, TS 29.244 §8.2.164.
    MaximumPacketDelay: u32 = MAXIMUM_PACKET_DELAY delay;
    /// The minimum time between reports, in seconds, TS 29.244 §8.2.170.
    MinimumWaitTime: u32 = MINIMUM_WAIT_TIME minimum_wait_time;
    /// The identifier of an N6 delay measurement, TS 29.244 §8.2.264.
    N6DelayMeasurementControlInformationId: u16
        = N6_DELAY_MEASUREMENT_CONTROL_INFORMATION_ID n6_delay_measurement_control_information_id;
    /// The port of the measurement endpoint, TS 29.244 §8.2.265.
    MeasurementEndpointPortNumber: u16 = MEASUREMENT_ENDPOINT_PORT_NUMBER port_number;
    /// The security mode of RFC 4656 and RFC 5357, TS 29.244 §8.2.275.
    SecurityModeOwampTwamp: u32 = SECURITY_MODE_OWAMP_TWAMP mode;
}

flags! {
    /// The triggers of reports about the QoS of a path, TS 29.244 §8.2.165.
    QosReportTrigger: u8, 1..1 = QOS_REPORT_TRIGGER {
        PER 5/1;
        THR 5/2;
        IRE 5/3;
    }
    /// The interfaces whose GTP-U paths are measured, TS 29.244 §8.2.166.
    GtpuPathInterfaceType: u8, 1..1 = GTPU_PATH_INTERFACE_TYPE {
        N9 5/1;
        N3 5/2;
    }
    /// The quantities of a QoS flow to measure, TS 29.244 §8.2.167.
    RequestedQosMonitoring: u16, 1..2 = REQUESTED_QOS_MONITORING {
        DLPD 5/1;
        ULPD 5/2;
        RPPD 5/3;
        GTPUPM 5/4;
        DLCI 5/5 R19;
        ULCI 5/6 R19;
        DLDR 5/7 R19;
        ULDR 5/8 R19;
        DLAB 6/1 R19;
        ULAB 6/2 R19;
    }
    /// The frequency of reports about a QoS flow, TS 29.244 §8.2.168.
    ReportingFrequency: u8, 1..1 = REPORTING_FREQUENCY {
        EVETT 5/1;
        PERIO 5/2;
    }
    /// The flag that requests reports of the rate control status, TS 29.244 §8.2.174.
    QerControlIndications: u8, 1..1 = QER_CONTROL_INDICATIONS {
        RCSR 5/1;
    }
    /// The recipients of a report, TS 29.244 §8.2.204.
    ReportingFlags: u8, 1..1 = REPORTING_FLAGS {
        DUPL 5/1;
    }
    /// Flags of a QoS enforcement rule, TS 29.244 §8.2.216.
    QerIndications: u8, 1..1 = QER_INDICATIONS {
        IQFISN 5/1;
        EDBMI 5/2 R19;
        EML4S 5/3 R19;
        PDUSM 5/4 R19;
        DBSMI 5/5 R19;
        TNBMI 5/6 R19;
    }
    /// The traffic parameters to measure, TS 29.244 §8.2.223.
    TrafficParameterMeasurementIndication: u8, 1..1
        = TRAFFIC_PARAMETER_MEASUREMENT_INDICATION {
        ULPMI 5/1;
        DLPMI 5/2;
        N6JMI 5/3;
    }
    /// Flags of the measurement of a QoS flow, TS 29.244 §8.2.231.
    MeasurementIndication: u8, 1..1 = MEASUREMENT_INDICATION {
        DQFI 5/1;
    }
    /// The protocols for N6 delay measurements, TS 29.244 §8.2.246.
    N6DelayMeasurementProtocols: u8, 1..1 = N6_DELAY_MEASUREMENT_PROTOCOLS {
        TWAMP 5/1;
        OWAMP 5/2;
        STAMP 5/3;
        OTHER 5/4;
    }
    /// The triggers of reports about an N6 delay measurement, TS 29.244 §8.2.262.
    MeasurementReportingType: u8, 1..1 = MEASUREMENT_REPORTING_TYPE {
        PER 5/1;
        EVT 5/2;
        IRE 5/3;
    }
    /// The importance of PDU sets, TS 29.244 §8.2.268.
    PduSetImportance: u16, 2..2 = PDU_SET_IMPORTANCE {
        PSI0 5/1;
        PSI1 5/2;
        PSI2 5/3;
        PSI3 5/4;
        PSI4 5/5;
        PSI5 5/6;
        PSI6 5/7;
        PSI7 5/8;
        PSI8 6/1;
        PSI9 6/2;
        PSI10 6/3;
        PSI11 6/4;
        PSI12 6/5;
        PSI13 6/6;
        PSI14 6/7;
        PSI15 6/8;
    }
    /// The purpose of reports, TS 29.244 §8.2.272.
    ReportingControlInformation: u8, 1..1 = REPORTING_CONTROL_INFORMATION {
        UELM 5/1;
    }
    /// The security mode of STAMP, TS 29.244 §8.2.273.
    SecurityModeStamp: u8, 1..1 = SECURITY_MODE_STAMP {
        INTP 5/1;
        CONP 5/2;
    }
    /// The mode of a STAMP session reflector, TS 29.244 §8.2.279.
    SessionReflectorModeStamp: u8, 1..1 = SESSION_REFLECTOR_MODE_STAMP {
        SRM 5/1;
    }
    /// Flags for the transport level marking of PDU sets, TS 29.244 §8.2.280.
    TransportLevelMarkingIndications: u8, 1..1 = TRANSPORT_LEVEL_MARKING_INDICATIONS {
        TLMIP 5/1;
    }
}

codes! {
    /// The reason why an N6 delay measurement failed, TS 29.244 §8.2.263.
    N6DelayMeasurementFailureInformation: u8
        = N6_DELAY_MEASUREMENT_FAILURE_INFORMATION failure_cause {
        0 UNSPECIFIED "Unspecified";
        1 CONNECTION_ESTABLISHMENT_FAILURE "Connection Establishment Failure";
        2 CONNECTION_LOST "Connection Lost";
        3 AUTHENTICATION_FAILURE "Authentication Failure";
    }
    /// The treatment of data that has not been reported yet, TS 29.244 §8.2.277.
    RemainingDataReportingIndication: low4
        = REMAINING_DATA_REPORTING_INDICATION remaining_data_reporting_indication {
        0 DISCARD "Discard the collected data";
        1 SEND "Send the collected data to the consumer";
    }
}

strings! {
    /// The HMAC key of STAMP, TS 29.244 §8.2.274.
    HmacKeyStamp: bytes = HMAC_KEY_STAMP hmac_key;
}

super::open::open_enum! {
    /// The urgency of a report, TS 29.244 §8.2.229.
    ReportingUrgency(u8)
    0 DELAY_TOLERANT "Delay tolerant";
    1 NON_DELAY_TOLERANT "Non delay tolerant";
}

super::open::open_enum! {
    /// The type of a measurement job, TS 29.244 §8.2.245.
    JobType(u8)
    0 RESERVED "Reserved";
    1 MEASUREMENTS "5GC UE Level Measurements only";
    2 TRACE_AND_MEASUREMENTS "Trace and 5GC UE Level Measurements";
}

record! {
    /// The numbers of packets that rate control still allows, TS 29.244 §8.2.139.
    PacketRateStatus = PACKET_RATE_STATUS, head 1 {
        /// The numbers of uplink packets are present.
        ul: flag 5/1;
        /// The numbers of downlink packets are present.
        dl: flag 5/2;
        /// The numbers of additional packets are present.
        apr: flag 5/3;
    } {
        /// Number of remaining uplink packets.
        remaining_uplink_packets: u16 [if (ul)];
        /// Number of remaining additional uplink packets.
        remaining_additional_uplink_packets: u16 [if (ul && apr)];
        /// Number of remaining downlink packets.
        remaining_downlink_packets: u16 [if (dl)];
        /// Number of remaining additional downlink packets.
        remaining_additional_downlink_packets: u16 [if (dl && apr)];
        /// The end of the validity of these numbers, as an NTP time stamp.
        rate_control_status_validity_time: u64 [more];
    }
}

record! {
    /// The packet delays beyond which a report is due, in milliseconds, TS 29.244 §8.2.169.
    PacketDelayThresholds = PACKET_DELAY_THRESHOLDS, head 1 {} {
        /// The downlink delay.
        downlink: u32 [if DL 5/1];
        /// The uplink delay.
        uplink: u32 [if UL 5/2];
        /// The round trip delay.
        round_trip: u32 [if RP 5/3];
    }
}

record! {
    /// The measurements of a QoS flow, TS 29.244 §8.2.171.
    QosMonitoringMeasurement = QOS_MONITORING_MEASUREMENT, head 1 {
        /// The measurement of delays failed.
        plmf: flag 5/4;
    } {
        /// The downlink delay, in milliseconds.
        downlink_packet_delay: u32 [if DLPD 5/1];
        /// The uplink delay, in milliseconds.
        uplink_packet_delay: u32 [if ULPD 5/2];
        /// The round trip delay, in milliseconds.
        round_trip_packet_delay: u32 [if RPPD 5/3];
        /// The share of downlink packets marked for congestion.
        downlink_congestion_information: u16 [if DLCI 5/5] R19;
        /// The share of uplink packets marked for congestion.
        uplink_congestion_information: u16 [if ULCI 5/6] R19;
        /// The average downlink data rate, in kilobits per second.
        average_downlink_data_rate: u40 [if DLDR 5/7] R19;
        /// The average uplink data rate, in kilobits per second.
        average_uplink_data_rate: u40 [if ULDR 5/8] R19;
    }
}

record! {
    /// The N6 jitter beyond which a report is due, TS 29.244 §8.2.220.
    TrafficParameterThreshold = TRAFFIC_PARAMETER_THRESHOLD, head 1 {} {
        /// The downlink jitter.
        downlink_n6_jitter_threshold: u32 [if DL 5/1];
    }
}

record! {
    /// The time between downlink bursts, TS 29.244 §8.2.221.
    DlPeriodicity = DL_PERIODICITY, head 1 {} {
        /// The time in microseconds.
        dl_periodicity: u32;
    }
}

record! {
    /// The time between uplink bursts, TS 29.244 §8.2.224.
    UlPeriodicity = UL_PERIODICITY, head 1 {} {
        /// The time in microseconds.
        ul_periodicity: u32;
    }
}

record! {
    /// The measured N6 jitter, TS 29.244 §8.2.222.
    N6JitterMeasurement = N6_JITTER_MEASUREMENT, head 1 {} {
        /// The time between bursts.
        dl_periodicity: u32 [if DL 5/1];
        /// The earliest arrival of a packet relative to its expected arrival. Negative if it was
        /// early.
        lower_dl_jitter_measurement: i32 [if DL 5/1];
        /// The latest arrival of a packet relative to its expected arrival.
        higher_dl_jitter_measurement: i32 [if DL 5/1];
    }
}

record! {
    /// A suggestion for the collection of reports, TS 29.244 §8.2.229.
    ReportingSuggestionInfo = REPORTING_SUGGESTION_INFO, head 1 {
        /// The urgency of a report.
        reporting_urgency: (ReportingUrgency 4) 5/1;
    } {
        /// The time until which a report may be delayed.
        reporting_time_info: u32 [more];
    }
}

record! {
    /// The congestion and data rates beyond which a report is due, TS 29.244 §8.2.240.
    ReportingThresholds = REPORTING_THRESHOLDS, head 1 {} {
        /// The share of downlink packets marked for congestion.
        dl_congestion_information: u16 [if DLCI 5/1];
        /// The share of uplink packets marked for congestion.
        ul_congestion_information: u16 [if ULCI 5/2];
        /// The downlink data rate, in kilobits per second.
        dl_data_rate: u40 [if DLDR 5/3];
        /// The uplink data rate, in kilobits per second.
        ul_data_rate: u40 [if ULDR 5/4];
    }
}

record! {
    /// The configuration of UE level measurements, TS 29.244 §8.2.245.
    UeLevelMeasurementsConfiguration T = UE_LEVEL_MEASUREMENTS_CONFIGURATION, head 0 {} {
        /// The type of the job.
        job_type: (JobType u8);
        /// The quantities to measure: see table 8.2.245-2.
        measurement_types: (list u8 length8);
        /// The time between reports.
        time_period: u24 [more];
    }
}

record! {
    /// The measured N6 delays, TS 29.244 §8.2.247.
    N6DelayMeasurementInformation = N6_DELAY_MEASUREMENT_INFORMATION, head 1 {} {
        /// The average delay, in milliseconds.
        average_packet_delay: u32;
        /// The minimum delay, in milliseconds.
        minimum_packet_delay: u32 [if MIND 5/1];
        /// The maximum delay, in milliseconds.
        maximum_packet_delay: u32 [if MAXD 5/2];
    }
}

record! {
    /// The address of the measurement endpoint, TS 29.244 §8.2.248.
    MeasurementEndpointAddress = MEASUREMENT_ENDPOINT_ADDRESS, head 1 {} {
        /// The IPv4 address.
        ipv4: ipv4 [if V4 5/1];
        /// The IPv6 address.
        ipv6: ipv6 [if V6 5/2];
    }
}

record! {
    /// The key ID and shared secret of OWAMP or TWAMP, TS 29.244 §8.2.276.
    KeyIdAndSharedSecret T = KEY_ID_AND_SHARED_SECRET, head 0 {} {
        /// The identifier of the key.
        key_id: bytes8;
        /// The shared secret.
        shared_secret: bytes8;
    }
}
