//! Groups that belong to nodes rather than sessions.

use super::group;

group! {
    /// The sessions to retain in a new association.
    PfcpSessionRetentionInformation PfcpSessionRetentionInformationView
        = PFCP_SESSION_RETENTION_INFORMATION "7.4.4.1-2" {
        cp_pfcp_entity_ip_addresses: CpPfcpEntityIpAddress, O many [ALL];
    }
}

group! {
    /// A pool of UE IP addresses.
    UeIpAddressPoolInformation UeIpAddressPoolInformationView
        = UE_IP_ADDRESS_POOL_INFORMATION "7.4.4.1-3" {
        ue_ip_address_pool_identities: UeIpAddressPoolIdentity, M many [SXB N4];
        network_instance: NetworkInstance, O opt [SXB N4];
        s_nssais: SNssai, O many [N4];
        ip_version: IpVersion, O opt [N4];
    }
}

group! {
    /// The usage of a pool of UE IP addresses.
    UeIpAddressUsageInformation UeIpAddressUsageInformationView
        = UE_IP_ADDRESS_USAGE_INFORMATION "7.4.4.3.1-1" {
        ue_ip_address_usage_sequence_number: SequenceNumber,
            M one [SXB N4] "UE IP Address Usage Sequence Number";
        ue_ip_address_usage_metric: Metric, M one [SXB N4] "UE IP Address Usage Metric";
        validity_timer: ValidityTimer, M one [SXB N4];
        number_of_ue_ip_addresses: NumberOfUeIpAddresses, M one [SXB N4];
        network_instance: NetworkInstance, M one [SXB N4];
        ue_ip_address_pool_id: UeIpAddressPoolIdentity, O opt [SXB N4] "UE IP Address Pool Id";
        s_nssai: SNssai, O opt [SXB N4];
    }
}

group! {
    /// The packet flow descriptions (PFDs) of an application.
    ApplicationIdsPfds ApplicationIdsPfdsView = APPLICATION_IDS_PFDS "7.4.3.1-2" {
        application_id: ApplicationId, M one [SXB SXC N4];
        pfd_contexts: PfdContext, C many [SXB SXC N4];
    }
}

group! {
    /// A set of packet flow descriptions.
    PfdContext PfdContextView = PFD_CONTEXT "7.4.3.1-3" {
        pfd_contents: PfdContents, M many [SXB SXC N4];
    }
}

group! {
    /// An application whose packet flow descriptions could not be provisioned.
    PfdPartialFailureInformation PfdPartialFailureInformationView
        = PFD_PARTIAL_FAILURE_INFORMATION "7.4.3.2-2" {
        application_id: ApplicationId, M one [SXB SXC N4; R17];
        failure_cause: Cause, M one [SXB SXC N4; R17] "Failure Cause";
    }
}

group! {
    /// The clocks to monitor.
    ClockDriftControlInformation ClockDriftControlInformationView
        = CLOCK_DRIFT_CONTROL_INFORMATION "7.4.4.1.2-1" {
        requested_clock_drift_information: RequestedClockDriftInformation, M one [N4];
        time_domain_numbers: TimeDomainNumber, C many [N4];
        configured_time_domain: ConfiguredTimeDomain, C opt [N4];
        time_offset_threshold: TimeOffsetThreshold, C opt [N4];
        cumulative_rateratio_threshold: CumulativeRateratioThreshold, C opt [N4];
    }
}

group! {
    /// The GTP-U paths to measure, and the reports about them.
    GtpuPathQosControlInformation GtpuPathQosControlInformationView
        = GTPU_PATH_QOS_CONTROL_INFORMATION "7.4.4.1.3-1" {
        remote_gtpu_peers: RemoteGtpuPeer, C many [N4; R17];
        gtpu_path_interface_type: GtpuPathInterfaceType, C opt [N4; R17];
        qos_report_trigger: QosReportTrigger, M one [N4; R17];
        dscps: TransportLevelMarking, C many [N4; R17] "DSCP";
        measurement_period: MeasurementPeriod, C opt [N4; R17];
        average_packet_delay_threshold: AveragePacketDelay,
            C opt [N4; R17] "Average Packet Delay Threshold";
        minimum_packet_delay_threshold: MinimumPacketDelay,
            C opt [N4; R17] "Minimum Packet Delay Threshold";
        maximum_packet_delay_threshold: MaximumPacketDelay,
            C opt [N4; R17] "Maximum Packet Delay Threshold";
        minimum_waiting_time: Timer, C opt [N4; R17] "Minimum Waiting Time";
    }
}

group! {
    /// The N6 delays to measure, and the reports about them.
    N6DelayMeasurementControlInformation N6DelayMeasurementControlInformationView
        = N6_DELAY_MEASUREMENT_CONTROL_INFORMATION "7.4.4.1.4-1" {
        n6_delay_measurement_control_information_id: N6DelayMeasurementControlInformationId,
            M one [N4];
        measurement_endpoint_address: MeasurementEndpointAddress, M many [N4];
        network_instance: NetworkInstance, M one [N4; R17];
        measurement_protocols: N6DelayMeasurementProtocols, M many [N4] "Measurement Protocols";
        protocol_specific_configuration_parameters: ProtocolSpecificConfigurationParameters,
            O rare [N4];
        measurement_reporting_type: MeasurementReportingType, M one [N4];
        measurement_period: MeasurementPeriod, C opt [N4; R17];
        average_packet_delay_threshold: AveragePacketDelay,
            O opt [N4; R17] "Average Packet Delay Threshold";
        minimum_packet_delay_threshold: MinimumPacketDelay,
            O opt [N4; R17] "Minimum Packet Delay Threshold";
        maximum_packet_delay_threshold: MaximumPacketDelay,
            O opt [N4; R17] "Maximum Packet Delay Threshold";
        minimum_waiting_time: Timer, O opt [N4; R17] "Minimum Waiting Time";
    }
}

group! {
    /// The parameters of a protocol for N6 delay measurements.
    ProtocolSpecificConfigurationParameters ProtocolSpecificConfigurationParametersView
        = PROTOCOL_SPECIFIC_CONFIGURATION_PARAMETERS "7.4.4.1.4-2" {
        measurement_protocol: N6DelayMeasurementProtocols, M one [N4] "Measurement Protocol";
        measurement_endpoint_port_number: MeasurementEndpointPortNumber, O opt [N4];
        security_mode_stamp: SecurityModeStamp, O opt [N4];
        hmac_key_stamp: HmacKeyStamp, O opt [N4];
        session_reflector_mode_stamp: SessionReflectorModeStamp, O opt [N4];
        security_mode_owamp_or_twamp: SecurityModeOwampTwamp, O opt [N4];
        key_id_and_shared_secret_owamp_or_twamps: KeyIdAndSharedSecret, O many [N4];
    }
}

group! {
    /// A report about the drift of a clock.
    ClockDriftReport ClockDriftReportView = CLOCK_DRIFT_REPORT "7.4.5.1.4-1" {
        time_domain_number: TimeDomainNumber, M one [N4];
        time_offset_measurement: TimeOffsetMeasurement, O opt [N4];
        cumulative_rateratio_measurement: CumulativeRateratioMeasurement, O opt [N4];
        time_stamp: TimeStamp, O opt [N4];
        network_instance: NetworkInstance, C opt [N4];
        apn_dnn: ApnDnn, C opt [N4];
        s_nssai: SNssai, C opt [N4];
    }
}

group! {
    /// A report about the delays of a GTP-U path.
    GtpuPathQosReport GtpuPathQosReportView = GTPU_PATH_QOS_REPORT "7.4.5.1.5-1" {
        remote_gtpu_peer: RemoteGtpuPeer, M one [N4];
        gtpu_path_interface_type: GtpuPathInterfaceType, C opt [N4];
        qos_report_trigger: QosReportTrigger, M one [N4];
        time_stamp: TimeStamp, M one [N4];
        start_time: StartTime, C opt [N4];
        qos_informations: QosInformation, M many [N4] "QoS Information";
    }
}

group! {
    /// The delays of the packets of one class.
    QosInformation QosInformationView = QOS_INFORMATION_IN_GTPU_PATH_QOS_REPORT "7.4.5.1.6-1" {
        average_packet_delay: AveragePacketDelay, M one [N4];
        minimum_packet_delay: MinimumPacketDelay, C opt [N4];
        maximum_packet_delay: MaximumPacketDelay, C opt [N4];
        dscp: TransportLevelMarking, C opt [N4] "DSCP";
    }
}

group! {
    /// A report about peers that restarted.
    PeerUpRestartReport PeerUpRestartReportView = PEER_UP_RESTART_REPORT "7.4.5.1.7-1" {
        remote_gtpu_peers: RemoteGtpuPeer, M many [SXA SXB N4 N4MB];
    }
}

group! {
    /// A report about N6 delays.
    N6DelayMeasurementReport N6DelayMeasurementReportView
        = N6_DELAY_MEASUREMENT_REPORT "7.4.5.1.8-1" {
        measurement_endpoint_address: MeasurementEndpointAddress, M one [N4];
        network_instance: NetworkInstance, M one [N4; R17];
        measurement_reporting_type: MeasurementReportingType, M one [N4];
        time_stamp: TimeStamp, M one [N4; R17];
        start_time: StartTime, C opt [N4; R17];
        n6_delay_measurement_information: N6DelayMeasurementInformation, C opt [N4];
        n6_delay_measurement_failure_information: N6DelayMeasurementFailureInformation, C opt [N4];
        measurement_endpoint_port_number: MeasurementEndpointPortNumber, O opt [N4];
    }
}

group! {
    /// Sessions that another CP function takes over.
    PfcpSessionChangeInfo PfcpSessionChangeInfoView = PFCP_SESSION_CHANGE_INFO "7.4.7.1-2" {
        pgw_c_smf_fq_csids: FqCsid, C many [SXB N4] "PGW-C/SMF FQ-CSID";
        group_ids: GroupId, C many [SXB N4];
        cp_ip_address: CpIpAddress, C many [SXB N4];
        alternative_smf_pgw_c_ip_address: AlternativeSmfIpAddress,
            M one [SXB N4] "Alternative SMF/PGW-C IP Address";
    }
}
