//! Measuring, thresholds, quotas and reports: TS 29.244 §8.2.13 to §8.2.53 and others.

use super::leaf::{flags, numbers, record};

numbers! {
    /// Seconds until a report, TS 29.244 §8.2.14.
    TimeThreshold: u32 = TIME_THRESHOLD time_threshold;
    /// When thresholds change, TS 29.244 §8.2.15.
    MonitoringTime: time = MONITORING_TIME monitoring_time;
    /// Seconds until a report after the monitoring time, TS 29.244 §8.2.17.
    SubsequentTimeThreshold: u32 = SUBSEQUENT_TIME_THRESHOLD subsequent_time_threshold;
    /// Seconds without packets after which time is not counted, TS 29.244 §8.2.18.
    InactivityDetectionTime: u32 = INACTIVITY_DETECTION_TIME inactivity_detection_time;
    /// Seconds between reports, TS 29.244 §8.2.42.
    MeasurementPeriod: u32 = MEASUREMENT_PERIOD measurement_period;
    /// Seconds that were counted, TS 29.244 §8.2.45.
    DurationMeasurement: u32 = DURATION_MEASUREMENT duration;
    /// When the first packet came, TS 29.244 §8.2.46.
    TimeOfFirstPacket: time = TIME_OF_FIRST_PACKET time_of_first_packet;
    /// When the last packet came, TS 29.244 §8.2.47.
    TimeOfLastPacket: time = TIME_OF_LAST_PACKET time_of_last_packet;
    /// Seconds without packets after which a quota ends, TS 29.244 §8.2.48.
    QuotaHoldingTime: u32 = QUOTA_HOLDING_TIME quota_holding_time;
    /// Seconds that may be used, TS 29.244 §8.2.51.
    TimeQuota: u32 = TIME_QUOTA time_quota;
    /// When counting started, TS 29.244 §8.2.52.
    StartTime: time = START_TIME start_time;
    /// When counting ended, TS 29.244 §8.2.53.
    EndTime: time = END_TIME end_time;
    /// The number of a usage report of a rule, TS 29.244 §8.2.71.
    UrSeqn: u32 = UR_SEQN ur_seqn;
    /// Seconds that may be used after the monitoring time, TS 29.244 §8.2.87.
    SubsequentTimeQuota: u32 = SUBSEQUENT_TIME_QUOTA time_quota;
    /// The number that pairs a query with its reports, TS 29.244 §8.2.90.
    QueryUrrReference: u32 = QUERY_URR_REFERENCE query_urr_reference;
    /// Seconds without packets after which an Ethernet address is forgotten, TS 29.244 §8.2.105.
    EthernetInactivityTimer: u32 = ETHERNET_INACTIVITY_TIMER ethernet_inactivity_timer;
    /// Events that may happen, TS 29.244 §8.2.112.
    EventQuota: u32 = EVENT_QUOTA event_quota;
    /// Events until a report, TS 29.244 §8.2.113.
    EventThreshold: u32 = EVENT_THRESHOLD event_threshold;
    /// Events that may happen after the monitoring time, TS 29.244 §8.2.106.
    SubsequentEventQuota: u32 = SUBSEQUENT_EVENT_QUOTA subsequent_event_quota;
    /// Events until a report after the monitoring time, TS 29.244 §8.2.107.
    SubsequentEventThreshold: u32 = SUBSEQUENT_EVENT_THRESHOLD subsequent_event_threshold;
    /// When something happened, TS 29.244 §8.2.114.
    TimeStamp: time = TIME_STAMP time_stamp;
    /// Seconds without packets after which a session counts as idle, TS 29.244 §8.2.83.
    UserPlaneInactivityTimer: u32 = USER_PLANE_INACTIVITY_TIMER user_plane_inactivity_timer;
    /// When a rule begins to hold, TS 29.244 §8.2.121.
    ActivationTime: time = ACTIVATION_TIME activation_time;
    /// When a rule ceases to hold, TS 29.244 §8.2.122.
    DeactivationTime: time = DEACTIVATION_TIME deactivation_time;
}

flags! {
    /// What makes a usage report, TS 29.244 §8.2.19.
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
    /// What made a usage report, TS 29.244 §8.2.41.
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
    /// What is measured, TS 29.244 §8.2.40.
    MeasurementMethod: u8, 1..1 = MEASUREMENT_METHOD {
        DURAT 5/1;
        VOLUM 5/2;
        EVENT 5/3;
    }
    /// Which usage a report counts, TS 29.244 §8.2.59.
    UsageInformation: u8, 1..1 = USAGE_INFORMATION {
        BEF 5/1;
        AFT 5/2;
        UAE 5/3;
        UBE 5/4;
    }
    /// How to measure, TS 29.244 §8.2.68.
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
    /// What a session report is about, TS 29.244 §8.2.21.
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

/// Writes a leaf of total, uplink and downlink volumes.
macro_rules! volumes {
    ($(#[$doc:meta])* $name:ident = $ie:ident) => {
        record! {
            $(#[$doc])*
            $name = $ie, head 1 {} {
                /// Octets both ways.
                total_volume: u64 [if TOVOL 5/1];
                /// Octets from the UE.
                uplink_volume: u64 [if ULVOL 5/2];
                /// Octets to the UE.
                downlink_volume: u64 [if DLVOL 5/3];
            }
        }
    };
}

volumes! {
    /// Octets until a report, TS 29.244 §8.2.13.
    VolumeThreshold = VOLUME_THRESHOLD
}
volumes! {
    /// Octets until a report after the monitoring time, TS 29.244 §8.2.16.
    SubsequentVolumeThreshold = SUBSEQUENT_VOLUME_THRESHOLD
}
volumes! {
    /// Octets that may be used, TS 29.244 §8.2.50.
    VolumeQuota = VOLUME_QUOTA
}
volumes! {
    /// Octets that may be used after the monitoring time, TS 29.244 §8.2.86.
    SubsequentVolumeQuota = SUBSEQUENT_VOLUME_QUOTA
}

record! {
    /// Octets and packets that were counted, TS 29.244 §8.2.44.
    VolumeMeasurement = VOLUME_MEASUREMENT, head 1 {} {
        /// Octets both ways.
        total_volume: u64 [if TOVOL 5/1];
        /// Octets from the UE.
        uplink_volume: u64 [if ULVOL 5/2];
        /// Octets to the UE.
        downlink_volume: u64 [if DLVOL 5/3];
        /// Packets both ways.
        total_packets: u64 [if TONOP 5/4];
        /// Packets from the UE.
        uplink_packets: u64 [if ULNOP 5/5];
        /// Packets to the UE.
        downlink_packets: u64 [if DLNOP 5/6];
    }
}

record! {
    /// Dropped packets or octets until a report, TS 29.244 §8.2.49.
    DroppedDlTrafficThreshold = DROPPED_DL_TRAFFIC_THRESHOLD, head 1 {} {
        /// Packets.
        downlink_packets: u64 [if DLPA 5/1];
        /// Octets.
        downlink_octets: u64 [if DLBY 5/2];
    }
}

record! {
    /// How time is counted towards a quota, TS 29.244 §8.2.81.
    TimeQuotaMechanism = TIME_QUOTA_MECHANISM, head 1 {
        /// 0 counts continuous periods, 1 discrete ones.
        base_time_interval_type: 2 5/1;
    } {
        /// Seconds.
        base_time_interval: u32;
    }
}

record! {
    /// The weight of a rule in a shared quota, TS 29.244 §8.2.84.
    Multiplier = MULTIPLIER, head 0 {} {
        /// The digits.
        value_digits: u64;
        /// The power of ten.
        exponent: i32;
    }
}

record! {
    /// How many usage reports follow in other messages, TS 29.244 §8.2.91.
    AdditionalUsageReportsInformation = ADDITIONAL_USAGE_REPORTS_INFORMATION, head 2 {
        /// How many follow.
        number: 15 5/1;
        /// Reports follow; their number is not known where it is zero.
        auri: flag 5/8;
    } {}
}
