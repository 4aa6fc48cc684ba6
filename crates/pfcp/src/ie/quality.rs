//! Delays, rates and how they are measured: TS 29.244 §8.2.162 to §8.2.171, §8.2.220 to §8.2.224
//! and others.

use super::leaf::{codes, flags, numbers, record, strings};

numbers! {
    /// Milliseconds, TS 29.244 §8.2.162.
    AveragePacketDelay: u32 = AVERAGE_PACKET_DELAY delay;
    /// Milliseconds, TS 29.244 §8.2.163.
    MinimumPacketDelay: u32 = MINIMUM_PACKET_DELAY delay;
    /// Milliseconds, TS 29.244 §8.2.164.
    MaximumPacketDelay: u32 = MAXIMUM_PACKET_DELAY delay;
    /// Seconds between reports at least, TS 29.244 §8.2.170.
    MinimumWaitTime: u32 = MINIMUM_WAIT_TIME minimum_wait_time;
    /// The identifier of a measurement over N6, TS 29.244 §8.2.264.
    N6DelayMeasurementControlInformationId: u16
        = N6_DELAY_MEASUREMENT_CONTROL_INFORMATION_ID n6_delay_measurement_control_information_id;
    /// The port of the other end of a measurement, TS 29.244 §8.2.265.
    MeasurementEndpointPortNumber: u16 = MEASUREMENT_ENDPOINT_PORT_NUMBER port_number;
    /// The mode of RFC 4656 and RFC 5357, TS 29.244 §8.2.275.
    SecurityModeOwampTwamp: u32 = SECURITY_MODE_OWAMP_TWAMP mode;
}

flags! {
    /// When delays of a path are reported, TS 29.244 §8.2.165.
    QosReportTrigger: u8, 1..1 = QOS_REPORT_TRIGGER {
        PER 5/1;
        THR 5/2;
        IRE 5/3;
    }
    /// The interfaces whose paths are measured, TS 29.244 §8.2.166.
    GtpuPathInterfaceType: u8, 1..1 = GTPU_PATH_INTERFACE_TYPE {
        N9 5/1;
        N3 5/2;
    }
    /// What is measured of a QoS flow, TS 29.244 §8.2.167.
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
    /// When a QoS flow is reported, TS 29.244 §8.2.168.
    ReportingFrequency: u8, 1..1 = REPORTING_FREQUENCY {
        EVETT 5/1;
        PERIO 5/2;
    }
    /// Whether rate control is reported, TS 29.244 §8.2.174.
    QerControlIndications: u8, 1..1 = QER_CONTROL_INDICATIONS {
        RCSR 5/1;
    }
    /// Who gets a report, TS 29.244 §8.2.204.
    ReportingFlags: u8, 1..1 = REPORTING_FLAGS {
        DUPL 5/1;
    }
    /// Facts about a QoS rule, TS 29.244 §8.2.216.
    QerIndications: u8, 1..1 = QER_INDICATIONS {
        IQFISN 5/1;
        EDBMI 5/2 R19;
        EML4S 5/3 R19;
        PDUSM 5/4 R19;
        DBSMI 5/5 R19;
        TNBMI 5/6 R19;
    }
    /// Which parameters of traffic are measured, TS 29.244 §8.2.223.
    TrafficParameterMeasurementIndication: u8, 1..1
        = TRAFFIC_PARAMETER_MEASUREMENT_INDICATION {
        ULPMI 5/1;
        DLPMI 5/2;
        N6JMI 5/3;
    }
    /// How a QoS flow is measured, TS 29.244 §8.2.231.
    MeasurementIndication: u8, 1..1 = MEASUREMENT_INDICATION {
        DQFI 5/1;
    }
    /// The protocols that measure N6, TS 29.244 §8.2.246.
    N6DelayMeasurementProtocols: u8, 1..1 = N6_DELAY_MEASUREMENT_PROTOCOLS {
        TWAMP 5/1;
        OWAMP 5/2;
        STAMP 5/3;
        OTHER 5/4;
    }
    /// When a measurement over N6 is reported, TS 29.244 §8.2.262.
    MeasurementReportingType: u8, 1..1 = MEASUREMENT_REPORTING_TYPE {
        PER 5/1;
        EVT 5/2;
        IRE 5/3;
    }
    /// The important sets of PDUs, TS 29.244 §8.2.268.
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
    /// What reports are for, TS 29.244 §8.2.272.
    ReportingControlInformation: u8, 1..1 = REPORTING_CONTROL_INFORMATION {
        UELM 5/1;
    }
    /// How STAMP is protected, TS 29.244 §8.2.273.
    SecurityModeStamp: u8, 1..1 = SECURITY_MODE_STAMP {
        INTP 5/1;
        CONP 5/2;
    }
    /// How a STAMP reflector works, TS 29.244 §8.2.279.
    SessionReflectorModeStamp: u8, 1..1 = SESSION_REFLECTOR_MODE_STAMP {
        SRM 5/1;
    }
    /// How markings of sets of PDUs are applied, TS 29.244 §8.2.280.
    TransportLevelMarkingIndications: u8, 1..1 = TRANSPORT_LEVEL_MARKING_INDICATIONS {
        TLMIP 5/1;
    }
}

codes! {
    /// Why a measurement over N6 failed, TS 29.244 §8.2.263.
    N6DelayMeasurementFailureInformation: u8
        = N6_DELAY_MEASUREMENT_FAILURE_INFORMATION failure_cause {
        0 UNSPECIFIED "Unspecified";
        1 CONNECTION_ESTABLISHMENT_FAILURE "Connection Establishment Failure";
        2 CONNECTION_LOST "Connection Lost";
        3 AUTHENTICATION_FAILURE "Authentication Failure";
    }
    /// What becomes of data not yet reported, TS 29.244 §8.2.277.
    RemainingDataReportingIndication: low4
        = REMAINING_DATA_REPORTING_INDICATION remaining_data_reporting_indication {
        0 DISCARD "Discard the collected data";
        1 SEND "Send the collected data to the consumer";
    }
}

strings! {
    /// The key of STAMP's HMAC, TS 29.244 §8.2.274.
    HmacKeyStamp: octets = HMAC_KEY_STAMP hmac_key;
}

super::open::open_enum! {
    /// How urgent a report is, TS 29.244 §8.2.229.
    ReportingUrgency(u8)
    0 DELAY_TOLERANT "Delay tolerant";
    1 NON_DELAY_TOLERANT "Non delay tolerant";
}

super::open::open_enum! {
    /// What a job does, TS 29.244 §8.2.245.
    JobType(u8)
    0 RESERVED "Reserved";
    1 MEASUREMENTS "5GC UE Level Measurements only";
    2 TRACE_AND_MEASUREMENTS "Trace and 5GC UE Level Measurements";
}

record! {
    /// Packets that rate control still allows, TS 29.244 §8.2.139.
    PacketRateStatus = PACKET_RATE_STATUS, head 1 {
        /// Uplink packets are told.
        ul: flag 5/1;
        /// Downlink packets are told.
        dl: flag 5/2;
        /// Additional packets are told.
        apr: flag 5/3;
    } {
        /// Packets from the UE.
        remaining_uplink_packets: u16 [if (ul)];
        /// Additional packets from the UE.
        remaining_additional_uplink_packets: u16 [if (ul && apr)];
        /// Packets to the UE.
        remaining_downlink_packets: u16 [if (dl)];
        /// Additional packets to the UE.
        remaining_additional_downlink_packets: u16 [if (dl && apr)];
        /// Until when the numbers hold, as an NTP time stamp.
        rate_control_status_validity_time: u64 [more];
    }
}

record! {
    /// The delays that are reported, in milliseconds, TS 29.244 §8.2.169.
    PacketDelayThresholds = PACKET_DELAY_THRESHOLDS, head 1 {} {
        /// To the UE.
        downlink: u32 [if DL 5/1];
        /// From the UE.
        uplink: u32 [if UL 5/2];
        /// Both ways.
        round_trip: u32 [if RP 5/3];
    }
}

record! {
    /// What was measured of a QoS flow, TS 29.244 §8.2.171.
    QosMonitoringMeasurement = QOS_MONITORING_MEASUREMENT, head 1 {
        /// Delays could not be measured.
        plmf: flag 5/4;
    } {
        /// Milliseconds to the UE.
        downlink_packet_delay: u32 [if DLPD 5/1];
        /// Milliseconds from the UE.
        uplink_packet_delay: u32 [if ULPD 5/2];
        /// Milliseconds both ways.
        round_trip_packet_delay: u32 [if RPPD 5/3];
        /// The share of marked packets.
        downlink_congestion_information: u16 [if DLCI 5/5] R19;
        /// The share of marked packets.
        uplink_congestion_information: u16 [if ULCI 5/6] R19;
        /// Kilobits in a second.
        average_downlink_data_rate: u40 [if DLDR 5/7] R19;
        /// Kilobits in a second.
        average_uplink_data_rate: u40 [if ULDR 5/8] R19;
    }
}

record! {
    /// The jitter over N6 that is reported, TS 29.244 §8.2.220.
    TrafficParameterThreshold = TRAFFIC_PARAMETER_THRESHOLD, head 1 {} {
        /// Jitter to the UE.
        downlink_n6_jitter_threshold: u32 [if DL 5/1];
    }
}

record! {
    /// The time between bursts to the UE, TS 29.244 §8.2.221.
    DlPeriodicity = DL_PERIODICITY, head 1 {} {
        /// Microseconds.
        dl_periodicity: u32;
    }
}

record! {
    /// The time between bursts from the UE, TS 29.244 §8.2.224.
    UlPeriodicity = UL_PERIODICITY, head 1 {} {
        /// Microseconds.
        ul_periodicity: u32;
    }
}

record! {
    /// The jitter that was measured over N6, TS 29.244 §8.2.222.
    N6JitterMeasurement = N6_JITTER_MEASUREMENT, head 1 {} {
        /// The time between bursts.
        dl_periodicity: u32 [if DL 5/1];
        /// How much earlier packets came.
        lower_dl_jitter_measurement: u32 [if DL 5/1];
        /// How much later packets came.
        higher_dl_jitter_measurement: u32 [if DL 5/1];
    }
}

record! {
    /// How reports may be gathered, TS 29.244 §8.2.229.
    ReportingSuggestionInfo = REPORTING_SUGGESTION_INFO, head 1 {
        /// How urgent a report is.
        reporting_urgency: (ReportingUrgency 4) 5/1;
    } {
        /// Until when a report may wait.
        reporting_time_info: u32 [more];
    }
}

record! {
    /// The congestion and rates that are reported, TS 29.244 §8.2.240.
    ReportingThresholds = REPORTING_THRESHOLDS, head 1 {} {
        /// The share of marked packets to the UE.
        dl_congestion_information: u16 [if DLCI 5/1];
        /// The share of marked packets from the UE.
        ul_congestion_information: u16 [if ULCI 5/2];
        /// Kilobits in a second to the UE.
        dl_data_rate: u40 [if DLDR 5/3];
        /// Kilobits in a second from the UE.
        ul_data_rate: u40 [if ULDR 5/4];
    }
}

record! {
    /// What is measured of a UE, TS 29.244 §8.2.245.
    UeLevelMeasurementsConfiguration T = UE_LEVEL_MEASUREMENTS_CONFIGURATION, head 0 {} {
        /// What the job does.
        job_type: (JobType u8);
        /// What is measured: see table 8.2.245-2.
        measurement_types: (list u8 length8);
        /// The time between reports.
        time_period: u24 [more];
    }
}

record! {
    /// The delays that were measured over N6, TS 29.244 §8.2.247.
    N6DelayMeasurementInformation = N6_DELAY_MEASUREMENT_INFORMATION, head 1 {} {
        /// Milliseconds.
        average_packet_delay: u32;
        /// Milliseconds.
        minimum_packet_delay: u32 [if MIND 5/1];
        /// Milliseconds.
        maximum_packet_delay: u32 [if MAXD 5/2];
    }
}

record! {
    /// The other end of a measurement, TS 29.244 §8.2.248.
    MeasurementEndpointAddress = MEASUREMENT_ENDPOINT_ADDRESS, head 1 {} {
        /// The address.
        ipv4: ipv4 [if V4 5/1];
        /// The address.
        ipv6: ipv6 [if V6 5/2];
    }
}

record! {
    /// The secret of OWAMP or TWAMP, TS 29.244 §8.2.276.
    KeyIdAndSharedSecret T = KEY_ID_AND_SHARED_SECRET, head 0 {} {
        /// The identifier of the key.
        key_id: octets8;
        /// The secret.
        shared_secret: octets8;
    }
}
