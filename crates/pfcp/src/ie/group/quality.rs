//! Measurements of sessions, and the recipients of reports.

use super::group;

group! {
    /// The quantities of QoS flows to measure.
    QosMonitoringPerQosFlowControlInformation QosMonitoringPerQosFlowControlInformationView
        = QOS_MONITORING_PER_QOS_FLOW_CONTROL_INFORMATION "7.5.2.9-3" {
        qfis: Qfi, M many [N4];
        requested_qos_monitoring: RequestedQosMonitoring, M one [N4];
        reporting_frequency: ReportingFrequency, M one [N4];
        packet_delay_thresholds: PacketDelayThresholds, C opt [N4];
        minimum_wait_time: MinimumWaitTime, C opt [N4];
        measurement_period: MeasurementPeriod, C opt [N4];
        reporting_suggestion_info: ReportingSuggestionInfo, C opt [N4];
        measurement_indication: MeasurementIndication, C opt [N4];
        reporting_thresholds: ReportingThresholds, C opt [N4];
        remaining_data_reporting_indication: RemainingDataReportingIndication, O opt [N4];
    }
}

group! {
    /// The measurements of a QoS flow.
    QosMonitoringReport QosMonitoringReportView = QOS_MONITORING_REPORT "7.5.8.6-3" {
        qfi: Qfi, M one [N4];
        qos_monitoring_measurement: QosMonitoringMeasurement, M one [N4];
        redundant_n3_n9_transmission_information: RedundantN3N9TransmissionInformation, C rare [N4];
        time_stamp: TimeStamp, M one [N4];
        start_time: StartTime, O opt [N4];
    }
}

group! {
    /// The traffic parameters to measure.
    TrafficParameterMeasurementControlInformation TrafficParameterMeasurementControlInformationView
        = TRAFFIC_PARAMETER_MEASUREMENT_CONTROL_INFORMATION "7.5.2.9-5" {
        qfis: Qfi, M many [N4; R17];
        traffic_parameter_measurement_indication: TrafficParameterMeasurementIndication, M one [N4];
        measurement_period: MeasurementPeriod, C opt [N4; R17];
        dl_periodicity: DlPeriodicity, C opt [N4];
        traffic_parameter_threshold: TrafficParameterThreshold, C opt [N4];
    }
}

group! {
    /// The measured traffic parameters.
    TrafficParameterMeasurementReport TrafficParameterMeasurementReportView
        = TRAFFIC_PARAMETER_MEASUREMENT_REPORT "7.5.8.6-4" {
        qfi: Qfi, M one [N4; R17];
        n6_jitter_measurement: N6JitterMeasurement, C opt [N4];
        ul_periodicity: UlPeriodicity, C opt [N4];
        time_stamp: TimeStamp, M one [N4; R17];
        start_time: StartTime, O opt [N4; R17];
    }
}

group! {
    /// The recipient of reports that bypass the CP function.
    DirectReportingInformation DirectReportingInformationView
        = DIRECT_REPORTING_INFORMATION "7.5.2.9-4" {
        event_notification_uri: EventNotificationUri, M one [N4];
        notification_correlation_id: NotificationCorrelationId, C opt [N4];
        notification_binding_indication: BindingIndication,
            C opt [N4] "Notification Binding Indication";
        reporting_flags: ReportingFlags, C opt [N4];
    }
}

group! {
    /// The recipient of reports of a bridge or router that bypass the CP function.
    TscDirectReportingInformation TscDirectReportingInformationView
        = DIRECT_REPORTING_INFORMATION "7.5.4.18-2" {
        event_notification_uri: EventNotificationUri, M one [N4];
        notification_correlation_id: NotificationCorrelationId, C opt [N4];
        notification_binding_indication: BindingIndication,
            C opt [N4] "Notification Binding Indication";
    }
}

group! {
    /// The measurements of a session, reported at its deletion.
    SessionReportDeletionResponse SessionReportDeletionResponseView = SESSION_REPORT "7.5.7.3-1" {
        srr_id: SrrId, M one [N4];
        qos_monitoring_reports: QosMonitoringReport, C many [N4];
    }
}

group! {
    /// The measurements of a session.
    SessionReport SessionReportView = SESSION_REPORT "7.5.8.6-1" {
        srr_id: SrrId, M one [N4];
        access_availability_report: AccessAvailabilityReport, C rare [N4];
        qos_monitoring_reports: QosMonitoringReport, C many [N4];
        traffic_parameter_measurement_reports: TrafficParameterMeasurementReport, C many [N4];
    }
}

group! {
    /// The tunnels of redundant transmission.
    RedundantN3N9TransmissionInformation RedundantN3N9TransmissionInformationView
        = REDUNDANT_N3_N9_TRANSMISSION_INFORMATION "7.5.8.6-5" {
        local_n3_n9_tunnel_information: LocalN3N9TunnelInformation, M one [N4];
        remote_n3_n9_tunnel_information: RemoteN3N9TunnelInformation, M one [N4];
    }
}

group! {
    /// The local endpoint of a tunnel, at the UP function.
    LocalN3N9TunnelInformation LocalN3N9TunnelInformationView
        = LOCAL_N3_N9_TUNNEL_INFORMATION "7.5.8.6-6" {
        f_teid: FTeid, M one [N4; R17];
        network_instance: NetworkInstance, O opt [N4; R17];
    }
}

group! {
    /// The remote endpoint of a tunnel.
    RemoteN3N9TunnelInformation RemoteN3N9TunnelInformationView
        = REMOTE_N3_N9_TUNNEL_INFORMATION "7.5.8.6-7" {
        f_teid: FTeid, M one [N4; R17];
        network_instance: NetworkInstance, O opt [N4; R17];
    }
}

group! {
    /// The number of packets that rate control still allows.
    PacketRateStatusReport PacketRateStatusReportView = PACKET_RATE_STATUS_REPORT "7.5.7.1-2" {
        qer_id: QerId, M one [SXB N4];
        packet_rate_status: PacketRateStatus, M one [SXB N4];
    }
}

group! {
    /// A query for the number of packets that rate control still allows.
    QueryPacketRateStatus QueryPacketRateStatusView
        = QUERY_PACKET_RATE_STATUS_IE_WITHIN_PFCP_SESSION_MODIFICATION_REQUEST "7.5.4.22-1" {
        qer_id: QerId, M one [SXB N4];
    }
}

group! {
    /// The number of packets that rate control still allows, in the response to a query.
    PacketRateStatusReportModificationResponse PacketRateStatusReportModificationResponseView
        = PACKET_RATE_STATUS_REPORT_IE_WITHIN_PFCP_SESSION_MODIFICATION_RESPONSE "7.5.5.4-1" {
        qer_id: QerId, M one [SXB N4];
        packet_rate_status: PacketRateStatus, M one [SXB N4];
    }
}
