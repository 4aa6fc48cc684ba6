//! Measurement, thresholds, quotas and reports: TS 29.244 §8.2.13 to §8.2.53 and others.

use super::leaf::{flags, numbers, record};

numbers! {
    /// The usage time, in seconds, after which a report is due, TS 29.244 §8.2.14.
    TimeThreshold: u32 = TIME_THRESHOLD time_threshold;
    /// The time at which thresholds change, TS 29.244 §8.2.15.
    MonitoringTime: time = MONITORING_TIME monitoring_time;
    /// The usage time, in seconds, after which a report is due once the monitoring time has passed,
    /// TS 29.244 §8.2.17.
    SubsequentTimeThreshold: u32 = SUBSEQUENT_TIME_THRESHOLD subsequent_time_threshold;
    /// The time without packets, in seconds, after which usage time is not counted, TS 29.244
    /// §8.2.18.
    InactivityDetectionTime: u32 = INACTIVITY_DETECTION_TIME inactivity_detection_time;
    /// The time between periodic reports, in seconds, TS 29.244 §8.2.42.
    MeasurementPeriod: u32 = MEASUREMENT_PERIOD measurement_period;
    /// The measured usage time, in seconds, TS 29.244 §8.2.45.
    DurationMeasurement: u32 = DURATION_MEASUREMENT duration;
    /// The time of the first packet, TS 29.244 §8.2.46.
    TimeOfFirstPacket: time = TIME_OF_FIRST_PACKET time_of_first_packet;
    /// The time of the last packet, TS 29.244 §8.2.47.
    TimeOfLastPacket: time = TIME_OF_LAST_PACKET time_of_last_packet;
    /// The time without packets, in seconds, after which a quota ends, TS 29.244 §8.2.48.
    QuotaHoldingTime: u32 = QUOTA_HOLDING_TIME quota_holding_time;
    /// The usage time that is granted, in seconds, TS 29.244 §8.2.51.
    TimeQuota: u32 = TIME_QUOTA time_quota;
    /// The time at which the measurement started, TS 29.244 §8.2.52.
    StartTime: time = START_TIME start_time;
    /// The time at which the measurement ended, TS 29.244 §8.2.53.
    EndTime: time = END_TIME end_time;
    /// The sequence number of a usage report of a rule, TS 29.244 §8.2.71.
    UrSeqn: u32 = UR_SEQN ur_seqn;
    /// The usage time that is granted after the monitoring time, in seconds, TS 29.244 §8.2.87.
    SubsequentTimeQuota: u32 = SUBSEQUENT_TIME_QUOTA time_quota;
    /// The number that matches a query with its reports, TS 29.244 §8.2.90.
    QueryUrrReference: u32 = QUERY_URR_REFERENCE query_urr_reference;
    /// The time without packets, in seconds, after which an Ethernet address is removed, TS 29.244
    /// §8.2.105.
    EthernetInactivityTimer: u32 = ETHERNET_INACTIVITY_TIMER ethernet_inactivity_timer;
    /// Number of events that are granted, TS 29.244 §8.2.112.
    EventQuota: u32 = EVENT_QUOTA event_quota;
    /// Number of events after which a report is due, TS 29.244 §8.2.113.
    EventThreshold: u32 = EVENT_THRESHOLD event_threshold;
    /// Number of events that are granted after the monitoring time, TS 29.244 §8.2.106.
    SubsequentEventQuota: u32 = SUBSEQUENT_EVENT_QUOTA subsequent_event_quota;
    /// Number of events after which a report is due once the monitoring time has passed, TS 29.244
    /// §8.2.107.
    SubsequentEventThreshold: u32 = SUBSEQUENT_EVENT_THRESHOLD subsequent_event_threshold;
    /// The time of an event, TS 29.244 §8.2.114.
    TimeStamp: time = TIME_STAMP time_stamp;
    /// The time without packets, in seconds, after which a session counts as inactive, TS 29.244
    /// §8.2.83.
    UserPlaneInactivityTimer: u32 = USER_PLANE_INACTIVITY_TIMER user_plane_inactivity_timer;
    /// The time at which a rule becomes active, TS 29.244 §8.2.121.
    ActivationTime: time = ACTIVATION_TIME activation_time;
    /// The time at which a rule becomes inactive, TS 29.244 §8.2.122.
    DeactivationTime: time = DEACTIVATION_TIME deactivation_time;
}

flags! {
    /// The triggers of usage reports, TS 29.244 §8.2.19.
    ReportingTriggers: u32, 2..3 = REPORTING_TRIGGERS {
        PERIO 5/1;
        VOLTH 5/2;
        TIMTH 5/3;
        QUHTI 5/4;
        START 5/5;
        STOPT 5/6;
        DROTH 5/7;
        LIUSA 5/8;
        VOLQU 6/1;
        TIMQU 6/2;
        ENVCL 6/3;
        MACAR 6/4;
        EVETH 6/5;
        EVEQU 6/6;
        IPMJL 6/7;
        QUVTI 6/8;
        REEMR 7/1;
        UPINT 7/2;
    }
    /// The triggers that caused a usage report, TS 29.244 §8.2.41.
    UsageReportTrigger: u32, 2..3 = USAGE_REPORT_TRIGGER {
        PERIO 5/1;
        VOLTH 5/2;
        TIMTH 5/3;
        QUHTI 5/4;
        START 5/5;
        STOPT 5/6;
        DROTH 5/7;
        IMMER 5/8;
        VOLQU 6/1;
        TIMQU 6/2;
        LIUSA 6/3;
        TERMR 6/4;
        MONIT 6/5;
        ENVCL 6/6;
        MACAR 6/7;
        EVETH 6/8;
        EVEQU 7/1;
        TEBUR 7/2;
        IPMJL 7/3;
        QUVTI 7/4;
        EMRRE 7/5;
        UPINT 7/6;
    }
    /// The quantities to measure, TS 29.244 §8.2.40.
    MeasurementMethod: u8, 1..1 = MEASUREMENT_METHOD {
        DURAT 5/1;
        VOLUM 5/2;
        EVENT 5/3;
    }
    /// The usage that a report covers, TS 29.244 §8.2.59.
    UsageInformation: u8, 1..1 = USAGE_INFORMATION {
        BEF 5/1;
        AFT 5/2;
        UAE 5/3;
        UBE 5/4;
    }
    /// Options of the measurement, TS 29.244 §8.2.68.
    MeasurementInformation: u8, 1..1 = MEASUREMENT_INFORMATION {
        MBQE 5/1;
        INAM 5/2;
        RADI 5/3;
        ISTM 5/4;
        MNOP 5/5;
        SSPOC 5/6;
        ASPOC 5/7;
        CIAM 5/8;
    }
    /// The types of a session report, TS 29.244 §8.2.21.
    ReportType: u8, 1..1 = REPORT_TYPE {
        DLDR 5/1;
        USAR 5/2;
        ERIR 5/3;
        UPIR 5/4;
        TMIR 5/5;
        SESR 5/6;
        UISR 5/7;
    }
}

/// Defines a leaf of total, uplink and downlink volumes.
macro_rules! volumes {
    ($(#[$doc:meta])* $name:ident = $ie:ident) => {
        record! {
            $(#[$doc])*
            $name = $ie, head 1 {} {
                /// Number of bytes in both directions.
                total_volume: u64 [if TOVOL 5/1];
                /// Number of uplink bytes.
                uplink_volume: u64 [if ULVOL 5/2];
                /// Number of downlink bytes.
                downlink_volume: u64 [if DLVOL 5/3];
            }
        }
    };
}

volumes! {
    /// The volume, in bytes, after which a report is due, TS 29.244 §8.2.13.
    VolumeThreshold = VOLUME_THRESHOLD
}
volumes! {
    /// The volume, in bytes, after which a report is due once the monitoring time has passed, TS
    /// 29.244 §8.2.16.
    SubsequentVolumeThreshold = SUBSEQUENT_VOLUME_THRESHOLD
}
volumes! {
    /// The volume that is granted, in bytes, TS 29.244 §8.2.50.
    VolumeQuota = VOLUME_QUOTA
}
volumes! {
    /// The volume that is granted after the monitoring time, in bytes, TS 29.244 §8.2.86.
    SubsequentVolumeQuota = SUBSEQUENT_VOLUME_QUOTA
}

record! {
    /// The measured volume in bytes and packets, TS 29.244 §8.2.44.
    VolumeMeasurement = VOLUME_MEASUREMENT, head 1 {} {
        /// Number of bytes in both directions.
        total_volume: u64 [if TOVOL 5/1];
        /// Number of uplink bytes.
        uplink_volume: u64 [if ULVOL 5/2];
        /// Number of downlink bytes.
        downlink_volume: u64 [if DLVOL 5/3];
        /// Number of packets in both directions.
        total_packets: u64 [if TONOP 5/4];
        /// Number of uplink packets.
        uplink_packets: u64 [if ULNOP 5/5];
        /// Number of downlink packets.
        downlink_packets: u64 [if DLNOP 5/6];
    }
}

record! {
    /// The dropped downlink packets or bytes after which a report is due, TS 29.244 §8.2.49.
    DroppedDlTrafficThreshold = DROPPED_DL_TRAFFIC_THRESHOLD, head 1 {} {
        /// Number of packets.
        downlink_packets: u64 [if DLPA 5/1];
        /// Number of bytes.
        downlink_octets: u64 [if DLBY 5/2];
    }
}

record! {
    /// The method of counting time towards a quota, TS 29.244 §8.2.81.
    TimeQuotaMechanism = TIME_QUOTA_MECHANISM, head 1 {
        /// 0 for continuous time periods, 1 for discrete ones.
        base_time_interval_type: 2 5/1;
    } {
        /// The base time interval, in seconds.
        base_time_interval: u32;
    }
}

record! {
    /// The weight of a rule in a shared quota, TS 29.244 §8.2.84.
    Multiplier = MULTIPLIER, head 0 {} {
        /// The digits of the value.
        value_digits: u64;
        /// The power of ten.
        exponent: i32;
    }
}

record! {
    /// Number of usage reports that follow in other messages, TS 29.244 §8.2.91.
    AdditionalUsageReportsInformation = ADDITIONAL_USAGE_REPORTS_INFORMATION, head 2 {
        /// Number of reports.
        number: 15 5/1;
        /// Reports follow. If `number` is zero, their number is unknown.
        auri: flag 5/8;
    } {}
}
